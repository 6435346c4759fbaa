//! The engine's plan for each kernel of a batch, in words: where it runs, why it is refused, and how it is built. Nothing
//! runs for that.

use crate::chains::together;
use crate::code;
use crate::parted::InPieces;
use crate::plan::BlockPlan;
use crate::running::Open;
use crate::settings::{Settings, Specialise};
use crate::tune::HOT;
use crate::whereabouts::Verdict;
use crate::work::Work;
use bh_bytecode::{BatchRef, dump};
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_kernel::{Lowered, Special};
use std::path::Path;

/// Answers the message `explain FILE`: for each thing to say a line with the number of the block.
pub(crate) fn explain(device: &Open, settings: &Settings, falls: bool, file: &str) -> Result<String> {
    let fail = |text: String| Error::new(status::FILE, format!("{}: {text}", Path::new(file).display()));
    let bytes = std::fs::read(file).map_err(|error| fail(error.to_string()))?;
    let mut dump = dump::read(&bytes).map_err(|error| fail(error.to_string()))?;
    bh_bytecode::validate::validate(&dump.batch.as_ref()).map_err(|error| fail(error.to_string()))?;
    dump.batch.forget_structure();
    dump.batch.sign();
    let batch = dump.batch.as_ref();
    let mut text = String::new();
    for block in 0..batch.blocks.len() as u32 {
        for line in lines(device, settings, falls, &batch, block) {
            text += &format!("{block} {line}\n");
        }
    }
    for (block, line) in chains(device, settings, &batch) {
        text += &format!("{block} {line}\n");
    }
    Ok(text)
}

/// Which kernels run as one, and which could.
fn chains(device: &Open, settings: &Settings, batch: &BatchRef<'_>) -> Vec<(u32, String)> {
    let found = together(batch, &device.pool, settings);
    let folds = found.folds.into_iter().map(|(blocks, _)| {
        let line = format!(
            "as one with the kernels up to {} when the batch has come {HOT} times: items keep the elements that several of them use in registers",
            blocks.end - 1
        );
        (blocks.start, line)
    });
    let percent = |part: f64| (part * 100.0).round();
    let tilings = found.tilings.into_iter().map(|it| {
        let tiling = it.tiling;
        let [rows, columns, elements] = tiling.tile;
        let elements = if elements > 1 { format!(" of {elements} elements") } else { String::new() };
        let line = format!(
            "as one with the kernels up to {}, tile by tile, when the batch has come {HOT} times: {} loop nests, {rows} rows and {columns} columns{elements} \
             of a tile, {} bytes of local memory, about {}% of the time",
            tiling.blocks.end - 1,
            tiling.nests.len(),
            tiling.in_use,
            percent(tiling.gain)
        );
        (tiling.blocks.start, line)
    });
    let declined = found.declined.into_iter().map(|(blocks, gain)| {
        let last = blocks.end - 1;
        (blocks.start, format!("not tile by tile with the kernels up to {last}: about {}% of the time", percent(gain)))
    });
    tilings.chain(folds).chain(declined).collect()
}

/// The notes on a block; `falls`: there is a next engine.
fn lines(device: &Open, settings: &Settings, falls: bool, batch: &BatchRef<'_>, block: u32) -> Vec<String> {
    let instrs = batch.block_instrs(&batch.blocks[block as usize]);
    let mut work = instrs.iter().copied().filter(|&instr| !batch.instrs[instr as usize].opcode.is_system()).peekable();
    if work.peek().is_none() {
        return Vec::new();
    }
    let facts = &device.pool.gpu.facts;
    if let Some(refused) = work.find(|&instr| !device.runs(batch, instr)) {
        let opcode = batch.instrs[refused as usize].opcode;
        let name = batch.operation_name(opcode);
        let why = if facts.f64 { "it has no kernel for it there" } else { "it has none, or the device has no f64" };
        return vec![format!("{} because of i{refused} {name}: {why}", Verdict::Unsupported.text())];
    }
    let work = Work::of(batch, block);
    let nests = if work.fits(&device.pool) { None } else { Some(InPieces::of(batch, block, &device.pool)) };
    if let Some(None) = nests {
        let text = format!("{}: {} bytes of arrays, and it cannot be parted", Verdict::TooLarge.text(), work.room);
        return vec![text];
    }
    let mut lines = vec![match &nests {
        Some(Some(pieces)) => {
            let count = pieces.count(batch).map_or("some".into(), |count| count.to_string());
            format!("on {} in {count} pieces: {} bytes of arrays", facts.name, work.bytes)
        }
        _ => format!("on {}", facts.name),
    }];
    if falls && work.is_little(&settings.little) {
        let (bytes, operations) = (work.touched, work.operations);
        lines.push(format!(
            "while its arrays are in host memory on the next engine: {bytes} bytes, {operations} operations"
        ));
    }
    lines.extend(kernels(device, settings, batch, block));
    lines
}

/// How the kernels of a block are made.
fn kernels(device: &Open, settings: &Settings, batch: &BatchRef<'_>, block: u32) -> Vec<String> {
    let mut lines = Vec::new();
    match code::lowered(batch, block) {
        Lowered::Nothing => {}
        Lowered::Loops(stages, _) => stages.iter().for_each(|stage| {
            lines.extend(code::choices(stage, &device.pool.target));
        }),
        Lowered::Special(Special::Accumulate(_)) => lines.push("a running fold: a kernel of its own".into()),
        Lowered::Special(Special::Scatter(_)) => lines.push("a scatter: kernels of its own".into()),
        Lowered::Special(Special::Product(_)) => lines.push("a product of matrices: a kernel of its own".into()),
        Lowered::Special(Special::Extension(_)) => lines.push("a method: kernels of its own".into()),
    }
    let plan = BlockPlan::new(batch, block, &device.pool, &device.methods);
    for launch in &plan.plain.all {
        let code = &launch.code;
        if code.library.is_some() {
            lines.push("a library of the device's maker".into());
            continue;
        }
        let numbers = if code.packed { "a buffer" } else { "arguments" };
        let wide = if code.wide { 64 } else { 32 };
        lines.push(format!(
            "kernel of {} groups of {} items; indices of {wide} bits, sizes in {numbers}",
            code.groups, code.group
        ));
    }
    lines.push(match settings.specialise {
        Specialise::Off => "sizes are never in the text".into(),
        Specialise::Auto => format!("sizes in the text after {HOT} calls, when those kernels are built"),
        Specialise::On => "sizes in the text from the first call on".into(),
    });
    lines
}
