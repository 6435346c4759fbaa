//! Recipes: results of a batch that the program has not read are not stored; the recorder remembers how to compute them
//! instead.
//!
//! A name of the program keeps an array alive until it is bound again, though it is often not read. Where a batch ends
//! because another array is read, such a result dies with the batch, as a temporary does, and the operations that make it are
//! remembered. If it is read after all, they are recorded again, for it alone, and it is stored from then on. Inputs of
//! recipes are arrays that the stack has. Before an operation changes one, the recipes that read it are recorded. Small ones
//! that the batch itself changes are copied in it before.
//!
//! Counts decide which results stay recipes: those that were dropped unread when a batch of this structure ran before. If the
//! results of a new batch would take much of the memory, all of them begin as recipes.

pub(crate) mod chosen;
mod draft;
mod told;

use crate::array::small_view::{SmallView, mix};
use crate::state::State;
use crate::state::recipe::{EarlyCopy, Part, Recipe, Scratch, Step};
use crate::{Location, Recipes as Mode};
use bh_bytecode::batch::{MAX_OPERANDS, NO_SLOT};
use bh_bytecode::{Base, Instr, Opcode, Operand, base_flags};
use draft::{find_writes, next_change};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Results of fewer bytes are stored: keeping them costs less than thinking about it.
const LEAST_BYTES: u64 = 1 << 20;
/// An input that the batch changes is copied before if it has this part of the result's bytes at most.
const COPIED_SHARE: u64 = 16;
/// The most recipes that are kept for reuse.
const MOST_SPARE: usize = 64;
/// Results of which nothing is known stay recipes where they would take this part of the memory or more.
const SHORT_SHARE: u64 = 4;
/// Inputs that only recipes keep alive may take this part of the recorder's limit of bytes.
const KEPT_SHARE: u64 = 8;

impl State {
    /// Lets results of the batch that is about to be handed over stay recipes.
    pub(crate) fn keep_recipes(&mut self) {
        let Some(running) = &self.running else { return };
        let options = &running.options;
        let mode = options.recipes;
        if mode == Mode::Off
            || options.eager
            || options.checks.one_by_one()
            || self.records_all()
            || self.builder.signed
        {
            return;
        }
        let least = if mode == Mode::Always { 1 } else { LEAST_BYTES };
        let mut scratch = std::mem::take(&mut self.recipes.scratch);
        self.find_unread(least, &mut scratch.candidates);
        if !scratch.candidates.is_empty() {
            self.keep_some(mode, &mut scratch);
        }
        self.recipes.scratch = scratch;
    }

    fn keep_some(&mut self, mode: Mode, scratch: &mut Scratch) {
        let batch = &self.builder.batch;
        find_writes(batch, &mut scratch.first, &mut scratch.last);
        scratch.dies.clear();
        scratch.dies.extend(batch.bases.iter().map(|base| base.has(base_flags::DIES)));
        scratch.chosen.clear();
        let bytes = scratch.candidates.iter().map(|&at| batch.bases[at].bytes()).fold(0, u64::saturating_add);
        // A result larger than the memory does not begin as a recipe, so that it fails when it gets memory.
        let most = self.running.as_ref().map(|running| running.memory).filter(|&memory| bytes >= memory / SHORT_SHARE);
        for &at in &scratch.candidates {
            let key = mix(self.builder.computes, u64::from(scratch.first[at]));
            let short = most.is_some_and(|memory| batch.bases[at].bytes() <= memory);
            if mode == Mode::Always || self.recipes.unread.get(&key).copied().unwrap_or(short) {
                scratch.chosen.push((at, key));
                scratch.dies[at] = true;
            } else {
                self.bases.at_mut(self.builder.places[at]).watched = key;
            }
        }
        let share = if mode == Mode::Always { 1 } else { COPIED_SHARE };
        for number in 0..scratch.chosen.len() {
            let (at, key) = scratch.chosen[number];
            scratch.draft.copied_bytes = self.builder.batch.bases[at].bytes() / share;
            if self.draft(at, scratch) {
                self.set_recipe(at, key, scratch);
            }
        }
        self.insert_copies(&mut scratch.copies);
    }

    /// A copy of a base as it is behind the instruction at this position: the copy's place.
    fn early_copy(&mut self, base: usize, position: usize, copies: &mut Vec<EarlyCopy>) -> Option<u32> {
        let before = next_change(&self.builder.batch, base, position);
        let known = copies.iter().find(|copy| (copy.base, copy.before) == (base, before));
        let handle = match known {
            Some(copy) => copy.handle,
            None => {
                let from = self.builder.batch.bases[base];
                let handle = self.new_array(from.dtype(), SmallView::contiguous(&[from.len]), from.len).ok()?;
                self.bases.at_mut(self.handles.at(handle).base).base.row_hint = from.row_hint;
                copies.push(EarlyCopy { base, before, handle });
                handle
            }
        };
        Some(self.handles.at(handle).base)
    }

