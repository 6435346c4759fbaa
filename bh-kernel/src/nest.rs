//! Loop nests: ordering dimensions by memory, turning backward walks forward, and merging dimensions.
//!
//! A nest with folds is in the order that its reductions carry, and its short inner dimensions are found before merging:
//! other operations of the kernel have no effect, so that a fold takes its elements in one order with and without fusion.

use crate::kernel::Dim;
use bh_bytecode::AxisOrder;

/// Inner kept dimensions of at most this many elements change places with a longer folded neighbour: rows of a few elements are slow
/// as an inner loop.
const SHORT_ROW: i64 = 7;
/// Fewer kept elements than `COLUMNS` inside of at least `ROWS` folded ones are columns: their rows are folded into sets, so
/// that several rows can be folded side by side.
const COLUMNS: i64 = 32;
const ROWS: i64 = 128;
/// So few columns are folded one after the other where rows have gaps: these would be loops of their own.
const FEW_COLUMNS: i64 = 4;

/// The hardware that runs the loops of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runner {
    /// The processor, a block of the innermost loop after the other.
    Vectors,
    /// A device, whose items share folds.
    Items,
}

impl Runner {
    /// Inner folded dimensions of at most this many elements change places with a longer kept neighbour: folds of a few elements are
    /// slow as an inner loop. Longer ones are not: with other rows as the inner loop each of them would read all lines of memory.
    /// Rows of 16 folded doubles take two lines, which the nearest cache of a processor keeps from one element to the next.
    fn short_fold(self) -> i64 {
        match self {
            Runner::Vectors => 16,
            Runner::Items => 7,
        }
    }
}

/// One access before merging: its offset and its strides along the axes of the box.
#[derive(Clone, Debug)]
pub(super) struct Access {
    pub(super) start: i64,
    pub(super) strides: Vec<i64>,
    /// Does it address memory, so that its strides matter for speed?
    pub(super) memory: bool,
}

/// A dimension of the nest: the axis it came from has these strides in each access.
pub struct Axis {
    /// Its elements.
    pub extent: i64,
    /// Whether it is folded.
    pub role: Dim,
    /// Its place in the shape.
    pub source: usize,
}

/// A nest: its dimensions, outermost first; there is always at least one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Nest {
    pub(super) extents: Vec<i64>,
    pub(super) dims: Vec<Dim>,
    /// Extents of the folded axes before merging, outermost first.
    pub(super) folded: Vec<i64>,
    /// Kept elements of a row, if these are columns; else 0.
    pub(super) columns: i64,
    /// Is the tree of the folds the fixed one?
    pub(super) fixed: bool,
}

