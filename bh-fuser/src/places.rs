//! Where the views of a base lie, so that accesses find those before them that they may touch without a look at all: rows
//! find rows of the same number, columns columns, and elements elements.
//!
//! In a grid of strides that divide each other a view is a range of each digit. Digits of which views have several values each,
//! but few, are cut into stretches. The nodes of a base are a tree over the two digits in which most views keep to one value, or
//! one stretch. A view belongs to the node of the digits in which it has one value, as far as
//! these come first: it can only touch views of the nodes above, of its own node, and of those below.

use crate::facts::{Facts, NONE};
use crate::relation::{Digits, Walk};
use bh_bytecode::BatchRef;
use bh_bytecode::batch::NO_BASE;
use bh_kernel::table::Table;

/// Levels of the trees below their roots.
pub const DEPTH: usize = 2;
/// Bases of fewer views have a root only.
const FEW: u32 = 6;
/// A view has no place in a digit if it goes through more than one in `PARTS` of the digit's values.
const PARTS: i64 = 16;
/// The most strides of a grid.
const STRIDES: usize = 6;

/// A node: the last cells of the chains of its own accesses and of those of the nodes below, its own among them.
pub struct Node {
    /// The node above.
    pub parent: u32,
    /// Has it no nodes below?
    pub is_leaf: bool,
    written: (u32, u32),
    read: (u32, u32),
}

impl Node {
    /// The chains of all accesses of its views and below, and of its own.
    pub fn chains(&mut self, writes: bool) -> (&mut u32, &mut u32) {
        let (below, here) = if writes { &mut self.written } else { &mut self.read };
        (below, here)
    }
}

/// The nodes of a batch.
#[derive(Default)]
pub struct Nodes {
    /// All of them.
    pub all: Vec<Node>,
    /// By view.
    of: Vec<u32>,
    children: Table,
    views: Vec<(u32, u32)>,
}

impl Nodes {
    /// The node of a view.
    pub fn of(&self, view: u32) -> u32 {
        self.of[view as usize]
    }

    /// Finds the nodes of all views of bases whose accesses have an order.
    pub fn gather(&mut self, batch: &BatchRef<'_>, facts: &Facts) {
        self.all.clear();
        self.of.clear();
        self.of.resize(batch.views.len(), NONE);
        self.views.clear();
        for (view, record) in batch.views.iter().enumerate() {
            if record.base != NO_BASE && facts.bases[record.base as usize].is_ordered() {
                self.views.push((record.base, view as u32));
            }
        }
        self.views.sort_unstable();
        self.children.reset(0);
        let views = std::mem::take(&mut self.views);
        for group in views.chunk_by(|a, b| a.0 == b.0) {
            let root = self.node(NONE);
            group.iter().for_each(|&(_, view)| self.of[view as usize] = root);
            // Uses of a base after it was dropped come after all uses before that, wherever those run.
            if group.len() as u32 >= FEW && !facts.bases[group[0].0 as usize].has_epochs() {
                self.grow(batch, root, group);
            }
        }
        self.views = views;
    }

    fn node(&mut self, parent: u32) -> u32 {
        if let Some(parent) = self.all.get_mut(parent as usize) {
            parent.is_leaf = false;
        }
        self.all.push(Node { parent, is_leaf: true, written: (NONE, NONE), read: (NONE, NONE) });
        self.all.len() as u32 - 1
    }

    /// Gives views of one base nodes below its root.
    fn grow(&mut self, batch: &BatchRef<'_>, root: u32, group: &[(u32, u32)]) {
        let Some(strides) = strides(batch, group) else { return };
        let ranges: Vec<Ranges> = group.iter().map(|&(_, view)| ranges(batch, view, &strides)).collect();
        let stretches: Vec<i64> = (0..strides.len()).map(|digit| stretch(&ranges, digit)).collect();
        let place = |ranges: &Ranges| -> [i64; STRIDES] {
            let value = |digit: usize| {
                let (&(first, last), &stretch) = (&ranges[digit], stretches.get(digit)?);
                let (first, last) = (first.div_euclid(stretch), last.div_euclid(stretch));
                (first == last).then_some(first)
            };
            std::array::from_fn(|digit| value(digit).unwrap_or(WIDE))
        };
        let ranges: Vec<[i64; STRIDES]> = ranges.iter().map(place).collect();
        // The digits with one value in most views come first.
        let mut order: Vec<(usize, usize)> = (0..strides.len())
            .map(|digit| (ranges.iter().filter(|values| values[digit] != WIDE).count(), digit))
            .collect();
        order.sort_by_key(|&(narrow, digit)| (std::cmp::Reverse(narrow), digit));
        for (&(_, view), values) in group.iter().zip(&ranges) {
            let mut at = root;
            for &(_, digit) in order.iter().take(DEPTH) {
                let value = values[digit];
                // Digits beyond 32 bits are of no use.
                let Ok(value) = u32::try_from(value) else { break };
                let known = self.children.get(at, value);
                at = if known == NONE {
                    let child = self.node(at);
                    self.children.set(at, value, child);
                    child
                } else {
                    known
                };
            }
            self.of[view as usize] = at;
        }
    }
}

/// A digit with several values.
const WIDE: i64 = -1;

/// The strides of some views, largest first, if they divide each other.
fn strides(batch: &BatchRef<'_>, group: &[(u32, u32)]) -> Option<Vec<i64>> {
    let mut strides = vec![1i64];
    for &(_, view) in group {
        for (&extent, &stride) in batch.shape(view).iter().zip(batch.stride(view)) {
            let stride = stride.abs();
            if extent > 1 && stride != 0 && !strides.contains(&stride) {
                if strides.len() == STRIDES {
                    return None;
                }
                strides.push(stride);
            }
        }
    }
    strides.sort_unstable_by(|a, b| b.cmp(a));
    strides.windows(2).all(|pair| pair[0] % pair[1] == 0).then_some(strides)
}

/// The first and the last value of each digit.
type Ranges = [(i64, i64); STRIDES];

/// A view of which nothing is known.
const ANYWHERE: Ranges = [(i64::MIN, i64::MAX); STRIDES];

fn ranges(batch: &BatchRef<'_>, view: u32, strides: &[i64]) -> Ranges {
    let mut ranges = ANYWHERE;
    let Some(digits) = Digits::of(batch, view) else { return ranges };
    let mut walk = Walk::new(&digits);
    for (range, &stride) in ranges.iter_mut().zip(strides) {
        match walk.digit(stride) {
            Some(found) => *range = found,
            // It crosses periods of the grid.
            None => return ANYWHERE,
        }
    }
    ranges
}

/// Into stretches of how many values a digit is cut: some times the most values that a view has, but for those that go through
/// much of all.
fn stretch(ranges: &[Ranges], digit: usize) -> i64 {
    let known = || ranges.iter().map(|ranges| ranges[digit]).filter(|&(first, _)| first != i64::MIN);
    let (low, high) = known().fold((i64::MAX, 0), |(low, high), (first, last)| (low.min(first), high.max(last)));
    let spans = known().map(|(first, last)| last - first + 1);
    let span = spans.filter(|span| *span <= (high - low + 1) / PARTS).max().unwrap_or(1).max(1);
    if span == 1 { 1 } else { (4 * span).min(i64::MAX / 2) }
}
