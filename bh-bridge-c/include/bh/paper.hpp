// The spelling of the Bohrium papers: multi_array, _(start, end, skip), and array(values) to write elements.
//
// These names are global, as in the papers' programs; include bh.hpp alone to go without them.
#pragma once

#include "../bh.hpp"

/// Every `skip`-th element from `start` to, not including, `end`; an `end` of 0 after a later start is the end of the array.
inline bh::slice _(std::int64_t start, std::int64_t end, std::int64_t skip = 1) {
    if (end == 0 && start >= 0) return bh::slice(start, bh::none, skip);
    return bh::slice(start, end, skip);
}

/// An array of the papers: `=` makes an alias, `a(values)` writes elements, and each `[...]` cuts the next axis.
template <class T> class multi_array {
    bh::array<T> array_;
    /// The axis that the next `[...]` cuts.
    int next_ = 0;

    /// An operand of an operator.
    struct value {
        bh::detail::operand<T> inner;
        value(const multi_array &a, bh::place at = bh::place::here()) : inner(a.array_, at) {}
        value(multi_array &&a, bh::place at = bh::place::here()) : inner(static_cast<bh::array<T> &&>(a.array_), at) {}
        template <class S, std::enable_if_t<bh::detail::is_scalar<S>, int> = 0>
        value(S number, bh::place at = bh::place::here()) : inner(static_cast<T>(number), at) {}
    };

    multi_array(bh::array<T> &&array, int next) : array_(static_cast<bh::array<T> &&>(array)), next_(next) {}

public:
    using value_type = T;

    multi_array() = default;
    multi_array(const bh::array<T> &array) : array_(array) {}
    multi_array(bh::array<T> &&array) : array_(static_cast<bh::array<T> &&>(array)) {}
    multi_array(const multi_array &other) : array_(other.array_) {}
    multi_array &operator=(const multi_array &other) {
        array_ = other.array_;
        next_ = 0;
        return *this;
    }
    /// Zeros, by sizes.
    template <class... Sizes, class = std::enable_if_t<(sizeof...(Sizes) > 0) && (std::is_integral_v<Sizes> && ...)>>
    explicit multi_array(Sizes... sizes) : array_(sizes...) {}

    const bh::array<T> &array() const noexcept { return array_; }
    operator const bh::array<T> &() const noexcept { return array_; }

    multi_array operator[](const bh::slice &range) const {
        bh_array *handle = nullptr;
        bh::detail::check((bh_slice)(&handle, array_.handle(), next_, range.start, range.stop, range.step), bh::place());
        return multi_array(bh::detail::wrapped<T>(handle), next_ + 1);
    }
    /// Writes the elements.
    multi_array &operator()(value values) {
        array_.fill(values.inner);
        return *this;
    }

// Operators, as those of bh::array give bh::array, of which `[...]` cuts the first axis.
#define BH_PAPER_BINARY(symbol, function)                                                                                  \
    friend auto operator symbol(value a, value b) { return wrap(bh::function(a.inner, b.inner, a.inner.at)); }
    BH_PAPER_BINARY(+, add)
    BH_PAPER_BINARY(-, subtract)
    BH_PAPER_BINARY(*, multiply)
    BH_PAPER_BINARY(/, divide)
    BH_PAPER_BINARY(<, less)
    BH_PAPER_BINARY(<=, less_equal)
    BH_PAPER_BINARY(>, greater)
    BH_PAPER_BINARY(>=, greater_equal)
    BH_PAPER_BINARY(==, equal)
    BH_PAPER_BINARY(!=, not_equal)
#undef BH_PAPER_BINARY
    friend multi_array operator-(value a) { return wrap(bh::negative(a.inner, a.inner.at)); }

#define BH_PAPER_FUNCTION(name)                                                                                            \
    friend auto name(const multi_array &a, bh::place at = bh::place::here()) { return wrap(bh::name(a.array_, at)); }      \
    friend auto name(multi_array &&a, bh::place at = bh::place::here()) {                                                  \
        return wrap(bh::name(static_cast<bh::array<T> &&>(a.array_), at));                                                 \
    }
#define BH_PAPER_REDUCTION(name)                                                                                           \
    friend auto name(const multi_array &a, bh::place at = bh::place::here()) {                                             \
        return wrap(bh::name(a.array_, {}, bh::dropdims, at));                                                             \
    }                                                                                                                      \
    friend auto name(multi_array &&a, bh::place at = bh::place::here()) {                                                  \
        return wrap(bh::name(static_cast<bh::array<T> &&>(a.array_), {}, bh::dropdims, at));                               \
    }
    BH_PAPER_FUNCTION(abs)
    BH_PAPER_FUNCTION(sqrt)
    BH_PAPER_FUNCTION(exp)
    BH_PAPER_FUNCTION(log)
    BH_PAPER_FUNCTION(sin)
    BH_PAPER_FUNCTION(cos)
    BH_PAPER_FUNCTION(tanh)
    BH_PAPER_FUNCTION(copy)
    BH_PAPER_REDUCTION(sum)
    BH_PAPER_REDUCTION(prod)
    BH_PAPER_REDUCTION(max)
    BH_PAPER_REDUCTION(min)
#undef BH_PAPER_FUNCTION
#undef BH_PAPER_REDUCTION
    friend T scalar(const multi_array &a, bh::place at = bh::place::here()) { return bh::scalar(a.array_, at); }

private:
    template <class R> static multi_array<R> wrap(bh::array<R> &&array) { return multi_array<R>(static_cast<bh::array<R> &&>(array)); }
};
