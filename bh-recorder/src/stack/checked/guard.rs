//! The checks of fused programs: batches run as they are, with a test of what they store, and only when a test fails, the last of
//! them run again, operation by operation, to find the operation that made the bad number.
//!
//! For that, a log keeps the last batches, and the data that the first of them found: bases are copied before a batch of the log
//! overwrites them for the first time, and bases that a batch drops stay until the log ends. A log ends before the program
//! changes an array of it, and once it has done so much work that the copies were a small part of it.

use super::instrument::{self, Tested};
use super::programs::TestedPrograms;
use super::replay;
use crate::stack::backend::Backend;
use bh_bytecode::{Base, Batch, BatchRef, Instr, Opcode, Operand, Truth, View, base_flags};
use bh_core::abi::access;
use bh_core::component::Ticket;
use bh_core::config::Checks;
use bh_core::error::Result;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};

/// Batches of a log, and work in bytes for each byte of its copies, before it ends.
const BATCHES: usize = 64;
const SHARE: u64 = 64;
/// Bytes of bases that stay although the program has dropped them, at most.
const KEPT: u64 = 1 << 28;
/// Instructions of a log, at most.
const INSTRUCTIONS: usize = 20_000;

/// Where the data is that a base had when the log began.
#[derive(Clone, Copy, Debug)]
pub(super) enum Past {
    /// In the base itself.
    Own,
    /// In a copy.
    Copy(Base),
    /// Nowhere: the batches of the log make it, or nobody has it.
    Nothing,
}

/// The last batches, and the data that the first of them found.
#[derive(Default)]
pub(super) struct Log {
    pub(super) batches: Vec<Batch>,
    /// For each base of a batch, by its identity.
    pub(super) past: HashMap<u64, Past>,
}

/// Checks fused programs.
#[derive(Default)]
pub(crate) struct Guard {
    log: Log,
    programs: TestedPrograms,
    /// Bases that the program has dropped.
    dropped: Vec<Base>,
    copied_bytes: u64,
    dropped_bytes: u64,
    work_bytes: u64,
    instructions: usize,
}

impl Guard {
    /// Runs a batch with the checks. `changed`: bases that the program has changed since the last batch; `shared`: the program may
    /// change an array of the batch at any time. `work`: bytes that it writes.
    pub(crate) fn run(
        &mut self,
        backend: &mut dyn Backend,
        batch: &BatchRef<'_>,
        checks: Checks,
        (changed, shared, work): (&HashSet<u64>, bool, u64),
    ) -> Result<()> {
        if shared || self.is_full() || changed.iter().any(|base| self.log.past.contains_key(base)) {
            self.end_log(backend)?;
        }
        let ids = backend.base_ids();
        let kept = self.keep(backend, batch, &ids);
        let program = |instr: &Instr| self.programs.of(backend, batch, instr, checks);
        let tested = instrument::tested(batch, checks, &kept, &ids, program);
        let ran = run_tested(backend, &tested);
        self.log.batches.push(batch.to_owned());
        self.work_bytes += work;
        self.instructions += batch.instrs.len();
        let (mut failed, suspected) = ran?;
        if suspected && !failed {
            failed = run_tested(backend, &instrument::exactly_tested(batch, checks, &ids))?.0;
        }
        let found = if failed { replay::find(backend, &self.log, checks, &mut self.programs) } else { Ok(()) };
        if shared || found.is_err() {
            self.end_log(backend)?;
        }
        found
    }

    /// Have the copies become a small part of the work, or is the log large?
    fn is_full(&self) -> bool {
        self.instructions > INSTRUCTIONS
            || self.dropped_bytes > KEPT
            || self.log.batches.len() >= BATCHES && self.work_bytes >= SHARE * self.copied_bytes
    }

    /// Keeps the data that the log's batches found of this batch's bases: copies those that it overwrites or empties. Returns the
    /// bases that it drops and that have to stay.
    fn keep(&mut self, backend: &mut dyn Backend, batch: &BatchRef<'_>, ids: &AtomicU64) -> HashSet<u64> {
        let (mut written, mut dropped) = (HashSet::new(), HashSet::new());
        for instr in batch.instrs {
            let frees = instr.opcode == Opcode::Free;
            let outputs = if frees { instr.operands() } else { instr.outputs() };
            written.extend(outputs.iter().filter_map(|operand| batch.base_of(operand.as_view()?)).map(|base| base.id));
            if instr.opcode == Opcode::Discard
                && let Some(base) = instr.operands[0].as_view().and_then(|view| batch.base_of(view))
            {
                dropped.insert(base.id);
            }
        }
        let mut kept = HashSet::new();
        for base in batch.bases {
            let known = self.log.past.get(&base.id).copied();
            let past = match known {
                Some(Past::Own) | None if base.has(base_flags::BORN) && known.is_none() => Past::Nothing,
                Some(Past::Own) | None if written.contains(&base.id) => self.copy(backend, base, ids),
                None => Past::Own,
                Some(past) => past,
            };
            self.log.past.insert(base.id, past);
            if matches!(past, Past::Own) && dropped.contains(&base.id) {
                kept.insert(base.id);
                self.dropped_bytes += base.bytes();
                self.dropped.push(Base { flags: 0, ..*base });
            }
        }
        kept
    }

