// 27-point stencil on an n x n x n grid: the mean of the neighbourhood, without a stopping test.
#include "../common/bh_harness.hpp"

using namespace bench;

template <class T> struct program {
    array<T> grid;

    explicit program(std::int64_t n) : grid(pseudo<T>({n, n, n}, 7)) {}

    void run(std::int64_t iters) {
        const std::int64_t n = grid.extent(0);
        const auto inner = slice(1, -1);
        auto part = [&](int shift) {
            const int a = shift / 9, b = shift / 3 % 3, c = shift % 3;
            return grid(slice(a, n - 2 + a), slice(b, n - 2 + b), slice(c, n - 2 + c));
        };
        for (std::int64_t step = 0; step < iters; step++) {
            auto work = part(0) + part(1);
            for (int shift = 2; shift < 27; shift++) work += part(shift);
            grid(inner, inner, inner) = work * (1.0 / 27);
        }
    }

    std::vector<double> checksums() const { return {checksum(grid)}; }
};

int main(int argc, char **argv) { return bench::run<program>(argc, argv, "stencil_27_point", 3); }
