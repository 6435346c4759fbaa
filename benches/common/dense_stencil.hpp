// The dense 3^D-point stencil of one to four dimensions: the mean of the neighbourhood, with delta = sum |new - old|, which
// each step reads as a stopping test would.
#pragma once

#include "bh_harness.hpp"

#include <utility>

namespace bench {

template <class T, int D> struct dense_stencil {
    array<T> grid;
    double delta = 0;

    dense_stencil(std::int64_t n, std::int64_t seed) : grid(make(n, seed)) {}

    /// The part of the grid that starts at the D digits of `shift` to base 3.
    array<T> part(int shift) const { return part(shift, std::make_index_sequence<D>()); }

    void run(std::int64_t iters) {
        int points = 1;
        for (int dim = 0; dim < D; dim++) points *= 3;
        auto center = part(points / 2);
        for (std::int64_t step = 0; step < iters; step++) {
            auto work = part(0) + part(1);
            for (int shift = 2; shift < points; shift++) work += part(shift);
            work *= 1.0 / points;
            auto change = sum(abs(work - center));
            center.fill(work);
            delta = scalar(change);
        }
    }

    std::vector<double> checksums() const { return {checksum(grid), delta}; }

private:
    template <std::size_t... Dim> array<T> part(int shift, std::index_sequence<Dim...>) const {
        const std::int64_t n = grid.extent(0);
        auto window = [&](std::size_t dim) {
            int digit = shift;
            for (std::size_t later = dim + 1; later < D; later++) digit /= 3;
            return slice(digit % 3, n - 2 + digit % 3);
        };
        return grid(window(Dim)...);
    }

    static array<T> make(std::int64_t n, std::int64_t seed) {
        bh::shape extents;
        for (int dim = 0; dim < D; dim++) extents.push_back(n, bh::place());
        return pseudo<T>(extents, seed);
    }
};

} // namespace bench
