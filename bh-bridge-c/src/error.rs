//! The last error of a thread, the place in the user's program, and the frame around every exported function.

use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_recorder::Location;
use std::cell::Cell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

/// Outcome of a call: `BH_OK` (0) or one of the other `BH_STATUS_*` numbers.
pub type bh_status = i32;

/// The last error of a thread, as C strings.
struct LastError {
    status: bh_status,
    text: CString,
    file: CString,
    line: u32,
}

/// Texts that a thread's calls returned by address. Freed when the thread ends; later calls, from destructors, leak what they
/// return.
#[derive(Default)]
struct Kept {
    last: Option<LastError>,
    /// The text that a call returned last.
    text: CString,
}

/// Frees what a thread keeps.
struct Freed;

impl Drop for Freed {
    fn drop(&mut self) {
        let kept = KEPT.replace(ptr::null_mut());
        if !kept.is_null() {
            // SAFETY: the pointer comes from `Box::into_raw` in `kept`, and nothing else frees it.
            drop(unsafe { Box::from_raw(kept) });
        }
    }
}

thread_local! {
    /// Without a destructor, so that it works in those of others.
    static KEPT: Cell<*mut Kept> = const { Cell::new(ptr::null_mut()) };
    static FREED: Freed = const { Freed };
    /// The place that `bh_at` noted for the next recording call.
    static PLACE: Cell<(*const c_char, u32)> = const { Cell::new((ptr::null(), 0)) };
}

/// Calls `f` with what the thread keeps.
fn with_kept<T>(f: impl FnOnce(&mut Kept) -> T) -> T {
    if KEPT.get().is_null() {
        KEPT.set(Box::into_raw(Box::default()));
        // Has the thread's end free it, unless that has come already.
        let _ = FREED.try_with(|_| ());
    }
    // SAFETY: made above or before, freed by this thread's end only, and `f` is no function that comes here again.
    f(unsafe { &mut *KEPT.get() })
}

/// Calls `f` with the last error of the thread.
fn with_last<T>(f: impl FnOnce(Option<&LastError>) -> T) -> T {
    // SAFETY: null, or made by `with_kept` and freed by this thread's end only; `f` reads it, and calls nothing that
    // changes it.
    f(unsafe { KEPT.get().as_ref() }.and_then(|kept| kept.last.as_ref()))
}

/// Runs the body of an exported function: errors and panics become a status and the thread's last error.
#[inline]
pub(crate) fn frame(body: impl FnOnce() -> Result<()>) -> bh_status {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => {
            // A place is good for one call only.
            PLACE.set((ptr::null(), 0));
            status::OK
        }
        Ok(Err(error)) => note(error),
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
            note(Error::new(status::PANIC, format!("internal error: {text}")))
        }
    }
}

/// Where a caller wants a pointer written: null, or the address of one.
#[derive(Clone, Copy)]
pub(crate) struct Out<P>(*mut P);

impl<P> Out<P> {
    /// # Safety
    /// `place` must be null or writable for a pointer while the value is used.
    #[inline]
    pub(crate) unsafe fn new(place: *mut P) -> Out<P> {
        Out(place)
    }

    /// Writes a pointer; fails if there is no place for it.
    #[inline]
    fn put(self, pointer: P) -> Result<()> {
        if self.0.is_null() {
            return Err(null("out"));
        }
        // SAFETY: not null, and so writable for a pointer, as [`Out::new`] asks.
        unsafe { self.0.write(pointer) };
        Ok(())
    }
}

/// As [`frame`], for functions that return a handle through `out`, which becomes null on failure.
#[inline]
pub(crate) fn frame_out<T>(out: Out<*mut T>, body: impl FnOnce() -> Result<*mut T>) -> bh_status {
    frame(|| {
        out.put(ptr::null_mut())?;
        out.put(body()?)
    })
}

#[cold]
fn note(error: Error) -> bh_status {
    let (file, line) = match error.origin {
        Some((file, line)) => (c_string(&file), line),
        None => with_place(|place| (c_string(&String::from_utf8_lossy(place.file)), place.line)),
    };
    PLACE.set((ptr::null(), 0));
    let text = match error.rank {
        Some(rank) => format!("{} (rank {rank})", error.text),
        None => error.text,
    };
    let last = LastError { status: error.status, text: c_string(&text), file, line };
    with_kept(|kept| kept.last = Some(last));
    error.status
}

fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}

