//! The view that an array shows, shared by arrays of the same shape.

use bh_bytecode::{MAX_RANK, View, ViewError};
use std::cell::RefCell;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

thread_local! {
    /// Views that nobody shows any more, for the next ones.
    static UNUSED: RefCell<Vec<Arc<View>>> = const { RefCell::new(Vec::new()) };
}

/// The most unused views that are kept.
const KEPT: usize = 64;

/// A view as [`View::new`] makes it.
#[inline]
pub fn made(start: i64, shape: &[i64], stride: &[i64]) -> Result<Arc<View>, ViewError> {
    let unused = UNUSED.try_with(|unused| unused.try_borrow_mut().ok()?.pop()).ok().flatten();
    let mut view = unused.unwrap_or_default();
    // It is nobody else's.
    match Arc::get_mut(&mut view) {
        Some(own) => own.put(start, shape, stride)?,
        None => view = View::new(start, shape, stride)?.into(),
    }
    Ok(view)
}

/// A view of elements side by side in C order, from one on, as [`View::contiguous`] makes it.
#[inline]
pub fn contiguous_from(start: i64, shape: &[i64]) -> Result<Arc<View>, ViewError> {
    let mut stride = [0; MAX_RANK];
    let Some(stride) = stride.get_mut(..shape.len()) else { return View::contiguous(shape).map(Arc::new) };
    let mut step = 1i64;
    for (stride, extent) in stride.iter_mut().zip(shape).rev() {
        *stride = step;
        step = step.saturating_mul((*extent).max(1));
    }
    made(start, shape, stride)
}

/// As [`View::contiguous`].
#[inline]
pub fn contiguous(shape: &[i64]) -> Result<Arc<View>, ViewError> {
    contiguous_from(0, shape)
}

/// Keeps the memory of a view that nobody else shows.
#[inline]
fn give_back(mut view: Arc<View>) {
    if Arc::get_mut(&mut view).is_some() {
        // Where the thread ends, so do the views.
        let _ = UNUSED.try_with(|unused| {
            if let Ok(mut unused) = unused.try_borrow_mut()
                && unused.len() < KEPT
            {
                unused.push(view);
            }
        });
    }
}

/// A view that can be replaced while others look at it.
pub struct SharedView(AtomicPtr<View>);

impl SharedView {
    pub fn new(view: Arc<View>) -> SharedView {
        SharedView(AtomicPtr::new(Arc::into_raw(view).cast_mut()))
    }

    fn get(&self) -> *const View {
        self.0.load(Ordering::Acquire)
    }

    /// The view, for another array.
    #[inline]
    pub fn shared(&self) -> Arc<View> {
        let view = self.get();
        // SAFETY: it comes from an `Arc`, which `self`, or who keeps replaced views, has a share of.
        unsafe {
            Arc::increment_strong_count(view);
            Arc::from_raw(view)
        }
    }

    /// Shows another view than so far.
    ///
    /// # Safety
    /// The caller must keep the returned view as long as `self`, as another thread may be reading it.
    pub unsafe fn replace(&self, view: Arc<View>) -> Arc<View> {
        let before = self.0.swap(Arc::into_raw(view).cast_mut(), Ordering::AcqRel);
        // SAFETY: it comes from an `Arc`, whose share goes to the caller.
        unsafe { Arc::from_raw(before) }
    }
}

impl Deref for SharedView {
    type Target = View;

    #[inline]
    fn deref(&self) -> &View {
        // SAFETY: it comes from an `Arc`; views that were replaced are kept as long as `self`.
        unsafe { &*self.get() }
    }
}

impl Drop for SharedView {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: it comes from an `Arc`, whose share is given back here, as nobody looks at it any more.
        give_back(unsafe { Arc::from_raw(self.get()) });
    }
}
