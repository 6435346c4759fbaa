//! The planner. Every rank has the same one and feeds it the same programs, so it knows without messages what all ranks
//! have, need and compute. It does not run or send anything.

use crate::plan::align::Hints;
use crate::plan::array::{Array, Shard, When};
use crate::plan::boxes::{IndexBox, Span, inside, span_of};
use crate::plan::coverage::{Coverage, CoverageRuns};
use crate::plan::layout::{Cuts, Parts, covers, row_of};
use crate::plan::overlap::overlap;
use crate::plan::settings::Settings;
use crate::plan::stage::Stage;
use crate::plan::stages::Stages;
use bh_bytecode::{Base, BatchRef, Instr, Kind, Opcode, View, base_flags};
use bh_core::abi::status;
use bh_core::error::{Error, Result};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

/// Kinds of arrays whose halos are remembered, at most.
const MOST_KINDS: usize = 1024;

/// A line is cut between rows if each rank gets at least this many.
const LEAST_ROWS: i64 = 8;

/// Creates ids for the bases of hosted ranks.
pub type NewId = Box<dyn FnMut() -> u64 + Send>;

/// A rank and the box of indices that it computes.
pub type Share = (usize, IndexBox);

/// Must the ranks agree before they continue?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planned {
    /// No: later instructions can be planned.
    Done,
    /// Yes: the data may make it fail on one rank only.
    Risky,
}

/// The planner of a context.
pub struct Planner {
    pub(crate) settings: Settings,
    ranks: usize,
    new_id: NewId,
    pub(crate) arrays: HashMap<u64, Array>,
    pub(crate) stages: Stages,
    flush: u64,
    /// Bases with larger ids have no data yet.
    newest: u64,
    pub(crate) program: u64,
    pub(crate) hints: Hints,
    /// Kinds (length and row) of arrays whose shards received neighbours' rows: similar arrays get a margin from the
    /// start.
    halo_kinds: HashSet<(i64, i64)>,
    /// Changes with `halo_kinds` and `grid_capacities`.
    halo_version: u64,
    /// The halo capacities that arrays on grids have needed, by shape.
    pub(crate) grid_capacities: HashMap<Vec<i64>, Vec<[i64; 2]>>,
    /// How many arrays have moved from grids to rows.
    pub left_grids: u64,
    /// Arrays that may have packed copies.
    pub(crate) copied: BTreeSet<u64>,
    /// Adopted arrays on rank 0, and the number of their elements that all ranks have needed.
    pub(crate) adopted: HashMap<u64, i64>,
    /// Operations that run on one rank are distributed, so that several run at once.
    pub spreads_single_rank_work: bool,
    /// The elements of such operations on each rank, for the current plan.
    pub(crate) single_rank_load: Vec<f64>,
    /// All stacks have the methods for factoring tall matrices.
    pub factors: bool,
    /// All stacks have the methods for linear systems.
    pub solves: bool,
    /// Instructions of the last program that ran on one rank.
    pub(crate) on_one_rank: Vec<u32>,
    /// How many ranks were examined.
    #[cfg(test)]
    pub(crate) examined: std::cell::Cell<usize>,
}

impl Planner {
    /// A planner for this many ranks, on a process that hosts some of them.
    pub fn new(ranks: usize, hosted: Range<usize>, settings: Settings, new_id: NewId) -> Planner {
        let complete = hosted.len() == ranks;
        Planner {
            settings,
            ranks,
            new_id,
            arrays: HashMap::new(),
            stages: Stages::new(hosted, complete),
            flush: 1,
            newest: 0,
            program: 0,
            hints: Hints::default(),
            halo_kinds: HashSet::new(),
            halo_version: 0,
            grid_capacities: HashMap::new(),
            left_grids: 0,
            copied: BTreeSet::new(),
            adopted: HashMap::new(),
            spreads_single_rank_work: false,
            single_rank_load: Vec::new(),
            factors: false,
            solves: false,
            on_one_rank: Vec::new(),
            #[cfg(test)]
            examined: Default::default(),
        }
    }

