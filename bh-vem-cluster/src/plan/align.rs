//! Looks ahead in a program: how arrays that it makes should be cut so that what they meet lies on the same rank, and how
//! many rows of them, and of those that it changes turn by turn, ranks had better compute twice than send.

use crate::plan::array::Array;
use crate::plan::boxes::{Span, rows_in, span_of};
use crate::plan::choice::{Cut, choose};
use crate::plan::layout::{Cuts, Parts, covers, outermost, row_of};
use crate::plan::settings::Settings;
use bh_bytecode::{BatchRef, Instr, Kind, Opcode, View};
use std::collections::{HashMap, HashSet};

/// What was found, by number of instruction or base.
#[derive(Debug, Default)]
pub struct Hints {
    cuts: HashMap<u32, Cuts>,
    extensions: HashMap<u32, (i64, i64)>,
    passing: HashSet<u32>,
    ahead: HashMap<u32, (i64, i64)>,
    meshes: HashMap<u32, Cut>,
}

impl Hints {
    /// The cuts that suit what the program does with the array that this instruction overwrites.
    pub fn cuts(&self, instr: u32) -> Option<Cuts> {
        self.cuts.get(&instr).cloned()
    }

    /// For an array that lives within the program: the rows before and behind its own that each rank should compute too.
    pub fn extension(&self, base: u32) -> Option<(i64, i64)> {
        self.passing.contains(&base).then(|| self.extensions.get(&base).copied().unwrap_or((0, 0)))
    }

    /// For an instruction that writes an array that lives on: the rows before and behind its own that each rank should write too,
    /// as later ones read them.
    pub fn ahead(&self, instr: u32) -> Option<(i64, i64)> {
        self.ahead.get(&instr).copied()
    }

    /// Do ranks compute rows of others for several turns?
    pub fn go_ahead(&self) -> bool {
        !self.ahead.is_empty()
    }

    /// The shape of an array that is to be cut on a grid of ranks, and the grid.
    pub fn mesh(&self, base: u32) -> Option<&Cut> {
        self.meshes.get(&base)
    }

    /// Walks through a program from its end.
    pub fn find(arrays: &HashMap<u64, Array>, settings: &Settings, batch: &BatchRef<'_>, order: &[u32]) -> Hints {
        let mut walk =
            Walk { arrays, settings, batch, wanted: HashMap::new(), ahead: HashMap::new(), hints: Hints::default() };
        walk.find_passing(order);
        for &index in order.iter().rev() {
            let instr = &batch.instrs[index as usize];
            if let (false, Some(output)) = (instr.opcode.is_system(), instr.outputs().first()) {
                walk.visit(index, instr, output.as_view());
            }
        }
        walk.hints.meshes = choose(arrays, settings, batch, order).cuts;
        walk.hints
    }
}

struct Walk<'a> {
    arrays: &'a HashMap<u64, Array>,
    settings: &'a Settings,
    batch: &'a BatchRef<'a>,
    /// How the readers seen so far want a base to be cut.
    wanted: HashMap<u32, Cuts>,
    /// The rows around its own that the readers seen so far want each rank to have of a base that lives on.
    ahead: HashMap<u32, (i64, i64)>,
    hints: Hints,
}

impl Walk<'_> {
    /// Arrays that are made and dropped here, and written element by element.
    fn find_passing(&mut self, order: &[u32]) {
        let mut otherwise = HashSet::new();
        for &index in order {
            let instr = &self.batch.instrs[index as usize];
            for operand in instr.operands() {
                let Some(view) = operand.as_view() else { continue };
                let base = self.batch.views[view as usize].base;
                match instr.opcode.kind() {
                    Kind::System if instr.opcode == Opcode::Discard => {
                        self.hints.passing.insert(base);
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
        self.hints.passing.retain(fresh);
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
        // What each rank computes beside its own.
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

    /// The cuts of a base, as far as they are known: as it is, or wanted by readers of what overwrites it.
    fn cuts_of(&self, base: u32, overwritten: bool) -> Option<Cuts> {
        let record = self.batch.bases.get(base as usize)?;
        if record.bytes() <= self.settings.small_bytes {
            return None;
        }
        let known = || self.arrays.get(&record.id).map(|array| array.cuts.clone());
        let wanted = || self.wanted.get(&base).cloned();
        if overwritten { wanted().or_else(known) } else { known().or_else(wanted) }
    }

    /// A reader whose work is parted like this asks for a base to be cut alike.
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

    /// A reader that computes its share of `target`, and this many rows beside it, reads rows of neighbours: the rank should compute
    /// those itself.
    fn extend(
        &mut self,
        (target, view, cuts): (u32, &View, &Cuts),
        (above, below): (i64, i64),
        input: u32,
        source: &View,
    ) {
        let base = self.batch.views[input as usize].base;
        let passing = self.hints.passing.contains(&base);
        let own = if passing { self.wanted.get(&base).cloned() } else { self.cuts_of(base, false) };
        let (Some(own), Some(dim)) = (own, outermost(view.shape())) else { return };
        let row = self.row(base, source);
        let target_row = self.row(target, view);
        let all = span_of(source);
        // The rows that a rank needs before and behind its own.
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
        let ranks = some_of(cuts, &own, beyond);
        let (up, down) = ranks
            .into_iter()
            .map(beyond)
            .fold((0, 0), |most, here: (i64, i64)| (most.0.max(here.0), most.1.max(here.1)));
        let (most, ahead) = (up.max(down), own.fewest(row).saturating_mul(self.settings.ahead_percent) / 100);
        let join = |rows: &mut (i64, i64)| *rows = (rows.0.max(up), rows.1.max(down));
        if passing {
            // What lies between two states of an array that lives on reaches beyond both.
            if most <= self.settings.overlap_rows.max(2 * ahead) {
                join(self.hints.extensions.entry(base).or_default());
            }
        } else if most > ahead {
            // They are sent at this place, with what later readers want.
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

/// Ranks that stand for all, where cuts of two arrays follow the same rows and ranks far from each other do alike; else all.
fn some_of(cuts: &Cuts, own: &Cuts, beyond: impl Fn(usize) -> (i64, i64)) -> Vec<usize> {
    let ranks = cuts.ranks();
    let mut alike = cuts.beside(own).unwrap_or(0..0);
    while alike.len() > 2 && beyond(alike.start) != beyond(alike.end - 1) {
        alike = alike.start + 1..alike.end - 1;
    }
    if alike.len() <= 2 || ranks - alike.len() > 16 {
        alike = ranks..ranks;
    }
    (0..alike.start.min(ranks)).chain(alike.clone().take(1)).chain(alike.end..ranks).collect()
}
