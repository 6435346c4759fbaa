//! Values that a nest computes twice, at places a fixed distance apart: fluxes through the two faces of a cell, say. In a
//! window a nest of its own computes each of them once, over both places together, and leaves a few rows of them to the
//! nest that needs them, which costs less than computing anything dear again.
//!
//! Every value of a nest gets a *class*, what is computed of which arrays, and a *shift*, how many iterations of each
//! loop it lies from the first value of its class. The operations and their order stay the same, and so do all bits.

use crate::{Arg, BufferRef, Dim, Kernel, Parameters, Slot, SlotMode, Stage, Step, StrideClass};
use bh_bytecode::{DType, Opcode};
use std::collections::HashMap;

/// Values that cost less than this many additions are cheaper to compute again.
pub(super) const DEAR: u32 = 8;
/// Nests with more slots are taken as they are: each slot is compared with all others.
const MOST_SLOTS: usize = 96;
/// What a costly operation counts for.
const COSTLY: u32 = 8;
/// A shift is at most one part in so many of its loop.
const NEAR: i64 = 8;

/// A nest that was parted.
pub(super) struct Reuse {
    /// The nests that make common values.
    pub(super) makers: Vec<Stage>,
    /// The nest that uses them.
    pub(super) user: Stage,
    /// What they are kept in: temporaries numbered from the first free one.
    pub(super) kept: Vec<Kept>,
}

/// An array that is cut into rows.
#[derive(Clone, Copy)]
pub(super) struct Grid {
    pub(super) pitch: i64,
    pub(super) len: i64,
}

impl Grid {
    /// Is each iteration's element one of its own, in the array, and in one row for each iteration of the outermost loop?
    pub(super) fn holds(self, extents: &[i64], strides: &[i64], start: i64) -> bool {
        let mut span = 0;
        for (&extent, &stride) in extents.iter().zip(strides).skip(1).rev() {
            if stride <= span {
                return false;
            }
            span += stride * (extent - 1);
        }
        let end = strides[0].saturating_mul(extents[0] - 1).saturating_add(start + span);
        strides[0] == self.pitch
            && strides[0] > 0
            && start >= 0
            && start % self.pitch + span < self.pitch
            && end < self.len
    }
}

/// A temporary.
pub(super) struct Kept {
    pub(super) dtype: DType,
    pub(super) len: i64,
    /// Elements of a row.
    pub(super) pitch: i64,
}

/// Parts a nest, if it computes dear values several times; `first` is the first free number of a temporary, and `grid` the
/// array behind each slot.
pub(super) fn reuse(stage: &Stage, first: u16, grid: &dyn Fn(usize) -> Grid) -> Option<Reuse> {
    if stage.kernel.reduces() || stage.kernel.slots.len() > MOST_SLOTS || !reads_apart(stage) {
        return None;
    }
    let classes = Classes::new(stage);
    let chosen = classes.choose(stage);
    if chosen.is_empty() || usize::from(first) + chosen.len() > usize::from(u16::MAX) {
        return None;
    }
    let mut shapes: Vec<(usize, i64)> = chosen.iter().map(|common| (common.dim, common.reach)).collect();
    shapes.sort_unstable();
    shapes.dedup();
    let mut reuse = Reuse { makers: Vec::new(), user: stage.clone(), kept: Vec::new() };
    let mut homes = HashMap::new();
    for (dim, reach) in shapes {
        let mut extents = stage.parameters.extents.clone();
        extents[dim] += reach;
        let mut maker = Builder::new(stage, extents);
        for common in chosen.iter().filter(|common| (common.dim, common.reach) == (dim, reach)) {
            let arg = maker.copy(common.least, &|_| None);
            let number = first + reuse.kept.len() as u16;
            let step = classes.values[common.least as usize].step;
            let dtype = stage.kernel.steps[step].output(&stage.kernel.slots)?;
            let (strides, start, len) = maker.place(common.least, grid);
            let home = Home { number, dtype, strides, start };
            reuse.kept.push(Kept { dtype, len, pitch: home.strides[0] });
            let slot = maker.slot(SlotMode::Write, &home, home.start);
            maker.ends.push((Step::Store { slot, arg }, stage.parameters.instrs[step]));
            homes.insert(common.class, (home, common));
        }
        reuse.makers.push(maker.finish());
    }
    let mut user = Builder::new(stage, stage.parameters.extents.clone());
    for (index, step) in stage.kernel.steps.iter().enumerate() {
        let Step::Store { slot, arg } = *step else { continue };
        let kept = |value: u16| {
            let value = &classes.values[usize::from(value)];
            let (home, common) = homes.get(&value.class)?;
            let distance = value.shift[common.dim] - common.first;
            Some((home.clone(), home.start + distance * home.strides[common.dim]))
        };
        let arg = match arg {
            Arg::Value(value) => user.copy(value, &kept),
            constant => constant,
        };
        let slot = user.known_slot(slot);
        user.ends.push((Step::Store { slot, arg }, stage.parameters.instrs[index]));
    }
    reuse.user = user.finish();
    Some(reuse)
}

