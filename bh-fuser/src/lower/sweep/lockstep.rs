//! Nests of a sweep that run as one: where a strip has several nests do the same columns, one loop over these does the work
//! of all, each at its own row. What one of them writes and another one needs at the same column stays in registers, rows
//! that several read are read once, and what waits for the divider hides what waits for the caches.
//!
//! Nothing is computed at other rows than before, so that borders need no thought: at strips in which one of the nests has
//! not begun yet, or has ended, and between chunks, all of them run one by one.

use super::SweepNest;
use super::chain::{Access, Chain, Nest};
use super::union::{Kind, Part, Union, United};
use crate::lower::{Dim, Parameters, Stage};
use std::borrow::Cow;

/// Arrays of a loop: more positions would not find registers, nor the processor's prefetchers streams.
const SLOTS: usize = 40;
/// Steps of a loop.
const STEPS: usize = 160;

/// What a strip does at once.
#[derive(Clone, Debug)]
pub struct Turn {
    /// The nests, in order.
    pub nests: Vec<u32>,
    /// One nest that does what they do; none if there is one only.
    pub joined: Option<Joined>,
}

/// Nests of a turn as one.
#[derive(Clone, Debug)]
pub struct Joined {
    /// The nest: its positions are those of the first one, and where it is at position `p`, each other one is at position
    /// `p - late + first.late`. Its positions must run in order, one row after the other.
    pub nest: SweepNest,
    /// For each slot the number of the nest, and the slot there that it comes from.
    pub origins: Vec<(u32, u32)>,
}

/// Nests that may become one.
struct Draft {
    nests: Vec<usize>,
    united: Option<United>,
}

/// The turns of a chain's strips, which have so many times.
pub(super) fn turns(chain: &Chain<'_>, strip: i64) -> Vec<Turn> {
    let touches: Vec<Vec<Touch>> = (0..chain.nests.len()).map(|nest| touches(chain, nest)).collect();
    let apart = |a: usize, b: usize| !touches[a].iter().any(|one| touches[b].iter().any(|two| one.meets(two, strip)));
    let mut drafts: Vec<Draft> = Vec::new();
    for nest in 0..chain.nests.len() {
        let all_apart = |one: &[usize], others: &[Draft]| {
            one.iter().all(|&one| others.iter().flat_map(|draft| &draft.nests).all(|&other| apart(one, other)))
        };
        let found = (0..drafts.len()).rev().find_map(|at| {
            let early = all_apart(&[nest], &drafts[at + 1..]);
            if !early && !all_apart(&drafts[at].nests, &drafts[at + 1..]) {
                return None;
            }
            Some((at, early, unite(chain, &touches, &drafts[at], nest)?))
        });
        match found {
            Some((at, early, united)) => {
                let mut draft = drafts.remove(at);
                draft.nests.push(nest);
                draft.united = Some(united);
                drafts.insert(if early { at } else { drafts.len() }, draft);
            }
            None => drafts.push(Draft { nests: vec![nest], united: None }),
        }
    }
    drafts.into_iter().map(|draft| finish(chain, &touches, draft)).collect()
}

/// An access of a nest, with rows seen from the front of the sweep.
struct Touch {
    array: u32,
    slot: usize,
    first: i64,
    last: i64,
    write: bool,
}

fn touches(chain: &Chain<'_>, nest: usize) -> Vec<Touch> {
    let late = chain.nests[nest].late;
    let touch = |array: usize, access: &Access| {
        let (first, last) = (access.rows.first - late, access.rows.last - late);
        Touch { array: array as u32, slot: access.slot as usize, first, last, write: access.write }
    };
    let own = |access: &&Access| access.nest as usize == nest;
    let arrays = chain.arrays.iter().enumerate();
    arrays.flat_map(|(at, array)| array.accesses.iter().filter(own).map(move |access| touch(at, access))).collect()
}

impl Touch {
    /// May they touch the same rows in a strip of so many times, so that their order matters?
    fn meets(&self, other: &Touch, strip: i64) -> bool {
        self.array == other.array
            && (self.write || other.write)
            && self.first < other.last + strip
            && other.first < self.last + strip
    }
}

/// A nest with a row of the arrays for each iteration of its outermost loop, if it can be had so: where rows follow each other
/// without a gap, kernels have one loop over all of them.
fn by_rows(nest: &Nest) -> Option<Cow<'_, Stage>> {
    let Nest { stage, steps, .. } = nest;
    let Parameters { extents, .. } = &stage.parameters;
    if steps.phase != 0 || extents[0] % steps.per != 0 {
        return None;
    }
    if steps.per == 1 {
        return Some(Cow::Borrowed(stage));
    }
    let mut stage = stage.clone();
    let rank = stage.parameters.extents.len();
    let split = |strides: &[i64]| [&[strides[0] * steps.per], strides].concat();
    stage.parameters.strides = stage.parameters.strides.chunks(rank).flat_map(split).collect();
    stage.parameters.extents.splice(..1, [steps.positions, steps.per]);
    stage.kernel.dims.insert(0, Dim::Kept);
    Some(Cow::Owned(stage))
}

