//! Copies of bases in an engine's own space, for engines in Rust: the callbacks of the registry without raw pointers.

use super::{Loan, Registry};
use crate::abi::{AttachmentOps, ErrorRecord, HostMemory, Status, ViewSpec};
use crate::error::Result;
use crate::guard::guard;
use bh_bytecode::{Base, DType, View};
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

/// A copy of a base in an engine's own space. The registry holds a reference to each attached copy. Methods may be
/// called from any thread, whether or not the engine is running; each waits only for pending work on the copy.
pub trait Attachment: Send + Sync + Sized + 'static {
    /// State that all copies of the space share.
    type Shared: Send + Sync;

    /// Copies the whole base to host memory.
    fn to_host(self: &Arc<Self>, shared: &Self::Shared, target: &mut [u8]) -> Result<()>;

    /// Copies the elements of a view to host memory.
    ///
    /// # Safety
    /// `dtype` must be the base's element type, the view must be inside the base, and `memory` must be writable for the
    /// view's elements and not overlap the copy.
    unsafe fn read(
        self: &Arc<Self>,
        shared: &Self::Shared,
        dtype: DType,
        view: &View,
        memory: &HostMemory,
    ) -> Result<()>;

    /// Overwrites the elements of a view from host memory.
    ///
    /// # Safety
    /// `dtype` must be the base's element type, the view must be inside the base, and `memory` must be readable for the
    /// view's elements and not overlap the copy.
    unsafe fn write(
        self: &Arc<Self>,
        shared: &Self::Shared,
        dtype: DType,
        view: &View,
        memory: &HostMemory,
    ) -> Result<()>;

    /// Starts moving elements to where a later read finds them soon.
    fn prefetch(self: &Arc<Self>, _shared: &Self::Shared) {}

    /// A copy of the elements of a view, dense in C order, in the same space.
    fn duplicate(self: &Arc<Self>, shared: &Self::Shared, dtype: DType, view: &View) -> Result<Arc<Self>>;

    /// The registry drops its reference.
    fn detached(self: Arc<Self>, _shared: &Self::Shared) {}
}

impl Registry {
    /// Makes this the copy of a base in the engine's space, and if `exclusive` the only valid one.
    ///
    /// # Safety
    /// `shared` must live, at the same address, until this copy and all its duplicates have been dropped
    /// ([`Attachment::detached`]).
    pub unsafe fn attach_copy<A: Attachment>(
        &self,
        base: &Base,
        space: u32,
        copy: Arc<A>,
        exclusive: bool,
        shared: &A::Shared,
    ) -> Result<()> {
        let handle = into_handle(copy);
        // SAFETY: the handle holds a reference until `drop` is called for it, and the functions' context, which is
        // `shared`, lives until then, as `# Safety` asks.
        let outcome = unsafe { self.attach(base, space, handle, exclusive, &operations::<A>(shared)) };
        if outcome.is_err() {
            // SAFETY: the registry did not take the reference.
            drop(unsafe { Arc::from_raw(handle.cast_const().cast::<A>()) });
        }
        outcome
    }
}

impl Loan {
    /// The lent copy, if the loan is of an engine's space and there is one.
    ///
    /// # Safety
    /// The loan must be of an engine's space in which all copies were attached by [`Registry::attach_copy`] with this
    /// type, or are duplicates of such copies.
    pub unsafe fn copy<A: Attachment>(&self) -> Option<Arc<A>> {
        // SAFETY: not null, and so a handle of a copy of this type, as `# Safety` asks, which the loan keeps attached.
        (!self.data().is_null()).then(|| unsafe { of_handle(self.data()) })
    }
}

fn operations<A: Attachment>(shared: &A::Shared) -> AttachmentOps {
    AttachmentOps {
        struct_size: size_of::<AttachmentOps>(),
        context: ptr::from_ref(shared).cast_mut().cast(),
        to_host: to_host::<A>,
        drop: give_up::<A>,
        read: Some(read::<A>),
        write: Some(write::<A>),
        prefetch: Some(prefetch::<A>),
        clone: Some(duplicate::<A>),
    }
}

/// The handle of a copy, which holds a reference to it.
fn into_handle<A: Attachment>(copy: Arc<A>) -> *mut c_void {
    Arc::into_raw(copy).cast_mut().cast()
}

