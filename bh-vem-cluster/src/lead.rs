//! Rank 0 leads: it tells the other processes what its contexts do, and they do the same with theirs.

use crate::command::{Command, Memory};
use crate::machine::Machine;
use crate::planner::Settings;
use crate::remote::{ENDED, Launch, Remote};
use crate::transport::{Class, Port, Transport};
use crate::wire::{Reader, Writer};
use bh_bytecode::BatchRef;
use bh_core::abi::status;
use bh_core::component::{Child, Host};
use bh_core::error::{Error, Result};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A process that is not rank 0 serves once, whichever of its threads makes a context first; others wait for its end.
static SERVING: Mutex<()> = Mutex::new(());

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
    _guard: MutexGuard<'static, Option<Shared>>,
}

/// A context's way to the other processes.
pub struct Lead {
    context: u64,
}

/// Joins the processes that a launcher started; `None` if there is none, or the config asks for ranks in one process.
pub fn connect(host: &Host) -> Result<Option<Remote>> {
    let launch = Launch::read(bh_core::environment::variable);
    let asked = host.config("transport").unwrap_or_else(|| "auto".into());
    let candidates = match asked.as_str() {
        "in-process" => return Ok(None),
        "auto" if host.config("ranks").is_some() => return Ok(None),
        "auto" => launch.candidates(),
        "openmpi" | "mpich" => vec![asked.as_str()],
        _ => return Err(Error::of_key("transport", "auto, in-process, openmpi or mpich", &asked)),
    };
    let mut outcome = Ok(None);
    for name in candidates {
        outcome = Remote::open(name, None).map(Some);
        if outcome.is_ok() {
            break;
        }
    }
    let Some(remote) = outcome? else { return Ok(None) };
    match &launch.size {
        Some((variable, size)) if *size > 1 && remote.ranks() == 1 => {
            let launcher = launch.library.as_deref().unwrap_or("another MPI");
            let text = format!(
                "wrong mpirun: {variable} is {size}, set by the launcher of {launcher}, but bh uses {} and finds itself \
                 alone; start the program with that library's mpirun, or set BH_CLUSTER_TRANSPORT",
                remote.library()
            );
            Err(Error::new(status::INIT, text))
        }
        _ => Ok(Some(remote)),
    }
}

impl Lead {
    /// On rank 0: a new context. On other ranks: serves until rank 0's process ends, and ends this one.
    pub fn start(host: Host, remote: Remote, settings: &Settings, children: Vec<Child>) -> Result<(Lead, Vec<Child>)> {
        let greeting = format!("bh {} {settings:?}", env!("CARGO_PKG_VERSION"));
        if remote.rank() != 0 {
            let _serving = SERVING.lock().unwrap_or_else(PoisonError::into_inner);
            let serve = || serve(host, remote, settings, children, &greeting);
            let code = match catch_unwind(AssertUnwindSafe(serve)) {
                Ok(Ok(())) => 0,
                Ok(Err(error)) => die(remote, &error.to_string()),
                Err(_) => die(remote, "it panicked"),
            };
            std::process::exit(code);
        }
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if shared.is_none() {
            let mut port = Port::new(Box::new(remote));
            for rank in 1..port.ranks() {
                port.send(Class::Control, 0, rank, greeting.clone().into_bytes())?;
            }
            *shared = Some(Shared { memory: Memory::default(), port });
        }
        Ok((Lead { context: CONTEXTS.fetch_add(1, Ordering::Relaxed) }, children))
    }

    /// Tells the others what to do.
    pub fn tell(&mut self, command: &Command) -> Result<Turn> {
        self.say(|memory| memory.put(command))
    }

    /// Tells the others to run a batch.
    pub fn tell_execute(&mut self, batch: &BatchRef<'_>, order: &[u32]) -> Result<Turn> {
        self.say(|memory| memory.put_execute(batch, order))
    }

    fn say(&mut self, put: impl FnOnce(&mut Memory) -> Vec<u8>) -> Result<Turn> {
        let mut guard = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = guard.as_mut().ok_or_else(|| Error::new(status::SHUTDOWN, "the cluster has ended"))?;
        let mut writer = Writer::default();
        writer.number(self.context);
        writer.0.extend_from_slice(&put(&mut shared.memory));
        spread(&mut shared.port, &writer.0)?;
        Ok(Turn { _guard: guard })
    }
}

/// Ends all processes because of this one.
fn die(mut remote: Remote, text: &str) -> i32 {
    remote.abort(text);
    1
}

/// The ranks that a rank passes commands on to: a binomial tree whose root is rank 0.
fn followers(rank: usize, ranks: usize) -> impl Iterator<Item = usize> {
    let bits = if rank == 0 { usize::BITS - 1 } else { rank.trailing_zeros() };
    (0..bits).rev().map(move |bit| rank + (1 << bit)).filter(move |&other| other < ranks)
}

/// Sends a command on.
fn spread(port: &mut Port, bytes: &[u8]) -> Result<()> {
    let (rank, ranks) = (port.hosted().start, port.ranks());
    for other in followers(rank, ranks) {
        port.send(Class::Control, rank, other, bytes.to_vec())?;
    }
    Ok(())
}

/// Does what rank 0 says until it ends.
fn serve(host: Host, remote: Remote, settings: &Settings, mut children: Vec<Child>, greeting: &str) -> Result<()> {
    let mut port = Port::new(Box::new(remote));
    let me = remote.rank();
    let theirs = port.receive(me, 0)?;
    if theirs != greeting.as_bytes() {
        let text = format!("the ranks differ: rank 0 is {}, rank {me} is {greeting}", String::from_utf8_lossy(&theirs));
        return Err(Error::new(status::INIT, text));
    }
    let parent = me & (me - 1);
    let mut memory = Memory::default();
    let mut machines: HashMap<u64, Machine> = HashMap::new();
    loop {
        let bytes = match port.receive(me, parent) {
            Err(error) if error.text == ENDED => return Ok(()),
            other => other?,
        };
        spread(&mut port, &bytes)?;
        let context = Reader(&bytes).number()?;
        let command = memory.get(&bytes[8..])?;
        let machine =
            machines.entry(context).or_insert_with(|| Machine::remote(host, remote, settings.clone(), Vec::new()));
        std::mem::swap(&mut machine.children, &mut children);
        // What goes wrong here goes wrong on rank 0, which tells the program.
        let _ = machine.obey(&command);
        std::mem::swap(&mut machine.children, &mut children);
        if command == Command::Close
            && let Some(mut machine) = machines.remove(&context)
        {
            std::mem::swap(&mut machine.children, &mut children);
            let ids: Vec<u64> = machine.planner.arrays.keys().copied().collect();
            ids.into_iter().for_each(|id| machine.planner.forget(id));
            let _ = machine.settle();
            std::mem::swap(&mut machine.children, &mut children);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
