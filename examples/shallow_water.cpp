// Waves in a square basin: the shallow water equations by the method of Lax and Wendroff.
//
//   shallow_water [SIZE [STEPS]]
//
// A drop falls into the basin; its walls reflect the waves.
#include <bh.hpp>
#include <cstdlib>
#include <iostream>

using bh::all, bh::none, bh::slice;
using field = bh::array<double>;

const double gravity = 9.8, dt = 0.02, dx = 1.0;

// The flow through a point in a direction: of the height, of the momentum in it, and of the momentum across it.
struct flow {
    field height, along, across;
};

flow flux(const field &height, const field &along, const field &across) {
    return {along, along * along / height + 0.5 * gravity * height * height, along * across / height};
}

// Walls: heights continue, the momentum across the wall turns round.
void reflect(field &h, field &u, field &v) {
    for (field *f : {&h, &u, &v}) {
        const double x = f == &u ? -1.0 : 1.0, y = f == &v ? -1.0 : 1.0;
        (*f)(0, all) = x * (*f)(1, all);
        (*f)(-1, all) = x * (*f)(-2, all);
        (*f)(all, 0) = y * (*f)(all, 1);
        (*f)(all, -1) = y * (*f)(all, -2);
    }
}

void step(field &h, field &u, field &v) {
    reflect(h, u, v);
    const auto left = slice(0, -1), right = slice(1, none), inner = slice(1, -1);

    // Half a step, at the middles between points in x and in y.
    flow fx = flux(h, u, v), fy = flux(h, v, u);
    auto half_x = [&](const field &q, const field &f) {
        return 0.5 * (q(right, inner) + q(left, inner)) - dt / (2 * dx) * (f(right, inner) - f(left, inner));
    };
    auto half_y = [&](const field &q, const field &f) {
        return 0.5 * (q(inner, right) + q(inner, left)) - dt / (2 * dx) * (f(inner, right) - f(inner, left));
    };
    flow gx = flux(half_x(h, fx.height), half_x(u, fx.along), half_x(v, fx.across));
    flow gy = flux(half_y(h, fy.height), half_y(v, fy.along), half_y(u, fy.across));

    // The whole step, with the flows at those middles.
    auto advance = [&](field &q, const field &x, const field &y) {
        q(inner, inner) -= dt / dx * (x(right, all) - x(left, all) + y(all, right) - y(all, left));
    };
    advance(h, gx.height, gy.height);
    advance(u, gx.along, gy.across);
    advance(v, gx.across, gy.along);
}

int main(int argc, char **argv) {
    const int size = argc > 1 ? std::atoi(argv[1]) : 500, steps = argc > 2 ? std::atoi(argv[2]) : 100;
    const auto x = bh::linspace(-3, 3, size), y = x(bh::newaxis).transpose();
    field h = bh::zeros({size + 2, size + 2}) + 1.0, u = bh::zeros({size + 2, size + 2}), v = u.copy();
    h(slice(1, -1), slice(1, -1)) += exp(-(x * x + y * y)) * 0.5;
    for (int i = 0; i < steps; ++i) step(h, u, v);
    const auto water = h(slice(1, -1), slice(1, -1));
    std::cout.precision(12);
    std::cout << "volume: " << scalar(sum(water)) << "\nchecksum: " << scalar(sum(water * water)) << "\n";
}
