//! Brings operands to the ranks that need them: elements at the borders into the windows of pieces, others as copies.

use crate::plan::array::{Copied, Piece};

use crate::plan::boxes::{IndexBox, Span, inside, packed, span_of, unrepeated};
use crate::plan::held::Has;
use crate::plan::near::Needs;
use crate::plan::planner::{Planner, Share};
use crate::plan::stage::{Local, Place, Transfer};
use bh_bytecode::{Instr, Opcode, View};
use bh_core::abi::status;
use bh_core::error::{Error, Result};
use std::collections::HashMap;

/// No operand can be brought over box by box: the instruction must be brought to one rank.
#[derive(Debug)]
pub struct Unsuited;

/// How a rank gets a view's elements.
enum Way {
    /// It has them.
    Here,
    /// It has a copy.
    Copy,
    /// Others' elements come into its piece's window.
    Window(Span),
    /// They are copied, one after the other.
    Pack,
}

impl Planner {
    /// Does every rank have the elements for its shares?
    pub(crate) fn is_here(&self, id: u64, view: &View, shares: &[Share]) -> Result<bool> {
        for (rank, part) in shares {
            let part = part.of(view, 0)?;
            if !matches!(self.way(id, *rank, &part)?, Way::Here | Way::Copy) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What a rank has and has room for when a part of a view has come to it; `None` if it is copied.
    pub(crate) fn with_rows(&self, id: u64, rank: usize, part: &View) -> Result<Option<[Has; 2]>> {
        let array = &self.arrays[&id];
        let (held, mut room) = (array.held.get(rank), array.rooms.get(rank));
        Ok(match self.way(id, rank, part)? {
            Way::Here => Some([held, room]),
            Way::Window(wanted) => {
                let (valid, window) = (array.valid(rank).join(wanted), array.window(rank));
                if !window.contains(valid) {
                    room = array.around(rank, window.join(array.room(valid)));
                }
                Some([array.around(rank, valid), room])
            }
            Way::Copy | Way::Pack => None,
        })
    }

    /// Brings a view's elements to the ranks that need them, in stage `at` where they have to move.
    pub(crate) fn fetch(
        &mut self,
        id: u64,
        view: &View,
        shares: &[Share],
        at: usize,
    ) -> Result<std::result::Result<(), Unsuited>> {
        self.fetch_needs(id, view, &Needs { shares: shares.to_vec(), alike: 0..0 }, at)
    }

    /// The same for ranks of which one may stand for many.
    pub(crate) fn fetch_needs(
        &mut self,
        id: u64,
        view: &View,
        needs: &Needs,
        at: usize,
    ) -> Result<std::result::Result<(), Unsuited>> {
        if self.arrays[&id].small {
            self.hand_round(id, view, needs, at)?;
            return Ok(Ok(()));
        }
        let mut grown: HashMap<usize, Piece> = HashMap::new();
        for &(rank, part) in &needs.shares {
            let part = part.of(view, 0)?;
            match self.way(id, rank, &part)? {
                Way::Here | Way::Copy => {}
                Way::Window(wanted) => self.widen(id, rank, wanted, at, &mut grown)?,
                Way::Pack => {
                    if !self.pack(id, rank, &part, at, &grown)? {
                        return Ok(Err(Unsuited));
                    }
                }
            }
        }
        self.do_alike(id, &needs.alike);
        Ok(Ok(()))
    }

    /// Where a rank has the elements of a part of a view that was fetched, and the stage from which on they are there.
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
        let piece = self.piece(id, rank);
        let whole = IndexBox::whole(part.shape());
        Ok((Place { base: piece.base, view: whole.of(&part, piece.window.low)? }, ready))
    }

    fn way(&self, id: u64, rank: usize, part: &View) -> Result<Way> {
        let array = &self.arrays[&id];
        let (valid, span) = (array.valid(rank), span_of(part));
        if valid.contains(span) {
            return Ok(Way::Here);
        }
        if array.copies.contains_key(&(rank, *part)) {
            return Ok(Way::Copy);
        }
        if array.small {
            return Ok(Way::Window(array.all()));
        }
        let wanted = array.whole_rows(span);
        let coming = valid.join(wanted).len() - valid.len();
        let once = unrepeated(part)?;
        let had: i64 = inside(&once, valid).map_or(0, |boxes| boxes.iter().map(IndexBox::len).sum());
        // Whole rows are fetched although a part would do, as others will ask for the rest of them.
        let room = if valid.is_empty() { 1 } else { 2 };
        Ok(if coming <= room * (once.len() - had) + array.row.min(8) { Way::Window(wanted) } else { Way::Pack })
    }

    /// Brings elements into the window of a rank's piece, which grows if it has no room for them.
    pub(crate) fn widen(
        &mut self,
        id: u64,
        rank: usize,
        wanted: Span,
        at: usize,
        grown: &mut HashMap<usize, Piece>,
    ) -> Result<()> {
        let old = self.piece(id, rank);
        let valid = old.valid.join(wanted);
        let missing = match old.valid.is_empty() {
            true => vec![wanted],
            false => vec![Span::new(valid.low, old.valid.low), Span::new(old.valid.high, valid.high)],
        };
        let mut piece = Piece { valid, ..old };
        if !old.window.contains(valid) {
            self.grow(id, rank, &mut piece, old, at)?;
            grown.entry(rank).or_insert(old);
        }
        let owners = self.arrays[&id].cuts.clone();
        for span in missing {
            for owner in owners.owners(span) {
                let part = span.meet(owners.own(owner));
                let source = grown.get(&owner).copied().unwrap_or_else(|| self.piece(id, owner));
                let target = Place::run(piece.base, part, piece.window)?;
                self.move_data(id, owner, rank, Place::run(source.base, part, source.window)?, target, at);
            }
        }
        let now = self.now(at);
        if let Some(array) = self.arrays.get_mut(&id) {
            if piece.base.id != 0 {
                array.pieces.insert(rank, piece.base);
            }
            let room = array.around(rank, piece.window);
            array.rooms.set(rank..rank + 1, room);
            array.set_valid(rank, piece.valid);
            array.arrived = array.arrived.max(now);
        }
        Ok(())
    }

    /// Gives a piece a larger window; what it had is copied.
    fn grow(&mut self, id: u64, rank: usize, piece: &mut Piece, old: Piece, at: usize) -> Result<()> {
        let array = &self.arrays[&id];
        let window = old.window.join(array.room(piece.valid));
        let (row, last) = (array.row, self.after_use(id).max(at));
        let border = array.room(old.valid).contains(piece.valid).then(|| array.kind());
        if let Some(kind) = border {
            self.note_border(kind);
        }
        piece.base = self.local_base(rank, &old.base, window.len(), row);
        piece.window = window;
        if !old.valid.is_empty() {
            let (source, target) =
                (Place::run(old.base, old.valid, old.window)?, Place::run(piece.base, old.valid, window)?);
            self.copy(at, rank, target, source);
            // From now on the elements are there only when this stage is over.
            let now = self.now(at);
            if let Some(array) = self.arrays.get_mut(&id) {
                array.wrote = array.wrote.max(now);
            }
        }
        self.stages.push_system(last, rank, Opcode::Discard, &old.base);
        Ok(())
    }

    /// Copies the elements of a view to a rank, one after the other.
    pub(crate) fn pack(
        &mut self,
        id: u64,
        rank: usize,
        part: &View,
        at: usize,
        grown: &HashMap<usize, Piece>,
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
            // Others read what a piece was before it grew in this stage; its own rank copies afterwards.
            let old = grown.get(&owner).filter(|_| owner != rank).copied();
            let piece = old.unwrap_or_else(|| self.piece(id, owner));
            let source = Place { base: piece.base, view: part.of(&once, piece.window.low)? };
            self.move_data(id, owner, rank, source, Place { base, view: part.of(&dense, 0)? }, at);
        }
        let copy = Copied { base, ready: self.now(at), used: self.program };
        if let Some(array) = self.arrays.get_mut(&id) {
            array.copies.insert((rank, *part), copy);
            self.copied.insert(id);
        }
        Ok(true)
    }

    /// Lets elements of an array move at the beginning of a stage, or copies them in it if they stay on their rank.
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

    /// Copies an array, from some row on, to another on three ranks; returns what the middle one has room for.
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
        planner.piece(to, 1).window
    }

    #[test]
    fn pieces_have_room_for_neighbours_where_arrays_like_them_needed_it() {
        let (weights, small_bytes) = (Weights::even(3), 64);
        let settings = Settings { weights, small_bytes, overlap_rows: 2, overlap_bytes: 0, ..Settings::default(3) };
        let mut id = 100;
        let new_id = move || {
            id += 1;
            id
        };
        let mut planner = Planner::new(3, 0..3, settings, Box::new(new_id));
        assert_eq!(copy_on(&mut planner, 1, 2, 0), Span::new(80, 160));
        // The array that is written keeps its cuts, as not all of it is.
        copy_on(&mut planner, 2, 1, 1);
        let grown = planner.piece(2, 1).window;
        assert!(grown.contains(Span::new(80, 170)), "{grown:?}");
        // Arrays like the one whose border was read get room at once.
        assert_eq!(copy_on(&mut planner, 2, 4, 0), Span::new(70, 170));
    }
}
