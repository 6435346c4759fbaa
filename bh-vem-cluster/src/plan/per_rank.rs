//! Tests planners that plan for one rank each: together they plan the same as one planner for all ranks, and the effort
//! of each does not grow with the number of ranks.

use crate::plan::array::Array;
use crate::plan::choice::choose;
use crate::plan::layout::Weights;
use crate::plan::planner::Planner;
use crate::plan::plans::Plans;
use crate::plan::settings::{Grids, Settings};
use crate::plan::stage::{LocalBatch, Stage, Transfer};
use bh_bytecode::batch::Extension;
use bh_bytecode::random::Rng;
use bh_bytecode::{Base, Batch, DType, Instr, Opcode, Operand, View};
use std::collections::HashMap;
use std::iter::once;
use std::ops::Range;

fn planner(ranks: usize, hosted: Range<usize>, settings: Settings) -> Planner {
    let mut id = 1_000_000;
    let new_id = move || {
        id += 1;
        id
    };
    Planner::new(ranks, hosted, settings, Box::new(new_id))
}

/// Writes batches.
#[derive(Default)]
struct Writer {
    batch: Batch,
    temporary: Vec<u32>,
    next: u64,
}

/// A view of a base.
type Part = (u32, View);

impl Writer {
    fn base(&mut self, id: u64, shape: &[i64]) -> u32 {
        let known = self.batch.bases.iter().position(|base| base.id == id);
        let row = shape.iter().skip(1).product();
        let base = Base { row_hint: row, ..Base::new(id, DType::F64, shape.iter().product()) };
        known.map_or_else(|| self.batch.push_base(base), |known| known as u32)
    }

    fn fresh(&mut self, shape: &[i64]) -> Part {
        self.next += 1;
        let base = self.base(1000 + self.next, shape);
        self.temporary.push(base);
        (base, View::contiguous(shape).unwrap())
    }

    fn op(&mut self, opcode: Opcode, param: u16, parts: &[Part]) {
        let operands: Vec<Operand> =
            parts.iter().map(|(base, view)| Operand::view(self.batch.intern_view(*base, view))).collect();
        self.batch.push_instr(Instr { param, ..Instr::new(opcode, &operands) });
    }

    /// Sorts each row.
    fn sort(&mut self, parts: &[Part]) {
        let opcode = Opcode(Opcode::FIRST_EXTENSION);
        if self.batch.extensions.is_empty() {
            let (name, name_len) = self.batch.push_string("sort");
            self.batch.extensions.push(Extension { opcode, reserved: 0, name, name_len });
        }
        self.op(opcode, 0, parts);
    }

    fn end(&mut self) -> Batch {
        for base in std::mem::take(&mut self.temporary) {
            let whole = View::contiguous(&[self.batch.bases[base as usize].len]).unwrap();
            self.op(Opcode::Discard, 0, &[(base, whole)]);
        }
        std::mem::take(&mut self.batch)
    }
}

/// A view of a grid's inner part, shifted by some rows and columns.
fn part(shape: [i64; 2], around: i64, [down, right]: [i64; 2]) -> View {
    let view = View::contiguous(&shape).unwrap();
    let rows = view.slice(0, Some(around + down), Some(shape[0] - around + down), 1).unwrap();
    rows.slice(1, Some(around + right), Some(shape[1] - around + right), 1).unwrap()
}

