// Prices of European call options by the formula of Black and Scholes.
//
//   black_scholes [OPTIONS [DAYS]]
//
// The mean price of options on stocks of random price, added up over days until they expire.
#include <bh.hpp>
#include <cmath>
#include <cstdlib>
#include <iostream>

// The distribution function of the normal distribution.
auto normal_distribution(const bh::array<double> &x) { return 0.5 * erfc(x * -std::sqrt(0.5)); }

auto call_price(const bh::array<double> &price, double strike, double rate, double volatility, double years) {
    const double spread = volatility * std::sqrt(years);
    auto d1 = (log(price / strike) + (rate + 0.5 * volatility * volatility) * years) / spread;
    auto d2 = d1 - spread;
    return price * normal_distribution(d1) - strike * std::exp(-rate * years) * normal_distribution(d2);
}

int main(int argc, char **argv) {
    const int count = argc > 1 ? std::atoi(argv[1]) : 1000000, days = argc > 2 ? std::atoi(argv[2]) : 10;
    const auto price = bh::random::uniform({count}, 42) * 4.0 + 58.0;
    double checksum = 0;
    for (int day = 1; day <= days; ++day) {
        checksum += scalar(mean(call_price(price, 65.0, 0.08, 0.3, day / 365.0)));
    }
    std::cout.precision(12);
    std::cout << "checksum: " << checksum << "\n";
}
