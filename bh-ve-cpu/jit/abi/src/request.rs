//! The description of a kernel: everything that its machine code depends on, and nothing else. Sizes, strides, offsets and
//! values of constants are parameters of the code.

use bh_bytecode::{DType, Opcode};
use bh_fuser::lower::{Arg, SlotMode, Step};

/// The instruction sets that kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// AVX2 with fused multiply-add.
    Avx2,
    /// AVX-512 F, DQ, BW and VL.
    Avx512,
}

/// How fast a processor makes quotients and roots in vectors of eight lanes, beside its other operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Divider {
    /// A quotient takes as long as about 30 other instructions.
    Slow,
    /// As long as about 10.
    Fast,
}

/// What reductions fold into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

/// How a slot's elements lie along a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stride {
    /// Always the same element.
    Zero,
    /// Neighbours in memory.
    Unit,
    /// Anything else.
    Other,
    /// Of what is read, every second element of memory: what lies between may be read as well.
    Two,
    /// Every third one, likewise.
    Three,
    /// Every fourth one, likewise.
    Four,
    /// Of what is read, each of neighbours in memory [`Request::repeat`] times.
    Again,
    /// Of what is read, so many neighbours in memory, again and again.
    Cycle,
}

impl Stride {
    /// Elements of memory from one to the next, if that is a part of the code.
    pub fn step(self) -> Option<u16> {
        match self {
            Stride::Zero | Stride::Other | Stride::Again | Stride::Cycle => None,
            Stride::Unit => Some(1),
            Stride::Two => Some(2),
            Stride::Three => Some(3),
            Stride::Four => Some(4),
        }
    }

    /// Are elements of memory repeated, as [`Request::repeat`] says?
    pub fn repeats(self) -> bool {
        matches!(self, Stride::Again | Stride::Cycle)
    }

    /// Are elements of memory left out, a few each time?
    pub fn is_sparse(self) -> bool {
        self.step() > Some(1)
    }
}

/// All of them, by their codes.
const STRIDES: [Stride; 8] =
    [Stride::Zero, Stride::Unit, Stride::Other, Stride::Two, Stride::Three, Stride::Four, Stride::Again, Stride::Cycle];

/// The place of a slot that moves together with an earlier one, on which it lies: that one's position, `rows` of its
/// strides from row to row, and `distance` elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Near {
    /// The earlier slot. It has the same element type and the same strides, and a position of its own.
    pub slot: u16,
    /// Rows from there.
    pub rows: i8,
    /// Elements from there.
    pub distance: i16,
}

/// What the caches are to fetch while a slot is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fetch {
    /// Nothing: they have what the slot reads.
    Nothing,
    /// What lies a little further along the row.
    Along,
    /// What lies as far away as the call says, for somebody who reads it later.
    Beyond,
}

/// A slot as compiled code sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SlotForm {
    /// Element type.
    pub dtype: DType,
    /// How it is used.
    pub mode: SlotMode,
    /// How its elements lie.
    pub stride: Stride,
    /// Is what it writes to bypass the caches?
    pub streams: bool,
    /// What is fetched while it is read.
    pub fetch: Fetch,
    /// Where it lies in the memory of an earlier slot, if both have fixed places there. If not, it has a position of its
    /// own.
    pub near: Option<Near>,
}

/// Bytes of a row's elements that are at least to be divided by one number, for it to pay to prepare something of it.
pub const LONG_ROW: usize = 1024;

/// A kernel to compile.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// The instruction set.
    pub level: Level,
    /// The processor's divider.
    pub divider: Divider,
    /// May results differ from the block operations' by rounding?
    pub fast_math: bool,
    /// Must each row be complete before the next one begins? Else rows have nothing to do with each other, but for folds.
    pub in_order: bool,
    /// Are rows of less than [`LONG_ROW`] bytes divided by what stays the same along each?
    pub short: bool,
    /// How many elements slots repeat, or how often they do, a power of two; 0 if none does.
    pub repeat: u8,
    /// What reductions fold into.
    pub folds: Folds,
    /// The slots.
    pub slots: Vec<SlotForm>,
    /// The types of the constants.
    pub constants: Vec<DType>,
    /// The body.
    pub steps: Vec<Step>,
}

