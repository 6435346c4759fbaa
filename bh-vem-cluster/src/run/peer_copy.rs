//! Peer copies between ranks of one process, without messages: directly if one of the stacks keeps its arrays in host
//! memory, otherwise through a staging buffer in pinned memory that both devices access. Transfers that fit half of the
//! buffer run asynchronously; longer ones are cut in pieces, one written while the next is read.

use crate::plan::boxes::span_of;
use crate::plan::stage::{Place, Transfer};
use crate::run::local::LocalRank;
use crate::run::machine::{Machine, for_each, timed};
use crate::run::staging::{PIECE_BYTES, StagedMove, StagingBuffer};
use bh_bytecode::View;
use bh_core::abi::{access, status};
use bh_core::component::Child;
use bh_core::error::{Error, Result};
use std::collections::BTreeMap;
use std::time::Instant;

/// One thread moves fewer bytes than this: starting others would take longer.
const SHARED_BYTES: usize = 256 << 10;

/// The synchronous transfers between a pair of ranks: pieces, each a list of sources and targets, and the halves of the
/// staging buffer.
struct PairMove {
    from: usize,
    to: usize,
    pieces: Vec<Vec<(Place, Place)>>,
    buffer: [*mut u8; 2],
}

// SAFETY: in each step, one thread writes to one half of the buffer, and another thread reads the other half.
unsafe impl Sync for PairMove {}

/// Cuts a transfer into parts of at most PIECE_BYTES.
fn cut(source: &Place, target: &Place, into: &mut Vec<(Place, Place)>) -> Result<()> {
    if source.bytes() <= PIECE_BYTES {
        into.push((*source, *target));
        return Ok(());
    }
    let shape = source.view.shape();
    let dim = shape.iter().position(|&extent| extent > 1).unwrap_or_default();
    let for_each = source.bytes() / shape[dim].max(1) as usize;
    let rows = (PIECE_BYTES / for_each.max(1)).max(1) as i64;
    let part = |view: &View, first: i64| {
        let part = view.slice(dim, Some(first), Some((first + rows).min(shape[dim])), 1);
        part.map_err(|why| Error::new(status::BATCH, why.to_string()))
    };
    for first in (0..shape[dim]).step_by(rows as usize) {
        let (source, target) = (
            Place { base: source.base, view: part(&source.view, first)? },
            Place { base: target.base, view: part(&target.view, first)? },
        );
        cut(&source, &target, into)?;
    }
    Ok(())
}

/// Cuts transfers between a pair of ranks into pieces of at most PIECE_BYTES.
fn pieces(transfers: &[&Transfer]) -> Result<Vec<Vec<(Place, Place)>>> {
    let mut all = Vec::new();
    for transfer in transfers.iter().filter(|transfer| !transfer.source.view.is_empty()) {
        cut(&transfer.source, &transfer.target, &mut all)?;
    }
    let (mut pieces, mut bytes) = (Vec::<Vec<(Place, Place)>>::new(), PIECE_BYTES);
    for pair in all {
        bytes += pair.0.bytes();
        match pieces.last_mut().filter(|_| bytes <= PIECE_BYTES) {
            Some(last) => last.push(pair),
            None => {
                bytes = pair.0.bytes();
                pieces.push(vec![pair]);
            }
        }
    }
    Ok(pieces)
}

/// Does a transfer write elements that another reads? Messages would send the old values.
fn overlap(transfers: &[&Transfer]) -> bool {
    let meets = |one: &Place, other: &Place| {
        one.base.id == other.base.id && !span_of(&one.view).meet(span_of(&other.view)).is_empty()
    };
    transfers.iter().any(|one| transfers.iter().any(|other| meets(&one.source, &other.target)))
}

impl Machine {
    /// Can the transfers within this process be peer copies?
    pub(crate) fn uses_peer_copies(&self, transfers: &[Transfer]) -> bool {
        let within: Vec<&Transfer> = transfers.iter().filter(|transfer| self.is_within(transfer)).collect();
        self.pool.is_some() && !within.is_empty() && !overlap(&within)
    }

