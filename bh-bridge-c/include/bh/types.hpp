// Element types: their numbers, kinds and promotion, as in NumPy 2.
#pragma once

#include "error.hpp"

#include <complex>
#include <limits>
#include <type_traits>
#include <utility>

namespace bh {

template <class T> class array;
template <class T> class selection;
template <class T> class traced;

namespace detail {

/// A type without reference and const.
template <class A> using plain = std::remove_cv_t<std::remove_reference_t<A>>;

template <class T> struct dependent_false : std::false_type {};

/// The number of a C++ type as an element type (`BH_TYPE_*`); -1 for types that are none.
template <class T> constexpr int code_of() {
    if constexpr (std::is_same_v<T, bool>) {
        return BH_TYPE_BOOL;
    } else if constexpr (std::is_same_v<T, float>) {
        return BH_TYPE_F32;
    } else if constexpr (std::is_same_v<T, double>) {
        return BH_TYPE_F64;
    } else if constexpr (std::is_same_v<T, std::complex<float>>) {
        return BH_TYPE_C64;
    } else if constexpr (std::is_same_v<T, std::complex<double>>) {
        return BH_TYPE_C128;
    } else if constexpr (std::is_integral_v<T> && sizeof(T) <= 8) {
        constexpr int log2 = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
        return (std::is_signed_v<T> ? BH_TYPE_I8 : BH_TYPE_U8) + log2;
    } else {
        return -1;
    }
}

template <class T> inline constexpr int code = code_of<T>();
template <class T> inline constexpr bool is_scalar = code<T> >= 0;

template <int Code> struct type_of;
template <> struct type_of<BH_TYPE_BOOL> { using type = bool; };
template <> struct type_of<BH_TYPE_I8> { using type = std::int8_t; };
template <> struct type_of<BH_TYPE_I16> { using type = std::int16_t; };
template <> struct type_of<BH_TYPE_I32> { using type = std::int32_t; };
template <> struct type_of<BH_TYPE_I64> { using type = std::int64_t; };
template <> struct type_of<BH_TYPE_U8> { using type = std::uint8_t; };
template <> struct type_of<BH_TYPE_U16> { using type = std::uint16_t; };
template <> struct type_of<BH_TYPE_U32> { using type = std::uint32_t; };
template <> struct type_of<BH_TYPE_U64> { using type = std::uint64_t; };
template <> struct type_of<BH_TYPE_F32> { using type = float; };
template <> struct type_of<BH_TYPE_F64> { using type = double; };
template <> struct type_of<BH_TYPE_C64> { using type = std::complex<float>; };
template <> struct type_of<BH_TYPE_C128> { using type = std::complex<double>; };

constexpr bool is_signed_integer(int code) { return code >= BH_TYPE_I8 && code <= BH_TYPE_I64; }
constexpr bool is_integer(int code) { return code >= BH_TYPE_I8 && code <= BH_TYPE_U64; }
constexpr bool is_complex(int code) { return code >= BH_TYPE_C64; }

/// bool, integer, real, complex: what a scalar may not raise without changing the type of an array.
constexpr int kind_of(int code) { return code == BH_TYPE_BOOL ? 0 : is_integer(code) ? 1 : is_complex(code) ? 3 : 2; }

/// Log2 of the bytes of an integer type.
constexpr int width(int code) { return is_signed_integer(code) ? code - BH_TYPE_I8 : code - BH_TYPE_U8; }

/// The real type that numbers of a type fit.
constexpr int real_of(int code) {
    if (code == BH_TYPE_F32 || code == BH_TYPE_C64) return BH_TYPE_F32;
    if (code == BH_TYPE_BOOL || (is_integer(code) && width(code) <= 1)) return BH_TYPE_F32;
    return BH_TYPE_F64;
}

/// The type of an operation between arrays of two types.
constexpr int promote(int a, int b) {
    if (a == b || b == BH_TYPE_BOOL) return a;
    if (a == BH_TYPE_BOOL) return b;
    if (is_integer(a) && is_integer(b)) {
        if (is_signed_integer(a) == is_signed_integer(b)) return a > b ? a : b;
        const int with_sign = is_signed_integer(a) ? a : b, without = is_signed_integer(a) ? b : a;
        if (width(with_sign) > width(without)) return with_sign;
        return width(without) == 3 ? BH_TYPE_F64 : BH_TYPE_I8 + width(without) + 1;
    }
    const bool wide = real_of(a) == BH_TYPE_F64 || real_of(b) == BH_TYPE_F64;
    if (is_complex(a) || is_complex(b)) return wide ? BH_TYPE_C128 : BH_TYPE_C64;
    return wide ? BH_TYPE_F64 : BH_TYPE_F32;
}

/// The type of an operation between an array and a plain number, whose kind counts but not its width.
constexpr int promote_scalar(int array, int scalar) {
    if (kind_of(scalar) <= kind_of(array)) return array;
    if (kind_of(scalar) == 1) return BH_TYPE_I64;
    if (kind_of(scalar) == 2) return BH_TYPE_F64;
    return array == BH_TYPE_F32 ? BH_TYPE_C64 : BH_TYPE_C128;
}

/// Can numbers of type S be used with arrays of T without changing their type?
template <class S, class T> inline constexpr bool fits = is_scalar<S> && kind_of(code<S>) <= kind_of(code<T>);

/// Converts a plain number to an element type; integers that do not fit are refused.
template <class T, class S> T convert_scalar(S value, [[maybe_unused]] place at) {
    if constexpr (is_integer(code<T>) && is_integer(code<S>)) {
        const T converted = static_cast<T>(value);
        if (static_cast<S>(converted) != value || (converted < T(0)) != (value < S(0))) {
            fail(BH_STATUS_ARGUMENT, "the number " + std::to_string(value) + " does not fit the element type of the array", at);
        }
        return converted;
    } else if constexpr (is_complex(code<T>) && is_complex(code<S>)) {
        using real = typename T::value_type;
        return T(static_cast<real>(value.real()), static_cast<real>(value.imag()));
    } else if constexpr (is_complex(code<T>)) {
        return T(static_cast<typename T::value_type>(value));
    } else {
        static_assert(!is_complex(code<S>), "a complex number cannot become a real one: use its real() or imag()");
        return static_cast<T>(value);
    }
}

/// Converts an element of a range: numbers that an integer type does not have become its nearest one, NaN becomes 0, as `cast` does.
template <class T, class S> T convert_element(const S &value) {
    if constexpr (std::is_floating_point_v<S> && std::is_integral_v<T> && !std::is_same_v<T, bool>) {
        if (value != value) return T(0);
        if (value <= static_cast<S>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
        if (value >= static_cast<S>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
    }
    return static_cast<T>(value);
}

/// A constant operand of the C interface.
template <class T> const bh_array *constant(T value) {
    constexpr int c = code<T>;
    static_assert(c >= 0, "this type is no element type of bh: use bool, an integer, float, double or std::complex of them");
    if constexpr (c == BH_TYPE_BOOL) return (bh_bool)(value);
    if constexpr (c == BH_TYPE_I8) return (bh_i8)(static_cast<std::int8_t>(value));
    if constexpr (c == BH_TYPE_I16) return (bh_i16)(static_cast<std::int16_t>(value));
    if constexpr (c == BH_TYPE_I32) return (bh_i32)(static_cast<std::int32_t>(value));
    if constexpr (c == BH_TYPE_I64) return (bh_i64)(static_cast<std::int64_t>(value));
    if constexpr (c == BH_TYPE_U8) return (bh_u8)(static_cast<std::uint8_t>(value));
    if constexpr (c == BH_TYPE_U16) return (bh_u16)(static_cast<std::uint16_t>(value));
    if constexpr (c == BH_TYPE_U32) return (bh_u32)(static_cast<std::uint32_t>(value));
    if constexpr (c == BH_TYPE_U64) return (bh_u64)(static_cast<std::uint64_t>(value));
    if constexpr (c == BH_TYPE_F32) return (bh_f32)(value);
    if constexpr (c == BH_TYPE_F64) return (bh_f64)(value);
    if constexpr (c == BH_TYPE_C64) return (bh_c64)(value.real(), value.imag());
    if constexpr (c == BH_TYPE_C128) return (bh_c128)(value.real(), value.imag());
}

} // namespace detail
} // namespace bh
