//! The filter component: rewrites each batch by an ordered list of passes before it goes down the stack.

mod analysis;
mod diagnostics;
pub mod passes;

use bh_bytecode::signature::{Signer, parts};
use bh_bytecode::{Batch, BatchRef, Opcode};
use bh_core::abi::{kind, status};
use bh_core::{Child, Component, Counter, Error, Host, Result, Ticket};
use passes::{Options, Pass};
use std::collections::HashMap;

/// What the filter announces the matrix product as, far from the numbers that programs are given.
const MATMUL: Opcode = Opcode(u16::MAX);

/// Remembered batches that no pass changes; the memory is emptied when it is full.
const REMEMBERED: usize = 1024;

/// One entry of the pass list.
enum Step {
    Rewrite { name: &'static str, pass: Pass, changed: Counter },
    Print,
    Price,
}

/// The component.
pub struct Filter {
    host: Host,
    child: Child,
    steps: Vec<Step>,
    options: Options,
    /// Does the list only rewrite, so that a batch without effect may pass by unseen?
    silent: bool,
    asked_for_matmul: bool,
    signer: Signer,
    unchanged: HashMap<u128, Box<[u64]>>,
    scratch: Batch,
    hits: Counter,
    misses: Counter,
}

bh_core::export_component!(Filter);

impl Component for Filter {
    const NAME: &'static str = "filter";
    const KIND: u32 = kind::FILTER;
    const KEYS: &'static [&'static str] = &["passes", "reassociate"];

    fn create(host: Host, children: Vec<Child>) -> Result<Filter> {
        let child = children
            .into_iter()
            .next()
            .ok_or_else(|| Error::new(status::CONFIG, "filter needs a component below it"))?;
        let steps = match host.config("passes") {
            Some(list) => list
                .split(',')
                .map(str::trim)
                .filter(|name| !name.is_empty())
                .map(|name| step(&host, name))
                .collect::<Result<Vec<_>>>()?,
            None => passes::ALL.iter().map(|(name, _)| step(&host, name)).collect::<Result<Vec<_>>>()?,
        };
        let reassociate = host.config_or("reassociate", false)?;
        let silent = steps.iter().all(|step| matches!(step, Step::Rewrite { .. }));
        Ok(Filter {
            options: Options { reassociate, matmul: None },
            silent,
            steps,
            child,
            asked_for_matmul: false,
            signer: Signer::new(),
            unchanged: HashMap::new(),
            scratch: Batch::default(),
            hits: host.counter("filter.unchanged_hits"),
            misses: host.counter("filter.rewritten_or_new"),
            host,
        })
    }

    fn child(&mut self) -> Option<&mut Child> {
        Some(&mut self.child)
    }

    fn execute(&mut self, batch: &BatchRef<'_>, blocks: &[u32]) -> Result<Ticket> {
        // A partition names instructions by index: what was cut into kernels already is left as it is.
        if self.steps.is_empty() || !batch.blocks.is_empty() {
            return self.child.execute(batch, blocks);
        }
        let begin = self.host.trace_clock();
        let hash = self.signer.sign(batch, parts::FLAGS | parts::CONSTANT_CLASSES);
        if self.silent && self.unchanged.get(&hash).is_some_and(|key| **key == *self.signer.key()) {
            self.hits.add(1);
            self.host.trace("filter", begin, "unchanged");
            return self.child.execute(batch, blocks);
        }
        self.misses.add(1);
        self.ask_for_matmul()?;
        copy_into(batch, &mut self.scratch);
        let changed = self.rewrite();
        self.host.trace("filter", begin, "rewritten");
        if changed == 0 {
            if self.unchanged.len() == REMEMBERED {
                self.unchanged.clear();
            }
            self.unchanged.insert(hash, self.signer.key().into());
            return self.child.execute(batch, blocks);
        }
        self.child.execute(&self.scratch.as_ref(), &[])
    }
}

impl Filter {
    /// Runs all steps over the scratch batch and returns how many instructions they changed.
    fn rewrite(&mut self) -> usize {
        let mut total = 0;
        for step in &self.steps {
            match step {
                Step::Rewrite { pass, changed, .. } => {
                    let count = pass(&mut self.scratch, &self.options);
                    changed.add(count as u64);
                    total += count;
                }
                Step::Print => diagnostics::print(&self.host, &self.scratch),
                Step::Price => diagnostics::price(&self.host, &self.scratch),
            }
        }
        total
    }

    /// Learns once whether the stack below has the method that `matmul` rewrites to.
    fn ask_for_matmul(&mut self) -> Result<()> {
        let wanted = |step: &Step| matches!(step, Step::Rewrite { name: "matmul", .. });
        if !self.asked_for_matmul && self.steps.iter().any(wanted) {
            self.options.matmul = self.child.extmethod("matmul", MATMUL)?.then_some(MATMUL);
        }
        self.asked_for_matmul = true;
        Ok(())
    }
}

/// The step of this name.
fn step(host: &Host, name: &str) -> Result<Step> {
    if let Some((name, pass)) = passes::ALL.iter().find(|(known, _)| *known == name) {
        return Ok(Step::Rewrite { name, pass: *pass, changed: host.counter(&format!("filter.{name}")) });
    }
    match name {
        "print" => Ok(Step::Print),
        "price" => Ok(Step::Price),
        _ => {
            let known: Vec<&str> = passes::ALL.iter().map(|(name, _)| *name).chain(["print", "price"]).collect();
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
}
