//! Arrays in a device's memory for other libraries, and theirs for bh, by DLPack (version 1, and the form before it). Work on what is
//! handed over is done by then.

use crate::array::Array;
use crate::context::{self, Shared};
use crate::error::{exception, value_error};
use crate::interrupt::detached;
use crate::shared_view::contiguous;
use bh_bytecode::{DType, View};
use bh_core::Error;
use bh_core::abi::{Adoption, adopt, export, memory, status};
use bh_recorder::Lent;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{CStr, c_int, c_void};
use std::sync::{Arc, Mutex, PoisonError};

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<DeviceLoan>()?;
    module.add_function(wrap_pyfunction!(lend_device, module)?)?;
    module.add_function(wrap_pyfunction!(adopt_device, module)?)
}

/// `kDLCUDA`.
const CUDA: i32 = 2;
/// The kinds of elements.
const SIGNED: u8 = 0;
const UNSIGNED: u8 = 1;
const FLOAT: u8 = 2;
const COMPLEX: u8 = 5;
const BOOL: u8 = 6;
/// The flag of memory that is only to be read.
const READ_ONLY: u64 = 1;
/// The version that is written.
const VERSION: [u32; 2] = [1, 0];

/// Names of capsules, before and after the memory in them has got an owner.
const PLAIN: [&CStr; 2] = [c"dltensor", c"used_dltensor"];
const VERSIONED: [&CStr; 2] = [c"dltensor_versioned", c"used_dltensor_versioned"];

/// `DLTensor`.
#[repr(C)]
#[allow(dead_code, reason = "consumers read them")]
struct Tensor {
    data: *mut c_void,
    device: i32,
    number: i32,
    rank: i32,
    kind: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    offset: u64,
}

/// `DLManagedTensor`.
#[repr(C)]
#[allow(dead_code, reason = "consumers read them")]
struct Plain {
    tensor: Tensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Plain)>,
}

/// `DLManagedTensorVersioned`.
#[repr(C)]
#[allow(dead_code, reason = "consumers read them")]
struct Versioned {
    version: [u32; 2],
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Versioned)>,
    flags: u64,
    tensor: Tensor,
}

/// Memory of a device that is lent until this ends.
#[pyclass(frozen, module = "bh")]
struct DeviceLoan {
    context: Shared,
    lent: Mutex<Option<Lent>>,
    /// Of the first element.
    address: usize,
    dtype: DType,
    view: Arc<View>,
    writes: bool,
}

impl Drop for DeviceLoan {
    fn drop(&mut self) {
        let (context, lent) = (self.context, self.lent.get_mut().unwrap_or_else(PoisonError::into_inner).take());
        // Fails only after a shutdown, which has given everything back. It may wait, so not under the interpreter's lock.
        let end = move || drop(lent.map(|lent| context.recorder.end_lending(&lent)));
        Python::attach(|py| detached(py, end));
    }
}

/// The resources of a capsule: extents and strides, and the loan.
struct Owner<M> {
    managed: M,
    #[expect(dead_code, reason = "consumers read it")]
    layout: Box<[i64]>,
    loan: Option<Py<DeviceLoan>>,
}

/// Ends an owner, on any thread.
///
/// # Safety
/// `owner` must be that of a box, once.
unsafe fn end<M>(owner: *mut c_void) {
    // SAFETY: as `# Safety` asks.
    let mut owner = unsafe { Box::from_raw(owner.cast::<Owner<M>>()) };
    let loan = owner.loan.take();
    // SAFETY: it may be called at any time. At the end of the interpreter, memory goes with the process.
    if unsafe { ffi::Py_IsInitialized() } == 0 {
        std::mem::forget(loan);
    } else {
        Python::attach(|_| drop(loan));
    }
}

/// The deleters of what bh hands over.
unsafe extern "C" fn end_plain(managed: *mut Plain) {
    // SAFETY: the consumer gives what it was given, once.
    unsafe { end::<Plain>((*managed).context) };
}

unsafe extern "C" fn end_versioned(managed: *mut Versioned) {
    // SAFETY: as above.
    unsafe { end::<Versioned>((*managed).context) };
}

/// Calls the deleter of another library's memory, or of ours.
///
/// # Safety
/// `managed` must be a managed tensor of this form, which nobody uses any more.
unsafe fn delete(managed: *mut c_void, versioned: bool) {
    // SAFETY: as `# Safety` asks.
    unsafe {
        if versioned {
            let managed = managed.cast::<Versioned>();
            (*managed).deleter.into_iter().for_each(|deleter| deleter(managed));
        } else {
            let managed = managed.cast::<Plain>();
            (*managed).deleter.into_iter().for_each(|deleter| deleter(managed));
        }
    }
}

/// The end of a capsule whose memory nobody has taken.
unsafe extern "C" fn end_capsule(capsule: *mut ffi::PyObject) {
    for (names, versioned) in [(PLAIN, false), (VERSIONED, true)] {
        // SAFETY: the capsule lives; under this name it has a managed tensor of this form.
        unsafe {
            if ffi::PyCapsule_IsValid(capsule, names[0].as_ptr()) == 1 {
                delete(ffi::PyCapsule_GetPointer(capsule, names[0].as_ptr()), versioned);
            }
        }
    }
}