impl Request {
    /// The bytes that [`Request::decode`] reads; equal requests have equal bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer(Vec::with_capacity(64 + self.slots.len() * 8 + self.steps.len() * 24));
        writer.bytes([self.level as u8, self.divider as u8, u8::from(self.fast_math), self.folds as u8]);
        writer.bytes([u8::from(self.in_order), u8::from(self.short), self.repeat]);
        writer.word(self.slots.len() as u32);
        for slot in &self.slots {
            writer.bytes([
                slot.dtype as u8,
                slot.mode as u8,
                slot.stride as u8,
                u8::from(slot.streams),
                slot.fetch as u8,
            ]);
            let Near { slot, rows, distance } = slot.near.unwrap_or(Near { slot: u16::MAX, rows: 0, distance: 0 });
            writer.short(slot);
            writer.bytes([rows as u8]);
            writer.short(distance as u16);
        }
        writer.word(self.constants.len() as u32);
        self.constants.iter().for_each(|dtype| writer.bytes([*dtype as u8]));
        writer.word(self.steps.len() as u32);
        self.steps.iter().for_each(|step| writer.step(step));
        writer.0
    }

    /// Reads a request; `None` if the bytes are none, or name slots, constants or values that do not exist.
    pub fn decode(bytes: &[u8]) -> Option<Request> {
        let mut reader = Reader(bytes);
        let level = *[Level::Avx2, Level::Avx512].get(usize::from(reader.byte()?))?;
        let divider = *[Divider::Slow, Divider::Fast].get(usize::from(reader.byte()?))?;
        let fast_math = reader.byte()? != 0;
        let folds = [Folds::None, Folds::Lanes, Folds::Elements, Folds::Columns, Folds::Sets, Folds::Results];
        let folds = *folds.get(usize::from(reader.byte()?))?;
        let in_order = reader.byte()? != 0;
        let short = reader.byte()? != 0;
        let repeat = reader.byte()?;
        let mut slots: Vec<SlotForm> = Vec::new();
        for _ in 0..reader.word()? {
            let dtype = DType::from_code(reader.byte()?)?;
            let modes = [SlotMode::Read, SlotMode::Write, SlotMode::Result, SlotMode::Index];
            let mode = *modes.get(usize::from(reader.byte()?))?;
            let stride = *STRIDES.get(usize::from(reader.byte()?))?;
            let streams = reader.byte()? != 0;
            let fetch = *[Fetch::Nothing, Fetch::Along, Fetch::Beyond].get(usize::from(reader.byte()?))?;
            let near = Near {
                slot: reader.short()?,
                rows: i8::from_le_bytes(reader.take()?),
                distance: i16::from_le_bytes(reader.take()?),
            };
            let near = match slots.get(usize::from(near.slot)) {
                // A slot that lies near another one is no place to count from.
                Some(base) if base.near.is_some() || base.dtype != dtype => return None,
                Some(_) => Some(near),
                None if near.slot == u16::MAX => None,
                None => return None,
            };
            if stride.repeats() && !repeat.is_power_of_two() {
                return None;
            }
            slots.push(SlotForm { dtype, mode, stride, streams, fetch, near });
        }
        let mut constants = Vec::new();
        for _ in 0..reader.word()? {
            constants.push(DType::from_code(reader.byte()?)?);
        }
        let mut request =
            Request { level, divider, fast_math, in_order, short, repeat, folds, slots, constants, steps: Vec::new() };
        let mut values = 0u16;
        for _ in 0..reader.word()? {
            let step = reader.step()?;
            let known = |arg: &Arg| match *arg {
                Arg::Value(value) => value < values,
                Arg::Constant(constant) => usize::from(constant) < request.constants.len(),
            };
            let slot = match step {
                Step::Load { slot }
                | Step::Range { slot, .. }
                | Step::Random { slot, .. }
                | Step::Store { slot, .. }
                | Step::Reduce { slot, .. } => usize::from(slot),
                Step::Compute { .. } | Step::Gather { .. } => 0,
            };
            let needs_slot = !matches!(step, Step::Compute { .. } | Step::Gather { .. });
            if !step.args().iter().all(known) || (needs_slot && slot >= request.slots.len()) {
                return None;
            }
            if !matches!(step, Step::Store { .. } | Step::Reduce { .. }) {
                values += 1;
            }
            request.steps.push(step);
        }
        reader.0.is_empty().then_some(request)
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn bytes<const N: usize>(&mut self, bytes: [u8; N]) {
        self.0.extend(bytes);
    }

    fn short(&mut self, short: u16) {
        self.0.extend(short.to_le_bytes());
    }

    fn word(&mut self, word: u32) {
        self.0.extend(word.to_le_bytes());
    }

    fn arg(&mut self, arg: Arg) {
        match arg {
            Arg::Value(value) => (self.bytes([0]), self.short(value)),
            Arg::Constant(constant) => (self.bytes([1]), self.short(constant)),
        };
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Load { slot } => {
                self.bytes([0]);
                self.short(slot);
            }
            Step::Compute { opcode, param, input, output, args, count } => {
                self.bytes([1, input as u8, output as u8, count]);
                self.short(opcode.0);
                self.short(param);
                args[..usize::from(count)].iter().for_each(|arg| self.arg(*arg));
            }
            Step::Range { slot, output } => {
                self.bytes([2, output as u8]);
                self.short(slot);
            }
            Step::Random { slot, key, output } => {
                self.bytes([3, output as u8]);
                self.short(slot);
                self.arg(key);
            }
            Step::Gather { source, index, input, output } => {
                self.bytes([4, input as u8, output as u8]);
                self.short(source);
                self.arg(index);
            }
            Step::Store { slot, arg } => {
                self.bytes([5]);
                self.short(slot);
                self.arg(arg);
            }
            Step::Reduce { opcode, slot, arg } => {
                self.bytes([6]);
                self.short(opcode.0);
                self.short(slot);
                self.arg(arg);
            }
        }
    }
}

