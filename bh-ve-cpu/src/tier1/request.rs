//! What of a stage its machine code depends on.

use crate::program::{Geometry, Repeat};
use crate::simd::Isa;
use bh_bytecode::{DType, Opcode};
use bh_fuser::lower::{Dim, SlotMode, Stage, Step};
use bh_jit_abi::{Divider, Fetch, Folds, LANES, LONG_ROW, Level, Near, Request, SlotForm, Stride};

/// Slots that lie so close, in rows and then in elements, are addressed from one position.
const NEAR_ROWS: i64 = 8;
const NEAR: i64 = 64;
/// So many slots before one are looked at for its neighbour.
const NEIGHBOURS: usize = 256;
/// Elements of rows that are too short for positions of their own.
const NARROW: i64 = 16;

/// The level of compiled code for an instruction set; `None` if it has none.
pub(crate) fn level(isa: Isa) -> Option<Level> {
    match isa {
        Isa::Avx2 => Some(Level::Avx2),
        Isa::Avx512 => Some(Level::Avx512),
        Isa::Portable | Isa::Sse2 => None,
    }
}

/// How fast this processor's divider is.
pub(crate) fn divider() -> Divider {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::__cpuid;
        let (vendor, model) = (__cpuid(0), __cpuid(1).eax);
        let family = (model >> 8 & 15) + (model >> 20 & 255);
        let is_amd = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes).concat() == b"AuthenticAMD";
        // Zen 4, the first of them with such vectors, makes quotients of eight lanes in 10 cycles, Intel's processors in 16;
        // and it does other operations in halves.
        if is_amd && family == 0x19 {
            return Divider::Fast;
        }
    }
    Divider::Slow
}

/// Describes a stage for the compiler; `streams` tells which slots are written past the caches, `fetch` what is fetched for
/// each, `together` which ones are as far apart as their views. `None` if compiled code could not have the bits of block operations, or cannot do what
/// the stage does.
pub(crate) fn request(
    stage: &Stage,
    geometry: &Geometry,
    isa: Isa,
    (divider, fast_math): (Divider, bool),
    streams: impl Fn(u16) -> bool,
    fetch: impl Fn(usize) -> Fetch,
    together: impl Fn(usize, usize) -> bool,
) -> Option<Request> {
    let (kernel, parameters) = (&stage.kernel, &stage.parameters);
    let folds = match (kernel.reduces(), geometry.line_role()) {
        (false, _) => Folds::None,
        (true, Dim::Reduced) if geometry.joins_rows() => Folds::Columns,
        (true, Dim::Reduced) if geometry.steps.is_some() => Folds::Sets,
        // The lanes of blocks that span rows do not follow the rows.
        (true, Dim::Reduced) if geometry.spans() => return None,
        (true, Dim::Reduced) => Folds::Lanes,
        (true, Dim::Kept) if geometry.spans() => Folds::Elements,
        (true, Dim::Kept) if geometry.columns > 0 => Folds::Sets,
        (true, Dim::Kept) => Folds::Columns,
    };
    if kernel.steps.iter().any(|step| matches!(step, Step::Gather { .. })) {
        return None;
    }
    let inner = if geometry.spans() { geometry.line_dim + 1 } else { geometry.line_dim };
    let mut slots: Vec<SlotForm> = Vec::with_capacity(kernel.slots.len());
    for (index, slot) in kernel.slots.iter().enumerate() {
        let repeats = slot.mode == SlotMode::Read && geometry.repeats(parameters.stride(index));
        let repeat = match geometry.flat {
            true => {
                let strides = parameters.stride(index);
                Repeat::of(slot, (strides[geometry.line_dim], strides[inner]), geometry.row)?
            }
            false => Repeat::None,
        };
        let stride = match (slot.mode, parameters.stride(index)[inner]) {
            _ if repeat == Repeat::Again => Stride::Again,
            _ if repeat == Repeat::Cycle => Stride::Cycle,
            (SlotMode::Index, _) => Stride::Other,
            (SlotMode::Result, _) => Stride::Zero,
            _ if repeats => Stride::Unit,
            (_, 1) => Stride::Unit,
            (SlotMode::Read, 0) => Stride::Zero,
            (SlotMode::Read, step) if !slot.dtype.is_complex() => sparse(step),
            _ => Stride::Other,
        };
        let dense = stride == Stride::Unit;
        // What is repeated lies in memory of its own.
        let is_near = stride.step().is_some() && slot.mode == SlotMode::Read && !repeats;
        let near = if is_near { neighbour(stage, geometry, &slots, (index, stride), &together) } else { None };
        let is_row = !geometry.spans() || geometry.joins_rows() || geometry.flat;
        let streams = dense && slot.mode == SlotMode::Write && is_row && streams(index as u16);
        // Every row reads it again.
        let again =
            matches!(folds, Folds::Columns | Folds::Sets) && geometry.plane_stride(parameters.stride(index)) == 0;
        let fetch = if again { Fetch::Nothing } else { fetch(index) };
        slots.push(SlotForm { dtype: slot.dtype, mode: slot.mode, stride, streams, fetch, near });
    }
    let divides = kernel.steps.iter().any(|step| matches!(step, Step::Compute { opcode: Opcode::Divide, .. }));
    let row = match geometry.extents[inner] {
        row if geometry.joins_rows() => row * LANES as i64,
        row if geometry.flat => row * geometry.line,
        row => row,
    };
    let is_short = |slot: &SlotForm| {
        let bytes = row as usize * slot.dtype.size();
        slot.mode == SlotMode::Read && slot.stride == Stride::Zero && bytes < LONG_ROW
    };
    Some(Request {
        level: level(isa)?,
        divider,
        fast_math,
        in_order: false,
        short: divides && slots.iter().any(is_short),
        repeat: if geometry.flat { geometry.row as u8 } else { 0 },
        folds,
        slots,
        constants: kernel.constants.clone(),
        steps: kernel.steps.clone(),
    })
}

