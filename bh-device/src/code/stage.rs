//! A stage of a lowered block as one or two kernels: element by element, or with reductions.

use super::common::Common;
use super::fixed::fixed;
use super::part::{PARTIALS, Part, is_wide};
use super::rounds::Rounds;
use super::short::{barrier, short};
use super::table::Table;
use super::turned::turned;
use super::unroll::{EACH, MOST_GROUPS, TURNS, halving, rolled, unrolls};
use super::vector::vector;
use super::{Code, Fold, KernelMemory, Placement, Target, Variant, Writer};
use bh_bytecode::c::{expression, neutral, type_name};
use bh_bytecode::{DType, Opcode};
use bh_kernel::{Arg, Dim, Kernel, Parameters, Slot, SlotMode, Stage, Step};
use std::fmt::Write;

/// The kernels of a stage, in order; `scratch` gets the bytes of each piece of memory between them. None if there is
/// nothing to do.
pub(crate) fn stage(stage: &Stage, target: &Target, variant: Variant, scratch: &mut Vec<usize>) -> Vec<Code> {
    let (kernel, parameters) = (&stage.kernel, &stage.parameters);
    if !kernel.reduces() {
        // Without reductions all dimensions are kept, whatever they are called.
        return if parameters.iterations() == 0 { Vec::new() } else { vec![map(stage, target, variant)] };
    }
    if parameters.fixed {
        return fixed(stage, target, variant, scratch);
    }
    let Some((outputs, _, fold)) = reduction(stage, target) else { return Vec::new() };
    let first = scratch.len();
    if fold.splits > 1 {
        for (_, slot, _) in reductions(kernel) {
            scratch.push((outputs * fold.splits) as usize * kernel.slots[slot as usize].dtype.size());
        }
    }
    let mut codes = vec![reduce(stage, target, variant, fold, first as u16)];
    if fold.splits > 1 {
        codes.push(joined(stage, fold.splits, target, variant, first as u16));
    }
    codes
}

/// The kernel that folds what is left of a stage with reductions: for each result `splits` parts, one after the other in the memory
/// between kernels from number `first` on.
pub(super) fn joined(stage: &Stage, splits: i64, target: &Target, variant: Variant, first: u16) -> Code {
    let kept: Vec<i64> = extents_of(stage, Dim::Kept).collect();
    let finish = finish(stage, &kept, splits);
    let fold = Fold { splits: 1, ..Fold::choose(target, kept.iter().product(), splits, true) };
    reduce(&finish, target, variant, fold, first)
}

/// The extents of the dimensions with this role.
fn extents_of(stage: &Stage, role: Dim) -> impl Iterator<Item = i64> {
    let pairs = stage.kernel.dims.iter().zip(&stage.parameters.extents);
    pairs.filter(move |(dim, _)| **dim == role).map(|(_, extent)| *extent)
}

/// The extents of the dimensions with this role, and their names, of those of all.
pub(super) fn named(stage: &Stage, names: &[String], role: Dim) -> (Vec<i64>, Vec<String>) {
    let all = stage.kernel.dims.iter().zip(&stage.parameters.extents).zip(names);
    all.filter(|((dim, _), _)| **dim == role).map(|((_, extent), name)| (*extent, name.clone())).unzip()
}

/// How many results the reductions of a stage have, of how many elements each, and how items share them; none if there is
/// nothing to do.
pub(super) fn reduction(stage: &Stage, target: &Target) -> Option<(i64, i64, Fold)> {
    let outputs: i64 = extents_of(stage, Dim::Kept).product();
    let each: i64 = extents_of(stage, Dim::Reduced).product();
    let inner = stage.kernel.dims.last() == Some(&Dim::Reduced);
    let alone = if inner { Table::fold(stage, target) } else { None };
    let fold = || match inner && has_rows(stage) {
        true => Fold::of_rows(target, outputs, each),
        false => Fold::choose(target, outputs, each, inner),
    };
    (outputs > 0).then(|| (outputs, each, alone.unwrap_or_else(fold)))
}

