//! The array type: a view of a base that the recorder holds.

use crate::buffer::Kept;
use crate::context::Shared;
use crate::error::{exception, value_error};
use crate::interrupt::is_detached;
use crate::numpy_types;
use crate::shared_view::{SharedView, contiguous};
use bh_bytecode::{DType, View};
use bh_recorder::{ArrayId, Here, Made, Store};
use pyo3::exceptions::{PyDeprecationWarning, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The link from a part and its views to the complex array.
pub struct Link {
    /// The complex array.
    pub whole: Py<Array>,
    /// The part's own memory, as an array without a link.
    pub elements: Py<Array>,
    pub imaginary: bool,
}

/// An array of numbers that bh holds. Operations on it are recorded, and run when a result is looked at.
#[pyclass(frozen, name = "ndarray", module = "bh", weakref)]
pub struct Array {
    pub context: Shared,
    /// The recorder's handle of it; 0 for an array that has none yet, as the recorder need not hear of little arrays, and of views,
    /// that nothing is recorded on.
    id: AtomicU64,
    /// Of a part of the memory of `base`, a handle of all of that, which `base` owns; 0 if that has none yet. Of an array with
    /// memory of its own that the recorder took over, its first handle; else 0.
    whole: AtomicU64,
    /// The elements, as long as the recorder has not heard of them; else null. Threads that are attached to Python use it, and
    /// while they do, no other thread takes the elements to the recorder.
    here: AtomicPtr<Here>,
    pub dtype: DType,
    /// Shared by arrays of the same shape: results have the view of what they are made of, where that is their own.
    pub view: SharedView,
    /// The result of an operation that gives a scalar in NumPy: in-place operators make a new one, and it has a hash.
    scalar: AtomicBool,
    /// May it be assigned to?
    writeable: AtomicBool,
    /// Is the first assignment to it to be warned of, as elements share memory?
    warns: AtomicBool,
    /// Are its integers of 64 bits called `long long`, which is another type to NumPy with the same elements?
    long_long: AtomicBool,
    /// The array whose memory this is a view of.
    pub base: Option<Py<Array>>,
    /// The array whose memory this one shows for the time of a call, which it ends before; else null.
    lender: AtomicPtr<Array>,
    /// Set for the parts of complex arrays and their views, whose elements are those of another array.
    pub link: Option<Arc<Link>>,
    /// Handles and views that it had before, each view once. Parts may rely on the handles, other threads may read the views.
    /// The handle is 0 where it has ended.
    former: Mutex<Vec<(ArrayId, Arc<View>)>>,
    /// Of an array with memory of its own: what buffers of it share.
    pub kept: Mutex<Kept>,
}

impl Drop for Array {
    fn drop(&mut self) {
        let recorder = &self.context.recorder;
        let here = *self.here.get_mut();
        if !here.is_null() {
            // SAFETY: it comes from a `Box`, and nobody else has the array.
            unsafe { Box::from_raw(here) }.end();
        }
        let id = *self.id.get_mut();
        if id != 0 {
            recorder.free_later(ArrayId(id));
        }
        self.kept.get_mut().unwrap_or_else(PoisonError::into_inner).end();
        let former = self.former.get_mut().unwrap_or_else(PoisonError::into_inner);
        former.drain(..).filter(|(id, _)| id.0 != 0).for_each(|(id, _)| recorder.free_later(id));
    }
}

impl Array {
    /// A new base in C order.
    #[inline]
    pub fn new(context: Shared, made: impl Into<Made>, dtype: DType, view: impl Into<Arc<View>>) -> Array {
        let (id, here) = match made.into() {
            Made::Handle(id) => (id, std::ptr::null_mut()),
            Made::Here(here) => (ArrayId(0), Box::into_raw(here)),
        };
        Array {
            context,
            id: AtomicU64::new(id.0),
            whole: AtomicU64::new(0),
            here: AtomicPtr::new(here),
            dtype,
            view: SharedView::new(view.into()),
            scalar: AtomicBool::new(false),
            writeable: AtomicBool::new(true),
            warns: AtomicBool::new(false),
            long_long: AtomicBool::new(false),
            base: None,
            lender: AtomicPtr::default(),
            link: None,
            former: Mutex::default(),
            kept: Mutex::default(),
        }
    }

    /// The result of an operation: NumPy makes those without dimensions scalars.
    #[inline]
    pub fn result(context: Shared, made: impl Into<Made>, dtype: DType, view: impl Into<Arc<View>>) -> Array {
        let array = Array::new(context, made, dtype, view);
        array.set_scalar(array.view.rank() == 0);
        array
    }

    /// A new array with undefined elements.
    pub fn empty(context: Shared, dtype: DType, shape: &[i64]) -> PyResult<Array> {
        let view = contiguous(shape).map_err(value_error)?;
        Array::new_empty(context, dtype, view)
    }

    /// As [`Array::empty`], with a view as [`contiguous`] makes it.
    pub fn new_empty(context: Shared, dtype: DType, view: Arc<View>) -> PyResult<Array> {
        let id = context.recorder.empty(dtype, view.shape()).map_err(exception)?;
        Ok(Array::new(context, id, dtype, view))
    }

    /// Another view of its memory, each element once, for as long as the array is there.
    pub fn seen(&self, view: impl Into<Arc<View>>) -> Array {
        let mut seen = Array::new(self.context, ArrayId(0), self.dtype, view);
        seen.link.clone_from(&self.link);
        seen.lender = AtomicPtr::new(std::ptr::from_ref(self).cast_mut());
        seen
    }

    /// An array that nobody else has, under another view of its memory, each element once.
    pub fn renamed(mut self, view: impl Into<Arc<View>>) -> PyResult<Array> {
        let view = view.into();
        let here = std::mem::replace(self.here.get_mut(), std::ptr::null_mut());
        let made = match here.is_null() {
            // SAFETY: it comes from a `Box`, and nobody else has the array.
            false => Made::Here(unsafe { Box::from_raw(here) }),
            true => Made::Handle(self.context.recorder.window(self.id(), &view).map_err(exception)?),
        };
        Ok(Array::new(self.context, made, self.dtype, view))
    }

    /// As [`Array::base`], also for the time of a call.
    #[inline]
    fn owner(&self) -> Option<&Array> {
        match &self.base {
            Some(base) => Some(base.get()),
            // SAFETY: it is null or an array that is there as long as this one.
            None => unsafe { self.lender.load(Ordering::Relaxed).as_ref() },
        }
    }

    /// The recorder's handle.
    #[inline]
    pub fn id(&self) -> ArrayId {
        match self.id.load(Ordering::Acquire) {
            0 => self.make_id(),
            id => ArrayId(id),
        }
    }

    #[cold]
    fn make_id(&self) -> ArrayId {
        let recorder = &self.context.recorder;
        if !self.here.load(Ordering::Acquire).is_null() {
            return self.hand_over();
        }
        // The recorder says of a handle that is none what went wrong.
        let Ok(made) = recorder.window(self.memory(), &self.view) else { return ArrayId(0) };
        match self.id.compare_exchange(0, made.0, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => made,
            Err(other) => {
                recorder.free_later(made);
                ArrayId(other)
            }
        }
    }

    /// Has the recorder take over the elements.
    fn hand_over(&self) -> ArrayId {
        debug_assert!(!is_detached(), "threads take elements to the recorder while they are attached");
        let here = self.here.swap(std::ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: it is not null, as nobody else takes it meanwhile, and comes from a `Box`.
        let here = unsafe { Box::from_raw(here) };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let recorder = &self.context.recorder;
        let is_plain = self.view.start() == 0 && self.view.is_contiguous();
        let flat = [self.view.len()];
        // As above.
        let shape = if is_plain { self.view.shape() } else { &flat };
        let whole = recorder.adopt_here(here, shape, kept.is_lent()).unwrap_or(ArrayId(0));
        let id = match is_plain {
            true => whole,
            false => {
                let all = View::contiguous(&flat).unwrap_or_default();
                self.former.lock().unwrap_or_else(PoisonError::into_inner).push((whole, all.into()));
                recorder.window(whole, &self.view).unwrap_or(ArrayId(0))
            }
        };
        self.whole.store(whole.0, Ordering::Release);
        self.id.store(id.0, Ordering::Release);
        kept.hand_over(self.context, id);
        id
    }

    /// A handle of all of the memory that a view is a part of.
    fn memory(&self) -> ArrayId {
        match (self.whole.load(Ordering::Acquire), self.owner()) {
            (0, Some(owner)) => {
                // Views keep the first memory of their base; views for the time of a call have the present memory of the lender.
                let first = match owner.whole.load(Ordering::Acquire) {
                    first if first != 0 && self.base.is_some() => first,
                    _ => owner.anchor().0,
                };
                self.whole.store(first, Ordering::Release);
                ArrayId(first)
            }
            (whole, _) => ArrayId(whole),
        }
    }

    /// A handle of memory that the array's view is a part of: its own, or that of the whole.
    #[inline]
    pub fn anchor(&self) -> ArrayId {
        match self.id.load(Ordering::Acquire) {
            0 if self.here.load(Ordering::Acquire).is_null() => self.memory(),
            0 => self.make_id(),
            id => ArrayId(id),
        }
    }

    /// The elements of the memory that the array's view is a part of, as long as the recorder has not heard of them.
    #[inline]
    pub fn here(&self) -> Option<&Here> {
        if self.id.load(Ordering::Acquire) != 0 {
            return None;
        }
        match (self.owner(), self.whole.load(Ordering::Acquire)) {
            (Some(owner), 0) => owner.here(),
            // SAFETY: it is null or comes from a `Box`, which lives until the array ends or is handed over. The caller is attached to
            // Python, and keeps the array.
            (None, 0) => unsafe { self.here.load(Ordering::Acquire).as_ref() },
            _ => None,
        }
    }

    /// Where the elements are.
    #[inline]
    pub fn store(&self) -> Store<'_> {
        self.here().map_or_else(|| Store::Handle(self.anchor()), Store::Here)
    }

    /// Is it known to have the same memory as another one?
    #[inline]
    pub fn shares_memory(&self, other: &Array) -> bool {
        if self.link.is_some() || other.link.is_some() || !std::ptr::eq(self.context, other.context) {
            return false;
        }
        match (self.here(), other.here()) {
            (Some(here), Some(other)) => std::ptr::eq(here, other),
            (None, None) => {
                let known = |array: &Array| {
                    if array.base.is_some() { array.anchor_of_memory() } else { array.id.load(Ordering::Acquire) }
                };
                known(self) == known(other) && known(self) != 0
            }
            _ => false,
        }
    }

    /// The handle by which arrays are known to have the same memory.
    fn anchor_of_memory(&self) -> u64 {
        match self.whole.load(Ordering::Acquire) {
            0 => self.id.load(Ordering::Acquire),
            whole => whole,
        }
    }

    /// The number of the memory behind a handle.
    fn memory_of(&self, id: ArrayId) -> Option<u64> {
        self.context.recorder.info(id).map(|info| info.base).ok()
    }

    /// Shows another view of its memory, or of that behind another handle. An equal view that it had before is taken back, so that
    /// a loop which changes the shape keeps no more than the shapes. `alone`: nobody relies on handles that it had before.
    pub fn show(&self, memory: ArrayId, view: &View, alone: bool) -> PyResult<()> {
        let recorder = &self.context.recorder;
        // A little array is taken over first, which notes former handles, too.
        let before = self.id();
        let mut former = self.former.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = self.memory_of(memory);
        let known =
            former.iter().position(|(id, known)| **known == *view && (id.0 == 0 || self.memory_of(*id) == wanted));
        let id = match known.map(|at| former[at].0) {
            Some(id) if id.0 != 0 => id,
            _ => recorder.window(memory, view).map_err(exception)?,
        };
        let view = known.map_or_else(|| Arc::new(*view), |at| former.swap_remove(at).1);
        // SAFETY: what is returned goes into `former`, from where it comes back as the view or ends with `self`.
        let mut before = (before, unsafe { self.view.replace(view) });
        self.id.store(id.0, Ordering::Release);
        if alone {
            former.iter_mut().chain([&mut before]).filter(|(id, _)| id.0 != 0).for_each(|(id, _)| {
                recorder.free_later(*id);
                *id = ArrayId(0);
            });
        }
        former.push(before);
        Ok(())
    }

    #[inline]
    pub fn is_scalar(&self) -> bool {
        self.scalar.load(Ordering::Relaxed)
    }

    pub fn set_scalar(&self, scalar: bool) {
        self.scalar.store(scalar, Ordering::Relaxed);
    }

    #[inline]
    pub fn is_writeable(&self) -> bool {
        self.writeable.load(Ordering::Relaxed)
    }

    pub fn set_writeable(&self, writeable: bool) {
        self.writeable.store(writeable, Ordering::Relaxed);
    }

    /// Is the first assignment to be warned of?
    #[inline]
    pub fn warns(&self) -> bool {
        self.warns.load(Ordering::Relaxed)
    }

    /// Decides whether the first assignment is warned of.
    pub fn set_warns(&self, warns: bool) {
        self.warns.store(warns, Ordering::Relaxed);
    }

    /// Warns of an assignment, if that is to be done, and only of the first one.
    pub fn warn_of_write(&self, py: Python<'_>) -> PyResult<()> {
        if !self.warns.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        let text = c"Numpy has detected that you (may be) writing to an array with\noverlapping memory from np.broadcast_arrays. \
            If this is intentional\nset the WRITEABLE flag True or make a copy immediately before writing.";
        PyErr::warn(py, &py.get_type::<PyDeprecationWarning>(), text, 1)
    }

    pub fn is_long_long(&self) -> bool {
        self.long_long.load(Ordering::Relaxed)
    }

    /// Decides whether 64-bit integers are called `long long`; others have one name only.
    pub fn set_long_long(&self, long_long: bool) {
        self.long_long.store(long_long && matches!(self.dtype, DType::I64 | DType::U64), Ordering::Relaxed);
    }

    /// Fails unless it may be assigned to.
    pub fn check_writeable(&self) -> PyResult<()> {
        match (self.is_writeable(), self.is_scalar()) {
            (false, _) => Err(PyValueError::new_err("assignment destination is read-only")),
            (_, true) if !crate::array_api::follows_array_api() => {
                let text = format!("'numpy.{}' object does not support item assignment", self.dtype.numpy_name());
                Err(PyTypeError::new_err(text))
            }
            _ => Ok(()),
        }
    }

    /// NumPy's object for its element type.
    pub fn numpy_dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.is_long_long() {
            true => numpy_types::long_long(py, self.dtype),
            false => numpy_types::numpy_dtype(py, self.dtype),
        }
    }

    /// The number of elements.
    pub fn len(&self) -> i64 {
        self.view.len()
    }

    /// Do its elements lie side by side in the order of Fortran, which is not that of C?
    pub fn is_in_fortran(&self) -> bool {
        self.view.rank() > 1 && !self.view.is_contiguous() && self.view.reversed().is_contiguous()
    }

    /// Bytes from one element to the next in each dimension; of dimensions with one element, those of elements side by side.
    pub fn strides_in_bytes(&self) -> Vec<i64> {
        let (shape, size) = (self.view.shape(), self.dtype.size() as i64);
        let mut strides: Vec<i64> = self.view.stride().iter().map(|stride| stride * size).collect();
        if !shape.contains(&1) || shape.contains(&0) {
            return strides;
        }
        let mut inner_first: Vec<usize> = (0..shape.len()).collect();
        let long: Vec<i64> = inner_first.iter().filter(|axis| shape[**axis] > 1).map(|axis| strides[*axis]).collect();
        if long.len() < 2 || !long.is_sorted() {
            inner_first.reverse();
        }
        let first = inner_first.iter().find(|axis| shape[**axis] > 1);
        let mut step = first.map_or(size, |axis| strides[*axis]);
        for axis in inner_first {
            if shape[axis] == 1 {
                strides[axis] = step;
            }
            step = strides[axis] * shape[axis];
        }
        strides
    }

    /// Is the memory its own, to be assigned to?
    pub fn is_shared(&self) -> bool {
        self.is_writeable() && !self.warns() && !self.is_scalar() && self.link.is_none()
    }
}

