//! Little arrays that only their bridge knows. Their elements are in memory of their own, and operations on them run without the
//! recorder's lock. The recorder takes one over when it needs a handle: the array is then as if it had been settled all along.

use crate::array::small_view::SmallView;
use crate::immediate::hand::read_element;
use crate::state::settled::Own;
use crate::{ArrayId, Recorder};
use bh_bytecode::view::element_count;
use bh_bytecode::{Constant, DType};
use bh_core::error::Result;
use bh_core::reserve;
use bh_core::services::Services;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Sizes of memory are multiples of this many bytes.
const STEP: usize = 64;
/// Larger memory is not kept for later arrays.
const LARGEST: usize = 32 << 10;
/// Bytes that a thread keeps, at most.
const MOST: usize = 128 << 10;

/// A little array, with elements in C order.
pub struct Here {
    own: Own,
    /// The number of its base. Traces compare it with those of other bases.
    id: u64,
    dtype: DType,
    len: i64,
}

/// A new array: one that the recorder has a handle of, or a little one.
pub enum Made {
    /// The handle.
    Handle(ArrayId),
    /// A little array.
    Here(Box<Here>),
}

impl From<ArrayId> for Made {
    fn from(id: ArrayId) -> Made {
        Made::Handle(id)
    }
}

/// Where the elements of a bridge's array are.
#[derive(Clone, Copy)]
pub enum Store<'a> {
    /// Behind a handle of the recorder's.
    Handle(ArrayId),
    /// In a little array.
    Here(&'a Here),
}

impl From<ArrayId> for Store<'_> {
    fn from(id: ArrayId) -> Self {
        Store::Handle(id)
    }
}

thread_local! {
    /// Little arrays that have ended, by size, and their bytes.
    static UNUSED: RefCell<(Vec<Vec<Box<Here>>>, usize)> = const { RefCell::new((Vec::new(), 0)) };
}

impl Here {
    /// An array with undefined elements, if there is memory for it.
    #[inline]
    pub(crate) fn new(services: &Arc<Services>, ids: &AtomicU64, dtype: DType, len: i64) -> Option<Box<Here>> {
        reserve::check().ok()?;
        let bytes = usize::try_from(len).ok()?.checked_mul(dtype.size())?;
        let unused = UNUSED.try_with(|unused| {
            let (by_size, kept) = &mut *unused.try_borrow_mut().ok()?;
            let here = by_size.get_mut(bytes.div_ceil(STEP))?.pop()?;
            *kept -= bytes.div_ceil(STEP) * STEP;
            Some(here)
        });
        let id = ids.fetch_add(1, Ordering::Relaxed);
        match unused.ok().flatten().filter(|here| here.own.is_counted_by(services)) {
            Some(mut here) => {
                here.own.bytes = bytes;
                (here.id, here.dtype, here.len) = (id, dtype, len);
                Some(here)
            }
            None => Some(Box::new(Here { own: Own::new(services, bytes as u64, false)?, id, dtype, len })),
        }
    }

    /// Ends an array. Its memory serves the next ones.
    #[inline]
    pub fn end(self: Box<Here>) {
        let place = self.own.bytes.div_ceil(STEP);
        // Where the thread ends, so does the memory.
        let _ = UNUSED.try_with(|unused| {
            let Ok(mut unused) = unused.try_borrow_mut() else { return };
            let (by_size, kept) = &mut *unused;
            if place * STEP <= LARGEST && *kept + place * STEP <= MOST {
                if by_size.len() <= place {
                    by_size.resize_with(place + 1, Vec::new);
                }
                *kept += place * STEP;
                by_size[place].push(self);
            }
        });
    }

    /// The address of an element.
    #[inline]
    pub fn data(&self, place: i64) -> *mut u8 {
        self.own.data().wrapping_offset(place as isize * self.dtype.size() as isize)
    }

    /// The element type.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The element at a place, if it has one there.
    #[inline]
    pub fn value(&self, place: i64) -> Option<Constant> {
        // SAFETY: the memory has the element.
        self.has_place(place).then(|| unsafe { read_element(self.dtype, self.data(place)) })
    }

    /// Has it an element at a place?
    #[inline]
    pub(crate) fn has_place(&self, place: i64) -> bool {
        (0..self.len).contains(&place)
    }
}

impl Recorder {
    /// Do operations on little arrays run where they are called? Asked without the lock.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.gate.is_open()
    }

    /// Takes over a little array: from here on it is a base with a handle. The shape has as many elements as the array.
    pub fn adopt_here(&self, here: Box<Here>, shape: &[i64]) -> Result<ArrayId> {
        let mut state = self.state();
        debug_assert_eq!(element_count(shape), Some(here.len));
        let Here { own, id, dtype, len } = *here;
        let handle = state.new_array_of(id, dtype, SmallView::contiguous(shape), len)?;
        if len == 1 {
            let mut bytes = [0u8; 16];
            // SAFETY: the memory has one element, and a constant has room for any.
            unsafe { std::ptr::copy_nonoverlapping(own.data(), bytes.as_mut_ptr(), dtype.size()) };
            state.set_value(handle, Constant::from_bytes(dtype, &bytes));
        } else {
            let base = state.handles.at(handle).base;
            state.set_own(base, own, false);
        }
        state.hint_rows(handle);
        Ok(state.name(handle))
    }
}