/// Orders and merges the axes of a box. `reduced` is a bit mask of axes, and `folded` the order of the reductions, if there are
/// any; else memory decides. Rewrites every access to strides along the resulting dimensions.
pub(super) fn build(
    shape: &[i64],
    reduced: u16,
    folded: Option<AxisOrder>,
    runner: Runner,
    accesses: &mut [Access],
) -> Nest {
    let memory: Vec<&[i64]> =
        accesses.iter().filter(|access| access.memory).map(|access| access.strides.as_slice()).collect();
    let memory = AxisOrder::of_memory(shape, &memory);
    let order = folded.unwrap_or(memory);
    let mut axes = axes(shape, reduced, &order);
    // Along kept axes the direction is free.
    let backward = order.backward() & reduced | memory.backward() & !reduced;
    for axis in axes.iter().filter(|axis| axis.extent > 0 && backward >> axis.source & 1 == 1) {
        accesses.iter_mut().for_each(|access| turn(axis, access));
    }
    let columns = if order.is_fixed() { 0 } else { columns(&axes) };
    // Either order gives the same bits.
    if !order.is_fixed() && (columns == 0 || !has_rows(&axes, columns, accesses)) {
        move_short_run(&mut axes, runner);
    }
    let folded = axes.iter().filter(|axis| axis.role == Dim::Reduced).map(|axis| axis.extent).collect();
    let mut extents: Vec<i64> = Vec::with_capacity(axes.len().max(1));
    let mut dims: Vec<Dim> = Vec::with_capacity(axes.len().max(1));
    let mut merged: Vec<Vec<i64>> = vec![Vec::with_capacity(axes.len().max(1)); accesses.len()];
    for axis in &axes {
        let stride = |access: &Access| access.strides[axis.source];
        let mergeable = dims.last() == Some(&axis.role)
            && merged
                .iter()
                .zip(accesses.iter())
                .all(|(strides, access)| strides.last() == Some(&stride(access).wrapping_mul(axis.extent)));
        if mergeable {
            let last = extents.len() - 1;
            extents[last] *= axis.extent;
            for (strides, access) in merged.iter_mut().zip(accesses.iter()) {
                strides[last] = stride(access);
            }
        } else {
            extents.push(axis.extent);
            dims.push(axis.role);
            for (strides, access) in merged.iter_mut().zip(accesses.iter()) {
                strides.push(stride(access));
            }
        }
    }
    if extents.is_empty() {
        extents.push(1);
        // A fold of one element is still a fold.
        dims.push(if reduced != 0 { Dim::Reduced } else { Dim::Kept });
        for strides in &mut merged {
            strides.push(1);
        }
    }
    for (access, strides) in accesses.iter_mut().zip(merged) {
        access.strides = strides;
    }
    Nest { extents, dims, folded, columns, fixed: order.is_fixed() }
}

/// How a fold of a shape walks on the processor. Backward axes are the order's.
pub struct FoldAxes {
    /// The axes that matter, outermost first.
    pub axes: Vec<Axis>,
    /// Do the folded elements of each result go to lanes? Else they are folded one after the other.
    pub in_lanes: bool,
    /// Kept elements of a row, if these are columns; else 0.
    pub(crate) columns: i64,
}

impl FoldAxes {
    /// Of a fold of the axes of a bit mask, in this order.
    pub fn new(shape: &[i64], reduced: u16, order: &AxisOrder) -> FoldAxes {
        let mut axes = axes(shape, reduced, order);
        let columns = if order.is_fixed() { 0 } else { columns(&axes) };
        if columns == 0 && !order.is_fixed() {
            move_short_run(&mut axes, Runner::Vectors);
        }
        let in_lanes = columns > 0 || axes.last().is_none_or(|axis| axis.role == Dim::Reduced);
        FoldAxes { axes, in_lanes, columns }
    }

    /// Extents of the axes of one role, outermost first.
    pub(crate) fn extents(&self, role: Dim) -> impl Iterator<Item = i64> {
        self.axes.iter().filter(move |axis| axis.role == role).map(|axis| axis.extent)
    }
}

/// The longest axis along which folds have one chunk each, which no items of a device share, where there are `RESULTS`.
pub const IN_ORDER: i64 = 16;
/// The fewest results of such folds.
const RESULTS: i64 = 1024;

/// Does every engine fold the elements along an axis one after the other, from the neutral element on, whatever shares the kernel? Then operations
/// on pairs of arrays give the same bits.
pub fn folds_in_order(shape: &[i64], axis: usize, order: &AxisOrder) -> bool {
    let (extent, reduced) = (shape[axis], 1 << axis);
    let mut axes = axes(shape, reduced, order);
    let results = shape.iter().product::<i64>() / extent.max(1);
    if !(2..=IN_ORDER).contains(&extent) || results < RESULTS || order.backward() & reduced != 0 {
        return false;
    }
    if !order.is_fixed() {
        // A run that moves inside on devices moves inside on processors too.
        move_short_run(&mut axes, Runner::Items);
    }
    axes.last().is_some_and(|axis| axis.role == Dim::Kept)
}

