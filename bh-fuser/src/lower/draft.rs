//! A stage under construction: values, slots and constants as they are met, and the nest at the end.

use super::kernel::{
    Arg, BufferRef, ConstantRef, GatherSource, Kernel, Parameters, Slot, SlotMode, Stage, Step, StrideClass,
};
use super::nest::{self, Access, Nest};
use bh_bytecode::DType;
use std::collections::HashMap;

/// A stage under construction.
#[derive(Default)]
pub(super) struct Draft<'a> {
    pub(super) slots: Vec<(Slot, BufferRef, Access)>,
    pub(super) steps: Vec<Step>,
    pub(super) instrs: Vec<u32>,
    values: u16,
    pub(super) constants: Vec<(DType, ConstantRef)>,
    /// The values of the computations so far.
    computed: HashMap<Step, Arg>,
    pub(super) gathers: Vec<GatherSource>,
    /// What each view holds at this point of the block.
    pub(super) current: Vec<(u32, Arg)>,
    /// What must be written at the end: view, value, instruction.
    pub(super) stores: Vec<(u32, Arg, u32)>,
    /// Strides of the sources of the first reduction.
    pub(super) folded: Option<Vec<&'a [i64]>>,
}

impl Draft<'_> {
    pub(super) fn value(&mut self, step: Step, instr: u32) -> Arg {
        self.steps.push(step);
        self.instrs.push(instr);
        self.values += 1;
        Arg::Value(self.values - 1)
    }

    /// The value of a computation: what the same one gave before, if there was one. The arrays between two statements that
    /// compute the same may be gone by then, so that a filter cannot find them.
    pub(super) fn computed(&mut self, step: Step, instr: u32) -> Arg {
        if let Some(&known) = self.computed.get(&step) {
            return known;
        }
        let value = self.value(step, instr);
        self.computed.insert(step, value);
        value
    }

    pub(super) fn constant(&mut self, dtype: DType, constant: ConstantRef) -> Arg {
        let at = self.constants.iter().position(|known| *known == (dtype, constant)).unwrap_or_else(|| {
            self.constants.push((dtype, constant));
            self.constants.len() - 1
        });
        Arg::Constant(at as u16)
    }

    pub(super) fn slot(&mut self, dtype: DType, mode: SlotMode, buffer: BufferRef, access: Access) -> u16 {
        let slot = Slot { dtype, mode, inner: StrideClass::Other, same_as: 0 };
        self.slots.push((slot, buffer, access));
        (self.slots.len() - 1) as u16
    }

    pub(super) fn set(&mut self, view: u32, arg: Arg) {
        match self.current.iter_mut().find(|(known, _)| *known == view) {
            Some(entry) => entry.1 = arg,
            None => self.current.push((view, arg)),
        }
    }

    /// Orders and merges the nest, and closes the stage.
    pub(super) fn finish(self, shape: &[i64], reduced: u16) -> Stage {
        let (slots, mut rest): (Vec<_>, Vec<_>) =
            self.slots.into_iter().map(|(slot, buffer, access)| ((slot, buffer), access)).unzip();
        let Nest { extents, dims, folded, columns } = nest::build(shape, reduced, self.folded.as_deref(), &mut rest);
        let rank = extents.len();
        let mut kernel = Kernel { dims, steps: self.steps, ..Kernel::default() };
        let mut parameters = Parameters {
            extents,
            folded,
            columns,
            gathers: self.gathers,
            instrs: self.instrs,
            ..Parameters::default()
        };
        for (index, ((mut slot, buffer), access)) in slots.into_iter().zip(rest).enumerate() {
            slot.inner = match access.strides[rank - 1] {
                _ if parameters.extents[rank - 1] == 1 && slot.mode != SlotMode::Index => StrideClass::Unit,
                0 => StrideClass::Zero,
                1 => StrideClass::Unit,
                _ => StrideClass::Other,
            };
            let same = |other: usize| {
                parameters.buffers[other] == buffer
                    && buffer != BufferRef::None
                    && parameters.starts[other] == access.start
                    && parameters.strides[other * rank..][..rank] == access.strides
            };
            slot.same_as = (0..index).find(|&other| same(other)).unwrap_or(index) as u16;
            kernel.slots.push(slot);
            parameters.buffers.push(buffer);
            parameters.starts.push(access.start);
            parameters.strides.extend_from_slice(&access.strides);
        }
        for (dtype, constant) in self.constants {
            kernel.constants.push(dtype);
            parameters.constants.push(constant);
        }
        Stage { kernel, parameters }
    }

    /// Drops steps whose values nobody uses, and renumbers values and slots.
    pub(super) fn remove_unused(&mut self) {
        let makes_value = |step: &Step| !matches!(step, Step::Store { .. } | Step::Reduce { .. });
        let mut used = vec![false; self.values as usize];
        let mut value = self.values as usize;
        for step in self.steps.iter().rev() {
            // Gathers may fail, and a failure must be reported.
            let needed = if makes_value(step) {
                value -= 1;
                let needed = used[value] || matches!(step, Step::Gather { .. });
                used[value] = needed;
                needed
            } else {
                true
            };
            if needed {
                for arg in step.args() {
                    if let Arg::Value(value) = arg {
                        used[*value as usize] = true;
                    }
                }
            }
        }
        if used.iter().all(|&used| used) {
            return;
        }
        let mut values = vec![0u16; used.len()];
        let mut next = 0;
        for (number, &used) in values.iter_mut().zip(&used) {
            *number = next;
            next += u16::from(used);
        }
        let mut slots = vec![u16::MAX; self.slots.len()];
        let mut kept_slots = 0u16;
        let (mut steps, mut instrs) = (Vec::with_capacity(self.steps.len()), Vec::with_capacity(self.steps.len()));
        let mut value = 0;
        for (&step, &instr) in self.steps.iter().zip(&self.instrs) {
            if makes_value(&step) {
                value += 1;
                if !used[value - 1] {
                    continue;
                }
            }
            let mut step = step;
            step.args_mut().iter_mut().for_each(|arg| renumber(arg, &values));
            if let Some(slot) = step.slot_mut() {
                let number = &mut slots[*slot as usize];
                if *number == u16::MAX {
                    *number = kept_slots;
                    kept_slots += 1;
                }
                *slot = *number;
            }
            steps.push(step);
            instrs.push(instr);
        }
        let mut old: Vec<_> = self.slots.drain(..).zip(slots).filter(|(_, number)| *number != u16::MAX).collect();
        old.sort_by_key(|(_, number)| *number);
        self.slots = old.into_iter().map(|(slot, _)| slot).collect();
        self.values = next;
        self.steps = steps;
        self.instrs = instrs;
    }
}

fn renumber(arg: &mut Arg, values: &[u16]) {
    if let Arg::Value(value) = arg {
        *value = values[*value as usize];
    }
}
