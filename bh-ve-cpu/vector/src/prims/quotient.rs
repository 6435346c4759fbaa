//! Quotients and remainders of integers as vector code: by floats, as there are no vector divisions of integers.
//!
//! With h = ½ that has the sign of y, (x + h) / y is at least ½/|y| from every whole number, and has the same floor as x / y.
//! So the floor of (x + h)·r, where r is 1 / y rounded, is the quotient as long as three roundings change it by less: those
//! of numbers with p bits by about |x| / |y| · 2^(1−p). That holds for 8 and 16 bits in `f32`, for 32 bits in `f64`, and for
//! |x| up to 2^50 in general. Adding 1.5·2^(p−1) leaves the nearest whole number in the low bits, whatever they wrap around
//! to; where y is zero, these bits are those of infinity: none.
//!
//! For 64 bits, the whole number n nearest to x·r differs from x / y by ½ and about |x| / |y| · 2^−52, that is 2^12 at most.
//! So x − n·y, which is exact, is at most |y| / 2 + 2^13, and its quotient by y is found as above: if |y| is below 2^51, it
//! is exact as a float, and otherwise its quotient is −1 or 0, for which it is enough that the sign is right. This takes
//! the conversions of AVX-512. With AVX2 and NEON, blocks of numbers up to 2^50 in size are divided as above.

use super::PrimFn;
use super::block::{self, SCALAR};
use crate::simd::Isa;
use bh_bytecode::scalar::Real;
use bh_bytecode::{DType, Opcode};

/// Numbers that are looked at together, where it matters how large they are.
const CHUNK: usize = 64;
/// Added to a smaller number, it leaves the nearest whole number in the low bits.
const SHIFT: f64 = 1.5 * (1u64 << 52) as f64;
const SHIFT_SINGLE: f32 = 1.5 * (1u64 << 23) as f32;

/// Integers that are divided with vector instructions.
trait Whole: Real {
    /// The largest whole number not above the quotient; 0 for a divisor of 0.
    fn quotient(self, divisor: Self) -> Self;
    /// `self` − `quotient` · `divisor`.
    fn minus_product(self, quotient: Self, divisor: Self) -> Self;
    /// Do the signs differ?
    fn is_opposed(self, other: Self) -> bool;
}

macro_rules! signs {
    (signed $type:ty) => {
        #[inline(always)]
        fn is_opposed(self, other: $type) -> bool {
            (self ^ other) < 0
        }
    };
    (unsigned $type:ty) => {
        #[inline(always)]
        fn is_opposed(self, _: $type) -> bool {
            false
        }
    };
}

macro_rules! product {
    ($type:ty) => {
        #[inline(always)]
        fn minus_product(self, quotient: $type, divisor: $type) -> $type {
            self.wrapping_sub(quotient.wrapping_mul(divisor))
        }
    };
}

macro_rules! narrow {
    ($($signs:ident $type:ty, $float:ty, $shift:expr);*) => {$(
        impl Whole for $type {
            #[inline(always)]
            fn quotient(self, divisor: $type) -> $type {
                let by = divisor as $float;
                let quotient = (self as $float + (0.5 as $float).copysign(by)) * (1.0 / by);
                let shifted = quotient + $shift;
                let is_above = shifted - $shift > quotient;
                (shifted.to_bits() as $type).wrapping_sub(is_above as $type)
            }

            product!($type);
            signs!($signs $type);
        }
    )*};
}

narrow! {
    signed i8, f32, SHIFT_SINGLE;
    signed i16, f32, SHIFT_SINGLE;
    signed i32, f64, SHIFT;
    unsigned u8, f32, SHIFT_SINGLE;
    unsigned u16, f32, SHIFT_SINGLE;
    unsigned u32, f64, SHIFT
}

macro_rules! wide {
    ($($signs:ident $type:ty, $most:expr, $exceeds_half:expr, $add:ident);*) => {$(
        impl Whole for $type {
            #[inline(always)]
            fn quotient(self, divisor: $type) -> $type {
                let by = if divisor == 0 { 1 } else { divisor };
                let inverse = 1.0 / by as f64;
                let near = (self as f64 * inverse).round_ties_even();
                let near = if near > $most { $most } else { near };
                // SAFETY: the divisor is at least 1 in size, so the quotient is in the range of the type but for its end.
                let near = unsafe { near.to_int_unchecked::<$type>() };
                let rest = self.minus_product(near, by) as i64;
                let correction = ((rest as f64 + 0.5f64.copysign(inverse)) * inverse).floor();
                // SAFETY: the rest is at most half of the divisor and 2^13.
                let correction = unsafe { correction.to_int_unchecked::<i64>() };
                let quotient = near.wrapping_add(correction as $type);
                // The rest of such a division needs 65 bits.
                let quotient = if $exceeds_half(divisor) { <$type>::from(self >= divisor) } else { quotient };
                if divisor == 0 { 0 } else { quotient }
            }

            product!($type);
            signs!($signs $type);
        }

        impl Wide for $type {
            #[inline(always)]
            fn distance(self) -> u64 {
                self.$add(1 << 50) as u64
            }

            #[inline(always)]
            fn near_quotient(self, divisor: $type) -> $type {
                let float = |number: $type| f64::from_bits(SHIFT.to_bits().wrapping_add(number as u64)) - SHIFT;
                let by = float(divisor);
                let quotient = (float(self) + 0.5f64.copysign(by)) * (1.0 / by);
                let shifted = quotient + SHIFT;
                let is_above = shifted - SHIFT > quotient;
                let nearest = shifted.to_bits().wrapping_sub(SHIFT.to_bits()) as $type;
                if divisor == 0 { 0 } else { nearest.wrapping_sub(is_above as $type) }
            }
        }
    )*};
}

