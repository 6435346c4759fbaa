//! The description of a kernel: everything that its machine code depends on, and nothing else. Sizes, strides, offsets and
//! values of constants are parameters of the code.

use crate::wire;
use bh_bytecode::DType;
use bh_kernel::wire::{dtype, dtypes};
use bh_kernel::{Arg, SlotMode, Step, Stride};
use serde::{Deserialize, Serialize};

/// The instruction sets that kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Level {
    /// AVX2 with fused multiply-add.
    Avx2,
    /// AVX-512 F, DQ, BW and VL.
    Avx512,
    /// AArch64's baseline.
    Neon,
}

impl Level {
    /// Bytes of a vector register.
    pub const fn bytes(self) -> usize {
        match self {
            Level::Avx2 => 32,
            Level::Avx512 => 64,
            Level::Neon => 16,
        }
    }

    /// Vector registers.
    pub const fn registers(self) -> usize {
        match self {
            Level::Avx2 => 16,
            Level::Avx512 | Level::Neon => 32,
        }
    }

    /// Do instructions take masks of the lanes that count, and are there shuffles of two vectors in any order?
    pub const fn has_masks(self) -> bool {
        matches!(self, Level::Avx512)
    }

    /// Do vectors have conversions between 64-bit integers, or unsigned ones of 32 bits, and `f64`?
    pub const fn has_wide_conversions(self) -> bool {
        matches!(self, Level::Avx512 | Level::Neon)
    }
}

/// How fast a processor makes quotients and roots in vectors of eight lanes, beside its other operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Divider {
    /// A quotient takes as long as about 30 other instructions.
    Slow,
    /// As long as about 10, as other operations take two halves of a vector.
    Fast,
    /// As long as about 20.
    Wide,
    /// Nobody has measured it: kernels divide by the processor's instructions.
    Unknown,
}

/// The accumulators of reductions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Folds {
    /// There are none.
    None,
    /// Sets of 32 lanes: element `i` of row `r` goes to lane `i % 32` of one of them, as [`crate::Call::sets`] says.
    Lanes,
    /// As many elements as the rows have.
    Elements,
    /// As many elements as a row has: element `i` of all rows goes to the same one.
    Columns,
    /// Sets of at least as many elements as a row has, which are fewer than [`crate::LANES`]: element `i` of row `r` goes to
    /// element `i` of one of them, as [`crate::Call::sets`] says.
    Sets,
    /// One element for each row: 32 lanes as with [`Folds::Lanes`], of which lane `i` takes lane `i + 16`, then `i + 8`, 4, 2
    /// and 1.
    Results,
}

impl Folds {
    /// Are rows folded into lanes?
    pub fn has_lanes(self) -> bool {
        matches!(self, Folds::Lanes | Folds::Results)
    }
}

/// The place of a slot that moves together with an earlier one, on which it lies: that one's position, `rows` of its
/// strides from row to row, and `distance` elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Near {
    /// The earlier slot. It has the same element type and the same strides, and a position of its own.
    pub slot: u16,
    /// Rows from there.
    pub rows: i8,
    /// Elements from there.
    pub distance: i16,
}

/// A slot as compiled code sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SlotForm {
    /// Element type.
    #[serde(with = "dtype")]
    pub dtype: DType,
    /// How it is used.
    pub mode: SlotMode,
    /// How its elements lie.
    pub stride: Stride,
    /// Is what it writes to bypass the caches?
    pub non_temporal: bool,
    /// Is memory fetched ahead of what it reads? Not if the caches have it.
    pub fetch: bool,
    /// Where it lies in the memory of an earlier slot, if both have fixed places there. If not, it has a position of its
    /// own.
    pub near: Option<Near>,
}

/// Bytes of a row's elements that are at least to be divided by one number, for it to pay to prepare something of it.
pub const LONG_ROW_BYTES: usize = 1024;

/// A kernel to compile.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Request {
    /// The instruction set.
    pub level: Level,
    /// The processor's divider.
    pub divider: Divider,
    /// May results differ from the block operations' by rounding?
    pub fast_math: bool,
    /// Must each row be complete before the next one begins? Else rows have nothing to do with each other, but for folds.
    pub in_order: bool,
    /// Are rows of less than [`LONG_ROW_BYTES`] bytes divided by what stays the same along each?
    pub short: bool,
    /// How many elements slots repeat, or how often they do, a power of two; 0 if none does.
    pub repeat: u8,
    /// The accumulators of reductions.
    pub folds: Folds,
    /// The slots.
    pub slots: Vec<SlotForm>,
    /// The types of the constants.
    #[serde(with = "dtypes")]
    pub constants: Vec<DType>,
    /// The body.
    pub steps: Vec<Step>,
    /// The text of a scalar program, which is done instead of the body; empty for none. Slots are then its inputs and outputs,
    /// one row of neighbours in memory.
    pub program: String,
}

