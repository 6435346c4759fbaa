//! Reverse mode over a program of which states are kept: the last unit is taken back first. It runs again from the state before it,
//! with what its adjoint reads kept, and its adjoint runs. Units between a state and the one that is next run again, too, and leave
//! further states where these save the most.

use crate::emit::{Emit, Place, contiguous};
use crate::history::{History, makes};
use crate::levels::Levels;
use crate::reverse::{Progress, Sweep, lost};
use crate::tape::{Segment, Step, Tape, place_of};
use bh_bytecode::{Base, Batch, BatchRef, Instr, Opcode};
use bh_core::Result;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// An owner of an array of a state. An array with two owners is not overwritten.
pub(crate) type Owner<B> = Arc<B>;

/// The values of a program's bases at one time. Values with several owners are not written.
pub(crate) type Values<B> = HashMap<u64, (Base, Owner<B>)>;

/// A way back through a program that runs again.
pub(crate) struct Rewind<B, S> {
    /// States of the program, the earliest first.
    stages: Vec<Stage<B, S>>,
    /// The units before this one are still to be taken back.
    end: usize,
    levels: Levels,
    /// How many units have run again, without those before their own adjoints.
    pub(crate) runs: u64,
}

/// A state of the program.
#[derive(Clone)]
pub(crate) struct Stage<B, S> {
    pub(crate) unit: usize,
    pub(crate) values: Values<B>,
    /// The values that are on disk.
    pub(crate) stored: HashMap<u64, (Base, S)>,
    pub(crate) on_disk: bool,
    /// Is it of use to nothing else?
    pub(crate) is_own: bool,
}

impl<B: Clone, S: Clone> Rewind<B, S> {
    /// `stages`: the states that the program left.
    pub(crate) fn new(stages: Vec<Stage<B, S>>, end: usize, levels: Levels) -> Rewind<B, S> {
        Rewind { stages, end, levels, runs: 0 }
    }

    /// How many states there are in memory and on disk. `lent`: only of those that stay, whether they are of use or not.
    fn count(&self, lent: bool) -> [u64; 2] {
        let counted = |on_disk: bool| {
            self.stages.iter().filter(|stage| stage.on_disk == on_disk && !(lent && stage.is_own)).count() as u64
        };
        [counted(false), counted(true)]
    }

    /// Takes back all units from one on.
    pub(crate) fn run_to<E: Emit<Base = B, Stored = S>>(
        &mut self,
        emit: &mut E,
        history: &History,
        progress: &mut Progress<B>,
        least: i64,
        first: usize,
    ) -> Result<()> {
        let lent = self.count(true);
        while self.end > first {
            let Some(stage) = self.stages.pop_if(|stage| stage.unit >= self.end) else {
                self.next(emit, history, progress, (least, lent))?;
                continue;
            };
            drop(stage);
        }
        Ok(())
    }

    /// Takes the last unit back, or makes a state on the way to it. `lent`: how many states stay, whether they are of use or not.
    fn next<E: Emit<Base = B, Stored = S>>(
        &mut self,
        emit: &mut E,
        history: &History,
        progress: &mut Progress<B>,
        (least, lent): (i64, [u64; 2]),
    ) -> Result<()> {
        let used = self.count(false);
        let used = [used[0].max(lent[0]), used[1].max(lent[1])];
        let Some(stage) = self.stages.last_mut() else { return Err(lost()) };
        let begin = stage.unit;
        let is_last = self.end - begin == 1 && stage.is_own;
        let mut values = if is_last { std::mem::take(&mut stage.values) } else { stage.values.clone() };
        for (&id, (base, stored)) in &stage.stored {
            values.insert(id, (*base, Owner::new(emit.load(stored, base)?)));
        }
        let mut run = Run { emit, history };
        if let Some((unit, on_disk)) = self.levels.next(begin as u64, self.end as u64, used) {
            let unit = unit as usize;
            run.forward(&mut values, begin..unit)?;
            self.runs += (unit - begin) as u64;
            values.retain(|&base, _| history.is_needed(base, history.units[unit].begin));
            let stored = if on_disk { run.store(&mut values)? } else { HashMap::new() };
            self.stages.push(Stage { unit, values, stored, on_disk, is_own: true });
            return Ok(());
        }
        run.forward(&mut values, begin..self.end - 1)?;
        self.runs += (self.end - 1 - begin) as u64;
        self.end -= 1;
        run.back(values, self.end, progress, least)
    }
}

/// Runs units again.
struct Run<'a, E: Emit> {
    emit: &'a mut E,
    history: &'a History,
}

