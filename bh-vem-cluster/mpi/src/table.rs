//! The C side: starts the thread and passes requests to it.

use crate::worker::{Received, Request, Worker, World};
use bh_cluster_abi::{TransportTable, VERSION, outcome};
use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// How long the end of the process waits for the others to take note of it.
const LAST_WORDS: Duration = Duration::from_secs(20);

/// The thread, as the rest of the process sees it.
struct Transport {
    requests: Mutex<Sender<Request>>,
    answers: Mutex<Receiver<Result<Received, String>>>,
    message: Mutex<Vec<u8>>,
    failure: Mutex<String>,
    rank: u32,
    process: i32,
}

/// The transport of the process and its table.
struct Open {
    transport: &'static Transport,
    table: &'static TransportTable,
}

static OPEN: OnceLock<Result<Open, String>> = OnceLock::new();

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// See [`bh_cluster_abi::OpenFn`].
///
/// # Safety
/// `communicator` must be null or point to a Fortran handle; `error` must have room for `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_cluster_transport_open(
    version: u32,
    communicator: *const i32,
    error: *mut c_char,
    capacity: usize,
) -> *const TransportTable {
    if version != VERSION {
        let text = format!("the MPI library of bh has version {VERSION} of the interface, not {version}");
        // SAFETY: promised by the caller.
        unsafe { put_text(&text, error, capacity) };
        return std::ptr::null();
    }
    // SAFETY: promised by the caller.
    let handle = unsafe { communicator.as_ref().copied() };
    match OPEN.get_or_init(|| start(handle)) {
        Ok(open) => open.table,
        Err(text) => {
            // SAFETY: promised by the caller.
            unsafe { put_text(text, error, capacity) };
            std::ptr::null()
        }
    }
}

fn start(handle: Option<i32>) -> Result<Open, String> {
    let (requests, taken) = channel::<Request>();
    let (answer, answers) = channel::<Result<Received, String>>();
    let (started, start) = channel::<Result<World, String>>();
    let run = move || match Worker::start(handle) {
        Ok(worker) => {
            let _ = started.send(Ok(worker.world()));
            worker.serve(&taken, &answer);
        }
        Err(text) => drop(started.send(Err(text))),
    };
    let thread = std::thread::Builder::new().name("bh-mpi".into()).spawn(run);
    thread.map_err(|error| format!("the thread for MPI cannot be started: {error}"))?;
    let world = start.recv().map_err(|_| "the thread for MPI ended while it started".to_owned())??;
    let transport = Transport {
        requests: Mutex::new(requests),
        answers: Mutex::new(answers),
        message: Mutex::default(),
        failure: Mutex::default(),
        rank: world.rank,
        process: std::process::id() as i32,
    };
    let transport: &'static Transport = Box::leak(Box::new(transport));
    let library = CString::new(world.library).unwrap_or_default();
    let table = TransportTable {
        struct_size: size_of::<TransportTable>(),
        ranks: world.ranks,
        rank: world.rank,
        library: library.into_raw(),
        context: std::ptr::from_ref(transport).cast_mut().cast(),
        send,
        receive,
        take,
        error,
        abort,
    };
    // SAFETY: the function is in a library that is never unloaded.
    unsafe { libc::atexit(at_exit) };
    Ok(Open { transport, table: Box::leak(Box::new(table)) })
}

/// The process ends: MPI is finalised, and rank 0 lets the others end.
extern "C" fn at_exit() {
    let Some(Ok(open)) = OPEN.get() else { return };
    let transport = open.transport;
    if std::process::id() as i32 != transport.process {
        return;
    }
    if lock(&transport.requests).send(Request::Finish).is_err() {
        return;
    }
    let Ok(answers) = transport.answers.try_lock() else { return };
    if let Err(RecvTimeoutError::Timeout) = answers.recv_timeout(LAST_WORDS) {
        eprintln!("bh: rank {}: the other ranks do not end", transport.rank);
    }
}

/// The transport behind a context.
///
/// # Safety
/// `context` must be that of the table.
unsafe fn transport<'a>(context: *mut c_void) -> &'a Transport {
    // SAFETY: promised by the caller; transports live as long as the process.
    unsafe { &*context.cast::<Transport>() }
}

impl Transport {
    fn fail(&self, text: &str) -> i32 {
        text.clone_into(&mut lock(&self.failure));
        outcome::FAILED
    }
}

unsafe extern "C" fn send(context: *mut c_void, to: u32, data: *const u8, bytes: usize) -> i32 {
    // SAFETY: the caller's bytes live through the call; a message without bytes may have a null pointer.
    let (transport, bytes) = unsafe {
        let bytes = if bytes == 0 { Vec::new() } else { std::slice::from_raw_parts(data, bytes).to_vec() };
        (transport(context), bytes)
    };
    match lock(&transport.requests).send(Request::Send { to, bytes }) {
        Ok(()) => outcome::OK,
        Err(_) => transport.fail("MPI is finalised"),
    }
}

unsafe extern "C" fn receive(context: *mut c_void, from: u32, bytes: *mut usize) -> i32 {
    // SAFETY: the context is the table's.
    let transport = unsafe { transport(context) };
    if lock(&transport.requests).send(Request::Receive { from }).is_err() {
        return transport.fail("MPI is finalised");
    }
    let answer = lock(&transport.answers).recv();
    match answer {
        Ok(Ok(Received::Message(message))) => {
            // SAFETY: the caller's place for the length.
            unsafe { *bytes = message.len() };
            *lock(&transport.message) = message;
            outcome::OK
        }
        Ok(Ok(Received::Ended)) => outcome::ENDED,
        Ok(Err(text)) => transport.fail(&text),
        Err(_) => transport.fail("the thread for MPI has ended"),
    }
}

unsafe extern "C" fn take(context: *mut c_void, data: *mut u8, bytes: usize) -> i32 {
    // SAFETY: the context is the table's.
    let transport = unsafe { transport(context) };
    let message = std::mem::take(&mut *lock(&transport.message));
    if message.len() != bytes {
        return transport.fail("the length of a message is not that which was announced");
    }
    if bytes > 0 {
        // SAFETY: the caller has room for so many bytes.
        unsafe { std::ptr::copy_nonoverlapping(message.as_ptr(), data, bytes) };
    }
    outcome::OK
}

unsafe extern "C" fn error(context: *mut c_void, text: *mut c_char, capacity: usize) {
    // SAFETY: the context is the table's, and the caller has room.
    unsafe { put_text(&lock(&transport(context).failure), text, capacity) }
}

unsafe extern "C" fn abort(context: *mut c_void, text: *const c_char) {
    // SAFETY: the context is the table's, and the text ends with a NUL.
    let (transport, text) = unsafe { (transport(context), CStr::from_ptr(text).to_string_lossy()) };
    eprintln!("bh: rank {}: {text}", transport.rank);
    let _ = lock(&transport.requests).send(Request::Abort);
    // The thread ends the process.
    std::thread::sleep(LAST_WORDS);
    std::process::abort();
}

/// Writes a text with its NUL, cut to fit.
///
/// # Safety
/// `into` must have room for `capacity` bytes.
unsafe fn put_text(text: &str, into: *mut c_char, capacity: usize) {
    let Some(room) = capacity.checked_sub(1) else { return };
    let count = text.len().min(room);
    // SAFETY: promised by the caller.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr().cast(), into, count);
        *into.add(count) = 0;
    }
}
