//! Powers with a constant whole exponent are recorded as POWI, which needs products only. This rewrites how results are
//! rounded, so it happens where operations are recorded: what a power gives depends on nothing that happens later.
//!
//! *Proof.* Integers: POWI's products wrap like POWER's. Floats: POWER is defined within an error bound, one unit in the
//! last place of `f32` and two of `f64`. With p binary digits each rounding is off by at most 2⁻ᵖ of the value, which is
//! less than one unit. x³ is off by two such errors, x⁴ by three and x⁵ by four, as that of x² counts wherever it is used.
//! So squares, which are rounded correctly, stay within both bounds and cubes within that of `f64` (x² loses digits to
//! underflow only where x³ is zero). The bounds for complex numbers, 256ε and more, are far above. Specials (NaN, infinities,
//! signed zeros) follow from the products as they do from POWER, but for the parts of complex numbers that overflow: they
//! are infinite or NaN.

use crate::record::{Operation, Source};
use bh_bytecode::{Constant, DType, Opcode};

/// An operation whose types have been checked, or the products that give the same power.
#[inline]
pub(crate) fn as_products<'a, 's>(operation: Operation<'a>, sources: &'s [Source]) -> (Operation<'a>, &'s [Source]) {
    match *sources {
        [_, Source::Constant(exponent)] if operation.opcode == Opcode::Power => match whole_exponent(exponent) {
            Some(param) => (Operation { opcode: Opcode::Powi, param, ..operation }, &sources[..1]),
            None => (operation, sources),
        },
        _ => (operation, sources),
    }
}

/// The exponent as a parameter of POWI, where products keep within the error bound.
pub(crate) fn whole_exponent(exponent: Constant) -> Option<u16> {
    let most = match exponent.dtype() {
        DType::F32 => 2,
        DType::F64 => 3,
        _ => 5u8,
    };
    (2..=most).find(|&whole| Constant::from_value(whole).cast(exponent.dtype()) == exponent).map(u16::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_become_products_within_their_error_bounds() {
        let products = |dtype| -> Vec<u16> {
            (0..=6u8).filter_map(|exponent| whole_exponent(Constant::from_value(exponent).cast(dtype))).collect()
        };
        assert_eq!(products(DType::F32), [2]);
        assert_eq!(products(DType::F64), [2, 3]);
        for dtype in [DType::I8, DType::U64, DType::C64, DType::C128] {
            assert_eq!(products(dtype), [2, 3, 4, 5]);
        }
        for exponent in [2.5, -2.0, f64::NAN, f64::INFINITY] {
            assert_eq!(whole_exponent(Constant::from_value(exponent)), None);
        }
    }

    /// The bounds above depend on this.
    #[test]
    fn cubes_are_off_by_more_than_a_unit_and_less_than_two() {
        let error = |bits: u32| {
            let x = f32::from_bits(bits);
            let (product, exact) = (x * x * x, f64::from(x).powi(3));
            let unit = f64::from(f32::from_bits(product.to_bits() + 1)) - f64::from(product);
            (f64::from(product) - exact).abs() / unit
        };
        let (one, two) = (1f32.to_bits(), 2f32.to_bits());
        let worst = (one..two).step_by(7).map(error).fold(0.0, f64::max);
        assert!(worst > 1.0 && worst < 2.0, "{worst}");
    }
}
