//! Reports on recipes: the lines of the program whose results were not stored, and the bytes that this saved.

use crate::state::State;
use crate::state::recipe::{Draft, Recipe, Told};
use crate::{Location, Recorder};
use bh_bytecode::Batch;
use std::fmt::Write;
use std::sync::Arc;

/// The most lines in the report.
const LINES: usize = 64;

/// The line that makes a result, if it is not that of the last step of its recipe, which copies it back.
pub(super) fn line_of(batch: &Batch, draft: &Draft) -> Option<u32> {
    let writes = |instr: &&bh_bytecode::Instr| {
        let mut outputs = instr.outputs().iter().filter_map(|operand| operand.as_view());
        !instr.opcode.is_system() && outputs.any(|view| batch.views[view as usize].base as usize == draft.result)
    };
    let first = if draft.copied { batch.instrs.iter().find(writes) } else { None };
    first.and_then(|instr| batch.origins.get((instr.origin as usize).checked_sub(1)?)).map(|origin| origin.line)
}

impl State {
    /// Notes that a result was not stored.
    pub(super) fn tell(&mut self, recipe: &mut Recipe, line: Option<u32>, bytes: u64) {
        let Some(step) = recipe.steps.last() else { return };
        let (file, line, told) = (&step.file, line.unwrap_or(step.line), &mut self.recipes.told);
        let known = told.iter().position(|one| one.line == line && (Arc::ptr_eq(&one.file, file) || one.file == *file));
        recipe.told = known.unwrap_or(told.len());
        if known.is_none() && told.len() < LINES {
            told.push(Told { file: file.clone(), line, results: 0, bytes: 0, made: 0 });
        }
        if let Some(one) = told.get_mut(recipe.told) {
            (one.results, one.bytes) = (one.results + 1, one.bytes.saturating_add(bytes));
        }
    }

    /// Notes that one was made later.
    pub(super) fn tell_made(&mut self, recipe: &Recipe) {
        if let Some(one) = self.recipes.told.get_mut(recipe.told) {
            one.made += 1;
        }
    }
}

impl Recorder {
    /// A line of text for each line of the program whose results were not stored.
    pub(crate) fn told_of_recipes(&self) -> String {
        let lines: Vec<(Arc<[u8]>, u32, [u64; 3])> = {
            let state = self.state();
            let told = state.recipes.told.iter();
            told.map(|one| (one.file.clone(), one.line, [one.results, one.bytes, one.made])).collect()
        };
        let mut text = String::new();
        for (file, line, [results, bytes, made]) in lines {
            let place = self.place(Location { file: &file, line }).unwrap_or_else(|| String::from("an unknown line"));
            let _ = writeln!(text, "{place}: {results} results, {bytes} bytes; {made} of them were made later");
        }
        text
    }
}