/// A required pointer is null.
#[cold]
pub(crate) fn null(name: &str) -> Error {
    Error::new(status::ARGUMENT, format!("argument '{name}' is null"))
}

/// An argument is wrong.
#[cold]
pub(crate) fn argument(text: String) -> Error {
    Error::new(status::ARGUMENT, text)
}

/// Gives the place that `bh_at` noted to `f`.
#[inline]
pub(crate) fn with_place<T>(f: impl FnOnce(Location<'_>) -> T) -> T {
    let (file, line) = PLACE.get();
    if file.is_null() {
        return f(Location::UNKNOWN);
    }
    // SAFETY: `bh_at` asks for a string that lives until the end of the call that follows it, which is this one: `frame`
    // forgets the place where a call ends.
    f(Location { file: unsafe { CStr::from_ptr(file) }.to_bytes(), line })
}

/// Keeps a text for the thread and writes its address to `out`.
pub(crate) fn give_text(out: Out<*const c_char>, text: &str) -> Result<()> {
    let text = c_string(text);
    // The one that was kept stays where nobody learns of the new one.
    out.put(text.as_ptr())?;
    with_kept(|kept| kept.text = text);
    Ok(())
}

/// Reads a text argument.
///
/// # Safety
/// `text` must be null or a C string that lives as long as the result is used.
pub(crate) unsafe fn read_text<'a>(text: *const c_char, name: &str) -> Result<&'a str> {
    if text.is_null() {
        return Err(null(name));
    }
    // SAFETY: not null, and so a C string that lives as long as the result is used, as `# Safety` asks.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| argument(format!("argument '{name}' is not UTF-8")))
}

/// Notes a place in the program for the next call of this thread. The macros of this header call it; other languages may
/// call it before each operation. `file` must live until that call returns.
///
/// # Safety
/// `file` must be null or a C string that lives until the thread's next call that returns a status has returned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_at(file: *const c_char, line: u32) {
    PLACE.set((file, line));
}

/// Status of the last call of this thread that failed; 0 if none did.
#[unsafe(no_mangle)]
pub extern "C" fn bh_error_status() -> bh_status {
    with_last(|last| last.map_or(status::OK, |last| last.status))
}

/// Message of the last failure of this thread; empty if there was none. Valid until the next failure of the thread.
#[unsafe(no_mangle)]
pub extern "C" fn bh_error_message() -> *const c_char {
    with_last(|last| last.map_or(c"".as_ptr(), |last| last.text.as_ptr()))
}

/// File in which the operation that failed was recorded; empty if it is not known. Valid as the message is.
#[unsafe(no_mangle)]
pub extern "C" fn bh_error_file() -> *const c_char {
    with_last(|last| last.map_or(c"".as_ptr(), |last| last.file.as_ptr()))
}

/// Line at which the operation that failed was recorded; 0 if it is not known.
#[unsafe(no_mangle)]
pub extern "C" fn bh_error_line() -> u32 {
    with_last(|last| last.map_or(0, |last| last.line))
}

/// Forgets the last failure of this thread.
#[unsafe(no_mangle)]
pub extern "C" fn bh_error_clear() {
    with_kept(|kept| kept.last = None);
}

/// A short text for a status; "unknown status" for other numbers.
#[unsafe(no_mangle)]
pub extern "C" fn bh_status_text(status: bh_status) -> *const c_char {
    let text = match status {
        status::OK => c"success",
        status::CONFIG => c"the configuration is wrong",
        status::LIBRARY => c"a library could not be loaded or is no component",
        status::VERSION => c"versions of the component interface differ",
        status::INIT => c"a component could not start",
        status::FILE => c"a file could not be used or is damaged",
        status::ARGUMENT => c"an argument is wrong",
        status::TYPE => c"element types do not fit the operation",
        status::SHAPE => c"shapes do not fit each other",
        status::BOUNDS => c"a view or an index leaves its array",
        status::HANDLE => c"a handle is null, freed or of another context",
        status::BATCH => c"a batch is malformed",
        status::SHUTDOWN => c"the context was shut down",
        status::UNSUPPORTED => c"nothing in the stack can do it",
        status::MEMORY => c"out of memory",
        status::DEVICE => c"a device failed",
        status::EXECUTION => c"an operation failed while it ran",
        status::PANIC => c"internal error",
        status::CHECK => c"a check found a bad number",
        _ => c"unknown status",
    };
    text.as_ptr()
}
