//! Memory shared with other libraries: arrays as buffers of Python, and buffers of Python given to bh.

use crate::array::Array;
use crate::context::{self, Shared, Stack};
use crate::error::{exception, settled, value_error, warn_of};
use crate::interrupt::detached;
use bh_bytecode::{DType, MAX_RANK, View};
use bh_core::Error;
use bh_recorder::{ArrayId, Here, Lent};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use std::ffi::{CStr, c_int, c_void};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(call_alone, module)?)?;
    module.add_function(wrap_pyfunction!(unused, module)?)?;
    module.add_function(wrap_pyfunction!(donate_buffer, module)?)
}

/// The resources of an exported buffer until it is released.
struct Exported {
    context: Shared,
    /// Extents, then strides in bytes.
    layout: [ffi::Py_ssize_t; 2 * MAX_RANK],
    hold: Hold,
}

/// The hold on memory that must stay in place.
enum Hold {
    /// Nothing: there are no elements.
    Empty,
    /// The memory of a little array, which stays in place also if the recorder takes it over.
    Leased(Arc<Lease>),
    /// The elements of a little array as they were.
    Copied(#[expect(dead_code, reason = "dropped with the buffer")] Box<Here>),
    /// The array's own memory, which both sides write to.
    Pinned(#[expect(dead_code, reason = "dropped with the buffer")] Pinned),
    /// The elements as they were; writers leave them alone.
    Lent(Lent),
}

// SAFETY: the address in it is used by nobody, only kept.
unsafe impl Send for Exported {}

/// The pin that the buffers of one memory share, once the recorder has taken over the memory of a little array.
type Lease = OnceLock<Pinned>;

/// Why an array's memory has to stay where it is.
#[derive(Default)]
pub struct Kept {
    /// Shared with the buffers of a little array; of another one there only if its memory stays.
    lease: Option<Arc<Lease>>,
    /// Somebody has the address without a buffer: the memory stays for as long as the array, or a view of it, lives.
    stays: bool,
}

impl Kept {
    /// Does somebody have the address of a little array?
    pub fn is_lent(&self) -> bool {
        self.stays || self.lease.as_ref().is_some_and(|lease| Arc::strong_count(lease) > 1)
    }

    /// Pins the memory of a little array that was taken over by the recorder while somebody had its address.
    pub fn hand_over(&mut self, context: Shared, id: ArrayId) {
        if self.is_lent() {
            let recorder = &context.recorder;
            // After a shutdown nothing is to be kept.
            if let Ok(own) = recorder.duplicate(id) {
                match recorder.pin_new(own) {
                    // It is the first one, as little arrays are taken over once.
                    Ok(()) => drop(self.lease.get_or_insert_default().set(Pinned { context, id: own })),
                    Err(_) => recorder.free_later(own),
                }
            }
        }
        if !self.stays {
            self.end();
        }
    }

    /// Ends the array's own share.
    pub fn end(&mut self) {
        self.lease.take().and_then(Arc::into_inner).and_then(OnceLock::into_inner).into_iter().for_each(let_go);
    }
}

/// The element type in the language of the module `struct`, as NumPy writes it.
pub fn format(dtype: DType) -> &'static CStr {
    match dtype {
        DType::Bool => c"?",
        DType::I8 => c"b",
        DType::I16 => c"h",
        DType::I32 => c"i",
        DType::I64 => c"l",
        DType::U8 => c"B",
        DType::U16 => c"H",
        DType::U32 => c"I",
        DType::U64 => c"L",
        DType::F32 => c"f",
        DType::F64 => c"d",
        DType::C64 => c"Zf",
        DType::C128 => c"Zd",
    }
}

/// Holds the elements in memory: the array's own if others may write to it, else as they are now. The last part is a failure
/// of other operations that came up.
fn hold(py: Python<'_>, array: &Array) -> PyResult<(*mut u8, Hold, Option<Error>)> {
    let recorder = &array.context.recorder;
    let is_snapshot = !array.is_shared() && !is_in_place(array);
    match array.here().filter(|_| crate::shortcut::taken()) {
        Some(here) if is_snapshot => {
            if let Some(copy) = recorder.copy_here(here) {
                return Ok((copy.data(array.view.start()), Hold::Copied(copy), None));
            }
        }
        Some(here) => {
            if let Some(data) = recorder.look_here(here, array.view.start()) {
                let lease = kept(array).lease.get_or_insert_default().clone();
                return Ok((data, Hold::Leased(lease), None));
            }
        }
        None => (),
    }
    let id = array.current(py)?;
    if array.len() == 0 {
        return match array.base.as_ref().map(|base| base.get()).filter(|base| base.len() > 0) {
            // A part without elements has its place in the memory of the whole.
            Some(base) => hold(py, base).map(|(data, hold, elsewhere)| {
                let offset = (array.view.start() - base.view.start()) * array.dtype.size() as i64;
                (data.wrapping_offset(offset as isize), hold, elsewhere)
            }),
            None => Ok((std::ptr::dangling_mut::<u128>().cast(), Hold::Empty, None)),
        };
    }
    if is_snapshot {
        let (Held(lent), elsewhere) = settled(py, |patience| recorder.lend_with(id, patience).map(Held))?;
        return Ok((lent.data, Hold::Lent(lent), elsewhere));
    }
    let (data, pinned, elsewhere) = pinned(py, array, id)?;
    Ok((data, Hold::Pinned(pinned), elsewhere))
}

/// Keeps the memory of an array that has its elements where it is. The last part is a failure of other operations that came up.
fn pinned(py: Python<'_>, array: &Array, id: ArrayId) -> PyResult<(*mut u8, Pinned, Option<Error>)> {
    let (context, recorder) = (array.context, &array.context.recorder);
    let own = recorder.duplicate(id).map_err(exception)?;
    let found = settled(py, |patience| recorder.pin_exported(own, patience).map(Address));
    let (Address(address), elsewhere) = found.inspect_err(|_| recorder.free_later(own))?;
    Ok((address, Pinned { context, id: own }, elsewhere))
}

/// A handle of memory that stays where it is for as long as this lives. To be dropped without the interpreter's lock, as that
/// may wait.
pub struct Pinned {
    context: Shared,
    id: ArrayId,
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // Fails only after a shutdown, which has given everything back.
        let _ = self.context.recorder.pin(self.id, false, false);
        self.context.recorder.free_later(self.id);
    }
}

