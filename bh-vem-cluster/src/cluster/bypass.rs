//! The bypass: while one child owns every array, calls go straight to that child, and its arrays keep the program's
//! names.

use crate::plan::array::Shard;
use crate::plan::boxes::Span;
use bh_bytecode::{Base, BatchRef, Opcode, View};
use bh_core::abi::capability;
use bh_core::component::{Child, Report, Ticket};
use bh_core::error::Result;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

/// The effect of a data call on its base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Copies this many bytes from or to it.
    Copies(u64),
    /// Maps this many bytes.
    Maps(u64),
    Unmaps,
    /// The program owns the memory from now on, or knows its address.
    Fixes,
    Drops,
    Queries,
}

/// An array that the child owns.
#[derive(Clone, Debug)]
pub(super) struct ChildArray {
    /// The program's base.
    pub like: Base,
    /// The child's base. It has another name if the planner created it.
    pub base: Base,
    /// The memory must not move.
    pub fixed: bool,
    /// How often the program has mapped it.
    pub maps: u32,
    /// The program dropped it while it was mapped.
    pub dead: bool,
}

impl ChildArray {
    /// An array under the program's own name.
    fn new(base: &Base) -> ChildArray {
        ChildArray { like: *base, base: *base, fixed: false, maps: 0, dead: false }
    }

    /// The whole array as one shard.
    pub fn shard(&self) -> Shard {
        let all = Span::new(0, self.like.len);
        Shard { base: self.base, window: all, valid: all }
    }

    fn is_renamed(&self) -> bool {
        self.like.id != self.base.id
    }
}

/// The child's arrays. Nothing is recorded when there is only one child.
#[derive(Debug, Default)]
pub(super) struct ChildArrays {
    follows: bool,
    /// Arrays up to this size are not split.
    small_bytes: u64,
    arrays: HashMap<u64, ChildArray>,
    /// Bytes of all larger arrays.
    pub bytes: u64,
    /// How many of the larger arrays are mapped.
    mapped: usize,
    /// How many arrays have another name in the child.
    renamed: usize,
    /// Bytes that the program has read and written since the last query.
    pub copied: u64,
}

impl ChildArrays {
    fn is_large(&self, own: &ChildArray) -> bool {
        own.like.bytes() > self.small_bytes
    }

    /// The number of arrays.
    pub fn len(&self) -> usize {
        self.arrays.len()
    }

    pub fn has(&self, id: u64) -> bool {
        self.arrays.contains_key(&id)
    }

    /// May the larger arrays move? Not while the program has one of them mapped.
    pub fn may_move(&self) -> bool {
        self.mapped == 0
    }

    fn insert(&mut self, own: ChildArray) {
        let large = self.is_large(&own);
        self.bytes += if large { own.like.bytes() } else { 0 };
        self.mapped += usize::from(large && own.maps > 0);
        self.renamed += usize::from(own.is_renamed());
        self.arrays.insert(own.like.id, own);
    }

    fn remove(&mut self, id: u64) -> Option<ChildArray> {
        let own = self.arrays.remove(&id)?;
        let large = self.is_large(&own);
        self.bytes -= if large { own.like.bytes() } else { 0 };
        self.mapped -= usize::from(large && own.maps > 0);
        self.renamed -= usize::from(own.is_renamed());
        Some(own)
    }

    /// Changes the record of an array; creates it if necessary.
    fn change(&mut self, base: &Base, change: impl FnOnce(&mut ChildArray)) -> Base {
        let mut own = self.remove(base.id).unwrap_or_else(|| ChildArray::new(base));
        change(&mut own);
        let named = Base { id: own.base.id, ..*base };
        if !(own.dead && own.maps == 0) {
            self.insert(own);
        }
        named
    }

    /// Records a call's effect; returns the child's base.
    fn used(&mut self, base: &Base, by: Effect) -> Base {
        if !self.follows {
            return *base;
        }
        match by {
            Effect::Copies(bytes) => self.copied += bytes,
            Effect::Maps(bytes) => {
                self.copied += bytes;
                return self.change(base, |own| own.maps += 1);
            }
            Effect::Fixes => return self.change(base, |own| own.fixed = true),
            Effect::Unmaps | Effect::Drops | Effect::Queries => {}
        }
        if let (Effect::Copies(_), false) = (by, self.has(base.id)) {
            self.insert(ChildArray::new(base));
        }
        self.arrays.get(&base.id).map_or(*base, |own| Base { id: own.base.id, ..*base })
    }

