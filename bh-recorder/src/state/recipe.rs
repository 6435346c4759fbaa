//! Recipes: how results are made that were not stored, and what is known of those that need not be.

use crate::array::small_view::SmallView;
use crate::batch::recipes::chosen::Chosen;
use bh_bytecode::batch::MAX_OPERANDS;
use bh_bytecode::{Base, Constant, Instr};
use std::collections::HashMap;
use std::sync::Arc;

/// The most structures that are remembered.
const REMEMBERED: usize = 1 << 16;

/// Facts about results, and the present recipes.
#[derive(Default)]
pub(crate) struct Recipes {
    /// Places of the bases that are recipes.
    pub(crate) places: Vec<u32>,
    /// How many of them are elements that masks choose.
    pub(crate) chosen: usize,
    /// By structure of the batch and place in it: was the result dropped unread the last time?
    pub(crate) unread: HashMap<u64, bool>,
    /// Recipes that ended, for the next ones.
    #[expect(clippy::vec_box, reason = "bases keep them in boxes, which go on as they are")]
    pub(crate) spare: Vec<Box<Recipe>>,
    pub(crate) scratch: Scratch,
    pub(crate) told: Vec<Told>,
    /// The file that recipes were last recorded from.
    pub(crate) file: Option<Arc<[u8]>>,
    /// Results that were not stored.
    pub(crate) made: u64,
    /// Those of them that were asked for.
    pub(crate) recomputed: u64,
}

impl Recipes {
    /// Notes whether a result was dropped unread.
    pub(crate) fn note(&mut self, key: u64, unread: bool) {
        if self.unread.len() >= REMEMBERED {
            self.unread.clear();
        }
        self.unread.insert(key, unread);
    }
}

/// Tables that are filled for each batch.
#[derive(Default)]
pub(crate) struct Scratch {
    /// Results that may stay recipes, by index in the batch.
    pub(crate) candidates: Vec<usize>,
    /// Those that do, and their keys.
    pub(crate) chosen: Vec<(usize, u64)>,
    /// For each base of the batch, how many operations come before the first that writes it.
    pub(crate) first: Vec<u32>,
    /// For each base, the position behind the last instruction that writes it; 0 if none does.
    pub(crate) last: Vec<u32>,
    /// For each base, whether it ends with the batch.
    pub(crate) dies: Vec<bool>,
    pub(crate) draft: Draft,
    /// Places of the arrays that a recipe reads.
    pub(crate) inputs: Vec<u32>,
    pub(crate) temporaries: Vec<usize>,
    pub(crate) copies: Vec<EarlyCopy>,
}

/// A copy of an array as it is before the batch changes it.
pub(crate) struct EarlyCopy {
    pub(crate) base: usize,
    /// Position of the instruction that changes it.
    pub(crate) before: usize,
    /// A handle on the copy.
    pub(crate) handle: u32,
}

/// How to make a result.
#[derive(Default)]
pub(crate) struct Recipe {
    pub(crate) key: u64,
    /// The number of its line in the report.
    pub(crate) told: usize,
    pub(crate) steps: Vec<Step>,
    /// In place of steps, for elements that a mask chooses: the inputs are the mask and the array.
    pub(crate) chosen: Option<Chosen>,
    /// Handles of its own on the arrays that it reads.
    pub(crate) inputs: Vec<u32>,
    /// Records of bases that live only while it is made.
    pub(crate) temporaries: Vec<Base>,
}

/// An operation of a recipe.
pub(crate) struct Step {
    pub(crate) instr: Instr,
    pub(crate) file: Arc<[u8]>,
    pub(crate) line: u32,
    pub(crate) parts: [Part; MAX_OPERANDS],
}

/// An operand of a step.
pub(crate) enum Part {
    None,
    Constant(Constant),
    /// Of the result itself.
    Result(SmallView),
    Input(usize, SmallView),
    Temporary(usize, SmallView),
}

/// A recipe under construction.
#[derive(Default)]
pub(crate) struct Draft {
    pub(crate) result: usize,
    /// Its only step copies the result, and is to be turned round.
    pub(crate) copied: bool,
    /// Bases whose writers are still to be found.
    pub(crate) needed: Vec<usize>,
    pub(crate) steps: Vec<Drafted>,
    /// The most bytes of each input that will have changed behind the batch.
    pub(crate) copied_bytes: u64,
}

/// An operation of a recipe under construction.
pub(crate) struct Drafted {
    /// Its position in the batch.
    pub(crate) position: usize,
    /// Bits say which operands are as the stack has them behind the batch,
    pub(crate) stored: u32,
    /// and of which there is to be a copy.
    pub(crate) early: u32,
}

impl Draft {
    pub(crate) fn begin(&mut self, result: usize) {
        (self.result, self.copied) = (result, false);
        self.needed.clear();
        self.steps.clear();
    }
}

/// The results of a line.
pub(crate) struct Told {
    pub(crate) file: Arc<[u8]>,
    pub(crate) line: u32,
    pub(crate) results: u64,
    pub(crate) bytes: u64,
    /// How many of them were made later.
    pub(crate) made: u64,
}
