//! Vectors of `f64` lanes on every instruction-set level, behind one trait, and the run-time choice of the level.
//!
//! Algorithms are written once as `#[inline(always)]` functions over [`Vector`] and instantiated inside entry points
//! that carry `#[target_feature]`. Being inlined there, the intrinsics become single instructions. Vector values never
//! exist outside such entry points: that is the reason why every intrinsic call below is allowed.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;
pub(crate) mod single;
#[cfg(target_arch = "x86_64")]
mod sse2;

#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::{Avx2, Avx2Single};
#[cfg(target_arch = "x86_64")]
pub(crate) use avx512::{Avx512, Avx512Single};
#[cfg(target_arch = "aarch64")]
pub(crate) use neon::{Neon, NeonSingle};
pub(crate) use portable::{Fused, Portable};
#[cfg(target_arch = "x86_64")]
pub(crate) use sse2::Sse2;

use std::fmt;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// An instruction-set level. Results have the same bits for the same level, whatever the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Isa {
    /// Plain Rust, one lane.
    Portable,
    /// The x86-64 baseline: two lanes, no fused multiply-add.
    Sse2,
    /// Four lanes with fused multiply-add.
    Avx2,
    /// Eight lanes with fused multiply-add and masks (F, DQ, BW and VL).
    Avx512,
    /// The AArch64 baseline: two lanes with fused multiply-add.
    Neon,
    /// Plain Rust, one lane, with fused multiply-add from a library: no level of a machine, but functions by [`Isa::fused`].
    Fused,
}

impl Isa {
    /// All levels; of those of one architecture, the slowest first.
    pub const ALL: [Isa; 5] = [Isa::Portable, Isa::Sse2, Isa::Avx2, Isa::Avx512, Isa::Neon];

    /// The level whose functions have the bits of all levels with fused multiply-add: this one, if it is one of them.
    pub fn fused(self) -> Isa {
        match self {
            Isa::Portable | Isa::Sse2 => Isa::Fused,
            _ => self,
        }
    }

    /// Can this machine run the level?
    pub fn is_available(self) -> bool {
        match self {
            Isa::Portable | Isa::Fused => true,
            #[cfg(target_arch = "x86_64")]
            Isa::Sse2 => true,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => {
                Isa::Avx2.is_available()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vl")
            }
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => true,
            _ => false,
        }
    }

    /// The best level of this machine.
    pub fn detect() -> Isa {
        Self::available().last().unwrap_or(Isa::Portable)
    }

    /// The levels this machine can run, the slowest first.
    pub fn available() -> impl Iterator<Item = Isa> {
        Self::ALL.into_iter().filter(|isa| isa.is_available())
    }