/// The nest that does what some nests and a further one do, if they can be one.
fn unite(chain: &Chain<'_>, touches: &[Vec<Touch>], draft: &Draft, nest: usize) -> Option<United> {
    let nests = || draft.nests.iter().copied().chain([nest]);
    let stages: Vec<Cow<'_, Stage>> = nests().map(|nest| by_rows(&chain.nests[nest])).collect::<Option<_>>()?;
    let parts: Vec<Part<'_>> =
        nests().zip(&stages).map(|(nest, stage)| Part { stage, arrays: &chain.nests[nest].arrays }).collect();
    let (late, extents) = (|nest: usize| chain.nests[nest].late, &stages[0].parameters.extents);
    let last = stages.last()?;
    let fits = late(nest) >= late(draft.nests[0])
        && parts.iter().all(|part| part.is_plain())
        && extents.len() > 1
        && extents[1..] == last.parameters.extents[1..];
    if !fits {
        return None;
    }
    let agrees = |(&other, stage): (&usize, &Cow<'_, Stage>)| {
        let pairs = touches[other].iter().flat_map(|one| touches[nest].iter().map(move |two| (one, two)));
        pairs.filter(|(one, two)| one.meets(two, 1)).all(|(one, two)| {
            // What one makes, the other needs, or makes anew: if that is the same element, no other iteration sees it.
            let place = |stage: &Stage, late: i64, touch: &Touch| {
                let strides = stage.parameters.stride(touch.slot);
                (stage.parameters.starts[touch.slot] - late * strides[0], strides.to_vec())
            };
            place(stage, late(other), one) == place(last, late(nest), two)
        })
    };
    if !draft.nests.iter().zip(&stages).all(agrees) {
        return None;
    }
    let mut union = Union::new(chain, Kind::LockStep, extents.clone());
    for (nest, part) in nests().zip(parts) {
        let mut before = vec![0; extents.len()];
        before[0] = late(draft.nests[0]) - late(nest);
        union.add(part, &before)?;
    }
    let united = union.finish();
    let kernel = &united.stage.kernel;
    let pays = united.spared > draft.united.as_ref().map_or(0, |known| known.spared);
    (pays && kernel.slots.len() <= SLOTS && kernel.steps.len() <= STEPS).then_some(united)
}

fn finish(chain: &Chain<'_>, touches: &[Vec<Touch>], draft: Draft) -> Turn {
    let nests: Vec<u32> = draft.nests.iter().map(|&nest| nest as u32).collect();
    let joined = draft.united.map(|united| {
        let first = &chain.nests[draft.nests[0]];
        let row = |&(part, slot): &(u32, u32)| {
            let nest = draft.nests[part as usize];
            let touch = touches[nest].iter().find(|touch| touch.slot == slot as usize);
            touch.map_or(0, |touch| touch.first + first.late)
        };
        let nest = SweepNest {
            block: first.block,
            positions: first.steps.positions,
            per: 1,
            phase: 0,
            late: first.late,
            early: first.early,
            writes: Vec::new(),
            rows: united.origins.iter().map(row).collect(),
            stage: united.stage,
            arrays: united.arrays,
        };
        let origins = united.origins.iter().map(|&(part, slot)| (nests[part as usize], slot)).collect();
        Joined { nest, origins }
    });
    Turn { nests, joined }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{TWO_STEP, plan};
    use super::super::{Sweep, SweepArray};
    use super::{Joined, Turn};
    use crate::lower::Step;

    fn sweep(text: &str) -> Sweep {
        let mut found = plan(text, 20_000);
        assert_eq!(found.found.len(), 1, "{:?}", found.apart);
        found.found.remove(0)
    }

    fn nests(sweep: &Sweep) -> Vec<&[u32]> {
        sweep.turns.iter().map(|turn| turn.nests.as_slice()).collect()
    }

    /// Base and row of each slot that a joined nest reads.
    fn reads<'a>(sweep: &'a Sweep, joined: &'a Joined) -> Vec<(u32, i64)> {
        let slot = |step: &Step| match *step {
            Step::Load { slot } => Some(usize::from(slot)),
            _ => None,
        };
        let array = |slot: usize| -> &SweepArray { &sweep.arrays[joined.nest.arrays[slot] as usize] };
        let read = |slot: usize| (array(slot).base, joined.nest.rows[slot]);
        let mut reads: Vec<_> = joined.nest.stage.kernel.steps.iter().filter_map(slot).map(read).collect();
        reads.sort_unstable();
        reads
    }

    #[test]
    fn nests_of_the_same_columns_are_one() {
        let sweep = sweep(TWO_STEP);
        // The faces between columns go first: the full step needs them at two columns.
        assert_eq!(nests(&sweep), [&[1][..], &[0, 2, 3, 4]]);
        let Turn { joined: Some(joined), .. } = &sweep.turns[1] else { panic!("{:?}", sweep.turns) };
        // Of the faces between rows those of this row are at hand; the difference never leaves its registers before it is
        // complete; and the row of the grid that the full step changes is what the first nest reads above.
        assert_eq!(reads(&sweep, joined), [(0, 0), (0, 1), (1, -1), (2, -1)]);
        let stores = joined.nest.stage.kernel.steps.iter().filter(|step| matches!(step, Step::Store { .. }));
        assert_eq!(stores.count(), 3);
        assert_eq!((joined.nest.late, joined.nest.positions), (sweep.nests[0].late, 99));
    }

    #[test]
    fn other_columns_at_the_same_time_keep_nests_apart() {
        // The third nest needs the faces of its row at another column, too.
        let shifted = TWO_STEP.replace("view v7 = b1 at 98 [98:98, 98:1]", "view v7 = b1 at 97 [98:98, 98:1]");
        assert_eq!(nests(&sweep(&shifted)), [&[0][..], &[1], &[2, 3, 4]]);
    }
}