    /// Records the end of a map, or a map that failed.
    fn unmapped(&mut self, base: &Base) {
        if self.has(base.id) {
            self.change(base, |own| own.maps = own.maps.saturating_sub(1));
        }
    }

    /// Records that an array was dropped; returns the child's base if it had another name.
    fn dropped(&mut self, id: u64) -> Option<u64> {
        let own = self.remove(id)?;
        let renamed = own.is_renamed().then_some(own.base.id);
        if own.maps > 0 {
            self.insert(ChildArray { dead: true, ..own });
        }
        renamed
    }

    /// The batch's bases under the child's names, if any of them differ.
    fn renamed(&self, batch: &BatchRef<'_>) -> Option<Vec<Base>> {
        let name = |base: &Base| self.arrays.get(&base.id).map_or(*base, |own| Base { id: own.base.id, ..*base });
        (self.renamed > 0
            && batch.bases.iter().any(|base| self.arrays.get(&base.id).is_some_and(ChildArray::is_renamed)))
        .then(|| batch.bases.iter().map(name).collect())
    }

    /// Records the arrays that a batch created and dropped; returns the child's names that became free.
    fn ran(&mut self, batch: &BatchRef<'_>, order: impl Iterator<Item = u32>) -> Vec<u64> {
        let mut there = vec![true; batch.bases.len()];
        for index in order {
            let instr = &batch.instrs[index as usize];
            let drops = instr.opcode == Opcode::Discard;
            let operands = if drops { instr.operands() } else { instr.outputs() };
            for view in operands.iter().filter_map(|operand| operand.as_view()) {
                there[batch.views[view as usize].base as usize] = !drops;
            }
        }
        let mut gone = Vec::new();
        for (base, there) in batch.bases.iter().zip(there) {
            match (there, self.has(base.id)) {
                (true, false) => self.insert(ChildArray::new(base)),
                (false, true) => gone.extend(self.dropped(base.id)),
                _ => {}
            }
        }
        gone
    }

    /// All arrays, ordered by id, so that the order does not depend on a hash table.
    pub fn into_arrays(self) -> Vec<ChildArray> {
        let mut all: Vec<ChildArray> = self.arrays.into_values().collect();
        all.sort_by_key(|own| own.like.id);
        all
    }
}

/// The direct route to the first child.
pub(super) struct Bypass {
    child: Child,
    concurrent: bool,
    open: RwLock<Option<Mutex<ChildArrays>>>,
    /// The child's bases that the program uses, by export token.
    exports: Mutex<HashMap<u64, Base>>,
}

// SAFETY: `child` only serves to make aliases, one per call. Unless the child allows concurrent calls, callers hold the
// cluster's lock.
unsafe impl Sync for Bypass {}

