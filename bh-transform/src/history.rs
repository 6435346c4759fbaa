//! A program as it ran, and the states of it that are kept so that it can be run again from there.
//!
//! A state is the values of all bases that operations behind it read. It costs nothing but handles where the program makes new arrays:
//! a base is copied before it is overwritten only if a state needs what is in it. Values that the program has overwritten before
//! anything read them belong to no state.

mod leaving;

use crate::disk::Stored;
use crate::tape::{is_whole, keeps_elements, place_of, rule_of};
use crate::units::{Units, likeness};
use bh_bytecode::{Base, Batch, BatchRef, Instr, View, base_flags};
use bh_recorder::{ArrayId, Ending};
pub(crate) use leaving::Home;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A batch has one part in so many of the operations so far, at most: states are given up and kept between batches.
const PART: u64 = 32;
/// But it may have this many.
const SHORTEST: u64 = 64;
/// And so many times those of a unit.
const UNITS: u64 = 4;

/// The operations that ran, cut into units, with the states that are kept. Time is counted in operations: operation
/// `n` has the time `n + 1`.
#[derive(Default)]
pub(crate) struct History {
    pub(crate) batches: Vec<Recorded>,
    pub(crate) units: Vec<Unit>,
    cutter: Units,
    /// For each base, when its values were made and used last, time after time.
    spans: HashMap<u64, Vec<Span>>,
    /// Bases that the program has.
    bases: HashMap<u64, Current>,
    values: Vec<Values>,
    pub(crate) states: Vec<State>,
    /// Arrays that nothing needs any more.
    released: Vec<ArrayId>,
    /// Arrays that the batch shown last is asked for: of which bases, and for which values if the program has none of them any more.
    asked: Vec<(u64, Option<usize>)>,
    /// Values that are copied in the batch shown last.
    copied: Vec<usize>,
    /// Operations so far.
    count: u64,
    /// Bytes of their operands.
    moved: u64,
}

/// A batch, and its operations but for the management of data.
pub(crate) struct Recorded {
    pub(crate) batch: Arc<Batch>,
    pub(crate) operations: Vec<u32>,
    /// How many operations were before it.
    pub(crate) first: u64,
}

/// A part of the program that is taken back as a whole.
#[derive(Clone, Default)]
pub(crate) struct Unit {
    /// The number of its first operation.
    pub(crate) begin: u64,
    /// The bases that depended on the arguments there.
    pub(crate) active: Arc<Vec<u64>>,
    /// Bases whose first values, which it makes, count as constant.
    pub(crate) stopped: Vec<u64>,
}

#[derive(Clone, Copy)]
struct Span {
    made: u64,
    last: u64,
}

struct Current {
    base: Base,
    array: Option<ArrayId>,
    /// The values that it has; `None` before it is written.
    values: Option<usize>,
    written: u64,
}

/// The values that a base had for some time.
struct Values {
    base: Base,
    /// A state needs them that is not the base itself any more.
    home: Option<ArrayId>,
    /// They are on disk.
    stored: Option<Stored>,
    /// So many states need them.
    states: usize,
    last: u64,
}

/// A state of the program.
pub(crate) struct State {
    pub(crate) unit: usize,
    time: u64,
    /// The values of its bases.
    values: HashMap<u64, usize>,
    /// Arrays that only such states need go to the disk.
    on_disk: bool,
}

/// Bytes of the bases that are alive at a cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Alive {
    /// Of bases that the unit before has written.
    pub(crate) changing: u64,
    /// Of other bases.
    pub(crate) lasting: u64,
    /// Of both, those that depend on the arguments.
    pub(crate) active: u64,
}

/// Copies of bases to be put before instructions of a batch.
pub(crate) type Copies = Vec<(usize, Base)>;

impl History {
    /// `window`: as [`Units::of`].
    pub(crate) fn new(window: Option<usize>) -> History {
        let first = State { unit: 0, time: 0, values: HashMap::new(), on_disk: false };
        let cutter = window.map_or_else(Units::default, Units::of);
        History { states: vec![first], units: vec![Unit::default()], cutter, ..History::default() }
    }

