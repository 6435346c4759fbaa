//! The facts about a kernel while its code is built.

mod parameters;
mod rows;
mod stream;

pub(crate) use parameters::{Parameters, Slot, Uniform, positions, slots};
pub(crate) use rows::{Ahead, Rows};
pub(crate) use stream::Stream;

use crate::builder::Value;
use crate::plan::Plan;
use bh_bytecode::{DType, Opcode};
use bh_jit_abi::Request;
use bh_kernel::{Arg, Step};

/// The facts about a kernel while its code is built.
pub(crate) struct Kernel<'c> {
    pub(crate) request: &'c Request,
    pub(crate) plan: &'c Plan,
    /// The parameters of the call.
    pub(crate) parameters: Parameters<'c>,
    /// The values of the current rows.
    pub(crate) rows: Rows<'c>,
    pub(crate) vector: CurrentVector<'c>,
    /// The lanes where they are held in registers: for each row and fold, vector by vector.
    pub(crate) sums: Vec<Vec<Vec<Value<'c>>>>,
    /// The lanes between loops, where they stay in registers: for each fold, vector by vector.
    pub(crate) carried: Vec<Value<'c>>,
    /// The outputs that the current loop writes past the caches.
    pub(crate) streams: Vec<Stream<'c>>,
    /// Do the vectors of the current loop begin where lines of these outputs begin?
    pub(crate) in_lines: bool,
}

/// The place of a vector.
#[derive(Clone, Copy)]
pub(crate) struct At<'c> {
    /// The first element of the current group in the row, and in the block.
    pub(crate) element: Value<'c>,
    pub(crate) index: Value<'c>,
    /// The vector's distance from there, in elements.
    pub(crate) offset: u16,
    pub(crate) width: u16,
    /// Which lanes count, if not all.
    pub(crate) mask: Option<Value<'c>>,
    pub(crate) segment: usize,
    /// Its number in the group, where lanes are held in registers.
    pub(crate) register: Option<usize>,
    /// Its row among those that are done side by side.
    pub(crate) row: u16,
}

/// Where something lies that is read: slot, row and element.
pub(crate) type Position = (usize, i64, i64);

/// The values that are known for the current vector.
#[derive(Default)]
pub(crate) struct CurrentVector<'c> {
    /// The values of the steps, for each row.
    pub(crate) values: Vec<Vec<Option<Value<'c>>>>,
    /// The values that its rows have read.
    pub(crate) loads: Vec<(Position, Value<'c>)>,
}

impl<'c> CurrentVector<'c> {
    /// The value that was read from a place.
    pub(crate) fn read(&self, place: Position) -> Option<Value<'c>> {
        self.loads.iter().find(|(known, _)| *known == place).map(|(_, value)| *value)
    }

    /// Keeps the value that is read from a place.
    pub(crate) fn keep(&mut self, place: Position, value: Value<'c>) -> Value<'c> {
        self.loads.push((place, value));
        value
    }
}

impl Kernel<'_> {
    /// The folds: their reductions' opcodes and types.
    pub(crate) fn folds(&self) -> Vec<(Opcode, DType)> {
        folds(self.request)
    }
}

/// The folds of a request.
pub(crate) fn folds(request: &Request) -> Vec<(Opcode, DType)> {
    let fold = |step: &Step| match *step {
        Step::Reduce { opcode, slot, .. } => Some((opcode, request.slots[usize::from(slot)].dtype)),
        _ => None,
    };
    request.steps.iter().filter_map(fold).collect()
}

impl<'c> Kernel<'c> {
    /// The value of a constant in the vectors of a place.
    pub(crate) fn constant(&self, constant: u16, at: &At<'c>) -> Value<'c> {
        self.parameters.constants[usize::from(constant)].of_width(at.width)
    }

    /// The slot whose memory can be the operand of a call.
    pub(crate) fn dense_operand(&self, arg: Arg) -> Option<u16> {
        match arg {
            Arg::Value(value) => self.plan.dense_load(self.request, value),
            Arg::Constant(_) => None,
        }
    }
}
