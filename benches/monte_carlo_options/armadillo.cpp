// Price of a European call option by n random paths with Armadillo. The generator's numbers are written by a loop.
#include "../common/plain_harness.hpp"

#include <armadillo>

template <class T> struct program {
    arma::Col<T> u, v, end;
    double total = 0;

    explicit program(std::int64_t n) : u(static_cast<arma::uword>(n)), v(u.n_elem), end(u.n_elem) {}

    void run(std::int64_t iters) {
        const double strike = 65, rate = 0.08, volatility = 0.3, years = 0.25;
        const T drift = T((rate - volatility * volatility / 2) * years), spread = T(volatility * std::sqrt(years));
        for (std::int64_t step = 0; step < iters; step++) {
            bench::uniform(u.memptr(), static_cast<std::int64_t>(u.n_elem), static_cast<std::uint32_t>(2 * step));
            bench::uniform(v.memptr(), static_cast<std::int64_t>(v.n_elem), static_cast<std::uint32_t>(2 * step + 1));
            end = T(60) * arma::exp(drift + spread * (arma::sqrt(T(-2) * arma::log(T(1) - u)) % arma::cos(T(6.283185307179586) * v)));
            total += std::exp(-rate * years) * static_cast<double>(arma::accu(arma::clamp(end - T(strike), T(0), std::numeric_limits<T>::max()))) /
                     static_cast<double>(u.n_elem);
        }
    }

    std::vector<double> checksums() const { return {total}; }
};

int main(int argc, char **argv) { return bench::run<program>(argc, argv, "monte_carlo_options", "armadillo", 1); }
