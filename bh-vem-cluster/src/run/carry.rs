//! Moves elements between ranks of one process past the messages: straight between two stacks if one of them keeps its arrays in
//! host memory, else through memory that both devices reach without the processor. What fits a piece of that moves while the devices
//! compute; of more, one piece is read while the piece before it is written.

use crate::plan::boxes::span_of;
use crate::plan::stage::{Place, Transfer};
use crate::run::local::LocalRank;
use crate::run::machine::{Machine, each, timed};
use crate::run::rooms::{PIECE, Room, Underway};
use bh_bytecode::View;
use bh_core::abi::{access, status};
use bh_core::component::Child;
use bh_core::error::{Error, Result};
use std::collections::BTreeMap;
use std::time::Instant;

/// Fewer bytes in all are moved by one thread: waking others would take longer.
const SHARED_BYTES: usize = 256 << 10;

/// What moves from one rank to another: pieces, each a list of places on both sides.
struct Load {
    from: usize,
    to: usize,
    pieces: Vec<Vec<(Place, Place)>>,
    room: [*mut u8; 2],
}

// SAFETY: while one thread fills a piece of the memory, nobody else touches it, and the other piece is read by one.
unsafe impl Sync for Load {}

/// Where a transfer's two views are cut so that no part has more bytes than a piece.
fn cut(source: &Place, target: &Place, into: &mut Vec<(Place, Place)>) -> Result<()> {
    if source.bytes() <= PIECE {
        into.push((*source, *target));
        return Ok(());
    }
    let shape = source.view.shape();
    let dim = shape.iter().position(|&extent| extent > 1).unwrap_or_default();
    let each = source.bytes() / shape[dim].max(1) as usize;
    let rows = (PIECE / each.max(1)).max(1) as i64;
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

/// The pieces of some transfers from one rank to another.
fn pieces(transfers: &[&Transfer]) -> Result<Vec<Vec<(Place, Place)>>> {
    let mut all = Vec::new();
    for transfer in transfers.iter().filter(|transfer| !transfer.source.view.is_empty()) {
        cut(&transfer.source, &transfer.target, &mut all)?;
    }
    let (mut pieces, mut bytes) = (Vec::<Vec<(Place, Place)>>::new(), PIECE);
    for pair in all {
        bytes += pair.0.bytes();
        match pieces.last_mut().filter(|_| bytes <= PIECE) {
            Some(last) => last.push(pair),
            None => {
                bytes = pair.0.bytes();
                pieces.push(vec![pair]);
            }
        }
    }
    Ok(pieces)
}

/// Is something read that is written, too? Messages would keep what it was.
fn overlap(transfers: &[&Transfer]) -> bool {
    let meets = |one: &Place, other: &Place| {
        one.base.id == other.base.id && !span_of(&one.view).meet(span_of(&other.view)).is_empty()
    };
    transfers.iter().any(|one| transfers.iter().any(|other| meets(&one.source, &other.target)))
}

impl Machine {
    /// Do the transfers between ranks of this process go past the messages?
    pub(crate) fn carries(&self, transfers: &[Transfer]) -> bool {
        let within: Vec<&Transfer> = transfers.iter().filter(|transfer| self.is_within(transfer)).collect();
        self.crew.is_some() && !within.is_empty() && !overlap(&within)
    }

    /// Do both ranks live in this process?
    pub(crate) fn is_within(&self, transfer: &Transfer) -> bool {
        self.port.hosts(transfer.from) && self.port.hosts(transfer.to)
    }

    /// Begins to move what goes from one rank of this process to another; what is still underway then, where devices go on by
    /// themselves. They come to it after what they have been given so far.
    pub(crate) fn begin_carry(&mut self, transfers: &[Transfer]) -> (Vec<Underway>, Result<()>) {
        let mut pairs: BTreeMap<(usize, usize), Vec<&Transfer>> = BTreeMap::new();
        for transfer in transfers.iter().filter(|transfer| self.is_within(transfer)) {
            pairs.entry((transfer.from, transfer.to)).or_default().push(transfer);
        }
        let (mut spent, mut underway) = (0, Vec::new());
        let outcome = timed(&mut spent, || self.carry_pairs(&pairs, &mut underway));
        self.spent.pack += spent;
        (underway, outcome)
    }

    /// Moves what is underway to where it goes. The devices come to it after what they have been given so far.
    pub(crate) fn end_carry(&mut self, underway: Vec<Underway>) -> Result<()> {
        let begin = Instant::now();
        let mut outcome = Ok(());
        for load in &underway {
            outcome = outcome.and(self.fill(load));
        }
        for load in underway {
            outcome = outcome.and(self.empty(load));
        }
        self.spent.pack += begin.elapsed().as_nanos() as u64;
        outcome
    }

    fn carry_pairs(
        &mut self,
        pairs: &BTreeMap<(usize, usize), Vec<&Transfer>>,
        underway: &mut Vec<Underway>,
    ) -> Result<()> {
        let mut loads = Vec::new();
        let mut outcome = Ok(());
        for (&(from, to), transfers) in pairs {
            self.port.note_message(from, transfers.iter().map(|transfer| transfer.source.bytes()).sum());
            if self.rank(from).0.on_device && self.rank(to).0.on_device {
                if !self.rooms.0.contains_key(&(from, to)) {
                    let room = Room::new(self.rank(from).1);
                    self.rooms.0.insert((from, to), room);
                }
                let pieces = pieces(transfers)?;
                match self.begin_filling((from, to), &pieces)? {
                    Some(load) => underway.push(load),
                    None => {
                        self.free((from, to), 0)?;
                        self.free((from, to), 1)?;
                        let room = &self.rooms.0[&(from, to)];
                        loads.push(Load { from, to, pieces, room: [room.piece(0), room.piece(1)] });
                    }
                }
                continue;
            }
            for transfer in transfers {
                outcome = outcome.and(self.carry_straight(transfer));
            }
        }
        outcome.and(self.carry_loads(&loads))
    }

    /// Waits until nobody reads a piece of the memory between two ranks any more.
    fn free(&mut self, pair: (usize, usize), piece: usize) -> Result<()> {
        let busy = self.rooms.0.get_mut(&pair).map_or(0, |room| std::mem::take(&mut room.busy[piece]));
        if busy > 0 { self.rank(pair.1).1.message(&format!("finish moving {busy}")).map(drop) } else { Ok(()) }
    }

    /// Lets a device fill a piece of the memory between two ranks, if all fits one and lies in rows; none if it does not.
    fn begin_filling(&mut self, pair: (usize, usize), pieces: &[Vec<(Place, Place)>]) -> Result<Option<Underway>> {
        let in_rows = |(source, target): &(Place, Place)| source.view.is_contiguous() && target.view.is_contiguous();
        let [places] = pieces else { return Ok(None) };
        let Some(room) = self.rooms.0.get_mut(&pair).filter(|room| room.own.is_empty() && places.iter().all(in_rows))
        else {
            return Ok(None);
        };
        let piece = room.taken % 2;
        room.taken += 1;
        let memory = room.piece(piece);
        self.free(pair, piece)?;
        let mut load = Underway { from: pair.0, to: pair.1, places: places.clone(), piece, filling: 0 };
        let (state, child) = self.rank(pair.0);
        let mut outcome = Ok(());
        for (begin, (source, _)) in load.begins().map(|(begin, places)| (begin, *places)).collect::<Vec<_>>() {
            match state.begin_move(child, &source, memory.addr() + begin, false) {
                Some(number) => load.filling = number,
                None => {
                    // SAFETY: the piece is free, and has room for all.
                    let into = unsafe { std::slice::from_raw_parts_mut(memory.add(begin), source.bytes()) };
                    outcome = outcome.and(state.read_or_clear(child, &source, into));
                }
            }
        }
        outcome.map(|()| Some(load))
    }

    /// Waits until a piece is filled.
    fn fill(&mut self, load: &Underway) -> Result<()> {
        if load.filling == 0 {
            return Ok(());
        }
        let done = self.rank(load.from).1.message(&format!("finish moving {}", load.filling));
        if done.is_err() {
            let memory = self.rooms.0[&(load.from, load.to)].piece(load.piece);
            let bytes = load.places.iter().map(|(source, _)| source.bytes()).sum();
            // SAFETY: nobody fills the piece any more. Zeros stand for what is lost.
            unsafe { memory.write_bytes(0, bytes) };
        }
        done.map(drop)
    }

    /// Lets the rank that gets a piece have it.
    fn empty(&mut self, load: Underway) -> Result<()> {
        let memory = self.rooms.0[&(load.from, load.to)].piece(load.piece);
        let (state, child) = self.rank(load.to);
        let (mut outcome, mut busy) = (Ok(()), 0);
        for (begin, (_, target)) in load.begins() {
            match state.begin_move(child, target, memory.addr() + begin, true) {
                Some(number) => busy = number,
                None => {
                    // SAFETY: the piece is filled, and stays so until it is taken again.
                    let from = unsafe { std::slice::from_raw_parts(memory.add(begin), target.bytes()) };
                    outcome = outcome.and(state.unpack(child, target, from).map(drop));
                }
            }
        }
        if let Some(room) = self.rooms.0.get_mut(&(load.from, load.to)) {
            room.busy[load.piece] = busy;
        }
        outcome
    }

    /// Copies elements that are in host memory on one side at least.
    fn carry_straight(&mut self, transfer: &Transfer) -> Result<()> {
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
        // SAFETY: the map shows the view's elements until it ends.
        let written = unsafe {
            let first = data.offset(source.view.start() as isize * size as isize);
            state.write(child, target, first, &bytes(&source.view))
        };
        written.and(self.rank(*from).1.unmap(&source.base))
    }

    /// In each turn, every rank writes the pieces that were read for it in the turn before, and reads those for others.
    fn carry_loads(&mut self, loads: &[Load]) -> Result<()> {
        let turns = loads.iter().map(|load| load.pieces.len()).max().unwrap_or(0);
        let places = loads.iter().flat_map(|load| load.pieces.iter().flatten());
        let alone = places.map(|(source, _)| source.bytes()).sum::<usize>() < SHARED_BYTES;
        let mut outcome = Ok(());
        for turn in 0..if turns == 0 { 0 } else { turns + 1 } {
            let crew = self.crew.as_ref().filter(|_| !alone);
            let first = self.port.hosted().start;
            let ranks = self.locals.iter_mut().zip(&mut self.children);
            let work = |(place, (state, child)): (usize, (&mut LocalRank, &mut Child))| {
                take_turn(first + place, turn, loads, state, child)
            };
            outcome = outcome.and(each(crew, ranks.enumerate(), &work).into_iter().collect());
        }
        outcome
    }
}

/// A rank's part of a turn.
fn take_turn(rank: usize, turn: usize, loads: &[Load], state: &mut LocalRank, child: &mut Child) -> Result<()> {
    let mut outcome = Ok(());
    let before = turn.checked_sub(1);
    for load in loads.iter().filter(|load| load.to == rank) {
        let Some((piece, turn)) = before.and_then(|turn| Some((load.pieces.get(turn)?, turn))) else { continue };
        let bytes = piece.iter().map(|(_, target)| target.bytes()).sum();
        // SAFETY: the rank that sends has filled the piece in the turn before, and leaves it alone in this one.
        let mut rest = unsafe { std::slice::from_raw_parts(load.room[turn % 2], bytes) };
        for (_, target) in piece {
            match state.unpack(child, target, rest) {
                Ok(after) => rest = after,
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
    }
    for load in loads.iter().filter(|load| load.from == rank) {
        let Some(piece) = load.pieces.get(turn) else { continue };
        let bytes = piece.iter().map(|(source, _)| source.bytes()).sum();
        // SAFETY: whoever gets the piece reads the other one in this turn.
        let mut rest = unsafe { std::slice::from_raw_parts_mut(load.room[turn % 2], bytes) };
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
    fn pieces_have_all_elements_and_fit_their_room() {
        for (shape, stride) in
            [(vec![5_000_000], vec![1]), (vec![3, 2_000_000], vec![4_000_000, 2]), (vec![2000, 700], vec![1000, 1])]
        {
            let (source, target) = (place(1, 7, &shape, &stride), place(2, 0, &shape, &stride));
            let transfer = Transfer { from: 0, to: 1, source, target };
            let found = pieces(&[&transfer, &transfer]).unwrap();
            let bytes = |piece: &Vec<(Place, Place)>| piece.iter().map(|(source, _)| source.bytes()).sum::<usize>();
            assert!(found.iter().all(|piece| bytes(piece) <= PIECE && !piece.is_empty()));
            assert_eq!(found.iter().map(bytes).sum::<usize>(), 2 * source.bytes());
            assert!(found.iter().flatten().all(|(source, target)| source.view.shape() == target.view.shape()));
            assert!(found.iter().flatten().all(|(source, target)| source.view.start() - 7 == target.view.start()));
        }
    }

    #[test]
    fn what_is_read_and_written_goes_by_messages() {
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