    /// Has the batch make the copies that recipes read. Positions in it are others then.
    fn insert_copies(&mut self, copies: &mut Vec<EarlyCopy>) {
        copies.sort_by_key(|copy| std::cmp::Reverse(copy.before));
        for copy in copies.drain(..) {
            let to = Operand::view(self.intern(copy.handle));
            let from = &self.handles.at(copy.handle).view;
            let from = Operand::view(self.builder.intern_view(copy.base as u32, from));
            self.builder.batch.instrs.insert(copy.before, Instr::new(Opcode::Copy, &[to, from]));
            let place = self.handles.at(copy.handle).base;
            self.bases.at_mut(place).written = self.builder.epoch;
            self.release(copy.handle);
        }
    }

    /// Makes a result a recipe: it dies with the batch.
    fn set_recipe(&mut self, at: usize, key: u64, scratch: &mut Scratch) {
        let Some(id) = self.running.as_ref().map(|running| running.ids.fetch_add(1, Ordering::Relaxed)) else { return };
        let Some(mut recipe) = self.recipe_of(key, scratch) else { return };
        let line = told::line_of(&self.builder.batch, &scratch.draft);
        self.tell(&mut recipe, line, self.builder.batch.bases[at].bytes());
        let place = self.builder.places[at];
        let view = SmallView::contiguous(&[self.builder.batch.bases[at].len]);
        let operand = Operand::view(self.builder.intern_view(at as u32, &view));
        self.builder.batch.bases[at].flags |= base_flags::DIES;
        // Not a step of the program: the search for its loops must not see it.
        self.builder.batch.instrs.push(Instr::new(Opcode::Discard, &[operand]));
        let entry = self.bases.at_mut(place);
        // Behind the batch the stack knows nothing of it; if it is made again, that is a new base.
        (entry.base.id, entry.known, entry.slot, entry.recipe) = (id, false, NO_SLOT, Some(recipe));
        self.recipes.places.push(place);
        self.recipes.made += 1;
        self.unwritten += 1;
    }

    fn recipe_of(&mut self, key: u64, scratch: &mut Scratch) -> Option<Box<Recipe>> {
        let Scratch { draft, inputs, temporaries, copies, .. } = scratch;
        let mut recipe = self.recipes.spare.pop().unwrap_or_default();
        recipe.key = key;
        inputs.clear();
        temporaries.clear();
        let nowhere = || Arc::from(&b""[..]);
        let mut file: (u32, Arc<[u8]>) = (u32::MAX, self.recipes.file.clone().unwrap_or_else(nowhere));
        for step in &draft.steps {
            let mut instr = self.builder.batch.instrs[step.position];
            if draft.copied {
                // Back from where it was copied to.
                instr.operands.swap(0, 1);
            }
            let mut parts = [const { Part::None }; MAX_OPERANDS];
            for (number, (part, operand)) in parts.iter_mut().zip(instr.operands()).enumerate() {
                *part = match (operand.as_view(), operand.as_constant()) {
                    (Some(view), _) => {
                        let batch = &self.builder.batch;
                        let (base, view) = (batch.views[view as usize].base as usize, batch.as_ref().view(view));
                        let view = SmallView::new(&view);
                        if base == draft.result {
                            Part::Result(view)
                        } else if draft.copied || step.stored & 1 << number != 0 {
                            Part::Input(place_in(inputs, self.builder.places[base]), view)
                        } else if step.early & 1 << number != 0 {
                            let place = self.early_copy(base, step.position, copies)?;
                            Part::Input(place_in(inputs, place), view)
                        } else {
                            Part::Temporary(place_in(temporaries, base), view)
                        }
                    }
                    (None, Some(constant)) => Part::Constant(self.builder.batch.constants[constant as usize]),
                    (None, None) => Part::None,
                };
            }
            let batch = &self.builder.batch;
            let line = match (instr.origin as usize).checked_sub(1).map(|origin| batch.origins[origin]) {
                Some(origin) => {
                    if file.0 != origin.file {
                        let name = &batch.strings[origin.file as usize..][..origin.file_len as usize];
                        let same = *file.1 == *name;
                        file = (origin.file, if same { file.1 } else { Arc::from(name) });
                    }
                    origin.line
                }
                None => 0,
            };
            recipe.steps.push(Step { instr, file: file.1.clone(), line, parts });
        }
        self.recipes.file = Some(file.1);
        recipe.temporaries.extend(temporaries.iter().map(|&base| self.builder.batch.bases[base]));
        for &place in &*inputs {
            let len = self.bases.at(place).base.len;
            match self.new_handle(place, SmallView::contiguous(&[len])) {
                Ok(handle) => recipe.inputs.push(handle),
                Err(_) => {
                    self.end_of(recipe);
                    return None;
                }
            }
            self.bases.at_mut(place).readers += 1;
        }
        Some(recipe)
    }

