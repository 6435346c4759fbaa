// Products of matrices, systems of equations, factorizations and Fourier transforms.
#pragma once

#include "reductions.hpp"

namespace bh {
namespace detail {

/// The type that an extension method on these element types computes in.
template <class... T> using inexact = element_t<computed(rule::same, 0x1e00, promoted<array<T>...>()), array<T>...>;

inline void extension(const char *name, std::size_t out_count, bh_array *const *outs, std::size_t count, const bh_array *const *inputs, place at) {
    (bh_at)(at.file, at.line);
    check((bh_extmethod)(name, out_count, outs, count, inputs), at);
}

/// Calls an extension method that has one result.
template <class T> array<T> extension_new(const char *name, const shape &extents, std::initializer_list<const bh_array *> inputs, place at) {
    const beside here(*inputs.begin(), at);
    array<T> out = empty<T>(extents, at);
    bh_array *const outs[] = {out.handle()};
    extension(name, 1, outs, inputs.size(), inputs.begin(), at);
    return out;
}

template <class T> std::int64_t square_order(const char *name, const array<T> &a, place at) {
    const shape extents = a.extents(at);
    if (extents.rank() != 2 || extents[0] != extents[1]) {
        fail(BH_STATUS_SHAPE, std::string(name) + ": a square matrix is needed, not shape " + extents.text(), at);
    }
    return extents[0];
}

} // namespace detail

/// Calls an extension method by its name, as `extmethod("name", {&out}, {&a, &b})` on arrays of one element type.
template <class T>
void extmethod(const char *name, std::initializer_list<array<T> *> outs, std::initializer_list<const array<T> *> inputs, place at = place::here()) {
    bh_array *out[BH_MAX_OPERANDS] = {};
    const bh_array *in[BH_MAX_OPERANDS] = {};
    if (outs.size() + inputs.size() > BH_MAX_OPERANDS) detail::fail(BH_STATUS_ARGUMENT, std::string(name) + ": at most 8 arrays can be given", at);
    std::size_t o = 0, i = 0;
    for (array<T> *array : outs) out[o++] = array->handle();
    for (const array<T> *array : inputs) in[i++] = array->handle();
    detail::extension(name, o, out, i, in, at);
}

/// All products of an element of `a` and an element of `b`, both flattened.
template <class A, class B, detail::if_array<A> = 0, detail::if_array<B> = 0> auto outer(A &&a, B &&b, place at = place::here()) {
    return bh::multiply(detail::settled(static_cast<A &&>(a), at).reshape({-1, 1}, at),
                        detail::settled(static_cast<B &&>(b), at).reshape({1, -1}, at), at);
}
template <class A, detail::if_array<A> = 0> auto trace(A &&a, std::int64_t offset = 0, place at = place::here()) {
    return bh::sum(detail::settled(static_cast<A &&>(a), at).diagonal(offset, 0, 1, at), -1, dropdims, at);
}
/// A norm of vectors along axes: the Euclidean one, or of another order; infinite orders are the largest and the smallest
/// absolute value, order 0 counts what is not zero.
template <class A, detail::if_array<A> = 0> auto norm(A &&a, double order, const axes &over, keep kept = dropdims, place at = place::here()) {
    auto size = bh::absolute(static_cast<A &&>(a), at);
    using R = detail::mean_type<detail::element_of<decltype(size)>>;
    if (order == 2) return array<R>(bh::sqrt(bh::sum(bh::square(detail::as<R>(std::move(size), at), at), over, kept, at), at));
    if (order == 1) return array<R>(bh::sum(detail::as<R>(std::move(size), at), over, kept, at));
    if (order == 0) return array<R>(bh::sum(detail::as<R>(bh::cast<bool>(std::move(size), at), at), over, kept, at));
    if (order - order != 0) return array<R>(detail::as<R>(order > 0 ? bh::max(size, over, kept, at) : bh::min(size, over, kept, at), at));
    auto powers = bh::power(detail::as<R>(std::move(size), at), static_cast<R>(order), at);
    return array<R>(bh::power(bh::sum(std::move(powers), over, kept, at), static_cast<R>(1 / order), at));
}
/// The Euclidean length of all elements.
template <class A, detail::if_array<A> = 0> auto norm(A &&a, keep kept = dropdims, place at = place::here()) {
    return bh::norm(static_cast<A &&>(a), 2, axes(), kept, at);
}
/// The norm of a vector of this order, or of a matrix: order 1 is its largest sum of a column's absolute values, the infinite
/// one that of a row's, their negatives the smallest; 2 needs singular values, which bh does not have.
template <class A, detail::if_array<A> = 0> auto norm(A &&a, double order, place at = place::here()) {
    auto from = detail::as_is(static_cast<A &&>(a), at);
    const int rank = from.rank(at);
    if (rank == 1) return bh::norm(std::move(from), order, axes(), dropdims, at);
    const bool columns = order == 1 || order == -1;
    if (rank != 2 || !(columns || order - order != 0)) {
        detail::fail(BH_STATUS_UNSUPPORTED, "norm: there is no norm of order " + std::to_string(order) + " of an array of rank " + std::to_string(rank) + "; norm(a, order, axes) folds vectors along axes", at);
    }
    auto sums = bh::norm(std::move(from), 1, columns ? 0 : 1, dropdims, at);
    return order > 0 ? bh::max(std::move(sums), {}, dropdims, at) : bh::min(std::move(sums), {}, dropdims, at);
}
/// Norms of order 2 along a list of axes.
template <class A, detail::if_array<A> = 0> auto norm(A &&a, std::initializer_list<int> over, keep kept = dropdims, place at = place::here()) {
    return bh::norm(static_cast<A &&>(a), 2, axes(over, at), kept, at);
}

/// The matrix product. Vectors stand for a row on the left and a column on the right; further dimensions are broadcast.
template <class A, class B> auto matmul(const array<A> &a, const array<B> &b, place at = place::here()) {
    using T = detail::element_t<detail::promoted<array<A>, array<B>>(), array<A>, array<B>>;
    shape left = a.extents(at), right = b.extents(at);
    const bool row = left.rank() == 1, column = right.rank() == 1;
    if (left.rank() == 0 || right.rank() == 0) detail::fail(BH_STATUS_SHAPE, "matmul: an operand has no dimensions", at);
    const std::int64_t inner = left[left.rank() - 1], matching = right[column ? 0 : right.rank() - 2];
    if (inner != matching) {
        detail::fail(BH_STATUS_SHAPE, "matmul: shapes " + left.text() + " and " + right.text() + " do not fit: " + std::to_string(inner) + " columns meet " + std::to_string(matching) + " rows", at);
    }
    // A vector: products and their sum, which fuse, and take the time that the matrix takes to come from memory.
    if (column) return array<T>(bh::add_reduce(bh::multiply(a, b, at), -1, dropdims, at));
    if (row) return array<T>(bh::add_reduce(bh::multiply(a(all, newaxis), b, at), -2, dropdims, at));
    if constexpr (detail::kind_of(detail::code<T>) >= 2) {
        if (left.rank() == 2 && right.rank() == 2) {
            const array<T> l = detail::as<T>(a, at), r = detail::as<T>(b, at);
            const detail::beside here(l.handle(), at);
            array<T> out = empty<T>({left[0], right[1]}, at);
            (bh_at)(at.file, at.line);
            detail::check((bh_matmul)(out.handle(), l.handle(), r.handle()), at);
            return out;
        }
    }
    // Integers, truth values and stacks of matrices: products expanded and summed, which fuse.
    return array<T>(bh::add_reduce(bh::multiply(a(ellipsis, newaxis), b(ellipsis, newaxis, all, all), at), -2, dropdims, at));
}

namespace detail {

/// The extents of the axes from `first` to before `stop`.
inline shape dimensions(const shape &from, int first, int stop, place at) {
    shape list;
    for (int dim = first; dim < stop; ++dim) list.push_back(from[dim], at);
    return list;
}

} // namespace detail

/// NumPy's `dot`: of vectors the sum of products, of matrices the matrix product; else sums over the last axis of `a` and the
/// second to last one of `b`, or its only one. A single element is a factor.
template <class X, class Y, detail::if_array<X> = 0, detail::if_array<Y> = 0> auto dot(X &&x, Y &&y, place at = place::here()) {
    using A = detail::element_of<X>;
    using B = detail::element_of<Y>;
    using T = detail::element_t<detail::promoted<array<A>, array<B>>(), array<A>, array<B>>;
    auto &&a = detail::settled(static_cast<X &&>(x), at);
    auto &&b = detail::settled(static_cast<Y &&>(y), at);
    const shape left = a.extents(at), right = b.extents(at);
    const int m = left.rank(), n = right.rank();
    if (m == 0 || n == 0) return array<T>(bh::multiply(detail::pass<X>(a), detail::pass<Y>(b), at));
    if (m == 1 && n == 1 && left[0] == right[0]) {
        // Temporaries end here, so that what they are made of is not stored.
        return array<T>(bh::add_reduce(bh::multiply(detail::pass<X>(a), detail::pass<Y>(b), at), {}, dropdims, at));
    }
    if (m <= 2 && n <= 2) return bh::matmul(array<A>(a), array<B>(b), at);
    const std::int64_t inner = left[m - 1], matching = n == 1 ? right[0] : right[n - 2];
    if (inner != matching) {
        detail::fail(BH_STATUS_SHAPE, "dot: shapes " + left.text() + " and " + right.text() + " do not fit: " + std::to_string(inner) + " elements meet " + std::to_string(matching), at);
    }
    shape result = detail::dimensions(left, 0, m - 1, at);
    const shape before = detail::dimensions(right, 0, n == 1 ? 0 : n - 2, at);
    for (std::int64_t extent : before) result.push_back(extent, at);
    const array<A> rows = array<A>(a).reshape({detail::dimensions(left, 0, m - 1, at).count(), inner}, at);
    if (n == 1) return bh::matmul(rows, array<B>(b), at).reshape(result, at);
    const std::int64_t columns = right[n - 1];
    result.push_back(columns, at);
    const array<B> stacked = bh::swap_axes(array<B>(b).reshape({before.count(), inner, columns}, at), 0, 1, at);
    return bh::matmul(rows, stacked.reshape({inner, before.count() * columns}, at), at).reshape(result, at);
}

/// The solution x of a·x = b for a square matrix and one right side, or several as columns.
template <class A, class B> auto solve(const array<A> &a, const array<B> &b, place at = place::here()) {
    using T = detail::inexact<A, B>;
    const std::int64_t order = detail::square_order("solve", a, at);
    const shape right = b.extents(at);
    if (right.rank() < 1 || right.rank() > 2 || right[0] != order) {
        detail::fail(BH_STATUS_SHAPE, "solve: a right side of shape " + right.text() + " does not fit a matrix of order " + std::to_string(order), at);
    }
    const array<T> matrix = detail::as<T>(a, at), sides = detail::as<T>(b, at);
    const detail::beside here(matrix.handle(), at);
    array<T> x = empty<T>(right, at);
    (bh_at)(at.file, at.line);
    detail::check((bh_solve)(x.handle(), matrix.handle(), sides.handle()), at);
    return x;
}

/// The inverse of a square matrix. To multiply by it, `solve` is quicker and more exact.
template <class A> auto inv(const array<A> &a, place at = place::here()) {
    using T = detail::inexact<A>;
    const std::int64_t order = detail::square_order("inv", a, at);
    const detail::beside here(a.handle(), at);
    return bh::solve(a, bh::eye<T>(order, order, 0, at), at);
}

/// The factors of a matrix with rows permuted.
template <class T> struct lu_factors {
    /// U with, below its diagonal, L without its diagonal of ones.
    array<T> factors;
    /// Row i of L·U is row `permutation[i]` of the matrix.
    array<std::int64_t> permutation;

    array<T> lower(place at = place::here()) const {
        const std::int64_t order = factors.extent(0, at);
        const detail::beside here(factors.handle(), at);
        return bh::add(bh::tril(factors, -1, at), eye<T>(order, order, 0, at), at);
    }
    array<T> upper(place at = place::here()) const { return bh::triu(factors, 0, at); }
};

/// Factors a square matrix into triangular ones, with pivoting of rows.
template <class A> auto lu(const array<A> &a, place at = place::here()) {
    using T = detail::inexact<A>;
    const std::int64_t order = detail::square_order("lu", a, at);
    const array<T> matrix = detail::as<T>(a, at);
    const detail::beside here(matrix.handle(), at);
    lu_factors<T> result{empty<T>({order, order}, at), empty<std::int64_t>({order}, at)};
    bh_array *const outs[] = {result.factors.handle(), result.permutation.handle()};
    const bh_array *const inputs[] = {matrix.handle()};
    detail::extension("lu", 2, outs, 1, inputs, at);
    return result;
}

/// The lower triangular matrix L of a symmetric (Hermitian) positive definite matrix L·Lᴴ.
template <class A> auto cholesky(const array<A> &a, place at = place::here()) {
    using T = detail::inexact<A>;
    detail::square_order("cholesky", a, at);
    const array<T> matrix = detail::as<T>(a, at);
    return detail::extension_new<T>("cholesky", a.extents(at), {matrix.handle()}, at);
}

namespace detail {

template <class A> auto fourier(const char *name, const array<A> &a, place at) {
    using T = inexact<A>;
    using R = typename type_of<promote(code<T>, BH_TYPE_C64)>::type;
    if (a.rank(at) == 0) fail(BH_STATUS_SHAPE, std::string(name) + ": an array without dimensions has no last axis", at);
    const array<T> input = as<T>(a, at);
    return extension_new<R>(name, a.extents(at), {input.handle()}, at);
}

} // namespace detail

/// The discrete Fourier transform along the last axis.
template <class A> auto fft(const array<A> &a, place at = place::here()) { return detail::fourier("fft", a, at); }
/// Its inverse.
template <class A> auto ifft(const array<A> &a, place at = place::here()) { return detail::fourier("ifft", a, at); }

} // namespace bh
