//! Packs of real numbers that are vectors, by the instructions of AVX-512 and of AVX2 with fused multiplication and addition.
//!
//! Vectors exist only in functions that are inlined into those of `super` which carry the features, behind the check that the processor
//! has them. That is why each of the instructions below may be used.

use super::pack::{Number, Real};
use std::arch::x86_64::*;

/// A pack that is one vector: `$name` of `$lanes` numbers `$scalar` in a register `$register`, with masks `$truths`.
macro_rules! vector {
    (
        $name:ident: $register:ident of $lanes:literal $scalar:ident, $truths:ident, exponent $exponent:literal;
        $add:ident $sub:ident $mul:ident $div:ident $fmadd:ident $fnmadd:ident $sqrt:ident $max:ident $set:ident;
        $and:ident $andnot:ident $or:ident;
        $greater:path, $equal:path, $blend:path, $both:path, $none:path, $bits:path
    ) => {
        #[derive(Clone, Copy)]
        #[repr(transparent)]
        pub(super) struct $name($register);

        impl $name {
            #[inline(always)]
            fn all(value: $scalar) -> $name {
                // SAFETY: see the module.
                $name(unsafe { $set(value) })
            }
        }

        impl Number for $name {
            type Real = $name;
            type Element = $scalar;
            const LANES: usize = $lanes;
            // SAFETY: both have the same bytes, and any are numbers.
            const ZERO: $name = $name(unsafe { std::mem::transmute::<[$scalar; $lanes], $register>([0.0; $lanes]) });
            // SAFETY: as above.
            const ONE: $name = $name(unsafe { std::mem::transmute::<[$scalar; $lanes], $register>([1.0; $lanes]) });

            #[inline(always)]
            unsafe fn put(to: *mut $name, lane: usize, element: $scalar) {
                // SAFETY: the vector has this many numbers, one after the other, as the caller says.
                unsafe { to.cast::<$scalar>().add(lane).write(element) };
            }

            #[inline(always)]
            unsafe fn get(from: *const $name, lane: usize) -> $scalar {
                // SAFETY: as above.
                unsafe { from.cast::<$scalar>().add(lane).read() }
            }

            fn parts(element: $scalar) -> (f64, f64) {
                (element.into(), 0.0)
            }

            #[inline(always)]
            fn of(real: $name) -> $name {
                real
            }

            #[inline(always)]
            fn add(self, other: $name) -> $name {
                // SAFETY: see the module.
                $name(unsafe { $add(self.0, other.0) })
            }

            #[inline(always)]
            fn sub(self, other: $name) -> $name {
                // SAFETY: see the module.
                $name(unsafe { $sub(self.0, other.0) })
            }

            #[inline(always)]
            fn mul(self, other: $name) -> $name {
                // SAFETY: see the module.
                $name(unsafe { $mul(self.0, other.0) })
            }

            #[inline(always)]
            fn plus_product(self, a: $name, b: $name) -> $name {
                // SAFETY: see the module.
                $name(unsafe { $fmadd(a.0, b.0, self.0) })
            }

            #[inline(always)]
            fn minus_product(self, a: $name, b: $name) -> $name {
                // SAFETY: see the module.
                $name(unsafe { $fnmadd(a.0, b.0, self.0) })
            }

            #[inline(always)]
            fn scaled(self, factor: $name) -> $name {
                self.mul(factor)
            }

            #[inline(always)]
            fn conj(self) -> $name {
                self
            }

            #[inline(always)]
            fn real(self) -> $name {
                self
            }

            #[inline(always)]
            fn imaginary(self) -> $name {
                $name::ZERO
            }

            #[inline(always)]
            fn magnitude(self) -> $name {
                // SAFETY: see the module.
                $name(unsafe { $andnot($set(-0.0), self.0) })
            }

            #[inline(always)]
            fn phase(self, _: $name) -> $name {
                $name::ONE.signed(self)
            }

            #[inline(always)]
            fn square(self) -> $name {
                self.mul(self)
            }

            #[inline(always)]
            fn size(self) -> $name {
                self.magnitude()
            }

            #[inline(always)]
            fn reciprocal(self) -> $name {
                $name::ONE.div(self)
            }

            #[inline(always)]
            fn or(self, mask: $truths, other: $name) -> $name {
                // SAFETY: see the module.
                $name(unsafe { $blend(mask, self.0, other.0) })
            }
        }

        impl Real for $name {
            type Truths = $truths;

            #[inline(always)]
            fn splat(value: $scalar) -> $name {
                $name::all(value)
            }

            #[inline(always)]
            fn div(self, other: $name) -> $name {
                // SAFETY: see the module.
                $name(unsafe { $div(self.0, other.0) })
            }

            #[inline(always)]
            fn root(self) -> $name {
                // SAFETY: see the module.
                $name(unsafe { $sqrt(self.0) })
            }

            #[inline(always)]
            fn signed(self, sign: $name) -> $name {
                // SAFETY: see the module.
                $name(unsafe { $or(self.magnitude().0, $and($set(-0.0), sign.0)) })
            }

            #[inline(always)]
            fn power_below(self) -> $name {
                // SAFETY: see the module.
                $name(unsafe { $and($set($scalar::from_bits($exponent)), self.0) })
            }

            #[inline(always)]
            fn above(self, other: $name) -> $truths {
                // SAFETY: see the module.
                unsafe { $greater(self.0, other.0) }
            }

            #[inline(always)]
            fn equals(self, other: $name) -> $truths {
                // SAFETY: see the module.
                unsafe { $equal(self.0, other.0) }
            }

            #[inline(always)]
            fn larger(self, other: $name) -> $name {
                // SAFETY: see the module. The instruction takes the second operand where one is NaN.
                $name(unsafe { $max(self.0, other.0) })
            }

            #[inline(always)]
            fn any(truths: $truths, lanes: usize) -> bool {
                // SAFETY: see the module.
                unsafe { $bits(truths) & ((1u32 << lanes) - 1) != 0 }
            }

            #[inline(always)]
            fn is(truths: $truths, lane: usize) -> bool {
                // SAFETY: see the module.
                unsafe { $bits(truths) >> lane & 1 == 1 }
            }

            #[inline(always)]
            fn and(a: $truths, b: $truths) -> $truths {
                // SAFETY: see the module.
                unsafe { $both(a, b) }
            }

            #[inline(always)]
            fn not(truths: $truths) -> $truths {
                // SAFETY: see the module.
                unsafe { $none(truths) }
            }
        }
    };
}

