//! Plans operations on arrays that are cut on a grid of ranks ([`crate::plan::mesh`]): each rank computes its box, gets the elements
//! beside it from its neighbours, and of other arrays what its box needs. Operations that are not done so find arrays in rows.

use crate::plan::boxes::{IndexBox, Span, inside, packed, span_of, unrepeated};
use crate::plan::layout::covers;
use crate::plan::mesh::{Mesh, Region, lie, meet, part, region_of};
use crate::plan::meshwork::Work;
use crate::plan::near::Needs;
use crate::plan::planner::Planner;
use crate::plan::stage::{Local, Place};
use bh_bytecode::{Base, BatchRef, Kind, Opcode, View};
use bh_core::abi::status;
use bh_core::error::{Error, Result};
use std::collections::BTreeMap;

/// How ranks get an operand.
enum Way {
    /// It is small: all of it goes to all ranks.
    Round,
    /// It is on the same grid: elements beside a rank's own come to it.
    Border(Vec<[i64; 2]>, bool),
    /// What a rank needs is copied for this operation.
    Copied,
}

struct Source {
    place: usize,
    id: u64,
    view: View,
    way: Way,
}

impl Planner {
    /// Plans an operation on arrays that are cut on a grid of ranks. False if none are, or it is not done so.
    pub(crate) fn on_mesh(&mut self, batch: &BatchRef<'_>, index: u32) -> Result<bool> {
        let instr = &batch.instrs[index as usize];
        if instr.outputs != 1 || !self.meets_mesh(batch, index) {
            return Ok(false);
        }
        match instr.opcode.kind() {
            Kind::Elementwise | Kind::Generator => {}
            Kind::Reduction if instr.inputs().len() == 1 => {}
            _ => return Ok(false),
        }
        self.know_inputs(batch, instr);
        self.enter_meshes(batch, index)?;
        let mask = if instr.opcode.kind() == Kind::Reduction { u32::from(instr.param) } else { 0 };
        match self.work_on_mesh(batch, index, mask) {
            Some(work) if self.folds_within(batch, index, &work) => self.compute_on_mesh(batch, index, work),
            _ if mask != 0 => self.fold_on_mesh(batch, index, mask),
            _ => Ok(false),
        }
    }

    /// Is an operand of an instruction on a grid of ranks, or will it be?
    fn meets_mesh(&self, batch: &BatchRef<'_>, index: u32) -> bool {
        let views = batch.instrs[index as usize].operands().iter().filter_map(|operand| operand.as_view());
        views.into_iter().any(|view| {
            let on_mesh = |base: &Base| self.is_on_mesh(base.id);
            batch.base_of(view).is_some_and(on_mesh) || self.hints.mesh(batch.views[view as usize].base).is_some()
        })
    }

    /// The grids of ranks that arrays are on, and how many are.
    pub fn grids(&self) -> BTreeMap<String, usize> {
        let mut grids = BTreeMap::new();
        for mesh in self.arrays.values().filter_map(|array| array.mesh.as_ref()) {
            let lines: Vec<String> = mesh.cuts.iter().map(|cuts| cuts.ranks().to_string()).collect();
            *grids.entry(lines.join("x")).or_default() += 1;
        }
        grids
    }

    /// Is an array on a grid of ranks?
    pub fn is_on_mesh(&self, id: u64) -> bool {
        self.arrays.get(&id).is_some_and(|array| array.mesh.is_some())
    }

    /// Lets arrays in rows that an instruction uses go to the grid on which the program's look ahead wants them.
    fn enter_meshes(&mut self, batch: &BatchRef<'_>, index: u32) -> Result<()> {
        let instr = &batch.instrs[index as usize];
        for (place, operand) in instr.operands().iter().enumerate() {
            let Some((view, base)) = operand.as_view().and_then(|view| Some((view, *batch.base_of(view)?))) else {
                continue;
            };
            let Some((shape, grid)) = self.hints.mesh(batch.views[view as usize].base).cloned() else { continue };
            let Some(array) = self.arrays.get(&base.id) else { continue };
            let renewed = place == 0 && self.is_renewed(batch, index);
            if array.mesh.is_some() || array.small || array.fixed || array.lost.is_some() || renewed {
                continue;
            }
            if let Some(mesh) = Mesh::even(&shape, &grid, &self.settings.weights) {
                self.enter_mesh(base.id, mesh)?;
            }
        }
        Ok(())
    }

