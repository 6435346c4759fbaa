//! Splits a rank's local batch if elements arrive: the early part needs none of them and runs during the transfer, the
//! borders run afterwards. Both compute the same values as a single batch.

use crate::plan::boxes::{IndexBox, Span, rows_in, span_of};
use crate::plan::layout::outermost;
use crate::plan::stage::{Local, LocalBatch, Place, Stage};
use bh_bytecode::order::is_fixed;
use bh_bytecode::{Base, BatchRef, Instr, Kind, Opcode, Operand, View};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Separate spans per base, at most.
const MOST_SPANS: usize = 8;

/// Creates ids for bases.
type NewBase<'a> = &'a mut dyn FnMut() -> u64;

/// Splits the local batches of stages in which a rank receives at least `least_bytes`. Bases with ids up to `old` may
/// have data.
pub fn overlap(stages: &mut [Stage], hosted: &Range<usize>, (least_bytes, old): (u64, u64), new_base: NewBase<'_>) {
    let mut seen: HashSet<u64> = HashSet::new();
    for stage in stages {
        seen.extend(stage.transfers.iter().flat_map(|transfer| [transfer.source.base.id, transfer.target.base.id]));
        let used: Vec<u64> =
            stage.local.iter().flat_map(|local| local.batch.bases.iter().map(|base| base.id)).collect();
        let is_new = |id: u64| id > old && !seen.contains(&id);
        let mut early = std::mem::take(&mut stage.early);
        early.resize_with(stage.local.len(), LocalBatch::default);
        for (rank, (early, local)) in hosted.clone().zip(early.iter_mut().zip(&mut stage.local)) {
            let arriving: Vec<&Place> = stage
                .transfers
                .iter()
                .filter(|transfer| transfer.to == rank)
                .map(|transfer| &transfer.target)
                .collect();
            let bytes: u64 =
                arriving.iter().map(|place| place.view.len() as u64 * place.base.dtype().size() as u64).sum();
            if arriving.is_empty() || bytes < least_bytes {
                continue;
            }
            if let Some((first, rest)) = split(local, &arriving, &is_new, new_base) {
                let dropped = std::mem::replace(early, first);
                dropped.batch.bases.iter().for_each(|base| early.push_system(Opcode::Discard, base));
                *local = rest;
            }
        }
        seen.extend(used);
        if early.iter().any(|early| !early.batch.instrs.is_empty()) {
            stage.early = early;
        }
    }
}

/// When a part of an instruction runs: before the messages arrive, or after that, in one of two borders.
const EARLY: usize = 0;
const ABOVE: usize = 1;
const BELOW: usize = 2;

/// Spans of a base; merged if there are too many.
#[derive(Clone, Default)]
struct Spans(Vec<Span>);

impl Spans {
    fn add(&mut self, span: Span) {
        if span.is_empty() {
            return;
        }
        let full = self.0.len() == MOST_SPANS;
        match self.0.last_mut() {
            Some(last) if full || last.contains(span) => *last = last.join(span),
            _ => self.0.push(span),
        }
    }

    fn meet(&self, span: Span) -> bool {
        self.0.iter().any(|own| !own.meet(span).is_empty())
    }
}

/// The state of a base during the split.
#[derive(Clone, Default)]
struct Use {
    /// Elements whose values are available only after the messages.
    late: Spans,
    /// Elements that late parts read.
    late_reads: Spans,
    /// Elements written, by time.
    written: [Spans; 3],
    /// It is created and dropped in this batch.
    own: bool,
    /// Elements written at one time are read at another.
    shared: bool,
}

/// How an instruction is split.
#[derive(Clone, Copy)]
enum Cut {
    /// All of it at one time.
    All(usize),
    /// Early indices of a dimension with this extent; the rest is late.
    Rows { dim: usize, early: Span, extent: i64 },
}

impl Cut {
    /// The indices for each time.
    fn parts(self) -> Vec<(usize, Option<(usize, Span)>)> {
        match self {
            Cut::All(time) => vec![(time, None)],
            Cut::Rows { dim, early, extent } => {
                let rows = [(ABOVE, Span::new(0, early.low)), (BELOW, Span::new(early.high, extent)), (EARLY, early)];
                rows.into_iter()
                    .filter(|(_, rows)| !rows.is_empty())
                    .map(|(time, rows)| (time, Some((dim, rows))))
                    .collect()
            }
        }
    }
}

