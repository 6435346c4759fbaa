//! Loans while operations run immediately.

use bh_bytecode::BatchRef;
use bh_core::abi::access;
use bh_core::{Loan, Registry, Result};
use bh_kernel::BaseUse;

/// The loans of a batch's bases, and their addresses, while it runs operation by operation.
#[derive(Default)]
pub(super) struct Held {
    pub(super) bases: Vec<HeldBase>,
    /// A block's uses of its bases.
    pub(super) uses: Vec<BaseUse>,
}

/// A base that may be lent.
#[derive(Default)]
pub(super) struct HeldBase {
    pub(super) loan: Option<Loan>,
    writes: bool,
}

impl Held {
    /// Gives everything back, and gets ready for a batch of `bases` bases.
    pub(super) fn reset(&mut self, bases: usize) {
        self.bases.iter_mut().for_each(|base| base.loan = None);
        self.bases.resize_with(bases.max(self.bases.len()), HeldBase::default);
    }

    /// Takes the memory of a base for what a block does with it.
    pub(super) fn acquire(&mut self, registry: &Registry, batch: &BatchRef<'_>, used: BaseUse) -> Result<()> {
        let held = &mut self.bases[used.base as usize];
        let writes = used.access & access::WRITE != 0;
        if held.loan.is_none() || (writes && !held.writes) {
            // A loan for reading must not keep the base from changing.
            held.loan = None;
            held.loan = Some(registry.acquire(&batch.bases[used.base as usize], used.access)?);
            held.writes = writes;
        }
        Ok(())
    }

    pub(super) fn data(&self, base: u32) -> Option<*mut u8> {
        self.bases.get(base as usize)?.loan.as_ref().map(|loan| loan.data().cast())
    }
}
