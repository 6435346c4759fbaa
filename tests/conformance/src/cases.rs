//! The cases of the conformance suite: every opcode, legal type and memory layout, each a program of one operation.

mod contract;
mod elementwise;
mod fold;
mod index;
mod layout;

use crate::data::{self, Values};
use bh_bytecode::interp::Memory;
use bh_bytecode::random::{Program, Rng};
use bh_bytecode::{Base, Batch, DType, Instr, Kind, Opcode, Operand, View, base_flags};
pub use layout::Layout;

/// One operation on prepared arrays.
pub struct Case {
    /// Opcode, types and layout, for messages.
    pub title: String,
    /// The memory layout of its operands.
    pub layout: Layout,
    /// The batch, whose first instruction is the operation, and its initial data.
    pub program: Program,
}

impl Case {
    /// The operation.
    pub fn instr(&self) -> &Instr {
        &self.program.batch.instrs[0]
    }
}

/// All cases of an opcode. Data management is part of every case and has no cases of its own.
pub fn cases(opcode: Opcode) -> Vec<Case> {
    match opcode.kind() {
        Kind::Elementwise => elementwise::cases(opcode),
        Kind::Reduction if opcode == Opcode::Contract => {
            fold::cases(opcode).into_iter().chain(contract::cases()).collect()
        }
        Kind::Reduction | Kind::Accumulate => fold::cases(opcode),
        Kind::Generator | Kind::Index => index::cases(opcode),
        Kind::System | Kind::Extension => Vec::new(),
    }
}

/// Reductions whose shapes and orders take different loops.
pub fn folds() -> Vec<Case> {
    fold::shaped()
}

/// Builds a case.
struct Builder {
    batch: Batch,
    memory: Memory,
    rng: Rng,
}

impl Builder {
    /// A builder whose data depends on the title only.
    fn new(title: &str) -> Builder {
        let seed = bh_bytecode::hash::hash_bytes(title.as_bytes()) as u64;
        Builder { batch: Batch::default(), memory: Memory::new(), rng: Rng::new(seed) }
    }

    /// A base with data.
    fn base(&mut self, dtype: DType, len: i64, values: Values) -> u32 {
        let index = self.bare_base(dtype, len, 0);
        let bytes = data::fill(&mut self.rng, dtype, len, values);
        self.memory.insert(self.batch.bases[index as usize].id, bytes);
        index
    }

    /// A base without data.
    fn bare_base(&mut self, dtype: DType, len: i64, flags: u32) -> u32 {
        let mut base = Base::new(self.batch.bases.len() as u64 + 1, dtype, len);
        base.flags = flags | base_flags::LIVE_OUT;
        self.batch.push_base(base)
    }

    /// An operand that is a view of a base.
    fn view(&mut self, base: u32, view: &View) -> Operand {
        Operand::view(self.batch.intern_view(base, view))
    }

    /// An input of a shape in a layout, on a new base; `place` is its number among the inputs.
    fn input(&mut self, dtype: DType, shape: &[i64], layout: Layout, place: usize, values: Values) -> Operand {
        if layout == Layout::Constant && place > 0 {
            let value = data::value(&mut self.rng, dtype, values);
            return Operand::constant(self.batch.push_constant(value));
        }
        let (len, view) = layout.input(shape, place);
        let base = self.base(dtype, len, values);
        self.hint(base, &view);
        self.view(base, &view)
    }

    /// An output: a new array if the view covers it, otherwise a view of an array with data, which must not change
    /// outside of the view.
    fn output(&mut self, dtype: DType, shape: &[i64], layout: Layout) -> Operand {
        let (len, view) = layout.output(shape);
        let base = if view.len() == len && layout != Layout::Negative {
            self.bare_base(dtype, len, base_flags::BORN)
        } else {
            self.base(dtype, len, Values::Tame)
        };
        self.hint(base, &view);
        self.view(base, &view)
    }

    /// Sets the base's row hint.
    fn hint(&mut self, base: u32, view: &View) {
        let rows = view.shape().iter().zip(view.stride()).find(|&(&extent, _)| extent > 1);
        self.batch.bases[base as usize].row_hint = rows.map_or(0, |(_, stride)| stride.abs());
    }

    /// The case, with this operation and a SYNC of its output.
    fn finish(mut self, title: String, layout: Layout, opcode: Opcode, param: u16, operands: &[Operand]) -> Case {
        let mut instr = Instr::new(opcode, operands);
        instr.param = param;
        self.batch.push_instr(instr);
        self.batch.push_instr(Instr::new(Opcode::Sync, &operands[..1]));
        Case { title, layout, program: Program { batch: self.batch, memory: self.memory } }
    }
}
