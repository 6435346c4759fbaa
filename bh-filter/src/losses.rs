//! Which data is lost together. An instruction that fails, or needs lost data, loses all arrays that it writes to; so a
//! pass may change the inputs of an instruction only where its results are lost by the same causes as before.

use crate::analysis::base_of;
use bh_bytecode::{Batch, Instr, Kind, Opcode, Operand, base_flags, steps};
use std::collections::HashMap;

/// Longer sets become one cause of their own, so that each question takes bounded time.
const MOST_CAUSES: usize = 32;

/// The possible causes of loss of each base, before each instruction. Stays right while passes keep losses.
pub struct Losses {
    /// For each base: from which instruction on it is lost by which causes.
    history: Vec<Vec<(u32, Set)>>,
    sets: Sets,
}

impl Losses {
    /// Follows the causes through a batch. Bases that live on from before may be lost before it begins.
    pub fn of(batch: &Batch) -> Losses {
        let mut sets = Sets::new(batch.bases.len() + batch.instrs.len());
        let before = |(base, record): (usize, &bh_bytecode::Base)| {
            vec![(0, if record.has(base_flags::BORN) { Set::NONE } else { sets.single(base as u32) })]
        };
        let history = batch.bases.iter().enumerate().map(before).collect();
        let mut losses = Losses { history, sets };
        for (index, instr) in batch.instrs.iter().enumerate() {
            let at = index as u32;
            if instr.opcode.kind() == Kind::System {
                if matches!(instr.opcode, Opcode::Free | Opcode::Discard) {
                    instr
                        .inputs()
                        .iter()
                        .filter_map(|&it| base_of(batch, it))
                        .for_each(|it| losses.set(it, at, Set::NONE));
                }
                continue;
            }
            let causes = losses.causes(batch, at, instr.inputs(), may_fail(instr).then_some(at));
            for (base, _) in instr.outputs().iter().filter_map(|&operand| reached(batch, operand)) {
                losses.set(base, at, causes);
            }
        }
        losses
    }

    /// Does instruction `at` lose its results by the same causes if it reads `inputs` instead?
    pub fn keeps(&mut self, batch: &Batch, at: u32, inputs: &[Operand]) -> bool {
        let instr = &batch.instrs[at as usize];
        let failing = may_fail(instr).then_some(at);
        self.causes(batch, at, instr.inputs(), failing) == self.causes(batch, at, inputs, failing)
    }

    /// Does instruction `at`, which computes the same as the one at `earlier`, lose its results by the same causes if it
    /// copies `result` instead? A failure of one is a failure of the other.
    pub fn keeps_as_copy(&mut self, batch: &Batch, at: u32, earlier: u32, result: Operand) -> bool {
        let instr = &batch.instrs[at as usize];
        let failing = may_fail(instr).then_some(earlier);
        self.causes(batch, at, instr.inputs(), failing) == self.causes(batch, at, &[result], None)
    }

    /// Does instruction `at` lose its results by the same causes if it does what the one at `earlier` did, which may fail, and
    /// reads `inputs`?
    pub fn keeps_with(&mut self, batch: &Batch, at: u32, earlier: u32, inputs: &[Operand]) -> bool {
        let instr = &batch.instrs[at as usize];
        self.causes(batch, at, instr.inputs(), None) == self.causes(batch, at, inputs, Some(earlier))
    }

    /// Does instruction `at` lose its results by the same causes if it computes them in parts, which read these bases as they were
    /// before these instructions? No part overcomes a loss of the array that it writes to.
    pub fn keeps_in_parts(&mut self, batch: &Batch, at: u32, reads: &[(u32, u32)]) -> bool {
        let instr = &batch.instrs[at as usize];
        let whole = self.causes(batch, at, instr.inputs(), None);
        let outputs = instr.outputs().iter().filter_map(|&output| base_of(batch, output)).map(|base| (base, at));
        let parts = reads.iter().copied().chain(outputs);
        parts.fold(Set::NONE, |causes, (base, when)| self.sets.union(causes, self.at(base, when))) == whole
    }

    /// Do the arrays that instruction `at` writes to stay as lost as they were?
    pub fn leaves(&self, batch: &Batch, at: u32) -> bool {
        let outputs = batch.instrs[at as usize].outputs();
        outputs
            .iter()
            .filter_map(|&operand| base_of(batch, operand))
            .all(|base| self.at(base, at) == self.at(base, at + 1))
    }

    /// Notes what has lost a base after instruction `at`.
    fn set(&mut self, base: u32, at: u32, causes: Set) {
        if self.at(base, at) != causes {
            self.history[base as usize].push((at + 1, causes));
        }
    }

