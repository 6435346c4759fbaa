//! Results of chosen lines in single precision: what a program would compute if their arrays were `float32`.

use super::added::Added;
use bh_bytecode::{Batch, BatchRef, DType, Instr, Opcode};
use std::collections::HashSet;
use std::sync::atomic::AtomicU64;

/// Lines of the program, by file and number.
pub(crate) type Lines = HashSet<(String, u32)>;

/// The batch, with results of double precision that these lines write rounded to single precision after each operation; `None` if
/// it has no operation of theirs.
pub(crate) fn narrowed(batch: &BatchRef<'_>, lines: &Lines, ids: &AtomicU64) -> Option<Batch> {
    let chosen = |instr: &Instr| {
        batch.origin(instr).is_some_and(|(file, line)| lines.iter().any(|own| own.0 == file && own.1 == line))
    };
    if lines.is_empty() || !batch.instrs.iter().any(chosen) {
        return None;
    }
    let (mut added, instrs) = Added::new(batch, ids);
    for instr in &instrs {
        added.batch.push_instr(*instr);
        if instr.opcode.is_system() || !chosen(instr) {
            continue;
        }
        for &output in instr.outputs() {
            let narrow = match batch.dtype(output) {
                Some(DType::F64) => DType::F32,
                Some(DType::C128) => DType::C64,
                _ => continue,
            };
            let Some(shape) = output.as_view().map(|view| batch.shape(view)).filter(|shape| !shape.contains(&0)) else {
                continue;
            };
            if let Some(rounded) = added.of(Opcode::Copy, narrow, shape, &[output]) {
                added.op(Opcode::Copy, 0, &[output, rounded]);
            }
        }
    }
    Some(added.finish())
}
