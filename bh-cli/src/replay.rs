//! `bh replay`: runs a dumped batch on a stack.

use crate::batch_file;
use bh_bytecode::{Constant, Opcode};
use bh_core::abi::access;
use bh_core::{Config, Result, Stack};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

/// Runs the batch and prints its results. Arrays without data in the file are zeros.
pub fn run(file: &Path, stack: Option<&str>, text: bool, elements: usize) -> Result<ExitCode> {
    let bh_bytecode::dump::Dump { batch, contents } = batch_file::read(file)?;
    if text {
        print!("{}", bh_bytecode::text::print(&batch.as_ref()));
        return Ok(ExitCode::SUCCESS);
    }
    let mut stack = Stack::load(&Config::find()?, stack)?;
    for extension in &batch.extensions {
        if let Some(name) = batch.as_ref().extension_name(extension.opcode) {
            stack.extmethod(name, extension.opcode)?;
        }
    }
    for (base, bytes) in &contents {
        let base = &batch.bases[*base as usize];
        let data = stack.map(base, None, access::WRITE | access::DISCARD)?;
        // SAFETY: the map exposes all bytes of the base, and the file was checked to have exactly as many.
        unsafe { std::slice::from_raw_parts_mut(data, base.bytes() as usize) }.copy_from_slice(bytes);
        stack.unmap(base)?;
    }
    let begin = Instant::now();
    let ticket = stack.execute(&batch.as_ref(), &all_blocks(batch.blocks.len()))?;
    stack.wait(ticket)?;
    println!("{} instructions on stack {} in {:.6} s", batch.instrs.len(), stack.name(), begin.elapsed().as_secs_f64());
    let dropped = |base: u32| {
        batch.instrs.iter().any(|instr| {
            matches!(instr.opcode, Opcode::Free | Opcode::Discard)
                && instr.operands[0].as_view().is_some_and(|view| batch.views[view as usize].base == base)
        })
    };
    for (index, base) in batch.bases.iter().enumerate() {
        if dropped(index as u32) {
            continue;
        }
        let data = stack.map(base, None, access::READ)?;
        let size = base.dtype().size();
        let shown = (base.len as usize).min(elements);
        // SAFETY: the map exposes all elements of the base, of which `shown` are read.
        let bytes = unsafe { std::slice::from_raw_parts(data, shown * size) };
        let values: Vec<String> =
            bytes.chunks_exact(size).map(|bytes| value_text(&Constant::from_bytes(base.dtype(), bytes))).collect();
        let more = if base.len as usize > shown { " …" } else { "" };
        println!("array {index}: {} {} elements: {}{more}", base.dtype(), base.len, values.join(" "));
        stack.unmap(base)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The value without its type.
fn value_text(constant: &Constant) -> String {
    let text = constant.to_string();
    text.split_once(' ').map_or(text.clone(), |(_, value)| value.replace(' ', "+i"))
}

fn all_blocks(count: usize) -> Vec<u32> {
    (0..count as u32).collect()
}
