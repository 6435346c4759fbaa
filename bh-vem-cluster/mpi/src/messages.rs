//! Messages through MPI: non-blocking sends, probes, receives, and the end of the connection.

use crate::call::{check, communicator, initialise, library};
use bh_cluster_abi::{OpenOptions, ReleaseFn};
use mpi::ffi;
use std::ffi::{c_int, c_void};
use std::rc::Rc;

/// Message tags: a whole message; the length of a message in parts; its parts; the end of rank 0's process.
const WHOLE: c_int = 1;
const LENGTH: c_int = 2;
const PART: c_int = 3;
const END: c_int = 4;

/// The connected processes.
#[derive(Clone, Debug)]
pub struct World {
    pub ranks: u32,
    pub rank: u32,
    /// The program initialised MPI and finalises it.
    pub borrowed: bool,
    /// Other threads may call MPI concurrently.
    pub multiple: bool,
    pub library: String,
}

/// The bytes of a message being sent.
pub struct Bytes {
    data: *const u8,
    len: usize,
    owner: *mut c_void,
    release: Option<ReleaseFn>,
}

impl Bytes {
    /// Bytes that live until `release` is called.
    ///
    /// # Safety
    /// `data` must be readable for `len` bytes until `release` is called with `owner`, once, on any thread.
    pub unsafe fn owned(data: *const u8, len: usize, owner: *mut c_void, release: ReleaseFn) -> Bytes {
        Bytes { data, len, owner, release: Some(release) }
    }

    /// A number as the bytes of a message, freed after it is sent.
    fn number(value: u64) -> Bytes {
        unsafe extern "C" fn free(owner: *mut c_void) {
            // SAFETY: `owner` comes from `Box::into_raw` below, and is released once.
            drop(unsafe { Box::from_raw(owner.cast::<u64>()) });
        }
        let owner = Box::into_raw(Box::new(value));
        Bytes { data: owner.cast(), len: 8, owner: owner.cast(), release: Some(free) }
    }

    fn nothing() -> Bytes {
        Bytes { data: std::ptr::NonNull::dangling().as_ptr(), len: 0, owner: std::ptr::null_mut(), release: None }
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: `owned` requires a `release` that accepts `owner`, or it is that of `number`; this is the only
            // call.
            unsafe { release(self.owner) };
        }
    }
}

/// A part being sent.
struct Sending {
    request: ffi::MPI_Request,
    /// The message, kept until all of its parts are sent.
    _bytes: Rc<Bytes>,
}

/// A message that was found and not yet taken.
enum Arriving {
    Whole { message: ffi::MPI_Message, len: usize },
    Parts { from: c_int, len: usize },
}

/// A posted receive.
struct Expected {
    from: u32,
    request: ffi::MPI_Request,
    len: usize,
}

/// The result of a probe.
pub enum Found {
    /// No message yet.
    Nothing,
    /// A message of this many bytes, ready to be taken.
    Message(usize),
    /// Rank 0's process has ended.
    End,
}

/// The connection to the other processes.
pub struct Messages {
    comm: ffi::MPI_Comm,
    world: World,
    part: usize,
    sending: Vec<Sending>,
    expected: Vec<Expected>,
    arriving: Option<Arriving>,
    ended: bool,
}

// SAFETY: MPI handles and messages may be used from any thread, one at a time, as MPI_THREAD_SERIALIZED allows. All
// owners of a message's `Rc` are in this value.
unsafe impl Send for Messages {}

impl Messages {
    /// Initialises MPI unless the program has done so, and connects.
    pub fn start(options: &Options) -> Result<Messages, String> {
        let (borrowed, multiple) = initialise()?;
        let comm = communicator(options.communicator)?;
        let (mut ranks, mut rank) = (0, 0);
        // SAFETY: the communicator is valid.
        unsafe {
            check(ffi::MPI_Comm_size(comm, &mut ranks), "MPI_Comm_size")?;
            check(ffi::MPI_Comm_rank(comm, &mut rank), "MPI_Comm_rank")?;
        }
        let world = World { ranks: ranks as u32, rank: rank as u32, borrowed, multiple, library: library() };
        Ok(Messages { comm, world, part: options.part, sending: Vec::new(), expected: Vec::new(), arriving: None, ended: false })
    }

    /// Rank, size and library.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Sends a message, in parts if it is long.
    pub fn send(&mut self, to: u32, bytes: Bytes) -> Result<(), String> {
        let len = bytes.len;
        if len <= self.part {
            return self.send_parts(to, bytes, WHOLE);
        }
        self.send_parts(to, Bytes::number(len as u64), LENGTH)?;
        self.send_parts(to, bytes, PART)
    }

