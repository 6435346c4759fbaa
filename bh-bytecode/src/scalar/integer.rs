//! Scalar functions of integers: wrapping, never a trap.

use super::{Arithmetic, Bits, Classify, Integer, Numeric, Ordered, Real};

macro_rules! exact_traits {
    ($($type:ty, $all_ones:expr, $lowest:expr, $highest:expr);*) => {$(
        impl Ordered for $type {
            const HIGHEST: $type = $highest;
            const LOWEST: $type = $lowest;

            #[inline(always)]
            fn maximum(self, other: $type) -> $type {
                if self >= other { self } else { other }
            }

            #[inline(always)]
            fn minimum(self, other: $type) -> $type {
                if self <= other { self } else { other }
            }
        }

        impl Bits for $type {
            const ALL_ONES: $type = $all_ones;

            #[inline(always)]
            fn bit_and(self, other: $type) -> $type {
                self & other
            }

            #[inline(always)]
            fn bit_or(self, other: $type) -> $type {
                self | other
            }

            #[inline(always)]
            fn bit_xor(self, other: $type) -> $type {
                self ^ other
            }

            #[inline(always)]
            fn invert(self) -> $type {
                !self
            }
        }

        impl Classify for $type {
            #[inline(always)]
            fn isnan(self) -> bool {
                false
            }

            #[inline(always)]
            fn isinf(self) -> bool {
                false
            }

            #[inline(always)]
            fn isfinite(self) -> bool {
                true
            }
        }
    )*};
}

exact_traits!(
    i8, -1, i8::MIN, i8::MAX;
    i16, -1, i16::MIN, i16::MAX;
    i32, -1, i32::MIN, i32::MAX;
    i64, -1, i64::MIN, i64::MAX;
    u8, u8::MAX, 0, u8::MAX;
    u16, u16::MAX, 0, u16::MAX;
    u32, u32::MAX, 0, u32::MAX;
    u64, u64::MAX, 0, u64::MAX
);

/// Wrapping power by repeated squaring.
macro_rules! wrapping_power {
    ($base:expr, $exponent:expr) => {{
        let (mut base, mut exponent, mut result) = ($base, $exponent, 1);
        while exponent > 0 {
            if exponent & 1 == 1 {
                result = base.wrapping_mul(result);
            }
            base = base.wrapping_mul(base);
            exponent >>= 1;
        }
        result
    }};
}

macro_rules! common_integer {
    ($type:ty) => {
        impl Arithmetic for $type {
            const ZERO: $type = 0;
            const ONE: $type = 1;

            #[inline(always)]
            fn add(self, other: $type) -> $type {
                self.wrapping_add(other)
            }

            #[inline(always)]
            fn multiply(self, other: $type) -> $type {
                self.wrapping_mul(other)
            }
        }
    };
}

macro_rules! signed {
    ($($type:ty),*) => {$(
        common_integer!($type);

        impl Numeric for $type {
            type Abs = $type;

            #[inline(always)]
            fn subtract(self, other: $type) -> $type {
                self.wrapping_sub(other)
            }

            #[inline(always)]
            fn divide(self, other: $type) -> $type {
                self.floor_divide(other)
            }

            #[inline]
            fn power(self, exponent: $type) -> $type {
                if exponent < 0 {
                    // The true value is a fraction unless the base is 1 or -1; 0 stands for division by zero.
                    return match self {
                        1 => 1,
                        -1 => if exponent & 1 == 0 { 1 } else { -1 },
                        _ => 0,
                    };
                }
                wrapping_power!(self, exponent)
            }

            #[inline(always)]
            fn absolute(self) -> $type {
                self.wrapping_abs()
            }

            #[inline(always)]
            fn sign(self) -> $type {
                self.signum()
            }
        }

        impl Real for $type {
            #[inline(always)]
            fn floor_divide(self, other: $type) -> $type {
                if other == 0 {
                    return 0;
                }
                let quotient = self.wrapping_div(other);
                let inexact = self.wrapping_rem(other) != 0;
                quotient - <$type>::from(inexact && (self < 0) != (other < 0))
            }

            #[inline(always)]
            fn fmod(self, other: $type) -> $type {
                if other == 0 { 0 } else { self.wrapping_rem(other) }
            }

            #[inline(always)]
            fn remainder(self, other: $type) -> $type {
                let rest = self.fmod(other);
                if rest != 0 && (rest < 0) != (other < 0) { rest + other } else { rest }
            }
        }

        impl Integer for $type {
            #[inline(always)]
            fn left_shift(self, count: $type) -> $type {
                if (0..<$type>::BITS as $type).contains(&count) { self << count } else { 0 }
            }

            #[inline(always)]
            fn right_shift(self, count: $type) -> $type {
                let widest = <$type>::BITS as $type - 1;
                self >> if (0..=widest).contains(&count) { count } else { widest }
            }
        }
    )*};
}

