//! Exponential and logarithm in `f32` lanes, for levels with fused multiply-add: twice the lanes of the general way, and
//! at most 1 ULP, as all 2³² arguments show.

use super::PrimFn;
use super::coefficients as c;
use crate::simd::Isa;
use crate::simd::single::{MAX_SINGLE_LANES, Single};
use bh_bytecode::Opcode;

/// ln 2 to 15 bits, so that products with exponents are exact, and the rest.
const LN2_HI: f32 = 0.693_145_75;
const LN2_LO: f32 = 1.428_606_8e-6;
/// 1.5 · 2^23 rounds numbers of magnitude below 2^22 to whole ones.
const ROUND_MAGIC: f32 = 12_582_912.0;
const SQRT_HALF_BITS: u32 = 0x3f35_04f3;
const ONE_BITS: u32 = 0x3f80_0000;
const MANTISSA: u32 = 0x007f_ffff;
const TWO_25: f32 = 33_554_432.0;

#[inline(always)]
fn polynomial<V: Single, const N: usize>(x: V, coefficients: &[f32; N]) -> V {
    let mut sum = V::splat(coefficients[N - 1]);
    for &coefficient in coefficients[..N - 1].iter().rev() {
        sum = sum.mul_add(x, V::splat(coefficient));
    }
    sum
}

#[inline(always)]
fn exp<V: Single>(x: V) -> V {
    // Beyond, results are infinite or zero all the same.
    let x = x.at_most(V::splat(90.0)).at_least(V::splat(-110.0));
    let magic = V::splat(ROUND_MAGIC);
    let k = x.mul_add(V::splat(std::f32::consts::LOG2_E), magic).sub(magic);
    let r = k.neg_mul_add(V::splat(LN2_LO), k.neg_mul_add(V::splat(LN2_HI), x));
    // 1 + r exactly, so that only r itself and the last sum are rounded where it counts.
    let one = V::splat(1.0);
    let sum = one.add(r);
    let rest = r.sub(sum.sub(one));
    sum.add(r.mul(r).mul_add(polynomial(r, &c::EXP_F32), rest)).scale(k)
}

#[inline(always)]
fn log<V: Single>(x: V) -> V {
    let zero = V::splat(0.0);
    let normal = V::mask_and(V::splat(f32::MIN_POSITIVE.next_down()).lt(x), x.lt(V::splat(f32::INFINITY)));
    let special = V::any(V::mask_not(normal));
    let (mut prepared, mut exponent) = (x, V::splat(-127.0));
    if special {
        let tiny = V::mask_and(zero.lt(x), x.lt(V::splat(f32::MIN_POSITIVE)));
        prepared = V::select(tiny, x.mul(V::splat(TWO_25)), x);
        exponent = V::select(tiny, V::splat(-127.0 - 25.0), exponent);
    }
    let shifted = prepared.bits_add(V::splat_bits(ONE_BITS - SQRT_HALF_BITS));
    let k = shifted.exponent_field().add(exponent);
    let m = shifted.bits_and(V::splat_bits(MANTISSA)).bits_add(V::splat_bits(SQRT_HALF_BITS));
    let f = m.sub(V::splat(1.0));
    // f - f²/2 + f³ p(f), with the smaller parts summed first.
    let square = f.mul(f);
    let low = k.mul_add(V::splat(LN2_LO), square.mul(f.mul_add(polynomial(f, &c::LOG_F32), V::splat(-0.5))));
    let result = k.mul_add(V::splat(LN2_HI), f.add(low));
    if !special {
        return result;
    }
    let positive = V::mask_and(zero.lt(x), x.lt(V::splat(f32::INFINITY)));
    let limit = V::select(x.eq(V::splat(f32::INFINITY)), x, V::splat(f32::NAN));
    let limit = V::select(x.eq(zero), V::splat(f32::NEG_INFINITY), limit);
    V::select(positive, result, limit)
}

