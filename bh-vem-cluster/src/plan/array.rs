//! What every rank knows about an array of the program: where it is cut, and which elements each rank has.

use crate::plan::boxes::Span;
use crate::plan::held::{Has, Runs};
use crate::plan::layout::{Cuts, Weights};
#[cfg(debug_assertions)]
use crate::plan::mesh;
use crate::plan::mesh::Mesh;
#[cfg(debug_assertions)]
use bh_bytecode::interp::offsets;
use bh_bytecode::{Base, View};
use bh_core::error::Error;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// A stage of the program that is planned; stages of earlier ones are over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct When {
    /// Counts the times that stages were run.
    pub flush: u64,
    /// The stage.
    pub stage: usize,
}

/// A part of an array in a rank's memory.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// The rank's own base.
    pub base: Base,
    /// The elements that it has room for.
    pub window: Span,
    /// Those that have the array's present values.
    pub valid: Span,
}

/// Elements of a view in a rank's memory, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Copied {
    /// The rank's own base.
    pub base: Base,
    /// When it is complete.
    pub ready: When,
    /// The program that used it last.
    pub used: u64,
}

/// An array of the program.
#[derive(Clone, Debug)]
pub struct Array {
    /// The program's base.
    pub base: Base,
    /// Elements per row.
    pub row: i64,
    /// Who owns what.
    pub cuts: Cuts,
    /// The grid of ranks that it is cut on, if it is not cut in rows; then neither cuts nor spans say what ranks have.
    pub mesh: Option<Box<Mesh>>,
    /// Elements before and behind its own that each rank computes too, so that they need not be sent.
    pub extension: (i64, i64),
    /// It lives within one program: windows have no room for more.
    pub passing: bool,
    /// It is small: all ranks that have it have all of it.
    pub small: bool,
    /// It is small, and all ranks have its present values.
    pub everywhere: bool,
    /// Its memory is the user's, on rank 0.
    pub fixed: bool,
    /// The error that its data was lost to.
    pub lost: Option<Error>,
    /// The bases of this process's ranks.
    pub pieces: BTreeMap<usize, Base>,
    /// The elements that have the array's present values, unless all ranks have all.
    pub held: Runs,
    /// The elements that ranks have room for.
    pub rooms: Runs,
    /// Copies of views, by rank and view.
    pub copies: HashMap<(usize, View), Copied>,
    /// When it was last written.
    pub wrote: When,
    /// When the last elements of other ranks arrived.
    pub arrived: When,
    /// When it was last read.
    pub read: When,
}

impl Array {
    /// An array of zeros that no rank has memory for yet; `roomy`: it will have some for rows of neighbours.
    pub fn new(base: &Base, row: i64, cuts: Cuts, small: bool, roomy: bool) -> Array {
        let ranks = cuts.ranks();
        let room = if small || roomy { Has::Roomy } else { Has::Around(0, 0) };
        Array {
            base: *base,
            row,
            cuts,
            mesh: None,
            extension: (0, 0),
            passing: false,
            small,
            everywhere: small,
            fixed: false,
            lost: None,
            pieces: BTreeMap::new(),
            held: Runs::new(ranks, Has::Around(0, 0)),
            rooms: Runs::new(ranks, room),
            copies: HashMap::new(),
            wrote: When::default(),
            arrived: When::default(),
            read: When::default(),
        }
    }

    /// Lets it be cut on a grid. Its cuts then say nothing but that it is on several ranks.
    pub fn put_on(&mut self, mesh: Mesh) {
        self.cuts = Cuts::rows(self.base.len, 1, &Weights::even(self.cuts.ranks()));
        (self.mesh, self.extension, self.everywhere) = (Some(Box::new(mesh)), (0, 0), false);
    }

    /// All elements.
    pub fn all(&self) -> Span {
        Span::new(0, self.base.len)
    }

    /// Length and row, which arrays of the same use have in common.
    pub fn kind(&self) -> (i64, i64) {
        (self.base.len, self.row)
    }

