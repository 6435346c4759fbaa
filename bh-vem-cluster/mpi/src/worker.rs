//! The thread that makes all calls to MPI.

use crate::call::{check, communicator, library};
use mpi::ffi;
use std::collections::VecDeque;
use std::ffi::c_int;
use std::ptr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::time::{Duration, Instant};

/// The largest part of a message that one MPI call gets: counts are 31 bits wide.
const PART: usize = 1 << 30;

/// Tags of messages: the last part, a part before others, and the end of rank 0's process.
const LAST: c_int = 1;
const MORE: c_int = 2;
const END: c_int = 3;

/// After so long without a message, looking for one pauses between looks.
const PATIENCE: Duration = Duration::from_millis(5);

/// What the thread is asked to do.
pub enum Request {
    /// Send a message.
    Send { to: u32, bytes: Vec<u8> },
    /// Wait for a message and answer with it.
    Receive { from: u32 },
    /// Tell all others that rank 0 ends, and finalise. Answered when that is done.
    Finish,
    /// End all processes.
    Abort,
}

/// What came of a receive.
pub enum Received {
    /// A message.
    Message(Vec<u8>),
    /// Rank 0's process has ended.
    Ended,
}

/// What the thread is when it has started.
#[derive(Clone, Debug)]
pub struct World {
    pub ranks: u32,
    pub rank: u32,
    pub library: String,
}

/// A part that is on its way.
struct Sending {
    request: ffi::MPI_Request,
    /// The message, kept until its parts have left.
    _bytes: std::sync::Arc<Vec<u8>>,
}

/// MPI, on its thread.
pub struct Worker {
    comm: ffi::MPI_Comm,
    world: World,
    sending: VecDeque<Sending>,
    /// The program initialised MPI, and finalises it.
    borrowed: bool,
}

impl Worker {
    /// Initialises MPI unless the program has, which must then allow calls from several threads in turn.
    pub fn start(handle: Option<i32>) -> Result<Worker, String> {
        let (mut initialised, mut provided, mut finalised) = (0, 0, 0);
        // SAFETY: these calls are allowed at any time; MPI is initialised once, here.
        let comm = unsafe {
            check(ffi::MPI_Finalized(&mut finalised), "MPI_Finalized")?;
            if finalised != 0 {
                return Err("MPI was finalised before bh began to use it".into());
            }
            check(ffi::MPI_Initialized(&mut initialised), "MPI_Initialized")?;
            if initialised == 0 {
                let wanted = ffi::MPI_THREAD_SERIALIZED as c_int;
                check(
                    ffi::MPI_Init_thread(ptr::null_mut(), ptr::null_mut(), wanted, &mut provided),
                    "MPI_Init_thread",
                )?;
            } else {
                check(ffi::MPI_Query_thread(&mut provided), "MPI_Query_thread")?;
                if provided < ffi::MPI_THREAD_SERIALIZED as c_int {
                    return Err("the program must initialise MPI with MPI_THREAD_SERIALIZED or more".into());
                }
            }
            communicator(handle)?
        };
        let (mut ranks, mut rank) = (0, 0);
        // SAFETY: the communicator is valid.
        unsafe {
            check(ffi::MPI_Comm_size(comm, &mut ranks), "MPI_Comm_size")?;
            check(ffi::MPI_Comm_rank(comm, &mut rank), "MPI_Comm_rank")?;
        }
        let world = World { ranks: ranks as u32, rank: rank as u32, library: library() };
        Ok(Worker { comm, world, sending: VecDeque::new(), borrowed: initialised != 0 })
    }

    /// Number, rank and library.
    pub fn world(&self) -> World {
        self.world.clone()
    }

    /// Serves requests until the end.
    pub fn serve(mut self, requests: &Receiver<Request>, answers: &Sender<Result<Received, String>>) {
        loop {
            let request = match self.sending.is_empty() {
                true => requests.recv().map_err(|_| ()),
                // What is on its way needs calls to get on.
                false => match requests.recv_timeout(Duration::from_micros(50)) {
                    Err(RecvTimeoutError::Timeout) => {
                        if let Err(text) = self.progress() {
                            self.fail(&text);
                        }
                        continue;
                    }
                    other => other.map_err(|_| ()),
                },
            };
            let answer = match request {
                Err(()) => return,
                Ok(Request::Send { to, bytes }) => match self.send(to, bytes, LAST) {
                    Ok(()) => continue,
                    Err(text) => self.fail(&text),
                },
                Ok(Request::Receive { from }) => self.receive(from, requests),
                Ok(Request::Finish) => {
                    let outcome = self.finish();
                    let _ = answers.send(outcome.map(|()| Received::Ended));
                    return;
                }
                Ok(Request::Abort) => self.abort(),
            };
            if answers.send(answer).is_err() {
                return;
            }
        }
    }

