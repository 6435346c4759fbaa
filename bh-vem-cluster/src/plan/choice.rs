//! Which arrays of a program are cut on a grid of ranks, and on which: where the model says that less moves so than with rows, and
//! all that the program does with them can be done so.

use crate::plan::array::Array;
use crate::plan::layout::covers;
use crate::plan::mesh::{Axis, lie, weights_of};
use crate::plan::settings::{Grids, Settings};
use bh_bytecode::{Base, BatchRef, Instr, Kind, Opcode, View};
use std::collections::{HashMap, HashSet};

/// An array's extents, and the ranks along its axes.
pub type Cut = (Vec<i64>, Vec<usize>);

/// Fewer ranks work on rows, unless there are fewer rows than ranks.
const LEAST_RANKS: usize = 12;

/// As many axes are cut at most.
const MOST_AXES: usize = 3;

/// What a message costs beside its bytes.
const MESSAGE: f64 = 2048.0;

/// A grid is taken where it costs at most this part of what rows do.
const WORTH: f64 = 0.625;

/// What the program's arrays should be.
#[derive(Debug, Default)]
pub struct Choice {
    /// Those that are to be cut on a grid where the program makes or uses them, by number of base.
    pub cuts: HashMap<u32, Cut>,
    /// Those in rows for which it pays to go to a grid if the program goes on like this.
    pub regrid: Option<Regrid>,
}

/// Arrays in rows that would better be on a grid.
#[derive(Clone, Debug)]
pub struct Regrid {
    pub arrays: Vec<(u32, Cut)>,
    /// Bytes that a rank would send less in a batch like this.
    pub saved: f64,
    /// Bytes that it sends once for that.
    pub moved: f64,
}

/// What batches would have saved on grids.
#[derive(Debug, Default)]
pub(crate) struct Savings {
    /// By shape of batch, with the number of arrays that had left their grids when it was looked at.
    pub(crate) known: HashMap<u64, (u64, Option<Regrid>)>,
    /// Bytes so far, by the first array that would move.
    pub(crate) saved: HashMap<u64, f64>,
}

/// Looks at a program.
pub fn choose(arrays: &HashMap<u64, Array>, settings: &Settings, batch: &BatchRef<'_>, order: &[u32]) -> Choice {
    if !is_worth_looking(arrays, settings, batch) {
        return Choice::default();
    }
    let mut survey = Survey::new(arrays, settings, batch);
    order.iter().for_each(|&index| survey.note_passing(index));
    order.iter().for_each(|&index| survey.visit(index));
    match &settings.grid {
        Grids::Given(grid) => survey.all_on(grid),
        _ => survey.chosen(),
    }
}

/// May anything be cut on a grid?
fn is_worth_looking(arrays: &HashMap<u64, Array>, settings: &Settings, batch: &BatchRef<'_>) -> bool {
    let ranks = settings.weights.ranks();
    let on_mesh = |base: &Base| arrays.get(&base.id).is_some_and(|array| array.mesh.is_some());
    let few = |base: &Base| base.row_hint > 1 && base.len / base.row_hint < ranks as i64;
    match settings.grid {
        _ if ranks == 1 => false,
        Grids::Rows => false,
        Grids::Auto if ranks < LEAST_RANKS => batch.bases.iter().any(|base| few(base) || on_mesh(base)),
        _ => true,
    }
}

/// The extents that a view's strides tell of an array of `len` elements.
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

/// What moves for an array or an operation, as a function of the ranks along its axes.
#[derive(Debug)]
enum Traffic {
    /// Elements beside a rank's own along each axis.
    Border { shape: Vec<i64>, by: Vec<[i64; 2]>, size: f64 },
    /// What goes along some axes only, to all ranks that have a part of these: once for all arrays that meet.
    Spread { view: u32, shape: Vec<i64>, along: Vec<bool>, size: f64 },
    /// Results along some axes, folded along the others.
    Fold { shape: Vec<i64>, kept: Vec<bool>, size: f64 },
}

