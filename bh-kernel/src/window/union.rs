//! One nest that does what several do, iteration by iteration: what they have in common it does once.

use super::chain::Chain;
use super::reuse;
use crate::{Arg, BufferRef, Dim, Kernel, Parameters, Slot, SlotMode, Stage, Step};
use bh_bytecode::{DType, Opcode};

/// What the nests are to each other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Each makes values for others. All of them go through the loops of the union, which may be more than their own, so
    /// that each slot must stay in its array; and a value that two of them keep at one place is kept once.
    Makers,
    /// They run in lock-step, at their own iterations. What one writes, a later one has at once.
    LockStep,
}

/// A nest, and the array of each slot.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    pub(super) stage: &'a Stage,
    pub(super) arrays: &'a [u32],
}

impl Part<'_> {
    pub(super) fn first_store(&self) -> Option<usize> {
        self.stage.kernel.slots.iter().position(|slot| slot.mode == SlotMode::Write)
    }

    /// Does it load, compute and store only?
    pub(super) fn is_plain(&self) -> bool {
        let plain = |step: &Step| matches!(step, Step::Load { .. } | Step::Compute { .. } | Step::Store { .. });
        self.stage.kernel.steps.iter().all(plain)
    }
}

/// A value that two nests may have in common.
#[derive(PartialEq)]
enum Form {
    Load(u16),
    Compute { opcode: Opcode, param: u16, input: DType, output: DType, args: Vec<Arg> },
}

/// What a part stores.
struct Stored {
    slot: u16,
    arg: Arg,
    instr: u32,
}

/// The nest that is made of several.
pub(super) struct Union<'a> {
    chain: &'a Chain<'a>,
    kind: Kind,
    stage: Stage,
    arrays: Vec<u32>,
    /// The part, in order, and the slot there that each slot comes from.
    origins: Vec<(u32, u32)>,
    parts: u32,
    forms: Vec<Form>,
    stores: Vec<Stored>,
    same: Vec<(u32, u32)>,
    spared: u32,
}

/// A finished union.
pub(super) struct United {
    pub(super) stage: Stage,
    pub(super) arrays: Vec<u32>,
    /// The part, in order, and the slot there that each slot comes from.
    pub(super) origins: Vec<(u32, u32)>,
    /// Arrays that would hold what others do.
    pub(super) same: Vec<(u32, u32)>,
    /// Reads that the parts have in common, or of what another one writes.
    pub(super) spared: u32,
}

impl<'a> Union<'a> {
    pub(super) fn new(chain: &'a Chain<'a>, kind: Kind, extents: Vec<i64>) -> Union<'a> {
        let kernel = Kernel { dims: vec![Dim::Kept; extents.len()], ..Kernel::default() };
        let stage = Stage { kernel, parameters: Parameters { extents, ..Parameters::default() } };
        Union {
            chain,
            kind,
            stage,
            arrays: Vec::new(),
            origins: Vec::new(),
            parts: 0,
            forms: Vec::new(),
            stores: Vec::new(),
            same: Vec::new(),
            spared: 0,
        }
    }

    /// Adds the steps of a nest whose loops begin `before` iterations away. Returns what the values cost that were there.
    pub(super) fn add(&mut self, part: Part<'_>, before: &[i64]) -> Option<u32> {
        let Stage { kernel, parameters } = part.stage;
        let mut values: Vec<Arg> = Vec::new();
        let mut saved = 0;
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
                    let stored = self.stored(part, slot, before).filter(|_| self.kind == Kind::LockStep);
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
            match (known, &form) {
                (Some(_), Form::Compute { opcode, .. }) => saved += reuse::cost(*opcode),
                (Some(_), Form::Load(_)) => self.spared += 1,
                (None, _) => {}
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
        Some(saved)
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

    /// A store, unless the value is kept at the same place already.
    fn store(&mut self, part: Part<'_>, slot: usize, before: &[i64], arg: Arg, instr: u32) -> Option<()> {
        match self.kind {
            Kind::Makers => {
                let (own, place) = (part.arrays[slot], moved(part, slot, before));
                let kept = |stored: &&Stored| stored.arg == arg && self.is_at(stored.slot.into(), place);
                if let Some(kept) = self.stores.iter().find(kept) {
                    self.same.push((own, self.arrays[usize::from(kept.slot)]));
                    return Some(());
                }
                if !self.chain.grid(own).holds(&self.stage.parameters.extents, place.0, place.1) {
                    return None;
                }
            }
            Kind::LockStep => {
                if let Some(at) = self.stored(part, slot, before) {
                    // Nobody else has seen it.
                    self.stores[at] = Stored { arg, instr, ..self.stores[at] };
                    return Some(());
                }
            }
        }
        let slot = self.slot(part, slot, before)?;
        self.stores.push(Stored { slot, arg, instr });
        Some(())
    }

    /// Can the loops of the union go through the slot? Not if it would leave its array, or read what nobody writes.
    fn stays(&self, part: Part<'_>, slot: usize, before: &[i64]) -> bool {
        let (array, (strides, start)) = (part.arrays[slot], moved(part, slot, before));
        let Parameters { extents, .. } = &self.stage.parameters;
        let reach = |sign: i64| -> i64 {
            let ends = extents.iter().zip(strides).map(|(extent, stride)| stride * (extent - 1));
            ends.filter(|end| end * sign > 0).sum()
        };
        let Some(known) = self.chain.arrays.get(array as usize) else { return false };
        let grows = part.stage.parameters.extents != *extents;
        // An array of which all that is read is written may live in a few rows.
        let lives_here = known.written && !known.fresh && !known.reused;
        start + reach(-1) >= 0 && start + reach(1) < known.len && !(grows && lives_here)
    }

    /// The slot of a part, moved.
    fn slot(&mut self, part: Part<'_>, slot: usize, before: &[i64]) -> Option<u16> {
        if self.kind == Kind::Makers && !self.stays(part, slot, before) {
            return None;
        }
        let (array, (strides, start)) = (part.arrays[slot], moved(part, slot, before));
        let Slot { dtype, mode, inner, .. } = part.stage.kernel.slots[slot];
        let same = |&at: &usize| self.arrays[at] == array && self.is_at(at, (strides, start));
        let number = self.arrays.len();
        let same_as = (0..number).find(same).unwrap_or(number);
        if mode == SlotMode::Read && same_as < number {
            return Some(same_as as u16);
        }
        let buffer = self.buffer(array, part.stage.parameters.buffers[slot]);
        let Stage { kernel, parameters } = &mut self.stage;
        kernel.slots.push(Slot { dtype, mode, inner, same_as: same_as as u16 });
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
        let Union { stage, arrays, origins, same, spared, .. } = self;
        United { stage, arrays, origins, same, spared }
    }
}

/// The strides of a slot, and where it begins if the loops begin so many iterations further.
fn moved<'a>(part: Part<'a>, slot: usize, before: &[i64]) -> (&'a [i64], i64) {
    let parameters = &part.stage.parameters;
    let strides = parameters.stride(slot);
    let distance: i64 = strides.iter().zip(before).map(|(stride, before)| stride * before).sum();
    (strides, parameters.starts[slot] + distance)
}
