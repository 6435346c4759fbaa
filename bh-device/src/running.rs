//! A device in use: its plans, the blocks that run on it, in pieces or elsewhere, and the tickets of batches.

mod turn;

use crate::chains::BatchPlan;
use crate::code::{PROCESSOR_SQUARE, Placement, Target, scatter};
use crate::compiler::Entry;
use crate::counters::Counters;
use crate::device::{Class, choose, numbered};
use crate::driver::{Event, Options, Platform};
use crate::foretell::Foretold;
use crate::forms::{Forms, WORTH};
use crate::functions;
use crate::gpu::Gpu;
use crate::launch::Launcher;
use crate::memory::Pool;
use crate::methods::Methods;
use crate::parted::InPieces;
use crate::plan::BlockPlan;
use crate::programs::Programs;
use crate::settings::{Settings, Specialise};
use crate::tune::{HOT, Tuner};
use crate::whereabouts::{Verdict, Whereabouts};
use crate::work::Work;
use bh_bytecode::opcode::Signature;
use bh_bytecode::structure::StructureKey;
use bh_bytecode::{BatchRef, Cache, DType, Instr, Key, Kind, Opcode, Operand};
use bh_core::abi::status;
use bh_core::component::enter_block;
use bh_core::{Child, Error, Host, Report, Result, Ticket, launcher};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;
use turn::Turn;

/// Bytes of plans that are kept.
pub(crate) const PLANS: usize = 64 << 20;

/// Names of blocks that are counted; beyond, counting begins anew.
const NAMES: usize = 1 << 16;

/// Opens the device that the settings ask for, or takes the one that the program lends.
pub(crate) fn open<P: Platform>(host: &Host, settings: &Settings) -> Result<Open> {
    let options = |times: bool| Options { times: settings.times || times, fast_math: settings.fast_math };
    let (driver, tunes) = match P::borrow(host, options(false)) {
        // No other device takes its place.
        Some(lent) => (lent.map_err(|error| Error { status: status::INIT, ..error })?, None),
        None => {
            // One for each instance of a stack that has several, or for each rank of this host.
            let number =
                host.device_number().or_else(|| launcher::Launcher::find().map(|launcher| launcher.local_rank));
            let facts = choose::<P>(&numbered(P::devices()?), settings.device.as_deref(), number.unwrap_or(0))?;
            let tunes = settings.tunes(facts.class);
            (P::open(facts, options(tunes.is_some()))?, tunes)
        }
    };
    let gpu = Gpu::new(driver, P::TITLE);
    let target = target(&gpu, settings);
    settings.fault_after.into_iter().for_each(|kernels| gpu.lose_after(kernels));
    let methods = Methods::new(settings.methods, settings.placements, gpu.driver.clone());
    let gpu = Arc::new(gpu);
    let programs = Programs::new(gpu.driver.clone(), settings, host);
    let pool = Pool::new(gpu, programs, target, settings, host);
    Ok(Open {
        pool,
        methods,
        launcher: None,
        plans: Cache::new(PLANS),
        structure: StructureKey::default(),
        calls: HashMap::new(),
        forms: Forms::default(),
        tuner: Tuner::new(tunes.is_some(), tunes.unwrap_or(0), host),
        pending: VecDeque::new(),
        last: 0,
    })
}

fn target(gpu: &Gpu, settings: &Settings) -> Target {
    let facts = &gpu.facts;
    // Some reductions of the largest type at once must fit local memory.
    let fitting = (facts.local_bytes as usize / (4 * 16)).max(1);
    let group = settings.group.min(1 << facts.largest_group.min(fitting).ilog2());
    // Enough items to hide the latency of memory.
    let square = if facts.class == Class::Cpu { PROCESSOR_SQUARE } else { 8 };
    let (groups, parameter_bytes) = (facts.units * (2048 / group).max(1), facts.parameter_bytes);
    let local_bytes = facts.local_bytes as usize;
    let largest = if settings.group < 64 { group } else { 1 << facts.largest_group.ilog2() };
    let placements = match facts.matrix_units {
        true => settings.placements,
        false => settings.placements.without(Placement::Units),
    };
    let language = gpu.driver.language();
    Target { language, group, largest, groups, parameter_bytes, square, local_bytes, placements }
}