    fn send_parts(&mut self, to: u32, bytes: Bytes, tag: c_int) -> Result<(), String> {
        let bytes = Rc::new(bytes);
        let mut first = 0;
        loop {
            let length = (bytes.len - first).min(self.part.max(8));
            // SAFETY: requests are numbers or pointers, for which zeros are valid; the call below sets them.
            let mut request = unsafe { std::mem::zeroed::<ffi::MPI_Request>() };
            let (what, to, comm) = (ffi_byte(), to as c_int, self.comm);
            // SAFETY: `sending` keeps the bytes until the request is complete.
            let code = unsafe {
                let data = bytes.data.add(first).cast();
                ffi::MPI_Isend(data, length as c_int, what, to, tag, comm, &mut request)
            };
            check(code, &format!("sending {length} bytes to rank {to}"))?;
            self.sending.push(Sending { request, _bytes: Rc::clone(&bytes) });
            first += length;
            if first >= bytes.len {
                return self.progress();
            }
        }
    }

    /// Releases messages that are sent.
    pub fn progress(&mut self) -> Result<(), String> {
        let mut index = 0;
        while let Some(sending) = self.sending.get_mut(index) {
            let mut done = 0;
            // SAFETY: the request was started and is not complete.
            let code = unsafe { ffi::MPI_Test(&mut sending.request, &mut done, status_ignore()) };
            check(code, "a send")?;
            if done != 0 {
                self.sending.swap_remove(index);
            } else {
                index += 1;
            }
        }
        Ok(())
    }

    /// Are all messages sent?
    pub fn is_idle(&self) -> bool {
        self.sending.is_empty()
    }

    /// Posts a receive for the next message from a rank. Messages in parts are not received this way.
    ///
    /// # Safety
    /// `data` must be writable for `len` bytes, and used by nobody else, until [`Messages::look`] has found the
    /// message, or for ever.
    pub unsafe fn expect(&mut self, from: u32, data: *mut u8, len: usize) -> Result<(), String> {
        // SAFETY: requests are numbers or pointers, for which zeros are valid; the call below sets them.
        let mut request = unsafe { std::mem::zeroed::<ffi::MPI_Request>() };
        // SAFETY: the caller guarantees `len` writable bytes until the request is complete or for ever, and MPI
        // receives no more than these.
        let code = unsafe {
            let (count, source) = (len as c_int, from as c_int);
            ffi::MPI_Irecv(data.cast(), count, ffi_byte(), source, WHOLE, self.comm, &mut request)
        };
        check(code, &format!("expecting {len} bytes from rank {from}"))?;
        self.expected.push(Expected { from, request, len });
        Ok(())
    }

    /// The length of a posted receive's message, if it is complete.
    fn look_at_expected(&mut self, place: usize) -> Result<Option<usize>, String> {
        let (mut done, expected) = (0, &mut self.expected[place]);
        let (from, len) = (expected.from, expected.len);
        // SAFETY: the call fills the status; the request was started and is not complete.
        let state = unsafe {
            let mut state = std::mem::zeroed::<ffi::MPI_Status>();
            let code = ffi::MPI_Test(&mut expected.request, &mut done, &mut state);
            check(code, &format!("receiving {len} bytes from rank {from}"))?;
            state
        };
        if done == 0 {
            return Ok(None);
        }
        self.expected.swap_remove(place);
        let mut count = 0;
        // SAFETY: the call above filled the status.
        check(unsafe { ffi::MPI_Get_count(&state, ffi_byte(), &mut count) }, "MPI_Get_count")?;
        match count as usize == len {
            true => Ok(Some(len)),
            false => Err(format!("rank {from} sent {count} bytes in place of {len}")),
        }
    }

    /// Probes for the next message from a rank. Forwards rank 0's end to this rank's children in the tree.
    pub fn look(&mut self, from: u32) -> Result<Found, String> {
        if self.ended {
            return Ok(Found::End);
        }
        let expected = self.expected.iter().position(|expected| expected.from == from);
        if let Some(len) = expected.map_or(Ok(None), |place| self.look_at_expected(place))? {
            return Ok(Found::Message(len));
        }
        let mut found = 0;
        let what = || format!("waiting for rank {from}");
        // SAFETY: the calls fill these plain values of MPI.
        let (message, tag, len) = unsafe {
            let mut message = std::mem::zeroed::<ffi::MPI_Message>();
            let mut state = std::mem::zeroed::<ffi::MPI_Status>();
            // While a receive is posted, only the end can come first.
            let tag = if expected.is_some() { END } else { ffi::RSMPI_ANY_TAG };
            let (source, comm) = (from as c_int, self.comm);
            check(ffi::MPI_Improbe(source, tag, comm, &mut found, &mut message, &mut state), &what())?;
            if found == 0 {
                self.progress()?;
                return Ok(Found::Nothing);
            }
            let mut count = 0;
            check(ffi::MPI_Get_count(&state, ffi_byte(), &mut count), "MPI_Get_count")?;
            (message, state.MPI_TAG, count as usize)
        };
        match tag {
            END => {
                receive(message, &mut [])?;
                self.end()?;
                Ok(Found::End)
            }
            LENGTH => {
                let mut number = [0; 8];
                receive(message, &mut number)?;
                let len = u64::from_ne_bytes(number) as usize;
                self.arriving = Some(Arriving::Parts { from: from as c_int, len });
                Ok(Found::Message(len))
            }
            _ => {
                self.arriving = Some(Arriving::Whole { message, len });
                Ok(Found::Message(len))
            }
        }
    }

