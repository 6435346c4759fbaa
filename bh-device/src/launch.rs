//! Running a block: its memory is brought together, its kernels go into the queue.

use crate::arrays::{Arrays, Lent, Place};
use crate::code::{Code, KernelMemory, NOTE, Why};
use crate::driver::Event;
use crate::memory::Memory;
use crate::plan::BlockPlan;
use crate::timing::Timing;
use crate::work::Work;
use bh_bytecode::{Base, BatchRef};
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_kernel::BufferRef;
use std::sync::Arc;

/// The bytes that are copied between host and device in the time before the first one of a copy arrives.
const LATENCY_BYTES: u64 = 128 << 10;

/// Bytes that are to be copied before a block can run, see [`Launcher::distance`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Distance {
    pub(crate) to_host: u64,
    pub(crate) to_device: u64,
    /// Those of arrays that the program uses on both sides in turn, there and back.
    pub(crate) returning: u64,
}

impl Distance {
    /// Does the host do a block sooner that is no little work of its own, as its arrays come back in any case? A core does an element
    /// operation in about the time in which a byte is copied. Methods may do much more than they touch.
    pub(crate) fn outweighs(&self, work: &Work) -> bool {
        !work.calls && work.touched.max(work.operations) < self.returning
    }
}

/// An instruction (index in the batch) that failed, and why.
pub(crate) type Failure = (u32, Error);

/// The memory of a block that runs.
struct Brought<'a> {
    plan: &'a BlockPlan,
    bases: &'a [Lent],
    /// For bases that no element is seen of.
    nothing: Option<&'a Memory>,
    fresh: &'a [Arc<Memory>],
    temporaries: &'a [Memory],
    scratch: &'a [Memory],
    note: Option<&'a Memory>,
}

impl<'a> Brought<'a> {
    fn memory(&self, place: KernelMemory) -> Option<&'a Memory> {
        match place {
            KernelMemory::Of(BufferRef::Base(base)) => {
                let at = self.plan.uses.iter().position(|used| used.base == base);
                at.map_or(self.nothing, |at| self.bases.get(at).map(|lent| lent.memory.as_ref()))
            }
            KernelMemory::Of(BufferRef::Fresh(base)) => {
                let at = self.plan.renames.iter().position(|rename| rename.base == base)?;
                self.fresh.get(at).map(Arc::as_ref)
            }
            KernelMemory::Of(BufferRef::Temporary(number)) => self.temporaries.get(number as usize),
            KernelMemory::Of(BufferRef::None) => None,
            KernelMemory::Scratch(number) => self.scratch.get(number as usize),
            KernelMemory::Failures => self.note,
        }
    }
}

/// The state that blocks share.
pub(crate) struct Launcher {
    pub(crate) arrays: Arrays,
    /// Has the last block changed anything?
    pub(crate) begun: bool,
    pub(crate) timing: Timing,
    /// The events of the next block's kernels, if somebody wants them.
    pub(crate) watched: Option<Vec<Arc<dyn Event>>>,
}

impl Launcher {
    pub(crate) fn new(arrays: Arrays, timing: Timing) -> Launcher {
        Launcher { arrays, begun: false, timing, watched: None }
    }

    /// Has any array of a block a copy on the device?
    pub(crate) fn has_any(&self, batch: &BatchRef<'_>, block: u32) -> bool {
        let block = &batch.blocks[block as usize];
        let views = batch.block_instrs(block).iter().flat_map(|&index| batch.instrs[index as usize].operands());
        let mut bases = views.filter_map(|operand| batch.base_of(operand.as_view()?));
        bases.any(|base| self.arrays.is_known(base))
    }

    /// The copies that a block needs on the device and in host memory.
    pub(crate) fn distance(&self, batch: &BatchRef<'_>, block: u32) -> Distance {
        let block = &batch.blocks[block as usize];
        let mut seen: Vec<u32> = batch.contracted(block).to_vec();
        let mut found = Distance::default();
        let views = batch.block_instrs(block).iter().flat_map(|&index| batch.instrs[index as usize].operands());
        for view in views.filter_map(|operand| operand.as_view()) {
            let (Some(base), place) = (batch.base_of(view), batch.views[view as usize].base) else { continue };
            if seen.contains(&place) {
                continue;
            }
            seen.push(place);
            // A copy takes as long as so many bytes before its first one arrives.
            let bytes = base.bytes().saturating_add(LATENCY_BYTES);
            let there = match self.arrays.place(base) {
                Place::Device => &mut found.to_host,
                Place::Host => &mut found.to_device,
                Place::Anywhere => continue,
            };
            *there = there.saturating_add(bytes);
            if self.arrays.returns(base) {
                found.returning = found.returning.saturating_add(2 * bytes);
            }
        }
        found
    }

    /// Notes that the host does a block because its arrays come back in any case.
    pub(crate) fn stays(&mut self, batch: &BatchRef<'_>, block: u32) {
        let instrs = batch.block_instrs(&batch.blocks[block as usize]);
        let views = instrs.iter().flat_map(|&index| batch.instrs[index as usize].operands());
        let mut bases: Vec<&Base> = views.filter_map(|operand| batch.base_of(operand.as_view()?)).collect();
        bases.sort_unstable_by_key(|base| base.id);
        bases.dedup_by_key(|base| base.id);
        bases.into_iter().for_each(|base| self.arrays.stays(base));
    }