/// Another view of the same memory, which has to lie inside of it. The recorder need not hear of it before something is recorded,
/// if its elements are elements of the array, each once.
fn view_of(array: &Bound<'_, Array>, view: Arc<View>, is_part: bool) -> PyResult<Array> {
    let this = array.get();
    let (base, whole) = match &this.base {
        Some(base) => (base.clone_ref(array.py()), this.whole.load(Ordering::Acquire)),
        None => (array.clone().unbind(), this.id.load(Ordering::Acquire)),
    };
    let is_part = is_part && (whole != 0 || this.here().is_some()) && this.link.is_none();
    let id = match is_part {
        true => ArrayId(0),
        false => this.context.recorder.window(this.id(), &view).map_err(exception)?,
    };
    let mut result = Array::new(this.context, id, this.dtype, view);
    *result.whole.get_mut() = if is_part { whole } else { 0 };
    result.set_writeable(this.is_writeable() && !this.is_scalar());
    result.warns = AtomicBool::new(this.warns());
    result.long_long = AtomicBool::new(this.is_long_long());
    result.base = Some(base);
    result.link.clone_from(&this.link);
    Ok(result)
}

/// Elements of an array in another form, each once.
#[inline]
pub fn derive(array: &Bound<'_, Array>, view: impl Into<Arc<View>>) -> PyResult<Array> {
    view_of(array, view.into(), true)
}