    /// The number of ranks.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Begins a program, and looks ahead for the best cuts of its arrays.
    pub fn begin(&mut self, batch: &BatchRef<'_>, order: &[u32]) {
        self.program += 1;
        self.newest = (self.new_id)();
        self.hints = Hints::find(&self.arrays, &self.settings, batch, order);
    }

    /// Appends everything that a batch's plan depends on, except for its shape. False if the plan cannot repeat: data
    /// is lost, or packed copies of arrays outside of the batch end with it.
    pub fn describe(&self, batch: &BatchRef<'_>, words: &mut Vec<u64>) -> bool {
        words.push(self.halo_version);
        for base in batch.bases {
            match self.arrays.get(&base.id) {
                None => words.push(0),
                Some(Array { lost: Some(_), .. }) => return false,
                Some(array) => array.describe(words),
            }
        }
        let used = |id: &u64| batch.bases.iter().any(|base| base.id == *id);
        self.stages.list.is_empty() && self.copied.iter().all(used)
    }

    /// The bases of this process's ranks for a batch's arrays, in order.
    pub fn bases_of(&self, batch: &BatchRef<'_>, ids: &mut Vec<u64>) {
        ids.clear();
        for base in batch.bases {
            if let Some(array) = self.arrays.get(&base.id) {
                array.bases(ids);
            }
        }
    }

    /// A new base id.
    pub fn new_base(&mut self) -> u64 {
        (self.new_id)()
    }

    /// Restores an array's state after a plan.
    pub fn restore(&mut self, mut array: Array) {
        let (id, program) = (array.base.id, self.program);
        array.copies.values_mut().for_each(|copy| copy.used = program);
        if !array.copies.is_empty() {
            self.copied.insert(id);
        }
        #[cfg(debug_assertions)]
        self.stages.versions.trust(&array);
        self.arrays.insert(id, array);
    }

    /// Plans one instruction. After an error its outputs are lost.
    pub fn plan(&mut self, batch: &BatchRef<'_>, index: u32) -> Result<Planned> {
        let instr = &batch.instrs[index as usize];
        let outcome = match instr.opcode.kind() {
            Kind::System => {
                self.manage(batch, instr);
                return Ok(Planned::Done);
            }
            _ if no_output(batch, instr) => return Ok(Planned::Done),
            _ => self.check_inputs(batch, instr).and_then(|()| self.operate(batch, index, instr)),
        };
        #[cfg(debug_assertions)]
        self.check_versions(batch, instr);
        outcome.map_err(|error| {
            let error = error.at_instr(batch, index).unplaced();
            self.lose_outputs(batch, instr, &error);
            error
        })
    }

    /// Panics if an element of an operand has another version on a rank than this planner assumes.
    #[cfg(debug_assertions)]
    fn check_versions(&self, batch: &BatchRef<'_>, instr: &Instr) {
        let bases = instr.operands().iter().filter_map(|operand| batch.base_of(operand.as_view()?));
        bases.filter_map(|base| self.arrays.get(&base.id)).for_each(|array| self.stages.versions.check(array));
    }

    /// Checks that an instruction's inputs are not lost. Outputs that it overwrites as a whole are no longer lost.
    pub(crate) fn check_inputs(&mut self, batch: &BatchRef<'_>, instr: &Instr) -> Result<()> {
        let lost = |planner: &Planner, view: u32| {
            let base = batch.base_of(view).filter(|_| batch.views[view as usize].len > 0)?;
            planner.arrays.get(&base.id)?.lost.clone()
        };
        for view in instr.inputs().iter().filter_map(|operand| operand.as_view()) {
            if let Some(error) = lost(self, view) {
                return Err(error);
            }
        }
        for view in instr.outputs().iter().filter_map(|operand| operand.as_view()) {
            if let Some(error) = lost(self, view) {
                if !covers(batch, view) || instr.opcode.reads_output() {
                    return Err(error);
                }
                self.forget(batch.base_of(view).map_or(0, |base| base.id));
            }
        }
        Ok(())
    }

