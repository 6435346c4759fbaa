// Water and ice: n x n columns of four ocean layers under sea ice, one day per step. Each layer has a temperature and a
// salinity, and each column a volume of ice; densities and heat capacities follow sea-water polynomials, heat flows through
// air, ice and layers, and growing ice leaves its salt behind. Columns are independent.
#include "../common/bh_harness.hpp"

using namespace bench;

const double pi = 3.14159265358979323846, day = 86400.0, freezing = -1.8, melt = 917.0 * 334000.0;
const double depth[4] = {50.0, 300.0, 400.0, 1800.0}, pressed[4] = {1.0003, 1.0016, 1.0037, 1.0136};

// Density of sea water at one atmosphere (UNESCO 1981, to second order in salinity), pressed together by `factor`.
template <class T> array<T> density(const array<T> &t, const array<T> &s, double factor) {
    auto pure = 999.842594 + t * (6.793952e-2 + t * (-9.09529e-3 + t * (1.001685e-4 + t * (-1.120083e-6 + t * 6.536332e-9))));
    auto linear = 0.824493 + t * (-4.0899e-3 + t * (7.6438e-5 + t * (-8.2467e-7 + t * 5.3875e-9)));
    auto root = -5.72466e-3 + t * (1.0227e-4 - t * 1.6546e-6);
    return (pure + s * linear + s * sqrt(s) * root + s * s * 4.8314e-4) * factor;
}

// Specific heat of sea water (Millero, Perron and Desnoyers 1973, to first order in salinity).
template <class T> array<T> heat_capacity(const array<T> &t, const array<T> &s) {
    auto pure = 4217.4 + t * (-3.720283 + t * (0.1412855 + t * (-2.654387e-3 + t * 2.093236e-5)));
    return pure + s * (-7.643575 + t * (0.1072763 - t * 1.38385e-3));
}

template <class T> struct program {
    std::vector<array<T>> t, s;
    array<T> ice;

    explicit program(std::int64_t n) : ice(2 * pseudo<T>({n, n}, 41)) {
        const T warmth[4] = {T(-1.0), T(0.1), T(3.0), T(2.0)}, salt[4] = {T(33.0), T(34.5), T(34.8), T(35.0)};
        for (int layer = 0; layer < 4; layer++) {
            t.push_back(warmth[layer] + pseudo<T>({n, n}, 37 + layer));
            s.push_back(bh::full<T>({n, n}, salt[layer]));
        }
    }

    void step(double air) {
        auto height = where(ice > 0.5, ice, sqrt(ice * 0.5));
        auto cover = bh::minimum(2 * height, 1);
        std::vector<array<T>> weight, capacity;
        for (int layer = 0; layer < 4; layer++) {
            weight.push_back(density(t[layer], s[layer], pressed[layer]));
            capacity.push_back(depth[layer] * weight[layer] * heat_capacity(t[layer], s[layer]));
        }

        // Heat flows in W/m2, downwards into the named place; an unstable top layer mixes ten times faster.
        auto mixing = where(weight[0] > weight[1], T(10), T(1));
        auto open_water = (1 - cover) * 20 * (air - t[0]);
        auto through_ice = cover * 2 * (air - freezing) / (height + 0.1);
        auto into_ice = cover * 50 * (t[0] - freezing);
        auto up01 = mixing * 2 * (t[1] - t[0]), up12 = 2 * (t[2] - t[1]), up23 = 2 * (t[3] - t[2]);
        auto growth = -(through_ice + into_ice) / melt;
        t[0] += day * (open_water - into_ice + up01) / capacity[0];
        t[1] += day * (up12 - up01) / capacity[1];
        t[2] += day * (up23 - up12) / capacity[2];
        t[3] -= day * up23 / capacity[3];

        auto exchange01 = mixing * 1e-6 * (s[1] - s[0]);
        auto exchange12 = 1e-6 * (s[2] - s[1]), exchange23 = 1e-6 * (s[3] - s[2]);
        s[0] += day * (growth * (s[0] - 5) + exchange01) / depth[0];
        s[1] += day * (exchange12 - exchange01) / depth[1];
        s[2] += day * (exchange23 - exchange12) / depth[2];
        s[3] -= day * exchange23 / depth[3];
        ice = bh::maximum(ice + day * growth, 0);
    }

    void run(std::int64_t iters) {
        for (std::int64_t i = 0; i < iters; i++) step(-10 - 20 * std::cos(2 * pi * static_cast<double>(i) / 365));
    }

    std::vector<double> checksums() const { return {checksum_of_all(t), checksum_of_all(s), checksum(ice)}; }
};

int main(int argc, char **argv) { return bench::run<program>(argc, argv, "water_ice", 1); }