/// Masks of AVX-512, which are whole numbers.
mod wide {
    use std::arch::x86_64::*;
    use std::ops::{BitAnd, Not};

    macro_rules! masks {
        ($module:ident: $register:ident, $mask:ident, $compare:ident, $blend:ident) => {
            pub(in super::super) mod $module {
                use super::*;

                /// # Safety
                /// The features must be enabled where this is inlined, as for the others.
                #[inline(always)]
                pub(in super::super::super) unsafe fn greater(a: $register, b: $register) -> $mask {
                    // SAFETY: as the caller says.
                    unsafe { $compare::<_CMP_GT_OQ>(a, b) }
                }

                #[inline(always)]
                pub(in super::super::super) unsafe fn equal(a: $register, b: $register) -> $mask {
                    // SAFETY: as the caller says.
                    unsafe { $compare::<_CMP_EQ_OQ>(a, b) }
                }

                #[inline(always)]
                pub(in super::super::super) unsafe fn blend(mask: $mask, a: $register, b: $register) -> $register {
                    // SAFETY: as the caller says.
                    unsafe { $blend(mask, b, a) }
                }
            }
        };
    }
    masks!(double: __m512d, __mmask8, _mm512_cmp_pd_mask, _mm512_mask_blend_pd);
    masks!(single: __m512, __mmask16, _mm512_cmp_ps_mask, _mm512_mask_blend_ps);

    #[inline(always)]
    pub(super) unsafe fn both<M: BitAnd<Output = M>>(a: M, b: M) -> M {
        a & b
    }

    #[inline(always)]
    pub(super) unsafe fn none<M: Not<Output = M>>(truths: M) -> M {
        !truths
    }

    #[inline(always)]
    pub(super) unsafe fn bits<M: Into<u32>>(truths: M) -> u32 {
        truths.into()
    }
}

