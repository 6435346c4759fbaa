//! Common subexpressions: an instruction that computes what an earlier one did becomes a copy of its result.
//!
//! *Proof.* Both have the same opcode, parameter, order of a fold, inputs (the same views and equal constants) and output type
//! and shape; no input has changed since the earlier one read it, nor has its result, and the later output may stand beside
//! that result. Then both compute the same values, bit for bit. Copies and fills themselves are left to `copies`; generators
//! count as having no memory input.

use super::Options;
use crate::analysis::{Uses, base_of, become_copy, may_read_beside, output};
use crate::losses::Losses;
use bh_bytecode::{Batch, Instr, Kind, Opcode, Operand};
use std::collections::HashMap;

#[derive(PartialEq, Eq, Hash)]
struct Key {
    opcode: Opcode,
    param: u16,
    order: u16,
    dtype: u8,
    shape: Vec<i64>,
    inputs: Vec<Input>,
}

#[derive(PartialEq, Eq, Hash)]
enum Input {
    View(u32),
    Constant([u64; 2], u8),
}

/// Runs the pass.
pub fn run(batch: &mut Batch, _: &Options) -> usize {
    let uses = Uses::of(batch);
    let mut seen: HashMap<Key, u32> = HashMap::new();
    let mut losses = None;
    let mut changed = 0;
    for index in 0..batch.instrs.len() as u32 {
        let instr = batch.instrs[index as usize];
        let Some(key) = key(batch, &instr) else { continue };
        let found = seen.get(&key).and_then(|&earlier| Some((earlier, reusable(batch, &uses, earlier, index)?)));
        let kept = found.filter(|&(earlier, result)| {
            let losses = losses.get_or_insert_with(|| Losses::of(batch));
            losses.keeps_as_copy(batch, index, earlier, Operand::view(result))
        });
        if let Some((_, result)) = kept {
            become_copy(&mut batch.instrs[index as usize], Operand::view(result));
            changed += 1;
        } else {
            seen.insert(key, index);
        }
    }
    changed
}

fn key(batch: &Batch, instr: &Instr) -> Option<Key> {
    let kind = instr.opcode.kind();
    let computes = matches!(kind, Kind::Elementwise | Kind::Reduction | Kind::Accumulate | Kind::Generator)
        || instr.opcode == Opcode::Gather;
    if !computes || instr.opcode == Opcode::Copy {
        return None;
    }
    let result = output(instr)?;
    let inputs = instr
        .inputs()
        .iter()
        .map(|operand| match operand.as_view() {
            Some(view) => Some(Input::View(view)),
            None => {
                let constant = batch.constants.get(operand.as_constant()? as usize)?;
                Some(Input::Constant(constant.bits, constant.dtype))
            }
        })
        .collect::<Option<Vec<_>>>()?;
    let dtype = batch.bases[base_of(batch, Operand::view(result))? as usize].dtype;
    let shape = batch.as_ref().shape(result).to_vec();
    Some(Key { opcode: instr.opcode, param: instr.param, order: instr.order, dtype, shape, inputs })
}

/// The result of instruction `earlier`, if `later` may take it over.
fn reusable(batch: &Batch, uses: &Uses, earlier: u32, later: u32) -> Option<u32> {
    let first = batch.instrs[earlier as usize];
    let result = output(&first)?;
    let unchanged = |operand: &Operand| match base_of(batch, *operand) {
        Some(_) => operand.as_view().is_some_and(|view| !uses.changed(batch, view, earlier, later)),
        None => true,
    };
    let target = output(&batch.instrs[later as usize])?;
    let holds = target != result
        && first.inputs().iter().all(unchanged)
        && !uses.changed(batch, result, earlier + 1, later)
        && may_read_beside(batch, Kind::Elementwise, target, result);
    holds.then_some(result)
}
