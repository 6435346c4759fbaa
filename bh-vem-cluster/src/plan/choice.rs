//! Chooses the arrays of a program that are put on a grid of ranks, and the grid: if the model predicts fewer bytes
//! than with rows, and grids support all of the program's operations on them.

use crate::plan::array::Array;
use crate::plan::grid::layout::{Axis, axes_of, weights_of};
use crate::plan::layout::covers;
use crate::plan::settings::{Grids, Settings};
use bh_bytecode::{Base, BatchRef, Instr, Kind, Opcode, View};
use std::collections::{HashMap, HashSet};

/// An array's extents, and the ranks along its axes.
pub type Cut = (Vec<i64>, Vec<usize>);

/// Fewer ranks use rows, unless an array has fewer rows than there are ranks.
const LEAST_RANKS: usize = 12;

/// The most axes that a grid cuts.
const MOST_AXES: usize = 3;

/// The cost of a message in bytes, besides its contents.
const MESSAGE: f64 = 2048.0;

/// A grid must cost at most this fraction of rows.
const WORTH: f64 = 0.625;

/// The layouts for the program's arrays.
#[derive(Debug, Default)]
pub struct Choice {
    /// The arrays to put on a grid where the program creates or uses them, by number of base.
    pub cuts: HashMap<u32, Cut>,
    /// Arrays in rows to move to a grid if the program continues like this.
    pub regrid: Option<Regrid>,
}

/// Arrays in rows that would cost less on a grid.
#[derive(Clone, Debug)]
pub struct Regrid {
    pub arrays: Vec<(u32, Cut)>,
    /// Bytes that a rank saves in each such batch.
    pub saved: f64,
    /// Bytes that a rank sends once for the move.
    pub moved: f64,
}

/// Bytes that batches would have saved on grids.
#[derive(Debug, Default)]
pub(crate) struct Savings {
    /// By shape of batch, with the number of arrays that had left their grids at the time of the choice.
    pub(crate) known: HashMap<u64, (u64, Option<Regrid>)>,
    /// Bytes so far, by the first array to move.
    pub(crate) saved: HashMap<u64, f64>,
}

/// Chooses grids for a program.
pub fn choose(arrays: &HashMap<u64, Array>, settings: &Settings, batch: &BatchRef<'_>, order: &[u32]) -> Choice {
    if !is_worth_looking(arrays, settings, batch) {
        return Choice::default();
    }
    let mut survey = Survey::new(arrays, settings, batch);
    order.iter().for_each(|&index| survey.note_temporary(index));
    order.iter().for_each(|&index| survey.visit(index));
    match &settings.grid {
        Grids::Given(grid) => survey.all_on(grid),
        _ => survey.chosen(),
    }
}

/// Can any array of the program be put on a grid?
fn is_worth_looking(arrays: &HashMap<u64, Array>, settings: &Settings, batch: &BatchRef<'_>) -> bool {
    let ranks = settings.weights.ranks();
    let on_mesh = |base: &Base| arrays.get(&base.id).is_some_and(|array| array.layout.is_some());
    let few = |base: &Base| base.row_hint > 1 && base.len / base.row_hint < ranks as i64;
    match settings.grid {
        _ if ranks == 1 => false,
        Grids::Rows => false,
        Grids::Auto if ranks < LEAST_RANKS => batch.bases.iter().any(|base| few(base) || on_mesh(base)),
        _ => true,
    }
}

/// The shape of an array of `len` elements, derived from a view's strides.
fn shape_of(view: &View, len: i64) -> Option<Vec<i64>> {
    let dims = view.shape().iter().zip(view.stride()).filter(|(extent, stride)| **extent > 1 && **stride > 0);
    let mut pitches: Vec<i64> = dims.map(|(_, &stride)| stride).collect();
    pitches.sort_unstable_by(|one, other| other.cmp(one));
    let mut shape = Vec::new();
    let mut rest = len;
    for &pitch in &pitches {
        if pitch >= rest || rest % pitch != 0 {
            return None;
        }
        shape.push(rest / pitch);
        rest = pitch;
    }
    (rest == 1 && shape.len() > 1).then_some(shape)
}

/// The communication of an array or operation, as a function of the ranks along each axis.
#[derive(Debug)]
enum Communication {
    /// Halo elements along each axis.
    Halo { shape: Vec<i64>, by: Vec<[i64; 2]>, size: f64 },
    /// An operand that varies along some axes only, sent to all ranks with a part of these axes; sent once for all
    /// arrays of a group.
    Broadcast { view: u32, shape: Vec<i64>, along: Vec<bool>, size: f64 },
    /// Results along the kept axes, reduced along the others.
    Reduction { shape: Vec<i64>, kept: Vec<bool>, size: f64 },
}

