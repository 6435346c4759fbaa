//! Plans operations on arrays on a grid of ranks ([`crate::plan::grid::layout`]): each rank computes its box, and gets
//! its halo from its neighbours and copies of other operands. Arrays move to rows for all other operations.

use crate::plan::boxes::{IndexBox, Span, inside, packed, span_of, unrepeated};
use crate::plan::grid::layout::{GridLayout, Region, axes_of, meet, part, region_of};
use crate::plan::grid::output::GridOutput;
use crate::plan::layout::covers;
use crate::plan::planner::Planner;
use crate::plan::stage::{Local, Place};
use crate::plan::workers::Needs;
use bh_bytecode::order::is_fixed;
use bh_bytecode::{Base, BatchRef, Kind, Opcode, View};
use bh_core::abi::status;
use bh_core::error::{Error, Result};
use std::collections::BTreeMap;

/// How ranks get an operand.
enum Delivery {
    /// A small operand: every rank gets all of it.
    Broadcast,
    /// An operand on the same grid: ranks exchange this halo, with corners if true.
    Halo(Vec<[i64; 2]>, bool),
    /// Any other operand: each rank gets a copy of the elements that it needs, for this operation.
    Copied,
}

struct Source {
    place: usize,
    id: u64,
    view: View,
    delivery: Delivery,
}

impl Planner {
    /// Plans an operation on a grid. False if no operand is on one, or the operation needs rows.
    pub(crate) fn on_grid(&mut self, batch: &BatchRef<'_>, index: u32) -> Result<bool> {
        let instr = &batch.instrs[index as usize];
        if instr.outputs != 1 || !self.touches_grid(batch, index) {
            return Ok(false);
        }
        match instr.opcode.kind() {
            Kind::Elementwise | Kind::Generator => {}
            Kind::Reduction if instr.inputs().len() == 1 => {}
            _ => return Ok(false),
        }
        self.know_inputs(batch, instr);
        self.inputs_to_grid(batch, index)?;
        let mask = if instr.opcode.kind() == Kind::Reduction { u32::from(instr.param) } else { 0 };
        match self.grid_output(batch, index, mask) {
            Some(work) if self.reduces_within(batch, index, &work) => self.compute_on_grid(batch, index, work),
            _ if mask != 0 && !is_fixed(instr.order) => self.reduce_on_grid(batch, index, mask),
            _ => Ok(false),
        }
    }

    /// Is an operand of an instruction on a grid, or will it be?
    fn touches_grid(&self, batch: &BatchRef<'_>, index: u32) -> bool {
        let views = batch.instrs[index as usize].operands().iter().filter_map(|operand| operand.as_view());
        views.into_iter().any(|view| {
            let on_grid = |base: &Base| self.is_on_grid(base.id);
            batch.base_of(view).is_some_and(on_grid) || self.hints.layout(batch.views[view as usize].base).is_some()
        })
    }

    /// The grids in use, and the number of arrays on each.
    pub fn grids(&self) -> BTreeMap<String, usize> {
        let mut grids = BTreeMap::new();
        for layout in self.arrays.values().filter_map(|array| array.layout.as_ref()) {
            let lines: Vec<String> = layout.cuts.iter().map(|cuts| cuts.ranks().to_string()).collect();
            *grids.entry(lines.join("x")).or_default() += 1;
        }
        grids
    }

    /// Is an array on a grid?
    pub fn is_on_grid(&self, id: u64) -> bool {
        self.arrays.get(&id).is_some_and(|array| array.layout.is_some())
    }

    /// Moves operands from rows to the grids that the look-ahead chose.
    fn inputs_to_grid(&mut self, batch: &BatchRef<'_>, index: u32) -> Result<()> {
        let instr = &batch.instrs[index as usize];
        for (place, operand) in instr.operands().iter().enumerate() {
            let Some((view, base)) = operand.as_view().and_then(|view| Some((view, *batch.base_of(view)?))) else {
                continue;
            };
            let Some((shape, grid)) = self.hints.layout(batch.views[view as usize].base).cloned() else { continue };
            let Some(array) = self.arrays.get(&base.id) else { continue };
            let renewed = place == 0 && self.is_renewed(batch, index);
            if array.layout.is_some() || array.small || array.fixed || array.lost.is_some() || renewed {
                continue;
            }
            if let Some(layout) = GridLayout::even(&shape, &grid, &self.settings.weights) {
                self.rows_to_grid(base.id, layout)?;
            }
        }
        Ok(())
    }

