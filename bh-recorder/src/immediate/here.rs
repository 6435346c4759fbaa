//! Little arrays that only their bridge knows. Their elements are in memory of their own, and operations on them run without the
//! recorder's lock. The recorder takes one over when it needs a handle: the array is then as if it had been settled all along.

use crate::array::small_view::{SmallView, goes_in_c_order};
use crate::immediate::hand::{copy_element, read_element};
use crate::immediate::{NOTHING, array_of, ask, part_that_counts};
use crate::record::Operation;
use crate::record::check::check_param;
use crate::state::gate::Engine;
use crate::state::settled::Own;
use crate::{ArrayId, Location, Recorder};
use bh_bytecode::view::element_count;
use bh_bytecode::{Constant, DType, Kind, MAX_RANK, Opcode, View};
use bh_core::abi::{MethodArray, adopt};
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
    #[expect(clippy::vec_box, reason = "the boxes serve the next arrays, too")]
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

/// The strides of an array in C order.
#[inline]
pub(crate) fn contiguous_strides(shape: &[i64]) -> [i64; MAX_RANK] {
    let (mut stride, mut step) = ([0; MAX_RANK], 1);
    for (stride, extent) in stride[..shape.len()].iter_mut().zip(shape).rev() {
        *stride = step;
        step *= extent;
    }
    stride
}

impl Recorder {
    /// Do operations on little arrays run where they are called? Asked without the lock.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.gate.is_open()
    }

    /// An element of a little array, if the program may read it at once.
    #[inline]
    pub fn element_here(&self, here: &Here, place: i64) -> Option<Constant> {
        let value = here.value(place).filter(|_| self.is_open())?;
        self.gate.end_chain();
        Some(value)
    }

    /// The address of an element of a little array, which stays the same until the array ends, if the program may look at it at once.
    #[inline]
    pub fn look_here(&self, here: &Here, place: i64) -> Option<*mut u8> {
        self.is_open().then(|| self.gate.end_chain())?;
        Some(here.data(place))
    }

    /// The elements of a little array as they are now, if the program may look at them at once.
    pub fn copy_here(&self, here: &Here) -> Option<Box<Here>> {
        let inside = self.gate.enter()?;
        let engine = inside.engine()?;
        let copy = Here::new(&engine.services, &engine.ids, here.dtype, here.len)?;
        // SAFETY: both have this many bytes, and the copy is nobody else's.
        unsafe { std::ptr::copy_nonoverlapping(here.data(0), copy.data(0), here.own.bytes) };
        self.gate.end_chain();
        Some(copy)
    }

    /// Overwrites an element of a little array. `None` if that has to be recorded.
    #[inline]
    pub fn set_element_here(&self, here: &Here, place: i64, value: Constant) -> Option<()> {
        let inside = self.gate.enter().filter(|_| here.dtype == value.dtype() && here.has_place(place))?;
        // SAFETY: the memory has the element.
        unsafe { copy_element(here.dtype, value.bits.as_ptr().cast(), here.data(place)) };
        inside.count();
        self.gate.end_chain();
        Some(())
    }

    /// A fold of a view of a little array in its own type, along a mask of axes, into one of this shape. `None` if it has to be
    /// recorded.
    pub fn fold_here(&self, opcode: Opcode, axes: u16, input: (&Here, &View), shape: &[i64]) -> Option<Box<Here>> {
        let (dtype, view) = (input.0.dtype, input.1);
        let is_fold = matches!(opcode.kind(), Kind::Reduction | Kind::Accumulate)
            && goes_in_c_order(view.shape(), view.stride())
            && opcode.check_types(dtype, &[dtype])
            && check_param(opcode, axes, view.rank()).is_ok();
        is_fold.then(|| self.ask_here((opcode, axes), input, dtype, shape))?
    }

    /// An extension method of a view of a little array with one output, of this type and shape. `None` if it has to be recorded.
    pub fn method_here(&self, opcode: Opcode, input: (&Here, &View), dtype: DType, shape: &[i64]) -> Option<Box<Here>> {
        (opcode.kind() == Kind::Extension).then(|| self.ask_here((opcode, 0), input, dtype, shape))?
    }

    /// Has the engine carry out an operation on a view of a little array, which is legal, into a new one.
    fn ask_here(
        &self,
        (opcode, param): (Opcode, u16),
        (here, view): (&Here, &View),
        dtype: DType,
        shape: &[i64],
    ) -> Option<Box<Here>> {
        let (inside, len) = (self.gate.enter()?, element_count(shape)?);
        let counts = part_that_counts(view.len(), opcode.kind()) as u64 * here.dtype.size() as u64;
        let takes = |engine: &&Engine| {
            // The order of results that have the same bits everywhere is the recorder's.
            !engine.options.reproducible && engine.takes(len as u64 * dtype.size() as u64) && engine.takes(counts)
        };
        let engine = inside.engine().filter(takes)?;
        let operation = Operation { opcode, param, location: Location::UNKNOWN };
        let input = array_of(view.shape(), view.stride(), here.data(view.start()), here.dtype);
        let made = made_by(engine, (operation, 0), &[NOTHING, input], (dtype, len), shape)?;
        inside.count();
        self.gate.end_chain();
        Some(made)
    }

    /// Takes over a little array: from here on it is a base with a handle. The shape has as many elements as the array. `lent`: somebody
    /// uses the memory, so it stays where it is.
    #[expect(clippy::boxed_local, reason = "arrays come in their boxes")]
    pub fn adopt_here(&self, here: Box<Here>, shape: &[i64], lent: bool) -> Result<ArrayId> {
        let mut state = self.state();
        debug_assert_eq!(element_count(shape), Some(here.len));
        let Here { own, id, dtype, len } = *here;
        let handle = match state.new_array_of(id, dtype, SmallView::contiguous(shape), len) {
            Ok(handle) => handle,
            Err(error) => {
                if lent {
                    // Somebody looks at it: rather lost than freed.
                    std::mem::forget(own);
                }
                return Err(error);
            }
        };
        let array = state.name(handle);
        if lent {
            drop(state);
            // SAFETY: the memory has the array's elements, and its `release` is the stack's to call.
            own.give(adopt::SHARED, |adoption| unsafe { self.adopt_as_data(array, adoption) })?;
            return Ok(array);
        }
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
        Ok(array)
    }
}

/// Has an engine carry out an operation, which is legal, into a new little array, whose place among the operands is the first.
pub(super) fn made_by<const N: usize>(
    engine: &Engine,
    (operation, order): (Operation<'_>, u16),
    operands: &[MethodArray; N],
    (dtype, len): (DType, i64),
    shape: &[i64],
) -> Option<Box<Here>> {
    let made = Here::new(&engine.services, &engine.ids, dtype, len)?;
    let (stride, mut operands) = (contiguous_strides(shape), *operands);
    operands[0] = array_of(shape, &stride[..shape.len()], made.data(0), dtype);
    if !matches!(ask(&*engine.calls, operation, order, &operands), Ok(true)) {
        made.end();
        return None;
    }
    Some(made)
}
