//! How a kernel's steps become code: which are instructions, which are calls of block primitives, and which values go through
//! memory between them.
//!
//! Steps that are calls cut the body into *segments*. A segment is a loop over a block of elements, after it come calls on
//! the same block, then the next segment. Values that cross a cut lie in buffers. Most kernels are one segment.

mod cost;
mod divider;
#[cfg(test)]
mod tests;
mod vectorisation;

pub(crate) use divider::is_root;
pub(crate) use vectorisation::{Loop, Vectorisation};

use crate::arithmetic::Operation;
use crate::builder::Builder;
use crate::mathematics::is_inlined;
use bh_bytecode::{DType, Opcode};
use bh_jit_abi::{Function, Request, SCRATCH_BYTES, SlotForm, Stride};
use bh_kernel::{Arg, SlotMode, Step};
use inkwell::context::Context;

/// The most elements of a block.
const BLOCK: usize = 512;
/// The start of scratch memory, which slow paths use.
pub(crate) const SLOW_BYTES: usize = 1024;
/// Kernels with more steps are not compiled: the code generator takes about 0.3 ms for each step.
const STEPS: usize = 2000;
/// The most functions that are written out in one kernel; further ones are called.
const INLINED: usize = 12;

/// How a step is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Load, range, random number, store or fold: as the step says.
    Own,
    /// Vector instructions.
    Native,
    /// A mathematical function in instructions; the function of this number is its slow path.
    Inlined(u16),
    /// A call of the function of this number, on a block.
    Called(u16),
}

/// The plan of a kernel.
pub(crate) struct Plan {
    pub(crate) forms: Vec<Form>,
    /// The step that makes each value.
    pub(crate) made: Vec<usize>,
    /// The segment of each step; a call comes after its segment.
    pub(crate) segment: Vec<usize>,
    pub(crate) segments: usize,
    /// The buffers of values, of constants, and of slots that are written past the caches.
    pub(crate) value_buffers: Vec<Option<u16>>,
    pub(crate) constant_buffers: Vec<Option<u16>>,
    pub(crate) slot_buffers: Vec<Option<u16>>,
    /// Where in scratch memory each buffer begins.
    pub(crate) buffers: Vec<usize>,
    /// Elements of a block; 0 if there are no blocks.
    pub(crate) block: usize,
    pub(crate) functions: Vec<Option<Function>>,
    /// The slots that loops write past the caches directly; the others of this kind go through buffers.
    pub(crate) non_temporal: Vec<bool>,
    pub(crate) vectors: Vectorisation,
}

impl Plan {
    /// Plans a kernel; an error names the part that cannot be compiled.
    pub(crate) fn new(request: &Request) -> Result<Plan, String> {
        let steps = &request.steps;
        if steps.len() > STEPS {
            return Err(format!("{} operations are too many", steps.len()));
        }
        let made = (0..steps.len()).filter(|&at| !matches!(steps[at], Step::Store { .. } | Step::Reduce { .. }));
        let mut plan = Plan {
            forms: Vec::with_capacity(steps.len()),
            made: made.collect(),
            segment: vec![0; steps.len()],
            segments: 1,
            value_buffers: Vec::new(),
            constant_buffers: vec![None; request.constants.len()],
            slot_buffers: vec![None; request.slots.len()],
            buffers: Vec::new(),
            block: 0,
            functions: Vec::new(),
            non_temporal: vec![false; request.slots.len()],
            vectors: Vectorisation::default(),
        };
        plan.value_buffers = vec![None; plan.made.len()];
        // How long a step is can be seen when it is built.
        let context = Context::create();
        let probe = Builder::new(&context, "probe");
        plan.choose_forms(request, &probe)?;
        plan.cut(request);
        plan.choose_non_temporal(request);
        plan.place_buffers(request)?;
        plan.vectors = vectorisation::vectorise(request, &plan, &probe);
        Ok(plan)
    }

    fn choose_forms(&mut self, request: &Request, probe: &Builder) -> Result<(), String> {
        let mut inlined = 0;
        for step in &request.steps {
            let form = match *step {
                Step::Compute { opcode, param, input, output, .. } => {
                    let (level, fast_math) = (request.level, request.fast_math);
                    let operation = Operation { opcode, param, input, output, level, fast_math };
                    let function = Function { opcode, param, input, output };
                    if operation.instructions(probe).is_some() {
                        Form::Native
                    } else if is_inlined(opcode, input) && inlined < INLINED {
                        inlined += 1;
                        Form::Inlined(self.function(Some(function)))
                    } else {
                        Form::Called(self.function(Some(function)))
                    }
                }
                Step::Gather { .. } => return Err("a gather".into()),
                Step::Random { key: Arg::Value(_), .. } => return Err("a key that is an array".into()),
                _ => Form::Own,
            };
            self.forms.push(form);
        }
        Ok(())
    }

    /// The number of a function.
    fn function(&mut self, function: Option<Function>) -> u16 {
        let at = self.functions.iter().position(|known| *known == function).unwrap_or_else(|| {
            self.functions.push(function);
            self.functions.len() - 1
        });
        at as u16
    }

    /// Can the value be made anew in any segment?
    pub(crate) fn is_repeatable(&self, request: &Request, value: u16) -> bool {
        matches!(request.steps[self.made[usize::from(value)]], Step::Load { .. } | Step::Range { .. })
    }

    /// The slot whose memory can be the operand of a call.
    pub(crate) fn dense_load(&self, request: &Request, value: u16) -> Option<u16> {
        match request.steps[self.made[usize::from(value)]] {
            Step::Load { slot } if request.slots[usize::from(slot)].stride == Stride::Unit => Some(slot),
            _ => None,
        }
    }

