//! Rank 0 leads: it tells the other processes what its contexts do, and they do the same with theirs.

pub mod launch;
pub mod serve;

use crate::command::Command;
use crate::command::memory::Memory;
use crate::command::wire::Writer;
use crate::plan::settings::Settings;
use crate::transport::remote::Remote;
use crate::transport::{Class, Port, Traffic};
use bh_bytecode::BatchRef;
use bh_core::abi::status;
use bh_core::error::{Error, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What all contexts of the process share: one after the other, they tell the others what to do. This and the transport
/// are the only state that belongs to the process instead of a context, as MPI does.
static SHARED: Mutex<Option<Shared>> = Mutex::new(None);

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
    _guard: MutexGuard<'static, Option<Shared>>,
}

/// A context's way to the other processes.
pub struct Lead {
    context: u64,
}

impl Lead {
    /// A new context on rank 0.
    pub fn start(remote: Remote, settings: &Settings, description: &str) -> Result<Lead> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if shared.is_none() {
            let mut port = Port::new(Box::new(remote));
            for rank in 1..port.ranks() {
                port.send(Class::Control, 0, rank, greeting(settings, description).into_bytes())?;
            }
            *shared = Some(Shared { memory: Memory::default(), port });
        }
        drop(shared);
        let mut lead = Lead { context: CONTEXTS.fetch_add(1, Ordering::Relaxed) };
        drop(lead.tell(&Command::Open(settings.clone(), description.to_owned()))?);
        Ok(lead)
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
        let shared = guard.as_mut().ok_or_else(|| Error::new(status::SHUTDOWN, "the cluster has ended"))?;
        let before = shared.port.sent()[0];
        let mut writer = Writer::default();
        writer.number(self.context);
        let (bytes, shape) = put(&mut shared.memory);
        writer.0.extend_from_slice(&bytes);
        spread(&mut shared.port, &writer.0)?;
        let sent = shared.port.sent()[0].since(&before);
        Ok(Turn { sent, shape, _guard: guard })
    }
}

/// What all processes must agree on before they work together: line by line the version, the settings and the first stack.
pub fn greeting(settings: &Settings, description: &str) -> String {
    format!("bh {}\n{settings:?}\n{description}", env!("CARGO_PKG_VERSION"))
}

/// How the greeting of rank 0 and that of another rank differ, if they do.
pub fn difference(first: &str, other: &str, rank: usize) -> Option<String> {
    if first == other {
        return None;
    }
    let (mut first, mut other) = (first.lines(), other.lines());
    let (left, right) = std::iter::repeat_with(|| (first.next(), other.next())).find(|(left, right)| left != right)?;
    let shown = |line: Option<&str>| line.map_or("nothing more".to_owned(), |line| format!("'{line}'"));
    Some(format!("the ranks differ: rank 0 has {}, rank {rank} has {}", shown(left), shown(right)))
}

/// The ranks that a rank passes commands on to: a binomial tree whose root is rank 0.
fn followers(rank: usize, ranks: usize) -> impl Iterator<Item = usize> {
    let bits = if rank == 0 { usize::BITS - 1 } else { rank.trailing_zeros() };
    (0..bits).rev().map(move |bit| rank + (1 << bit)).filter(move |&other| other < ranks)
}

/// Sends a command on.
pub fn spread(port: &mut Port, bytes: &[u8]) -> Result<()> {
    let (rank, ranks) = (port.hosted().start, port.ranks());
    for other in followers(rank, ranks) {
        port.send(Class::Control, rank, other, bytes.to_vec())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::layout::Weights;

    #[test]
    fn what_differs_is_named() {
        let here = greeting(
            &Settings { weights: Weights::even(2), small_bytes: 16, overlap_rows: 2, overlap_bytes: 0 },
            "[stacks]\na = 1",
        );
        assert_eq!(difference(&here, &here, 1), None);
        let version = env!("CARGO_PKG_VERSION");
        let other = here.replace(version, "9.9");
        let said = difference(&here, &other, 3).unwrap();
        assert_eq!(said, format!("the ranks differ: rank 0 has 'bh {version}', rank 3 has 'bh 9.9'"));
        let said = difference(&here, &format!("{here}\nb = 2"), 1).unwrap();
        assert_eq!(said, "the ranks differ: rank 0 has nothing more, rank 1 has 'b = 2'");
    }

    #[test]
    fn commands_reach_every_rank_once() {
        for ranks in 1..40 {
            let mut reached = vec![0];
            for rank in 0..ranks {
                for other in followers(rank, ranks) {
                    assert_eq!(other & (other - 1), rank, "{other} waits for another rank");
                    reached.push(other);
                }
            }
            reached.sort_unstable();
            assert_eq!(reached, (0..ranks).collect::<Vec<_>>());
        }
    }
}
