// Derivatives of functions of arrays.
#pragma once

#include "array.hpp"

#include <tuple>
#include <utility>

namespace bh {

namespace detail {

/// A stretch of the program that is differentiated. Its scope ends it, unless its gradients were taken before.
class stretch {
    bh_stretch *handle_ = nullptr;

public:
    stretch(std::size_t count, const bh_array *const *arguments, std::uint64_t memory, std::uint64_t disk, place at) {
        check((bh_gradient_begin)(&handle_, count, arguments, memory, disk), at);
    }
    stretch(const stretch &) = delete;
    ~stretch() {
        if (handle_) (bh_gradient_cancel)(handle_);
    }
    void take(bh_array **gradients, const bh_array *result, place at) {
        bh_stretch *const ended = handle_;
        handle_ = nullptr;
        check((bh_gradient)(gradients, ended, result), at);
    }
};

} // namespace detail

/// A function with its gradient, as `bh::grad` makes it.
template <class F> class gradient {
    F function_;
    std::uint64_t memory_, disk_;
    place at_;

    template <class... T, std::size_t... I>
    auto take(std::index_sequence<I...>, const array<T> &...arguments) const {
        std::tuple<array<T>...> own{arguments.copy(at_)...};
        const bh_array *const handles[] = {std::get<I>(own).handle()...};
        detail::stretch stretch(sizeof...(T), handles, memory_, disk_, at_);
        auto value = function_(std::get<I>(own)...);
        bh_array *found[sizeof...(T)] = {};
        stretch.take(found, value.handle(), at_);
        return std::make_pair(std::move(value), std::tuple<array<T>...>{detail::wrapped<T>(found[I])...});
    }

public:
    gradient(F function, std::uint64_t memory, std::uint64_t disk, place at)
        : function_(std::move(function)), memory_(memory), disk_(disk), at_(at) {}

    /// The value of the function, and a tuple of its gradients by the arguments.
    template <class... T> auto with_value(const array<T> &...arguments) const {
        static_assert(sizeof...(T) > 0, "there is nothing to differentiate by");
        static_assert((... && (detail::kind_of(detail::code<T>) > 1)),
                      "derivatives are taken by floating-point and complex numbers");
        return take(std::index_sequence_for<T...>{}, arguments...);
    }

    /// The gradient by the only argument, or a tuple of those by all.
    template <class... T> auto operator()(const array<T> &...arguments) const {
        auto gradients = with_value(arguments...).second;
        if constexpr (sizeof...(T) == 1) {
            return std::get<0>(std::move(gradients));
        } else {
            return gradients;
        }
    }
};

/// The gradient of a function of arrays that returns an array of one real number. It may have loops and branches, and write into
/// its arguments, which are copies. It may not read elements that depend on them. `memory`: the most bytes that the derivative may
/// take, or 0 for no bound; values that do not fit are computed again. `disk`: how many bytes of states of the program may go to a
/// temporary file before that.
///
///     auto slope = bh::grad([](bh::array<double> u) { return bh::sum(u * u); });
///     bh::array<double> twice = slope(bh::array<double>{1, 2, 3});
template <class F> gradient<F> grad(F function, std::uint64_t memory = 0, std::uint64_t disk = 0, place at = place::here()) {
    return gradient<F>(std::move(function), memory, disk, at);
}

} // namespace bh
