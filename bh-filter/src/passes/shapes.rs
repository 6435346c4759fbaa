//! Elementwise operations that pass their elements on in another shape get a common one, whose axes are factors of theirs, so that they can share
//! a kernel: those on `x.reshape(-1)` of a computed matrix, or on arrays of `repeat` and `tile`, which copy a view with repeated elements and
//! give the copy another shape. Readers of such copies read the source.
//!
//! *Proof.* An axis of extent a·b and stride s that is cut into axes of extents a and b and strides b·s and s leads to the same offsets in the
//! same order. An elementwise operation computes each element from those at the same index. So all values stay, and so do the bases that are
//! read and written. A reader of a copy without conversion reads the source's elements instead, if nothing writes to its base since and the
//! batch does not free it; discarding the source is put off until after its last reader. The results are lost by the same causes ([`Losses`]).
//!
//! Shapes that folds, generators or gathers of the batch have, too, stay, as they share kernels with operations of equal shape; so do those of
//! operations on parts of arrays, such as stencils, which engines recognise by their axes. Only temporaries that one elementwise operation
//! writes, in C order, and only elementwise operations read, link two shapes: no other kernel needs them in memory.

use super::tables::Views;
use crate::analysis::{Uses, base_of, output_type};
use crate::losses::Losses;
use bh_bytecode::view::MAX_RANK;
use bh_bytecode::{Batch, Instr, Kind, Opcode, Operand, View, base_flags, steps};
use std::collections::{HashMap, HashSet};

/// How often links are followed: a chain of shapes agrees after as many rounds as it has links against the order of the program.
const ROUNDS: usize = 4;

/// An operand of an elementwise operation that has the elements of another one's result in another shape.
struct Link {
    writer: u32,
    reader: u32,
    place: usize,
    /// The axes of the reader's view along which elements are repeated.
    repeated: Vec<bool>,
}

/// Runs the pass. Returns how many instructions changed.
pub fn run(batch: &mut Batch) -> usize {
    if !may_have_links(batch) {
        return 0;
    }
    let uses = Uses::of(batch);
    let links = links(batch, &uses);
    if links.is_empty() {
        return 0;
    }
    let cuts = Cuts::of(batch, &uses, &links);
    // Which bases are written, read and dropped where stays when shapes are cut.
    cuts.apply(batch) + forward(batch, &uses, &links)
}

fn is_elementwise(instr: &Instr) -> bool {
    instr.opcode.kind() == Kind::Elementwise && instr.outputs().len() == 1 && !instr.opcode.reads_output()
}

/// Is it a copy of an array without conversion?
fn moves(batch: &Batch, instr: &Instr) -> bool {
    let source = instr.operands[1];
    instr.opcode == Opcode::Copy
        && source.as_view().is_some()
        && batch.as_ref().dtype(source) == output_type(batch, instr)
}

/// The links of a batch, in its order.
fn links(batch: &Batch, uses: &Uses) -> Vec<Link> {
    let flags = base_flags::BORN | base_flags::DIES;
    let mut links = Vec::new();
    for (index, _) in batch.bases.iter().enumerate().filter(|(_, base)| base.flags & flags == flags) {
        let &[writer] = uses.writers(index as u32) else { continue };
        links.extend(links_of(batch, writer, uses.readers(index as u32)).into_iter().flatten());
        steps::add(1);
    }
    links.sort_by_key(|link| link.reader);
    links
}

/// Does an elementwise operation read a base in another shape than that in which one wrote it?
fn may_have_links(batch: &Batch) -> bool {
    let mut written = vec![None; batch.bases.len()];
    batch.instrs.iter().filter(|instr| is_elementwise(instr)).any(|instr| {
        let shape = |operand: Operand| operand.as_view().map(|view| batch.as_ref().shape(view));
        let other = |&operand: &Operand| {
            let base = base_of(batch, operand);
            base.and_then(|base| written[base as usize]).is_some_and(|written| Some(written) != shape(operand))
        };
        let found = instr.inputs().iter().any(other);
        if let (Some(base), Some(shape)) = (base_of(batch, instr.operands[0]), shape(instr.operands[0])) {
            written[base as usize] = Some(shape);
        }
        found
    })
}

