//! What every rank knows about an array of the program: where it is cut, and which elements each rank has.

use crate::plan::boxes::Span;
use crate::plan::layout::Cuts;
use bh_bytecode::{Base, View};
use bh_core::error::Error;
use std::collections::HashMap;

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
    /// By rank.
    pub pieces: Vec<Option<Piece>>,
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
    /// An array of zeros that no rank has memory for yet.
    pub fn new(base: &Base, row: i64, cuts: Cuts, small: bool) -> Array {
        let ranks = cuts.ranks();
        Array {
            base: *base,
            row,
            cuts,
            extension: (0, 0),
            passing: false,
            small,
            everywhere: small,
            fixed: false,
            lost: None,
            pieces: vec![None; ranks],
            copies: HashMap::new(),
            wrote: When::default(),
            arrived: When::default(),
            read: When::default(),
        }
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

    /// The elements whose present values a rank has.
    pub fn valid(&self, rank: usize) -> Span {
        match &self.pieces[rank] {
            Some(piece) => piece.valid,
            None if self.everywhere => self.all(),
            None => self.reach(rank),
        }
    }

    /// Room for a span and as many rows around it as neighbours are likely to ask for.
    pub fn room(&self, span: Span) -> Span {
        if self.small {
            return self.all();
        }
        let margin = if self.row > 1 { self.row } else { 16 };
        if self.passing || span.len() < 4 * margin {
            return span;
        }
        Span::new(span.low - margin, span.high + margin).meet(self.all())
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
        for piece in &self.pieces {
            let Some(piece) = piece else {
                words.push(u64::MAX);
                continue;
            };
            words.extend([piece.base.len as u64, piece.base.row_hint as u64]);
            for span in [piece.window, piece.valid] {
                words.extend([span.low as u64, span.high as u64]);
            }
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
        ids.extend(self.pieces.iter().flatten().map(|piece| piece.base.id).filter(|&id| id != 0));
        if !self.copies.is_empty() {
            ids.extend(self.sorted_copies().into_iter().map(|(_, copy)| copy.base.id).filter(|&id| id != 0));
        }
    }

    /// Lets each base be replaced.
    pub fn each_base(&mut self, mut replace: impl FnMut(&mut u64)) {
        self.pieces.iter_mut().flatten().for_each(|piece| replace(&mut piece.base.id));
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
        size_of::<Array>() + size_of_val(&self.pieces[..]) + self.copies.len() * size_of::<((usize, View), Copied)>()
    }

    /// Notes that elements of this span changed where they belong: what ranks have of others is out of date.
    pub fn changed(&mut self, span: Span) {
        for rank in 0..self.pieces.len() {
            let reach = self.reach(rank);
            let Some(piece) = &mut self.pieces[rank] else { continue };
            let valid = &mut piece.valid;
            if reach.is_empty() {
                if !valid.meet(span).is_empty() {
                    *valid = Span::default();
                }
                continue;
            }
            if !Span::new(valid.low, reach.low).meet(span).is_empty() {
                valid.low = valid.low.max(span.high.min(reach.low));
            }
            if !Span::new(reach.high, valid.high).meet(span).is_empty() {
                valid.high = valid.high.min(span.low.max(reach.high));
            }
        }
    }
}
