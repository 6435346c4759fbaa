//! The facts about a stage that its machine code depends on.

use crate::simd::Isa;
use bh_bytecode::{DType, Opcode};
use bh_jit_abi::{Divider, Folds, LANES, LONG_ROW_BYTES, Level, Near, Request, SlotForm, Stride};
use bh_kernel::schedule::{FoldTree, Lines, LoopShape, Schedule, joined};
use bh_kernel::{SlotMode, Stage, Step};

/// Slots that lie so close, in rows and then in elements, are addressed from one position.
const NEAR_ROWS: i64 = 8;
const NEAR: i64 = 64;
/// The number of slots before one that are looked at for its neighbour.
const NEIGHBOURS: usize = 256;
/// Elements of rows that are too short for positions of their own.
const NARROW: i64 = 16;

/// The target that kernels are compiled for.
#[derive(Clone, Copy)]
pub(crate) struct Compilation {
    pub(crate) isa: Isa,
    pub(crate) divider: Divider,
    /// May compiled kernels round differently?
    pub(crate) fast_math: bool,
    /// Must each row be complete before the next one begins?
    pub(crate) in_order: bool,
}

/// Facts about the memory of a stage's slots.
pub(crate) trait SlotMemory {
    /// Is it written past the caches?
    fn is_non_temporal(&self, slot: u16) -> bool;
    /// Are two slots as far apart as their views?
    fn are_together(&self, a: usize, b: usize) -> bool;
}

/// The level of compiled code for an instruction set; `None` if it has none.
pub(super) fn level(isa: Isa) -> Option<Level> {
    match isa {
        Isa::Avx2 => Some(Level::Avx2),
        Isa::Avx512 => Some(Level::Avx512),
        Isa::Neon => Some(Level::Neon),
        Isa::Portable | Isa::Sse2 | Isa::Fused => None,
    }
}

/// Describes a stage for the compiler. `None` if compiled code could not have the bits of block operations, or lacks one of the
/// stage's steps.
pub(crate) fn request(
    stage: &Stage,
    schedule: &Schedule,
    target: Compilation,
    memory: &impl SlotMemory,
) -> Option<Request> {
    let (kernel, lines) = (&stage.kernel, schedule.lines());
    let folds = folds(schedule)?;
    if kernel.steps.iter().any(|step| matches!(step, Step::Gather { .. })) {
        return None;
    }
    let mut slots: Vec<SlotForm> = Vec::with_capacity(kernel.slots.len());
    for index in 0..kernel.slots.len() {
        slots.push(slot_form(stage, lines, index, &slots, folds, memory)?);
    }
    let divides = kernel.steps.iter().any(|step| matches!(step, Step::Compute { opcode: Opcode::Divide, .. }));
    let row = match lines.shape {
        LoopShape::JoinedColumns => lines.row * LANES as i64,
        LoopShape::Lines | LoopShape::JoinedRows => lines.elements(),
        _ => lines.row,
    };
    let is_short = |slot: &SlotForm| {
        let bytes = row as usize * slot.dtype.size();
        slot.mode == SlotMode::Read && slot.stride == Stride::Zero && bytes < LONG_ROW_BYTES
    };
    let request = Request {
        level: level(target.isa)?,
        divider: target.divider,
        fast_math: target.fast_math,
        in_order: target.in_order,
        short: divides && slots.iter().any(is_short),
        repeat: if lines.shape == LoopShape::JoinedRows { lines.row as u8 } else { 0 },
        folds,
        slots,
        constants: kernel.constants.clone(),
        steps: kernel.steps.clone(),
        program: String::new(),
    };
    let joins = schedule.tree().is_some_and(FoldTree::joins_lanes) && can_join(&request);
    Some(if joins { Request { folds: Folds::Results, ..request } } else { request })
}

/// The form of the code's folds; `None` if it has none for them.
fn folds(schedule: &Schedule) -> Option<Folds> {
    Some(match (schedule.tree(), schedule.lines().shape) {
        (None, _) => Folds::None,
        (Some(FoldTree::Columns), LoopShape::JoinedColumns) | (Some(FoldTree::KeptLines), LoopShape::Lines) => {
            Folds::Columns
        }
        (Some(FoldTree::Columns), LoopShape::ColumnRows | LoopShape::Lines) => Folds::Sets,
        (Some(FoldTree::KeptLines | FoldTree::Columns), _) => Folds::Elements,
        (Some(_), LoopShape::Lines) => Folds::Lanes,
        // The lanes of blocks that span rows do not follow the rows.
        (Some(_), _) => return None,
    })
}

