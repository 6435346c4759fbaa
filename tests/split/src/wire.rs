//! The place of a rank's child stack: called by this thread, or served by a thread that receives messages.
//!
//! Messages to the other thread wait in an outbox until the first rank drives them: the manager does so while it waits,
//! and the progress service does while the first rank's engine computes. So a rank receives nothing if its partner does
//! not drive messages, as with a message library without its own thread.

use bh_core::abi::{HostMemory, status};
use bh_core::component::{Child, Counter, Host};
use bh_core::error::{Error, Result};
use std::ffi::c_void;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, ThreadId};
use std::time::Duration;

/// The longest wait before messages are driven again.
const SLICE: Duration = Duration::from_micros(200);

type Message = Box<dyn FnOnce(&mut Child) + Send>;

/// Messages to the other rank.
pub struct Wire {
    state: Mutex<State>,
    /// Counts messages delivered while the first rank's engine computed.
    meanwhile: Counter,
}

struct State {
    outbox: Vec<Message>,
    /// `None` after the rank has ended.
    sender: Option<Sender<Message>>,
    /// The thread whose engine is computing.
    computing: Option<ThreadId>,
}

impl Wire {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Delivers the messages of the outbox.
    fn drive(&self) -> usize {
        let mut state = self.lock();
        let messages = std::mem::take(&mut state.outbox);
        let count = messages.len();
        if let Some(sender) = &state.sender {
            // If the rank has ended, those that wait for an answer get the error.
            messages.into_iter().for_each(|message| drop(sender.send(message)));
        }
        count
    }

    /// Records that this thread's engine begins or ends computing.
    pub fn computes(&self, begins: bool) {
        self.lock().computing = begins.then(|| std::thread::current().id());
    }
}

/// The progress service's function, called on every thread whose engine computes.
unsafe extern "C" fn progress(argument: *mut c_void) {
    // SAFETY: the wire outlives the registration of this function.
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
    /// On its own thread.
    There(Remote),
}

/// A rank on its own thread.
pub struct Remote {
    host: Host,
    wire: Arc<Wire>,
    thread: Option<JoinHandle<()>>,
}

/// The pending answer to a call.
pub struct Pending<R> {
    answer: std::result::Result<R, Receiver<R>>,
    wire: Option<Arc<Wire>>,
}

impl Remote {
    /// Starts a thread that serves a child.
    pub fn start(host: Host, mut child: Child) -> Result<Remote> {
        let (sender, receiver) = channel::<Message>();
        let thread = std::thread::Builder::new()
            .name("bh-split-1".into())
            .spawn(move || receiver.iter().for_each(|message| message(&mut child)))
            .map_err(|error| Error::new(status::INIT, format!("the second rank did not start: {error}")))?;
        let state = State { outbox: Vec::new(), sender: Some(sender), computing: None };
        let wire = Arc::new(Wire { state: Mutex::new(state), meanwhile: host.counter("messages while computing") });
        // SAFETY: the wire stays at its address until the service is reset.
        unsafe { host.set_progress(Some(progress), Arc::as_ptr(&wire).cast_mut().cast()) };
        Ok(Remote { host, wire, thread: Some(thread) })
    }

    /// The connection to the rank.
    pub fn wire(&self) -> Arc<Wire> {
        self.wire.clone()
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // SAFETY: resets the service; no call is in progress.
        unsafe { self.host.set_progress(None, std::ptr::null_mut()) };
        self.wire.drive();
        self.wire.lock().sender = None;
        if let Some(thread) = self.thread.take() {
            // The runtime has printed the thread's panic; nothing is left to do.
            let _ = thread.join();
        }
    }
}

impl Seat {
    /// Sends a call, or makes it on this thread.
    pub fn begin<R: Send + 'static>(&mut self, call: impl FnOnce(&mut Child) -> R + Send + 'static) -> Pending<R> {
        match self {
            Seat::Here(child) => Pending { answer: Ok(call(child)), wire: None },
            Seat::There(remote) => {
                let (sender, receiver) = channel();
                // The receiver may already be gone.
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
    /// Drives messages until the answer arrives.
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

/// An address that is passed between the ranks' threads.
pub struct Address(pub *mut u8);

// SAFETY: the memory belongs to the program until it is unmapped.
unsafe impl Send for Address {}

/// Memory of the caller, which waits while the other thread uses it.
pub struct Elsewhere(pub HostMemory);

// SAFETY: the caller waits until the call has ended.
unsafe impl Send for Elsewhere {}

impl Elsewhere {
    /// The memory.
    pub fn get(&self) -> &HostMemory {
        &self.0
    }
}
