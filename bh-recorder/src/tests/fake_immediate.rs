//! Operations at once on the fake stack: the reference interpreter runs them on copies of their operands.

use bh_bytecode::interp::{self, Memory};
use bh_bytecode::{Base, Batch, DType, Instr, Kind, Opcode, Operand, View};
use bh_core::abi::{ImmediateOperation, MethodArray, status};
use bh_core::component::SharedCalls;
use bh_core::error::{Error, Result};

pub(super) struct FakeImmediate;

/// The memory that an operand's elements lie in.
struct Span {
    first: *mut u8,
    bytes: usize,
}

impl SharedCalls for FakeImmediate {
    fn immediate(&self, operation: &ImmediateOperation) -> Result<bool> {
        let kind = Opcode(operation.opcode).kind();
        if matches!(kind, Kind::Generator | Kind::Index | Kind::Extension) {
            return Ok(false);
        }
        let operands = operation.operands();
        let shape = list(operands[0].shape, operands[0].rank).to_vec();
        let (mut batch, mut memory) = (Batch::default(), Memory::new());
        let mut views = Vec::new();
        let mut spans = Vec::new();
        for (operand, id) in operands.iter().zip(1..) {
            let (view, span, dtype) = place(operand, &shape);
            // SAFETY: the operand's elements lie there.
            memory.insert(id, unsafe { std::slice::from_raw_parts(span.first, span.bytes) }.to_vec());
            let base = batch.push_base(Base::new(id, dtype, (span.bytes / dtype.size()) as i64));
            views.push(Operand::view(batch.push_view(base, &view)));
            spans.push(span);
        }
        let mut instr = Instr::new(Opcode(operation.opcode), &views);
        (instr.param, instr.order) = (operation.param, operation.order);
        batch.push_instr(instr);
        let run = interp::execute(&batch.as_ref(), &mut memory);
        run.map_err(|error| Error::new(status::EXECUTION, error.message))?;
        let result = memory.get(1).expect("the output has memory");
        // SAFETY: as above; between the elements lie the bytes that were there.
        unsafe { std::ptr::copy_nonoverlapping(result.as_ptr(), spans[0].first, spans[0].bytes) };
        Ok(true)
    }
}

fn list<'a>(data: *const i64, rank: u32) -> &'a [i64] {
    // SAFETY: the recorder's lists have as many numbers.
    if rank == 0 { &[] } else { unsafe { std::slice::from_raw_parts(data, rank as usize) } }
}

/// An operand as a view of the memory from its first to its last element. One element is stretched.
fn place(operand: &MethodArray, shape: &[i64]) -> (View, Span, DType) {
    let dtype = DType::from_code(operand.dtype as u8).expect("a type");
    let zeros = vec![0; shape.len()];
    let (extents, strides) = match operand.rank {
        0 => (shape, &zeros[..]),
        rank => (list(operand.shape, rank), list(operand.stride, rank)),
    };
    let reach = |keep: fn(i64) -> bool| -> i64 {
        let steps = extents.iter().zip(strides).map(|(&extent, &stride)| (extent - 1).max(0) * stride);
        steps.filter(|&step| keep(step)).sum()
    };
    let (low, high) = (reach(|step| step < 0), reach(|step| step > 0));
    let size = dtype.size();
    let first = operand.data.cast::<u8>().wrapping_offset(low as isize * size as isize);
    let span = Span { first, bytes: (high - low + 1) as usize * size };
    (View::new(-low, extents, strides).expect("a view"), span, dtype)
}
