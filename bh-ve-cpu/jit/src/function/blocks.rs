//! The loop over a row's blocks: segments, and calls of block primitives between them.

use super::loops;
use crate::builder::{Builder, Kind, Value};
use crate::kernel::Kernel;
use crate::memory::unit_address;
use crate::plan::Form;
use bh_kernel::{Arg, Step};
use inkwell::IntPredicate as Int;

/// A block of a row: its first element, and how many it has.
#[derive(Clone, Copy)]
struct Block<'c> {
    begin: Value<'c>,
    length: Value<'c>,
}

pub(super) fn build<'c>(b: &Builder<'c>, kernel: &mut Kernel<'c>) -> Result<(), String> {
    let ([body, latch, after], before) = (b.blocks(["block", "block.end", "blocks.end"]), b.current());
    let (size, count) = (b.index(kernel.plan.block as i64), kernel.parameters.count);
    b.jump(body);
    b.begin(body);
    let begin = b.phi(Kind::I64, &[(b.index(0), before)]);
    let left = b.sub(count, begin.value);
    let length = b.select(b.compare(Int::UGT, left, size), size, left);
    let block = Block { begin: begin.value, length };
    for segment in 0..kernel.plan.segments {
        loops::segment(b, kernel, segment, length, Some(block.begin))?;
        for (index, step) in kernel.request.steps.iter().enumerate() {
            if let (Form::Called(function), Step::Compute { args, count, .. }) = (kernel.plan.forms[index], step)
                && kernel.plan.segment[index] == segment
            {
                let value = kernel.plan.made.iter().position(|&made| made == index);
                call(b, kernel, block, function, (value, &args[..usize::from(*count)]));
            }
        }
    }
    copy(b, kernel, block);
    b.jump(latch);
    b.begin(latch);
    let next = b.add(begin.value, size);
    begin.add(next, latch);
    b.branch(b.compare(Int::SLT, next, count), (body, after));
    b.begin(after);
    Ok(())
}

/// Calls a function on a block.
fn call<'c>(
    b: &Builder<'c>,
    kernel: &Kernel<'c>,
    block: Block<'c>,
    function: u16,
    (value, args): (Option<usize>, &[Arg]),
) {
    let buffer = |buffer: Option<u16>| match buffer {
        Some(buffer) => kernel.parameters.buffers[usize::from(buffer)],
        None => b.zero(Kind::POINTER),
    };
    let mut operands = [b.zero(Kind::POINTER); 3];
    for (operand, arg) in operands.iter_mut().zip(args) {
        *operand = match (kernel.dense_operand(*arg), *arg) {
            (Some(slot), _) => unit_address(b, kernel, usize::from(slot), 0, block.begin, 0),
            (None, Arg::Constant(constant)) => buffer(kernel.plan.constant_buffers[usize::from(constant)]),
            (None, Arg::Value(operand)) => buffer(kernel.plan.value_buffers[usize::from(operand)]),
        };
    }
    let target = buffer(value.and_then(|value| kernel.plan.value_buffers[value]));
    let [x, y, z] = operands;
    b.call_pointer(kernel.parameters.functions[usize::from(function)], &[block.length, target, x, y, z]);
}

/// Writes buffers past the caches.
fn copy<'c>(b: &Builder<'c>, kernel: &Kernel<'c>, block: Block<'c>) {
    let function = kernel.plan.functions.iter().position(Option::is_none).unwrap_or(0);
    for (at, slot) in kernel.request.slots.iter().enumerate() {
        if let Some(buffer) = kernel.plan.slot_buffers[at] {
            let target = unit_address(b, kernel, at, 0, block.begin, 0);
            let bytes = b.mul(block.length, b.index(slot.dtype.size() as i64));
            let buffer = kernel.parameters.buffers[usize::from(buffer)];
            b.call_pointer(kernel.parameters.functions[function], &[bytes, target, buffer]);
        }
    }
}
