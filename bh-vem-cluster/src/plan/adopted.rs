//! Adopted arrays: memory that the program has given away stays on rank 0 until other ranks have read about as many
//! elements as the array has. Distributing it in rows then costs no more than further reads.

use crate::plan::array::Array;
use crate::plan::operate::is_done_by_all;
use crate::plan::planner::Planner;
use bh_bytecode::{Base, BatchRef};

impl Planner {
    /// Is an array adopted memory on rank 0 alone?
    pub fn is_adopted(&self, id: u64) -> bool {
        self.adopted.contains_key(&id) && self.arrays.get(&id).is_some_and(may_distribute)
    }

    /// Counts the elements of adopted arrays that a batch needs on all ranks; returns the arrays to distribute before
    /// it runs.
    pub fn adopted_to_distribute(&mut self, batch: &BatchRef<'_>, order: &[u32]) -> Vec<Base> {
        let (mut adopted, arrays) = (std::mem::take(&mut self.adopted), &self.arrays);
        adopted.retain(|id, _| arrays.get(id).is_some_and(may_distribute));
        let instrs = order.iter().map(|&index| &batch.instrs[index as usize]);
        for instr in instrs.filter(|instr| is_done_by_all(batch, instr, self.settings.small_bytes)) {
            for view in instr.inputs().iter().filter_map(|operand| operand.as_view()) {
                if let Some(asked) = batch.base_of(view).and_then(|base| adopted.get_mut(&base.id)) {
                    *asked += batch.views[view as usize].len;
                }
            }
        }
        let paid = |base: &&Base| adopted.get(&base.id).is_some_and(|asked| 2 * asked >= base.len);
        let due: Vec<Base> = batch.bases.iter().filter(paid).copied().collect();
        due.iter().for_each(|base| _ = adopted.remove(&base.id));
        self.adopted = adopted;
        due
    }
}

fn may_distribute(array: &Array) -> bool {
    !array.fixed && array.lost.is_none() && array.cuts.is_first()
}
