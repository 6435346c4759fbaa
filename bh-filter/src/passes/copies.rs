//! Copy and cast removal: readers of a copy read the original instead; a cast there and back reads the start. Copies that are
//! read in another shape are removed first ([`shapes`](super::shapes)).
//!
//! *Proof.* A reader of `t`, where `t = x` (a copy without conversion, or a fill with a constant) is still `t`'s last
//! definition, reads x instead if x is unchanged since the copy and may stand beside the reader's output. A cast back,
//! `y = A(B(x))` with x of type A, becomes `y = x` if every A is exactly representable in B. Only what is read changes,
//! and it has the same values. A temporary is read only where somebody reads it later anyway, or where its copy is one, too:
//! else it would need memory that it does not need now. The copy stays for others until `dead_code` finds that nobody reads
//! it. Instructions keep at least one array operand, and extension methods and scatters are left alone.

use super::Options;
use crate::analysis::{Uses, may_read_beside, output, output_type};
use crate::losses::Losses;
use bh_bytecode::{Batch, DType, Kind, Opcode, Operand};

/// Runs the pass.
pub fn run(batch: &mut Batch, _: &Options) -> usize {
    let mut changed = super::shapes::run(batch);
    let uses = Uses::of(batch);
    let mut losses = None;
    for index in 0..batch.instrs.len() as u32 {
        let instr = batch.instrs[index as usize];
        if matches!(instr.opcode.kind(), Kind::Extension | Kind::System | Kind::Generator)
            || instr.opcode.reads_output()
            || output(&instr).is_none()
        {
            continue;
        }
        for place in instr.outputs as usize..instr.count as usize {
            let source = original(batch, &uses, index, place).or_else(|| uncast(batch, &uses, index, place));
            let Some(source) = source else { continue };
            let mut next = batch.instrs[index as usize];
            next.operands[place] = source;
            if losses.get_or_insert_with(|| Losses::of(batch)).keeps(batch, index, next.inputs()) {
                batch.instrs[index as usize] = next;
                changed += 1;
            }
        }
    }
    changed
}

/// The operand that operand `place` of instruction `index` is a copy of.
fn original(batch: &Batch, uses: &Uses, index: u32, place: usize) -> Option<Operand> {
    let instr = batch.instrs[index as usize];
    let view = instr.operands[place].as_view()?;
    if batch.views[view as usize].base as usize >= batch.bases.len() {
        return None;
    }
    let copy_index = uses.definition(batch, view, index)?;
    let copy = batch.instrs[copy_index as usize];
    let source = copy.operands[1];
    if copy.opcode != Opcode::Copy || batch.as_ref().dtype(source) != output_type(batch, &copy) {
        return None;
    }
    match source.as_view() {
        Some(original) => {
            if uses.would_be_kept(batch, original, view, index) {
                return None;
            }
            let holds = !uses.changed(batch, original, copy_index, index)
                && may_read_beside(batch, instr.opcode.kind(), output(&instr)?, original)
                && !(instr.opcode == Opcode::Gather
                    && batch.views[output(&instr)? as usize].base == batch.views[original as usize].base);
            holds.then_some(source)
        }
        None => {
            let takes_constants = instr.opcode.kind() == Kind::Elementwise;
            let others = instr.inputs().iter().filter(|operand| operand.as_view().is_some()).count();
            (takes_constants
                && (others > 1 || instr.opcode == Opcode::Copy)
                && !(instr.opcode == Opcode::Where && place == 1))
                .then_some(source)
        }
    }
}

