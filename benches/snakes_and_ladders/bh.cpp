// Snakes and ladders on a board of n squares: successive powers of the transition matrix, P <- P T, with the chance of
// having finished after each number of throws.
#include "../common/bh_harness.hpp"

#include <algorithm>

using namespace bench;

// Where a piece that lands on `square` ends up: every 7th square is a ladder, every 11th a snake.
std::int64_t landing(std::int64_t square, std::int64_t n) {
    if (square >= n - 1) return n - 1;
    if (square % 7 == 3) return std::min(square + 9, n - 1);
    return square % 11 == 5 ? square - 5 : square;
}

template <class T> struct program {
    array<T> transition, power;
    double finished = 0;

    explicit program(std::int64_t n) {
        std::vector<T> chances(static_cast<std::size_t>(n * n));
        for (std::int64_t start = 0; start < n; start++)
            for (int dice = 1; dice <= 6; dice++) chances[static_cast<std::size_t>(start * n + landing(start + dice, n))] += T(1.0 / 6);
        transition = array<T>(chances, {n, n});
    }

    void run(std::int64_t iters) {
        power = transition;
        for (std::int64_t step = 0; step < iters; step++) {
            finished += static_cast<double>(scalar(power(0, -1)));
            power = matmul(power, transition);
        }
    }

    std::vector<double> checksums() const { return {checksum(power), finished}; }
};

int main(int argc, char **argv) { return bench::run<program>(argc, argv, "snakes_and_ladders", 8); }
