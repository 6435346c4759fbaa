//! Blocks that fold rows of one box, and operations on the rows and the results, as one kernel: some items share a row, and keep its
//! elements in registers from fold to fold. The kernel reads a row once, and stores nothing that only these blocks use. Each fold takes its
//! elements in the order in which the block alone would, so that results have the same bits.

use super::area::{Area, Folded, Place, folded};
use super::part::is_wide;
use super::stage::reduction;
use super::unroll::{MOST_GROUPS, halving};
use super::{Code, Fold, KernelMemory, Target, Variant, Writer, loaded};
use bh_bytecode::c::{expression, neutral, type_name};
use bh_bytecode::{BatchRef, DType, Instr, Kind, Opcode, Operand};
use bh_kernel::{BufferRef, ConstantRef, Lowered, Runner, Stage, lower};
use std::collections::HashMap;
use std::ops::Range;

/// Blocks of a kernel at most.
const MOST_BLOCKS: u32 = 8;
/// Elements of a row that an item has at most, and the bytes of those that it keeps from fold to fold: registers.
const EACH: i64 = 64;
const KEPT: usize = 512;
/// Bytes of local memory for the folds.
const LOCAL: usize = 16 << 10;

/// The kernel of some blocks.
pub(crate) struct Rows {
    pub(crate) code: Code,
    pub(crate) blocks: Range<u32>,
    /// Bases (indices in the batch) that it reads, and those that it writes: all of it?
    pub(crate) reads: Vec<u32>,
    pub(crate) writes: Vec<(u32, bool)>,
    /// Elements of the box.
    pub(crate) elements: i64,
}

/// A value of the kernel: of each element, or one of a row.
#[derive(Clone, Copy)]
struct Value {
    dtype: DType,
    each: bool,
    /// The phase that makes it, and the last one that uses it.
    phase: usize,
    last: usize,
    /// Is it made of results of this phase's folds?
    after: bool,
}

/// An operand: a value, by its number, or a constant, by its name.
#[derive(Clone)]
enum Known {
    Value(usize),
    Constant(String),
}

/// A statement of the loop over the elements of a row.
enum Line {
    /// It makes the value with this number.
    Make(usize, String),
    Other(String),
}

/// The work of a row's items up to the results of the next folds.
#[derive(Default)]
struct Phase {
    /// Statements before the loop, of the loop, and after the folds.
    before: String,
    body: Vec<Line>,
    after: String,
    /// The folds: opcode, type, and the number of the result.
    folds: Vec<(Opcode, DType, usize)>,
}

/// The kernel under construction.
struct Builder<'a, 'b> {
    area: Area<'a, 'b>,
    row: Folded,
    known: HashMap<Place, Known>,
    /// The blocks' results, and their places.
    made: HashMap<u32, Place>,
    reads: Vec<u32>,
    writes: Vec<(u32, bool)>,
    values: Vec<Value>,
    phases: Vec<Phase>,
    writer: Writer,
}

/// The kernel of a block and the blocks behind it that suit it; none if no other block uses the same elements.
pub(crate) fn rows(batch: &BatchRef<'_>, first: u32, target: &Target) -> Option<Rows> {
    let (row, shape) = folded(batch, first)?;
    let area = |end: u32| Area { batch, blocks: first..end, shape: shape.clone() };
    let last = (batch.blocks.len() as u32).min(first + MOST_BLOCKS);
    let (mut fold, mut stages, mut end) = (None, Vec::new(), first);
    while end < last
        && let Some(found) = suits(&area(end + 1), row, end, target, &mut fold)
    {
        stages.extend(found);
        end += 1;
    }
    let fold = fold?;
    let wide = stages.iter().any(|stage| is_wide(&stage.parameters, target));
    // Fewer blocks may do where all of them need too many registers, or write what others read.
    (first + 2..=end).rev().find_map(|end| {
        let mut builder = Builder {
            area: area(end),
            row,
            known: HashMap::new(),
            made: HashMap::new(),
            reads: Vec::new(),
            writes: Vec::new(),
            values: Vec::new(),
            phases: vec![Phase::default()],
            writer: Writer::new(Variant::Specialised, wide),
        };
        builder.instructions()?;
        let each = (shape[row.axis] as u64).div_ceil(fold.lanes as u64) as usize;
        builder.keeps(each, fold.group).then(|| builder.finish(fold, target))
    })
}

