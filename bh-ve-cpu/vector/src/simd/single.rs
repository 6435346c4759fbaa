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

/// One lane in plain Rust, with multiply-add of a library.
#[derive(Clone, Copy)]
pub(crate) struct FusedSingle(f32);

impl FusedSingle {
    #[inline(always)]
    fn bits(self) -> u32 {
        self.0.to_bits()
    }
}

/// Implements methods in plain Rust.
macro_rules! methods {
    ($($name:ident($($arg:ident: $ty:ty),*) -> $out:ty = $body:expr;)*) => {
        $(#[inline(always)] fn $name($($arg: $ty),*) -> $out { $body })*
    };
}

impl Single for FusedSingle {
    const LANES: usize = 1;
    type Mask = bool;

    super::transfers! {
        load(p: *const f32) -> Self = Self(p.read_unaligned());
        store(self: Self, p: *mut f32) = p.write_unaligned(self.0);
    }

    methods! {
        splat(x: f32) -> Self = Self(x);
        splat_bits(bits: u32) -> Self = Self(f32::from_bits(bits));
        add(self: Self, b: Self) -> Self = Self(self.0 + b.0);
        sub(self: Self, b: Self) -> Self = Self(self.0 - b.0);
        mul(self: Self, b: Self) -> Self = Self(self.0 * b.0);
        mul_add(self: Self, b: Self, c: Self) -> Self = Self(self.0.mul_add(b.0, c.0));
        neg_mul_add(self: Self, b: Self, c: Self) -> Self = Self((-self.0).mul_add(b.0, c.0));
        at_most(self: Self, limit: Self) -> Self = if limit.0 < self.0 { limit } else { self };
        at_least(self: Self, limit: Self) -> Self = if limit.0 > self.0 { limit } else { self };
        bits_and(self: Self, b: Self) -> Self = Self::splat_bits(self.bits() & b.bits());
        bits_add(self: Self, b: Self) -> Self = Self::splat_bits(self.bits().wrapping_add(b.bits()));
        exponent_field(self: Self) -> Self = Self((self.bits() >> 23) as f32);
        lt(self: Self, b: Self) -> bool = self.0 < b.0;
        eq(self: Self, b: Self) -> bool = self.0 == b.0;
        select(mask: bool, a: Self, b: Self) -> Self = if mask { a } else { b };
        mask_and(a: bool, b: bool) -> bool = a & b;
        mask_not(a: bool) -> bool = !a;
        any(a: bool) -> bool = a;
    }

    #[inline(always)]
    fn scale(self, k: Self) -> Self {
        // Two factors, so that each is a normal number and only the last product can round. Of NaN, any factors do.
        let whole = k.0 as i32;
        let first = whole >> 1;
        let power = |k: i32| f32::from_bits(((k + 127) as u32) << 23);
        Self(self.0 * power(first) * power(whole - first))
    }
}