macro_rules! unsigned {
    ($($type:ty),*) => {$(
        common_integer!($type);

        impl Numeric for $type {
            type Abs = $type;

            #[inline(always)]
            fn subtract(self, other: $type) -> $type {
                self.wrapping_sub(other)
            }

            #[inline(always)]
            fn divide(self, other: $type) -> $type {
                self.floor_divide(other)
            }

            #[inline]
            fn power(self, exponent: $type) -> $type {
                wrapping_power!(self, exponent)
            }

            #[inline(always)]
            fn absolute(self) -> $type {
                self
            }

            #[inline(always)]
            fn sign(self) -> $type {
                <$type>::from(self != 0)
            }
        }

        impl Real for $type {
            #[inline(always)]
            fn floor_divide(self, other: $type) -> $type {
                if other == 0 { 0 } else { self / other }
            }

            #[inline(always)]
            fn fmod(self, other: $type) -> $type {
                if other == 0 { 0 } else { self % other }
            }

            #[inline(always)]
            fn remainder(self, other: $type) -> $type {
                self.fmod(other)
            }
        }

        impl Integer for $type {
            #[inline(always)]
            fn left_shift(self, count: $type) -> $type {
                if count < <$type>::BITS as $type { self << count } else { 0 }
            }

            #[inline(always)]
            fn right_shift(self, count: $type) -> $type {
                if count < <$type>::BITS as $type { self >> count } else { 0 }
            }
        }
    )*};
}

signed!(i8, i16, i32, i64);
unsigned!(u8, u16, u32, u64);

#[cfg(test)]
mod tests {
    use crate::scalar::*;

    #[test]
    fn division_floors_and_never_traps() {
        for (a, b, quotient, rest, truncated) in [
            (7, 2, 3, 1, 1),
            (-7, 2, -4, 1, -1),
            (7, -2, -4, -1, 1),
            (-7, -2, 3, -1, -1),
            (6, 3, 2, 0, 0),
            (5, 0, 0, 0, 0),
        ] {
            assert_eq!(floor_divide(a, b), quotient, "{a} // {b}");
            assert_eq!(divide(a, b), quotient);
            assert_eq!(remainder(a, b), rest, "{a} % {b}");
            assert_eq!(fmod(a, b), truncated, "fmod({a}, {b})");
        }
        assert_eq!(divide(i64::MIN, -1), i64::MIN);
        assert_eq!(remainder(i8::MIN, -1), 0);
        assert_eq!(floor_divide(i8::MIN, 3), -43);
        assert_eq!(divide(200u8, 0), 0);
    }

    #[test]
    fn arithmetic_wraps() {
        assert_eq!(add(i32::MAX, 1), i32::MIN);
        assert_eq!(multiply(200u8, 2), 144);
        assert_eq!(subtract(0u16, 1), u16::MAX);
        assert_eq!(absolute(i16::MIN), i16::MIN);
    }

    #[test]
    fn powers_are_exact() {
        assert_eq!(power(3i64, 39), 4_052_555_153_018_976_267);
        assert_eq!(power(-1i32, -3), -1);
        assert_eq!((power(2i32, -1), power(1i8, -7), power(0i8, -1), power(0u8, 0)), (0, 1, 0, 1));
        assert_eq!(power(7u8, 3), 87);
        for exponent in 2..=5 {
            assert_eq!(powi(-3i32, exponent), (-3i32).pow(exponent as u32));
        }
    }

    #[test]
    fn shifts_outside_the_width_are_defined() {
        assert_eq!((left_shift(1i8, 7), left_shift(1i8, 8), left_shift(1i8, -1)), (i8::MIN, 0, 0));
        assert_eq!((right_shift(-8i32, 1), right_shift(-8i32, 32), right_shift(8i32, -1)), (-4, -1, 0));
        assert_eq!((right_shift(128u8, 7), right_shift(128u8, 8), left_shift(3u64, 64)), (1, 0, 0));
    }

    #[test]
    fn comparisons_and_bits() {
        assert!(greater(1u8, 0).get() && less_equal(-1i8, 0).get() && not_equal(1u64, 2).get());
        assert_eq!((maximum(0u8, 1), minimum(-3i16, 2)), (1, -3));
        assert_eq!((invert(0u8), bit_xor(6i8, 3)), (255, 5));
        assert_eq!((sign(-5i8), sign(5u8), sign(0i64)), (-1, 1, 0));
    }
}
