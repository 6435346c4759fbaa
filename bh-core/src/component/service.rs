//! The providing side of the registry: [`RegistryService`], which a data manager implements, and the C table over it.

use crate::abi::wire::read_view;
use crate::abi::{
    AttachmentOps, BatchTables, ErrorRecord, Fresh, HOST_SPACE, HostMemory, Loan, RegistryTable, Residency, Status,
    ViewSpec, status,
};
use crate::error::{Error, Result};
use bh_bytecode::{Base, BatchRef, View};
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The services of a data manager for the components below it, as documented in [`RegistryTable`]. May be called from
/// any thread. Panics become errors.
#[allow(unused_variables)]
pub trait RegistryService: Sync {
    /// See [`RegistryTable::new_space`].
    fn new_space(&self) -> u32 {
        HOST_SPACE + 1
    }

    /// See [`RegistryTable::acquire`].
    fn acquire(&self, base: &Base, space: u32, access: u32) -> Result<Loan>;

    /// Ends the loan with this token.
    fn release(&self, token: u64);

    /// See [`RegistryTable::fresh`].
    fn fresh(&self, base: &Base) -> Result<Fresh> {
        Err(unsupported("fresh"))
    }

    /// Drops the fresh buffer with this token.
    fn drop_fresh(&self, token: u64) {}

    /// Makes the fresh buffer with this token the base's.
    fn commit_rename(&self, base: &Base, token: u64) -> Result<()> {
        Err(unsupported("commit_rename"))
    }

    /// See [`RegistryTable::alias`].
    fn alias(&self, alias: &Base, base: &Base, view: &View) -> Result<()> {
        Err(unsupported("alias"))
    }

    /// See [`RegistryTable::attach`].
    ///
    /// # Safety
    /// `operations` must work for `handle`, on any thread, from this call on, and if it succeeds until their `drop` is
    /// called for it.
    unsafe fn attach(
        &self,
        base: &Base,
        space: u32,
        handle: *mut c_void,
        exclusive: bool,
        operations: AttachmentOps,
    ) -> Result<()> {
        Err(unsupported("attach"))
    }

    /// See [`RegistryTable::poison`].
    fn poison(&self, base: &Base, error: Error);

