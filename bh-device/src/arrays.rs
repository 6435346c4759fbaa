//! Arrays on the device: notes to the registry, uploads, and arrays that make room when memory is short.

use crate::attachment::Counters;
use crate::driver::Region;
use crate::held::Held;
use crate::memory::{Memory, Pool};
use crate::shared::Space;
use bh_bytecode::{Base, View};
use bh_core::abi::{Residency, access, status};
use bh_core::component::Loan;
use bh_core::{Counter, Host, Registry, Result};
use std::collections::HashMap;
use std::sync::{Arc, Weak};

/// The engine's side of the array registry.
pub(crate) struct Arrays {
    pub(crate) registry: Registry,
    pub(crate) pool: Arc<Pool>,
    space: u32,
    /// Bases that were on the device when they were last used, with the time of that.
    known: HashMap<u64, Known>,
    /// Bases in host memory of which parts were brought, and how many bytes.
    parted: HashMap<u64, u64>,
    /// Bases that came from host memory as a whole.
    came: HashMap<u64, Came>,
    clock: u64,
    pub(crate) counters: &'static Counters,
    evictions: Counter,
    /// Bytes of zeros that the device's memory was filled with.
    cleared: Counter,
    /// Memory that the program uses, too.
    pub(crate) held: Arc<Held>,
}

/// A base with a copy on the device, which the registry may have dropped.
struct Known {
    base: Base,
    memory: Weak<Memory>,
    used: u64,
}

/// How often a base came from host memory, and how many blocks the host has done because further times are expected.
#[derive(Default)]
struct Came {
    times: u32,
    stays: u32,
}

/// Where the values of a base are: in one place alone, or in both or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Host,
    Device,
    Anywhere,
}

/// The number of times that a base came from host memory from which on further ones are expected.
const RETURNS: u32 = 3;

/// After this many blocks in host memory a base comes once more, as the program may do no little work on it any longer.
const STAYS: u32 = 16;

/// This many bases are remembered before those without a copy are forgotten.
const KNOWN: usize = 4096;

/// Memory of a base for a block, and what the registry has to hear before the block writes to it.
pub(crate) struct Lent {
    pub(crate) memory: Arc<Memory>,
    claim: Claim,
}

enum Claim {
    /// Nothing: it is only read, or is known to be overwritten.
    Nothing,
    /// That some elements change.
    Write,
    /// That it becomes the only valid copy.
    Attach,
}

impl Arrays {
    pub(crate) fn new(registry: Registry, pool: Arc<Pool>, held: Arc<Held>, host: &Host) -> Arrays {
        let (space, evictions) = (registry.new_space(), host.counter("evictions"));
        let cleared = host.counter("cleared_bytes");
        let (known, parted, came, counters) = (HashMap::new(), HashMap::new(), HashMap::new(), Counters::new(host));
        Arrays { registry, pool, space, known, parted, came, clock: 0, counters, evictions, cleared, held }
    }

    /// Where arrays of the device are known.
    pub(crate) fn space(&self) -> Space {
        Space { registry: self.registry, number: self.space, counters: self.counters }
    }

    /// A new moment: what is used from now on is not evicted before the next one.
    pub(crate) fn tick(&mut self) {
        self.clock += 1;
    }

    fn used(&mut self, base: &Base, memory: &Arc<Memory>) {
        if self.known.len() >= KNOWN {
            self.known.retain(|_, known| known.memory.strong_count() > 0);
        }
        self.known.insert(base.id, Known { base: *base, memory: Arc::downgrade(memory), used: self.clock });
    }