impl Communication {
    /// The bytes that a rank sends, including the cost of messages.
    fn cost(&self, grid: &[usize]) -> f64 {
        let lines = |axis: usize| grid.get(axis).copied().unwrap_or(1) as f64;
        match self {
            Communication::Halo { shape, by, size } => {
                let own: f64 = (0..shape.len()).map(|axis| shape[axis] as f64 / lines(axis)).product();
                let one = |axis: usize| {
                    let sides = by[axis].iter().filter(|&&count| count > 0).count() as f64;
                    let count = (by[axis][0] + by[axis][1]) as f64;
                    if lines(axis) > 1.0 {
                        own / shape[axis] as f64 * lines(axis) * count * size + sides * MESSAGE
                    } else {
                        0.0
                    }
                };
                (0..shape.len()).map(one).sum()
            }
            Communication::Broadcast { shape, along, size, .. } => {
                let axes = || (0..shape.len()).filter(|&axis| along[axis]);
                let need: f64 = axes().map(|axis| shape[axis] as f64 / lines(axis)).product();
                let all: f64 = axes().map(|axis| shape[axis] as f64).product();
                let ranks: f64 = (0..shape.len()).map(lines).product();
                let to: f64 = (0..shape.len()).filter(|&axis| !along[axis]).map(lines).product();
                (need - all / ranks).max(0.0) * size + if to > 1.0 { to * MESSAGE } else { 0.0 }
            }
            Communication::Reduction { shape, kept, size } => {
                let results: f64 =
                    (0..shape.len()).filter(|&axis| kept[axis]).map(|axis| shape[axis] as f64 / lines(axis)).product();
                let line: f64 = (0..shape.len()).filter(|&axis| !kept[axis]).map(lines).product();
                // Single results are reduced along a tree.
                let messages = if results <= 1.0 { 1.0 } else { line - 1.0 };
                if line > 1.0 { results * (line - 1.0) / line * size + messages * MESSAGE } else { 0.0 }
            }
        }
    }
}

struct Survey<'a> {
    arrays: &'a HashMap<u64, Array>,
    settings: &'a Settings,
    batch: &'a BatchRef<'a>,
    /// Shapes of arrays with several axes, by number of base.
    shapes: HashMap<u32, Vec<i64>>,
    /// Groups of arrays that share a layout, as a union-find forest.
    merged: HashMap<u32, u32>,
    /// Arrays with an operation that needs rows.
    rows_only: HashSet<u32>,
    /// The offset of an array's first element relative to the other arrays of its group.
    offsets: HashMap<u32, Vec<i64>>,
    /// Halo elements read since the last write of the array.
    halos: HashMap<u32, Vec<[i64; 2]>>,
    communication: Vec<(u32, Communication)>,
    /// Arrays that the program creates, or overwrites before reading them.
    made: HashSet<u32>,
    /// Arrays that the program drops.
    temporary: HashSet<u32>,
    /// Temporaries with halos: in rows, neighbours would compute the halo redundantly.
    chained: HashSet<u32>,
    /// How often halos are read after a write of the array.
    exchanged: HashMap<u32, usize>,
    /// Arrays that are written after their halo was read, as by loops that advance them in place.
    stepped: HashSet<u32>,
    seen: HashSet<u32>,
}