    /// Marks an instruction's outputs as lost.
    pub fn lose_outputs(&mut self, batch: &BatchRef<'_>, instr: &Instr, error: &Error) {
        let views = instr.outputs().iter().filter_map(|operand| operand.as_view());
        for view in views.filter(|&view| batch.views[view as usize].len > 0) {
            if let Some(base) = batch.base_of(view) {
                self.lose(base, error);
            }
        }
    }

    /// Marks an array as lost; keeps the first error.
    pub fn lose(&mut self, base: &Base, error: &Error) {
        let array = self.array(base, None);
        array.lost.get_or_insert_with(|| error.clone());
    }

    /// Plans data management. SYNC needs no action, because reads fetch elements; FREE and DISCARD drop the data on all
    /// ranks.
    fn manage(&mut self, batch: &BatchRef<'_>, instr: &Instr) {
        let view = instr.operands().first().and_then(|operand| operand.as_view());
        let Some(base) = view.and_then(|view| batch.base_of(view)) else { return };
        match instr.opcode {
            Opcode::Free if self.arrays.get(&base.id).is_some_and(|array| array.fixed) => {
                let array = self.array(base, None);
                array.lost = None;
                let shard = array.shards.get(&0).copied();
                let stage = self.after_use(base.id);
                if let Some(own) = shard {
                    self.stages.push_system(stage, 0, Opcode::Free, &own);
                    #[cfg(debug_assertions)]
                    self.stages.versions.clear(&self.arrays[&base.id]);
                }
                self.wrote(base.id, Span::new(0, base.len), stage);
            }
            Opcode::Free | Opcode::Discard => self.forget(base.id),
            _ => {}
        }
    }

    /// Drops an array on all ranks.
    pub fn forget(&mut self, id: u64) {
        let stage = self.after_use(id);
        let Some(array) = self.arrays.remove(&id) else { return };
        #[cfg(debug_assertions)]
        self.stages.versions.forget(&array);
        let unused = [array.wrote, array.arrived, array.read].iter().all(|when| when.flush != self.flush);
        for (&rank, base) in &array.shards {
            match unused && array.copies.is_empty() {
                // Dropping first avoids a copy: the base may share memory with one that messages change.
                true => self.stages.drop_first(rank, base),
                false => self.stages.push_system(stage, rank, Opcode::Discard, base),
            }
        }
        self.drop_copies(stage, array.copies.into_iter().map(|((rank, _), copy)| (rank, copy.base)).collect());
    }

    /// Drops packed copies, sorted, so that their order does not depend on a hash table.
    pub(crate) fn drop_copies(&mut self, stage: usize, mut copies: Vec<(usize, Base)>) {
        copies.sort_by_key(|(rank, base)| (*rank, base.id));
        for (rank, base) in copies {
            self.stages.push_system(stage, rank, Opcode::Discard, &base);
        }
    }

    /// The last planned stage that uses an array; 0 if none does. Instructions appended to that stage run after the
    /// use.
    pub(crate) fn after_use(&self, id: u64) -> usize {
        let Some(array) = self.arrays.get(&id) else { return 0 };
        let copies = array.copies.values().map(|copy| self.stage_of(copy.ready)).max().unwrap_or(0);
        let own = [array.wrote, array.arrived, array.read].map(|when| self.stage_of(when));
        own.into_iter().fold(copies, usize::max)
    }

    /// The planned stage of a time; 0 if it has run.
    pub(crate) fn stage_of(&self, when: When) -> usize {
        if when.flush == self.flush { when.stage } else { 0 }
    }

    /// The first stage that can send elements written at this time.
    pub(crate) fn sendable(&self, when: When) -> usize {
        if when.flush == self.flush { when.stage + 1 } else { 0 }
    }