    /// Memory of the device; arrays that were not used for longest make room for it.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<Memory> {
        loop {
            match self.pool.take(bytes) {
                Err(error) if error.status == status::MEMORY => {
                    if !self.evict()? {
                        return Err(error);
                    }
                }
                outcome => return outcome,
            }
        }
    }

    /// Brings the array that was not used for longest back to host memory. False if there is none.
    fn evict(&mut self) -> Result<bool> {
        loop {
            let mut old: Vec<&Known> = self.known.values().filter(|known| known.used < self.clock).collect();
            old.retain(|known| self.held.memory(known.base.id).is_none());
            let oldest = old.into_iter().min_by_key(|known| known.used);
            let Some(Known { base, memory, .. }) = oldest else { return Ok(false) };
            let (base, gone) = (*base, memory.strong_count() == 0);
            self.known.remove(&base.id);
            if gone {
                continue;
            }
            match self.registry.detach(&base, self.space) {
                Ok(()) => {}
                // Somebody reads it at the moment.
                Err(error) if error.status == status::DEVICE => continue,
                Err(error) => return Err(error),
            }
            self.evictions.add(1);
            return Ok(true);
        }
    }

    /// May the base have a copy on the device?
    pub(crate) fn is_known(&self, base: &Base) -> bool {
        self.known.get(&base.id).is_some_and(|known| known.memory.strong_count() > 0)
    }

    /// Where the values of a base are.
    pub(crate) fn place(&self, base: &Base) -> Place {
        match (self.registry.residency(base).host != 0, self.is_known(base)) {
            (true, false) => Place::Host,
            (false, true) => Place::Device,
            _ => Place::Anywhere,
        }
    }

    /// Has a base come from host memory again and again, as the program does work on it there in between?
    pub(crate) fn returns(&self, base: &Base) -> bool {
        self.came.get(&base.id).is_some_and(|came| came.times >= RETURNS)
    }

    /// Notes that the host does a block because this array, or another one of the block, comes back in any case.
    pub(crate) fn stays(&mut self, base: &Base) {
        let Some(came) = self.came.get_mut(&base.id).filter(|came| came.times >= RETURNS) else { return };
        came.stays += 1;
        if came.stays == STAYS {
            *came = Came { times: RETURNS - 1, stays: 0 };
        }
    }

    /// A base has ended.
    pub(crate) fn forget(&mut self, base: &Base) {
        self.known.remove(&base.id);
        self.came.remove(&base.id);
    }

    /// Bytes that a base's copy on the device takes; 0 if there is none.
    pub(crate) fn bytes_of(&self, base: u64) -> u64 {
        let memory = self.known.get(&base).and_then(|known| known.memory.upgrade());
        memory.map_or(0, |memory| memory.capacity())
    }

    /// Bytes of a base that came in parts.
    pub(crate) fn parted_of(&self, base: u64) -> u64 {
        self.parted.get(&base).copied().unwrap_or(0)
    }

    /// The base's memory for this access, with its content if that is needed. Writes begin when no other device copies it any
    /// more.
    pub(crate) fn lend(&mut self, base: &Base, mode: u32) -> Result<Lent> {
        let lent = self.lend_unordered(base, mode)?;
        if mode & access::WRITE != 0 {
            lent.memory.before_writing(0..usize::MAX)?;
        }
        Ok(lent)
    }

    /// The same without regard to other devices that copy it: see [`Memory::before_writing`].
    pub(crate) fn lend_unordered(&mut self, base: &Base, mode: u32) -> Result<Lent> {
        if let Some(memory) = self.held.memory(base.id) {
            return self.lend_held(base, mode, memory);
        }
        if mode & access::DISCARD == 0 {
            let memory = self.fetch(base)?;
            if mode & access::WRITE == 0 {
                return Ok(Lent { memory, claim: Claim::Nothing });
            }
            if !memory.is_read_only() {
                return Ok(Lent { memory, claim: Claim::Write });
            }
            let own = self.fresh(base)?;
            memory.copy_to(&own, base.bytes() as usize)?;
            return Ok(Lent { memory: own, claim: Claim::Attach });
        }
        // A lost base may be overwritten, so that its error is none here. Memory that aliases still need is not lent.
        if let Some(memory) = self.attached(base, mode)?.filter(|memory| !memory.is_read_only()) {
            self.used(base, &memory);
            return Ok(Lent { memory, claim: Claim::Nothing });
        }
        Ok(Lent { memory: self.fresh(base)?, claim: Claim::Attach })
    }

    /// Gives a base that nobody has values of memory with any content, as a batch writes each element before it is read.
    pub(crate) fn begin(&mut self, base: &Base) -> Result<()> {
        if self.held.memory(base.id).is_some() || !is_nowhere(self.registry.residency(base)) {
            return Ok(());
        }
        let memory = self.fresh(base)?;
        self.attach(base, memory.clone(), false)?;
        self.used(base, &memory);
        Ok(())
    }

    /// Memory with some regions of a base that is in host memory, for one block that reads nothing else of it. None if it is on
    /// the device, or if parts of it have come so often that all of it had better come.
    pub(crate) fn lend_part(&mut self, base: &Base, regions: &[Region]) -> Result<Option<Lent>> {
        if self.held.memory(base.id).is_some() || self.attached(base, access::READ)?.is_some() {
            return Ok(None);
        }
        if self.parted.len() >= KNOWN {
            self.parted.clear();
        }
        let bytes: u64 = regions.iter().map(Region::bytes).sum();
        let brought = self.parted.entry(base.id).or_default();
        *brought += bytes;
        if *brought > base.bytes() / 2 {
            return Ok(None);
        }
        let memory = Arc::new(self.take(base.bytes() as usize)?);
        let loan = self.registry.acquire(base, access::READ)?;
        // SAFETY: the loan holds the whole base until it is released.
        let all = unsafe { std::slice::from_raw_parts(loan.data().cast::<u8>(), base.bytes() as usize) };
        let begun = self.counters.begin();
        regions.iter().try_for_each(|region| region.upload(&memory, all))?;
        self.counters.upload(bytes as usize, &begun);
        Ok(Some(Lent { memory, claim: Claim::Nothing }))
    }

    /// Memory that the program uses, too, and that the base keeps.
    fn lend_held(&mut self, base: &Base, mode: u32, memory: Arc<Memory>) -> Result<Lent> {
        self.used(base, &memory);
        if mode & access::DISCARD == 0 {
            self.refresh(base, &memory)?;
            let claim = if mode & access::WRITE == 0 { Claim::Nothing } else { Claim::Write };
            return Ok(Lent { memory, claim });
        }
        // Aliases get copies of their own, as the memory stays. A lost base may be overwritten.
        let attached = self.attached(base, access::WRITE).unwrap_or(None);
        let stays = attached.is_some_and(|attached| Arc::ptr_eq(&attached, &memory));
        Ok(Lent { memory, claim: if stays { Claim::Nothing } else { Claim::Attach } })
    }

    /// Brings what a base holds to memory that the program uses, too.
    fn refresh(&self, base: &Base, memory: &Arc<Memory>) -> Result<()> {
        if self.attached(base, access::READ)?.is_some_and(|attached| Arc::ptr_eq(&attached, memory)) {
            return Ok(());
        }
        let loan = self.registry.acquire(base, access::READ)?;
        // SAFETY: the loan holds the whole base until it is released.
        self.upload(memory, unsafe { std::slice::from_raw_parts(loan.data().cast::<u8>(), base.bytes() as usize) })?;
        drop(loan);
        self.attach(base, memory.clone(), false)
    }

    /// Makes memory that the program uses, too, the only one with the values of its base: before a batch, as the program may
    /// have written to it, and after one, as other engines may have written elsewhere.
    pub(crate) fn settle_held(&mut self) -> Result<()> {
        for (base, memory) in self.held.all() {
            let found = self.registry.residency(&base);
            if found.host == 0 && found.spaces == 0 && found.lost == 0 {
                self.held.forget(base.id);
            } else if found.lost == 0
                && (found.host != 0 || found.alias != 0 || self.attached(&base, access::READ)?.is_none())
            {
                self.refresh(&base, &memory)?;
                self.claim(&base, &Lent { memory, claim: Claim::Write })?;
            }
        }
        Ok(())
    }

    /// Tells the registry what a block will write.
    pub(crate) fn claim(&mut self, base: &Base, lent: &Lent) -> Result<()> {
        match lent.claim {
            Claim::Nothing => Ok(()),
            Claim::Write => match self.attached(base, access::WRITE)? {
                Some(memory) if Arc::ptr_eq(&memory, &lent.memory) => Ok(()),
                _ => self.replace(base, &lent.memory),
            },
            Claim::Attach => self.replace(base, &lent.memory),
        }
    }

    /// Makes memory the only valid copy of a base: its next version.
    pub(crate) fn replace(&mut self, base: &Base, memory: &Arc<Memory>) -> Result<()> {
        self.attach(base, memory.clone(), true)?;
        self.used(base, memory);
        Ok(())
    }

    /// `alias` gets the content of a view of a base, whose memory this is, without a copy until one is needed.
    pub(crate) fn alias(&mut self, alias: &Base, base: &Base, view: &View, memory: &Arc<Memory>) -> Result<()> {
        self.registry.alias(alias, base, view)?;
        self.used(alias, memory);
        Ok(())
    }

    /// The copy of a base on the device, if there is a valid one that may be used in this way.
    fn attached(&self, base: &Base, mode: u32) -> Result<Option<Arc<Memory>>> {
        let loan = self.registry.acquire_in(base, self.space, mode)?;
        // SAFETY: copies in this space come from `attach` below.
        Ok(unsafe { loan.copy() })
    }

    /// The base's memory with its current content.
    fn fetch(&mut self, base: &Base) -> Result<Arc<Memory>> {
        if let Some(memory) = self.attached(base, access::READ)? {
            self.used(base, &memory);
            return Ok(memory);
        }
        let bytes = base.bytes() as usize;
        let memory = Arc::new(self.take(bytes)?);
        if is_nowhere(self.registry.residency(base)) {
            // Elements that were never written read as zeros.
            memory.clear(bytes)?;
            self.cleared.add(bytes as u64);
        } else {
            let loan = self.registry.acquire(base, access::READ)?;
            // SAFETY: the loan holds the whole base until it is released.
            self.upload(&memory, unsafe { std::slice::from_raw_parts(loan.data().cast::<u8>(), bytes) })?;
            self.came_to_device(base);
        }
        self.attach(base, memory.clone(), false)?;
        self.used(base, &memory);
        Ok(memory)
    }

    fn came_to_device(&mut self, base: &Base) {
        if self.came.len() >= KNOWN {
            self.came.clear();
        }
        self.came.entry(base.id).or_default().times += 1;
    }

    /// Copies bytes to the begin of device memory.
    pub(crate) fn upload(&self, memory: &Memory, bytes: &[u8]) -> Result<()> {
        let begun = self.counters.begin();
        memory.upload(bytes)?;
        self.counters.upload(bytes.len(), &begun);
        Ok(())
    }

    /// Copies the first bytes of device memory to the host.
    pub(crate) fn download(&self, memory: &Memory, bytes: &mut [u8]) -> Result<()> {
        let begun = self.counters.begin();
        self.counters.download(memory.download_at(0, bytes).map(|()| bytes.len()), &begun)
    }

    /// The base in host memory, whose copy on the device goes.
    pub(crate) fn bring_home(&mut self, base: &Base, mode: u32) -> Result<Loan> {
        let loan = self.registry.acquire(base, mode)?;
        match self.registry.detach(base, self.space) {
            // Somebody reads it at the moment.
            Err(error) if error.status != status::DEVICE => return Err(error),
            _ => {}
        }
        self.known.remove(&base.id);
        Ok(loan)
    }

    /// Memory that a base is to be written to as a whole.
    pub(crate) fn fresh(&mut self, base: &Base) -> Result<Arc<Memory>> {
        self.take(base.bytes() as usize).map(Arc::new)
    }

    fn attach(&self, base: &Base, memory: Arc<Memory>, exclusive: bool) -> Result<()> {
        // SAFETY: the counters live for ever.
        unsafe { self.registry.attach_copy(base, self.space, memory, exclusive, self.counters) }
    }
}

/// Does nobody have values of a base?
fn is_nowhere(found: Residency) -> bool {
    (found.host, found.spaces, found.alias, found.lost) == (0, 0, 0, 0)
}
