//! A reduction of a reduction becomes one reduction over all their axes.
//!
//! *Proof.* The outer instruction alone changes. The inner result must be a temporary that nobody else reads (otherwise
//! the merge would repeat its work), still unchanged when the outer instruction reads it, and the inner input unchanged
//! since. Folding in another order gives the same bits for integers and bool under every reduction. Floats are merged under
//! `reassociate` only: sums and products round, and minimum and maximum of zeros of both signs or of several NaN give the one
//! that their order comes to. The merged reduction takes its elements in the order of the inner one.

use super::Options;
use crate::analysis::{Uses, may_read_beside, output, output_type};
use crate::losses::Losses;
use bh_bytecode::{Batch, DType, Kind, Operand};

/// Runs the pass.
pub fn run(batch: &mut Batch, options: &Options) -> usize {
    let mut changed = 0;
    let (mut uses, mut losses) = (None, None);
    for index in 0..batch.instrs.len() as u32 {
        if batch.instrs[index as usize].opcode.kind() != Kind::Reduction {
            continue;
        }
        while let Some((source, axes, order)) =
            merged(batch, uses.get_or_insert_with(|| Uses::of(batch)), options, index)
        {
            if !losses.get_or_insert_with(|| Losses::of(batch)).keeps(batch, index, &[source]) {
                break;
            }
            let instr = &mut batch.instrs[index as usize];
            instr.operands[1] = source;
            (instr.param, instr.order) = (axes, order);
            changed += 1;
            // Each merge changes the readers of arrays.
            uses = None;
        }
    }
    changed
}

fn merged(batch: &Batch, uses: &Uses, options: &Options, index: u32) -> Option<(Operand, u16, u16)> {
    let outer = batch.instrs[index as usize];
    if outer.opcode.kind() != Kind::Reduction || !order_is_free(output_type(batch, &outer)?, options) {
        return None;
    }
    let between = outer.operands[1].as_view()?;
    let inner_index = uses.definition(batch, between, index)?;
    let inner = batch.instrs[inner_index as usize];
    let source = inner.operands[1].as_view()?;
    let holds = inner.opcode == outer.opcode
        && outer.inputs().len() == 1
        && uses.is_read_only_by(batch, between, index)
        && !uses.changed(batch, source, inner_index, index)
        && may_read_beside(batch, outer.opcode.kind(), output(&outer)?, source);
    let rank = batch.views[source as usize].rank;
    holds.then(|| (inner.operands[1], combine_axes(inner.param, outer.param, rank), inner.order))
}

/// The axes of the inner input that are folded when `outer` numbers the axes that `inner` leaves.
fn combine_axes(inner: u16, outer: u16, rank: u32) -> u16 {
    let mut axes = inner;
    let kept = (0..rank).filter(|axis| inner >> axis & 1 == 0);
    for (position, axis) in kept.enumerate() {
        if outer >> position & 1 == 1 {
            axes |= 1 << axis;
        }
    }
    axes
}

fn order_is_free(dtype: DType, options: &Options) -> bool {
    !(dtype.is_float() || dtype.is_complex()) || options.reassociate
}

#[cfg(test)]
mod tests {
    use super::combine_axes;

    #[test]
    fn axes_of_the_outer_reduction_are_renumbered() {
        assert_eq!(combine_axes(0b001, 0b01, 3), 0b011);
        assert_eq!(combine_axes(0b010, 0b10, 3), 0b110);
        assert_eq!(combine_axes(0b010, 0b11, 3), 0b111);
        assert_eq!(combine_axes(0b100, 0b01, 3), 0b101);
    }
}
