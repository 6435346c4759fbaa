//! One nest in place of several that run in lock-step, each at its own iterations: it computes common values once, and passes
//! values from writes to later reads in registers.

use crate::{Arg, BufferRef, Dim, Kernel, Parameters, Slot, SlotMode, Stage, Step};
use bh_bytecode::{DType, Opcode};

/// A nest, and the array of each slot.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    pub(super) stage: &'a Stage,
    pub(super) arrays: &'a [u32],
}

impl Part<'_> {
    /// Does it load, compute and store only?
    pub(super) fn is_plain(&self) -> bool {
        let plain = |step: &Step| matches!(step, Step::Load { .. } | Step::Compute { .. } | Step::Store { .. });
        self.stage.kernel.steps.iter().all(plain)
    }
}

/// The form of a value; equal forms are one value.
#[derive(PartialEq)]
enum Form {
    Load(u16),
    Compute { opcode: Opcode, param: u16, input: DType, output: DType, args: Vec<Arg> },
}

/// A store of a part.
struct Stored {
    slot: u16,
    arg: Arg,
    instr: u32,
}

/// The nest that is made of several.
pub(super) struct Union {
    stage: Stage,
    arrays: Vec<u32>,
    /// The part, in order, and the slot there that each slot comes from.
    origins: Vec<(u32, u32)>,
    parts: u32,
    forms: Vec<Form>,
    stores: Vec<Stored>,
    spared: u32,
}

/// A finished union.
pub(super) struct United {
    pub(super) stage: Stage,
    pub(super) arrays: Vec<u32>,
    /// The part, in order, and the slot there that each slot comes from.
    pub(super) origins: Vec<(u32, u32)>,
    /// Reads that several parts have in common, or that find the value of an earlier write.
    pub(super) spared: u32,
}

impl Union {
    pub(super) fn new(extents: Vec<i64>) -> Union {
        let kernel = Kernel { dims: vec![Dim::Kept; extents.len()], ..Kernel::default() };
        let stage = Stage { kernel, parameters: Parameters { extents, ..Parameters::default() } };
        Union {
            stage,
            arrays: Vec::new(),
            origins: Vec::new(),
            parts: 0,
            forms: Vec::new(),
            stores: Vec::new(),
            spared: 0,
        }
    }

    /// Adds the steps of a nest whose loops begin `before` iterations away.
    pub(super) fn add(&mut self, part: Part<'_>, before: &[i64]) -> Option<()> {
        let Stage { kernel, parameters } = part.stage;
        let mut values: Vec<Arg> = Vec::new();
        for (step, &instr) in kernel.steps.iter().zip(&parameters.instrs) {
            let mut step = *step;
            for arg in step.args_mut() {
                *arg = match *arg {
                    Arg::Value(value) => values[usize::from(value)],
                    Arg::Constant(constant) => self.constant(part.stage, constant),
                };
            }
            let form = match step {
                Step::Store { slot, arg } => {
                    self.store(part, usize::from(slot), before, arg, instr)?;
                    continue;
                }
                Step::Compute { opcode, param, input, output, .. } => {
                    Form::Compute { opcode, param, input, output, args: step.args().to_vec() }
                }
                Step::Load { slot } => {
                    let slot = usize::from(slot);
                    let stored = self.stored(part, slot, before);
                    if let Some(at) = stored {
                        self.spared += 1;
                        values.push(self.stores[at].arg);
                        continue;
                    }
                    let slot = self.slot(part, slot, before)?;
                    step = Step::Load { slot };
                    Form::Load(slot)
                }
                _ => return None,
            };
            let known = self.forms.iter().position(|known| *known == form);
            if known.is_some() && matches!(form, Form::Load(_)) {
                self.spared += 1;
            }
            let value = known.unwrap_or_else(|| {
                self.forms.push(form);
                self.stage.kernel.steps.push(step);
                self.stage.parameters.instrs.push(instr);
                self.forms.len() - 1
            });
            values.push(Arg::Value(u16::try_from(value).ok()?));
        }
        self.parts += 1;
        Some(())
    }