/// The links that a temporary makes; `None` if something else uses it.
fn links_of(batch: &Batch, writer: u32, readers: &[u32]) -> Option<Vec<Link>> {
    let instr = batch.instrs[writer as usize];
    let output = instr.operands[0];
    let (whole, base) = (batch.as_ref().view(output.as_view()?), base_of(batch, output)?);
    if !is_elementwise(&instr) || !whole.is_contiguous() || whole.is_empty() {
        return None;
    }
    let mut links = Vec::new();
    let mut readers = readers.to_vec();
    readers.dedup();
    for reader in readers {
        let reading = batch.instrs[reader as usize];
        if reader <= writer || !is_elementwise(&reading) {
            return None;
        }
        for place in 1..reading.count as usize {
            let operand = reading.operands[place];
            if operand == output || base_of(batch, operand) != Some(base) {
                continue;
            }
            let repeated = same_elements(&whole, &batch.as_ref().view(operand.as_view()?))?;
            if repeated.contains(&true) && !moves(batch, &instr) {
                return None;
            }
            links.push(Link { writer, reader, place, repeated });
        }
    }
    Some(links)
}

/// The axes along which `view` repeats elements, if it has those of a contiguous view in their order otherwise.
fn same_elements(whole: &View, view: &View) -> Option<Vec<bool>> {
    let repeated: Vec<bool> =
        view.shape().iter().zip(view.stride()).map(|(extent, stride)| *extent > 1 && *stride == 0).collect();
    let axes = || view.shape().iter().zip(view.stride()).zip(&repeated).filter(|(_, repeated)| !**repeated);
    let (shape, stride): (Vec<i64>, Vec<i64>) = axes().map(|((extent, stride), _)| (*extent, *stride)).unzip();
    let once = View::new(view.start(), &shape, &stride).ok()?;
    (once.start() == whole.start() && once.len() == whole.len() && once.is_contiguous()).then_some(repeated)
}

/// The factors of each axis of each shape.
type Factors = Vec<Vec<i64>>;

/// How shapes are cut.
struct Cuts(HashMap<Vec<i64>, Factors>);

impl Cuts {
    /// Cuts the shapes of links until both ends have the same axes, where that is possible.
    fn of(batch: &Batch, uses: &Uses, links: &[Link]) -> Cuts {
        let fixed = fixed_shapes(batch, uses);
        let mut cuts = Cuts(HashMap::new());
        for _ in 0..ROUNDS {
            let mut changed = false;
            for link in links {
                changed |= cuts.agree(batch, link, &fixed).unwrap_or(false);
            }
            if !changed {
                break;
            }
        }
        cuts
    }

    fn factors(&self, shape: &[i64]) -> Factors {
        self.0.get(shape).cloned().unwrap_or_else(|| shape.iter().map(|&extent| vec![extent]).collect())
    }

    /// Cuts the shapes at the ends of a link alike. Returns if something changed; `None` if they cannot be.
    fn agree(&mut self, batch: &Batch, link: &Link, fixed: &HashSet<Vec<i64>>) -> Option<bool> {
        let shape = |at: u32| Some(batch.as_ref().shape(batch.instrs[at as usize].operands[0].as_view()?).to_vec());
        let (from, to) = (shape(link.writer)?, shape(link.reader)?);
        let (above, below) = (self.factors(&from), self.factors(&to));
        let once = |factors: &Factors| -> Vec<i64> {
            factors
                .iter()
                .zip(&link.repeated)
                .filter(|(_, repeated)| !**repeated)
                .flat_map(|(axis, _)| axis.clone())
                .collect()
        };
        let common = common(&above.concat(), &once(&below))?;
        let none = vec![false; from.len()];
        // A reader of repeated elements reads them from the source, which may stay as it is.
        let is_repeated = link.repeated.contains(&true);
        let new_above = if is_repeated { above.clone() } else { grouped(&above, &none, &common)? };
        let new_below = grouped(&below, &link.repeated, &common)?;
        let mut new = vec![(from, above, new_above), (to, below, new_below)];
        new.retain(|(_, old, new)| old != new);
        let may_be = |(shape, _, new): &(Vec<i64>, Factors, Factors)| {
            !fixed.contains(shape) && new.iter().map(Vec::len).sum::<usize>() <= MAX_RANK
        };
        let changed = new.iter().all(may_be).then_some(!new.is_empty());
        self.0.extend(new.into_iter().filter(|_| changed.is_some()).map(|(shape, _, new)| (shape, new)));
        changed
    }

