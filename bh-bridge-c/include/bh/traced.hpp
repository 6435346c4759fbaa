// Traced values: what the parameters of a function given to bh::map stand for.
#pragma once

#include "array.hpp"

namespace bh {

/// "One element", while a function is traced. Behaves like a number: changing one changes no other and no array.
/// It has no truth value: branch with `bh::where(condition, a, b)`.
template <class T> class traced : detail::operators<T, true> {
    template <class, bool> friend struct detail::operand;

    array<T> value_;
    /// The operation on two different parameters that made this; 0 if something else did.
    int opcode_ = 0;
    /// Which parameter this is, from 1; 0 for results.
    int leaf_ = 0;

    using self = detail::operand<T, true>;

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
#define BH_COMPOUND(symbol, ...)                                                                                           \
    traced &operator symbol##=(self b) { return become(detail::apply<__VA_ARGS__>(b.at, self(*this, b.at), b)); }          \
    template <class B, std::enable_if_t<detail::are_operands<traced, B> && !std::is_convertible_v<B, self>, int> = 0>      \
    traced &operator symbol##=(B &&b) {                                                                                    \
        const place at;                                                                                                    \
        return become(detail::apply<__VA_ARGS__>(at, self(*this, at), detail::take(static_cast<B &&>(b), at)));            \
    }
    BH_ARITHMETIC(BH_COMPOUND)
#undef BH_COMPOUND

private:
    template <class R> traced &become(traced<R> &&result) {
        static_assert(detail::kind_of(detail::code<R>) <= detail::kind_of(detail::code<T>),
                      "the result does not fit the variable on the left side");
        if constexpr (std::is_same_v<R, T>) {
            *this = static_cast<traced &&>(result);
        } else {
            *this = traced(array<T>(result.value()));
        }
        return *this;
    }
};

} // namespace bh
