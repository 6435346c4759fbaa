// Black-Scholes price of n European call options with Blitz++.
#include "../common/plain_harness.hpp"

#include <blitz/array.h>

using namespace blitz;

/// Cumulative normal distribution (Abramowitz and Stegun 26.2.17).
template <class T> Array<T, 1> normal(const Array<T, 1> &x) {
    Array<T, 1> k(x.shape()), tail(x.shape());
    k = T(1) / (T(1) + T(0.2316419) * abs(x));
    tail = T(0.3989422804014327) * exp(T(-0.5) * x * x) *
           (k * (T(0.31938153) + k * (T(-0.356563782) + k * (T(1.781477937) + k * (T(-1.821255978) + k * T(1.330274429))))));
    tail = where(x < T(0), tail, T(1) - tail);
    return tail;
}

template <class T> struct program {
    Array<T, 1> spot, d1, d2;
    double total = 0;

    explicit program(std::int64_t n) : spot(static_cast<int>(n)), d1(spot.shape()), d2(spot.shape()) {
        bench::pseudo(spot.data(), n, 9);
        spot = T(58) + T(4) * spot;
    }

    void run(std::int64_t iters) {
        const double strike = 65, rate = 0.08, volatility = 0.3;
        for (std::int64_t step = 0; step < iters; step++) {
            const double years = 0.25 - static_cast<double>(step) * (0.25 / 365), spread = volatility * std::sqrt(years);
            d1 = (log(spot / T(strike)) + T((rate + volatility * volatility / 2) * years)) / T(spread);
            d2 = d1 - T(spread);
            total += static_cast<double>(sum(spot * normal(d1) - T(strike * std::exp(-rate * years)) * normal(d2))) / static_cast<double>(spot.size());
        }
    }

    std::vector<double> checksums() const { return {total}; }
};

int main(int argc, char **argv) { return bench::run<program>(argc, argv, "black_scholes", "blitz", 1); }
