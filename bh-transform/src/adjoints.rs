//! The adjoints of bases: what flows into them is added up where it is read.
//!
//! A stencil reads shifted slices of an array, so that its adjoint adds values to shifted boxes of one grid. If all boxes get the
//! same values, as those of a sum of neighbours do, they are added one after the other, by kernels that run as one sliding window.
//! Otherwise adding box after box would go over the grid for each. Instead, the part that all boxes have in common is written
//! once, with all of their values, and the thin rest of each box after it. Each element is added to in the order of the flows.

use crate::emit::{Emit, Place, Value, contiguous, number, view};
use crate::reverse::Sweep;
use crate::tape::is_whole;
use bh_bytecode::{Base, Constant, DType, Opcode, View};
use bh_core::Result;

/// Grids of fewer elements are added to box by box: more kernels cost more than passes over memory.
pub(crate) const LEAST: i64 = 1 << 15;
/// This many flows wait, at most.
const MOST_FLOWS: usize = 16;
/// Boxes are added in one pass if at least one part in so many of the smallest is common to all.
const COMMON: i64 = 2;

/// The adjoint of a base.
pub(crate) struct Adjoint<B> {
    base: Base,
    /// The sum of what was added, which nothing else holds.
    own: Option<B>,
    /// The flows still to add.
    flows: Vec<Flow<B>>,
}

/// Values that do not change, times a number, to be added to a view.
pub(crate) struct Flow<B> {
    pub(crate) to: View,
    pub(crate) from: Place<B>,
    pub(crate) factor: f64,
}

/// A part of a grid: along each axis, where it begins and where it ends.
type Part = Vec<(i64, i64)>;

/// A flow into a box of a grid.
struct Boxed<B> {
    part: Part,
    from: Place<B>,
    factor: f64,
}

impl<B: Clone> Boxed<B> {
    /// The values for a part of the box.
    fn values(&self, part: &Part) -> Result<Place<B>> {
        let stride = self.from.view.stride();
        let steps = part.iter().zip(&self.part).zip(stride).map(|((part, own), step)| (part.0 - own.0) * step);
        Ok(self.from.with(view(self.from.view.start() + steps.sum::<i64>(), &extents(part), stride)?))
    }
}

impl<'a, E: Emit> Sweep<'a, E> {
    /// Adds to the adjoint of a view. Axes along which the view repeats elements are summed.
    pub(crate) fn add(&mut self, base: &Base, to: &View, flow: Value<E::Base>) -> Result<()> {
        let from = self.place(flow, base.dtype(), to.shape())?;
        self.add_times(base, to, from, 1.0)
    }

    /// As [`Sweep::add`], of values times a number. The values must not change from here on.
    pub(crate) fn add_times(&mut self, base: &Base, to: &View, from: Place<E::Base>, factor: f64) -> Result<()> {
        let is_repeated = |axis: &usize| to.stride()[*axis] == 0 && to.shape()[*axis] > 1;
        let axes = (0..to.rank()).filter(is_repeated).fold(0u16, |axes, axis| axes | 1 << axis);
        if to.is_empty() {
            return Ok(());
        }
        let (to, from) = if axes == 0 { (*to, from) } else { self.sum_repeated(to, axes, from)? };
        if !to.is_injective() {
            let from = self.scaled(from, factor)?;
            return self.add_at_offsets(base, &to, from);
        }
        let flow = self.joined(base, Flow { to, from, factor })?;
        let adjoint = self.entry(base);
        adjoint.flows.push(flow);
        if adjoint.flows.len() > MOST_FLOWS {
            self.total(base)?;
        }
        Ok(())
    }

    /// As [`Sweep::add`], but at once if something has flowed into the adjoint before: values that were made last are then added in the
    /// kernel that makes them.
    pub(crate) fn add_at_once(&mut self, base: &Base, to: &View, flow: Value<E::Base>) -> Result<()> {
        if !self.progress.adjoints.contains_key(&base.id) || !to.is_injective() {
            return self.add(base, to, flow);
        }
        let place = self.total(base)?.with(*to);
        self.emit.operate(Opcode::Add, 0, &place, &[place.clone().into(), flow])
    }

