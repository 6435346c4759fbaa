//! The filter component: rewrites each batch by an ordered list of passes before it goes down the stack.

mod analysis;
mod diagnostics;
mod losses;
mod memory;
pub mod passes;

use bh_bytecode::constant_class::ConstantClass;
use bh_bytecode::planning::Level;
use bh_bytecode::{Batch, BatchRef, Key, StructureKey};
use bh_core::abi::{Capabilities, Prediction, capability, kind, status};
use bh_core::config::Row;
use bh_core::keys::filter;
use bh_core::{Child, Component, Counter, Error, Host, Report, Result, Ticket};
use memory::{Bases, Memory};
use passes::{Options, Pass};

/// One entry of the pass list.
enum Step {
    Rewrite { pass: &'static Pass, changed: Counter },
    Print,
    Price,
}

/// Engines that take longer to start a kernel are devices, which start each by itself.
const LOCK_STEP_SECONDS: f64 = 2e-6;

/// The component.
pub struct Filter {
    host: Host,
    child: Child,
    steps: Vec<Step>,
    options: Options,
    /// Do the options know the engine below?
    adapted: bool,
    /// Does the list only rewrite, so that a batch without effect may pass by unseen?
    silent: bool,
    structure: StructureKey,
    /// The classes of the batch's constants.
    classes: Vec<u64>,
    memory: Memory,
    /// The bases of the batch that is passed on.
    bases: Bases,
    scratch: Batch,
    hits: Counter,
    misses: Counter,
    /// Batches that were left as they are.
    direct: Counter,
}

bh_core::export_component!(Filter);

// SAFETY: all that it is given lies in it, and ends with it.
unsafe impl Component for Filter {
    const NAME: &'static str = "filter";
    const KIND: u32 = kind::FILTER;
    const KEYS: &'static [Row] = filter::ALL;

    fn create(host: Host, children: Vec<Child>) -> Result<Filter> {
        let child = children
            .into_iter()
            .next()
            .ok_or_else(|| Error::new(status::CONFIG, "filter needs a component below it"))?;
        let list = host.setting(&filter::PASSES)?;
        let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
        let steps = names.map(|name| step(&host, name)).collect::<Result<Vec<_>>>()?;
        let reassociate = host.setting(&filter::REASSOCIATE)?;
        let pieces_from = i64::try_from(host.setting(&filter::PIECES_FROM)?).unwrap_or(i64::MAX);
        let silent = steps.iter().all(|step| matches!(step, Step::Rewrite { .. }));
        Ok(Filter {
            options: Options { reassociate, pieces_from, ..Options::default() },
            adapted: false,
            silent,
            steps,
            child,
            structure: StructureKey::default(),
            classes: Vec::new(),
            memory: Memory::new(),
            bases: Bases::default(),
            scratch: Batch::default(),
            hits: host.counter("filter.hits"),
            misses: host.counter("filter.misses"),
            direct: host.counter("filter.left_direct"),
            host,
        })
    }

    fn child(&mut self) -> Option<&mut Child> {
        Some(&mut self.child)
    }

    fn execute(&mut self, batch: &BatchRef<'_>, blocks: &[u32], report: &mut Report) -> Result<Ticket> {
        self.rewritten(batch, blocks, |child, batch, blocks| child.execute(batch, blocks, report))
    }