    /// Does an instruction overwrite all of its output without reading it?
    fn is_renewed(&self, batch: &BatchRef<'_>, index: u32) -> bool {
        let instr = &batch.instrs[index as usize];
        let Some(output) = instr.operands()[0].as_view() else { return false };
        let base = |view: u32| batch.views[view as usize].base;
        let reads =
            instr.inputs().iter().filter_map(|operand| operand.as_view()).any(|view| base(view) == base(output));
        covers(batch, output) && !reads && !instr.opcode.reads_output()
    }

    /// The output of an instruction, if it is on a grid or can be created there.
    fn grid_output(&self, batch: &BatchRef<'_>, index: u32, mask: u32) -> Option<GridOutput> {
        let instr = &batch.instrs[index as usize];
        let output = instr.operands()[0].as_view()?;
        let (base, view) = (*batch.base_of(output)?, batch.view(output));
        let known = self.arrays.get(&base.id);
        if let Some(layout) = known.and_then(|array| array.layout.as_deref()) {
            let axes = axes_of(&layout.shape, &view)?;
            return Some(GridOutput { base, view, layout: layout.clone(), axes, mask, fresh: false });
        }
        let (shape, grid) = self.hints.layout(batch.views[output as usize].base)?;
        let free = known.is_none_or(|array| !array.fixed && !array.small && self.is_renewed(batch, index));
        if !free || base.bytes() <= self.settings.small_bytes {
            return None;
        }
        let (layout, axes) = (GridLayout::even(shape, grid, &self.settings.weights)?, axes_of(shape, &view)?);
        let mut work = GridOutput { base, view, layout, axes, mask, fresh: true };
        let followed = instr.inputs().iter().filter_map(|operand| operand.as_view()).find_map(|input| {
            let layout = self.arrays.get(&batch.base_of(input)?.id)?.layout.as_deref()?;
            work.followed(shape, layout, &axes_of(&layout.shape, &batch.view(input))?)
        });
        work.layout = followed.filter(|_| covers(batch, output)).unwrap_or(work.layout);
        Some(work)
    }

    /// Has each rank all elements that it reduces? True if the instruction is no reduction.
    fn reduces_within(&self, batch: &BatchRef<'_>, index: u32, work: &GridOutput) -> bool {
        let source = || {
            let view = batch.instrs[index as usize].inputs().first()?.as_view()?;
            let layout = self.arrays.get(&batch.base_of(view)?.id)?.layout.as_deref()?;
            let axes = axes_of(&layout.shape, &batch.view(view))?;
            let folded = |&axis: &usize| axes[axis].dim.is_some_and(|dim| work.mask >> dim & 1 == 1);
            Some(!layout.cut().iter().any(folded))
        };
        work.mask == 0 || source().unwrap_or(false)
    }

