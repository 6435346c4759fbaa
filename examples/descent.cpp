// Finds the heat conductivity of a rod from its temperatures at the end, by gradients of bh::grad: ./descent [CELLS [STEPS]].
#include <bh.hpp>

#include <cstdlib>
#include <iostream>

using bh::slice;

// The temperatures after some steps in place.
bh::array<double> conducted(bh::array<double> u, const bh::array<double> &k, int steps) {
    for (int step = 0; step < steps; ++step) {
        auto flux = k * (u(slice(1, bh::none)) - u(slice(bh::none, -1)));
        u(slice(1, -1)) += flux(slice(1, bh::none)) - flux(slice(bh::none, -1));
    }
    return u;
}

int main(int argc, char **argv) {
    const std::int64_t cells = argc > 1 ? std::atoll(argv[1]) : 200;
    const int steps = argc > 2 ? std::atoi(argv[2]) : 100;

    auto x = bh::linspace(0.0, 1.0, cells);
    auto start = bh::sin(9.0 * x);
    bh::array<double> truth = 0.2 + 0.1 * bh::sin(3.0 * x(slice(1, bh::none)));
    auto wanted = conducted(start.copy(), truth, steps);

    auto misfit = [&](const bh::array<double> &k) {
        auto apart = conducted(start.copy(), k, steps) - wanted;
        return bh::sum(apart * apart);
    };
    auto slope = bh::grad(misfit);

    bh::array<double> k = 0.0 * truth + 0.2;
    std::cout.precision(15);
    std::cout << "misfit: " << bh::scalar(misfit(k)) << "\n";
    for (int turn = 0; turn < 20; ++turn) {
        const auto [value, gradients] = slope.with_value(k);
        const auto &direction = std::get<0>(gradients);
        // Half of the step for which a linear misfit would be zero.
        const double length = bh::scalar(bh::sum(direction * direction));
        k -= (0.5 * bh::scalar(value) / length) * direction;
    }
    std::cout << "misfit at the end: " << bh::scalar(misfit(k)) << "\n";
}
