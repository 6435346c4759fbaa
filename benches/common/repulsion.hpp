// Two-electron repulsion integrals of contracted s shells.
#pragma once

#include "bh_harness.hpp"

namespace bench {

/// Of n pairs of shells, nine primitive pairs each: exponents (part 0), factors (1), coordinates of the centres (2 to 4).
template <class T> array<T> repulsion_side(std::int64_t n, int part) {
    const array<T> values = pseudo<T>({n, 9}, 70 + part);
    const T scale = part == 0 ? T(2) : part == 1 ? T(1) / 9 : T(4), least = part == 0 ? T(0.5) : T(0);
    return least + scale * values;
}

/// Integrals of all pairs with all pairs.
template <class T> array<T> repulsion(const array<T> (&side)[5]) {
    const auto bra = [&](int part) { return side[part](all, all, newaxis, newaxis); };
    const auto ket = [&](int part) { return side[part](newaxis, newaxis, all, all); };
    const auto product = bra(0) * ket(0), total = bra(0) + ket(0);
    const auto dx = bra(2) - ket(2), dy = bra(3) - ket(3), dz = bra(4) - ket(4);
    const auto t = product / total * (dx * dx + dy * dy + dz * dz);
    const T small = T(1e-3), large = T(30);
    // Boys' function: the integral of exp(-t x^2) from 0 to 1.
    const auto safe = bh::maximum(t, small);
    const auto tail = T(0.5) * sqrt(T(3.141592653589793) / safe);
    const auto beyond = bh::where(t > large, tail, tail * erf(sqrt(safe)));
    const auto boys = bh::where(t < small, 1 - t * (T(1) / 3 - t * (T(1) / 10 - t / 42)), beyond);
    // 2 π^2.5
    return sum(T(34.986836655249725) * bra(1) * ket(1) / (product * sqrt(total)) * boys, {1, 3});
}

} // namespace bench
