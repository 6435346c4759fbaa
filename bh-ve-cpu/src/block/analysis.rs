//! The facts about a stage before registers are numbered: how its slots are accessed, where each value lives, and
//! which steps become one primitive.

use super::TileMemory;
use crate::primitives::{LanesFn, PrimFn, Primitives, SumFn};
use bh_bytecode::{DType, Opcode};
use bh_kernel::schedule::Schedule;
use bh_kernel::{Arg, BufferRef, Slot, SlotMode, Stage, Step};
use std::collections::HashSet;

/// Where a value is before registers are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueHome {
    /// In a slot's memory.
    Slot(u16),
    /// In a register.
    Register,
    /// Nowhere: it is made inside the primitive that uses it.
    Nowhere,
}

/// How a slot can be accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// A block is a dense run of memory.
    Direct,
    /// Every block of a line has the same elements.
    Invariant,
    /// Through a strided copy.
    Strided,
}

/// A value of the body.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value {
    pub(super) home: ValueHome,
    pub(super) dtype: DType,
    /// The step that makes it.
    pub(super) made: usize,
    /// The last step that uses it.
    pub(super) last: usize,
    /// How many steps use it, each operand counted.
    pub(super) uses: usize,
    /// Is it used as a block, and not only as a single element?
    pub(super) block: bool,
}

