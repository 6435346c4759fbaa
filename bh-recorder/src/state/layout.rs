//! The order in which folds take the elements of what an array was computed from.

use crate::array::small_view::SmallView;
use bh_bytecode::AxisOrder;

/// The order of what an array was computed from, seen through the view that was written last.
#[derive(Clone, Copy, Default)]
pub(crate) struct Layout {
    /// A code of [`AxisOrder`]; 0 for that of the array's own memory.
    pub(crate) code: u16,
    /// Operations that have read it, or what it was computed from, in this order.
    pub(crate) readers: u8,
    /// Hash of the view.
    pub(crate) view: u64,
}

impl Layout {
    /// The order for a view of the array, if there is one.
    pub(crate) fn of(&self, view: &SmallView) -> Option<AxisOrder> {
        if self.code == 0 || self.view != view.hash { None } else { AxisOrder::decode(self.code, view.rank()) }
    }

    #[inline]
    pub(crate) fn is_own(&self) -> bool {
        self.code == 0
    }

    /// The words that decide the orders of folds of a view; none if the orders are those of memory.
    pub(crate) fn words(&self, view: &SmallView) -> impl Iterator<Item = u64> + use<> {
        let word = u64::from(self.code) | u64::from(self.readers) << 16 | u64::from(self.view == view.hash) << 24;
        (!self.is_own()).then_some(word).into_iter()
    }
}
