//! The pass-through diagnostics: the printer and the pricer.

use bh_bytecode::{Batch, Operand};
use bh_core::Host;
use bh_core::abi::log_level;

/// Logs the batch in text form.
pub fn print(host: &Host, batch: &Batch) {
    host.log(
        log_level::INFO,
        &format!("batch of {} instructions\n{}", batch.instrs.len(), bh_bytecode::text::print(&batch.as_ref())),
    );
}

/// Logs how many bytes the batch's instructions read and write when each runs alone.
pub fn price(host: &Host, batch: &Batch) {
    let tables = batch.as_ref();
    let bytes = |operands: &[Operand]| -> u64 {
        let sizes = operands.iter().filter_map(|operand| {
            let view = operand.as_view()?;
            let base = tables.base_of(view)?;
            // Elements under a stride of 0 are one element.
            let elements: i64 = tables
                .shape(view)
                .iter()
                .zip(tables.stride(view))
                .map(|(&extent, &stride)| if stride == 0 { extent.min(1) } else { extent })
                .product();
            Some(elements as u64 * base.dtype().size() as u64)
        });
        sizes.sum()
    };
    let working = batch.instrs.iter().filter(|instr| !instr.opcode.is_system());
    let (mut read, mut written, mut count) = (0, 0, 0);
    for instr in working {
        read += bytes(instr.inputs());
        written += bytes(instr.outputs());
        count += 1;
    }
    host.log(log_level::INFO, &format!("{count} operations alone read {read} bytes and write {written} bytes"));
    host.counter("filter.unfused_bytes").add(read + written);
}
