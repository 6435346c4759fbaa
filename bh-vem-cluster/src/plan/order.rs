//! A model that checks plans in builds with debug assertions: stages may reorder uses of an element, except for pairs
//! of which one changes it. Every rank then reads the newest elements that the planner knows.

use crate::plan::stage::{Local, Place, Transfer};
use bh_bytecode::interp::offsets;
use bh_bytecode::{Base, Instr, Opcode, View};
use std::collections::{HashMap, HashSet};
use std::fmt;

/// Bases with more elements are not checked: each use is compared with all earlier ones, element by element.
const CHECKED: i64 = 1 << 16;

/// The phases of a stage, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// Unused bases are dropped.
    Drops,
    /// Elements are packed into messages.
    Sends,
    /// Elements are unpacked from messages.
    Receives,
    /// The local batches run.
    Runs,
}

/// A use of a base's elements.
#[derive(Clone, Debug)]
struct Use {
    stage: usize,
    part: Part,
    writes: bool,
    view: View,
    by: Opcode,
}

impl fmt::Display for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Use { stage, part, writes, view, by } = self;
        let does = if *writes { "changes" } else { "reads" };
        write!(f, "'{by}', which {does} {view:?} when stage {stage} {part:?},")
    }
}

/// The uses of all local bases, in planning order.
#[derive(Debug, Default)]
pub struct Order {
    uses: HashMap<u64, Vec<Use>>,
}

impl Order {
    /// Records an instruction of a stage's local batch.
    pub fn run(&mut self, stage: usize, instr: &Instr, operands: &[Local]) {
        for (at, operand) in operands.iter().enumerate() {
            if let Local::Data(place) = operand {
                let writes = at < usize::from(instr.outputs);
                self.note(place, Use { stage, part: Part::Runs, writes, view: place.view, by: instr.opcode });
            }
        }
    }

    /// Records that a base is dropped, in a local batch or before everything else.
    pub fn drop(&mut self, stage: Option<usize>, opcode: Opcode, base: &Base) {
        let view = View::contiguous(&[base.len]).unwrap_or_default();
        let part = if stage.is_some() { Part::Runs } else { Part::Drops };
        let place = Place { base: *base, view };
        self.note(&place, Use { stage: stage.unwrap_or(0), part, writes: true, view, by: opcode });
    }

    /// Records a message at the beginning of a stage.
    pub fn transfer(&mut self, stage: usize, transfer: &Transfer) {
        let Transfer { source, target, .. } = transfer;
        let by = Opcode::Copy;
        self.note(source, Use { stage, part: Part::Sends, writes: false, view: source.view, by });
        self.note(target, Use { stage, part: Part::Receives, writes: true, view: target.view, by });
    }

    /// Panics if this use runs before one that was planned earlier, and either changes a common element; or if the base
    /// is already dropped. Skips bases of other processes, large ones, and views that repeat elements very often.
    fn note(&mut self, place: &Place, new: Use) {
        if place.base.id == 0 || place.base.len.max(new.view.len()) > CHECKED {
            return;
        }
        let known = self.uses.entry(place.base.id).or_default();
        for old in known.iter() {
            let (before, after) = ((old.stage, old.part), (new.stage, new.part));
            // Ids of dropped bases are not reused, so all uses of a base must precede its drop.
            let wrong = match old.by {
                Opcode::Discard => before <= after,
                _ => before > after && (old.writes || new.writes) && meet(&old.view, &new.view),
            };
            assert!(!wrong, "base {} of a rank: {new} was planned after {old}", place.base.id);
        }
        known.push(new);
    }
}

/// Have two views an element in common?
fn meet(one: &View, other: &View) -> bool {
    let elements = |view: &View| offsets(view.start(), view.shape(), view.stride());
    let known: HashSet<i64> = elements(one).collect();
    elements(other).any(|element| known.contains(&element))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bh_bytecode::DType;

    fn place(first: i64, count: i64) -> Place {
        Place { base: Base::new(7, DType::F64, 100), view: View::new(first, &[count], &[1]).unwrap() }
    }

    fn copy(order: &mut Order, stage: usize, to: Place, from: Place) {
        let instr = Instr::new(Opcode::Copy, &[Default::default(); 2]);
        order.run(stage, &instr, &[Local::Data(to), Local::Data(from)]);
    }

    fn other(first: i64) -> Place {
        Place { base: Base::new(8, DType::F64, 100), ..place(first, 10) }
    }

    #[test]
    fn uses_that_change_nothing_for_each_other_may_come_in_any_order() {
        let mut order = Order::default();
        order.transfer(3, &Transfer { from: 1, to: 0, source: other(0), target: place(0, 10) });
        copy(&mut order, 2, other(50), place(10, 10));
        copy(&mut order, 3, other(60), place(0, 10));
        copy(&mut order, 1, other(70), place(10, 10));
    }

    #[test]
    #[should_panic(expected = "was planned after")]
    fn elements_are_not_copied_before_they_arrive() {
        let mut order = Order::default();
        order.transfer(3, &Transfer { from: 1, to: 0, source: other(0), target: place(0, 10) });
        copy(&mut order, 2, other(50), place(9, 10));
    }

    #[test]
    fn the_old_base_of_a_shard_may_be_read_until_it_is_dropped() {
        let mut order = Order::default();
        order.drop(Some(2), Opcode::Discard, &place(0, 10).base);
        order.transfer(2, &Transfer { from: 1, to: 0, source: place(0, 10), target: other(0) });
    }

    #[test]
    #[should_panic(expected = "was planned after")]
    fn dropped_bases_are_not_used_afterwards() {
        let mut order = Order::default();
        order.drop(Some(2), Opcode::Discard, &place(0, 10).base);
        copy(&mut order, 2, other(0), place(0, 10));
    }

    #[test]
    #[should_panic(expected = "was planned after")]
    fn bases_used_later_are_not_dropped_first() {
        let mut order = Order::default();
        copy(&mut order, 0, other(0), place(0, 10));
        order.drop(None, Opcode::Discard, &place(0, 10).base);
    }
}
