//! Matrix products spelled as multiply, broadcast and sum become contractions: `sum(a[:, :, new] * b[new, :, :], axis=1)`, its
//! permutations, and stacks of such products.
//!
//! *Proof.* The sum instruction alone changes, to a contraction of the same axes of the same box. The product
//! array must be a temporary that only the sum reads and that is unchanged when it does, and both factors must be
//! unchanged since it was computed. Integers (wrapping) and truth values give the same bits in any order; floats and complex
//! numbers are summed in another order, so they are rewritten under `reassociate` only. Other products are left to the fused
//! kernel.

use super::Options;
use crate::analysis::{Uses, base_of, output, output_type};
use crate::losses::Losses;
use bh_bytecode::contraction::is_product;
use bh_bytecode::{Batch, Instr, Opcode, Operand};

/// Runs the pass.
pub fn run(batch: &mut Batch, options: &Options) -> usize {
    let mut changed = 0;
    let (mut uses, mut losses) = (None, None);
    for index in 0..batch.instrs.len() as u32 {
        if batch.instrs[index as usize].opcode != Opcode::AddReduce {
            continue;
        }
        let known = uses.get_or_insert_with(|| Uses::of(batch));
        let Some(instr) = contraction(batch, known, options, index) else { continue };
        if !losses.get_or_insert_with(|| Losses::of(batch)).keeps(batch, index, instr.inputs()) {
            continue;
        }
        batch.instrs[index as usize] = instr;
        changed += 1;
        uses = None;
    }
    changed
}

/// The contraction that the sum at `index` is.
fn contraction(batch: &Batch, uses: &Uses, options: &Options, index: u32) -> Option<Instr> {
    let sum = batch.instrs[index as usize];
    let dtype = output_type(batch, &sum)?;
    let between = sum.operands[1].as_view()?;
    if (dtype.is_float() || dtype.is_complex()) && !options.reassociate {
        return None;
    }
    let product_index = uses.definition(batch, between, index)?;
    let product = batch.instrs[product_index as usize];
    if product.opcode != Opcode::Multiply {
        return None;
    }
    let (left, right) = (product.operands[1].as_view()?, product.operands[2].as_view()?);
    let out = output(&sum)?;
    let out_base = base_of(batch, Operand::view(out))?;
    let holds = uses.is_read_only_by(batch, between, index)
        && [left, right].iter().all(|&view| {
            !uses.changed(batch, view, product_index, index) && batch.views[view as usize].base != out_base
        });
    let operands = [sum.operands[0], product.operands[1], product.operands[2]];
    let instr =
        Instr { param: sum.param, order: sum.order, origin: sum.origin, ..Instr::new(Opcode::Contract, &operands) };
    (holds && is_product(&batch.as_ref(), &instr)).then_some(instr)
}