/// Random batches on lasting grids: stencils, sums, means, transposes, strided views.
fn batches(rng: &mut Rng, shape: [i64; 2]) -> Vec<Batch> {
    let mut writer = Writer::default();
    let mut batches = Vec::new();
    for _ in 0..4 {
        let grids: Vec<u32> = (1..4).map(|id| writer.base(id, &shape)).collect();
        for _ in 0..rng.between(1, 10) {
            let around = rng.between(0, 2);
            let mut some = || {
                let moved = [rng.between(-around, around), rng.between(-around, around)];
                (*rng.pick(&grids).unwrap(), part(shape, around, moved))
            };
            let (one, two, three) = (some(), some(), some());
            let inner = one.1.shape().to_vec();
            match rng.below(12) {
                0..4 => {
                    let sum = writer.fresh(&inner);
                    writer.op(Opcode::Add, 0, &[sum, one, two]);
                    writer.op(Opcode::Copy, 0, &[three, sum]);
                }
                4 => {
                    let root = writer.fresh(&inner);
                    writer.op(Opcode::Sqrt, 0, &[root, one]);
                    writer.op(Opcode::Copy, 0, &[three, root]);
                }
                5 => {
                    let sum = writer.fresh(&[]);
                    writer.op(Opcode::AddReduce, 3, &[sum, one]);
                    let all = sum.1.broadcast_to(&inner).unwrap();
                    let rest = writer.fresh(&inner);
                    writer.op(Opcode::Subtract, 0, &[rest, two, (sum.0, all)]);
                    writer.op(Opcode::Copy, 0, &[three, rest]);
                }
                6 => {
                    let axis = rng.below(2);
                    let sum = writer.fresh(&[inner[1 - axis]]);
                    writer.op(Opcode::AddReduce, 1 << axis, &[sum, one]);
                }
                7 => {
                    let turned = writer.fresh(&[inner[1], inner[0]]);
                    writer.op(Opcode::Copy, 0, &[turned, (one.0, one.1.transpose(&[1, 0]).unwrap())]);
                }
                8 => {
                    let stepped = one.1.slice(0, None, None, 2).unwrap();
                    let half = writer.fresh(stepped.shape());
                    writer.op(Opcode::Copy, 0, &[half, (one.0, stepped)]);
                }
                9 => {
                    let sorted = writer.fresh(&inner);
                    writer.sort(&[sorted, one]);
                }
                10 => {
                    let first = one.1.slice(0, None, Some(1), 1).unwrap().broadcast_to(&inner).unwrap();
                    let sum = writer.fresh(&inner);
                    writer.op(Opcode::Add, 0, &[sum, two, (one.0, first)]);
                    writer.op(Opcode::Copy, 0, &[three, sum]);
                }
                _ => {
                    let total = writer.fresh(&inner);
                    writer.op(Opcode::AddAccumulate, 1 << rng.below(2), &[total, one]);
                }
            }
        }
        batches.push(writer.end());
    }
    batches
}

fn plan(planner: &mut Planner, batch: &Batch) -> Vec<Stage> {
    let order: Vec<u32> = (0..batch.instrs.len() as u32).collect();
    planner.begin(&batch.as_ref(), &order);
    for &index in &order {
        planner.plan(&batch.as_ref(), index).unwrap();
    }
    planner.end();
    planner.take_stages()
}

/// The part of a message that is visible to a rank.
fn seen(transfer: &Transfer, rank: usize) -> String {
    let Transfer { from, to, source, target } = transfer;
    let own = |side: usize, place: &crate::plan::stage::Place| match side == rank {
        true => format!("{:?} of {}", place.view, place.base.len),
        false => format!("{:?}", place.view.shape()),
    };
    format!("{from} {} to {to} {}", own(*from, source), own(*to, target))
}

fn lines(local: Option<&LocalBatch>) -> Vec<String> {
    let Some(LocalBatch { batch, globals, .. }) = local else { return Vec::new() };
    let operand = |operand: &Operand| match operand.as_view() {
        None => format!("{operand:?}"),
        Some(view) => {
            let base = batch.views[view as usize].base;
            format!(
                "{base} of {:?}: {:?}",
                batch.bases.get(base as usize).map(|base| base.len),
                batch.as_ref().view(view)
            )
        }
    };
    let line = |(instr, global): (&Instr, &u32)| {
        format!("{global} {} {:?}", instr.opcode, instr.operands().iter().map(operand).collect::<Vec<_>>())
    };
    batch.instrs.iter().zip(globals).map(line).collect()
}

