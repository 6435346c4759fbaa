//! Calls of one method for the matrices of a stack: blocks that follow each other, whose operands are equally far apart.

use bh_bytecode::BatchRef;

/// This many calls at least are one kernel.
pub(super) const FEW: usize = 16;
/// Operands of a call at most.
const OPERANDS: usize = 4;

/// How far the operands of a call are from those of the one before.
type Steps = [i64; OPERANDS];

/// The call of a block that does nothing else.
fn only(batch: &BatchRef<'_>, block: u32) -> Option<u32> {
    let block = &batch.blocks[block as usize];
    match *batch.block_instrs(block) {
        [instr] if batch.renames(block).is_empty() => Some(instr),
        _ => None,
    }
}

/// How far two calls are apart, if they are alike but for that and write to different elements.
fn steps(batch: &BatchRef<'_>, first: u32, second: u32) -> Option<Steps> {
    let [one, two] = [first, second].map(|instr| &batch.instrs[instr as usize]);
    let same = one.opcode == two.opcode && one.outputs == two.outputs && one.operands().len() == two.operands().len();
    if !same || one.operands().len() > OPERANDS {
        return None;
    }
    let mut found = Steps::default();
    for (at, (one, other)) in one.operands().iter().zip(two.operands()).enumerate() {
        let (view, next) = (one.as_view()?, other.as_view()?);
        let (record, after) = (&batch.views[view as usize], &batch.views[next as usize]);
        let (shape, stride) = (batch.shape(view), batch.stride(view));
        if record.base != after.base || shape != batch.shape(next) || stride != batch.stride(next) {
            return None;
        }
        found[at] = after.start - record.start;
        let reach: i64 = stride.iter().zip(shape).map(|(step, extent)| step.abs() * (extent - 1).max(0)).sum();
        if at < usize::from(two.outputs) && found[at].abs() <= reach {
            return None;
        }
    }
    Some(found)
}

/// How many blocks call the method of the first one for the next matrix each, up to `most`; 0 if it calls none.
pub(super) fn length(batch: &BatchRef<'_>, blocks: impl Iterator<Item = u32>, most: usize) -> usize {
    let (mut last, mut apart, mut count) = (None, None, 0);
    for block in blocks.take(most) {
        let Some(instr) = only(batch, block) else { break };
        if let Some(last) = last {
            let found = steps(batch, last, instr);
            if found.is_none() || apart.is_some_and(|apart| Some(apart) != found) {
                break;
            }
            apart = found;
        }
        (last, count) = (Some(instr), count + 1);
    }
    count
}