    /// Plans each rank's box of the output.
    fn compute_on_grid(&mut self, batch: &BatchRef<'_>, index: u32, work: GridOutput) -> Result<bool> {
        let instr = &batch.instrs[index as usize];
        let mut sources = Vec::new();
        for (place, operand) in instr.inputs().iter().enumerate() {
            let Some((input, base)) = operand.as_view().and_then(|view| Some((view, batch.base_of(view)?))) else {
                continue;
            };
            let (view, array) = (batch.view(input), &self.arrays[&base.id]);
            let delivery = match (&array.layout, array.small) {
                (_, true) => Delivery::Broadcast,
                (None, false) => Delivery::Copied,
                (Some(layout), false) => {
                    let Some(axes) = axes_of(&layout.shape, &view) else { return Ok(false) };
                    work.halo(layout, &axes).map_or(Delivery::Copied, |(by, corners)| Delivery::Halo(by, corners))
                }
            };
            sources.push(Source { place, id: base.id, view, delivery });
        }
        let Some(copies) = self.bring_to_grid(&work, &sources)? else { return Ok(false) };
        if work.fresh {
            self.create_on_grid(&work);
        }
        let target = work.base.id;
        let mut stage = self.after_use(target);
        for source in &sources {
            let array = &self.arrays[&source.id];
            stage = match source.delivery {
                Delivery::Copied => stage.max(copies.at),
                _ => stage.max(self.stage_of(array.wrote)).max(self.stage_of(array.arrived)),
            };
        }
        for rank in self.stages.hosted().clone() {
            let Some(mine) = work.part(rank) else { continue };
            let mut operands = vec![Local::Data(self.on_rank(target, rank, &mine.of(&work.view, 0)?)?)];
            for (place, operand) in instr.inputs().iter().enumerate() {
                let source = sources.iter().find(|source| source.place == place);
                operands.push(match (source, operand.as_view()) {
                    (Some(source), _) => Local::Data(self.operand_on(rank, source, &work, &copies)?),
                    (None, Some(view)) => {
                        let view = batch.view(view);
                        Local::Index(mine.widen(work.mask, view.shape()).of(&view, 0)?)
                    }
                    (None, None) => Local::Same(*operand),
                });
            }
            self.stages.push(stage, rank, instr, index, &operands);
        }
        for (&(_, rank), place) in &copies.places {
            self.stages.push_system(stage, rank, Opcode::Discard, &place.base);
        }
        for source in &sources {
            self.reads(source.id, stage);
        }
        self.finish(target, &work.view, stage, false);
        Ok(true)
    }

    /// The elements of an operand that a rank needs, in its memory.
    fn operand_on(&mut self, rank: usize, source: &Source, work: &GridOutput, copies: &Copies) -> Result<Place> {
        let nothing = || Error::new(status::EXECUTION, format!("rank {rank} has not got what it needs"));
        let need = work.need(rank, &source.view).ok_or_else(nothing)?;
        let view = need.of(&source.view, 0)?;
        let found = match source.delivery {
            Delivery::Broadcast => return Ok(self.locate(source.id, &source.view, (rank, need))?.0),
            Delivery::Halo(..) => self.on_rank(source.id, rank, &view)?,
            Delivery::Copied => *copies.places.get(&(source.place, rank)).ok_or_else(nothing)?,
        };
        #[cfg(debug_assertions)]
        self.stages.versions.expect(&self.arrays[&source.id], &view, rank, &found);
        Ok(found)
    }

    /// A view of an array on a grid in a rank's memory, which must cover it.
    pub(crate) fn on_rank(&mut self, id: u64, rank: usize, view: &View) -> Result<Place> {
        let base = self.shard(id, rank).base;
        let nothing = || Error::new(status::EXECUTION, format!("rank {rank} has nothing of an array"));
        let layout = self.arrays[&id].layout.as_deref().ok_or_else(nothing)?;
        let window = layout.window(rank).ok_or_else(nothing)?;
        Ok(Place { base, view: layout.local(&window, view)? })
    }

    /// Creates the output on its grid, with zeros in elements that the operation does not write.
    fn create_on_grid(&mut self, work: &GridOutput) {
        self.forget(work.base.id);
        let mut layout = work.layout.clone();
        if let Some(capacity) = self.grid_capacities.get(&layout.shape) {
            layout.capacity.clone_from(capacity);
        }
        self.array(&work.base, None);
        if let Some(array) = self.arrays.get_mut(&work.base.id) {
            array.put_on(layout);
        }
    }

