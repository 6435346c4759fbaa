//! A job: a block in the queue. Slots provide its data, the interpreter runs it instruction by instruction, and a
//! failure only affects what depends on it.

use crate::heap::Work;
use crate::slot::Slot;
use bh_bytecode::Batch;
use bh_bytecode::interp::Memory;
use bh_core::abi::status;
use bh_core::error::{Error, Result};
use bh_ve_interp::usage::instr_usage;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// A base of a job.
pub struct JobBase {
    /// Index in the batch.
    pub base: u32,
    /// The slot of its old values, if it needs them.
    pub from: Option<Arc<Slot>>,
    /// The slot of its new values, if it has any.
    pub to: Option<Arc<Slot>>,
}

/// One block to run.
pub struct Job {
    pub batch: Arc<Batch>,
    pub block: u32,
    pub bases: Vec<JobBase>,
    pub delay: Duration,
    /// The instruction that fails according to the script.
    pub failing: Option<u32>,
    pub ticket: Arc<Work>,
}

/// The results of a job: data, and errors of lost bases.
type Outcome = (Memory, HashMap<u32, Error>);

impl Job {
    /// Runs the job; settles its outputs and its ticket.
    pub fn run(self) {
        if !self.delay.is_zero() {
            std::thread::sleep(self.delay);
        }
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.compute()));
        match outcome {
            Ok(outcome) => self.finish(Ok(outcome)),
            Err(_) => self.fail(&Error::new(status::PANIC, "the shadow engine's thread panicked")),
        }
    }

    /// Fails the job: its outputs are lost.
    pub fn fail(self, error: &Error) {
        self.ticket.fail(error);
        self.finish(Err(error));
    }

    fn finish(self, mut outcome: std::result::Result<Outcome, &Error>) {
        for wanted in self.bases {
            if let Some(to) = wanted.to {
                let id = self.batch.bases[wanted.base as usize].id;
                to.settle(match &mut outcome {
                    Ok((memory, lost)) => match lost.remove(&wanted.base) {
                        Some(error) => Err(error),
                        None => Ok(memory.remove(id).unwrap_or_default()),
                    },
                    Err(error) => Err(error.clone()),
                });
            }
            wanted.from.iter().for_each(|from| from.end_read());
        }
        // Before closing the ticket, so that unused memory of the application is already released for those that wait.
        self.ticket.close();
    }

    fn compute(&self) -> Outcome {
        let batch = Batch::as_ref(&self.batch);
        let (mut memory, mut lost) = (Memory::new(), HashMap::new());
        for wanted in &self.bases {
            let base = &batch.bases[wanted.base as usize];
            let mut bytes = vec![0; base.bytes() as usize];
            if let Some(from) = &wanted.from {
                let content = from.lock();
                bytes.copy_from_slice(&content.bytes);
                lost.extend(content.error.clone().map(|error| (wanted.base, error)));
            }
            memory.insert(base.id, bytes);
        }
        let block = &batch.blocks[self.block as usize];
        for &index in batch.block_instrs(block) {
            let instr = &batch.instrs[index as usize];
            if instr.opcode.is_system() {
                continue;
            }
            let mut uses = Vec::new();
            instr_usage(&batch, instr, &mut uses);
            let inherited = uses.iter().find_map(|used| lost.get(&used.base).filter(|_| used.needs_old)).cloned();
            let outcome = match inherited {
                Some(error) => Err(error),
                None if self.failing == Some(index) => {
                    let text = format!("scripted failure of {}", instr.opcode);
                    Err(Error::new(status::EXECUTION, text).at_instr(&batch, index))
                }
                None => bh_ve_interp::interpret_one(&batch, index, &mut memory),
            };
            self.note(outcome, uses.iter().filter(|used| used.writes).map(|used| used.base), &mut lost);
        }
        (memory, lost)
    }

    /// Records whether an instruction's outputs are lost or valid.
    fn note(&self, outcome: Result<()>, written: impl Iterator<Item = u32>, lost: &mut HashMap<u32, Error>) {
        if let Err(error) = &outcome {
            self.ticket.fail(error);
        }
        for base in written {
            match &outcome {
                Ok(()) => drop(lost.remove(&base)),
                Err(error) => drop(lost.insert(base, error.clone())),
            }
        }
    }
}