/// The copy behind a handle.
///
/// # Safety
/// The handle must come from [`into_handle`] of this type and still hold its reference.
unsafe fn of_handle<A: Attachment>(handle: *mut c_void) -> Arc<A> {
    let copy = handle.cast_const().cast::<A>();
    // SAFETY: the handle is a pointer of `Arc::into_raw` that still holds a reference, as `# Safety` asks; the count is
    // raised for the new one.
    unsafe {
        Arc::increment_strong_count(copy);
        Arc::from_raw(copy)
    }
}

/// Runs the body of a callback on its copy.
///
/// # Safety
/// `context` must be that of [`operations`] of this type, and point to a living value; `copy` must be a handle that
/// satisfies [`of_handle`], and `error` null or writable.
unsafe fn serve<A: Attachment>(
    context: *mut c_void,
    copy: *mut c_void,
    error: *mut ErrorRecord,
    body: impl FnOnce(&A::Shared, &Arc<A>) -> Result<()>,
) -> Status {
    // SAFETY: null or writable, as `# Safety` asks.
    let error = unsafe { error.as_mut() };
    // SAFETY: the context points to a living `A::Shared`, and the handle is as `of_handle` asks, as `# Safety` says.
    guard(error, || unsafe { body(&*context.cast_const().cast::<A::Shared>(), &of_handle(copy)) })
}

unsafe extern "C" fn to_host<A: Attachment>(
    context: *mut c_void,
    copy: *mut c_void,
    data: *mut c_void,
    bytes: usize,
    error: *mut ErrorRecord,
) -> Status {
    let body = |shared: &A::Shared, copy: &Arc<A>| {
        // SAFETY: the registry provides `bytes` bytes for the base; an empty base may have no address.
        let target =
            unsafe { if bytes == 0 { &mut [] } else { std::slice::from_raw_parts_mut(data.cast::<u8>(), bytes) } };
        copy.to_host(shared, target)
    };
    // SAFETY: the registry passes an attached copy.
    unsafe { serve(context, copy, error, body) }
}

unsafe extern "C" fn read<A: Attachment>(
    context: *mut c_void,
    copy: *mut c_void,
    base: *const Base,
    view: *const ViewSpec,
    memory: *const HostMemory,
    error: *mut ErrorRecord,
) -> Status {
    // SAFETY: the registry passes an attached copy, a view of the base that it checked, and memory for its elements.
    unsafe {
        serve(context, copy, error, |shared, copy: &Arc<A>| {
            copy.read(shared, (*base).dtype(), &(*view).view()?, &*memory)
        })
    }
}

unsafe extern "C" fn write<A: Attachment>(
    context: *mut c_void,
    copy: *mut c_void,
    base: *const Base,
    view: *const ViewSpec,
    memory: *const HostMemory,
    error: *mut ErrorRecord,
) -> Status {
    // SAFETY: the registry passes an attached copy, a view of the base that it checked, and memory with its elements.
    unsafe {
        serve(context, copy, error, |shared, copy: &Arc<A>| {
            copy.write(shared, (*base).dtype(), &(*view).view()?, &*memory)
        })
    }
}

unsafe extern "C" fn prefetch<A: Attachment>(
    context: *mut c_void,
    copy: *mut c_void,
    _: *const Base,
    _: *const ViewSpec,
) {
    let body = |shared: &A::Shared, copy: &Arc<A>| {
        copy.prefetch(shared);
        Ok(())
    };
    // SAFETY: the registry passes an attached copy; there is no record, and a failure shows when the elements are read.
    unsafe { serve(context, copy, ptr::null_mut(), body) };
}

unsafe extern "C" fn duplicate<A: Attachment>(
    context: *mut c_void,
    own: *mut c_void,
    base: *const Base,
    view: *const ViewSpec,
    copy: *mut *mut c_void,
    error: *mut ErrorRecord,
) -> Status {
    // SAFETY: the registry passes an attached copy, a view of the base that it checked, and a place for a handle.
    unsafe {
        serve(context, own, error, |shared, own: &Arc<A>| {
            copy.write(into_handle(own.duplicate(shared, (*base).dtype(), &(*view).view()?)?));
            Ok(())
        })
    }
}

unsafe extern "C" fn give_up<A: Attachment>(context: *mut c_void, copy: *mut c_void) {
    // SAFETY: the registry passes an attached copy, and this consumes its reference, once. A panic cannot be reported
    // to anyone.
    guard(None, || unsafe {
        Arc::from_raw(copy.cast_const().cast::<A>()).detached(&*context.cast_const().cast::<A::Shared>());
        Ok(())
    });
}