/// Does each result of a stage read elements of its own?
fn has_rows(stage: &Stage) -> bool {
    let (kernel, parameters) = (&stage.kernel, &stage.parameters);
    let varies = |slot: usize, role: Dim| {
        let steps = parameters.stride(slot).iter().zip(&parameters.extents).zip(&kernel.dims);
        steps.filter(|(_, dim)| **dim == role).any(|((stride, extent), _)| *stride != 0 && *extent > 1)
    };
    let mut reads = (0..kernel.slots.len()).filter(|&slot| kernel.slots[slot].mode == SlotMode::Read);
    reads.any(|slot| varies(slot, Dim::Kept) && varies(slot, Dim::Reduced))
}

/// The reductions of a kernel: opcode, slot of the results, what is folded.
pub(super) fn reductions(kernel: &Kernel) -> Vec<(Opcode, u16, Arg)> {
    let of = |step: &Step| match *step {
        Step::Reduce { opcode, slot, arg } => Some((opcode, slot, arg)),
        _ => None,
    };
    kernel.steps.iter().filter_map(of).collect()
}

/// The stage that folds what the groups of a reduction have left: for each result its parts, one after the other.
fn finish(stage: &Stage, kept: &[i64], splits: i64) -> Stage {
    let mut kernel = Kernel { dims: vec![Dim::Kept; kept.len()], ..Kernel::default() };
    kernel.dims.push(Dim::Reduced);
    let mut parameters = Parameters { extents: kept.to_vec(), ..Parameters::default() };
    parameters.extents.push(splits);
    let roles = &stage.kernel.dims;
    for (number, (opcode, slot, _)) in reductions(&stage.kernel).into_iter().enumerate() {
        let result = stage.kernel.slots[slot as usize];
        let add = |kernel: &mut Kernel, parameters: &mut Parameters, mode, buffer, start, strides: &[i64]| {
            let place = kernel.slots.len() as u16;
            kernel.slots.push(Slot { dtype: result.dtype, mode, same_as: place });
            parameters.buffers.push(buffer);
            parameters.starts.push(start);
            parameters.strides.extend_from_slice(strides);
            place
        };
        let mut strides = vec![1; kept.len() + 1];
        let mut step = splits;
        for (stride, extent) in strides[..kept.len()].iter_mut().zip(kept).rev() {
            (*stride, step) = (step, step * extent);
        }
        let read = add(&mut kernel, &mut parameters, SlotMode::Read, PARTIALS, 0, &strides);
        let all = stage.parameters.stride(slot as usize);
        let mut strides: Vec<i64> =
            all.iter().zip(roles).filter(|(_, role)| **role == Dim::Kept).map(|(stride, _)| *stride).collect();
        strides.push(0);
        let buffer = stage.parameters.buffers[slot as usize];
        let start = stage.parameters.starts[slot as usize];
        let write = add(&mut kernel, &mut parameters, SlotMode::Result, buffer, start, &strides);
        kernel.steps.insert(number, Step::Load { slot: read });
        kernel.steps.push(Step::Reduce { opcode, slot: write, arg: Arg::Value(number as u16) });
    }
    parameters.instrs = vec![0; kernel.steps.len()];
    Stage { kernel, parameters }
}

/// Element by element.
fn map(stage: &Stage, target: &Target, variant: Variant) -> Code {
    if variant == Variant::Specialised && shares_rows(stage, target).is_ok() {
        return rows(stage, target, variant);
    }
    if let Some(code) = turned(stage, target, variant) {
        return code;
    }
    if let Some(code) = vector(stage, target, variant) {
        return code;
    }
    let mut part = Part::new(stage, variant, target, 0);
    let total = stage.parameters.iterations();
    let (index, names) = (part.writer.index(), part.names.clone());
    let end = part.writer.numbers.text(total);
    part.body += unroll(&stage.kernel, target);
    part.body += &format!("for ({index} t = BH_INDEX; t < {end}; t += BH_INDICES) {{\n");
    part.body += &part.writer.numbers.split(index, "t", &stage.parameters.extents, &names);
    part.steps();
    part.body += "}\n";
    let each = if unrolls(&stage.kernel, target).is_ok() && total >= EACH * TURNS * target.items() { EACH } else { 1 };
    let groups = (total as u64).div_ceil(target.group as u64 * each as u64).min(MOST_GROUPS) as usize;
    part.writer.finish(target, groups, target.group, &part.body)
}

