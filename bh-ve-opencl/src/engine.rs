//! The component: which blocks it takes, their plans, and what it says of itself.

use crate::arrays::Arrays;
use crate::code::{Target, scatter};
use crate::device::{self, Class, Facts};
use crate::launch::Launcher;
use crate::memory::Pool;
use crate::methods::Methods;
use crate::plan::BlockPlan;
use crate::programs::{Entry, Gpu, Programs, failed};
use crate::settings::{KEYS, Settings, Specialise};
use bh_bytecode::opcode::Signature;
use bh_bytecode::{Batch, BatchRef, Cache, DType, Key, Kind, Opcode, Operand};
use bh_core::abi::{Capabilities, capability, kind, log_level, status};
use bh_core::component::enter_block;
use bh_core::{Child, Component, Counter, Error, Host, Registry, Report, Result, Ticket};
use opencl3::event::{CL_COMPLETE, Event};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

/// Runs of a block after which its kernels are built with their sizes in the text.
const HOT: u32 = 2;
/// Bytes of plans that are kept.
const PLANS: usize = 64 << 20;

/// The OpenCL engine.
pub struct Engine {
    host: Host,
    child: Option<Child>,
    settings: Settings,
    /// Without a device, everything goes to the next engine.
    device: Option<Open>,
    /// Why there is no device.
    absent: String,
    counters: Counters,
}

/// A device in use.
struct Open {
    pool: Arc<Pool>,
    methods: Methods,
    launcher: Option<Launcher>,
    plans: Cache<Vec<Option<BlockPlan>>>,
    /// Batches that may not be done, in order, with what marks the end of each in the queue.
    pending: VecDeque<(u64, Event)>,
    /// The number of the last ticket.
    last: u64,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.pool.programs.close();
    }
}

struct Counters {
    kernels: Counter,
    small: Counter,
    unsupported: Counter,
    too_large: Counter,
    lower: Counter,
    kernel: Counter,
    specialised: Counter,
}

