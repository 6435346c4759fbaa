//! Execution: the predicted and the actual cost of a batch, its failures, and scalars computed immediately.

use super::{ErrorRecord, MethodArray, Table};
use bh_bytecode::Constant;
use std::ffi::c_void;

/// Where `execute` reports to. The engine adds to the times, and reports each instruction that failed although the rest
/// of its block went on; the host poisons the bases that depend on it.
#[repr(C)]
pub struct ReportRecord {
    /// Bytes of this struct, for growth.
    pub struct_size: usize,
    /// First argument of `failed`.
    pub context: *mut c_void,
    /// Reports that an instruction of a block (both are indices) failed; its outputs are lost.
    pub failed: unsafe extern "C" fn(context: *mut c_void, block: u32, instr: u32, error: *const ErrorRecord),
    /// Seconds spent on planning: rewriting, partition, lowering, compiling.
    pub planning_seconds: f64,
    /// Seconds spent on running.
    pub running_seconds: f64,
}

/// The cost of running a batch, predicted before its first kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Prediction {
    /// The most bytes of arrays at any time, not counting arrays that already have memory.
    pub peak_bytes: u64,
    /// The most bytes of work memory at any time.
    pub work_bytes: u64,
    /// Seconds of running; 0 if unknown.
    pub seconds: f64,
}

/// An operation on scalars whose values are known. Bits and errors are those of the same operation in a batch.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ScalarOperation {
    /// Bytes of this struct, for growth.
    pub struct_size: usize,
    /// An opcode number of an elementwise operation.
    pub opcode: u16,
    /// As in an instruction.
    pub param: u16,
    /// Type of the result, a `DType` discriminant.
    pub dtype: u32,
    /// The inputs.
    inputs: Table<Constant>,
}

/// The answer to a [`ScalarOperation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Evaluation {
    /// The result.
    pub value: Constant,
    /// 1 if `value` is the result, 0 if the engine leaves the operation to a batch.
    pub known: u32,
    /// Zero.
    pub reserved: u32,
}

/// An operation on little data in host memory, to be run during the call. Bits and errors are those of the same
/// operation in a batch; an operation that fails leaves its output unchanged. An extension method has one output. A
/// reduction with a second input of the same type as the first, other than bool, folds the products of both.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ImmediateOperation {
    /// Bytes of this struct, for growth.
    pub struct_size: usize,
    /// An opcode number.
    pub opcode: u16,
    /// As in an instruction.
    pub param: u16,
    /// As in an instruction: the order in which a reduction takes its elements.
    pub order: u16,
    /// Zero.
    pub reserved: u16,
    /// The operands as in an instruction, the output first. An operand of rank 0 is one element, broadcast to the shape
    /// of the others. For a generator, `data` of the operand points to the first of its numbers.
    operands: Table<MethodArray>,
}

/// How `serve` ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Served {
    /// 0: this process runs the program. 1: it served another process and must end now.
    pub ended: u32,
    /// The exit code in the second case.
    pub exit_code: i32,
}

impl ScalarOperation {
    /// An operation with these inputs and a result of type `dtype`.
    ///
    /// # Safety
    /// `inputs` must live as long as the value.
    pub unsafe fn new(
        opcode: bh_bytecode::Opcode,
        param: u16,
        dtype: bh_bytecode::DType,
        inputs: &[Constant],
    ) -> ScalarOperation {
        let size = size_of::<ScalarOperation>();
        ScalarOperation { struct_size: size, opcode: opcode.0, param, dtype: dtype as u32, inputs: Table::new(inputs) }
    }

    /// The inputs.
    #[inline]
    pub fn inputs(&self) -> &[Constant] {
        // SAFETY: `new` asks that the inputs live as long as the value.
        unsafe { self.inputs.as_slice() }
    }
}

impl ImmediateOperation {
    /// An operation on these operands.
    ///
    /// # Safety
    /// `operands`, their shapes and strides must live as long as the value, and their memory must hold the elements.
    pub unsafe fn new(
        opcode: bh_bytecode::Opcode,
        param: u16,
        order: u16,
        operands: &[MethodArray],
    ) -> ImmediateOperation {
        let (struct_size, operands) = (size_of::<ImmediateOperation>(), Table::new(operands));
        ImmediateOperation { struct_size, opcode: opcode.0, param, order, reserved: 0, operands }
    }

    /// The operands. Readers of their addresses may rely on the contract of [`ImmediateOperation::new`].
    #[inline]
    pub fn operands(&self) -> &[MethodArray] {
        // SAFETY: `new` asks that the operands live as long as the value.
        unsafe { self.operands.as_slice() }
    }
}

impl Default for Evaluation {
    fn default() -> Evaluation {
        Evaluation { value: Constant { bits: [0; 2], dtype: 0, reserved: [0; 7] }, known: 0, reserved: 0 }
    }
}