/// Element by element, some rows of the outermost dimension by one item, whose reads of a row the compiler makes once.
fn rows(stage: &Stage, target: &Target, variant: Variant) -> Code {
    let mut part = Part::new(stage, variant, target, 0);
    let (index, mut names) = (part.writer.index(), part.names.clone());
    let mut extents = stage.parameters.extents.clone();
    (extents[0], names[0]) = ((extents[0] as u64).div_ceil(ROWS as u64) as i64, String::from("block"));
    let total: i64 = extents.iter().product();
    let end = part.writer.numbers.text(total);
    part.body += &format!("for ({index} t = BH_INDEX; t < {end}; t += BH_INDICES) {{\n");
    part.body += &part.writer.numbers.split(index, "t", &extents, &names);
    each_row(&mut part, index, stage.parameters.extents[0]);
    part.body += "}\n";
    let groups = (total as u64).div_ceil(target.group as u64).min(MOST_GROUPS) as usize;
    part.writer.finish(target, groups, target.group, &part.body)
}

/// The statements of the rows of a block. Without a look at the end the compiler has all reads under way at once.
fn each_row(part: &mut Part<'_>, index: &str, height: i64) {
    let (full, left) = (height / ROWS, height % ROWS);
    let loops = |part: &mut Part<'_>, rows: i64| {
        part.body += &format!("#pragma unroll\nfor (int row = 0; row < {rows}; row++) {{\n");
        part.body += &format!("const {index} i0 = block * {ROWS} + row;\n");
        part.steps();
        part.body += "}\n";
    };
    if left == 0 {
        return loops(part, ROWS);
    }
    part.body += &format!("if (block < {full}) {{\n");
    loops(part, ROWS);
    part.body += "} else {\n";
    loops(part, left);
    part.body += "}\n";
}

/// Rows that an item does, where rows read what their neighbours read.
const ROWS: i64 = 4;
/// Steps of a kernel whose rows are done together at most.
const MOST_STEPS: usize = 120;

/// How many rows of the outermost dimension one item does, as they read what their neighbours read and there are enough of
/// them; the error says why it does one.
pub(super) fn shares_rows(stage: &Stage, target: &Target) -> Result<i64, &'static str> {
    let (kernel, parameters) = (&stage.kernel, &stage.parameters);
    if !target.placements.has(Placement::Private) {
        return Err("not among the placements");
    }
    let [height, width @ ..] = parameters.extents.as_slice() else { return Err("there is no dimension") };
    if width.is_empty() || *height < 2 * ROWS {
        return Err("there are too few rows");
    }
    if kernel.steps.len() > MOST_STEPS {
        return Err("too many operations for some rows at once");
    }
    let reads: Vec<usize> = (0..kernel.slots.len()).filter(|&at| kernel.slots[at].mode == SlotMode::Read).collect();
    let shared = |a: usize, b: usize| {
        let step = parameters.stride(a)[0];
        let apart = parameters.starts[b] - parameters.starts[a];
        parameters.buffers[a] == parameters.buffers[b]
            && parameters.stride(a) == parameters.stride(b)
            && step != 0
            && apart % step == 0
            && (1..ROWS).contains(&(apart / step).abs())
    };
    if !reads.iter().enumerate().any(|(at, &a)| reads[at + 1..].iter().any(|&b| shared(a, b))) {
        return Err("no row reads what its neighbours read");
    }
    if parameters.iterations() / ROWS < target.items() {
        return Err("too few elements for the items of the device");
    }
    Ok(ROWS)
}

