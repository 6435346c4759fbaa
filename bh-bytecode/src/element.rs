//! The Rust types of array elements: their bytes, their conversions, and constants of them.

use crate::batch::Constant;
use crate::complex::{Complex, c64, c128};
use crate::dtype::DType;
use crate::truth::Truth;
use std::fmt::Debug;

/// Conversion from another element type as COPY does it: float to integer truncates and saturates with NaN giving 0,
/// integers wrap, conversion to bool tests for non-zero, and real numbers become complex with a zero imaginary part.
pub trait CastFrom<S>: Sized {
    /// Converts one value.
    fn cast_from(value: S) -> Self;

    /// Converts one value as NumPy does on x86-64: a float beyond an integer type first becomes the smallest `i32`, or the
    /// smallest `i64` where the type is `u32` or has 64 bits, and that wraps. Other conversions are those of `cast_from`.
    #[inline(always)]
    fn wrapped_from(value: S) -> Self {
        Self::cast_from(value)
    }

    /// Converts one value as NumPy's loops over vectors do on AArch64: a float goes to the nearest signed integer of its own
    /// width, and of that to the low bits that a narrower type has. Other conversions are those of `cast_from`.
    #[inline(always)]
    fn narrowed_from(value: S) -> Self {
        Self::cast_from(value)
    }
}

/// The Rust type of an array's elements. That of boolean arrays is [`Truth`], as memory may hold bytes that no `bool` may be.
pub trait Element:
    Copy
    + PartialEq
    + Debug
    + Default
    + Send
    + Sync
    + 'static
    + CastFrom<bool>
    + CastFrom<Truth>
    + CastFrom<i8>
    + CastFrom<i16>
    + CastFrom<i32>
    + CastFrom<i64>
    + CastFrom<u8>
    + CastFrom<u16>
    + CastFrom<u32>
    + CastFrom<u64>
    + CastFrom<f32>
    + CastFrom<f64>
{
    /// The type's discriminant.
    const DTYPE: DType;

    /// The value stored in the first bytes of `bytes`, in the machine's byte order. Panics when there are too few.
    fn read(bytes: &[u8]) -> Self;

    /// Stores the value in the first bytes of `bytes`. Panics when there are too few.
    fn write(self, bytes: &mut [u8]);
}

/// Evaluates an expression with a type name bound to the Rust type of a [`DType`](crate::DType):
/// `with_dtype!(dtype, T => cast_all::<T>(input))`.
#[macro_export]
macro_rules! with_dtype {
    ($dtype:expr, $T:ident => $body:expr) => {
        $crate::with_dtype!(@ $dtype, $T, $body, [
            ($crate::Truth, Bool), (i8, I8), (i16, I16), (i32, I32), (i64, I64), (u8, U8), (u16, U16), (u32, U32), (u64, U64),
            (f32, F32), (f64, F64), ($crate::complex::c64, C64), ($crate::complex::c128, C128)
        ])
    };
    (@ $dtype:expr, $T:ident, $body:expr, [$(($type:ty, $variant:ident)),*]) => {
        match $dtype {
            $($crate::DType::$variant => {
                type $T = $type;
                $body
            })*
        }
    };
}

macro_rules! plain_elements {
    ($(($type:ty, $variant:ident)),*) => {$(
        impl Element for $type {
            const DTYPE: DType = DType::$variant;

            #[inline(always)]
            fn read(bytes: &[u8]) -> $type {
                let mut raw = [0; size_of::<$type>()];
                raw.copy_from_slice(&bytes[..size_of::<$type>()]);
                <$type>::from_ne_bytes(raw)
            }

            #[inline(always)]
            fn write(self, bytes: &mut [u8]) {
                bytes[..size_of::<$type>()].copy_from_slice(&self.to_ne_bytes());
            }
        }
    )*};
}

plain_elements!(
    (i8, I8),
    (i16, I16),
    (i32, I32),
    (i64, I64),
    (u8, U8),
    (u16, U16),
    (u32, U32),
    (u64, U64),
    (f32, F32),
    (f64, F64)
);

