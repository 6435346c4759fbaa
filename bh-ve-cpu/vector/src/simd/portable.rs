//! One `f64` lane in plain Rust: for every other architecture, and with multiply-add rounded once for results that are the same on
//! all levels, where an instruction-set level has no instruction for that.

use super::{Alone, Scalar, Vector, transfers};

/// One lane.
pub(crate) type Portable = Plain<false>;

/// One lane whose multiply-add rounds once.
pub(crate) type Fused = Plain<true>;

/// One lane; `FUSED` is [`Vector::FUSED`].
#[derive(Clone, Copy)]
pub(crate) struct Plain<const FUSED: bool>(f64);

macro_rules! scalar_operator {
    ($trait:ident, $method:ident) => {
        impl<const FUSED: bool> std::ops::$trait for Plain<FUSED> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, b: Self) -> Self {
                Self(std::ops::$trait::$method(self.0, b.0))
            }
        }
    };
}
scalar_operator!(Add, add);
scalar_operator!(Sub, sub);
scalar_operator!(Mul, mul);
scalar_operator!(Div, div);

impl<const FUSED: bool> std::ops::Neg for Plain<FUSED> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Self(-self.0)
    }
}

/// Implements methods on the lane and its bit pattern.
macro_rules! scalar_methods {
    ($($name:ident($($arg:ident: $ty:ty),*) -> $out:ty = $body:expr;)*) => {
        $(#[inline(always)] fn $name($($arg: $ty),*) -> $out { $body })*
    };
}

#[inline(always)]
fn bits<const FUSED: bool>(x: Plain<FUSED>) -> u64 {
    x.0.to_bits()
}

#[inline(always)]
fn from_bits<const FUSED: bool>(x: u64) -> Plain<FUSED> {
    Plain(f64::from_bits(x))
}

impl<const FUSED: bool> Vector for Plain<FUSED> {
    const LANES: usize = 1;
    const FUSED: bool = FUSED;
    type Mask = bool;

    transfers! {
        load(p: *const f64) -> Self = Self(p.read_unaligned());
        store(self: Self, p: *mut f64) = p.write_unaligned(self.0);
        load_f32(p: *const f32) -> Self = Self(f64::from(p.read_unaligned()));
        store_f32(self: Self, p: *mut f32) = p.write_unaligned(self.0 as f32);
    }

    scalar_methods! {
        splat(x: f64) -> Self = Self(x);
        splat_bits(x: u64) -> Self = from_bits(x);
        mul_add(self: Self, b: Self, c: Self) -> Self =
            if FUSED { Self(self.0.mul_add(b.0, c.0)) } else { self * b + c };
        neg_mul_add(self: Self, b: Self, c: Self) -> Self = (-self).mul_add(b, c);
        sqrt(self: Self) -> Self = Self(self.0.sqrt());
        rint(self: Self) -> Self = Self(self.0.round_ties_even());
        floor(self: Self) -> Self = Self(self.0.floor());
        ceil(self: Self) -> Self = Self(self.0.ceil());
        trunc(self: Self) -> Self = Self(self.0.trunc());
        round_f32(self: Self) -> Self = Self(f64::from(self.0 as f32));
        at_most(self: Self, limit: Self) -> Self = if limit.0 < self.0 { limit } else { self };
        at_least(self: Self, limit: Self) -> Self = if limit.0 > self.0 { limit } else { self };
        bits_and(self: Self, b: Self) -> Self = from_bits(bits(self) & bits(b));
        bits_or(self: Self, b: Self) -> Self = from_bits(bits(self) | bits(b));
        bits_xor(self: Self, b: Self) -> Self = from_bits(bits(self) ^ bits(b));
        bits_add(self: Self, b: Self) -> Self = from_bits(bits(self).wrapping_add(bits(b)));
        lt(self: Self, b: Self) -> bool = self.0 < b.0;
        le(self: Self, b: Self) -> bool = self.0 <= b.0;
        eq(self: Self, b: Self) -> bool = self.0 == b.0;
        select(mask: bool, a: Self, b: Self) -> Self = if mask { a } else { b };
        mask_and(a: bool, b: bool) -> bool = a && b;
        mask_or(a: bool, b: bool) -> bool = a || b;
        mask_not(a: bool) -> bool = !a;
        mask_bits(a: bool) -> u32 = u32::from(a);
    }

    #[inline(always)]
    fn bits_shl<const N: i32>(self) -> Self {
        from_bits(bits(self) << N)
    }

    #[inline(always)]
    fn bits_shr<const N: i32>(self) -> Self {
        from_bits(bits(self) >> N)
    }
}

impl<const FUSED: bool> Scalar for Plain<FUSED> {
    scalar_methods! {
        bits_mul(self: Self, b: Self) -> Self = from_bits(bits(self).wrapping_mul(bits(b)));
        bits_shl_by(self: Self, count: Self) -> Self = from_bits(bits(self) << (bits(count) & 63));
        bits_shr_by(self: Self, count: Self) -> Self = from_bits(bits(self) >> (bits(count) & 63));
        bits_eq(self: Self, b: Self) -> bool = bits(self) == bits(b);
        word(table: &[u64], index: Self) -> Self = from_bits(table.get(bits(index) as usize).copied().unwrap_or(0));
        fmod(self: Self, b: Self) -> Self = Self(self.0 % b.0);
    }
}

/// A function of one lane, whose multiply-add rounds once. It is not part of the loops that call it.
#[inline(never)]
pub(super) fn alone<F: Alone<N, M>, const N: usize, const M: usize>(numbers: [f64; N]) -> [f64; M] {
    F::of(numbers.map(Fused::splat)).map(|result| result.0)
}
