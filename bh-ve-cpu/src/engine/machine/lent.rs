//! Where the memory of a block is, and programs bound to it.

use crate::block::{Binding, Program};
use crate::plan::{BlockPlan, temporary_bytes};
use bh_bytecode::BatchRef;
use bh_core::{Fresh, Loan};
use bh_kernel::{BufferRef, Temporary};

/// Where nothing lies: an address that suits every type.
const NOWHERE: usize = 64;

/// The memory of a block that runs.
#[derive(Clone, Copy)]
pub(super) struct Lent<'a> {
    pub(super) plan: &'a BlockPlan,
    /// One for each base of the plan.
    pub(super) bases: &'a [Loan],
    /// One for each rename of the plan.
    pub(super) fresh: &'a [Fresh],
    pub(super) temporaries: &'a [Temporary],
    /// Where the temporaries begin.
    pub(super) memory: *mut u8,
}

impl Lent<'_> {
    /// The memory of a buffer. A base that no element is seen of has none, but an address all the same, as libraries that
    /// methods call want one.
    pub(super) fn data(&self, buffer: BufferRef) -> *mut u8 {
        match buffer {
            BufferRef::Base(base) => {
                let at = self.plan.bases.iter().position(|lent| lent.base == base);
                at.map_or(std::ptr::without_provenance_mut(NOWHERE), |at| self.bases[at].data().cast())
            }
            BufferRef::Fresh(base) => {
                let at = self.plan.renames.iter().position(|rename| rename.base == base);
                at.map_or(std::ptr::null_mut(), |at| self.fresh[at].data().cast())
            }
            BufferRef::Temporary(number) => {
                let before: usize = self.temporaries[..number as usize].iter().map(temporary_bytes).sum();
                self.memory.wrapping_add(before)
            }
            BufferRef::None => std::ptr::null_mut(),
        }
    }

    /// Binds a program of the block.
    pub(super) fn bind(&self, batch: &BatchRef<'_>, program: &Program, binding: &mut Binding) {
        binding.slots.clear();
        binding.gathers.clear();
        binding.constants.clear();
        for slot in &program.slots {
            binding.slots.push(self.data(slot.buffer).wrapping_offset(slot.start));
        }
        for source in &program.gathers {
            let size = gather_size(batch, source.buffer);
            let data = self.data(source.buffer).wrapping_offset(source.start as isize * size as isize);
            binding.gathers.push(data);
        }
        for (dtype, constant) in &program.constants {
            binding.constants.push(constant.value(batch, *dtype).bytes());
        }
    }
}

/// Bytes per element of a gather's source.
fn gather_size(batch: &BatchRef<'_>, buffer: BufferRef) -> usize {
    match buffer {
        BufferRef::Base(base) | BufferRef::Fresh(base) => batch.bases[base as usize].dtype().size(),
        BufferRef::Temporary(_) | BufferRef::None => 1,
    }
}