fn compare(all: &[Stage], own: &[Stage], rank: usize, what: &str) {
    for number in 0..all.len().max(own.len()) {
        let moved = |stages: &[Stage]| -> Vec<String> {
            let transfers = stages.get(number).map_or(&[][..], |stage| &stage.transfers[..]);
            let mine = transfers.iter().filter(|transfer| transfer.from == rank || transfer.to == rank);
            mine.map(|transfer| seen(transfer, rank)).collect()
        };
        assert_eq!(moved(all), moved(own), "{what}: messages of rank {rank} in stage {number}");
        let local = |stages: &[Stage], place: usize| {
            let stage = stages.get(number);
            [stage.and_then(|stage| stage.early.get(place)), stage.and_then(|stage| stage.local.get(place))].map(lines)
        };
        assert_eq!(local(all, rank), local(own, 0), "{what}: work of rank {rank} in stage {number}");
    }
}

/// The first difference between the states of two planners.
fn difference(all: &Planner, own: &Planner) -> Option<String> {
    let known = |array: Option<&Array>| {
        let known = |array: &Array| {
            let when = (array.wrote, array.arrived, array.read, array.everywhere, array.extension);
            let mut copies: Vec<String> = array.copies.keys().map(|key| format!("{key:?}")).collect();
            copies.sort();
            format!("{:?} {:?} {:?} {when:?} {copies:?}", array.cuts, array.valid_runs, array.window_runs)
        };
        array.map_or_else(String::new, known)
    };
    let ids = all.arrays.keys().chain(own.arrays.keys());
    let mut pairs = ids.map(|id| (id, known(all.arrays.get(id)), known(own.arrays.get(id))));
    pairs.find(|(_, one, two)| one != two).map(|(id, one, two)| format!("array {id}:\n{one}\n{two}"))
}

#[test]
fn planners_for_one_rank_plan_what_one_planner_does_for_all() {
    let variable =
        |name: &str, default: u64| bh_core::environment::variable(name).map_or(default, |text| text.parse().unwrap());
    let (programs, first) = (variable("BH_TEST_PROGRAMS", 300), variable("BH_TEST_FIRST", 0));
    for seed in first..first + programs {
        let mut rng = Rng::new(seed);
        let ranks = [2, 3, 5, 7, 9, 16][rng.below(6)];
        let rows = ranks as i64 * rng.between(1, 7) + rng.between(0, 3);
        let shape = [rows.max(6), rng.between(5, 9)];
        let weights = match rng.below(4) {
            0 => Weights::given((0..ranks).map(|rank| 1.0 + (rank % 3) as f64).collect()).unwrap(),
            _ => Weights::even(ranks),
        };
        let settings = Settings {
            weights,
            rates: Vec::new(),
            small_bytes: [0, 16, 64][rng.below(3)],
            overlap_rows: rng.between(0, 3),
            ahead_percent: [0, 50, 200][rng.below(3)],
            grid: some_grid(&mut rng, ranks),
            overlap_bytes: [0, 1 << 20][rng.below(2)],
            keep_bytes: [0, 1 << 20][rng.below(2)],
        };
        let mut all = planner(ranks, 0..ranks, settings.clone());
        let mut each: Vec<Planner> = (0..ranks).map(|rank| planner(ranks, rank..rank + 1, settings.clone())).collect();
        for (number, batch) in batches(&mut rng, shape).iter().enumerate() {
            let what = format!("seed {seed}, {ranks} ranks, {shape:?}, batch {number}");
            let order: Vec<u32> = (0..batch.instrs.len() as u32).collect();
            once(&mut all).chain(&mut each).for_each(|planner| planner.begin(&batch.as_ref(), &order));
            for &index in &order {
                let planners = once(&mut all).chain(&mut each);
                planners.for_each(|planner| assert!(planner.plan(&batch.as_ref(), index).is_ok()));
                for own in &each {
                    let difference = difference(&all, own);
                    let alone = own.stages.hosted();
                    assert_eq!(difference, None, "{what}, {alone:?}, instruction {index}: {}", shown(batch, index));
                }
            }
            let mut stages: Vec<Vec<Stage>> = once(&mut all)
                .chain(&mut each)
                .map(|planner| {
                    planner.end();
                    planner.take_stages()
                })
                .collect();
            let together = stages.remove(0);
            stages.iter().enumerate().for_each(|(rank, own)| compare(&together, own, rank, &what));
        }
    }
}

