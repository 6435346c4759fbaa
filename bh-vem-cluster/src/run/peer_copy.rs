//! Peer copies between ranks of one process, without messages. If one of the stacks keeps its arrays in host memory, the other one
//! reads or writes them there. Between devices, the sender's engine offers the elements and the receiver's engine takes them: the devices
//! copy directly, or through pinned memory if they cannot or the key `peer_copies` is off. All offers are made before the first is taken.

use crate::plan::boxes::span_of;
use crate::plan::stage::{Place, Transfer};
use crate::run::local::LocalRank;
use crate::run::machine::{Machine, for_each, timed};
use bh_bytecode::View;
use bh_core::abi::{access, status};
use bh_core::component::Child;
use bh_core::error::{Error, Result};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Instant;

/// The longest piece of elements that pass through pageable host memory.
const PIECE_BYTES: usize = 8 << 20;

/// The host reads at most this many bytes of an offer for a batch of scalars.
const TOLD_BYTES: usize = 1 << 10;

/// An offer of elements of one rank for another one.
pub(crate) struct Offered {
    from: usize,
    to: usize,
    /// The engine's name of the offer.
    name: String,
    /// Pinned memory has the elements, so that further batches may run before the offer is taken.
    is_filled: bool,
    /// The host reads the elements.
    is_told: bool,
    transfers: Vec<Transfer>,
}

impl Offered {
    fn bytes(&self) -> usize {
        self.transfers.iter().map(|transfer| transfer.source.bytes()).sum()
    }
}

/// The data that a rank offers to another one.
struct Job<'a> {
    from: usize,
    to: usize,
    transfers: &'a [&'a Transfer],
    is_told: bool,
    offered: Option<Offered>,
}

/// A rank with its stack, and what it has to do.
type Own<'a, T> = ((&'a mut LocalRank, &'a mut Child), T);

