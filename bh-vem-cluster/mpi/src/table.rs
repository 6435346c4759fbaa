//! The C interface: one connection per process, and its end.

use crate::messages::{Aborter, Bytes, Found, Options};
use crate::owner::Owner;
use bh_cluster_abi::{OpenOptions, ReleaseFn, TransportTable, VERSION, outcome};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The longest wait at the end of the process for the others to notice it. A limit against hanging only: loaded
/// machines may stop processes for seconds.
const LAST_WORDS: Duration = Duration::from_secs(60);

/// The longest wait for another thread's call before aborting the job.
const CALL: Duration = Duration::from_secs(10);

/// The time without a message after which a receive pauses between probes.
const PATIENCE: Duration = Duration::from_millis(5);

/// The first and the longest pause.
const PAUSES: [Duration; 2] = [Duration::from_micros(50), Duration::from_millis(1)];

/// The connection as other threads of the process see it.
struct Transport {
    owner: Owner,
    aborter: Aborter,
    failure: Mutex<String>,
    rank: u32,
    process: i32,
    /// The owner thread may progress messages during calls of others: MPI allows concurrent calls, or the program makes
    /// none.
    moves_on: bool,
    borrowed: bool,
    /// A caller waits for a message.
    waiting: AtomicBool,
    /// The exit code to end with instead of the process's own.
    code: AtomicI32,
}

/// The process's transport and its table.
struct Open {
    transport: &'static Transport,
    table: &'static TransportTable,
}

static OPEN: OnceLock<Result<Open, String>> = OnceLock::new();

unsafe extern "C" {
    /// Like `atexit`, with the exit code.
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
    fn fflush(stream: *mut c_void) -> c_int;
}

/// Implements [`bh_cluster_abi::OpenFn`].
///
/// # Safety
/// `options` must point to options whose communicator is null or points to a handle, and `error` must have space for
/// `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_cluster_transport_open(
    version: u32,
    options: *const OpenOptions,
    error: *mut c_char,
    capacity: usize,
) -> *const TransportTable {
    if version != VERSION {
        let text = format!("the MPI library of bh has version {VERSION} of the interface, not {version}");
        // SAFETY: the caller guarantees `capacity` writable bytes at `error`.
        unsafe { put_text(&text, error, capacity) };
        return std::ptr::null();
    }
    // SAFETY: the caller guarantees valid options, as `Options::read` requires.
    let start = || start(unsafe { Options::read(&*options) });
    match OPEN.get_or_init(start) {
        Ok(open) => open.table,
        Err(text) => {
            // SAFETY: the caller guarantees `capacity` writable bytes at `error`.
            unsafe { put_text(text, error, capacity) };
            std::ptr::null()
        }
    }
}

fn start(options: Options) -> Result<Open, String> {
    let (owner, world) = Owner::start(options)?;
    let aborter = owner.messages().aborter();
    let transport = Transport {
        owner,
        aborter,
        failure: Mutex::default(),
        rank: world.rank,
        process: std::process::id() as i32,
        moves_on: !world.borrowed || world.multiple,
        borrowed: world.borrowed,
        waiting: AtomicBool::new(false),
        code: AtomicI32::new(0),
    };
    let transport: &'static Transport = Box::leak(Box::new(transport));
    let library = CString::new(world.library).unwrap_or_default();
    let table = TransportTable {
        struct_size: size_of::<TransportTable>(),
        ranks: world.ranks,
        rank: world.rank,
        borrowed: u32::from(world.borrowed),
        library: library.into_raw(),
        context: std::ptr::from_ref(transport).cast_mut().cast(),
        send,
        expect,
        receive,
        take,
        flush,
        error,
        abort,
        end_with,
    };
    // SAFETY: the function is in a library that is never unloaded.
    unsafe { on_exit(at_exit, std::ptr::null_mut()) };
    Ok(Open { transport, table: Box::leak(Box::new(table)) })
}

/// At the end of the process: finalises MPI, on rank 0 after informing the others.
extern "C" fn at_exit(code: c_int, _argument: *mut c_void) {
    let Some(Ok(open)) = OPEN.get() else { return };
    let transport = open.transport;
    if std::process::id() as i32 != transport.process || transport.borrowed {
        return;
    }
    let wanted = transport.code.load(Ordering::Acquire);
    if wanted != 0 {
        // MPICH's launcher forgets exit codes of ranks that end normally after an interrupt. SAFETY: flushes C's
        // streams; null stands for all of them.
        unsafe { fflush(std::ptr::null_mut()) };
        transport.aborter.abort(wanted);
    }
    if transport.waiting.load(Ordering::Acquire) {
        // The program ends in the middle of an operation, and the other ranks wait for it.
        transport.aborter.abort(code);
    }
    match transport.owner.finish(LAST_WORDS) {
        Some(Ok(())) => {}
        Some(Err(text)) => eprintln!("bh: rank {}: {text}", transport.rank),
        None => {
            eprintln!("bh: rank {}: the other ranks do not end", transport.rank);
            transport.aborter.abort(if code == 0 { 1 } else { code });
        }
    }
}

