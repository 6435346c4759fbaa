//! Elements that a mask chooses of an array stay a recipe until the program reads them, if the mask chooses much of the array.
//!
//! An elementwise operation on elements that one mask chooses of several arrays runs on the whole arrays; its result is the same
//! recipe of the whole result. So `z[m] = z[m] ** 2 + c[m]` is one kernel over `z` that copies no element to a list or back. Before the mask or one
//! of the arrays changes, and before the batch ends, the recorder records the method that copies the chosen elements.

use crate::array::small_view::SmallView;
use crate::record::power::as_products;
use crate::record::{INPUTS, Operation, Source};
use crate::state::recipe::Recipe;
use crate::state::{Followup, State};
use crate::{ArrayId, Location, Recipes as Mode, Recorder};
use bh_bytecode::{Kind, Opcode};
use bh_core::error::Result;
use std::sync::Arc;

/// The part of an array that a mask chooses at least.
const SHARE: i64 = 4;
/// Copying an element to a list, and back, takes as long as this many operations of the least cost.
const MOVES: i64 = 8;

/// The method that copies chosen elements, and the line of the program that chose them.
pub(crate) struct Chosen {
    method: Opcode,
    file: Arc<[u8]>,
    line: u32,
}

/// Inputs of such a recipe.
const MASK: usize = 0;
const WHOLE: usize = 1;

impl Recorder {
    /// A vector of the `count` elements of an array that a mask of its shape chooses, which stays a recipe. None if it is to be
    /// recorded: as a call of the method.
    pub fn choose(
        &self,
        method: Opcode,
        [mask, array]: [ArrayId; 2],
        count: i64,
        location: Location<'_>,
    ) -> Option<ArrayId> {
        let mut state = self.state();
        let [mask, array] = [state.find(mask).ok()?, state.find(array).ok()?];
        if !state.stays_chosen(mask, array, count) {
            return None;
        }
        let place = Chosen { method, file: location.file.into(), line: location.line };
        let made = state.chosen_of([mask, array], count, place).ok()?;
        Some(state.name(made))
    }

    /// The number of true elements of a mask that a recipe reads.
    pub fn chosen_count(&self, mask: ArrayId) -> Option<i64> {
        let state = self.state();
        if state.recipes.chosen == 0 {
            return None;
        }
        let mask = state.find(mask).ok()?;
        let mut bases = state.recipes.places.iter().map(|&place| state.bases.at(place));
        let known = bases.find(|entry| {
            let recipe = entry.recipe.as_ref().filter(|recipe| recipe.chosen.is_some());
            recipe.is_some_and(|recipe| state.is_same(recipe.inputs[MASK], mask))
        });
        known.map(|entry| entry.base.len)
    }

    /// Assigns chosen elements to the elements of another array that the same mask chooses. False, and nothing is recorded, if the
    /// value is no recipe of that mask.
    pub fn assign_chosen(&self, out: ArrayId, mask: ArrayId, value: ArrayId, location: Location<'_>) -> Result<bool> {
        let mut state = self.state();
        if state.recipes.chosen == 0 {
            return Ok(false);
        }
        let [out, mask, value] = [state.find(out)?, state.find(mask)?, state.find(value)?];
        let Some([known, whole]) = state.chosen_inputs(value) else { return Ok(false) };
        let fits = state.is_same(known, mask) && state.dtype(whole) == state.dtype(out);
        if !fits || state.handles.at(out).view.shape() != state.handles.at(whole).view.shape() {
            return Ok(false);
        }
        // The value may be recorded meanwhile, as it depends on what changes.
        let whole = state.again(whole)?;
        let operation = Operation { opcode: Opcode::Where, param: 0, location };
        let sources = [mask, whole, out].map(Source::Handle);
        let recorded = state.record(operation, out, &sources);
        state.release(whole);
        self.follow(state, recorded?)?;
        Ok(true)
    }
}

impl State {
    /// Do the elements that a mask chooses of an array stay a recipe?
    fn stays_chosen(&self, mask: u32, array: u32, count: i64) -> bool {
        let Some(running) = &self.running else { return false };
        let options = &running.options;
        let bytes = self.handles.at(array).view.len as u64 * self.dtype(array).size() as u64;
        let is_free = |handle: u32| {
            let entry = self.bases.at(self.handles.at(handle).base);
            entry.pins == 0 && entry.maps == 0 && !entry.exported && entry.recipe.is_none()
        };
        options.recipes != Mode::Off
            && !options.checks.any()
            && !options.digits
            && running.maps
            && self.works_at_once()
            && !running.device
            && bytes > options.immediate_bytes
            && count > 1
            && count.saturating_mul(SHARE) >= self.handles.at(array).view.len
            && self.handles.at(mask).view.shape() == self.handles.at(array).view.shape()
            && is_free(mask)
            && is_free(array)
    }

    /// Another handle of an array.
    fn again(&mut self, handle: u32) -> Result<u32> {
        let (base, view) = (self.handles.at(handle).base, self.handles.at(handle).view.clone());
        self.new_handle(base, view)
    }

    /// A new recipe of chosen elements.
    fn chosen_of(&mut self, inputs: [u32; 2], count: i64, chosen: Chosen) -> Result<u32> {
        let made = self.new_array(self.dtype(inputs[WHOLE]), SmallView::contiguous(&[count]), count)?;
        let mut recipe = self.recipes.spare.pop().unwrap_or_default();
        recipe.chosen = Some(chosen);
        for input in inputs {
            match self.again(input) {
                Ok(handle) => recipe.inputs.push(handle),
                Err(error) => {
                    self.end_of(recipe);
                    self.release(made);
                    return Err(error);
                }
            }
            let place = self.handles.at(input).base;
            self.bases.at_mut(place).readers += 1;
        }
        self.set_chosen(self.handles.at(made).base, recipe);
        Ok(made)
    }

