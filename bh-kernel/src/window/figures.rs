//! What windows make of a batch, in numbers: for benchmarks and reports, without an engine.

use super::{SlidingWindows, WindowOptions, windows};
use crate::{BufferRef, Lowered, Stage, Survey};

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
pub fn figures(survey: &Survey<'_>, bytes: i64) -> Figures {
    let windows = windows(survey, &WindowOptions { bytes, unit: &|_| Some(1) }, &[]);
    let mut figures = Figures::default();
    for block in (0..survey.batch.blocks.len() as u32).filter(|&block| survey.computes(block)) {
        let window = windows.of(block);
        figures.kernels += 1;
        figures.windowed += u32::from(window.is_some());
        if let Lowered::Loops(stages, _) = survey.block(block) {
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