/// How a step is carried out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    /// The primitive, if it is not the step's own.
    pub(super) run: Option<PrimFn>,
    /// The fold into lanes of the value made of the operands, if the step is that of a reduction.
    pub(super) lanes: Option<LanesFn>,
    /// The operands.
    pub(super) args: [Arg; 3],
    /// How many of them count.
    pub(super) count: usize,
    /// The operand that is a single element.
    pub(super) scalar: Option<usize>,
    /// The sum, if the step is one of many blocks.
    pub(super) sum: Option<SumFn>,
    /// Its terms: a part of [`Analysis::terms`]. The only operand besides is a single element, if any.
    pub(super) terms: (usize, usize),
}
/// The analysis of a stage.
pub(super) struct Analysis<'a> {
    pub(super) stage: &'a Stage,
    pub(super) schedule: Schedule,
    pub(super) values: Vec<Value>,
    pub(super) forms: Vec<Form>,
    /// Terms of sums.
    pub(super) terms: Vec<Arg>,
    /// Must each constant be splat over a block?
    pub(super) splat: Vec<bool>,
    /// The slots whose memory is used again while the caches have it.
    resident: &'a [bool],
    /// Outputs of at least this many bytes bypass the caches.
    non_temporal_bytes: u64,
    /// Bytes that all slots touch, each buffer counted once, and the buffers that are read.
    touched: u64,
    read: HashSet<BufferRef>,
}
impl<'a> Analysis<'a> {
    /// Analyses a stage. Slots that are `resident` are never written past the caches.
    pub(super) fn new(stage: &'a Stage, memory: TileMemory<'a>, primitives: Primitives) -> Analysis<'a> {
        let schedule = Schedule::new(stage, memory.in_tile);
        let resident = memory.resident;
        let splat = vec![false; stage.kernel.constants.len()];
        let (values, forms, terms) = (Vec::new(), Vec::new(), Vec::new());
        let non_temporal_bytes = primitives.stream_bytes;
        let (touched, read) = touched(stage);
        let mut analysis =
            Analysis { stage, schedule, values, forms, terms, splat, resident, non_temporal_bytes, touched, read };
        analysis.collect();
        if primitives.superinstructions {
            analysis.sum(primitives);
            analysis.sum_squares(primitives);
            analysis.fuse(primitives);
            analysis.fuse_folds(primitives);
        }
        analysis.find_scalars(primitives);
        analysis.count_uses();
        analysis.place_loads();
        analysis.materialise_swapped();
        analysis.store_directly();
        analysis
    }

    pub(super) fn slots(&self) -> &'a [Slot] {
        &self.stage.kernel.slots
    }

    pub(super) fn steps(&self) -> &'a [Step] {
        &self.stage.kernel.steps
    }

    pub(super) fn access(&self, slot: u16) -> Access {
        let strides = self.stage.parameters.stride(slot as usize);
        let lines = self.schedule.lines();
        let line = strides[lines.dim];
        match (line, lines.row_dim().map(|row| strides[row])) {
            (_, None) if lines.steps == 1 => Access::Direct,
            (0, _) => Access::Invariant,
            (1, None) => Access::Direct,
            (_, Some(1)) if line == lines.row => Access::Direct,
            _ => Access::Strided,
        }
    }

    /// Is what the slot writes, or all that the kernel touches, so much that it should bypass the caches? Not if the kernel
    /// reads the same buffer.
    pub(super) fn is_non_temporal(&self, slot: u16) -> bool {
        let parameters = &self.stage.parameters;
        let buffer = parameters.buffers[slot as usize];
        (bytes_of(self.stage, slot.into()) >= self.non_temporal_bytes
            || self.touched >= self.non_temporal_bytes.saturating_mul(2))
            && !self.resident.get(slot as usize).is_some_and(|&resident| resident)
            && self.access(slot) == Access::Direct
            && !self.read.contains(&buffer)
            && parameters.gathers.iter().all(|source| source.buffer != buffer)
    }

    /// Lists values and forms as the steps have them.
    fn collect(&mut self) {
        for (index, step) in self.steps().iter().enumerate() {
            let mut args = [Arg::Constant(0); 3];
            args.iter_mut().zip(step.args()).for_each(|(to, from)| *to = *from);
            let count = step.args().len();
            self.forms.push(Form { run: None, lanes: None, args, count, scalar: None, sum: None, terms: (0, 0) });
            if let Some(dtype) = step.output(self.slots()) {
                let value = Value { home: ValueHome::Register, dtype, made: index, last: index, uses: 0, block: false };
                self.values.push(value);
            }
        }
        self.count_uses();
    }

    pub(super) fn count_uses(&mut self) {
        for value in &mut self.values {
            (value.last, value.uses, value.block) = (value.made, 0, false);
        }
        self.splat.fill(false);
        for (index, form) in self.forms.iter().enumerate() {
            let operands = form.args[..form.count].iter().enumerate().map(|(at, arg)| (form.scalar != Some(at), arg));
            let terms = self.terms[form.terms.0..form.terms.1].iter().map(|arg| (true, arg));
            for (block, arg) in operands.chain(terms) {
                match *arg {
                    Arg::Value(value) => {
                        let value = &mut self.values[value as usize];
                        value.last = index;
                        value.uses += 1;
                        value.block |= block;
                    }
                    Arg::Constant(constant) => self.splat[constant as usize] |= block,
                }
            }
        }
    }

    /// The inputs of a step in the form that it has.
    pub(super) fn inputs(&self, index: usize) -> impl Iterator<Item = Arg> {
        let form = &self.forms[index];
        form.args[..form.count].iter().chain(self.terms(index)).copied()
    }

    /// The terms of a step that is a sum of many blocks.
    pub(super) fn terms(&self, index: usize) -> &[Arg] {
        let (first, end) = self.forms[index].terms;
        &self.terms[first..end]
    }

    /// Leaves out a step whose work another one does.
    pub(super) fn drop_step(&mut self, index: usize) {
        (self.forms[index].count, self.forms[index].terms) = (0, (0, 0));
        // Values are in the order of the steps that make them.
        if let Ok(at) = self.values.binary_search_by_key(&index, |value| value.made) {
            self.values[at].home = ValueHome::Nowhere;
        }
    }

    /// Is a step with operands still a primitive of its own?
    pub(super) fn is_plain(&self, step: usize) -> bool {
        let Form { run, count, terms, .. } = self.forms[step];
        run.is_none() && count > 0 && terms.0 == terms.1
    }

    /// The step that makes a value, if that has one use.
    pub(super) fn sole(&self, arg: Arg) -> Option<usize> {
        let Arg::Value(value) = arg else { return None };
        let Value { made, uses, .. } = self.values[value as usize];
        (uses == 1).then_some(made)
    }

    /// The step that makes a value, if it has this opcode, is still a plain one, and the value has one use.
    pub(super) fn only_use(&self, arg: Arg, wanted: Opcode) -> Option<usize> {
        let made = self.sole(arg)?;
        match self.steps()[made] {
            Step::Compute { opcode, .. } if opcode == wanted && self.forms[made].count == 2 => Some(made),
            _ => None,
        }
    }

    pub(super) fn is_scalar(&self, arg: Arg) -> bool {
        match arg {
            Arg::Constant(_) => true,
            Arg::Value(value) => match self.steps()[self.values[value as usize].made] {
                Step::Load { slot } => {
                    self.schedule.lines().row_dim().is_none() && self.access(slot) == Access::Invariant
                }
                _ => false,
            },
        }
    }
}

/// Bytes that all slots touch, each buffer counted once, and the buffers that are read.
fn touched(stage: &Stage) -> (u64, HashSet<BufferRef>) {
    let (mut known, mut read) = (HashSet::new(), HashSet::new());
    let mut total = 0;
    for (at, (slot, &buffer)) in stage.kernel.slots.iter().zip(&stage.parameters.buffers).enumerate() {
        if known.insert(buffer) && matches!(slot.mode, SlotMode::Read | SlotMode::Write) {
            total += bytes_of(stage, at);
        }
        if slot.mode == SlotMode::Read {
            read.insert(buffer);
        }
    }
    (total, read)
}

/// Bytes that a slot touches.
fn bytes_of(stage: &Stage, slot: usize) -> u64 {
    let parameters = &stage.parameters;
    let moves = |(&extent, &stride): (&i64, &i64)| if stride == 0 { 1 } else { extent };
    let elements: i64 = parameters.extents.iter().zip(parameters.stride(slot)).map(moves).product();
    elements as u64 * stage.kernel.slots[slot].dtype.size() as u64
}