impl Component for Engine {
    const NAME: &'static str = "opencl";
    const KIND: u32 = kind::ENGINE;
    const KEYS: &'static [&'static str] = KEYS;

    fn create(host: Host, children: Vec<Child>) -> Result<Engine> {
        let settings = Settings::read(&host)?;
        let child = children.into_iter().next();
        let opened = open(&host, &settings);
        let (device, absent) = match (opened, &child) {
            (Ok(device), _) => (Some(device), String::new()),
            (Err(error), Some(_)) if error.status == status::DEVICE && settings.device.is_none() => {
                host.log(log_level::WARN, &format!("opencl: {}; the next engine takes over", error.text));
                (None, error.text)
            }
            (Err(error), _) => return Err(Error { status: status::INIT, ..error }),
        };
        let counters = Counters {
            kernels: host.counter("kernels"),
            small: host.counter("blocks too small"),
            unsupported: host.counter("blocks unsupported"),
            too_large: host.counter("blocks too large"),
            lower: host.counter("lower_ns"),
            kernel: host.counter("kernel_ns"),
            specialised: host.counter("blocks specialised"),
        };
        Ok(Engine { host, child, settings, device, absent, counters })
    }

    fn child(&mut self) -> Option<&mut Child> {
        self.child.as_mut()
    }

    fn capabilities(&mut self) -> Capabilities {
        let below = self.child.as_mut().map_or_else(Capabilities::default, |child| child.capabilities());
        let Some(device) = &self.device else { return below };
        Capabilities {
            flags: capability::RETIRES_BLOCKS
                | capability::NO_FORK
                | capability::RENAMES
                | capability::ACQUIRES_FIRST,
            parallelism: device.pool.gpu.facts.units as u32,
            bandwidth: 1e12,
            launch_seconds: 6e-6,
            ..Capabilities::default()
        }
    }

    fn bind(&mut self, registry: Registry) -> Result<()> {
        if let Some(device) = &mut self.device {
            let arrays = Arrays::new(registry, device.pool.clone(), &self.host);
            device.launcher = Some(Launcher::new(arrays, self.settings.profile));
        }
        self.child.as_mut().map_or(Ok(()), |child| child.bind(registry))
    }

    fn supports(&mut self, batch: &BatchRef<'_>, block: u32) -> bool {
        let (Some(device), Some(known)) = (&self.device, batch.blocks.get(block as usize)) else { return false };
        let instrs = batch.block_instrs(known);
        if instrs.iter().all(|&instr| batch.instrs[instr as usize].opcode.is_system()) {
            return true;
        }
        if !instrs.iter().all(|&instr| device.runs(batch, instr)) {
            self.counters.unsupported.add(1);
            return false;
        }
        let (bytes, largest, operations) = device.work(batch, block);
        let facts = &device.pool.gpu.facts;
        let several = instrs.iter().filter(|&&instr| !batch.instrs[instr as usize].opcode.is_system()).count() > 1;
        // Parts of a block may fit. Of one operation that no other engine can take, the error says what is missing.
        if (bytes > device.pool.limit || largest > facts.largest_bytes) && (several || self.child.is_some()) {
            self.counters.too_large.add(1);
            return false;
        }
        if self.child.is_none() {
            return true;
        }
        if bytes < self.settings.small_bytes
            && operations < self.settings.small_operations
            && !device.has_any(batch, block)
        {
            self.counters.small.add(1);
            return false;
        }
        true
    }

    fn extmethod(&mut self, name: &str, opcode: Opcode) -> Result<bool> {
        let own = self.device.as_mut().is_some_and(|device| {
            // A number that means something else now may be in plans.
            device.plans = Cache::new(PLANS);
            device.methods.announce(name, opcode)
        });
        Ok(own)
    }

    /// Answers `devices` and `extmethod-library opencl NAME FILE`, adds its device to `info`, and passes everything else on.
    fn message(&mut self, text: &str) -> Result<String> {
        let below = |engine: &mut Engine| engine.child.as_mut().map_or(Ok(String::new()), |child| child.message(text));
        match text {
            "devices" => Ok(match device::list() {
                Ok(all) => all.iter().enumerate().map(|(index, facts)| format!("{index}: {facts}\n")).collect(),
                Err(error) => error.text,
            }),
            "info" => {
                let own = match &self.device {
                    Some(device) => {
                        let (used, free) = device.pool.bytes();
                        format!(
                            "OpenCL device: {}; {used} bytes in use, {free} kept, at most {}",
                            device.pool.gpu.facts, device.pool.limit
                        )
                    }
                    None => format!("OpenCL device: none ({})", self.absent),
                };
                let below = below(self)?;
                Ok(if below.is_empty() { own } else { format!("{own}\n{below}") })
            }
            "exiting" => {
                if let Some(device) = &self.device {
                    device.pool.programs.close();
                }
                below(self)
            }
            _ => {
                let mut words = text.splitn(4, ' ');
                if let (Some("extmethod-library"), Some(component), Some(name), Some(file)) =
                    (words.next(), words.next(), words.next(), words.next())
                    && let Some(device) = &mut self.device
                {
                    if component == Self::NAME {
                        return device.methods.load(name, file).map(|()| format!("loaded {name}"));
                    }
                    device.methods.leave(name);
                }
                below(self)
            }
        }
    }

    fn execute(&mut self, batch: &BatchRef<'_>, blocks: &[u32], report: &mut Report) -> Result<Ticket> {
        if batch.blocks.is_empty() && !batch.instrs.is_empty() {
            let whole = with_blocks(batch);
            return self.execute(&whole.as_ref(), &[], report);
        }
        let Some(device) = &mut self.device else {
            let name = Self::NAME;
            return match &mut self.child {
                Some(child) => child.execute(batch, blocks, report),
                None => Err(Error::new(status::UNSUPPORTED, format!("{name} has no device and no child"))),
            };
        };
        let all = if blocks.is_empty() { batch.blocks.len() } else { 0 };
        let blocks: Vec<u32> = (0..all as u32).chain(blocks.iter().copied()).collect();
        device.execute(batch, &blocks, &self.settings, &self.counters, report)?;
        device.ticket()
    }

    fn wait(&mut self, ticket: Ticket) -> Result<()> {
        match (&mut self.device, &mut self.child) {
            (Some(device), _) => device.wait(ticket.0),
            (None, Some(child)) => child.wait(ticket),
            (None, None) => Ok(()),
        }
    }

    fn poll(&mut self, ticket: Ticket) -> Result<bool> {
        match (&mut self.device, &mut self.child) {
            (Some(device), _) => Ok(device.is_done(ticket.0)),
            (None, Some(child)) => child.poll(ticket),
            (None, None) => Ok(true),
        }
    }
}

/// Opens the device that the settings ask for.
fn open(host: &Host, settings: &Settings) -> Result<Open> {
    let devices = device::list()?;
    let facts = device::choose(&devices, settings.device.as_deref())?;
    let target = target(&facts, settings);
    let gpu = Arc::new(Gpu::open(facts, settings.profile)?);
    let programs = Programs::new(gpu.clone(), settings, host);
    let pool = Pool::new(gpu, programs, target, settings, host);
    Ok(Open {
        pool,
        methods: Methods::default(),
        launcher: None,
        plans: Cache::new(PLANS),
        pending: VecDeque::new(),
        last: 0,
    })
}

