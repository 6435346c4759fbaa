//! Rank 0 coordinates: it sends each operation of its contexts to the other processes as a command.

pub mod handshake;
pub mod launch;
pub mod meeting;
pub mod membership;
mod reporter;
pub mod serve;

use crate::command::Command;
use crate::command::known_batches::KnownBatches;
use crate::command::wire::Writer;
use crate::coordinator::handshake::first_difference;
use crate::coordinator::membership::{Membership, Stacks};
use crate::plan::settings::Settings;
use crate::transport::remote::Remote;
use crate::transport::tree::broadcast;
use crate::transport::{Port, Traffic};
use bh_bytecode::BatchRef;
use bh_core::abi::status;
use bh_core::error::{Error, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Shared by all contexts of the process, which send commands one at a time. Like MPI, this and the transport belong to
/// the process, not to a context. An error if the connection has ended.
static SHARED: Mutex<Option<Result<Shared>>> = Mutex::new(None);

/// Numbers for contexts.
static CONTEXTS: AtomicU64 = AtomicU64::new(1);

struct Shared {
    batches: KnownBatches,
    port: Port,
}

/// Exclusive use of the other ranks by one context, for one command.
pub struct CommandGuard {
    /// Messages and bytes that the command took.
    pub sent: Traffic,
    /// The number of the batch's shape; 0 for other commands.
    pub shape: u64,
    shared_guard: MutexGuard<'static, Option<Result<Shared>>>,
}

/// A context's connection to the other processes.
pub struct Coordinator {
    context: u64,
    remote: Remote,
}

impl Coordinator {
    /// Opens a context on rank 0; the first one performs the handshake. `mine`: this process's stacks. `settings`
    /// computes the settings for all stacks.
    pub fn start(
        remote: Remote,
        handshake: &str,
        open: &Command,
        mine: &Stacks,
        settings: impl FnOnce(&[Stacks]) -> Result<Settings>,
    ) -> Result<(Coordinator, Membership)> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.get_or_insert_with(|| Shared::shake_hands(remote, handshake));
        drop(shared);
        let mut coordinator = Coordinator { context: CONTEXTS.fetch_add(1, Ordering::Relaxed), remote };
        let mut guard = coordinator.send_command(open)?;
        let membership = match guard.shared_guard.as_mut() {
            Some(Ok(shared)) => membership::form(&mut shared.port, mine, settings),
            _ => Err(ended()),
        };
        drop(guard);
        Ok((coordinator, membership?))
    }

    /// Sets the exit code of the process.
    pub fn end_with(&self, code: i32) {
        self.remote.end_with(code);
    }

    /// Sends a command to the other processes.
    pub fn send_command(&mut self, command: &Command) -> Result<CommandGuard> {
        self.send(|batches| (batches.put(command), 0))
    }

    /// Sends a batch to the other processes.
    pub fn send_batch(&mut self, batch: &BatchRef<'_>, order: &[u32]) -> Result<CommandGuard> {
        self.send(|batches| batches.put_execute(batch, order))
    }

    fn send(&mut self, put: impl FnOnce(&mut KnownBatches) -> (Vec<u8>, u64)) -> Result<CommandGuard> {
        let mut shared_guard = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = match shared_guard.as_mut() {
            Some(Ok(shared)) => shared,
            Some(Err(error)) => return Err(error.clone()),
            None => return Err(ended()),
        };
        let before = shared.port.sent()[0];
        let mut writer = Writer::default();
        writer.number(self.context);
        let (bytes, shape) = put(&mut shared.batches);
        writer.0.extend_from_slice(&bytes);
        broadcast(&mut shared.port, &writer.0)?;
        let sent = shared.port.sent()[0].since(&before);
        Ok(CommandGuard { sent, shape, shared_guard })
    }
}

impl Shared {
    /// Performs the handshake; an error if a process differs.
    fn shake_hands(remote: Remote, handshake: &str) -> Result<Shared> {
        let mut port = Port::new(Box::new(remote));
        broadcast(&mut port, handshake.as_bytes())?;
        let differs = first_difference(&mut port, None)?;
        broadcast(&mut port, &[u8::from(differs.is_none())])?;
        match differs {
            Some(text) => Err(Error::new(status::INIT, text)),
            None => Ok(Shared { batches: KnownBatches::default(), port }),
        }
    }
}

fn ended() -> Error {
    Error::new(status::SHUTDOWN, "the cluster has ended")
}
