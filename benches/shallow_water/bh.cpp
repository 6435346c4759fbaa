// Shallow water equations on an n x n grid with reflecting walls, by the two-step Lax-Wendroff scheme: a drop falls into a
// basin. h is the height, u and v the flow along the first and second axis; the grid spacing is 1.
#include "../common/bh_harness.hpp"

using namespace bench;

const double dt = 0.02, gravity = 9.8;

// Flux of momentum along its own axis.
template <class T> array<T> momentum(const array<T> &flow, const array<T> &height) {
    return pow(flow, 2) / height + gravity / 2 * pow(height, 2);
}

template <class T> struct program {
    array<T> h, u, v;

    explicit program(std::int64_t n) {
        auto y = bh::cast<double>(bh::arange(static_cast<double>(n)) - n / 3)(all, newaxis);
        auto x = bh::cast<double>(bh::arange(static_cast<double>(n)) - n / 2)(newaxis, all);
        h = bh::cast<T>(1 + 0.5 / (1 + 100 * (y * y + x * x) / static_cast<double>(n * n)));
        u = bh::zeros_like(h);
        v = bh::zeros_like(h);
    }

    void step() {
        const auto inner = slice(1, -1), low = slice(none, -1), high = slice(1, none);
        const double half = dt / 2;

        // Half step at the faces between rows, then between columns.
        auto h1 = h(high, inner), h0 = h(low, inner), u1 = u(high, inner), u0 = u(low, inner);
        auto v1 = v(high, inner), v0 = v(low, inner);
        auto hx = (h1 + h0) / 2 - half * (u1 - u0);
        auto ux = (u1 + u0) / 2 - half * (momentum(u1, h1) - momentum(u0, h0));
        auto vx = (v1 + v0) / 2 - half * (u1 * v1 / h1 - u0 * v0 / h0);
        auto ha = h(inner, high), hb = h(inner, low), ua = u(inner, high), ub = u(inner, low);
        auto va = v(inner, high), vb = v(inner, low);
        auto hy = (ha + hb) / 2 - half * (va - vb);
        auto uy = (ua + ub) / 2 - half * (ua * va / ha - ub * vb / hb);
        auto vy = (va + vb) / 2 - half * (momentum(va, ha) - momentum(vb, hb));

        // Full step inside.
        auto rows = [&](const array<T> &f) { return dt * (f(high, all) - f(low, all)); };
        auto columns = [&](const array<T> &f) { return dt * (f(all, high) - f(all, low)); };
        h(inner, inner) -= rows(ux) + columns(vy);
        u(inner, inner) -= rows(momentum(ux, hx)) + columns(uy * vy / hy);
        v(inner, inner) -= rows(ux * vx / hx) + columns(momentum(vy, hy));

        // Walls.
        auto reflect = [&](const array<T> &grid, double sign_rows, double sign_columns) {
            grid(0, inner) = sign_rows * grid(1, inner);
            grid(-1, inner) = sign_rows * grid(-2, inner);
            grid(inner, 0) = sign_columns * grid(inner, 1);
            grid(inner, -1) = sign_columns * grid(inner, -2);
        };
        reflect(h, 1, 1);
        reflect(u, -1, 1);
        reflect(v, 1, -1);
    }

    void run(std::int64_t iters) {
        for (std::int64_t i = 0; i < iters; i++) step();
    }

    std::vector<double> checksums() const { return {checksum(h), checksum(u), checksum(v)}; }
};

int main(int argc, char **argv) { return bench::run<program>(argc, argv, "shallow_water", 3); }