/// Reads what was written, and `None` where the bytes end.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn short(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    pub(crate) fn word(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn dtype(&mut self) -> Option<DType> {
        DType::from_code(self.byte()?)
    }

    fn arg(&mut self) -> Option<Arg> {
        Some(match self.byte()? {
            0 => Arg::Value(self.short()?),
            1 => Arg::Constant(self.short()?),
            _ => return None,
        })
    }

    fn step(&mut self) -> Option<Step> {
        Some(match self.byte()? {
            0 => Step::Load { slot: self.short()? },
            1 => {
                let (input, output, count) = (self.dtype()?, self.dtype()?, self.byte()?);
                let (opcode, param) = (Opcode(self.short()?), self.short()?);
                if !(1..=3).contains(&count) {
                    return None;
                }
                let mut args = [self.arg()?; 3];
                for at in 1..usize::from(count) {
                    args[at..].fill(self.arg()?);
                }
                Step::Compute { opcode, param, input, output, args, count }
            }
            2 => {
                let output = self.dtype()?;
                Step::Range { output, slot: self.short()? }
            }
            3 => {
                let output = self.dtype()?;
                Step::Random { output, slot: self.short()?, key: self.arg()? }
            }
            4 => {
                let (input, output) = (self.dtype()?, self.dtype()?);
                Step::Gather { input, output, source: self.short()?, index: self.arg()? }
            }
            5 => Step::Store { slot: self.short()?, arg: self.arg()? },
            6 => Step::Reduce { opcode: Opcode(self.short()?), slot: self.short()?, arg: self.arg()? },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Request {
        let slot = |mode, stride, near| SlotForm {
            dtype: DType::F64,
            mode,
            stride,
            streams: false,
            fetch: Fetch::Along,
            near,
        };
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
