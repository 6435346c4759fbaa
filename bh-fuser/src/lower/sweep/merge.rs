//! Values that several nests of a chain need of the same arrays: each of them gets a nest that makes its dear values once
//! (see `reuse`), and where two of these would compute some value both, one nest makes the values of both. It covers what
//! the two cover, so that at the edges a few values are made that nobody needs.

use super::Apart;
use super::chain::{Array, Chain, Nest};
use super::reuse::{self, DEAR, Grid};
use crate::lower::{Arg, BufferRef, Dim, Kernel, Parameters, Slot, SlotMode, Stage, Step};
use bh_bytecode::{BatchRef, DType, Opcode};

/// The nest of both has at most this part more iterations than the larger one.
const GROWTH: i64 = 8;

/// What a chain was, as far as nests that join change it.
pub(super) struct Snapshot {
    arrays: Vec<Array>,
    nests: Vec<Nest>,
    unit: i64,
    spared: u64,
}

impl Chain<'_> {
    pub(super) fn snapshot(&self) -> Snapshot {
        let (arrays, nests) = (self.arrays.clone(), self.nests.clone());
        Snapshot { arrays, nests, unit: self.unit, spared: self.spared }
    }

    pub(super) fn restore(&mut self, known: Snapshot) {
        Snapshot { arrays: self.arrays, nests: self.nests, unit: self.unit, spared: self.spared } = known;
    }

    /// The rows of an array.
    pub(super) fn grid(&self, array: u32) -> Grid {
        self.arrays
            .get(array as usize)
            .map_or(Grid { pitch: 1, len: 0 }, |array| Grid { pitch: array.pitch, len: array.len })
    }

    /// Takes in a nest that makes values for another one: as a part of an earlier one of this kind, or as a nest.
    pub(super) fn maker(&mut self, block: u32, stage: &Stage, fresh: &[(u32, u32)]) -> Result<(), Apart> {
        let arrays = self.slot_arrays(block, stage, fresh);
        for at in (0..self.nests.len()).rev() {
            if self.nests[at].arrays.iter().any(|array| arrays.contains(array))
                && self.makes_only(at)
                && self.merge(at, block, stage, &arrays)
            {
                return Ok(());
            }
            // What a nest writes cannot be read before it.
            if self.writes_any(at, &arrays) {
                break;
            }
        }
        self.place(block, stage, arrays)
    }

    /// Are all results of a nest there for other nests of the sweep only?
    fn makes_only(&self, nest: usize) -> bool {
        let Nest { stage, arrays, .. } = &self.nests[nest];
        let mut slots = stage.kernel.slots.iter().zip(arrays);
        slots.all(|(slot, &array)| slot.mode == SlotMode::Read || self.arrays[array as usize].reused)
    }

    fn writes_any(&self, nest: usize, arrays: &[u32]) -> bool {
        let Nest { stage, arrays: own, .. } = &self.nests[nest];
        let mut slots = stage.kernel.slots.iter().zip(own);
        slots.any(|(slot, array)| slot.mode != SlotMode::Read && arrays.contains(array))
    }

    /// Lets an earlier nest make the values of this one, too, if it computes some of them anyway.
    fn merge(&mut self, at: usize, block: u32, stage: &Stage, arrays: &[u32]) -> bool {
        let into = Part { stage: &self.nests[at].stage, arrays: &self.nests[at].arrays };
        let Some(merged) = merge(self, into, Part { stage, arrays }) else { return false };
        // What both read is read once.
        let common = arrays.iter().enumerate().filter(|(slot, array)| {
            stage.kernel.slots[*slot].mode == SlotMode::Read
                && !arrays[..*slot].contains(array)
                && into.arrays.contains(array)
        });
        let bytes = |array: u32| {
            let Grid { pitch, len } = self.grid(array);
            let rows = stage.parameters.extents[0].saturating_mul(pitch).min(len);
            rows as u64 * self.arrays[array as usize].dtype.size() as u64
        };
        let spared: u64 = common.map(|(_, &array)| bytes(array)).sum();
        let known = self.snapshot();
        self.spared += spared;
        let mut later = self.nests.split_off(at).into_iter();
        for array in &mut self.arrays {
            array.accesses.retain(|access| (access.nest as usize) < at);
        }
        let first = later.next().map_or(block, |nest| nest.block);
        let mut placed = self.place(first, &merged.stage, merged.arrays);
        for nest in later {
            placed = placed.and_then(|()| self.place(nest.block, &nest.stage, nest.arrays));
        }
        if placed.is_err() {
            self.restore(known);
            return false;
        }
        // What the nest was to make of a value that the other one keeps already.
        for (own, kept) in merged.same {
            self.current.values_mut().filter(|array| **array == own).for_each(|array| *array = kept);
        }
        true
    }
}