/// The kind and the bits of an element type.
fn kind_of(dtype: DType) -> (u8, u8) {
    let kind = match dtype {
        DType::Bool => BOOL,
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => SIGNED,
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => UNSIGNED,
        DType::F32 | DType::F64 => FLOAT,
        DType::C64 | DType::C128 => COMPLEX,
    };
    (kind, 8 * dtype.size() as u8)
}

#[pymethods]
impl DeviceLoan {
    /// The address of the first element.
    #[getter]
    fn address(&self) -> usize {
        self.address
    }

    /// May the memory be written to?
    #[getter]
    fn writes(&self) -> bool {
        self.writes
    }

    /// A capsule of DLPack with the array, which keeps the loan: on the device of this number, and with its version if consumers know it.
    fn capsule<'py>(slf: &Bound<'py, Self>, number: i32, versioned: bool) -> PyResult<Bound<'py, PyAny>> {
        let loan = slf.get();
        let (kind, bits) = kind_of(loan.dtype);
        let mut layout: Box<[i64]> = loan.view.shape().iter().chain(loan.view.stride()).copied().collect();
        let rank = loan.view.rank();
        let tensor = Tensor {
            data: std::ptr::with_exposed_provenance_mut(loan.address),
            device: CUDA,
            number,
            rank: rank as i32,
            kind,
            bits,
            lanes: 1,
            shape: layout.as_mut_ptr(),
            strides: layout[rank..].as_mut_ptr(),
            offset: 0,
        };
        let (context, keeps) = (std::ptr::null_mut(), Some(slf.clone().unbind()));
        let (managed, name): (*mut c_void, &CStr) = if versioned {
            let flags = if loan.writes { 0 } else { READ_ONLY };
            let managed = Versioned { version: VERSION, context, deleter: Some(end_versioned), flags, tensor };
            let owner = Box::into_raw(Box::new(Owner { managed, layout, loan: keeps }));
            // SAFETY: the owner lives until the deleter ends it.
            unsafe {
                (*owner).managed.context = owner.cast();
                ((&raw mut (*owner).managed).cast(), VERSIONED[0])
            }
        } else {
            let managed = Plain { tensor, context, deleter: Some(end_plain) };
            let owner = Box::into_raw(Box::new(Owner { managed, layout, loan: keeps }));
            // SAFETY: as above.
            unsafe {
                (*owner).managed.context = owner.cast();
                ((&raw mut (*owner).managed).cast(), PLAIN[0])
            }
        };
        // SAFETY: the name is static, the pointer is not null, and the capsule's end deletes what nobody has taken.
        unsafe {
            let capsule = ffi::PyCapsule_New(managed, name.as_ptr(), Some(end_capsule));
            if capsule.is_null() {
                delete(managed, versioned);
            }
            Bound::from_owned_ptr_or_err(slf.py(), capsule)
        }
    }
}

/// Lends the memory of an array on a device of CUDA, with its elements: to be written to by both sides, or only to be read.
#[pyfunction]
fn lend_device(py: Python<'_>, array: &Array, writes: bool) -> PyResult<DeviceLoan> {
    if array.link.is_some() || array.len() == 0 {
        return Err(PyBufferError::new_err("the array has no memory of its own on the device"));
    }
    let (context, recorder, anchor) = (array.context, &array.context.recorder, array.anchor());
    let lend = || {
        let all = recorder.info(anchor)?.base_len;
        let whole = View::contiguous(&[all]).map_err(|error| Error::new(status::SHAPE, error.0))?;
        let whole = recorder.window(anchor, &whole)?;
        let mode = if writes { export::SHARED } else { export::READ_ONLY };
        let lent = recorder.lend_device(whole, mode, memory::CUDA);
        recorder.free_later(whole);
        lent
    };
    let lent = detached(py, lend).map_err(exception)?;
    let view = array.view.shared();
    let start = view.start() as isize * array.dtype.size() as isize;
    let address = lent.data.wrapping_offset(start).expose_provenance();
    Ok(DeviceLoan { context, lent: Mutex::new(Some(lent)), address, dtype: array.dtype, view, writes })
}

/// Memory of other libraries that bh no longer uses, with its form; it goes back on a thread that holds the interpreter's lock anyway,
/// which deleters may want.
static RETURNED: Mutex<Vec<(usize, bool)>> = Mutex::new(Vec::new());

/// The callbacks of adopted memory take no lock of the interpreter.
unsafe extern "C" fn give_back_plain(managed: *mut c_void, _data: *mut c_void) {
    give_back(managed, false);
}

unsafe extern "C" fn give_back_versioned(managed: *mut c_void, _data: *mut c_void) {
    give_back(managed, true);
}

fn give_back(managed: *mut c_void, versioned: bool) {
    RETURNED.lock().unwrap_or_else(PoisonError::into_inner).push((managed.expose_provenance(), versioned));
    // SAFETY: both may be called from any thread, with or without an interpreter. If its list is full, the next adoption does it.
    unsafe {
        if ffi::Py_IsInitialized() != 0 {
            ffi::Py_AddPendingCall(Some(release_returned), std::ptr::null_mut());
        }
    }
}

