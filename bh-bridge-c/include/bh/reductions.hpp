// Reductions over all axes or some, running folds, and what is made of them.
#pragma once

#include "selection.hpp"

#include <cmath>
#include <limits>

namespace bh {
namespace detail {

/// The type in which sums and products of a type are computed: integers and truth values as 64-bit integers.
template <class T>
using sum_type = std::conditional_t<std::is_same_v<T, bool>, std::int64_t,
                                    std::conditional_t<!std::is_integral_v<T>, T,
                                                       std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>>;

/// The type in which means of a type are computed.
template <class T> using mean_type = std::conditional_t<std::is_integral_v<T>, double, T>;

template <class U, class A> array<U> as(A &&a, place at) {
    const auto from = take(static_cast<A &&>(a), at);
    if constexpr (code<element_of<A>> == code<U>) {
        return wrapped<U>(keep_as_is(from).release());
    } else {
        return bh::cast<U>(from, at);
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

/// How many elements of the array a mask chooses.
template <class T> array<std::int64_t> chosen_count(const selection<T> &a, place at) {
    const array<bool> mask = a.choice(at);
    const std::int64_t columns = mask.size(at) == 0 ? 0 : a.elements().size(at) / mask.size(at);
    return bh::multiply(bh::add_reduce(bh::cast<std::int64_t>(mask, at), {}, dropdims, at), columns, at);
}

template <class T> void refuse_none(const char *name, const selection<T> &a, place at) {
    const bool found = a.elements().size(at) > 0 && scalar<bool>(bh::logical_or_reduce(a.choice(at), {}, dropdims, at), at);
    if (!found) fail(BH_STATUS_SHAPE, std::string(name) + ": the mask chooses no elements", at);
}

} // namespace detail

/// Sum. Integers are summed in 64 bits.
template <class A, detail::if_array<A> = 0> auto sum(A &&a, const axes &over = {}, keep kept = dropdims, place at = place::here()) {
    return bh::add_reduce(detail::as<detail::sum_type<detail::element_of<A>>>(static_cast<A &&>(a), at), over, kept, at);
}
/// Product. Integers are multiplied in 64 bits.
template <class A, detail::if_array<A> = 0> auto prod(A &&a, const axes &over = {}, keep kept = dropdims, place at = place::here()) {
    return bh::multiply_reduce(detail::as<detail::sum_type<detail::element_of<A>>>(static_cast<A &&>(a), at), over, kept, at);
}
/// Largest element; NaN if there is one.
template <class A, detail::if_array<A> = 0> auto max(A &&a, const axes &over = {}, keep kept = dropdims, place at = place::here()) {
    auto &&from = detail::settled(static_cast<A &&>(a), at);
    detail::refuse_empty("max", from, over, at);
    return bh::maximum_reduce(detail::pass<A>(from), over, kept, at);
}
/// Smallest element; NaN if there is one.
template <class A, detail::if_array<A> = 0> auto min(A &&a, const axes &over = {}, keep kept = dropdims, place at = place::here()) {
    auto &&from = detail::settled(static_cast<A &&>(a), at);
    detail::refuse_empty("min", from, over, at);
    return bh::minimum_reduce(detail::pass<A>(from), over, kept, at);
}
/// Is any element true (not zero)?
template <class A, detail::if_array<A> = 0> auto any(A &&a, const axes &over = {}, keep kept = dropdims, place at = place::here()) {
    return bh::logical_or_reduce(detail::as<bool>(static_cast<A &&>(a), at), over, kept, at);
}

/// `bh::all` in an index list is a whole axis; `bh::all(a)` asks whether all elements are true (not zero).
struct all_type {
    template <class A, detail::if_array<A> = 0>
    auto operator()(A &&a, const axes &over = {}, keep kept = dropdims, place at = place::here()) const {
        return bh::logical_and_reduce(detail::as<bool>(static_cast<A &&>(a), at), over, kept, at);
    }
    template <class T> auto operator()(const selection<T> &a, place at = place::here()) const {
        return bh::masked_multiply_reduce(detail::as<bool>(a.elements(), at), a.choice(at), {}, dropdims, at);
    }
};
inline constexpr all_type all{};

/// Mean; of integers as double.
template <class A, detail::if_array<A> = 0> auto mean(A &&a, const axes &over = {}, keep kept = dropdims, place at = place::here()) {
    using M = detail::mean_type<detail::element_of<A>>;
    auto &&from = detail::settled(static_cast<A &&>(a), at);
    const auto count = static_cast<double>(detail::folded_count(from, over, at));
    return bh::divide(bh::add_reduce(detail::as<M>(detail::pass<A>(from), at), over, kept, at), count, at);
}
/// Variance, with `ddof` fewer degrees of freedom than elements.
template <class A, detail::if_array<A> = 0>
auto var(A &&a, const axes &over = {}, int ddof = 0, keep kept = dropdims, place at = place::here()) {
    auto wide = detail::as<detail::mean_type<detail::element_of<A>>>(static_cast<A &&>(a), at);
    const double count = static_cast<double>(detail::folded_count(wide, over, at) - ddof);
    auto middle = bh::mean(wide, over, keepdims, at);
    auto off = bh::square(bh::absolute(bh::subtract(std::move(wide), std::move(middle), at), at), at);
    return bh::divide(bh::add_reduce(std::move(off), over, kept, at), count > 0 ? count : 0.0, at);
}
template <class A, detail::if_array<A> = 0> auto var(A &&a, const axes &over, keep kept, place at = place::here()) {
    return bh::var(static_cast<A &&>(a), over, 0, kept, at);
}
/// Standard deviation.
template <class A, detail::if_array<A> = 0>
auto std(A &&a, const axes &over = {}, int ddof = 0, keep kept = dropdims, place at = place::here()) {
    return bh::sqrt(bh::var(static_cast<A &&>(a), over, ddof, kept, at), at);
}
template <class A, detail::if_array<A> = 0> auto std(A &&a, const axes &over, keep kept, place at = place::here()) {
    return bh::std(static_cast<A &&>(a), over, 0, kept, at);
}
/// How many elements are not zero.
template <class A, detail::if_array<A> = 0>
auto count_nonzero(A &&a, const axes &over = {}, keep kept = dropdims, place at = place::here()) {
    return bh::sum(detail::as<bool>(static_cast<A &&>(a), at), over, kept, at);
}

/// The same of the elements that a mask chooses, as in `sum(x(mask))`: one kernel, and no array of them is made.
template <class T> auto sum(const selection<T> &a, place at = place::here()) {
    return bh::masked_add_reduce(detail::as<detail::sum_type<T>>(a.elements(), at), a.choice(at), {}, dropdims, at);
}
template <class T> auto prod(const selection<T> &a, place at = place::here()) {
    return bh::masked_multiply_reduce(detail::as<detail::sum_type<T>>(a.elements(), at), a.choice(at), {}, dropdims, at);
}
/// Waits for whether there is any element to choose from.
template <class T> auto max(const selection<T> &a, place at = place::here()) {
    detail::refuse_none("max", a, at);
    return bh::masked_maximum_reduce(a.elements(), a.choice(at), {}, dropdims, at);
}
/// Waits for whether there is any element to choose from.
template <class T> auto min(const selection<T> &a, place at = place::here()) {
    detail::refuse_none("min", a, at);
    return bh::masked_minimum_reduce(a.elements(), a.choice(at), {}, dropdims, at);
}
template <class T> auto any(const selection<T> &a, place at = place::here()) {
    return bh::masked_add_reduce(detail::as<bool>(a.elements(), at), a.choice(at), {}, dropdims, at);
}
template <class T> auto count_nonzero(const selection<T> &a, place at = place::here()) {
    auto counted = detail::as<std::int64_t>(detail::as<bool>(a.elements(), at), at);
    return bh::masked_add_reduce(std::move(counted), a.choice(at), {}, dropdims, at);
}
/// NaN of no elements.
template <class T> auto mean(const selection<T> &a, place at = place::here()) {
    using M = detail::mean_type<T>;
    auto total = bh::masked_add_reduce(detail::as<M>(a.elements(), at), a.choice(at), {}, dropdims, at);
    return bh::divide(std::move(total), detail::as<M>(detail::as<double>(detail::chosen_count(a, at), at), at), at);
}

/// Running sum along one axis.
template <class A, detail::if_array<A> = 0> auto cumsum(A &&a, int axis, place at = place::here()) {
    return bh::add_accumulate(detail::as<detail::sum_type<detail::element_of<A>>>(static_cast<A &&>(a), at), axis, at);
}
/// Running sum over all elements in C order.
template <class A, detail::if_array<A> = 0> auto cumsum(A &&a, place at = place::here()) {
    return cumsum(detail::settled(static_cast<A &&>(a), at).flatten(at), 0, at);
}
/// Running product along one axis.
template <class A, detail::if_array<A> = 0> auto cumprod(A &&a, int axis, place at = place::here()) {
    return bh::multiply_accumulate(detail::as<detail::sum_type<detail::element_of<A>>>(static_cast<A &&>(a), at), axis, at);
}
/// Running product over all elements in C order.
template <class A, detail::if_array<A> = 0> auto cumprod(A &&a, place at = place::here()) {
    return cumprod(detail::settled(static_cast<A &&>(a), at).flatten(at), 0, at);
}

namespace detail {

/// The positions along an axis that `bh_argmax` or `bh_argmin` finds.
template <class T> array<std::int64_t> position(decltype(&::bh_argmax) find, const array<T> &a, int axis, keep kept, place at) {
    const beside around(a.handle(), at);
    bh_array *made = nullptr;
    (bh_at)(at.file, at.line);
    check(find(&made, a.handle(), axis, kept == keepdims), at);
    return wrapped<std::int64_t>(made);
}

/// A shape of ones.
inline shape ones_of_rank(int rank) {
    shape ones = shape::of_rank(rank);
    for (int dim = 0; dim < rank; ++dim) ones[dim] = 1;
    return ones;
}

} // namespace detail

/// Position of the (first) largest element along an axis.
template <class A, detail::if_array<A> = 0>
array<std::int64_t> argmax(A &&a, int axis, keep kept = dropdims, place at = place::here()) {
    const auto from = detail::as<detail::element_of<A>>(static_cast<A &&>(a), at);
    return detail::position(&::bh_argmax, from, axis, kept, at);
}
/// Position of the (first) largest element in C order.
template <class A, detail::if_array<A> = 0> array<std::int64_t> argmax(A &&a, place at = place::here()) {
    return argmax(detail::settled(static_cast<A &&>(a), at).flatten(at), 0, dropdims, at);
}
template <class A, detail::if_array<A> = 0> array<std::int64_t> argmax(A &&a, keep kept, place at = place::here()) {
    auto &&from = detail::settled(static_cast<A &&>(a), at);
    const int rank = kept == keepdims ? from.rank(at) : 0;
    return argmax(from, at).reshape(detail::ones_of_rank(rank), at);
}
/// Position of the (first) smallest element along an axis.
template <class A, detail::if_array<A> = 0>
array<std::int64_t> argmin(A &&a, int axis, keep kept = dropdims, place at = place::here()) {
    const auto from = detail::as<detail::element_of<A>>(static_cast<A &&>(a), at);
    return detail::position(&::bh_argmin, from, axis, kept, at);
}
/// Position of the (first) smallest element in C order.
template <class A, detail::if_array<A> = 0> array<std::int64_t> argmin(A &&a, place at = place::here()) {
    return argmin(detail::settled(static_cast<A &&>(a), at).flatten(at), 0, dropdims, at);
}
template <class A, detail::if_array<A> = 0> array<std::int64_t> argmin(A &&a, keep kept, place at = place::here()) {
    auto &&from = detail::settled(static_cast<A &&>(a), at);
    const int rank = kept == keepdims ? from.rank(at) : 0;
    return argmin(from, at).reshape(detail::ones_of_rank(rank), at);
}

/// Have two arrays the same shape and equal elements? Waits for the answer.
template <class A, class B> bool array_equal(const array<A> &a, const array<B> &b, place at = place::here()) {
    return a.extents(at) == b.extents(at) && scalar<bool>(bh::all(bh::equal(a, b, at), {}, dropdims, at), at);
}
/// Is |a - b| ≤ atol + rtol·|b|, or are both the same infinity?
template <class A, class B, detail::if_operands<A, B> = 0>
auto isclose(const A &a, const B &b, double rtol = 1e-5, double atol = 1e-8, place at = place::here()) {
    auto same = bh::equal(a, b, at);
    auto off = bh::absolute(bh::subtract(a, b, at), at);
    if constexpr (detail::is_scalar<B>) {
        const auto size = std::abs(b);
        // Everything would be close to an infinity.
        const double limit = size - size == 0 ? atol + rtol * static_cast<double>(size) : -1.0;
        return bh::logical_or(bh::less_equal(std::move(off), limit, at), std::move(same), at);
    } else {
        auto near = bh::less_equal(std::move(off), bh::add(bh::multiply(bh::absolute(b, at), rtol, at), atol, at), at);
        return bh::logical_or(bh::logical_and(std::move(near), bh::isfinite(b, at), at), std::move(same), at);
    }
}
/// Is |a - b| ≤ atol + rtol·|b| everywhere? Waits for the answer.
template <class A, class B, detail::if_operands<A, B> = 0>
bool allclose(const A &a, const B &b, double rtol = 1e-5, double atol = 1e-8, place at = place::here()) {
    return scalar<bool>(bh::all(bh::isclose(a, b, rtol, atol, at), {}, dropdims, at), at);
}

} // namespace bh
