// Black-Scholes price of n European call options with Armadillo, which has no choice by elements: the sign chooses.
#include "../common/plain_harness.hpp"

#include <armadillo>

template <class T> using vector = arma::Col<T>;

/// Cumulative normal distribution (Abramowitz and Stegun 26.2.17).
template <class T> vector<T> normal(const vector<T> &x) {
    const vector<T> k = T(1) / (T(1) + T(0.2316419) * arma::abs(x));
    const vector<T> tail = T(0.3989422804014327) * arma::exp(T(-0.5) * x % x) %
                           (k % (T(0.31938153) + k % (T(-0.356563782) + k % (T(1.781477937) + k % (T(-1.821255978) + k * T(1.330274429))))));
    return T(0.5) + arma::sign(x) % (T(0.5) - tail);
}

template <class T> struct program {
    vector<T> spot;
    double total = 0;

    explicit program(std::int64_t n) : spot(static_cast<arma::uword>(n)) {
        bench::pseudo(spot.memptr(), n, 9);
        spot = T(58) + T(4) * spot;
    }

    void run(std::int64_t iters) {
        const double strike = 65, rate = 0.08, volatility = 0.3;
        for (std::int64_t step = 0; step < iters; step++) {
            const double years = 0.25 - static_cast<double>(step) * (0.25 / 365), spread = volatility * std::sqrt(years);
            const vector<T> d1 = (arma::log(spot / T(strike)) + T((rate + volatility * volatility / 2) * years)) / T(spread);
            const vector<T> d2 = d1 - T(spread);
            total += static_cast<double>(arma::accu(spot % normal(d1) - T(strike * std::exp(-rate * years)) * normal(d2))) / static_cast<double>(spot.n_elem);
        }
    }

    std::vector<double> checksums() const { return {total}; }
};

int main(int argc, char **argv) { return bench::run<program>(argc, argv, "black_scholes", "armadillo", 1); }
