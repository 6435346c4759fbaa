// The operands of operations: arrays, traced values and plain numbers, and how long temporary ones live.
#pragma once

#include "writer.hpp"

namespace bh {
namespace detail {

/// A handle of the C interface as an array; its type is not checked.
template <class T> array<T> wrapped(bh_array *handle) noexcept;

template <class T, bool Traced = false> struct operand;

/// The properties of a type as an operand: its element type, whether it is a plain number, whether it is traced.
template <class A> struct info {
    static constexpr bool is = is_scalar<A>, weak = true, traced = false;
    static constexpr int code = detail::code<A>;
    using type = A;
};
template <class T> struct info<array<T>> {
    static constexpr bool is = true, weak = false, traced = false;
    static constexpr int code = detail::code<T>;
    using type = T;
};
template <class T> struct info<selection<T>> : info<array<T>> {};
template <class T> struct info<traced<T>> {
    static constexpr bool is = true, weak = false, traced = true;
    static constexpr int code = detail::code<T>;
    using type = T;
};
template <class T, bool Traced> struct info<operand<T, Traced>> : info<std::conditional_t<Traced, traced<T>, array<T>>> {};

/// An operand of an operator: an array or traced value, or a number that fits its element type, with the line that it was
/// written in. Temporary arrays give their handle back as soon as the operation is recorded, not at the end of the
/// statement: what nobody can ask for any more needs no memory.
template <class T, bool Traced> struct operand {
    /// Null for numbers.
    const bh_array *handle = nullptr;
    /// Where a temporary keeps its handle; null for others.
    bh_array **dying = nullptr;
    T value{};
    place at;
    /// The number of the traced parameter that it is; 0 if none.
    int leaf = 0;

    using home = std::conditional_t<Traced, traced<T>, array<T>>;

    operand(const home &a, place at = place::here()) noexcept : handle(handle_of(a)), at(at), leaf(leaf_of(a)) {}
    operand(home &&a, place at = place::here()) noexcept : handle(handle_of(a)), dying(slot_of(a)), at(at), leaf(leaf_of(a)) {}
    template <class S, std::enable_if_t<std::is_same_v<plain<S>, selection<T>> && !Traced, int> = 0>
    operand(S &&chosen, place at = place::here()) : operand(static_cast<S &&>(chosen).gathered(at), at) {}
    template <class S, std::enable_if_t<fits<S, T>, int> = 0>
    operand(S number, place at = place::here()) : value(convert_scalar<T>(number, at)), at(at), number_(true) {}

    bool is_number() const noexcept { return number_; }
    /// To be called once the operation is recorded.
    void spend() const noexcept { drop(dying); }

private:
    bool number_ = false;

    template <class A> static const bh_array *handle_of(const A &a) noexcept {
        if constexpr (Traced) {
            return a.value().handle();
        } else {
            return a.handle();
        }
    }
    template <class A> static bh_array **slot_of(A &a) noexcept {
        if constexpr (Traced) {
            return &a.value_.handle_;
        } else {
            return &a.handle_;
        }
    }
    template <class A> static int leaf_of(const A &a) noexcept {
        if constexpr (Traced) {
            return a.leaf();
        } else {
            return 0;
        }
    }
};

/// An array of another element type than T, to be written into one of T; `Strict` if only types that fit may be.
template <class T, bool Strict> struct foreign {
    const bh_array *handle;
    bh_array **dying;
    place at;

    template <class A, class U = typename info<plain<A>>::type,
              std::enable_if_t<!info<plain<A>>::weak && !info<plain<A>>::traced && !std::is_same_v<U, T>, int> = 0>
    foreign(A &&a, place at = place::here()) : foreign(operand<U>(static_cast<A &&>(a), at), 0) {
        static_assert(!Strict || kind_of(code<U>) <= kind_of(code<T>),
                      "the result would not fit the elements of the left side: write a = bh::cast<T>(...)");
        static_assert(!is_complex(code<U>) || is_complex(code<T>),
                      "a complex array cannot be written into a real one: use bh::real or bh::imag");
    }

    void spend() const noexcept { drop(dying); }
    /// The array converted.
    template <class R> array<R> as() const {
        bh_array *converted = nullptr;
        (bh_at)(at.file, at.line);
        check((bh_cast)(&converted, handle, code<R>), at);
        spend();
        return wrapped<R>(converted);
    }

private:
    template <class U> foreign(const operand<U> &a, int) noexcept : handle(a.handle), dying(a.dying), at(a.at) {}
};

/// A number, or a row of such, in the braces that make an array.
template <class T> struct cell {
    T value{};
    std::initializer_list<cell> inner;
    bool nested = false;

    template <class S, class = std::enable_if_t<fits<S, T>>> cell(S number) : value(convert_scalar<T>(number, place())) {}
    cell(std::initializer_list<cell> row) : inner(row), nested(true) {}
};

/// Are these operands of one operation, at least one of them an array?
template <class... A> inline constexpr bool are_operands = (info<plain<A>>::is && ...) && (!info<plain<A>>::weak || ...);
template <class... A> using if_operands = std::enable_if_t<are_operands<A...>, int>;
/// Is it an array, or elements chosen from one?
template <class A> using if_array = std::enable_if_t<info<plain<A>>::is && !info<plain<A>>::weak && !info<plain<A>>::traced, int>;
/// The element type of an operand.
template <class A> using element_of = typename info<plain<A>>::type;

/// An argument as an operand, or as the number that it is.
template <class A> auto take(A &&a, [[maybe_unused]] place at) {
    using P = plain<A>;
    if constexpr (info<P>::weak) {
        return a;
    } else {
        return operand<typename info<P>::type, info<P>::traced>(static_cast<A &&>(a), at);
    }
}
template <class T, bool Traced> const operand<T, Traced> &take(const operand<T, Traced> &a, place) { return a; }
template <class T, bool Traced> operand<T, Traced> take(operand<T, Traced> &&a, place) { return a; }
template <class T, bool Traced> const operand<T, Traced> &take(operand<T, Traced> &a, place) { return a; }

/// An array itself, or what was chosen from one as an array of its own.
template <class T> const array<T> &settled(const array<T> &a, place) { return a; }
template <class T> array<T> &&settled(array<T> &&a, place) { return static_cast<array<T> &&>(a); }
template <class T> array<T> settled(const selection<T> &a, place at) { return a.gathered(at); }

/// Passes an argument of type A, settled under a name, on as it came.
template <class A, class T> auto &&pass(const array<T> &a) {
    if constexpr (std::is_lvalue_reference_v<A>) {
        return a;
    } else {
        return static_cast<array<T> &&>(const_cast<array<T> &>(a));
    }
}

/// Ends the life of temporaries among operands.
template <class T, bool Traced> void spend(const operand<T, Traced> &a) noexcept { a.spend(); }
template <class S, std::enable_if_t<is_scalar<S>, int> = 0> void spend(S) noexcept {}

} // namespace detail
} // namespace bh