    /// Cuts all elementwise operations of these shapes.
    fn apply(&self, batch: &mut Batch) -> usize {
        if self.0.is_empty() {
            return 0;
        }
        let mut views = Views::of(batch);
        let mut changed = 0;
        for index in 0..batch.instrs.len() {
            let instr = batch.instrs[index];
            let Some(first) = instr.operands[0].as_view().filter(|_| instr.opcode.kind() == Kind::Elementwise) else {
                continue;
            };
            let Some(factors) = self.0.get(batch.as_ref().shape(first)) else { continue };
            for place in 0..instr.count as usize {
                let Some(view) = instr.operands[place].as_view() else { continue };
                let cut = cut(&batch.as_ref().view(view), factors);
                let base = batch.views[view as usize].base;
                batch.instrs[index].operands[place] = Operand::view(views.intern(batch, base, cut));
            }
            changed += 1;
        }
        changed
    }
}

/// The shapes that stay: those of all that is not elementwise, and of operations on parts of arrays or on arrays that are made in parts,
/// which engines and other passes know by their axes.
fn fixed_shapes(batch: &Batch, uses: &Uses) -> HashSet<Vec<i64>> {
    let is_part = |view: u32| {
        let (base, view) = (batch.views[view as usize].base, batch.as_ref().view(view));
        let axes = view.shape().iter().zip(view.stride()).filter(|(_, stride)| **stride != 0);
        let count: i64 = axes.map(|(extent, _)| extent).product();
        batch.bases.get(base as usize).is_some_and(|record| count != record.len || uses.writers(base).len() > 1)
    };
    let mut shapes = HashSet::new();
    for instr in batch.instrs.iter().filter(|instr| instr.opcode.kind() != Kind::System) {
        let is_elementwise = instr.opcode.kind() == Kind::Elementwise;
        let views = instr.operands().iter().filter_map(|operand| operand.as_view());
        for view in views.filter(|&view| !is_elementwise || is_part(view)) {
            shapes.insert(batch.as_ref().shape(view).to_vec());
        }
    }
    shapes
}

/// The coarsest axes of which both are made, outermost first.
fn common(a: &[i64], b: &[i64]) -> Option<Vec<i64>> {
    let mut left: Vec<i64> = a.iter().copied().filter(|extent| *extent != 1).collect();
    let mut right: Vec<i64> = b.iter().copied().filter(|extent| *extent != 1).collect();
    let mut common = Vec::new();
    while let (Some(&x), Some(&y)) = (left.last(), right.last()) {
        let inner = x.min(y);
        if x % inner != 0 || y % inner != 0 {
            return None;
        }
        for (axes, extent) in [(&mut left, x), (&mut right, y)] {
            axes.pop();
            axes.extend((extent != inner).then_some(extent / inner));
        }
        common.push(inner);
    }
    common.reverse();
    (left.is_empty() && right.is_empty()).then_some(common)
}

/// Factors of which those of all axes that are not repeated are `common`, in this order.
fn grouped(factors: &Factors, repeated: &[bool], common: &[i64]) -> Option<Factors> {
    let mut rest = common.iter().copied();
    let group = |(axis, repeated): (&Vec<i64>, &bool)| {
        let extent: i64 = axis.iter().product();
        if *repeated || extent == 1 {
            return Some(axis.clone());
        }
        let (mut own, mut product) = (Vec::new(), 1);
        while product < extent {
            let next = rest.next()?;
            own.push(next);
            product *= next;
        }
        (product == extent).then_some(own)
    };
    factors.iter().zip(repeated).map(group).collect()
}

/// The same elements with axes cut into factors.
fn cut(view: &View, factors: &Factors) -> View {
    let (mut shape, mut stride) = (Vec::new(), Vec::new());
    for (factors, step) in factors.iter().zip(view.stride()) {
        for (at, &extent) in factors.iter().enumerate() {
            shape.push(extent);
            stride.push(step * factors[at + 1..].iter().product::<i64>());
        }
    }
    View::new(view.start(), &shape, &stride).expect("a legal view with its axes cut is a legal view")
}