    /// A flow together with one into the same view that is still to be added, so that no more than one waits for each view.
    fn joined(&mut self, base: &Base, flow: Flow<E::Base>) -> Result<Flow<E::Base>> {
        let flows = &mut self.entry(base).flows;
        let Some(at) = flows.iter().position(|other| other.to == flow.to) else { return Ok(flow) };
        let other = flows.swap_remove(at);
        // Twice a product has the bits of the sum of both; products with a sum have not.
        let is_same = other.factor == flow.factor && E::same(&other.from.base, &flow.from.base);
        if is_same && other.from.view == flow.from.view {
            return Ok(Flow { factor: 2.0 * flow.factor, ..flow });
        }
        let (dtype, to) = (base.dtype(), flow.to);
        let (one, two) = (self.scaled(other.from, other.factor)?, self.scaled(flow.from, flow.factor)?);
        let sum = self.both(Opcode::Add, one.into(), two.into(), dtype, to.shape())?;
        Ok(Flow { to, from: self.place(sum, dtype, to.shape())?, factor: 1.0 })
    }

    fn entry(&mut self, base: &Base) -> &mut Adjoint<E::Base> {
        let new = || Adjoint { base: *base, own: None, flows: Vec::new() };
        self.progress.adjoints.entry(base.id).or_insert_with(new)
    }

    /// The whole adjoint of a base, flat, to be changed in place; zeros if nothing has flowed into it.
    pub(crate) fn total(&mut self, base: &Base) -> Result<Place<E::Base>> {
        let adjoint = self.entry(base);
        let (own, flows) = (adjoint.own.take(), std::mem::take(&mut adjoint.flows));
        let own = self.summed(base, own, flows)?;
        self.entry(base).own = Some(own.clone());
        Ok(Place { base: own, dtype: base.dtype(), view: contiguous(&[base.len])? })
    }

    /// The adjoint of a base, if any derivative has flowed into it. From here on there is none.
    pub(crate) fn take(&mut self, base: u64) -> Result<Option<E::Base>> {
        let Some(Adjoint { base, own, flows }) = self.progress.adjoints.remove(&base) else { return Ok(None) };
        self.summed(&base, own, flows).map(Some)
    }

    /// As [`Sweep::take`], for the program's user. If the tape has left copies out, the sign of a zero follows from which they are,
    /// so zeros are made positive.
    pub(crate) fn take_result(&mut self, base: u64) -> Result<Option<E::Base>> {
        let Some(base) = self.progress.adjoints.get(&base).map(|adjoint| adjoint.base) else { return Ok(None) };
        let Some(found) = self.take(base.id)? else { return Ok(None) };
        if self.has_left_out() {
            let all = Place { base: found.clone(), dtype: base.dtype(), view: contiguous(&[base.len])? };
            self.emit.operate(Opcode::Add, 0, &all, &[all.clone().into(), number(0.0, base.dtype())])?;
        }
        Ok(Some(found))
    }

    /// The adjoint of the whole of a base, as a view has it, times a number; from here on there is none.
    pub(crate) fn take_whole(&mut self, base: &Base, of: &View) -> Result<Option<(Place<E::Base>, f64)>> {
        if let Some(Adjoint { own: None, flows, .. }) = self.progress.adjoints.get(&base.id)
            && let [flow] = flows.as_slice()
            && flow.to == *of
        {
            let found = (flow.from.clone(), flow.factor);
            self.progress.adjoints.remove(&base.id);
            return Ok(Some(found));
        }
        let own = self.take(base.id)?;
        Ok(own.map(|own| (Place { base: own, dtype: base.dtype(), view: *of }, 1.0)))
    }

    /// Values times a number.
    pub(crate) fn scaled(&mut self, from: Place<E::Base>, factor: f64) -> Result<Place<E::Base>> {
        if factor == 1.0 {
            return Ok(from);
        }
        let (dtype, shape) = (from.dtype, from.view);
        let value = self.both(Opcode::Multiply, from.into(), number(factor, dtype), dtype, shape.shape())?;
        self.place(value, dtype, shape.shape())
    }

    /// Adds flows to what there is.
    fn summed(&mut self, base: &Base, own: Option<E::Base>, flows: Vec<Flow<E::Base>>) -> Result<E::Base> {
        let (mut own, flows) = self.gathered(base, own, flows)?;
        let dtype = base.dtype();
        for Flow { to, from, factor } in flows {
            let from = self.scaled(from, factor)?;
            match &own {
                Some(own) => {
                    let place = Place { base: own.clone(), dtype, view: to };
                    self.emit.operate(Opcode::Add, 0, &place, &[place.clone().into(), from.into()])?;
                }
                None => {
                    let all = self.fresh(dtype, &[base.len])?;
                    if !is_whole(base, &to) {
                        self.emit.operate(Opcode::Copy, 0, &all, &[number(0.0, dtype)])?;
                    }
                    self.emit.operate(Opcode::Copy, 0, &all.with(to), &[from.into()])?;
                    own = Some(all.base);
                }
            }
        }
        match own {
            Some(own) => Ok(own),
            None => Ok(self.full(0.0, dtype, &[base.len])?.base),
        }
    }