    /// The first stage that can send elements of an array and grow its shards: writes are complete, and arriving
    /// elements are included in copies of grown shards.
    pub(crate) fn fetchable(&self, id: u64) -> usize {
        let array = &self.arrays[&id];
        self.sendable(array.wrote).max(self.stage_of(array.arrived))
    }

    pub(crate) fn now(&self, stage: usize) -> When {
        When { flush: self.flush, stage }
    }

    /// Takes the stages for execution.
    pub fn take_stages(&mut self) -> Vec<Stage> {
        self.flush += 1;
        self.single_rank_load.clear();
        let mut stages = self.stages.take();
        // With rows for several iterations, batches are not split: a split would end the time tiles that keep
        // iterations in cache.
        let least_bytes = if self.hints.go_ahead() { u64::MAX } else { self.settings.overlap_bytes };
        let limits = (least_bytes, self.newest);
        overlap(&mut stages, self.stages.hosted(), limits, &mut self.new_id);
        self.newest = (self.new_id)();
        stages
    }

    /// Drops packed copies that the last program did not use.
    pub fn end(&mut self) {
        let program = self.program;
        for id in std::mem::take(&mut self.copied) {
            let stage = self.after_use(id);
            let Some(array) = self.arrays.get_mut(&id) else { continue };
            let mut old = Vec::new();
            array.copies.retain(|&(rank, _), copy| {
                if copy.used < program {
                    old.push((rank, copy.base));
                }
                copy.used >= program
            });
            if !array.copies.is_empty() {
                self.copied.insert(id);
            }
            self.drop_copies(stage, old);
        }
    }

    /// The array of a base; created if unknown. `view`: its first view.
    pub(crate) fn array(&mut self, base: &Base, view: Option<&View>) -> &mut Array {
        if !self.arrays.contains_key(&base.id) {
            let row = self.row_of_new(base, view);
            let small = base.bytes() <= self.settings.small_bytes;
            let cuts = match small {
                true => Cuts::first(base.len, self.ranks),
                false => Cuts::rows(base.len, row, &self.settings.weights),
            };
            let array = self.fresh(base, row, cuts, small);
            self.arrays.insert(base.id, array);
        }
        self.arrays.get_mut(&base.id).expect("it was just made")
    }

    /// Elements per row of a new array, first written through this view. A line written in few rows, such as a
    /// generator's, is cut between elements, because some ranks would get no row.
    fn row_of_new(&self, base: &Base, view: Option<&View>) -> i64 {
        let row = row_of(base, view);
        let is_line = base.row_hint <= 1 || base.row_hint >= base.len;
        if is_line && base.len / row < LEAST_ROWS * self.ranks as i64 { 1 } else { row }
    }

    /// An array of zeros, with a margin if similar arrays needed one.
    fn fresh(&self, base: &Base, row: i64, cuts: Cuts, small: bool) -> Array {
        // Without a margin, a write of all own elements covers the shard, which then need not be zeroed and can alias a
        // copy.
        Array::new(base, row, cuts, small, self.halo_kinds.contains(&(base.len, row)))
    }

    /// Prepares an array for a write from outside; creates it anew if it is overwritten as a whole.
    pub(crate) fn renew(&mut self, base: &Base, span: Span) -> Result<()> {
        let array = self.array(base, None);
        if span != array.all() {
            return array.lost.clone().map_or(Ok(()), Err);
        }
        array.lost = None;
        let array = &self.arrays[&base.id];
        if !array.fixed {
            let (row, small) = (array.row, array.small);
            let is_alone = !small && array.cuts.is_first();
            let cuts = if is_alone { self.rows_by_weights(array) } else { array.cuts.clone() };
            self.forget(base.id);
            let array = self.fresh(base, row, cuts, small);
            self.arrays.insert(base.id, array);
        }
        Ok(())
    }