    /// See [`RegistryTable::block_done`].
    fn block_done(&self, batch: &BatchRef<'_>, block: u32);

    /// See [`RegistryTable::retire`].
    fn retire(&self, base: &Base, action: u32) -> Result<()> {
        Err(unsupported("retire"))
    }

    /// See [`RegistryTable::detach`].
    fn detach(&self, base: &Base, space: u32) -> Result<()> {
        Err(unsupported("detach"))
    }

    /// See [`RegistryTable::residency`].
    fn residency(&self, base: &Base) -> Residency {
        Residency::default()
    }

    /// See [`RegistryTable::read`].
    fn read(&self, base: &Base, view: &View, memory: &HostMemory) -> Result<()> {
        Err(unsupported("read"))
    }

    /// See [`RegistryTable::write`].
    fn write(&self, base: &Base, view: &View, memory: &HostMemory) -> Result<()> {
        Err(unsupported("write"))
    }
}

fn unsupported(what: &str) -> Error {
    Error::new(status::UNSUPPORTED, format!("this data manager has no '{what}'"))
}

/// The C table over a service.
///
/// # Safety
/// The service must live at this address, without an exclusive reference to it, as long as the table is used.
pub unsafe fn registry_table<S: RegistryService>(service: *const S) -> RegistryTable {
    RegistryTable {
        struct_size: size_of::<RegistryTable>(),
        context: service.cast_mut().cast(),
        new_space: new_space::<S>,
        acquire: acquire::<S>,
        release: release::<S>,
        fresh: fresh::<S>,
        drop_fresh: drop_fresh::<S>,
        commit_rename: commit_rename::<S>,
        alias: alias::<S>,
        attach: attach::<S>,
        poison: poison::<S>,
        block_done: block_done::<S>,
        retire: retire::<S>,
        detach: detach::<S>,
        residency: residency::<S>,
        read: read::<S>,
        write: write::<S>,
    }
}

/// Runs the body of a service: does not unwind, and failures fill the record.
///
/// # Safety
/// `context` must come from a table of [`registry_table`] for the same type; `error` must be null or writable,
/// exclusively.
#[inline]
unsafe fn serve<S: RegistryService>(
    context: *mut c_void,
    error: *mut ErrorRecord,
    work: impl FnOnce(&S) -> Result<()>,
) -> Status {
    // SAFETY: the context is the address of the service, which lives as long as its table is used, as `registry_table`
    // asks.
    let service = unsafe { &*context.cast::<S>() };
    let outcome = catch_unwind(AssertUnwindSafe(|| work(service)))
        .unwrap_or_else(|_| Err(Error::new(status::PANIC, "the array registry panicked")));
    match outcome {
        Ok(()) => status::OK,
        Err(failure) if error.is_null() => failure.status,
        // SAFETY: not null, and so writable, as `# Safety` asks; the whole record is filled before it is borrowed.
        Err(failure) => unsafe {
            error.write(ErrorRecord::empty());
            failure.write(&mut *error)
        },
    }
}

/// The base that a component passed.
///
/// # Safety
/// The pointer must be null or point to a base that lives through `'a`.
#[inline]
unsafe fn named<'a>(base: *const Base) -> Result<&'a Base> {
    // SAFETY: null, or a base that lives through `'a`, as `# Safety` asks.
    unsafe { base.as_ref() }.ok_or_else(|| Error::new(status::ARGUMENT, "the pointer to the base is null"))
}

/// The caller's memory for a result.
///
/// # Safety
/// The pointer must be null, or writable through `'a`, exclusively.
#[inline]
unsafe fn place<'a, T>(place: *mut T) -> Result<&'a mut std::mem::MaybeUninit<T>> {
    // SAFETY: null, or writable through `'a`, as `# Safety` asks; its content may be uninitialised, and is not read.
    unsafe { place.cast::<std::mem::MaybeUninit<T>>().as_mut() }
        .ok_or_else(|| Error::new(status::ARGUMENT, "the pointer to the place for the result is null"))
}

/// A record or a memory description that a component passed.
///
/// # Safety
/// The pointer must be null or point to a value that lives through `'a`.
#[inline]
unsafe fn given<'a, T>(value: *const T) -> Result<&'a T> {
    // SAFETY: null, or a value that lives through `'a`, as `# Safety` asks.
    unsafe { value.as_ref() }.ok_or_else(|| Error::new(status::ARGUMENT, "a pointer is null"))
}

/// Runs the body of a service that cannot fail.
///
/// # Safety
/// `context` must satisfy [`serve`].
#[inline]
unsafe fn serve_quietly<S: RegistryService>(context: *mut c_void, work: impl FnOnce(&S) -> Result<()>) {
    // SAFETY: `serve` has the same contract for the context, and accepts a null record.
    unsafe { serve(context, std::ptr::null_mut(), work) };
}

unsafe extern "C" fn new_space<S: RegistryService>(context: *mut c_void) -> u32 {
    let mut space = HOST_SPACE;
    // SAFETY: the context is the service's.
    unsafe {
        serve_quietly(context, |service: &S| {
            space = service.new_space();
            Ok(())
        });
    }
    space
}

unsafe extern "C" fn acquire<S: RegistryService>(
    context: *mut c_void,
    base: *const Base,
    space: u32,
    access: u32,
    loan: *mut Loan,
    error: *mut ErrorRecord,
) -> Status {
    // SAFETY: the context is the service's, and callers' pointers are null or live through the call.
    unsafe {
        serve(context, error, |service: &S| {
            place(loan)?.write(service.acquire(named(base)?, space, access)?);
            Ok(())
        })
    }
}

unsafe extern "C" fn release<S: RegistryService>(context: *mut c_void, loan: *const Loan) {
    // SAFETY: the context is the service's, and callers' pointers are null or live through the call.
    unsafe {
        serve_quietly(context, |service: &S| {
            service.release(given(loan)?.token);
            Ok(())
        });
    }
}

unsafe extern "C" fn fresh<S: RegistryService>(
    context: *mut c_void,
    base: *const Base,
    fresh: *mut Fresh,
    error: *mut ErrorRecord,
) -> Status {
    // SAFETY: the context is the service's, and callers' pointers are null or live through the call.
    unsafe {
        serve(context, error, |service: &S| {
            place(fresh)?.write(service.fresh(named(base)?)?);
            Ok(())
        })
    }
}

unsafe extern "C" fn drop_fresh<S: RegistryService>(context: *mut c_void, fresh: *const Fresh) {
    // SAFETY: the context is the service's, and callers' pointers are null or live through the call.
    unsafe {
        serve_quietly(context, |service: &S| {
            service.drop_fresh(given(fresh)?.token);
            Ok(())
        });
    }
}

unsafe extern "C" fn commit_rename<S: RegistryService>(
    context: *mut c_void,
    base: *const Base,
    fresh: *const Fresh,
    error: *mut ErrorRecord,
) -> Status {
    // SAFETY: the context is the service's, and callers' pointers are null or live through the call.
    unsafe { serve(context, error, |service: &S| service.commit_rename(named(base)?, given(fresh)?.token)) }
}

unsafe extern "C" fn alias<S: RegistryService>(
    context: *mut c_void,
    alias: *const Base,
    base: *const Base,
    view: *const ViewSpec,
    error: *mut ErrorRecord,
) -> Status {
    // SAFETY: the context is the service's, and callers' pointers are null or live through the call.
    unsafe { serve(context, error, |service: &S| service.alias(named(alias)?, named(base)?, &view_of(view)?)) }
}

/// The view that a component passed.
///
/// # Safety
/// The pointer must be null, or point to a description with `rank` extents and strides, which live through the call.
unsafe fn view_of(view: *const ViewSpec) -> Result<View> {
    // SAFETY: null, or a description with `rank` extents and strides, as `# Safety` asks.
    unsafe {
        view.as_ref()
            .ok_or_else(|| Error::new(status::ARGUMENT, "the pointer to the view is null"))
            .and_then(|view| read_view(view))
    }
}

unsafe extern "C" fn attach<S: RegistryService>(
    context: *mut c_void,
    base: *const Base,
    space: u32,
    handle: *mut c_void,
    exclusive: i32,
    operations: *const AttachmentOps,
    error: *mut ErrorRecord,
) -> Status {
    // SAFETY: the context is the service's, and callers' pointers are null or live through the call; the functions work
    // for the handle until their `drop` is called, as [`RegistryTable::attach`] asks of engines.
    unsafe {
        serve(context, error, |service: &S| {
            let operations = read_operations(operations)?;
            service.attach(named(base)?, space, handle, exclusive != 0, operations)
        })
    }
}

/// The functions of an attachment; functions that an older, shorter struct lacks are null.
///
/// # Safety
/// The pointer must be null or point to a struct of the size that it states.
unsafe fn read_operations(operations: *const AttachmentOps) -> Result<AttachmentOps> {
    /// The functions as the component passed them, any of them null.
    #[repr(C)]
    struct Head {
        struct_size: usize,
        context: *mut c_void,
        to_host: *const c_void,
        drop: *const c_void,
    }
    let refuse = |text: &str| Err(Error::new(status::ARGUMENT, format!("attach: {text}")));
    if operations.is_null() {
        return refuse("there are no functions for the copy");
    }
    // SAFETY: every version begins with these fields; the struct has `size` bytes, and all-zero bytes are null
    // functions.
    unsafe {
        let head = &*operations.cast::<Head>();
        let size = head.struct_size;
        if size < size_of::<Head>() || size > 1 << 12 || size % size_of::<usize>() != 0 {
            return refuse(&format!("the functions' struct states a size of {size} bytes"));
        }
        if head.to_host.is_null() || head.drop.is_null() {
            return refuse("'to_host' and 'drop' must not be null");
        }
        let mut copy = std::mem::MaybeUninit::<AttachmentOps>::zeroed();
        let bytes = size.min(size_of::<AttachmentOps>());
        std::ptr::copy_nonoverlapping(operations.cast::<u8>(), copy.as_mut_ptr().cast::<u8>(), bytes);
        Ok(copy.assume_init())
    }
}

unsafe extern "C" fn poison<S: RegistryService>(context: *mut c_void, base: *const Base, error: *const ErrorRecord) {
    // SAFETY: the context is the service's, and callers' pointers are null or live through the call.
    unsafe {
        serve_quietly(context, |service: &S| {
            let error = given(error)?;
            service.poison(named(base)?, Error::read(error.status, error));
            Ok(())
        });
    }
}

unsafe extern "C" fn block_done<S: RegistryService>(context: *mut c_void, batch: *const BatchTables, block: u32) {
    // SAFETY: the context is the service's, and callers' pointers are null or live through the call, as do the tables
    // behind `batch`.
    unsafe {
        serve_quietly(context, |service: &S| {
            service.block_done(&given(batch)?.as_ref(), block);
            Ok(())
        });
    }
}

unsafe extern "C" fn retire<S: RegistryService>(
    context: *mut c_void,
    base: *const Base,
    action: u32,
    error: *mut ErrorRecord,
) -> Status {
    // SAFETY: the context is the service's, and callers' pointers are null or live through the call.
    unsafe { serve(context, error, |service: &S| service.retire(named(base)?, action)) }
}

unsafe extern "C" fn detach<S: RegistryService>(
    context: *mut c_void,
    base: *const Base,
    space: u32,
    error: *mut ErrorRecord,
) -> Status {
    // SAFETY: the context is the service's, and callers' pointers are null or live through the call.
    unsafe { serve(context, error, |service: &S| service.detach(named(base)?, space)) }
}

unsafe extern "C" fn residency<S: RegistryService>(context: *mut c_void, base: *const Base, residency: *mut Residency) {
    // SAFETY: the context is the service's, and callers' pointers are null or live through the call.
    unsafe {
        serve_quietly(context, |service: &S| {
            place(residency)?.write(service.residency(named(base)?));
            Ok(())
        });
    }
}

unsafe extern "C" fn read<S: RegistryService>(
    context: *mut c_void,
    base: *const Base,
    view: *const ViewSpec,
    memory: *const HostMemory,
    error: *mut ErrorRecord,
) -> Status {
    // SAFETY: the context is the service's, and callers' pointers are null or live through the call; `memory` satisfies
    // [`HostMemory::new`].
    unsafe { serve(context, error, |service: &S| service.read(named(base)?, &view_of(view)?, given(memory)?)) }
}

unsafe extern "C" fn write<S: RegistryService>(
    context: *mut c_void,
    base: *const Base,
    view: *const ViewSpec,
    memory: *const HostMemory,
    error: *mut ErrorRecord,
) -> Status {
    // SAFETY: the context is the service's, and callers' pointers are null or live through the call; `memory` satisfies
    // [`HostMemory::new`].
    unsafe { serve(context, error, |service: &S| service.write(named(base)?, &view_of(view)?, given(memory)?)) }
}
