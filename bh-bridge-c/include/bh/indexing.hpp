// Choosing and moving elements: where, take and put, gather and scatter, roll, diff, clip.
#pragma once

#include "create.hpp"

namespace bh {

/// Elements of `a` where the condition is true (not zero), else of `b`.
template <class C, class A, class B, detail::if_operands<C, A, B> = 0>
auto where(const C &condition, const A &a, const B &b, place at = place::here()) {
    static_assert(!detail::info<C>::weak, "the condition must be an array: for a plain one use ?:");
    constexpr bool numbers = detail::info<A>::weak && detail::info<B>::weak;
    constexpr int promoted = detail::promoted<A, B>();
    // Two plain numbers are as wide as they are, not as the condition is.
    constexpr int common = numbers ? detail::promote(detail::info<A>::code, detail::info<B>::code) : promoted;
    using T = detail::element_t<common, A, B>;
    const detail::source<bool> test(condition, at);
    const detail::source<T> first(a, at), second(b, at);
    const bh_array *inputs[] = {test.get(), first.get(), second.get()};
    return detail::wrap<T>(BH_OP_WHERE, detail::record(BH_OP_WHERE, 0, -1, 3, inputs, at), condition, a, b);
}

/// `a` limited to the range from `low` to `high`.
template <class A, class L, class H, detail::if_operands<A, L, H> = 0>
auto clip(const A &a, const L &low, const H &high, place at = place::here()) {
    return bh::minimum(bh::maximum(a, low, at), high, at);
}

template <class A, detail::if_operands<A> = 0> auto abs(const A &a, place at = place::here()) { return bh::absolute(a, at); }
template <class A, detail::if_operands<A> = 0> auto square(const A &a, place at = place::here()) { return bh::powi(a, 2, at); }

/// Elements at flat (C order) positions, in the shape of `index`. Negative positions count from the end.
template <class T, class I> array<T> take(const array<T> &a, const array<I> &index, place at = place::here()) {
    static_assert(std::is_integral_v<I> && !std::is_same_v<I, bool>, "positions must be integers");
    using wide = std::conditional_t<std::is_signed_v<I>, std::int64_t, std::uint64_t>;
    const detail::source<wide> positions(index, at);
    const bh_array *inputs[] = {a.handle(), positions.get()};
    return array<T>::from_handle(detail::record(BH_OP_GATHER, 0, -1, 2, inputs, at));
}

/// The parts at positions along one axis, which the dimensions of `index` replace.
template <class T, class I> array<T> take(const array<T> &a, const array<I> &index, int axis, place at = place::here()) {
    static_assert(std::is_integral_v<I> && !std::is_same_v<I, bool>, "positions must be integers");
    const shape extents = a.extents(at), list = index.extents(at);
    const int dim = detail::counted_dim(axis, extents.rank(), at);
    std::int64_t outer = 1, inner = 1;
    shape result;
    for (int d = 0; d < extents.rank(); ++d) {
        if (d == dim) {
            for (std::int64_t extent : list) result.push_back(extent, at);
        } else {
            (d < dim ? outer : inner) *= extents[d];
            result.push_back(extents[d], at);
        }
    }
    const std::int64_t extent = extents[dim], last = outer * extent * inner;
    const array<std::int64_t> chosen = array<std::int64_t>(cast<std::int64_t>(index, at)).reshape({1, list.count(), 1}, at);
    const array<std::int64_t> wrapped = bh::where(bh::less(chosen, 0, at), bh::add(chosen, extent, at), chosen, at);
    const array<std::int64_t> rows = arange(static_cast<double>(outer), at).reshape({outer, 1, 1}, at);
    const array<std::int64_t> columns = arange(static_cast<double>(inner), at).reshape({1, 1, inner}, at);
    const array<std::int64_t> flat = bh::add(bh::multiply(bh::add(bh::multiply(rows, extent, at), wrapped, at), inner, at), columns, at);
    // A position outside the axis must not find an element of another row.
    const array<bool> inside = bh::logical_and(bh::greater_equal(wrapped, 0, at), bh::less(wrapped, extent, at), at);
    return take(a, bh::where(inside, flat, last, at), at).reshape(result, at);
}

namespace detail {

/// Writes values to flat positions, in any of the ways that the bytecode knows.
template <class T, class I> void scatter_to(int opcode, array<T> &a, const array<I> &index, operand<T> value, const bh_array *mask, place at) {
    static_assert(std::is_integral_v<I> && !std::is_same_v<I, bool>, "positions must be integers");
    using wide = std::conditional_t<std::is_signed_v<I>, std::int64_t, std::uint64_t>;
    const source<wide> positions(index, at);
    const source<T> values(value, at);
    const bh_array *inputs[] = {values.get(), positions.get(), mask};
    record_into(a.handle(), opcode, 0, mask ? 3 : 2, inputs, at);
}

} // namespace detail

/// a.flat[index] = value; of equal positions, the last wins.
template <class T, class I> void put(array<T> &a, const array<I> &index, const typename detail::same<detail::operand<T>>::type &value, place at = place::here()) {
    detail::scatter_to(BH_OP_SCATTER, a, index, value, nullptr, at);
}
/// a.flat[index] += value; equal positions add up.
template <class T, class I> void put_add(array<T> &a, const array<I> &index, const typename detail::same<detail::operand<T>>::type &value, place at = place::here()) {
    detail::scatter_to(BH_OP_SCATTER_ADD, a, index, value, nullptr, at);
}
/// a.flat[index] = value where `mask` is true; other positions are not looked at.
template <class T, class I>
void put_where(array<T> &a, const array<I> &index, const array<bool> &mask, const typename detail::same<detail::operand<T>>::type &value, place at = place::here()) {
    detail::scatter_to(BH_OP_COND_SCATTER, a, index, value, mask.handle(), at);
}
/// a[mask] = value, with an array of values that broadcasts to the shape of `a`.
template <class T> void put_mask(array<T> &a, const array<bool> &mask, const typename detail::same<detail::operand<T>>::type &value, place at = place::here()) {
    const detail::source<T> values(value, at);
    const bh_array *inputs[] = {mask.handle(), values.get(), a.handle()};
    detail::record_into(a.handle(), BH_OP_WHERE, 0, 3, inputs, at);
}

/// Elements moved along a dimension by `by` places, around the end.
template <class T> array<T> roll(const array<T> &a, std::int64_t by, int dim, place at = place::here()) {
    const int axis = detail::counted_dim(dim, a.rank(at), at);
    const std::int64_t extent = a.extent(axis, at);
    const std::int64_t shift = extent ? ((by % extent) + extent) % extent : 0;
    return concatenate({detail::along(a, axis, extent - shift, extent, at), detail::along(a, axis, 0, extent - shift, at)}, axis, at);
}
/// Differences of neighbours along a dimension.
template <class T> array<T> diff(const array<T> &a, int dim = -1, place at = place::here()) {
    const int axis = detail::counted_dim(dim, a.rank(at), at);
    const std::int64_t extent = a.extent(axis, at);
    return bh::subtract(detail::along(a, axis, extent ? 1 : 0, extent, at), detail::along(a, axis, 0, extent ? extent - 1 : 0, at), at);
}

} // namespace bh