impl<'a> Survey<'a> {
    fn new(arrays: &'a HashMap<u64, Array>, settings: &'a Settings, batch: &'a BatchRef<'a>) -> Survey<'a> {
        let mut shapes: HashMap<u32, Vec<i64>> = HashMap::new();
        for number in 0..batch.views.len() as u32 {
            let Some(base) = batch.base_of(number).filter(|base| base.bytes() > settings.small_bytes) else { continue };
            let array = arrays.get(&base.id);
            let is_line = base.row_hint == 1 || base.row_hint >= base.len;
            if is_line || array.is_some_and(|array| array.small || array.fixed) || batch.views[number as usize].len == 0
            {
                continue;
            }
            let place = batch.views[number as usize].base;
            let known = array.and_then(|array| array.layout.as_ref()).map(|layout| layout.shape.clone());
            if let Some(shape) = known.or_else(|| shape_of(&batch.view(number), base.len)) {
                let old = shapes.entry(place).or_insert_with(|| shape.clone());
                if old.len() < shape.len() {
                    *old = shape;
                }
            }
        }
        Survey {
            arrays,
            settings,
            batch,
            shapes,
            merged: HashMap::new(),
            rows_only: HashSet::new(),
            offsets: HashMap::new(),
            halos: HashMap::new(),
            communication: Vec::new(),
            made: HashSet::new(),
            temporary: HashSet::new(),
            chained: HashSet::new(),
            exchanged: HashMap::new(),
            stepped: HashSet::new(),
            seen: HashSet::new(),
        }
    }

    fn root(&self, mut base: u32) -> u32 {
        while let Some(&above) = self.merged.get(&base) {
            base = above;
        }
        base
    }

    fn join(&mut self, one: u32, other: u32) {
        let (one, other) = (self.root(one), self.root(other));
        if one != other {
            // A created array joins the group of an existing one.
            self.merged.insert(one, other);
        }
    }

    /// The base of a view with several axes, and the view's position along each axis.
    fn axes_of_view(&mut self, view: u32) -> Option<(u32, Vec<Axis>)> {
        let base = self.batch.views[view as usize].base;
        let shape = self.shapes.get(&base)?;
        let axes = axes_of(shape, &self.batch.view(view));
        if axes.is_none() {
            self.rows_only.insert(base);
        }
        Some((base, axes?))
    }

    fn note_temporary(&mut self, index: u32) {
        let instr = &self.batch.instrs[index as usize];
        if instr.opcode == Opcode::Discard {
            let views = instr.operands().iter().filter_map(|operand| operand.as_view());
            self.temporary.extend(views.map(|view| self.batch.views[view as usize].base));
        }
    }

    fn visit(&mut self, index: u32) {
        let (batch, instr) = (self.batch, &self.batch.instrs[index as usize]);
        if instr.opcode.is_system() {
            return;
        }
        let fold = instr.opcode.kind() == Kind::Reduction && instr.inputs().len() == 1;
        let suits = instr.outputs == 1 && (fold || matches!(instr.opcode.kind(), Kind::Elementwise | Kind::Generator));
        let views: Vec<u32> = instr.operands().iter().filter_map(|operand| operand.as_view()).collect();
        self.note_made(instr, &views);
        match (suits, fold) {
            (false, _) => {
                let bases = views.iter().map(|&view| batch.views[view as usize].base);
                let large: Vec<u32> = bases.filter(|base| self.shapes.contains_key(base)).collect();
                self.rows_only.extend(large);
            }
            (true, true) => self.fold(instr, &views),
            (true, false) => self.meet(&views),
        }
    }

    /// Records arrays that are overwritten as a whole before any read.
    fn note_made(&mut self, instr: &Instr, views: &[u32]) {
        let base = |view: u32| self.batch.views[view as usize].base;
        for (place, &view) in views.iter().enumerate().rev() {
            let writes = place < usize::from(instr.outputs);
            let whole = writes && covers(self.batch, view) && !instr.opcode.reads_output();
            let known = self.batch.base_of(view).is_some_and(|base| self.arrays.contains_key(&base.id));
            if self.seen.insert(base(view)) && (whole || !known) {
                self.made.insert(base(view));
            }
        }
    }

    /// Records a reduction along some axes.
    fn fold(&mut self, instr: &Instr, views: &[u32]) {
        let target = self.batch.views[views[0] as usize].base;
        // Results with several axes would need another grid.
        if self.shapes.contains_key(&target) {
            let all: Vec<u32> = views.iter().map(|&view| self.batch.views[view as usize].base).collect();
            self.rows_only.extend(all);
        }
        let Some((base, axes)) = self.axes_of_view(views[1]) else { return };
        let kept = axes.iter().map(|axis| axis.dim.is_some_and(|dim| instr.param >> dim & 1 == 0)).collect();
        let shape = self.shapes[&base].clone();
        self.communication.push((base, Communication::Reduction { shape, kept, size: self.size(base) }));
    }

    fn size(&self, base: u32) -> f64 {
        self.batch.bases[base as usize].dtype().size() as f64
    }

    /// Records an elementwise operation.
    fn meet(&mut self, views: &[u32]) {
        let Some((target, to)) = self.axes_of_view(views[0]) else {
            // An output in rows would read all of an input on a grid.
            let bases: Vec<u32> = views[1..].iter().map(|&view| self.batch.views[view as usize].base).collect();
            self.rows_only.extend(bases.into_iter().filter(|base| self.shapes.contains_key(base)));
            return;
        };
        let mut sources = Vec::new();
        for &view in &views[1..] {
            let Some(base) = self.batch.base_of(view) else { continue };
            let small = base.bytes() <= self.settings.small_bytes;
            match self.axes_of_view(view) {
                Some((base, from)) => sources.push((base, from)),
                None if !small => self.broadcast(target, &to, view),
                None => {}
            }
        }
        let start = |axes: &[Axis], offset: &[i64]| -> Vec<i64> {
            axes.iter().zip(offset).map(|(axis, offset)| axis.start + offset).collect()
        };
        for (base, from) in &sources {
            let same = from.len() == to.len() && from.iter().zip(&to).all(|(one, two)| one.dim == two.dim);
            if !same {
                self.rows_only.extend([*base, target]);
                continue;
            }
            self.join(target, *base);
            let none = vec![0; to.len()];
            let theirs = start(from, self.offsets.entry(*base).or_insert_with(|| none.clone()));
            // A created array takes the offset of its first operand.
            let made = self.made.contains(&target) && !self.offsets.contains_key(&target);
            let first: Vec<i64> = theirs.iter().zip(&to).map(|(place, axis)| place - axis.start).collect();
            let mine = start(&to, self.offsets.entry(target).or_insert(if made { first } else { none.clone() }));
            let halo = self.halos.entry(*base).or_insert_with(|| vec![[0, 0]; to.len()]);
            for (axis, by) in halo.iter_mut().enumerate() {
                let moved = theirs[axis] - mine[axis];
                *by = [by[0].max(-moved), by[1].max(moved)];
            }
        }
        if self.written(target) {
            self.stepped.insert(target);
        }
    }

    /// Records a write, which invalidates the halo. True if the halo was in use.
    fn written(&mut self, base: u32) -> bool {
        if let (Some(by), Some(shape)) = (self.halos.remove(&base), self.shapes.get(&base).cloned())
            && by.iter().any(|by| *by != [0, 0])
        {
            *self.exchanged.entry(base).or_default() += 1;
            if self.temporary.contains(&base) {
                self.chained.insert(base);
            }
            self.communication.push((base, Communication::Halo { shape, by, size: self.size(base) }));
            return true;
        }
        false
    }

    /// Records an operand in rows.
    fn broadcast(&mut self, target: u32, to: &[Axis], view: u32) {
        // The operands of a lasting array move once.
        if !self.temporary.contains(&target) {
            return;
        }
        let source = self.batch.view(view);
        let moves = |dim: usize| source.stride()[dim] != 0 && source.shape()[dim] > 1;
        let along = to.iter().map(|axis| axis.dim.is_some_and(moves)).collect();
        let (shape, base) = (self.shapes[&target].clone(), self.batch.views[view as usize].base);
        self.communication.push((target, Communication::Broadcast { view, shape, along, size: self.size(base) }));
    }

    /// Puts all arrays with enough axes on the given grid.
    fn all_on(self, grid: &[usize]) -> Choice {
        let fits = self.shapes.into_iter().filter(|(_, shape)| shape.len() >= grid.len());
        Choice { cuts: fits.map(|(base, shape)| (base, (shape, grid.to_vec()))).collect(), regrid: None }
    }

    /// Chooses one grid for each group: that of arrays already on one, or one that costs less than rows.
    fn chosen(mut self) -> Choice {
        let mut read: Vec<u32> = self.halos.keys().copied().collect();
        read.sort_unstable();
        for base in read {
            self.written(base);
        }
        let mut groups: HashMap<u32, Vec<u32>> = HashMap::new();
        for &base in self.shapes.keys() {
            groups.entry(self.root(base)).or_default().push(base);
        }
        let mut communication: HashMap<u32, Vec<&Communication>> = HashMap::new();
        let mut broadcast = HashSet::new();
        for (base, one) in &self.communication {
            let root = self.root(*base);
            if !matches!(one, Communication::Broadcast { view, .. } if !broadcast.insert((root, *view))) {
                communication.entry(root).or_default().push(one);
            }
        }
        let mut choice = Choice::default();
        let mut roots: Vec<u32> = groups.keys().copied().collect();
        roots.sort_unstable();
        for root in roots {
            let mut group = groups.remove(&root).unwrap_or_default();
            group.sort_unstable();
            self.choose_for(&group, communication.get(&root).map_or(&[], Vec::as_slice), &mut choice);
        }
        choice
    }

    /// Do ranks get this array's rows for several iterations at once?
    fn goes_ahead(&self, base: u32) -> bool {
        let rows = self.shapes[&base][0] / self.settings.weights.ranks() as i64;
        self.exchanged.get(&base).is_some_and(|&times| times > 1) && rows * self.settings.ahead_percent >= 100
    }

    fn choose_for(&self, group: &[u32], communication: &[&Communication], choice: &mut Choice) {
        let axes = self.shapes[&group[0]].len();
        if group.iter().any(|base| self.rows_only.contains(base) || self.shapes[base].len() != axes) {
            return;
        }
        let layout = |base: &u32| self.arrays.get(&self.batch.bases[*base as usize].id)?.layout.as_ref();
        if let Some(layout) = group.iter().find_map(layout) {
            let grid: Vec<usize> = layout.cuts.iter().map(|cuts| cuts.ranks()).collect();
            choice.cuts.extend(group.iter().map(|base| (*base, (self.shapes[base].clone(), grid.clone()))));
            return;
        }
        let cost = |grid: &[usize]| -> f64 { communication.iter().map(|communication| communication.cost(grid)).sum() };
        if group.iter().any(|base| self.chained.contains(base) || self.goes_ahead(*base)) {
            return;
        }
        let ranks = self.settings.weights.ranks();
        let rows = cost(&[ranks]);
        let few = group.iter().any(|base| self.shapes[base][0] < ranks as i64);
        if ranks < LEAST_RANKS && !few {
            return;
        }
        let fits = |grid: &Vec<usize>| {
            let lines =
                |base: &u32| grid.iter().zip(&self.shapes[base]).all(|(&lines, &extent)| lines as i64 <= extent);
            group.iter().all(lines) && weights_of(grid, &self.settings.weights).is_some()
        };
        let grids = grids(ranks, axes.min(MOST_AXES)).into_iter().filter(fits);
        let Some(best) = grids.min_by(|one, other| cost(one).total_cmp(&cost(other))) else { return };
        let saved = rows - cost(&best);
        if best[1..].iter().all(|&lines| lines == 1) || !few && cost(&best) >= WORTH * rows {
            return;
        }
        let cut = |base: &u32| (*base, (self.shapes[base].clone(), best.clone()));
        let moved: Vec<u32> = group.iter().copied().filter(|base| !self.made.contains(base)).collect();
        if moved.is_empty() {
            // Programs are likely to read lasting arrays by rows, and the array would have to move back. A loop pays
            // for that, a single creation does not.
            let lasting = || group.iter().filter(|base| !self.temporary.contains(base));
            let bytes: u64 = lasting().map(|base| self.batch.bases[*base as usize].bytes()).sum();
            if few || saved * ranks as f64 >= bytes as f64 || lasting().any(|base| self.stepped.contains(base)) {
                choice.cuts.extend(group.iter().map(cut));
            }
        } else if saved > 0.0 && choice.regrid.is_none() {
            let bytes: u64 = moved.iter().map(|base| self.batch.bases[*base as usize].bytes()).sum();
            let arrays = moved.iter().map(cut).collect();
            choice.regrid = Some(Regrid { arrays, saved, moved: bytes as f64 / ranks as f64 });
        }
    }
}