    /// Gathers an array into rank 0's memory and keeps it there; returns the shard.
    pub(crate) fn gather_to_rank0(&mut self, base: &Base) -> Result<Shard> {
        self.grid_to_rows(base.id)?;
        let array = self.array(base, None);
        if let Some(error) = &array.lost {
            return Err(error.clone());
        }
        let all = array.all();
        if !array.valid(0).contains(all) && !all.is_empty() {
            let at = self.fetchable(base.id);
            self.widen(base.id, 0, all, at, &mut HashMap::new())?;
        }
        let shard = self.shard(base.id, 0);
        let (stage, ranks) = (self.after_use(base.id), self.ranks);
        let Some(array) = self.arrays.get_mut(&base.id) else { return Ok(shard) };
        array.cuts = Cuts::first(base.len, ranks);
        (array.valid_runs, array.window_runs) =
            (CoverageRuns::new(ranks, Coverage::Around(0, 0)), CoverageRuns::new(ranks, Coverage::Around(0, 0)));
        array.window_runs.set(0..1, Coverage::Exactly(shard.window));
        // Elements that arrived on rank 0 are its own from now on.
        array.wrote = array.wrote.max(array.arrived);
        (array.fixed, array.everywhere, array.extension) = (true, false, (0, 0));
        // Other ranks' shards may cover a part only.
        array.small = false;
        let others = array.shards.split_off(&1).into_iter().collect();
        self.drop_copies(stage, others);
        Ok(shard)
    }

    /// An array's cuts by the current weights.
    pub(crate) fn rows_by_weights(&self, array: &Array) -> Cuts {
        Cuts::rows(array.base.len, array.row, &self.settings.weights)
    }

    /// Adopts memory on rank 0 as an array, which stays there if the program shares it; returns the shard.
    pub(crate) fn adopt(&mut self, base: &Base) -> Shard {
        self.forget(base.id);
        let mut array = Array::new(base, row_of(base, None), Cuts::first(base.len, self.ranks), false, false);
        array.fixed = base.has(base_flags::PINNED) || base.bytes() <= self.settings.small_bytes;
        if !array.fixed {
            self.adopted.insert(base.id, 0);
        }
        let all = array.all();
        let own = self.local_base(0, base, base.len, base.row_hint);
        if self.stages.hosts(0) {
            array.shards.insert(0, own);
        }
        #[cfg(debug_assertions)]
        self.stages.versions.trust(&array);
        self.arrays.insert(base.id, array);
        Shard { base: own, window: all, valid: all }
    }

    /// A new base of one rank.
    pub(crate) fn local_base(&mut self, rank: usize, like: &Base, len: i64, row: i64) -> Base {
        let id = if self.stages.hosts(rank) { (self.new_id)() } else { 0 };
        Base { id, len: len.max(1), row_hint: row, flags: 0, ..*like }
    }

    /// The shard of an array on a rank; created if there is none. On other processes' ranks, its base has id 0.
    pub(crate) fn shard(&mut self, id: u64, rank: usize) -> Shard {
        let array = &self.arrays[&id];
        if let Some(shard) = array.shard(rank) {
            return shard;
        }
        let (like, row, window, valid) = (array.base, array.row, array.window(rank), array.valid(rank));
        let region = array.layout.as_ref().and_then(|layout| layout.window(rank));
        let base = match &region {
            Some(region) => self.base_of_region(rank, &like, region),
            None => self.local_base(rank, &like, window.len(), row),
        };
        if base.id != 0
            && let Some(array) = self.arrays.get_mut(&id)
        {
            array.shards.insert(rank, base);
        }
        Shard { base, window, valid }
    }

    /// Records that shards of such arrays receive neighbours' rows.
    pub(crate) fn note_halo(&mut self, kind: (i64, i64)) {
        if self.halo_kinds.len() == MOST_KINDS {
            self.halo_kinds.clear();
        }
        self.halo_version += u64::from(self.halo_kinds.insert(kind));
    }