impl Request {
    /// The request for a scalar program.
    pub fn of_program(level: Level, text: String) -> Request {
        Request {
            level,
            divider: Divider::Fast,
            fast_math: false,
            in_order: false,
            short: false,
            repeat: 0,
            folds: Folds::None,
            slots: Vec::new(),
            constants: Vec::new(),
            steps: Vec::new(),
            program: text,
        }
    }

    /// The bytes that [`Request::decode`] reads; equal requests have equal bytes.
    pub fn encode(&self) -> Vec<u8> {
        wire::encode(self)
    }

    /// Reads a request; `None` if the bytes are none, or name slots, constants or values that do not exist.
    pub fn decode(bytes: &[u8]) -> Option<Request> {
        wire::decode(bytes).filter(Request::is_complete)
    }

    /// Does all that is named exist?
    fn is_complete(&self) -> bool {
        let slots = self.slots.iter().enumerate().all(|(at, slot)| {
            // A slot that lies near another one is no place to count from.
            let is_base = |near: Near| {
                let base = self.slots[..at].get(usize::from(near.slot));
                base.is_some_and(|base| base.near.is_none() && base.dtype == slot.dtype)
            };
            slot.near.is_none_or(is_base) && (!slot.stride.repeats() || self.repeat.is_power_of_two())
        });
        let mut values = 0;
        slots && self.steps.iter().all(|step| self.has_what_it_names(step, &mut values))
    }

    /// Does all exist that a step names, after `values` values?
    fn has_what_it_names(&self, step: &Step, values: &mut usize) -> bool {
        let slot = match *step {
            Step::Load { slot }
            | Step::Range { slot, .. }
            | Step::Random { slot, .. }
            | Step::Store { slot, .. }
            | Step::Reduce { slot, .. } => Some(slot),
            Step::Compute { count, .. } if !(1..=3).contains(&count) => return false,
            Step::Compute { .. } | Step::Gather { .. } => None,
        };
        let is_known = |arg: &Arg| match *arg {
            Arg::Value(value) => usize::from(value) < *values,
            Arg::Constant(constant) => usize::from(constant) < self.constants.len(),
        };
        let known = step.args().iter().all(is_known) && slot.is_none_or(|slot| usize::from(slot) < self.slots.len());
        *values += usize::from(!matches!(step, Step::Store { .. } | Step::Reduce { .. }));
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bh_bytecode::Opcode;

    fn request() -> Request {
        let slot =
            |mode, stride, near| SlotForm { dtype: DType::F64, mode, stride, non_temporal: false, fetch: true, near };
        let product = Step::Compute {
            opcode: Opcode::Multiply,
            param: 0,
            input: DType::F64,
            output: DType::F64,
            args: [Arg::Value(0), Arg::Constant(0), Arg::Constant(0)],
            count: 2,
        };
        Request {
            level: Level::Avx512,
            divider: Divider::Fast,
            fast_math: true,
            in_order: true,
            short: true,
            repeat: 4,
            folds: Folds::Lanes,
            slots: vec![
                slot(SlotMode::Read, Stride::Four, None),
                slot(SlotMode::Read, Stride::Other, Some(Near { slot: 0, rows: -2, distance: -1 })),
                slot(SlotMode::Result, Stride::Zero, None),
            ],
            constants: vec![DType::F64],
            steps: vec![
                Step::Load { slot: 0 },
                product,
                Step::Random { slot: 1, key: Arg::Constant(0), output: DType::F32 },
                Step::Reduce { opcode: Opcode::AddReduce, slot: 2, arg: Arg::Value(1) },
            ],
            program: "program f (f64) -> (f64) with () { r1 = copy r0; }".into(),
        }
    }

    #[test]
    fn requests_survive_encoding() {
        for folds in [Folds::None, Folds::Lanes, Folds::Elements, Folds::Columns, Folds::Sets, Folds::Results] {
            let request = Request { folds, ..request() };
            assert_eq!(Request::decode(&request.encode()), Some(request));
        }
        let bytes = request().encode();
        for cut in 0..bytes.len() {
            assert_eq!(Request::decode(&bytes[..cut]), None, "cut to {cut} bytes");
        }
    }

    #[test]
    fn what_does_not_exist_cannot_be_named() {
        let mut wrong = request();
        wrong.steps.push(Step::Store { slot: 3, arg: Arg::Value(0) });
        assert_eq!(Request::decode(&wrong.encode()), None);
        let mut wrong = request();
        wrong.steps.push(Step::Store { slot: 0, arg: Arg::Value(3) });
        assert_eq!(Request::decode(&wrong.encode()), None);
    }

    #[test]
    fn slots_lie_near_earlier_ones_of_their_type_that_have_positions() {
        let near = |slot| Some(Near { slot, rows: 0, distance: 1 });
        for (at, slot) in [(0, 0), (1, 2), (2, 1)] {
            let mut wrong = request();
            wrong.slots[at].near = near(slot);
            assert_eq!(Request::decode(&wrong.encode()), None, "slot {at} near slot {slot}");
        }
        let mut wrong = request();
        wrong.slots[0].dtype = DType::F32;
        assert_eq!(Request::decode(&wrong.encode()), None);
    }
}