    /// Copies the message that was found last.
    pub fn take(&mut self, into: &mut [u8]) -> Result<(), String> {
        match self.arriving.take() {
            Some(Arriving::Whole { message, len }) if len == into.len() => receive(message, into),
            Some(Arriving::Parts { from, len }) if len == into.len() => {
                for part in into.chunks_mut(self.part.max(8)) {
                    let (data, count, comm) = (part.as_mut_ptr().cast(), part.len() as c_int, self.comm);
                    // SAFETY: `data` points to `count` writable bytes of the part.
                    let code = unsafe { ffi::MPI_Recv(data, count, ffi_byte(), from, PART, comm, status_ignore()) };
                    check(code, &format!("receiving {count} bytes from rank {from}"))?;
                }
                Ok(())
            }
            _ => Err("the length of a message is not that which was announced".into()),
        }
    }

    /// Waits until all sent messages have left.
    pub fn flush(&mut self) -> Result<(), String> {
        while !self.is_idle() {
            self.progress()?;
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Forwards the end of rank 0's process to this rank's children in the tree.
    fn end(&mut self) -> Result<(), String> {
        self.ended = true;
        for mut expected in self.expected.drain(..) {
            // SAFETY: the request was started and is not complete; the memory that it receives into lives on.
            unsafe {
                check(ffi::MPI_Cancel(&mut expected.request), "MPI_Cancel")?;
                check(ffi::MPI_Wait(&mut expected.request, status_ignore()), "MPI_Wait")?;
            }
        }
        for rank in followers(self.world.rank, self.world.ranks) {
            self.send_parts(rank, Bytes::nothing(), END)?;
        }
        self.flush()
    }

    /// Ends the connection: rank 0 informs the others; waits until all messages are sent; finalises MPI unless the
    /// program does so.
    pub fn finish(&mut self) -> Result<(), String> {
        if self.world.borrowed {
            return Ok(());
        }
        if self.world.rank == 0 {
            self.end()?;
        }
        self.flush()?;
        // SAFETY: this is the thread that initialised MPI, and no call of MPI follows.
        check(unsafe { ffi::MPI_Finalize() }, "MPI_Finalize")
    }

    /// A handle that can end all processes.
    pub fn aborter(&self) -> Aborter {
        Aborter { comm: self.comm }
    }
}

/// A handle that can end all processes, even while other threads call MPI.
#[derive(Clone, Copy)]
pub struct Aborter {
    comm: ffi::MPI_Comm,
}

// SAFETY: an MPI handle is a plain value, valid on all threads of the process.
unsafe impl Send for Aborter {}
// SAFETY: an MPI handle is a plain value, valid on all threads of the process.
unsafe impl Sync for Aborter {}

impl Aborter {
    /// Ends all processes; does not return.
    pub fn abort(self, code: i32) -> ! {
        // SAFETY: MPI is initialised, and the call does not return.
        unsafe { ffi::MPI_Abort(self.comm, code) };
        std::process::abort()
    }
}

/// The options of [`OpenOptions`], copied.
pub struct Options {
    communicator: Option<i32>,
    part: usize,
}

impl Options {
    /// Copies the caller's options.
    ///
    /// # Safety
    /// `options.communicator` must be null or point to a handle.
    pub unsafe fn read(options: &OpenOptions) -> Options {
        let longest = c_int::MAX as usize & !7;
        // SAFETY: the caller guarantees null or a valid pointer to a handle, which is copied.
        let communicator = unsafe { options.communicator.as_ref() }.copied();
        Options { communicator, part: options.part_bytes.clamp(8, longest) }
    }
}

/// Receives a probed message.
fn receive(mut message: ffi::MPI_Message, into: &mut [u8]) -> Result<(), String> {
    let (data, count) = (into.as_mut_ptr().cast(), into.len() as c_int);
    // SAFETY: `data` points to `count` writable bytes, and the message was probed and not yet received.
    check(unsafe { ffi::MPI_Mrecv(data, count, ffi_byte(), &mut message, status_ignore()) }, "receiving a message")
}

/// MPI_STATUS_IGNORE.
fn status_ignore() -> *mut ffi::MPI_Status {
    // SAFETY: reads a constant of the library.
    unsafe { ffi::RSMPI_STATUS_IGNORE }
}

/// The MPI type of a byte.
fn ffi_byte() -> ffi::MPI_Datatype {
    // SAFETY: reads a constant of the library.
    unsafe { ffi::RSMPI_UINT8_T }
}

/// A rank's children in the binomial tree with root 0.
fn followers(rank: u32, ranks: u32) -> impl Iterator<Item = u32> {
    let bits = if rank == 0 { 31 } else { rank.trailing_zeros() };
    (0..bits).rev().map(move |bit| rank + (1 << bit)).filter(move |&other| other < ranks)
}
