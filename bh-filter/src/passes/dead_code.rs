//! Dead code and dead stores: instructions whose results nobody reads before they are overwritten or dropped.
//!
//! *Proof.* A walk backwards keeps for each base the set of views that somebody may still read. At the end of the batch
//! everything of a base is needed, unless the batch drops it; SYNC needs everything. An instruction whose outputs are all
//! disjoint from what is needed is removed, unless it is an extension method (it may do more than write its outputs) or
//! can fail for its data (gather and scatter check indices). A write removes from the needed set the view that it covers
//! exactly, or everything if it covers the whole base; then its inputs (and its output, if it updates it) are needed.
//! A write that loses its base, or gives it data again after a loss, stays while somebody may read any of that base.
//! A dropped base that nothing in the batch gave data, and nothing had before, needs no dropping.

use super::Options;
use crate::analysis::{base_of, erase, relation, sweep};
use crate::losses::Losses;
use bh_bytecode::{Batch, Instr, Kind, Opcode, Operand, Overlap, base_flags};

/// The part of a base that matters further down.
#[derive(Clone)]
struct Needed {
    values: Values,
    /// Does it matter whether the base is lost?
    loss: bool,
}

/// The part of a base that may still be read.
#[derive(Clone)]
enum Values {
    All,
    Views(Vec<u32>),
}

impl Needed {
    const ALL: Needed = Needed { values: Values::All, loss: true };
    const NOTHING: Needed = Needed { values: Values::Views(Vec::new()), loss: false };
}

/// Runs the pass.
pub fn run(batch: &mut Batch, _: &Options) -> usize {
    let mut needed = vec![Needed::ALL; batch.bases.len()];
    let mut losses = None;
    let mut removed = 0;
    for index in (0..batch.instrs.len()).rev() {
        let instr = batch.instrs[index];
        match instr.opcode.kind() {
            Kind::System => system(batch, &instr, &mut needed),
            _ if is_dead(batch, &instr, &needed)
                && (!loss_matters(batch, &instr, &needed)
                    || losses.get_or_insert_with(|| Losses::of(batch)).leaves(batch, index as u32)) =>
            {
                erase(&mut batch.instrs[index]);
                removed += 1;
            }
            _ => {
                for &output in instr.outputs() {
                    written(batch, &instr, output, &mut needed);
                }
                for &input in instr.inputs() {
                    read(batch, input, &mut needed);
                }
            }
        }
    }
    removed += drop_empty(batch);
    sweep(batch);
    removed
}

fn system(batch: &Batch, instr: &Instr, needed: &mut [Needed]) {
    let Some(base) = instr.operands().first().and_then(|&operand| base_of(batch, operand)) else { return };
    needed[base as usize] = match instr.opcode {
        Opcode::Free | Opcode::Discard => Needed::NOTHING,
        _ => Needed::ALL,
    };
}

/// Is one of the bases that an instruction writes to needed at all?
fn loss_matters(batch: &Batch, instr: &Instr, needed: &[Needed]) -> bool {
    instr.outputs().iter().filter_map(|&output| base_of(batch, output)).any(|base| needed[base as usize].loss)
}

fn is_dead(batch: &Batch, instr: &Instr, needed: &[Needed]) -> bool {
    let may_matter = matches!(instr.opcode.kind(), Kind::Extension | Kind::Index);
    !may_matter
        && !instr.outputs().is_empty()
        && instr.outputs().iter().all(|&output| match (output.as_view(), base_of(batch, output)) {
            (Some(view), Some(base)) => match &needed[base as usize].values {
                Values::All => false,
                Values::Views(views) => views.iter().all(|&read| relation(batch, read, view) == Overlap::Disjoint),
            },
            _ => false,
        })
}

fn written(batch: &Batch, instr: &Instr, output: Operand, needed: &mut [Needed]) {
    let (Some(view), Some(base)) = (output.as_view(), base_of(batch, output)) else { return };
    if instr.opcode.reads_output() || instr.opcode.is_extension() {
        read(batch, output, needed);
        return;
    }
    // Outputs are injective, so as many elements as the base has are all of it.
    if batch.views[view as usize].len == batch.bases[base as usize].len {
        needed[base as usize] = Needed::NOTHING;
    } else if let Values::Views(views) = &mut needed[base as usize].values {
        views.retain(|&read| relation(batch, read, view) != Overlap::Identical);
    }
}

fn read(batch: &Batch, input: Operand, needed: &mut [Needed]) {
    /// More views than this are taken as the whole base, to bound the work.
    const MOST: usize = 32;
    let (Some(view), Some(base)) = (input.as_view(), base_of(batch, input)) else { return };
    let Needed { values, loss } = &mut needed[base as usize];
    *loss |= batch.views[view as usize].len > 0;
    match values {
        Values::Views(views) if views.len() == MOST => *values = Values::All,
        Values::Views(views) if !views.contains(&view) => views.push(view),
        _ => {}
    }
}

/// Removes the dropping of bases that never had data.
fn drop_empty(batch: &mut Batch) -> usize {
    let mut used = vec![false; batch.bases.len()];
    for instr in &batch.instrs {
        if !matches!(instr.opcode, Opcode::Free | Opcode::Discard) {
            for &operand in instr.operands() {
                if let Some(base) = base_of(batch, operand) {
                    used[base as usize] = true;
                }
            }
        }
    }
    let mut removed = 0;
    for index in 0..batch.instrs.len() {
        let instr = batch.instrs[index];
        let base = instr.operands().first().and_then(|&operand| base_of(batch, operand));
        if let (Opcode::Free | Opcode::Discard, Some(base)) = (instr.opcode, base)
            && !used[base as usize]
            && batch.bases[base as usize].has(base_flags::BORN)
        {
            erase(&mut batch.instrs[index]);
            removed += 1;
        }
    }
    removed
}
