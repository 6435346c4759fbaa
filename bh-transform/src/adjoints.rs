//! The adjoints of bases: what flows into them is added up where it is read.
//!
//! A stencil reads shifted slices of an array, so that its adjoint adds the same values to shifted boxes of one grid. Adding box after
//! box would go over the grid for each. Instead, what flows is put into an array with a border of zeros, of which each shifted box
//! is a view as large as the grid: the sum is one elementwise operation after the other over the whole grid, which a fuser makes
//! one kernel of, with the memory traffic of the stencil itself.

use crate::emit::{Emit, Place, Value, contiguous, number, view};
use crate::reverse::Sweep;
use crate::tape::is_whole;
use bh_bytecode::{Base, Constant, DType, Opcode, View};
use bh_core::Result;

/// Grids of fewer elements are added to box by box: more and smaller kernels cost more than passes over memory.
pub(crate) const LEAST: i64 = 1 << 15;
/// This many flows wait, at most.
const MOST_FLOWS: usize = 16;
/// This many boxes are added in one pass, at least: a border costs as much as a pass or two.
const FEWEST: usize = 3;
/// The part by which a border may make an array larger.
const BORDER: i64 = 4;

/// The adjoint of a base.
pub(crate) struct Adjoint<B> {
    base: Base,
    /// The sum of what was added, which nothing else holds.
    own: Option<B>,
    /// What is still to be added.
    flows: Vec<Flow<B>>,
}

/// Values that do not change, times a number, to be added to a view.
pub(crate) struct Flow<B> {
    pub(crate) to: View,
    pub(crate) from: Place<B>,
    pub(crate) factor: f64,
}

/// Terms of a sum, and whether each is subtracted.
type Terms<B> = Vec<(Value<B>, bool)>;

/// Flows of the same values into boxes of a grid, which begin at these places.
struct Shifted<B> {
    from: Place<B>,
    boxes: Vec<(Vec<i64>, Flow<B>)>,
}

impl<B: Clone> Shifted<B> {
    /// How many zeros the values need before and behind them along each axis, for each box to be a view of the whole grid.
    fn borders(&self, grid: &[i64]) -> Vec<(i64, i64)> {
        let extents = grid.iter().zip(self.from.shape()).enumerate();
        let border = |(axis, (&extent, &own)): (usize, (&i64, &i64))| {
            let offsets = || self.boxes.iter().map(|(offset, _)| offset[axis]);
            let before = offsets().max().unwrap_or_default();
            (before, offsets().map(|offset| extent - offset - own).max().unwrap_or_default())
        };
        extents.map(border).collect()
    }