/// Several stages without reductions that do not depend on each other as one kernel: each has a range of the items. None if
/// there is nothing to do.
pub(crate) fn together(stages: &[Stage], target: &Target, variant: Variant) -> Option<Code> {
    let stages: Vec<&Stage> = stages.iter().filter(|stage| stage.parameters.iterations() > 0).collect();
    let [first, rest @ ..] = stages.as_slice() else { return None };
    if rest.is_empty() {
        return Some(map(first, target, variant));
    }
    let total: i64 = stages.iter().map(|stage| stage.parameters.iterations()).sum();
    let wide = total > 1 << 30 || stages.iter().any(|stage| is_wide(&stage.parameters, target));
    let mut writer = Writer::new(variant, wide);
    let (index, end) = (writer.index(), writer.numbers.text(total));
    let mut body = format!("for ({index} t = BH_INDEX; t < {end}; t += BH_INDICES) {{\n{index} u = t;\n");
    for stage in stages {
        let mut part = Part::with(stage, writer, 0);
        let count = part.writer.numbers.text(stage.parameters.iterations());
        let names = part.names.clone();
        part.body += &format!("if (u < {count}) {{\n");
        part.body += &part.writer.numbers.split(index, "u", &stage.parameters.extents, &names);
        part.steps();
        part.body += &format!("continue;\n}}\nu -= {count};\n");
        body += &part.body;
        writer = part.writer;
    }
    body += "}\n";
    let groups = (total as u64).div_ceil(target.group as u64).min(MOST_GROUPS) as usize;
    Some(writer.finish(target, groups, target.group, &body))
}

/// The line before the loop over elements.
fn unroll(kernel: &Kernel, target: &Target) -> &'static str {
    if unrolls(kernel, target).is_ok() { "#pragma unroll 4\n" } else { rolled(target) }
}

