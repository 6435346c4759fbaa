// Two elementwise operations per iteration on n elements: what a library costs when arrays are small.
#include "../common/bh_harness.hpp"

using namespace bench;

template <class T> struct program {
    array<T> x;

    explicit program(std::int64_t n) : x(pseudo<T>({n}, 34)) {}

    void run(std::int64_t iters) {
        for (std::int64_t step = 0; step < iters; step++) x = x * 0.999 + 0.001;
    }

    std::vector<double> checksums() const { return {checksum(x)}; }
};

int main(int argc, char **argv) { return bench::run<program>(argc, argv, "small_ops", 1); }