    /// The elements that a rank computes: its own, and those that it needs of its neighbours'.
    pub fn reach(&self, rank: usize) -> Span {
        let own = self.cuts.own(rank);
        if own.is_empty() || self.extension == (0, 0) {
            return own;
        }
        Span::new(own.low - self.extension.0, own.high + self.extension.1).meet(self.all())
    }

    /// The ranks from the first that computes elements of a span to the last.
    pub fn reaching(&self, span: Span) -> Range<usize> {
        self.cuts.range(Span::new(span.low - self.extension.1, span.high + self.extension.0).meet(self.all()))
    }

    /// The elements whose present values a rank has.
    pub fn valid(&self, rank: usize) -> Span {
        if self.everywhere { self.all() } else { self.span(rank, self.held.get(rank)) }
    }

    /// Has every rank all elements?
    pub fn all_have_all(&self) -> bool {
        let all = self.all();
        let mut runs = self.held.within(0..self.cuts.ranks());
        runs.all(|(ranks, has)| has == Has::Only(all) || ranks.len() == 1 && self.span(ranks.start, has) == all)
    }

    /// The elements that a rank has room for.
    pub fn window(&self, rank: usize) -> Span {
        self.span(rank, self.rooms.get(rank))
    }

    /// The elements of a rank that has this.
    fn span(&self, rank: usize, has: Has) -> Span {
        match has {
            Has::Only(span) => span,
            Has::Roomy => self.room(self.reach(rank)),
            Has::Around(up, down) => {
                let reach = self.reach(rank);
                if reach.is_empty() || (up, down) == (0, 0) {
                    return reach;
                }
                Span::new(reach.low - up, reach.high + down).meet(self.all())
            }
        }
    }

    /// How a span lies around what a rank computes.
    pub fn around(&self, rank: usize, span: Span) -> Has {
        let reach = self.reach(rank);
        match (reach.is_empty(), span.is_empty()) {
            (true, true) => Has::Around(0, 0),
            (false, _) if span.contains(reach) => Has::Around(reach.low - span.low, span.high - reach.high),
            _ => Has::Only(span),
        }
    }

    /// Notes what a rank has now.
    pub fn set_valid(&mut self, rank: usize, valid: Span) {
        self.held.set(rank..rank + 1, self.around(rank, valid));
    }

    /// The elements of a view that lie in a span, or on a grid those that a rank computes, with their places in its piece.
    #[cfg(debug_assertions)]
    pub fn places_in(&self, rank: usize, span: Span, view: &View) -> Vec<(i64, i64)> {
        let Some(mesh) = &self.mesh else {
            let (low, elements) = (self.window(rank).low, offsets(view.start(), view.shape(), view.stride()));
            let inside = |&element: &i64| span.contains(Span::new(element, element + 1));
            return elements.filter(inside).map(|element| (element, element - low)).collect();
        };
        let axes = mesh::lie(&mesh.shape, view);
        let part = axes.zip(mesh.own(rank)).and_then(|(axes, own)| mesh::part(&axes, view.shape(), &own));
        part.and_then(|part| part.of(view, 0).ok()).map_or(Vec::new(), |part| mesh.places(rank, &part))
    }

    /// The elements that a rank has, and their places in its piece.
    #[cfg(debug_assertions)]
    pub fn places_of_valid(&self, rank: usize) -> Vec<(i64, i64)> {
        if let Some(mesh) = &self.mesh {
            let views = mesh.valid(rank).into_iter().filter_map(|region| mesh.view(&region).ok());
            return views.flat_map(|view| mesh.places(rank, &view)).collect();
        }
        let valid = self.valid(rank);
        let first = if self.pieces.contains_key(&rank) { self.window(rank).low } else { valid.low };
        (valid.low..valid.high).map(|element| (element, element - first)).collect()
    }

    /// The piece of a rank of this process.
    pub fn piece(&self, rank: usize) -> Option<Piece> {
        let base = *self.pieces.get(&rank)?;
        Some(Piece { base, window: self.window(rank), valid: self.valid(rank) })
    }

    /// Room for a span and as many rows around it as neighbours are likely to ask for.
    pub fn room(&self, span: Span) -> Span {
        if self.small {
            return self.all();
        }
        let margin = self.margin();
        if self.passing || span.len() < 4 * margin {
            return span;
        }
        Span::new(span.low - margin, span.high + margin).meet(self.all())
    }