/// A device in use.
pub(crate) struct Open {
    pub(crate) pool: Arc<Pool>,
    pub(crate) methods: Methods,
    pub(crate) launcher: Option<Launcher>,
    pub(crate) plans: Cache<BatchPlan>,
    /// That of the last batch which brought none.
    structure: StructureKey,
    /// How often blocks of each name were called.
    calls: HashMap<u128, u32>,
    forms: Forms,
    tuner: Tuner,
    /// Batches that may not be done, in order, with what marks the end of each in the queue.
    pending: VecDeque<(u64, Arc<dyn Event>)>,
    /// The number of the last ticket.
    last: u64,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.pool.programs.close();
    }
}

impl Open {
    /// The ticket of the kernels that have been enqueued: that of the last one, as the queue is in order.
    pub(crate) fn ticket(&mut self) -> Result<Ticket> {
        if self.pool.gpu.is_lost() {
            // Failures have been reported, and the blocks that ran did so on another engine.
            return Ok(Ticket::DONE);
        }
        let event = match self.launcher.as_mut().and_then(|launcher| launcher.timing.take_last()) {
            None => return Ok(Ticket::DONE),
            Some(Some(last)) => last,
            Some(None) => self.pool.gpu.driver.mark()?,
        };
        self.pool.gpu.driver.flush()?;
        self.last += 1;
        self.pending.push_back((self.last, event));
        Ok(Ticket(self.last))
    }

    /// Waits until everything up to a ticket is done.
    pub(crate) fn wait(&mut self, ticket: u64, counters: &Counters) -> Result<()> {
        let mut last = None;
        while self.pending.front().is_some_and(|&(number, _)| number <= ticket) {
            last = self.pending.pop_front();
        }
        let begin = Instant::now();
        let outcome = last.map_or(Ok(()), |(_, event)| {
            self.pool.gpu.usable()?;
            event.wait("waiting for the device")
        });
        counters.wait.add(begin.elapsed().as_nanos() as u64);
        if let Some(launcher) = &mut self.launcher {
            launcher.timing.collect();
        }
        outcome
    }

    /// Would [`Open::wait`] return at once?
    pub(crate) fn is_done(&self, ticket: u64) -> bool {
        let up_to = self.pending.iter().rev().find(|&&(number, _)| number <= ticket);
        // Negative: it has failed, which the wait will tell.
        up_to.is_none_or(|(_, event)| event.is_done())
    }

    /// Can the device run this instruction?
    pub(crate) fn runs(&self, batch: &BatchRef<'_>, index: u32) -> bool {
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
        if !instr.operands().iter().all(exact) || (function && !facts.f64) || !self.has_form(batch, instr) {
            return false;
        }
        if instr.opcode.is_extension() {
            return self.methods.takes(batch, index);
        }
        let scatters = instr.opcode.kind() == Kind::Index && instr.opcode != Opcode::Gather;
        !scatters || scatter(batch, index, &self.pool.target, crate::code::Variant::Parameterised).is_some()
    }

    /// Can the device compute the form of its function that an instruction asks for? The one form needs double precision.
    fn has_form(&self, batch: &BatchRef<'_>, instr: &Instr) -> bool {
        let input = || instr.inputs().last().and_then(|&operand| batch.dtype(operand));
        !instr.has_one_form()
            || instr.opcode.kind() == Kind::Elementwise
                && self.pool.gpu.facts.f64
                && input().is_some_and(|dtype| functions::has(instr.opcode, dtype))
    }

    /// Why the device does not run a block; `falls`: there is a next engine.
    pub(crate) fn refuses(&self, batch: &BatchRef<'_>, block: u32, work: &Work, falls: bool) -> Option<Verdict> {
        if falls && self.pool.gpu.is_lost() {
            return Some(Verdict::Lost);
        }
        let instrs = batch.block_instrs(&batch.blocks[block as usize]);
        if !instrs.iter().all(|&instr| self.runs(batch, instr)) {
            return Some(Verdict::Unsupported);
        }
        if falls && self.methods.is_little(batch, block) {
            return Some(Verdict::TooSmall);
        }
        // Parts of a block may fit. Of one operation that no other engine can take, the error says what is missing.
        let several = instrs.iter().filter(|&&instr| !batch.instrs[instr as usize].opcode.is_system()).count() > 1;
        let parted = || InPieces::of(batch, block, &self.pool).is_some();
        ((several || falls) && !work.fits(&self.pool) && !parted()).then_some(Verdict::TooLarge)
    }

