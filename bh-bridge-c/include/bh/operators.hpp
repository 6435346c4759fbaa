// The operators, as friends of arrays and traced values.
#pragma once

#include "apply.hpp"

namespace bh {
namespace detail {

/// Which of two operand classes has the operators between them; no two classes have the same number.
template <class A> constexpr int seniority() {
    using T = typename info<A>::type;
    return (info<A>::traced ? 64 : 0) + 2 * info<A>::code + (std::is_same_v<T, typename type_of<info<A>::code>::type> ? 0 : 1);
}

/// Is an operator between `operand<T, Traced>` and B of two element types, with the operand's class to do it?
template <class T, bool Traced, class B> constexpr bool is_mixed() {
    using P = plain<B>;
    if constexpr (!info<P>::is) {
        return false;
    } else if constexpr (info<P>::weak) {
        return !fits<P, T>;
    } else {
        return seniority<typename operand<T, Traced>::home>() < seniority<P>();
    }
}
template <class T, bool Traced, class B> using if_mixed = std::enable_if_t<is_mixed<T, Traced, B>(), int>;

/// The right side of `&&` and `||`: an array, or if `Traced` a traced value, as truth values.
template <bool Traced> struct truth {
    source<bool> test;
    bh_array **dying;
    place at;
    int leaf;

    template <class A, std::enable_if_t<are_operands<A> && (Traced || !info<plain<A>>::traced), int> = 0>
    truth(A &&a, place at = place::here()) : truth(detail::take(static_cast<A &&>(a), at), 0) {}

private:
    template <class U, bool T> truth(const operand<U, T> &a, int) : test(a, a.at), dying(a.dying), at(a.at), leaf(a.leaf) {}
};

/// `a && b` and `a || b`. Their left side is taken as it is, or the built-in operators, which want a bool, would be as good.
template <int Opcode, class T, bool Traced> auto connect(const operand<T, Traced> &a, const truth<Traced> &b) {
    const source<bool> test(a, b.at);
    const bh_array *inputs[] = {test.get(), b.test.get()};
    bh_array *made = record(Opcode, 0, -1, 2, inputs, b.at);
    a.spend();
    drop(b.dying);
    // bool, as something that is looked up when the class is complete.
    using R = std::conditional_t<sizeof(T) != 0, bool, T>;
    if constexpr (Traced) {
        return traced<R>(wrapped<R>(made), a.leaf * b.leaf == 2 ? Opcode : 0);
    } else {
        return wrapped<R>(made);
    }
}

/// The types of elements that an arithmetic operator can change in place: quotients of whole numbers are none.
constexpr unsigned in_place(rule r, unsigned set) { return r == rule::quotient ? set & 0x1e00 : set; }

// The arithmetic operators, with the types of elements that they are for: operators between values, and compound ones of
// arrays, selections and traced values follow from this list. Ends with bh.hpp.
#define BH_ARITHMETIC(define)                                                                                              \
    define(+, BH_OP_ADD, detail::rule::same, 0x1fff)                                                                       \
    define(-, BH_OP_SUBTRACT, detail::rule::same, 0x1ffe)                                                                  \
    define(*, BH_OP_MULTIPLY, detail::rule::same, 0x1fff)                                                                  \
    define(/, BH_OP_DIVIDE, detail::rule::quotient, 0x1ffe)                                                                \
    define(%, BH_OP_REMAINDER, detail::rule::same, 0x7fe)                                                                  \
    define(&, BH_OP_BITWISE_AND, detail::rule::same, 0x1ff)                                                                \
    define(|, BH_OP_BITWISE_OR, detail::rule::same, 0x1ff)                                                                 \
    define(^, BH_OP_BITWISE_XOR, detail::rule::same, 0x1ff)                                                                \
    define(<<, BH_OP_LEFT_SHIFT, detail::rule::same, 0x1fe)                                                                \
    define(>>, BH_OP_RIGHT_SHIFT, detail::rule::same, 0x1fe)

/// Operators of a class: hidden friends, found for its objects alone. Their operands are converted as they are called, so
/// that the place of the conversion is the place of the operator.
template <class T, bool Traced> struct operators {
    using self = operand<T, Traced>;

#define BH_BINARY(symbol, ...)                                                                                             \
    friend auto operator symbol(self a, self b) { return apply<__VA_ARGS__>(a.at, a, b); }                                 \
    template <class B, if_mixed<T, Traced, B> = 0> friend auto operator symbol(self a, B &&b) {                            \
        return apply<__VA_ARGS__>(a.at, a, take(static_cast<B &&>(b), a.at));                                              \
    }                                                                                                                      \
    template <class B, if_mixed<T, Traced, B> = 0> friend auto operator symbol(B &&b, self a) {                            \
        return apply<__VA_ARGS__>(a.at, take(static_cast<B &&>(b), a.at), a);                                              \
    }
    BH_ARITHMETIC(BH_BINARY)
    BH_BINARY(==, BH_OP_EQUAL, rule::test, 0x1fff)
    BH_BINARY(!=, BH_OP_NOT_EQUAL, rule::test, 0x1fff)
    BH_BINARY(<, BH_OP_LESS, rule::test, 0x7ff)
    BH_BINARY(<=, BH_OP_LESS_EQUAL, rule::test, 0x7ff)
    BH_BINARY(>, BH_OP_GREATER, rule::test, 0x7ff)
    BH_BINARY(>=, BH_OP_GREATER_EQUAL, rule::test, 0x7ff)
#undef BH_BINARY

    using home = typename std::conditional_t<Traced, traced<T>, array<T>>;

#define BH_LOGICAL(symbol, opcode)                                                                                         \
    friend auto operator symbol(const home &a, truth<Traced> b) { return connect<opcode>(self(a, b.at), b); }              \
    friend auto operator symbol(home &&a, truth<Traced> b) {                                                               \
        return connect<opcode>(self(static_cast<home &&>(a), b.at), b);                                                    \
    }                                                                                                                      \
    template <class S, std::enable_if_t<is_scalar<S>, int> = 0> friend auto operator symbol(const home &a, S b) {          \
        return apply<opcode, rule::logical, 0x1>(place(), self(a, place()), b);                                            \
    }                                                                                                                      \
    template <class S, std::enable_if_t<is_scalar<S>, int> = 0> friend auto operator symbol(S a, const home &b) {          \
        return apply<opcode, rule::logical, 0x1>(place(), a, self(b, place()));                                            \
    }                                                                                                                      \
    template <class U, std::enable_if_t<Traced && is_scalar<U>, int> = 0>                                                  \
    friend auto operator symbol(const array<U> &a, const home &b) {                                                        \
        return apply<opcode, rule::logical, 0x1>(place(), operand<U>(a, place()), self(b, place()));                       \
    }
    BH_LOGICAL(&&, BH_OP_LOGICAL_AND)
    BH_LOGICAL(||, BH_OP_LOGICAL_OR)
#undef BH_LOGICAL

    friend auto operator!(const home &a) { return apply<BH_OP_LOGICAL_NOT, rule::logical, 0x1>(place(), self(a, place())); }
    friend auto operator!(home &&a) {
        return apply<BH_OP_LOGICAL_NOT, rule::logical, 0x1>(place(), self(static_cast<home &&>(a), place()));
    }
    friend auto operator~(self a) { return apply<BH_OP_INVERT, rule::same, 0x1ff>(a.at, a); }
    friend auto operator+(self a) { return keep_as_is(a); }
    friend auto operator-(self a) { return negated(a); }
};

} // namespace detail
} // namespace bh
