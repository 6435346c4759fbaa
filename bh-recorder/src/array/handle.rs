//! An array handle that frees itself.

use crate::{ArrayId, Recorder};
use bh_core::error::Result;
use std::sync::Arc;

/// An array and the context that it belongs to. Dropped, it is freed when something is recorded or waited for next
/// ([`Recorder::free_later`]).
pub struct Array {
    context: Arc<Recorder>,
    id: ArrayId,
}

impl Array {
    /// Takes a handle of this context over.
    pub fn new(context: Arc<Recorder>, id: ArrayId) -> Array {
        Array { context, id }
    }

    /// Its number.
    pub fn id(&self) -> ArrayId {
        self.id
    }

    /// Its context.
    pub fn context(&self) -> &Arc<Recorder> {
        &self.context
    }

    /// A second handle on the same view.
    pub fn duplicate(&self) -> Result<Array> {
        let id = self.context.duplicate(self.id)?;
        Ok(Array::new(self.context.clone(), id))
    }
}

impl Drop for Array {
    fn drop(&mut self) {
        self.context.free_later(self.id);
    }
}