    /// Does the host do a block sooner: little work whose data is rather there than on the device, or work on arrays that are used
    /// on both sides in turn?
    pub(crate) fn is_for_host(&self, batch: &BatchRef<'_>, block: u32, work: &Work, settings: &Settings) -> bool {
        let is_little = work.is_little(&settings.little);
        if !is_little && !settings.little.at_once {
            return false;
        }
        let Some(launcher) = &self.launcher else { return is_little };
        let distance = launcher.distance(batch, block);
        (is_little || distance.outweighs(work)) && distance.to_host <= distance.to_device
    }

    /// Notes that the host does a block that may be no little work of its own.
    pub(crate) fn stays(&mut self, batch: &BatchRef<'_>, block: u32, settings: &Settings) {
        if let Some(launcher) = &mut self.launcher
            && !Work::of(batch, block).is_little(&settings.little)
        {
            launcher.stays(batch, block);
        }
    }

    /// Is a batch prepared? If there is a next engine, which has its little work where the data is, some of the data must be here.
    pub(crate) fn runs_whole(&mut self, batch: &BatchRef<'_>, falls: bool) -> bool {
        let Open { launcher: Some(launcher), plans, structure, pool, .. } = self else { return false };
        if pool.gpu.is_lost() {
            return false;
        }
        let words = partition(batch);
        let prepared = plans.get(&Key::new(batch.signed(structure), &words)).and_then(BatchPlan::prepared);
        prepared.is_some_and(|prepared| !falls || prepared.is_here(batch, &launcher.arrays))
    }

    /// Blocks that the device does not run, but that came here because the program uses memory of theirs, too.
    fn sent_on(&self, batch: &BatchRef<'_>, blocks: &[u32]) -> Vec<(u32, Verdict)> {
        let Some(launcher) = &self.launcher else { return Vec::new() };
        let used = |block: &u32| launcher.arrays.held.is_used(batch, *block);
        let refused = |block: u32| Some((block, self.refuses(batch, block, &Work::of(batch, block), true)?));
        blocks.iter().copied().filter(used).filter_map(refused).collect()
    }

    /// The most bytes of the device's memory that blocks will take at a time, beyond those in use; `falls`: there is a next
    /// engine.
    pub(crate) fn foretell(&mut self, batch: &BatchRef<'_>, blocks: &[u32], falls: bool) -> u64 {
        let own = |block: u32| self.refuses(batch, block, &Work::of(batch, block), falls).is_none();
        let own: Vec<bool> = (0..batch.blocks.len() as u32).map(own).collect();
        let Open { pool, methods, launcher, plans, structure, .. } = self;
        let Some(launcher) = launcher else { return 0 };
        let words = partition(batch);
        let known = plans.get(&Key::new(batch.signed(structure), &words));
        let mut foretold = Foretold::new(&launcher.arrays);
        let nothing;
        let known = match known.as_deref() {
            Some(known) => known,
            None => {
                nothing = BatchPlan::new(batch, pool.target.placements);
                &nothing
            }
        };
        for run in known.runs(blocks) {
            if own[run[0] as usize] {
                match known.known(run) {
                    Some(plan) => foretold.run(batch, plan),
                    None => foretold.run(batch, &BlockPlan::new(batch, run[0], pool, methods)),
                }
            }
            run.iter().for_each(|&block| foretold.end(batch, block));
        }
        let whole = blocks.len() == batch.blocks.len() && launcher.arrays.held.is_empty();
        let prepared = if whole { known.prepared_bytes(batch, &launcher.arrays) } else { None };
        // A batch that does not fit as a whole runs block by block.
        let fits = |bytes: &u64| pool.bytes().0 + bytes <= pool.limit;
        prepared.filter(fits).unwrap_or_else(|| foretold.peak())
    }