/// Does a nest read an array at several places? If not, it computes nothing at two places, and many plans are spared a
/// closer look.
fn reads_apart(stage: &Stage) -> bool {
    let parameters = &stage.parameters;
    let same = |from: usize, to: usize| {
        parameters.buffers[from] == parameters.buffers[to]
            && parameters.buffers[from] != BufferRef::None
            && parameters.starts[from] != parameters.starts[to]
            && parameters.stride(from) == parameters.stride(to)
    };
    let slots = stage.kernel.slots.len();
    (1..slots).any(|to| (0..to).any(|from| same(from, to)))
}

/// A value: the step that makes it, its class, and its distance from the first of the class.
struct Value {
    step: usize,
    class: u32,
    shift: Vec<i64>,
}

/// What is computed: equal for values that differ by a shift only.
#[derive(PartialEq, Eq, Hash)]
enum Form {
    /// A load, or anything else that is compared by its own number.
    Own(u32),
    Compute {
        opcode: Opcode,
        param: u16,
        input: DType,
        output: DType,
        args: Vec<Input>,
    },
}

#[derive(PartialEq, Eq, Hash)]
enum Input {
    Constant(u16),
    /// A class, and the shift from the first value among the inputs.
    Value(u32, Vec<i64>),
}

/// A class whose values are made once.
struct Common {
    class: u32,
    /// The loop along which its values lie apart, the least shift along it, and the distance to the largest.
    dim: usize,
    first: i64,
    reach: i64,
    /// The value with the least shift.
    least: u16,
}

struct Classes {
    values: Vec<Value>,
    /// What a value of each class costs.
    costs: Vec<u32>,
}

impl Classes {
    fn new(stage: &Stage) -> Classes {
        let Stage { kernel, parameters } = stage;
        let mut classes = Classes { values: Vec::new(), costs: Vec::new() };
        let mut loads: Vec<(u16, u32)> = Vec::new();
        let mut known: HashMap<Form, u32> = HashMap::new();
        let rank = parameters.extents.len();
        for (index, step) in kernel.steps.iter().enumerate() {
            if step.output(&kernel.slots).is_none() {
                continue;
            }
            let next = classes.costs.len() as u32;
            let (form, shift, cost) = match *step {
                Step::Load { slot } => {
                    let same = loads.iter().find_map(|&(other, class)| Some((class, shift(stage, other, slot)?)));
                    let (class, shift) = same.unwrap_or_else(|| {
                        loads.push((slot, next));
                        (next, vec![0; rank])
                    });
                    (Form::Own(class), shift, 0)
                }
                Step::Compute { opcode, param, input, output, .. } => {
                    let values = || {
                        step.args().iter().filter_map(|arg| match *arg {
                            Arg::Value(value) => Some(&classes.values[usize::from(value)]),
                            Arg::Constant(_) => None,
                        })
                    };
                    let origin = values().next().map_or_else(|| vec![0; rank], |value| value.shift.clone());
                    let args = step.args().iter().map(|arg| match *arg {
                        Arg::Constant(constant) => Input::Constant(constant),
                        Arg::Value(value) => {
                            let value = &classes.values[usize::from(value)];
                            let shift = value.shift.iter().zip(&origin).map(|(own, origin)| own - origin).collect();
                            Input::Value(value.class, shift)
                        }
                    });
                    let below = values().map(|value| classes.costs[value.class as usize]);
                    let cost = below.fold(cost(opcode), u32::saturating_add);
                    (Form::Compute { opcode, param, input, output, args: args.collect() }, origin, cost)
                }
                _ => (Form::Own(next), vec![0; rank], 0),
            };
            let class = *known.entry(form).or_insert(next);
            if class == next {
                classes.costs.push(cost);
            }
            classes.values.push(Value { step: index, class, shift });
        }
        classes
    }

    /// The classes that are worth a nest of their own: the largest expressions, whose parts are computed nowhere else.
    fn choose(&self, stage: &Stage) -> Vec<Common> {
        let dear: Vec<u32> = (0..self.costs.len() as u32).filter(|&class| self.costs[class as usize] >= DEAR).collect();
        let mut chosen = self.common(stage, &dear, &[]);
        loop {
            let classes: Vec<u32> = chosen.iter().map(|common| common.class).collect();
            let left = self.common(stage, &classes, &classes);
            if left.len() == chosen.len() {
                return left;
            }
            chosen = left;
        }
    }

