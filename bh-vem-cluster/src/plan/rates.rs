//! Rates of stacks for each kind of work, the work of a batch, and the shares that suit a mix of work. All of it is
//! counted, not timed, so shares are equal in each run.

use crate::plan::methods::PRODUCT;
use bh_bytecode::{BatchRef, Instr, base_flags};
use std::collections::{HashMap, HashSet};

/// The kinds of work, as in files of rates.
pub const KINDS: [&str; 5] = ["bytes", "operations", "functions", "products", "copies"];

/// Opcodes that cost at least this many additions count as functions; square roots cost less.
const LEAST_COST: u32 = 15;

/// The assumed cost of a scalar program per element, in additions: its number of iterations is unknown.
const PROGRAM: f64 = 100.0;

/// A stack that is slower than the fastest by more than this factor gets no share.
pub const MOST_TIMES_SLOWER: f64 = 10.0;

/// Bytes per nanosecond that a redistribution moves.
const MOVED: f64 = 4.0;

/// Nanoseconds for planning again after a redistribution.
const PLANNING: f64 = 1e5;

/// Stands in for a rate of 0.
const NEVER: f64 = 1e-12;

/// The fraction of the time that new shares must save.
const GAIN: f64 = 0.02;

/// Work older than this many redistributions would take counts half.
const WINDOW: f64 = 50.0;

/// Batches whose work is remembered, at most.
const MOST_KNOWN: usize = 4096;

/// Amounts of work by kind: bytes that kernels read and write; 32-bit additions; the same within functions; the same
/// within matrix products; bytes that the program reads and writes.
pub type Work = [f64; KINDS.len()];

/// A stack's rate for each kind of work, per nanosecond. 0 if it should do none, because it would slow others down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates(pub [f64; KINDS.len()]);

impl Rates {
    /// The rates of an engine that only announces its operations per nanosecond.
    pub fn announced(speed: f64) -> Rates {
        // Typical of processors and graphics cards.
        const OPERATIONS_A_BYTE: f64 = 5.0;
        Rates([speed / OPERATIONS_A_BYTE, speed, speed, speed, speed])
    }

    /// Are rates valid for stacks that share work? Each kind needs a stack with a positive rate.
    pub fn are_sound(all: &[Rates]) -> bool {
        let fit = |kind: usize| all.iter().map(move |rates| rates.0[kind]);
        (0..KINDS.len())
            .all(|kind| fit(kind).all(|rate| rate.is_finite() && rate >= 0.0) && fit(kind).any(|rate| rate > 0.0))
    }

    /// Nanoseconds for some work: computation overlaps memory traffic, except for products and copies.
    pub fn time(&self, work: &Work) -> f64 {
        let of = |kind: usize| work[kind] / self.0[kind].max(NEVER);
        of(0).max(of(1) + of(2)) + of(3) + of(4)
    }
}

/// 32-bit numbers that an element counts as.
fn numbers(bytes: usize) -> f64 {
    (bytes as f64 / 4.0).max(1.0)
}

/// The work of a batch.
pub fn work(batch: &BatchRef<'_>, order: &[u32]) -> Work {
    let mut count = Count { batch, work: [0.0; KINDS.len()], read: HashSet::new(), wrote: HashMap::new() };
    for &index in order {
        let instr = &batch.instrs[index as usize];
        if !instr.opcode.is_system() {
            count.add(instr);
        }
    }
    count.work
}

struct Count<'a> {
    batch: &'a BatchRef<'a>,
    work: Work,
    /// Bases that were read since their last write.
    read: HashSet<u32>,
    /// The view of a base's last write.
    wrote: HashMap<u32, u32>,
}

