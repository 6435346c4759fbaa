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

/// An array of the papers: `=` makes an alias, `a(values)` writes elements, and each `[...]` cuts the next dimension.
template <class T> class multi_array {
    bh::array<T> array_;
    /// The dimension that the next `[...]` cuts.
    int next_ = 0;

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
        return multi_array(bh::array<T>::from_handle(handle), next_ + 1);
    }
    multi_array &operator()(const bh::detail::operand<T> &values) {
        array_.fill(values);
        return *this;
    }
    multi_array &operator()(const multi_array &values) {
        array_.fill(values.array_);
        return *this;
    }
    multi_array &operator()(T value) {
        array_.fill(value);
        return *this;
    }

// Operators, as conversions to bh::array are not tried by its own.
#define BH_PAPER_BINARY(symbol)                                                                                            \
    friend auto operator symbol(const multi_array &a, const multi_array &b) { return wrap(a.array_ symbol b.array_); }     \
    friend auto operator symbol(const multi_array &a, T b) { return wrap(a.array_ symbol b); }                             \
    friend auto operator symbol(T a, const multi_array &b) { return wrap(a symbol b.array_); }
    BH_PAPER_BINARY(+)
    BH_PAPER_BINARY(-)
    BH_PAPER_BINARY(*)
    BH_PAPER_BINARY(/)
    BH_PAPER_BINARY(<)
    BH_PAPER_BINARY(<=)
    BH_PAPER_BINARY(>)
    BH_PAPER_BINARY(>=)
    BH_PAPER_BINARY(==)
    BH_PAPER_BINARY(!=)
#undef BH_PAPER_BINARY
    friend multi_array operator-(const multi_array &a) { return wrap(-a.array_); }

#define BH_PAPER_FUNCTION(name)                                                                                            \
    friend auto name(const multi_array &a) { return wrap(bh::name(a.array_)); }
    BH_PAPER_FUNCTION(abs)
    BH_PAPER_FUNCTION(sqrt)
    BH_PAPER_FUNCTION(exp)
    BH_PAPER_FUNCTION(log)
    BH_PAPER_FUNCTION(sin)
    BH_PAPER_FUNCTION(cos)
    BH_PAPER_FUNCTION(tanh)
    BH_PAPER_FUNCTION(sum)
    BH_PAPER_FUNCTION(prod)
    BH_PAPER_FUNCTION(max)
    BH_PAPER_FUNCTION(min)
    BH_PAPER_FUNCTION(copy)
#undef BH_PAPER_FUNCTION
    friend T scalar(const multi_array &a) { return bh::scalar(a.array_); }

private:
    template <class R> static multi_array<R> wrap(bh::array<R> &&array) { return multi_array<R>(static_cast<bh::array<R> &&>(array)); }
};
