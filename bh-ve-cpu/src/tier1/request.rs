//! What of a stage its machine code depends on.

use crate::program::Geometry;
use crate::simd::Isa;
use bh_fuser::lower::{Dim, SlotMode, Stage, Step};
use bh_jit_abi::{Folds, Level, Near, Request, SlotForm, Stride};

/// Slots that lie so close, in elements, are addressed from one position.
const NEAR: i64 = 16;

/// The level of compiled code for an instruction set; `None` if it has none.
pub(crate) fn level(isa: Isa) -> Option<Level> {
    match isa {
        Isa::Avx2 => Some(Level::Avx2),
        Isa::Avx512 => Some(Level::Avx512),
        Isa::Portable | Isa::Sse2 => None,
    }
}

/// Describes a stage for the compiler; `streams` tells which slots are written past the caches. `None` if compiled code
/// could not have the bits of block operations, or cannot do what the stage does.
pub(crate) fn request(
    stage: &Stage,
    geometry: &Geometry,
    isa: Isa,
    fast_math: bool,
    streams: impl Fn(u16) -> bool,
) -> Option<Request> {
    let (kernel, parameters) = (&stage.kernel, &stage.parameters);
    let folds = match (kernel.reduces(), geometry.line_role()) {
        (false, _) => Folds::None,
        // The lanes of blocks that span rows do not follow the rows.
        (true, Dim::Reduced) if geometry.spans() => return None,
        (true, Dim::Reduced) => Folds::Lanes,
        (true, Dim::Kept) => Folds::Elements,
    };
    let complex = kernel.slots.iter().any(|slot| slot.dtype.is_complex())
        || kernel.constants.iter().any(|dtype| dtype.is_complex());
    if complex || kernel.steps.iter().any(|step| matches!(step, Step::Gather { .. })) {
        return None;
    }
    let inner = if geometry.spans() { geometry.line_dim + 1 } else { geometry.line_dim };
    let mut slots: Vec<SlotForm> = Vec::with_capacity(kernel.slots.len());
    for (index, slot) in kernel.slots.iter().enumerate() {
        let stride = match (slot.mode, parameters.stride(index)[inner]) {
            (SlotMode::Index, _) => Stride::Other,
            (SlotMode::Result, _) => Stride::Zero,
            (_, 1) => Stride::Unit,
            (SlotMode::Read, 0) => Stride::Zero,
            _ => Stride::Other,
        };
        let dense = stride == Stride::Unit;
        let near = if dense && slot.mode == SlotMode::Read { neighbour(stage, &slots, index) } else { None };
        let streams = dense && slot.mode == SlotMode::Write && !geometry.spans() && streams(index as u16);
        slots.push(SlotForm { dtype: slot.dtype, mode: slot.mode, stride, streams, near });
    }
    Some(Request {
        level: level(isa)?,
        fast_math,
        folds,
        slots,
        constants: kernel.constants.clone(),
        steps: kernel.steps.clone(),
    })
}

/// An earlier slot at a small fixed distance from a slot, along all lines.
fn neighbour(stage: &Stage, earlier: &[SlotForm], index: usize) -> Option<Near> {
    let parameters = &stage.parameters;
    earlier.iter().enumerate().find_map(|(other, form)| {
        let distance = parameters.starts[index] - parameters.starts[other];
        let together = form.mode == SlotMode::Read
            && form.stride == Stride::Unit
            && form.near.is_none()
            && form.dtype == stage.kernel.slots[index].dtype
            && parameters.buffers[other] == parameters.buffers[index]
            && parameters.stride(other) == parameters.stride(index)
            && distance.abs() <= NEAR;
        together.then_some(Near { slot: other as u16, rows: 0, distance: distance as i16 })
    })
}