impl Count<'_> {
    fn add(&mut self, instr: &Instr) {
        let views = || instr.operands().iter().filter_map(|operand| operand.as_view());
        let most = views().map(|view| self.batch.views[view as usize].len).max().unwrap_or(0) as f64;
        let size = views().filter_map(|view| self.batch.base_of(view)).map(|base| base.dtype().size()).max();
        let elements = most * numbers(size.unwrap_or(4));
        if instr.opcode.is_extension() {
            let name = self.batch.extension_name(instr.opcode);
            if instr.opcode == PRODUCT || name == Some("matmul") {
                self.work[3] += self.product(instr) * numbers(size.unwrap_or(4));
            } else {
                self.work[1] += PROGRAM * elements;
            }
        } else {
            let cost = instr.opcode.info().cost;
            self.work[if cost >= LEAST_COST { 2 } else { 1 }] += f64::from(cost) * elements;
        }
        instr.inputs().iter().filter_map(|operand| operand.as_view()).for_each(|view| self.reads(view));
        instr.outputs().iter().filter_map(|operand| operand.as_view()).for_each(|view| self.writes(view));
    }

    /// Additions and multiplications of a matrix product.
    fn product(&self, instr: &Instr) -> f64 {
        let [output, left] = [0, 1].map(|place| instr.operands().get(place).and_then(|operand| operand.as_view()));
        let inner = left.map_or(1, |view| self.batch.view(view).shape().last().copied().unwrap_or(1));
        2.0 * inner as f64 * output.map_or(0, |view| self.batch.views[view as usize].len) as f64
    }

    fn bytes(&self, view: u32) -> f64 {
        let is_temporary = |base: &bh_bytecode::Base| base.has(base_flags::BORN) && base.has(base_flags::DIES);
        match self.batch.base_of(view) {
            // Arrays that live within a batch live within kernels.
            Some(base) if !is_temporary(base) => {
                (self.batch.views[view as usize].len as usize * base.dtype().size()) as f64
            }
            _ => 0.0,
        }
    }

    fn reads(&mut self, view: u32) {
        let base = self.batch.views[view as usize].base;
        // The kernel that wrote it still has it.
        if self.wrote.get(&base) != Some(&view) && self.read.insert(base) {
            self.work[0] += self.bytes(view);
        }
    }

    fn writes(&mut self, view: u32) {
        let base = self.batch.views[view as usize].base;
        self.work[0] += self.bytes(view);
        self.read.remove(&base);
        self.wrote.insert(base, view);
    }
}

/// The properties of batches of one shape.
#[derive(Clone, Copy, Debug)]
struct Known {
    work: Work,
    /// How often elements moved between ranks with shares.
    exchanges: f64,
}

/// The mix of work since shares changed; later work counts more. Siblings run ahead of each other across batches, so
/// the total time of each matters.
#[derive(Debug)]
pub struct Mix {
    rates: Vec<Rates>,
    /// Nanoseconds per exchange. `None` if work must not be gathered on one rank.
    exchange: Option<f64>,
    known: HashMap<u64, Known>,
    /// The current batch.
    shape: u64,
    /// Nanoseconds that each rank would take for all of the work.
    alone: Vec<f64>,
    /// Nanoseconds of exchanges if several ranks had shares.
    exchanged: f64,
    /// Bytes that the program has written and read since the last batch.
    copied: f64,
}

impl Mix {
    /// No work yet, on ranks with these rates.
    pub fn new(rates: Vec<Rates>, exchange: Option<f64>) -> Mix {
        let alone = vec![0.0; rates.len()];
        Mix { rates, exchange, known: HashMap::new(), shape: 0, alone, exchanged: 0.0, copied: 0.0 }
    }

    /// Excludes a rank whose stack is lost.
    pub fn lose(&mut self, rank: usize) {
        self.rates[rank] = Rates([0.0; KINDS.len()]);
    }

    /// Records bytes that the program writes or reads.
    pub fn copies(&mut self, bytes: u64) {
        self.copied += bytes as f64;
    }

    /// The shares that suit these times of all work on each rank, and the time with them.
    fn best(&self, alone: &[f64], exchanged: f64) -> (Vec<f64>, f64) {
        let least = alone.iter().copied().fold(f64::INFINITY, f64::min);
        let share = |&time: &f64| if time <= least * MOST_TIMES_SLOWER { least / time } else { 0.0 };
        let shares: Vec<f64> = alone.iter().map(share).collect();
        let together = least / shares.iter().sum::<f64>() + exchanged;
        if self.exchange.is_none() || together <= least {
            return (shares, together);
        }
        // Among equally fast ranks the first one: it has the small arrays and gets commands first.
        let first = alone.iter().position(|time| *time <= least * (1.0 + GAIN)).unwrap_or(0);
        ((0..alone.len()).map(|rank| f64::from(u8::from(rank == first))).collect(), least)
    }

