// Price of a European call option by the mean pay-off of n random paths; each iteration draws new ones.
// The normal numbers of iteration t are made of the streams with seeds 2t and 2t + 1.
#include "../common/bh_harness.hpp"

using namespace bench;

const double spot = 60, strike = 65, rate = 0.08, volatility = 0.3, years = 0.25;

template <class T> struct program {
    std::int64_t n;
    double total = 0;

    explicit program(std::int64_t n) : n(n) {}

    void run(std::int64_t iters) {
        const double drift = (rate - volatility * volatility / 2) * years, spread = volatility * std::sqrt(years);
        for (std::int64_t step = 0; step < iters; step++) {
            const auto stream = [&](std::int64_t seed) { return bh::random::uniform<T>({n}, static_cast<std::uint64_t>(seed)); };
            auto normal = sqrt(-2 * log(1 - stream(2 * step))) * cos(6.283185307179586 * stream(2 * step + 1));
            auto end = spot * exp(drift + spread * normal);
            auto gains = scalar(sum(maximum(end - strike, 0)));
            total += std::exp(-rate * years) * static_cast<double>(gains) / static_cast<double>(n);
        }
    }

    std::vector<double> checksums() const { return {total}; }
};

int main(int argc, char **argv) { return bench::run<program>(argc, argv, "monte_carlo_options", 1); }
