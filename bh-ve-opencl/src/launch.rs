//! Running a block: its memory is brought together, its kernels go into the queue.

use crate::arrays::{Arrays, Lent};
use crate::code::Place;
use crate::memory::Memory;
use crate::plan::BlockPlan;
use crate::start::Launch;
use bh_bytecode::BatchRef;
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_fuser::lower::BufferRef;
use opencl3::event::Event;
use std::sync::Arc;

/// Bytes of the note of a failure: the number of the instruction and the index.
const NOTE: usize = 16;

/// The memory of a block that runs.
struct Brought<'a> {
    plan: &'a BlockPlan,
    bases: &'a [Lent],
    fresh: &'a [Arc<Memory>],
    temporaries: &'a [Memory],
    scratch: &'a [Memory],
    note: Option<&'a Memory>,
}

impl<'a> Brought<'a> {
    fn memory(&self, place: Place) -> Option<&'a Memory> {
        match place {
            Place::Of(BufferRef::Base(base)) => {
                let at = self.plan.uses.iter().position(|used| used.base == base)?;
                self.bases.get(at).map(|lent| lent.memory.as_ref())
            }
            Place::Of(BufferRef::Fresh(base)) => {
                let at = self.plan.renames.iter().position(|rename| rename.base == base)?;
                self.fresh.get(at).map(Arc::as_ref)
            }
            Place::Of(BufferRef::Temporary(number)) => self.temporaries.get(number as usize),
            Place::Of(BufferRef::None) => None,
            Place::Scratch(number) => self.scratch.get(number as usize),
            Place::Failures => self.note,
        }
    }
}

/// What blocks use together.
pub(crate) struct Launcher {
    pub(crate) arrays: Arrays,
    note: Option<Memory>,
    /// Events of kernels whose times are to be read.
    events: Vec<Event>,
    profile: bool,
}

impl Launcher {
    pub(crate) fn new(arrays: Arrays, profile: bool) -> Launcher {
        Launcher { arrays, note: None, events: Vec::new(), profile }
    }

    /// Puts a block into the queue. Its outputs belong to the device afterwards.
    pub(crate) fn block(&mut self, batch: &BatchRef<'_>, plan: &mut BlockPlan) -> Result<()> {
        self.arrays.tick();
        plan.runs += 1;
        let scratch = plan.launches().scratch.clone();
        let mut fails = false;
        for launch in &mut plan.launches().all {
            fails |= !launch.code.failing.is_empty();
            if launch.code.packed && launch.numbers.is_none() {
                let bytes = launch.packed();
                let memory = self.arrays.take(bytes.len())?;
                memory.upload(&bytes)?;
                launch.numbers = Some(memory);
            }
        }
        if fails {
            if self.note.is_none() {
                self.note = Some(self.arrays.take(NOTE)?);
            }
            self.note.as_ref().map_or(Ok(()), |note| note.clear(NOTE))?;
        }
        let lend = |used: &bh_fuser::lower::BaseUse| {
            let base = &batch.bases[used.base as usize];
            self.arrays.lend(base, used.access)
        };
        let bases = plan.uses.iter().map(lend).collect::<Result<Vec<_>>>()?;
        let fresh = plan.renames.iter().map(|rename| self.arrays.fresh(&batch.bases[rename.base as usize]));
        let fresh = fresh.collect::<Result<Vec<_>>>()?;
        let mut all = |sizes: &[usize]| sizes.iter().map(|&bytes| self.arrays.take(bytes)).collect::<Result<Vec<_>>>();
        let (temporaries, scratch) = (all(&plan.temporaries)?, all(&scratch)?);
        // Outputs are claimed last, when nothing but the device itself can fail any more.
        for (used, lent) in plan.uses.iter().zip(&bases) {
            self.arrays.claim(&batch.bases[used.base as usize], lent)?;
        }
        let special = plan.special.as_ref().filter(|special| special.ready());
        let launches = special.unwrap_or(&plan.plain);
        let (temporaries, scratch, note) = (&temporaries, &scratch, self.note.as_ref());
        let brought = Brought { plan, bases: &bases, fresh: &fresh, temporaries, scratch, note };
        for launch in &launches.all {
            let constant = |dtype, name: bh_fuser::lower::ConstantRef| name.value(batch, dtype);
            let event = launch.start(&self.arrays.pool.gpu, &|place| brought.memory(place), &constant)?;
            if self.profile {
                self.events.push(event);
            }
            if !launch.code.failing.is_empty() {
                check(batch, launch, self.note.as_ref())?;
            }
        }
        for (rename, memory) in plan.renames.iter().zip(&fresh) {
            let base = &batch.bases[rename.base as usize];
            self.arrays.replace(base, memory)?;
            if let Some((alias, view)) = rename.alias {
                self.arrays.alias(&batch.bases[alias as usize], base, &batch.view(view), memory)?;
            }
        }
        Ok(())
    }

    /// The nanoseconds that kernels have run on the device since this was last asked; waits for them.
    pub(crate) fn kernel_nanoseconds(&mut self) -> u64 {
        let time = |event: Event| {
            event.wait().ok()?;
            Some(event.profiling_command_end().ok()?.saturating_sub(event.profiling_command_start().ok()?))
        };
        self.events.drain(..).filter_map(time).sum()
    }
}

/// Waits for a kernel that may fail, and reports what it has noted.
fn check(batch: &BatchRef<'_>, launch: &Launch, note: Option<&Memory>) -> Result<()> {
    let mut found = [0; NOTE];
    note.map_or(Ok(()), |memory| memory.download_at(0, &mut found))?;
    let word = |at: usize| u32::from_ne_bytes([found[at], found[at + 1], found[at + 2], found[at + 3]]);
    let Some(number) = (word(0) as usize).checked_sub(1) else { return Ok(()) };
    let Some(&(instr, signed, len)) = launch.code.failing.get(number) else {
        return Err(Error::new(status::DEVICE, "a kernel has noted a failure that it cannot have"));
    };
    let bits = u64::from(word(4)) | u64::from(word(8)) << 32;
    let index = if signed { (bits as i64).to_string() } else { bits.to_string() };
    let text = format!("index {index} is out of range for {len} elements");
    Err(Error::new(status::BOUNDS, text).at_instr(batch, instr))
}
