// Choosing and moving elements: where, take and put, gather and scatter, roll, diff, clip.
#pragma once

#include "create.hpp"

namespace bh {

namespace detail {

template <class C, class A, class B> auto chosen_by(place at, const C &condition, const A &a, const B &b) {
    constexpr bool numbers = info<A>::weak && info<B>::weak;
    constexpr int promoted = detail::promoted<A, B>();
    // Two plain numbers are as wide as they are, not as the condition is.
    constexpr int common = numbers ? promote(info<A>::code, info<B>::code) : promoted;
    using T = element_t<common, A, B>;
    refuse_arrays<C, A, B>();
    const source<bool> test(condition, at);
    const source<T> first(a, at), second(b, at);
    const bh_array *inputs[] = {test.get(), first.get(), second.get()};
    bh_array *made = record(BH_OP_WHERE, 0, -1, 3, inputs, at);
    spend(condition), spend(a), spend(b);
    return wrap<T>(BH_OP_WHERE, made, condition, a, b);
}

} // namespace detail

/// Elements of `a` where the condition is true (not zero), else of `b`.
template <class C, class A, class B, detail::if_operands<C, A, B> = 0>
auto where(C &&condition, A &&a, B &&b, place at = place::here()) {
    static_assert(!detail::info<detail::plain<C>>::weak, "the condition must be an array: for a plain one use ?:");
    return detail::chosen_by(at, detail::take(static_cast<C &&>(condition), at), detail::take(static_cast<A &&>(a), at),
                             detail::take(static_cast<B &&>(b), at));
}

namespace detail {

/// The argument as an array of its own handle.
template <class A> array<element_of<A>> as_is(A &&a, place at) {
    return wrapped<element_of<A>>(keep_as_is(take(static_cast<A &&>(a), at)).release());
}

} // namespace detail

/// `a` limited to the range from `low` to `high`.
template <class A, class L, class H, detail::if_operands<A, L, H> = 0>
auto clip(A &&a, L &&low, H &&high, place at = place::here()) {
    return bh::minimum(bh::maximum(static_cast<A &&>(a), static_cast<L &&>(low), at), static_cast<H &&>(high), at);
}

template <class A, detail::if_operands<A> = 0> auto abs(A &&a, place at = place::here()) { return bh::absolute(static_cast<A &&>(a), at); }
template <class A, detail::if_operands<A> = 0> auto square(A &&a, place at = place::here()) { return bh::powi(static_cast<A &&>(a), 2, at); }
template <class A, detail::if_operands<A> = 0> auto negative(A &&a, place at = place::here()) {
    return detail::negated(detail::take(static_cast<A &&>(a), at));
}

/// The remainder with the sign of the divisor, as in NumPy and Python; `fmod` has that of the dividend, as in C.
template <class A, class B, detail::if_operands<A, B> = 0> auto mod(A &&a, B &&b, place at = place::here()) {
    return bh::remainder(static_cast<A &&>(a), static_cast<B &&>(b), at);
}

/// Power. Whole exponents from 2 to 5 given as a number become products.
template <class A, class B, detail::if_operands<A, B> = 0> auto pow(A &&a, B &&b, place at = place::here()) {
    using E = detail::plain<B>;
    if constexpr (detail::is_scalar<E> && !std::is_same_v<E, bool> && !detail::is_complex(detail::code<E>)) {
        if constexpr (detail::promoted<detail::plain<A>, E>() == detail::info<detail::plain<A>>::code) {
            if (b >= E(2) && b <= E(5) && b == static_cast<E>(static_cast<int>(b))) return bh::powi(static_cast<A &&>(a), static_cast<int>(b), at);
        }
    }
    return bh::power(static_cast<A &&>(a), static_cast<B &&>(b), at);
}

namespace detail {

/// Positions as the bytecode takes them.
template <class I> using position_type = std::conditional_t<std::is_signed_v<I>, std::int64_t, std::uint64_t>;
template <class I> constexpr void check_positions() {
    static_assert(std::is_integral_v<I> && !std::is_same_v<I, bool>, "positions must be integers");
}

} // namespace detail

/// Elements at flat (C order) positions, in the shape of `index`. Negative positions count from the end.
template <class A, class I, detail::if_array<A> = 0, detail::if_array<I> = 0>
auto take(A &&a, I &&index, place at = place::here()) {
    using P = detail::element_of<I>;
    detail::check_positions<P>();
    const auto from = detail::take(static_cast<A &&>(a), at);
    const auto positions = detail::take(static_cast<I &&>(index), at);
    const detail::source<detail::position_type<P>> wide(positions, at);
    const bh_array *inputs[] = {from.handle, wide.get()};
    bh_array *made = detail::record(BH_OP_GATHER, 0, -1, 2, inputs, at);
    from.spend(), positions.spend();
    return detail::wrapped<detail::element_of<A>>(made);
}

/// The parts at positions along one axis, which the axes of `index` replace.
template <class T, class I> array<T> take(const array<T> &a, const array<I> &index, int axis, place at = place::here()) {
    detail::check_positions<I>();
    const shape extents = a.extents(at), list = index.extents(at);
    const int counted = detail::counted_axis(axis, extents.rank(), at);
    std::int64_t outer = 1, inner = 1;
    shape result;
    for (int d = 0; d < extents.rank(); ++d) {
        if (d == counted) {
            for (std::int64_t extent : list) result.push_back(extent, at);
        } else {
            (d < counted ? outer : inner) *= extents[d];
            result.push_back(extents[d], at);
        }
    }
    const std::int64_t extent = extents[counted], last = outer * extent * inner;
    const array<std::int64_t> chosen = array<std::int64_t>(cast<std::int64_t>(index, at)).reshape({1, list.count(), 1}, at);
    const array<std::int64_t> wrapped = bh::where(bh::less(chosen, 0, at), bh::add(chosen, extent, at), chosen, at);
    const detail::beside here(a.handle(), at);
    const array<std::int64_t> rows = arange<std::int64_t>(outer, at).reshape({outer, 1, 1}, at);
    const array<std::int64_t> columns = arange<std::int64_t>(inner, at).reshape({1, 1, inner}, at);
    const array<std::int64_t> first = bh::multiply(bh::add(bh::multiply(rows, extent, at), wrapped, at), inner, at);
    // A position outside the axis must not find an element of another row.
    const array<bool> inside = bh::logical_and(bh::greater_equal(wrapped, 0, at), bh::less(wrapped, extent, at), at);
    return take(a, bh::add(bh::where(inside, first, last, at), columns, at), at).reshape(result, at);
}

namespace detail {

/// Writes values to flat positions, in any of the ways that the bytecode knows.
template <class T, class I> void scatter_to(int opcode, const array<T> &a, const array<I> &index, operand<T> value, const bh_array *mask, place at) {
    check_positions<I>();
    const source<position_type<I>> positions(index, at);
    const source<T> values(value, at);
    const bh_array *inputs[] = {values.get(), positions.get(), mask};
    record_into(a.handle(), opcode, 0, mask ? 3 : 2, inputs, at);
    value.spend();
}

} // namespace detail

/// a.flat[index] = value; of equal positions, the last wins.
template <class T, class I> void put(const array<T> &a, const array<I> &index, typename detail::same<detail::operand<T>>::type value, place at = place::here()) {
    detail::scatter_to(BH_OP_SCATTER, a, index, value, nullptr, at);
}
/// a.flat[index] += value; equal positions add up.
template <class T, class I> void put_add(const array<T> &a, const array<I> &index, typename detail::same<detail::operand<T>>::type value, place at = place::here()) {
    detail::scatter_to(BH_OP_SCATTER_ADD, a, index, value, nullptr, at);
}
/// a.flat[index] = value where `mask` is true; other positions are not looked at.
template <class T, class I>
void put_where(const array<T> &a, const array<I> &index, const array<bool> &mask, typename detail::same<detail::operand<T>>::type value, place at = place::here()) {
    detail::scatter_to(BH_OP_COND_SCATTER, a, index, value, mask.handle(), at);
}
/// a[mask] = value, with an array of values that broadcasts to the shape of `a`.
template <class T> void put_mask(const array<T> &a, const array<bool> &mask, typename detail::same<detail::operand<T>>::type value, place at = place::here()) {
    const detail::source<T> values(value, at);
    const bh_array *inputs[] = {mask.handle(), values.get(), a.handle()};
    detail::record_into(a.handle(), BH_OP_WHERE, 0, 3, inputs, at);
    value.spend();
}

/// Elements moved along an axis by `by` places, around the end.
template <class T> array<T> roll(const array<T> &a, std::int64_t by, int axis, place at = place::here()) {
    const int rank = a.rank(at);
    std::int64_t distances[max_rank] = {};
    distances[detail::counted_axis(axis, rank, at)] = by;
    bh_array *made = nullptr;
    (bh_at)(at.file, at.line);
    detail::check((bh_roll)(&made, a.handle(), rank, distances), at);
    return detail::wrapped<T>(made);
}
/// Differences of neighbours along an axis.
template <class T> array<T> diff(const array<T> &a, int axis = -1, place at = place::here()) {
    const int counted = detail::counted_axis(axis, a.rank(at), at);
    const std::int64_t extent = a.extent(counted, at);
    return bh::subtract(detail::along(a, counted, extent ? 1 : 0, extent, at), detail::along(a, counted, 0, extent ? extent - 1 : 0, at), at);
}

} // namespace bh
