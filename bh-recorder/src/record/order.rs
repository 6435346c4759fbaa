//! In which order folds take their elements. It is decided when they are recorded, from the program alone: where batches end,
//! what runs meanwhile and what passes make of the program have no influence.
//!
//! A fold takes the elements of its input as they lie in memory. Most results of operations that are folded never get memory,
//! so an array is taken in the order of what it was computed from, for as long as few operations have read it.

use crate::record::Source;
use crate::state::State;
use crate::state::layout::Layout;
use bh_bytecode::{AxisOrder, MAX_RANK};

/// With this many readers a result counts as an array like any other, whose own memory is what matters.
const MOST_READERS: u8 = 32;

impl State {
    /// The order of a fold of `input` along a mask of axes.
    #[inline]
    pub(crate) fn fold_order(&mut self, input: u32, folded: u16) -> u16 {
        if self.is_in_c_order(input) { 0 } else { self.other_fold_order(input, folded) }
    }

    #[cold]
    fn other_fold_order(&mut self, input: u32, folded: u16) -> u16 {
        let handle = self.handles.at(input);
        let known = self.bases.at(handle.base).layout.of(&handle.view);
        let order = known.unwrap_or_else(|| AxisOrder::of_memory(handle.view.shape(), &[handle.view.stride()]));
        self.count_reader(input);
        order.backward_only(folded).code()
    }

    /// How an elementwise result in `out` is laid out for folds of it.
    #[inline]
    pub(crate) fn result_layout(&mut self, out: u32, sources: &[Source]) -> Layout {
        let plain = |source: &Source| match *source {
            Source::Handle(handle) => self.is_in_c_order(handle),
            Source::Constant(_) => true,
        };
        if sources.iter().all(plain) { Layout::default() } else { self.other_layout(out, sources) }
    }

    #[cold]
    fn other_layout(&mut self, out: u32, sources: &[Source]) -> Layout {
        let out = &self.handles.at(out).view;
        let rank = out.rank();
        let mut all = Vec::with_capacity(sources.len());
        let mut layout = Layout { view: out.hash, ..Layout::default() };
        for source in sources {
            let Source::Handle(handle) = *source else { continue };
            let handle = self.handles.at(handle);
            let known = &self.bases.at(handle.base).layout;
            let virtually = known.of(&handle.view).map(|order| order.strides());
            let own = virtually.as_ref().map_or(handle.view.stride(), |strides| &strides[..]);
            let mut strides = [0i64; MAX_RANK];
            let missing = rank - handle.view.rank();
            for (axis, (&extent, &stride)) in handle.view.shape().iter().zip(own).enumerate() {
                strides[missing + axis] = if extent == 1 { 0 } else { stride };
            }
            all.push(strides);
            if virtually.is_some() {
                layout.readers = layout.readers.max(known.readers + 1);
            }
        }
        let strides: Vec<&[i64]> = all.iter().map(|strides| &strides[..rank]).collect();
        if layout.readers < MOST_READERS {
            layout.code = AxisOrder::of_memory(out.shape(), &strides).code();
        }
        for source in sources {
            if let Source::Handle(handle) = *source {
                self.count_reader(handle);
            }
        }
        layout
    }

    #[inline]
    pub(crate) fn is_in_c_order(&self, handle: u32) -> bool {
        let handle = self.handles.at(handle);
        handle.view.in_c_order && self.bases.at(handle.base).layout.is_own()
    }

    /// Notes that some elements of an array were read.
    #[inline]
    pub(crate) fn note_read(&mut self, handle: u32) {
        if !self.bases.at(self.handles.at(handle).base).layout.is_own() {
            self.count_reader(handle);
        }
    }

    fn count_reader(&mut self, handle: u32) {
        let handle = self.handles.at(handle);
        let layout = &mut self.bases.at_mut(handle.base).layout;
        layout.readers = layout.readers.saturating_add(1);
        if layout.readers >= MOST_READERS {
            *layout = Layout::default();
        }
    }
}