/// The result of the primitive in `f32` lanes for one vector, if there is such a primitive.
pub(crate) fn evaluate_single<V: Single>(opcode: Opcode, x: V) -> Option<V> {
    match opcode {
        Opcode::Exp => Some(exp(x)),
        Opcode::Log => Some(log(x)),
        _ => None,
    }
}

/// # Safety
/// See [`PrimFn`]; the level must be available.
#[inline(always)]
unsafe fn block<V: Single>(n: usize, dst: *mut f32, a: *const f32, f: impl Fn(V) -> V) {
    let whole = n - n % V::LANES;
    let mut i = 0;
    // SAFETY: `i + LANES <= n`; the tail goes through an array of at least LANES elements.
    unsafe {
        while i < whole {
            f(V::load(a.add(i))).store(dst.add(i));
            i += V::LANES;
        }
        if i < n {
            let mut padded = [0.75; MAX_SINGLE_LANES];
            a.add(i).copy_to_nonoverlapping(padded.as_mut_ptr(), n - i);
            f(V::load(padded.as_ptr())).store(padded.as_mut_ptr());
            dst.add(i).copy_from_nonoverlapping(padded.as_ptr(), n - i);
        }
    }
}

/// The primitives of one level.
macro_rules! level {
    ($module:ident, $vector:path $(, $feature:literal)?) => {
        mod $module {
            use $vector as Lanes;

            $(#[target_feature(enable = $feature)])?
            pub(super) unsafe extern "C" fn exp(n: usize, dst: *mut u8, a: *const u8, _b: *const u8, _c: *const u8) {
                // SAFETY: `dst` and `a` have `n` elements of `f32`, and the machine the level, as [`PrimFn`] asks.
                unsafe {
                    super::block::<Lanes>(
                        n,
                        dst.cast(),
                        a.cast(),
                        #[inline(always)]
                        |x| super::exp(x),
                    )
                }
            }

            $(#[target_feature(enable = $feature)])?
            pub(super) unsafe extern "C" fn log(n: usize, dst: *mut u8, a: *const u8, _b: *const u8, _c: *const u8) {
                // SAFETY: as above.
                unsafe {
                    super::block::<Lanes>(
                        n,
                        dst.cast(),
                        a.cast(),
                        #[inline(always)]
                        |x| super::log(x),
                    )
                }
            }
        }
    };
}
#[cfg(target_arch = "x86_64")]
level!(avx2, crate::simd::Avx2Single, "avx2,fma");
#[cfg(target_arch = "x86_64")]
level!(avx512, crate::simd::Avx512Single, "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma");
#[cfg(target_arch = "aarch64")]
level!(neon, crate::simd::NeonSingle, "neon");
level!(fused, crate::simd::single::FusedSingle);

/// The primitive in `f32` lanes, where there is one.
pub(super) fn lookup(isa: Isa, opcode: Opcode) -> Option<PrimFn> {
    match (isa, opcode) {
        #[cfg(target_arch = "x86_64")]
        (Isa::Avx2, Opcode::Exp) => Some(avx2::exp),
        #[cfg(target_arch = "x86_64")]
        (Isa::Avx2, Opcode::Log) => Some(avx2::log),
        #[cfg(target_arch = "x86_64")]
        (Isa::Avx512, Opcode::Exp) => Some(avx512::exp),
        #[cfg(target_arch = "x86_64")]
        (Isa::Avx512, Opcode::Log) => Some(avx512::log),
        #[cfg(target_arch = "aarch64")]
        (Isa::Neon, Opcode::Exp) => Some(neon::exp),
        #[cfg(target_arch = "aarch64")]
        (Isa::Neon, Opcode::Log) => Some(neon::log),
        (Isa::Fused, Opcode::Exp) => Some(fused::exp),
        (Isa::Fused, Opcode::Log) => Some(fused::log),
        _ => None,
    }
}
