//! Runs stages: messages are sent as soon as their elements are available, early batches run during the transfer, then
//! the rest.

use crate::command::failure::{Failure, first_of};
use crate::plan::layout::covers;
use crate::plan::stage::{LocalBatch, Stage, Transfer};
use crate::run::machine::{Machine, timed};
use crate::run::peer_copy::Offered;
use crate::transport::{Class, buffers};
use bh_bytecode::{Base, BatchRef, Instr, Opcode, Operand};
use bh_core::error::Error;
use std::collections::{BTreeMap, HashSet};
use std::time::Instant;

/// The most bytes of an array that counts as a few scalars.
const SCALAR_BYTES: u64 = 64;

/// The failures of this process's ranks.
struct Failures<'a> {
    batch: &'a BatchRef<'a>,
    first: Option<Failure>,
    /// Ids of ranks' bases with missing elements after a failure.
    lost: HashSet<u64>,
}

impl Failures<'_> {
    /// Records a failure; the one of the earliest instruction remains, because ranks fail in any order.
    fn keep(&mut self, instr: Option<u32>, error: Error) {
        let error = match instr {
            Some(instr) if error.origin.is_none() => error.unplaced().at_instr(self.batch, instr),
            _ => error,
        };
        self.first = first_of(self.first.take(), Some(Failure::new(instr, error.unplaced())));
    }

    /// Marks the targets of transfers from lost bases as lost.
    fn follow_transfers(&mut self, transfers: &[Transfer]) {
        if self.lost.is_empty() {
            return;
        }
        let reached = transfers.iter().filter(|transfer| self.lost.contains(&transfer.source.base.id));
        let reached: Vec<u64> = reached.map(|transfer| transfer.target.base.id).collect();
        self.lost.extend(reached);
    }

    /// Marks the results of a batch that depend on lost bases as lost, and their instructions as failed.
    fn follow_batch(&mut self, local: &LocalBatch) {
        if self.lost.is_empty() {
            return;
        }
        let batch = local.batch.as_ref();
        for (instr, &global) in batch.instrs.iter().zip(&local.globals) {
            let ids = |operands: &[Operand], wanted: &dyn Fn(u32) -> bool| -> Vec<u64> {
                let views = operands.iter().filter_map(|operand| operand.as_view());
                let views = views.filter(|&view| batch.views[view as usize].len > 0 && wanted(view));
                views.filter_map(|view| Some(batch.base_of(view)?.id)).collect()
            };
            let mut needed = ids(instr.inputs(), &|_| true);
            needed.extend(ids(instr.outputs(), &|view| instr.opcode.reads_output() || !covers(&batch, view)));
            let written = ids(instr.outputs(), &|_| true);
            if needed.iter().any(|id| self.lost.contains(id)) {
                self.lost.extend(written);
                if let (Some(failure), true) = (&mut self.first, global != u32::MAX) {
                    failure.also.push(global);
                }
            } else {
                let dropped = if instr.opcode == Opcode::Discard { ids(instr.operands(), &|_| true) } else { written };
                for id in &dropped {
                    self.lost.remove(id);
                }
            }
        }
    }
}

/// The transfers before a stage.
#[derive(Clone, Copy)]
struct Moves<'a> {
    transfers: &'a [Transfer],
    /// Transfers between ranks of this process are peer copies instead of messages.
    by_peer_copy: bool,
}

/// The transfers before a stage.
fn moves<'a>(stages: &'a [Stage], by_peer_copy: &[bool], number: usize) -> Moves<'a> {
    Moves { transfers: &stages[number].transfers, by_peer_copy: by_peer_copy[number] }
}