    /// Brings operands to the ranks that need them; `None` if this takes too many boxes.
    fn bring_to_grid(&mut self, work: &GridOutput, sources: &[Source]) -> Result<Option<Copies>> {
        let mut copies = Copies::default();
        let mut at = None;
        for source in sources {
            if !self.is_there(source) {
                at = at.max(Some(self.fetchable(source.id)));
            }
        }
        let Some(mut at) = at else { return Ok(Some(copies)) };
        for source in sources {
            if self.is_there(source) {
                continue;
            }
            at = at.max(self.fetchable(source.id));
            match &source.delivery {
                Delivery::Broadcast => self.broadcast_to_all(source.id, &source.view, at)?,
                Delivery::Halo(by, corners) => self.exchange_halo(source.id, by, *corners, at)?,
                Delivery::Copied => {
                    if !self.send_copies(source, work, at, &mut copies)? {
                        return Ok(None);
                    }
                }
            }
        }
        copies.at = at;
        Ok(Some(copies))
    }

    /// Has every rank the elements that it needs of an operand?
    fn is_there(&self, source: &Source) -> bool {
        let array = &self.arrays[&source.id];
        match (&source.delivery, &array.layout) {
            (Delivery::Broadcast, _) => array.everywhere || array.all_have_all(),
            (Delivery::Halo(by, corners), Some(layout)) => {
                let within = |(by, halo): (&[i64; 2], &[i64; 2])| by[0] <= halo[0] && by[1] <= halo[1];
                by.iter().zip(&layout.halo).all(within) && (layout.corners || !corners)
            }
            _ => false,
        }
    }

    /// Broadcasts a small array to all ranks that lack it.
    fn broadcast_to_all(&mut self, id: u64, view: &View, at: usize) -> Result<()> {
        let (ranks, whole) = (self.ranks(), IndexBox::whole(view.shape()));
        let uniform = match self.arrays[&id].valid_runs.around(1, 1..ranks) {
            all if all.len() + 1 == ranks => all,
            _ => 0..0,
        };
        let last = if uniform.is_empty() { ranks } else { 2 };
        self.broadcast_small(id, view, &Needs { shares: (1..last).map(|rank| (rank, whole)).collect(), uniform }, at)
    }

    /// Exchanges halos: every rank gets the halo elements that it lacks.
    fn exchange_halo(&mut self, id: u64, by: &[[i64; 2]], corners: bool, at: usize) -> Result<()> {
        let Some(old) = self.arrays[&id].layout.as_deref().cloned() else { return Ok(()) };
        let mut new = old.clone();
        for (halo, by) in new.halo.iter_mut().zip(by) {
            *halo = [halo[0].max(by[0]), halo[1].max(by[1])];
        }
        new.corners |= corners;
        let join =
            |capacity: &mut [i64; 2], halo: &[i64; 2]| *capacity = [capacity[0].max(halo[0]), capacity[1].max(halo[1])];
        new.capacity.iter_mut().zip(&new.halo).for_each(|(capacity, halo)| join(capacity, halo));
        let hosted = self.stages.hosted().clone();
        let had: BTreeMap<usize, Place> = self.shards_of(id, &old, hosted.clone())?;
        if new.capacity != old.capacity {
            self.grow_on_grid(id, (&old, &new), &had, at)?;
        }
        if let Some(array) = self.arrays.get_mut(&id) {
            array.layout = Some(Box::new(new.clone()));
        }
        let mut receivers: Vec<usize> = match self.stages.complete() {
            true => hosted.clone().collect(),
            false => hosted
                .clone()
                .filter_map(|rank| old.own(rank))
                .flat_map(|own| new.ranks_reaching(&own, &new.halo))
                .collect(),
        };
        receivers.extend(hosted);
        receivers.sort_unstable();
        receivers.dedup();
        for to in receivers {
            for halo in new.halo_boxes(&old, to) {
                for from in old.owners(&halo) {
                    if !self.stages.hosts(from) && !self.stages.hosts(to) {
                        continue;
                    }
                    let Some(both) = old.own(from).and_then(|own| meet(&own, &halo)) else { continue };
                    let view = new.view(&both)?;
                    // Ranks send from the shards that they had before these grew.
                    let source = match (had.get(&from), old.window(from)) {
                        (Some(place), Some(window)) => Place { base: place.base, view: old.local(&window, &view)? },
                        _ => self.on_rank(id, from, &view)?,
                    };
                    let target = self.on_rank(id, to, &view)?;
                    self.move_data(id, from, to, source, target, at);
                }
            }
        }
        self.reads(id, at);
        let now = self.now(at);
        if let Some(array) = self.arrays.get_mut(&id) {
            array.arrived = array.arrived.max(now);
        }
        Ok(())
    }