/// The batches before and after the arrival of messages; `None` if nothing can run before.
fn split(
    local: &LocalBatch,
    arriving: &[&Place],
    is_new: &dyn Fn(u64) -> bool,
    new_base: NewBase<'_>,
) -> Option<(LocalBatch, LocalBatch)> {
    let batch = local.batch.as_ref();
    let mut finder = Finder { batch, uses: vec![Use::default(); batch.bases.len()] };
    for (base, entry) in batch.bases.iter().zip(&mut finder.uses) {
        for place in arriving.iter().filter(|place| place.base.id == base.id) {
            entry.late.add(span_of(&place.view));
        }
    }
    finder.find_own(is_new);
    let cuts: Vec<Cut> = batch.instrs.iter().map(|instr| finder.cut(instr)).collect();
    let early = cuts.iter().any(|cut| matches!(cut, Cut::Rows { .. } | Cut::All(EARLY)));
    early.then(|| Writer::new(&finder, new_base).write(local, &cuts))
}

struct Finder<'a> {
    batch: BatchRef<'a>,
    uses: Vec<Use>,
}

impl Finder<'_> {
    fn base(&self, operand: &Operand) -> Option<(usize, View)> {
        let view = operand.as_view()?;
        self.batch.base_of(view)?;
        Some((self.batch.views[view as usize].base as usize, self.batch.view(view)))
    }

    /// Finds the bases that the batch overwrites before any other use, and drops.
    fn find_own(&mut self, is_new: &dyn Fn(u64) -> bool) {
        let mut seen = vec![false; self.uses.len()];
        for instr in self.batch.instrs {
            for (place, operand) in instr.operands().iter().enumerate().rev() {
                let Some((base, view)) = self.base(operand) else { continue };
                let first = !std::mem::replace(&mut seen[base], true);
                let makes = place < instr.outputs as usize && !instr.opcode.is_system() && !instr.opcode.reads_output();
                if first && makes && view.len() == self.batch.bases[base].len {
                    self.uses[base].own = true;
                }
            }
        }
        let mut dropped = vec![false; self.uses.len()];
        for instr in self.batch.instrs.iter().filter(|instr| instr.opcode == Opcode::Discard) {
            if let Some((base, _)) = self.base(&instr.operands()[0]) {
                dropped[base] = true;
            }
        }
        for ((entry, dropped), base) in self.uses.iter_mut().zip(dropped).zip(self.batch.bases) {
            entry.own &= dropped && entry.late.0.is_empty() && is_new(base.id);
        }
    }

    fn cut(&mut self, instr: &Instr) -> Cut {
        if instr.opcode == Opcode::Discard {
            return Cut::All(ABOVE);
        }
        let cut = if instr.opcode.is_system() { Cut::All(ABOVE) } else { self.find(instr) };
        for (time, rows) in cut.parts() {
            self.note(instr, time, rows);
        }
        cut
    }

    fn find(&self, instr: &Instr) -> Cut {
        let free = self.late_spans(instr).iter().all(|(view, spans)| !spans.iter().any(|span| meets(view, *span)));
        if free {
            return Cut::All(EARLY);
        }
        let folds = match instr.opcode.kind() {
            Kind::Elementwise | Kind::Generator => false,
            Kind::Reduction if instr.opcode.combiner().is_some() && !is_fixed(instr.order) => true,
            _ => return Cut::All(ABOVE),
        };
        // A reduction is cut along its input; the partial results are combined at the end.
        let Some(main) = instr.operands()[usize::from(folds)].as_view() else { return Cut::All(ABOVE) };
        let shape = self.batch.shape(main).to_vec();
        let Some(dim) = outermost(&shape) else { return Cut::All(ABOVE) };
        if folds && (instr.param >> dim & 1 == 0 || !self.is_untouched(instr)) {
            return Cut::All(ABOVE);
        }
        if self.reads_what_it_writes(instr) {
            return Cut::All(ABOVE);
        }
        let mut late = Vec::new();
        for (view, spans) in self.late_spans(instr) {
            if folds && view.shape() != shape {
                continue;
            }
            if view.shape() != shape {
                return Cut::All(ABOVE);
            }
            late.extend(spans.into_iter().filter(|span| meets(&view, *span)).map(|span| rows_in(&view, dim, span)));
        }
        let early = widest_gap(late, shape[dim]);
        match early.is_empty() {
            true => Cut::All(ABOVE),
            false => Cut::Rows { dim, early, extent: shape[dim] },
        }
    }

    /// Does an instruction read elements of its output through another view?
    fn reads_what_it_writes(&self, instr: &Instr) -> bool {
        let Some((out, written)) = self.base(&instr.operands()[0]) else { return true };
        let inputs = instr.inputs().iter().filter_map(|operand| self.base(operand));
        instr.outputs != 1 || inputs.into_iter().any(|(base, view)| base == out && view != written)
    }

    /// Is a reduction's output free of late elements and different from its input?
    fn is_untouched(&self, instr: &Instr) -> bool {
        let (Some((out, view)), Some((input, _))) = (self.base(&instr.operands()[0]), self.base(&instr.operands()[1]))
        else {
            return false;
        };
        let entry = &self.uses[out];
        out != input && !entry.late.meet(span_of(&view)) && !entry.late_reads.meet(span_of(&view))
    }

    /// For each operand, the spans of its base that make overlapping uses late.
    fn late_spans(&self, instr: &Instr) -> Vec<(View, Vec<Span>)> {
        let mut found = Vec::new();
        for (place, operand) in instr.operands().iter().enumerate() {
            let Some((base, view)) = self.base(operand) else { continue };
            let mut spans = self.uses[base].late.0.clone();
            if place < instr.outputs as usize {
                spans.extend_from_slice(&self.uses[base].late_reads.0);
            }
            found.push((view, spans));
        }
        found
    }

    /// Records the reads and writes of a part of an instruction.
    fn note(&mut self, instr: &Instr, time: usize, rows: Option<(usize, Span)>) {
        let outputs = instr.outputs as usize;
        for (place, operand) in instr.operands().iter().enumerate() {
            let Some((base, view)) = self.base(operand) else { continue };
            let span = span_of(&part_of(&view, rows));
            let entry = &mut self.uses[base];
            if place >= outputs || instr.opcode.reads_output() {
                let others = (0..3).filter(|&other| other != time);
                entry.shared |= others.into_iter().any(|other| entry.written[other].meet(span));
                if time != EARLY {
                    entry.late_reads.add(span);
                }
            }
            if place < outputs {
                entry.written[time].add(span);
                if time != EARLY {
                    entry.late.add(span);
                }
            }
            if instr.opcode.is_system() && instr.opcode != Opcode::Discard {
                entry.late.add(span);
                entry.shared = true;
            }
        }
        if instr.opcode.kind() == Kind::Reduction && rows.is_some() {
            // Partial results are combined after all of them are available.
            if let Some((base, view)) = self.base(&instr.operands()[0]) {
                self.uses[base].late.add(span_of(&view));
                self.uses[base].shared = true;
            }
        }
    }
}