    /// Gives up what a recipe holds.
    fn end_of(&mut self, mut recipe: Box<Recipe>) {
        while let Some(handle) = recipe.inputs.pop() {
            let place = self.handles.at(handle).base;
            let entry = self.bases.at_mut(place);
            entry.readers = entry.readers.saturating_sub(1);
            self.release(handle);
        }
        recipe.steps.clear();
        recipe.chosen = None;
        recipe.temporaries.clear();
        if self.recipes.spare.len() < MOST_SPARE {
            self.recipes.spare.push(recipe);
        }
    }

    /// Takes a base's recipe from it.
    fn take_recipe(&mut self, place: u32) -> Option<Box<Recipe>> {
        let recipe = self.bases.at_mut(place).recipe.take()?;
        self.recipes.places.retain(|&one| one != place);
        self.recipes.chosen -= usize::from(recipe.chosen.is_some());
        self.unwritten -= 1;
        Some(recipe)
    }

    /// Notes that a base ends with this handle, and forgets its recipe.
    #[inline]
    pub(crate) fn end_recipe(&mut self, place: u32, handle: u32) {
        let entry = self.bases.at(place);
        if entry.watched != 0 {
            self.note_unread(place);
        } else if entry.recipe.is_some() {
            self.drop_recipe(place, handle);
        }
    }

    #[cold]
    fn drop_recipe(&mut self, place: u32, handle: u32) {
        let Some(recipe) = self.take_recipe(place) else { return };
        if recipe.chosen.is_some() {
            return self.end_of(recipe);
        }
        let live = self.bases.at(place).base.bytes();
        self.builder.live_bytes = self.builder.live_bytes.saturating_sub_unsigned(live);
        // Turns of a loop look alike, whether their results were stored or not.
        self.builder.note_discard(self.handles.at(handle).view.hash, live);
        self.end_of(recipe);
    }

    /// Sees to it that nothing depends on recipes where bases are about to be used as a whole, and perhaps changed.
    pub(crate) fn rely_on(&mut self, places: &[u32]) {
        for &place in places {
            self.make_of_recipe(place);
            if self.bases.at(place).readers > 0 {
                self.make_readers(place);
            }
        }
    }

    /// Records the operations of a base's recipe, as somebody asks for the result. Says whether there was one.
    pub(crate) fn make_of_recipe(&mut self, place: u32) -> bool {
        let Some(mut recipe) = self.take_recipe(place) else { return false };
        if let Some(chosen) = recipe.chosen.take() {
            self.make_chosen(place, recipe, &chosen);
            return true;
        }
        self.recipes.note(recipe.key, false);
        self.recipes.recomputed += 1;
        self.tell_made(&recipe);
        // It counts again as it enters the batch.
        let live = self.bases.at(place).base.bytes();
        self.builder.live_bytes = self.builder.live_bytes.saturating_sub_unsigned(live);
        let made: Vec<(u32, Base)> =
            recipe.temporaries.iter().map(|record| (self.enter_temporary(record), *record)).collect();
        for step in &recipe.steps {
            self.record_step(step, place, &recipe, &made);
        }
        let epoch = self.builder.epoch;
        self.bases.at_mut(place).written = epoch;
        for &(index, record) in &made {
            let view = SmallView::contiguous(&[record.len]);
            let at = self.builder.intern_view(index, &view);
            self.builder.held_bytes = self.builder.held_bytes.saturating_sub(record.bytes());
            self.builder.live_bytes = self.builder.live_bytes.saturating_sub_unsigned(record.bytes());
            self.builder.push_discard(index, at, view.hash);
        }
        self.end_of(recipe);
        true
    }

    /// A new base that lives within the batch under construction: its index there.
    fn enter_temporary(&mut self, like: &Base) -> u32 {
        let id = self.running.as_ref().map_or(0, |running| running.ids.fetch_add(1, Ordering::Relaxed));
        self.builder.push_base(Base { id, flags: base_flags::BORN, ..*like }, NO_SLOT, u32::MAX)
    }

