// Gaussian elimination of an n x n matrix without pivoting, started anew from the same matrix in each iteration.
#include "../common/bh_harness.hpp"

using namespace bench;

template <class T> void gauss(array<T> &a) {
    for (std::int64_t c = 1; c < a.extent(0); c++) {
        const auto below = slice(c, none), right = slice(c - 1, none);
        a(below, right) -= (a(below, c - 1) / a(c - 1, c - 1))(all, newaxis) * a(c - 1, right);
    }
    a /= a.diagonal().copy()(all, newaxis);
}

template <class T> struct program {
    array<T> start, result;

    explicit program(std::int64_t n) : start(pseudo<T>({n, n}, 26) + bh::eye<T>(n) * n) {}

    void run(std::int64_t iters) {
        for (std::int64_t i = 0; i < iters; i++) {
            result = start.copy();
            gauss(result);
            bh::flush();
        }
    }

    std::vector<double> checksums() const { return {checksum(result)}; }
};

int main(int argc, char **argv) { return bench::run<program>(argc, argv, "gauss", 2); }