    /// Are the values those of the whole grid?
    fn is_whole(&self, grid: &[i64]) -> bool {
        self.from.shape() == grid
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

    /// A flow together with one into the same view that is still to be added, so that no more than one waits for each view.
    fn joined(&mut self, base: &Base, flow: Flow<E::Base>) -> Result<Flow<E::Base>> {
        let flows = &mut self.entry(base).flows;
        let Some(at) = flows.iter().position(|other| other.to == flow.to) else { return Ok(flow) };
        let other = flows.swap_remove(at);
        if E::same(&other.from.base, &flow.from.base) && other.from.view == flow.from.view {
            return Ok(Flow { factor: flow.factor + other.factor, ..flow });
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
        let Some(grid) = grid.filter(|_| base.len >= self.least && flows.len() > 1) else { return Ok((own, flows)) };
        let (mut groups, mut others) = (Vec::new(), Vec::new());
        for flow in flows {
            match boxed(&grid, &flow) {
                Some((from, offset)) => group::<E>(&mut groups, from, offset, flow),
                None => others.push(flow),
            }
        }
        let smaller = groups.iter().filter(|group| !group.is_whole(&grid)).flat_map(|group| &group.boxes).count();
        if smaller < FEWEST || !groups.iter().all(|group| self.has_small_borders(&grid, group)) {
            others.extend(groups.into_iter().flat_map(|group| group.boxes).map(|(_, flow)| flow));
            return Ok((own, others));
        }
        let (view, is_sum) = (contiguous(&grid)?, own.is_some());
        let mut terms = Vec::new();
        let out = match own {
            Some(own) => Place { base: own, dtype: base.dtype(), view },
            None => self.fresh(base.dtype(), &grid)?,
        };
        for group in groups {
            self.shifted(&grid, group, &mut terms)?;
        }
        self.write_sum(&out, is_sum, terms)?;
        Ok((Some(out.base), others))
    }

    /// Are there few zeros beside the values?
    fn has_small_borders(&self, grid: &[i64], group: &Shifted<E::Base>) -> bool {
        let (len, shape) = (group.from.view.len(), group.from.shape());
        let with: i64 =
            group.borders(grid).iter().zip(shape).map(|((before, behind), own)| before + own + behind).product();
        self.least == 0 || with <= len + len / BORDER
    }

    /// Appends each flow of a group as values for the whole grid.
    fn shifted(&mut self, grid: &[i64], group: Shifted<E::Base>, terms: &mut Vec<(Place<E::Base>, f64)>) -> Result<()> {
        if group.is_whole(grid) {
            terms.extend(group.boxes.iter().map(|(_, flow)| (group.from.clone(), flow.factor)));
            return Ok(());
        }
        let borders = group.borders(grid);
        let bordered = self.with_borders(&group.from, &borders)?;
        let stride = bordered.view.stride().to_vec();
        for (offset, flow) in &group.boxes {
            let steps = borders.iter().zip(offset).zip(&stride);
            let first: i64 = steps.map(|((border, offset), step)| (border.0 - offset) * step).sum();
            let window = bordered.with(view(first, grid, &stride)?);
            terms.push((window, flow.factor));
        }
        Ok(())
    }

    /// A copy of values with zeros before and behind them along each axis.
    fn with_borders(&mut self, from: &Place<E::Base>, borders: &[(i64, i64)]) -> Result<Place<E::Base>> {
        let shape: Vec<i64> =
            from.shape().iter().zip(borders).map(|(own, (before, behind))| before + own + behind).collect();
        let all = self.fresh(from.dtype, &shape)?;
        let order = contiguous(&shape)?;
        let stride = order.stride();
        // Slabs: whole along later axes, within the values along earlier ones.
        let (mut first, mut extents) = (0, shape.clone());
        for (axis, &(before, behind)) in borders.iter().enumerate() {
            let step = stride[axis];
            for (start, extent) in [(first, before), (first + (shape[axis] - behind) * step, behind)] {
                extents[axis] = extent;
                if extent > 0 {
                    let slab = all.with(view(start, &extents, stride)?);
                    self.emit.operate(Opcode::Copy, 0, &slab, &[number(0.0, from.dtype)])?;
                }
            }
            first += before * step;
            extents[axis] = from.shape()[axis];
        }
        let inner = all.with(view(first, from.shape(), stride)?);
        self.emit.operate(Opcode::Copy, 0, &inner, &[from.clone().into()])?;
        Ok(all)
    }

    /// Writes the sum of terms times numbers, and of what is there if that is a sum already. Terms with the same number are added
    /// before they are multiplied with it.
    fn write_sum(&mut self, out: &Place<E::Base>, is_sum: bool, terms: Vec<(Place<E::Base>, f64)>) -> Result<()> {
        let mut groups: Vec<(f64, Terms<E::Base>)> = Vec::new();
        for (term, factor) in terms {
            let (size, is_less, term) = (factor.abs(), factor < 0.0, term.into());
            match groups.iter_mut().find(|(other, _)| *other == size) {
                Some((_, terms)) => terms.push((term, is_less)),
                None => groups.push((size, vec![(term, is_less)])),
            }
        }
        let mut parts: Terms<E::Base> = if is_sum { vec![(out.clone().into(), false)] } else { Vec::new() };
        for (size, mut terms) in groups {
            terms.sort_by_key(|(_, is_less)| *is_less);
            let is_less = terms[0].1;
            let terms = terms.into_iter().map(|(term, less)| (term, less != is_less)).collect();
            let Some(sum) = self.chain(terms, out)? else { continue };
            parts.push(match size == 1.0 {
                true => (sum, is_less),
                false => {
                    let factor = number(if is_less { -size } else { size }, out.dtype);
                    (self.both(Opcode::Multiply, sum, factor, out.dtype, out.view.shape())?, false)
                }
            });
        }
        let Some((last, is_less)) = parts.pop() else { return Ok(()) };
        match self.chain(parts, out)? {
            Some(sum) => self.emit.operate(sign(is_less), 0, out, &[sum, last]),
            None if is_less => self.emit.operate(Opcode::Multiply, 0, out, &[last, number(-1.0, out.dtype)]),
            None => self.emit.operate(Opcode::Copy, 0, out, &[last]),
        }
    }

    /// The sum of terms, some of which are subtracted.
    fn chain(&mut self, terms: Terms<E::Base>, like: &Place<E::Base>) -> Result<Option<Value<E::Base>>> {
        let (dtype, shape) = (like.dtype, like.view);
        let mut sum = None;
        for (term, is_less) in terms {
            sum = Some(match sum {
                None if is_less => self.both(Opcode::Multiply, term, number(-1.0, dtype), dtype, shape.shape())?,
                None => term,
                Some(sum) => self.both(sign(is_less), sum, term, dtype, shape.shape())?,
            });
        }
        Ok(sum)
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

fn sign(is_less: bool) -> Opcode {
    if is_less { Opcode::Subtract } else { Opcode::Add }
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

/// The values of a flow in the form of a box of a grid, and where the box begins.
fn boxed<B: Clone>(grid: &[i64], flow: &Flow<B>) -> Option<(Place<B>, Vec<i64>)> {
    let len: i64 = grid.iter().product();
    if flow.to.len() == len && flow.to.is_contiguous() {
        let own = flow.from.view.reshape(grid).ok().flatten()?;
        return Some((flow.from.with(own.canonical()), vec![0; grid.len()]));
    }
    if grid_of(&flow.to, len)? != grid {
        return None;
    }
    let mut rest = flow.to.start();
    let mut offset = Vec::with_capacity(grid.len());
    for ((&step, &extent), &own) in flow.to.stride().iter().zip(grid).zip(flow.to.shape()) {
        let first = rest / step;
        if first + own > extent {
            return None;
        }
        offset.push(first);
        rest -= first * step;
    }
    Some((flow.from.clone(), offset))
}

/// Puts a flow to those of the same values.
fn group<E: Emit>(groups: &mut Vec<Shifted<E::Base>>, from: Place<E::Base>, offset: Vec<i64>, flow: Flow<E::Base>) {
    let same = |group: &&mut Shifted<E::Base>| E::same(&group.from.base, &from.base) && group.from.view == from.view;
    match groups.iter_mut().find(same) {
        Some(group) => group.boxes.push((offset, flow)),
        None => groups.push(Shifted { from, boxes: vec![(offset, flow)] }),
    }
}