    fn record_step(&mut self, step: &Step, place: u32, recipe: &Recipe, made: &[(u32, Base)]) {
        let mut instr = step.instr;
        let mut structure = 0;
        for (operand, part) in instr.operands.iter_mut().zip(&step.parts) {
            let (index, view) = match part {
                Part::None => continue,
                Part::Constant(constant) => {
                    *operand = self.builder.push_constant(*constant);
                    continue;
                }
                Part::Result(view) => (self.enter_base(place), view),
                Part::Input(number, view) => (self.enter_base(self.handles.at(recipe.inputs[*number]).base), view),
                Part::Temporary(number, view) => (made[*number].0, view),
            };
            structure = mix(structure, view.hash);
            *operand = Operand::view(self.builder.intern_view(index, view));
        }
        instr.origin = self.builder.intern_origin(Location { file: &step.file, line: step.line });
        if let Some(out) = instr.operands[0].as_view() {
            let view = &self.builder.batch.views[out as usize];
            let size = self.builder.batch.bases[view.base as usize].dtype().size() as u64;
            self.builder.work_bytes = self.builder.work_bytes.saturating_add(view.len as u64 * size);
        }
        self.builder.push_instr(instr, mix(structure, u64::from(step.line)));
    }

    /// Records the recipes that read a base, as the base is about to change.
    #[cold]
    pub(crate) fn make_readers(&mut self, place: u32) {
        let reads = |state: &State, one: u32| {
            let recipe = state.bases.at(one).recipe.as_ref();
            recipe.is_some_and(|recipe| recipe.inputs.iter().any(|&input| state.handles.at(input).base == place))
        };
        let readers: Vec<u32> = self.recipes.places.iter().copied().filter(|&one| reads(self, one)).collect();
        readers.into_iter().for_each(|one| {
            self.make_of_recipe(one);
        });
    }

    /// Records the recipes that keep more bytes alive than they save, as nobody else keeps a base any more.
    #[cold]
    pub(crate) fn make_wasteful_readers(&mut self, place: u32) {
        let wastes = |state: &State, one: u32| {
            let entry = state.bases.at(one);
            let Some(recipe) = &entry.recipe else { return false };
            let inputs = recipe.inputs.iter().map(|&input| state.handles.at(input).base);
            inputs.clone().any(|input| input == place)
                && inputs.map(|input| state.kept_by_recipe(input)).fold(0, u64::saturating_add) > entry.base.bytes()
        };
        let readers: Vec<u32> = self.recipes.places.iter().copied().filter(|&one| wastes(self, one)).collect();
        readers.into_iter().for_each(|one| {
            self.make_of_recipe(one);
        });
    }

    /// A recipe's share of the bytes of an input that nobody else keeps.
    fn kept_by_recipe(&self, place: u32) -> u64 {
        let entry = self.bases.at(place);
        if entry.references == entry.readers { entry.base.bytes() / u64::from(entry.readers.max(1)) } else { 0 }
    }

    /// Records all recipes, as everything is asked for.
    pub(crate) fn make_all_recipes(&mut self) {
        while let Some(&place) = self.recipes.places.last() {
            self.make_of_recipe(place);
        }
    }

    /// Notes that a base is used behind the batch that made it.
    #[cold]
    pub(crate) fn note_asked(&mut self, place: u32) {
        let key = std::mem::take(&mut self.bases.at_mut(place).watched);
        self.recipes.note(key, false);
    }

    /// Notes that a base ends, unread if nobody used it behind the batch that made it.
    #[cold]
    pub(crate) fn note_unread(&mut self, place: u32) {
        let entry = self.bases.at_mut(place);
        let key = std::mem::take(&mut entry.watched);
        if entry.epoch < self.builder.epoch {
            self.recipes.note(key, true);
        }
    }

    /// Records recipes whose inputs only they keep alive, where these take too much memory.
    pub(crate) fn bound_recipes(&mut self) {
        if self.recipes.places.is_empty() {
            return;
        }
        let most = self.running.as_ref().map_or(0, |running| running.options.max_bytes) / KEPT_SHARE;
        let mut kept = 0u64;
        for &place in &self.recipes.places {
            let recipe = self.bases.at(place).recipe.as_ref();
            for &input in recipe.iter().flat_map(|recipe| &recipe.inputs) {
                kept = kept.saturating_add(self.kept_by_recipe(self.handles.at(input).base));
            }
        }
        if kept > most {
            self.make_all_recipes();
        }
    }
}

/// The place of a number in a list, where it is put if it is new.
fn place_in<T: Copy + PartialEq>(list: &mut Vec<T>, number: T) -> usize {
    list.iter().position(|&one| one == number).unwrap_or_else(|| {
        list.push(number);
        list.len() - 1
    })
}