macro_rules! complex_elements {
    ($(($type:ty, $part:ty, $variant:ident)),*) => {$(
        impl Element for $type {
            const DTYPE: DType = DType::$variant;

            #[inline(always)]
            fn read(bytes: &[u8]) -> $type {
                Complex::new(<$part>::read(bytes), <$part>::read(&bytes[size_of::<$part>()..]))
            }

            #[inline(always)]
            fn write(self, bytes: &mut [u8]) {
                self.re.write(bytes);
                self.im.write(&mut bytes[size_of::<$part>()..]);
            }
        }
    )*};
}

complex_elements!((c64, f32, C64), (c128, f64, C128));

macro_rules! cast_plain {
    ($source:ty => $($target:ty),*) => {$(
        impl CastFrom<$source> for $target {
            #[inline(always)]
            fn cast_from(value: $source) -> $target {
                value as $target
            }
        }
    )*};
}

/// Conversions of floats to integers: on x86-64 those to `$target` go through `$through`, on AArch64 through `$wide`.
macro_rules! cast_float {
    ($source:ty, $wide:ty => $($target:ty: $through:ty),*) => {$(
        impl CastFrom<$source> for $target {
            #[inline(always)]
            fn cast_from(value: $source) -> $target {
                value as $target
            }

            #[inline(always)]
            fn wrapped_from(value: $source) -> $target {
                // NaN is not less, and numbers below the smallest are cast to it.
                (if value < -(<$through>::MIN as $source) { value as $through } else { <$through>::MIN }) as $target
            }

            #[inline(always)]
            fn narrowed_from(value: $source) -> $target {
                if size_of::<$target>() < size_of::<$source>() { value as $wide as $target } else { value as $target }
            }
        }
    )*};
}

/// Conversions of floats to `u64`, which processors without an instruction for it make from two halves.
macro_rules! cast_float_to_u64 {
    ($($source:ty),*) => {$(
        impl CastFrom<$source> for u64 {
            #[inline(always)]
            fn cast_from(value: $source) -> u64 {
                value as u64
            }

            #[inline(always)]
            fn wrapped_from(value: $source) -> u64 {
                let half = -(i64::MIN as $source);
                if value >= half { if value < 2.0 * half { value as u64 } else { 0 } } else { i64::wrapped_from(value) as u64 }
            }
        }
    )*};
}

cast_float!(f32, i32 => i8: i32, i16: i32, i32: i32, i64: i64, u8: i32, u16: i32, u32: i64);
cast_float!(f64, i64 => i8: i32, i16: i32, i32: i32, i64: i64, u8: i32, u16: i32, u32: i64);
cast_float_to_u64!(f32, f64);
cast_plain!(f32 => f32, f64);
cast_plain!(f64 => f32, f64);

macro_rules! cast_whole {
    ($($source:ty),*) => {$(
        cast_plain!($source => i8, i16, i32, i64, u8, u16, u32, u64, f32, f64);
    )*};
}