    /// Are both ranks in this process?
    pub(crate) fn is_within(&self, transfer: &Transfer) -> bool {
        self.port.hosts(transfer.from) && self.port.hosts(transfer.to)
    }

    /// Starts the peer copies of a stage; returns those that devices still process, after all work that they got
    /// before.
    pub(crate) fn begin_peer_copies(&mut self, transfers: &[Transfer]) -> (Vec<StagedMove>, Result<()>) {
        let mut pairs: BTreeMap<(usize, usize), Vec<&Transfer>> = BTreeMap::new();
        for transfer in transfers.iter().filter(|transfer| self.is_within(transfer)) {
            pairs.entry((transfer.from, transfer.to)).or_default().push(transfer);
        }
        let (mut spent, mut staged) = (0, Vec::new());
        let outcome = timed(&mut spent, || self.copy_pairs(&pairs, &mut staged));
        self.spent.pack += spent;
        (staged, outcome)
    }

    /// Completes the staged moves. Devices process them after all work that they got before.
    pub(crate) fn end_peer_copies(&mut self, staged: Vec<StagedMove>) -> Result<()> {
        let begin = Instant::now();
        let mut outcome = Ok(());
        for one in &staged {
            outcome = outcome.and(self.wait_until_filled(one));
        }
        for one in staged {
            outcome = outcome.and(self.deliver(one));
        }
        self.spent.pack += begin.elapsed().as_nanos() as u64;
        outcome
    }

    fn copy_pairs(
        &mut self,
        pairs: &BTreeMap<(usize, usize), Vec<&Transfer>>,
        staged: &mut Vec<StagedMove>,
    ) -> Result<()> {
        let mut moves = Vec::new();
        let mut outcome = Ok(());
        for (&(from, to), transfers) in pairs {
            self.port.note_message(from, transfers.iter().map(|transfer| transfer.source.bytes()).sum());
            if self.rank(from).0.on_device && self.rank(to).0.on_device {
                if !self.staging.0.contains_key(&(from, to)) {
                    let buffer = StagingBuffer::new(self.rank(from).1);
                    self.staging.0.insert((from, to), buffer);
                }
                let pieces = pieces(transfers)?;
                match self.begin_filling((from, to), &pieces)? {
                    Some(filling) => staged.push(filling),
                    None => {
                        self.wait_for_half((from, to), 0)?;
                        self.wait_for_half((from, to), 1)?;
                        let buffer = &self.staging.0[&(from, to)];
                        moves.push(PairMove { from, to, pieces, buffer: [buffer.half(0), buffer.half(1)] });
                    }
                }
                continue;
            }
            for transfer in transfers {
                outcome = outcome.and(self.copy_directly(transfer));
            }
        }
        outcome.and(self.copy_in_pieces(&moves))
    }

    /// Waits until a half of the staging buffer is no longer read.
    fn wait_for_half(&mut self, pair: (usize, usize), half: usize) -> Result<()> {
        let busy = self.staging.0.get_mut(&pair).map_or(0, |buffer| std::mem::take(&mut buffer.busy[half]));
        if busy > 0 { self.rank(pair.1).1.message(&format!("finish moving {busy}")).map(drop) } else { Ok(()) }
    }