/// The facts about a slot that the code depends on, after those of `earlier` ones.
fn slot_form(
    stage: &Stage,
    lines: &Lines,
    index: usize,
    earlier: &[SlotForm],
    folds: Folds,
    memory: &impl SlotMemory,
) -> Option<SlotForm> {
    let (slot, strides) = (&stage.kernel.slots[index], stage.parameters.stride(index));
    let inner = lines.inner_dim();
    let repeats = slot.mode == SlotMode::Read && lines.repeats(strides);
    let along = match lines.shape {
        LoopShape::JoinedRows => joined(slot, (strides[lines.dim], strides[inner]), lines.row)?,
        _ => Stride::of(strides[inner]),
    };
    let stride = match (slot.mode, along) {
        (SlotMode::Index, _) => Stride::Other,
        (SlotMode::Result, _) => Stride::Zero,
        _ if repeats => Stride::Unit,
        (SlotMode::Write, Stride::Unit) => Stride::Unit,
        (SlotMode::Write, _) => Stride::Other,
        (SlotMode::Read, _) if along.is_sparse() && slot.dtype.is_complex() => Stride::Other,
        (SlotMode::Read, _) => along,
    };
    // Repeated elements are copied to memory of their own.
    let is_near = stride.step().is_some() && slot.mode == SlotMode::Read && !repeats;
    let near = if is_near { neighbour(stage, lines, earlier, (index, stride), memory) } else { None };
    let is_row = matches!(lines.shape, LoopShape::Lines | LoopShape::JoinedRows | LoopShape::JoinedColumns);
    let may_stream = is_row && stride == Stride::Unit && slot.mode == SlotMode::Write;
    // Every row reads it again.
    let again = matches!(folds, Folds::Columns | Folds::Sets) && lines.plane_stride(strides) == 0;
    Some(SlotForm {
        dtype: slot.dtype,
        mode: slot.mode,
        stride,
        non_temporal: may_stream && memory.is_non_temporal(index as u16),
        fetch: !again,
        near,
    })
}

/// Can compiled code join the lanes of folded rows? Not where it does several rows side by side, and truth values and complex
/// numbers have other vectors in memory than in registers.
fn can_join(request: &Request) -> bool {
    let is_alone = |slot: &SlotForm| slot.near.is_none_or(|near| near.rows == 0);
    let is_plain =
        |slot: &SlotForm| slot.mode != SlotMode::Result || !(slot.dtype == DType::Bool || slot.dtype.is_complex());
    request.folds == Folds::Lanes && request.slots.iter().all(|slot| is_alone(slot) && is_plain(slot))
}

/// An earlier slot at a small fixed distance from a slot. Those that leave out elements of memory are near each other where
/// their elements alternate.
fn neighbour(
    stage: &Stage,
    lines: &Lines,
    earlier: &[SlotForm],
    (index, stride): (usize, Stride),
    memory: &impl SlotMemory,
) -> Option<Near> {
    let parameters = &stage.parameters;
    let strides = parameters.stride(index);
    let pitch = match lines.shape {
        LoopShape::ShortRows | LoopShape::BlockRows => strides[lines.dim],
        _ => lines.plane_stride(strides),
    };
    earlier.iter().enumerate().skip(earlier.len().saturating_sub(NEIGHBOURS)).find_map(|(other, form)| {
        let moves_along = form.mode == SlotMode::Read
            && form.stride == stride
            && form.near.is_none()
            && form.dtype == stage.kernel.slots[index].dtype
            && parameters.stride(other) == strides
            && memory.are_together(other, index);
        if !moves_along {
            return None;
        }
        let distance = parameters.starts[index].checked_sub(parameters.starts[other])?;
        let (rows, distance) = match stride.step() {
            Some(step @ 2..) => (0, (0..step as i16).find(|&between| i64::from(between) == distance)?),
            _ => rows_and_elements(distance, pitch)?,
        };
        Some(Near { slot: other as u16, rows, distance })
    })
}

/// A distance as rows and elements; `None` if it is not a small one. Elements are at most half a row, so that an element of a
/// neighbouring row is found there, whatever the extents. Rows of fewer than [`NARROW`] elements are as few as possible, as each has a
/// position of its own.
fn rows_and_elements(distance: i64, pitch: i64) -> Option<(i8, i16)> {
    let most = if pitch == 0 { 0 } else { NEAR_ROWS };
    let within = |elements: i64| {
        (0..=most).flat_map(|rows| [rows, -rows]).find_map(|rows| {
            let rest = distance.checked_sub(pitch.checked_mul(rows)?)?;
            ((-elements..=elements).contains(&rest)).then_some((rows as i8, rest as i16))
        })
    };
    let half = pitch.checked_abs()? / 2;
    if half >= NARROW / 2 { within(half.min(NEAR)).or_else(|| within(NEAR)) } else { within(NEAR) }
}

#[cfg(test)]
mod tests {
    use super::rows_and_elements;

    #[test]
    fn small_distances_are_rows_and_elements() {
        assert_eq!(rows_and_elements(-3, 0), Some((0, -3)));
        assert_eq!(rows_and_elements(65, 0), None);
        assert_eq!(rows_and_elements(1002, 1000), Some((1, 2)));
        assert_eq!(rows_and_elements(-8064, 1000), Some((-8, -64)));
        assert_eq!(rows_and_elements(9000, 1000), None);
        assert_eq!(rows_and_elements(1000, -1000), Some((-1, 0)));
        // Either would do: the rows of a short array.
        assert_eq!(rows_and_elements(90, 30), Some((3, 0)));
        assert_eq!(rows_and_elements(-51, 50), Some((-1, -1)));
        assert_eq!(rows_and_elements(101, 50), Some((2, 1)));
        assert_eq!(rows_and_elements(420, 40), None);
        assert_eq!(rows_and_elements(330, 40), Some((8, 10)));
        assert_eq!(rows_and_elements(380, 40), Some((8, 60)));
        // Narrow ones have one position.
        assert_eq!(rows_and_elements(9, 4), Some((0, 9)));
        assert_eq!(rows_and_elements(i64::MIN, i64::MAX / 20), None);
    }
}
