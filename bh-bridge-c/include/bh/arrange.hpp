// Arrays put together from copies of another, and its triangles.
#pragma once

#include "indexing.hpp"

namespace bh {
namespace detail {

/// A new array with each slab along an axis `inner` times, and the whole of that `outer` times.
template <class T> array<T> multiplied(const array<T> &a, std::int64_t outer, std::int64_t inner, int axis, place at) {
    const shape extents = a.extents(at);
    if (outer < 0 || inner < 0) fail(BH_STATUS_ARGUMENT, "the number of copies must not be negative", at);
    std::int64_t before = 1, after = 1;
    for (int d = 0; d < extents.rank(); ++d) (d < axis ? before : after) *= d == axis ? 1 : extents[d];
    const std::int64_t extent = extents[axis];
    shape result = extents;
    result[axis] = outer * extent * inner;
    const shape copies{before, outer, extent, inner, after};
    return a.reshape({before, 1, extent, 1, after}, at).broadcast_to(copies, at).copy(at).reshape(result, at);
}

/// Where the column is at most `diagonal` to the right of the row, in the last two axes.
template <class T> array<bool> lower_part(const char *name, const array<T> &a, std::int64_t diagonal, place at) {
    const shape extents = a.extents(at);
    const int rank = extents.rank();
    if (rank < 2) fail(BH_STATUS_SHAPE, std::string(name) + ": a matrix is needed, not shape " + extents.text(), at);
    const beside here(a.handle(), at);
    auto rows = bh::arange<std::int64_t>(extents[rank - 2], at).reshape({-1, 1}, at);
    auto columns = bh::arange<std::int64_t>(extents[rank - 1], at);
    return bh::less_equal(std::move(columns), bh::add(std::move(rows), diagonal, at), at);
}

} // namespace detail

/// Each slab along an axis `count` times, one after the other.
template <class A, detail::if_array<A> = 0> auto repeat(A &&a, std::int64_t count, int axis, place at = place::here()) {
    const auto from = detail::as_is(static_cast<A &&>(a), at);
    return detail::multiplied(from, 1, count, detail::counted_axis(axis, from.rank(at), at), at);
}
/// The array `counts[d]` times along each axis d; the shorter of the counts and the shape is filled up with ones in front.
template <class A, detail::if_array<A> = 0> auto tile(A &&a, const shape &counts, place at = place::here()) {
    auto whole = detail::as_is(static_cast<A &&>(a), at);
    const shape extents = whole.extents(at);
    if (counts.rank() > extents.rank()) {
        shape longer;
        for (int d = extents.rank(); d < counts.rank(); ++d) longer.push_back(1, at);
        for (std::int64_t extent : extents) longer.push_back(extent, at);
        whole = std::move(whole).reshape(longer, at);
    }
    const int rank = whole.rank(at);
    bool own = false;
    for (int d = 1; d <= counts.rank(); ++d) {
        const std::int64_t count = counts[counts.rank() - d];
        if (count == 1) continue;
        whole = detail::multiplied(whole, count, 1, rank - d, at);
        own = true;
    }
    return own ? whole : whole.copy(at);
}
/// The lower triangle of a matrix, up to a diagonal; zeros elsewhere.
template <class A, detail::if_array<A> = 0> auto tril(A &&a, std::int64_t diagonal = 0, place at = place::here()) {
    auto from = detail::as_is(static_cast<A &&>(a), at);
    auto kept = detail::lower_part("tril", from, diagonal, at);
    return bh::where(std::move(kept), std::move(from), detail::element_of<A>(0), at);
}
/// The upper triangle of a matrix, from a diagonal on; zeros elsewhere.
template <class A, detail::if_array<A> = 0> auto triu(A &&a, std::int64_t diagonal = 0, place at = place::here()) {
    auto from = detail::as_is(static_cast<A &&>(a), at);
    auto dropped = detail::lower_part("triu", from, diagonal - 1, at);
    return bh::where(std::move(dropped), detail::element_of<A>(0), std::move(from), at);
}

} // namespace bh
