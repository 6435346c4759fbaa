//! Distributes adopted arrays.

use crate::run::machine::Machine;
use bh_bytecode::BatchRef;

impl Machine {
    /// Distributes adopted arrays in rows if the program's reads of them, including this batch, have moved about as
    /// many elements.
    pub(crate) fn distribute_adopted(&mut self, batch: &BatchRef<'_>, order: &[u32]) {
        if self.planner.adopted.is_empty() {
            return;
        }
        for base in self.planner.adopted_to_distribute(batch, order) {
            if let Err(error) = self.planner.redistribute(base.id).and_then(|()| self.run_planned()) {
                self.planner.lose(&base, &error.unplaced());
            }
        }
    }
}