    /// The shards of some ranks.
    fn shards_of(
        &mut self,
        id: u64,
        layout: &GridLayout,
        ranks: std::ops::Range<usize>,
    ) -> Result<BTreeMap<usize, Place>> {
        let mut shards = BTreeMap::new();
        for rank in ranks {
            if let Some(own) = layout.own(rank) {
                shards.insert(rank, self.on_rank(id, rank, &layout.view(&own)?)?);
            }
        }
        Ok(shards)
    }

    /// Gives shards space for larger halos, and copies their elements.
    fn grow_on_grid(
        &mut self,
        id: u64,
        (old, new): (&GridLayout, &GridLayout),
        had: &BTreeMap<usize, Place>,
        at: usize,
    ) -> Result<()> {
        let (like, last) = (self.arrays[&id].base, self.after_use(id).max(at));
        for (&rank, place) in had {
            let (Some(before), Some(window)) = (old.window(rank), new.window(rank)) else { continue };
            let base = self.base_of_region(rank, &like, &window);
            for region in old.valid(rank) {
                let view = new.view(&region)?;
                let source = Place { base: place.base, view: old.local(&before, &view)? };
                self.copy(at, rank, Place { base, view: new.local(&window, &view)? }, source);
            }
            self.stages.push_system(last, rank, Opcode::Discard, &place.base);
            if let Some(array) = self.arrays.get_mut(&id) {
                array.shards.insert(rank, base);
            }
        }
        let now = self.now(at);
        if let Some(array) = self.arrays.get_mut(&id) {
            // The elements are available only after this stage.
            array.wrote = array.wrote.max(now);
        }
        self.note_capacity(&new.shape, &new.capacity);
        Ok(())
    }

    /// A new base of a rank for a region.
    pub(crate) fn base_of_region(&mut self, rank: usize, like: &Base, region: &[Span]) -> Base {
        let count = |some: &[Span]| some.iter().map(|span| span.len()).product();
        self.local_base(rank, like, count(region), count(&region[1..]))
    }

    /// Sends ranks copies of the elements that they need; false if this takes too many boxes.
    fn send_copies(&mut self, source: &Source, work: &GridOutput, at: usize, copies: &mut Copies) -> Result<bool> {
        let like = self.arrays[&source.id].base;
        for to in self.receivers_of(source, work)? {
            let Some(need) = work.need(to, &source.view) else { continue };
            let view = need.of(&source.view, 0)?;
            let once = unrepeated(&view)?;
            let dense = packed(&once)?;
            let base = self.local_base(to, &like, once.len(), 0);
            let Some(parts) = self.owners_of_view(source.id, &once, to)? else { return Ok(false) };
            for (from, part) in parts {
                let here = part.of(&once, 0)?;
                let there = match self.arrays[&source.id].layout {
                    Some(_) => self.on_rank(source.id, from, &here)?,
                    None => {
                        let shard = self.shard(source.id, from);
                        Place { base: shard.base, view: part.of(&once, shard.window.low)? }
                    }
                };
                self.move_data(source.id, from, to, there, Place { base, view: part.of(&dense, 0)? }, at);
            }
            if self.stages.hosts(to) {
                copies.places.insert((source.place, to), Place { base, view: packed(&view)? });
            }
        }
        self.reads(source.id, at);
        Ok(true)
    }