    /// The name used in settings and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Isa::Portable => "portable",
            Isa::Sse2 => "sse2",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
            Isa::Neon => "neon",
            Isa::Fused => "fused",
        }
    }

    /// The level with this name.
    pub fn from_name(name: &str) -> Option<Isa> {
        Self::ALL.into_iter().find(|isa| isa.name() == name)
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The most lanes any level has.
pub(crate) const MAX_LANES: usize = 8;

/// Adding this to a number of magnitude below 2^51 rounds it to a whole number and leaves that in the low bits.
pub(crate) const ROUND_MAGIC: f64 = 6_755_399_441_055_744.0;

/// A vector of `f64` lanes. Operations whose names start with `bits` treat the lanes as 64-bit integers.
pub trait Vector:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Neg<Output = Self>
{
    /// The number of lanes.
    const LANES: usize;
    /// Does [`Vector::mul_add`] round once?
    const FUSED: bool;
    /// One truth value per lane.
    type Mask: Copy;

    /// All lanes equal.
    fn splat(x: f64) -> Self;
    /// All lanes with this bit pattern.
    fn splat_bits(bits: u64) -> Self;
    /// Reads `LANES` numbers, unaligned.
    ///
    /// # Safety
    /// `p` must be valid for reading `LANES` numbers, and the level be enabled where this is inlined (module page).
    unsafe fn load(p: *const f64) -> Self;
    /// Writes `LANES` numbers, unaligned.
    ///
    /// # Safety
    /// `p` must be valid for writing `LANES` numbers, and the level be enabled where this is inlined (module page).
    unsafe fn store(self, p: *mut f64);
    /// Reads and widens `LANES` numbers, unaligned.
    ///
    /// # Safety
    /// `p` must be valid for reading `LANES` numbers, and the level be enabled where this is inlined (module page).
    unsafe fn load_f32(p: *const f32) -> Self;
    /// Narrows and writes `LANES` numbers, unaligned.
    ///
    /// # Safety
    /// `p` must be valid for writing `LANES` numbers, and the level be enabled where this is inlined (module page).
    unsafe fn store_f32(self, p: *mut f32);

    /// `self * b + c`, rounded once where [`Vector::FUSED`] says so and twice elsewhere.
    fn mul_add(self, b: Self, c: Self) -> Self;
    /// `c - self * b`, rounded like [`Vector::mul_add`].
    fn neg_mul_add(self, b: Self, c: Self) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// The reciprocal of the square root but for one part in 2^14, where there is an instruction for it. Its bits differ
    /// between makes of processors.
    #[inline(always)]
    fn reciprocal_root_estimate(self) -> Option<Self> {
        None
    }
    /// Nearest whole number, halves to even; keeps the sign of zero.
    fn rint(self) -> Self;
    /// Largest whole number not above.
    fn floor(self) -> Self;
    /// Smallest whole number not below.
    fn ceil(self) -> Self;
    /// Nearest whole number towards zero.
    fn trunc(self) -> Self;
    /// The nearest `f32` value.
    fn round_f32(self) -> Self;
    /// The smaller of `self` and `limit`; NaN stays NaN.
    fn at_most(self, limit: Self) -> Self;
    /// The larger of `self` and `limit`; NaN stays NaN.
    fn at_least(self, limit: Self) -> Self;

    /// Bitwise and.
    fn bits_and(self, b: Self) -> Self;
    /// Bitwise or.
    fn bits_or(self, b: Self) -> Self;
    /// Bitwise exclusive or.
    fn bits_xor(self, b: Self) -> Self;
    /// 64-bit sum.
    fn bits_add(self, b: Self) -> Self;
    /// Left shift.
    fn bits_shl<const N: i32>(self) -> Self;
    /// Logical right shift.
    fn bits_shr<const N: i32>(self) -> Self;

    /// `self < b`, false for NaN.
    fn lt(self, b: Self) -> Self::Mask;
    /// `self <= b`, false for NaN.
    fn le(self, b: Self) -> Self::Mask;
    /// `self == b`, false for NaN.
    fn eq(self, b: Self) -> Self::Mask;
    /// `a` where the mask is true, else `b`.
    fn select(mask: Self::Mask, a: Self, b: Self) -> Self;
    /// Lane-wise and.
    fn mask_and(a: Self::Mask, b: Self::Mask) -> Self::Mask;
    /// Lane-wise or.
    fn mask_or(a: Self::Mask, b: Self::Mask) -> Self::Mask;
    /// Lane-wise not.
    fn mask_not(a: Self::Mask) -> Self::Mask;
    /// Is any lane true? One bit per lane.
    fn mask_bits(a: Self::Mask) -> u32;

    /// Is any lane true?
    #[inline(always)]
    fn any(a: Self::Mask) -> bool {
        Self::mask_bits(a) != 0
    }

    /// `self > b`, false for NaN.
    #[inline(always)]
    fn gt(self, b: Self) -> Self::Mask {
        b.lt(self)
    }

    /// `self >= b`, false for NaN.
    #[inline(always)]
    fn ge(self, b: Self) -> Self::Mask {
        b.le(self)
    }

    /// Magnitude.
    #[inline(always)]
    fn abs(self) -> Self {
        self.bits_and(Self::splat_bits(!SIGN))
    }

    /// The sign bit alone.
    #[inline(always)]
    fn sign_bit(self) -> Self {
        self.bits_and(Self::splat_bits(SIGN))
    }

    /// The magnitude of `self` with the sign of `sign`.
    #[inline(always)]
    fn copysign(self, sign: Self) -> Self {
        self.abs().bits_or(sign.sign_bit())
    }

    /// `self · 2^k` for a whole `k` in -2100..=2100 and a `self` in [2^-4, 2^4], rounded once.
    #[inline(always)]
    fn scale(self, k: Self) -> Self {
        // Two factors, so that each is a normal number and only the last product can round.
        let first = (k * Self::splat(0.5)).rint_small();
        let second = k - first;
        self * first.pow2() * second.pow2()
    }

    /// [`Vector::rint`] for magnitudes below 2^51, where the sign of zero does not matter.
    #[inline(always)]
    fn rint_small(self) -> Self {
        let magic = Self::splat(ROUND_MAGIC);
        (self + magic) - magic
    }

    /// `2^self` for a whole number in -1022..=1023.
    #[inline(always)]
    fn pow2(self) -> Self {
        (self + Self::splat(ROUND_MAGIC)).bits_shl::<52>().bits_add(Self::splat(1.0))
    }

    /// Replaces the lanes of `others` that the mask names by a function of these lanes of `numbers`, computed one by one.
    #[inline(always)]
    fn alone<F: Alone<N, M>, const N: usize, const M: usize>(
        mask: Self::Mask,
        numbers: [Self; N],
        others: [Self; M],
    ) -> [Self; M] {
        let (mut inputs, mut outputs) = ([[0.0; MAX_LANES]; N], [[0.0; MAX_LANES]; M]);
        let (from, to) = (numbers.iter().chain(&others), inputs.iter_mut().chain(&mut outputs));
        // SAFETY: the arrays hold at least LANES numbers.
        from.zip(to).for_each(|(vector, lanes)| unsafe { vector.store(lanes.as_mut_ptr()) });
        let bits = Self::mask_bits(mask);
        for lane in (0..Self::LANES).filter(|lane| bits >> lane & 1 == 1) {
            let results = portable::alone::<F, N, M>(inputs.map(|lanes| lanes[lane]));
            outputs.iter_mut().zip(results).for_each(|(lanes, result)| lanes[lane] = result);
        }
        // SAFETY: the arrays hold at least LANES numbers.
        outputs.map(|lanes| unsafe { Self::load(lanes.as_ptr()) })
    }
}

/// A function of `N` numbers with `M` results, for the few lanes that need another way than the others. It has the same bits on all
/// levels.
pub trait Alone<const N: usize, const M: usize> {
    /// Its results.
    fn of<S: Scalar>(numbers: [S; N]) -> [S; M];
}

/// One lane, with operations that vectors have no instructions for. Names that start with `bits` are of 64-bit integers.
pub trait Scalar: Vector {
    /// The low 64 bits of the product.
    fn bits_mul(self, b: Self) -> Self;
    /// Left shift by the number in the bits of `count`, below 64.
    fn bits_shl_by(self, count: Self) -> Self;
    /// Logical right shift by the number in the bits of `count`, below 64.
    fn bits_shr_by(self, count: Self) -> Self;
    /// Equality of bits.
    fn bits_eq(self, b: Self) -> Self::Mask;
    /// The bits of a table at the index in the bits, which must be one of the table.
    fn word(table: &[u64], index: Self) -> Self;
    /// C's fmod.
    fn fmod(self, b: Self) -> Self;
}

/// The sign bit of an `f64`.
pub(crate) const SIGN: u64 = 1 << 63;

/// Implements methods as intrinsic calls.
macro_rules! intrinsics {
    ($($name:ident($($arg:ident: $ty:ty),*) -> $out:ty = $body:expr;)*) => {
        $(
            #[inline(always)]
            fn $name($($arg: $ty),*) -> $out {
                // SAFETY: vector values exist only inside entry points whose features were detected (module page).
                unsafe { $body }
            }
        )*
    };
}
pub(crate) use intrinsics;

/// Implements methods that read or write memory as intrinsic calls.
macro_rules! transfers {
    ($($name:ident($($arg:ident: $ty:ty),*) $(-> $out:ty)? = $body:expr;)*) => {
        $(
            #[inline(always)]
            unsafe fn $name($($arg: $ty),*) $(-> $out)? {
                // SAFETY: the memory has `LANES` numbers, aligned or not, and the level is enabled, as the trait asks.
                unsafe { $body }
            }
        )*
    };
}
pub(crate) use transfers;

/// Implements shifts by `N` bits as intrinsic calls.
macro_rules! shifts {
    ($($name:ident($this:ident) = $body:expr;)*) => {
        $(
            #[inline(always)]
            fn $name<const N: i32>($this) -> Self {
                // SAFETY: as for all intrinsics (module page).
                unsafe { $body }
            }
        )*
    };
}
pub(crate) use shifts;

/// Implements the arithmetic operators of a vector type through four intrinsics.
macro_rules! operators {
    ($vector:ident, $add:ident, $sub:ident, $mul:ident, $div:ident) => {
        operators!(@one $vector, Add, add, $add);
        operators!(@one $vector, Sub, sub, $sub);
        operators!(@one $vector, Mul, mul, $mul);
        operators!(@one $vector, Div, div, $div);
        impl std::ops::Neg for $vector {
            type Output = Self;
            #[inline(always)]
            fn neg(self) -> Self {
                self.bits_xor(Self::splat_bits(crate::simd::SIGN))
            }
        }
    };
    (@one $vector:ident, $trait:ident, $method:ident, $intrinsic:ident) => {
        impl std::ops::$trait for $vector {
            type Output = Self;
            #[inline(always)]
            fn $method(self, b: Self) -> Self {
                // SAFETY: vector values exist only inside entry points whose features were detected (module page).
                Self(unsafe { $intrinsic(self.0, b.0) })
            }
        }
    };
}
pub(crate) use operators;