/// All grids of this many ranks with this many axes.
fn grids(ranks: usize, axes: usize) -> Vec<Vec<usize>> {
    if axes == 1 {
        return vec![vec![ranks]];
    }
    let lines = (1..=ranks).filter(|lines| ranks.is_multiple_of(*lines));
    lines
        .flat_map(|lines| grids(ranks / lines, axes - 1).into_iter().map(move |rest| [&[lines], &rest[..]].concat()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_tell_the_shape() {
        let grid = View::contiguous(&[6, 4, 5]).unwrap();
        assert_eq!(shape_of(&grid, 120), Some(vec![6, 4, 5]));
        let inner = grid.slice(0, Some(1), Some(3), 1).unwrap().slice(2, Some(1), Some(4), 1).unwrap();
        assert_eq!(shape_of(&inner, 120), Some(vec![6, 4, 5]));
        assert_eq!(shape_of(&View::contiguous(&[120]).unwrap(), 120), None);
        assert_eq!(shape_of(&View::new(0, &[3, 4], &[7, 1]).unwrap(), 120), None);
    }

    #[test]
    fn grids_have_all_ranks() {
        assert_eq!(grids(6, 2), [vec![1, 6], vec![2, 3], vec![3, 2], vec![6, 1]]);
        assert!(grids(64, 3).contains(&vec![4, 4, 4]));
    }
}
