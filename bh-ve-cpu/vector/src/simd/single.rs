//! Vectors of `f32` lanes with fused multiply-add, for the few functions worth a version of their own.

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