    /// Does an instruction write all of its output, without reading it?
    fn is_renewed(&self, batch: &BatchRef<'_>, index: u32) -> bool {
        let instr = &batch.instrs[index as usize];
        let Some(output) = instr.operands()[0].as_view() else { return false };
        let base = |view: u32| batch.views[view as usize].base;
        let reads =
            instr.inputs().iter().filter_map(|operand| operand.as_view()).any(|view| base(view) == base(output));
        covers(batch, output) && !reads && !instr.opcode.reads_output()
    }

    /// What an instruction writes, if that is on a grid of ranks, or can be made there.
    fn work_on_mesh(&self, batch: &BatchRef<'_>, index: u32, mask: u32) -> Option<Work> {
        let instr = &batch.instrs[index as usize];
        let output = instr.operands()[0].as_view()?;
        let (base, view) = (*batch.base_of(output)?, batch.view(output));
        let known = self.arrays.get(&base.id);
        if let Some(mesh) = known.and_then(|array| array.mesh.as_deref()) {
            let axes = lie(&mesh.shape, &view)?;
            return Some(Work { base, view, mesh: mesh.clone(), axes, mask, fresh: false });
        }
        let (shape, grid) = self.hints.mesh(batch.views[output as usize].base)?;
        let free = known.is_none_or(|array| !array.fixed && !array.small && self.is_renewed(batch, index));
        if !free || base.bytes() <= self.settings.small_bytes {
            return None;
        }
        let (mesh, axes) = (Mesh::even(shape, grid, &self.settings.weights)?, lie(shape, &view)?);
        let mut work = Work { base, view, mesh, axes, mask, fresh: true };
        let followed = instr.inputs().iter().filter_map(|operand| operand.as_view()).find_map(|input| {
            let mesh = self.arrays.get(&batch.base_of(input)?.id)?.mesh.as_deref()?;
            work.followed(shape, mesh, &lie(&mesh.shape, &batch.view(input))?)
        });
        work.mesh = followed.filter(|_| covers(batch, output)).unwrap_or(work.mesh);
        Some(work)
    }

    /// Has each rank all elements of what it folds, or is nothing folded?
    fn folds_within(&self, batch: &BatchRef<'_>, index: u32, work: &Work) -> bool {
        let source = || {
            let view = batch.instrs[index as usize].inputs().first()?.as_view()?;
            let mesh = self.arrays.get(&batch.base_of(view)?.id)?.mesh.as_deref()?;
            let axes = lie(&mesh.shape, &batch.view(view))?;
            let folded = |&axis: &usize| axes[axis].dim.is_some_and(|dim| work.mask >> dim & 1 == 1);
            Some(!mesh.cut().iter().any(folded))
        };
        work.mask == 0 || source().unwrap_or(false)
    }

