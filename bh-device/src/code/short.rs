//! Folds of many short rows, of which an item folds a few elements: items fold some rows at a time, so that many reads are under way, and
//! wait for each other once for all of them. Each row is folded as it would be alone, so that results have the same bits.

use super::part::Part;
use super::stage::{named, reductions};
use super::unroll::{halving, loop_directive, rolled};
use super::{Code, Fold, Target, Variant};
use bh_bytecode::c::{expression, neutral, type_name};
use bh_kernel::{Dim, Stage, Step};

/// Rows that the items of a result fold at a time.
const ROWS: usize = 4;
/// Elements of a row that an item folds at most.
const EACH: i64 = 4;
/// Times that rows fill the device, so that all of it has rows.
const TURNS: u64 = 4;
/// Bytes of local memory for the folds, and operations, at most.
const LOCAL: usize = 16 << 10;
const STEPS: usize = 24;
/// Items that run together on many devices.
pub(super) const WARP: usize = 32;

/// The barrier after which the items that share a result see each other's folds.
pub(super) fn barrier(fold: &Fold) -> &'static str {
    if fold.inner && fold.lanes <= WARP { "BH_BARRIER_WARP;\n" } else { "BH_BARRIER;\n" }
}

/// The kernel of such rows; none of others.
pub(super) fn short(stage: &Stage, target: &Target, variant: Variant, fold: Fold, scratch: u16) -> Option<Code> {
    let (kernel, parameters) = (&stage.kernel, &stage.parameters);
    let (lanes, results, group, folds) = (fold.lanes, fold.results(), fold.group, reductions(kernel));
    let role = |role: Dim| stage.kernel.dims.iter().zip(&parameters.extents).filter(move |(dim, _)| **dim == role);
    let [outputs, each] = [Dim::Kept, Dim::Reduced].map(|it| role(it).map(|(_, extent)| *extent).product::<i64>());
    let tiles = (outputs as u64).div_ceil(results as u64);
    let local: usize = folds.iter().map(|(_, slot, _)| kernel.slots[*slot as usize].dtype.size() * group * ROWS).sum();
    let is_short = fold.inner && lanes > 1 && fold.splits == 1 && each <= EACH * lanes as i64;
    if !is_short || tiles < TURNS * ROWS as u64 * target.groups as u64 || local > LOCAL || kernel.steps.len() > STEPS {
        return None;
    }
    let mut part = Part::new(stage, variant, target, scratch);
    let index = part.writer.index();
    let ((kept, kept_names), (reduced, reduced_names)) =
        (named(stage, &part.names, Dim::Kept), named(stage, &part.names, Dim::Reduced));
    let [count, total] = [outputs, each].map(|number| part.writer.numbers.text(number));
    let rows = format!("{}for (int q = 0; q < {ROWS}; q++) {{\n", loop_directive(target, ROWS));
    let combined = |number: usize, left: &str, right: &str| {
        let (opcode, slot, _) = folds[number];
        let dtype = kernel.slots[slot as usize].dtype;
        format!("{left} = {};\n", expression(opcode, 0, dtype, dtype, &[left, right]))
    };
    for (number, (_, slot, _)) in folds.iter().enumerate() {
        let name = type_name(kernel.slots[*slot as usize].dtype);
        part.body += &format!("BH_LOCAL {name} l{number}[{}];\n", group * ROWS);
    }
    part.body += &format!(
        "const int item = BH_ITEM, lane = item % {lanes}, result = item / {lanes};\n\
         for ({index} tile = BH_GROUP * {ROWS}; tile * {results} < {count}; tile += BH_GROUPS * {ROWS}) {{\n{rows}\
         const {index} own = (tile + q) * {results} + result, k = own < {count} ? own : 0;\n"
    );
    for (number, (opcode, slot, _)) in folds.iter().enumerate() {
        let dtype = kernel.slots[*slot as usize].dtype;
        part.body += &format!("{} a{number} = {};\n", type_name(dtype), neutral(*opcode, dtype));
    }
    part.body += &part.writer.numbers.split(index, "k", &kept, &kept_names);
    // Without a branch the reads of all rows are under way at once. Stored elements, which may be read as well, are written once.
    let stores = kernel.steps.iter().any(|step| matches!(step, Step::Store { .. }));
    part.body += if stores { "if (own == k)\n" } else { "" };
    part.body += &match variant {
        Variant::Specialised if each == lanes as i64 => format!("{{\nconst {index} r = lane;\n"),
        Variant::Specialised if each < lanes as i64 => format!("if (lane < {total}) {{\nconst {index} r = lane;\n"),
        _ => format!("{}for ({index} r = lane; r < {total}; r += {lanes}) {{\n", rolled(target)),
    };
    part.body += &part.writer.numbers.split(index, "r", &reduced, &reduced_names);
    part.steps();
    part.body += "}\n";
    (0..folds.len()).for_each(|number| part.body += &format!("l{number}[q * {group} + item] = a{number};\n"));
    let barrier = barrier(&fold);
    part.body += &format!("}}\n{barrier}{}if (lane < s) {{\n{rows}", halving(target, lanes));
    for number in 0..folds.len() {
        let [left, right] = ["", " + s"].map(|apart| format!("l{number}[q * {group} + item{apart}]"));
        part.body += &combined(number, &left, &right);
    }
    part.body += &format!(
        "}}\n}}\n{barrier}}}\nif (lane == 0) {{\n{rows}const {index} k = (tile + q) * {results} + result;\nif (k < {count}) {{\n"
    );
    part.body += &part.writer.numbers.split(index, "k", &kept, &kept_names);
    for (number, (_, slot, _)) in folds.iter().enumerate() {
        let element = part.element(*slot, number);
        part.body += &format!("{element} = l{number}[q * {group} + item];\n");
    }
    part.body += &format!("}}\n}}\n}}\n{barrier}}}\n");
    let groups = tiles.div_ceil(ROWS as u64).min(super::unroll::MOST_GROUPS) as usize;
    Some(part.writer.finish(target, groups, group, &part.body))
}