impl Traffic {
    /// What a rank sends: bytes, and bytes for messages.
    fn cost(&self, grid: &[usize]) -> f64 {
        let lines = |axis: usize| grid.get(axis).copied().unwrap_or(1) as f64;
        match self {
            Traffic::Border { shape, by, size } => {
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
            Traffic::Spread { shape, along, size, .. } => {
                let axes = || (0..shape.len()).filter(|&axis| along[axis]);
                let need: f64 = axes().map(|axis| shape[axis] as f64 / lines(axis)).product();
                let all: f64 = axes().map(|axis| shape[axis] as f64).product();
                let ranks: f64 = (0..shape.len()).map(lines).product();
                let to: f64 = (0..shape.len()).filter(|&axis| !along[axis]).map(lines).product();
                (need - all / ranks).max(0.0) * size + if to > 1.0 { to * MESSAGE } else { 0.0 }
            }
            Traffic::Fold { shape, kept, size } => {
                let results: f64 =
                    (0..shape.len()).filter(|&axis| kept[axis]).map(|axis| shape[axis] as f64 / lines(axis)).product();
                let line: f64 = (0..shape.len()).filter(|&axis| !kept[axis]).map(lines).product();
                // Few results go by a tree.
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
    /// Extents of arrays with several axes, by number of base.
    shapes: HashMap<u32, Vec<i64>>,
    /// Arrays that meet, as a forest.
    met: HashMap<u32, u32>,
    /// Arrays with which something is done that takes rows.
    bad: HashSet<u32>,
    /// Where an array's first element lies beside those of the others that it meets.
    offsets: HashMap<u32, Vec<i64>>,
    /// Elements beside a rank's own that were read since the array was last written.
    borders: HashMap<u32, Vec<[i64; 2]>>,
    traffic: Vec<(u32, Traffic)>,
    /// Arrays that the program makes, or overwrites before it reads them.
    made: HashSet<u32>,
    /// Arrays that end with the program.
    passing: HashSet<u32>,
    /// Those of them that are read beside their places: in rows, neighbours both compute what they need of them.
    chained: HashSet<u32>,
    /// How often elements beside a rank's own are read after the array was written.
    exchanged: HashMap<u32, usize>,
    /// Arrays that are written after such elements were read, as loops do that take steps in place.
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
            let known = array.and_then(|array| array.mesh.as_ref()).map(|mesh| mesh.shape.clone());
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
            met: HashMap::new(),
            bad: HashSet::new(),
            offsets: HashMap::new(),
            borders: HashMap::new(),
            traffic: Vec::new(),
            made: HashSet::new(),
            passing: HashSet::new(),
            chained: HashSet::new(),
            exchanged: HashMap::new(),
            stepped: HashSet::new(),
            seen: HashSet::new(),
        }
    }

    fn root(&self, mut base: u32) -> u32 {
        while let Some(&above) = self.met.get(&base) {
            base = above;
        }
        base
    }

    fn join(&mut self, one: u32, other: u32) {
        let (one, other) = (self.root(one), self.root(other));
        if one != other {
            // What is made joins what was there.
            self.met.insert(one, other);
        }
    }

    /// A view of an array with several axes, and how it lies in it.
    fn lies(&mut self, view: u32) -> Option<(u32, Vec<Axis>)> {
        let base = self.batch.views[view as usize].base;
        let shape = self.shapes.get(&base)?;
        let axes = lie(shape, &self.batch.view(view));
        if axes.is_none() {
            self.bad.insert(base);
        }
        Some((base, axes?))
    }

    fn note_passing(&mut self, index: u32) {
        let instr = &self.batch.instrs[index as usize];
        if instr.opcode == Opcode::Discard {
            let views = instr.operands().iter().filter_map(|operand| operand.as_view());
            self.passing.extend(views.map(|view| self.batch.views[view as usize].base));
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
                self.bad.extend(large);
            }
            (true, true) => self.fold(instr, &views),
            (true, false) => self.meet(&views),
        }
    }

    /// Notes what is overwritten as a whole before anything of it is read.
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

    /// Sums along some axes.
    fn fold(&mut self, instr: &Instr, views: &[u32]) {
        let target = self.batch.views[views[0] as usize].base;
        // Results with several axes would have to lie on another grid.
        if self.shapes.contains_key(&target) {
            let all: Vec<u32> = views.iter().map(|&view| self.batch.views[view as usize].base).collect();
            self.bad.extend(all);
        }
        let Some((base, axes)) = self.lies(views[1]) else { return };
        let kept = axes.iter().map(|axis| axis.dim.is_some_and(|dim| instr.param >> dim & 1 == 0)).collect();
        let shape = self.shapes[&base].clone();
        self.traffic.push((base, Traffic::Fold { shape, kept, size: self.size(base) }));
    }

    fn size(&self, base: u32) -> f64 {
        self.batch.bases[base as usize].dtype().size() as f64
    }

    /// Arrays of an operation that goes element by element.
    fn meet(&mut self, views: &[u32]) {
        let Some((target, to)) = self.lies(views[0]) else {
            // What reads arrays with several axes for one in rows reads all of them.
            let bases: Vec<u32> = views[1..].iter().map(|&view| self.batch.views[view as usize].base).collect();
            self.bad.extend(bases.into_iter().filter(|base| self.shapes.contains_key(base)));
            return;
        };
        let mut sources = Vec::new();
        for &view in &views[1..] {
            let Some(base) = self.batch.base_of(view) else { continue };
            let small = base.bytes() <= self.settings.small_bytes;
            match self.lies(view) {
                Some((base, from)) => sources.push((base, from)),
                None if !small => self.spread(target, &to, view),
                None => {}
            }
        }
        let start = |axes: &[Axis], offset: &[i64]| -> Vec<i64> {
            axes.iter().zip(offset).map(|(axis, offset)| axis.start + offset).collect()
        };
        for (base, from) in &sources {
            let same = from.len() == to.len() && from.iter().zip(&to).all(|(one, two)| one.dim == two.dim);
            if !same {
                self.bad.extend([*base, target]);
                continue;
            }
            self.join(target, *base);
            let none = vec![0; to.len()];
            let theirs = start(from, self.offsets.entry(*base).or_insert_with(|| none.clone()));
            // An array that is made lies where the first that it is made of does.
            let made = self.made.contains(&target) && !self.offsets.contains_key(&target);
            let first: Vec<i64> = theirs.iter().zip(&to).map(|(place, axis)| place - axis.start).collect();
            let mine = start(&to, self.offsets.entry(target).or_insert(if made { first } else { none.clone() }));
            let border = self.borders.entry(*base).or_insert_with(|| vec![[0, 0]; to.len()]);
            for (axis, by) in border.iter_mut().enumerate() {
                let moved = theirs[axis] - mine[axis];
                *by = [by[0].max(-moved), by[1].max(moved)];
            }
        }
        if self.written(target) {
            self.stepped.insert(target);
        }
    }

    /// An array is written: what ranks had of each other's is out of date. False if they had nothing.
    fn written(&mut self, base: u32) -> bool {
        if let (Some(by), Some(shape)) = (self.borders.remove(&base), self.shapes.get(&base).cloned())
            && by.iter().any(|by| *by != [0, 0])
        {
            *self.exchanged.entry(base).or_default() += 1;
            if self.passing.contains(&base) {
                self.chained.insert(base);
            }
            self.traffic.push((base, Traffic::Border { shape, by, size: self.size(base) }));
            return true;
        }
        false
    }

    /// An operand in rows, or a part of one, meets an array.
    fn spread(&mut self, target: u32, to: &[Axis], view: u32) {
        // What an array that stays is made of moves once.
        if !self.passing.contains(&target) {
            return;
        }
        let source = self.batch.view(view);
        let moves = |dim: usize| source.stride()[dim] != 0 && source.shape()[dim] > 1;
        let along = to.iter().map(|axis| axis.dim.is_some_and(moves)).collect();
        let (shape, base) = (self.shapes[&target].clone(), self.batch.views[view as usize].base);
        self.traffic.push((target, Traffic::Spread { view, shape, along, size: self.size(base) }));
    }

    /// All arrays on one grid, wherever they have as many axes.
    fn all_on(self, grid: &[usize]) -> Choice {
        let fits = self.shapes.into_iter().filter(|(_, shape)| shape.len() >= grid.len());
        Choice { cuts: fits.map(|(base, shape)| (base, (shape, grid.to_vec()))).collect(), regrid: None }
    }

    /// Arrays that meet are cut alike: on the grid on which some are, or on one that moves less than rows.
    fn chosen(mut self) -> Choice {
        let mut read: Vec<u32> = self.borders.keys().copied().collect();
        read.sort_unstable();
        for base in read {
            self.written(base);
        }
        let mut groups: HashMap<u32, Vec<u32>> = HashMap::new();
        for &base in self.shapes.keys() {
            groups.entry(self.root(base)).or_default().push(base);
        }
        let mut traffic: HashMap<u32, Vec<&Traffic>> = HashMap::new();
        let mut spread = HashSet::new();
        for (base, one) in &self.traffic {
            let root = self.root(*base);
            if !matches!(one, Traffic::Spread { view, .. } if !spread.insert((root, *view))) {
                traffic.entry(root).or_default().push(one);
            }
        }
        let mut choice = Choice::default();
        let mut roots: Vec<u32> = groups.keys().copied().collect();
        roots.sort_unstable();
        for root in roots {
            let mut group = groups.remove(&root).unwrap_or_default();
            group.sort_unstable();
            self.choose_for(&group, traffic.get(&root).map_or(&[], Vec::as_slice), &mut choice);
        }
        choice
    }

    /// Do ranks get rows of an array for several turns at once?
    fn goes_ahead(&self, base: u32) -> bool {
        let rows = self.shapes[&base][0] / self.settings.weights.ranks() as i64;
        self.exchanged.get(&base).is_some_and(|&times| times > 1) && rows * self.settings.ahead_percent >= 100
    }

    fn choose_for(&self, group: &[u32], traffic: &[&Traffic], choice: &mut Choice) {
        let axes = self.shapes[&group[0]].len();
        if group.iter().any(|base| self.bad.contains(base) || self.shapes[base].len() != axes) {
            return;
        }
        let mesh = |base: &u32| self.arrays.get(&self.batch.bases[*base as usize].id)?.mesh.as_ref();
        if let Some(mesh) = group.iter().find_map(mesh) {
            let grid: Vec<usize> = mesh.cuts.iter().map(|cuts| cuts.ranks()).collect();
            choice.cuts.extend(group.iter().map(|base| (*base, (self.shapes[base].clone(), grid.clone()))));
            return;
        }
        let cost = |grid: &[usize]| -> f64 { traffic.iter().map(|traffic| traffic.cost(grid)).sum() };
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
            // The program is likely to use what lives on by its rows, which then would have to move: not for what it costs to make
            // it, which is paid once, but for loops.
            let lasting = || group.iter().filter(|base| !self.passing.contains(base));
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

/// All grids of this many ranks along this many axes.
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
