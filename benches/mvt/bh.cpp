// Products of an n x n matrix and of its transpose with vectors, added to others: x1 += A y1, x2 += A^T y2.
#include "../common/bh_harness.hpp"

using namespace bench;

template <class T> struct program {
    array<T> a, x1, x2, y1, y2;

    explicit program(std::int64_t n)
        : a(pseudo<T>({n, n}, 40)), x1(pseudo<T>({n}, 41)), x2(pseudo<T>({n}, 42)), y1(pseudo<T>({n}, 43)), y2(pseudo<T>({n}, 44)) {}

    void run(std::int64_t iters) {
        for (std::int64_t step = 0; step < iters; step++) {
            x1 += matmul(a, y1);
            x2 += matmul(a.transpose(), y2);
        }
    }

    std::vector<double> checksums() const { return {checksum(x1), checksum(x2)}; }
};

int main(int argc, char **argv) { return bench::run<program>(argc, argv, "mvt", 1); }
