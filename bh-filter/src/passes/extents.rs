//! Axes of one element are dropped from elementwise operations, so that those of shapes (1, n, m) and (n, m) can share a kernel: `stack` copies
//! parts of shape (n, m) to parts of shape (1, n, m), for example.
//!
//! *Proof.* An axis of one element adds nothing to the offset of any element, and the order of the others stays. An elementwise operation computes
//! each element from those at the same index. So all values stay, and so do the bases that are read and written.
//!
//! Shapes that folds, generators or gathers of the batch have, too, stay, as they share kernels with operations of equal shape.

use super::Views;
use bh_bytecode::{Batch, Instr, Kind, Operand, View};
use std::collections::HashSet;

/// Drops them. Returns how many instructions changed.
pub fn run(batch: &mut Batch) -> usize {
    let (mut views, mut others) = (None, None);
    let mut changed = 0;
    for index in 0..batch.instrs.len() {
        let instr = batch.instrs[index];
        let Some(first) = instr.operands[0].as_view() else { continue };
        let shape = batch.as_ref().shape(first);
        if instr.opcode.kind() != Kind::Elementwise || !shape.contains(&1) {
            continue;
        }
        if others.get_or_insert_with(|| shapes_of_others(batch)).contains(shape) {
            continue;
        }
        let views = views.get_or_insert_with(|| Views::of(batch));
        for place in 0..instr.count as usize {
            let Some(view) = instr.operands[place].as_view() else { continue };
            let dropped = without_ones(&batch.as_ref().view(view));
            let base = batch.views[view as usize].base;
            batch.instrs[index].operands[place] = Operand::view(views.intern(batch, base, dropped));
        }
        changed += 1;
    }
    changed
}

/// The shapes with axes of one element that other instructions have.
fn shapes_of_others(batch: &Batch) -> HashSet<Vec<i64>> {
    let is_other = |instr: &&Instr| !matches!(instr.opcode.kind(), Kind::Elementwise | Kind::System);
    let others = batch.instrs.iter().filter(is_other);
    let views = others.flat_map(|instr| instr.operands()).filter_map(|operand| operand.as_view());
    views.map(|view| batch.as_ref().shape(view)).filter(|shape| shape.contains(&1)).map(<[i64]>::to_vec).collect()
}

fn without_ones(view: &View) -> View {
    let (shape, stride): (Vec<i64>, Vec<i64>) =
        view.shape().iter().zip(view.stride()).filter(|(extent, _)| **extent != 1).unzip();
    View::new(view.start(), &shape, &stride).expect("a legal view without axes of one element is a legal view")
}
