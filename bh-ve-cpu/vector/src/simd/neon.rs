//! Two `f64` lanes, or four of `f32`, with NEON, which every AArch64 processor has.

use super::single::Single;
use super::{Vector, intrinsics, operators, shifts, transfers};
use std::arch::aarch64::*;

/// Two lanes.
#[derive(Clone, Copy)]
pub(crate) struct Neon(float64x2_t);

operators!(Neon, vaddq_f64, vsubq_f64, vmulq_f64, vdivq_f64);

impl Vector for Neon {
    const LANES: usize = 2;
    const FUSED: bool = true;
    type Mask = uint64x2_t;

    transfers! {
        load(p: *const f64) -> Self = Self(vld1q_f64(p));
        store(self: Self, p: *mut f64) = vst1q_f64(p, self.0);
        load_f32(p: *const f32) -> Self = Self(vcvt_f64_f32(vld1_f32(p)));
        store_f32(self: Self, p: *mut f32) = vst1_f32(p, vcvt_f32_f64(self.0));
    }

    intrinsics! {
        splat(x: f64) -> Self = Self(vdupq_n_f64(x));
        splat_bits(bits: u64) -> Self = Self(vreinterpretq_f64_u64(vdupq_n_u64(bits)));
        mul_add(self: Self, b: Self, c: Self) -> Self = Self(vfmaq_f64(c.0, self.0, b.0));
        neg_mul_add(self: Self, b: Self, c: Self) -> Self = Self(vfmsq_f64(c.0, self.0, b.0));
        sqrt(self: Self) -> Self = Self(vsqrtq_f64(self.0));
        rint(self: Self) -> Self = Self(vrndnq_f64(self.0));
        floor(self: Self) -> Self = Self(vrndmq_f64(self.0));
        ceil(self: Self) -> Self = Self(vrndpq_f64(self.0));
        trunc(self: Self) -> Self = Self(vrndq_f64(self.0));
        round_f32(self: Self) -> Self = Self(vcvt_f64_f32(vcvt_f32_f64(self.0)));
        lt(self: Self, b: Self) -> uint64x2_t = vcltq_f64(self.0, b.0);
        le(self: Self, b: Self) -> uint64x2_t = vcleq_f64(self.0, b.0);
        eq(self: Self, b: Self) -> uint64x2_t = vceqq_f64(self.0, b.0);
        select(mask: uint64x2_t, a: Self, b: Self) -> Self = Self(vbslq_f64(mask, a.0, b.0));
        mask_and(a: uint64x2_t, b: uint64x2_t) -> uint64x2_t = vandq_u64(a, b);
        mask_or(a: uint64x2_t, b: uint64x2_t) -> uint64x2_t = vorrq_u64(a, b);
        mask_not(a: uint64x2_t) -> uint64x2_t = veorq_u64(a, vdupq_n_u64(u64::MAX));
        mask_bits(a: uint64x2_t) -> u32 = (vgetq_lane_u64::<0>(a) & 1 | vgetq_lane_u64::<1>(a) & 2) as u32;
        bits_and(self: Self, b: Self) -> Self =
            Self(vreinterpretq_f64_u64(vandq_u64(vreinterpretq_u64_f64(self.0), vreinterpretq_u64_f64(b.0))));
        bits_or(self: Self, b: Self) -> Self =
            Self(vreinterpretq_f64_u64(vorrq_u64(vreinterpretq_u64_f64(self.0), vreinterpretq_u64_f64(b.0))));
        bits_xor(self: Self, b: Self) -> Self =
            Self(vreinterpretq_f64_u64(veorq_u64(vreinterpretq_u64_f64(self.0), vreinterpretq_u64_f64(b.0))));
        bits_add(self: Self, b: Self) -> Self =
            Self(vreinterpretq_f64_u64(vaddq_u64(vreinterpretq_u64_f64(self.0), vreinterpretq_u64_f64(b.0))));
        any(a: uint64x2_t) -> bool = vmaxvq_u32(vreinterpretq_u32_u64(a)) != 0;
    }