    /// The elements around a piece that neighbours are likely to ask for.
    pub fn margin(&self) -> i64 {
        if self.row > 1 { self.row } else { 16 }
    }

    /// A span, extended to whole rows.
    pub fn whole_rows(&self, span: Span) -> Span {
        let row = self.row.max(1);
        Span::new(span.low.div_euclid(row) * row, (span.high + row - 1).div_euclid(row) * row).meet(self.all())
    }

    /// The copies of views, in an order that does not depend on a hash table.
    fn sorted_copies(&self) -> Vec<(&(usize, View), &Copied)> {
        let mut copies: Vec<_> = self.copies.iter().collect();
        let place = |view: &View| (view.start(), view.shape().to_vec(), view.stride().to_vec());
        copies.sort_by_cached_key(|((rank, view), _)| (*rank, place(view)));
        copies
    }

    /// Appends all that planning depends on, but for the identities of bases.
    pub fn describe(&self, words: &mut Vec<u64>) {
        let flags = [self.passing, self.small, self.everywhere, self.fixed];
        let flags = flags.iter().fold(1, |word, &flag| word << 1 | u64::from(flag));
        words.extend([flags, self.row as u64, self.extension.0 as u64, self.extension.1 as u64]);
        self.cuts.describe(words);
        words.push(u64::from(self.mesh.is_some()));
        self.mesh.iter().for_each(|mesh| mesh.describe(words));
        self.held.describe(words);
        self.rooms.describe(words);
        words.push(self.pieces.len() as u64);
        for (&rank, base) in &self.pieces {
            words.extend([rank as u64, base.len as u64, base.row_hint as u64]);
        }
        words.push(self.copies.len() as u64);
        if self.copies.is_empty() {
            return;
        }
        for ((rank, view), _) in self.sorted_copies() {
            words.extend([*rank as u64, view.start() as u64, view.rank() as u64]);
            words.extend(view.shape().iter().chain(view.stride()).map(|&dim| dim as u64));
        }
    }

    /// Appends the bases of this process's ranks; equal descriptions have them in the same order.
    pub fn bases(&self, ids: &mut Vec<u64>) {
        ids.extend(self.pieces.values().map(|base| base.id));
        if !self.copies.is_empty() {
            ids.extend(self.sorted_copies().into_iter().map(|(_, copy)| copy.base.id).filter(|&id| id != 0));
        }
    }

    /// Lets each base be replaced.
    pub fn each_base(&mut self, mut replace: impl FnMut(&mut u64)) {
        self.pieces.values_mut().for_each(|base| replace(&mut base.id));
        self.copies.values_mut().for_each(|copy| replace(&mut copy.base.id));
    }

    /// The same when all that is planned is over.
    pub fn settled(&self) -> Array {
        let over = When::default();
        let mut array = Array { wrote: over, arrived: over, read: over, ..self.clone() };
        array.copies.values_mut().for_each(|copy| copy.ready = over);
        array
    }

    /// About what it takes in memory.
    pub fn bytes(&self) -> usize {
        let pieces = self.pieces.len() * size_of::<(usize, Base)>();
        let copies = self.copies.len() * size_of::<((usize, View), Copied)>();
        let mesh = self.mesh.as_ref().map_or(0, |mesh| mesh.bytes());
        size_of::<Array>() + mesh + self.cuts.bytes() + self.held.bytes() + self.rooms.bytes() + pieces + copies
    }

    /// Lets each rank compute this many elements before and behind its own from now on; what ranks have and have room for stays. False,
    /// and nothing is different, where some rank has no room for these elements, or does not have them. `fresh`: nobody has a
    /// piece yet; `renewed`: all elements are about to be written, from other arrays.
    pub fn reach_out(&mut self, extension: (i64, i64), fresh: bool, renewed: bool) -> bool {
        let mut wide = Array { extension, ..self.clone() };
        let none = Has::Around(0, 0);
        let room = |ranks, has| if fresh { Some(none) } else { self.seen_from(&wide, ranks, has) };
        let held = |ranks, has| self.seen_from(&wide, ranks, has).or(renewed.then_some(none));
        let (Some(rooms), Some(held)) = (self.rooms.mapped(room), self.held.mapped(held)) else { return false };
        (wide.rooms, wide.held) = (rooms, held);
        *self = wide;
        true
    }