/// The transport of a context.
///
/// # Safety
/// `context` must be that of the table that [`start`] created.
unsafe fn transport<'a>(context: *mut c_void) -> &'a Transport {
    // SAFETY: the caller guarantees a context that is the address of the transport, which is never freed.
    unsafe { &*context.cast_const().cast() }
}

impl Transport {
    fn fail(&self, text: String) -> i32 {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = text;
        outcome::FAILED
    }

    fn done(&self, outcome: Result<(), String>) -> i32 {
        outcome.map_or_else(|text| self.fail(text), |()| outcome::OK)
    }

    /// Waits for a message: probes continuously at first, because most arrive soon, then with pauses.
    fn wait(&self, from: u32) -> Result<Found, String> {
        let (mut began, mut pause) = (None, PAUSES[0]);
        loop {
            match self.owner.messages().look(from)? {
                Found::Nothing => {}
                found => return Ok(found),
            }
            let began = *began.get_or_insert_with(Instant::now);
            if began.elapsed() < PATIENCE {
                std::thread::yield_now();
            } else {
                std::thread::sleep(pause);
                pause = (pause * 2).min(PAUSES[1]);
            }
        }
    }
}

unsafe extern "C" fn send(
    context: *mut c_void,
    to: u32,
    data: *const u8,
    bytes: usize,
    owner: *mut c_void,
    release: ReleaseFn,
) -> i32 {
    // SAFETY: the context is the table's; the caller passes ownership of the bytes with `release`.
    let (transport, bytes) = unsafe { (transport(context), Bytes::owned(data, bytes, owner, release)) };
    let mut messages = transport.owner.messages();
    let sent = messages.send(to, bytes);
    if transport.moves_on && !messages.is_idle() {
        transport.owner.wake();
    }
    transport.done(sent)
}

unsafe extern "C" fn expect(context: *mut c_void, from: u32, data: *mut u8, bytes: usize) -> i32 {
    // SAFETY: the context is the table's.
    let transport = unsafe { transport(context) };
    // SAFETY: the caller's memory lives until the message has arrived.
    transport.done(unsafe { transport.owner.messages().expect(from, data, bytes) })
}

unsafe extern "C" fn receive(context: *mut c_void, from: u32, bytes: *mut usize) -> i32 {
    // SAFETY: the context is the table's.
    let transport = unsafe { transport(context) };
    transport.waiting.store(true, Ordering::Release);
    let found = transport.wait(from);
    transport.waiting.store(false, Ordering::Release);
    match found {
        Ok(Found::Message(count)) => {
            // SAFETY: the caller passes a writable place for the length.
            unsafe { *bytes = count };
            outcome::OK
        }
        Ok(_) => outcome::ENDED,
        Err(text) => transport.fail(text),
    }
}

unsafe extern "C" fn take(context: *mut c_void, data: *mut u8, bytes: usize) -> i32 {
    // SAFETY: the context is the table's.
    let transport = unsafe { transport(context) };
    let into: &mut [u8] = match bytes {
        0 => &mut [],
        // SAFETY: the caller passes `bytes` writable bytes.
        _ => unsafe { std::slice::from_raw_parts_mut(data, bytes) },
    };
    transport.done(transport.owner.messages().take(into))
}

unsafe extern "C" fn flush(context: *mut c_void) -> i32 {
    // SAFETY: the context is the table's.
    let transport = unsafe { transport(context) };
    transport.done(transport.owner.messages().flush())
}

unsafe extern "C" fn end_with(context: *mut c_void, code: i32) {
    // SAFETY: the context is the table's.
    unsafe { transport(context) }.code.store(code, Ordering::Release);
}

unsafe extern "C" fn error(context: *mut c_void, text: *mut c_char, capacity: usize) {
    // SAFETY: the context is the table's.
    let transport = unsafe { transport(context) };
    // SAFETY: the caller passes `capacity` writable bytes.
    unsafe { put_text(&transport.failure.lock().unwrap_or_else(PoisonError::into_inner), text, capacity) }
}

unsafe extern "C" fn abort(context: *mut c_void, text: *const c_char) {
    // SAFETY: the context is the table's, and the text ends with a NUL.
    let (transport, text) = unsafe { (transport(context), CStr::from_ptr(text).to_string_lossy()) };
    eprintln!("bh: rank {}: {text}", transport.rank);
    // Another thread's call ends soon, or hangs and no longer matters.
    let began = Instant::now();
    let _guard = loop {
        match transport.owner.try_messages() {
            None if began.elapsed() < CALL => std::thread::sleep(PAUSES[0]),
            guard => break guard,
        }
    };
    transport.aborter.abort(1)
}

/// Writes a text with a terminating NUL, cut to fit.
///
/// # Safety
/// `into` must be writable for `capacity` bytes, and not overlap the text.
unsafe fn put_text(text: &str, into: *mut c_char, capacity: usize) {
    let Some(room) = capacity.checked_sub(1) else { return };
    let count = text.len().min(room);
    // SAFETY: the `count` bytes and the NUL fit in `capacity` bytes, which the caller guarantees at `into`.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr().cast(), into, count);
        *into.add(count) = 0;
    }
}