/// Any view of an array's memory.
pub fn window(array: &Bound<'_, Array>, view: View) -> PyResult<Array> {
    view_of(array, view.into(), false)
}

/// The same view of the same memory.
pub fn alias(array: &Array) -> PyResult<Array> {
    let id = array.context.recorder.window(array.id(), &array.view).map_err(exception)?;
    Ok(Array::new(array.context, id, array.dtype, array.view.shared()))
}

/// Gives the class of arrays a class of its own, which decides what calls of it, checks of instances and derived classes do.
#[pyfunction]
pub fn set_class_of_arrays(py: Python<'_>, class: Bound<'_, PyType>) -> PyResult<()> {
    let size = |class: &Bound<'_, PyType>| class.getattr("__basicsize__")?.extract::<usize>();
    if !class.is_subclass_of::<PyType>()? || size(&class)? != size(&py.get_type::<PyType>())? {
        return Err(PyTypeError::new_err(
            "the class of a class has to be derived from `type`, without fields of its own",
        ));
    }
    let arrays = py.get_type::<Array>().into_ptr();
    // SAFETY: the new class has the layout of `type`, which is static and counts no references; the class of arrays keeps a
    // reference to the new one, as each object does to its class, and lives as long as the module.
    unsafe { (*arrays).ob_type = class.into_ptr().cast() };
    Ok(())
}