    /// Ends [`Array::reach_out`].
    pub fn draw_back(&mut self) {
        let mut own = Array { extension: (0, 0), ..self.clone() };
        let seen = |ranks, has| self.seen_from(&own, ranks, has);
        let rooms = self.rooms.mapped(|ranks, has| seen(ranks, has).or(Some(has)));
        let held = self.held.mapped(|ranks, has| seen(ranks, has).or(Some(Has::Around(0, 0))));
        if let (Some(rooms), Some(held)) = (rooms, held) {
            (own.rooms, own.held) = (rooms, held);
            *self = own;
        }
    }

    /// What some ranks have, from where another extension begins; `None` if that is less than what they compute there.
    fn seen_from(&self, other: &Array, ranks: Range<usize>, has: Has) -> Option<Has> {
        if ranks.len() == 1 {
            let (rank, span) = (ranks.start, self.span(ranks.start, has));
            let reach = other.reach(rank);
            return (reach.is_empty() || span.contains(reach)).then(|| other.around(rank, span));
        }
        let margin = self.margin();
        let (up, down) = match has {
            Has::Around(up, down) => (up, down),
            Has::Roomy if !self.small && !self.passing && self.cuts.least_rows() * self.cuts.step() >= 4 * margin => {
                (margin, margin)
            }
            Has::Only(span) if ranks.clone().all(|rank| span.contains(other.reach(rank))) => return Some(has),
            _ => return None,
        };
        let (up, down) = (up + self.extension.0 - other.extension.0, down + self.extension.1 - other.extension.1);
        (up >= 0 && down >= 0).then_some(Has::Around(up, down))
    }

    /// Notes that elements of this span changed where they belong: what ranks have of others is out of date.
    pub fn changed(&mut self, span: Span) {
        if let Some(mesh) = &mut self.mesh {
            mesh.held.fill([0, 0]);
            mesh.corners = false;
            return;
        }
        let runs: Vec<(Range<usize>, Has)> = self.held.within(0..self.cuts.ranks()).collect();
        for (ranks, has) in runs {
            match has {
                Has::Around(0, 0) => {}
                Has::Around(up, down) => self.trim(ranks, (up, down), span),
                Has::Only(valid) if valid.meet(span).is_empty() => {}
                _ => self.held.set(ranks, Has::Around(0, 0)),
            }
        }
    }

    /// The same for ranks that have this many elements around what they compute. Where borders lie in the span or beside it on all
    /// of them, they are seen to at once.
    fn trim(&mut self, ranks: Range<usize>, (up, down): (i64, i64), span: Span) {
        let (first, last) = (self.reach(ranks.start), self.reach(ranks.end - 1));
        if ranks.len() == 1 {
            let mut valid = self.valid(ranks.start);
            if !Span::new(valid.low, first.low).meet(span).is_empty() {
                valid.low = valid.low.max(span.high.min(first.low));
            }
            if !Span::new(first.high, valid.high).meet(span).is_empty() {
                valid.high = valid.high.min(span.low.max(first.high));
            }
            return self.set_valid(ranks.start, valid);
        }
        let left = |borders: Span, width: i64| match borders.meet(self.all()) {
            _ if width == 0 => Some(0),
            borders if span.contains(borders) => Some(0),
            borders if span.meet(borders).is_empty() => Some(width),
            _ => None,
        };
        let above = left(Span::new(first.low - up, last.low), up);
        let below = left(Span::new(first.high, last.high + down), down);
        if let (Some(above), Some(below)) = (above, below) {
            return self.held.set(ranks, Has::Around(above, below));
        }
        let middle = ranks.start + ranks.len() / 2;
        self.trim(ranks.start..middle, (up, down), span);
        self.trim(middle..ranks.end, (up, down), span);
    }
}
