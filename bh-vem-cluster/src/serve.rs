//! The other processes serve: they do what rank 0's contexts do, until its process ends.

use crate::command::{Command, Memory};
use crate::figures::Figures;
use crate::lead::{greeting, spread};
use crate::machine::Machine;
use crate::planner::Settings;
use crate::remote::{ENDED, Remote};
use crate::transport::{Class, Port, Transport};
use crate::wire::{Reader, Writer};
use bh_core::abi::status;
use bh_core::component::{Child, Host};
use bh_core::error::{Error, Result};
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
    settings: Settings,
    children: Vec<Child>,
}

impl Server {
    /// A process with its stacks.
    pub fn new(host: Host, remote: Remote, settings: Settings, children: Vec<Child>) -> Server {
        Server { host, remote, settings, children }
    }

    /// Serves until rank 0's process ends, or, where the program initialised MPI, until rank 0 has no context left. What goes
    /// wrong ends all processes.
    pub fn run(mut self) {
        let mut memory = SERVING.lock().unwrap_or_else(PoisonError::into_inner);
        let remote = self.remote;
        match catch_unwind(AssertUnwindSafe(|| self.serve(&mut memory))) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => die(remote, &error.to_string()),
            Err(_) => die(remote, "it panicked"),
        }
    }

    fn serve(&mut self, memory: &mut Option<Memory>) -> Result<()> {
        let mut port = Port::new(Box::new(self.remote));
        let me = self.remote.rank();
        if memory.is_none() && !greet(&mut port, me, &greeting(&self.settings))? {
            return Ok(());
        }
        let memory = memory.get_or_insert_default();
        let parent = me & (me - 1);
        let mut machines: HashMap<u64, (Machine, Figures)> = HashMap::new();
        loop {
            let bytes = match port.receive(me, parent) {
                Err(error) if error.text == ENDED => return Ok(()),
                other => other?,
            };
            let before = port.sent()[0];
            spread(&mut port, &bytes)?;
            let context = Reader(&bytes).number()?;
            let command = memory.get(&bytes[8..])?;
            if let Command::Open(settings) = &command {
                let machine = Machine::remote(self.host, self.remote, settings.clone(), Vec::new());
                machines.insert(context, (machine, Figures::new(&self.host)));
            }
            let (machine, figures) = machines.get_mut(&context).ok_or_else(|| unknown(context))?;
            machine.port.note(&port.sent()[0].since(&before));
            std::mem::swap(&mut machine.children, &mut self.children);
            // What goes wrong here goes wrong on rank 0, which tells the program.
            let _ = machine.obey(&command);
            match command {
                Command::Traffic => {
                    let mut writer = Writer::default();
                    for number in machine.port.sent()[0].numbers() {
                        writer.number(number);
                    }
                    machine.port.send(Class::Control, me, 0, writer.0)?;
                }
                Command::Close => {
                    let ids: Vec<u64> = machine.planner.arrays.keys().copied().collect();
                    ids.into_iter().for_each(|id| machine.planner.forget(id));
                    let _ = machine.settle();
                }
                _ => {}
            }
            std::mem::swap(&mut machine.children, &mut self.children);
            figures.report(machine);
            if command == Command::Close {
                machines.remove(&context);
                if machines.is_empty() && self.remote.is_borrowed() {
                    return self.remote.flush();
                }
            }
        }
    }
}

/// Rank 0 and this rank must be of one version and have the same settings. False if rank 0 has ended without a context.
fn greet(port: &mut Port, me: usize, mine: &str) -> Result<bool> {
    let theirs = match port.receive(me, 0) {
        Err(error) if error.text == ENDED => return Ok(false),
        other => other?,
    };
    if theirs != mine.as_bytes() {
        let text = format!("the ranks differ: rank 0 is {}, rank {me} is {mine}", String::from_utf8_lossy(&theirs));
        return Err(Error::new(status::INIT, text));
    }
    Ok(true)
}

fn unknown(context: u64) -> Error {
    Error::new(status::EXECUTION, format!("context {context} was not announced: do all ranks run the same bh?"))
}

/// Ends all processes because of this one.
fn die(mut remote: Remote, text: &str) {
    remote.abort(text);
}
