//! Running a block: its memory is brought together, its kernels go into the queue.

use crate::arrays::Arrays;
use crate::code::Place;
use crate::memory::Memory;
use crate::plan::{BlockPlan, Launch};
use crate::programs::failed;
use bh_bytecode::BatchRef;
use bh_core::abi::{access, status};
use bh_core::{Error, Result};
use bh_fuser::lower::{self, BufferRef};
use opencl3::event::Event;
use opencl3::kernel::Kernel;
use opencl3::memory::ClMem;
use std::sync::{Arc, PoisonError};

/// Bytes of the note of a failure: the number of the instruction and the index.
const NOTE: usize = 16;

/// The memory of a block that runs.
struct Lent<'a> {
    plan: &'a BlockPlan,
    bases: Vec<Arc<Memory>>,
    fresh: Vec<Arc<Memory>>,
    temporaries: Vec<Memory>,
    scratch: Vec<Memory>,
    note: Option<&'a Memory>,
}

impl Lent<'_> {
    fn memory(&self, place: Place) -> Option<&Memory> {
        match place {
            Place::Of(BufferRef::Base(base)) => {
                let at = self.plan.uses.iter().position(|used| used.base == base)?;
                self.bases.get(at).map(Arc::as_ref)
            }
            Place::Of(BufferRef::Fresh(base)) => {
                let at = self.plan.renames.iter().position(|&renamed| renamed == base)?;
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
                launch.numbers = Some(self.pack(launch)?);
            }
        }
        if fails {
            if self.note.is_none() {
                self.note = Some(self.arrays.take(NOTE)?);
            }
            self.note.as_ref().map_or(Ok(()), |note| note.clear(NOTE))?;
        }
        let bases = self.lend(batch, plan)?;
        let fresh = plan.renames.iter().map(|&base| self.arrays.fresh(&batch.bases[base as usize]));
        let fresh = fresh.collect::<Result<Vec<_>>>()?;
        let mut all = |sizes: &[usize]| sizes.iter().map(|&bytes| self.arrays.take(bytes)).collect::<Result<Vec<_>>>();
        let (temporaries, scratch) = (all(&plan.temporaries)?, all(&scratch)?);
        // Outputs are claimed last, when nothing but the device itself can fail any more.
        for (used, memory) in plan.uses.iter().zip(&bases) {
            if used.access & access::WRITE != 0 {
                self.arrays.claim(&batch.bases[used.base as usize], memory)?;
            }
        }
        let special = plan.special.as_ref().filter(|special| special.ready());
        let launches = special.unwrap_or(&plan.plain);
        let lent = Lent { plan, bases, fresh, temporaries, scratch, note: self.note.as_ref() };
        for launch in &launches.all {
            let event = start(batch, launch, &lent)?;
            if self.profile {
                self.events.push(event);
            }
            if !launch.code.failing.is_empty() {
                check(batch, launch, self.note.as_ref())?;
            }
        }
        let fresh = lent.fresh;
        for (&base, memory) in plan.renames.iter().zip(&fresh) {
            self.arrays.claim(&batch.bases[base as usize], memory)?;
        }
        Ok(())
    }

    /// Memory for each base in use, with its content if that is needed.
    fn lend(&mut self, batch: &BatchRef<'_>, plan: &BlockPlan) -> Result<Vec<Arc<Memory>>> {
        let lend = |used: &lower::BaseUse| {
            let base = &batch.bases[used.base as usize];
            let old = used.access & access::DISCARD == 0;
            if old {
                return self.arrays.fetch(base);
            }
            // A lost base may be overwritten, so that its error is none here.
            match self.arrays.attached(base) {
                Ok(Some(memory)) => Ok(memory),
                _ => self.arrays.fresh(base),
            }
        };
        plan.uses.iter().map(lend).collect()
    }

    fn pack(&mut self, launch: &Launch) -> Result<Memory> {
        let numbers = &launch.code.numbers;
        let bytes: Vec<u8> = if launch.code.wide {
            numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
        } else {
            numbers.iter().flat_map(|number| (*number as i32).to_ne_bytes()).collect()
        };
        let memory = self.arrays.take(bytes.len())?;
        memory.upload(&bytes)?;
        Ok(memory)
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
    note.map_or(Ok(()), |memory| memory.download(&mut found))?;
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

/// Sets the arguments of a kernel and puts it into the queue.
fn start(batch: &BatchRef<'_>, launch: &Launch, lent: &Lent<'_>) -> Result<Event> {
    let code = &launch.code;
    let Some(built) = launch.entry.ready() else {
        return Err(Error::new(status::DEVICE, "OpenCL: a kernel is not built"));
    };
    let kernel = built.kernel.lock().unwrap_or_else(PoisonError::into_inner);
    let mut pool = None;
    let mut at = 0;
    for &place in &code.places {
        let Some(memory) = lent.memory(place) else {
            return Err(Error::new(status::DEVICE, "OpenCL: a kernel's memory is missing"));
        };
        pool = Some(&memory.pool);
        // SAFETY: the argument is a buffer of the kernel's context.
        unsafe { kernel.set_arg(at, &memory.buffer().get()) }.map_err(|why| failed("setting an argument", why))?;
        at += 1;
    }
    for (dtype, constant) in &code.constants {
        let bytes = constant.value(batch, *dtype).bytes();
        set_bytes(&kernel, at, &bytes[..dtype.size()])?;
        at += 1;
    }
    if let Some(numbers) = &launch.numbers {
        // SAFETY: as above.
        unsafe { kernel.set_arg(at, &numbers.buffer().get()) }.map_err(|why| failed("setting an argument", why))?;
    } else {
        for &number in &code.numbers {
            match code.wide {
                true => set_bytes(&kernel, at, &number.to_ne_bytes())?,
                false => set_bytes(&kernel, at, &(number as i32).to_ne_bytes())?,
            }
            at += 1;
        }
    }
    let Some(pool) = pool else { return Err(Error::new(status::DEVICE, "OpenCL: a kernel works on nothing")) };
    let (global, local) = (code.groups * code.group, code.group);
    let (queue, offset) = (&pool.gpu.queue, std::ptr::null());
    // SAFETY: all arguments are set, and the kernel's views lie inside of its buffers, which were validated; the queue keeps
    // buffers that are released while it uses them.
    let event = unsafe { queue.enqueue_nd_range_kernel(kernel.get(), 1, offset, &global, &local, &[]) };
    event.map_err(|why| failed("starting a kernel", why))
}

/// Sets an argument that is a number of these bytes.
fn set_bytes(kernel: &Kernel, at: u32, bytes: &[u8]) -> Result<()> {
    // SAFETY: the argument's type has as many bytes.
    let outcome = unsafe {
        match bytes.len() {
            1 => kernel.set_arg(at, &[bytes[0]]),
            2 => kernel.set_arg(at, &[bytes[0], bytes[1]]),
            4 => kernel.set_arg(at, &<[u8; 4]>::try_from(bytes).unwrap_or_default()),
            8 => kernel.set_arg(at, &<[u8; 8]>::try_from(bytes).unwrap_or_default()),
            _ => kernel.set_arg(at, &<[u8; 16]>::try_from(bytes).unwrap_or_default()),
        }
    };
    outcome.map_err(|why| failed("setting an argument", why))
}
