//! Vectors of `f32` lanes with fused multiply-add, for the few functions worth a version of their own.

use super::{intrinsics, transfers};
use std::arch::x86_64::*;

/// A vector of `f32` lanes; the module page of `simd` says where values of such types may exist. Operations whose names
/// start with `bits` treat the lanes as 32-bit integers.
pub(crate) trait Single: Copy {
    /// The number of lanes.
    const LANES: usize;
    /// One truth value per lane.
    type Mask: Copy;

    /// All lanes equal.
    fn splat(x: f32) -> Self;
    /// All lanes with this bit pattern.
    fn splat_bits(bits: u32) -> Self;
    /// Reads `LANES` numbers, unaligned.
    ///
    /// # Safety
    /// `p` must be valid for reading `LANES` numbers, and the level be enabled where this is inlined (module page of
    /// `simd`).
    unsafe fn load(p: *const f32) -> Self;
    /// Writes `LANES` numbers, unaligned.
    ///
    /// # Safety
    /// `p` must be valid for writing `LANES` numbers, and the level be enabled where this is inlined (module page of
    /// `simd`).
    unsafe fn store(self, p: *mut f32);
    /// Sum.
    fn add(self, b: Self) -> Self;
    /// Difference.
    fn sub(self, b: Self) -> Self;
    /// Product.
    fn mul(self, b: Self) -> Self;
    /// `self * b + c`, rounded once.
    fn mul_add(self, b: Self, c: Self) -> Self;
    /// `c - self * b`, rounded once.
    fn neg_mul_add(self, b: Self, c: Self) -> Self;
    /// The smaller of `self` and `limit`; NaN stays NaN.
    fn at_most(self, limit: Self) -> Self;
    /// The larger of `self` and `limit`; NaN stays NaN.
    fn at_least(self, limit: Self) -> Self;
    /// `self · 2^k` for a whole `k` in -252..=254, rounded once for a `self` near 1.
    fn scale(self, k: Self) -> Self;
    /// Bitwise and.
    fn bits_and(self, b: Self) -> Self;
    /// 32-bit sum.
    fn bits_add(self, b: Self) -> Self;
    /// The integers in the upper nine bits, as numbers.
    fn exponent_field(self) -> Self;
    /// `self < b`, false for NaN.
    fn lt(self, b: Self) -> Self::Mask;
    /// `self == b`, false for NaN.
    fn eq(self, b: Self) -> Self::Mask;
    /// `a` where the mask is true, else `b`.
    fn select(mask: Self::Mask, a: Self, b: Self) -> Self;
    /// Lane-wise and.
    fn mask_and(a: Self::Mask, b: Self::Mask) -> Self::Mask;
    /// Lane-wise not.
    fn mask_not(a: Self::Mask) -> Self::Mask;
    /// Is any lane true?
    fn any(a: Self::Mask) -> bool;
}

/// The most lanes any level has.
pub(crate) const MAX_SINGLE_LANES: usize = 16;

/// Sixteen lanes.
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

/// Eight lanes.
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