/// The innermost axis in a fixed tree, if it is a kept one: no number of kept elements has an influence.
pub(super) fn kept_inside(shape: &[i64], reduced: u16, order: &AxisOrder) -> Option<usize> {
    let is_reduced = |axis: usize| reduced >> axis & 1 == 1;
    let mut inner = order.axes().iter().rev().map(|&axis| axis as usize);
    inner.find(|&axis| !is_reduced(axis) || shape[axis] != 1).filter(|&axis| !is_reduced(axis))
}

/// The axes that matter, in this order. In a fixed tree, an innermost kept axis does with any number of elements: a share of
/// the array may have one of them.
fn axes(shape: &[i64], reduced: u16, order: &AxisOrder) -> Vec<Axis> {
    let role = |axis: usize| if reduced >> axis & 1 == 1 { Dim::Reduced } else { Dim::Kept };
    let axes = order.axes().iter().map(|&axis| axis as usize);
    let kept = if order.is_fixed() { kept_inside(shape, reduced, order) } else { None };
    axes.filter(|&axis| shape[axis] != 1 || kept == Some(axis))
        .map(|axis| Axis { extent: shape[axis], role: role(axis), source: axis })
        .collect()
}

/// How many kept elements lie inside of folded ones, if they are few and these are many; else 0.
fn columns(axes: &[Axis]) -> i64 {
    let run = |axes: &[Axis], role: Dim| {
        let run = axes.iter().rev().take_while(|axis| axis.role == role);
        run.fold((0, 1), |(count, elements), axis| (count + 1, elements * axis.extent))
    };
    let (count, columns) = run(axes, Dim::Kept);
    let (_, rows) = run(&axes[..axes.len() - count], Dim::Reduced);
    if (2..COLUMNS).contains(&columns) && rows >= ROWS { columns } else { 0 }
}

/// Does each of these accesses find the columns at one distance from each other, and, if they are few, row after row in memory
/// without a gap or the same ones in all rows?
fn has_rows(axes: &[Axis], columns: i64, accesses: &[Access]) -> bool {
    let count = axes.iter().rev().take_while(|axis| axis.role == Dim::Kept).count();
    let (around, kept) = axes.split_at(axes.len() - count);
    let (Some(row), Some(last)) = (around.last(), kept.last()) else { return false };
    accesses.iter().all(|access| {
        let stride = |axis: &Axis| access.strides[axis.source];
        let merges = kept.windows(2).all(|pair| stride(&pair[0]) == stride(&pair[1]).wrapping_mul(pair[1].extent));
        let again = access.memory && stride(row) == 0;
        merges && (columns >= FEW_COLUMNS || again || stride(row) == stride(last).wrapping_mul(columns))
    })
}

/// Moves the innermost axes of one role outside of the next ones if they are short, and the next ones are not.
fn move_short_run(axes: &mut [Axis], runner: Runner) {
    let Some(last) = axes.last().map(|axis| axis.role) else { return };
    let inner = axes.iter().rev().take_while(|axis| axis.role == last).count();
    let rest = axes.len() - inner;
    let outer = axes[..rest].iter().rev().take_while(|axis| axis.role != last).count();
    let elements = |axes: &[Axis]| axes.iter().map(|axis| axis.extent).product::<i64>();
    let (short, long) = (elements(&axes[rest..]), elements(&axes[rest - outer..rest]));
    let most = if last == Dim::Reduced { runner.short_fold() } else { SHORT_ROW };
    if outer > 0 && short <= most && long > short {
        axes[rest - outer..].rotate_left(outer);
    }
}