    /// The owners of a view's elements with their boxes, limited to transfers that involve this process. `None` if
    /// there are too many boxes.
    fn owners_of_view(&self, id: u64, view: &View, to: usize) -> Result<Option<Vec<(usize, IndexBox)>>> {
        let array = &self.arrays[&id];
        let concerns = |rank: usize| self.stages.hosts(to) || self.stages.hosts(rank);
        let mut parts = Vec::new();
        if let Some(layout) = &array.layout {
            let Some(axes) = axes_of(&layout.shape, view) else { return Ok(None) };
            for rank in layout.owners(&region_of(&axes)).into_iter().filter(|&rank| concerns(rank)) {
                parts.extend(layout.own(rank).and_then(|own| part(&axes, view.shape(), &own)).map(|part| (rank, part)));
            }
            return Ok(Some(parts));
        }
        for rank in array.cuts.owners(span_of(view)).filter(|&rank| concerns(rank)) {
            let Some(boxes) = inside(view, array.cuts.own(rank)) else { return Ok(None) };
            parts.extend(boxes.into_iter().map(|part| (rank, part)));
        }
        Ok(Some(parts))
    }

    /// The ranks for which this process receives an operand, or to which it sends some of it. Ranks of a line need the
    /// same elements if the operand does not vary along it.
    fn receivers_of(&self, source: &Source, work: &GridOutput) -> Result<Vec<usize>> {
        let lines = |axis: usize| 0..work.layout.cuts[axis].ranks();
        let busy = |axis: usize, line: usize| !work.axes[axis].inside(work.layout.cuts[axis].own(line)).is_empty();
        let depends = |axis: usize| {
            let dims =
                (0..source.view.rank()).filter(|&dim| source.view.stride()[dim] != 0 && source.view.shape()[dim] > 1);
            work.axes[axis].dim.is_none_or(|dim| dims.into_iter().any(|from| work.kept(from) == Some(dim)))
        };
        let hosted: Vec<Vec<usize>> = self.stages.hosted().clone().map(|rank| work.layout.place(rank)).collect();
        // Coordinates; axes along which the operand does not vary have their first busy line only.
        let mut places: Vec<Vec<usize>> = vec![Vec::new()];
        for axis in 0..work.axes.len() {
            let some: Vec<usize> = lines(axis).filter(|&line| busy(axis, line)).collect();
            let some = if depends(axis) { &some[..] } else { &some[..some.len().min(1)] };
            places =
                places.iter().flat_map(|place| some.iter().map(move |&line| [&place[..], &[line]].concat())).collect();
        }
        let mut receivers = Vec::new();
        for place in places {
            let Some(need) = work.need(work.layout.rank(&place), &source.view) else { continue };
            let mine = |at: &Vec<usize>| (0..place.len()).all(|axis| !depends(axis) || at[axis] == place[axis]);
            if !hosted.iter().any(mine) && !self.owns_some(source.id, &need.of(&source.view, 0)?) {
                continue;
            }
            let mut uniform: Vec<Vec<usize>> = vec![Vec::new()];
            for (axis, &line) in place.iter().enumerate() {
                let all = if depends(axis) { line..line + 1 } else { lines(axis) };
                uniform = uniform
                    .iter()
                    .flat_map(|place| all.clone().map(move |line| [&place[..], &[line]].concat()))
                    .collect();
            }
            receivers.extend(uniform.iter().map(|place| work.layout.rank(place)));
        }
        receivers.sort_unstable();
        Ok(receivers)
    }

    /// Does a rank of this process own elements of a view, or elements between them?
    fn owns_some(&self, id: u64, view: &View) -> bool {
        let array = &self.arrays[&id];
        let region: Option<Region> =
            array.layout.as_ref().and_then(|layout| Some(region_of(&axes_of(&layout.shape, view)?)));
        self.stages.hosted().clone().any(|rank| match (&array.layout, &region) {
            (Some(layout), Some(region)) => layout.own(rank).is_some_and(|own| meet(&own, region).is_some()),
            _ => !array.cuts.own(rank).meet(span_of(view)).is_empty(),
        })
    }
}

/// Copies for one operation, by operand and rank.
#[derive(Default)]
struct Copies {
    places: BTreeMap<(usize, usize), Place>,
    at: usize,
}