fn target(facts: &Facts, settings: &Settings) -> Target {
    // Some reductions of the largest type at once must fit local memory.
    let fitting = (facts.local_bytes as usize / (4 * 16)).max(1);
    let group = settings.group.min(1 << facts.largest_group.min(fitting).ilog2());
    // Enough items to hide the latency of memory.
    // Processors have few registers, and their compilers take long over loops that are unrolled.
    let square = if facts.class == Class::Cpu { 2 } else { 8 };
    Target { group, groups: facts.units * (2048 / group).max(1), parameter_bytes: facts.parameter_bytes, square }
}

impl Open {
    /// The ticket of all that has been enqueued.
    fn ticket(&mut self) -> Result<Ticket> {
        // SAFETY: the list of events is empty.
        let marked = unsafe { self.pool.gpu.queue.enqueue_marker_with_wait_list(&[]) };
        let event = marked.map_err(|why| failed("marking the end of a batch", why))?;
        self.pool.gpu.queue.flush().map_err(|why| failed("starting the queue", why))?;
        self.last += 1;
        self.pending.push_back((self.last, event));
        Ok(Ticket(self.last))
    }

    /// Waits until everything up to a ticket is done.
    fn wait(&mut self, ticket: u64) -> Result<()> {
        let mut last = None;
        while self.pending.front().is_some_and(|&(number, _)| number <= ticket) {
            last = self.pending.pop_front();
        }
        last.map_or(Ok(()), |(_, event)| event.wait().map_err(|why| failed("waiting for the device", why)))
    }

    /// Would [`Open::wait`] return at once?
    fn is_done(&self, ticket: u64) -> bool {
        let up_to = self.pending.iter().rev().find(|&&(number, _)| number <= ticket);
        // Negative: it has failed, which the wait will tell.
        up_to.is_none_or(|(_, event)| event.command_execution_status().is_ok_and(|status| status.0 <= CL_COMPLETE))
    }

    /// Can the device run this instruction?
    fn runs(&self, batch: &BatchRef<'_>, index: u32) -> bool {
        let instr = &batch.instrs[index as usize];
        let facts = &self.pool.gpu.facts;
        let exact = |operand: &Operand| {
            let dtype = batch.dtype(*operand);
            facts.f64 || !matches!(dtype, Some(DType::F64 | DType::C128))
        };
        // Functions of complex numbers are computed in f64.
        let function = instr.opcode.kind() == Kind::Elementwise
            && !matches!(instr.opcode.info().signature, Signature::Cast | Signature::Select)
            && instr.operands().iter().any(|&operand| batch.dtype(operand).is_some_and(DType::is_complex));
        if !instr.operands().iter().all(exact) || (function && !facts.f64) {
            return false;
        }
        if instr.opcode.is_extension() {
            return self.methods.takes(batch, index);
        }
        let scatters = instr.opcode.kind() == Kind::Index && instr.opcode != Opcode::Gather;
        !scatters || scatter(batch, index, &self.pool.target, crate::code::Variant::Parameterised).is_some()
    }

    /// The bytes of a block's arrays, of the largest of them, and how many element operations it makes.
    fn work(&self, batch: &BatchRef<'_>, block: u32) -> (u64, u64, u64) {
        let (mut bases, mut operations) = (Vec::new(), 0u64);
        let block = &batch.blocks[block as usize];
        let contracted = batch.contracted(block);
        for &index in batch.block_instrs(block) {
            let views = batch.instrs[index as usize].operands().iter().filter_map(|operand| operand.as_view());
            let mut most = 0;
            for view in views {
                let record = &batch.views[view as usize];
                most = most.max(record.len as u64);
                if batch.base_of(view).is_some() && !contracted.contains(&record.base) && !bases.contains(&record.base)
                {
                    bases.push(record.base);
                }
            }
            operations += if batch.instrs[index as usize].opcode.is_system() { 0 } else { most };
        }
        let sizes = bases.iter().map(|&base| batch.bases[base as usize].bytes());
        let renamed: u64 = batch.renames(block).iter().map(|rename| batch.bases[rename.base as usize].bytes()).sum();
        (sizes.clone().sum::<u64>() + renamed, sizes.max().unwrap_or(0), operations)
    }

    /// Has any array of a block a copy on the device?
    fn has_any(&self, batch: &BatchRef<'_>, block: u32) -> bool {
        let Some(launcher) = &self.launcher else { return false };
        let block = &batch.blocks[block as usize];
        let views = batch.block_instrs(block).iter().flat_map(|&index| batch.instrs[index as usize].operands());
        let mut bases = views.filter_map(|operand| batch.base_of(operand.as_view()?));
        bases.any(|base| launcher.arrays.is_known(base))
    }

