//! Lets arrays that lie on rank 0, as the program has given their memory away, go to all ranks.

use crate::run::machine::Machine;
use bh_bytecode::BatchRef;

impl Machine {
    /// Cuts such arrays in rows if what the program asks for of them, this batch among it, has moved about as much.
    pub(crate) fn leave_home(&mut self, batch: &BatchRef<'_>, order: &[u32]) {
        if self.planner.homes.is_empty() {
            return;
        }
        for base in self.planner.leave_home(batch, order) {
            if let Err(error) = self.planner.recut(base.id).and_then(|()| self.settle()) {
                self.planner.lose(&base, &error.unplaced());
            }
        }
    }
}
