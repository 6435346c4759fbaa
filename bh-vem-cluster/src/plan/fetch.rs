//! Fetches operands to the ranks that need them: rows at borders into the windows of shards, other elements as packed
//! copies.

use crate::plan::array::{PackedCopy, Shard};

use crate::plan::boxes::{IndexBox, Span, inside, packed, span_of, unrepeated};
use crate::plan::coverage::Coverage;
use crate::plan::planner::{Planner, Share};
use crate::plan::stage::{Local, Place, Transfer};
use crate::plan::workers::Needs;
use bh_bytecode::{Instr, Opcode, View};
use bh_core::abi::status;
use bh_core::error::{Error, Result};
use std::collections::HashMap;

/// An operand cannot be fetched box by box: the instruction must run on one rank.
#[derive(Debug)]
pub struct Unsuited;

/// How a rank gets a view's elements.
enum FetchMethod {
    /// Its shard has them.
    Here,
    /// It has a packed copy.
    Copy,
    /// The missing elements come into its shard's window.
    Window(Span),
    /// The elements come as a packed copy.
    Pack,
}

impl Planner {
    /// Does every rank have the elements for its shares?
    pub(crate) fn is_available(&self, id: u64, view: &View, shares: &[Share]) -> Result<bool> {
        for (rank, part) in shares {
            let part = part.of(view, 0)?;
            if !matches!(self.fetch_method(id, *rank, &part)?, FetchMethod::Here | FetchMethod::Copy) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A rank's valid elements and window after a part of a view has arrived; `None` for a packed copy.
    pub(crate) fn coverage_after(&self, id: u64, rank: usize, part: &View) -> Result<Option<[Coverage; 2]>> {
        let array = &self.arrays[&id];
        let (has, mut covers) = (array.valid_runs.get(rank), array.window_runs.get(rank));
        Ok(match self.fetch_method(id, rank, part)? {
            FetchMethod::Here => Some([has, covers]),
            FetchMethod::Window(wanted) => {
                let (valid, window) = (array.valid(rank).join(wanted), array.window(rank));
                if !window.contains(valid) {
                    covers = array.around(rank, window.join(array.with_margin(valid)));
                }
                Some([array.around(rank, valid), covers])
            }
            FetchMethod::Copy | FetchMethod::Pack => None,
        })
    }

    /// Fetches a view's elements to the ranks that need them, in stage `at` if they must move.
    pub(crate) fn fetch(
        &mut self,
        id: u64,
        view: &View,
        shares: &[Share],
        at: usize,
    ) -> Result<std::result::Result<(), Unsuited>> {
        self.fetch_needs(id, view, &Needs { shares: shares.to_vec(), uniform: 0..0 }, at)
    }

    /// The same for needs in which one rank may represent many.
    pub(crate) fn fetch_needs(
        &mut self,
        id: u64,
        view: &View,
        needs: &Needs,
        at: usize,
    ) -> Result<std::result::Result<(), Unsuited>> {
        if self.arrays[&id].small {
            self.broadcast_small(id, view, needs, at)?;
            return Ok(Ok(()));
        }
        let mut grown: HashMap<usize, Shard> = HashMap::new();
        for &(rank, part) in &needs.shares {
            let part = part.of(view, 0)?;
            match self.fetch_method(id, rank, &part)? {
                FetchMethod::Here | FetchMethod::Copy => {}
                FetchMethod::Window(wanted) => self.widen(id, rank, wanted, at, &mut grown)?,
                FetchMethod::Pack => {
                    if !self.pack(id, rank, &part, at, &grown)? {
                        return Ok(Err(Unsuited));
                    }
                }
            }
        }
        self.apply_uniformly(id, &needs.uniform);
        Ok(Ok(()))
    }

    /// The location of a fetched part of a view on a rank, and the first stage in which it is available.
    pub(crate) fn locate(&mut self, id: u64, view: &View, (rank, part): Share) -> Result<(Place, usize)> {
        let part = part.of(view, 0)?;
        let found = self.place(id, part, rank)?;
        #[cfg(debug_assertions)]
        self.stages.versions.expect(&self.arrays[&id], &part, rank, &found.0);
        Ok(found)
    }

    fn place(&mut self, id: u64, part: View, rank: usize) -> Result<(Place, usize)> {
        let array = &self.arrays[&id];
        if !array.valid(rank).contains(span_of(&part)) {
            let program = self.program;
            let copy = self.arrays.get_mut(&id).and_then(|array| array.copies.get_mut(&(rank, part)));
            let copy = copy.map(|copy| {
                copy.used = program;
                *copy
            });
            let lost = || Error::new(status::EXECUTION, format!("rank {rank} has not got what it was sent"));
            let copy = copy.ok_or_else(lost)?;
            return Ok((Place { base: copy.base, view: packed(&part)? }, self.stage_of(copy.ready)));
        }
        let ready = self.stage_of(array.wrote).max(self.stage_of(array.arrived));
        let shard = self.shard(id, rank);
        let whole = IndexBox::whole(part.shape());
        Ok((Place { base: shard.base, view: whole.of(&part, shard.window.low)? }, ready))
    }

    fn fetch_method(&self, id: u64, rank: usize, part: &View) -> Result<FetchMethod> {
        let array = &self.arrays[&id];
        let (valid, span) = (array.valid(rank), span_of(part));
        if valid.contains(span) {
            return Ok(FetchMethod::Here);
        }
        if array.copies.contains_key(&(rank, *part)) {
            return Ok(FetchMethod::Copy);
        }
        if array.small {
            return Ok(FetchMethod::Window(array.all()));
        }
        let wanted = array.whole_rows(span);
        let coming = valid.join(wanted).len() - valid.len();
        let once = unrepeated(part)?;
        let had: i64 = inside(&once, valid).map_or(0, |boxes| boxes.iter().map(IndexBox::len).sum());
        // Whole rows are fetched even if a part would do, because later operations are likely to need the rest.
        let allowed = if valid.is_empty() { 1 } else { 2 };
        Ok(if coming <= allowed * (once.len() - had) + array.row.min(8) {
            FetchMethod::Window(wanted)
        } else {
            FetchMethod::Pack
        })
    }

    /// Fetches elements into the window of a rank's shard, which grows if necessary.
    pub(crate) fn widen(
        &mut self,
        id: u64,
        rank: usize,
        wanted: Span,
        at: usize,
        grown: &mut HashMap<usize, Shard>,
    ) -> Result<()> {
        let old = self.shard(id, rank);
        let valid = old.valid.join(wanted);
        let missing = match old.valid.is_empty() {
            true => vec![wanted],
            false => vec![Span::new(valid.low, old.valid.low), Span::new(old.valid.high, valid.high)],
        };
        let mut shard = Shard { valid, ..old };
        if !old.window.contains(valid) {
            self.grow(id, rank, &mut shard, old, at)?;
            grown.entry(rank).or_insert(old);
        }
        let owners = self.arrays[&id].cuts.clone();
        for span in missing {
            for owner in owners.owners(span) {
                let part = span.meet(owners.own(owner));
                let source = grown.get(&owner).copied().unwrap_or_else(|| self.shard(id, owner));
                let target = Place::run(shard.base, part, shard.window)?;
                self.move_data(id, owner, rank, Place::run(source.base, part, source.window)?, target, at);
            }
        }
        let now = self.now(at);
        if let Some(array) = self.arrays.get_mut(&id) {
            if shard.base.id != 0 {
                array.shards.insert(rank, shard.base);
            }
            let window = array.around(rank, shard.window);
            array.window_runs.set(rank..rank + 1, window);
            array.set_valid(rank, shard.valid);
            array.arrived = array.arrived.max(now);
        }
        Ok(())
    }

    /// Gives a shard a larger window, and copies its elements.
    fn grow(&mut self, id: u64, rank: usize, shard: &mut Shard, old: Shard, at: usize) -> Result<()> {
        let array = &self.arrays[&id];
        let window = old.window.join(array.with_margin(shard.valid));
        let (row, last) = (array.row, self.after_use(id).max(at));
        let halo = array.with_margin(old.valid).contains(shard.valid).then(|| array.kind());
        if let Some(kind) = halo {
            self.note_halo(kind);
        }
        shard.base = self.local_base(rank, &old.base, window.len(), row);
        shard.window = window;
        if !old.valid.is_empty() {
            let (source, target) =
                (Place::run(old.base, old.valid, old.window)?, Place::run(shard.base, old.valid, window)?);
            self.copy(at, rank, target, source);
            // The elements are available only after this stage.
            let now = self.now(at);
            if let Some(array) = self.arrays.get_mut(&id) {
                array.wrote = array.wrote.max(now);
            }
        }
        self.stages.push_system(last, rank, Opcode::Discard, &old.base);
        Ok(())
    }

    /// Fetches the elements of a view as a packed copy. False if there are too many boxes.
    pub(crate) fn pack(
        &mut self,
        id: u64,
        rank: usize,
        part: &View,
        at: usize,
        grown: &HashMap<usize, Shard>,
    ) -> Result<bool> {
        let once = unrepeated(part)?;
        let dense = packed(&once)?;
        let cuts = self.arrays[&id].cuts.clone();
        let mut moves = Vec::new();
        for owner in cuts.owners(span_of(&once)) {
            let Some(boxes) = inside(&once, cuts.own(owner)) else { return Ok(false) };
            moves.extend(boxes.into_iter().map(|part| (owner, part)));
        }
        let like = self.arrays[&id].base;
        let base = self.local_base(rank, &like, once.len(), 0);
        for (owner, part) in moves {
            // Other ranks read the shard that was there before this stage; the shard's own rank reads the new one.
            let old = grown.get(&owner).filter(|_| owner != rank).copied();
            let shard = old.unwrap_or_else(|| self.shard(id, owner));
            let source = Place { base: shard.base, view: part.of(&once, shard.window.low)? };
            self.move_data(id, owner, rank, source, Place { base, view: part.of(&dense, 0)? }, at);
        }
        let copy = PackedCopy { base, ready: self.now(at), used: self.program };
        if let Some(array) = self.arrays.get_mut(&id) {
            array.copies.insert((rank, *part), copy);
            self.copied.insert(id);
        }
        Ok(true)
    }

    /// Sends elements at the beginning of a stage, or copies them in that stage if they stay on their rank.
    pub(crate) fn move_data(&mut self, id: u64, from: usize, to: usize, source: Place, target: Place, at: usize) {
        if from == to {
            self.copy(at, to, target, source);
        } else if self.stages.hosts(from) || self.stages.hosts(to) {
            self.stages.transfer(at, Transfer { from, to, source, target });
        }
        self.reads(id, at);
    }

    /// Copies elements within a rank.
    pub(crate) fn copy(&mut self, at: usize, rank: usize, target: Place, source: Place) {
        let like = Instr::new(Opcode::Copy, &[Default::default(); 2]);
        self.stages.push(at, rank, &like, u32::MAX, &[Local::Data(target), Local::Data(source)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::layout::Weights;
    use crate::plan::settings::Settings;
    use bh_bytecode::{Base, Batch, DType, Operand};

    const SHAPE: [i64; 2] = [24, 10];

    /// Copies an array, from some row on, to another on three ranks; returns the middle rank's window.
    fn copy_on(planner: &mut Planner, from: u64, to: u64, moved: i64) -> Span {
        let mut batch = Batch::default();
        let base = |id| Base { row_hint: SHAPE[1], ..Base::new(id, DType::F64, SHAPE[0] * SHAPE[1]) };
        let (source, target) = (batch.push_base(base(from)), batch.push_base(base(to)));
        let part = |row: i64| View::new(row * SHAPE[1], &[SHAPE[0] - 1, SHAPE[1]], &[SHAPE[1], 1]).unwrap();
        let (read, written) = match moved {
            0 => (View::contiguous(&SHAPE).unwrap(), View::contiguous(&SHAPE).unwrap()),
            _ => (part(moved), part(0)),
        };
        let operands = [batch.push_view(target, &written), batch.push_view(source, &read)].map(Operand::view);
        batch.push_instr(Instr::new(Opcode::Copy, &operands));
        planner.begin(&batch.as_ref(), &[0]);
        planner.plan(&batch.as_ref(), 0).unwrap();
        planner.end();
        planner.take_stages();
        planner.shard(to, 1).window
    }

    #[test]
    fn shards_have_a_margin_if_similar_arrays_needed_it() {
        let (weights, small_bytes) = (Weights::even(3), 64);
        let settings = Settings { weights, small_bytes, overlap_rows: 2, overlap_bytes: 0, ..Settings::default(3) };
        let mut id = 100;
        let new_id = move || {
            id += 1;
            id
        };
        let mut planner = Planner::new(3, 0..3, settings, Box::new(new_id));
        assert_eq!(copy_on(&mut planner, 1, 2, 0), Span::new(80, 160));
        // The written array keeps its cuts because it is written in part.
        copy_on(&mut planner, 2, 1, 1);
        let grown = planner.shard(2, 1).window;
        assert!(grown.contains(Span::new(80, 170)), "{grown:?}");
        // Arrays like the one whose border was read get a margin immediately.
        assert_eq!(copy_on(&mut planner, 2, 4, 0), Span::new(70, 170));
    }
}