/// Unpins memory where the thread has the interpreter's lock.
fn let_go(pinned: Pinned) {
    Python::attach(|py| detached(py, move || drop(pinned)));
}

/// Why the memory of an array, or of the one whose view it is, stays where it is.
fn kept(array: &Array) -> MutexGuard<'_, Kept> {
    array.base.as_ref().map_or(array, Py::get).kept.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does the memory stay in place for as long as any view of it lives?
fn is_in_place(array: &Array) -> bool {
    let kept = kept(array);
    let memory = |id: ArrayId| array.context.recorder.info(id).map(|info| info.base).ok();
    // An array that was given another size has another memory.
    let is_pinned = || {
        let pinned = kept.lease.as_ref().and_then(|lease| lease.get());
        pinned.is_some_and(|pinned| memory(pinned.id) == memory(array.anchor()))
    };
    array.link.is_none() && kept.stays && (array.here().is_some() || is_pinned())
}

/// An address on its way back from a call without the interpreter's lock.
struct Address(*mut u8);

// SAFETY: nobody looks at the memory on the way.
unsafe impl Send for Address {}

struct Held(Lent);

// SAFETY: as above.
unsafe impl Send for Held {}

impl Drop for Exported {
    fn drop(&mut self) {
        if let Hold::Lent(lent) = &self.hold {
            // Fails only after a shutdown, which has given everything back.
            drop(self.context.recorder.end_lending(lent));
        }
    }
}

/// Are elements in this order without gaps, beginning with the last dimension?
fn is_dense<'a>(dims: impl Iterator<Item = (&'a i64, &'a i64)>) -> bool {
    let mut step = 1;
    dims.filter(|(extent, _)| **extent != 1).all(|(extent, stride)| {
        let fits = *stride == step;
        step *= extent;
        fits
    })
}

/// Is this the request of NumPy's constructors with `buffer=` (`PyArray_BufferConverter`)? They give the buffer back at once, keep the
/// object, and expect its memory to stay.
fn is_kept_by_object(flags: c_int) -> bool {
    flags & !ffi::PyBUF_WRITABLE == ffi::PyBUF_ANY_CONTIGUOUS
}

