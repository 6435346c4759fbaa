//! Known values of bases of one element.

use bh_bytecode::Constant;
use bh_core::component::SharedCalls;
use std::sync::Arc;

/// Computes operations on scalars, from any thread.
pub(crate) type Evaluator = Arc<dyn SharedCalls>;

/// The known value of a base of one element.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scalar {
    pub(crate) value: Constant,
    /// A batch writes it, or has written it.
    pub(crate) written: bool,
}

impl Scalar {
    /// Where its value lies.
    pub(crate) fn data(&self) -> *const u8 {
        self.value.bits.as_ptr().cast()
    }

    /// As [`Scalar::data`], to overwrite it.
    pub(crate) fn data_mut(&mut self) -> *mut u8 {
        self.value.bits.as_mut_ptr().cast()
    }
}