/// Rows, or a grid of all ranks.
fn some_grid(rng: &mut Rng, ranks: usize) -> Grids {
    let lines: Vec<usize> = (1..=ranks).filter(|lines| ranks.is_multiple_of(*lines)).collect();
    match rng.below(2) {
        0 => Grids::Auto,
        _ => rng.pick(&lines).map_or(Grids::Rows, |&lines| Grids::Given(vec![lines, ranks / lines])),
    }
}

/// An instruction and its views.
fn shown(batch: &Batch, index: u32) -> String {
    let instr = &batch.instrs[index as usize];
    let views = instr.operands().iter().filter_map(|operand| operand.as_view());
    let views: Vec<String> =
        views.map(|view| format!("{} {:?}", batch.views[view as usize].base, batch.as_ref().view(view))).collect();
    format!("{} {views:?}", instr.opcode)
}

/// An iteration of Jacobi's method that subtracts the mean change.
fn heat(writer: &mut Writer, shape: [i64; 2]) -> Batch {
    let grid = writer.base(1, &shape);
    let at = |moved: [i64; 2]| (grid, part(shape, 1, moved));
    let inner = at([0, 0]).1.shape().to_vec();
    let mut sum = writer.fresh(&inner);
    writer.op(Opcode::Add, 0, &[sum, at([0, 0]), at([-1, 0])]);
    for moved in [[0, 1], [0, -1], [1, 0]] {
        let next = writer.fresh(&inner);
        writer.op(Opcode::Add, 0, &[next, sum, at(moved)]);
        sum = next;
    }
    let change = writer.fresh(&inner);
    writer.op(Opcode::Subtract, 0, &[change, sum, at([0, 0])]);
    let delta = writer.fresh(&[]);
    writer.op(Opcode::AddReduce, 3, &[delta, change]);
    let next = writer.fresh(&inner);
    writer.op(Opcode::Subtract, 0, &[next, sum, (delta.0, delta.1.broadcast_to(&inner).unwrap())]);
    writer.op(Opcode::Copy, 0, &[at([0, 0]), next]);
    writer.end()
}

/// The effort for new and repeated batches: examined ranks, planned messages, bytes of arrays, and words of
/// descriptions.
fn effort(ranks: usize, rank: usize) -> [usize; 4] {
    let (weights, small_bytes, overlap_bytes) = (Weights::even(ranks), 64, 1 << 20);
    let settings = Settings {
        weights,
        small_bytes,
        overlap_rows: 2,
        ahead_percent: 50,
        overlap_bytes,
        ..Settings::default(ranks)
    };
    let mut planner = planner(ranks, rank..rank + 1, settings);
    let (mut writer, shape) = (Writer::default(), [8 * ranks as i64, 10]);
    let mut effort = [0; 4];
    let mut plans = Plans::default();
    let mut found = 0;
    for turn in 0..6 {
        let batch = heat(&mut writer, shape);
        let before = planner.examined.get();
        if plans.find(&mut planner, &batch.as_ref(), 1).is_some() {
            found += 1;
            continue;
        }
        let stages = plan(&mut planner, &batch);
        plans.keep(&planner, &batch.as_ref(), &stages);
        effort[0] = effort[0].max(planner.examined.get() - before);
        effort[1] = effort[1].max(stages.iter().map(|stage| stage.transfers.len()).sum());
        effort[2] = effort[2].max(planner.arrays.values().map(Array::bytes).sum());
        let mut words = Vec::new();
        planner.describe(&batch.as_ref(), &mut words);
        effort[3] = effort[3].max(words.len());
        assert!(turn < 4, "the batch is planned anew");
    }
    assert!(found >= 2);
    effort
}

