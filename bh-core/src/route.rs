//! Sends the blocks of a batch to an engine, refused ones to its first child, and continues after failures.

mod flow;
mod run;

use crate::abi::{BatchTables, ReportRecord, capability, status};
use crate::component::Registry;
use crate::error::{Error, Result};
use crate::foreign::Foreign;
use bh_bytecode::{BatchRef, Block, Kind};
use run::Run;
use std::ops::Range;

/// The destination of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The link's own component.
    Own,
    /// Its first child.
    Child,
}

/// An engine and the components below it: the destinations of blocks.
pub(crate) trait Ends {
    /// The engine.
    fn engine(&self) -> Foreign<'_>;
    /// Its name in the stack.
    fn label(&self) -> &str;
    /// Whether the engine has a capability.
    fn has(&self, flag: u64) -> bool;
    /// Whether its first child has a capability.
    fn child_has(&self, flag: u64) -> bool;
    /// Runs blocks on its first child, and returns the ticket of the pending work; `None` if there is no child.
    fn run_below(&self, batch: &BatchRef<'_>, blocks: &[u32], report: *mut ReportRecord) -> Option<(Result<()>, u64)>;
    /// Waits for pending work.
    fn wait_for(&self, target: Target, ticket: u64) -> Result<()>;
    /// The registry with the engine's data.
    fn registry(&self) -> Option<Registry>;
    /// An error with the names of the component and the source line.
    fn named(&self, error: Error, batch: &BatchRef<'_>) -> Error;
    /// Counts blocks that the engine refused.
    fn count_refused(&self, blocks: u64);
    /// Counts a block that failed.
    fn count_failed(&self);
    /// Writes a line to the log.
    fn log(&self, level: u32, text: &str);
}

/// Runs blocks on the engine behind `link`. After a failure the rest still runs; the first error is returned. The
/// tickets identify pending work; there are none after an error.
pub(crate) fn execute(
    link: &dyn Ends,
    batch: &BatchRef<'_>,
    blocks: &[u32],
    report: *mut ReportRecord,
) -> (Result<()>, Vec<(Target, u64)>) {
    let mut run = Run::new(link, report);
    if batch.blocks.is_empty() && !batch.instrs.is_empty() {
        let instrs: Vec<u32> = (0..batch.instrs.len() as u32).collect();
        run.one_by_one(batch, &instrs);
    } else {
        run.blocks(batch, blocks);
    }
    run.finish()
}

/// The tables of a kernel partition, owned.
#[derive(Default)]
struct Partition {
    blocks: Vec<Block>,
    block_instrs: Vec<u32>,
    contracted: Vec<u32>,
}

impl Partition {
    /// One block per instruction.
    fn singles(instrs: &[u32]) -> Partition {
        let mut partition = Partition::default();
        for &instr in instrs {
            partition.push(&[instr], &[]);
        }
        partition
    }

    /// Adds a block without renames.
    fn push(&mut self, instrs: &[u32], contracted: &[u32]) {
        self.blocks.push(Block {
            instrs: self.block_instrs.len() as u32,
            instr_count: instrs.len() as u32,
            contracted: self.contracted.len() as u32,
            contracted_count: contracted.len() as u32,
            ..Block::default()
        });
        self.block_instrs.extend_from_slice(instrs);
        self.contracted.extend_from_slice(contracted);
    }

    /// Adds a block of the batch unchanged; its renames stay in the batch's table.
    fn push_whole(&mut self, batch: &BatchRef<'_>, block: &Block) {
        self.push(batch.block_instrs(block), batch.contracted(block));
        if let Some(copy) = self.blocks.last_mut() {
            (copy.renames, copy.rename_count) = (block.renames, block.rename_count);
        }
    }

    /// The batch with this partition.
    fn apply<'a>(&'a self, batch: &BatchRef<'a>) -> BatchRef<'a> {
        let mut batch = *batch;
        batch.blocks = &self.blocks;
        batch.block_instrs = &self.block_instrs;
        batch.contracted = &self.contracted;
        batch
    }
}

/// A partition whose blocks have different destinations.
struct Routed {
    partition: Partition,
    targets: Vec<Target>,
}

/// The destination of each block; `None` if the engine accepts all of them.
fn route(link: &dyn Ends, batch: &BatchRef<'_>, blocks: &[u32]) -> Option<Routed> {
    let engine = link.engine();
    if !engine.has_supports() {
        return None;
    }
    let tables = BatchTables::new(batch);
    let takes = |block: u32| engine.supports(&tables, block).unwrap_or(true);
    let first_refused = blocks.iter().position(|&block| !takes(block))?;
    let child_renames = link.child_has(capability::RENAMES);
    let mut routed = Routed { partition: Partition::default(), targets: Vec::new() };
    for (position, &index) in blocks.iter().enumerate() {
        let block = &batch.blocks[index as usize];
        if position < first_refused || position > first_refused && takes(index) {
            routed.partition.push_whole(batch, block);
            routed.targets.push(Target::Own);
            continue;
        }
        link.count_refused(1);
        let work = batch.block_instrs(block).iter().filter(|&&instr| !is_system(batch, instr)).count();
        let unrenamed = block.rename_count == 0 || child_renames;
        if unrenamed && (work <= 1 || takes_nothing(link, batch, block)) {
            routed.partition.push_whole(batch, block);
            routed.targets.push(Target::Child);
        } else {
            split(link, batch, block, &mut routed);
        }
    }
    Some(routed)
}

fn is_system(batch: &BatchRef<'_>, instr: u32) -> bool {
    batch.instrs[instr as usize].opcode.is_system()
}

/// Whether the engine refuses every single operation of a block, so that splitting gains nothing.
fn takes_nothing(link: &dyn Ends, batch: &BatchRef<'_>, block: &Block) -> bool {
    let mut singles = Partition::default();
    for &instr in batch.block_instrs(block).iter().filter(|&&instr| !is_system(batch, instr)) {
        singles.push(&[instr], &[]);
    }
    let probe = singles.apply(batch);
    let tables = BatchTables::new(&probe);
    (0..probe.blocks.len() as u32).all(|single| link.engine().supports(&tables, single) == Some(false))
}

/// Splits a refused block into the longest runs that the engine accepts and the runs in between.
fn split(link: &dyn Ends, batch: &BatchRef<'_>, block: &Block, routed: &mut Routed) {
    let engine = link.engine();
    let instrs = batch.block_instrs(block);
    let singles = Partition::singles(instrs);
    let probe = singles.apply(batch);
    let tables = BatchTables::new(&probe);
    let target = |position: usize| match engine.supports(&tables, position as u32) {
        Some(false) => Target::Child,
        _ => Target::Own,
    };
    // A rename or a reduction may make a block legal whose parts are not.
    let runs_are_legal = block.rename_count == 0
        && !instrs.iter().any(|&instr| batch.instrs[instr as usize].opcode.kind() == Kind::Reduction);
    let mut runs: Vec<(Target, Range<usize>)> = Vec::new();
    for (position, &instr) in instrs.iter().enumerate() {
        let here = position..position + 1;
        // Data management follows the work before it.
        let next = if is_system(batch, instr) { runs.last().map(|(last, _)| *last) } else { None };
        match (next, runs.last_mut()) {
            (Some(_), Some((_, run))) => run.end += 1,
            (_, last) => {
                let next = if is_system(batch, instr) { Target::Own } else { target(position) };
                match last {
                    Some((last, run)) if *last == next && runs_are_legal => run.end += 1,
                    _ => runs.push((next, here)),
                }
            }
        }
    }
    for (target, run) in runs {
        let run = &instrs[run];
        let contracted = inner_contracted(batch, block, run);
        let whole = target == Target::Child || accepts(link, batch, run, &contracted);
        for part in if whole { vec![run] } else { run.chunks(1).collect() } {
            let contracted = if whole { &contracted[..] } else { &[] };
            routed.partition.push(part, contracted);
            routed.targets.push(target);
        }
    }
}

/// Whether the engine accepts this run of instructions, each of which it accepts alone.
fn accepts(link: &dyn Ends, batch: &BatchRef<'_>, run: &[u32], contracted: &[u32]) -> bool {
    if run.len() == 1 {
        return true;
    }
    let mut partition = Partition::default();
    partition.push(run, contracted);
    link.engine().supports(&BatchTables::new(&partition.apply(batch)), 0).unwrap_or(true)
}

/// The contracted bases of a block that no work outside `run` touches.
fn inner_contracted(batch: &BatchRef<'_>, block: &Block, run: &[u32]) -> Vec<u32> {
    let outside = |base: u32| {
        let touches = |&&instr: &&u32| !run.contains(&instr) && !is_system(batch, instr) && uses(batch, instr, base);
        batch.block_instrs(block).iter().any(|instr| touches(&instr))
    };
    batch.contracted(block).iter().copied().filter(|&base| !outside(base)).collect()
}

fn uses(batch: &BatchRef<'_>, instr: u32, base: u32) -> bool {
    let operands = batch.instrs[instr as usize].operands();
    operands.iter().filter_map(|operand| operand.as_view()).any(|view| batch.views[view as usize].base == base)
}

/// The error of a block that no engine accepts.
fn nobody(link: &dyn Ends, batch: &BatchRef<'_>, block: u32) -> Error {
    let instrs = batch.block_instrs(&batch.blocks[block as usize]);
    let Some(&instr) = instrs.iter().find(|&&instr| !is_system(batch, instr)) else {
        return Error::new(status::UNSUPPORTED, format!("component '{}' refuses data management", link.label()));
    };
    let instr = &batch.instrs[instr as usize];
    let types: Vec<&str> =
        instr.operands().iter().filter_map(|&operand| batch.dtype(operand)).map(|dtype| dtype.name()).collect();
    let text = format!(
        "no engine of the stack runs {} on ({}); the last one asked was '{}'",
        batch.operation_name(instr.opcode),
        types.join(", "),
        link.label()
    );
    Error::new(status::UNSUPPORTED, text)
}
