//! Programs bound to memory.

use super::failure::Failure;
use super::program::Program;
use crate::primitives::Primitives;
use bh_bytecode::BatchRef;

/// The memory and values that a program runs on.
#[derive(Default)]
pub(crate) struct Binding {
    /// The first element of each slot; the first number of index views, as an address.
    pub(crate) slots: Vec<*mut u8>,
    /// The first element of each gather's source.
    pub(crate) gathers: Vec<*const u8>,
    /// The constants' bytes.
    pub(crate) constants: Vec<[u8; 16]>,
    /// Where failures go.
    pub(crate) failure: Failure,
}

impl Binding {
    /// Binds a program's slots, whose buffers lie at `data`, and its constants. It is left to the caller where sources of gathers
    /// lie.
    pub(crate) fn set(&mut self, batch: &BatchRef<'_>, program: &Program, data: impl Iterator<Item = *mut u8>) {
        self.slots.clear();
        self.slots.extend(data.zip(&program.slots).map(|(data, slot)| data.wrapping_offset(slot.start)));
        self.gathers.clear();
        self.constants.clear();
        self.constants.extend(program.constants.iter().map(|(dtype, it)| it.value(batch, *dtype).bytes()));
    }
}

// SAFETY: the memory behind the pointers is divided among the participants by the drivers.
unsafe impl Send for Binding {}
// SAFETY: as above.
unsafe impl Sync for Binding {}

/// A program on memory that fits it. Its runners rely on that: every step of the nest is inside all slots.
#[derive(Clone, Copy)]
pub(crate) struct Bound<'a> {
    pub(crate) program: &'a Program,
    pub(crate) binding: &'a Binding,
    pub(crate) primitives: Primitives,
}

impl<'a> Bound<'a> {
    /// Binds a program.
    ///
    /// # Safety
    /// Every slot must be valid for all iterations of the program's nest, and every source for its elements, and nobody else
    /// may write them, or read what the program writes, while it runs. Slots of line buffers need that where a sliding
    /// window says that they begin. The primitives must be those that the program was compiled with.
    pub(crate) unsafe fn new(program: &'a Program, binding: &'a Binding, primitives: Primitives) -> Bound<'a> {
        assert_eq!(binding.slots.len(), program.slots.len(), "a position for each slot");
        assert_eq!(binding.constants.len(), program.constants.len(), "a value for each constant");
        assert_eq!(binding.gathers.len(), program.gathers.len(), "a source for each gather");
        Bound { program, binding, primitives }
    }
}