    /// Starts the copy from a device to half of a staging buffer; `None` if the data does not fit, or is not
    /// contiguous.
    fn begin_filling(&mut self, pair: (usize, usize), pieces: &[Vec<(Place, Place)>]) -> Result<Option<StagedMove>> {
        let in_rows = |(source, target): &(Place, Place)| source.view.is_contiguous() && target.view.is_contiguous();
        let [places] = pieces else { return Ok(None) };
        let Some(buffer) =
            self.staging.0.get_mut(&pair).filter(|buffer| buffer.own.is_empty() && places.iter().all(in_rows))
        else {
            return Ok(None);
        };
        let half = buffer.taken % 2;
        buffer.taken += 1;
        let memory = buffer.half(half);
        self.wait_for_half(pair, half)?;
        let mut staged = StagedMove { from: pair.0, to: pair.1, places: places.clone(), half, filling: 0 };
        let (state, child) = self.rank(pair.0);
        let mut outcome = Ok(());
        for (begin, (source, _)) in staged.begins().map(|(begin, places)| (begin, *places)).collect::<Vec<_>>() {
            match state.begin_move(child, &source, memory.addr() + begin, false) {
                Some(number) => staged.filling = number,
                None => {
                    // SAFETY: the half is unused, and pieces fit into it.
                    let into = unsafe { std::slice::from_raw_parts_mut(memory.add(begin), source.bytes()) };
                    outcome = outcome.and(state.read_or_clear(child, &source, into));
                }
            }
        }
        outcome.map(|()| Some(staged))
    }

    /// Waits until half of the buffer is filled.
    fn wait_until_filled(&mut self, staged: &StagedMove) -> Result<()> {
        if staged.filling == 0 {
            return Ok(());
        }
        let done = self.rank(staged.from).1.message(&format!("finish moving {}", staged.filling));
        if done.is_err() {
            let memory = self.staging.0[&(staged.from, staged.to)].half(staged.half);
            let bytes = staged.places.iter().map(|(source, _)| source.bytes()).sum();
            // SAFETY: the half has space for these bytes, and the failed move no longer writes to it. Zeros replace
            // lost elements.
            unsafe { memory.write_bytes(0, bytes) };
        }
        done.map(drop)
    }

    /// Copies from half of the buffer to the receiving rank.
    fn deliver(&mut self, staged: StagedMove) -> Result<()> {
        let memory = self.staging.0[&(staged.from, staged.to)].half(staged.half);
        let (state, child) = self.rank(staged.to);
        let (mut outcome, mut busy) = (Ok(()), 0);
        for (begin, (_, target)) in staged.begins() {
            match state.begin_move(child, target, memory.addr() + begin, true) {
                Some(number) => busy = number,
                None => {
                    // SAFETY: the half is filled, and is not reused before `busy` is waited for or this copy has
                    // returned.
                    let from = unsafe { std::slice::from_raw_parts(memory.add(begin), target.bytes()) };
                    outcome = outcome.and(state.unpack(child, target, from).map(drop));
                }
            }
        }
        if let Some(buffer) = self.staging.0.get_mut(&(staged.from, staged.to)) {
            buffer.busy[staged.half] = busy;
        }
        outcome
    }

    /// Copies elements of which one side is in host memory.
    fn copy_directly(&mut self, transfer: &Transfer) -> Result<()> {
        let Transfer { from, to, source, target } = transfer;
        if source.view.is_empty() {
            return Ok(());
        }
        let size = source.base.dtype().size();
        let bytes = |view: &View| view.stride().iter().map(|stride| stride * size as i64).collect::<Vec<i64>>();
        let (state, child) = self.rank(*from);
        state.know(&source.base);
        if state.on_device {
            let mut elements = vec![0; source.bytes()];
            state.read(child, source, &mut elements)?;
            let (state, child) = self.rank(*to);
            return state.unpack(child, target, &elements).map(drop);
        }
        let data = child.map(&source.base, Some(&source.view), access::READ)?;
        let (state, child) = self.rank(*to);
        // SAFETY: the map exposes the view's elements until `unmap`.
        let written = unsafe {
            let first = data.offset(source.view.start() as isize * size as isize);
            state.write(child, target, first, &bytes(&source.view))
        };
        written.and(self.rank(*from).1.unmap(&source.base))
    }

