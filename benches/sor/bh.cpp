// Red-black successive over-relaxation of an n x n grid (n even), held as four compact colour grids:
//
//     r0 b0 r0 b0        red points are r0 (even row, even column) and r1 (odd, odd),
//     b1 r1 b1 r1        black points are b0 (even, odd) and b1 (odd, even)
//
// Each step relaxes red, then black, and reads the sum of |change| as a stopping test would.
#include "../common/bh_harness.hpp"

using namespace bench;

const double omega = 1.5;

// Relaxes the points in place; returns the sum of |change|.
template <class T>
array<T> relax(array<T> point, const array<T> &north, const array<T> &south, const array<T> &west, const array<T> &east) {
    auto value = (1 - omega) * point + omega / 4 * (north + south + west + east);
    auto change = sum(abs(value - point));
    point.fill(value);
    return change;
}

template <class T> struct program {
    array<T> r0, r1, b0, b1;
    double delta = 0;

    explicit program(std::int64_t n) {
        const std::int64_t m = n / 2;
        r0 = pseudo<T>({m, m}, 11);
        b0 = pseudo<T>({m, m}, 12);
        b1 = pseudo<T>({m, m}, 13);
        r1 = pseudo<T>({m, m}, 14);
        for (auto &edge : {r0(all, 0), b0(all, -1), b1(all, 0), r1(all, -1), b1(-1, all), r1(-1, all)}) array<T>(edge).fill(-273.15);
        for (auto &edge : {r0(0, all), b0(0, all)}) array<T>(edge).fill(40.0);
    }

    void run(std::int64_t iters) {
        const auto low = slice(none, -1), high = slice(1, none);
        for (std::int64_t step = 0; step < iters; step++) {
            auto change = relax(r0(high, high), b1(low, high), b1(high, high), b0(high, low), b0(high, high));
            change += relax(r1(low, low), b0(low, low), b0(high, low), b1(low, low), b1(low, high));
            change += relax(b0(high, low), r1(low, low), r1(high, low), r0(high, low), r0(high, high));
            change += relax(b1(low, high), r0(low, high), r0(high, high), r1(low, low), r1(low, high));
            delta = scalar(change);
        }
    }

    std::vector<double> checksums() const {
        return {checksum(r0) + checksum(r1), checksum(b0) + checksum(b1), delta};
    }
};

int main(int argc, char **argv) { return bench::run<program>(argc, argv, "sor", 4); }
