//! Execution: what a batch is foretold to take, what it took, what failed in it, and scalars computed at once.

use super::{ErrorRecord, MethodArray, Table};
use bh_bytecode::Constant;
use std::ffi::c_void;

/// Where `execute` writes what it did. The engine adds to the times, and reports each instruction that failed while it
/// went on with the others; the host poisons what depends on them.
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

/// What running a batch takes, as it is known before its first kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Prediction {
    /// The most bytes of arrays at any time, beyond those that have memory already.
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

/// An operation on little data in host memory, to be carried out where it is called. Bits and errors are those of the same
/// operation in a batch; one that fails leaves its output as it was. An extension method has one output. A reduction with a second
/// input of the type of the first, which is no truth value, folds the products of both.
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
    /// The operands as in an instruction, the output first. Of rank 0: one element, stretched to what the others have. The
    /// numbers of a generator are an array whose `data` leads to the first of them.
    operands: Table<MethodArray>,
}

/// How `serve` ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Served {
    /// 0: this process runs the program. 1: it served another one, and is to end now.
    pub ended: u32,
    /// The exit code then.
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

    /// The operands. Whoever reads their addresses may rely on what [`ImmediateOperation::new`] asks of them.
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
