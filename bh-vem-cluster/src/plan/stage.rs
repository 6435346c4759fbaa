//! Stages: data moves first, then local batches run.

use crate::plan::boxes::Span;
use crate::plan::methods;
use bh_bytecode::batch::Extension;
use bh_bytecode::{Base, Batch, BatchRef, Constant, Instr, Opcode, Operand, View};
use bh_core::abi::status;
use bh_core::error::{Error, Result};
use std::collections::HashMap;

/// Elements of a rank's base.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The rank's own base.
    pub base: Base,
    /// The elements.
    pub view: View,
}

impl Place {
    /// Bytes of the elements in a message.
    pub fn bytes(&self) -> usize {
        self.view.len() as usize * self.base.dtype().size()
    }

    /// The contiguous elements of a span; the base covers `window` of the program's array.
    pub fn run(base: Base, span: Span, window: Span) -> Result<Place> {
        let part = View::new(span.low - window.low, &[span.len()], &[1]);
        part.map(|view| Place { base, view }).map_err(|error| Error::new(status::BATCH, error.0))
    }
}

/// Elements that move from one rank to another. Source and target have equal shapes.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// The sender.
    pub from: usize,
    /// The receiver.
    pub to: usize,
    /// The elements on the sender.
    pub source: Place,
    /// Their place on the receiver.
    pub target: Place,
}

/// An operand of a local instruction.
#[derive(Clone, Copy, Debug)]
pub enum Local {
    /// The program's operand, a constant.
    Same(Operand),
    /// A view without data.
    Index(View),
    /// Elements of a local base.
    Data(Place),
}

/// The instructions of one rank in one stage.
#[derive(Clone, Debug, Default)]
pub struct LocalBatch {
    /// Instructions on local bases. The program provides constants, origins, names and methods.
    pub batch: Batch,
    /// The number of the program's instruction behind each instruction; `u32::MAX` if there is none.
    pub globals: Vec<u32>,
    /// Which bases are dropped, by index; set by [`LocalBatch::complete`].
    pub dropped: Vec<bool>,
    index: HashMap<u64, u32>,
    views: HashMap<(u32, View), u32>,
}

impl LocalBatch {
    fn operand(&mut self, operand: &Local) -> Operand {
        let (base, view) = match operand {
            Local::Same(operand) => return *operand,
            Local::Index(view) => (bh_bytecode::batch::NO_BASE, view),
            Local::Data(place) => {
                let known = self.index.entry(place.base.id);
                (*known.or_insert_with(|| self.batch.push_base(place.base)), &place.view)
            }
        };
        let view = view.canonical();
        let batch = &mut self.batch;
        Operand::view(*self.views.entry((base, view)).or_insert_with(|| batch.push_view(base, &view)))
    }

    /// Appends a copy of `like`, instruction `global` of the program, with other operands.
    pub fn push(&mut self, like: &Instr, global: u32, operands: &[Local]) {
        let mut instr = *like;
        for (place, operand) in operands.iter().enumerate() {
            instr.operands[place] = self.operand(operand);
        }
        self.batch.push_instr(instr);
        self.globals.push(global);
    }

    /// Appends data management of a local base.
    pub fn push_system(&mut self, opcode: Opcode, base: &Base) {
        let whole = View::contiguous(&[base.len]).unwrap_or_default();
        let operand = self.operand(&Local::Data(Place { base: *base, view: whole }));
        self.batch.push_instr(Instr::new(opcode, &[operand]));
        self.globals.push(u32::MAX);
    }

    /// Copies the tables that instructions refer to. Nothing can be appended afterwards.
    pub fn complete(&mut self, program: &BatchRef<'_>) {
        (self.index, self.views) = Default::default();
        self.dropped = vec![false; self.batch.bases.len()];
        for instr in self.batch.instrs.iter().filter(|instr| instr.opcode == Opcode::Discard) {
            if let Some(view) = instr.operands()[0].as_view() {
                self.dropped[self.batch.views[view as usize].base as usize] = true;
            }
        }
        self.batch.constants = program.constants.to_vec();
        self.batch.origins = program.origins.to_vec();
        self.batch.extensions = program.extensions.to_vec();
        self.batch.strings = program.strings.to_vec();
        for (opcode, name) in methods::ALL {
            if self.batch.instrs.iter().any(|instr| instr.opcode == opcode) {
                let (name, name_len) = self.batch.push_string(name);
                self.batch.extensions.push(Extension { opcode, reserved: 0, name, name_len });
            }
        }
        self.batch.attributes = program.attributes.to_vec();
    }

    /// Are all instructions DISCARDs?
    pub fn only_drops(&self) -> bool {
        self.batch.instrs.iter().all(|instr| instr.opcode == Opcode::Discard)
    }

    /// Takes the constants of another run.
    pub fn renew(&mut self, constants: &[Constant]) {
        self.batch.constants.clear();
        self.batch.constants.extend_from_slice(constants);
        self.batch.header.seen = self.batch.header.seen.saturating_add(1);
    }

    /// Approximate bytes of memory.
    pub fn bytes(&self) -> usize {
        let batch = &self.batch;
        size_of::<LocalBatch>()
            + size_of_val(&batch.bases[..])
            + size_of_val(&batch.views[..])
            + size_of_val(&batch.dims[..])
            + size_of_val(&batch.instrs[..])
            + size_of_val(&batch.origins[..])
            + 24 * batch.instrs.len()
            + batch.strings.len()
    }
}

/// One stage, limited to the ranks of this process.
#[derive(Clone, Debug, Default)]
pub struct Stage {
    /// The transfers before the local batches run, in the order of their elements in messages.
    pub transfers: Vec<Transfer>,
    /// Local batches that run during the transfers, because they need none of the elements.
    pub early: Vec<LocalBatch>,
    /// The local batches of the hosted ranks.
    pub local: Vec<LocalBatch>,
}

impl Stage {
    /// Completes the local batches.
    pub fn complete(&mut self, batch: &BatchRef<'_>) {
        let local = self.early.iter_mut().chain(&mut self.local);
        local.filter(|local| !local.batch.instrs.is_empty()).for_each(|local| local.complete(batch));
    }
}
