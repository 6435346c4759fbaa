//! Four `f64` lanes, or eight of `f32`, with AVX2 and FMA.

use super::single::Single;
use super::{Vector, intrinsics, operators, shifts, transfers};
use std::arch::x86_64::*;

/// Four lanes.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(__m256d);

operators!(Avx2, _mm256_add_pd, _mm256_sub_pd, _mm256_mul_pd, _mm256_div_pd);

impl Vector for Avx2 {
    const LANES: usize = 4;
    const FUSED: bool = true;
    type Mask = __m256d;

    transfers! {
        load(p: *const f64) -> Self = Self(_mm256_loadu_pd(p));
        store(self: Self, p: *mut f64) = _mm256_storeu_pd(p, self.0);
        load_f32(p: *const f32) -> Self = Self(_mm256_cvtps_pd(_mm_loadu_ps(p)));
        store_f32(self: Self, p: *mut f32) = _mm_storeu_ps(p, _mm256_cvtpd_ps(self.0));
    }

    intrinsics! {
        splat(x: f64) -> Self = Self(_mm256_set1_pd(x));
        splat_bits(bits: u64) -> Self = Self(_mm256_castsi256_pd(_mm256_set1_epi64x(bits as i64)));
        mul_add(self: Self, b: Self, c: Self) -> Self = Self(_mm256_fmadd_pd(self.0, b.0, c.0));
        neg_mul_add(self: Self, b: Self, c: Self) -> Self = Self(_mm256_fnmadd_pd(self.0, b.0, c.0));
        sqrt(self: Self) -> Self = Self(_mm256_sqrt_pd(self.0));
        rint(self: Self) -> Self = Self(_mm256_round_pd::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(self.0));
        floor(self: Self) -> Self = Self(_mm256_floor_pd(self.0));
        ceil(self: Self) -> Self = Self(_mm256_ceil_pd(self.0));
        trunc(self: Self) -> Self = Self(_mm256_round_pd::<{ _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC }>(self.0));
        round_f32(self: Self) -> Self = Self(_mm256_cvtps_pd(_mm256_cvtpd_ps(self.0)));
        at_most(self: Self, limit: Self) -> Self = Self(_mm256_min_pd(limit.0, self.0));
        at_least(self: Self, limit: Self) -> Self = Self(_mm256_max_pd(limit.0, self.0));
        bits_and(self: Self, b: Self) -> Self = Self(_mm256_and_pd(self.0, b.0));
        bits_or(self: Self, b: Self) -> Self = Self(_mm256_or_pd(self.0, b.0));
        bits_xor(self: Self, b: Self) -> Self = Self(_mm256_xor_pd(self.0, b.0));
        lt(self: Self, b: Self) -> __m256d = _mm256_cmp_pd::<_CMP_LT_OQ>(self.0, b.0);
        le(self: Self, b: Self) -> __m256d = _mm256_cmp_pd::<_CMP_LE_OQ>(self.0, b.0);
        eq(self: Self, b: Self) -> __m256d = _mm256_cmp_pd::<_CMP_EQ_OQ>(self.0, b.0);
        select(mask: __m256d, a: Self, b: Self) -> Self = Self(_mm256_blendv_pd(b.0, a.0, mask));
        mask_and(a: __m256d, b: __m256d) -> __m256d = _mm256_and_pd(a, b);
        mask_or(a: __m256d, b: __m256d) -> __m256d = _mm256_or_pd(a, b);
        mask_not(a: __m256d) -> __m256d = _mm256_xor_pd(a, _mm256_castsi256_pd(_mm256_set1_epi64x(-1)));
        mask_bits(a: __m256d) -> u32 = _mm256_movemask_pd(a) as u32;
        bits_add(self: Self, b: Self) -> Self =
            Self(_mm256_castsi256_pd(_mm256_add_epi64(_mm256_castpd_si256(self.0), _mm256_castpd_si256(b.0))));
    }

    shifts! {
        bits_shl(self) = Self(_mm256_castsi256_pd(_mm256_slli_epi64::<N>(_mm256_castpd_si256(self.0))));
        bits_shr(self) = Self(_mm256_castsi256_pd(_mm256_srli_epi64::<N>(_mm256_castpd_si256(self.0))));
    }
}

/// Eight lanes of `f32`.
#[derive(Clone, Copy)]
pub(crate) struct Avx2Single(__m256);

impl Single for Avx2Single {
    const LANES: usize = 8;
    type Mask = __m256;

    transfers! {
        load(p: *const f32) -> Self = Self(_mm256_loadu_ps(p));
        store(self: Self, p: *mut f32) = _mm256_storeu_ps(p, self.0);
    }

    intrinsics! {
        splat(x: f32) -> Self = Self(_mm256_set1_ps(x));
        splat_bits(bits: u32) -> Self = Self(_mm256_castsi256_ps(_mm256_set1_epi32(bits as i32)));
        add(self: Self, b: Self) -> Self = Self(_mm256_add_ps(self.0, b.0));
        sub(self: Self, b: Self) -> Self = Self(_mm256_sub_ps(self.0, b.0));
        mul(self: Self, b: Self) -> Self = Self(_mm256_mul_ps(self.0, b.0));
        mul_add(self: Self, b: Self, c: Self) -> Self = Self(_mm256_fmadd_ps(self.0, b.0, c.0));
        neg_mul_add(self: Self, b: Self, c: Self) -> Self = Self(_mm256_fnmadd_ps(self.0, b.0, c.0));
        at_most(self: Self, limit: Self) -> Self = Self(_mm256_min_ps(limit.0, self.0));
        at_least(self: Self, limit: Self) -> Self = Self(_mm256_max_ps(limit.0, self.0));
        bits_and(self: Self, b: Self) -> Self = Self(_mm256_and_ps(self.0, b.0));
        bits_add(self: Self, b: Self) -> Self =
            Self(_mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(self.0), _mm256_castps_si256(b.0))));
        exponent_field(self: Self) -> Self =
            Self(_mm256_cvtepi32_ps(_mm256_srli_epi32::<23>(_mm256_castps_si256(self.0))));
        lt(self: Self, b: Self) -> __m256 = _mm256_cmp_ps::<_CMP_LT_OQ>(self.0, b.0);
        eq(self: Self, b: Self) -> __m256 = _mm256_cmp_ps::<_CMP_EQ_OQ>(self.0, b.0);
        select(mask: __m256, a: Self, b: Self) -> Self = Self(_mm256_blendv_ps(b.0, a.0, mask));
        mask_and(a: __m256, b: __m256) -> __m256 = _mm256_and_ps(a, b);
        mask_not(a: __m256) -> __m256 = _mm256_xor_ps(a, _mm256_castsi256_ps(_mm256_set1_epi32(-1)));
        any(a: __m256) -> bool = _mm256_movemask_ps(a) != 0;
    }

    #[inline(always)]
    fn scale(self, k: Self) -> Self {
        // SAFETY: as for all intrinsics (module page of `simd`).
        unsafe {
            // Two factors, so that each is a normal number and only the last product can round.
            let whole = _mm256_cvtps_epi32(k.0);
            let first = _mm256_srai_epi32::<1>(whole);
            let second = _mm256_sub_epi32(whole, first);
            let bias = _mm256_set1_epi32(127);
            let power = |k| _mm256_castsi256_ps(_mm256_slli_epi32::<23>(_mm256_add_epi32(k, bias)));
            Self(_mm256_mul_ps(_mm256_mul_ps(self.0, power(first)), power(second)))
        }
    }
}