/// Integers that not every float conversion has room for.
trait Wide: Whole {
    /// Less than 2^51 for numbers up to 2^50 in size.
    fn distance(self) -> u64;
    /// The quotient of such numbers.
    fn near_quotient(self, divisor: Self) -> Self;
}

// The largest floats below 2^63 and 2^64.
wide! {
    signed i64, 9_223_372_036_854_774_784.0, |_: i64| false, wrapping_add;
    unsigned u64, 18_446_744_073_709_549_568.0, |divisor: u64| divisor >> 63 != 0, saturating_add
}

/// The part of a division that is computed: quotient or remainder.
trait Part: 'static {
    /// The part of dividing `x` by `y`, from the quotient.
    fn of<T: Whole>(x: T, y: T, quotient: T) -> T;
}

/// The quotient.
struct Quotient;
/// The remainder with the sign of the divisor.
struct Remainder;
/// The remainder with the sign of the dividend.
struct Truncated;

impl Part for Quotient {
    #[inline(always)]
    fn of<T: Whole>(_: T, _: T, quotient: T) -> T {
        quotient
    }
}

impl Part for Remainder {
    #[inline(always)]
    fn of<T: Whole>(x: T, y: T, quotient: T) -> T {
        if y == T::ZERO { T::ZERO } else { x.minus_product(quotient, y) }
    }
}

impl Part for Truncated {
    #[inline(always)]
    fn of<T: Whole>(x: T, y: T, quotient: T) -> T {
        let rest = Remainder::of(x, y, quotient);
        if rest != T::ZERO && x.is_opposed(y) { rest.subtract(y) } else { rest }
    }
}

#[inline(always)]
fn part<T: Whole, P: Part>(x: T, y: T) -> T {
    P::of(x, y, x.quotient(y))
}

/// Divides by blocks, or by a constant, and looks at the size of a chunk of numbers at a time.
///
/// # Safety
/// As [`PrimFn`]; with a constant, `b` is one element. The processor must have AVX2 or NEON.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma"))]
#[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon"))]
unsafe extern "C" fn chunks<T: Wide, P: Part, const CONSTANT: bool>(
    n: usize,
    dst: *mut u8,
    a: *const u8,
    b: *const u8,
    _: *const u8,
) {
    let (mut x, mut y) = ([T::ONE; CHUNK], [T::ONE; CHUNK]);
    if CONSTANT {
        // SAFETY: a constant is one element.
        y.fill(unsafe { *b.cast::<T>() });
    }
    for done in (0..n).step_by(CHUNK) {
        let count = CHUNK.min(n - done);
        // SAFETY: the chunk ends at `n` or before. The operands are read before `dst`, which may be one of them, is written.
        unsafe {
            x.as_mut_ptr().copy_from_nonoverlapping(a.cast::<T>().add(done), count);
            if !CONSTANT {
                y.as_mut_ptr().copy_from_nonoverlapping(b.cast::<T>().add(done), count);
            }
        }
        let far = x.iter().zip(&y).fold(0, |far, (x, y)| far | x.distance() | y.distance());
        if far >> 51 == 0 {
            x.iter_mut().zip(&y).for_each(|(x, &y)| *x = P::of(*x, y, x.near_quotient(y)));
        } else {
            x[..count].iter_mut().zip(&y).for_each(|(x, &y)| *x = by_instruction::<T, P>(*x, y));
        }
        // SAFETY: `dst` has room for the chunk's `count` elements, which end at `n` or before.
        unsafe { dst.cast::<T>().add(done).copy_from_nonoverlapping(x.as_ptr(), count) };
    }
}

/// A part of a division, by the processor's instruction for integers.
#[inline(always)]
fn by_instruction<T: Whole, P: Part>(x: T, y: T) -> T {
    P::of(x, y, x.floor_divide(y))
}

fn wide<T: Wide, P: Part>(isa: Isa, constant: bool) -> Option<PrimFn> {
    match isa {
        Isa::Avx512 => by_floats::<T, P>(isa, constant),
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        Isa::Avx2 | Isa::Neon if constant => Some(chunks::<T, P, true>),
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        Isa::Avx2 | Isa::Neon => Some(chunks::<T, P, false>),
        _ if constant => block::with_constant(SCALAR, false, by_instruction::<T, P>),
        _ => block::binary(SCALAR, by_instruction::<T, P>),
    }
}

fn by_floats<T: Whole, P: Part>(isa: Isa, constant: bool) -> Option<PrimFn> {
    if constant { block::with_constant(isa, false, part::<T, P>) } else { block::binary(isa, part::<T, P>) }
}

fn of_type<P: Part>(isa: Isa, dtype: DType, constant: bool) -> Option<PrimFn> {
    match dtype {
        DType::I8 => by_floats::<i8, P>(isa, constant),
        DType::I16 => by_floats::<i16, P>(isa, constant),
        DType::I32 => by_floats::<i32, P>(isa, constant),
        DType::I64 => wide::<i64, P>(isa, constant),
        DType::U8 => by_floats::<u8, P>(isa, constant),
        DType::U16 => by_floats::<u16, P>(isa, constant),
        DType::U32 => by_floats::<u32, P>(isa, constant),
        DType::U64 => wide::<u64, P>(isa, constant),
        _ => None,
    }
}

/// The primitive of a division of integers; with `constant`, by a single element instead of a block.
pub(super) fn lookup(isa: Isa, opcode: Opcode, dtype: DType, constant: bool) -> Option<PrimFn> {
    match opcode {
        Opcode::Divide | Opcode::FloorDivide => of_type::<Quotient>(isa, dtype, constant),
        Opcode::Remainder => of_type::<Remainder>(isa, dtype, constant),
        Opcode::Fmod => of_type::<Truncated>(isa, dtype, constant),
        _ => None,
    }
}
