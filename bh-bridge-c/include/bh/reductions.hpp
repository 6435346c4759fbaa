// Reductions over all axes or some, running folds, and what is made of them.
#pragma once

#include "indexing.hpp"

namespace bh {
namespace detail {

/// What sums and products of a type are computed in: integers and truth values as 64-bit integers.
template <class T>
using sum_type = std::conditional_t<std::is_same_v<T, bool>, std::int64_t,
                                    std::conditional_t<!std::is_integral_v<T>, T,
                                                       std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>>;

/// What means of a type are computed in.
template <class T> using mean_type = std::conditional_t<std::is_integral_v<T>, double, T>;

template <class U, class T> array<U> as(const array<T> &a, place at) {
    if constexpr (code<U> == code<T>) {
        bh_array *same = nullptr;
        check((bh_retain)(&same, a.handle()), at);
        return array<U>::from_handle(same);
    } else {
        return array<U>(a, at);
    }
}

template <class T> std::int64_t folded_count(const array<T> &a, const axes &over, place at) {
    const shape extents = a.extents(at);
    const int mask = axis_mask(over, extents.rank(), at);
    std::int64_t count = 1;
    for (int dim = 0; dim < extents.rank(); ++dim) count *= mask >> dim & 1 ? extents[dim] : 1;
    return count;
}

template <class T> void refuse_empty(const char *name, const array<T> &a, const axes &over, place at) {
    if (folded_count(a, over, at) == 0) {
        fail(BH_STATUS_SHAPE, std::string(name) + ": shape " + a.extents(at).text() + " has no elements to choose from", at);
    }
}

} // namespace detail

/// Sum. Integers are summed in 64 bits.
template <class T> auto sum(const array<T> &a, const axes &over = {}, keep kept = dropdims, place at = place::here()) {
    return bh::add_reduce(detail::as<detail::sum_type<T>>(a, at), over, kept, at);
}
/// Product. Integers are multiplied in 64 bits.
template <class T> auto prod(const array<T> &a, const axes &over = {}, keep kept = dropdims, place at = place::here()) {
    return bh::multiply_reduce(detail::as<detail::sum_type<T>>(a, at), over, kept, at);
}
/// Largest element; NaN if there is one.
template <class T> array<T> max(const array<T> &a, const axes &over = {}, keep kept = dropdims, place at = place::here()) {
    detail::refuse_empty("max", a, over, at);
    return bh::maximum_reduce(a, over, kept, at);
}
/// Smallest element; NaN if there is one.
template <class T> array<T> min(const array<T> &a, const axes &over = {}, keep kept = dropdims, place at = place::here()) {
    detail::refuse_empty("min", a, over, at);
    return bh::minimum_reduce(a, over, kept, at);
}
/// Is any element true (not zero)?
template <class T> array<bool> any(const array<T> &a, const axes &over = {}, keep kept = dropdims, place at = place::here()) {
    return bh::logical_or_reduce(detail::as<bool>(a, at), over, kept, at);
}

/// `bh::all` in an index list is a whole dimension; `bh::all(a)` asks whether all elements are true (not zero).
struct all_type {
    template <class T>
    array<bool> operator()(const array<T> &a, const axes &over = {}, keep kept = dropdims, place at = place::here()) const {
        return bh::logical_and_reduce(detail::as<bool>(a, at), over, kept, at);
    }
};
inline constexpr all_type all{};

template <class T> auto mean(const array<T> &a, const axes &over = {}, keep kept = dropdims, place at = place::here()) {
    using M = detail::mean_type<T>;
    return bh::divide(bh::add_reduce(detail::as<M>(a, at), over, kept, at), static_cast<double>(detail::folded_count(a, over, at)), at);
}
/// Variance, with `ddof` fewer degrees of freedom than elements.
template <class T> auto var(const array<T> &a, const axes &over = {}, int ddof = 0, keep kept = dropdims, place at = place::here()) {
    const auto wide = detail::as<detail::mean_type<T>>(a, at);
    const auto off = bh::absolute(bh::subtract(wide, bh::mean(wide, over, keepdims, at), at), at);
    const double count = static_cast<double>(detail::folded_count(a, over, at) - ddof);
    return bh::divide(bh::add_reduce(bh::multiply(off, off, at), over, kept, at), count > 0 ? count : 0.0, at);
}
/// Standard deviation.
template <class T> auto std(const array<T> &a, const axes &over = {}, int ddof = 0, keep kept = dropdims, place at = place::here()) {
    return bh::sqrt(bh::var(a, over, ddof, kept, at), at);
}
template <class T> array<std::int64_t> count_nonzero(const array<T> &a, const axes &over = {}, keep kept = dropdims, place at = place::here()) {
    return bh::sum(detail::as<bool>(a, at), over, kept, at);
}

/// Running sum along one axis.
template <class T> auto cumsum(const array<T> &a, int axis, place at = place::here()) {
    return bh::add_accumulate(detail::as<detail::sum_type<T>>(a, at), axis, at);
}
/// Running sum over all elements in C order.
template <class T> auto cumsum(const array<T> &a, place at = place::here()) { return cumsum(a.flatten(at), 0, at); }
/// Running product along one axis.
template <class T> auto cumprod(const array<T> &a, int axis, place at = place::here()) {
    return bh::multiply_accumulate(detail::as<detail::sum_type<T>>(a, at), axis, at);
}
/// Running product over all elements in C order.
template <class T> auto cumprod(const array<T> &a, place at = place::here()) { return cumprod(a.flatten(at), 0, at); }

namespace detail {

/// The smallest position along an axis at which an array equals its extreme values; the first NaN counts as extreme.
template <class T> array<std::int64_t> position(const array<T> &a, const array<T> &extreme, int axis, keep kept, place at) {
    const shape extents = a.extents(at);
    shape line = shape::of_rank(extents.rank());
    for (int dim = 0; dim < line.rank(); ++dim) line[dim] = dim == axis ? extents[axis] : 1;
    const array<std::int64_t> numbers = arange<std::int64_t>(static_cast<double>(extents[axis]), at).reshape(line, at);
    array<bool> here = bh::equal(a, extreme, at);
    if constexpr (kind_of(code<T>) == 2) here = bh::logical_or(here, bh::isnan(a, at), at);
    return bh::minimum_reduce(bh::where(here, numbers, extents[axis], at), axis, kept, at);
}

} // namespace detail

/// Position of the (first) largest element along an axis.
template <class T> array<std::int64_t> argmax(const array<T> &a, int axis, keep kept = dropdims, place at = place::here()) {
    return detail::position(a, bh::max(a, axis, keepdims, at), detail::counted_dim(axis, a.rank(at), at), kept, at);
}
/// Position of the (first) largest element in C order.
template <class T> array<std::int64_t> argmax(const array<T> &a, place at = place::here()) { return argmax(a.flatten(at), 0, dropdims, at); }
/// Position of the (first) smallest element along an axis.
template <class T> array<std::int64_t> argmin(const array<T> &a, int axis, keep kept = dropdims, place at = place::here()) {
    return detail::position(a, bh::min(a, axis, keepdims, at), detail::counted_dim(axis, a.rank(at), at), kept, at);
}
/// Position of the (first) smallest element in C order.
template <class T> array<std::int64_t> argmin(const array<T> &a, place at = place::here()) { return argmin(a.flatten(at), 0, dropdims, at); }

/// Have two arrays the same shape and equal elements? Waits for the answer.
template <class A, class B> bool array_equal(const array<A> &a, const array<B> &b, place at = place::here()) {
    return a.extents(at) == b.extents(at) && scalar<bool>(bh::all(bh::equal(a, b, at), {}, dropdims, at), at);
}
/// Is |a - b| ≤ atol + rtol·|b| everywhere? Waits for the answer.
template <class A, class B, detail::if_operands<A, B> = 0>
bool allclose(const A &a, const B &b, double rtol = 1e-5, double atol = 1e-8, place at = place::here()) {
    const auto limit = [&] {
        if constexpr (detail::is_scalar<B>) {
            return atol + rtol * static_cast<double>(b < B(0) ? -b : b);
        } else {
            return bh::add(bh::multiply(bh::absolute(b, at), rtol, at), atol, at);
        }
    }();
    // Equal infinities are close though their difference is NaN.
    const auto close = bh::logical_or(bh::less_equal(bh::absolute(bh::subtract(a, b, at), at), limit, at), bh::equal(a, b, at), at);
    return scalar<bool>(bh::all(close, {}, dropdims, at), at);
}

} // namespace bh
