//! The other processes serve: they do what rank 0's contexts do, until its process ends.

use crate::command::Command;
use crate::command::memory::Memory;
use crate::command::wire::{Reader, Writer};
use crate::lead::greeting::{Met, answer};
use crate::lead::meeting::Meeting;
use crate::lead::roster::{self, muster};
use crate::run::figures::Figures;
use crate::run::machine::Machine;
use crate::transport::remote::{ENDED, Remote};
use crate::transport::tree::{leader, spread};
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

/// A process serves with one thread, whichever makes a context first; others wait for its end. Rank 0 has greeted it if there
/// is a memory, which lasts as long as rank 0's.
static SERVING: Mutex<Option<Memory>> = Mutex::new(None);

/// A process that is not rank 0.
pub struct Server {
    host: Host,
    remote: Remote,
    /// What this process would greet the others with, or why it cannot serve.
    greeting: Result<String>,
    /// Until it is greeted.
    meeting: Option<Meeting>,
    /// This process's own stack, while no context of rank 0's uses it.
    own: Vec<Child>,
}

/// A context of rank 0's on this rank.
struct Context {
    machine: Machine,
    figures: Figures,
    /// Has it this process's own stack, and not one of its own?
    has_own: bool,
}

impl Server {
    /// A process with its stacks.
    pub fn new(
        host: Host,
        remote: Remote,
        greeting: Result<String>,
        meeting: Option<Meeting>,
        own: Vec<Child>,
    ) -> Server {
        Server { host, remote, greeting, meeting, own }
    }

    /// Serves until rank 0's process ends, or, where the program initialised MPI, until rank 0 has no context left. What goes
    /// wrong ends all processes.
    pub fn run(mut self) {
        let mut memory = SERVING.lock().unwrap_or_else(PoisonError::into_inner);
        let remote = self.remote;
        if !remote.is_borrowed() {
            // Rank 0 decides what comes of an interrupt, which launchers send to all.
            // SAFETY: nothing else runs in this process from now on.
            unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
        }
        match catch_unwind(AssertUnwindSafe(|| self.serve(&mut memory))) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => die(remote, &error.to_string()),
            Err(_) => die(remote, "it panicked"),
        }
    }

    fn serve(&mut self, memory: &mut Option<Memory>) -> Result<()> {
        let mut port = Port::new(Box::new(self.remote));
        let me = self.remote.rank();
        let parent = leader(me);
        if memory.is_none() {
            let met = answer(&mut port, &self.greeting)?;
            self.meeting = None;
            match met {
                Met::Alike => {}
                Met::Unlike if !self.remote.is_borrowed() => return until_end(&mut port, parent),
                _ => return Ok(()),
            }
        }
        let memory = memory.get_or_insert_default();
        let mut contexts: HashMap<u64, Context> = HashMap::new();
        loop {
            let bytes = match port.receive(me, parent) {
                Err(error) if error.text == ENDED => return Ok(()),
                other => other?,
            };
            let before = port.sent()[0];
            spread(&mut port, &bytes)?;
            let number = Reader(&bytes).number()?;
            let command = memory.get(&bytes[8..])?;
            if let Command::Open(keep_all, description) = &command {
                contexts.extend(self.open(&mut port, *keep_all, description)?.map(|context| (number, context)));
                continue;
            }
            let context = contexts.get_mut(&number).ok_or_else(|| unknown(number))?;
            let machine = &mut context.machine;
            machine.port.note(&port.sent()[0].since(&before));
            // What goes wrong here goes wrong on rank 0, which tells the program.
            let _ = machine.obey(&command);
            match &command {
                Command::Traffic => {
                    for (rank, sent) in machine.port.hosted().zip(machine.port.sent().to_vec()) {
                        let mut writer = Writer::default();
                        for number in sent.numbers() {
                            writer.number(number);
                        }
                        machine.port.send(Class::Control, rank, 0, writer.0)?;
                    }
                }
                Command::Close => {
                    let ids: Vec<u64> = machine.planner.arrays.keys().copied().collect();
                    ids.into_iter().for_each(|id| machine.planner.forget(id));
                    let _ = machine.settle();
                }
                _ => {}
            }
            context.figures.report(machine);
            if let Command::Execute(program) = command {
                memory.put_back(program);
            } else if command == Command::Close {
                self.close(contexts.remove(&number));
                if contexts.is_empty() && self.remote.is_borrowed() {
                    return self.remote.flush();
                }
            }
        }
    }

    /// Begins a context: on this process's own stack if it is of the same kind and free, else on a new one. None if rank 0 gives it
    /// up.
    fn open(&mut self, port: &mut Port, keep_all: bool, description: &str) -> Result<Option<Context>> {
        let same = self.greeting.as_ref().is_ok_and(|mine| mine.ends_with(&format!("\n{description}")));
        let has_own = same && !self.own.is_empty();
        let mut children = if has_own {
            std::mem::take(&mut self.own)
        } else {
            let config = Config::from_text("configuration of rank 0", description)?;
            let config = config.with_environment(environment::bh_variables());
            let stack = config.stack_names().next().unwrap_or_default().to_owned();
            below::load(&config, &stack, crate::NAME)?
        };
        let means = muster(&mut children, keep_all);
        let Some(roster) = roster::answer(port, &means)? else { return Ok(None) };
        let machine = Machine::remote(self.host, self.remote, roster, children, keep_all);
        Ok(Some(Context { machine, figures: Figures::new(&self.host), has_own }))
    }

    /// Ends a context; a stack of its own ends with it.
    fn close(&mut self, context: Option<Context>) {
        let Some(mut context) = context else { return };
        let children = std::mem::take(&mut context.machine.children);
        let has_own = context.has_own;
        // What the machine has of the children goes before them.
        drop(context);
        if has_own {
            self.own = children;
        }
    }
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

/// Ends all processes because of this one.
fn die(mut remote: Remote, text: &str) {
    remote.abort(text);
}