/// With reductions; `scratch` is the number of the first piece of memory between two kernels.
fn reduce(stage: &Stage, target: &Target, variant: Variant, fold: Fold, scratch: u16) -> Code {
    let (kernel, parameters) = (&stage.kernel, &stage.parameters);
    let common = Common::find(stage, target, &fold).ok();
    let table = if Table::fold(stage, target) == Some(fold) { Table::placed(stage, target).ok() } else { None };
    if common.is_none()
        && table.is_none()
        && let Some(code) = short(stage, target, variant, fold, scratch)
    {
        return code;
    }
    // Memory that all items bring needs all of them.
    let barrier = if common.is_some() || table.is_some() { "BH_BARRIER;\n" } else { barrier(&fold) };
    let mut part = Part::new(stage, variant, target, scratch);
    let index = part.writer.index();
    let (kept, kept_names) = named(stage, &part.names, Dim::Kept);
    let (reduced, reduced_names) = named(stage, &part.names, Dim::Reduced);
    let (outputs, each) = (kept.iter().product::<i64>(), reduced.iter().product::<i64>());
    // Rows that read each other's elements are folded by one item.
    let rows = variant == Variant::Specialised && kept.is_empty() && shares_rows(stage, target).is_ok();
    let (reduced, reduced_names, each) = match rows {
        false => (reduced, reduced_names, each),
        true => {
            let (mut blocks, mut names) = (reduced, reduced_names);
            (blocks[0], names[0]) = ((blocks[0] as u64).div_ceil(ROWS as u64) as i64, String::from("block"));
            let each = blocks.iter().product();
            (blocks, names, each)
        }
    };
    let (lanes, results) = (fold.lanes, fold.results());
    let tiles = (outputs as u64).div_ceil(results as u64);
    let (count, total) = (part.writer.numbers.text(outputs), part.writer.numbers.text(each));
    let folds = reductions(kernel);
    let shared = lanes > 1;
    let types: Vec<DType> = folds.iter().map(|(_, slot, _)| kernel.slots[*slot as usize].dtype).collect();
    let rounds = if shared { Rounds::new(&types, fold.group, target.local_bytes) } else { Rounds::one(folds.len()) };
    let mut text = String::new();
    for number in rounds.owners().filter(|_| shared) {
        writeln!(text, "BH_LOCAL {} l{number}[{}];", type_name(types[number]), fold.group).unwrap_or_default();
    }
    if let Some(table) = &table {
        table.bring(&mut part, fold.group, index);
    }
    text += &common.as_ref().map_or_else(String::new, |common| common.declare(stage));
    let (lane, result) = if fold.inner {
        (format!("item % {lanes}"), format!("item / {lanes}"))
    } else {
        (format!("item / {results}"), format!("item % {results}"))
    };
    text += &format!("const int item = BH_ITEM, lane = {lane}, result = {result};\n");
    let split = fold.splits > 1;
    let (splits, chunk) = (fold.splits, (each as u64).div_ceil(fold.splits as u64) as i64);
    if split {
        let (splits, chunk) = (part.writer.numbers.text(splits), part.writer.numbers.text(chunk));
        text += &format!("const {index} split = BH_GROUP % {splits}, first = split * {chunk};\n");
        text += &format!("const {index} end = min(({index})(first + {chunk}), ({index}){total});\n");
        text += &format!("for ({index} tile = BH_GROUP / {splits}; tile * {results} < {count}; ");
        text += &format!("tile += BH_GROUPS / {splits}) {{\n");
    } else {
        text += &format!("const {index} first = 0, end = {total};\n");
        text += &format!("for ({index} tile = BH_GROUP; tile * {results} < {count}; tile += BH_GROUPS) {{\n");
    }
    text += &format!("const {index} k = tile * {results} + result;\n");
    for (number, (opcode, slot, _)) in folds.iter().enumerate() {
        let dtype = kernel.slots[*slot as usize].dtype;
        text += &format!("{} a{number} = {};\n", type_name(dtype), neutral(*opcode, dtype));
    }
    // A store needs the kept indices, which are the same for all lanes.
    let within = format!("k < {count} ? k : 0");
    part.body += &text;
    part.body += &part.writer.numbers.split(index, &within, &kept, &kept_names);
    let unroll = if rows { "" } else { unroll(kernel, target) };
    // All items of the group bring what it shares, those without a result, too.
    let (from, stop) = match &common {
        Some(common) => {
            common.bring(&mut part, fold.group, index, &reduced_names[0]);
            ("from", "stop")
        }
        None => ("first", "end"),
    };
    part.body += &format!("if (k < {count}) {{\n{unroll}");
    part.body += &format!("for ({index} r = {from} + lane; r < {stop}; r += {lanes}) {{\n");
    part.body += &part.writer.numbers.split(index, "r", &reduced, &reduced_names);
    match rows {
        true => each_row(&mut part, index, parameters.extents[0]),
        false => part.steps(),
    }
    part.body += if common.is_some() { "}\n}\n}\n" } else { "}\n}\n" };
    for round in &rounds.each {
        if shared {
            let unit = if fold.inner { String::from("s") } else { format!("s * {results}") };
            for &number in round {
                part.body += &format!("l{}[item] = a{number};\n", rounds.place(number));
            }
            part.body += &format!("{barrier}{}if (lane < s) {{\n", halving(target, lanes));
            for &number in round {
                let (place, dtype) = (rounds.place(number), types[number]);
                let (left, right) = (format!("l{place}[item]"), format!("l{place}[item + {unit}]"));
                let combined = expression(folds[number].0, 0, dtype, dtype, &[&left, &right]);
                part.body += &format!("{left} = {combined};\n");
            }
            part.body += &format!("}}\n{barrier}}}\n");
        }
        part.body += &format!("if (lane == 0 && k < {count}) {{\n");
        for &number in round {
            let place = rounds.place(number);
            let value = if shared { format!("l{place}[item]") } else { format!("a{number}") };
            let element = if split {
                let memory = KernelMemory::Scratch(scratch + number as u16);
                let buffer = part.writer.buffer(memory, types[number], true);
                format!("{buffer}[k * {} + split]", part.writer.numbers.text(splits))
            } else {
                part.element(folds[number].1, number)
            };
            part.body += &format!("{element} = {value};\n");
        }
        part.body += "}\n";
        if shared {
            part.body += barrier;
        }
    }
    part.body += "}\n";
    let groups = match table {
        Some(_) => Table::groups(tiles, target),
        None => tiles.min(MOST_GROUPS / splits as u64).max(1) * splits as u64,
    };
    part.writer.finish(target, groups as usize, fold.group, &part.body)
}
