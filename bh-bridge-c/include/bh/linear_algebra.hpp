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

/// Sum of the products of all elements of two arrays.
template <class A, class B, detail::if_array<A> = 0, detail::if_array<B> = 0> auto dot(A &&a, B &&b, place at = place::here()) {
    return bh::sum(bh::multiply(static_cast<A &&>(a), static_cast<B &&>(b), at), {}, dropdims, at);
}
/// All products of an element of `a` and an element of `b`, both flattened.
template <class A, class B, detail::if_array<A> = 0, detail::if_array<B> = 0> auto outer(A &&a, B &&b, place at = place::here()) {
    return bh::multiply(detail::settled(static_cast<A &&>(a), at).reshape({-1, 1}, at),
                        detail::settled(static_cast<B &&>(b), at).reshape({1, -1}, at), at);
}
template <class A, detail::if_array<A> = 0> auto trace(A &&a, std::int64_t offset = 0, place at = place::here()) {
    return bh::sum(detail::settled(static_cast<A &&>(a), at).diagonal(offset, 0, 1, at), -1, dropdims, at);
}
/// The Euclidean length: the square root of the sum of squares.
template <class A, detail::if_array<A> = 0> auto norm(A &&a, const axes &over = {}, keep kept = dropdims, place at = place::here()) {
    return bh::sqrt(bh::sum(bh::square(bh::absolute(static_cast<A &&>(a), at), at), over, kept, at), at);
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