    /// Puts blocks into the queue, or runs them elsewhere if they have to, or do better.
    pub(crate) fn execute(
        &mut self,
        batch: &BatchRef<'_>,
        blocks: &[u32],
        mut child: Option<&mut Child>,
        notes: Notes<'_>,
        report: &mut Report,
    ) -> Result<()> {
        let sent = if child.is_some() { self.sent_on(batch, blocks) } else { Vec::new() };
        let Open { pool, methods, launcher, plans, structure, calls, forms, tuner, .. } = self;
        let Notes { settings, counters, whereabouts } = notes;
        let Some(launcher) = launcher else {
            return Err(Error::new(status::INIT, "the engine has no array registry"));
        };
        let begin = Instant::now();
        let words = partition(batch);
        let key = Key::new(batch.signed(structure), &words);
        let mut alone = None;
        let plans = match plans.get(&key).is_some() {
            true => plans.get(&key),
            false => {
                let empty = BatchPlan::new(batch, pool.target.placements);
                let bytes = 1024 * batch.instrs.len() + 4096;
                match plans.insert(&key, empty, bytes, batch.instrs.len() as u64) {
                    Ok(kept) => Some(kept),
                    Err(returned) => Some(alone.insert(returned)),
                }
            }
        };
        let Some(plans) = plans else { return Ok(()) };
        if calls.len() > NAMES {
            calls.clear();
        }
        let (mut missing, mut later): (Vec<Arc<Entry>>, Vec<Arc<Entry>>) = Default::default();
        let mut elsewhere: Vec<(u32, Verdict)> = Vec::new();
        launcher.arrays.settle_held()?;
        let whole = blocks.len() == batch.blocks.len() && launcher.arrays.held.is_empty() && !settings.times;
        if whole && let Some(prepared) = plans.prepared() {
            let ran = launcher.prepared(batch, prepared, pool.target.placements);
            let ran = ran.inspect_err(|error| {
                looked(error, pool);
                prepared.give_up();
            });
            if let Some(ran) = ran? {
                counters.ran(&ran);
                prepared.note(whereabouts);
                return Ok(());
            }
        }
        // Memory that the program uses, too, stays where it is.
        let held = blocks.iter().any(|&block| launcher.arrays.held.is_used(batch, block));
        if held {
            pool.gpu.driver.settle()?;
        }
        let runs: VecDeque<&[u32]> = if sent.is_empty() && !held {
            later.extend(plans.plan_chains(batch, pool, settings));
            plans.runs(blocks).into()
        } else {
            blocks.chunks(1).collect()
        };
        // Kernels are built while a library is loaded.
        let has_libraries = pool.target.placements.has(Placement::Library) && pool.gpu.driver.libraries().is_some();
        let asks = |run: &&[u32]| has_libraries && plans.known(run).is_none() && may_ask_a_library(batch, run[0]);
        let (asking, others): (Vec<&[u32]>, Vec<&[u32]>) = runs.iter().copied().partition(asks);
        let first_asking = others.len();
        for (at, run) in others.into_iter().chain(asking).enumerate() {
            if at == first_asking {
                pool.programs.begin(&missing);
            }
            let block = run[0];
            if let Some((_, place)) = sent.iter().find(|(sent, _)| *sent == block) {
                elsewhere.push((block, *place));
                continue;
            }
            if plans.chained(run).is_some() {
                continue;
            }
            let plan = plans.of(batch, run, pool, methods);
            let calls = calls.entry(plan.name).or_default();
            *calls = calls.saturating_add(1);
            let (place, programs) = ((batch, block), &pool.programs);
            let bytes = || Work::of(batch, block).bytes;
            if !plan.plain.all.is_empty() && tuner.begins(plan.name, *calls, bytes, programs) {
                let ways = plan.ways(place, pool, methods);
                later.extend(ways.iter().flatten().cloned());
                tuner.begin(plan.name, ways);
            }
            let is_new = plan.special.is_none() && !plan.stays && !plan.plain.all.is_empty();
            if is_new && settings.specialise == Specialise::Auto && *calls > HOT && bytes() < WORTH {
                plan.stays = !forms.has_room(plan.kernels(), plan.name);
            }
            let way = tuner.way(plan.name, programs);
            later.extend(plan.choose_variant(place, (*calls, way), pool, methods, settings, counters));
            let entries = plan.missing(settings);
            if let Some(child) = child.as_deref_mut()
                && settings.while_building
                && meanwhile(batch, block, &entries, child, launcher)
            {
                pool.programs.build_later(&entries);
                elsewhere.push((block, Verdict::NotBuilt));
            } else {
                if at >= first_asking {
                    // The next one may load a library, too.
                    pool.programs.begin(&entries);
                }
                missing.extend(entries);
            }
        }
        counters.lower.add(begin.elapsed().as_nanos() as u64);
        pool.programs.begin(&missing);
        pool.programs.build_later(&later);
        let mut prepares = whole && elsewhere.is_empty() && pool.target.placements.has(Placement::Prepared);
        let mut left = runs;
        while let Some(run) = left.pop_front() {
            let block = run[0];
            enter_block(block);
            let child = child.as_deref_mut();
            let mut turn = Turn { batch, run, block, pool, launcher, child, counters, whereabouts, report };
            if let Some(&(_, place)) = elsewhere.iter().find(|(known, _)| *known == block) {
                counters.count(place);
                turn.whereabouts.note(batch, block, place);
                turn.on_child()?;
                continue;
            }
            let (chained, filled) = (plans.chained(run), plans.filled.clone());
            let plan = plans.of(batch, run, pool, methods);
            // A block waits for its own kernels alone. Blocks of a chain that could not run are planned here.
            let built = match plan.in_pieces.is_none() && !plan.launches().ready() {
                true => pool.programs.build(&plan.missing(settings)),
                false => Ok(()),
            };
            turn.launcher.watched = (plan.is_special() && tuner.measures(plan.name, plan.way)).then(Vec::new);
            let outcome = turn.run((plan, &filled), &built, chained);
            if chained.is_some() && outcome.is_err() && !turn.launcher.has_begun() {
                plans.give_up(run);
                run.chunks(1).rev().for_each(|alone| left.push_front(alone));
                continue;
            }
            let outcome = outcome.map_err(|error| turn.failed(error));
            if let Some(watched) = turn.launcher.watched.take() {
                tuner.ran(plan.name, watched);
            }
            let Some(failures) = outcome? else {
                prepares = false;
                continue;
            };
            prepares &= failures.is_empty();
            turn.end(failures)?;
        }
        if prepares {
            plans.prepare(batch, blocks, pool, settings, tuner);
        }
        launcher.arrays.settle_held()?;
        match settings.profile {
            true => launcher.timing.collect_all(),
            false => launcher.timing.collect(),
        }
        Ok(())
    }
}