fn meets(view: &View, span: Span) -> bool {
    !span_of(view).meet(span).is_empty()
}

/// The longest run of indices below `extent` outside of all spans.
fn widest_gap(mut late: Vec<Span>, extent: i64) -> Span {
    late.sort_by_key(|span| span.low);
    let (mut best, mut from) = (Span::default(), 0);
    for span in late.into_iter().chain([Span::new(extent, extent)]) {
        let gap = Span::new(from, span.low.min(extent));
        if gap.len() > best.len() {
            best = gap;
        }
        from = from.max(span.high);
    }
    best
}

/// These indices of a view; all of a view that lacks the dimension.
fn part_of(view: &View, rows: Option<(usize, Span)>) -> View {
    match rows {
        Some((dim, rows)) if dim < view.rank() => {
            let part = IndexBox::whole(view.shape()).with(dim, rows.low, rows.len());
            part.of(view, 0).unwrap_or(*view)
        }
        _ => *view,
    }
}

/// Writes the two batches.
struct Writer<'a, 'b> {
    finder: &'a Finder<'a>,
    new_base: NewBase<'b>,
    /// Replacements of bases for one time.
    stand_ins: HashMap<(usize, usize), Base>,
    early: LocalBatch,
    late: LocalBatch,
}

impl<'a, 'b> Writer<'a, 'b> {
    fn new(finder: &'a Finder<'a>, new_base: NewBase<'b>) -> Writer<'a, 'b> {
        let (early, late) = Default::default();
        Writer { finder, new_base, stand_ins: HashMap::new(), early, late }
    }

