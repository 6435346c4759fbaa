//! The modulus of complex numbers of `f64` parts: at most 1.3 ULP, with the same bits on all levels.

use super::PrimFn;
use super::entry::{Entry, at_level};
use super::parts::by_chunks;
use crate::simd::{Isa, Vector};
use bh_bytecode::c128;

/// 2 to this power, and to its negative, is what parts are scaled by whose squares would leave the range.
const SCALE: u64 = 600;
/// Between 2⁻⁹⁶⁰ and 2¹⁰²⁰, sums of squares have neither overflowed nor lost digits.
const LEAST: u64 = (1023 - 960) << 52;
const MOST: u64 = (1023 + 1020) << 52;

/// x² + y², and the lanes where the root of that is the modulus.
#[inline(always)]
pub fn square_of_modulus<V: Vector>(x: V, y: V) -> (V, V::Mask) {
    let square = x * x + y * y;
    (square, V::mask_and(square.ge(V::splat_bits(LEAST)), square.le(V::splat_bits(MOST))))
}

/// √(x² + y²) of any numbers, where an infinite part wins over NaN. `square` is what [`square_of_modulus`] gives.
#[inline(always)]
pub fn modulus_of_all<V: Vector>(x: V, y: V, square: V) -> V {
    let (one, up, down) = (V::splat(1.0), V::splat_bits((1023 + SCALE) << 52), V::splat_bits((1023 - SCALE) << 52));
    let (large, small) = (square.gt(V::splat_bits(MOST)), square.lt(V::splat_bits(LEAST)));
    let factor = V::select(large, down, V::select(small, up, one));
    let back = V::select(large, up, V::select(small, down, one));
    let (scaled_x, scaled_y) = (x * factor, y * factor);
    let root = (scaled_x * scaled_x + scaled_y * scaled_y).sqrt() * back;
    let infinity = V::splat(f64::INFINITY);
    V::select(V::mask_or(x.abs().eq(infinity), y.abs().eq(infinity)), infinity, root)
}

/// √(x² + y²).
#[inline(always)]
fn modulus<V: Vector>(x: V, y: V) -> V {
    let (square, common) = square_of_modulus(x, y);
    if V::any(V::mask_not(common)) { modulus_of_all(x, y, square) } else { square.sqrt() }
}

struct Modulus;

impl Entry for Modulus {
    #[inline(always)]
    unsafe fn run<V: Vector>(n: usize, dst: *mut u8, [a, ..]: [*const u8; 3]) {
        // SAFETY: the blocks are as [`PrimFn`] says, and the level is available.
        unsafe {
            by_chunks::<c128>(
                n,
                a.cast(),
                #[inline(always)]
                |first, count, [re, im]| {
                    for i in (0..count).step_by(V::LANES) {
                        let modulus = modulus(V::load(re.as_ptr().add(i)), V::load(im.as_ptr().add(i)));
                        modulus.store(re.as_mut_ptr().add(i));
                    }
                    dst.cast::<f64>().add(first).copy_from_nonoverlapping(re.as_ptr(), count);
                },
            );
        }
    }
}

/// The block primitive.
pub(super) fn primitive(isa: Isa) -> PrimFn {
    at_level::<Modulus>(isa)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_all(isa: Isa, numbers: &[c128]) -> Vec<f64> {
        let mut moduli = vec![0.0; numbers.len()];
        let null = std::ptr::null();
        // SAFETY: the level is available, and both blocks are as long as it is said.
        unsafe { primitive(isa)(numbers.len(), moduli.as_mut_ptr().cast(), numbers.as_ptr().cast(), null, null) };
        moduli
    }

    /// Numbers whose parts have any bits, and such of which one is up to 2⁶⁴ times the other.
    fn numbers() -> Vec<c128> {
        let mut state = 1u64;
        let mut bits = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.wrapping_mul(0x2545_f491_4f6c_dd1d)
        };
        let any = (0..100_000).map(|_| c128::new(f64::from_bits(bits()), f64::from_bits(bits()))).collect::<Vec<_>>();
        let near = (0..200_001).map(|_| {
            let exponent = bits() % 2046;
            let other = (exponent + bits() % 64).saturating_sub(32).min(2046);
            let part = |exponent: u64, fraction: u64| f64::from_bits(exponent << 52 | fraction >> 12);
            c128::new(part(exponent, bits()), -part(other, bits()))
        });
        any.iter().copied().chain(near).collect()
    }

    #[test]
    fn moduli_are_accurate_and_the_same_on_all_levels() {
        let numbers = numbers();
        let first = of_all(Isa::Portable, &numbers);
        for (number, modulus) in numbers.iter().zip(&first) {
            let wanted = number.re.hypot(number.im);
            let near = modulus.to_bits().abs_diff(wanted.to_bits()) <= 1;
            assert!(near || modulus.is_nan() && wanted.is_nan(), "{number:?}: {modulus:e}, not {wanted:e}");
        }
        for isa in Isa::available() {
            for ((number, a), b) in numbers.iter().zip(&first).zip(of_all(isa, &numbers)) {
                assert!(a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(), "{isa}, {number:?}: {a:e} and {b:e}");
            }
        }
    }

    #[test]
    fn special_numbers() {
        let (inf, nan, tiny) = (f64::INFINITY, f64::NAN, 5e-324);
        let pairs = [
            (0.0, -0.0, 0.0),
            (3.0, -4.0, 5.0),
            (nan, -inf, inf),
            (inf, nan, inf),
            (-inf, 0.0, inf),
            (tiny, 0.0, tiny),
            (0.0, -3.0 * tiny, 3.0 * tiny),
            (f64::MAX, 0.0, f64::MAX),
            (f64::MAX, f64::MAX, inf),
            (3e200, 4e200, 3e200f64.hypot(4e200)),
            (-1e-160, 0.0, 1e-160),
        ];
        let numbers = pairs.map(|(re, im, _)| c128::new(re, im));
        for isa in Isa::available() {
            assert_eq!(of_all(isa, &numbers), pairs.map(|(.., modulus)| modulus), "{isa}");
            assert!(
                of_all(isa, &[c128::new(nan, 1.0), c128::new(f64::MAX, nan)]).iter().all(|modulus| modulus.is_nan())
            );
        }
    }
}
