//! Bases, views and constants that passes add to the tables of a batch.

use crate::memory::OWN_BASES;
use bh_bytecode::{Base, Batch, View, base_flags};
use std::collections::HashMap;

/// The views of a batch, each once.
pub struct Views(HashMap<(u32, View), u32>);

impl Views {
    /// Those that are there.
    pub fn of(batch: &Batch) -> Views {
        let view = |index: u32| ((batch.views[index as usize].base, batch.as_ref().view(index)), index);
        Views((0..batch.views.len() as u32).rev().map(view).collect())
    }

    /// The number of a view of a base, which is added unless it is there.
    pub fn intern(&mut self, batch: &mut Batch, base: u32, view: View) -> u32 {
        let view = view.canonical();
        *self.0.entry((base, view)).or_insert_with(|| batch.push_view(base, &view))
    }
}

/// Adds a temporary of this shape, with the type of another base.
pub fn new_base(batch: &mut Batch, like: u32, shape: &[i64]) -> u32 {
    let id = OWN_BASES + batch.bases.len() as u64;
    let mut base = Base::new(id, batch.bases[like as usize].dtype(), shape.iter().product());
    base.flags = base_flags::BORN | base_flags::DIES;
    base.row_hint = shape.iter().skip(1).product();
    batch.push_base(base)
}
