//! [`Registry`]: the data manager's array registry as the components below see it, and the loans that it makes.

use crate::abi::wire::view_spec;
use crate::abi::{
    self, AttachmentOps, BatchTables, ErrorRecord, HOST_SPACE, HostMemory, RegistryTable, Residency, access,
};
use crate::error::{Error, RecordSpace, Result};
use bh_bytecode::{Base, BatchRef, View};
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ptr;

/// The data manager's services for the components below it. May be used from any thread that the component owns.
#[derive(Clone, Copy)]
pub struct Registry {
    table: *const RegistryTable,
}

// SAFETY: the registry's functions may be called from any thread.
unsafe impl Send for Registry {}
// SAFETY: as above.
unsafe impl Sync for Registry {}

/// A lent buffer of a base, which does not move until this value is dropped.
#[derive(Debug)]
pub struct Loan {
    table: *const RegistryTable,
    record: abi::Loan,
}

/// A second buffer of a base, for its next version, until [`Registry::commit_rename`] or drop.
#[derive(Debug)]
pub struct Fresh {
    table: *const RegistryTable,
    record: abi::Fresh,
}

// SAFETY: a loan may end on any thread; the value only returns the address, and using it needs `unsafe`.
unsafe impl Send for Loan {}
// SAFETY: as above; nothing is changed through a shared reference.
unsafe impl Sync for Loan {}
// SAFETY: the buffer may be dropped on any thread; the value only returns the address, and using it needs `unsafe`.
unsafe impl Send for Fresh {}
// SAFETY: nothing is changed through a shared reference.
unsafe impl Sync for Fresh {}

macro_rules! buffers {
    ($($type:ident: $end:ident;)*) => {$(
        impl $type {
            /// Element 0 of the base in host memory, or the engine's own handle, null if it has none.
            #[inline]
            pub fn data(&self) -> *mut c_void {
                self.record.data
            }

            /// Bytes.
            #[inline]
            pub fn bytes(&self) -> usize {
                self.record.bytes
            }
        }

        impl Drop for $type {
            #[inline]
            fn drop(&mut self) {
                if self.record.token != 0 {
                    // SAFETY: the table is valid as long as its loans are used, as [`Registry::new`] asks; the
                    // record is one of its own.
                    unsafe { ((*self.table).$end)((*self.table).context, &self.record) }
                }
            }
        }
    )*};
}
buffers! {
    Loan: release;
    Fresh: drop_fresh;
}

impl Registry {
    /// Wraps the registry's table.
    ///
    /// # Safety
    /// `table` must point to a table that is valid, with the context of its functions, as long as this value, a copy of
    /// it, or a [`Loan`] or [`Fresh`] of it is used.
    pub unsafe fn new(table: *const RegistryTable) -> Registry {
        Registry { table }
    }

    /// The registry's table.
    pub fn as_ptr(self) -> *const RegistryTable {
        self.table
    }

    fn table(&self) -> &RegistryTable {
        // SAFETY: [`Registry::new`] asks for a table that is valid as long as the value is used.
        unsafe { &*self.table }
    }

    /// See [`RegistryTable::new_space`].
    pub fn new_space(&self) -> u32 {
        // SAFETY: the function and the context are the table's, which is valid, as [`Registry::new`] asks.
        unsafe { (self.table().new_space)(self.table().context) }
    }

    /// Lends the host buffer of a base; see [`RegistryTable::acquire`] and [`access`].
    #[inline]
    pub fn acquire(&self, base: &Base, access: u32) -> Result<Loan> {
        self.acquire_in(base, HOST_SPACE, access)
    }

    /// Lends the buffer of a base in a space; `data` is null if no valid copy is attached there.
    #[inline]
    pub fn acquire_in(&self, base: &Base, space: u32, access: u32) -> Result<Loan> {
        let mut lent = abi::Loan { data: ptr::null_mut(), bytes: 0, token: 0 };
        let mut record = RecordSpace::new();
        // SAFETY: the function and the context are the table's, which is valid, as [`Registry::new`] asks; the pointers
        // live through the call.
        let code = unsafe {
            (self.table().acquire)(self.table().context, base, space, access, &mut lent, record.as_mut_ptr())
        };
        // A poisoned base's error comes from another batch, whose block and instruction numbers mean nothing here.
        record.check(code).map(|()| Loan { table: self.table, record: lent }).map_err(Error::unplaced)
    }

    /// See [`RegistryTable::fresh`].
    pub fn fresh(&self, base: &Base) -> Result<Fresh> {
        let mut lent = abi::Fresh { data: ptr::null_mut(), bytes: 0, token: 0 };
        let mut record = RecordSpace::new();
        // SAFETY: the function and the context are the table's, which is valid, as [`Registry::new`] asks; the pointers
        // live through the call.
        let code = unsafe { (self.table().fresh)(self.table().context, base, &mut lent, record.as_mut_ptr()) };
        record.check(code).map(|()| Fresh { table: self.table, record: lent })
    }

