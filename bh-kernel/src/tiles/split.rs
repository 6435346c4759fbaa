//! A nest as several that write one array each, where these walk different parts of their arrays, as the sides of a border do.

use crate::{Arg, Kernel, Parameters, Stage, Step};

/// A stage for each store, which computes the stored value.
pub(super) fn split(stage: &Stage) -> Vec<Stage> {
    let steps = &stage.kernel.steps;
    let makes = |step: &&usize| !matches!(steps[**step], Step::Store { .. } | Step::Reduce { .. });
    let all: Vec<usize> = (0..steps.len()).collect();
    // The step behind each value.
    let made: Vec<usize> = all.iter().filter(makes).copied().collect();
    let stores = all.iter().filter(|&&step| matches!(steps[step], Step::Store { .. }));
    stores.map(|&store| part(stage, &made, store)).collect()
}

fn part(stage: &Stage, made: &[usize], store: usize) -> Stage {
    let (kernel, parameters) = (&stage.kernel, &stage.parameters);
    let mut needed = vec![false; kernel.steps.len()];
    needed[store] = true;
    for step in (0..=store).rev() {
        if needed[step] {
            for arg in kernel.steps[step].args() {
                if let Arg::Value(value) = *arg {
                    needed[made[usize::from(value)]] = true;
                }
            }
        }
    }
    let (mut slots, mut values): (Vec<u16>, Vec<Option<u16>>) = (Vec::new(), vec![None; made.len()]);
    let (mut steps, mut instrs) = (Vec::new(), Vec::new());
    for (index, step) in kernel.steps.iter().enumerate().filter(|(index, _)| needed[*index]) {
        let mut step = *step;
        for arg in step.args_mut() {
            if let Arg::Value(value) = arg {
                *value = values[usize::from(*value)].unwrap_or(0);
            }
        }
        if let Some(slot) = step.slot_mut() {
            let known = slots.iter().position(|known| known == slot);
            let number = known.unwrap_or(slots.len());
            if known.is_none() {
                slots.push(*slot);
            }
            *slot = number as u16;
        }
        if let Some(value) = made.iter().position(|&made| made == index) {
            values[value] = Some(values.iter().flatten().count() as u16);
        }
        steps.push(step);
        instrs.push(parameters.instrs[index]);
    }
    let of = |slot: &u16| usize::from(*slot);
    let same = |slot: &u16| kernel.slots[of(slot)].same_as;
    let first = |slot: &u16| slots.iter().position(|other| same(other) == same(slot)).unwrap_or(0) as u16;
    Stage {
        kernel: Kernel {
            dims: kernel.dims.clone(),
            slots: slots.iter().map(|slot| crate::Slot { same_as: first(slot), ..kernel.slots[of(slot)] }).collect(),
            constants: kernel.constants.clone(),
            steps,
        },
        parameters: Parameters {
            buffers: slots.iter().map(|slot| parameters.buffers[of(slot)]).collect(),
            starts: slots.iter().map(|slot| parameters.starts[of(slot)]).collect(),
            strides: slots.iter().flat_map(|slot| parameters.stride(of(slot)).iter().copied()).collect(),
            instrs,
            ..parameters.clone()
        },
    }
}