/// Lets readers of copies read the source. Returns how many instructions changed.
fn forward(batch: &mut Batch, uses: &Uses, links: &[Link]) -> usize {
    let (mut views, mut losses) = (Views::of(batch), Losses::of(batch));
    // For each operand that changed, the instruction before which it has the values that it reads, and for each source, its last new reader.
    let (mut since, mut needed): (HashMap<(u32, usize), u32>, HashMap<u32, u32>) = Default::default();
    for link in links {
        let (copy, reader) = (batch.instrs[link.writer as usize], batch.instrs[link.reader as usize]);
        let Some(source) = copy.operands[1].as_view().filter(|_| moves(batch, &copy)) else { continue };
        let base = batch.views[source as usize].base;
        let when = since.get(&(link.writer, 1)).copied().unwrap_or(link.writer);
        let written = base_of(batch, reader.operands[0]);
        let stays = |base: u32| !uses.is_freed(batch, base) && !uses.is_written(base, when, link.reader);
        if base as usize >= batch.bases.len() || written == Some(base) || !stays(base) {
            continue;
        }
        let view_of = |operand: Operand| operand.as_view().map(|view| batch.as_ref().view(view));
        let (Some(whole), Some(view)) = (view_of(copy.operands[0]), view_of(reader.operands[link.place])) else {
            continue;
        };
        let Some(direct) = composed(&batch.as_ref().view(source), &whole, &view) else { continue };
        let mut next = reader;
        next.operands[link.place] = Operand::view(views.intern(batch, base, direct));
        let read = |place: usize| {
            let when =
                if place == link.place { when } else { *since.get(&(link.reader, place)).unwrap_or(&link.reader) };
            base_of(batch, next.operands[place]).map(|base| (base, when))
        };
        let reads: Vec<(u32, u32)> = (1..next.count as usize).filter_map(read).collect();
        if losses.keeps_in_parts(batch, link.reader, &reads) {
            batch.instrs[link.reader as usize] = next;
            since.insert((link.reader, link.place), when);
            let last = needed.entry(base).or_default();
            *last = link.reader.max(*last);
        }
    }
    put_off(batch, &needed);
    since.len()
}

/// The elements that `view` reads of `whole`, as a view of the source's base; `whole` is a contiguous array with the elements
/// of `source` in their order. `None` if an axis of the view is not part of one of the source.
fn composed(source: &View, whole: &View, view: &View) -> Option<View> {
    let mut stride = vec![0; view.rank()];
    let mut axes = (0..whole.rank()).rev().filter(|&axis| whole.shape()[axis] != 1);
    let (mut axis, mut inner) = (axes.next(), 1);
    for at in (0..view.rank()).rev().filter(|&at| view.stride()[at] != 0) {
        let own = axis?;
        stride[at] = source.stride()[own] * inner;
        inner *= view.shape()[at];
        if whole.shape()[own] % inner != 0 {
            return None;
        }
        if whole.shape()[own] == inner {
            (axis, inner) = (axes.next(), 1);
        }
    }
    if axis.is_some() {
        return None;
    }
    View::new(source.start(), view.shape(), &stride).ok()
}

