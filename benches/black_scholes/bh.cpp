// Black-Scholes price of n European call options with the polynomial form of the normal distribution, summed once per
// iteration while the time to maturity shrinks.
#include "../common/bh_harness.hpp"

using namespace bench;

// Cumulative normal distribution (Abramowitz and Stegun 26.2.17).
template <class T> array<T> normal(const array<T> &x) {
    auto size = abs(x);
    auto k = 1 / (1 + 0.2316419 * size);
    auto series = k * (0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))));
    auto tail = 0.3989422804014327 * exp(-0.5 * size * size) * series;
    return where(x < 0, tail, 1 - tail);
}

// Price of a call option.
template <class T> array<T> price(const array<T> &spot, double strike, double years, double rate, double volatility) {
    const double spread = volatility * std::sqrt(years);
    auto d1 = (log(spot / strike) + (rate + volatility * volatility / 2) * years) / spread;
    auto d2 = d1 - spread;
    return spot * normal(d1) - strike * std::exp(-rate * years) * normal(d2);
}

template <class T> struct program {
    array<T> spot;
    double total = 0;

    explicit program(std::int64_t n) : spot(58 + 4 * pseudo<T>({n}, 9)) {}

    void run(std::int64_t iters) {
        for (std::int64_t step = 0; step < iters; step++) {
            const double years = 0.25 - static_cast<double>(step) * (0.25 / 365);
            auto value = scalar(sum(price(spot, 65.0, years, 0.08, 0.3)));
            total += static_cast<double>(value) / static_cast<double>(spot.size());
        }
    }

    std::vector<double> checksums() const { return {total}; }
};

int main(int argc, char **argv) { return bench::run<program>(argc, argv, "black_scholes", 1); }