/// The nests of a block whose folds go along the rows as those of the blocks before, which share them as `fold` says; none if it has
/// others.
fn suits(area: &Area<'_, '_>, row: Folded, block: u32, target: &Target, fold: &mut Option<Fold>) -> Option<Vec<Stage>> {
    let stages = match lower(area.batch, block, Runner::Items) {
        Lowered::Loops(stages, _) => stages,
        Lowered::Nothing => Vec::new(),
        Lowered::Special(_) => return None,
    };
    if let Some(stage) = stages.iter().find(|stage| stage.kernel.reduces()) {
        let (own, shape) = folded(area.batch, block)?;
        let (outputs, each, found) = reduction(stage, target)?;
        let extent = shape[own.axis];
        let whole = outputs * each == shape.iter().product::<i64>() && each == extent;
        let fits = found.inner && found.splits == 1 && outputs > 1 && extent <= EACH * found.lanes as i64;
        if own != row || shape != area.shape || !whole || !fits || fold.is_some_and(|fold| fold != found) {
            return None;
        }
        *fold = Some(found);
    }
    area.batch.renames(&area.batch.blocks[block as usize]).is_empty().then_some(stages)
}

impl Builder<'_, '_> {
    fn instructions(&mut self) -> Option<()> {
        for instr in self.area.blocks.clone().flat_map(|block| self.area.instrs(block)).collect::<Vec<Instr>>() {
            let out = instr.outputs().first()?.as_view()?;
            let is_box = self.area.batch.shape(out) == self.area.shape;
            match instr.opcode.kind() {
                Kind::Reduction => self.fold(&instr, out)?,
                _ => self.compute(&instr, out, if is_box { 0 } else { self.row.mask })?,
            }
        }
        Some(())
    }

    /// The number of the phase under construction.
    fn now(&self) -> usize {
        self.phases.len() - 1
    }

    /// The phase in which something of each element is made of some operands: a new one if folds of this phase lead to them.
    fn advance(&mut self, args: &[Known]) {
        let now = self.now();
        let waits = |known: &Known| match known {
            Known::Value(number) => self.values[*number].phase == now && self.values[*number].after,
            Known::Constant(_) => false,
        };
        if args.iter().any(waits) {
            self.phases.push(Phase::default());
        }
    }

    fn value(&mut self, dtype: DType, each: bool) -> usize {
        let phase = self.now();
        let after = !each && !self.phases[phase].folds.is_empty();
        self.values.push(Value { dtype, each, phase, last: phase, after });
        self.values.len() - 1
    }

    /// A statement that makes a value.
    fn make(&mut self, number: usize, text: &str) {
        let Value { dtype, each, after, .. } = self.values[number];
        let text = format!("const {} v{number} = {text};\n", type_name(dtype));
        let Some(phase) = self.phases.last_mut() else { return };
        match (each, after) {
            (true, _) => phase.body.push(Line::Make(number, text)),
            (false, true) => phase.after += &text,
            (false, false) => phase.before += &text,
        }
    }

    /// How a statement of this phase reads something.
    fn name(&mut self, known: &Known) -> String {
        let now = self.now();
        match known {
            Known::Constant(name) => name.clone(),
            Known::Value(number) => {
                let value = &mut self.values[*number];
                value.last = now;
                if value.each && value.phase < now { format!("w{number}[e]") } else { format!("v{number}") }
            }
        }
    }

    /// An operand's value, loaded if necessary.
    fn read(&mut self, operand: Operand, mask: u16) -> Option<Known> {
        let dtype = self.area.batch.dtype(operand)?;
        let Some(view) = operand.as_view() else {
            let name = self.writer.constant(dtype, ConstantRef::Batch(operand.as_constant()?));
            return Some(Known::Constant(name));
        };
        let place = self.area.place(view, mask)?;
        if let Some(known) = self.known.get(&place) {
            return Some(known.clone());
        }
        if self.made.contains_key(&place.0) {
            return None;
        }
        if !self.reads.contains(&place.0) {
            self.reads.push(place.0);
        }
        let number = self.value(dtype, place.2[self.row.axis] != 0);
        let element = self.element(&place, dtype, false);
        self.make(number, &loaded(dtype, element));
        self.known.insert(place, Known::Value(number));
        Some(Known::Value(number))
    }

