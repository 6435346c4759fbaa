//! The way past the cluster, where one child has all of all arrays: they lie there under their own names, and calls go straight to it.

use crate::plan::array::Piece;
use crate::plan::boxes::Span;
use bh_bytecode::{Base, BatchRef, Opcode, View};
use bh_core::abi::capability;
use bh_core::component::{Child, Report, Ticket};
use bh_core::error::Result;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

/// What a call about data does with its base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// It copies this many bytes from it or to it.
    Copies(u64),
    /// It maps this many bytes.
    Maps(u64),
    Unmaps,
    /// The memory is the program's from now on, or known to it.
    Fixes,
    Drops,
    Asks,
}

/// An array that the child has.
#[derive(Clone, Debug)]
pub(super) struct Own {
    /// The program's base.
    pub like: Base,
    /// The child's, which is another one where the array comes from the planner.
    pub base: Base,
    /// Its memory must stay where it is.
    pub fixed: bool,
    /// How often the program has it mapped.
    pub maps: u32,
    /// It was dropped while it was mapped.
    pub dead: bool,
}

impl Own {
    /// Of an array that comes with the program.
    fn new(base: &Base) -> Own {
        Own { like: *base, base: *base, fixed: false, maps: 0, dead: false }
    }

    /// All of it, as a piece.
    pub fn piece(&self) -> Piece {
        let all = Span::new(0, self.like.len);
        Piece { base: self.base, window: all, valid: all }
    }

    fn is_renamed(&self) -> bool {
        self.like.id != self.base.id
    }
}

/// The arrays of the child, as far as they have to be known: not where there is no other.
#[derive(Debug, Default)]
pub(super) struct Kept {
    follows: bool,
    /// Arrays of no more bytes are not split.
    small_bytes: u64,
    arrays: HashMap<u64, Own>,
    /// The bytes of all larger ones.
    pub bytes: u64,
    /// How many of them are mapped.
    mapped: usize,
    /// How many are the child's by other names.
    renamed: usize,
    /// Bytes that the program has read and written since somebody asked.
    pub copied: u64,
}

impl Kept {
    fn is_large(&self, own: &Own) -> bool {
        own.like.bytes() > self.small_bytes
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.arrays.len()
    }

    pub fn has(&self, id: u64) -> bool {
        self.arrays.contains_key(&id)
    }

    /// Are arrays that could be split as they should be: not lent to the program?
    pub fn may_move(&self) -> bool {
        self.mapped == 0
    }

    fn insert(&mut self, own: Own) {
        let large = self.is_large(&own);
        self.bytes += if large { own.like.bytes() } else { 0 };
        self.mapped += usize::from(large && own.maps > 0);
        self.renamed += usize::from(own.is_renamed());
        self.arrays.insert(own.like.id, own);
    }

    fn remove(&mut self, id: u64) -> Option<Own> {
        let own = self.arrays.remove(&id)?;
        let large = self.is_large(&own);
        self.bytes -= if large { own.like.bytes() } else { 0 };
        self.mapped -= usize::from(large && own.maps > 0);
        self.renamed -= usize::from(own.is_renamed());
        Some(own)
    }

    /// Changes what is known of an array, which is known from now on.
    fn change(&mut self, base: &Base, change: impl FnOnce(&mut Own)) -> Base {
        let mut own = self.remove(base.id).unwrap_or_else(|| Own::new(base));
        change(&mut own);
        let named = Base { id: own.base.id, ..*base };
        if !(own.dead && own.maps == 0) {
            self.insert(own);
        }
        named
    }

    /// The child's base for a call.
    fn used(&mut self, base: &Base, by: Use) -> Base {
        if !self.follows {
            return *base;
        }
        match by {
            Use::Copies(bytes) => self.copied += bytes,
            Use::Maps(bytes) => {
                self.copied += bytes;
                return self.change(base, |own| own.maps += 1);
            }
            Use::Fixes => return self.change(base, |own| own.fixed = true),
            Use::Unmaps | Use::Drops | Use::Asks => {}
        }
        if let (Use::Copies(_), false) = (by, self.has(base.id)) {
            self.insert(Own::new(base));
        }
        self.arrays.get(&base.id).map_or(*base, |own| Base { id: own.base.id, ..*base })
    }

    /// Notes that a map has ended, or was none.
    fn unmapped(&mut self, base: &Base) {
        if self.has(base.id) {
            self.change(base, |own| own.maps = own.maps.saturating_sub(1));
        }
    }

    /// Notes that an array is dropped; the child's base, if that had another name.
    fn dropped(&mut self, id: u64) -> Option<u64> {
        let own = self.remove(id)?;
        let renamed = own.is_renamed().then_some(own.base.id);
        if own.maps > 0 {
            self.insert(Own { dead: true, ..own });
        }
        renamed
    }

    /// The bases of a batch as the child knows them, if some have other names there.
    fn renamed(&self, batch: &BatchRef<'_>) -> Option<Vec<Base>> {
        let name = |base: &Base| self.arrays.get(&base.id).map_or(*base, |own| Base { id: own.base.id, ..*base });
        (self.renamed > 0 && batch.bases.iter().any(|base| self.arrays.get(&base.id).is_some_and(Own::is_renamed)))
            .then(|| batch.bases.iter().map(name).collect())
    }