/// Masks of AVX2, which are vectors.
mod narrow {
    macro_rules! masks {
        ($module:ident: $register:ident, $compare:ident, $blend:ident, $and:ident, $xor:ident, $ones:expr, $bits:ident) => {
            pub(in super::super) mod $module {
                use std::arch::x86_64::*;

                /// # Safety
                /// The features must be enabled where this is inlined, as for the others.
                #[inline(always)]
                pub(in super::super::super) unsafe fn greater(a: $register, b: $register) -> $register {
                    // SAFETY: as the caller says.
                    unsafe { $compare::<_CMP_GT_OQ>(a, b) }
                }

                #[inline(always)]
                pub(in super::super::super) unsafe fn equal(a: $register, b: $register) -> $register {
                    // SAFETY: as the caller says.
                    unsafe { $compare::<_CMP_EQ_OQ>(a, b) }
                }

                #[inline(always)]
                pub(in super::super::super) unsafe fn blend(mask: $register, a: $register, b: $register) -> $register {
                    // SAFETY: as the caller says.
                    unsafe { $blend(b, a, mask) }
                }

                #[inline(always)]
                pub(in super::super::super) unsafe fn both(a: $register, b: $register) -> $register {
                    // SAFETY: as the caller says.
                    unsafe { $and(a, b) }
                }

                #[inline(always)]
                pub(in super::super::super) unsafe fn none(truths: $register) -> $register {
                    // SAFETY: as the caller says.
                    unsafe { $xor(truths, $ones) }
                }

                #[inline(always)]
                pub(in super::super::super) unsafe fn bits(truths: $register) -> u32 {
                    // SAFETY: as the caller says.
                    unsafe { $bits(truths) as u32 }
                }
            }
        };
    }
    masks!(double: __m256d, _mm256_cmp_pd, _mm256_blendv_pd, _mm256_and_pd, _mm256_xor_pd, _mm256_castsi256_pd(_mm256_set1_epi64x(-1)), _mm256_movemask_pd);
    masks!(single: __m256, _mm256_cmp_ps, _mm256_blendv_ps, _mm256_and_ps, _mm256_xor_ps, _mm256_castsi256_ps(_mm256_set1_epi64x(-1)), _mm256_movemask_ps);
}

vector!(
    Wide64: __m512d of 8 f64, __mmask8, exponent 0x7FF0_0000_0000_0000;
    _mm512_add_pd _mm512_sub_pd _mm512_mul_pd _mm512_div_pd _mm512_fmadd_pd _mm512_fnmadd_pd _mm512_sqrt_pd _mm512_max_pd _mm512_set1_pd;
    _mm512_and_pd _mm512_andnot_pd _mm512_or_pd;
    wide::double::greater, wide::double::equal, wide::double::blend, wide::both, wide::none, wide::bits
);
vector!(
    Wide32: __m512 of 16 f32, __mmask16, exponent 0x7F80_0000;
    _mm512_add_ps _mm512_sub_ps _mm512_mul_ps _mm512_div_ps _mm512_fmadd_ps _mm512_fnmadd_ps _mm512_sqrt_ps _mm512_max_ps _mm512_set1_ps;
    _mm512_and_ps _mm512_andnot_ps _mm512_or_ps;
    wide::single::greater, wide::single::equal, wide::single::blend, wide::both, wide::none, wide::bits
);
vector!(
    Narrow64: __m256d of 4 f64, __m256d, exponent 0x7FF0_0000_0000_0000;
    _mm256_add_pd _mm256_sub_pd _mm256_mul_pd _mm256_div_pd _mm256_fmadd_pd _mm256_fnmadd_pd _mm256_sqrt_pd _mm256_max_pd _mm256_set1_pd;
    _mm256_and_pd _mm256_andnot_pd _mm256_or_pd;
    narrow::double::greater, narrow::double::equal, narrow::double::blend, narrow::double::both, narrow::double::none, narrow::double::bits
);
vector!(
    Narrow32: __m256 of 8 f32, __m256, exponent 0x7F80_0000;
    _mm256_add_ps _mm256_sub_ps _mm256_mul_ps _mm256_div_ps _mm256_fmadd_ps _mm256_fnmadd_ps _mm256_sqrt_ps _mm256_max_ps _mm256_set1_ps;
    _mm256_and_ps _mm256_andnot_ps _mm256_or_ps;
    narrow::single::greater, narrow::single::equal, narrow::single::blend, narrow::single::both, narrow::single::none, narrow::single::bits
);