    fn send(&mut self, to: u32, bytes: Vec<u8>, tag: c_int) -> Result<(), String> {
        let bytes = std::sync::Arc::new(bytes);
        let count = bytes.len().div_ceil(PART).max(1);
        for part in 0..count {
            let first = part * PART;
            let length = (bytes.len() - first).min(PART);
            let tag = if part + 1 == count { tag } else { MORE };
            // SAFETY: requests are numbers or pointers, which the call sets; the bytes are kept until it is complete.
            let mut request = unsafe { std::mem::zeroed::<ffi::MPI_Request>() };
            // SAFETY: as above.
            let code = unsafe {
                let data = bytes.as_ptr().add(first);
                ffi::MPI_Isend(
                    data.cast(),
                    length as c_int,
                    ffi::RSMPI_UINT8_T,
                    to as c_int,
                    tag,
                    self.comm,
                    &mut request,
                )
            };
            check(code, &format!("sending {length} bytes to rank {to}"))?;
            self.sending.push_back(Sending { request, _bytes: bytes.clone() });
        }
        self.progress()
    }

    /// Lets go of what has left.
    fn progress(&mut self) -> Result<(), String> {
        let mut index = 0;
        while let Some(sending) = self.sending.get_mut(index) {
            let mut done = 0;
            // SAFETY: the request is one that was started and not completed.
            let code = unsafe { ffi::MPI_Test(&mut sending.request, &mut done, status_ignore()) };
            check(code, "a send")?;
            if done != 0 {
                self.sending.swap_remove_back(index);
            } else {
                index += 1;
            }
        }
        Ok(())
    }

    /// The next message from a rank. Rank 0's end is passed on to those that wait for this rank.
    fn receive(&mut self, from: u32, requests: &Receiver<Request>) -> Result<Received, String> {
        let mut message = Vec::new();
        loop {
            let Some((tag, part)) = self.receive_part(from, requests)? else { return Ok(Received::Ended) };
            match tag {
                END => {
                    for rank in followers(self.world.rank, self.world.ranks) {
                        self.send(rank, Vec::new(), END)?;
                    }
                    return Ok(Received::Ended);
                }
                _ if message.is_empty() => message = part,
                _ => message.extend_from_slice(&part),
            }
            if tag == LAST {
                return Ok(Received::Message(message));
            }
        }
    }

    fn receive_part(&mut self, from: u32, requests: &Receiver<Request>) -> Result<Option<(c_int, Vec<u8>)>, String> {
        let began = Instant::now();
        loop {
            let mut found = 0;
            // SAFETY: plain values of MPI, filled by the calls; the buffer has as many bytes as the message.
            unsafe {
                let mut message = std::mem::zeroed::<ffi::MPI_Message>();
                let mut state = std::mem::zeroed::<ffi::MPI_Status>();
                let code = ffi::MPI_Improbe(
                    from as c_int,
                    ffi::RSMPI_ANY_TAG,
                    self.comm,
                    &mut found,
                    &mut message,
                    &mut state,
                );
                check(code, &format!("waiting for rank {from}"))?;
                if found != 0 {
                    let mut count = 0;
                    check(ffi::MPI_Get_count(&state, ffi::RSMPI_UINT8_T, &mut count), "MPI_Get_count")?;
                    let mut bytes = vec![0u8; count as usize];
                    let tag = state.MPI_TAG;
                    let data = bytes.as_mut_ptr().cast();
                    let code = ffi::MPI_Mrecv(data, count, ffi::RSMPI_UINT8_T, &mut message, status_ignore());
                    check(code, &format!("receiving {count} bytes from rank {from}"))?;
                    return Ok(Some((tag, bytes)));
                }
            }
            self.progress()?;
            match requests.try_recv() {
                // The program ends in the middle of an operation: the others are waiting for it.
                Ok(Request::Abort | Request::Finish) => self.abort(),
                Ok(_) | Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => return Ok(None),
            }
            if began.elapsed() > PATIENCE && self.sending.is_empty() {
                std::thread::sleep(Duration::from_micros(200));
            } else {
                std::thread::yield_now();
            }
        }
    }

    /// Tells the others that rank 0 ends, waits until all that was sent has left, and finalises MPI.
    fn finish(&mut self) -> Result<(), String> {
        if self.world.rank == 0 {
            for rank in followers(0, self.world.ranks) {
                self.send(rank, Vec::new(), END)?;
            }
        }
        while !self.sending.is_empty() {
            self.progress()?;
            std::thread::yield_now();
        }
        if self.borrowed {
            return Ok(());
        }
        // SAFETY: this thread initialised MPI, and nothing calls it after this.
        check(unsafe { ffi::MPI_Finalize() }, "MPI_Finalize")
    }

    /// Ends all processes; MPI does not return from it.
    fn abort(&self) -> ! {
        // SAFETY: MPI is initialised.
        unsafe { ffi::MPI_Abort(self.comm, 1) };
        std::process::abort()
    }

    fn fail(&self, text: &str) -> ! {
        eprintln!("bh: rank {}: {text}", self.world.rank);
        self.abort()
    }
}

/// "No status wanted".
fn status_ignore() -> *mut ffi::MPI_Status {
    // SAFETY: a constant of the library.
    unsafe { ffi::RSMPI_STATUS_IGNORE }
}

/// The ranks that a rank passes on to what is for all: a binomial tree whose root is rank 0.
fn followers(rank: u32, ranks: u32) -> impl Iterator<Item = u32> {
    let bits = if rank == 0 { 31 } else { rank.trailing_zeros() };
    (0..bits).rev().map(move |bit| rank + (1 << bit)).filter(move |&other| other < ranks)
}