    /// Notes what a batch has made and dropped; the names of the child's that nothing has any more.
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
                (true, false) => self.insert(Own::new(base)),
                (false, true) => gone.extend(self.dropped(base.id)),
                _ => {}
            }
        }
        gone
    }

    /// All arrays, in an order that does not depend on a hash table.
    pub fn into_arrays(self) -> Vec<Own> {
        let mut all: Vec<Own> = self.arrays.into_values().collect();
        all.sort_by_key(|own| own.like.id);
        all
    }
}

/// The way to the first child.
pub(super) struct Passage {
    child: Child,
    concurrent: bool,
    open: RwLock<Option<Mutex<Kept>>>,
    /// The child's bases that the program uses, by the names of their exports.
    exports: Mutex<HashMap<u64, Base>>,
}

// SAFETY: the child is only used to make others of it, each for one call. Calls that may not come at the same time as others come from
// who has the cluster to itself.
unsafe impl Sync for Passage {}

/// A second value for the same child.
///
/// # Safety
/// Calls by one must not come at the same time as calls by the other, unless the child allows that.
unsafe fn again(child: &Child) -> Child {
    // SAFETY: a child is the name of what lives as long as the stack, and nothing ends with the value.
    unsafe { std::ptr::read(child) }
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Passage {
    /// A way past the cluster to its first child, which is closed.
    pub fn new(child: &mut Child) -> Passage {
        let flags = child.capabilities().flags;
        let concurrent =
            flags & (capability::CONCURRENT_DATA | capability::THREAD_AFFINE) == capability::CONCURRENT_DATA;
        // SAFETY: see `with`.
        let child = unsafe { again(child) };
        Passage { child, concurrent, open: RwLock::default(), exports: Mutex::default() }
    }

    /// May calls about data come at any time?
    pub fn is_concurrent(&self) -> bool {
        self.concurrent
    }

    fn with<T>(&self, call: impl FnOnce(&mut Child) -> T) -> T {
        // SAFETY: the child allows calls about data at the same time as others, or whoever calls has the cluster to itself, and
        // so all that is below it.
        let mut child = unsafe { again(&self.child) };
        call(&mut child)
    }

    fn now(&self) -> RwLockReadGuard<'_, Option<Mutex<Kept>>> {
        self.open.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn is_open(&self) -> bool {
        self.now().is_some()
    }

    /// Opens it for good, where there is no other child.
    pub fn open_for_good(&self) {
        self.set(Some(Kept::default()));
    }

    /// Opens it where the child has these arrays, and no others.
    pub fn open(&self, small_bytes: u64, arrays: Vec<Own>) {
        let mut kept = Kept { follows: true, small_bytes, ..Kept::default() };
        arrays.into_iter().for_each(|own| kept.insert(own));
        self.set(Some(kept));
    }

    /// Closes it when the calls that are under way have ended; what the child has.
    pub fn close(&self) -> Option<Kept> {
        let kept = self.set(None)?;
        Some(kept.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    fn set(&self, kept: Option<Kept>) -> Option<Mutex<Kept>> {
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *open, kept.map(Mutex::new))
    }

    /// Looks at what the child has, if it has all.
    pub fn look<T>(&self, look: impl FnOnce(&mut Kept) -> T) -> Option<T> {
        self.now().as_ref().map(|kept| look(&mut lock(kept)))
    }

    /// Gives a call about data to the child, if that has all. Where calls do not come at the same time, the caller has the cluster to
    /// itself.
    pub fn pass<T>(&self, base: &Base, by: Use, call: &impl Fn(&mut Child, &Base) -> Result<T>) -> Option<Result<T>> {
        let now = self.now();
        let kept = now.as_ref()?;
        let named = lock(kept).used(base, by);
        let outcome = self.with(|child| call(child, &named));
        match by {
            Use::Maps(_) if outcome.is_err() => lock(kept).unmapped(base),
            Use::Unmaps => lock(kept).unmapped(base),
            Use::Drops => drop(lock(kept).dropped(base.id)),
            _ => {}
        }
        Some(outcome)
    }

    /// Notes that a base of the child's is lent to the program.
    pub fn lent(&self, token: u64, base: &Base) {
        lock(&self.exports).insert(token, *base);
    }

    /// Ends that.
    pub fn returned(&self, base: &Base, token: u64) -> Result<()> {
        let base = lock(&self.exports).remove(&token).unwrap_or(*base);
        self.with(|child| child.end_export(&base, token))
    }

    /// Lets the child do what has no arrays.
    pub fn compute<T>(&self, call: impl FnOnce(&mut Child) -> T) -> T {
        self.with(call)
    }

    /// Gives a batch to the child, if that has all; and the names that nothing has any more. The caller has the cluster to itself.
    pub fn execute(
        &self,
        batch: &BatchRef<'_>,
        blocks: &[u32],
        report: &mut Report,
    ) -> Option<(Result<Ticket>, Vec<u64>)> {
        let now = self.now();
        let kept = now.as_ref()?;
        if !lock(kept).follows {
            return Some((self.with(|child| child.execute(batch, blocks, report)), Vec::new()));
        }
        let renamed = lock(kept).renamed(batch);
        let bases = renamed.as_deref().unwrap_or(batch.bases);
        let outcome = self.with(|child| child.execute(&BatchRef { bases, ..*batch }, blocks, report));
        let gone = match blocks {
            [] => lock(kept).ran(batch, 0..batch.instrs.len() as u32),
            _ => lock(kept).ran(batch, order(batch, blocks).into_iter()),
        };
        Some((outcome, gone))
    }
}

/// The instructions of a batch, or of some blocks of it, in the order in which they are to run.
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
