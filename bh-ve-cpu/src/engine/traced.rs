//! Kernels in the trace: each with its lines, the bytes that it moves, and how it ran.

use crate::block::Program;
use crate::plan::{BlockPlan, BlockWork, TilePlan};
use bh_bytecode::BatchRef;
use bh_core::Host;
use bh_core::kernel_trace::{Kernel, KernelTrace};
use bh_kernel::{Lowered, Runner};
use std::ops::Range;

/// Records kernels in the host's trace.
pub(super) struct Traced {
    host: Host,
    kernels: KernelTrace,
}

/// A kernel that runs.
pub(super) struct Running {
    name: String,
    detail: String,
    begin: u64,
}

impl Traced {
    pub(super) fn new(host: Host) -> Traced {
        Traced { host, kernels: KernelTrace::default() }
    }

    /// A block begins, by its plan, or operation by operation if it has none.
    pub(super) fn block(&mut self, batch: &BatchRef<'_>, block: u32, plan: Option<&BlockPlan>) -> Option<Running> {
        let how = match plan.map(|plan| &plan.work) {
            None => "operation by operation",
            Some(BlockWork::Special(_)) => "an algorithm of its own",
            Some(BlockWork::Nothing) => return None,
            Some(BlockWork::Programs(programs, _)) => how(programs.iter()),
        };
        self.begin(batch, block..block + 1, how, None)
    }

    /// A chain begins.
    pub(super) fn chain(&mut self, batch: &BatchRef<'_>, plan: &TilePlan) -> Option<Running> {
        let compiled = how(plan.nests.iter().chain(&plan.joined).map(|nest| &nest.program));
        let how = match plan.chain.borders {
            Some(_) => format!("{compiled}, in lock-step"),
            None => format!("{compiled}, in tiles"),
        };
        self.begin(batch, plan.chain.blocks.clone(), &how, Some(plan.chain.bytes))
    }

    fn begin(&mut self, batch: &BatchRef<'_>, blocks: Range<u32>, how: &str, moved: Option<u64>) -> Option<Running> {
        if self.host.trace_clock() == 0 {
            return None;
        }
        let mut kernel = Kernel::of(batch, blocks.clone());
        kernel.bytes = moved.unwrap_or(kernel.bytes);
        if kernel.names.is_empty() {
            return None;
        }
        let (name, detail) = self.kernels.event(kernel, how, || blocks.map(|block| nests(batch, block)).collect());
        Some(Running { name, detail, begin: self.host.trace_clock() })
    }

    /// It has ended.
    pub(super) fn end(&mut self, running: Option<Running>) {
        if let Some(Running { name, detail, begin }) = running {
            self.host.trace(&name, begin, &detail);
            self.kernels.said();
        }
    }
}

fn how<'a>(mut programs: impl Iterator<Item = &'a Program>) -> &'static str {
    if programs.any(Program::is_compiled) { "compiled" } else { "in blocks" }
}

/// The loop nests of a block as text.
fn nests(batch: &BatchRef<'_>, block: u32) -> String {
    match bh_kernel::lower(batch, block, Runner::Vectors) {
        Lowered::Loops(stages, _) => stages.iter().map(|stage| format!("{stage}\n")).collect(),
        Lowered::Special(_) | Lowered::Nothing => String::new(),
    }
}
