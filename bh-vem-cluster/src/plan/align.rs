//! Looks ahead in a program: cuts for the arrays that it creates, so that operands meet on the same rank, and the rows
//! that ranks should compute redundantly instead of sending them.

use crate::plan::array::Array;
use crate::plan::boxes::{Span, rows_in, span_of};
use crate::plan::choice::{Cut, choose};
use crate::plan::layout::{Cuts, Parts, covers, outermost, row_of};
use crate::plan::settings::Settings;
use bh_bytecode::{BatchRef, Instr, Kind, Opcode, View};
use std::collections::{HashMap, HashSet};

/// The findings, by number of instruction or base.
#[derive(Debug, Default)]
pub struct Hints {
    cuts: HashMap<u32, Cuts>,
    extensions: HashMap<u32, (i64, i64)>,
    temporary: HashSet<u32>,
    ahead: HashMap<u32, (i64, i64)>,
    grids: HashMap<u32, Cut>,
}

impl Hints {
    /// The cuts that suit the uses of the array that this instruction overwrites.
    pub fn cuts(&self, instr: u32) -> Option<Cuts> {
        self.cuts.get(&instr).cloned()
    }

    /// For a temporary: the rows before and behind its own that each rank should also compute. `None` for other arrays.
    pub fn extension(&self, base: u32) -> Option<(i64, i64)> {
        self.temporary.contains(&base).then(|| self.extensions.get(&base).copied().unwrap_or((0, 0)))
    }

    /// For an instruction that writes a lasting array: the rows before and behind its own that each rank should also
    /// write, because later instructions read them.
    pub fn ahead(&self, instr: u32) -> Option<(i64, i64)> {
        self.ahead.get(&instr).copied()
    }

    /// Do ranks compute rows of their neighbours for several iterations?
    pub fn go_ahead(&self) -> bool {
        !self.ahead.is_empty()
    }

    /// The shape of an array that belongs on a grid of ranks, and the grid.
    pub fn layout(&self, base: u32) -> Option<&Cut> {
        self.grids.get(&base)
    }

    /// Walks through a program from its end.
    pub fn find(arrays: &HashMap<u64, Array>, settings: &Settings, batch: &BatchRef<'_>, order: &[u32]) -> Hints {
        let mut walk =
            Walk { arrays, settings, batch, wanted: HashMap::new(), ahead: HashMap::new(), hints: Hints::default() };
        walk.find_temporaries(order);
        for &index in order.iter().rev() {
            let instr = &batch.instrs[index as usize];
            if let (false, Some(output)) = (instr.opcode.is_system(), instr.outputs().first()) {
                walk.visit(index, instr, output.as_view());
            }
        }
        walk.hints.grids = choose(arrays, settings, batch, order).cuts;
        walk.hints
    }
}

struct Walk<'a> {
    arrays: &'a HashMap<u64, Array>,
    settings: &'a Settings,
    batch: &'a BatchRef<'a>,
    /// The cuts that the readers seen so far ask for.
    wanted: HashMap<u32, Cuts>,
    /// Lasting arrays: the rows around its own that the readers seen so far need on each rank.
    ahead: HashMap<u32, (i64, i64)>,
    hints: Hints,
}