    /// Every rank computes its box of the output.
    fn compute_on_mesh(&mut self, batch: &BatchRef<'_>, index: u32, work: Work) -> Result<bool> {
        let instr = &batch.instrs[index as usize];
        let mut sources = Vec::new();
        for (place, operand) in instr.inputs().iter().enumerate() {
            let Some((input, base)) = operand.as_view().and_then(|view| Some((view, batch.base_of(view)?))) else {
                continue;
            };
            let (view, array) = (batch.view(input), &self.arrays[&base.id]);
            let way = match (&array.mesh, array.small) {
                (_, true) => Way::Round,
                (None, false) => Way::Copied,
                (Some(mesh), false) => {
                    let Some(axes) = lie(&mesh.shape, &view) else { return Ok(false) };
                    work.border(mesh, &axes).map_or(Way::Copied, |(by, corners)| Way::Border(by, corners))
                }
            };
            sources.push(Source { place, id: base.id, view, way });
        }
        let Some(copies) = self.bring_to_mesh(&work, &sources)? else { return Ok(false) };
        if work.fresh {
            self.make_on_mesh(&work);
        }
        let target = work.base.id;
        let mut stage = self.after_use(target);
        for source in &sources {
            let array = &self.arrays[&source.id];
            stage = match source.way {
                Way::Copied => stage.max(copies.at),
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

    /// Where a rank has what it needs of an operand.
    fn operand_on(&mut self, rank: usize, source: &Source, work: &Work, copies: &Copies) -> Result<Place> {
        let nothing = || Error::new(status::EXECUTION, format!("rank {rank} has not got what it needs"));
        let need = work.need(rank, &source.view).ok_or_else(nothing)?;
        let view = need.of(&source.view, 0)?;
        let found = match source.way {
            Way::Round => return Ok(self.locate(source.id, &source.view, (rank, need))?.0),
            Way::Border(..) => self.on_rank(source.id, rank, &view)?,
            Way::Copied => *copies.places.get(&(source.place, rank)).ok_or_else(nothing)?,
        };
        #[cfg(debug_assertions)]
        self.stages.versions.expect(&self.arrays[&source.id], &view, rank, &found);
        Ok(found)
    }

    /// Where a rank has a view of an array on a grid, all of which it has.
    pub(crate) fn on_rank(&mut self, id: u64, rank: usize, view: &View) -> Result<Place> {
        let base = self.piece(id, rank).base;
        let nothing = || Error::new(status::EXECUTION, format!("rank {rank} has nothing of an array"));
        let mesh = self.arrays[&id].mesh.as_deref().ok_or_else(nothing)?;
        let window = mesh.window(rank).ok_or_else(nothing)?;
        Ok(Place { base, view: mesh.local(&window, view)? })
    }

    /// Makes the array that is written; elements that are not are zeros.
    fn make_on_mesh(&mut self, work: &Work) {
        self.forget(work.base.id);
        let mut mesh = work.mesh.clone();
        if let Some(room) = self.borders.get(&mesh.shape) {
            mesh.room.clone_from(room);
        }
        self.array(&work.base, None);
        if let Some(array) = self.arrays.get_mut(&work.base.id) {
            array.put_on(mesh);
        }
    }

    /// Brings operands to the ranks that need them; `None` if that cannot be done box by box.
    fn bring_to_mesh(&mut self, work: &Work, sources: &[Source]) -> Result<Option<Copies>> {
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
            match &source.way {
                Way::Round => self.give_round(source.id, &source.view, at)?,
                Way::Border(by, corners) => self.bring_border(source.id, by, *corners, at)?,
                Way::Copied => {
                    if !self.hand_copies(source, work, at, &mut copies)? {
                        return Ok(None);
                    }
                }
            }
        }
        copies.at = at;
        Ok(Some(copies))
    }

    /// Has every rank what it needs of an operand?
    fn is_there(&self, source: &Source) -> bool {
        let array = &self.arrays[&source.id];
        match (&source.way, &array.mesh) {
            (Way::Round, _) => array.everywhere || array.all_have_all(),
            (Way::Border(by, corners), Some(mesh)) => {
                let within = |(by, held): (&[i64; 2], &[i64; 2])| by[0] <= held[0] && by[1] <= held[1];
                by.iter().zip(&mesh.held).all(within) && (mesh.corners || !corners)
            }
            _ => false,
        }
    }

    /// A small array goes to all ranks that have not got it.
    fn give_round(&mut self, id: u64, view: &View, at: usize) -> Result<()> {
        let (ranks, whole) = (self.ranks(), IndexBox::whole(view.shape()));
        let alike = match self.arrays[&id].held.around(1, 1..ranks) {
            all if all.len() + 1 == ranks => all,
            _ => 0..0,
        };
        let last = if alike.is_empty() { ranks } else { 2 };
        self.hand_round(id, view, &Needs { shares: (1..last).map(|rank| (rank, whole)).collect(), alike }, at)
    }

    /// Brings elements beside their own to all ranks that have not got them.
    fn bring_border(&mut self, id: u64, by: &[[i64; 2]], corners: bool, at: usize) -> Result<()> {
        let Some(old) = self.arrays[&id].mesh.as_deref().cloned() else { return Ok(()) };
        let mut new = old.clone();
        for (held, by) in new.held.iter_mut().zip(by) {
            *held = [held[0].max(by[0]), held[1].max(by[1])];
        }
        new.corners |= corners;
        let join = |room: &mut [i64; 2], held: &[i64; 2]| *room = [room[0].max(held[0]), room[1].max(held[1])];
        new.room.iter_mut().zip(&new.held).for_each(|(room, held)| join(room, held));
        let hosted = self.stages.hosted().clone();
        let had: BTreeMap<usize, Place> = self.pieces_of(id, &old, hosted.clone())?;
        if new.room != old.room {
            self.grow_on_mesh(id, (&old, &new), &had, at)?;
        }
        if let Some(array) = self.arrays.get_mut(&id) {
            array.mesh = Some(Box::new(new.clone()));
        }
        let mut receivers: Vec<usize> = match self.stages.complete() {
            true => hosted.clone().collect(),
            false => {
                hosted.clone().filter_map(|rank| old.own(rank)).flat_map(|own| new.near(&own, &new.held)).collect()
            }
        };
        receivers.extend(hosted);
        receivers.sort_unstable();
        receivers.dedup();
        for to in receivers {
            for fringe in new.fringe(&old, to) {
                for from in old.owners(&fringe) {
                    if !self.stages.hosts(from) && !self.stages.hosts(to) {
                        continue;
                    }
                    let Some(both) = old.own(from).and_then(|own| meet(&own, &fringe)) else { continue };
                    let view = new.view(&both)?;
                    // What a rank sends is what it had before its memory grew.
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

    /// The memory of some ranks.
    fn pieces_of(&mut self, id: u64, mesh: &Mesh, ranks: std::ops::Range<usize>) -> Result<BTreeMap<usize, Place>> {
        let mut pieces = BTreeMap::new();
        for rank in ranks {
            if let Some(own) = mesh.own(rank) {
                pieces.insert(rank, self.on_rank(id, rank, &mesh.view(&own)?)?);
            }
        }
        Ok(pieces)
    }

    /// Gives ranks more room beside their own elements; what they had is copied.
    fn grow_on_mesh(
        &mut self,
        id: u64,
        (old, new): (&Mesh, &Mesh),
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
                array.pieces.insert(rank, base);
            }
        }
        let now = self.now(at);
        if let Some(array) = self.arrays.get_mut(&id) {
            // From now on the elements are there only when this stage is over.
            array.wrote = array.wrote.max(now);
        }
        self.note_room(&new.shape, &new.room);
        Ok(())
    }

    /// Memory of a rank for a region.
    pub(crate) fn base_of_region(&mut self, rank: usize, like: &Base, region: &[Span]) -> Base {
        let count = |some: &[Span]| some.iter().map(|span| span.len()).product();
        self.local_base(rank, like, count(region), count(&region[1..]))
    }

    /// Sends ranks what their boxes need of an operand; false if that is too many boxes.
    fn hand_copies(&mut self, source: &Source, work: &Work, at: usize, copies: &mut Copies) -> Result<bool> {
        let like = self.arrays[&source.id].base;
        for to in self.receivers_of(source, work)? {
            let Some(need) = work.need(to, &source.view) else { continue };
            let view = need.of(&source.view, 0)?;
            let once = unrepeated(&view)?;
            let dense = packed(&once)?;
            let base = self.local_base(to, &like, once.len(), 0);
            let Some(held) = self.holders(source.id, &once, to)? else { return Ok(false) };
            for (from, part) in held {
                let here = part.of(&once, 0)?;
                let there = match self.arrays[&source.id].mesh {
                    Some(_) => self.on_rank(source.id, from, &here)?,
                    None => {
                        let piece = self.piece(source.id, from);
                        Place { base: piece.base, view: part.of(&once, piece.window.low)? }
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

    /// The ranks that own elements of a view, and which; those that are no concern of this process are left out. `None` if it is too
    /// many boxes.
    fn holders(&self, id: u64, view: &View, to: usize) -> Result<Option<Vec<(usize, IndexBox)>>> {
        let array = &self.arrays[&id];
        let concerns = |rank: usize| self.stages.hosts(to) || self.stages.hosts(rank);
        let mut held = Vec::new();
        if let Some(mesh) = &array.mesh {
            let Some(axes) = lie(&mesh.shape, view) else { return Ok(None) };
            for rank in mesh.owners(&region_of(&axes)).into_iter().filter(|&rank| concerns(rank)) {
                held.extend(mesh.own(rank).and_then(|own| part(&axes, view.shape(), &own)).map(|part| (rank, part)));
            }
            return Ok(Some(held));
        }
        for rank in array.cuts.owners(span_of(view)).filter(|&rank| concerns(rank)) {
            let Some(boxes) = inside(view, array.cuts.own(rank)) else { return Ok(None) };
            held.extend(boxes.into_iter().map(|part| (rank, part)));
        }
        Ok(Some(held))
    }

    /// The ranks that this process gets an operand for, or sends some of it to. Ranks of a line along which the operand has nothing
    /// need the same.
    fn receivers_of(&self, source: &Source, work: &Work) -> Result<Vec<usize>> {
        let lines = |axis: usize| 0..work.mesh.cuts[axis].ranks();
        let busy = |axis: usize, line: usize| !work.axes[axis].inside(work.mesh.cuts[axis].own(line)).is_empty();
        let depends = |axis: usize| {
            let dims =
                (0..source.view.rank()).filter(|&dim| source.view.stride()[dim] != 0 && source.view.shape()[dim] > 1);
            work.axes[axis].dim.is_none_or(|dim| dims.into_iter().any(|from| work.kept(from) == Some(dim)))
        };
        let hosted: Vec<Vec<usize>> = self.stages.hosted().clone().map(|rank| work.mesh.place(rank)).collect();
        // Places, with the first busy line in place of all of an axis that does not matter.
        let mut places: Vec<Vec<usize>> = vec![Vec::new()];
        for axis in 0..work.axes.len() {
            let some: Vec<usize> = lines(axis).filter(|&line| busy(axis, line)).collect();
            let some = if depends(axis) { &some[..] } else { &some[..some.len().min(1)] };
            places =
                places.iter().flat_map(|place| some.iter().map(move |&line| [&place[..], &[line]].concat())).collect();
        }
        let mut receivers = Vec::new();
        for place in places {
            let Some(need) = work.need(work.mesh.rank(&place), &source.view) else { continue };
            let mine = |at: &Vec<usize>| (0..place.len()).all(|axis| !depends(axis) || at[axis] == place[axis]);
            if !hosted.iter().any(mine) && !self.owns_some(source.id, &need.of(&source.view, 0)?) {
                continue;
            }
            let mut alike: Vec<Vec<usize>> = vec![Vec::new()];
            for (axis, &line) in place.iter().enumerate() {
                let all = if depends(axis) { line..line + 1 } else { lines(axis) };
                alike = alike
                    .iter()
                    .flat_map(|place| all.clone().map(move |line| [&place[..], &[line]].concat()))
                    .collect();
            }
            receivers.extend(alike.iter().map(|place| work.mesh.rank(place)));
        }
        receivers.sort_unstable();
        Ok(receivers)
    }

    /// Does a rank of this process own elements of a view, or of what lies between them?
    fn owns_some(&self, id: u64, view: &View) -> bool {
        let array = &self.arrays[&id];
        let region: Option<Region> = array.mesh.as_ref().and_then(|mesh| Some(region_of(&lie(&mesh.shape, view)?)));
        self.stages.hosted().clone().any(|rank| match (&array.mesh, &region) {
            (Some(mesh), Some(region)) => mesh.own(rank).is_some_and(|own| meet(&own, region).is_some()),
            _ => !array.cuts.own(rank).meet(span_of(view)).is_empty(),
        })
    }
}

/// What was copied for an operation: by operand and rank.
#[derive(Default)]
struct Copies {
    places: BTreeMap<(usize, usize), Place>,
    at: usize,
}