    /// See [`RegistryTable::commit_rename`].
    pub fn commit_rename(&self, base: &Base, fresh: Fresh) -> Result<()> {
        let fresh = ManuallyDrop::new(fresh);
        let mut record = RecordSpace::new();
        // SAFETY: the function and the context are the table's, which is valid, as [`Registry::new`] asks; the pointers
        // live through the call.
        let code =
            unsafe { (self.table().commit_rename)(self.table().context, base, &fresh.record, record.as_mut_ptr()) };
        record.check(code)
    }

    /// See [`RegistryTable::alias`].
    pub fn alias(&self, alias: &Base, base: &Base, view: &View) -> Result<()> {
        let mut record = RecordSpace::new();
        // SAFETY: the function and the context are the table's, which is valid, as [`Registry::new`] asks; the pointers
        // live through the call.
        let code =
            unsafe { (self.table().alias)(self.table().context, alias, base, &view_spec(view), record.as_mut_ptr()) };
        record.check(code)
    }

    /// See [`RegistryTable::attach`].
    ///
    /// # Safety
    /// `operations` must work for `handle`, on any thread, from this call on, and if it succeeds until their `drop` is
    /// called for it.
    pub unsafe fn attach(
        &self,
        base: &Base,
        space: u32,
        handle: *mut c_void,
        exclusive: bool,
        operations: &AttachmentOps,
    ) -> Result<()> {
        let mut record = RecordSpace::new();
        // SAFETY: the functions work for `handle` until `drop` is called, as `# Safety` asks, and the data manager
        // calls none afterwards; the other pointers live through the call.
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
        // SAFETY: the function and the context are the table's, which is valid, as [`Registry::new`] asks; the pointers
        // live through the call.
        unsafe { (self.table().poison)(self.table().context, base, &record) }
    }

    /// See [`RegistryTable::block_done`].
    pub fn block_done(&self, batch: &BatchRef<'_>, block: u32) {
        let tables = BatchTables::new(batch);
        // SAFETY: the function and the context are the table's, which is valid, as [`Registry::new`] asks; the tables
        // live through the call.
        unsafe { (self.table().block_done)(self.table().context, &tables, block) }
    }

    /// Performs a SYNC, FREE or DISCARD (of [`abi::retire`]) on one base; see [`RegistryTable::retire`].
    pub fn retire(&self, base: &Base, action: u32) -> Result<()> {
        let mut record = RecordSpace::new();
        // SAFETY: the function and the context are the table's, which is valid, as [`Registry::new`] asks; the pointers
        // live through the call.
        let code = unsafe { (self.table().retire)(self.table().context, base, action, record.as_mut_ptr()) };
        record.check(code)
    }

    /// See [`RegistryTable::detach`].
    pub fn detach(&self, base: &Base, space: u32) -> Result<()> {
        let mut record = RecordSpace::new();
        // SAFETY: the function and the context are the table's, which is valid, as [`Registry::new`] asks; the pointers
        // live through the call.
        let code = unsafe { (self.table().detach)(self.table().context, base, space, record.as_mut_ptr()) };
        record.check(code)
    }

    /// See [`RegistryTable::residency`].
    pub fn residency(&self, base: &Base) -> Residency {
        let mut residency = Residency::default();
        // SAFETY: the function and the context are the table's, which is valid, as [`Registry::new`] asks; the pointers
        // live through the call.
        unsafe { (self.table().residency)(self.table().context, base, &mut residency) };
        residency
    }

    /// Copies the elements of a view to host memory; see [`RegistryTable::read`].
    pub fn read(&self, base: &Base, view: &View, memory: &HostMemory) -> Result<()> {
        let mut record = RecordSpace::new();
        // SAFETY: the function and the context are the table's, which is valid, as [`Registry::new`] asks; the pointers
        // live through the call, and `memory` is as [`HostMemory::new`] asks.
        let code =
            unsafe { (self.table().read)(self.table().context, base, &view_spec(view), memory, record.as_mut_ptr()) };
        record.check(code).map_err(Error::unplaced)
    }

    /// Overwrites the elements of a view from host memory; see [`RegistryTable::write`].
    pub fn write(&self, base: &Base, view: &View, memory: &HostMemory) -> Result<()> {
        let mut record = RecordSpace::new();
        // SAFETY: the function and the context are the table's, which is valid, as [`Registry::new`] asks; the pointers
        // live through the call, and `memory` is as [`HostMemory::new`] asks.
        let code =
            unsafe { (self.table().write)(self.table().context, base, &view_spec(view), memory, record.as_mut_ptr()) };
        record.check(code).map_err(Error::unplaced)
    }

    /// The access mode of an output that covers the whole base (`whole`) or a part of it.
    pub fn output_access(whole: bool) -> u32 {
        if whole { access::WRITE | access::DISCARD } else { access::WRITE }
    }
}