    /// Those of some classes whose values are needed at several places, if values of the classes `ends` are kept.
    fn common(&self, stage: &Stage, classes: &[u32], ends: &[u32]) -> Vec<Common> {
        let mut needed = vec![false; self.values.len()];
        let mut open: Vec<u16> = Vec::new();
        let values = |step: &Step| {
            let values = step.args().iter().filter_map(|arg| match *arg {
                Arg::Value(value) => Some(value),
                Arg::Constant(_) => None,
            });
            values.collect::<Vec<u16>>()
        };
        for step in stage.kernel.steps.iter().filter(|step| matches!(step, Step::Store { .. })) {
            open.extend(values(step));
        }
        while let Some(value) = open.pop() {
            let Value { step, class, .. } = &self.values[usize::from(value)];
            if !std::mem::replace(&mut needed[usize::from(value)], true) && !ends.contains(class) {
                open.extend(values(&stage.kernel.steps[*step]));
            }
        }
        let mut members: Vec<Vec<(usize, &Value)>> = vec![Vec::new(); self.costs.len()];
        for (at, value) in self.values.iter().enumerate().filter(|(at, _)| needed[*at]) {
            members[value.class as usize].push((at, value));
        }
        classes.iter().filter_map(|&class| self.along(stage, class, &members[class as usize])).collect()
    }

    /// The class, if these values of it lie apart along one loop, and not far, so that together they fill a box.
    fn along(&self, stage: &Stage, class: u32, values: &[(usize, &Value)]) -> Option<Common> {
        let (_, first) = values.first()?;
        let differs = |&dim: &usize| values.iter().any(|(_, value)| value.shift[dim] != first.shift[dim]);
        let mut dims = (0..first.shift.len()).filter(differs);
        let (dim, None) = (dims.next()?, dims.next()) else { return None };
        let (least, value) = values.iter().min_by_key(|(_, value)| value.shift[dim])?;
        let most = values.iter().map(|(_, value)| value.shift[dim]).max()?;
        let (first, reach) = (value.shift[dim], most - value.shift[dim]);
        (reach <= stage.parameters.extents[dim] / NEAR).then_some(Common {
            class,
            dim,
            first,
            reach,
            least: *least as u16,
        })
    }
}

/// How many iterations of each loop a load lies from another one; `None` if that is no small whole number, or what they
/// load differs.
fn shift(stage: &Stage, from: u16, to: u16) -> Option<Vec<i64>> {
    let Stage { kernel, parameters } = stage;
    let (from, to) = (usize::from(from), usize::from(to));
    let strides = parameters.stride(from);
    if parameters.buffers[from] != parameters.buffers[to]
        || parameters.buffers[from] == BufferRef::None
        || kernel.slots[from].dtype != kernel.slots[to].dtype
        || strides != parameters.stride(to)
    {
        return None;
    }
    distances(&parameters.extents, strides, parameters.starts[to] - parameters.starts[from])
}

/// How many iterations of each loop lead so far, if that is few.
pub(super) fn distances(extents: &[i64], strides: &[i64], offset: i64) -> Option<Vec<i64>> {
    let mut rest = offset;
    let mut distances = vec![0; strides.len()];
    let mut order: Vec<usize> = (0..strides.len()).filter(|&dim| strides[dim] != 0).collect();
    order.sort_by_key(|&dim| std::cmp::Reverse(strides[dim].unsigned_abs()));
    for dim in order {
        let stride = strides[dim];
        let nearest = (2 * rest + stride.abs()).div_euclid(2 * stride.abs()) * stride.signum();
        if nearest.abs() <= extents[dim] / NEAR {
            distances[dim] = nearest;
            rest -= nearest * stride;
        }
    }
    (rest == 0).then_some(distances)
}

/// What an operation costs, in additions.
pub(super) fn cost(opcode: Opcode) -> u32 {
    if opcode.info().cost > 1 { COSTLY } else { 1 }
}

fn dense(extents: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; extents.len()];
    for dim in (1..extents.len()).rev() {
        strides[dim - 1] = strides[dim] * extents[dim];
    }
    strides
}

/// Where the values of a class are kept.
#[derive(Clone)]
struct Home {
    number: u16,
    dtype: DType,
    strides: Vec<i64>,
    start: i64,
}

/// A nest made of parts of another one.
struct Builder<'a> {
    from: &'a Stage,
    stage: Stage,
    /// The step of each value of the other nest.
    made: Vec<usize>,
    slots: Vec<Option<u16>>,
    values: Vec<Option<Arg>>,
    next: u16,
    ends: Vec<(Step, u32)>,
}