    fn write(mut self, local: &LocalBatch, cuts: &[Cut]) -> (LocalBatch, LocalBatch) {
        for ((instr, &global), &cut) in self.finder.batch.instrs.iter().zip(&local.globals).zip(cuts) {
            if instr.opcode == Opcode::Discard {
                self.discard(instr, global);
            } else if instr.opcode.kind() == Kind::Reduction && matches!(cut, Cut::Rows { .. }) {
                self.fold(instr, global, cut);
            } else {
                for (time, rows) in cut.parts() {
                    let operands: Vec<Local> =
                        instr.operands().iter().map(|operand| self.operand(operand, time, rows)).collect();
                    self.batch(time).push(instr, global, &operands);
                }
            }
        }
        (self.early, self.late)
    }

    fn batch(&mut self, time: usize) -> &mut LocalBatch {
        if time == EARLY { &mut self.early } else { &mut self.late }
    }

    fn operand(&mut self, operand: &Operand, time: usize, rows: Option<(usize, Span)>) -> Local {
        let Some(number) = operand.as_view() else { return Local::Same(*operand) };
        match self.finder.base(operand) {
            None => Local::Index(part_of(&self.finder.batch.view(number), rows)),
            Some((base, view)) => Local::Data(Place { base: self.base(base, time), view: part_of(&view, rows) }),
        }
    }

    /// The base for a time. Temporaries whose parts are independent get a base for each time, so that each lives within
    /// its kernel.
    fn base(&mut self, base: usize, time: usize) -> Base {
        let (entry, own) = (&self.finder.uses[base], self.finder.batch.bases[base]);
        if !entry.own || entry.shared {
            return own;
        }
        let new_base = &mut self.new_base;
        *self.stand_ins.entry((base, time)).or_insert_with(|| Base { id: new_base(), ..own })
    }

    fn discard(&mut self, instr: &Instr, global: u32) {
        let Some((base, _)) = self.finder.base(&instr.operands()[0]) else { return };
        let entry = &self.finder.uses[base];
        if !entry.own || entry.shared {
            let operand = self.operand(&instr.operands()[0], ABOVE, None);
            self.late.push(instr, global, &[operand]);
            return;
        }
        for time in [EARLY, ABOVE, BELOW] {
            if let Some(stand_in) = self.stand_ins.get(&(base, time)).copied() {
                self.batch(time).push_system(Opcode::Discard, &stand_in);
            }
        }
    }

    /// Reduces each part, and combines the results at the end.
    fn fold(&mut self, instr: &Instr, global: u32, cut: Cut) {
        let (Some((_, out)), Some(combiner)) = (self.finder.base(&instr.operands()[0]), instr.opcode.combiner()) else {
            return;
        };
        let target = self.operand(&instr.operands()[0], ABOVE, None);
        let Local::Data(result) = target else { return };
        let mut combine = Instr::new(combiner, &[Operand::view(0); 3]);
        combine.origin = instr.origin;
        let dense = View::contiguous(out.shape()).unwrap_or(out);
        for (number, (time, rows)) in cut.parts().into_iter().enumerate() {
            // The first part is one of the borders.
            let mut into = result;
            if number > 0 {
                let base = Base { id: (self.new_base)(), len: dense.len().max(1), row_hint: 0, ..result.base };
                into = Place { base, view: dense };
            }
            let inputs = instr.inputs().iter().map(|input| self.operand(input, time, rows));
            let operands: Vec<Local> = std::iter::once(Local::Data(into)).chain(inputs).collect();
            self.batch(time).push(instr, global, &operands);
            if number > 0 {
                self.late.push(&combine, global, &[result, result, into].map(Local::Data));
                self.late.push_system(Opcode::Discard, &into.base);
            }
        }
    }
}
