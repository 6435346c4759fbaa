//! Running a whole program on one participant, while others run other ones.

use super::scratch::Scratch;
use super::{Binding, Loops, fold, map, partials};
use crate::primitives::Primitives;
use crate::program::Program;

/// Runs a program on one participant; folds have the trees that they have on several. Partial results go to `memory`.
///
/// # Safety
/// As [`super::run`]; the memory has [`super::partial_bytes`] bytes that nobody else uses.
pub(crate) unsafe fn run_alone(
    program: &Program,
    binding: &Binding,
    primitives: Primitives,
    scratch: &mut Scratch,
    memory: *mut u8,
) {
    let slots = &binding.slots;
    // SAFETY: promised by the caller; these are all iterations.
    unsafe {
        match &program.loops {
            Loops::Map(level) => {
                let all = 0..program.geometry.extents[0];
                if program.geometry.iterations() > 0 {
                    map::run_part(program, level, binding, slots, primitives, scratch.parts(), all);
                }
            }
            Loops::Fold(division) => {
                let all = 0..division.units();
                if all.is_empty() || division.kept_elements == 0 {
                    return;
                }
                let (stored, mut units) = (partials::Partials::new(division, memory), Some(all));
                let next = || units.take();
                fold::fold_units(program, division, binding, slots, primitives, scratch.parts(), stored, next);
                let results = 0..division.kept.count();
                partials::finish_kept(program, division, slots, primitives, stored, scratch.parts(), results);
            }
        }
    }
}