/// Lets a DISCARD of a base, after which nothing uses it, follow its last reader.
fn put_off(batch: &mut Batch, needed: &HashMap<u32, u32>) {
    let until = |batch: &Batch, instr: &Instr| match instr.opcode {
        Opcode::Discard => base_of(batch, instr.operands[0]).and_then(|base| needed.get(&base)).copied(),
        _ => None,
    };
    let old = std::mem::take(&mut batch.instrs);
    let mut late: HashMap<u32, Vec<Instr>> = HashMap::new();
    for (at, instr) in (0u32..).zip(old) {
        match until(batch, &instr).filter(|&until| until > at) {
            Some(until) => late.entry(until).or_default().push(instr),
            None => batch.instrs.push(instr),
        }
        batch.instrs.extend(late.remove(&at).into_iter().flatten());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bh_bytecode::text;

    fn rewritten(words: &str) -> (Batch, usize) {
        let mut batch = text::parse(words).unwrap();
        let changed = run(&mut batch);
        (batch, changed)
    }

    fn shape(batch: &Batch, at: usize) -> Vec<i64> {
        batch.as_ref().shape(batch.instrs[at].operands[0].as_view().unwrap()).to_vec()
    }

    fn read(batch: &Batch, at: usize) -> (u32, View) {
        let view = batch.instrs[at].operands[1].as_view().unwrap();
        (batch.views[view as usize].base, batch.as_ref().view(view))
    }

    /// `x.repeat(3, 0).repeat(2, 1) + x.repeat(3, 0).repeat(2, 1)`, where x has 4 rows of 5.
    const REPEATED: &str = "bh batch 1
base b0 = f64[20] id 1 row 5
base b1 = f64[60] id 2 row 5 born dies
base b2 = f64[120] id 3 row 10 born dies
base b3 = f64[120] id 4 row 10 born live_out
view v0 = b0 at 0 [4:5, 3:0, 5:1]
view v1 = b1 at 0 [4:15, 3:5, 5:1]
view v2 = b1 at 0 [12:5, 5:1, 2:0]
view v3 = b2 at 0 [12:10, 5:2, 2:1]
view v4 = b2 at 0 [12:10, 10:1]
view v5 = b3 at 0 [12:10, 10:1]
i0: v1 = copy v0
i1: v3 = copy v2
i2: v5 = add v4, v4
";

    #[test]
    fn repeated_elements_are_read_where_they_are() {
        let (batch, changed) = rewritten(REPEATED);
        assert!(changed > 0);
        assert_eq!(shape(&batch, 2), [4, 3, 5, 2]);
        assert_eq!(read(&batch, 2), (0, View::new(0, &[4, 3, 5, 2], &[5, 0, 1, 0]).unwrap()));
    }

    #[test]
    fn sources_are_dropped_after_their_last_reader() {
        let dropped = REPEATED.replace("i1:", "i1: discard v6\ni2:").replace("i2: v5", "i3: v5");
        let words = dropped.replace("i0:", "view v6 = b0 at 0 [20:1]\ni0:").replace("id 1 row 5", "id 1 row 5 dies");
        let (batch, _) = rewritten(&words);
        let places: Vec<Opcode> = batch.instrs.iter().map(|instr| instr.opcode).collect();
        assert_eq!(places, [Opcode::Copy, Opcode::Copy, Opcode::Add, Opcode::Discard]);
    }

    #[test]
    fn sources_that_are_freed_are_left() {
        let freed = REPEATED.replace("i0:", "view v6 = b0 at 0 [20:1]\ni0:").replace("i1:", "i1: free v6\ni2:");
        let (batch, _) = rewritten(&freed.replace("i2: v5", "i3: v5"));
        let places: Vec<Opcode> = batch.instrs.iter().map(|instr| instr.opcode).collect();
        assert_eq!(places, [Opcode::Copy, Opcode::Free, Opcode::Copy, Opcode::Add]);
        assert_eq!(read(&batch, 2).0, 1);
    }

    /// `(x + 1).reshape(-1) * 2`.
    const FLAT: &str = "bh batch 1
base b0 = f64[20] id 1 row 5
base b1 = f64[20] id 2 row 5 born dies
base b2 = f64[20] id 3 row 20 born live_out
view v0 = b0 at 0 [4:5, 5:1]
view v1 = b1 at 0 [4:5, 5:1]
view v2 = b1 at 0 [20:1]
view v3 = b2 at 0 [20:1]
const c0 = f64 2
i0: v1 = add v0, c0
i1: v3 = multiply v2, c0
";

    #[test]
    fn operations_on_one_order_get_one_shape() {
        let (batch, changed) = rewritten(FLAT);
        assert_eq!((changed, shape(&batch, 0), shape(&batch, 1)), (1, vec![4, 5], vec![4, 5]));
        assert_eq!(batch.instrs[0].operands[0], batch.instrs[1].operands[1]);
    }

    #[test]
    fn shapes_of_folds_and_of_arrays_that_stay_are_left() {
        let folded = format!(
            "{FLAT}base b3 = f64[1] id 4 row 1 born live_out\nview v4 = b3 at 0 [1:0]\ni2: v4 = add_reduce axes(0) v2\n"
        );
        let of_other = folded.replace("add_reduce axes(0) v2", "add_reduce axes(0) v3");
        for words in [FLAT.replace("id 2 row 5 born dies", "id 2 row 5 born live_out"), folded, of_other] {
            let Ok(before) = text::parse(&words) else { panic!("{words}: {:?}", text::parse(&words).err()) };
            let mut batch = before.clone();
            assert_eq!(run(&mut batch), 0, "{words}");
        }
    }

    #[test]
    fn shapes_of_stencils_are_left() {
        let stencil = "base b3 = f64[21] id 4 row 21\nview v4 = b3 at 1 [20:1]\nbase b4 = f64[20] id 5 row 20 born live_out\n\
                       view v5 = b4 at 0 [20:1]\ni2: v5 = add v4, v3\n";
        let (batch, changed) = rewritten(&format!("{FLAT}{stencil}"));
        assert_eq!((changed, shape(&batch, 1)), (0, vec![20]));
    }

    #[test]
    fn factors_of_shapes_agree_or_not() {
        assert_eq!(common(&[4, 3, 5], &[12, 5]), Some(vec![4, 3, 5]));
        assert_eq!(common(&[6, 10], &[2, 30]), Some(vec![2, 3, 10]));
        assert_eq!(common(&[6, 10], &[4, 15]), None);
        assert_eq!(common(&[1, 7], &[7]), Some(vec![7]));
    }
}