extern "C" fn release_returned(_nothing: *mut c_void) -> c_int {
    // Deleters may run code of Python, so not under the lock.
    let returned = std::mem::take(&mut *RETURNED.lock().unwrap_or_else(PoisonError::into_inner));
    for (managed, versioned) in returned {
        // SAFETY: bh had it of a capsule, and uses it no longer.
        unsafe { delete(std::ptr::with_exposed_provenance_mut(managed), versioned) };
    }
    0
}

/// The contents of a capsule: the tensor, its form, and whether it is read-only.
fn tensor_of(capsule: &Bound<'_, PyAny>) -> PyResult<(*mut c_void, bool, bool)> {
    for (names, versioned) in [(PLAIN, false), (VERSIONED, true)] {
        // SAFETY: the object lives; under this name it has a managed tensor of this form.
        unsafe {
            if ffi::PyCapsule_IsValid(capsule.as_ptr(), names[0].as_ptr()) != 1 {
                continue;
            }
            let managed = ffi::PyCapsule_GetPointer(capsule.as_ptr(), names[0].as_ptr());
            if !versioned {
                return Ok((managed, false, false));
            }
            let given = managed.cast::<Versioned>();
            if (*given).version[0] != VERSION[0] {
                let text = format!("version {} of DLPack is not known", (*given).version[0]);
                return Err(PyBufferError::new_err(text));
            }
            return Ok((managed, true, (*given).flags & READ_ONLY != 0));
        }
    }
    Err(PyTypeError::new_err("the object is no capsule of DLPack, or its memory has been taken"))
}

/// The result of [`adopt_device`].
type Adopted = (Array, i64, Vec<i64>, Vec<i64>, bool);

/// An array of the memory in a capsule, on a device of CUDA, without a copy: all elements from the first to the last in memory as a
/// vector; the place of the first one in it, extents and strides; and whether it is only to be read.
#[pyfunction]
fn adopt_device(py: Python<'_>, capsule: &Bound<'_, PyAny>) -> PyResult<Adopted> {
    release_returned(std::ptr::null_mut());
    let (managed, versioned, read_only) = tensor_of(capsule)?;
    // SAFETY: the capsule has a tensor of this form, which lives as long as nobody takes it.
    let tensor: &Tensor =
        unsafe { if versioned { &(*managed.cast::<Versioned>()).tensor } else { &(*managed.cast::<Plain>()).tensor } };
    if tensor.device != CUDA {
        return Err(PyBufferError::new_err(format!("memory of the device type {} is none of CUDA", tensor.device)));
    }
    let known = |dtype: &DType| kind_of(*dtype) == (tensor.kind, tensor.bits) && tensor.lanes == 1;
    let dtype = DType::ALL.into_iter().find(known).ok_or_else(|| {
        PyBufferError::new_err(format!("elements of kind {} with {} bits are not known", tensor.kind, tensor.bits))
    })?;
    let rank = tensor.rank.max(0) as usize;
    let numbers = |data: *const i64| match rank {
        0 => Vec::new(),
        // SAFETY: the tensor has as many numbers as dimensions.
        _ => unsafe { std::slice::from_raw_parts(data, rank) }.to_vec(),
    };
    let shape = numbers(tensor.shape);
    let stride = match tensor.strides.is_null() {
        true => contiguous(&shape).map_err(value_error)?.stride().to_vec(),
        false => numbers(tensor.strides),
    };
    if shape.contains(&0) {
        return Err(PyBufferError::new_err("an array without elements has no memory to adopt"));
    }
    let reach = |sign: i64| {
        shape.iter().zip(&stride).map(|(extent, stride)| (extent - 1) * stride * sign).filter(|it| *it > 0).sum::<i64>()
    };
    let (before, after) = (reach(-1), reach(1));
    let first = tensor.data.cast::<u8>().wrapping_add(tensor.offset as usize);
    let first = first.wrapping_offset(-(before as isize) * dtype.size() as isize);
    let mode = if read_only { adopt::IMMUTABLE } else { adopt::SHARED };
    let release = if versioned { give_back_versioned } else { give_back_plain };
    let context = context::current(py)?;
    let extents = [before + after + 1];
    // SAFETY: the memory has all elements of the tensor, from the first to the last, until its deleter is called, by the release; its
    // owner goes on using it as the mode says.
    let adoption = unsafe { Adoption::new(first.cast(), mode, memory::CUDA, Some(release), managed) };
    // SAFETY: as above.
    let id =
        detached(py, || unsafe { context.recorder.adopt_memory(dtype, &extents, &adoption) }).map_err(exception)?;
    let names = if versioned { VERSIONED } else { PLAIN };
    // SAFETY: the capsule lives, and the name is static; the memory has an owner now.
    unsafe { ffi::PyCapsule_SetName(capsule.as_ptr(), names[1].as_ptr()) };
    let view = contiguous(&extents).map_err(value_error)?;
    Ok((Array::new(context, id, dtype, view), before, shape, stride, read_only || !versioned))
}
