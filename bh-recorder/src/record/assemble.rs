//! New arrays made of parts of others and of numbers, recorded under one lock.

use crate::immediate::settling::Use;
use crate::record::create::shape_error;
use crate::record::{Input, Operation, Source};
use crate::state::{Followup, State};
use crate::{ArrayId, Location, Recorder};
use bh_bytecode::{Constant, DType, Kind, Opcode, View};
use bh_core::abi::status;
use bh_core::error::{Error, Result};
use std::sync::MutexGuard;

/// The contents of a piece.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Filling {
    /// Elements of the source with this number.
    Source(usize),
    /// One number.
    Number(Constant),
}

/// A part of a new array.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// The part, as a view of the new array.
    pub to: View,
    /// Its elements, as a view of the source's base, of the same shape; of a number, a view that repeats one element.
    pub from: View,
    /// Where they come from.
    pub filling: Filling,
}

/// Pieces that are recorded under one hold of the lock. Behind each such part the batch may end, whose limit of operations counts here too.
const PART: usize = 256;

impl Recorder {
    /// Records a new array that is made of pieces: one copy for each, in their order. The pieces cover it.
    pub fn assemble(
        &self,
        (dtype, shape): (DType, &[i64]),
        sources: &[ArrayId],
        pieces: &[Piece],
        location: Location<'_>,
    ) -> Result<ArrayId> {
        let len = View::contiguous(shape).map_err(shape_error)?.len();
        let used = |piece: &Piece| match piece.filling {
            Filling::Source(source) => sources.get(source).map(|array| Use::of_input(*array, Some(piece.from.len()))),
            Filling::Number(_) => None,
        };
        let to_use = |part: &[Piece]| self.state_to_use(Kind::Elementwise, part.iter().filter_map(used));
        let (first, others) = pieces.split_at(pieces.len().min(PART));
        let mut state = to_use(first);
        state.running()?;
        let out = state.new_contiguous(dtype, shape, len)?;
        let made = state.name(out);
        // Without it, the caller gets no handle, so this one must go.
        let freed = |_: &Error| self.free_later(made);
        let followup = state.record_pieces(out, sources, first, location);
        self.followed(state, followup).inspect_err(freed)?;
        for part in others.chunks(PART) {
            let mut state = to_use(part);
            let out = state.find(made);
            let followup = out.and_then(|out| state.record_pieces(out, sources, part, location));
            self.followed(state, followup).inspect_err(freed)?;
        }
        Ok(made)
    }

    /// Follows a recording that succeeded. The lock is released in both cases.
    fn followed(&self, state: MutexGuard<'_, State>, followup: Result<Followup>) -> Result<()> {
        followup.and_then(|followup| self.follow(state, followup))
    }
}

impl State {
    /// Records the copies that make some of the pieces.
    fn record_pieces(
        &mut self,
        out: u32,
        sources: &[ArrayId],
        pieces: &[Piece],
        location: Location<'_>,
    ) -> Result<Followup> {
        let (begin, mut followup) = (self.clock(), Followup::Nothing);
        for piece in pieces {
            followup = followup.max(self.record_piece(out, sources, piece, location)?);
        }
        self.count_recording(begin);
        Ok(followup)
    }

    /// Records the copy that makes a piece.
    fn record_piece(
        &mut self,
        out: u32,
        sources: &[ArrayId],
        piece: &Piece,
        location: Location<'_>,
    ) -> Result<Followup> {
        let operation = Operation { opcode: Opcode::Copy, param: 0, location };
        let target = self.window(out, &piece.to)?;
        let recorded = match piece.filling {
            Filling::Number(value) => self.record(operation, target, &[Source::Constant(value)]),
            Filling::Source(source) => self.source_of_piece(sources, source, &piece.from).and_then(|window| {
                let recorded = self.record(operation, target, &[Source::Handle(window)]);
                self.release(window);
                recorded
            }),
        };
        self.release(target);
        recorded
    }

    /// A view of a source's base, as a new handle.
    fn source_of_piece(&mut self, sources: &[ArrayId], source: usize, view: &View) -> Result<u32> {
        let unknown = || Error::new(status::ARGUMENT, format!("a piece is of source {source} of {}", sources.len()));
        let array = sources.get(source).ok_or_else(unknown)?;
        match self.resolve_one(Opcode::Copy, source, &Input::Array(*array))? {
            Source::Handle(whole) => self.window(whole, view),
            Source::Constant(_) => Err(unknown()),
        }
    }
}
