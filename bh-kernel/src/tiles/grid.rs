//! How arrays and the nests that walk them are cut into rows and columns.

use crate::{BufferRef, Dim, SlotMode, Stage};

/// How an array is cut: into rows of this many elements, and these into columns of this many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    pub(super) row: i64,
    pub(super) column: i64,
}

impl Grid {
    /// The grid of each base, of this many elements, that these stages walk. Rows are as far apart as the largest stride of an
    /// outermost loop is; columns as the largest smaller stride that divides it.
    pub(crate) fn of_bases<'a>(lengths: &[i64], stages: impl Iterator<Item = &'a Stage> + Clone) -> Vec<Grid> {
        let mut grids = vec![Grid { row: 1, column: 1 }; lengths.len()];
        for (base, dim, stride) in stages.clone().flat_map(strides) {
            let grid = &mut grids[base as usize];
            if dim == 0 {
                grid.row = grid.row.max(stride);
            }
        }
        for (grid, len) in grids.iter_mut().zip(lengths) {
            // All in one line: that is a row.
            if grid.row == 1 {
                grid.row = (*len).max(1);
            }
        }
        for (base, _, stride) in stages.clone().flat_map(strides) {
            let grid = &mut grids[base as usize];
            if stride > grid.column && stride < grid.row && grid.row % stride == 0 {
                grid.column = stride;
            }
        }
        // Arrays that are only walked as a whole are cut like the operands and results of the same stage.
        while stages.clone().filter(|stage| cut_alike(stage, lengths, &mut grids)).count() > 0 {}
        grids
    }
}

/// Where a slot is at the first iteration: the row, the column, and the element of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) row: i64,
    pub(super) column: i64,
    pub(super) rest: i64,
}

/// The strides of all dimensions of a stage that have more than one iteration, by base.
fn strides(stage: &Stage) -> impl Iterator<Item = (u32, usize, i64)> + '_ {
    let parameters = &stage.parameters;
    let bases = parameters.buffers.iter().enumerate().filter_map(|(slot, buffer)| match *buffer {
        BufferRef::Base(base) | BufferRef::Fresh(base) => Some((base, slot)),
        BufferRef::Temporary(_) | BufferRef::None => None,
    });
    bases.flat_map(move |(base, slot)| {
        let dims = parameters.extents.iter().zip(parameters.stride(slot)).enumerate();
        dims.filter(|(_, (extent, _))| **extent > 1).map(move |(dim, (_, stride))| (base, dim, stride.abs()))
    })
}

/// Gives arrays that are one row the grid of another one that a stage walks in the same way. Says whether there was such an array.
fn cut_alike(stage: &Stage, lengths: &[i64], grids: &mut [Grid]) -> bool {
    let parameters = &stage.parameters;
    let slot = |slot: usize| match parameters.buffers[slot] {
        BufferRef::Base(base) | BufferRef::Fresh(base) => Some((base as usize, parameters.starts[slot])),
        BufferRef::Temporary(_) | BufferRef::None => None,
    };
    let mut found = false;
    for one in 0..parameters.buffers.len() {
        let Some((base, start)) = slot(one).filter(|(base, _)| grids[*base].row == lengths[*base]) else { continue };
        let alike = |other: &usize| {
            let there = slot(*other).filter(|(there, begin)| lengths[*there] == lengths[base] && *begin == start);
            parameters.stride(one) == parameters.stride(*other)
                && there.is_some_and(|(there, _)| grids[there].row < lengths[there])
        };
        if let Some((there, _)) = (0..parameters.buffers.len()).find(alike).and_then(slot) {
            grids[base] = grids[there];
            found = true;
        }
    }
    found
}

/// The dimensions of a stage while they are cut.
struct Dims {
    extents: Vec<i64>,
    /// Of each slot.
    strides: Vec<Vec<i64>>,
}

impl Dims {
    /// Puts a dimension of one iteration there.
    fn insert(&mut self, at: usize) {
        self.extents.insert(at, 1);
        self.strides.iter_mut().for_each(|strides| strides.insert(at, 0));
    }