fn check(array: &Array, flags: c_int) -> PyResult<()> {
    let asked = |flag: c_int| flags & flag == flag;
    let fail = |text: &'static str| Err(PyBufferError::new_err(text));
    let (shape, stride) = (array.view.shape(), array.view.stride());
    let in_c = array.len() == 0 || is_dense(shape.iter().zip(stride).rev());
    let in_fortran = array.len() == 0 || is_dense(shape.iter().zip(stride));
    if asked(ffi::PyBUF_WRITABLE) && !array.is_shared() {
        return fail("the array is read-only");
    }
    if asked(ffi::PyBUF_C_CONTIGUOUS) && !in_c {
        return fail("the array is not C-contiguous");
    }
    if asked(ffi::PyBUF_F_CONTIGUOUS) && !in_fortran {
        return fail("the array is not Fortran contiguous");
    }
    if asked(ffi::PyBUF_ANY_CONTIGUOUS) && !in_c && !in_fortran {
        return fail("the array is not contiguous");
    }
    if !asked(ffi::PyBUF_STRIDES) && !in_c {
        return fail("the array is not C-contiguous, and strides were not asked for");
    }
    Ok(())
}

#[pymethods]
impl Array {
    /// The array's memory. A buffer of a writeable array is shared: both sides see what the other one writes, and until it
    /// is released each operation on the array completes before it returns. Others show the elements as they are now.
    ///
    /// # Safety
    /// Called by the interpreter with a buffer to fill.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, buffer: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let py = slf.py();
        if buffer.is_null() {
            return Err(PyBufferError::new_err("there is no buffer to fill"));
        }
        // SAFETY: not null, and the interpreter's to fill.
        unsafe { (*buffer).obj = std::ptr::null_mut() };
        let array = slf.borrow();
        check(&array, flags)?;
        if is_kept_by_object(flags) {
            array._stay(py)?;
        }
        let (data, hold, elsewhere) = hold(py, &array)?;
        let size = array.dtype.size() as i64;
        let strides = array.strides_in_bytes();
        let mut layout = [0; 2 * MAX_RANK];
        let numbers = array.view.shape().iter().chain(&strides);
        layout.iter_mut().zip(numbers).for_each(|(place, number)| *place = *number as ffi::Py_ssize_t);
        let (rank, bytes) = (array.view.rank(), array.len() * size);
        let readonly = !array.is_shared();
        let format = match (array.is_long_long(), array.dtype) {
            (true, DType::I64) => c"q",
            (true, _) => c"Q",
            (false, dtype) => format(dtype),
        };
        let mut exported = Box::new(Exported { context: array.context, layout, hold });
        drop(array);
        warn_of(py, elsewhere)?;
        let layout = exported.layout.as_mut_ptr();
        let asked = |flag: c_int| flags & flag == flag;
        // SAFETY: the buffer is the interpreter's to fill; what it points to lives until `__releasebuffer__`.
        unsafe {
            (*buffer).buf = data.cast();
            (*buffer).len = bytes as ffi::Py_ssize_t;
            (*buffer).itemsize = size as ffi::Py_ssize_t;
            (*buffer).readonly = c_int::from(readonly);
            // A consumer that requests no shape sees bytes in one row.
            (*buffer).ndim = if asked(ffi::PyBUF_ND) { rank as c_int } else { 1 };
            let text = if asked(ffi::PyBUF_FORMAT) { format.as_ptr().cast_mut() } else { std::ptr::null_mut() };
            (*buffer).format = text;
            (*buffer).shape = if asked(ffi::PyBUF_ND) { layout } else { std::ptr::null_mut() };
            (*buffer).strides = if asked(ffi::PyBUF_STRIDES) { layout.add(rank) } else { std::ptr::null_mut() };
            (*buffer).suboffsets = std::ptr::null_mut();
            (*buffer).internal = Box::into_raw(exported).cast();
            (*buffer).obj = slf.into_ptr();
        }
        Ok(())
    }

    /// Keeps the memory in place for as long as the array or a view of it lives, as its address is given out without a buffer. Numbers,
    /// and parts of complex arrays, have no memory of their own.
    fn _stay(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_scalar() || self.link.is_some() || self.len() == 0 || is_in_place(self) {
            return Ok(());
        }
        if self.here().and_then(|here| self.context.recorder.look_here(here, self.view.start())).is_some() {
            kept(self).stays = true;
            return Ok(());
        }
        let (_, pinned, elsewhere) = pinned(py, self, self.id())?;
        let mut now = Kept { lease: Some(Arc::new(pinned.into())), stays: true };
        std::mem::swap(&mut *kept(self), &mut now);
        now.end();
        warn_of(py, elsewhere)
    }

    /// # Safety
    /// Called by the interpreter, once for each buffer.
    unsafe fn __releasebuffer__(&self, py: Python<'_>, buffer: *mut ffi::Py_buffer) {
        // SAFETY: `__getbuffer__` has put it there, and nobody else takes it.
        let exported = unsafe { Box::from_raw((*buffer).internal.cast::<Exported>()) };
        match &exported.hold {
            // Nothing is pinned, and nothing will be while the thread has the interpreter's lock.
            Hold::Leased(lease) if lease.get().is_none() => drop(exported),
            Hold::Copied(_) => drop(exported),
            _ => detached(py, move || drop(exported)),
        }
    }
}

