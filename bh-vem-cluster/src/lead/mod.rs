//! Rank 0 leads: it tells the other processes what its contexts do, and they do the same with theirs.

pub mod greeting;
pub mod launch;
pub mod meeting;
pub mod roster;
pub mod serve;
mod speaker;

use crate::command::Command;
use crate::command::memory::Memory;
use crate::command::wire::Writer;
use crate::lead::greeting::verdict;
use crate::lead::roster::{Roster, Stacks};
use crate::plan::settings::Settings;
use crate::transport::remote::Remote;
use crate::transport::tree::spread;
use crate::transport::{Port, Traffic};
use bh_bytecode::BatchRef;
use bh_core::abi::status;
use bh_core::error::{Error, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What all contexts of the process share: one after the other, they tell the others what to do. This and the transport
/// are the only state that belongs to the process instead of a context, as MPI does. An error if there is no way to them
/// any more.
static SHARED: Mutex<Option<Result<Shared>>> = Mutex::new(None);

/// Numbers for contexts.
static CONTEXTS: AtomicU64 = AtomicU64::new(1);

struct Shared {
    memory: Memory,
    port: Port,
}

/// The time in which one context has the other ranks for itself.
pub struct Turn {
    /// What telling them took.
    pub sent: Traffic,
    /// What stands for the shape of the batch, if there is one.
    pub shape: u64,
    guard: MutexGuard<'static, Option<Result<Shared>>>,
}

/// A context's way to the other processes.
pub struct Lead {
    context: u64,
    remote: Remote,
}

impl Lead {
    /// A new context on rank 0. The first one greets the others.
    /// `mine`: what its stacks have. `settings` decides how work is shared out.
    pub fn start(
        remote: Remote,
        greeting: &str,
        open: &Command,
        mine: &Stacks,
        settings: impl FnOnce(&[Stacks]) -> Result<Settings>,
    ) -> Result<(Lead, Roster)> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.get_or_insert_with(|| Shared::greet(remote, greeting));
        drop(shared);
        let mut lead = Lead { context: CONTEXTS.fetch_add(1, Ordering::Relaxed), remote };
        let mut turn = lead.tell(open)?;
        let roster = match turn.guard.as_mut() {
            Some(Ok(shared)) => roster::call(&mut shared.port, mine, settings),
            _ => Err(ended()),
        };
        drop(turn);
        Ok((lead, roster?))
    }

    /// The process is to end with another code than it would.
    pub fn end_with(&self, code: i32) {
        self.remote.end_with(code);
    }

    /// Tells the others what to do.
    pub fn tell(&mut self, command: &Command) -> Result<Turn> {
        self.say(|memory| (memory.put(command), 0))
    }

    /// Tells the others to run a batch.
    pub fn tell_execute(&mut self, batch: &BatchRef<'_>, order: &[u32]) -> Result<Turn> {
        self.say(|memory| memory.put_execute(batch, order))
    }

    fn say(&mut self, put: impl FnOnce(&mut Memory) -> (Vec<u8>, u64)) -> Result<Turn> {
        let mut guard = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = match guard.as_mut() {
            Some(Ok(shared)) => shared,
            Some(Err(error)) => return Err(error.clone()),
            None => return Err(ended()),
        };
        let before = shared.port.sent()[0];
        let mut writer = Writer::default();
        writer.number(self.context);
        let (bytes, shape) = put(&mut shared.memory);
        writer.0.extend_from_slice(&bytes);
        spread(&mut shared.port, &writer.0)?;
        let sent = shared.port.sent()[0].since(&before);
        Ok(Turn { sent, shape, guard })
    }
}

impl Shared {
    /// Greets the others, who must be like this process.
    fn greet(remote: Remote, greeting: &str) -> Result<Shared> {
        let mut port = Port::new(Box::new(remote));
        spread(&mut port, greeting.as_bytes())?;
        let differs = verdict(&mut port, None)?;
        spread(&mut port, &[u8::from(differs.is_none())])?;
        match differs {
            Some(text) => Err(Error::new(status::INIT, text)),
            None => Ok(Shared { memory: Memory::default(), port }),
        }
    }
}

fn ended() -> Error {
    Error::new(status::SHUTDOWN, "the cluster has ended")
}
