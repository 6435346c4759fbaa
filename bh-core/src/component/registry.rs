//! [`Registry`]: the array registry of the data manager as the components below it see it.

use super::child::with_view_spec;
use crate::abi::{AttachmentOps, BatchTables, Buffer, ErrorRecord, HOST_SPACE, RegistryTable, access};
use crate::error::{Error, RecordSpace, Result};
use bh_bytecode::{Base, BatchRef, View};
use std::ffi::c_void;
use std::ptr;

/// The data manager's services for the components below it. May be used from any thread that the component owns.
#[derive(Clone, Copy)]
pub struct Registry {
    pub(super) table: *const RegistryTable,
}

// SAFETY: the registry's functions may be called from any thread.
unsafe impl Send for Registry {}
// SAFETY: as above.
unsafe impl Sync for Registry {}

impl Registry {
    /// Wraps the registry's table.
    ///
    /// # Safety
    /// `table` must stay valid as long as the components below live.
    pub unsafe fn new(table: *const RegistryTable) -> Registry {
        Registry { table }
    }

    fn table(&self) -> &RegistryTable {
        // SAFETY: promised at construction.
        unsafe { &*self.table }
    }

    /// See [`RegistryTable::new_space`].
    pub fn new_space(&self) -> u32 {
        // SAFETY: a plain call.
        unsafe { (self.table().new_space)(self.table().context) }
    }

    /// Lends the host buffer of a base; see [`RegistryTable::acquire`] and [`access`].
    #[inline]
    pub fn acquire(&self, base: &Base, access: u32) -> Result<Buffer> {
        self.acquire_in(base, HOST_SPACE, access)
    }

    /// Lends the buffer of a base in a space; `data` is null if no valid copy is attached there.
    pub fn acquire_in(&self, base: &Base, space: u32, access: u32) -> Result<Buffer> {
        let mut buffer = Buffer { data: ptr::null_mut(), bytes: 0, token: 0 };
        let mut record = RecordSpace::new();
        // SAFETY: the pointers live through the call.
        let code = unsafe {
            (self.table().acquire)(self.table().context, base, space, access, &mut buffer, record.as_mut_ptr())
        };
        // A poisoned base's error comes from another batch, whose block and instruction numbers mean nothing here.
        record.check(code).map(|()| buffer).map_err(Error::unplaced)
    }

    /// Ends a loan.
    #[inline]
    pub fn release(&self, buffer: &Buffer) {
        // SAFETY: a plain call.
        unsafe { (self.table().release)(self.table().context, buffer) }
    }

    /// See [`RegistryTable::fresh`].
    pub fn fresh(&self, base: &Base) -> Result<Buffer> {
        let mut buffer = Buffer { data: ptr::null_mut(), bytes: 0, token: 0 };
        let mut record = RecordSpace::new();
        // SAFETY: the pointers live through the call.
        let code = unsafe { (self.table().fresh)(self.table().context, base, &mut buffer, record.as_mut_ptr()) };
        record.check(code).map(|()| buffer)
    }

    /// See [`RegistryTable::commit_rename`].
    pub fn commit_rename(&self, base: &Base, buffer: &Buffer) -> Result<()> {
        let mut record = RecordSpace::new();
        // SAFETY: the pointers live through the call.
        let code = unsafe { (self.table().commit_rename)(self.table().context, base, buffer, record.as_mut_ptr()) };
        record.check(code)
    }

    /// See [`RegistryTable::alias`].
    pub fn alias(&self, alias: &Base, base: &Base, view: &View) -> Result<()> {
        let mut record = RecordSpace::new();
        let code = with_view_spec(Some(view), |view| {
            // SAFETY: the pointers live through the call.
            unsafe { (self.table().alias)(self.table().context, alias, base, view, record.as_mut_ptr()) }
        });
        record.check(code)
    }

    /// See [`RegistryTable::attach`].
    ///
    /// # Safety
    /// `handle` and `operations` must work until `operations.drop` is called for the handle.
    pub unsafe fn attach(
        &self,
        base: &Base,
        space: u32,
        handle: *mut c_void,
        exclusive: bool,
        operations: &AttachmentOps,
    ) -> Result<()> {
        let mut record = RecordSpace::new();
        // SAFETY: promised by the caller.
        let code = unsafe {
            (self.table().attach)(
                self.table().context,
                base,
                space,
                handle,
                i32::from(exclusive),
                operations,
                record.as_mut_ptr(),
            )
        };
        record.check(code)
    }

    /// See [`RegistryTable::poison`].
    pub fn poison(&self, base: &Base, error: &Error) {
        let mut record = ErrorRecord::empty();
        error.clone().unplaced().write(&mut record);
        // SAFETY: the pointers live through the call.
        unsafe { (self.table().poison)(self.table().context, base, &record) }
    }

    /// See [`RegistryTable::block_done`].
    pub fn block_done(&self, batch: &BatchRef<'_>, block: u32) {
        let tables = BatchTables::new(batch);
        // SAFETY: the tables live through the call.
        unsafe { (self.table().block_done)(self.table().context, &tables, block) }
    }

    /// The access of an output that covers the whole base (`whole`) or a part of it.
    pub fn output_access(whole: bool) -> u32 {
        if whole { access::WRITE | access::DISCARD } else { access::WRITE }
    }
}