impl Machine {
    /// The messages of a stage, by sender and receiver.
    fn by_pair<'a>(&self, moves: Moves<'a>) -> BTreeMap<(usize, usize), Vec<&'a Transfer>> {
        let mut pairs: BTreeMap<(usize, usize), Vec<&Transfer>> = BTreeMap::new();
        for transfer in moves.transfers.iter().filter(|transfer| !(moves.by_peer_copy && self.is_within(transfer))) {
            pairs.entry((transfer.from, transfer.to)).or_default().push(transfer);
        }
        pairs
    }

    /// Runs the planned stages; returns the first failure of this process's ranks.
    pub fn run(&mut self, batch: &BatchRef<'_>) -> Option<Failure> {
        let mut stages = self.planner.take_stages();
        stages.iter_mut().for_each(|stage| stage.complete(batch));
        self.run_stages(batch, &mut stages)
    }

    /// Runs completed stages.
    pub(crate) fn run_stages(&mut self, batch: &BatchRef<'_>, stages: &mut [Stage]) -> Option<Failure> {
        let mut failures = Failures { batch, first: None, lost: HashSet::new() };
        self.exchanges += stages.iter().filter(|stage| !stage.transfers.is_empty()).count();
        let by_peer_copy: Vec<bool> = stages.iter().map(|stage| self.uses_peer_copies(&stage.transfers)).collect();
        let mut sent = false;
        if !stages.is_empty() {
            self.expect_data(moves(stages, &by_peer_copy, 0), &mut failures);
        }
        for number in 0..stages.len() {
            if !sent {
                self.send_data(moves(stages, &by_peer_copy, number), &mut failures);
            }
            failures.follow_transfers(&stages[number].transfers);
            let on_host = if by_peer_copy[number] { self.hosts_with_scalars(&stages[number]) } else { Vec::new() };
            let filled = self.begin_peer_moves(moves(stages, &by_peer_copy, number), &on_host, &mut failures);
            self.run_local(&mut stages[number].early, &mut failures);
            self.copy_scalars_to_host(&stages[number], &on_host, &mut failures);
            if let Err(error) = self.end_peer_copies(filled) {
                failures.keep(None, error);
            }
            self.receive_data(moves(stages, &by_peer_copy, number), &mut failures);
            if number + 1 < stages.len() {
                self.expect_data(moves(stages, &by_peer_copy, number + 1), &mut failures);
            }
            // The next stage's messages are sent now, unless this stage computes their elements.
            sent = stages.get(number + 1).is_some_and(|next| !self.makes(&stages[number].local, &next.transfers));
            if sent {
                self.send_data(moves(stages, &by_peer_copy, number + 1), &mut failures);
            }
            self.run_local(&mut stages[number].local, &mut failures);
        }
        failures.first
    }

    /// Begins the peer copies of a stage.
    fn begin_peer_moves(&mut self, moves: Moves<'_>, on_host: &[usize], failures: &mut Failures<'_>) -> Vec<Offered> {
        if !moves.by_peer_copy {
            return Vec::new();
        }
        let (filled, outcome) = self.begin_peer_copies(moves.transfers, on_host);
        if let Err(error) = outcome {
            failures.keep(None, error);
        }
        filled
    }

    /// Do local batches write elements that this process's ranks then send?
    fn makes(&self, local: &[LocalBatch], transfers: &[Transfer]) -> bool {
        let sources: HashSet<u64> = transfers
            .iter()
            .filter(|transfer| self.port.hosts(transfer.from))
            .map(|transfer| transfer.source.base.id)
            .collect();
        !sources.is_empty() && local.iter().any(|local| local.writes_any(&sources))
    }

    /// The ranks with devices whose batches only combine scalars from other ranks of this process. Their host computes them: the
    /// processor is faster than a device that starts a kernel, and the program is likely to read them.
    fn hosts_with_scalars(&self, stage: &Stage) -> Vec<usize> {
        let first = self.port.hosted().start;
        let combines = |(place, local): &(usize, &LocalBatch)| {
            let joins = |transfer: &Transfer| transfer.to == first + place && self.is_within(transfer);
            self.locals[*place].on_device && local.has_only_scalars() && stage.transfers.iter().any(joins)
        };
        stage.local.iter().enumerate().filter(combines).map(|(place, _)| first + place).collect()
    }

    /// Moves the scalars of these ranks' batches to host memory.
    fn copy_scalars_to_host(&mut self, stage: &Stage, on_host: &[usize], failures: &mut Failures<'_>) {
        let first = self.port.hosted().start;
        for &rank in on_host {
            let (state, child) = self.rank(rank);
            let mut bases = stage.local[rank - first].batch.bases.iter();
            if let Err(error) = bases.try_for_each(|base| state.take_home(child, base)) {
                failures.keep(None, error);
            }
        }
    }

    fn run_local(&mut self, local: &mut [LocalBatch], failures: &mut Failures<'_>) {
        if local.iter().all(|local| local.batch.instrs.is_empty()) {
            return;
        }
        local.iter().for_each(|local| failures.follow_batch(local));
        let begin = Instant::now();
        let outcomes = self.run_ranks(local);
        self.spent.compute += begin.elapsed().as_nanos() as u64;
        let first = self.port.hosted().start;
        for (place, (outcome, local)) in outcomes.into_iter().zip(local).enumerate() {
            if let Err(error) = outcome {
                let instr = error.instr.and_then(|index| local.globals.get(index as usize)).copied();
                failures.keep(instr.filter(|&instr| instr != u32::MAX), error);
                for base in local.written() {
                    if self.probe_rank(first + place, &base).is_some() {
                        failures.lost.insert(base.id);
                    }
                }
            }
        }
    }

    /// Sends a stage's elements, one message per pair of ranks.
    fn send_data(&mut self, moves: Moves<'_>, failures: &mut Failures<'_>) {
        for ((from, to), transfers) in self.by_pair(moves) {
            if !self.port.hosts(from) {
                continue;
            }
            let begin = Instant::now();
            let mut message = buffers::take(transfers.iter().map(|transfer| transfer.source.bytes()).sum());
            let mut rest = &mut message[..];
            for transfer in transfers.iter().filter(|transfer| !transfer.source.view.is_empty()) {
                let (mine, behind) = rest.split_at_mut(transfer.source.bytes());
                let (state, child) = self.rank(from);
                if let Err(error) = state.read_or_clear(child, &transfer.source, mine) {
                    failures.keep(None, error);
                }
                rest = behind;
            }
            self.spent.pack += begin.elapsed().as_nanos() as u64;
            if let Err(error) = self.port.send(Class::Payload, from, to, message) {
                failures.keep(None, error);
            }
        }
    }

    /// Posts receives for a stage's messages, so that they can arrive during computation.
    fn expect_data(&mut self, moves: Moves<'_>, failures: &mut Failures<'_>) {
        if self.port.is_alone() {
            return;
        }
        for ((from, to), transfers) in self.by_pair(moves) {
            let bytes = transfers.iter().map(|transfer| transfer.target.bytes()).sum();
            if self.port.hosts(to)
                && let Err(error) = self.port.expect(to, from, bytes)
            {
                failures.keep(None, error);
            }
        }
    }

    /// Receives a stage's messages and stores their elements.
    fn receive_data(&mut self, moves: Moves<'_>, failures: &mut Failures<'_>) {
        for ((from, to), transfers) in self.by_pair(moves) {
            if !self.port.hosts(to) {
                continue;
            }
            let message = timed(&mut self.spent.wait, || self.port.receive(to, from)).unwrap_or_else(|error| {
                failures.keep(None, error);
                Vec::new()
            });
            let begin = Instant::now();
            let mut rest = &message[..];
            for transfer in transfers {
                let (state, child) = self.rank(to);
                match state.unpack(child, &transfer.target, rest) {
                    Ok(after) => rest = after,
                    Err(error) => failures.keep(None, error),
                }
            }
            buffers::give(message);
            self.spent.pack += begin.elapsed().as_nanos() as u64;
        }
    }
}