/// Walks an axis from its other end.
fn turn(axis: &Axis, access: &mut Access) {
    let stride = access.strides[axis.source];
    access.start = access.start.wrapping_add(stride.wrapping_mul(axis.extent - 1));
    access.strides[axis.source] = stride.wrapping_neg();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(start: i64, strides: &[i64]) -> Access {
        Access { start, strides: strides.to_vec(), memory: true }
    }

    fn build(shape: &[i64], reduced: u16, folded: Option<AxisOrder>, accesses: &mut [Access]) -> Nest {
        super::build(shape, reduced, folded, Runner::Vectors, accesses)
    }

    #[test]
    fn contiguous_axes_merge() {
        let mut accesses = [access(0, &[20, 5, 1]), access(3, &[20, 5, 1])];
        let nest = build(&[3, 4, 5], 0, None, &mut accesses);
        assert_eq!(nest, Nest { extents: vec![60], dims: vec![Dim::Kept], folded: vec![], columns: 0, fixed: false });
        assert_eq!(accesses[1].strides, [1]);
    }

    #[test]
    fn transposed_accesses_are_walked_in_memory_order() {
        let mut accesses = [access(0, &[1, 4]), access(0, &[1, 4])];
        assert_eq!(build(&[4, 6], 0, None, &mut accesses).extents, [24]);
    }

    #[test]
    fn backward_walks_turn_forward() {
        let mut accesses = [access(9, &[-1]), access(9, &[-1])];
        build(&[10], 0, None, &mut accesses);
        assert_eq!((accesses[0].start, accesses[0].strides[0]), (0, 1));
    }

    #[test]
    fn short_inner_folds_move_outside() {
        let mut accesses = [access(0, &[3, 1]), access(0, &[1, 0])];
        let nest = build(&[100, 3], 0b10, Some(AxisOrder::c_order(2)), &mut accesses);
        assert_eq!(
            nest,
            Nest {
                extents: vec![3, 100],
                dims: vec![Dim::Reduced, Dim::Kept],
                folded: vec![3],
                columns: 0,
                fixed: false
            }
        );
        assert_eq!(accesses[0].strides, [1, 3]);
    }

    #[test]
    fn few_columns_stay_inside_where_rows_follow_each_other() {
        let [rows, result, same] = [[3, 1], [0, 1], [0, 2]].map(|strides| access(0, &strides));
        let shifted = access(0, &[5, 1]);
        let kept_inside = |others: &[&Access], count: i64| {
            let mut accesses: Vec<Access> =
                [&rows, &result].into_iter().chain(others.iter().copied()).cloned().collect();
            let nest = build(&[count, 3], 0b01, Some(AxisOrder::c_order(2)), &mut accesses);
            assert_eq!(nest.columns, if count < ROWS { 0 } else { 3 });
            nest.dims == [Dim::Reduced, Dim::Kept]
        };
        assert!(kept_inside(&[], 128) && kept_inside(&[&same], 1000));
        assert!(!kept_inside(&[], 127) && !kept_inside(&[&shifted], 1000));
        // The numbers of an index view are nowhere to be repeated from.
        assert!(!kept_inside(&[&Access { memory: false, ..same.clone() }], 1000));
        let mut accesses = [access(0, &[5, 1]), access(0, &[0, 1])];
        assert_eq!(build(&[1000, 4], 0b01, Some(AxisOrder::c_order(2)), &mut accesses).dims, [Dim::Reduced, Dim::Kept]);
        let mut accesses = [access(0, &[32, 1]), access(0, &[0, 1])];
        assert_eq!(build(&[1000, 32], 0b01, Some(AxisOrder::c_order(2)), &mut accesses).columns, 0);
    }

    #[test]
    fn folds_of_more_than_two_lines_of_memory_stay_inside() {
        for (extent, dims) in [(16, [Dim::Reduced, Dim::Kept]), (17, [Dim::Kept, Dim::Reduced])] {
            let mut accesses = [access(0, &[extent, 1]), access(0, &[1, 0])];
            let nest = build(&[100, extent], 0b10, Some(AxisOrder::c_order(2)), &mut accesses);
            assert_eq!(nest.dims, dims, "rows of {extent}");
        }
        for (extent, dims) in [(7, [Dim::Reduced, Dim::Kept]), (8, [Dim::Kept, Dim::Reduced])] {
            let mut accesses = [access(0, &[extent, 1]), access(0, &[1, 0])];
            let order = Some(AxisOrder::c_order(2));
            let nest = super::build(&[100, extent], 0b10, order, Runner::Items, &mut accesses);
            assert_eq!(nest.dims, dims, "rows of {extent} on a device");
        }
    }

    #[test]
    fn short_folds_of_many_results_go_in_order() {
        let in_order = |shape: &[i64], axis, order: Option<AxisOrder>| {
            folds_in_order(shape, axis, &order.unwrap_or(AxisOrder::c_order(shape.len())))
        };
        assert!(in_order(&[9, 64, 64], 0, None) && in_order(&[64, 16, 64], 1, None) && in_order(&[4096, 7], 1, None));
        // Chunks, lanes of long and of shared rows, rows of few elements, few results.
        assert!(
            !in_order(&[17, 64, 64], 0, None) && !in_order(&[4096, 8], 1, None) && !in_order(&[2048, 9, 7], 1, None)
        );
        assert!(!in_order(&[9, 10, 10], 0, None));
        // The last axis of an array in the other order is its outermost one, unless it is walked backward.
        let other = |backward| AxisOrder::of_axes(&[(1, backward), (0, false)]);
        assert!(in_order(&[4096, 16], 1, other(false)) && !in_order(&[4096, 16], 1, other(true)));
        assert!(in_order(&[9, 4096], 0, Some(AxisOrder::c_order(2).fixed())));
        assert!(!in_order(&[4096, 7], 1, Some(AxisOrder::c_order(2).fixed())));
    }

    #[test]
    fn fixed_trees_have_one_form_for_all_shares() {
        let order = AxisOrder::c_order(3).fixed();
        for kept in [1, 7, 20, 100] {
            let strides = [kept, 1, 0].map(|stride| if kept == 1 { 1 } else { stride });
            let mut accesses = [access(0, &strides), access(0, &[0, 1, 0])];
            let nest = build(&[1000, kept, 1], 0b101, Some(order), &mut accesses);
            assert_eq!((nest.dims, nest.folded), (vec![Dim::Reduced, Dim::Kept], vec![1000]), "{kept} kept");
            assert!(nest.columns == 0 && nest.fixed);
        }
    }

    #[test]
    fn one_element_has_one_dimension() {
        let mut accesses = [access(7, &[])];
        let nest = build(&[], 0, None, &mut accesses);
        assert_eq!(nest, Nest { extents: vec![1], dims: vec![Dim::Kept], folded: vec![], columns: 0, fixed: false });
        assert_eq!(accesses[0].strides, [1]);
    }

    #[test]
    fn a_fold_takes_its_elements_in_its_own_order() {
        // That all loads of this kernel are transposed and one is backward has no influence.
        let loads = [access(0, &[1, 4]), access(19, &[-1, -4]), access(0, &[0, 0])];
        let mut accesses = loads.clone();
        let nest = build(&[4, 5], 0b11, Some(AxisOrder::c_order(2)), &mut accesses);
        assert_eq!(
            nest,
            Nest { extents: vec![4, 5], dims: vec![Dim::Reduced; 2], folded: vec![4, 5], columns: 0, fixed: false }
        );
        assert_eq!((accesses[1].start, accesses[1].strides.as_slice()), (19, &[-1, -4][..]));
        let mut accesses = loads.clone();
        let nest = build(&[4, 5], 0b11, AxisOrder::of_axes(&[(1, false), (0, true)]), &mut accesses);
        assert_eq!(
            nest,
            Nest { extents: vec![5, 4], dims: vec![Dim::Reduced; 2], folded: vec![5, 4], columns: 0, fixed: false }
        );
        assert_eq!((accesses[1].start, accesses[1].strides.as_slice()), (16, &[-4, 1][..]));
    }
}
