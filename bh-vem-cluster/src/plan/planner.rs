//! The planner: every rank has the same one, feeds it the same programs, and so knows without asking what all ranks have,
//! need and do. Nothing here runs or sends anything.

use crate::plan::align::Hints;
use crate::plan::array::{Array, Piece, When};
use crate::plan::boxes::{IndexBox, Span, inside, span_of};
use crate::plan::held::{Has, Runs};
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

/// The most kinds of arrays whose borders are remembered.
const MOST_KINDS: usize = 1024;

/// A line is cut between rows if each rank has at least this many.
const LEAST_ROWS: i64 = 8;

/// Makes identities for bases of the hosted ranks.
pub type NewId = Box<dyn FnMut() -> u64 + Send>;

/// What a rank computes of an instruction.
pub type Share = (usize, IndexBox);

/// Does an instruction end a part of the program?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planned {
    /// No: what follows can be planned.
    Done,
    /// It may fail on one rank for reasons that lie in the data: the ranks must agree before they go on.
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
    /// Bases with larger numbers have no data yet.
    newest: u64,
    pub(crate) program: u64,
    pub(crate) hints: Hints,
    /// Lengths and rows of arrays whose pieces got rows of neighbours: others like them get room for these at once.
    bordered: HashSet<(i64, i64)>,
    /// Changes with them.
    bordered_version: u64,
    /// The room beside their own that ranks have needed of arrays on grids, by shape.
    pub(crate) borders: HashMap<Vec<i64>, Vec<[i64; 2]>>,
    /// How many arrays went from grids to rows.
    pub left: u64,
    /// Arrays that may have copies of views.
    pub(crate) copied: BTreeSet<u64>,
    /// Arrays in memory of rank 0 that the program has given away, and the elements of them that all ranks have asked for.
    pub(crate) homes: HashMap<u64, i64>,
    /// What one rank does alone is shared out, so that several are done at once.
    pub shares_out: bool,
    /// What each rank has of that so far, in elements.
    pub(crate) alone: Vec<f64>,
    /// Ranks can factor matrices of their own.
    pub factors: bool,
    /// Ranks can solve linear systems of their own.
    pub solves: bool,
    /// Instructions of the last program that were brought to one rank.
    pub(crate) gathered: Vec<u32>,
    /// How often a rank was looked at.
    #[cfg(test)]
    pub(crate) looked: std::cell::Cell<usize>,
}