/// After an error of the device: finds out whether it is still there.
fn looked(error: &Error, pool: &Pool) {
    if error.status == status::DEVICE {
        pool.gpu.look();
    }
}

/// Seconds that building a kernel takes, about.
const BUILD: f64 = 0.1;
/// Bytes that a processor moves in a second, if it does not say, and operations of one of its cores.
const BYTES: f64 = 1e10;
const OPERATIONS: f64 = 5e8;

/// Is the next engine done with a block before its kernels are built? Kernels from the disk are there at once, and data on
/// the device stays there.
fn meanwhile(batch: &BatchRef<'_>, block: u32, entries: &[Arc<Entry>], child: &mut Child, launcher: &Launcher) -> bool {
    let programs = &launcher.arrays.pool.programs;
    let left = entries.iter().filter(|entry| !programs.load_stored(entry)).count();
    if left == 0 || launcher.has_any(batch, block) || !child.supports(batch, block) {
        return false;
    }
    let (work, able) = (Work::of(batch, block), child.capabilities());
    let bandwidth = if able.bandwidth > 0.0 { able.bandwidth } else { BYTES };
    let cores = f64::from(able.parallelism.max(1));
    work.bytes as f64 / bandwidth + work.operations as f64 / (OPERATIONS * cores) < BUILD
}

/// May a plan of a block ask for a library, which is loaded by the first question?
fn may_ask_a_library(batch: &BatchRef<'_>, block: u32) -> bool {
    let mut instrs = batch.block_instrs(&batch.blocks[block as usize]).iter();
    instrs.any(|&at| {
        let opcode = batch.instrs[at as usize].opcode;
        opcode.is_extension() || opcode == Opcode::Contract
    })
}

/// The engine's state while blocks run.
pub(crate) struct Notes<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) counters: &'a Counters,
    pub(crate) whereabouts: &'a mut Whereabouts,
}

/// The partition in words; with the structure of the batch it is what plans depend on.
fn partition(batch: &BatchRef<'_>) -> Vec<u64> {
    let mut words = vec![batch.blocks.len() as u64, batch.renames.len() as u64];
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