    /// Copies a base. One whose data is lost has no past.
    fn copy(&mut self, backend: &mut dyn Backend, base: &Base, ids: &AtomicU64) -> Past {
        let copy = Base { id: ids.fetch_add(1, Ordering::Relaxed), flags: 0, ..*base };
        match copy_base(backend, base, &copy) {
            Ok(()) => {
                self.copied_bytes += base.bytes();
                Past::Copy(copy)
            }
            Err(_) => Past::Nothing,
        }
    }

    /// Forgets the log, its copies, and the bases that the program has dropped.
    pub(crate) fn end_log(&mut self, backend: &mut dyn Backend) -> Result<()> {
        let mut gone = std::mem::take(&mut self.dropped);
        let log = std::mem::take(&mut self.log);
        gone.extend(log.past.values().filter_map(|past| if let Past::Copy(copy) = past { Some(*copy) } else { None }));
        (self.copied_bytes, self.dropped_bytes, self.work_bytes, self.instructions) = (0, 0, 0, 0);
        discard(backend, &gone)
    }
}

/// Runs a batch with tests. Returns whether one failed, and whether a float is suspected.
fn run_tested(backend: &mut dyn Backend, tested: &Tested) -> Result<(bool, bool)> {
    let ran = execute(backend, &tested.batch.as_ref());
    let flags = [tested.flag, tested.suspicion];
    let read = match &ran {
        Ok(()) => flags.map(|flag| flag.map_or(Ok(false), |flag| read_flag(backend, flag))),
        Err(_) => [Ok(false), Ok(false)],
    };
    let made: Vec<Base> = flags.into_iter().flatten().collect();
    discard(backend, &made)?;
    ran?;
    let [failed, suspected] = read;
    Ok((failed?, suspected?))
}

/// Runs a batch to its end.
pub(crate) fn execute(backend: &mut dyn Backend, batch: &BatchRef<'_>) -> Result<()> {
    match backend.execute(batch, &[])? {
        Ticket::DONE => Ok(()),
        ticket => backend.wait(ticket),
    }
}

/// Copies all elements of a base into a new one.
pub(super) fn copy_base(backend: &mut dyn Backend, from: &Base, to: &Base) -> Result<()> {
    let mut batch = Batch::default();
    let [to, from] =
        [(to, base_flags::BORN | base_flags::LIVE_OUT), (from, base_flags::LIVE_OUT)].map(|(base, flags)| {
            let pinned = base.flags & base_flags::PINNED;
            let place = batch.push_base(Base { flags: flags | pinned, ..*base });
            whole(&mut batch, place, base.len)
        });
    batch.push_instr(Instr::new(Opcode::Copy, &[to, from]));
    execute(backend, &batch.as_ref())
}

/// Drops bases.
pub(crate) fn discard(backend: &mut dyn Backend, bases: &[Base]) -> Result<()> {
    if bases.is_empty() {
        return Ok(());
    }
    let mut batch = Batch::default();
    for base in bases {
        let place = batch.push_base(Base { flags: base_flags::DIES, ..*base });
        let all = whole(&mut batch, place, base.len);
        batch.push_instr(Instr::new(Opcode::Discard, &[all]));
    }
    execute(backend, &batch.as_ref())
}

/// All elements of a base in the order of its memory.
fn whole(batch: &mut Batch, base: u32, len: i64) -> Operand {
    let view = View::contiguous(&[len]).expect("the length of a base is one of a view");
    Operand::view(batch.push_view(base, &view))
}

/// Does the flag's only element hold?
fn read_flag(backend: &mut dyn Backend, flag: Base) -> Result<bool> {
    let data = backend.map(&flag, None, access::READ)?;
    // SAFETY: a mapped base holds its elements, one of them here.
    let holds = unsafe { data.cast::<Truth>().read() }.get();
    backend.unmap(&flag)?;
    Ok(holds)
}
