//! What windows make of a batch, in numbers: for benchmarks and reports, without an engine.

use super::{SlidingWindows, WindowOptions, windows};
use crate::{BufferRef, Lowered, Stage};
use bh_bytecode::BatchRef;

/// The kernels, windows and bytes of a batch with a partition. Bytes are those between memory and kernels: for each kernel
/// each array that it reads, and each that it writes, counts once; arrays of a window as [`super::SlidingWindow::bytes`] says.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Kernels that compute.
    pub kernels: u32,
    /// Kernels that run in windows.
    pub windowed: u32,
    /// Bytes if every kernel runs on its own.
    pub plain_bytes: u64,
    /// Bytes with windows.
    pub bytes: u64,
    /// The windows, and why others are none.
    pub windows: SlidingWindows,
}

impl Figures {
    /// What runs one after the other: windows, and kernels in none.
    pub fn turns(&self) -> u32 {
        self.kernels - self.windowed + self.windows.found.len() as u32
    }
}

/// The figures of a batch whose arrays are far larger than a cache; `bytes` of their rows fit it.
pub fn figures(batch: &BatchRef<'_>, bytes: i64) -> Figures {
    let mut windows = windows(batch, &WindowOptions { bytes, unit: &|_| Some(1) });
    if windows.lowered.is_empty() {
        windows.lowered = (0..batch.blocks.len() as u32).map(|block| crate::lower(batch, block)).collect();
    }
    let mut figures = Figures::default();
    for (block, lowered) in (0..).zip(&windows.lowered) {
        let window = windows.of(block);
        figures.kernels += u32::from(*lowered != Lowered::Nothing);
        figures.windowed += u32::from(*lowered != Lowered::Nothing && window.is_some());
        if let Lowered::Loops(stages, _) = lowered {
            let own: u64 = stages.iter().map(traffic).sum();
            figures.plain_bytes += own;
            figures.bytes += if window.is_none() { own } else { 0 };
        }
    }
    // What a window saves is measured within it; what its kernels move in all, as for all others.
    for window in &windows.found {
        figures.bytes += window.bytes;
    }
    figures.windows = windows;
    figures
}

/// Bytes between memory and a nest.
fn traffic(stage: &Stage) -> u64 {
    let parameters = &stage.parameters;
    let mut known: Vec<(BufferRef, bool, u64)> = Vec::new();
    for (slot, &buffer) in parameters.buffers.iter().enumerate() {
        if matches!(buffer, BufferRef::None | BufferRef::Temporary(_)) {
            continue;
        }
        let write = stage.kernel.slots[slot].mode.writes();
        let moving = parameters.extents.iter().zip(parameters.stride(slot)).filter(|(_, stride)| **stride != 0);
        let elements: i64 = moving.map(|(extent, _)| extent).product();
        let bytes = elements as u64 * stage.kernel.slots[slot].dtype.size() as u64;
        match known.iter_mut().find(|(other, mode, _)| (*other, *mode) == (buffer, write)) {
            Some((.., most)) => *most = bytes.max(*most),
            None => known.push((buffer, write, bytes)),
        }
    }
    known.iter().map(|(.., bytes)| bytes).sum()
}