    /// Adds flows into boxes of one grid in one pass, if there are several. Returns the sum and the other flows.
    #[allow(clippy::type_complexity, reason = "what is left of two arguments")]
    fn gathered(
        &mut self,
        base: &Base,
        own: Option<E::Base>,
        flows: Vec<Flow<E::Base>>,
    ) -> Result<(Option<E::Base>, Vec<Flow<E::Base>>)> {
        let grids = flows.iter().filter_map(|flow| grid_of(&flow.to, base.len));
        let grid = grids.max_by_key(Vec::len);
        let Some(grid) = grid.filter(|_| base.len >= self.least) else { return Ok((own, flows)) };
        let boxes: Vec<Option<Boxed<E::Base>>> = flows.iter().map(|flow| boxed(&grid, flow)).collect();
        let common = common(boxes.iter().flatten().map(|one| &one.part));
        let smallest = boxes.iter().flatten().map(|one| count(&one.part)).min().unwrap_or(0);
        let pays = |common: &Part| self.least == 0 || count(common) >= smallest / COMMON;
        let first = boxes.iter().flatten().next();
        let is_other = |one: &Boxed<E::Base>| {
            first.is_some_and(|first| !E::same(&first.from.base, &one.from.base) || first.from.view != one.from.view)
        };
        let several = boxes.iter().flatten().any(is_other);
        let Some(common) = common.filter(|common| several && pays(common)) else { return Ok((own, flows)) };
        let others = flows.into_iter().zip(&boxes).filter(|(_, one)| one.is_none()).map(|(flow, _)| flow).collect();
        let boxes: Vec<Boxed<E::Base>> = boxes.into_iter().flatten().collect();
        let out = match &own {
            Some(own) => Place { base: own.clone(), dtype: base.dtype(), view: contiguous(&grid)? },
            None => self.fresh(base.dtype(), &grid)?,
        };
        self.write_common(&out, own.is_some(), &common, &boxes)?;
        if own.is_none() {
            let whole = grid.iter().map(|&extent| (0, extent)).collect();
            for part in around(&whole, &common) {
                let zero = number(0.0, out.dtype);
                self.emit.operate(Opcode::Copy, 0, &part_of(&out, &part)?, &[zero])?;
            }
        }
        for one in &boxes {
            for part in around(&one.part, &common) {
                let (to, from) = (part_of(&out, &part)?, self.scaled(one.values(&part)?, one.factor)?);
                self.emit.operate(Opcode::Add, 0, &to, &[to.clone().into(), from.into()])?;
            }
        }
        Ok((Some(out.base), others))
    }

    /// Writes the sum of all boxes where they overlap. `is_sum`: there is one, to which they are added.
    fn write_common(
        &mut self,
        out: &Place<E::Base>,
        is_sum: bool,
        common: &Part,
        boxes: &[Boxed<E::Base>],
    ) -> Result<()> {
        let to = part_of(out, common)?;
        let shape = extents(common);
        let mut sum: Option<Value<E::Base>> = is_sum.then(|| to.clone().into());
        for (at, one) in boxes.iter().enumerate() {
            let (values, is_last) = (one.values(common)?, at + 1 == boxes.len());
            let (opcode, term) = match one.factor {
                -1.0 if sum.is_some() => (Opcode::Subtract, values),
                factor => (Opcode::Add, self.scaled(values, factor)?),
            };
            sum = match sum {
                None if is_last => return self.emit.operate(Opcode::Copy, 0, &to, &[term.into()]),
                None => Some(term.into()),
                Some(sum) if is_last => return self.emit.operate(opcode, 0, &to, &[sum, term.into()]),
                Some(sum) => Some(self.both(opcode, sum, term.into(), out.dtype, &shape)?),
            };
        }
        Ok(())
    }