    fn execute(
        &mut self,
        batch: &BatchRef<'_>,
        blocks: &[u32],
        settings: &Settings,
        counters: &Counters,
        report: &mut Report,
    ) -> Result<()> {
        let Open { pool, methods, launcher, plans, .. } = self;
        let Some(launcher) = launcher else {
            return Err(Error::new(status::INIT, "the OpenCL engine has no array registry"));
        };
        let begin = Instant::now();
        let words = words(batch);
        let key = Key::of_words(&words);
        let mut alone = None;
        let plans = match plans.get(&key).is_some() {
            true => plans.get(&key),
            false => {
                let empty: Vec<Option<BlockPlan>> = batch.blocks.iter().map(|_| None).collect();
                let bytes = 1024 * batch.instrs.len() + 4096;
                match plans.insert(&key, empty, bytes, batch.instrs.len() as u64) {
                    Ok(kept) => Some(kept),
                    Err(returned) => Some(alone.insert(returned)),
                }
            }
        };
        let Some(plans) = plans else { return Ok(()) };
        let mut missing: Vec<Arc<Entry>> = Vec::new();
        for &block in blocks {
            let plan = &mut plans[block as usize];
            let plan = plan.get_or_insert_with(|| BlockPlan::new(batch, block, pool, methods));
            let wanted = match settings.specialise {
                Specialise::Off => false,
                Specialise::Auto => plan.runs >= HOT,
                Specialise::On => true,
            };
            if wanted && plan.special.is_none() {
                plan.specialise(batch, block, pool, methods);
                counters.specialised.add(1);
                if settings.specialise == Specialise::Auto {
                    let all = plan.special.iter().flat_map(|special| &special.all);
                    all.for_each(|launch| pool.programs.build_later(&launch.entry));
                }
            }
            let now = match (&plan.special, settings.specialise) {
                (Some(special), Specialise::On) => special,
                _ => &plan.plain,
            };
            missing.extend(now.all.iter().filter(|it| it.entry.ready().is_none()).map(|it| it.entry.clone()));
        }
        counters.lower.add(begin.elapsed().as_nanos() as u64);
        // What cannot be built fails in its turn.
        let built = pool.programs.build(&missing);
        for &block in blocks {
            enter_block(block);
            let Some(plan) = &mut plans[block as usize] else { continue };
            let outcome = match (&built, plan.launches().ready()) {
                (Err(error), false) => Err(error.clone()),
                _ => launcher.block(batch, plan),
            };
            let failures = outcome.map_err(|error| place(error, batch, block))?;
            for (instr, error) in failures {
                if !report.is_wanted() {
                    return Err(error.at_instr(batch, instr).in_block(block));
                }
                report.fail(block, instr, &error);
            }
            counters.kernels.add(plan.launches().all.len() as u64);
            launcher.arrays.registry.block_done(batch, block);
        }
        if settings.profile {
            counters.kernel.add(launcher.kernel_nanoseconds());
        }
        Ok(())
    }
}

/// What plans depend on: everything but identities, values and source locations.
fn words(batch: &BatchRef<'_>) -> Vec<u64> {
    let mut structure = bh_bytecode::structure::StructureKey::default();
    structure.write(batch);
    let mut words = structure.as_ref().words.to_vec();
    for block in batch.blocks {
        words.extend([u64::from(block.instr_count), u64::from(block.contracted_count), u64::from(block.rename_count)]);
    }
    words.extend(batch.block_instrs.iter().chain(batch.contracted).chain(batch.rename_views).map(|&it| u64::from(it)));
    for rename in batch.renames {
        words.extend([u64::from(rename.base) << 32 | u64::from(rename.alias), u64::from(rename.uncovered_count)]);
        words.push(u64::from(rename.alias_view));
    }
    words
}

/// Names the block of an error, and its first operation if no other is named.
fn place(mut error: Error, batch: &BatchRef<'_>, block: u32) -> Error {
    let instrs = batch.block_instrs(&batch.blocks[block as usize]);
    let first = instrs.iter().find(|&&index| !batch.instrs[index as usize].opcode.is_system());
    if let Some(&first) = first {
        if error.status == status::MEMORY && error.instr.is_none() && error.origin.is_none() {
            error.text = format!("{}: {}", batch.instrs[first as usize].opcode, error.text);
        }
        error = error.at_instr(batch, first);
    }
    error.in_block(block)
}

/// The batch with one block per instruction.
fn with_blocks(batch: &BatchRef<'_>) -> Batch {
    let mut whole = batch.to_owned();
    for index in 0..batch.instrs.len() as u32 {
        whole.push_block(&[index], &[]);
    }
    whole
}
