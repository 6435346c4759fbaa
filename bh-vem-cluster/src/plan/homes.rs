//! Arrays in memory that the program has given away lie on rank 0, until other ranks have asked for about as many elements as there
//! are: then it costs no more to cut them in rows.

use crate::plan::array::Array;
use crate::plan::operate::is_done_by_all;
use crate::plan::planner::Planner;
use bh_bytecode::{Base, BatchRef};

impl Planner {
    /// Is an array in memory that the program has given away, on rank 0 alone?
    pub fn is_home(&self, id: u64) -> bool {
        self.homes.contains_key(&id) && self.arrays.get(&id).is_some_and(may_leave)
    }

    /// Counts what a batch asks for of such arrays; those that should be cut in rows before it runs.
    pub fn leave_home(&mut self, batch: &BatchRef<'_>, order: &[u32]) -> Vec<Base> {
        let (mut homes, arrays) = (std::mem::take(&mut self.homes), &self.arrays);
        homes.retain(|id, _| arrays.get(id).is_some_and(may_leave));
        let instrs = order.iter().map(|&index| &batch.instrs[index as usize]);
        for instr in instrs.filter(|instr| is_done_by_all(batch, instr, self.settings.small_bytes)) {
            for view in instr.inputs().iter().filter_map(|operand| operand.as_view()) {
                if let Some(asked) = batch.base_of(view).and_then(|base| homes.get_mut(&base.id)) {
                    *asked += batch.views[view as usize].len;
                }
            }
        }
        let paid = |base: &&Base| homes.get(&base.id).is_some_and(|asked| 2 * asked >= base.len);
        let leaving: Vec<Base> = batch.bases.iter().filter(paid).copied().collect();
        leaving.iter().for_each(|base| _ = homes.remove(&base.id));
        self.homes = homes;
        leaving
    }
}

fn may_leave(array: &Array) -> bool {
    !array.fixed && array.lost.is_none() && array.cuts.is_first()
}