    /// Makes sure that a dimension goes by `step` elements of the guide, which begins `position` behind a step's beginning.
    fn cut(&mut self, at: usize, guide: usize, position: i64, step: i64) -> Option<()> {
        if at == self.extents.len() {
            self.insert(at);
            return Some(());
        }
        let (extent, stride) = (self.extents[at], self.strides[guide][at]);
        if extent == 1 {
            // One element is one row and one column.
            if self.extents.len() == at + 1 {
                self.insert(at);
            }
            return Some(());
        }
        if stride == step {
            return Some(());
        }
        if stride <= 0 || stride > step {
            return None;
        }
        if position + (extent - 1) * stride < step {
            self.insert(at);
            return Some(());
        }
        // Several steps were merged.
        let per = step / stride;
        if step % stride != 0 || position >= stride || extent % per != 0 {
            return None;
        }
        self.extents.splice(at..=at, [extent / per, per]);
        for strides in &mut self.strides {
            let inner = strides[at];
            strides.splice(at..=at, [inner.checked_mul(per)?, inner]);
        }
        Some(())
    }
}

/// The stage with a first dimension of rows and a second one of columns, as the slot `guide` walks over a grid.
pub(super) fn cut(stage: &Stage, guide: usize, grid: Grid) -> Option<Stage> {
    let parameters = &stage.parameters;
    let slots = stage.kernel.slots.len();
    let strides = (0..slots).map(|slot| parameters.stride(slot).to_vec()).collect();
    let mut dims = Dims { extents: parameters.extents.clone(), strides };
    let start = parameters.starts[guide];
    dims.cut(0, guide, start.rem_euclid(grid.row), grid.row)?;
    dims.cut(1, guide, start.rem_euclid(grid.row).rem_euclid(grid.column), grid.column)?;
    let mut stage = stage.clone();
    stage.kernel.dims = vec![Dim::Kept; dims.extents.len()];
    stage.parameters.extents = dims.extents;
    stage.parameters.strides = dims.strides.concat();
    Some(stage)
}

/// Where a slot of a stage that was cut is on a grid, if it advances a row and a column with the stage.
pub(super) fn place(stage: &Stage, slot: usize, grid: Grid) -> Option<Position> {
    let parameters = &stage.parameters;
    let (extents, strides) = (&parameters.extents, parameters.stride(slot));
    if stage.kernel.slots[slot].mode == SlotMode::Index
        || (extents[0] > 1 && strides[0] != grid.row)
        || (extents[1] > 1 && strides[1] != grid.column)
    {
        return None;
    }
    let start = parameters.starts[slot];
    let (row, within) = (start.div_euclid(grid.row), start.rem_euclid(grid.row));
    let (column, rest) = (within / grid.column, within % grid.column);
    let (mut low, mut high) = (rest, rest);
    for (extent, stride) in extents.iter().zip(strides).skip(2) {
        let reach = stride.checked_mul(extent - 1)?;
        low += reach.min(0);
        high += reach.max(0);
    }
    let inside = low >= 0 && high < grid.column && column + extents[1] <= grid.row / grid.column;
    inside.then_some(Position { row, column, rest })
}

/// The first and last row, column and element of these.
pub(super) type Area = [(i64, i64); 3];