    /// In each step, every rank writes the pieces read for it in the previous step, and reads the next pieces for
    /// others.
    fn copy_in_pieces(&mut self, moves: &[PairMove]) -> Result<()> {
        let turns = moves.iter().map(|pair_move| pair_move.pieces.len()).max().unwrap_or(0);
        let places = moves.iter().flat_map(|pair_move| pair_move.pieces.iter().flatten());
        let alone = places.map(|(source, _)| source.bytes()).sum::<usize>() < SHARED_BYTES;
        let mut outcome = Ok(());
        for turn in 0..if turns == 0 { 0 } else { turns + 1 } {
            let pool = self.pool.as_ref().filter(|_| !alone);
            let first = self.port.hosted().start;
            let ranks = self.locals.iter_mut().zip(&mut self.children);
            let work = |(place, (state, child)): (usize, (&mut LocalRank, &mut Child))| {
                copy_step(first + place, turn, moves, state, child)
            };
            outcome = outcome.and(for_each(pool, ranks.enumerate(), &work).into_iter().collect());
        }
        outcome
    }
}

/// A rank's part of a step.
fn copy_step(rank: usize, turn: usize, moves: &[PairMove], state: &mut LocalRank, child: &mut Child) -> Result<()> {
    let mut outcome = Ok(());
    let before = turn.checked_sub(1);
    for pair_move in moves.iter().filter(|pair_move| pair_move.to == rank) {
        let Some((piece, turn)) = before.and_then(|turn| Some((pair_move.pieces.get(turn)?, turn))) else { continue };
        let bytes = piece.iter().map(|(_, target)| target.bytes()).sum();
        // SAFETY: the sender filled this half in the previous step, and uses the other half in this one.
        let mut rest = unsafe { std::slice::from_raw_parts(pair_move.buffer[turn % 2], bytes) };
        for (_, target) in piece {
            match state.unpack(child, target, rest) {
                Ok(after) => rest = after,
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
    }
    for pair_move in moves.iter().filter(|pair_move| pair_move.from == rank) {
        let Some(piece) = pair_move.pieces.get(turn) else { continue };
        let bytes = piece.iter().map(|(source, _)| source.bytes()).sum();
        // SAFETY: the receiver reads the other half in this step.
        let mut rest = unsafe { std::slice::from_raw_parts_mut(pair_move.buffer[turn % 2], bytes) };
        for (source, _) in piece {
            let (mine, after) = rest.split_at_mut(source.bytes());
            outcome = outcome.and(state.read_or_clear(child, source, mine));
            rest = after;
        }
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;
    use bh_bytecode::{Base, DType};

    fn place(id: u64, start: i64, shape: &[i64], stride: &[i64]) -> Place {
        Place { base: Base::new(id, DType::F64, 1 << 30), view: View::new(start, shape, stride).unwrap() }
    }

    #[test]
    fn pieces_have_all_elements_and_fit_the_buffer() {
        for (shape, stride) in
            [(vec![5_000_000], vec![1]), (vec![3, 2_000_000], vec![4_000_000, 2]), (vec![2000, 700], vec![1000, 1])]
        {
            let (source, target) = (place(1, 7, &shape, &stride), place(2, 0, &shape, &stride));
            let transfer = Transfer { from: 0, to: 1, source, target };
            let found = pieces(&[&transfer, &transfer]).unwrap();
            let bytes = |piece: &Vec<(Place, Place)>| piece.iter().map(|(source, _)| source.bytes()).sum::<usize>();
            assert!(found.iter().all(|piece| bytes(piece) <= PIECE_BYTES && !piece.is_empty()));
            assert_eq!(found.iter().map(bytes).sum::<usize>(), 2 * source.bytes());
            assert!(found.iter().flatten().all(|(source, target)| source.view.shape() == target.view.shape()));
            assert!(found.iter().flatten().all(|(source, target)| source.view.start() - 7 == target.view.start()));
        }
    }

    #[test]
    fn elements_read_and_written_are_sent_as_messages() {
        let halo = Transfer { from: 0, to: 1, source: place(1, 90, &[10], &[1]), target: place(2, 0, &[10], &[1]) };
        let back = |start| Transfer {
            from: 1,
            to: 0,
            source: place(2, start, &[10], &[1]),
            target: place(1, 100, &[10], &[1]),
        };
        assert!(!overlap(&[&halo, &back(10)]));
        assert!(overlap(&[&halo, &back(5)]));
    }
}