impl<E: Emit> Run<'_, E> {
    /// Writes the values that have one owner to the disk.
    fn store(&mut self, values: &mut Values<E::Base>) -> Result<HashMap<u64, (Base, E::Stored)>> {
        let own = values.iter().filter(|(_, (_, array))| Arc::strong_count(array) == 1);
        let own: Vec<u64> = own.map(|(&id, _)| id).collect();
        let taken = own.into_iter().filter_map(|id| Some((id, values.remove(&id)?)));
        taken.map(|(id, (base, array))| Ok((id, (base, self.emit.store(&array, &base)?)))).collect()
    }

    fn forward(&mut self, values: &mut Values<E::Base>, units: Range<usize>) -> Result<()> {
        for operation in units.flat_map(|unit| self.history.range(unit)) {
            let (batch, at) = self.history.at(operation);
            let tables = Batch::as_ref(batch);
            self.operation(&tables, &tables.instrs[at], values)?;
            self.end_bases(&tables, &tables.instrs[at], operation, values, &mut |_, _| ());
        }
        Ok(())
    }

    /// Runs a unit with what its adjoint reads kept, and its adjoint.
    fn back(
        &mut self,
        mut values: Values<E::Base>,
        unit: usize,
        progress: &mut Progress<E::Base>,
        least: i64,
    ) -> Result<()> {
        let of = &self.history.units[unit];
        let mut tape = Tape::again(&of.active, &of.stopped);
        let mut kept: HashMap<u64, E::Base> = HashMap::new();
        for operation in self.history.range(unit) {
            let (batch, at) = self.history.at(operation);
            let tables = Batch::as_ref(batch);
            let instr = &tables.instrs[at];
            let step = tape.follow(&tables, at as u32);
            for pending in tape.take_pending() {
                // Values that nothing else uses any more are kept already.
                let array = values.get(&pending.base.id).map(|(_, array)| (**array).clone());
                let array = array.or_else(|| kept.get(&pending.base.id).cloned()).ok_or_else(lost)?;
                let from = Place { base: array, dtype: pending.base.dtype(), view: pending.view };
                let copy = self.emit.fresh(from.dtype, from.shape())?;
                self.emit.operate(Opcode::Copy, 0, &copy, &[from.into()])?;
                let name = u64::MAX - pending.saved as u64;
                tape.saved[pending.saved].base = name;
                kept.insert(name, copy.base);
            }
            self.operation(&tables, instr, &mut values)?;
            let step = tape.finish(&tables, instr, step);
            let held = &tape.held;
            self.end_bases(&tables, instr, operation, &mut values, &mut |base, ended| {
                if held.contains_key(&base) {
                    kept.insert(base, ended);
                }
            });
            push_step(&mut tape.segments, batch, step);
        }
        let held = values.into_iter().filter(|(base, _)| tape.held.contains_key(base));
        kept.extend(held.map(|(base, (_, array))| (base, (*array).clone())));
        let done = {
            let find = |base: u64| kept.get(&base).cloned();
            let adjoints = std::mem::take(&mut progress.adjoints);
            let mut sweep = Sweep::new(&mut *self.emit, &tape, &find, Progress::with(adjoints, &tape), least);
            let done = sweep.run_to(0);
            progress.adjoints = std::mem::take(&mut sweep.progress.adjoints);
            done
        };
        done?;
        drop(kept);
        // Nothing before a unit flows into what it has made.
        progress.adjoints.retain(|&base, _| self.history.is_older(base, of.begin));
        self.emit.flush()
    }

    /// Runs an operation. A base that is of use elsewhere is not written: what replaces it has a copy of its values, if the operation
    /// leaves some of them.
    fn operation(&mut self, tables: &BatchRef<'_>, instr: &Instr, values: &mut Values<E::Base>) -> Result<()> {
        let (mut outputs, mut inputs) = (Vec::new(), Vec::new());
        for (base, view) in instr.outputs().iter().filter_map(|&output| place_of(tables, output)) {
            let old = values.get(&base.id).map(|(_, array)| array);
            let is_new = makes(tables, instr, &base, &view);
            if let Some(old) = old.filter(|old| Arc::strong_count(old) == 1) {
                outputs.push((**old).clone());
                continue;
            }
            let array = self.emit.base(base.dtype(), base.len)?;
            if let Some(old) = old.filter(|_| !is_new) {
                let flat = contiguous(&[base.len])?;
                let from = Place { base: (**old).clone(), dtype: base.dtype(), view: flat };
                let to = Place { base: array.clone(), dtype: base.dtype(), view: flat };
                self.emit.operate(Opcode::Copy, 0, &to, &[from.into()])?;
            }
            outputs.push(array.clone());
            values.insert(base.id, (base, Arc::new(array)));
        }
        for &input in instr.inputs() {
            let Some(index) = input.as_view().map(|view| tables.views[view as usize].base) else { continue };
            let found = tables.bases.get(index as usize).and_then(|base| values.get(&base.id));
            if let Some((_, array)) = found {
                inputs.push((index, (**array).clone()));
            }
        }
        self.emit.repeat(tables, instr, &outputs, &inputs)
    }

    /// Drops the bases that nothing uses behind an operation.
    fn end_bases(
        &self,
        tables: &BatchRef<'_>,
        instr: &Instr,
        operation: u64,
        values: &mut Values<E::Base>,
        ended: &mut impl FnMut(u64, E::Base),
    ) {
        for (base, _) in instr.operands().iter().filter_map(|&operand| place_of(tables, operand)) {
            if !self.history.is_needed(base.id, operation + 1)
                && let Some((_, array)) = values.remove(&base.id)
            {
                ended(base.id, (*array).clone());
            }
        }
    }
}

fn push_step(segments: &mut Vec<Segment>, batch: &Arc<Batch>, step: Option<Step>) {
    let Some(step) = step else { return };
    match segments.last_mut().filter(|segment| Arc::ptr_eq(&segment.batch, batch)) {
        Some(segment) => segment.steps.push(step),
        None => segments.push(Segment { batch: batch.clone(), steps: vec![step] }),
    }
}