/// A second handle of the same child.
///
/// # Safety
/// Calls through one must not overlap calls through the other, unless the child allows that.
unsafe fn alias(child: &Child) -> Child {
    // SAFETY: a child is a plain handle of a component that lives as long as the stack, and has no destructor.
    unsafe { std::ptr::read(child) }
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Bypass {
    /// Creates a closed bypass to the first child.
    pub fn new(child: &mut Child) -> Bypass {
        let flags = child.capabilities().flags;
        let concurrent =
            flags & (capability::CONCURRENT_DATA | capability::THREAD_AFFINE) == capability::CONCURRENT_DATA;
        // SAFETY: `with` lists the conditions of calls through this alias, the only place that makes them.
        let child = unsafe { alias(child) };
        Bypass { child, concurrent, open: RwLock::default(), exports: Mutex::default() }
    }

    /// May data calls run concurrently with other calls?
    pub fn is_concurrent(&self) -> bool {
        self.concurrent
    }

    fn with<T>(&self, call: impl FnOnce(&mut Child) -> T) -> T {
        // SAFETY: either the child allows data calls concurrently with others, or the caller holds the cluster's lock,
        // which excludes all other calls to the stacks below.
        let mut child = unsafe { alias(&self.child) };
        call(&mut child)
    }

    fn state(&self) -> RwLockReadGuard<'_, Option<Mutex<ChildArrays>>> {
        self.open.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn is_open(&self) -> bool {
        self.state().is_some()
    }

    /// Opens the bypass for good, for a cluster with one rank.
    pub fn open_for_good(&self) {
        self.set(Some(ChildArrays::default()));
    }

    /// Opens the bypass to a child that owns exactly these arrays.
    pub fn open(&self, small_bytes: u64, arrays: Vec<ChildArray>) {
        let mut arrays_of_child = ChildArrays { follows: true, small_bytes, ..ChildArrays::default() };
        arrays.into_iter().for_each(|own| arrays_of_child.insert(own));
        self.set(Some(arrays_of_child));
    }

    /// Closes the bypass after the calls in progress have ended; returns the child's arrays.
    pub fn close(&self) -> Option<ChildArrays> {
        let arrays_of_child = self.set(None)?;
        Some(arrays_of_child.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    fn set(&self, arrays_of_child: Option<ChildArrays>) -> Option<Mutex<ChildArrays>> {
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *open, arrays_of_child.map(Mutex::new))
    }

    /// Inspects the child's arrays while the bypass is open.
    pub fn inspect<T>(&self, inspect: impl FnOnce(&mut ChildArrays) -> T) -> Option<T> {
        self.state().as_ref().map(|arrays_of_child| inspect(&mut lock(arrays_of_child)))
    }

    /// Passes a data call to the child. `None` if the bypass is closed. If calls must not overlap, the caller holds the
    /// cluster's lock.
    pub fn call_child<T>(
        &self,
        base: &Base,
        by: Effect,
        call: &impl Fn(&mut Child, &Base) -> Result<T>,
    ) -> Option<Result<T>> {
        let state = self.state();
        let arrays_of_child = state.as_ref()?;
        let named = lock(arrays_of_child).used(base, by);
        let outcome = self.with(|child| call(child, &named));
        match by {
            Effect::Maps(_) if outcome.is_err() => lock(arrays_of_child).unmapped(base),
            Effect::Unmaps => lock(arrays_of_child).unmapped(base),
            Effect::Drops => drop(lock(arrays_of_child).dropped(base.id)),
            _ => {}
        }
        Some(outcome)
    }

    /// Records a base of the child that the program uses through an export.
    pub fn note_export(&self, token: u64, base: &Base) {
        lock(&self.exports).insert(token, *base);
    }

    /// Ends an export.
    pub fn end_export(&self, base: &Base, token: u64) -> Result<()> {
        let base = lock(&self.exports).remove(&token).unwrap_or(*base);
        self.with(|child| child.end_export(&base, token))
    }

    /// Calls the child for work without arrays.
    pub fn compute<T>(&self, call: impl FnOnce(&mut Child) -> T) -> T {
        self.with(call)
    }

    /// Passes a batch to the child, and returns the names that became free. `None` if the bypass is closed. The caller
    /// holds the cluster's lock.
    pub fn execute(
        &self,
        batch: &BatchRef<'_>,
        blocks: &[u32],
        report: &mut Report,
    ) -> Option<(Result<Ticket>, Vec<u64>)> {
        let state = self.state();
        let arrays_of_child = state.as_ref()?;
        if !lock(arrays_of_child).follows {
            return Some((self.with(|child| child.execute(batch, blocks, report)), Vec::new()));
        }
        let renamed = lock(arrays_of_child).renamed(batch);
        let bases = renamed.as_deref().unwrap_or(batch.bases);
        let outcome = self.with(|child| child.execute(&BatchRef { bases, ..*batch }, blocks, report));
        let gone = match blocks {
            [] => lock(arrays_of_child).ran(batch, 0..batch.instrs.len() as u32),
            _ => lock(arrays_of_child).ran(batch, order(batch, blocks).into_iter()),
        };
        Some((outcome, gone))
    }
}

/// The instructions of a batch, or of some of its blocks, in execution order.
pub(super) fn order(batch: &BatchRef<'_>, blocks: &[u32]) -> Vec<u32> {
    match blocks {
        [] => (0..batch.instrs.len() as u32).collect(),
        _ => blocks.iter().flat_map(|&block| batch.block_instrs(&batch.blocks[block as usize])).copied().collect(),
    }
}

/// Bytes of a base, or of a view of it.
pub(super) fn bytes_of(base: &Base, view: Option<&View>) -> u64 {
    view.map_or(base.bytes(), |view| (view.len() as usize * base.dtype().size()) as u64)
}
