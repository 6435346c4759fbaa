//! Where a rank's child stack is: called by this thread, or served by a thread of its own that is sent messages.
//!
//! Messages to the other thread lie in an outbox until the first rank drives them: the manager does so while it waits, and the
//! progress service while the first rank's engine computes. So nothing arrives at a rank whose partner forgets to drive,
//! as with a library for messages that has no thread of its own.

use bh_core::abi::{HostMemory, status};
use bh_core::component::{Child, Counter, Host};
use bh_core::error::{Error, Result};
use std::ffi::c_void;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, ThreadId};
use std::time::Duration;

/// How long a wait lasts before messages are driven again.
const SLICE: Duration = Duration::from_micros(200);

type Message = Box<dyn FnOnce(&mut Child) + Send>;

/// Messages on their way to the other rank.
pub struct Wire {
    state: Mutex<State>,
    /// Messages that were delivered while the first rank's engine computed.
    meanwhile: Counter,
}

struct State {
    outbox: Vec<Message>,
    /// None when the rank has ended.
    sender: Option<Sender<Message>>,
    /// The thread whose engine computes.
    computing: Option<ThreadId>,
}

impl Wire {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Delivers what lies in the outbox.
    fn drive(&self) -> usize {
        let mut state = self.lock();
        let messages = std::mem::take(&mut state.outbox);
        let count = messages.len();
        if let Some(sender) = &state.sender {
            // Whoever waits for an answer hears of a rank that has ended.
            messages.into_iter().for_each(|message| drop(sender.send(message)));
        }
        count
    }

    /// Notes which thread's engine begins to compute, or that it has ended.
    pub fn computes(&self, begins: bool) {
        self.lock().computing = begins.then(|| std::thread::current().id());
    }
}

/// What the progress service calls, on every thread whose engine computes.
unsafe extern "C" fn progress(argument: *mut c_void) {
    // SAFETY: the wire lives until the service is set to nothing.
    let wire = unsafe { &*argument.cast_const().cast::<Wire>() };
    let own = wire.lock().computing == Some(std::thread::current().id());
    if own {
        wire.meanwhile.add(wire.drive() as u64);
    }
}

/// The child stack of a rank.
pub enum Seat {
    /// Called by the thread of the manager.
    Here(Child),
    /// On a thread of its own.
    There(Remote),
}

/// A rank that serves.
pub struct Remote {
    host: Host,
    wire: Arc<Wire>,
    thread: Option<JoinHandle<()>>,
}

/// The answer to a call that has not come yet.
pub struct Pending<R> {
    answer: std::result::Result<R, Receiver<R>>,
    wire: Option<Arc<Wire>>,
}

impl Remote {
    /// Has a thread serve a child.
    pub fn start(host: Host, mut child: Child) -> Result<Remote> {
        let (sender, receiver) = channel::<Message>();
        let thread = std::thread::Builder::new()
            .name("bh-split-1".into())
            .spawn(move || receiver.iter().for_each(|message| message(&mut child)))
            .map_err(|error| Error::new(status::INIT, format!("the second rank did not start: {error}")))?;
        let state = State { outbox: Vec::new(), sender: Some(sender), computing: None };
        let wire = Arc::new(Wire { state: Mutex::new(state), meanwhile: host.counter("messages while computing") });
        // SAFETY: the wire lives, where it is, until the service is set to nothing.
        unsafe { host.set_progress(Some(progress), Arc::as_ptr(&wire).cast_mut().cast()) };
        Ok(Remote { host, wire, thread: Some(thread) })
    }

    /// The way to the rank.
    pub fn wire(&self) -> Arc<Wire> {
        self.wire.clone()
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // SAFETY: nothing is called any more.
        unsafe { self.host.set_progress(None, std::ptr::null_mut()) };
        self.wire.drive();
        self.wire.lock().sender = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was reported on standard error by the runtime; nothing is left to save.
            let _ = thread.join();
        }
    }
}

impl Seat {
    /// Sends a call, or makes it.
    pub fn begin<R: Send + 'static>(&mut self, call: impl FnOnce(&mut Child) -> R + Send + 'static) -> Pending<R> {
        match self {
            Seat::Here(child) => Pending { answer: Ok(call(child)), wire: None },
            Seat::There(remote) => {
                let (sender, receiver) = channel();
                // If the answer is not wanted any more, nobody misses it.
                remote.wire.lock().outbox.push(Box::new(move |child| drop(sender.send(call(child)))));
                Pending { answer: Err(receiver), wire: Some(remote.wire.clone()) }
            }
        }
    }

    /// Makes a call and waits for its answer.
    pub fn call<R: Send + 'static>(
        &mut self,
        call: impl FnOnce(&mut Child) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        self.begin(call).wait()?
    }
}

impl<R> Pending<R> {
    /// The answer. Drives messages until it comes.
    pub fn wait(self) -> Result<R> {
        let receiver = match self.answer {
            Ok(answer) => return Ok(answer),
            Err(receiver) => receiver,
        };
        loop {
            if let Some(wire) = &self.wire {
                wire.drive();
            }
            match receiver.recv_timeout(SLICE) {
                Ok(answer) => return Ok(answer),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::new(status::DEVICE, "the second rank has ended"));
                }
            }
        }
    }
}

/// An address that goes from one rank's thread to the other's.
pub struct Address(pub *mut u8);

// SAFETY: the memory is the program's until it is unmapped.
unsafe impl Send for Address {}

/// Memory of the caller, which waits while the other thread uses it.
pub struct Elsewhere(pub HostMemory);

// SAFETY: the caller waits for the call's end.
unsafe impl Send for Elsewhere {}

impl Elsewhere {
    /// The memory.
    pub fn get(&self) -> &HostMemory {
        &self.0
    }
}
