// Heat equation on an n x n grid with Blitz++.
#include "../common/plain_harness.hpp"

#include <blitz/array.h>

using namespace blitz;

template <class T> struct program {
    int n;
    Array<T, 2> grid, work;
    double delta = 0;

    explicit program(std::int64_t size) : n(static_cast<int>(size)), grid(n, n), work(n - 2, n - 2) {
        bench::pseudo(grid.data(), size * size, 1);
        grid(Range::all(), 0) = T(-273.15);
        grid(Range::all(), n - 1) = T(-273.15);
        grid(n - 1, Range::all()) = T(-273.15);
        grid(0, Range::all()) = T(40);
    }

    void run(std::int64_t iters) {
        const Range inner(1, n - 2), before(0, n - 3), after(2, n - 1);
        Array<T, 2> center = grid(inner, inner), north = grid(before, inner), south = grid(after, inner);
        Array<T, 2> west = grid(inner, before), east = grid(inner, after);
        for (std::int64_t step = 0; step < iters; step++) {
            work = T(0.2) * (center + north + south + west + east);
            delta = sum(abs(work - center));
            center = work;
        }
    }

    std::vector<double> checksums() const { return {bench::checksum(grid.data(), std::int64_t(n) * n), delta}; }
};

int main(int argc, char **argv) { return bench::run<program>(argc, argv, "heat_equation", "blitz", 3); }
