// Traced values: what the parameters of a function given to bh::map stand for.
#pragma once

#include "array.hpp"

namespace bh {

/// "One element", while a function is traced. Behaves like a number: changing one changes no other and no array.
/// It has no truth value: branch with `bh::where(condition, a, b)`.
template <class T> class traced {
    array<T> value_;
    /// The operation on two different parameters that made this; 0 if something else did.
    int opcode_ = 0;
    /// Which parameter this is, from 1; 0 for results.
    int leaf_ = 0;

public:
    using value_type = T;

    explicit traced(array<T> &&value, int opcode = 0, int leaf = 0) noexcept
        : value_(static_cast<array<T> &&>(value)), opcode_(opcode), leaf_(leaf) {}

    const array<T> &value() const noexcept { return value_; }
    int opcode() const noexcept { return opcode_; }
    int leaf() const noexcept { return leaf_; }

    explicit operator bool() const {
        static_assert(detail::dependent_false<T>::value,
                      "a traced value has no truth value while the function is traced: use bh::where(condition, a, b) "
                      "instead of if, ?:, && or ||");
        return false;
    }

// `x += y` is `x = x + y`, and must not reach the array that x was taken from.
#define BH_COMPOUND(symbol, plain)                                                                                         \
    template <class B> traced &operator symbol(const B &b) {                                                               \
        auto result = *this plain b;                                                                                       \
        static_assert(detail::kind_of(detail::code<typename decltype(result)::value_type>) <= detail::kind_of(detail::code<T>), \
                      "the result does not fit the variable on the left side");                                            \
        if constexpr (std::is_same_v<decltype(result), traced>) {                                                          \
            *this = static_cast<traced &&>(result);                                                                        \
        } else {                                                                                                           \
            *this = traced(array<T>(result.value()));                                                                      \
        }                                                                                                                  \
        return *this;                                                                                                      \
    }
    BH_COMPOUND(+=, +)
    BH_COMPOUND(-=, -)
    BH_COMPOUND(*=, *)
    BH_COMPOUND(/=, /)
    BH_COMPOUND(%=, %)
    BH_COMPOUND(&=, &)
    BH_COMPOUND(|=, |)
    BH_COMPOUND(^=, ^)
#undef BH_COMPOUND
};

} // namespace bh