    /// The causes that have lost a base before instruction `at`.
    fn at(&self, base: u32, at: u32) -> Set {
        let history = &self.history[base as usize];
        history[history.partition_point(|&(from, _)| from <= at) - 1].1
    }

    /// The causes that lose the results of the instruction `at`, which reads `inputs` and may itself fail.
    fn causes(&mut self, batch: &Batch, at: u32, inputs: &[Operand], failing: Option<u32>) -> Set {
        let instr = &batch.instrs[at as usize];
        let own = failing.map_or(Set::NONE, |failing| self.sets.single(batch.bases.len() as u32 + failing));
        let kept = |&(_, whole): &(u32, bool)| !whole || instr.opcode.reads_output();
        let outputs = instr.outputs().iter().filter_map(|&operand| reached(batch, operand)).filter(kept);
        let needed = inputs.iter().filter_map(|&operand| reached(batch, operand)).chain(outputs);
        needed.fold(own, |causes, (base, _)| self.sets.union(causes, self.at(base, at)))
    }
}

/// Are the arrays of a batch lost by the same causes after a rewriting that kept its bases? `ends` says for each instruction how many new ones there
/// are up to its end, of which the last one fails where it fails; some bases may be left out.
pub fn agree(old: &Batch, new: &Batch, ends: &[u32], left_out: impl Fn(u32) -> bool) -> bool {
    let (before, after) = (Losses::of(old), Losses::of(new));
    let (bases, instrs, new_bases) = (old.bases.len() as u32, old.instrs.len() as u32, new.bases.len() as u32);
    let renamed = |&cause: &u32| match cause.checked_sub(bases) {
        None => Some(cause),
        // Long sets have causes of their own.
        Some(at) => (at < instrs).then(|| new_bases + ends[at as usize] - 1),
    };
    let same = |base: u32, at: usize| {
        let causes = &before.sets.members[before.at(base, at as u32 + 1).0 as usize];
        let renamed: Option<Vec<u32>> = causes.iter().map(renamed).collect();
        renamed.is_some_and(|causes| after.sets.members[after.at(base, ends[at]).0 as usize] == causes)
    };
    old.instrs.iter().enumerate().all(|(at, instr)| {
        let written = instr.outputs().iter().filter_map(|&output| base_of(old, output));
        written.filter(|&base| !left_out(base)).all(|base| same(base, at))
    })
}

/// Can an instruction fail for its data?
fn may_fail(instr: &Instr) -> bool {
    matches!(instr.opcode.kind(), Kind::Index | Kind::Extension)
}

/// The base of an operand that reaches an element, and whether it reaches all of them: written views reach none twice.
fn reached(batch: &Batch, operand: Operand) -> Option<(u32, bool)> {
    let (base, len) = (base_of(batch, operand)?, batch.views[operand.as_view()? as usize].len);
    (len > 0).then_some((base, len == batch.bases[base as usize].len))
}

/// A set of causes, by its number: bases that were lost before, and instructions that fail.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Set(u32);

impl Set {
    const NONE: Set = Set(0);
}

/// All sets, each of them once.
struct Sets {
    members: Vec<Vec<u32>>,
    numbers: HashMap<Vec<u32>, Set>,
    unions: HashMap<(Set, Set), Set>,
    /// The next cause that stands for a long set.
    next: u32,
}

impl Sets {
    fn new(causes: usize) -> Sets {
        let (members, numbers) = (vec![Vec::new()], HashMap::from([(Vec::new(), Set::NONE)]));
        Sets { members, numbers, unions: HashMap::new(), next: causes as u32 }
    }

    fn single(&mut self, cause: u32) -> Set {
        self.number(vec![cause])
    }

    fn number(&mut self, members: Vec<u32>) -> Set {
        let next = Set(self.members.len() as u32);
        *self.numbers.entry(members).or_insert_with_key(|members| {
            self.members.push(members.clone());
            next
        })
    }

    fn union(&mut self, a: Set, b: Set) -> Set {
        if a == b || b == Set::NONE {
            return a;
        }
        if a == Set::NONE {
            return b;
        }
        let pair = (a.min(b), a.max(b));
        if let Some(&known) = self.unions.get(&pair) {
            return known;
        }
        let mut members = [&self.members[a.0 as usize][..], &self.members[b.0 as usize]].concat();
        steps::add(members.len());
        members.sort_unstable();
        members.dedup();
        if members.len() > MOST_CAUSES {
            members = vec![self.next];
            self.next += 1;
        }
        let union = self.number(members);
        self.unions.insert(pair, union);
        union
    }
}
