// Order and distribution of elements: sorting, searching, quantiles, counts.
#pragma once

#include "linear_algebra.hpp"

#include <limits>

namespace bh {
namespace detail {

/// The last axis exchanged with another one.
template <class T> array<T> with_last(const array<T> &a, int axis, place at) { return a.swap_axes(axis, -1, at); }

/// Calls a method along one axis, whose result has the shape of its input.
template <class R, class T> array<R> along_axis(const char *name, const array<T> &a, int axis, place at) {
    const int rank = a.rank(at);
    const int dim = counted_axis(axis, rank, at);
    const array<T> turned = dim == rank - 1 ? a : with_last(a, dim, at);
    array<R> result = extension_new<R>(name, turned.extents(at), {turned.handle()}, at);
    return dim == rank - 1 ? result : with_last(result, dim, at);
}

} // namespace detail

/// The elements in ascending order along an axis. NaN comes last; complex numbers go by their real parts first.
template <class A, detail::if_array<A> = 0> auto sort(A &&a, int axis = -1, place at = place::here()) {
    using T = detail::element_of<A>;
    return detail::along_axis<T>("sort", detail::as_is(static_cast<A &&>(a), at), axis, at);
}
/// The positions along an axis that put its elements in ascending order; equal elements keep theirs.
template <class A, detail::if_array<A> = 0> array<std::int64_t> argsort(A &&a, int axis = -1, place at = place::here()) {
    return detail::along_axis<std::int64_t>("argsort", detail::as_is(static_cast<A &&>(a), at), axis, at);
}

/// On which side of equal elements a position is.
enum class side : bool { left, right };

/// For each value the position in a sorted vector before which it could stand.
template <class A, class V, detail::if_array<A> = 0, detail::if_array<V> = 0>
array<std::int64_t> searchsorted(A &&sorted, V &&values, side which = side::left, place at = place::here()) {
    using T = detail::element_t<detail::promoted<array<detail::element_of<A>>, array<detail::element_of<V>>>(), array<detail::element_of<A>>, array<detail::element_of<V>>>;
    const array<T> line = detail::as<T>(static_cast<A &&>(sorted), at), wanted = detail::as<T>(static_cast<V &&>(values), at);
    const char *name = which == side::left ? "searchsorted_left" : "searchsorted_right";
    if (line.rank(at) != 1) detail::fail(BH_STATUS_SHAPE, "searchsorted: a vector is searched, not shape " + line.extents(at).text(), at);
    return detail::extension_new<std::int64_t>(name, wanted.extents(at), {line.handle(), wanted.handle()}, at);
}

/// The different elements in ascending order; all NaN are one. Waits for their number.
template <class A, detail::if_array<A> = 0> auto unique(A &&a, place at = place::here()) {
    using T = detail::element_of<A>;
    const array<T> all = bh::sort(detail::settled(static_cast<A &&>(a), at).flatten(at), 0, at);
    const std::int64_t count = all.size(at);
    if (count == 0) return all;
    const detail::beside here(all.handle(), at);
    array<bool> first = empty<bool>({count}, at);
    detail::along(first, 0, 0, 1, at).fill(detail::operand<bool>(true, at));
    auto differs = bh::not_equal(detail::along(all, 0, 1, count, at), detail::along(all, 0, 0, count - 1, at), at);
    if constexpr (detail::kind_of(detail::code<T>) >= 2) {
        auto both = bh::logical_and(bh::isnan(detail::along(all, 0, 1, count, at), at), bh::isnan(detail::along(all, 0, 0, count - 1, at), at), at);
        differs = bh::logical_and(std::move(differs), bh::logical_not(std::move(both), at), at);
    }
    detail::along(first, 0, 1, count, at).fill(detail::operand<bool>(std::move(differs), at));
    return array<T>(all(first, at));
}

namespace detail {

/// A quantile of sorted lines along the last axis, by the line between the two nearest elements; NaN where there is one.
template <class T> auto sorted_quantile(const array<T> &sorted, double fraction, place at) {
    using M = mean_type<T>;
    const int last = sorted.rank(at) - 1;
    const std::int64_t count = sorted.extent(last, at);
    const double place_of = fraction * static_cast<double>(count - 1);
    const std::int64_t low = static_cast<std::int64_t>(std::floor(place_of)), high = low + 1 < count ? low + 1 : low;
    const auto element = [&](std::int64_t position) {
        bh_array *handle = nullptr;
        check((bh_index)(&handle, sorted.handle(), last, position), at);
        return as<M>(wrapped<T>(handle), at);
    };
    const auto weight = static_cast<M>(place_of - static_cast<double>(low));
    array<M> below = element(low), above = element(high);
    array<M> value = weight == M(0) ? below : array<M>(bh::add(below, bh::multiply(bh::subtract(above, below, at), weight, at), at));
    if constexpr (kind_of(code<T>) >= 2) {
        // NaN stands at the end of its line.
        array<M> greatest = element(count - 1);
        auto undefined = bh::isnan(greatest, at);
        value = bh::where(std::move(undefined), std::move(greatest), std::move(value), at);
    }
    return value;
}

template <class A> auto quantile(const char *name, A &&a, double fraction, const axes &over, keep kept, place at) {
    using T = element_of<A>;
    static_assert(!is_complex(code<T>), "complex numbers have no quantiles");
    if (!(fraction >= 0 && fraction <= 1)) fail(BH_STATUS_ARGUMENT, std::string(name) + ": the percentage must be from 0 to 100", at);
    array<T> from = as_is(static_cast<A &&>(a), at);
    refuse_empty(name, from, over, at);
    const shape extents = from.extents(at);
    const int rank = extents.rank(), mask = axis_mask(over, rank, at);
    // The folded axes become one, at the end.
    int order[max_rank], count = 0;
    for (int folded = 0; folded < 2; ++folded) {
        for (int dim = 0; dim < rank; ++dim) {
            if ((mask >> dim & 1) == folded) order[count++] = dim;
        }
    }
    shape flat, full;
    for (int dim = 0; dim < rank; ++dim) {
        if (mask >> dim & 1) {
            full.push_back(1, at);
        } else {
            flat.push_back(extents[dim], at);
            full.push_back(extents[dim], at);
        }
    }
    const shape result = kept == keepdims || over.kept() ? full : flat;
    flat.push_back(folded_count(from, over, at), at);
    bh_array *turned = nullptr;
    check((bh_transpose)(&turned, from.handle(), order), at);
    const array<T> lines = wrapped<T>(turned).reshape(flat, at);
    return sorted_quantile(bh::sort(lines, -1, at), fraction, at).reshape(result, at);
}

} // namespace detail

/// The value that a percentage of the elements are below, between elements on the line from one to the next.
template <class A, detail::if_array<A> = 0>
auto percentile(A &&a, double percentage, const axes &over = {}, keep kept = dropdims, place at = place::here()) {
    return detail::quantile("percentile", static_cast<A &&>(a), percentage / 100, over, kept, at);
}
/// The middle element, or the mean of the two in the middle.
template <class A, detail::if_array<A> = 0> auto median(A &&a, const axes &over = {}, keep kept = dropdims, place at = place::here()) {
    return detail::quantile("median", static_cast<A &&>(a), 0.5, over, kept, at);
}

/// How often each whole number from 0 on is there. As many counts as the largest number asks for, which is waited for, or
/// `least` if those are more.
template <class A, detail::if_array<A> = 0> array<std::int64_t> bincount(A &&a, std::int64_t least = 0, place at = place::here()) {
    using T = detail::element_of<A>;
    detail::check_positions<T>();
    const array<T> numbers = detail::as_is(static_cast<A &&>(a), at).flatten(at);
    const detail::beside here(numbers.handle(), at);
    std::int64_t count = least;
    if (numbers.size(at) > 0) {
        if (std::is_signed_v<T> && scalar<std::int64_t>(bh::min(numbers, {}, dropdims, at), at) < 0) {
            detail::fail(BH_STATUS_ARGUMENT, "bincount: there is a negative number", at);
        }
        const std::int64_t largest = scalar<std::int64_t>(bh::max(numbers, {}, dropdims, at), at);
        if (largest >= count) count = largest + 1;
    }
    array<std::int64_t> counts = zeros<std::int64_t>({count}, at);
    put_add(counts, numbers, 1, at);
    return counts;
}

/// Counts of elements in bins of equal width, and the edges of the bins.
struct histogram_counts {
    array<std::int64_t> counts;
    array<double> edges;
};

/// Counts the elements from `low` to `high` in bins; the last one has its upper edge too. Others, and NaN, are not counted.
template <class A, detail::if_array<A> = 0>
histogram_counts histogram(A &&a, std::int64_t bins, double low, double high, place at = place::here()) {
    if (bins < 1 || !(low < high) || high - low - (high - low) != 0) {
        detail::fail(BH_STATUS_ARGUMENT, "histogram: there must be a bin at least, and a range of two different numbers", at);
    }
    const array<double> values = detail::as<double>(static_cast<A &&>(a), at).flatten(at);
    const detail::beside here(values.handle(), at);
    array<double> edges = linspace<double>(low, high, bins + 1, at);
    // How many edges are not above a value: numbers from 1 on for what is inside.
    array<std::int64_t> bin = bh::subtract(searchsorted(edges, values, side::right, at), 1, at);
    bin = bh::where(bh::equal(values, high, at), bins - 1, std::move(bin), at);
    array<bool> inside = bh::logical_and(bh::greater_equal(values, low, at), bh::less_equal(values, high, at), at);
    array<std::int64_t> counts = zeros<std::int64_t>({bins + 1}, at);
    put_add(counts, bh::where(std::move(inside), std::move(bin), bins, at), 1, at);
    return {detail::along(counts, 0, 0, bins, at).copy(at), std::move(edges)};
}
/// Of the range from the smallest to the largest element, which is waited for; half on each side of a single value.
template <class A, detail::if_array<A> = 0> histogram_counts histogram(A &&a, std::int64_t bins = 10, place at = place::here()) {
    const array<double> values = detail::as<double>(static_cast<A &&>(a), at);
    double low = 0, high = 1;
    if (values.size(at) > 0) {
        low = scalar(bh::min(values, {}, dropdims, at), at);
        high = scalar(bh::max(values, {}, dropdims, at), at);
        if (low == high) low -= 0.5, high += 0.5;
    }
    return histogram(values, bins, low, high, at);
}

/// The length of the hypotenuse of two real arrays, without overflow on the way to it.
template <class A, class B, detail::if_array<A> = 0, detail::if_array<B> = 0> auto hypot(const A &a, const B &b, place at = place::here()) {
    using T = detail::element_t<detail::computed(detail::rule::same, 0x600, detail::promoted<array<detail::element_of<A>>, array<detail::element_of<B>>>()), array<detail::element_of<A>>, array<detail::element_of<B>>>;
    auto x = bh::absolute(detail::as<T>(a, at), at), y = bh::absolute(detail::as<T>(b, at), at);
    auto larger = bh::maximum(x, y, at), smaller = bh::minimum(x, y, at);
    auto ratio = bh::divide(std::move(smaller), larger, at);
    auto length = bh::multiply(larger, bh::sqrt(bh::add(bh::square(std::move(ratio), at), T(1), at), at), at);
    // Nothing is longer than 0 and 0, and an infinite side makes it infinite whatever the other one is.
    auto endless = bh::logical_or(bh::isinf(x, at), bh::isinf(y, at), at);
    length = bh::where(bh::equal(larger, T(0), at), T(0), std::move(length), at);
    return array<T>(bh::where(std::move(endless), std::numeric_limits<T>::infinity(), std::move(length), at));
}

/// Rounded to `digits` digits after the point, halves to even digits. Negative `digits` count before the point.
template <class A, detail::if_array<A> = 0> auto round(A &&a, int digits = 0, place at = place::here()) {
    using T = detail::element_of<A>;
    auto from = detail::as_is(static_cast<A &&>(a), at);
    if constexpr (detail::kind_of(detail::code<T>) == 2) {
        if (digits == 0) return array<T>(bh::rint(std::move(from), at));
        const T scale = static_cast<T>(std::pow(10.0, digits < 0 ? -digits : digits));
        if (digits < 0) return array<T>(bh::multiply(bh::rint(bh::divide(std::move(from), scale, at), at), scale, at));
        return array<T>(bh::divide(bh::rint(bh::multiply(std::move(from), scale, at), at), scale, at));
    } else {
        static_assert(!detail::is_complex(detail::code<T>), "complex numbers are not rounded");
        if (digits < 0) detail::fail(BH_STATUS_ARGUMENT, "round: whole numbers are not rounded to tens", at);
        return from;
    }
}

} // namespace bh