/// `ID TYPE LENGTH START RANK EXTENTS STEPS` of places, between semicolons, as engines read them.
fn listed<'a>(places: impl Iterator<Item = &'a Place>) -> String {
    let mut text = String::new();
    for Place { base, view } in places {
        let separator = if text.is_empty() { "" } else { ";" };
        let (id, dtype, len) = (base.id, base.dtype() as u8, base.len);
        // Texts take everything.
        let _ = write!(text, "{separator}{id} {dtype} {len} {} {}", view.start(), view.rank());
        for number in view.shape().iter().chain(view.stride()) {
            let _ = write!(text, " {number}");
        }
    }
    text
}

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

    /// Starts the peer copies of a stage, after all work that devices got before. Returns offers that are taken after the early batches.
    /// `on_host`: the ranks whose host computes with the elements.
    pub(crate) fn begin_peer_copies(
        &mut self,
        transfers: &[Transfer],
        on_host: &[usize],
    ) -> (Vec<Offered>, Result<()>) {
        let mut pairs: BTreeMap<(usize, usize), Vec<&Transfer>> = BTreeMap::new();
        let some = |transfer: &&Transfer| self.is_within(transfer) && !transfer.source.view.is_empty();
        for transfer in transfers.iter().filter(some) {
            pairs.entry((transfer.from, transfer.to)).or_default().push(transfer);
        }
        let (mut spent, mut filled) = (0, Vec::new());
        let outcome = timed(&mut spent, || self.copy_pairs(&pairs, on_host, &mut filled));
        self.spent.pack += spent;
        (filled, outcome)
    }

    /// Takes the offers that were left for later.
    pub(crate) fn end_peer_copies(&mut self, filled: Vec<Offered>) -> Result<()> {
        let begin = Instant::now();
        let mut outcome = Ok(());
        for offered in &filled {
            let (state, child) = self.rank(offered.to);
            let taken = if offered.is_told { self.store_told(offered) } else { take(state, child, offered) };
            outcome = outcome.and(self.or_through_host(taken, &[offered]));
        }
        self.spent.pack += begin.elapsed().as_nanos() as u64;
        outcome
    }

    fn copy_pairs(
        &mut self,
        pairs: &BTreeMap<(usize, usize), Vec<&Transfer>>,
        on_host: &[usize],
        filled: &mut Vec<Offered>,
    ) -> Result<()> {
        let first = self.port.hosted().start;
        let (mut senders, mut others) = (BTreeMap::<usize, Vec<Job<'_>>>::new(), Vec::new());
        for (&(from, to), transfers) in pairs {
            let bytes = transfers.iter().map(|transfer| transfer.source.bytes()).sum();
            self.port.note_message(from, bytes);
            if self.locals[from - first].on_device && self.locals[to - first].on_device {
                let is_told = on_host.contains(&to) && bytes <= TOLD_BYTES;
                senders.entry(from).or_default().push(Job { from, to, transfers, is_told, offered: None });
            } else {
                others.extend(transfers);
            }
        }
        let (pool, direct) = (self.pool.as_ref().filter(|_| senders.len() > 1), self.peer_copies);
        let members: Vec<usize> = senders.keys().map(|rank| rank - first).collect();
        let ranks = self.locals.iter_mut().zip(&mut self.children).enumerate();
        let ranks = ranks.filter(|(place, _)| members.contains(place)).map(|(_, rank)| rank);
        let work = |((state, child), jobs): Own<'_, &mut Vec<Job<'_>>>| {
            jobs.iter_mut().for_each(|job| job.offered = offer(state, child, job, direct));
            Ok(())
        };
        // A refusal leaves the elements to the host.
        for_each(pool, ranks.zip(senders.values_mut()), &work);
        let mut now = Vec::new();
        for job in senders.into_values().flatten() {
            match job.offered {
                Some(offered) if offered.is_filled => filled.push(offered),
                Some(offered) => now.push(offered),
                None => others.extend(job.transfers),
            }
        }
        let mut outcome = self.take_now(&now);
        for transfer in others {
            outcome = outcome.and(self.copy_directly(transfer));
        }
        outcome
    }

    /// Takes offers, each receiver its own.
    fn take_now(&mut self, offers: &[Offered]) -> Result<()> {
        let first = self.port.hosted().start;
        let mut receivers = BTreeMap::<usize, Vec<&Offered>>::new();
        offers.iter().for_each(|offered| receivers.entry(offered.to).or_default().push(offered));
        let pool = self.pool.as_ref().filter(|_| receivers.len() > 1);
        let ranks = self.locals.iter_mut().zip(&mut self.children).enumerate();
        let ranks = ranks.filter(|(place, _)| receivers.contains_key(&(first + place))).map(|(_, rank)| rank);
        let work = |((state, child), offers): Own<'_, &Vec<&Offered>>| {
            offers.iter().try_for_each(|offered| take(state, child, offered))
        };
        let taken = for_each(pool, ranks.zip(receivers.values()), &work);
        let mut outcome = Ok(());
        for (taken, offers) in taken.into_iter().zip(receivers.values()) {
            outcome = outcome.and(self.or_through_host(taken, offers));
        }
        outcome
    }

    /// Copies what a receiver has not taken through host memory.
    fn or_through_host(&mut self, taken: Result<()>, offers: &[&Offered]) -> Result<()> {
        let mut outcome = Ok(());
        for offered in offers.iter().filter(|_| taken.is_err()) {
            // The offer may have ended.
            let _ = self.rank(offered.from).1.message(&format!("withdraw {}", offered.name));
            for transfer in &offered.transfers {
                outcome = outcome.and(self.copy_through_host(transfer));
            }
        }
        outcome
    }

    /// Stores a few elements that the host has read.
    fn store_told(&mut self, offered: &Offered) -> Result<()> {
        let digits = self.rank(offered.from).1.message(&format!("tell {}", offered.name))?;
        let digit = |place: usize| u8::from_str_radix(digits.get(2 * place..2 * place + 2)?, 16).ok();
        let elements: Option<Vec<u8>> = (0..offered.bytes()).map(digit).collect();
        let elements = elements.ok_or_else(|| Error::new(status::EXECUTION, "an offer is told in part"))?;
        let (state, child) = self.rank(offered.to);
        let mut rest = &elements[..];
        for transfer in &offered.transfers {
            rest = state.unpack(child, &transfer.target, rest)?;
        }
        Ok(())
    }

    /// Copies elements from rank to rank through host memory, piece by piece.
    fn copy_through_host(&mut self, transfer: &Transfer) -> Result<()> {
        let mut pieces = Vec::new();
        cut(&transfer.source, &transfer.target, &mut pieces)?;
        let (mut elements, mut outcome) = (Vec::new(), Ok(()));
        for (source, target) in &pieces {
            elements.clear();
            let (state, child) = self.rank(transfer.from);
            let read = state.pack(child, source, &mut elements);
            // Zeros replace lost elements.
            elements.resize(source.bytes(), 0);
            let (state, child) = self.rank(transfer.to);
            outcome = outcome.and(read).and(state.unpack(child, target, &elements).map(drop));
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
            return self.copy_through_host(transfer);
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
}

/// Offers the elements of transfers between two devices; `None` if the engine does not.
fn offer(state: &mut LocalRank, child: &mut Child, job: &Job<'_>, direct: bool) -> Option<Offered> {
    let way = if direct && !job.is_told { "direct" } else { "staged" };
    job.transfers.iter().for_each(|transfer| state.know(&transfer.source.base));
    let places = listed(job.transfers.iter().map(|transfer| &transfer.source));
    let answer = child.message(&format!("offer {way} {places}")).ok()?;
    let (name, state) = answer.split_once(' ')?;
    let transfers = job.transfers.iter().map(|transfer| (*transfer).clone()).collect();
    Some(Offered {
        from: job.from,
        to: job.to,
        name: name.to_owned(),
        is_filled: state == "filled",
        is_told: job.is_told,
        transfers,
    })
}

/// Takes an offer on the receiver's stack.
fn take(state: &mut LocalRank, child: &mut Child, offered: &Offered) -> Result<()> {
    for transfer in &offered.transfers {
        state.clear_first(child, &transfer.target)?;
    }
    let places = listed(offered.transfers.iter().map(|transfer| &transfer.target));
    match child.message(&format!("take {} {places}", offered.name))?.as_str() {
        "taken" => Ok(()),
        _ => Err(Error::new(status::UNSUPPORTED, "the engine takes no offers")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bh_bytecode::{Base, DType};

    fn place(id: u64, start: i64, shape: &[i64], stride: &[i64]) -> Place {
        Place { base: Base::new(id, DType::F64, 1 << 30), view: View::new(start, shape, stride).unwrap() }
    }

    #[test]
    fn pieces_have_all_elements_and_fit() {
        for (shape, stride) in
            [(vec![5_000_000], vec![1]), (vec![3, 2_000_000], vec![4_000_000, 2]), (vec![2000, 700], vec![1000, 1])]
        {
            let (source, target) = (place(1, 7, &shape, &stride), place(2, 0, &shape, &stride));
            let mut found = Vec::new();
            cut(&source, &target, &mut found).unwrap();
            assert!(found.iter().all(|(source, _)| source.bytes() <= PIECE_BYTES && source.bytes() > 0));
            assert_eq!(found.iter().map(|(source, _)| source.bytes()).sum::<usize>(), source.bytes());
            assert!(found.iter().all(|(source, target)| source.view.shape() == target.view.shape()));
            assert!(found.iter().all(|(source, target)| source.view.start() - 7 == target.view.start()));
        }
    }

    #[test]
    fn engines_read_places_between_semicolons() {
        let places = [place(4, 90, &[10], &[1]), place(5, 2, &[3, 4], &[100, 1])];
        let dtype = DType::F64 as u8;
        assert_eq!(listed(places.iter()), format!("4 {dtype} 1073741824 90 1 10 1;5 {dtype} 1073741824 2 2 3 4 100 1"));
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
