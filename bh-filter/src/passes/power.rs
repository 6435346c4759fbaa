//! Powers with a constant whole exponent of 2 to 5 become POWI, which needs products only.
//!
//! *Proof.* Integers: POWI's products wrap like POWER's. Floats and complex numbers: POWER is defined within an error
//! bound, and POWI's at most three correctly rounded products stay within it; specials (NaN, infinities, signed zeros)
//! follow from the products as they do from POWER. The type of the operation does not change, and nothing else is touched.

use super::Options;
use crate::analysis::constant;
use bh_bytecode::{Batch, Constant, Opcode, Operand};

/// Runs the pass.
pub fn run(batch: &mut Batch, _: &Options) -> usize {
    let mut changed = 0;
    for index in 0..batch.instrs.len() {
        let instr = batch.instrs[index];
        if instr.opcode != Opcode::Power || instr.operands[1].as_view().is_none() {
            continue;
        }
        let Some(exponent) = constant(batch, instr.operands[2]) else { continue };
        let whole = (2..=5u8).find(|&whole| Constant::from_value(whole).cast(exponent.dtype()) == exponent);
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
