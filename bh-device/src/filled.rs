//! Bases that a batch fills part by part, as boxes of an array do: their memory needs no zeros before that.

use bh_bytecode::view::overlap;
use bh_bytecode::{BatchRef, Kind, Operand, Overlap};

/// The most parts of a base, and the most pairs of accesses that are compared for it.
const PARTS: usize = 128;
const PAIRS: usize = 1 << 14;

/// An access to a base, in the order of the blocks.
#[derive(Clone, Copy)]
enum Access {
    /// Each element of a view gets a value.
    Write(u32),
    Read(u32),
    /// The base as a whole: it is passed on, or its content goes.
    Whole,
    /// Some elements of a view get values, or nobody knows which.
    Unknown,
}

/// For each base of a batch: do its blocks write each element once, through several views, before they read it? No element is seen then
/// that has no value of the batch.
pub(crate) fn filled(batch: &BatchRef<'_>) -> Vec<bool> {
    let mut accesses: Vec<Vec<Access>> = vec![Vec::new(); batch.bases.len()];
    // Index views have no base.
    let mut add = |operands: &[Operand], access: fn(u32) -> Access| {
        for view in operands.iter().filter_map(|operand| operand.as_view()) {
            let base = batch.views[view as usize].base as usize;
            accesses.get_mut(base).into_iter().for_each(|all| all.push(access(view)));
        }
    };
    for &at in batch.blocks.iter().flat_map(|block| batch.block_instrs(block)) {
        let instr = &batch.instrs[at as usize];
        let kind = instr.opcode.kind();
        if kind == Kind::System {
            add(instr.operands(), |_| Access::Whole);
            continue;
        }
        add(instr.inputs(), Access::Read);
        let whole = kind != Kind::Extension && !instr.opcode.reads_output();
        add(instr.outputs(), if whole { Access::Write } else { |_| Access::Unknown });
    }
    for rename in batch.renames {
        for base in [rename.base, rename.alias] {
            accesses.get_mut(base as usize).into_iter().for_each(|all| all.push(Access::Unknown));
        }
    }
    accesses.iter().enumerate().map(|(base, all)| is_filled(batch, batch.bases[base].len, all)).collect()
}

fn is_filled(batch: &BatchRef<'_>, len: i64, accesses: &[Access]) -> bool {
    let parts = || {
        accesses.iter().enumerate().filter_map(|(at, access)| match *access {
            Access::Write(view) => Some((at, view)),
            _ => None,
        })
    };
    let count = parts().count();
    let covered: i64 = parts().map(|(_, view)| batch.views[view as usize].len).sum();
    if !(2..=PARTS).contains(&count) || covered != len || count * accesses.len() > PAIRS {
        return false;
    }
    let apart = |one: u32, other: u32| overlap(&batch.view(one), &batch.view(other)) == Overlap::Disjoint;
    // Parts that are apart make up the whole base: a view that is apart from all later parts has been written.
    accesses.iter().enumerate().all(|(at, access)| {
        let mut later = parts().filter(|&(part, _)| part > at);
        match *access {
            Access::Write(view) | Access::Read(view) => later.all(|(_, part)| apart(view, part)),
            Access::Whole => later.next().is_none(),
            Access::Unknown => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bh_bytecode::{Base, Batch, DType, Instr, Opcode, View};

    /// A base of 4 × 6 elements, written through two views; between the writes, or after them, a read of some rows.
    fn batch(first: (i64, i64), second: (i64, i64), read: (i64, i64), between: bool) -> Batch {
        let mut batch = Batch::default();
        let [grid, other] = [1, 2].map(|id| batch.push_base(Base::new(id, DType::F64, 24)));
        let rows = |batch: &mut Batch, base, (start, count): (i64, i64)| {
            Operand::view(batch.push_view(base, &View::new(6 * start, &[count, 6], &[6, 1]).unwrap()))
        };
        let writes = [first, second].map(|part| rows(&mut batch, grid, part));
        let (from, to) = (rows(&mut batch, grid, read), rows(&mut batch, other, read));
        let one = Operand::constant(batch.push_constant(bh_bytecode::Constant::from_value(1.0)));
        let mut instrs = writes.map(|part| Instr::new(Opcode::Copy, &[part, one])).to_vec();
        instrs.insert(if between { 1 } else { 2 }, Instr::new(Opcode::Copy, &[to, from]));
        for (at, instr) in (0..).zip(instrs) {
            batch.push_instr(instr);
            batch.push_block(&[at], &[]);
        }
        batch
    }

    #[test]
    fn bases_are_filled_by_parts_that_are_apart_and_written_before_they_are_read() {
        let filled = |batch: Batch| filled(&batch.as_ref());
        assert_eq!(filled(batch((0, 1), (1, 3), (0, 4), false)), [true, false]);
        assert_eq!(filled(batch((0, 1), (1, 3), (0, 1), true)), [true, false]);
        // A row is read before it is written, is never written, or is written twice.
        assert_eq!(filled(batch((0, 1), (1, 3), (0, 2), true)), [false, false]);
        assert_eq!(filled(batch((0, 1), (1, 2), (0, 1), false)), [false, false]);
        assert_eq!(filled(batch((0, 2), (1, 2), (0, 1), false)), [false, false]);
    }

    #[test]
    fn what_is_written_in_part_or_passed_on_early_is_not_filled() {
        let mut scattered = batch((0, 1), (1, 3), (0, 1), false);
        scattered.instrs[1].opcode = Opcode::ScatterAdd;
        assert_eq!(filled(&scattered.as_ref()), [false, false]);
        let mut passed = batch((0, 1), (1, 3), (0, 1), true);
        passed.instrs[1] = Instr::new(Opcode::Sync, &[passed.instrs[0].operands[0]]);
        assert_eq!(filled(&passed.as_ref()), [false, false]);
    }
}
