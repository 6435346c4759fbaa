//! The bases on the heap: uploads, new versions, and eviction of the least recently used.

use crate::heap::{Heap, Task};
use crate::slot::Slot;
use bh_bytecode::Base;
use bh_core::abi::access;
use bh_core::component::Registry;
use bh_core::error::Result;
use std::collections::HashMap;
use std::sync::Arc;

/// The heap as a space of the registry, for any thread.
pub struct HeapSpace {
    pub registry: Registry,
    pub heap: Arc<Heap>,
    number: u32,
}

/// Manages the space on the heap.
pub struct Space {
    pub place: Arc<HeapSpace>,
    /// The most bytes on the heap.
    limit: usize,
    /// The time of each base's last use here; some have left since.
    used: HashMap<u64, (Base, u64)>,
    clock: u64,
}

impl Space {
    /// A new space with an empty heap.
    pub fn new(registry: Registry, heap: Arc<Heap>, limit: usize) -> Space {
        let place = Arc::new(HeapSpace { registry, heap, number: registry.new_space() });
        Space { place, limit, used: HashMap::new(), clock: 0 }
    }

    /// Evicts the least recently used bases until these fit.
    pub fn make_room(&mut self, bases: &[&Base]) -> Result<()> {
        self.clock += 1;
        let HeapSpace { registry, heap, number } = &*self.place;
        // A written base may also have its old version on the heap for some time.
        let needed: usize = bases.iter().map(|base| base.bytes() as usize).sum();
        while heap.bytes() + needed > self.limit {
            let others = self.used.values().filter(|(base, _)| bases.iter().all(|used| used.id != base.id));
            let Some(&(oldest, _)) = others.min_by_key(|(_, used)| *used) else { break };
            self.used.remove(&oldest.id);
            let before = heap.bytes();
            match registry.detach(&oldest, *number) {
                Ok(()) if heap.bytes() < before => heap.counters.evictions.add(1),
                // Already gone, lost, or lent: try another one.
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
    /// The base's copy here, uploaded if necessary; a lost copy if its data is lost.
    pub fn fetch(&self, base: &Base) -> Result<Arc<Slot>> {
        match self.find(base) {
            Err(error) if self.registry.residency(base).lost != 0 => Ok(Slot::lost(base.bytes() as usize, error)),
            outcome => outcome,
        }
    }

    /// The same, with an error if the data is lost.
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

    /// Makes a copy that is about to change the only valid one of its base.
    pub fn claim(&self, base: &Base, slot: &Arc<Slot>) -> Result<Arc<Slot>> {
        if let Ok(loan) = self.registry.acquire_in(base, self.number, access::READ | access::WRITE)
            && std::ptr::eq(loan.data().cast_const().cast(), Arc::as_ptr(slot))
        {
            return Ok(slot.clone());
        }
        // Lost copies are not attached, only their next versions.
        self.replace(base, false)
    }

    /// A new copy for the next version of a base. `whole`: all of it is written.
    pub fn replace(&self, base: &Base, whole: bool) -> Result<Arc<Slot>> {
        let slot = Slot::new(base.bytes() as usize);
        if whole {
            // Heals a lost base; copies elsewhere become outdated.
            drop(self.registry.acquire_in(base, self.number, access::WRITE | access::DISCARD)?);
        }
        self.attach(base, slot.clone(), true)?;
        Ok(slot)
    }

    /// Makes a slot the copy of a base; with `exclusive`, the only valid one.
    pub fn attach(&self, base: &Base, slot: Arc<Slot>, exclusive: bool) -> Result<()> {
        let bytes = base.bytes() as usize;
        self.heap.attached(bytes);
        // SAFETY: the heap lives as long as the engine, which outlives all attachments.
        let outcome = unsafe { self.registry.attach_copy(base, self.number, slot, exclusive, &self.heap) };
        if outcome.is_err() {
            self.heap.detached(bytes);
        }
        outcome
    }

    /// Poisons a base if this slot, with lost content, is still its current copy.
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