    /// Adds to the adjoint of a view some of whose elements are at one place without being repeated along an axis.
    fn add_at_offsets(&mut self, base: &Base, to: &View, from: Place<E::Base>) -> Result<()> {
        let all = self.total(base)?;
        let offsets = self.fresh(DType::I64, to.shape())?;
        let start = Value::Number(Constant::from_value(to.start()));
        self.emit.operate(Opcode::Copy, 0, &offsets, &[start])?;
        for (axis, (&extent, &stride)) in to.shape().iter().zip(to.stride()).enumerate() {
            if extent > 1 {
                let numbers = self.numbers(axis, to.shape(), stride)?;
                self.emit.operate(Opcode::Add, 0, &offsets, &[offsets.clone().into(), numbers.into()])?;
            }
        }
        self.emit.operate(Opcode::ScatterAdd, 0, &all, &[from.into(), offsets.into()])
    }

    fn sum_repeated(&mut self, to: &View, axes: u16, from: Place<E::Base>) -> Result<(View, Place<E::Base>)> {
        let kept = |values: &[i64]| -> Vec<i64> {
            values.iter().enumerate().filter(|(axis, _)| axes >> axis & 1 == 0).map(|(_, &value)| value).collect()
        };
        let (shape, stride) = (kept(to.shape()), kept(to.stride()));
        let sum = self.fresh(from.dtype, &shape)?;
        self.emit.operate(Opcode::AddReduce, axes, &sum, &[from.into()])?;
        Ok((view(to.start(), &shape, &stride)?, sum))
    }
}

fn extents(part: &Part) -> Vec<i64> {
    part.iter().map(|(begin, end)| end - begin).collect()
}

fn count(part: &Part) -> i64 {
    extents(part).iter().product()
}

/// A part of a grid that an array in C order is.
fn part_of<B: Clone>(grid: &Place<B>, part: &Part) -> Result<Place<B>> {
    let stride = grid.view.stride();
    let first: i64 = part.iter().zip(stride).map(|((begin, _), step)| begin * step).sum();
    Ok(grid.with(view(grid.view.start() + first, &extents(part), stride)?))
}

/// The region that all parts have in common, if there is one.
fn common<'p>(mut parts: impl Iterator<Item = &'p Part>) -> Option<Part> {
    let first = parts.next()?.clone();
    let both = |a: Part, b: &Part| a.iter().zip(b).map(|(a, b)| (a.0.max(b.0), a.1.min(b.1))).collect();
    let common: Part = parts.fold(first, both);
    common.iter().all(|(begin, end)| begin < end).then_some(common)
}

/// The parts of a part around an inner one: slabs whole along later axes, and within the inner one along earlier ones.
fn around(outer: &Part, inner: &Part) -> Vec<Part> {
    let mut slabs = Vec::new();
    let mut rest = outer.clone();
    for (axis, &(begin, end)) in inner.iter().enumerate() {
        for side in [(rest[axis].0, begin), (end, rest[axis].1)] {
            if side.0 < side.1 {
                rest[axis] = side;
                slabs.push(rest.clone());
                rest[axis] = outer[axis];
            }
        }
        rest[axis] = (begin, end);
    }
    slabs
}

/// The extents of a grid in C order with this many elements of which a view is a box; `None` if there is none.
fn grid_of(of: &View, len: i64) -> Option<Vec<i64>> {
    let stride = of.stride();
    let is_positive = stride.iter().all(|&step| step > 0);
    let falls = || stride.windows(2).all(|pair| pair[0] % pair[1] == 0);
    if stride.is_empty() || !is_positive || !falls() || stride.last() != Some(&1) || len % stride[0] != 0 {
        return None;
    }
    let mut grid = vec![len / stride[0]];
    grid.extend(stride.windows(2).map(|pair| pair[0] / pair[1]));
    Some(grid)
}

/// A flow as one into a box of a grid, if it is one.
fn boxed<B: Clone>(grid: &[i64], flow: &Flow<B>) -> Option<Boxed<B>> {
    let len: i64 = grid.iter().product();
    if flow.to.len() == len && flow.to.is_contiguous() {
        let own = flow.from.view.reshape(grid).ok().flatten()?;
        let part = grid.iter().map(|&extent| (0, extent)).collect();
        return Some(Boxed { part, from: flow.from.with(own.canonical()), factor: flow.factor });
    }
    if grid_of(&flow.to, len)? != grid {
        return None;
    }
    let mut rest = flow.to.start();
    let mut part = Vec::with_capacity(grid.len());
    for ((&step, &extent), &own) in flow.to.stride().iter().zip(grid).zip(flow.to.shape()) {
        let first = rest / step;
        if first + own > extent {
            return None;
        }
        part.push((first, first + own));
        rest -= first * step;
    }
    Some(Boxed { part, from: flow.from.clone(), factor: flow.factor })
}