    /// The widths of the loops' vectors.
    pub(crate) fn widths(&self) -> Vec<u16> {
        let mut widths: Vec<u16> = self.vectors.loops.iter().map(|each| each.width).collect();
        widths.dedup();
        widths
    }

    fn is_called(&self, step: usize) -> bool {
        matches!(self.forms[step], Form::Called(_))
    }

    /// Gives each step its segment.
    fn cut(&mut self, request: &Request) {
        for (index, step) in request.steps.iter().enumerate() {
            let available = |arg: &Arg| match *arg {
                Arg::Constant(_) => 0,
                Arg::Value(value) if self.is_repeatable(request, value) => 0,
                Arg::Value(value) => {
                    let made = self.made[usize::from(value)];
                    self.segment[made] + usize::from(self.is_called(made))
                }
            };
            self.segment[index] = step.args().iter().map(available).max().unwrap_or(0);
            self.segments = self.segments.max(self.segment[index] + 1 + usize::from(self.is_called(index)));
        }
        // All reads of memory come before all writes.
        for (index, step) in request.steps.iter().enumerate() {
            if matches!(step, Step::Store { .. } | Step::Reduce { .. }) {
                self.segment[index] = self.segments - 1;
            }
        }
    }

    /// Finds the slots that loops can write past the caches: their elements have 4, 8 or 16 bytes, and neighbouring vectors can be
    /// put together.
    fn choose_non_temporal(&mut self, request: &Request) {
        if !request.level.has_masks() || self.segments > 1 {
            return;
        }
        for (non_temporal, slot) in self.non_temporal.iter_mut().zip(&request.slots) {
            *non_temporal = is_non_temporal(slot) && unit(slot.dtype).is_some();
        }
    }

    /// Chooses the values, constants and slots that go through buffers.
    fn place_buffers(&mut self, request: &Request) -> Result<(), String> {
        let mut sizes = Vec::new();
        let mut buffer = |dtype: DType| {
            sizes.push(dtype.size());
            (sizes.len() - 1) as u16
        };
        for (index, step) in request.steps.iter().enumerate() {
            for arg in step.args() {
                match *arg {
                    Arg::Constant(constant) => {
                        let known = &mut self.constant_buffers[usize::from(constant)];
                        if matches!(self.forms[index], Form::Called(_)) && known.is_none() {
                            *known = Some(buffer(request.constants[usize::from(constant)]));
                        }
                    }
                    Arg::Value(value) => {
                        if self.is_buffered(request, index, value) && self.value_buffers[usize::from(value)].is_none() {
                            let dtype = request.steps[self.made[usize::from(value)]].output_in(request);
                            self.value_buffers[usize::from(value)] = Some(buffer(dtype));
                        }
                    }
                }
            }
        }
        // A call whose result nobody reads still writes it.
        for (value, &made) in self.made.iter().enumerate() {
            if self.is_called(made) && self.value_buffers[value].is_none() {
                self.value_buffers[value] = Some(buffer(request.steps[made].output_in(request)));
            }
        }
        // Loops that write past the caches go through whole rows, not blocks: shorter elements beside them are written plainly.
        let within_loops = self.non_temporal.contains(&true);
        for (index, slot) in request.slots.iter().enumerate() {
            if is_non_temporal(slot) && !within_loops {
                self.slot_buffers[index] = Some(buffer(slot.dtype));
            }
        }
        if sizes.is_empty() {
            return Ok(());
        }
        if self.slot_buffers.iter().any(Option::is_some) {
            self.function(None);
        }
        self.lay_out(&sizes)
    }

    /// Does a step read a value from a buffer?
    fn is_buffered(&self, request: &Request, step: usize, value: u16) -> bool {
        let made = self.made[usize::from(value)];
        if self.is_called(step) {
            return self.dense_load(request, value).is_none();
        }
        let crosses = self.segment[made] != self.segment[step] || self.is_called(made);
        crosses && !self.is_repeatable(request, value)
    }

    /// Places buffers for elements of these sizes in scratch memory, and chooses the block.
    fn lay_out(&mut self, sizes: &[usize]) -> Result<(), String> {
        let block = (SCRATCH_BYTES - SLOW_BYTES) / sizes.iter().sum::<usize>() / 64 * 64;
        if block == 0 {
            return Err("too many calls of functions".into());
        }
        self.block = block.min(BLOCK);
        let mut at = SLOW_BYTES;
        for size in sizes {
            self.buffers.push(at);
            at += size * self.block;
        }
        Ok(())
    }
}

/// Bits of the numbers that elements of a type are moved as, if they can go past the caches within loops.
pub(crate) fn unit(dtype: DType) -> Option<usize> {
    matches!(dtype.size(), 4 | 8 | 16).then_some(dtype.size().min(8) * 8)
}

/// Does the slot write past the caches?
fn is_non_temporal(slot: &SlotForm) -> bool {
    slot.non_temporal && slot.mode == SlotMode::Write && slot.stride == Stride::Unit
}

/// The type of the value that a step makes.
pub(crate) trait OutputIn {
    /// The type; that of the slot for steps without a value.
    fn output_in(&self, request: &Request) -> DType;
}

impl OutputIn for Step {
    fn output_in(&self, request: &Request) -> DType {
        match *self {
            Step::Load { slot } | Step::Store { slot, .. } | Step::Reduce { slot, .. } => {
                request.slots[usize::from(slot)].dtype
            }
            Step::Compute { output, .. }
            | Step::Range { output, .. }
            | Step::Random { output, .. }
            | Step::Gather { output, .. } => output,
        }
    }
}

/// The combining operation of a reduction.
pub(crate) fn combiner(opcode: Opcode) -> Result<Opcode, String> {
    opcode.combiner().ok_or_else(|| format!("{opcode} is no reduction"))
}