    /// The shares that suit one kind of work.
    pub fn of_kind(&self, kind: usize) -> Vec<f64> {
        let mut work = [0.0; KINDS.len()];
        work[kind] = 1.0;
        self.best(&self.rates.iter().map(|rates| rates.time(&work)).collect::<Vec<_>>(), 0.0).0
    }

    /// Records a batch of this shape before it runs with the shares `now`; `bytes` are the distributed arrays. Returns
    /// other shares if they would have saved more time than a redistribution takes.
    pub fn note(&mut self, shape: u64, work: impl FnOnce() -> Work, now: &[f64], bytes: u64) -> Option<Vec<f64>> {
        if self.known.len() >= MOST_KNOWN {
            self.known.clear();
        }
        self.shape = shape;
        let known = *self.known.entry(shape).or_insert_with(|| Known { work: work(), exchanges: 1.0 });
        let mut work = known.work;
        work[4] += std::mem::take(&mut self.copied);
        if work == [0.0; KINDS.len()] {
            return None;
        }
        self.exchanged += self.exchange.map_or(0.0, |exchange| exchange * known.exchanges);
        for (time, rates) in self.alone.iter_mut().zip(&self.rates) {
            *time += rates.time(&work);
        }
        let sum: f64 = now.iter().sum();
        let longest = self.alone.iter().zip(now).map(|(time, share)| time * share / sum).fold(0.0, f64::max);
        let several = now.iter().filter(|share| **share > 0.0).count() > 1;
        let spent = longest + if several { self.exchanged } else { 0.0 };
        let change = bytes as f64 / MOVED + PLANNING;
        let (shares, time) = self.best(&self.alone, self.exchanged);
        let changes = spent - time > change + GAIN * spent;
        if changes || spent > WINDOW * change {
            let left = if changes { 0.0 } else { 0.5 };
            self.alone.iter_mut().chain([&mut self.exchanged]).for_each(|time| *time *= left);
        }
        changes.then_some(shares)
    }

