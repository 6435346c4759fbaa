//! The view that an array shows, shared by arrays of the same shape.

use bh_bytecode::View;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

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

    /// Shows another view. The one so far has to be kept as long as `self`, as somebody may look at it.
    pub fn replace(&self, view: Arc<View>) -> Arc<View> {
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
        // SAFETY: as in `replace`; nobody looks at it any more.
        drop(unsafe { Arc::from_raw(self.get()) });
    }
}
