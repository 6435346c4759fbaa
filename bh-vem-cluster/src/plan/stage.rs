//! What ranks do for a part of a program: first data moves, then local batches run.

use crate::plan::boxes::Span;
use crate::plan::methods;
use bh_bytecode::batch::Extension;
use bh_bytecode::{Base, Batch, BatchRef, Constant, Instr, Opcode, Operand, View};
use bh_core::abi::status;
use bh_core::error::{Error, Result};
use std::collections::HashMap;

/// Elements of an array of one rank.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The rank's own base.
    pub base: Base,
    /// Which of its elements.
    pub view: View,
}

impl Place {
    /// What the elements take in a message.
    pub fn bytes(&self) -> usize {
        self.view.len() as usize * self.base.dtype().size()
    }

    /// Elements in a row of a rank's base, whose window of the program's array this is.
    pub fn run(base: Base, span: Span, window: Span) -> Result<Place> {
        let part = View::new(span.low - window.low, &[span.len()], &[1]);
        part.map(|view| Place { base, view }).map_err(|error| Error::new(status::BATCH, error.0))
    }
}

/// Elements that move from one rank to another; the shapes of both places are equal.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// The rank that has them.
    pub from: usize,
    /// The rank that gets them.
    pub to: usize,
    /// Where they are.
    pub source: Place,
    /// Where they go.
    pub target: Place,
}

/// An operand of a local instruction.
#[derive(Clone, Copy, Debug)]
pub enum Local {
    /// As in the program: a constant.
    Same(Operand),
    /// A view without data.
    Index(View),
    /// Elements of a local base.
    Data(Place),
}

/// The instructions of one rank in one stage.
#[derive(Clone, Debug, Default)]
pub struct LocalBatch {
    /// Instructions on local bases. Constants, origins, names and methods are the program's.
    pub batch: Batch,
    /// For each instruction, that of the program that it is a part of.
    pub globals: Vec<u32>,
    /// Bases that are dropped, by index; known when the batch is complete.
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

    /// Appends an instruction like `like`, which is number `global` of the program, on other operands.
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

    /// Takes over what instructions refer to by index. Nothing can be appended afterwards.
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

    /// Is there nothing but data to drop?
    pub fn only_drops(&self) -> bool {
        self.batch.instrs.iter().all(|instr| instr.opcode == Opcode::Discard)
    }

    /// Takes the constants of another turn.
    pub fn renew(&mut self, constants: &[Constant]) {
        self.batch.constants.clear();
        self.batch.constants.extend_from_slice(constants);
        self.batch.header.seen = self.batch.header.seen.saturating_add(1);
    }

    /// About what it takes in memory.
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

/// One stage, as far as the ranks of this process take part.
#[derive(Clone, Debug, Default)]
pub struct Stage {
    /// What moves before the local batches run, in the order in which messages hold it.
    pub transfers: Vec<Transfer>,
    /// What the hosted ranks compute while it moves: local batches that need none of it.
    pub early: Vec<LocalBatch>,
    /// The local batches of the hosted ranks.
    pub local: Vec<LocalBatch>,
}

impl Stage {
    /// Makes the local batches ready to run.
    pub fn complete(&mut self, batch: &BatchRef<'_>) {
        let local = self.early.iter_mut().chain(&mut self.local);
        local.filter(|local| !local.batch.instrs.is_empty()).for_each(|local| local.complete(batch));
    }
}