    /// Arrays whose ends decide which bases are alive.
    pub(crate) fn followed(&self) -> impl Iterator<Item = ArrayId> {
        self.bases.values().filter_map(|current| current.array)
    }

    /// The most operations that the next batch may have.
    pub(crate) fn longest(&self) -> usize {
        let begins: Vec<u64> = self.units.iter().rev().take(2).map(|unit| unit.begin).collect();
        let unit = if let [last, before] = begins[..] { last - before } else { 0 };
        (self.count / PART).max(SHORTEST).max(UNITS * unit) as usize
    }

    pub(crate) fn knows(&self, base: u64) -> bool {
        self.bases.contains_key(&base)
    }

    /// Cuts behind all operations so far, as the program stops there.
    pub(crate) fn cut_here(&mut self, active: Arc<Vec<u64>>) {
        if self.cutter.cut_here() && self.units.last().is_none_or(|unit| unit.begin < self.count) {
            self.units.push(Unit { begin: self.count, active, stopped: Vec::new() });
        } else if let Some(unit) = self.units.last_mut() {
            unit.active = active;
        }
    }

    /// Enters a batch, and forgets what ended. Returns where it is cut: the numbers of its operations behind the cuts, with the bytes
    /// of its bases that are alive there.
    pub(crate) fn enter(&mut self, batch: &Arc<Batch>, ending: &Ending) -> Vec<(usize, u64)> {
        for array in &ending.alone {
            let found = self.bases.iter().find(|(_, current)| current.array == Some(*array)).map(|(&id, _)| id);
            if let Some(id) = found.filter(|id| batch.bases.iter().all(|base| base.id != *id)) {
                self.end_base(id);
            }
        }
        let tables = Batch::as_ref(batch);
        let is_operation = |(_, instr): &(usize, &Instr)| !instr.opcode.is_system();
        let operations: Vec<u32> =
            tables.instrs.iter().enumerate().filter(is_operation).map(|(at, _)| at as u32).collect();
        let likes: Vec<u64> = operations.iter().map(|&at| likeness(&tables, &tables.instrs[at as usize])).collect();
        let live = live_bytes(&tables, &operations, ending);
        let operands = operations.iter().flat_map(|&at| tables.instrs[at as usize].operands());
        let places = operands.filter_map(|&operand| place_of(&tables, operand));
        self.moved += places.map(|(base, view)| Base { len: view.len(), ..base }.bytes()).sum::<u64>();
        self.batches.push(Recorded { batch: batch.clone(), operations, first: self.count });
        self.cutter.find(&likes, &live).into_iter().map(|cut| (cut, live[cut])).collect()
    }

    /// Begins a unit before operation `at` of the batch entered last.
    pub(crate) fn begin_unit(&mut self, at: usize, active: Arc<Vec<u64>>) {
        let first = self.batches.last().map_or(0, |recorded| recorded.first);
        self.units.push(Unit { begin: first + at as u64, active, stopped: Vec::new() });
    }

    /// The operations of the batch entered last.
    pub(crate) fn last_operations(&self) -> &[u32] {
        self.batches.last().map_or(&[], |recorded| &recorded.operations)
    }

    /// Notes bases whose first values, which the unit begun last makes, count as constant.
    pub(crate) fn note_stopped(&mut self, bases: Vec<u64>) {
        if let Some(unit) = self.units.last_mut() {
            unit.stopped.extend(bases);
        }
    }

    /// Lets arrays be freed that are not its own.
    pub(crate) fn let_go(&mut self, arrays: Vec<ArrayId>) {
        self.released.extend(arrays);
    }

