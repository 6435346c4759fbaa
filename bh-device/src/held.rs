//! Memory that the program uses together with the engine: buffers of arrays that do not move for as long as both have them.

use crate::memory::Memory;
use bh_bytecode::{Base, BatchRef};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The memory of each base that both sides use.
#[derive(Default)]
pub(crate) struct Held(Mutex<HashMap<u64, Both>>);

struct Both {
    base: Base,
    memory: Arc<Memory>,
    /// It stays until the base ends.
    adopted: bool,
    /// How often it is lent.
    lent: u32,
}

impl Held {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Both>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The program goes on using memory that it has given to a base.
    pub(crate) fn adopt(&self, base: &Base, memory: &Arc<Memory>) {
        memory.share();
        let both = Both { base: *base, memory: memory.clone(), adopted: true, lent: 0 };
        self.lock().insert(base.id, both);
    }

    /// The program uses the memory of a base until [`Held::give_back`].
    pub(crate) fn lend(&self, base: &Base, memory: &Arc<Memory>) {
        memory.share();
        let both = || Both { base: *base, memory: memory.clone(), adopted: false, lent: 0 };
        self.lock().entry(base.id).or_insert_with(both).lent += 1;
    }

    /// A lending ends.
    pub(crate) fn give_back(&self, base: u64) {
        let mut all = self.lock();
        let Some(both) = all.get_mut(&base) else { return };
        both.lent = both.lent.saturating_sub(1);
        let ended = if both.lent == 0 && !both.adopted { all.remove(&base) } else { None };
        // Release the lock before the memory, whose owner may call back.
        drop(all);
        drop(ended);
    }

    /// The memory that a base must keep.
    pub(crate) fn memory(&self, base: u64) -> Option<Arc<Memory>> {
        self.lock().get(&base).map(|both| both.memory.clone())
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<(Base, Arc<Memory>)> {
        self.lock().values().map(|both| (both.base, both.memory.clone())).collect()
    }

    /// The base has ended.
    pub(crate) fn forget(&self, base: u64) {
        let ended = self.lock().remove(&base);
        drop(ended);
    }

    /// Is there none?
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Does a block use any of it?
    pub(crate) fn is_used(&self, batch: &BatchRef<'_>, block: u32) -> bool {
        let all = self.lock();
        if all.is_empty() {
            return false;
        }
        let instrs = batch.block_instrs(&batch.blocks[block as usize]).iter();
        let mut operands = instrs.flat_map(|&index| batch.instrs[index as usize].operands());
        operands.any(|operand| {
            operand.as_view().and_then(|view| batch.base_of(view)).is_some_and(|base| all.contains_key(&base.id))
        })
    }
}
