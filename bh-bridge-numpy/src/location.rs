//! Where in the user's program an operation is recorded: the innermost frame outside of this package.

use crate::text::intern;
use bh_recorder::Location;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, c_void};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, LazyLock, OnceLock};

// Part of the stable ABI since Python 3.10.
unsafe extern "C" {
    fn PyThreadState_GetFrame(thread: *mut ffi::PyThreadState) -> *mut ffi::PyObject;
    fn PyFrame_GetCode(frame: *mut ffi::PyObject) -> *mut ffi::PyObject;
}

/// Functions that Python has for frames since 3.11, but outside of the stable ABI: looked up where they exist, as asking for
/// the attribute takes longer than recording an operation.
struct Shortcuts {
    /// `PyFrame_GetLasti`.
    instruction: Option<unsafe extern "C" fn(*mut ffi::PyObject) -> std::ffi::c_int>,
    /// `PyFrame_GetBack`: a new reference, or null.
    back: Option<unsafe extern "C" fn(*mut ffi::PyObject) -> *mut ffi::PyObject>,
}

static SHORTCUTS: LazyLock<Shortcuts> = LazyLock::new(|| {
    // SAFETY: the names end with a zero.
    let find = |name: &CStr| unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    // SAFETY: Python's documentation gives these functions these types, and null is `None`.
    unsafe {
        Shortcuts {
            instruction: std::mem::transmute::<*mut c_void, Option<_>>(find(c"PyFrame_GetLasti")),
            back: std::mem::transmute::<*mut c_void, Option<_>>(find(c"PyFrame_GetBack")),
        }
    }
});

/// The place in its code at which a frame is.
#[inline]
fn instruction_of(frame: &Bound<'_, PyAny>) -> Option<u32> {
    match SHORTCUTS.instruction {
        // SAFETY: the object is a frame, and the thread is attached.
        Some(instruction) => u32::try_from(unsafe { instruction(frame.as_ptr()) }).ok(),
        None => frame.getattr(intern!(frame.py(), "f_lasti")).ok()?.extract().ok(),
    }
}

/// The frame that called this one.
fn caller_of<'py>(frame: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    match SHORTCUTS.back {
        // SAFETY: the object is a frame, and the thread is attached; the result is a new reference or null.
        Some(back) => unsafe { Bound::from_owned_ptr_or_opt(frame.py(), back(frame.as_ptr())) },
        None => {
            let caller = frame.getattr(intern!(frame.py(), "f_back")).ok()?;
            (!caller.is_none()).then_some(caller)
        }
    }
}

/// Places remembered per thread, at most: some megabytes. A program of more lines than that is looked up again.
const PLACES: usize = 1 << 16;

/// A place in a program, by code object and instruction.
type Key = (usize, u32);

/// The line of a place.
struct Line {
    /// Kept alive, so that its address names it.
    _code: Py<PyAny>,
    line: u32,
    /// `None` for code of this package.
    file: Option<Arc<[u8]>>,
}

/// Mixes the few bits in which places differ; nobody chooses them to collide.
#[derive(Default)]
struct Mixer(u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    #[inline]
    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    #[inline]
    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

#[derive(Default)]
struct Cache {
    places: HashMap<Key, Line, BuildHasherDefault<Mixer>>,
    /// Names of files, each kept once.
    files: HashSet<Arc<[u8]>>,
    /// Files below this directory are this package's.
    package: Box<[u8]>,
}

thread_local! {
    static CACHE: RefCell<Cache> = RefCell::default();
}

static PACKAGE: OnceLock<Box<[u8]>> = OnceLock::new();

/// Tells the directory of this package, whose frames are passed over.
#[pyfunction]
fn set_package(directory: &str) {
    // A second call, of a reloaded package, changes nothing.
    let _ = PACKAGE.set(directory.as_bytes().into());
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(set_package, module)?)?;
    module.add_function(wrap_pyfunction!(call_site, module)?)
}

/// File and line of the innermost frame outside of this package; ("", 0) if there is none.
#[pyfunction]
fn call_site(py: Python<'_>) -> (String, u32) {
    with_location(py, |location| (String::from_utf8_lossy(location.file).into_owned(), location.line))
}

/// Calls `f` with the place in the user's program that called into this package.
pub fn with_location<R>(py: Python<'_>, f: impl FnOnce(Location<'_>) -> R) -> R {
    CACHE.with(|cache| {
        // Recording runs no Python code, so this is not entered again; a destructor that does gets no place.
        let Ok(mut cache) = cache.try_borrow_mut() else { return f(Location::UNKNOWN) };
        match cache.find(py) {
            Some(place) => {
                let (file, line) = (place.file.as_deref().unwrap_or_default(), place.line);
                f(Location { file, line })
            }
            None => f(Location::UNKNOWN),
        }
    })
}

/// The address of the innermost frame outside of this package.
pub fn frame(py: Python<'_>) -> Option<usize> {
    CACHE.with(|cache| cache.try_borrow_mut().ok()?.frame(py)).map(|(frame, _)| frame.as_ptr().addr())
}

impl Cache {
    fn find(&mut self, py: Python<'_>) -> Option<&Line> {
        let (_, key) = self.frame(py)?;
        self.places.get(&key)
    }

    /// The innermost frame outside of this package, and its place.
    fn frame<'py>(&mut self, py: Python<'py>) -> Option<(Bound<'py, PyAny>, Key)> {
        // SAFETY: the thread is attached; the result is a new reference or null.
        let mut frame = unsafe { Bound::from_owned_ptr_or_opt(py, PyThreadState_GetFrame(ffi::PyThreadState_Get())) }?;
        loop {
            // SAFETY: `frame` is a frame object, and every frame has a code object; the result is a new reference.
            let code = unsafe { Bound::from_owned_ptr_or_opt(py, PyFrame_GetCode(frame.as_ptr())) }?;
            let instruction = instruction_of(&frame)?;
            let key = (code.as_ptr() as usize, instruction);
            if !self.places.contains_key(&key) {
                let place = self.look_up(&frame, code)?;
                if self.places.len() >= PLACES {
                    self.places.clear();
                    self.files.clear();
                }
                self.places.insert(key, place);
            }
            if self.places.get(&key).is_some_and(|place| place.file.is_some()) {
                return Some((frame, key));
            }
            frame = caller_of(&frame)?;
        }
    }

    #[cold]
    fn look_up(&mut self, frame: &Bound<'_, PyAny>, code: Bound<'_, PyAny>) -> Option<Line> {
        let py = frame.py();
        if self.package.is_empty()
            && let Some(package) = PACKAGE.get()
        {
            self.package = package.clone();
        }
        let line = frame.getattr(intern!(py, "f_lineno")).ok()?.extract().unwrap_or(0);
        let name = code.getattr(intern!(py, "co_filename")).ok()?;
        let name = name.cast::<PyString>().ok()?.to_string_lossy().into_owned();
        let own = !self.package.is_empty() && name.as_bytes().starts_with(&self.package);
        let file = (!own).then(|| self.file(name.as_bytes()));
        Some(Line { _code: code.unbind(), line, file })
    }

    /// The name of a file, shared by the places in it.
    fn file(&mut self, name: &[u8]) -> Arc<[u8]> {
        if let Some(known) = self.files.get(name) {
            return Arc::clone(known);
        }
        let new: Arc<[u8]> = name.into();
        self.files.insert(Arc::clone(&new));
        new
    }
}
