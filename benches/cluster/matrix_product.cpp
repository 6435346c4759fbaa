// The product of two n × n matrices, anew in each iteration.
#include "../common/bh_harness.hpp"

using namespace bench;

template <class T> struct program {
    array<T> left, right, product;

    explicit program(std::int64_t n) : left(pseudo<T>({n, n}, 21)), right(pseudo<T>({n, n}, 22)) {}

    void run(std::int64_t iters) {
        for (std::int64_t step = 0; step < iters; step++) product = matmul(left, right);
    }

    std::vector<double> checksums() const { return {checksum_of_all(std::vector<array<T>>{product})}; }
};

int main(int argc, char **argv) { return bench::run<program>(argc, argv, "matrix_product", 1); }