    // The instructions for minima and maxima order zeros by their signs, unlike the other levels.
    #[inline(always)]
    fn at_most(self, limit: Self) -> Self {
        Self::select(limit.lt(self), limit, self)
    }

    #[inline(always)]
    fn at_least(self, limit: Self) -> Self {
        Self::select(self.lt(limit), limit, self)
    }

    shifts! {
        bits_shl(self) = Self(vreinterpretq_f64_u64(vshlq_n_u64::<N>(vreinterpretq_u64_f64(self.0))));
        bits_shr(self) = Self(vreinterpretq_f64_u64(vshrq_n_u64::<N>(vreinterpretq_u64_f64(self.0))));
    }
}

/// Four lanes of `f32`.
#[derive(Clone, Copy)]
pub(crate) struct NeonSingle(float32x4_t);

impl Single for NeonSingle {
    const LANES: usize = 4;
    type Mask = uint32x4_t;

    transfers! {
        load(p: *const f32) -> Self = Self(vld1q_f32(p));
        store(self: Self, p: *mut f32) = vst1q_f32(p, self.0);
    }

    intrinsics! {
        splat(x: f32) -> Self = Self(vdupq_n_f32(x));
        splat_bits(bits: u32) -> Self = Self(vreinterpretq_f32_u32(vdupq_n_u32(bits)));
        add(self: Self, b: Self) -> Self = Self(vaddq_f32(self.0, b.0));
        sub(self: Self, b: Self) -> Self = Self(vsubq_f32(self.0, b.0));
        mul(self: Self, b: Self) -> Self = Self(vmulq_f32(self.0, b.0));
        mul_add(self: Self, b: Self, c: Self) -> Self = Self(vfmaq_f32(c.0, self.0, b.0));
        neg_mul_add(self: Self, b: Self, c: Self) -> Self = Self(vfmsq_f32(c.0, self.0, b.0));
        bits_and(self: Self, b: Self) -> Self =
            Self(vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(self.0), vreinterpretq_u32_f32(b.0))));
        bits_add(self: Self, b: Self) -> Self =
            Self(vreinterpretq_f32_u32(vaddq_u32(vreinterpretq_u32_f32(self.0), vreinterpretq_u32_f32(b.0))));
        exponent_field(self: Self) -> Self = Self(vcvtq_f32_u32(vshrq_n_u32::<23>(vreinterpretq_u32_f32(self.0))));
        lt(self: Self, b: Self) -> uint32x4_t = vcltq_f32(self.0, b.0);
        eq(self: Self, b: Self) -> uint32x4_t = vceqq_f32(self.0, b.0);
        select(mask: uint32x4_t, a: Self, b: Self) -> Self = Self(vbslq_f32(mask, a.0, b.0));
        mask_and(a: uint32x4_t, b: uint32x4_t) -> uint32x4_t = vandq_u32(a, b);
        mask_not(a: uint32x4_t) -> uint32x4_t = vmvnq_u32(a);
        any(a: uint32x4_t) -> bool = vmaxvq_u32(a) != 0;
    }

    #[inline(always)]
    fn at_most(self, limit: Self) -> Self {
        Self::select(limit.lt(self), limit, self)
    }

    #[inline(always)]
    fn at_least(self, limit: Self) -> Self {
        Self::select(self.lt(limit), limit, self)
    }

    #[inline(always)]
    fn scale(self, k: Self) -> Self {
        // SAFETY: as for all intrinsics (module page of `simd`).
        unsafe {
            // Two factors, so that each is a normal number and only the last product can round.
            let whole = vcvtq_s32_f32(k.0);
            let first = vshrq_n_s32::<1>(whole);
            let second = vsubq_s32(whole, first);
            let power = |k| vreinterpretq_f32_s32(vshlq_n_s32::<23>(vaddq_s32(k, vdupq_n_s32(127))));
            Self(vmulq_f32(vmulq_f32(self.0, power(first)), power(second)))
        }
    }
}