    /// Follows the batch entered last. `keeps`: at which of its cuts states are kept. Returns the copies to be made, and what is alive
    /// at each cut.
    pub(crate) fn follow(&mut self, ending: &Ending, cuts: &[usize], keeps: &HashSet<usize>) -> (Copies, Vec<Alive>) {
        let Some(recorded) = self.batches.last() else { return (Vec::new(), Vec::new()) };
        let (batch, operations, first) = (recorded.batch.clone(), recorded.operations.clone(), recorded.first);
        let tables = Batch::as_ref(&batch);
        let lasts = last_uses(&tables, &operations);
        let ended: HashMap<u64, usize> = lasts
            .into_iter()
            .filter(|&(base, _)| ending.bases.get(base as usize).copied().unwrap_or(true))
            .map(|(base, last)| (tables.bases[base as usize].id, last))
            .collect();
        let (mut copies, mut alive) = (Vec::new(), Vec::new());
        let mut unit = self.units.len() - cuts.len();
        let mut next = cuts.iter().peekable();
        for number in 0..=operations.len() {
            if next.next_if(|&&cut| cut == number).is_some() {
                let time = first + number as u64;
                let is_live = |id: &u64| ended.get(id).is_none_or(|&last| last >= number);
                alive.push(self.alive(unit, is_live));
                if keeps.contains(&number) {
                    self.keep_state(unit, time, is_live);
                }
                unit += 1;
            }
            let Some(&at) = operations.get(number) else { break };
            self.operation(&tables, at as usize, first + number as u64 + 1, &mut copies);
        }
        self.count = first + operations.len() as u64;
        for (index, base) in tables.bases.iter().enumerate() {
            if ending.bases.get(index).copied().unwrap_or(true) {
                self.end_base(base.id);
            } else if self.bases.get(&base.id).is_some_and(|current| current.array.is_none())
                && self.asked.iter().all(|(id, _)| *id != base.id)
            {
                self.asked.push((base.id, None));
            }
        }
        (copies, alive)
    }

    /// The bases that are alive before a unit.
    fn alive(&self, unit: usize, is_live: impl Fn(&u64) -> bool) -> Alive {
        let (mut alive, since) = (Alive::default(), self.units[unit - 1].begin);
        for (id, current) in self.bases.iter().filter(|(id, current)| current.values.is_some() && is_live(id)) {
            let bytes = current.base.bytes();
            *if current.written > since { &mut alive.changing } else { &mut alive.lasting } += bytes;
            alive.active += if self.units[unit].active.binary_search(id).is_ok() { bytes } else { 0 };
        }
        alive
    }

    fn keep_state(&mut self, unit: usize, time: u64, is_live: impl Fn(&u64) -> bool) {
        let live = self.bases.iter().filter(|(id, _)| is_live(id));
        let values: HashMap<u64, usize> = live.filter_map(|(&id, current)| Some((id, current.values?))).collect();
        values.values().for_each(|&values| self.values[values].states += 1);
        self.states.push(State { unit, time, values, on_disk: false });
    }

    fn operation(&mut self, tables: &BatchRef<'_>, at: usize, time: u64, copies: &mut Copies) {
        let instr = &tables.instrs[at];
        for &input in instr.inputs() {
            if let Some((base, _)) = place_of(tables, input) {
                self.read(&base, time);
            }
        }
        for (base, view) in instr.outputs().iter().filter_map(|&output| place_of(tables, output)) {
            self.write(&base, time, makes(tables, instr, &base, &view), &mut |base| copies.push((at, base)));
        }
    }

    fn read(&mut self, base: &Base, time: u64) {
        if !self.knows(base.id) {
            self.discover(base);
        }
        if let Some(values) = self.bases[&base.id].values {
            self.values[values].last = time;
        }
        if let Some(span) = self.spans.get_mut(&base.id).and_then(|spans| spans.last_mut()) {
            span.last = time;
        }
    }

    /// A base from outside that the program uses for the first time: all states have the values that it came with.
    fn discover(&mut self, base: &Base) {
        let states = self.states.len();
        self.values.push(Values { base: *base, home: None, stored: None, states, last: 0 });
        let values = self.values.len() - 1;
        self.states.iter_mut().for_each(|state| _ = state.values.insert(base.id, values));
        self.bases.insert(base.id, Current { base: *base, array: None, values: Some(values), written: 0 });
        self.spans.insert(base.id, vec![Span { made: 0, last: 0 }]);
    }

