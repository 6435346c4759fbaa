// Leibnitz' series for pi, n pairs of terms, summed anew in each iteration.
#include "../common/bh_harness.hpp"

using namespace bench;

template <class T> struct program {
    std::int64_t n;
    double pi = 0;

    explicit program(std::int64_t n) : n(n) {}

    void run(std::int64_t iters) {
        for (std::int64_t step = 0; step < iters; step++) {
            auto k = 4 * bh::arange<T>(static_cast<double>(n));
            auto series = 4 * sum(1 / (k + 1) - 1 / (k + 3));
            pi = scalar(series);
        }
    }

    std::vector<double> checksums() const { return {pi}; }
};

int main(int argc, char **argv) { return bench::run<program>(argc, argv, "leibnitz_pi", 1); }