    fn predict(&mut self, batch: &BatchRef<'_>, blocks: &[u32]) -> Result<Prediction> {
        self.rewritten(batch, blocks, Child::predict)
    }
}

impl Filter {
    /// Passes a batch on as the passes leave it.
    fn rewritten<T>(
        &mut self,
        batch: &BatchRef<'_>,
        blocks: &[u32],
        below: impl FnOnce(&mut Child, &BatchRef<'_>, &[u32]) -> Result<T>,
    ) -> Result<T> {
        // A partition names instructions by index: what was cut into kernels already is left as it is.
        if self.steps.is_empty() || !batch.blocks.is_empty() {
            return below(&mut self.child, batch, blocks);
        }
        let begin = self.host.trace_clock();
        if self.silent && batch.header.level == Level::Direct.code() {
            self.direct.add(1);
            return below(&mut self.child, batch, blocks);
        }
        self.classes.clear();
        self.classes.extend(batch.constants.iter().map(|constant| ConstantClass::of(constant).code()));
        let key = Key::new(batch.signed(&mut self.structure), &self.classes);
        if self.silent
            && let Some(known) = self.memory.find(&key, batch)
        {
            self.hits.add(1);
            self.host.trace("filter", begin, if known.is_some() { "rewritten before" } else { "unchanged" });
            return below(&mut self.child, &known.unwrap_or(*batch), &[]);
        }
        self.misses.add(1);
        self.adapt();
        copy_into(batch, &mut self.scratch);
        let (mut changed, mut by_value) = self.rewrite();
        while !self.announce_programs()? {
            // A program that the stack below refuses is not made again.
            copy_into(batch, &mut self.scratch);
            (changed, by_value) = self.rewrite();
        }
        self.host.trace("filter", begin, "rewritten");
        // The structure that was written down above, if the batch did not bring its own.
        let key = Key::new(batch.structure().unwrap_or(self.structure.as_ref()), &self.classes);
        if changed == 0 {
            self.memory.keep_unchanged(&key);
            return below(&mut self.child, batch, blocks);
        }
        self.scratch.sign();
        self.memory.keep_rewritten(&key, batch, &self.scratch, by_value);
        let rewritten = self.bases.of(batch, &self.scratch);
        below(&mut self.child, &rewritten, &[])
    }

    /// Learns what starting a kernel costs on the engine below, and how it folds, once.
    fn adapt(&mut self) {
        if !std::mem::replace(&mut self.adapted, true) {
            let Capabilities { bandwidth, launch_seconds, flags, .. } = self.child.capabilities();
            // Engines retire blocks themselves, clusters do not.
            self.options.in_order = flags & capability::RETIRES_BLOCKS != 0;
            let is_alone = launch_seconds > LOCK_STEP_SECONDS;
            self.options.kernel_bytes = if is_alone { (bandwidth * launch_seconds).clamp(0.0, 1e12) as i64 } else { 0 };
        }
    }

    /// Runs all steps over the scratch batch. Returns how many instructions they changed, and whether values of constants
    /// beyond their classes had a part in it.
    fn rewrite(&mut self) -> (usize, bool) {
        let (mut total, mut by_value) = (0, false);
        for step in &self.steps {
            match step {
                Step::Rewrite { pass, changed } => {
                    let count = (pass.run)(&mut self.scratch, &self.options);
                    by_value |= count > 0 && pass.by_value;
                    changed.add(count as u64);
                    total += count;
                }
                Step::Print => diagnostics::print(&self.host, &self.scratch),
                Step::Price => diagnostics::price(&self.host, &self.scratch),
            }
        }
        (total, by_value)
    }

    /// Tells the stack below of programs that are new; says whether it takes all of them.
    fn announce_programs(&mut self) -> Result<bool> {
        let Filter { options, child, .. } = self;
        options.programs.announce(|text, opcode| child.extmethod(text, opcode))
    }
}

/// The step of this name.
fn step(host: &Host, name: &str) -> Result<Step> {
    if let Some(pass) = passes::ALL.iter().find(|pass| pass.name == name) {
        return Ok(Step::Rewrite { pass, changed: host.counter(&format!("filter.{name}")) });
    }
    match name {
        "print" => Ok(Step::Print),
        "price" => Ok(Step::Price),
        _ => {
            let known: Vec<&str> = passes::ALL.iter().map(|pass| pass.name).chain(["print", "price"]).collect();
            Err(Error::new(
                status::CONFIG,
                format!("config key 'passes': unknown pass '{name}'; the passes are {}", known.join(", ")),
            ))
        }
    }
}

/// Copies a batch's tables, without its partition, reusing memory.
fn copy_into(batch: &BatchRef<'_>, into: &mut Batch) {
    into.clear();
    into.bases.extend_from_slice(batch.bases);
    into.views.extend_from_slice(batch.views);
    into.dims.extend_from_slice(batch.dims);
    into.instrs.extend_from_slice(batch.instrs);
    into.constants.extend_from_slice(batch.constants);
    into.origins.extend_from_slice(batch.origins);
    into.extensions.extend_from_slice(batch.extensions);
    into.strings.extend_from_slice(batch.strings);
    into.attributes.extend_from_slice(batch.attributes);
}