    /// Records the halo capacity that arrays of this shape on grids need.
    pub(crate) fn note_capacity(&mut self, shape: &[i64], capacity: &[[i64; 2]]) {
        if self.grid_capacities.len() == MOST_KINDS {
            self.grid_capacities.clear();
        }
        let old = self.grid_capacities.insert(shape.to_vec(), capacity.to_vec());
        self.halo_version += u64::from(old.is_none_or(|old| old != capacity));
    }

    /// The boxes of a view that each rank computes; `None` if there are too many.
    pub(crate) fn shares(&self, id: u64, view: &View) -> Option<Vec<Share>> {
        let array = &self.arrays[&id];
        let mut shares = Vec::new();
        for rank in array.reaching(span_of(view)) {
            let reach = array.reach(rank);
            if !reach.is_empty() {
                shares.extend(inside(view, reach)?.into_iter().map(|part| (rank, part)));
            }
        }
        Some(shares)
    }

    /// Records that owners wrote elements of a span in a stage; drops packed copies of the array.
    pub(crate) fn wrote(&mut self, id: u64, span: Span, stage: usize) {
        let (now, last) = (self.now(stage), self.after_use(id).max(stage));
        let Some(array) = self.arrays.get_mut(&id) else { return };
        array.wrote = array.wrote.max(now);
        array.changed(span);
        let copies = std::mem::take(&mut array.copies);
        self.drop_copies(last, copies.into_iter().map(|((rank, _), copy)| (rank, copy.base)).collect());
    }

    /// Records a read of an array in a stage.
    pub(crate) fn reads(&mut self, id: u64, stage: usize) {
        let now = self.now(stage);
        if let Some(array) = self.arrays.get_mut(&id) {
            array.read = array.read.max(now);
        }
    }

    /// Prepares an array for a write by an instruction. A new or overwritten array gets the cuts that suit the program.
    pub(crate) fn target(&mut self, batch: &BatchRef<'_>, index: u32, view: u32, parts: Option<&Parts>) -> Result<u64> {
        let base = batch.base_of(view).ok_or_else(|| Error::new(status::BATCH, "an output is no view of a base"))?;
        let (shape, whole) = (batch.view(view), covers(batch, view));
        let reads = batch.instrs[index as usize].inputs().iter().any(|operand| {
            operand.as_view().is_some_and(|other| batch.views[other as usize].base == batch.views[view as usize].base)
        });
        let hint = self.hints.cuts(index);
        let known = self.arrays.get(&base.id);
        if let Some(array) = known {
            let single_rank_load = array.cuts.is_first() && array.cuts != self.rows_by_weights(array);
            let better =
                hint.as_ref().is_some_and(|cuts| *cuts != array.cuts) || array.extension != (0, 0) || single_rank_load;
            if array.fixed
                || array.small
                || !whole
                || reads
                || batch.instrs[index as usize].opcode.reads_output()
                || !better
            {
                return Ok(base.id);
            }
            self.forget(base.id);
        }
        let covered = shape.len() >= base.len / 2;
        let cuts = hint.or_else(|| parts.filter(|_| covered)?.cuts(&shape, base.len));
        let extension = self.hints.extension(batch.views[view as usize].base);
        let array = self.array(base, Some(&shape));
        if !array.small {
            if let Some(cuts) = cuts {
                array.cuts = cuts;
            }
            if let Some((up, down)) = extension {
                array.temporary = true;
                array.extension = (up * array.row, down * array.row);
            }
        }
        Ok(base.id)
    }
}

/// Has an instruction outputs, all of them empty?
fn no_output(batch: &BatchRef<'_>, instr: &Instr) -> bool {
    let empty = |view: Option<u32>| view.is_some_and(|view| batch.views[view as usize].len == 0);
    !instr.outputs().is_empty() && instr.outputs().iter().all(|operand| empty(operand.as_view()))
}