    /// Has a slot of the union these strides, and does it begin there?
    fn is_at(&self, slot: usize, (strides, start): (&[i64], i64)) -> bool {
        let parameters = &self.stage.parameters;
        parameters.starts[slot] == start && parameters.stride(slot) == strides
    }

    /// Which of the stores of earlier parts goes where this slot is.
    fn stored(&self, part: Part<'_>, slot: usize, before: &[i64]) -> Option<usize> {
        let (array, place) = (part.arrays[slot], moved(part, slot, before));
        self.stores.iter().position(|stored| {
            let at = usize::from(stored.slot);
            self.arrays[at] == array && self.is_at(at, place)
        })
    }

    fn constant(&mut self, stage: &Stage, constant: u16) -> Arg {
        let at = usize::from(constant);
        let (value, dtype) = (stage.parameters.constants[at], stage.kernel.constants[at]);
        let Stage { kernel, parameters } = &mut self.stage;
        let mut known = parameters.constants.iter().zip(&kernel.constants);
        let known = known.position(|(&other, &own)| (other, own) == (value, dtype));
        Arg::Constant(known.unwrap_or_else(|| {
            parameters.constants.push(value);
            kernel.constants.push(dtype);
            kernel.constants.len() - 1
        }) as u16)
    }

    /// A store, in the place of an earlier one to the same element.
    fn store(&mut self, part: Part<'_>, slot: usize, before: &[i64], arg: Arg, instr: u32) -> Option<()> {
        if let Some(at) = self.stored(part, slot, before) {
            // No other nest has read it.
            self.stores[at] = Stored { arg, instr, ..self.stores[at] };
            return Some(());
        }
        let slot = self.slot(part, slot, before)?;
        self.stores.push(Stored { slot, arg, instr });
        Some(())
    }

    /// The slot of a part, moved.
    fn slot(&mut self, part: Part<'_>, slot: usize, before: &[i64]) -> Option<u16> {
        let (array, (strides, start)) = (part.arrays[slot], moved(part, slot, before));
        let Slot { dtype, mode, .. } = part.stage.kernel.slots[slot];
        let same = |&at: &usize| self.arrays[at] == array && self.is_at(at, (strides, start));
        let number = self.arrays.len();
        let same_as = (0..number).find(same).unwrap_or(number);
        if mode == SlotMode::Read && same_as < number {
            return Some(same_as as u16);
        }
        let buffer = self.buffer(array, part.stage.parameters.buffers[slot]);
        let Stage { kernel, parameters } = &mut self.stage;
        kernel.slots.push(Slot { dtype, mode, same_as: same_as as u16 });
        parameters.buffers.push(buffer);
        parameters.starts.push(start);
        parameters.strides.extend_from_slice(strides);
        self.arrays.push(array);
        self.origins.push((self.parts, slot as u32));
        u16::try_from(number).ok()
    }

    /// The name of an array in the nest: its own, unless another one has that, as temporaries of several blocks may.
    fn buffer(&self, array: u32, own: BufferRef) -> BufferRef {
        let buffers = &self.stage.parameters.buffers;
        if let Some(at) = self.arrays.iter().position(|&known| known == array) {
            return buffers[at];
        }
        let free = (0..=u16::MAX).map(BufferRef::Temporary).find(|name| !buffers.contains(name));
        if buffers.contains(&own) { free.unwrap_or(own) } else { own }
    }

    pub(super) fn finish(mut self) -> United {
        for Stored { slot, arg, instr } in self.stores {
            self.stage.kernel.steps.push(Step::Store { slot, arg });
            self.stage.parameters.instrs.push(instr);
        }
        let Union { stage, arrays, origins, spared, .. } = self;
        United { stage, arrays, origins, spared }
    }
}

/// The strides of a slot, and where it begins if each loop begins as many iterations further as `before` says.
fn moved<'a>(part: Part<'a>, slot: usize, before: &[i64]) -> (&'a [i64], i64) {
    let parameters = &part.stage.parameters;
    let strides = parameters.stride(slot);
    let distance: i64 = strides.iter().zip(before).map(|(stride, before)| stride * before).sum();
    (strides, parameters.starts[slot] + distance)
}