    /// Records how often elements moved for the batch that was recorded last.
    pub fn exchanged(&mut self, times: usize) {
        if let Some(known) = self.known.get_mut(&self.shape) {
            known.exchanges = times as f64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bh_bytecode::{Base, Batch, Constant, DType, Opcode, Operand, View};

    /// Two stacks with equally fast memory; the second computes functions at a quarter of the rate.
    fn two() -> Vec<Rates> {
        vec![Rates([10.0, 40.0, 20.0, 40.0, 5.0]), Rates([10.0, 20.0, 5.0, 40.0, 5.0])]
    }

    #[test]
    fn work_is_counted_by_kind() {
        let mut batch = Batch::default();
        let [kept, made] = [base_flags::LIVE_OUT, base_flags::BORN | base_flags::DIES]
            .map(|flags| batch.push_base(Base { flags, ..Base::new(7, DType::F64, 1000) }));
        let [kept, made] = [kept, made].map(|base| batch.push_view(base, &View::contiguous(&[1000]).unwrap()));
        let one = batch.push_constant(Constant::from_value(1.0f64));
        batch.push_instr(Instr::new(Opcode::Sin, &[Operand::view(made), Operand::view(kept)]));
        batch.push_instr(Instr::new(Opcode::Add, &[Operand::view(kept), Operand::view(made), Operand::constant(one)]));
        batch
            .push_instr(Instr::new(Opcode::Multiply, &[Operand::view(kept), Operand::view(kept), Operand::view(kept)]));
        // Read once, written twice; the second instruction finds its operand in its kernel.
        assert_eq!(work(&batch.as_ref(), &[0, 1, 2]), [24_000.0, 4000.0, 30_000.0, 0.0, 0.0]);
    }

    #[test]
    fn shares_follow_the_kind_of_work() {
        let mut mix = Mix::new(two(), None);
        assert_eq!((mix.of_kind(0), mix.of_kind(2)), (vec![1.0, 1.0], vec![1.0, 0.25]));
        let functions = [1e6, 0.0, 1e8, 0.0, 0.0];
        // There is enough work to pay for the change.
        assert_eq!(mix.note(1, || functions, &[1.0, 1.0], 1 << 20), Some(vec![1.0, 0.25]));
        assert_eq!((0..100).find_map(|_| mix.note(1, || functions, &[1.0, 0.25], 1 << 20)), None);
        // Redistribution is expensive, so shares return only after some batches.
        let bytes = [1e9, 0.0, 0.0, 0.0, 0.0];
        let turns = (0..100).position(|_| mix.note(2, || bytes, &[1.0, 0.25], 4 << 30).is_some()).unwrap();
        assert!((10..90).contains(&turns), "{turns}");
    }

    /// Redistributions take no longer than they save, for any sequence of work.
    #[test]
    fn changes_cost_no_more_than_they_save() {
        let kinds = [[1e8, 0.0, 0.0, 0.0, 0.0], [1e6, 0.0, 1e8, 0.0, 0.0]];
        for period in [1, 3, 10, 100] {
            let (mut mix, mut now, bytes) = (Mix::new(two(), None), vec![1.0, 1.0], 64u64 << 20);
            let (mut spent, mut still) = (0.0, 0.0);
            for turn in 0..1000u64 {
                let work = kinds[(turn / period % 2) as usize];
                if let Some(shares) = mix.note(turn / period % 2, || work, &now, bytes) {
                    spent += bytes as f64 / MOVED + PLANNING;
                    now = shares;
                }
                let sum: f64 = now.iter().sum();
                let time = |now: &[f64], sum: f64| {
                    let each = mix.rates.iter().zip(now).map(|(rates, share)| rates.time(&work) * share / sum);
                    each.fold(0.0, f64::max)
                };
                spent += time(&now, sum);
                still += time(&[1.0, 1.0], 2.0);
            }
            assert!(spent < 1.05 * still + 1e8, "{period}: {spent} {still}");
        }
    }

    #[test]
    fn little_work_goes_to_one_rank_and_much_comes_back() {
        let mut mix = Mix::new(vec![Rates([10.0; 5]); 2], Some(20_000.0));
        let little = [1e4, 1e4, 0.0, 0.0, 0.0];
        let one = (0..100).find_map(|_| {
            let found = mix.note(1, || little, &[1.0, 1.0], 10_000);
            mix.exchanged(2);
            found
        });
        assert_eq!(one, Some(vec![1.0, 0.0]));
        assert_eq!((0..100).find_map(|_| mix.note(1, || little, &[1.0, 0.0], 10_000)), None);
        let much = [1e8, 1e6, 0.0, 0.0, 0.0];
        assert_eq!((0..100).find_map(|_| mix.note(2, || much, &[1.0, 0.0], 10_000)), Some(vec![1.0, 1.0]));
        mix.lose(0);
        assert_eq!((0..100).find_map(|_| mix.note(2, || much, &[1.0, 1.0], 10_000)), Some(vec![0.0, 1.0]));
    }

    /// A device with a slow connection gets all work on arrays that stay there, and a part of the work on the program's
    /// data.
    #[test]
    fn work_on_data_from_the_program_is_shared() {
        let (card, cores) = (Rates([2000.0, 2e4, 2e4, 2e4, 6.0]), Rates([100.0, 300.0, 300.0, 300.0, 6.0]));
        let mut mix = Mix::new(vec![card, cores], None);
        let sums = [5e8, 1e8, 0.0, 0.0, 0.0];
        assert_eq!(mix.note(1, || sums, &[1.0, 1.0], 0), Some(vec![1.0, 0.0]));
        let shares = (0..100).find_map(|_| {
            mix.copies(1 << 28);
            mix.note(1, || sums, &[1.0, 0.0], 0)
        });
        assert!((0.5..1.0).contains(&shares.unwrap()[1]));
    }
}