impl<'a> Builder<'a> {
    fn new(from: &'a Stage, extents: Vec<i64>) -> Builder<'a> {
        let Stage { kernel, parameters } = from;
        let makes = |step: &Step| step.output(&kernel.slots).is_some();
        let made: Vec<usize> = (0..kernel.steps.len()).filter(|&step| makes(&kernel.steps[step])).collect();
        let stage = Stage {
            kernel: Kernel {
                dims: vec![Dim::Kept; extents.len()],
                constants: kernel.constants.clone(),
                ..Kernel::default()
            },
            parameters: Parameters { extents, constants: parameters.constants.clone(), ..Parameters::default() },
        };
        let values = vec![None; made.len()];
        Builder { from, stage, made, slots: vec![None; kernel.slots.len()], values, next: 0, ends: Vec::new() }
    }

    /// Takes over a value and what it is made of, up to values that are kept: in which home, and how far from its start.
    fn copy(&mut self, value: u16, kept: &dyn Fn(u16) -> Option<(Home, i64)>) -> Arg {
        if let Some(known) = self.values[usize::from(value)] {
            return known;
        }
        let index = self.made[usize::from(value)];
        let step = match kept(value) {
            Some((home, start)) => Step::Load { slot: self.slot(SlotMode::Read, &home, start) },
            None => {
                let mut step = self.from.kernel.steps[index];
                for arg in step.args_mut() {
                    if let Arg::Value(value) = *arg {
                        *arg = self.copy(value, kept);
                    }
                }
                if let Some(slot) = step.slot_mut() {
                    *slot = self.known_slot(*slot);
                }
                step
            }
        };
        self.stage.kernel.steps.push(step);
        self.stage.parameters.instrs.push(self.from.parameters.instrs[index]);
        let made = Arg::Value(self.next);
        self.next += 1;
        self.values[usize::from(value)] = Some(made);
        made
    }

    /// Where the values of a class lie: as what is read for them first, so that nests that make values of the same arrays
    /// keep them in one order; otherwise one after the other. Strides, the first one's place, and the length.
    fn place(&self, least: u16, grid: &dyn Fn(usize) -> Grid) -> (Vec<i64>, i64, i64) {
        let extents = &self.stage.parameters.extents;
        if let Some(slot) = self.first_load(least) {
            let Parameters { starts, .. } = &self.from.parameters;
            let (strides, start, grid) = (self.from.parameters.stride(slot), starts[slot], grid(slot));
            if grid.holds(extents, strides, start) {
                return (strides.to_vec(), start, grid.len);
            }
        }
        (dense(extents), 0, self.stage.parameters.iterations())
    }

    /// The slot that is read first for a value.
    fn first_load(&self, value: u16) -> Option<usize> {
        match &self.from.kernel.steps[self.made[usize::from(value)]] {
            Step::Load { slot } => Some(usize::from(*slot)),
            step => step.args().iter().find_map(|arg| match *arg {
                Arg::Value(value) => self.first_load(value),
                Arg::Constant(_) => None,
            }),
        }
    }

    /// A slot of the other nest.
    fn known_slot(&mut self, slot: u16) -> u16 {
        let at = usize::from(slot);
        if let Some(known) = self.slots[at] {
            return known;
        }
        let Parameters { buffers, starts, .. } = &self.from.parameters;
        let strides = self.from.parameters.stride(at);
        let number = self.push(self.from.kernel.slots[at], buffers[at], starts[at], strides);
        self.slots[at] = Some(number);
        number
    }

    /// A slot of a temporary.
    fn slot(&mut self, mode: SlotMode, home: &Home, start: i64) -> u16 {
        let slot = Slot { dtype: home.dtype, mode, inner: StrideClass::Unit, same_as: 0 };
        self.push(slot, BufferRef::Temporary(home.number), start, &home.strides)
    }

    fn push(&mut self, slot: Slot, buffer: BufferRef, start: i64, strides: &[i64]) -> u16 {
        let Stage { kernel, parameters } = &mut self.stage;
        let number = kernel.slots.len();
        let same = |&other: &usize| {
            parameters.buffers[other] == buffer
                && parameters.starts[other] == start
                && parameters.stride(other) == strides
        };
        let same_as = (0..number).find(same).unwrap_or(number) as u16;
        kernel.slots.push(Slot { same_as, ..slot });
        parameters.buffers.push(buffer);
        parameters.starts.push(start);
        parameters.strides.extend_from_slice(strides);
        number as u16
    }

    fn finish(mut self) -> Stage {
        for (step, instr) in self.ends {
            self.stage.kernel.steps.push(step);
            self.stage.parameters.instrs.push(instr);
        }
        self.stage
    }
}