    /// `makes`: the write leaves nothing of the values before, and does not read them.
    fn write(&mut self, base: &Base, time: u64, makes: bool, copy: &mut impl FnMut(Base)) {
        if !self.knows(base.id) && !base.has(base_flags::BORN) && !makes {
            self.discover(base);
        }
        let new = Current { base: *base, array: None, values: None, written: 0 };
        let current = self.bases.entry(base.id).or_insert(new);
        current.written = time;
        let old = current.values;
        let spans = self.spans.entry(base.id).or_default();
        match spans.last_mut().filter(|_| !makes) {
            Some(span) => span.last = time,
            None => spans.push(Span { made: time, last: time }),
        }
        if let Some(old) = old {
            if makes {
                self.end_values(base.id, old);
            } else {
                self.values[old].last = time;
            }
            if self.values[old].states == 0 {
                self.values[old].last = time;
                return;
            }
            copy(*base);
            self.copied.push(old);
        }
        self.values.push(Values { base: *base, home: None, stored: None, states: 0, last: time });
        let values = self.values.len() - 1;
        if let Some(current) = self.bases.get_mut(&base.id) {
            current.values = Some(values);
        }
    }

    /// Nothing uses values any more: states behind their last use do without.
    fn end_values(&mut self, base: u64, values: usize) {
        let last = self.values[values].last;
        for state in &mut self.states {
            if state.time >= last && state.values.get(&base) == Some(&values) {
                state.values.remove(&base);
                self.released.extend(self.values[values].give_up());
            }
        }
    }

    /// The program has no handle on a base any more.
    fn end_base(&mut self, id: u64) {
        let Some(current) = self.bases.remove(&id) else { return };
        let values = current.values.inspect(|&values| self.end_values(id, values));
        match (values.filter(|&values| self.values[values].states > 0), current.array) {
            (Some(values), Some(array)) => self.values[values].home = Some(array),
            (Some(values), None) => {
                self.asked.retain(|(base, _)| *base != id);
                self.asked.push((id, Some(values)));
            }
            (None, array) => {
                self.asked.retain(|(base, _)| *base != id);
                self.released.extend(array);
            }
        }
    }

    /// The bases of the batch shown last that are to be kept, and how many copies it has of values.
    pub(crate) fn asks(&self) -> (Vec<u64>, usize) {
        (self.asked.iter().map(|(base, _)| *base).collect(), self.copied.len())
    }

    /// Takes the arrays that it has asked for, in their order.
    pub(crate) fn receive(&mut self, kept: &[(u64, ArrayId)], made: &[(u64, ArrayId)]) {
        let mut kept = kept.iter().peekable();
        for (base, values) in std::mem::take(&mut self.asked) {
            // A base may not be there any more.
            let Some(&(_, array)) = kept.next_if(|(id, _)| *id == base) else { continue };
            match (values, self.bases.get_mut(&base)) {
                (Some(values), _) => self.settle(values, array),
                (None, Some(current)) => current.array = Some(array),
                (None, None) => self.released.push(array),
            }
        }
        for (values, &(_, array)) in std::mem::take(&mut self.copied).into_iter().zip(made) {
            self.settle(values, array);
        }
    }

    fn settle(&mut self, values: usize, array: ArrayId) {
        if self.values[values].states == 0 {
            self.released.push(array);
        } else {
            self.values[values].home = Some(array);
        }
    }

    /// Gives up a state.
    pub(crate) fn give_up(&mut self, at: usize) {
        for values in self.states.remove(at).values.into_values() {
            self.released.extend(self.values[values].give_up());
        }
    }

    /// The units at which states are kept.
    pub(crate) fn stored(&self) -> Vec<u64> {
        self.states.iter().map(|state| state.unit as u64).collect()
    }

    /// Arrays that nothing needs any more, which the caller frees.
    pub(crate) fn take_released(&mut self) -> Vec<ArrayId> {
        std::mem::take(&mut self.released)
    }

    /// Ends the program: what nothing runs again is in no state. Returns the arrays that states need, with the base that each of
    /// them was, if the program may still have it.
    pub(crate) fn end(&mut self) {
        let bases: Vec<(u64, usize)> =
            self.bases.iter().filter_map(|(&id, current)| Some((id, current.values?))).collect();
        bases.into_iter().for_each(|(id, values)| self.end_values(id, values));
    }