impl Walk<'_> {
    /// Finds temporaries: arrays that the program creates and drops, and writes element by element.
    fn find_temporaries(&mut self, order: &[u32]) {
        let mut otherwise = HashSet::new();
        for &index in order {
            let instr = &self.batch.instrs[index as usize];
            for operand in instr.operands() {
                let Some(view) = operand.as_view() else { continue };
                let base = self.batch.views[view as usize].base;
                match instr.opcode.kind() {
                    Kind::System if instr.opcode == Opcode::Discard => {
                        self.hints.temporary.insert(base);
                    }
                    Kind::Elementwise | Kind::Generator | Kind::System => {}
                    _ if instr.outputs().contains(operand) => {
                        otherwise.insert(base);
                    }
                    _ => {}
                }
            }
        }
        let (batch, arrays) = (self.batch, self.arrays);
        let fresh = |base: &u32| {
            let known = batch.bases.get(*base as usize).is_some_and(|base| !arrays.contains_key(&base.id));
            known && !otherwise.contains(base)
        };
        self.hints.temporary.retain(fresh);
    }

    fn visit(&mut self, index: u32, instr: &Instr, output: Option<u32>) {
        let Some(output) = output else { return };
        let target = self.batch.views[output as usize].base;
        let whole = covers(self.batch, output);
        let simple = matches!(instr.opcode.kind(), Kind::Elementwise | Kind::Generator);
        let rows = self.ahead.get(&target).copied().filter(|_| simple);
        if whole || !simple {
            self.ahead.remove(&target);
        }
        let Some(cuts) = self.cuts_of(target, whole) else { return };
        let view = self.batch.view(output);
        if let Some(rows) = rows {
            self.hints.ahead.insert(index, rows);
        }
        // Rows that each rank computes around its own.
        let beside = self.hints.extensions.get(&target).copied().or(rows).unwrap_or_default();
        if whole {
            self.wanted.remove(&target);
            self.hints.cuts.insert(index, cuts.clone());
        }
        let Some(parts) = Parts::of(&view, &cuts) else { return };
        for operand in instr.inputs() {
            let Some(input) = operand.as_view().filter(|&input| self.batch.base_of(input).is_some()) else { continue };
            let source = self.batch.view(input);
            let parts = match instr.opcode.kind() {
                Kind::Elementwise => Some(parts.clone()),
                Kind::Reduction => parts.widen(u32::from(instr.param), source.shape()),
                _ => None,
            };
            if let Some(parts) = parts {
                self.ask(&parts, input, &source);
                if instr.opcode.kind() == Kind::Elementwise {
                    self.extend((target, &view, &cuts), beside, input, &source);
                }
            }
        }
    }

    /// The known cuts of a base: its present ones, or if it is overwritten, those that its readers ask for.
    fn cuts_of(&self, base: u32, overwritten: bool) -> Option<Cuts> {
        let record = self.batch.bases.get(base as usize)?;
        if record.bytes() <= self.settings.small_bytes {
            return None;
        }
        let known = || self.arrays.get(&record.id).map(|array| array.cuts.clone());
        let wanted = || self.wanted.get(&base).cloned();
        if overwritten { wanted().or_else(known) } else { known().or_else(wanted) }
    }

    /// A reader whose work is split like this asks for the same cuts of its operand.
    fn ask(&mut self, parts: &Parts, view: u32, source: &View) {
        let base = self.batch.views[view as usize].base;
        let record = &self.batch.bases[base as usize];
        if !self.wanted.contains_key(&base)
            && record.bytes() > self.settings.small_bytes
            && let Some(cuts) = parts.cuts(source, record.len)
        {
            self.wanted.insert(base, cuts);
        }
    }

    /// A reader that computes its share of `target` and this many rows around it needs rows of neighbours: asks that
    /// each rank computes them itself.
    fn extend(
        &mut self,
        (target, view, cuts): (u32, &View, &Cuts),
        (above, below): (i64, i64),
        input: u32,
        source: &View,
    ) {
        let base = self.batch.views[input as usize].base;
        let temporary = self.hints.temporary.contains(&base);
        let own = if temporary { self.wanted.get(&base).cloned() } else { self.cuts_of(base, false) };
        let (Some(own), Some(dim)) = (own, outermost(view.shape())) else { return };
        let row = self.row(base, source);
        let target_row = self.row(target, view);
        let all = span_of(source);
        // The rows before and behind its own that a rank needs.
        let beyond = |rank: usize| {
            let (mine, here) = (cuts.own(rank), own.own(rank));
            let reach = Span::new(mine.low - above * target_row, mine.high + below * target_row);
            let rows = rows_in(view, dim, reach);
            if mine.is_empty() || here.is_empty() || rows.is_empty() {
                return (0, 0);
            }
            let step = source.stride()[dim];
            let inner = all.len() - 1 - (source.shape()[dim] - 1) * step.abs();
            let low = all.low + rows.low * step;
            let high = all.low + (rows.high - 1) * step + inner + 1;
            let count = |elements: i64| (elements.max(0) + row - 1) / row;
            (count(here.low - low), count(high - here.high))
        };
        let ranks = representatives(cuts, &own, beyond);
        let (up, down) = ranks
            .into_iter()
            .map(beyond)
            .fold((0, 0), |most, here: (i64, i64)| (most.0.max(here.0), most.1.max(here.1)));
        let (most, ahead) = (up.max(down), own.fewest(row).saturating_mul(self.settings.ahead_percent) / 100);
        let join = |rows: &mut (i64, i64)| *rows = (rows.0.max(up), rows.1.max(down));
        if temporary {
            // A temporary between two states of a lasting array may extend as far as both.
            if most <= self.settings.overlap_rows.max(2 * ahead) {
                join(self.hints.extensions.entry(base).or_default());
            }
        } else if most > ahead {
            // These rows are sent here, together with those that later readers need.
            self.ahead.remove(&base);
        } else if most > 0 {
            join(self.ahead.entry(base).or_default());
        }
    }

    /// Elements per row of a base.
    fn row(&self, base: u32, view: &View) -> i64 {
        let record = &self.batch.bases[base as usize];
        self.arrays.get(&record.id).map_or_else(|| row_of(record, Some(view)), |array| array.row)
    }
}

/// Ranks that represent all others, if the cuts of both arrays follow the same rows and distant ranks need the same
/// rows; otherwise all ranks.
fn representatives(cuts: &Cuts, own: &Cuts, beyond: impl Fn(usize) -> (i64, i64)) -> Vec<usize> {
    let ranks = cuts.ranks();
    let mut uniform = cuts.beside(own).unwrap_or(0..0);
    while uniform.len() > 2 && beyond(uniform.start) != beyond(uniform.end - 1) {
        uniform = uniform.start + 1..uniform.end - 1;
    }
    if uniform.len() <= 2 || ranks - uniform.len() > 16 {
        uniform = ranks..ranks;
    }
    (0..uniform.start.min(ranks)).chain(uniform.clone().take(1)).chain(uniform.end..ranks).collect()
}
