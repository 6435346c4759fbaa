//! Eight `f64` lanes, or sixteen of `f32`, with AVX-512 F, DQ, BW and VL.

use super::single::Single;
use super::{Vector, intrinsics, operators, shifts, transfers};
use std::arch::x86_64::*;

/// Eight lanes.
#[derive(Clone, Copy)]
pub(crate) struct Avx512(__m512d);

operators!(Avx512, _mm512_add_pd, _mm512_sub_pd, _mm512_mul_pd, _mm512_div_pd);

/// Rounding-mode immediates of `vrndscalepd`: no scaling, exceptions suppressed.
const NEAREST: i32 = 0x08;
const DOWN: i32 = 0x09;
const UP: i32 = 0x0a;
const ZERO: i32 = 0x0b;

impl Vector for Avx512 {
    const LANES: usize = 8;
    const FUSED: bool = true;
    type Mask = __mmask8;

    transfers! {
        load(p: *const f64) -> Self = Self(_mm512_loadu_pd(p));
        store(self: Self, p: *mut f64) = _mm512_storeu_pd(p, self.0);
        load_f32(p: *const f32) -> Self = Self(_mm512_cvtps_pd(_mm256_loadu_ps(p)));
        store_f32(self: Self, p: *mut f32) = _mm256_storeu_ps(p, _mm512_cvtpd_ps(self.0));
    }

    intrinsics! {
        splat(x: f64) -> Self = Self(_mm512_set1_pd(x));
        splat_bits(bits: u64) -> Self = Self(_mm512_castsi512_pd(_mm512_set1_epi64(bits as i64)));
        mul_add(self: Self, b: Self, c: Self) -> Self = Self(_mm512_fmadd_pd(self.0, b.0, c.0));
        neg_mul_add(self: Self, b: Self, c: Self) -> Self = Self(_mm512_fnmadd_pd(self.0, b.0, c.0));
        sqrt(self: Self) -> Self = Self(_mm512_sqrt_pd(self.0));
        reciprocal_root_estimate(self: Self) -> Option<Self> = Some(Self(_mm512_rsqrt14_pd(self.0)));
        rint(self: Self) -> Self = Self(_mm512_roundscale_pd::<NEAREST>(self.0));
        floor(self: Self) -> Self = Self(_mm512_roundscale_pd::<DOWN>(self.0));
        ceil(self: Self) -> Self = Self(_mm512_roundscale_pd::<UP>(self.0));
        trunc(self: Self) -> Self = Self(_mm512_roundscale_pd::<ZERO>(self.0));
        round_f32(self: Self) -> Self = Self(_mm512_cvtps_pd(_mm512_cvtpd_ps(self.0)));
        at_most(self: Self, limit: Self) -> Self = Self(_mm512_min_pd(limit.0, self.0));
        at_least(self: Self, limit: Self) -> Self = Self(_mm512_max_pd(limit.0, self.0));
        bits_and(self: Self, b: Self) -> Self = Self(_mm512_and_pd(self.0, b.0));
        bits_or(self: Self, b: Self) -> Self = Self(_mm512_or_pd(self.0, b.0));
        bits_xor(self: Self, b: Self) -> Self = Self(_mm512_xor_pd(self.0, b.0));
        lt(self: Self, b: Self) -> __mmask8 = _mm512_cmp_pd_mask::<_CMP_LT_OQ>(self.0, b.0);
        le(self: Self, b: Self) -> __mmask8 = _mm512_cmp_pd_mask::<_CMP_LE_OQ>(self.0, b.0);
        eq(self: Self, b: Self) -> __mmask8 = _mm512_cmp_pd_mask::<_CMP_EQ_OQ>(self.0, b.0);
        select(mask: __mmask8, a: Self, b: Self) -> Self = Self(_mm512_mask_blend_pd(mask, b.0, a.0));
        scale(self: Self, k: Self) -> Self = Self(_mm512_scalef_pd(self.0, k.0));
        bits_add(self: Self, b: Self) -> Self =
            Self(_mm512_castsi512_pd(_mm512_add_epi64(_mm512_castpd_si512(self.0), _mm512_castpd_si512(b.0))));
    }

