//! Powers with a constant whole exponent of 2 to 5 become POWI, which needs products only.
//!
//! *Proof.* Integers: POWI's products wrap like POWER's. Floats: POWER is defined within an error bound, one unit in the
//! last place of `f32` and two of `f64`. With p binary digits each rounding is off by at most 2⁻ᵖ of the value, which is
//! less than one unit. x³ is off by two such errors, x⁴ by three and x⁵ by four, as that of x² counts wherever it is used.
//! So squares, which are rounded correctly, stay within both bounds and cubes within that of `f64` (x² loses digits to
//! underflow only where x³ is zero); the others become products where the configuration lets operations be regrouped. The
//! bounds for complex numbers, 256ε and more, are far above. Specials (NaN, infinities, signed zeros) follow from the products
//! as they do from POWER, but for the parts of complex numbers that overflow: they are infinite or NaN. The type of the operation does not change, and nothing else is touched.

use super::Options;
use crate::analysis::constant;
use bh_bytecode::{Batch, Constant, DType, Opcode, Operand};

/// Runs the pass.
pub fn run(batch: &mut Batch, options: &Options) -> usize {
    let mut changed = 0;
    for index in 0..batch.instrs.len() {
        let instr = batch.instrs[index];
        if instr.opcode != Opcode::Power || instr.operands[1].as_view().is_none() {
            continue;
        }
        let Some(exponent) = constant(batch, instr.operands[2]) else { continue };
        let most = match exponent.dtype() {
            DType::F32 if !options.reassociate => 2,
            DType::F64 if !options.reassociate => 3,
            _ => 5u8,
        };
        let whole = (2..=most).find(|&whole| Constant::from_value(whole).cast(exponent.dtype()) == exponent);
        if let Some(whole) = whole {
            let instr = &mut batch.instrs[index];
            instr.opcode = Opcode::Powi;
            instr.param = u16::from(whole);
            instr.count = 2;
            instr.operands[2] = Operand::NONE;
            changed += 1;
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use bh_bytecode::text;

    /// The highest exponent up to 6 whose powers become products; all lower ones from 2 on do, too.
    fn most(dtype: DType, reassociate: bool) -> u8 {
        let becomes = |exponent: u8| {
            let words = format!(
                "bh batch 1\nbase b0 = {dtype}[4] id 1 row 4\nbase b1 = {dtype}[4] id 2 row 4 born\n\
                 view v0 = b0 at 0 [4:1]\nview v1 = b1 at 0 [4:1]\ni0: v1 = power v0, v0\n"
            );
            let mut batch = text::parse(&words).unwrap();
            let constant = batch.push_constant(Constant::from_value(exponent).cast(dtype));
            batch.instrs[0].operands[2] = Operand::constant(constant);
            let changed = run(&mut batch, &Options { reassociate, matmul: None });
            let instr = batch.instrs[0];
            assert_eq!(instr.opcode == Opcode::Powi, changed == 1);
            assert_eq!(instr.param, if changed == 1 { u16::from(exponent) } else { 0 });
            changed == 1
        };
        let powers: Vec<u8> = (0..=6).filter(|&exponent| becomes(exponent)).collect();
        let most = powers.last().copied().unwrap_or(0);
        assert_eq!(powers, Vec::from_iter(2..=most));
        most
    }

    #[test]
    fn powers_become_products_within_their_error_bounds() {
        assert_eq!(most(DType::F32, false), 2);
        assert_eq!(most(DType::F64, false), 3);
        for dtype in [DType::I8, DType::U64, DType::C64, DType::C128] {
            assert_eq!(most(dtype, false), 5);
        }
        assert_eq!((most(DType::F32, true), most(DType::F64, true)), (5, 5));
    }

    /// What the bounds above rest on.
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