/// For a cast back, where the value came from.
fn uncast(batch: &Batch, uses: &Uses, index: u32, place: usize) -> Option<Operand> {
    let instr = batch.instrs[index as usize];
    if instr.opcode != Opcode::Copy {
        return None;
    }
    let view = instr.operands[place].as_view()?;
    let there_index = uses.definition(batch, view, index)?;
    let there = batch.instrs[there_index as usize];
    let source = there.operands[1];
    let original = source.as_view()?;
    let (from, through) = (batch.as_ref().dtype(source)?, output_type(batch, &there)?);
    let holds = there.opcode == Opcode::Copy
        && output_type(batch, &instr) == Some(from)
        && holds_exactly(through, from)
        && !uses.changed(batch, original, there_index, index)
        && may_read_beside(batch, instr.opcode.kind(), output(&instr)?, original);
    holds.then_some(source)
}

/// Is every value of type `value` exactly representable in `wider`, so that a cast there and back changes nothing?
fn holds_exactly(wider: DType, value: DType) -> bool {
    /// Significant bits of integers, or of a float's significand.
    fn bits(dtype: DType) -> u32 {
        match dtype {
            DType::Bool => 1,
            DType::F32 => 24,
            DType::F64 => 53,
            other => 8 * other.size() as u32 - u32::from(other.is_signed_int()),
        }
    }
    if wider == value || wider.is_complex() || value.is_complex() || wider == DType::Bool {
        return wider == value;
    }
    if value.is_float() {
        return wider == DType::F64;
    }
    bits(wider) >= bits(value) && (!value.is_signed_int() || wider.is_signed_int() || wider.is_float())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bh_bytecode::text;

    /// Is a value of one type, cast to another and then to a third one, read from where it came from?
    fn is_read_from_the_start(from: DType, through: DType, to: DType) -> bool {
        let words = format!(
            "bh batch 1\nbase b0 = {from}[4] id 1 row 4\nbase b1 = {through}[4] id 2 row 4 born\n\
             base b2 = {to}[4] id 3 row 4 born\nview v0 = b0 at 0 [4:1]\nview v1 = b1 at 0 [4:1]\n\
             view v2 = b2 at 0 [4:1]\ni0: v1 = copy v0\ni1: v2 = copy v1\n"
        );
        let mut batch = text::parse(&words).unwrap();
        run(&mut batch, &Options::default());
        batch.instrs[1].operands[1] == batch.instrs[0].operands[1]
    }

    #[test]
    fn casts_there_and_back_are_undone_where_nothing_is_lost() {
        assert!(is_read_from_the_start(DType::F32, DType::F64, DType::F32));
        assert!(is_read_from_the_start(DType::U8, DType::F32, DType::U8));
        assert!(!is_read_from_the_start(DType::F64, DType::F32, DType::F64));
        assert!(!is_read_from_the_start(DType::I64, DType::F64, DType::I64));
        // A float that does not fit an integer, or a sign, is cast in a way of its own.
        assert!(!is_read_from_the_start(DType::U8, DType::F64, DType::I8));
        assert!(!is_read_from_the_start(DType::F32, DType::F64, DType::I32));
    }

    #[test]
    fn temporaries_live_no_longer_for_those_who_can_read_a_copy_that_stays() {
        let forwarded = |grid: &str, later: &str| {
            let words = format!(
                "bh batch 1\nbase b0 = f64[4] id 1 row 4 {grid}\nbase b1 = f64[4] id 2 row 4 born dies\n\
                 base b2 = f64[4] id 3 row 4 born\nbase b3 = f64[4] id 4 row 4 born\n\
                 view v0 = b0 at 0 [4:1]\nview v1 = b1 at 0 [4:1]\nview v2 = b2 at 0 [4:1]\nview v3 = b3 at 0 [4:1]\n\
                 i0: v1 = sqrt v2\ni1: v0 = copy v1\ni2: v2 = add v0, v0\n{later}"
            );
            let mut batch = text::parse(&words).unwrap();
            run(&mut batch, &Options::default());
            batch.instrs[2].operands[1] == batch.instrs[1].operands[1]
        };
        assert!(!forwarded("", ""));
        assert!(!forwarded("born live_out", ""));
        assert!(forwarded("", "i3: v3 = sqrt v1\n"));
        assert!(forwarded("born dies", ""));
    }
}