    shifts! {
        bits_shl(self) = Self(_mm512_castsi512_pd(_mm512_sll_epi64(_mm512_castpd_si512(self.0), _mm_cvtsi32_si128(N))));
        bits_shr(self) = Self(_mm512_castsi512_pd(_mm512_srl_epi64(_mm512_castpd_si512(self.0), _mm_cvtsi32_si128(N))));
    }

    #[inline(always)]
    fn mask_and(a: __mmask8, b: __mmask8) -> __mmask8 {
        a & b
    }

    #[inline(always)]
    fn mask_or(a: __mmask8, b: __mmask8) -> __mmask8 {
        a | b
    }

    #[inline(always)]
    fn mask_not(a: __mmask8) -> __mmask8 {
        !a
    }

    #[inline(always)]
    fn mask_bits(a: __mmask8) -> u32 {
        u32::from(a)
    }
}

/// Sixteen lanes of `f32`.
#[derive(Clone, Copy)]
pub(crate) struct Avx512Single(__m512);

impl Single for Avx512Single {
    const LANES: usize = 16;
    type Mask = __mmask16;

    transfers! {
        load(p: *const f32) -> Self = Self(_mm512_loadu_ps(p));
        store(self: Self, p: *mut f32) = _mm512_storeu_ps(p, self.0);
    }

    intrinsics! {
        splat(x: f32) -> Self = Self(_mm512_set1_ps(x));
        splat_bits(bits: u32) -> Self = Self(_mm512_castsi512_ps(_mm512_set1_epi32(bits as i32)));
        add(self: Self, b: Self) -> Self = Self(_mm512_add_ps(self.0, b.0));
        sub(self: Self, b: Self) -> Self = Self(_mm512_sub_ps(self.0, b.0));
        mul(self: Self, b: Self) -> Self = Self(_mm512_mul_ps(self.0, b.0));
        mul_add(self: Self, b: Self, c: Self) -> Self = Self(_mm512_fmadd_ps(self.0, b.0, c.0));
        neg_mul_add(self: Self, b: Self, c: Self) -> Self = Self(_mm512_fnmadd_ps(self.0, b.0, c.0));
        at_most(self: Self, limit: Self) -> Self = Self(_mm512_min_ps(limit.0, self.0));
        at_least(self: Self, limit: Self) -> Self = Self(_mm512_max_ps(limit.0, self.0));
        scale(self: Self, k: Self) -> Self = Self(_mm512_scalef_ps(self.0, k.0));
        bits_and(self: Self, b: Self) -> Self = Self(_mm512_and_ps(self.0, b.0));
        bits_add(self: Self, b: Self) -> Self =
            Self(_mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(self.0), _mm512_castps_si512(b.0))));
        exponent_field(self: Self) -> Self =
            Self(_mm512_cvtepi32_ps(_mm512_srl_epi32(_mm512_castps_si512(self.0), _mm_cvtsi32_si128(23))));
        lt(self: Self, b: Self) -> __mmask16 = _mm512_cmp_ps_mask::<_CMP_LT_OQ>(self.0, b.0);
        eq(self: Self, b: Self) -> __mmask16 = _mm512_cmp_ps_mask::<_CMP_EQ_OQ>(self.0, b.0);
        select(mask: __mmask16, a: Self, b: Self) -> Self = Self(_mm512_mask_blend_ps(mask, b.0, a.0));
    }

    #[inline(always)]
    fn mask_and(a: __mmask16, b: __mmask16) -> __mmask16 {
        a & b
    }

    #[inline(always)]
    fn mask_not(a: __mmask16) -> __mmask16 {
        !a
    }

    #[inline(always)]
    fn any(a: __mmask16) -> bool {
        a != 0
    }
}
