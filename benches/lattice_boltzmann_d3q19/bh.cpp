// Lattice Boltzmann, D3Q19, on n x n x n cells with a single relaxation time. The outermost cells keep their starting
// values; those of the first plane slide sideways and drag the fluid.
#include "../common/bh_harness.hpp"

using namespace bench;

const double omega = 1.2;
const int velocities[19][3] = {
    {0, 0, 0},  {1, 0, 0},  {-1, 0, 0},  {0, 1, 0},  {0, -1, 0}, {0, 0, 1},  {0, 0, -1}, {1, 1, 0},  {-1, -1, 0}, {1, -1, 0},
    {-1, 1, 0}, {1, 0, 1},  {-1, 0, -1}, {1, 0, -1}, {-1, 0, 1}, {0, 1, 1},  {0, -1, -1}, {0, 1, -1}, {0, -1, 1},
};

double weight(int k) { return k == 0 ? 1.0 / 3 : k < 7 ? 1.0 / 18 : 1.0 / 36; }

// Sum of sign * array over the signs that are not zero; an undefined array if there are none.
template <class T, class Sign> array<T> combine(Sign sign, const std::vector<array<T>> &arrays) {
    array<T> total;
    for (std::size_t i = 0; i < arrays.size(); i++) {
        const int s = sign(static_cast<int>(i));
        if (s == 0) continue;
        if (!total.defined()) {
            total = s > 0 ? arrays[i] : -arrays[i];
        } else {
            total = s > 0 ? total + arrays[i] : total - arrays[i];
        }
    }
    return total;
}

template <class T> struct program {
    std::int64_t n;
    std::vector<array<T>> populations;

    explicit program(std::int64_t n) : n(n) {
        auto density = 1 + 0.1 * pseudo<double>({n, n, n}, 35);
        auto slide = bh::zeros({n, 1, 1});
        slide(0) = 0.1;
        for (int k = 0; k < 19; k++) {
            const int ey = velocities[k][1];
            populations.push_back(bh::cast<T>(
                weight(k) * density * (1 + 3 * ey * slide + 4.5 * ey * ey * pow(slide, 2) - 1.5 * pow(slide, 2))));
        }
    }

    void run(std::int64_t iters) {
        const auto inner = slice(1, -1);
        for (std::int64_t step = 0; step < iters; step++) {
            std::vector<array<T>> pulled, flow, collided;
            for (int k = 0; k < 19; k++) {
                const int *e = velocities[k];
                pulled.push_back(populations[k](slice(1 - e[0], n - 1 - e[0]), slice(1 - e[1], n - 1 - e[1]), slice(1 - e[2], n - 1 - e[2])));
            }
            auto density = combine([](int) { return 1; }, pulled);
            for (int axis = 0; axis < 3; axis++) flow.push_back(combine([=](int k) { return velocities[k][axis]; }, pulled) / density);
            auto still = 1 - 1.5 * (pow(flow[0], 2) + pow(flow[1], 2) + pow(flow[2], 2));
            for (int k = 0; k < 19; k++) {
                auto along = combine([=](int axis) { return velocities[k][axis]; }, flow);
                auto shape = along.defined() ? still + 3 * along + 4.5 * pow(along, 2) : still;
                collided.push_back(pulled[k] + omega * (weight(k) * density * shape - pulled[k]));
            }
            for (int k = 0; k < 19; k++) populations[k](inner, inner, inner) = collided[k];
        }
    }

    std::vector<double> checksums() const {
        double sums[2] = {0, 0};
        for (int k = 0; k < 19; k++) sums[k % 2] += checksum(populations[k]);
        return {sums[0], sums[1]};
    }
};

int main(int argc, char **argv) { return bench::run<program>(argc, argv, "lattice_boltzmann_d3q19", 3); }