/// Buffers that bh no longer uses; they are released by a thread that holds the interpreter's lock anyway.
static RETURNED: Mutex<Vec<PyUntypedBuffer>> = Mutex::new(Vec::new());

/// The release callback of donated memory: takes no lock of the interpreter.
unsafe extern "C" fn give_back(argument: *mut c_void, _data: *mut c_void) {
    // SAFETY: `donate_buffer` has made it of a box, for this call.
    let buffer = *unsafe { Box::from_raw(argument.cast::<PyUntypedBuffer>()) };
    RETURNED.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
    // SAFETY: both may be called from any thread, with or without an interpreter. Buffers returned after the interpreter's
    // end are freed with the process. If the interpreter's list is full, the next donation does it.
    unsafe {
        if ffi::Py_IsInitialized() != 0 {
            ffi::Py_AddPendingCall(Some(release_returned), std::ptr::null_mut());
        }
    }
}

extern "C" fn release_returned(_nothing: *mut c_void) -> c_int {
    // Dropping buffers may run code of Python, so not under the lock.
    let returned = std::mem::take(&mut *RETURNED.lock().unwrap_or_else(PoisonError::into_inner));
    drop(returned);
    0
}

/// How many references there are to an object, of which the caller knows the owners.
fn references(object: &Bound<'_, PyAny>) -> isize {
    // SAFETY: the object lives, and the thread is attached.
    unsafe { ffi::Py_REFCNT(object.as_ptr()) }
}

/// Calls a function. The second part: does nobody else refer to the result? The reference that the call returns is then the only one,
/// so that its memory may be given away.
#[pyfunction]
fn call_alone<'py>(
    function: &Bound<'py, PyAny>,
    arguments: &Bound<'py, PyTuple>,
) -> PyResult<(Bound<'py, PyAny>, bool)> {
    let py = function.py();
    let result = function.call1(arguments)?;
    let weak = || py.import("weakref")?.getattr("getweakrefcount")?.call1((&result,))?.extract::<usize>();
    let is_alone = references(&result) == 1 && weak()? == 0;
    Ok((result, is_alone))
}

/// The first of some objects of this number of bytes that nobody but their list refers to.
#[pyfunction]
fn unused<'py>(objects: &Bound<'py, PyList>, nbytes: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
    for object in objects {
        // The list's reference, and this one.
        if references(&object) == 2 && object.getattr("nbytes")?.extract::<usize>()? == nbytes {
            return Ok(Some(object));
        }
    }
    Ok(None)
}

/// A new array, on a stack or that of new arrays, in the memory of a buffer in C order, which nobody else uses any more.
#[pyfunction]
#[pyo3(signature = (source, code, stack=None))]
fn donate_buffer(py: Python<'_>, source: &Bound<'_, PyAny>, code: u8, stack: Option<&Stack>) -> PyResult<Array> {
    release_returned(std::ptr::null_mut());
    let dtype =
        DType::from_code(code).ok_or_else(|| PyTypeError::new_err(format!("there is no element type {code}")))?;
    let buffer = PyUntypedBuffer::get(source)?;
    if !buffer.is_c_contiguous() || buffer.readonly() || buffer.item_size() != dtype.size() {
        return Err(PyValueError::new_err("only writeable memory in C order can be given away"));
    }
    let shape: Vec<i64> = buffer.shape().iter().map(|&extent| extent as i64).collect();
    let view = View::contiguous(&shape).map_err(value_error)?;
    let context = stack.map_or_else(|| context::current(py), |stack| Ok(stack.context()))?;
    let data = Address(buffer.buf_ptr().cast());
    let argument = Address(Box::into_raw(Box::new(buffer)).cast());
    let donate = || {
        let (data, argument) = (&data, &argument);
        // SAFETY: the buffer holds the elements of this shape in C order, until it is given back.
        unsafe { context.recorder.donate(dtype, &shape, data.0, Some(give_back), argument.0.cast()) }
    };
    match donate() {
        Ok(id) => Ok(Array::new(context, id, dtype, view)),
        Err(error) => {
            // SAFETY: it was not taken, so it is still this function's.
            drop(unsafe { Box::from_raw(argument.0.cast::<PyUntypedBuffer>()) });
            Err(exception(error))
        }
    }
}
