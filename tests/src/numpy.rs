//! NumPy as a second oracle: writes elementwise operations and reductions with their inputs and the oracle's results to
//! a directory, where `tests/numpy/check.py` computes them as well.

use crate::cases::{self, Case, Layout};
use crate::conformance::pick;
use bh_bytecode::interp::offsets;
use bh_bytecode::{BatchRef, Kind, Opcode, Operand};
use std::fmt::Write as _;
use std::path::Path;

/// Writes `cases.tsv` and `data.bin`; returns the number of cases. A line of the table has the title, the opcode, the
/// parameter, and then for the output and each input its type, shape and place in the data.
pub fn export(directory: &Path) -> std::io::Result<usize> {
    let (mut table, mut data, mut count) = (String::new(), Vec::new(), 0);
    for &opcode in Opcode::ALL {
        // Reductions of two inputs are compared between the stacks and the oracle only.
        let of_two = opcode.fold_of_one() != opcode;
        if of_two || !matches!(opcode.kind(), Kind::Elementwise | Kind::Reduction | Kind::Accumulate) {
            continue;
        }
        for case in cases::cases(opcode) {
            // Layouts are compared between the stacks and the oracle; this test is about values.
            if matches!(
                case.layout,
                Layout::Contiguous | Layout::Constant | Layout::Empty | Layout::Scalar | Layout::Rank16
            ) {
                let line = describe(&case, &mut data).map_err(std::io::Error::other)?;
                table.push_str(&line);
                count += 1;
            }
        }
    }
    std::fs::write(directory.join("cases.tsv"), table)?;
    std::fs::write(directory.join("data.bin"), data)?;
    Ok(count)
}

fn describe(case: &Case, data: &mut Vec<u8>) -> Result<String, String> {
    let oracle = case.program.oracle().map_err(|error| error.to_string())?;
    let batch = case.program.batch.as_ref();
    let instr = case.instr();
    let mut line = format!("{}\t{}\t{}", case.title, instr.opcode.name(), instr.param);
    for (at, &operand) in instr.operands().iter().enumerate() {
        let memory = if at == 0 { &oracle.memory } else { &case.program.memory };
        let bytes = match operand.as_view() {
            Some(view) => {
                let id = batch.base_of(view).map(|base| base.id).ok_or("an index view has no data")?;
                elements(&batch, view, memory.get(id).unwrap_or_default())
            }
            None => constant(&batch, operand)?,
        };
        let dtype = batch.dtype(operand).ok_or("an operand has no type")?.numpy_name();
        let shape = operand.as_view().map_or(&[][..], |view| batch.shape(view));
        let shape: Vec<String> = shape.iter().map(i64::to_string).collect();
        let _ = write!(line, "\t{dtype} {} {}", shape.join(","), data.len());
        data.extend(bytes);
    }
    line.push('\n');
    Ok(line)
}

/// The elements under a view in C order.
fn elements(batch: &BatchRef<'_>, view: u32, bytes: &[u8]) -> Vec<u8> {
    let record = &batch.views[view as usize];
    let places: Vec<i64> = offsets(record.start, batch.shape(view), batch.stride(view)).collect();
    let size = batch.base_of(view).map_or(1, |base| base.dtype().size());
    pick(bytes, size, &places)
}

fn constant(batch: &BatchRef<'_>, operand: Operand) -> Result<Vec<u8>, String> {
    let index = operand.as_constant().ok_or("an operand is missing")?;
    let constant = batch.constants[index as usize];
    Ok(constant.bytes()[..constant.dtype().size()].to_vec())
}