/// Can compiled code join the lanes of folded rows? Not where it does several rows side by side, and truth values and complex
/// numbers have other vectors in memory than in registers.
pub(crate) fn can_join(request: &Request) -> bool {
    let is_alone = |slot: &SlotForm| slot.near.is_none_or(|near| near.rows == 0);
    let is_plain =
        |slot: &SlotForm| slot.mode != SlotMode::Result || !(slot.dtype == DType::Bool || slot.dtype.is_complex());
    request.folds == Folds::Lanes && request.slots.iter().all(|slot| is_alone(slot) && is_plain(slot))
}

/// The form of a stride of so many elements, not 0 or 1.
fn sparse(step: i64) -> Stride {
    match step {
        2 => Stride::Two,
        3 => Stride::Three,
        4 => Stride::Four,
        _ => Stride::Other,
    }
}

/// An earlier slot at a small fixed distance from a slot. Those that leave out elements of memory are near each other where
/// their elements alternate.
fn neighbour(
    stage: &Stage,
    geometry: &Geometry,
    earlier: &[SlotForm],
    (index, stride): (usize, Stride),
    together: impl Fn(usize, usize) -> bool,
) -> Option<Near> {
    let parameters = &stage.parameters;
    let strides = parameters.stride(index);
    let pitch = if geometry.spans() && geometry.steps.is_none() && !geometry.flat {
        strides[geometry.line_dim]
    } else {
        geometry.plane_stride(strides)
    };
    earlier.iter().enumerate().skip(earlier.len().saturating_sub(NEIGHBOURS)).find_map(|(other, form)| {
        let moves_along = form.mode == SlotMode::Read
            && form.stride == stride
            && form.near.is_none()
            && form.dtype == stage.kernel.slots[index].dtype
            && parameters.stride(other) == strides
            && together(other, index);
        if !moves_along {
            return None;
        }
        let distance = parameters.starts[index].checked_sub(parameters.starts[other])?;
        let (rows, distance) = match stride.step() {
            Some(step @ 2..) => (0, (0..step as i16).find(|&between| i64::from(between) == distance)?),
            _ => split(distance, pitch)?,
        };
        Some(Near { slot: other as u16, rows, distance })
    })
}

/// A distance as rows and elements; `None` if it is not a small one. Elements are at most half a row, so that what lies in a
/// neighbouring row is found there, whatever the extents; but rows of fewer than [`NARROW`] elements are as few as possible,
/// as each has a position of its own.
fn split(distance: i64, pitch: i64) -> Option<(i8, i16)> {
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
    use super::split;

    #[test]
    fn small_distances_are_rows_and_elements() {
        assert_eq!(split(-3, 0), Some((0, -3)));
        assert_eq!(split(65, 0), None);
        assert_eq!(split(1002, 1000), Some((1, 2)));
        assert_eq!(split(-8064, 1000), Some((-8, -64)));
        assert_eq!(split(9000, 1000), None);
        assert_eq!(split(1000, -1000), Some((-1, 0)));
        // Either would do: the rows of a short array.
        assert_eq!(split(90, 30), Some((3, 0)));
        assert_eq!(split(-51, 50), Some((-1, -1)));
        assert_eq!(split(101, 50), Some((2, 1)));
        assert_eq!(split(420, 40), None);
        assert_eq!(split(330, 40), Some((8, 10)));
        assert_eq!(split(380, 40), Some((8, 60)));
        // Narrow ones have one position.
        assert_eq!(split(9, 4), Some((0, 9)));
        assert_eq!(split(i64::MIN, i64::MAX / 20), None);
    }
}
