//! Nests of a window that run as one: if several nests of a strip compute the same columns, one loop over the columns computes
//! all of them, each at its own row. Values that one nest passes to another at the same column stay in registers, rows
//! that several nests read are read once, and waiting for the divider hides waiting for the caches.
//!
//! Nests compute the same rows as before: in strips in which one of them has not begun or has ended, and between chunks, they run
//! one by one.

use super::chain::{Access, Chain, Nest};
use super::finish::Homes;
use super::union::{Part, Union, United};
use crate::effort::Effort;
use crate::tiling::{Steps, TileNest, Turn};
use crate::{Dim, Parameters, Stage};
use std::borrow::Cow;
use std::cell::RefCell;

/// Arrays of a loop: more positions would not find registers, nor the processor's prefetchers streams.
const SLOTS: usize = 40;
/// How many loops before it a nest may join.
const BACK: usize = 32;
/// Steps of a loop.
const STEPS: usize = 160;

/// Nests that may become one.
struct Draft {
    nests: Vec<usize>,
    united: Option<United>,
}

/// The turns of a chain's strips of `strip` times.
pub(super) fn turns(chain: &Chain<'_>, homes: &Homes, strip: i64) -> Vec<Turn> {
    let meetings = Meetings::new(chain, strip);
    let mut drafts: Vec<Draft> = Vec::new();
    for nest in 0..chain.nests.len() {
        let all_apart = |one: &[usize], others: &[Draft]| {
            let mut others = others.iter().flat_map(|draft| &draft.nests);
            others.all(|&other| one.iter().all(|&one| meetings.apart(one, other)))
        };
        // Is the nest apart from those that come after?
        let mut early = true;
        let mut found = None;
        for at in (0..drafts.len()).rev().take(BACK) {
            if (early || all_apart(&drafts[at].nests, &drafts[at + 1..]))
                && let Some(united) = unite(chain, &meetings.touches, &drafts[at], nest)
            {
                found = Some((at, early, united));
                break;
            }
            early = early && all_apart(&[nest], &drafts[at..=at]);
            if chain.effort.spent() {
                break;
            }
        }
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
    drafts.into_iter().map(|draft| finish(chain, homes, &meetings.touches, draft)).collect()
}

/// Which nests may touch the same rows in a strip, so that their order matters.
struct Meetings<'a> {
    /// The accesses of each nest, by array.
    touches: Vec<Vec<Touch>>,
    strip: i64,
    /// The answer for each pair of nests, once it is computed.
    known: RefCell<Vec<Option<bool>>>,
    effort: &'a Effort,
}

impl<'a> Meetings<'a> {
    fn new(chain: &Chain<'a>, strip: i64) -> Meetings<'a> {
        let nests = chain.nests.len();
        let known = RefCell::new(vec![None; nests * nests]);
        Meetings { touches: touches(chain), strip, known, effort: chain.effort }
    }

    /// Do two nests never meet?
    fn apart(&self, one: usize, two: usize) -> bool {
        let at = one.min(two) * self.touches.len() + one.max(two);
        *self.known.borrow_mut()[at].get_or_insert_with(|| {
            let mut met = common(&self.touches[one], &self.touches[two]).inspect(|_| self.effort.look(1));
            !met.any(|(one, two)| one.meets(two, self.strip))
        })
    }
}

/// The pairs of accesses to one array.
fn common<'a>(ones: &'a [Touch], twos: &'a [Touch]) -> impl Iterator<Item = (&'a Touch, &'a Touch)> {
    ones.iter().flat_map(move |one| {
        let first = twos.partition_point(|two| two.array < one.array);
        twos[first..].iter().take_while(|two| two.array == one.array).map(move |two| (one, two))
    })
}

/// An access of a nest, with rows seen from the front of the window.
struct Touch {
    array: u32,
    slot: usize,
    first: i64,
    last: i64,
    write: bool,
}

/// The accesses of each nest.
fn touches(chain: &Chain<'_>) -> Vec<Vec<Touch>> {
    let mut touches: Vec<Vec<Touch>> = chain.nests.iter().map(|_| Vec::new()).collect();
    for (number, array) in (0..).zip(chain.arrays.iter()) {
        for &Access { nest, slot, rows, write } in &array.accesses {
            let late = chain.nests[nest as usize].late;
            let (first, last) = (rows.first - late, rows.last - late);
            touches[nest as usize].push(Touch { array: number, slot: slot as usize, first, last, write });
        }
    }
    touches
}

