// Heat equation on an n x n grid, Jacobi steps of the 5-point mean that nobody looks at in between.
#include "../common/bh_harness.hpp"

using namespace bench;

template <class T> struct program {
    array<T> grid;

    explicit program(std::int64_t n) : grid(pseudo<T>({n, n}, 1)) {
        grid(all, 0) = -273.15;
        grid(all, -1) = -273.15;
        grid(-1, all) = -273.15;
        grid(0, all) = 40.0;
    }

    void run(std::int64_t iters) {
        const auto inner = slice(1, -1), before = slice(none, -2), after = slice(2, none);
        auto center = grid(inner, inner), north = grid(before, inner), south = grid(after, inner);
        auto west = grid(inner, before), east = grid(inner, after);
        for (std::int64_t step = 0; step < iters; step++)
            center.fill(0.2 * (center + north + south + west + east));
    }

    std::vector<double> checksums() const { return {checksum(grid)}; }
};

int main(int argc, char **argv) { return bench::run<program>(argc, argv, "heat_steps", 3); }