impl LocalBatch {
    /// Has it arrays, all of a few bytes?
    fn has_only_scalars(&self) -> bool {
        !self.batch.bases.is_empty() && self.batch.bases.iter().all(|base| base.bytes() <= SCALAR_BYTES)
    }

    /// The bases that it writes and does not drop.
    fn written(&self) -> Vec<Base> {
        let outputs = self.batch.instrs.iter().filter(|instr| !instr.opcode.is_system()).flat_map(Instr::outputs);
        let written: HashSet<u32> =
            outputs.filter_map(|operand| operand.as_view()).map(|view| self.batch.views[view as usize].base).collect();
        let bases = self.batch.bases.iter().zip(&self.dropped).enumerate();
        bases
            .filter(|(index, (_, dropped))| written.contains(&(*index as u32)) && !**dropped)
            .map(|(_, (base, _))| *base)
            .collect()
    }

    /// Does it write or drop one of these bases?
    fn writes_any(&self, bases: &HashSet<u64>) -> bool {
        let id = |view: u32| self.batch.bases.get(self.batch.views[view as usize].base as usize).map(|base| base.id);
        self.batch.instrs.iter().any(|instr| {
            let written = if instr.opcode == Opcode::Discard { instr.operands() } else { instr.outputs() };
            written.iter().filter_map(|operand| id(operand.as_view()?)).any(|id| bases.contains(&id))
        })
    }
}
