// Rosenbrock's function of n variables, evaluated anew in each iteration.
#include "../common/bh_harness.hpp"

using namespace bench;

template <class T> struct program {
    array<T> x;
    double value = 0;

    explicit program(std::int64_t n) : x(pseudo<T>({n}, 10)) {}

    void run(std::int64_t iters) {
        auto here = x(slice(none, -1)), next = x(slice(1, none));
        for (std::int64_t step = 0; step < iters; step++) {
            value = scalar(sum(100 * pow(next - pow(here, 2), 2) + pow(1 - here, 2)));
        }
    }

    std::vector<double> checksums() const { return {value}; }
};

int main(int argc, char **argv) { return bench::run<program>(argc, argv, "rosenbrock", 2); }
