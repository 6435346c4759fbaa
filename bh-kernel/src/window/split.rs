//! Parting nests: a kernel that fusion made of borders walks along rows in one place and along columns in another; its
//! parts, which have nothing to do with each other, go through rows each in its own way.

use crate::{Arg, Kernel, Parameters, SlotMode, Stage, Step, StrideClass};

/// Longer nests are not parted: each step is compared with all others.
const MOST_STEPS: usize = 512;

/// No group.
const SEVERAL: usize = usize::MAX;

/// The parts of a nest, in an order that gives the same results; the nest itself if all of it goes through rows in one way.
pub(super) fn parts(stage: &Stage) -> Vec<Stage> {
    let whole = || vec![stage.clone()];
    if stage.kernel.reduces() || stage.kernel.steps.len() > MOST_STEPS || !walks_differ(stage) {
        return whole();
    }
    let (group, of_value) = groups(&stage.kernel);
    let mut roots: Vec<usize> = group.clone();
    roots.sort_unstable();
    roots.dedup();
    if roots.len() < 2 || interfere(stage, &group) {
        return whole();
    }
    roots.into_iter().map(|root| part(stage, &group, &of_value, root)).collect()
}

/// Do written slots take steps along the outermost loop that differ as those along rows and columns do?
fn walks_differ(stage: &Stage) -> bool {
    let inner = |slot: &usize| stage.kernel.slots[*slot].inner == StrideClass::Unit;
    let mut writes = (0..stage.kernel.slots.len()).filter(|&slot| stage.kernel.slots[slot].mode == SlotMode::Write);
    let Some(first) = writes.next() else { return false };
    writes.any(|slot| inner(&slot) != inner(&first))
}

/// For each step the first step of its group, where steps that use each other's values are one group; and the step that
/// makes each value.
fn groups(kernel: &Kernel) -> (Vec<usize>, Vec<usize>) {
    let mut group: Vec<usize> = (0..kernel.steps.len()).collect();
    let mut made: Vec<usize> = Vec::with_capacity(kernel.steps.len());
    for (index, step) in kernel.steps.iter().enumerate() {
        for arg in step.args() {
            let Arg::Value(value) = *arg else { continue };
            let (a, b) = (group[made[value as usize]], group[index]);
            let (low, high) = (a.min(b), a.max(b));
            group.iter_mut().filter(|at| **at == high).for_each(|at| *at = low);
        }
        if step.output(&kernel.slots).is_some() {
            made.push(index);
        }
    }
    (group, made)
}

/// Does one group overwrite what another one loads? Accesses of one kernel are equal or apart.
fn interfere(stage: &Stage, group: &[usize]) -> bool {
    let slots = &stage.kernel.slots;
    let uses = stage.kernel.steps.iter().zip(group);
    // The group that stores to each place, or `SEVERAL`.
    let mut stored = vec![None; slots.len()];
    for (step, &own) in uses.clone() {
        if let Step::Store { slot, .. } = step {
            let known = &mut stored[usize::from(slots[*slot as usize].same_as)];
            *known = Some(known.filter(|&known| known != own).map_or(own, |_| SEVERAL));
        }
    }
    uses.clone().any(|(step, &own)| match step {
        Step::Load { slot } => stored[usize::from(slots[*slot as usize].same_as)].is_some_and(|by| by != own),
        _ => false,
    })
}

/// The nest of one group.
fn part(stage: &Stage, group: &[usize], made: &[usize], root: usize) -> Stage {
    let Stage { kernel, parameters } = stage;
    let mut slots: Vec<u16> = Vec::new();
    let mut values: Vec<u16> = Vec::new();
    let mut part = Stage {
        kernel: Kernel { dims: kernel.dims.clone(), constants: kernel.constants.clone(), ..Kernel::default() },
        parameters: Parameters {
            extents: parameters.extents.clone(),
            constants: parameters.constants.clone(),
            gathers: parameters.gathers.clone(),
            folded: parameters.folded.clone(),
            columns: parameters.columns,
            ..Parameters::default()
        },
    };
    let renumber = |arg: &mut Arg, values: &[u16]| {
        if let Arg::Value(value) = arg {
            let at = values.iter().position(|known| known == value);
            *value = at.map_or(*value, |at| at as u16);
        }
    };
    for (index, step) in kernel.steps.iter().enumerate().filter(|&(index, _)| group[index] == root) {
        let mut step = *step;
        step.args_mut().iter_mut().for_each(|arg| renumber(arg, &values));
        if let Some(slot) = step.slot_mut() {
            let at = slots.iter().position(|known| known == slot).unwrap_or_else(|| {
                slots.push(*slot);
                slots.len() - 1
            });
            *slot = at as u16;
        }
        if let Some(value) = made.iter().position(|&by| by == index) {
            values.push(value as u16);
        }
        part.kernel.steps.push(step);
        part.parameters.instrs.push(parameters.instrs[index]);
    }
    for (at, &number) in slots.iter().enumerate() {
        let mut slot = kernel.slots[number as usize];
        let same = |other: &u16| kernel.slots[*other as usize].same_as == slot.same_as;
        slot.same_as = slots.iter().position(same).unwrap_or(at) as u16;
        part.kernel.slots.push(slot);
        part.parameters.buffers.push(parameters.buffers[number as usize]);
        part.parameters.starts.push(parameters.starts[number as usize]);
        part.parameters.strides.extend_from_slice(parameters.stride(number as usize));
    }
    part
}