    /// All arrays that the history has.
    pub(crate) fn arrays(&self) -> impl Iterator<Item = ArrayId> {
        let homes = self.values.iter().filter_map(|values| values.home);
        self.followed().chain(homes).chain(self.released.iter().copied())
    }

    /// Does the program use the values of a base before it makes new ones, from an operation on?
    pub(crate) fn is_needed(&self, base: u64, from: u64) -> bool {
        let Some(spans) = self.spans.get(&base) else { return false };
        let before = spans.partition_point(|span| span.made <= from);
        before > 0 && spans[before - 1].last > from
    }

    /// Was a base there before an operation?
    pub(crate) fn is_older(&self, base: u64, operation: u64) -> bool {
        self.spans.get(&base).and_then(|spans| spans.first()).is_none_or(|span| span.made <= operation)
    }

    /// The batch of an operation, and its place there.
    pub(crate) fn at(&self, operation: u64) -> (&Arc<Batch>, usize) {
        let batch = self.batches.partition_point(|recorded| recorded.first <= operation) - 1;
        let recorded = &self.batches[batch];
        (&recorded.batch, recorded.operations[(operation - recorded.first) as usize] as usize)
    }

    /// The operations of a unit.
    pub(crate) fn range(&self, unit: usize) -> std::ops::Range<u64> {
        let end = self.units.get(unit + 1).map_or(self.count, |next| next.begin);
        self.units[unit].begin..end
    }

    /// Bytes of the operands of a unit, on average.
    pub(crate) fn moved_by_unit(&self) -> u64 {
        self.moved / self.units.len().max(1) as u64
    }
}

/// Does a write of a view leave nothing of the base's values, without reading them?
pub(crate) fn makes(tables: &BatchRef<'_>, instr: &Instr, base: &Base, view: &View) -> bool {
    let reads = |base: &Base| {
        instr.inputs().iter().filter_map(|&input| place_of(tables, input)).any(|(other, _)| other.id == base.id)
    };
    is_whole(base, view) && !keeps_elements(rule_of(tables, instr)) && !reads(base)
}

/// For each base of a batch that operations use, the number of the last one.
fn last_uses(tables: &BatchRef<'_>, operations: &[u32]) -> HashMap<u32, usize> {
    let mut lasts: HashMap<u32, usize> = (0..tables.bases.len() as u32).map(|base| (base, 0)).collect();
    for (number, &at) in operations.iter().enumerate() {
        let views = tables.instrs[at as usize].operands().iter().filter_map(|operand| operand.as_view());
        views.for_each(|view| _ = lasts.insert(tables.views[view as usize].base, number));
    }
    lasts.retain(|base, _| (*base as usize) < tables.bases.len());
    lasts
}

/// The bytes of a batch's bases that are alive before each of its operations, and behind the last one.
fn live_bytes(tables: &BatchRef<'_>, operations: &[u32], ending: &Ending) -> Vec<u64> {
    let (mut begins, lasts) = (HashMap::new(), last_uses(tables, operations));
    for (number, &at) in operations.iter().enumerate() {
        for view in tables.instrs[at as usize].operands().iter().filter_map(|operand| operand.as_view()) {
            begins.entry(tables.views[view as usize].base).or_insert(number);
        }
    }
    let mut changes = vec![0i64; operations.len() + 2];
    for (index, base) in tables.bases.iter().enumerate() {
        let Some(&begin) = begins.get(&(index as u32)) else { continue };
        let from = if base.has(base_flags::BORN) { begin + 1 } else { 0 };
        let ends = ending.bases.get(index).copied().unwrap_or(true);
        let end = if ends { lasts[&(index as u32)] + 1 } else { operations.len() + 1 };
        let bytes = i64::try_from(base.bytes()).unwrap_or(i64::MAX >> 16);
        if from < end {
            changes[from] += bytes;
            changes[end] -= bytes;
        }
    }
    let mut sum = 0;
    let running = changes.iter().map(|change| {
        sum += change;
        sum as u64
    });
    running.take(operations.len() + 1).collect()
}
