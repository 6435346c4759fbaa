// Price of a European call option by n random paths with Blitz++. The generator's numbers are written by a loop.
#include "../common/plain_harness.hpp"

#include <blitz/array.h>

using namespace blitz;

template <class T> struct program {
    Array<T, 1> u, v, end;
    double total = 0;

    explicit program(std::int64_t n) : u(static_cast<int>(n)), v(u.shape()), end(u.shape()) {}

    void run(std::int64_t iters) {
        const double strike = 65, rate = 0.08, volatility = 0.3, years = 0.25;
        const T drift = T((rate - volatility * volatility / 2) * years), spread = T(volatility * std::sqrt(years));
        for (std::int64_t step = 0; step < iters; step++) {
            bench::uniform(u.data(), u.size(), static_cast<std::uint32_t>(2 * step));
            bench::uniform(v.data(), v.size(), static_cast<std::uint32_t>(2 * step + 1));
            end = T(60) * exp(drift + spread * (sqrt(T(-2) * log(T(1) - u)) * cos(T(6.283185307179586) * v)));
            total += std::exp(-rate * years) * static_cast<double>(sum(where(end > T(strike), end - T(strike), T(0)))) / static_cast<double>(u.size());
        }
    }

    std::vector<double> checksums() const { return {total}; }
};

int main(int argc, char **argv) { return bench::run<program>(argc, argv, "monte_carlo_options", "blitz", 1); }
