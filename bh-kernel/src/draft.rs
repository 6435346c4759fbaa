//! A stage under construction: values, slots and constants as they are met, and the nest at the end.

use crate::kernel::{Arg, BufferRef, ConstantRef, GatherSource, Kernel, Parameters, Slot, SlotMode, Stage, Step};
use crate::nest::{self, Access, Nest, Runner};
use crate::table::{NONE, Table};
use bh_bytecode::{AxisOrder, DType, steps};
use std::collections::HashMap;

/// A stage under construction.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) slots: Vec<(Slot, BufferRef, Access)>,
    pub(super) steps: Vec<Step>,
    pub(super) instrs: Vec<u32>,
    values: u16,
    constants: Vec<(DType, ConstantRef)>,
    constant_at: Table,
    /// The values of the computations so far.
    computed: HashMap<Step, Arg>,
    pub(super) gathers: Vec<GatherSource>,
    /// The contents of views at this point of the block, and where each is found there.
    current: Vec<Arg>,
    current_at: Table,
    /// Values to write at the end: view, value, instruction; and where each view is found there.
    stores: Vec<Option<(u32, Arg, u32)>>,
    store_at: Table,
    /// The order in which the reductions take their elements.
    pub(super) folded: Option<AxisOrder>,
}

impl Draft {
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
        let number = match constant {
            ConstantRef::Batch(number) => number,
            // No batch has so many constants.
            ConstantRef::Neutral(opcode, _) => NONE - 1 - u32::from(opcode.0),
            ConstantRef::Zero(_) => NONE,
        };
        let mut at = self.constant_at.get(dtype as u32, number);
        if at == NONE {
            at = self.constants.len() as u32;
            self.constants.push((dtype, constant));
            self.constant_at.set(dtype as u32, number, at);
        }
        Arg::Constant(at as u16)
    }

    /// The contents of a view at this point of the block, as far as it was loaded or computed.
    pub(super) fn held(&self, view: u32) -> Option<Arg> {
        self.current.get(self.current_at.get(view, 0) as usize).copied()
    }

    /// Is a view to be written at the end?
    pub(super) fn stores(&self, view: u32) -> bool {
        self.store_at.get(view, 0) != NONE
    }

    /// Lets a view be written at the end, after all others so far.
    pub(super) fn store(&mut self, view: u32, arg: Arg, instr: u32) {
        if let Some(known) = self.stores.get_mut(self.store_at.get(view, 0) as usize) {
            *known = None;
        }
        self.store_at.set(view, 0, self.stores.len() as u32);
        self.stores.push(Some((view, arg, instr)));
    }

    /// The values to write at the end, in order: view, value, instruction.
    pub(super) fn take_stores(&mut self) -> impl Iterator<Item = (u32, Arg, u32)> + use<> {
        std::mem::take(&mut self.stores).into_iter().flatten()
    }

    pub(super) fn slot(&mut self, dtype: DType, mode: SlotMode, buffer: BufferRef, access: Access) -> u16 {
        let slot = Slot { dtype, mode, same_as: 0 };
        self.slots.push((slot, buffer, access));
        (self.slots.len() - 1) as u16
    }

    pub(super) fn set(&mut self, view: u32, arg: Arg) {
        match self.current.get_mut(self.current_at.get(view, 0) as usize) {
            Some(known) => *known = arg,
            None => {
                self.current_at.set(view, 0, self.current.len() as u32);
                self.current.push(arg);
            }
        }
    }

    /// Orders and merges the nest, and closes the stage.
    pub(super) fn finish(self, shape: &[i64], reduced: u16, runner: Runner) -> Stage {
        let (slots, mut rest): (Vec<_>, Vec<_>) =
            self.slots.into_iter().map(|(slot, buffer, access)| ((slot, buffer), access)).unzip();
        let Nest { extents, dims, folded, columns, fixed } =
            nest::build(shape, reduced, self.folded, runner, &mut rest);
        let rank = extents.len();
        let mut kernel = Kernel { dims, steps: self.steps, ..Kernel::default() };
        let mut parameters = Parameters {
            extents,
            folded,
            columns,
            fixed,
            gathers: self.gathers,
            instrs: self.instrs,
            ..Parameters::default()
        };
        let mut first = Table::default();
        for (index, ((mut slot, buffer), access)) in slots.into_iter().zip(rest).enumerate() {
            let same = |other: usize| {
                parameters.buffers[other] == buffer
                    && buffer != BufferRef::None
                    && parameters.starts[other] == access.start
                    && parameters.strides[other * rank..][..rank] == access.strides
            };
            // Places of equal hashes that differ are compared with all.
            let (a, b) = hash(buffer, &access);
            let known = first.get(a, b) as usize;
            slot.same_as = match known {
                _ if known >= index => index,
                known if same(known) => known,
                _ => (0..index).find(|&other| same(other)).unwrap_or(index),
            } as u16;
            if known >= index {
                first.set(a, b, index as u32);
            }
            steps::add(rank);
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

/// A hash of a buffer and the places in it.
fn hash(buffer: BufferRef, access: &Access) -> (u32, u32) {
    let code = match buffer {
        BufferRef::Base(base) => u64::from(base) << 2,
        BufferRef::Fresh(base) => u64::from(base) << 2 | 1,
        BufferRef::Temporary(number) => u64::from(number) << 2 | 2,
        BufferRef::None => 3,
    };
    let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    let hash = access.strides.iter().fold(mix(code, access.start as u64), |hash, &stride| mix(hash, stride as u64));
    ((hash >> 33) as u32, hash as u32)
}

fn renumber(arg: &mut Arg, values: &[u16]) {
    if let Arg::Value(value) = arg {
        *value = values[*value as usize];
    }
}
