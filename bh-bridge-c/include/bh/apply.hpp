// Recording of one operation: which type it is computed in, and its operands as the C interface takes them.
#pragma once

#include "operand.hpp"

#include <algorithm>

namespace bh {

/// Whether a reduction leaves axes of extent 1 in place of those folded.
enum class keep : bool { no, yes };
inline constexpr keep dropdims = keep::no, keepdims = keep::yes;

/// Axes of a reduction: one, several, or all (the default). Negative ones count from the end. `keepdims` alone stands for all
/// axes, kept with extent 1.
class axes {
    int list_[max_rank] = {};
    int count_ = -1;
    bool kept_ = false;

public:
    axes() noexcept = default;
    axes(keep kept) noexcept : kept_(kept == keep::yes) {}
    axes(int axis) noexcept : count_(1) { list_[0] = axis; }
    axes(std::initializer_list<int> list, place at = place::here()) : count_(0) {
        for (int axis : list) {
            if (count_ == max_rank) detail::fail(BH_STATUS_ARGUMENT, "more than 16 axes are given", at);
            list_[count_++] = axis;
        }
    }
    bool all() const noexcept { return count_ < 0; }
    bool kept() const noexcept { return kept_; }
    const int *begin() const noexcept { return list_; }
    const int *end() const noexcept { return list_ + (count_ < 0 ? 0 : count_); }
};

namespace detail {

/// The common type of operands.
template <class... A> constexpr int promoted() {
    int common = -1;
    ((common = info<A>::weak ? common : common < 0 ? info<A>::code : promote(common, info<A>::code)), ...);
    if (common < 0) common = BH_TYPE_BOOL;
    ((common = info<A>::weak ? promote_scalar(common, info<A>::code) : common), ...);
    return common;
}

/// How the types of an operation relate; see the documentation of each function.
enum class rule { same, test, absolute, part, quotient, rounding, logical };

constexpr bool in_set(unsigned set, int code) { return (set >> code & 1) != 0; }

/// The type that an operation on the set of types `set` computes in; -1 if there is none.
constexpr int computed(rule r, unsigned set, int common) {
    if (r == rule::logical) return BH_TYPE_BOOL;
    if (r == rule::quotient && kind_of(common) < 2) return BH_TYPE_F64;
    if (in_set(set, common)) return common;
    // Functions of real numbers take integers as the floating-point type that NumPy would take.
    if (kind_of(common) < 2 && in_set(set, BH_TYPE_F64) && !in_set(set, BH_TYPE_I64)) return real_of(common);
    return -1;
}

/// An operand as a handle of element type T; a conversion makes a temporary array.
template <class T> class source {
    const bh_array *handle_ = nullptr;
    owner temporary_;

    void convert(const bh_array *handle, int from, place at) {
        handle_ = handle;
        if (from == code<T>) return;
        bh_array *converted = nullptr;
        note(at);
        check((bh_cast)(&converted, handle, code<T>), at);
        note_converted(converted, handle, at);
        temporary_ = owner(converted);
        handle_ = converted;
    }

public:
    template <class U> source(const array<U> &a, place at) { convert(a.handle(), code<U>, at); }
    template <class U, bool Traced> source(const operand<U, Traced> &a, place at) {
        if (a.is_number()) {
            handle_ = operand_of(convert_scalar<T>(a.value, at));
        } else {
            convert(a.handle, code<U>, at);
        }
    }
    template <class S, class = std::enable_if_t<is_scalar<S>>>
    source(S number, place at) : handle_(operand_of(convert_scalar<T>(number, at))) {}

    const bh_array *get() const noexcept { return handle_; }
};

/// T, where it is not to be deduced.
template <class T> struct same { using type = T; };

inline bh_array *record(int opcode, int param, int dtype, std::size_t count, const bh_array *const *inputs, place at) {
    bh_array *out = nullptr;
    note(at);
    check((bh_op_new)(&out, static_cast<bh_opcode>(opcode), static_cast<std::uint16_t>(param), dtype, count, inputs), at);
    if (writer *program = writer::current()) program->operation(opcode, param, out, count, inputs, at);
    return out;
}

inline void record_into(bh_array *out, int opcode, int param, std::size_t count, const bh_array *const *inputs, place at) {
    note(at);
    check((bh_op)(out, static_cast<bh_opcode>(opcode), static_cast<std::uint16_t>(param), count, inputs), at);
}

/// The C++ type of element type `Code`; of several with one code, the one that an operand has.
template <int Code, class... A> struct element;
template <int Code> struct element<Code> { using type = typename type_of<Code>::type; };
template <int Code, class T, class... A> struct element<Code, array<T>, A...> {
    using type = typename std::conditional_t<code<T> == Code, std::enable_if<true, T>, element<Code, A...>>::type;
};
template <int Code, class T, bool Traced, class... A>
struct element<Code, operand<T, Traced>, A...> : element<Code, array<T>, A...> {};
template <int Code, class T, class... A> struct element<Code, traced<T>, A...> : element<Code, array<T>, A...> {};
template <int Code, class S, class... A> struct element<Code, S, A...> : element<Code, A...> {};
template <int Code, class... A> using element_t = typename element<Code, A...>::type;

/// An array, or a traced value if an operand is one.
template <class T, class... A>
using result_of = std::conditional_t<(info<A>::traced || ...), traced<T>, array<T>>;

template <class A> int trace_leaf(const A &) { return 0; }
template <class T> int trace_leaf(const operand<T, true> &value) { return value.leaf; }

/// Wraps a new handle as the result of an operation; traced results remember which operation on which leaves they are.
template <class T, class... A> result_of<T, A...> wrap(int opcode, bh_array *handle, const A &...a) {
    array<T> made = wrapped<T>(handle);
    if constexpr ((info<A>::traced || ...)) {
        int product = sizeof...(A) == 2 ? 1 : 0;
        ((product *= trace_leaf(a)), ...);
        // The product of the numbers of both parameters.
        return traced<T>(static_cast<array<T> &&>(made), product == 2 ? opcode : 0);
    } else {
        return made;
    }
}

/// An operand itself as a result.
template <class T, bool Traced> auto keep_as_is(const operand<T, Traced> &a) {
    bh_array *handle = nullptr;
    if (a.dying) {
        handle = *a.dying;
        *a.dying = nullptr;
    } else if (a.handle) {
        check((bh_retain)(&handle, a.handle), a.at);
        note_same(handle, a.handle);
    }
    return wrap<T>(0, handle, a);
}

/// A program has no place for arrays beside its own registers.
template <class... A> void refuse_arrays() {
    if constexpr ((info<A>::traced || ...) && !((info<A>::traced || info<A>::weak) && ...)) {
        if (writer *program = writer::current()) program->refuse();
    }
}

/// As `apply`, with a parameter of the operation.
template <int Opcode, rule Rule, unsigned Set, class... A> auto apply_with(place at, int param, const A &...a) {
    constexpr int common = promoted<A...>();
    constexpr int compute = computed(Rule, Set, common);
    static_assert(compute >= 0, "this operation does not exist for these element types: see its documentation, or convert with bh::cast<T>");
    if constexpr (Rule == rule::rounding && kind_of(common) < 2) {
        // Whole numbers are rounded already.
        return keep_as_is(a...);
    } else if constexpr (compute >= 0) {
        using C = element_t<compute, A...>;
        constexpr bool real = (Rule == rule::absolute || Rule == rule::part) && is_complex(compute);
        using R = element_t<Rule == rule::test ? int(BH_TYPE_BOOL) : real ? real_of(compute) : compute, A...>;
        refuse_arrays<A...>();
        const source<C> sources[] = {source<C>(a, at)...};
        const bh_array *inputs[sizeof...(A)];
        for (std::size_t i = 0; i < sizeof...(A); ++i) inputs[i] = sources[i].get();
        bh_array *made = record(Opcode, param, -1, sizeof...(A), inputs, at);
        (spend(a), ...);
        return wrap<R>(Opcode, made, a...);
    }
}

/// Records an elementwise operation of the table on operands and numbers, and returns its result.
template <int Opcode, rule Rule, unsigned Set, class... A> auto apply(place at, const A &...a) {
    return apply_with<Opcode, Rule, Set>(at, 0, a...);
}

/// The negative; exact, as 0 - x would lose the sign of zero.
template <class T, bool Traced> auto negated(const operand<T, Traced> &a) {
    if constexpr (is_complex(code<T>)) {
        using real = typename T::value_type;
        return apply<BH_OP_SUBTRACT, rule::same, 0x1ffe>(a.at, T(-real(0), -real(0)), a);
    } else if constexpr (kind_of(code<T>) == 2) {
        return apply<BH_OP_SUBTRACT, rule::same, 0x1ffe>(a.at, -T(0), a);
    } else {
        return apply<BH_OP_SUBTRACT, rule::same, 0x1ffe>(a.at, T(0), a);
    }
}

/// An axis counted from the front.
inline int counted_axis(int axis, int rank, place at) {
    const int counted = axis < 0 ? axis + rank : axis;
    if (counted < 0 || counted >= rank) {
        fail(BH_STATUS_ARGUMENT, "axis " + std::to_string(axis) + " does not exist in an array of rank " + std::to_string(rank), at);
    }
    return counted;
}

/// A bit mask of axes.
inline int axis_mask(const axes &list, int rank, place at) {
    if (list.all()) return (1 << rank) - 1;
    int mask = 0;
    for (int axis : list) {
        const int dim = axis < 0 ? axis + rank : axis;
        if (dim < 0 || dim >= rank) {
            fail(BH_STATUS_ARGUMENT,
                 "axis " + std::to_string(axis) + " does not exist in an array of rank " + std::to_string(rank), at);
        }
        mask |= 1 << dim;
    }
    return mask;
}

inline int rank_of(const bh_array *array, place at) {
    std::int32_t rank = 0;
    check((bh_rank)(&rank, array), at);
    return rank;
}

inline bh_dtype dtype_of(const bh_array *array, place at) {
    bh_dtype dtype = 0;
    check((bh_dtype_of)(&dtype, array), at);
    return dtype;
}

/// Records a reduction, with a second input (a mask, or a factor) if it takes one, and returns its result.
inline bh_array *fold(int opcode, const bh_array *a, const axes &list, keep kept, place at, const bh_array *second = nullptr) {
    const int rank = second == nullptr ? rank_of(a, at) : std::max(rank_of(a, at), rank_of(second, at));
    const bool keeps = kept == keep::yes || list.kept();
    const int mask = axis_mask(list, rank, at);
    // A reduction over no axis is a copy.
    const bool none_at_all = mask == 0 && rank > 0 && second == nullptr;
    const bh_array *inputs[] = {a, second};
    const int count = second == nullptr ? 1 : 2;
    owner result(record(none_at_all ? int(BH_OP_COPY) : opcode, mask, none_at_all ? dtype_of(a, at) : -1, count, inputs, at));
    for (int dim = 0; keeps && dim < rank; ++dim) {
        if ((mask >> dim & 1) == 0) continue;
        bh_array *next = nullptr;
        check((bh_new_axis)(&next, result.get(), dim), at);
        result = owner(next);
    }
    return result.give();
}

template <int Opcode, unsigned Set, class T>
array<T> reduction(place at, const operand<T> &a, const axes &list, keep kept, const bh_array *second = nullptr) {
    static_assert(in_set(Set, code<T>), "this reduction does not exist for this element type: see its documentation");
    bh_array *made = fold(Opcode, a.handle, list, kept, at, second);
    a.spend();
    return wrapped<T>(made);
}

template <int Opcode, unsigned Set, class T> array<T> accumulation(place at, const operand<T> &a, int axis) {
    static_assert(in_set(Set, code<T>), "this operation does not exist for this element type: see its documentation");
    bh_array *made = record(Opcode, axis_mask(axis, rank_of(a.handle, at), at), -1, 1, &a.handle, at);
    a.spend();
    return wrapped<T>(made);
}

} // namespace detail
} // namespace bh
