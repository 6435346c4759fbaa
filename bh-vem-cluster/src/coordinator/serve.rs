//! The other processes serve: they execute rank 0's commands until its process ends.

use crate::command::Command;
use crate::command::known_batches::KnownBatches;
use crate::command::wire::{Reader, Writer};
use crate::coordinator::handshake::{Outcome, answer};
use crate::coordinator::meeting::Meeting;
use crate::coordinator::membership::{self, usable_stacks};
use crate::run::counters::Counters;
use crate::run::machine::Machine;
use crate::transport::remote::{ENDED, Remote};
use crate::transport::tree::{broadcast, tree_parent};
use crate::transport::{Class, Port, Transport};
use bh_core::abi::status;
use bh_core::component::{Child, Host};
use bh_core::config::Config;
use bh_core::environment;
use bh_core::error::{Error, Result};
use bh_core::stack::below;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

/// One thread of a process serves, the first that creates a context; others wait for its end. `Some` after the
/// handshake: the known batches, which live as long as rank 0's.
static SERVING: Mutex<Option<KnownBatches>> = Mutex::new(None);

/// A process that is not rank 0.
pub struct Server {
    host: Host,
    remote: Remote,
    /// This process's text for the handshake, or the reason why it cannot serve.
    handshake: Result<String>,
    /// Until the handshake.
    meeting: Option<Meeting>,
    /// This process's own stacks, while no context uses them.
    own: Vec<Child>,
}

/// A context of rank 0.
struct Context {
    machine: Machine,
    counters: Counters,
    /// It uses this process's own stacks instead of loading others.
    has_own: bool,
}

impl Server {
    /// A server with this process's stacks.
    pub fn new(
        host: Host,
        remote: Remote,
        handshake: Result<String>,
        meeting: Option<Meeting>,
        own: Vec<Child>,
    ) -> Server {
        Server { host, remote, handshake, meeting, own }
    }

    /// Serves until rank 0's process ends or, if the program initialised MPI, until rank 0 has no context left. An
    /// error ends all processes.
    pub fn run(mut self) {
        let mut batches = SERVING.lock().unwrap_or_else(PoisonError::into_inner);
        let remote = self.remote;
        if !remote.is_borrowed() {
            // Launchers send interrupts to all ranks; rank 0 decides how the job ends. SAFETY: this process runs
            // nothing else from now on.
            unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
        }
        match catch_unwind(AssertUnwindSafe(|| self.serve(&mut batches))) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => die(remote, &error.to_string()),
            Err(_) => die(remote, "it panicked"),
        }
    }

    fn serve(&mut self, batches: &mut Option<KnownBatches>) -> Result<()> {
        let mut port = Port::new(Box::new(self.remote));
        let me = self.remote.rank();
        let parent = tree_parent(me);
        if batches.is_none() {
            let met = answer(&mut port, &self.handshake)?;
            self.meeting = None;
            match met {
                Outcome::Agreed => {}
                Outcome::Differs if !self.remote.is_borrowed() => return until_end(&mut port, parent),
                _ => return Ok(()),
            }
        }
        let batches = batches.get_or_insert_default();
        let mut contexts: HashMap<u64, Context> = HashMap::new();
        loop {
            let bytes = match port.receive(me, parent) {
                Err(error) if error.text == ENDED => return Ok(()),
                other => other?,
            };
            let before = port.sent()[0];
            broadcast(&mut port, &bytes)?;
            let number = Reader(&bytes).number()?;
            let command = batches.get(&bytes[8..])?;
            if let Command::Open(keep_all, description) = &command {
                contexts.extend(self.open(&mut port, *keep_all, description)?.map(|context| (number, context)));
                continue;
            }
            let context = contexts.get_mut(&number).ok_or_else(|| unknown(number))?;
            let machine = &mut context.machine;
            machine.port.note(&port.sent()[0].since(&before));
            // Rank 0 gets the same error and reports it to the program.
            let _ = machine.execute_command(&command);
            match &command {
                Command::Traffic => send_traffic(machine)?,
                Command::Close => forget_arrays(machine),
                _ => {}
            }
            context.counters.report(machine);
            if let Command::Execute(program) = command {
                batches.put_back(program);
            } else if command == Command::Close {
                self.close(contexts.remove(&number));
                if contexts.is_empty() && self.remote.is_borrowed() {
                    return self.remote.flush();
                }
            }
        }
    }

    /// Opens a context on this process's own stacks if they match and are free, otherwise on new ones. `None` if rank 0
    /// gives it up.
    fn open(&mut self, port: &mut Port, keep_all: bool, description: &str) -> Result<Option<Context>> {
        let same = self.handshake.as_ref().is_ok_and(|mine| mine.ends_with(&format!("\n{description}")));
        let has_own = same && !self.own.is_empty();
        let mut children = if has_own {
            std::mem::take(&mut self.own)
        } else {
            let config = Config::from_text("configuration of rank 0", description)?;
            let config = config.with_environment(environment::bh_variables());
            let stack = config.stack_names().next().unwrap_or_default().to_owned();
            below::load(&config, &stack, crate::NAME)?
        };
        let stacks = usable_stacks(&mut children, keep_all);
        let Some(membership) = membership::join(port, &stacks)? else { return Ok(None) };
        let machine = Machine::remote(self.host, self.remote, membership, children, keep_all);
        Ok(Some(Context { machine, counters: Counters::new(&self.host), has_own }))
    }

    /// Closes a context; stacks that it loaded end with it.
    fn close(&mut self, context: Option<Context>) {
        let Some(mut context) = context else { return };
        let children = std::mem::take(&mut context.machine.children);
        let has_own = context.has_own;
        // The machine must end before the children that it uses.
        drop(context);
        if has_own {
            self.own = children;
        }
    }
}

/// Sends the traffic counts of this process's ranks to rank 0.
fn send_traffic(machine: &mut Machine) -> Result<()> {
    for (rank, sent) in machine.port.hosted().zip(machine.port.sent().to_vec()) {
        let mut writer = Writer::default();
        for number in sent.numbers() {
            writer.number(number);
        }
        machine.port.send(Class::Control, rank, 0, writer.0)?;
    }
    Ok(())
}

/// Drops all arrays of a context.
fn forget_arrays(machine: &mut Machine) {
    let ids: Vec<u64> = machine.planner.arrays.keys().copied().collect();
    ids.into_iter().for_each(|id| machine.planner.forget(id));
    // Rank 0 gets the same error.
    let _ = machine.run_planned();
}

/// Waits for the end of rank 0's process.
fn until_end(port: &mut Port, parent: usize) -> Result<()> {
    let me = port.hosted().start;
    loop {
        match port.receive(me, parent) {
            Err(error) if error.text == ENDED => return Ok(()),
            other => drop(other?),
        }
    }
}

fn unknown(context: u64) -> Error {
    Error::new(status::EXECUTION, format!("context {context} was not announced: do all ranks run the same bh?"))
}

/// Ends all processes because of an error in this one.
fn die(mut remote: Remote, text: &str) {
    remote.abort(text);
}
