//! Two `f64` lanes with what every x86-64 processor has: no fused multiply-add, no rounding instructions.

use super::{Vector, intrinsics, operators, shifts, transfers};
use std::arch::x86_64::*;

/// Two lanes.
#[derive(Clone, Copy)]
pub(crate) struct Sse2(__m128d);

operators!(Sse2, _mm_add_pd, _mm_sub_pd, _mm_mul_pd, _mm_div_pd);

/// From this magnitude on every number is whole.
const ALL_WHOLE: f64 = 4_503_599_627_370_496.0;

impl Vector for Sse2 {
    const LANES: usize = 2;
    const FUSED: bool = false;
    type Mask = __m128d;

    transfers! {
        load(p: *const f64) -> Self = Self(_mm_loadu_pd(p));
        store(self: Self, p: *mut f64) = _mm_storeu_pd(p, self.0);
        load_f32(p: *const f32) -> Self = Self(_mm_cvtps_pd(_mm_castpd_ps(_mm_load_sd(p.cast::<f64>()))));
        store_f32(self: Self, p: *mut f32) = _mm_store_sd(p.cast::<f64>(), _mm_castps_pd(_mm_cvtpd_ps(self.0)));
    }

    intrinsics! {
        splat(x: f64) -> Self = Self(_mm_set1_pd(x));
        splat_bits(bits: u64) -> Self = Self(_mm_castsi128_pd(_mm_set1_epi64x(bits as i64)));
        sqrt(self: Self) -> Self = Self(_mm_sqrt_pd(self.0));
        round_f32(self: Self) -> Self = Self(_mm_cvtps_pd(_mm_cvtpd_ps(self.0)));
        at_most(self: Self, limit: Self) -> Self = Self(_mm_min_pd(limit.0, self.0));
        at_least(self: Self, limit: Self) -> Self = Self(_mm_max_pd(limit.0, self.0));
        bits_and(self: Self, b: Self) -> Self = Self(_mm_and_pd(self.0, b.0));
        bits_or(self: Self, b: Self) -> Self = Self(_mm_or_pd(self.0, b.0));
        bits_xor(self: Self, b: Self) -> Self = Self(_mm_xor_pd(self.0, b.0));
        lt(self: Self, b: Self) -> __m128d = _mm_cmplt_pd(self.0, b.0);
        le(self: Self, b: Self) -> __m128d = _mm_cmple_pd(self.0, b.0);
        eq(self: Self, b: Self) -> __m128d = _mm_cmpeq_pd(self.0, b.0);
        select(mask: __m128d, a: Self, b: Self) -> Self =
            Self(_mm_or_pd(_mm_and_pd(mask, a.0), _mm_andnot_pd(mask, b.0)));
        mask_and(a: __m128d, b: __m128d) -> __m128d = _mm_and_pd(a, b);
        mask_or(a: __m128d, b: __m128d) -> __m128d = _mm_or_pd(a, b);
        mask_not(a: __m128d) -> __m128d = _mm_xor_pd(a, _mm_castsi128_pd(_mm_set1_epi64x(-1)));
        mask_bits(a: __m128d) -> u32 = _mm_movemask_pd(a) as u32;
        bits_add(self: Self, b: Self) -> Self =
            Self(_mm_castsi128_pd(_mm_add_epi64(_mm_castpd_si128(self.0), _mm_castpd_si128(b.0))));
    }

    #[inline(always)]
    fn mul_add(self, b: Self, c: Self) -> Self {
        self * b + c
    }

    #[inline(always)]
    fn neg_mul_add(self, b: Self, c: Self) -> Self {
        c - self * b
    }

    #[inline(always)]
    fn rint(self) -> Self {
        // 2^52 with the number's sign pushes the fraction out; larger numbers and NaN stay as they are.
        let shift = Self::splat(ALL_WHOLE).copysign(self);
        let rounded = ((self + shift) - shift).copysign(self);
        Self::select(self.abs().lt(Self::splat(ALL_WHOLE)), rounded, self)
    }

    #[inline(always)]
    fn floor(self) -> Self {
        let near = self.rint();
        let lower = Self::select(near.gt(self), near - Self::splat(1.0), near);
        Self::select(self.abs().lt(Self::splat(ALL_WHOLE)), lower.copysign(self), self)
    }

    #[inline(always)]
    fn ceil(self) -> Self {
        let near = self.rint();
        let upper = Self::select(near.lt(self), near + Self::splat(1.0), near);
        Self::select(self.abs().lt(Self::splat(ALL_WHOLE)), upper.copysign(self), self)
    }

    #[inline(always)]
    fn trunc(self) -> Self {
        self.abs().floor().copysign(self)
    }

    shifts! {
        bits_shl(self) = Self(_mm_castsi128_pd(_mm_slli_epi64::<N>(_mm_castpd_si128(self.0))));
        bits_shr(self) = Self(_mm_castsi128_pd(_mm_srli_epi64::<N>(_mm_castpd_si128(self.0))));
    }
}
