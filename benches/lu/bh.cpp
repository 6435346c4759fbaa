// LU factorisation of an n x n matrix without pivoting, started anew from the same matrix in each iteration.
#include "../common/bh_harness.hpp"

using namespace bench;

template <class T> struct program {
    array<T> start, l, u;

    explicit program(std::int64_t n) : start(pseudo<T>({n, n}, 27) + bh::eye<T>(n) * n) {}

    void factor() {
        const std::int64_t n = start.extent(0);
        u = start.copy();
        l = bh::eye<T>(n);
        for (std::int64_t c = 1; c < n; c++) {
            const auto below = slice(c, none), right = slice(c - 1, none);
            l(below, c - 1) = u(below, c - 1) / u(c - 1, c - 1);
            u(below, right) -= l(below, c - 1)(all, newaxis) * u(c - 1, right);
        }
    }

    void run(std::int64_t iters) {
        for (std::int64_t i = 0; i < iters; i++) {
            factor();
            bh::flush();
        }
    }

    std::vector<double> checksums() const { return {checksum(l), checksum(u)}; }
};

int main(int argc, char **argv) { return bench::run<program>(argc, argv, "lu", 2); }
