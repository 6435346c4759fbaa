// Operators on operands of different types, and those with one operand.
#pragma once

#include "operations.hpp"

namespace bh {
namespace detail {

/// Is the operator of these operands one of the friends of bh::array?
template <class A, class B> struct is_friend : std::false_type {};
template <class T> struct is_friend<array<T>, array<T>> : std::true_type {};
template <class T, class S> struct is_friend<array<T>, S> : std::bool_constant<fits<S, T>> {};
template <class S, class T> struct is_friend<S, array<T>> : std::bool_constant<fits<S, T>> {};
template <class T, class U> struct is_friend<array<T>, array<U>> : std::false_type {};

template <class A, class B> using if_mixed = std::enable_if_t<are_operands<A, B> && !is_friend<A, B>::value, int>;
template <class A> using if_array = std::enable_if_t<info<A>::is && !info<A>::weak, int>;

} // namespace detail

#define BH_BINARY(symbol, function)                                                                                        \
    template <class A, class B, detail::if_mixed<A, B> = 0> auto operator symbol(const A &a, const B &b) {                 \
        return bh::function(a, b, place());                                                                                    \
    }
BH_BINARY(+, add)
BH_BINARY(-, subtract)
BH_BINARY(*, multiply)
BH_BINARY(/, divide)
BH_BINARY(%, remainder)
BH_BINARY(&, bitwise_and)
BH_BINARY(|, bitwise_or)
BH_BINARY(^, bitwise_xor)
BH_BINARY(<<, left_shift)
BH_BINARY(>>, right_shift)
BH_BINARY(==, equal)
BH_BINARY(!=, not_equal)
BH_BINARY(<, less)
BH_BINARY(<=, less_equal)
BH_BINARY(>, greater)
BH_BINARY(>=, greater_equal)
#undef BH_BINARY

#define BH_LOGICAL(symbol, function)                                                                                       \
    template <class A, class B, detail::if_operands<A, B> = 0> auto operator symbol(const A &a, const B &b) {              \
        return bh::function(a, b, place());                                                                                    \
    }
BH_LOGICAL(&&, logical_and)
BH_LOGICAL(||, logical_or)
#undef BH_LOGICAL

template <class A, detail::if_array<A> = 0> auto operator!(const A &a) { return bh::logical_not(a, place()); }
template <class A, detail::if_array<A> = 0> auto operator~(const A &a) { return bh::invert(a, place()); }
template <class A, detail::if_array<A> = 0> A operator+(const A &a) { return a; }

/// The negative; exact, as 0 - x would lose the sign of zero.
template <class A, detail::if_array<A> = 0> auto negative(const A &a, place at = place::here()) {
    using T = typename A::value_type;
    if constexpr (detail::is_complex(detail::code<T>)) {
        using real = typename T::value_type;
        return bh::subtract(T(-real(0), -real(0)), a, at);
    } else if constexpr (detail::kind_of(detail::code<T>) == 2) {
        return subtract(-T(0), a, at);
    } else {
        return bh::subtract(T(0), a, at);
    }
}
template <class A, detail::if_array<A> = 0> auto operator-(const A &a) { return negative(a, place()); }

/// Power. Whole exponents from 2 to 5 given as a number become products.
template <class A, class B, detail::if_operands<A, B> = 0> auto pow(const A &a, const B &b, place at = place::here()) {
    if constexpr (detail::is_scalar<B> && !std::is_same_v<B, bool> && !detail::is_complex(detail::code<B>)) {
        constexpr int common = detail::promoted<A, B>();
        if constexpr (common == detail::info<A>::code) {
            if (b >= B(2) && b <= B(5) && b == static_cast<B>(static_cast<int>(b))) return bh::powi(a, static_cast<int>(b), at);
        }
    }
    return bh::power(a, b, at);
}

} // namespace bh
