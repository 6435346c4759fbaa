// Arrays from nothing: constants, ranges, random numbers; conversions and joining.
#pragma once

#include "operations.hpp"

#include <vector>

namespace bh {
namespace detail {

template <class T, class Make> array<T> made(place at, Make make) {
    bh_array *handle = nullptr;
    (bh_at)(at.file, at.line);
    check(make(&handle), at);
    return wrapped<T>(handle);
}

} // namespace detail

/// Elements that are undefined until they are written.
template <class T = double> array<T> empty(const shape &extents, place at = place::here()) {
    return detail::made<T>(at, [&](bh_array **out) { return (bh_empty)(out, detail::current_context, detail::code<T>, extents.rank(), extents.data()); });
}
/// Zeros; false for bool.
template <class T = double> array<T> zeros(const shape &extents, place at = place::here()) { return array<T>(extents, at); }
/// Ones; true for bool.
template <class T = double> array<T> ones(const shape &extents, place at = place::here()) {
    return detail::made<T>(at, [&](bh_array **out) { return (bh_ones)(out, detail::current_context, detail::code<T>, extents.rank(), extents.data()); });
}
/// All elements equal to `value`, whose type they have.
template <class T> array<T> full(const shape &extents, T value, place at = place::here()) {
    return detail::made<T>(at, [&](bh_array **out) { return (bh_full)(out, detail::current_context, detail::constant(value), extents.rank(), extents.data()); });
}
/// As `zeros`, `ones`, … with the shape and the type of another array.
template <class T> array<T> zeros_like(const array<T> &a, place at = place::here()) { return zeros<T>(a.extents(at), at); }
template <class T> array<T> ones_like(const array<T> &a, place at = place::here()) { return ones<T>(a.extents(at), at); }
template <class T> array<T> full_like(const array<T> &a, T value, place at = place::here()) { return full<T>(a.extents(at), value, at); }
template <class T> array<T> empty_like(const array<T> &a, place at = place::here()) { return empty<T>(a.extents(at), at); }

namespace detail {

/// The element type of a range: the one that was asked for, else 64-bit integers for whole arguments and the widest
/// floating-point type among others.
template <class T, class... A>
using range_type = std::conditional_t<!std::is_void_v<T>, T,
                                      std::conditional_t<(std::is_integral_v<A> && ...), std::int64_t,
                                                         std::conditional_t<(std::is_same_v<A, float> && ...), float, double>>>;
template <class... A> using if_numbers = std::enable_if_t<(std::is_arithmetic_v<A> && ...), int>;

} // namespace detail

/// start, start + step, … before stop. The type follows from all arguments: `arange(0, 1, 0.25)` is of doubles.
template <class T = void, class A, class B, class C = int, detail::if_numbers<A, B, C> = 0>
auto arange(A start, B stop, C step = 1, place at = place::here()) {
    using R = detail::range_type<T, A, B, C>;
    const auto first = static_cast<double>(start), last = static_cast<double>(stop), by = static_cast<double>(step);
    return detail::made<R>(at, [&](bh_array **out) { return (bh_arange)(out, detail::current_context, detail::code<R>, first, last, by); });
}
/// 0, 1, … below stop.
template <class T = void, class A, detail::if_numbers<A> = 0> auto arange(A stop, place at = place::here()) {
    return arange<detail::range_type<T, A>>(0, stop, 1, at);
}
/// `count` evenly spaced numbers from start to stop, both included.
template <class T = double> array<T> linspace(double start, double stop, std::int64_t count = 50, place at = place::here()) {
    return detail::made<T>(at, [&](bh_array **out) { return (bh_linspace)(out, detail::current_context, detail::code<T>, start, stop, count); });
}
/// Ones on a diagonal of a matrix, zeros elsewhere. `columns` is by default `rows`.
template <class T = double> array<T> eye(std::int64_t rows, std::int64_t columns = -1, std::int64_t diagonal = 0, place at = place::here()) {
    const std::int64_t across = columns < 0 ? rows : columns;
    return detail::made<T>(at, [&](bh_array **out) { return (bh_eye)(out, detail::current_context, detail::code<T>, rows, across, diagonal); });
}

/// Random numbers. The same seed gives the same numbers on every engine and number of threads.
namespace random {

/// Uniform in [0, 1) for float and double; all bits for 32 and 64-bit unsigned integers.
template <class T = double> array<T> uniform(const shape &extents, std::uint64_t seed, place at = place::here()) {
    return detail::made<T>(at, [&](bh_array **out) { return (bh_random_uniform)(out, detail::current_context, detail::code<T>, extents.rank(), extents.data(), seed); });
}
/// Normally distributed with mean 0 and variance 1.
template <class T = double> array<T> normal(const shape &extents, std::uint64_t seed, place at = place::here()) {
    return detail::made<T>(at, [&](bh_array **out) { return (bh_random_normal)(out, detail::current_context, detail::code<T>, extents.rank(), extents.data(), seed); });
}

} // namespace random

/// The elements converted to another type. Float to integer truncates (beyond the type: key `casts`); to bool, all but zero is true.
template <class U, class A, detail::if_operands<A> = 0> auto cast(A &&a, place at = place::here()) {
    const auto from = detail::take(static_cast<A &&>(a), at);
    using T = detail::element_of<A>;
    static_assert(!detail::is_complex(detail::code<T>) || detail::is_complex(detail::code<U>) || std::is_same_v<U, bool>,
                  "a complex array cannot become a real one: use bh::real or bh::imag");
    bh_array *handle = nullptr;
    (bh_at)(at.file, at.line);
    detail::check((bh_cast)(&handle, from.handle, detail::code<U>), at);
    detail::note_converted(handle, from.handle, at);
    from.spend();
    return detail::wrap<U>(0, handle, from);
}

/// An array of its own with the same elements.
template <class A, detail::if_array<A> = 0> auto copy(A &&a, place at = place::here()) {
    return detail::settled(static_cast<A &&>(a), at).copy(at);
}

// The views of the members of the same names.
#define BH_VIEW(name, parameters, ...)                                                                                     \
    template <class A, detail::if_array<A> = 0> auto name parameters {                                                     \
        return detail::settled(static_cast<A &&>(a), at).name(__VA_ARGS__);                                                \
    }
BH_VIEW(transpose, (A &&a, place at = place::here()), at)
BH_VIEW(transpose, (A &&a, std::initializer_list<int> order, place at = place::here()), order, at)
BH_VIEW(flatten, (A &&a, place at = place::here()), at)
BH_VIEW(reshape, (A &&a, const shape &extents, place at = place::here()), extents, at)
BH_VIEW(broadcast_to, (A &&a, const shape &extents, place at = place::here()), extents, at)
BH_VIEW(diagonal, (A &&a, std::int64_t offset = 0, int first = 0, int second = 1, place at = place::here()), offset, first, second, at)
BH_VIEW(flip, (A &&a, place at = place::here()), at)
BH_VIEW(flip, (A &&a, int axis, place at = place::here()), axis, at)
BH_VIEW(swap_axes, (A &&a, int first, int second, place at = place::here()), first, second, at)
BH_VIEW(squeeze, (A &&a, place at = place::here()), at)
#undef BH_VIEW

namespace detail {

/// The part from `start` to `stop` along an axis.
template <class T> array<T> along(const array<T> &a, int axis, std::int64_t start, std::int64_t stop, place at) {
    bh_array *handle = nullptr;
    check((bh_slice)(&handle, a.handle(), axis, start, stop, 1), at);
    return wrapped<T>(handle);
}

} // namespace detail

namespace detail {

/// The element type of the arrays in a container of arrays.
template <class A> struct part;
template <class T> struct part<array<T>> { using type = T; };
template <class Parts> using parts_of = typename part<plain<decltype(*std::begin(std::declval<const Parts &>()))>>::type;

/// Calls a function of the C interface that makes an array of several.
template <class T, class Parts, class Join> array<T> joined(const Parts &parts, int axis, place at, Join join) {
    std::vector<const bh_array *> handles;
    for (const array<T> &part : parts) handles.push_back(part.handle());
    return made<T>(at, [&](bh_array **out) { return join(out, handles.size(), handles.data(), axis); });
}

} // namespace detail

/// Arrays put one after the other along an axis.
template <class T> array<T> concatenate(std::initializer_list<array<T>> parts, int axis = 0, place at = place::here()) {
    return detail::joined<T>(parts, axis, at, bh_concatenate);
}
template <class Parts, class T = detail::parts_of<Parts>> array<T> concatenate(const Parts &parts, int axis = 0, place at = place::here()) {
    return detail::joined<T>(parts, axis, at, bh_concatenate);
}

/// Arrays of one shape along a new axis.
template <class T> array<T> stack(std::initializer_list<array<T>> parts, int axis = 0, place at = place::here()) {
    return detail::joined<T>(parts, axis, at, bh_stack);
}

} // namespace bh
