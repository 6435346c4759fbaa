//! Which bases are on the heap: uploads, new versions, and eviction of those that were not used for longest.

use crate::heap::{Heap, Task};
use crate::slot::Slot;
use bh_bytecode::Base;
use bh_core::abi::access;
use bh_core::component::Registry;
use bh_core::error::Result;
use std::collections::HashMap;
use std::sync::Arc;

/// The heap as a space of the registry, for use from any thread.
pub struct HeapSpace {
    pub registry: Registry,
    pub heap: Arc<Heap>,
    number: u32,
}

/// Who makes room on the heap.
pub struct Space {
    pub place: Arc<HeapSpace>,
    /// The most bytes on the heap.
    limit: usize,
    /// When each base was last used here; some are gone meanwhile.
    used: HashMap<u64, (Base, u64)>,
    clock: u64,
}

impl Space {
    /// A new space with an empty heap.
    pub fn new(registry: Registry, heap: Arc<Heap>, limit: usize) -> Space {
        let place = Arc::new(HeapSpace { registry, heap, number: registry.new_space() });
        Space { place, limit, used: HashMap::new(), clock: 0 }
    }

    /// Evicts what was not used for longest until these bases have room.
    pub fn make_room(&mut self, bases: &[&Base]) -> Result<()> {
        self.clock += 1;
        let HeapSpace { registry, heap, number } = &*self.place;
        // A base that is written may be there in its old version too, for as long as it takes.
        let needed: usize = bases.iter().map(|base| base.bytes() as usize).sum();
        while heap.bytes() + needed > self.limit {
            let others = self.used.values().filter(|(base, _)| bases.iter().all(|used| used.id != base.id));
            let Some(&(oldest, _)) = others.min_by_key(|(_, used)| *used) else { break };
            self.used.remove(&oldest.id);
            let before = heap.bytes();
            match registry.detach(&oldest, *number) {
                Ok(()) if heap.bytes() < before => heap.counters.evictions.add(1),
                // It was gone already, or is lost, or lent: others may do.
                _ => {}
            }
        }
        for base in bases {
            self.used.insert(base.id, (**base, self.clock));
        }
        Ok(())
    }
}

impl HeapSpace {
    /// The base's copy here, on its way from host memory if need be; one that is lost if its data is.
    pub fn fetch(&self, base: &Base) -> Result<Arc<Slot>> {
        match self.find(base) {
            Err(error) if self.registry.residency(base).lost != 0 => Ok(Slot::lost(base.bytes() as usize, error)),
            outcome => outcome,
        }
    }

    /// The same, for those that want to hear of what is lost.
    pub fn find(&self, base: &Base) -> Result<Arc<Slot>> {
        let loan = self.registry.acquire_in(base, self.number, access::READ)?;
        // SAFETY: copies in this space come from `attach` below.
        if let Some(slot) = unsafe { loan.copy() } {
            return Ok(slot);
        }
        let from = self.registry.acquire(base, access::READ | access::STABLE)?;
        let slot = Slot::new(base.bytes() as usize);
        slot.lock().writers += 1;
        self.attach(base, slot.clone(), false)?;
        self.heap.push(Task::Upload { from, to: slot.clone() });
        self.heap.counters.uploads.add(1);
        Ok(slot)
    }

    /// Makes a copy that is to be changed the only valid one of its base.
    pub fn claim(&self, base: &Base, slot: &Arc<Slot>) -> Result<Arc<Slot>> {
        if let Ok(loan) = self.registry.acquire_in(base, self.number, access::READ | access::WRITE)
            && std::ptr::eq(loan.data().cast_const().cast(), Arc::as_ptr(slot))
        {
            return Ok(slot.clone());
        }
        // What was lost is not attached; its next version is.
        self.replace(base, false)
    }

    /// A new copy for the next version of a base, all of which is written if `whole`.
    pub fn replace(&self, base: &Base, whole: bool) -> Result<Arc<Slot>> {
        let slot = Slot::new(base.bytes() as usize);
        if whole {
            // Clears what was lost; copies elsewhere become stale.
            drop(self.registry.acquire_in(base, self.number, access::WRITE | access::DISCARD)?);
        }
        self.attach(base, slot.clone(), true)?;
        Ok(slot)
    }

    /// Makes this the copy of a base, and if `exclusive` the only valid one.
    pub fn attach(&self, base: &Base, slot: Arc<Slot>, exclusive: bool) -> Result<()> {
        let bytes = base.bytes() as usize;
        self.heap.attached(bytes);
        // SAFETY: the heap lives as long as the engine, which outlives what is attached.
        let outcome = unsafe { self.registry.attach_copy(base, self.number, slot, exclusive, &self.heap) };
        if outcome.is_err() {
            self.heap.detached(bytes);
        }
        outcome
    }

    /// Poisons a base if this slot, whose content was lost, still is its current copy.
    pub fn poison_if_current(&self, base: &Base, slot: &Arc<Slot>) {
        let Some(error) = slot.lock().error.clone() else { return };
        let Ok(loan) = self.registry.acquire_in(base, self.number, access::READ) else { return };
        let current = std::ptr::eq(loan.data().cast_const().cast(), Arc::as_ptr(slot));
        drop(loan);
        if current {
            self.registry.poison(base, &error);
        }
    }
}