/// A nest, and the array of each slot.
#[derive(Clone, Copy)]
struct Part<'a> {
    stage: &'a Stage,
    arrays: &'a [u32],
}

impl Part<'_> {
    fn first_store(&self) -> Option<usize> {
        self.stage.kernel.slots.iter().position(|slot| slot.mode == SlotMode::Write)
    }

    fn is_plain(&self) -> bool {
        let plain = |step: &Step| matches!(step, Step::Load { .. } | Step::Compute { .. } | Step::Store { .. });
        self.stage.kernel.steps.iter().all(plain)
    }
}

struct Merged {
    stage: Stage,
    arrays: Vec<u32>,
    /// Arrays of the second nest that would hold what arrays of the first do.
    same: Vec<(u32, u32)>,
}

/// One nest that makes what two nests do, if they have a dear value in common.
fn merge(chain: &Chain<'_>, into: Part<'_>, other: Part<'_>) -> Option<Merged> {
    let (a, b) = (&into.stage.parameters, &other.stage.parameters);
    let (kept, own) = (into.first_store()?, other.first_store()?);
    if a.extents.len() != b.extents.len() || !into.is_plain() || !other.is_plain() {
        return None;
    }
    if a.stride(kept) != b.stride(own) || chain.grid(into.arrays[kept]).len != chain.grid(other.arrays[own]).len {
        return None;
    }
    // Where the second nest begins in the loops of the first one, and where both together do.
    let begin = reuse::distances(&a.extents, a.stride(kept), b.starts[own] - a.starts[kept])?;
    let first: Vec<i64> = begin.iter().map(|&begin| begin.min(0)).collect();
    let dims = 0..a.extents.len();
    let extents: Vec<i64> =
        dims.clone().map(|dim| a.extents[dim].max(begin[dim] + b.extents[dim]) - first[dim]).collect();
    let iterations: i64 = extents.iter().product();
    if (iterations - a.iterations().max(b.iterations())) * GROWTH > iterations {
        return None;
    }
    let mut union = Union::new(chain, extents);
    union.add(into, &first)?;
    let saved = union.add(other, &dims.map(|dim| first[dim] - begin[dim]).collect::<Vec<_>>())?;
    (saved >= DEAR).then(|| union.finish())
}

/// A value that two nests may have in common.
#[derive(PartialEq)]
enum Form {
    Load(u16),
    Compute { opcode: Opcode, param: u16, input: DType, output: DType, args: Vec<Arg> },
}

/// The nest that is made of two.
struct Union<'a> {
    chain: &'a Chain<'a>,
    stage: Stage,
    arrays: Vec<u32>,
    forms: Vec<Form>,
    stores: Vec<(Step, u32)>,
    same: Vec<(u32, u32)>,
}

