//! Where values live: in registers, or in the memory of slots.

use super::analysis::{Access, Analysis, Value, ValueHome};
use bh_kernel::{Arg, Step};

impl Analysis<'_> {
    /// Loads need no register where their memory can be used as it is.
    pub(super) fn place_loads(&mut self) {
        for index in 0..self.values.len() {
            let Step::Load { slot } = self.steps()[self.values[index].made] else { continue };
            let direct = match self.access(slot) {
                Access::Direct => true,
                Access::Invariant => !self.values[index].block,
                Access::Strided => false,
            };
            if direct {
                self.values[index].home = ValueHome::Slot(slot);
            }
        }
    }

    /// Loads whose value is stored elsewhere at the end, while their own memory is overwritten at the end as well, must
    /// be copied first.
    pub(super) fn materialise_swapped(&mut self) {
        let (slots, steps) = (self.slots(), self.steps());
        let mut written = vec![false; slots.len()];
        for step in steps {
            if let Step::Store { slot, .. } = step {
                written[usize::from(slots[*slot as usize].same_as)] = true;
            }
        }
        for step in steps {
            if let Step::Store { slot: target, arg: Arg::Value(value) } = step
                && let ValueHome::Slot(slot) = self.values[*value as usize].home
                && slots[slot as usize].same_as != slots[*target as usize].same_as
                && written[usize::from(slots[slot as usize].same_as)]
            {
                self.values[*value as usize].home = ValueHome::Register;
            }
        }
    }

    /// Gives values that are stored densely the output's memory as their home, when no load still needs what is there.
    pub(super) fn store_directly(&mut self) {
        let slots = self.slots();
        let group = |slot: u16| usize::from(slots[slot as usize].same_as);
        // The last step that needs what is in the memory of each group of slots.
        let mut needed = vec![0; slots.len()];
        for value in &self.values {
            let (slot, last) = match (value.home, self.steps()[value.made]) {
                (ValueHome::Slot(slot), _) => (slot, value.last),
                // It is read when it is copied into its register.
                (ValueHome::Register, Step::Load { slot }) => (slot, value.made),
                _ => continue,
            };
            let known = &mut needed[group(slot)];
            *known = last.max(*known);
        }
        for step in self.steps() {
            let &Step::Store { slot, arg: Arg::Value(value) } = step else { continue };
            let Value { home, made, .. } = self.values[value as usize];
            let load = matches!(self.steps()[made], Step::Load { .. });
            if home != ValueHome::Register || load || self.access(slot) != Access::Direct || self.is_non_temporal(slot)
            {
                continue;
            }
            let known = &mut needed[group(slot)];
            if *known <= made {
                self.values[value as usize].home = ValueHome::Slot(slot);
                *known = self.values[value as usize].last.max(*known);
            }
        }
    }
}