    fn set_chosen(&mut self, place: u32, recipe: Box<Recipe>) {
        self.bases.at_mut(place).recipe = Some(recipe);
        self.recipes.places.push(place);
        self.recipes.chosen += 1;
        self.unwritten += 1;
    }

    /// The mask and the array that an array of chosen elements reads while it is a recipe. None for parts of such an array.
    fn chosen_inputs(&self, handle: u32) -> Option<[u32; 2]> {
        let handle = self.handles.at(handle);
        let entry = self.bases.at(handle.base);
        let recipe = entry.recipe.as_ref().filter(|recipe| recipe.chosen.is_some())?;
        let is_whole = handle.view.same(&SmallView::contiguous(&[entry.base.len]));
        is_whole.then(|| [recipe.inputs[MASK], recipe.inputs[WHOLE]])
    }

    /// Are these the same elements of one base?
    fn is_same(&self, one: u32, other: u32) -> bool {
        let (one, other) = (self.handles.at(one), self.handles.at(other));
        one.base == other.base && one.view.same(&other.view)
    }

    /// The whole arrays that an operation on elements which one mask chose goes over, and one of its operands. None for any other
    /// operation, and where copies of the chosen elements take less time.
    fn widened(&self, operation: Operation<'_>, sources: &[Source]) -> Option<([Source; INPUTS], u32)> {
        if operation.opcode.kind() != Kind::Elementwise || sources.len() > INPUTS {
            return None;
        }
        let mut wide = [Source::Handle(0); INPUTS];
        let mut first: Option<(u32, u32)> = None;
        for (wide, source) in wide.iter_mut().zip(sources) {
            *wide = match *source {
                Source::Handle(handle) if self.handles.at(handle).view.rank() > 0 => {
                    let [mask, whole] = self.chosen_inputs(handle)?;
                    match first {
                        Some((_, known)) if !self.is_same(known, mask) => return None,
                        Some(_) => {}
                        None => first = Some((handle, mask)),
                    }
                    Source::Handle(whole)
                }
                other => other,
            };
        }
        let (handle, mask) = first?;
        let count = self.handles.at(handle).view.len;
        let others = self.handles.at(mask).view.len - count;
        let cost = i64::from(as_products(operation, sources).0.opcode.info().cost);
        (cost.saturating_mul(others) <= count.saturating_mul(MOVES)).then_some((wide, handle))
    }

    /// Records an operation on elements that one mask chose into a new array, as one on the whole arrays. None for any other operation.
    #[cold]
    pub(crate) fn record_of_chosen(
        &mut self,
        operation: Operation<'_>,
        dtype: Option<bh_bytecode::DType>,
        sources: &[Source],
    ) -> Option<Result<(u32, Followup)>> {
        let (wide, like) = self.widened(operation, sources)?;
        let place = self.handles.at(like).base;
        let method = self.bases.at(place).recipe.as_ref()?.chosen.as_ref()?.method;
        let (count, [mask, _]) = (self.handles.at(like).view.len, self.chosen_inputs(like)?);
        let Location { file, line } = operation.location;
        let chosen = Chosen { method, file: file.into(), line };
        Some(self.record_new(operation, dtype, &wide[..sources.len()]).and_then(|(whole, followup)| {
            let made = self.chosen_of([mask, whole], count, chosen);
            self.release(whole);
            Ok((made?, followup))
        }))
    }

    /// Records an operation on elements that one mask chose into one of its operands, as one on the whole arrays. None for any other
    /// operation.
    #[cold]
    pub(crate) fn record_in_chosen(
        &mut self,
        operation: Operation<'_>,
        out: u32,
        sources: &[Source],
    ) -> Option<Result<Followup>> {
        let [mask, _] = self.chosen_inputs(out)?;
        let (_, like) = self.widened(operation, sources)?;
        if !self.is_same(self.chosen_inputs(like)?[MASK], mask) {
            return None;
        }
        let recorded = self.record_of_chosen(operation, Some(self.dtype(out)), sources)?;
        Some(recorded.map(|(made, followup)| {
            let [to, from] = [out, made].map(|handle| self.handles.at(handle).base);
            if let (Some(old), Some(new)) = (self.take_recipe(to), self.take_recipe(from)) {
                self.end_of(old);
                self.set_chosen(to, new);
            }
            self.release(made);
            followup
        }))
    }

    /// Records the method that copies chosen elements.
    pub(super) fn make_chosen(&mut self, place: u32, recipe: Box<Recipe>, chosen: &Chosen) {
        let len = self.bases.at(place).base.len;
        // Without a handle the array cannot be made; a base that nobody writes is an error where it is read.
        if let Ok(out) = self.new_handle(place, SmallView::contiguous(&[len])) {
            let location = Location { file: &chosen.file, line: chosen.line };
            let operation = Operation { opcode: chosen.method, param: 0, location };
            let sources = [MASK, WHOLE].map(|at| Source::Handle(recipe.inputs[at]));
            let _ = self.record_extension(operation, &[out], &sources);
            self.release(out);
        }
        self.end_of(recipe);
    }

    /// Records the copies of all chosen elements, as the batch ends.
    pub(crate) fn make_all_chosen(&mut self) {
        while self.recipes.chosen > 0 {
            let is_chosen =
                |place: &u32| self.bases.at(*place).recipe.as_ref().is_some_and(|recipe| recipe.chosen.is_some());
            let Some(place) = self.recipes.places.iter().copied().find(is_chosen) else { return };
            self.make_of_recipe(place);
        }
    }
}