    /// Puts a block into the queue. Its outputs belong to the device afterwards. Nothing is changed before all that the
    /// block needs is there. Returns the instructions that failed while the others went on. `filled`: the bases that the batch fills part
    /// by part.
    pub(crate) fn block(
        &mut self,
        batch: &BatchRef<'_>,
        plan: &mut BlockPlan,
        filled: &[bool],
    ) -> Result<Vec<Failure>> {
        self.arrays.tick();
        self.begun = false;
        let special = plan.is_special();
        let scratch = plan.chosen(special).scratch.clone();
        let mut notes = 0;
        for launch in &plan.chosen(special).all {
            notes = notes.max(note_bytes(&launch.code));
            launch.bring_numbers(|bytes| self.arrays.take(bytes))?;
        }
        let bases = self.bases(batch, plan, filled)?;
        let fresh = plan.renames.iter().map(|rename| self.arrays.fresh(&batch.bases[rename.base as usize]));
        let fresh = fresh.collect::<Result<Vec<_>>>()?;
        let (temporaries, scratch) = (self.take_all(&plan.temporaries)?, self.take_all(&scratch)?);
        let note = if notes > 0 { Some(self.arrays.take(notes)?) } else { None };
        let launches = plan.chosen(special);
        let unseen = launches.all.iter().flat_map(|launch| &launch.code.places).any(|place| plan.is_unseen(place));
        let nothing = if unseen { Some(self.arrays.take(0)?) } else { None };
        // Outputs are claimed last, when nothing but the device itself can fail any more.
        self.begun = true;
        for (used, lent) in plan.uses.iter().zip(&bases) {
            self.arrays.claim(&batch.bases[used.base as usize], lent)?;
        }
        let (temporaries, scratch, note, nothing) = (&temporaries, &scratch, note.as_ref(), nothing.as_ref());
        let mut failures = Vec::new();
        let brought = Brought { plan, bases: &bases, nothing, fresh: &fresh, temporaries, scratch, note };
        for launch in &launches.all {
            if let Some(note) = note {
                note.clear(note_bytes(&launch.code))?;
            }
            let constant = |dtype, name: bh_kernel::ConstantRef| name.value(batch, dtype);
            let timed = self.watched.is_some() || self.timing.is_wanted();
            let event = launch.start(&self.arrays.pool.gpu, &|place| brought.memory(place), &constant, timed)?;
            if let Some(watched) = &mut self.watched {
                watched.extend(event.clone());
            }
            self.timing.started(event);
            if let Some(note) = note {
                failed(&launch.code, note, &mut failures)?;
            }
        }
        for (rename, memory) in plan.renames.iter().zip(&fresh) {
            let base = &batch.bases[rename.base as usize];
            self.arrays.replace(base, memory)?;
            if let Some((alias, view)) = rename.alias {
                self.arrays.alias(&batch.bases[alias as usize], base, &batch.view(view), memory)?;
            }
        }
        Ok(failures)
    }

    /// Did the last block change anything?
    pub(crate) fn has_begun(&self) -> bool {
        self.begun
    }

    /// The error of a block whose arrays cannot be on the device together; nothing of it has begun.
    pub(crate) fn does_not_fit(&mut self) -> Error {
        self.begun = false;
        Error::new(
            status::MEMORY,
            format!("out of device memory: its arrays do not fit {} bytes", self.arrays.pool.limit),
        )
    }

    /// Pieces of memory of these bytes.
    pub(crate) fn take_all(&mut self, sizes: &[usize]) -> Result<Vec<Memory>> {
        sizes.iter().map(|&bytes| self.arrays.take(bytes)).collect()
    }

    /// The memory of the bases that a block uses. Bases that it only overwrites come last, as their content is given up.
    fn bases(&mut self, batch: &BatchRef<'_>, plan: &BlockPlan, filled: &[bool]) -> Result<Vec<Lent>> {
        let mut lent: Vec<Option<Lent>> = plan.uses.iter().map(|_| None).collect();
        for overwritten in [false, true] {
            for ((used, part), lent) in plan.uses.iter().zip(&plan.parts).zip(&mut lent) {
                if used.discards() == overwritten {
                    let base = &batch.bases[used.base as usize];
                    if filled[used.base as usize] && !overwritten {
                        self.arrays.begin(base)?;
                    }
                    let some = if part.is_empty() { None } else { self.arrays.lend_part(base, part)? };
                    *lent = Some(some.map_or_else(|| self.arrays.lend(base, used.access), Ok)?);
                }
            }
        }
        Ok(lent.into_iter().flatten().collect())
    }
}

/// The error of a noted number.
fn error(why: &Why, bits: u64) -> Error {
    match why {
        Why::Index(signed, len) => {
            let index = if *signed { (bits as i64).to_string() } else { bits.to_string() };
            Error::new(status::BOUNDS, format!("index {index} is out of range for {len} elements"))
        }
        Why::Method(text) => Error::new(status::EXECUTION, text.replace("{}", &(bits as i64).to_string())),
    }
}

/// Bytes of a kernel's notes.
pub(crate) fn note_bytes(code: &Code) -> usize {
    code.failing.len() * NOTE * size_of::<u32>()
}

/// Waits for a kernel if it may fail, and adds what it has noted. An instruction fails once, whatever kernels it is in.
pub(crate) fn failed(code: &Code, note: &Memory, failures: &mut Vec<Failure>) -> Result<()> {
    let mut found = vec![0; note_bytes(code)];
    note.download_at(0, &mut found)?;
    let words: Vec<u32> =
        found.chunks_exact(4).map(|it| u32::from_ne_bytes(it.try_into().unwrap_or_default())).collect();
    for (noted, (instr, why)) in words.chunks_exact(NOTE).zip(&code.failing) {
        if noted[0] != 0 && failures.iter().all(|(known, _)| known != instr) {
            let bits = u64::from(noted[1]) | u64::from(noted[2]) << 32;
            failures.push((*instr, error(why, bits)));
        }
    }
    Ok(())
}
