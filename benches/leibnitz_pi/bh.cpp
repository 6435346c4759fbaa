// Leibnitz' series for pi, n pairs of terms, summed anew in each iteration.
#include "../common/bh_harness.hpp"

using namespace bench;

template <class T> struct program {
    std::int64_t n;
    double pi = 0;

    explicit program(std::int64_t n) : n(n) {}

    // Names end with their functions: nothing of this is left to store when the sum is read.
    array<T> terms() const {
        auto k = 4 * bh::arange<T>(static_cast<double>(n));
        return 1 / (k + 1) - 1 / (k + 3);
    }

    void run(std::int64_t iters) {
        for (std::int64_t step = 0; step < iters; step++) {
            pi = 4 * scalar(sum(terms()));
        }
    }

    std::vector<double> checksums() const { return {pi}; }
};

int main(int argc, char **argv) { return bench::run<program>(argc, argv, "leibnitz_pi", 1); }