impl Planner {
    /// A planner for this many ranks, of which this process does the work of `hosted`.
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
            bordered: HashSet::new(),
            bordered_version: 0,
            borders: HashMap::new(),
            left: 0,
            copied: BTreeSet::new(),
            homes: HashMap::new(),
            shares_out: false,
            alone: Vec::new(),
            factors: false,
            solves: false,
            gathered: Vec::new(),
            #[cfg(test)]
            looked: Default::default(),
        }
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Begins a program: looks ahead how its arrays are best cut.
    pub fn begin(&mut self, batch: &BatchRef<'_>, order: &[u32]) {
        self.program += 1;
        self.newest = (self.new_id)();
        self.hints = Hints::find(&self.arrays, &self.settings, batch, order);
    }

    /// Appends what the plan of a batch depends on beside its shape. False if such a plan will not come again: data is lost, or
    /// arrays that the batch does not use have copies that end with it.
    pub fn describe(&self, batch: &BatchRef<'_>, words: &mut Vec<u64>) -> bool {
        words.push(self.bordered_version);
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

    /// The bases of this process's ranks that a batch finds, in the order of its arrays.
    pub fn bases_of(&self, batch: &BatchRef<'_>, ids: &mut Vec<u64>) {
        ids.clear();
        for base in batch.bases {
            if let Some(array) = self.arrays.get(&base.id) {
                array.bases(ids);
            }
        }
    }

    /// The identity of a new base of this process's ranks.
    pub fn new_base(&mut self) -> u64 {
        (self.new_id)()
    }

    /// Takes an array as a plan left it.
    pub fn adopt_state(&mut self, mut array: Array) {
        let (id, program) = (array.base.id, self.program);
        array.copies.values_mut().for_each(|copy| copy.used = program);
        if !array.copies.is_empty() {
            self.copied.insert(id);
        }
        #[cfg(debug_assertions)]
        self.stages.versions.trust(&array);
        self.arrays.insert(id, array);
    }

    /// Plans one instruction. An error is that of its outputs, which are lost.
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

    /// Panics if a rank has another version of an element of an operand than this planner believes.
    #[cfg(debug_assertions)]
    fn check_versions(&self, batch: &BatchRef<'_>, instr: &Instr) {
        let bases = instr.operands().iter().filter_map(|operand| batch.base_of(operand.as_view()?));
        bases.filter_map(|base| self.arrays.get(&base.id)).for_each(|array| self.stages.versions.check(array));
    }

    /// Are the arrays that an instruction reads there? Those that it writes without reading are healed.
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

    /// Marks what an instruction would have written as lost.
    pub fn lose_outputs(&mut self, batch: &BatchRef<'_>, instr: &Instr, error: &Error) {
        let views = instr.outputs().iter().filter_map(|operand| operand.as_view());
        for view in views.filter(|&view| batch.views[view as usize].len > 0) {
            if let Some(base) = batch.base_of(view) {
                self.lose(base, error);
            }
        }
    }

    /// Marks an array as lost; the first error counts.
    pub fn lose(&mut self, base: &Base, error: &Error) {
        let array = self.array(base, None);
        array.lost.get_or_insert_with(|| error.clone());
    }

    /// SYNC needs nothing, as reads fetch what they need; FREE and DISCARD drop the data on all ranks.
    fn manage(&mut self, batch: &BatchRef<'_>, instr: &Instr) {
        let view = instr.operands().first().and_then(|operand| operand.as_view());
        let Some(base) = view.and_then(|view| batch.base_of(view)) else { return };
        match instr.opcode {
            Opcode::Free if self.arrays.get(&base.id).is_some_and(|array| array.fixed) => {
                let array = self.array(base, None);
                array.lost = None;
                let piece = array.pieces.get(&0).copied();
                let stage = self.after_use(base.id);
                if let Some(own) = piece {
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
        for (&rank, base) in &array.pieces {
            match unused && array.copies.is_empty() {
                // It may share memory with what messages are about to change, and would get its own for nothing.
                true => self.stages.drop_first(rank, base),
                false => self.stages.push_system(stage, rank, Opcode::Discard, base),
            }
        }
        self.drop_copies(stage, array.copies.into_iter().map(|((rank, _), copy)| (rank, copy.base)).collect());
    }

    /// Drops copies of views, in an order that does not depend on a hash table.
    pub(crate) fn drop_copies(&mut self, stage: usize, mut copies: Vec<(usize, Base)>) {
        copies.sort_by_key(|(rank, base)| (*rank, base.id));
        for (rank, base) in copies {
            self.stages.push_system(stage, rank, Opcode::Discard, &base);
        }
    }

    /// The first stage in which nothing that is planned uses an array any more, apart from what comes earlier in it.
    pub(crate) fn after_use(&self, id: u64) -> usize {
        let Some(array) = self.arrays.get(&id) else { return 0 };
        let copies = array.copies.values().map(|copy| self.stage_of(copy.ready)).max().unwrap_or(0);
        let own = [array.wrote, array.arrived, array.read].map(|when| self.stage_of(when));
        own.into_iter().fold(copies, usize::max)
    }

    /// The stage that something was noted for; 0 if that is over.
    pub(crate) fn stage_of(&self, when: When) -> usize {
        if when.flush == self.flush { when.stage } else { 0 }
    }

    /// The first stage in which elements of an array may be sent: after they were written.
    pub(crate) fn sendable(&self, when: When) -> usize {
        if when.flush == self.flush { when.stage + 1 } else { 0 }
    }

    /// The first stage in which elements of an array may be brought to other ranks, and pieces of it may grow: what was
    /// written may be sent, and what is on its way has arrived, so that it is copied with the rest of a piece.
    pub(crate) fn fetchable(&self, id: u64) -> usize {
        let array = &self.arrays[&id];
        self.sendable(array.wrote).max(self.stage_of(array.arrived))
    }

    pub(crate) fn now(&self, stage: usize) -> When {
        When { flush: self.flush, stage }
    }

    /// Takes the stages, to run them.
    pub fn take_stages(&mut self) -> Vec<Stage> {
        self.flush += 1;
        self.alone.clear();
        let mut stages = self.stages.take();
        // Rows for several turns travel once; turns that are cut in two cannot go on from each other in a cache.
        let least_bytes = if self.hints.go_ahead() { u64::MAX } else { self.settings.overlap_bytes };
        let limits = (least_bytes, self.newest);
        overlap(&mut stages, self.stages.hosted(), limits, &mut self.new_id);
        self.newest = (self.new_id)();
        stages
    }

    /// Drops the copies of views that the last program did not use.
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

    /// The array of a base, made if it is not known; `view` is the one that it is first written through.
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

    /// Elements per row of an array that is first written through this view. A line that is written in a few rows, as numbers of a
    /// generator are, is cut between elements: with rows some ranks would get nothing.
    fn row_of_new(&self, base: &Base, view: Option<&View>) -> i64 {
        let row = row_of(base, view);
        let is_line = base.row_hint <= 1 || base.row_hint >= base.len;
        if is_line && base.len / row < LEAST_ROWS * self.ranks as i64 { 1 } else { row }
    }

    /// An array of zeros, with room where arrays like it needed some.
    fn fresh(&self, base: &Base, row: i64, cuts: Cuts, small: bool) -> Array {
        // Without such room, what writes all of the array's own elements covers the piece, which then need not be zeroed first,
        // and can be the alias of a copy.
        Array::new(base, row, cuts, small, self.bordered.contains(&(base.len, row)))
    }

    /// Gets an array ready to be written from outside; one that is overwritten as a whole gets fresh memory.
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

    /// Makes an array one whole on rank 0, where its memory stays; returns the piece.
    pub(crate) fn bring_home(&mut self, base: &Base) -> Result<Piece> {
        self.leave_mesh(base.id)?;
        let array = self.array(base, None);
        if let Some(error) = &array.lost {
            return Err(error.clone());
        }
        let all = array.all();
        if !array.valid(0).contains(all) && !all.is_empty() {
            let at = self.fetchable(base.id);
            self.widen(base.id, 0, all, at, &mut HashMap::new())?;
        }
        let piece = self.piece(base.id, 0);
        let (stage, ranks) = (self.after_use(base.id), self.ranks);
        let Some(array) = self.arrays.get_mut(&base.id) else { return Ok(piece) };
        array.cuts = Cuts::first(base.len, ranks);
        (array.held, array.rooms) = (Runs::new(ranks, Has::Around(0, 0)), Runs::new(ranks, Has::Around(0, 0)));
        array.rooms.set(0..1, Has::Only(piece.window));
        // What has come to rank 0 is its own from now on.
        array.wrote = array.wrote.max(array.arrived);
        (array.fixed, array.everywhere, array.extension) = (true, false, (0, 0));
        // Others may have room for some of it only.
        array.small = false;
        let others = array.pieces.split_off(&1).into_iter().collect();
        self.drop_copies(stage, others);
        Ok(piece)
    }

    /// An array's cuts by the present weights.
    pub(crate) fn rows_by_weights(&self, array: &Array) -> Cuts {
        Cuts::rows(array.base.len, array.row, &self.settings.weights)
    }

    /// Takes memory on rank 0 as an array's data, where it stays if the program shares it; returns the piece.
    pub(crate) fn adopted(&mut self, base: &Base) -> Piece {
        self.forget(base.id);
        let mut array = Array::new(base, row_of(base, None), Cuts::first(base.len, self.ranks), false, false);
        array.fixed = base.has(base_flags::PINNED) || base.bytes() <= self.settings.small_bytes;
        if !array.fixed {
            self.homes.insert(base.id, 0);
        }
        let all = array.all();
        let own = self.local_base(0, base, base.len, base.row_hint);
        if self.stages.hosts(0) {
            array.pieces.insert(0, own);
        }
        #[cfg(debug_assertions)]
        self.stages.versions.trust(&array);
        self.arrays.insert(base.id, array);
        Piece { base: own, window: all, valid: all }
    }

    /// A new base of one rank.
    pub(crate) fn local_base(&mut self, rank: usize, like: &Base, len: i64, row: i64) -> Base {
        let id = if self.stages.hosts(rank) { (self.new_id)() } else { 0 };
        Base { id, len: len.max(1), row_hint: row, flags: 0, ..*like }
    }

    /// The piece of an array on a rank, made if there is none. Those of other processes have no identity.
    pub(crate) fn piece(&mut self, id: u64, rank: usize) -> Piece {
        let array = &self.arrays[&id];
        if let Some(piece) = array.piece(rank) {
            return piece;
        }
        let (like, row, window, valid) = (array.base, array.row, array.window(rank), array.valid(rank));
        let region = array.mesh.as_ref().and_then(|mesh| mesh.window(rank));
        let base = match &region {
            Some(region) => self.base_of_region(rank, &like, region),
            None => self.local_base(rank, &like, window.len(), row),
        };
        if base.id != 0
            && let Some(array) = self.arrays.get_mut(&id)
        {
            array.pieces.insert(rank, base);
        }
        Piece { base, window, valid }
    }

    /// Notes that pieces of such arrays get rows of neighbours.
    pub(crate) fn note_border(&mut self, kind: (i64, i64)) {
        if self.bordered.len() == MOST_KINDS {
            self.bordered.clear();
        }
        self.bordered_version += u64::from(self.bordered.insert(kind));
    }

    /// Notes that ranks need this room beside their own of such arrays on grids.
    pub(crate) fn note_room(&mut self, shape: &[i64], room: &[[i64; 2]]) {
        if self.borders.len() == MOST_KINDS {
            self.borders.clear();
        }
        let old = self.borders.insert(shape.to_vec(), room.to_vec());
        self.bordered_version += u64::from(old.is_none_or(|old| old != room));
    }

    /// The boxes of a view that each rank computes; `None` if they are too many.
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

    /// Notes that elements of a span were written in a stage by their owners. Copies of them are dropped.
    pub(crate) fn wrote(&mut self, id: u64, span: Span, stage: usize) {
        let (now, last) = (self.now(stage), self.after_use(id).max(stage));
        let Some(array) = self.arrays.get_mut(&id) else { return };
        array.wrote = array.wrote.max(now);
        array.changed(span);
        let copies = std::mem::take(&mut array.copies);
        self.drop_copies(last, copies.into_iter().map(|((rank, _), copy)| (rank, copy.base)).collect());
    }

    /// Notes that an array is read in a stage.
    pub(crate) fn reads(&mut self, id: u64, stage: usize) {
        let now = self.now(stage);
        if let Some(array) = self.arrays.get_mut(&id) {
            array.read = array.read.max(now);
        }
    }

    /// Gets an array ready to be written by an instruction, with the cuts that suit the program if it is new or
    /// overwritten as a whole.
    pub(crate) fn target(&mut self, batch: &BatchRef<'_>, index: u32, view: u32, parts: Option<&Parts>) -> Result<u64> {
        let base = batch.base_of(view).ok_or_else(|| Error::new(status::BATCH, "an output is no view of a base"))?;
        let (shape, whole) = (batch.view(view), covers(batch, view));
        let reads = batch.instrs[index as usize].inputs().iter().any(|operand| {
            operand.as_view().is_some_and(|other| batch.views[other as usize].base == batch.views[view as usize].base)
        });
        let hint = self.hints.cuts(index);
        let known = self.arrays.get(&base.id);
        if let Some(array) = known {
            let alone = array.cuts.is_first() && array.cuts != self.rows_by_weights(array);
            let better = hint.as_ref().is_some_and(|cuts| *cuts != array.cuts) || array.extension != (0, 0) || alone;
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
                array.passing = true;
                array.extension = (up * array.row, down * array.row);
            }
        }
        Ok(base.id)
    }
}

/// Has an instruction outputs, all of them without elements?
fn no_output(batch: &BatchRef<'_>, instr: &Instr) -> bool {
    let empty = |view: Option<u32>| view.is_some_and(|view| batch.views[view as usize].len == 0);
    !instr.outputs().is_empty() && instr.outputs().iter().all(|operand| empty(operand.as_view()))
}