    /// The element of a base at the indices.
    fn element(&mut self, (base, start, strides): &Place, dtype: DType, writes: bool) -> String {
        let name = |axis: usize| if axis == self.row.axis { "r".to_owned() } else { format!("i{axis}") };
        let axes = (0..strides.len()).filter(|&axis| strides[axis] != 0);
        let terms: Vec<(i64, String)> = axes.map(|axis| (strides[axis], name(axis))).collect();
        let buffer = self.writer.buffer(KernelMemory::Of(BufferRef::Base(*base)), dtype, writes);
        format!("{buffer}[{}]", self.writer.numbers.address(*start, &terms))
    }

    /// An elementwise operation on views of the box without the axes of a mask.
    fn compute(&mut self, instr: &Instr, out: u32, mask: u16) -> Option<()> {
        let (param, input, output) = self.area.elementwise(instr, out)?;
        let args: Vec<Known> = instr.inputs().iter().map(|&it| self.read(it, mask)).collect::<Option<_>>()?;
        if instr.opcode == Opcode::Copy && input == output {
            return self.store(out, mask, args[0].clone());
        }
        // A value that all elements of a row share is computed once.
        let is_each = |known: &Known| matches!(known, Known::Value(number) if self.values[*number].each);
        let each = args.iter().any(is_each);
        if each {
            self.advance(&args);
        }
        let names: Vec<String> = args.iter().map(|arg| self.name(arg)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let number = self.value(output, each);
        self.make(number, &expression(instr.opcode, param, input, output, &names));
        self.store(out, mask, Known::Value(number))
    }

    /// A fold of the rows.
    fn fold(&mut self, instr: &Instr, out: u32) -> Option<()> {
        if !self.area.folds(instr, self.row.mask) {
            return None;
        }
        let folded = self.read(instr.inputs()[0], 0)?;
        self.advance(std::slice::from_ref(&folded));
        let (dtype, name) = (self.area.batch.base_of(out)?.dtype(), self.name(&folded));
        let number = self.values.len();
        let phase = self.phases.last_mut()?;
        let text = expression(instr.opcode, 0, dtype, dtype, &[&format!("a{number}"), &name]);
        phase.body.push(Line::Other(format!("a{number} = {text};\n")));
        phase.folds.push((instr.opcode, dtype, number));
        self.value(dtype, false);
        self.store(out, self.row.mask, Known::Value(number))
    }

    /// A view gets a value, which is stored if somebody else sees the base. The base must be made through one view, and not be read before.
    fn store(&mut self, out: u32, mask: u16, value: Known) -> Option<()> {
        let place = self.area.place(out, mask)?;
        let made = self.made.entry(place.0).or_insert_with(|| place.clone());
        if *made != place || self.reads.contains(&place.0) {
            return None;
        }
        if !self.area.is_own(place.0) {
            let (record, base) = (&self.area.batch.views[out as usize], self.area.batch.base_of(out)?);
            self.writes.push((place.0, record.len == base.len));
            self.advance(std::slice::from_ref(&value));
            let (element, name) = (self.element(&place, base.dtype(), true), self.name(&value));
            let phase = self.phases.last_mut()?;
            match mask {
                0 => phase.body.push(Line::Other(format!("{element} = {name};\n"))),
                _ => phase.after += &format!("if (lane == 0 && is_row) {element} = {name};\n"),
            }
        }
        self.known.insert(place, value);
        Some(())
    }

    /// Do items keep anything from phase to phase, for `each` elements, and is there room for that, and for the folds of a group?
    fn keeps(&self, each: usize, group: usize) -> bool {
        let folds: usize = self.phases.iter().flat_map(|it| &it.folds).map(|(_, dtype, _)| dtype.size() * group).sum();
        let is_kept = |value: &&Value| value.each && value.last > value.phase;
        let kept = |phase: usize| {
            let live = self.values.iter().filter(is_kept).filter(|value| (value.phase..value.last).contains(&phase));
            live.map(|value| value.dtype.size() * each).sum::<usize>()
        };
        self.values.iter().any(|value| is_kept(&value))
            && folds <= LOCAL
            && (0..self.phases.len()).all(|phase| kept(phase) <= KEPT)
    }

    fn finish(mut self, fold: Fold, target: &Target) -> Rows {
        let index = self.writer.index();
        let (lanes, results, extent) = (fold.lanes, fold.results(), self.area.shape[self.row.axis]);
        let outer = (0..self.area.shape.len()).filter(|axis| self.row.mask >> axis & 1 == 0);
        let (extents, names): (Vec<i64>, Vec<String>) =
            outer.map(|axis| (self.area.shape[axis], format!("i{axis}"))).unzip();
        let count: i64 = extents.iter().product();
        let mut text = String::new();
        for &(_, dtype, number) in self.phases.iter().flat_map(|phase| &phase.folds).filter(|_| lanes > 1) {
            text += &format!("BH_LOCAL {} l{number}[{}];\n", type_name(dtype), fold.group);
        }
        text += &format!("const int item = BH_ITEM, lane = item % {lanes}, result = item / {lanes};\n");
        text += &format!("for ({index} tile = BH_GROUP; tile * {results} < {count}; tile += BH_GROUPS) {{\n");
        text += &format!("const {index} k = tile * {results} + result;\nconst int is_row = k < {count};\n");
        text += &self.writer.numbers.split(index, "(is_row ? k : 0)", &extents, &names);
        for phase in &self.phases {
            text += &self.phase(phase, (extent, index), fold, target);
        }
        // The next row's results take the places of these.
        text += if lanes > 1 { "BH_BARRIER;\n}\n" } else { "}\n" };
        let groups = (count as u64).div_ceil(results as u64).clamp(1, MOST_GROUPS);
        let elements = self.area.shape.iter().product();
        let Builder { area, reads, writes, writer, .. } = self;
        let code = writer.finish(target, groups as usize, fold.group, &text);
        Rows { code, blocks: area.blocks, reads, writes, elements }
    }

    /// The statements of a phase for a row of `extent` elements.
    fn phase(&self, phase: &Phase, (extent, index): (i64, &str), fold: Fold, target: &Target) -> String {
        let lanes = fold.lanes as i64;
        let each = (extent as u64).div_ceil(lanes as u64);
        let mut text = phase.before.clone();
        for &(opcode, dtype, number) in &phase.folds {
            text += &format!("{} a{number} = {};\n", type_name(dtype), neutral(opcode, dtype));
        }
        let kept = |number: usize| self.values[number].last > self.values[number].phase;
        let mut body = String::new();
        for line in &phase.body {
            match line {
                Line::Other(line) => body += line,
                Line::Make(number, line) => {
                    body += line;
                    if kept(*number) {
                        text += &format!("{} w{number}[{each}];\n", type_name(self.values[*number].dtype));
                        body += &format!("w{number}[e] = v{number};\n");
                    }
                }
            }
        }
        if !body.is_empty() {
            // An array is in registers only if all of its indices are numbers.
            let unroll = if target.is_processor() { "#pragma unroll 1\n" } else { "#pragma unroll\n" };
            let within = if extent % lanes == 0 { String::from("is_row") } else { format!("is_row && r < {extent}") };
            text += &format!("{unroll}for (int e = 0; e < {each}; e++) {{\nconst {index} r = e * {lanes} + lane;\n");
            text += &format!("if ({within}) {{\n{body}}}\n}}\n");
        }
        text += &joined(&phase.folds, fold.lanes, target);
        text + &phase.after
    }
}

/// The statements that join what the items of a row have folded: the results, which each of them knows then.
fn joined(folds: &[(Opcode, DType, usize)], lanes: usize, target: &Target) -> String {
    let mut text = String::new();
    if lanes > 1 && !folds.is_empty() {
        folds.iter().for_each(|(_, _, number)| text += &format!("l{number}[item] = a{number};\n"));
        text += &format!("BH_BARRIER;\n{}if (lane < s) {{\n", halving(target, lanes));
        for &(opcode, dtype, number) in folds {
            let own = format!("l{number}[item]");
            text += &format!(
                "{own} = {};\n",
                expression(opcode, 0, dtype, dtype, &[&own, &format!("l{number}[item + s]")])
            );
        }
        text += "}\nBH_BARRIER;\n}\n";
    }
    for &(_, dtype, number) in folds {
        let result = if lanes > 1 { format!("l{number}[item - lane]") } else { format!("a{number}") };
        text += &format!("const {} v{number} = {};\n", type_name(dtype), loaded(dtype, result));
    }
    text
}