impl Touch {
    /// May they touch the same rows in a strip of `strip` times, so that their order matters?
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

/// The fused nest of a draft's nests and a further one, if they can be one.
fn unite(chain: &Chain<'_>, touches: &[Vec<Touch>], draft: &Draft, nest: usize) -> Option<United> {
    let nests = || draft.nests.iter().copied().chain([nest]);
    let stages: Vec<Cow<'_, Stage>> = nests().map(|nest| by_rows(&chain.nests[nest])).collect::<Option<_>>()?;
    let parts: Vec<Part<'_>> =
        nests().zip(&stages).map(|(nest, stage)| Part { stage, arrays: &chain.nests[nest].arrays }).collect();
    let (late, extents) = (|nest: usize| chain.nests[nest].late, &stages[0].parameters.extents);
    let last = stages.last()?;
    let fits = parts.iter().all(|part| part.stage.kernel.steps.len() <= 2 * STEPS)
        && late(nest) >= late(draft.nests[0])
        && parts.iter().all(|part| part.is_plain())
        && extents.len() > 1
        && extents[1..] == last.parameters.extents[1..];
    if !fits {
        return None;
    }
    let agrees = |(&other, stage): (&usize, &Cow<'_, Stage>)| {
        let pairs = common(&touches[other], &touches[nest]).inspect(|_| chain.effort.look(1));
        pairs.filter(|(one, two)| one.meets(two, 1)).all(|(one, two)| {
            // One writes an element that the other reads or writes: at the same iteration, no other iteration sees it.
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
    let mut union = Union::new(extents.clone());
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

fn finish(chain: &Chain<'_>, homes: &Homes, touches: &[Vec<Touch>], draft: Draft) -> Turn {
    let nests: Vec<u32> = draft.nests.iter().map(|&nest| nest as u32).collect();
    let joined = draft.united.map(|united| {
        let first = &chain.nests[draft.nests[0]];
        let place = |&(part, slot): &(u32, u32)| {
            let nest = draft.nests[part as usize];
            let touch = touches[nest].iter().find(|touch| touch.slot == slot as usize);
            [touch.map_or(0, |touch| touch.first + first.late), 0, 0]
        };
        TileNest {
            block: first.block,
            steps: Steps::single(first.steps.positions),
            late: first.late,
            reach: first.reach(),
            places: united.origins.iter().map(place).collect(),
            stage: united.stage,
            slots: homes.slots(&united.arrays),
        }
    });
    Turn { nests, joined }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{TWO_STEP, plan};
    use crate::tiling::{TileNest, Tiling, Turn};
    use crate::{BufferRef, Step};

    fn window(text: &str) -> Tiling {
        let mut found = plan(text, 20_000);
        assert_eq!(found.found.len(), 1, "{:?}", found.apart);
        found.found.remove(0)
    }

    fn nests(window: &Tiling) -> Vec<&[u32]> {
        window.turns.iter().map(|turn| turn.nests.as_slice()).collect()
    }

    /// Base and row of each slot that a joined nest reads.
    fn reads(joined: &TileNest) -> Vec<(u32, i64)> {
        let read = |step: &Step| match *step {
            Step::Load { slot } => match joined.stage.parameters.buffers[usize::from(slot)] {
                BufferRef::Base(base) => Some((base, joined.places[usize::from(slot)][0])),
                _ => None,
            },
            _ => None,
        };
        let mut reads: Vec<_> = joined.stage.kernel.steps.iter().filter_map(read).collect();
        reads.sort_unstable();
        reads
    }

    #[test]
    fn nests_of_the_same_columns_are_one() {
        let window = window(TWO_STEP);
        // The faces between columns go first: the full step needs them at two columns.
        assert_eq!(nests(&window), [&[1][..], &[0, 2, 3, 4]]);
        let Turn { joined: Some(joined), .. } = &window.turns[1] else { panic!("{:?}", window.turns) };
        // The faces between rows are computed for this row; the difference stays in registers until it is complete; and the
        // full step changes the row of the grid that the first nest reads above.
        assert_eq!(reads(joined), [(0, 0), (0, 1), (1, -1), (2, -1)]);
        let stores = joined.stage.kernel.steps.iter().filter(|step| matches!(step, Step::Store { .. }));
        assert_eq!(stores.count(), 3);
        assert_eq!((joined.late, joined.steps.positions), (window.nests[0].late, 99));
    }

    #[test]
    fn other_columns_at_the_same_time_keep_nests_apart() {
        // The third nest needs the faces of its row at another column, too.
        let shifted = TWO_STEP.replace("view v7 = b1 at 98 [98:98, 98:1]", "view v7 = b1 at 97 [98:98, 98:1]");
        assert_eq!(nests(&window(&shifted)), [&[0][..], &[1], &[2, 3, 4]]);
    }
}
