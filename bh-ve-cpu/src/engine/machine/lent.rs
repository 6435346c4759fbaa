//! The memory that the registry lends.

use crate::plan::temporary_bytes;
use bh_bytecode::BatchRef;
use bh_core::{Fresh, Loan, Registry, Result};
use bh_kernel::{BaseUse, BufferRef, Temporary};

/// Where nothing lies: an address that suits every type.
const NOWHERE: usize = 64;

/// The memory of bases that are lent, and the fresh memory of those that are renamed.
#[derive(Default)]
pub(super) struct Lent {
    bases: Vec<(u32, Loan)>,
    fresh: Vec<(u32, Fresh)>,
}

impl Lent {
    /// Takes the memory of these bases, and fresh memory for those that are renamed. [`Lent::end`] gives back what it took, also
    /// if it fails.
    pub(super) fn take(
        &mut self,
        registry: &Registry,
        batch: &BatchRef<'_>,
        bases: &[BaseUse],
        renamed: impl Iterator<Item = u32>,
    ) -> Result<()> {
        drop(self.end());
        for lent in bases {
            self.bases.push((lent.base, registry.acquire(&batch.bases[lent.base as usize], lent.access)?));
        }
        for base in renamed {
            self.fresh.push((base, registry.fresh(&batch.bases[base as usize])?));
        }
        Ok(())
    }

    /// Ends the loans. The fresh memory is left, which is released if it is dropped.
    pub(super) fn end(&mut self) -> impl Iterator<Item = (u32, Fresh)> {
        self.bases.clear();
        self.fresh.drain(..)
    }

    /// The memory of a base.
    pub(super) fn base(&self, base: u32) -> Option<*mut u8> {
        self.bases.iter().find(|(lent, _)| *lent == base).map(|(_, loan)| loan.data().cast())
    }

    /// The fresh memory of a base.
    pub(super) fn fresh(&self, base: u32) -> Option<*mut u8> {
        self.fresh.iter().find(|(renamed, _)| *renamed == base).map(|(_, fresh)| fresh.data().cast())
    }

    /// The memory of a buffer of a block, whose temporaries begin at `memory`. A base that no element is seen of has none, but
    /// an address all the same, as libraries that methods call want one.
    pub(super) fn data(&self, buffer: BufferRef, temporaries: &[Temporary], memory: *mut u8) -> *mut u8 {
        match buffer {
            BufferRef::Base(base) => self.base(base).unwrap_or(std::ptr::without_provenance_mut(NOWHERE)),
            BufferRef::Fresh(base) => self.fresh(base).unwrap_or(std::ptr::null_mut()),
            BufferRef::Temporary(number) => {
                memory.wrapping_add(temporaries[..number as usize].iter().map(temporary_bytes).sum())
            }
            BufferRef::None => std::ptr::null_mut(),
        }
    }
}

/// Bytes per element of a gather's source.
pub(super) fn gather_size(batch: &BatchRef<'_>, buffer: BufferRef) -> usize {
    match buffer {
        BufferRef::Base(base) | BufferRef::Fresh(base) => batch.bases[base as usize].dtype().size(),
        BufferRef::Temporary(_) | BufferRef::None => 1,
    }
}