/// The rows, columns and elements of these that a slot touches, each of them; `None` if there are gaps.
pub(super) fn area(stage: &Stage, slot: usize, place: Position) -> Option<Area> {
    let parameters = &stage.parameters;
    let (mut high, mut count) = (0, 1);
    for (extent, stride) in parameters.extents.iter().zip(parameters.stride(slot)).skip(2) {
        if *stride < 0 {
            return None;
        }
        high += stride * (extent - 1);
        count *= extent;
    }
    let line = |start: i64, extent: i64| (start, start + extent - 1);
    let area = [
        line(place.row, parameters.extents[0]),
        line(place.column, parameters.extents[1]),
        (place.rest, place.rest + high),
    ];
    (count == high + 1).then_some(area)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Lowered, Runner, lower};
    use bh_bytecode::text::parse;

    /// The stages of a batch with one kernel for each instruction.
    fn stages(text: &str) -> Vec<Stage> {
        let mut batch = parse(&format!("bh batch 1\n{text}")).unwrap();
        for index in 0..batch.instrs.len() as u32 {
            batch.push_block(&[index], &[]);
        }
        let batch = batch.as_ref();
        let blocks = (0..batch.blocks.len() as u32).map(|block| lower(&batch, block, Runner::Vectors));
        blocks.flat_map(|lowered| if let Lowered::Loops(stages, _) = lowered { stages } else { Vec::new() }).collect()
    }

    #[test]
    fn grids_of_two_and_three_dimensions() {
        let text = "base b0 = f64[1000] id 1 live_out
base b1 = f64[100] id 2 live_out
base b2 = f64[50] id 3 live_out
view v0 = b0 at 111 [8:100, 8:10, 8:1]
view v1 = b1 at 0 [100:1]
view v2 = b1 at 11 [8:10, 8:1]
view v3 = b2 at 1 [48:1]
view v4 = b0 at 0 [1000:1]
i0: v0 = add v0, v0
i1: v1 = add v1, v1
i2: v2 = add v2, v2
i3: v3 = add v3, v3
i4: v4 = add v4, v4
";
        let stages = stages(text);
        let grids = Grid::of_bases(&[1000, 100, 50], stages.iter());
        let grid = |row, column| Grid { row, column };
        assert_eq!(grids, [grid(100, 10), grid(10, 1), grid(50, 1)]);
        let cut = |at: usize, base: usize| cut(&stages[at], 0, grids[base]).unwrap();
        // Inner dimensions stay, and merged ones are parted.
        assert_eq!(cut(0, 0).parameters.extents, [8, 8, 8]);
        assert_eq!(cut(1, 1).parameters.extents, [10, 10]);
        assert_eq!(cut(3, 2).parameters.extents, [1, 48]);
        assert_eq!(cut(4, 0).parameters.extents, [10, 10, 10]);
        assert_eq!(place(&cut(0, 0), 0, grids[0]), Some(Position { row: 1, column: 1, rest: 1 }));
        assert_eq!(place(&cut(3, 2), 0, grids[2]), Some(Position { row: 0, column: 1, rest: 0 }));
    }

    #[test]
    fn rows_and_columns_alone() {
        let text = "base b0 = f64[100] id 1 live_out
base b1 = f64[100] id 2 live_out
view v0 = b0 at 0 [10:1]
view v1 = b0 at 9 [8:10]
view v2 = b0 at 11 [8:10, 8:1]
view v3 = b1 at 11 [8:1, 8:10]
view v4 = b0 at 5 [10:1]
i0: v0 = add v0, v0
i1: v1 = add v1, v1
i2: v2 = add v2, v3
i3: v4 = add v4, v4
";
        let stages = stages(text);
        let grids = Grid::of_bases(&[100, 100], stages.iter());
        assert_eq!(grids[0], Grid { row: 10, column: 1 });
        let cut = |at: usize| cut(&stages[at], 0, grids[0]);
        assert_eq!(cut(0).unwrap().parameters.extents, [1, 10]);
        let column = cut(1).unwrap();
        assert_eq!(column.parameters.extents, [8, 1]);
        assert_eq!(place(&column, 0, grids[0]), Some(Position { row: 0, column: 9, rest: 0 }));
        // One of them is transposed.
        let transposed = cut(2).unwrap();
        let known: Vec<bool> = (0..transposed.kernel.slots.len())
            .map(|slot| place(&transposed, slot, grids[usize::from(slot == 1)]).is_some())
            .collect();
        assert!(known.contains(&false) && known.contains(&true), "{known:?}");
        // A line that goes on in the next row.
        assert_eq!(cut(3), None);
    }
}