cast_whole!(i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! cast_real {
    ($($source:ty),*) => {$(

        impl CastFrom<$source> for Truth {
            #[inline(always)]
            fn cast_from(value: $source) -> Truth {
                Truth::from(value != 0 as $source)
            }
        }

        impl CastFrom<$source> for c64 {
            #[inline(always)]
            fn cast_from(value: $source) -> c64 {
                Complex::new(value as f32, 0.0)
            }
        }

        impl CastFrom<$source> for c128 {
            #[inline(always)]
            fn cast_from(value: $source) -> c128 {
                Complex::new(value as f64, 0.0)
            }
        }
    )*};
}

cast_real!(i8, i16, i32, i64, u8, u16, u32, u64, f32, f64);
cast_plain!(bool => i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! cast_from_bool {
    ($($target:ty),*) => {$(
        impl CastFrom<bool> for $target {
            #[inline(always)]
            fn cast_from(value: bool) -> $target {
                <$target>::cast_from(u8::from(value))
            }
        }
    )*};
}

cast_from_bool!(f32, f64, c64, c128);

impl CastFrom<bool> for Truth {
    #[inline(always)]
    fn cast_from(value: bool) -> Truth {
        Truth::from(value)
    }
}

macro_rules! cast_from_truth {
    ($($target:ty),*) => {$(
        impl CastFrom<Truth> for $target {
            #[inline(always)]
            fn cast_from(value: Truth) -> $target {
                <$target>::cast_from(value.get())
            }
        }
    )*};
}

cast_from_truth!(Truth, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, c64, c128);

macro_rules! cast_complex {
    ($($source:ty => $target:ty, $part:ty);*) => {$(
        impl CastFrom<$source> for $target {
            #[inline(always)]
            fn cast_from(value: $source) -> $target {
                Complex::new(value.re as $part, value.im as $part)
            }
        }
    )*};
}

cast_complex!(c64 => c64, f32; c64 => c128, f64; c128 => c64, f32; c128 => c128, f64);

impl Constant {
    /// A constant of the value's type.
    pub fn from_value<T: Element>(value: T) -> Constant {
        let mut bytes = [0u8; 16];
        value.write(&mut bytes);
        Constant { bits: words(&bytes), dtype: T::DTYPE as u8, reserved: [0; 7] }
    }

    /// The constant of this type whose memory holds the first bytes of `bytes`; a true one is the byte 1. Panics when there are
    /// too few.
    #[inline]
    pub fn from_bytes(dtype: DType, bytes: &[u8]) -> Constant {
        if dtype == DType::Bool {
            return Constant::from_value(Truth::read(bytes));
        }
        let mut padded = [0u8; 16];
        padded[..dtype.size()].copy_from_slice(&bytes[..dtype.size()]);
        Constant { bits: words(&padded), dtype: dtype as u8, reserved: [0; 7] }
    }

    /// The element type. Validated batches hold only legal discriminants.
    #[inline]
    pub fn dtype(&self) -> DType {
        DType::from_code(self.dtype).unwrap_or(DType::Bool)
    }

    /// The value's bytes, zero-padded.
    pub fn bytes(&self) -> [u8; 16] {
        let mut bytes = [0u8; 16];
        bytes[..8].copy_from_slice(&self.bits[0].to_ne_bytes());
        bytes[8..].copy_from_slice(&self.bits[1].to_ne_bytes());
        bytes
    }

    /// The value if the constant is exactly of type `T`.
    pub fn value<T: Element>(&self) -> Option<T> {
        (self.dtype == T::DTYPE as u8).then(|| T::read(&self.bytes()))
    }

    /// The value converted to `T` as COPY converts; of a complex constant and a real `T`, the real part.
    pub fn to<T: Element>(&self) -> T {
        let bytes = self.bytes();
        match self.dtype() {
            DType::Bool => T::cast_from(Truth::read(&bytes)),
            DType::I8 => T::cast_from(i8::read(&bytes)),
            DType::I16 => T::cast_from(i16::read(&bytes)),
            DType::I32 => T::cast_from(i32::read(&bytes)),
            DType::I64 => T::cast_from(i64::read(&bytes)),
            DType::U8 => T::cast_from(u8::read(&bytes)),
            DType::U16 => T::cast_from(u16::read(&bytes)),
            DType::U32 => T::cast_from(u32::read(&bytes)),
            DType::U64 => T::cast_from(u64::read(&bytes)),
            DType::F32 => T::cast_from(f32::read(&bytes)),
            DType::F64 => T::cast_from(f64::read(&bytes)),
            DType::C64 | DType::C128 => self.complex_to(),
        }
    }

    /// [`Constant::to`] of a complex constant.
    fn complex_to<T: Element>(&self) -> T {
        let bytes = self.bytes();
        let value = match self.dtype() {
            DType::C64 => c128::cast_from(c64::read(&bytes)),
            _ => c128::read(&bytes),
        };
        let mut target = [0u8; 16];
        match T::DTYPE {
            DType::C64 => c64::cast_from(value).write(&mut target),
            DType::C128 => value.write(&mut target),
            _ => return T::cast_from(value.re),
        }
        T::read(&target)
    }

    /// The constant converted to another type as [`Constant::to`] converts.
    pub fn cast(&self, dtype: DType) -> Constant {
        with_dtype!(dtype, T => Constant::from_value(self.to::<T>()))
    }
}

/// Sixteen bytes as two words in the machine's order.
#[inline]
fn words(bytes: &[u8; 16]) -> [u64; 2] {
    [u64::read(bytes), u64::read(&bytes[8..])]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn casts_saturate_wrap_and_test() {
        assert_eq!(i8::cast_from(300.7f64), 127);
        assert_eq!(u8::cast_from(-1.5f32), 0);
        assert_eq!(i32::cast_from(f64::NAN), 0);
        assert_eq!(i8::cast_from(300i64), 44);
        assert_eq!(u64::cast_from(-1i8), u64::MAX);
        assert!([f32::NAN, -0.5].into_iter().all(|x| Truth::cast_from(x).get()) && !Truth::cast_from(-0.0f64).get());
        assert_eq!(c64::cast_from(true), Complex::new(1.0, 0.0));
    }

    #[test]
    fn wrapping_casts_are_those_of_x86() {
        assert_eq!([-1.0, 300.0, f64::NAN, 3e9].map(u8::wrapped_from), [255, 44, 0, 0]);
        assert_eq!([-1.0f32, 300.0, f32::NAN, -70_000.0].map(i16::wrapped_from), [-1, 300, 0, -4464]);
        assert_eq!([3e9, f64::NAN, -3e9, 1.5].map(i32::wrapped_from), [i32::MIN, i32::MIN, i32::MIN, 1]);
        assert_eq!([-1.0, 5e9, 1e30, f64::NAN].map(u32::wrapped_from), [u32::MAX, 705_032_704, 0, 0]);
        assert_eq!([1e19, -1e19, f64::NAN].map(i64::wrapped_from), [i64::MIN; 3]);
        let (half, whole) = (1u64 << 63, [-1.0f64, 1e19, 1e30, f64::NAN].map(u64::wrapped_from));
        assert_eq!(whole, [u64::MAX, 10_000_000_000_000_000_000, 0, half]);
        assert_eq!(u64::wrapped_from(-1e30f32), half);
        assert_eq!((f32::wrapped_from(2.5f64), u8::wrapped_from(300i64)), (2.5, 44));
    }

    #[test]
    fn narrowing_casts_are_those_of_aarch64() {
        assert_eq!([-1.0f32, 300.0, f32::NAN, 3e9, -3e9].map(u8::narrowed_from), [255, 44, 0, 255, 0]);
        assert_eq!([-1.0, 300.0, f64::NAN, 3e9, 1e19].map(u8::narrowed_from), [255, 44, 0, 0, 255]);
        assert_eq!(
            [3e9, -3e9, f64::INFINITY, 5e9].map(i32::narrowed_from),
            [-1_294_967_296, 1_294_967_296, -1, 705_032_704]
        );
        assert_eq!([3e9, -3e9, f32::NAN].map(i32::narrowed_from), [i32::MAX, i32::MIN, 0]);
        assert_eq!([-1.0, 5e9, -1e19].map(u32::narrowed_from), [u32::MAX, 705_032_704, 0]);
        assert_eq!([-1.0f32, 5e9].map(u32::narrowed_from), [0, u32::MAX]);
        assert_eq!([-1.0, 1e19, 1e30].map(u64::narrowed_from), [0, 10_000_000_000_000_000_000, u64::MAX]);
        assert_eq!((f32::narrowed_from(2.5f64), u8::narrowed_from(300i64)), (2.5, 44));
    }

    #[test]
    fn constants_keep_and_convert_values() {
        let constant = Constant::from_value(Complex::new(2.5f32, -1.0));
        assert_eq!(constant.value::<c64>(), Some(Complex::new(2.5, -1.0)));
        assert_eq!(constant.value::<c128>(), None);
        assert_eq!(constant.to::<i16>(), 2);
        assert_eq!(constant.to::<c128>(), Complex::new(2.5, -1.0));
        for dtype in DType::ALL {
            let constant = Constant::from_value(1u8).cast(dtype);
            assert_eq!(constant.dtype(), dtype);
            assert_eq!(constant.to::<f64>(), 1.0);
            assert_eq!(Constant::from_bytes(dtype, &constant.bytes()), constant);
        }
        assert_eq!(Constant::from_bytes(DType::Bool, &[128]), Constant::from_value(Truth::TRUE));
    }
}
