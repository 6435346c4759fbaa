// Lattice Boltzmann, D2Q9, on n x n cells: flow along the second axis past a round obstacle that bounces it back. The
// outermost cells keep their starting values.
#include "../common/bh_harness.hpp"

using namespace bench;

const double omega = 1.2, stream = 0.1;
const int velocities[9][2] = {{0, 0}, {0, 1}, {1, 0}, {0, -1}, {-1, 0}, {1, 1}, {1, -1}, {-1, -1}, {-1, 1}};
const int opposite[9] = {0, 3, 4, 1, 2, 7, 8, 5, 6};
const double weights[9] = {4.0 / 9,  1.0 / 9,  1.0 / 9,  1.0 / 9, 1.0 / 9, 1.0 / 36, 1.0 / 36, 1.0 / 36, 1.0 / 36};

template <class T> struct program {
    std::int64_t n;
    std::vector<array<T>> populations;
    array<bool> solid;

    explicit program(std::int64_t n) : n(n) {
        auto density = 1 + 0.1 * pseudo<double>({n, n}, 36);
        for (int k = 0; k < 9; k++) {
            const double along = velocities[k][1] * stream;
            populations.push_back(bh::cast<T>(weights[k] * density * (1 + 3 * along + 4.5 * along * along - 1.5 * stream * stream)));
        }
        const auto last = static_cast<double>(n - 1);
        auto y = (bh::arange(1, last) - n / 2)(all, newaxis), x = (bh::arange(1, last) - n / 4)(newaxis, all);
        solid = y * y + x * x < n * n / 100;
    }

    void run(std::int64_t iters) {
        const auto inner = slice(1, -1);
        for (std::int64_t step = 0; step < iters; step++) {
            std::vector<array<T>> f, collided;
            for (int k = 0; k < 9; k++) {
                const int ey = velocities[k][0], ex = velocities[k][1];
                f.push_back(populations[k](slice(1 - ey, n - 1 - ey), slice(1 - ex, n - 1 - ex)));
            }
            auto density = f[0] + f[1] + f[2] + f[3] + f[4] + f[5] + f[6] + f[7] + f[8];
            auto y = (f[2] + f[5] + f[6] - f[4] - f[7] - f[8]) / density;
            auto x = (f[1] + f[5] + f[8] - f[3] - f[6] - f[7]) / density;
            auto still = 1 - 1.5 * (y * y + x * x);
            for (int k = 0; k < 9; k++) {
                auto along = velocities[k][0] * y + velocities[k][1] * x;
                auto equilibrium = weights[k] * density * (still + 3 * along + 4.5 * pow(along, 2));
                collided.push_back(where(solid, f[opposite[k]], f[k] + omega * (equilibrium - f[k])));
            }
            for (int k = 0; k < 9; k++) populations[k](inner, inner) = collided[k];
        }
    }

    std::vector<double> checksums() const {
        double sums[2] = {0, 0};
        for (int k = 0; k < 9; k++) sums[k % 2] += checksum(populations[k]);
        return {sums[0], sums[1]};
    }
};

int main(int argc, char **argv) { return bench::run<program>(argc, argv, "lattice_boltzmann_d2q9", 3); }
