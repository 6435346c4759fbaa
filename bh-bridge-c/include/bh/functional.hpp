// User functions on elements, traced once into bytecode.
#pragma once

#include "reductions.hpp"

namespace bh {
namespace detail {

/// The shape that shapes broadcast to.
inline shape common_shape(const shape &a, const shape &b, place at) {
    const int rank = a.rank() > b.rank() ? a.rank() : b.rank();
    shape result = shape::of_rank(rank);
    for (int dim = 1; dim <= rank; ++dim) {
        const std::int64_t one = dim <= a.rank() ? a[a.rank() - dim] : 1, other = dim <= b.rank() ? b[b.rank() - dim] : 1;
        if (one != other && one != 1 && other != 1) {
            fail(BH_STATUS_SHAPE, "map: shapes " + a.text() + " and " + b.text() + " do not broadcast to a common one", at);
        }
        result[rank - dim] = one == 1 ? other : one;
    }
    return result;
}

template <class A> auto leaf(A &&a, int number) {
    using T = element_of<A>;
    return traced<T>(array<T>(static_cast<A &&>(a)), 0, number);
}

/// The reduction that folds with an operation; 0 if there is none.
constexpr int reduction_of(int opcode) {
    switch (opcode) {
    case BH_OP_ADD: return BH_OP_ADD_REDUCE;
    case BH_OP_MULTIPLY: return BH_OP_MULTIPLY_REDUCE;
    case BH_OP_MAXIMUM: return BH_OP_MAXIMUM_REDUCE;
    case BH_OP_MINIMUM: return BH_OP_MINIMUM_REDUCE;
    case BH_OP_LOGICAL_AND: return BH_OP_LOGICAL_AND_REDUCE;
    case BH_OP_LOGICAL_OR: return BH_OP_LOGICAL_OR_REDUCE;
    case BH_OP_LOGICAL_XOR: return BH_OP_LOGICAL_XOR_REDUCE;
    case BH_OP_BITWISE_AND: return BH_OP_BITWISE_AND_REDUCE;
    case BH_OP_BITWISE_OR: return BH_OP_BITWISE_OR_REDUCE;
    case BH_OP_BITWISE_XOR: return BH_OP_BITWISE_XOR_REDUCE;
    default: return 0;
    }
}

/// The result of a traced function as an array of this type and shape.
template <class R> struct traced_result {
    static_assert(is_scalar<R>, "a traced function must return a traced value or a number");
    using type = R;
};
template <class T> struct traced_result<traced<T>> { using type = T; };

template <class T, class R> array<T> finished(const R &result, const shape &extents, place at) {
    if constexpr (is_scalar<R>) {
        return full<T>(extents, static_cast<T>(result), at);
    } else {
        array<T> value = as<T>(result.value(), at);
        return value.extents(at) == extents ? value : value.broadcast_to(extents, at).copy(at);
    }
}

/// f on corresponding elements of arrays that broadcast.
template <class F, class... A> auto mapped(place at, F &f, A &&...a) {
    shape extents;
    ((extents = common_shape(extents, a.extents(at), at)), ...);
    const auto result = f(leaf(static_cast<A &&>(a), 0)...);
    using R = typename traced_result<std::decay_t<decltype(result)>>::type;
    return finished<R>(result, extents, at);
}

/// f on corresponding elements of two arrays of one shape.
template <class T, class F> array<T> combined(F &f, const array<T> &a, const array<T> &b, place at) {
    const auto result = f(leaf(a, 1), leaf(b, 2));
    using R = typename traced_result<std::decay_t<decltype(result)>>::type;
    static_assert(kind_of(code<R>) <= kind_of(code<T>), "reduce: the function must return what it takes");
    return finished<T>(result, a.extents(at), at);
}

} // namespace detail

/// f(x, y, …) of the elements of arrays, which broadcast. `f` is called once, with values that record what is
/// done with them, and runs fused like any other code: `map([](auto x, auto y) { return bh::sqrt(x * x + y * y); }, a, b)`.
/// It may use operators, functions of bh, and bh::where instead of branches.
template <class F, class A, detail::if_array<A> = 0> auto map(F &&f, A &&a, place at = place::here()) {
    return detail::mapped(at, f, detail::settled(static_cast<A &&>(a), at));
}
template <class F, class A, class B, detail::if_array<A> = 0, detail::if_array<B> = 0>
auto map(F &&f, A &&a, B &&b, place at = place::here()) {
    return detail::mapped(at, f, detail::settled(static_cast<A &&>(a), at), detail::settled(static_cast<B &&>(b), at));
}
template <class F, class A, class B, class C, detail::if_array<A> = 0, detail::if_array<B> = 0, detail::if_array<C> = 0>
auto map(F &&f, A &&a, B &&b, C &&c, place at = place::here()) {
    return detail::mapped(at, f, detail::settled(static_cast<A &&>(a), at), detail::settled(static_cast<B &&>(b), at),
                          detail::settled(static_cast<C &&>(c), at));
}
/// Of more than three arrays. Failures of `map` itself, as shapes that do not broadcast, name no line then.
template <class F, class A, class B, class C, class D, class... E, detail::if_array<A> = 0, detail::if_array<B> = 0, detail::if_array<C> = 0, detail::if_array<D> = 0>
auto map(F &&f, A &&a, B &&b, C &&c, D &&d, E &&...e) {
    const place at;
    return detail::mapped(at, f, detail::settled(static_cast<A &&>(a), at), detail::settled(static_cast<B &&>(b), at),
                          detail::settled(static_cast<C &&>(c), at), detail::settled(static_cast<D &&>(d), at),
                          detail::settled(static_cast<E &&>(e), at)...);
}

/// All elements of `a` (along one axis) folded with f, starting from `identity`. `f` must be associative and take and return
/// values of one type. Functions that are one operation, as `[](auto x, auto y) { return x + y; }`, run as its reduction;
/// others as a tree of whole-array operations.
template <class F, class S, class T> array<T> reduce(F &&f, S identity, const array<T> &a, int axis, place at = place::here()) {
    const shape extents = a.extents(at);
    const int counted = detail::counted_axis(axis, extents.rank(), at);
    shape kept;
    for (int d = 0; d < extents.rank(); ++d) {
        if (d != counted) kept.push_back(extents[d], at);
    }
    const detail::beside here(a.handle(), at);
    const array<T> start = full<T>(kept, detail::convert_scalar<T>(identity, at), at);
    if (extents[counted] == 0) return start;
    const auto part = [&](const array<T> &from, std::int64_t first, std::int64_t stop, std::int64_t step) {
        bh_array *handle = nullptr;
        detail::check((bh_slice)(&handle, from.handle(), counted, first, stop, step), at);
        return detail::wrapped<T>(handle);
    };
    const auto only = [&](const array<T> &from, std::int64_t position) {
        bh_array *handle = nullptr;
        detail::check((bh_index)(&handle, from.handle(), counted, position), at);
        return detail::wrapped<T>(handle);
    };
    // One element shows which operation it is.
    const array<T> sample = full<T>(shape{}, detail::convert_scalar<T>(identity, at), at);
    int fold = 0;
    const auto shown = f(detail::leaf(sample, 1), detail::leaf(sample, 2));
    if constexpr (std::is_same_v<std::decay_t<decltype(shown)>, traced<T>>) fold = detail::reduction_of(shown.opcode());
    if (fold != 0) {
        return detail::combined(f, start, detail::wrapped<T>(detail::fold(fold, a.handle(), counted, dropdims, at)), at);
    }
    array<T> now = a;
    // Elements that had no partner, outermost last; they come after all others.
    array<T> left[64];
    int left_count = 0;
    for (std::int64_t count = extents[counted]; count > 1; count /= 2) {
        if (count % 2 == 1) left[left_count++] = only(now, count - 1);
        const std::int64_t paired = count / 2 * 2;
        now = detail::combined(f, part(now, 0, paired, 2), part(now, 1, paired, 2), at);
    }
    array<T> result = detail::combined(f, start, only(now, 0), at);
    while (left_count > 0) result = detail::combined(f, result, left[--left_count], at);
    return result;
}
template <class F, class S, class T> array<T> reduce(F &&f, S identity, const array<T> &a, place at = place::here()) {
    return reduce(f, identity, a.flatten(at), 0, at);
}

} // namespace bh