impl<'a> Union<'a> {
    fn new(chain: &'a Chain<'a>, extents: Vec<i64>) -> Union<'a> {
        let kernel = Kernel { dims: vec![Dim::Kept; extents.len()], ..Kernel::default() };
        let stage = Stage { kernel, parameters: Parameters { extents, ..Parameters::default() } };
        Union { chain, stage, arrays: Vec::new(), forms: Vec::new(), stores: Vec::new(), same: Vec::new() }
    }

    /// Adds the steps of a nest whose loops begin `before` iterations away. Returns what the values cost that were there.
    fn add(&mut self, part: Part<'_>, before: &[i64]) -> Option<u32> {
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
                    let slot = self.slot(part, usize::from(slot), before)?;
                    step = Step::Load { slot };
                    Form::Load(slot)
                }
                _ => return None,
            };
            let known = self.forms.iter().position(|known| *known == form);
            if let (Some(_), Form::Compute { opcode, .. }) = (known, &form) {
                saved += reuse::cost(*opcode);
            }
            let value = known.unwrap_or_else(|| {
                self.forms.push(form);
                self.stage.kernel.steps.push(step);
                self.stage.parameters.instrs.push(instr);
                self.forms.len() - 1
            });
            values.push(Arg::Value(u16::try_from(value).ok()?));
        }
        Some(saved)
    }

    fn constant(&mut self, stage: &Stage, constant: u16) -> Arg {
        let batch: &BatchRef<'_> = self.chain.batch;
        let at = usize::from(constant);
        let (value, dtype) = (stage.parameters.constants[at], stage.kernel.constants[at]);
        let Stage { kernel, parameters } = &mut self.stage;
        let mut known = parameters.constants.iter().zip(&kernel.constants);
        let known = known.position(|(&other, &own)| reuse::are_equal(batch, (other, own), (value, dtype)));
        Arg::Constant(known.unwrap_or_else(|| {
            parameters.constants.push(value);
            kernel.constants.push(dtype);
            kernel.constants.len() - 1
        }) as u16)
    }

    /// A store, unless the value is kept at the same place already.
    fn store(&mut self, part: Part<'_>, slot: usize, before: &[i64], arg: Arg, instr: u32) -> Option<()> {
        let (strides, start) = moved(part, slot, before);
        let parameters = &self.stage.parameters;
        let there = |&(store, _): &(Step, u32)| match store {
            Step::Store { slot, arg: stored } => {
                let at = usize::from(slot);
                (stored == arg && parameters.stride(at) == strides && parameters.starts[at] == start).then_some(at)
            }
            _ => None,
        };
        let own = part.arrays[slot];
        if let Some(at) = self.stores.iter().find_map(there) {
            self.same.push((own, self.arrays[at]));
            return Some(());
        }
        if !self.chain.grid(own).holds(&parameters.extents, strides, start) {
            return None;
        }
        let slot = self.slot(part, slot, before)?;
        self.stores.push((Step::Store { slot, arg }, instr));
        Some(())
    }

    /// The slot of another nest's, moved; none if it would leave its array, or read what nobody writes.
    fn slot(&mut self, part: Part<'_>, slot: usize, before: &[i64]) -> Option<u16> {
        let (array, (strides, start)) = (part.arrays[slot], moved(part, slot, before));
        let Parameters { extents, .. } = &self.stage.parameters;
        let reach = |sign: i64| -> i64 {
            let ends = extents.iter().zip(strides).map(|(extent, stride)| stride * (extent - 1));
            ends.filter(|end| end * sign > 0).sum()
        };
        let known = self.chain.arrays.get(array as usize)?;
        let grows = part.stage.parameters.extents != *extents;
        // An array of which all that is read is written may live in a few rows.
        let lives_here = known.written && !known.fresh && !known.reused;
        if start + reach(-1) < 0 || start + reach(1) >= known.len || (grows && lives_here) {
            return None;
        }
        let parameters = &self.stage.parameters;
        let Slot { dtype, mode, inner, .. } = part.stage.kernel.slots[slot];
        let same = |&at: &usize| {
            self.arrays[at] == array && parameters.starts[at] == start && parameters.stride(at) == strides
        };
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

    fn finish(mut self) -> Merged {
        for (step, instr) in self.stores {
            self.stage.kernel.steps.push(step);
            self.stage.parameters.instrs.push(instr);
        }
        Merged { stage: self.stage, arrays: self.arrays, same: self.same }
    }
}

/// The strides of a slot, and where it begins if the loops begin so many iterations further.
fn moved<'a>(part: Part<'a>, slot: usize, before: &[i64]) -> (&'a [i64], i64) {
    let parameters = &part.stage.parameters;
    let strides = parameters.stride(slot);
    let distance: i64 = strides.iter().zip(before).map(|(stride, before)| stride * before).sum();
    (strides, parameters.starts[slot] + distance)
}