/// Messages per rank may grow with the logarithm, because ranks forward broadcasts.
#[test]
fn a_rank_plans_as_much_on_thousands_of_ranks_as_on_four() {
    let few = effort(4, 2);
    for ranks in [16usize, 64, 1024, 4096, 16384] {
        for rank in [1, ranks / 2 + 1, ranks - 2] {
            let many = effort(ranks, rank);
            let passed_on = 3 * ranks.ilog2().div_ceil(2) as usize;
            assert!(many[1] <= few[1] + passed_on, "{ranks} ranks: {many:?} after {few:?}");
            for kind in [0, 2, 3] {
                assert!(many[kind] <= 2 * few[kind], "{ranks} ranks: {many:?} after {few:?}");
            }
        }
    }
}

/// Transfers that a rank in the middle of a grid plans for repeated iterations, and words that describe the arrays.
fn effort_on_grid(lines: usize) -> [usize; 2] {
    let ranks = lines * lines;
    let settings = Settings { grid: Grids::Given(vec![lines; 2]), small_bytes: 64, ..Settings::default(ranks) };
    let rank = lines * (lines / 2) + lines / 2;
    let mut planner = planner(ranks, rank..rank + 1, settings);
    let (mut writer, shape) = (Writer::default(), [8 * lines as i64; 2]);
    let mut effort = [0; 2];
    for turn in 0..4 {
        let batch = heat(&mut writer, shape);
        let stages = plan(&mut planner, &batch);
        if turn > 0 {
            effort[0] = effort[0].max(stages.iter().map(|stage| stage.transfers.len()).sum());
            let mut words = Vec::new();
            planner.describe(&batch.as_ref(), &mut words);
            effort[1] = effort[1].max(words.len());
        }
    }
    effort
}

#[test]
fn a_rank_plans_as_much_on_large_grids_as_on_small_ones() {
    let few = effort_on_grid(4);
    for lines in [8, 32, 64] {
        let (many, passed_on) = (effort_on_grid(lines), 3 * (lines * lines).ilog2().div_ceil(2) as usize);
        assert!(many[0] <= few[0] + passed_on && many[1] <= few[1] + 16, "{lines}: {many:?} after {few:?}");
    }
}

/// The model chooses squares if they move less, and rows if they do not or if nothing moves.
#[test]
fn the_model_takes_squares_on_many_ranks() {
    let chosen = |ranks: usize, shape: [i64; 2], alone: bool| {
        let mut writer = Writer::default();
        let batch = if alone { doubled(&mut writer, shape) } else { heat(&mut writer, shape) };
        let order: Vec<u32> = (0..batch.instrs.len() as u32).collect();
        let choice = choose(&HashMap::new(), &Settings::default(ranks), &batch.as_ref(), &order);
        choice.cuts.get(&0).map(|(_, grid)| grid.clone())
    };
    for (ranks, extent, lines) in
        [(4, 4096, 0), (9, 4096, 0), (16, 4096, 4), (64, 8192, 8), (1024, 32_768, 32), (4096, 65_536, 64)]
    {
        let wanted = (lines > 0).then(|| vec![lines; 2]);
        assert_eq!(chosen(ranks, [extent; 2], false), wanted, "{ranks} ranks");
        assert_eq!(chosen(ranks, [extent; 2], true), None, "{ranks} ranks");
    }
    assert_eq!(chosen(16, [200, 200], false), None, "messages are too many");
    assert_eq!(chosen(8, [2, 1 << 20], true), Some(vec![1, 8]));
}

/// A batch that adds an array to itself.
fn doubled(writer: &mut Writer, shape: [i64; 2]) -> Batch {
    let (one, two) = (writer.base(1, &shape), writer.base(2, &shape));
    let all = |base| (base, View::contiguous(&shape).unwrap());
    writer.op(Opcode::Add, 0, &[all(two), all(one), all(one)]);
    writer.end()
}
