//! Settled data: memory of the recorder's own, or of the stack's that is mapped.

use crate::SendPtr;
use bh_core::abi::{Adoption, adopt, memory};
use bh_core::error::Result;
use bh_core::services::Services;
use std::ffi::c_void;
use std::sync::Arc;

/// Memory of a base, counted under the limit of the stack's memory.
pub(crate) struct Own {
    data: SendPtr,
    pub(crate) bytes: usize,
    services: Arc<Services>,
}

impl Own {
    /// Memory of `bytes` bytes, if the limit allows it.
    pub(crate) fn new(services: &Arc<Services>, bytes: u64, zeroed: bool) -> Option<Own> {
        let bytes = usize::try_from(bytes).ok()?;
        let data = SendPtr(services.memory().alloc(bytes, zeroed)?);
        Some(Own { data, bytes, services: services.clone() })
    }

    pub(crate) fn data(&self) -> *mut u8 {
        self.data.get()
    }

    /// Is its memory counted there?
    #[inline]
    pub(crate) fn is_counted_by(&self, services: &Arc<Services>) -> bool {
        Arc::ptr_eq(&self.services, services)
    }

    pub(crate) fn copied(&self) -> Option<Own> {
        let copy = Own::new(&self.services, self.bytes as u64, false)?;
        // SAFETY: both have `self.bytes` bytes.
        unsafe { std::ptr::copy_nonoverlapping(self.data(), copy.data(), self.bytes) };
        Some(copy)
    }

    /// Has the stack adopt it, in a mode of [`bh_core::abi::adopt`], and free it; if that fails, it is freed here, but for shared
    /// memory: somebody looks at that.
    pub(crate) fn give(self, mode: u32, adopt: impl FnOnce(&Adoption) -> Result<()>) -> Result<()> {
        let data = self.data().cast();
        let argument = Box::into_raw(Box::new(self)).cast();
        // SAFETY: the memory stays valid, used as the mode says, until the stack calls `give_back` with this argument.
        let adoption = unsafe { Adoption::new(data, mode, memory::HOST, Some(give_back), argument) };
        adopt(&adoption).inspect_err(|_| {
            if mode != adopt::SHARED {
                // SAFETY: memory that is not adopted is its owner's.
                unsafe { give_back(argument, data) };
            }
        })
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        // SAFETY: it comes from there, with as many bytes, and its owner ends.
        unsafe { self.services.memory().free(self.data.get(), self.bytes) };
    }
}

/// Frees memory that the stack had adopted, or did not adopt.
unsafe extern "C" fn give_back(argument: *mut c_void, _data: *mut c_void) {
    // SAFETY: `give` made the argument; this is called once.
    drop(unsafe { Box::from_raw(argument.cast::<Own>()) });
}

/// Where the data of a settled base lies.
pub(crate) enum Home {
    Own(Own),
    /// In the stack's memory, which is mapped until a batch uses the base.
    Map {
        data: SendPtr,
        writable: bool,
    },
}

/// The data of a settled base.
pub(crate) struct Settled {
    pub(crate) home: Home,
    /// The stack has the same data, or a batch that was handed over or is under construction gives it to the stack. Never of
    /// what is mapped, as the map has to be ended.
    pub(crate) given: bool,
}

impl Settled {
    #[inline]
    pub(crate) fn data(&self) -> *mut u8 {
        match &self.home {
            Home::Own(own) => own.data(),
            Home::Map { data, .. } => data.get(),
        }
    }

    /// May it be changed in place?
    #[inline]
    pub(crate) fn is_writable(&self) -> bool {
        matches!(self.home, Home::Own(_) | Home::Map { writable: true, .. })
    }
}
