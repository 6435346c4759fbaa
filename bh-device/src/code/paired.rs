//! Two blocks as one kernel: the first folds a few elements, as the components of a vector, and the second folds along another axis
//! what is made of the results and of the elements themselves. An item keeps all components in registers, so that nothing of the
//! box is stored. Each fold takes its elements in the order in which the block alone would, so that results have the same bits.

use super::area::{Area, Folded, Place, folded};
use super::part::is_wide;
use super::stage::{joined, reduction, reductions, stage};
use super::unroll::{MOST_GROUPS, halving};
use super::{Code, Fold, KernelMemory, Target, Variant, Writer, loaded};
use bh_bytecode::c::{expression, neutral, type_name};
use bh_bytecode::{BatchRef, DType, Instr, Kind, Opcode, Operand};
use bh_kernel::{BufferRef, ConstantRef, Lowered, Runner, Stage, Temporary, lower};
use std::collections::HashMap;

/// Components at most: of more, items share a result, and registers are few.
const MOST: i64 = 7;
/// Bytes of local memory for folds that the items of a group share.
const LOCAL: usize = 16 << 10;

/// The kernels of two blocks.
pub(crate) struct Paired {
    pub(crate) codes: Vec<Code>,
    /// Bytes of memory between the kernels.
    pub(crate) scratch: Vec<usize>,
    /// Bases (indices in the batch) that the first kernel reads.
    pub(crate) reads: Vec<u32>,
    /// The nests of the second block: its fold, and what follows.
    pub(crate) stages: Vec<Stage>,
    /// Memory between these.
    pub(crate) temporaries: Vec<Temporary>,
    /// Elements of the box.
    pub(crate) elements: i64,
}

/// A value of an element of the box: of each component, or one for all of them.
#[derive(Clone)]
struct Value {
    name: String,
    each: bool,
}

impl Value {
    fn of(&self, component: i64) -> String {
        if self.each { format!("{}_{component}", self.name) } else { self.name.clone() }
    }
}

/// The kernel under construction.
struct Pair<'a, 'b> {
    area: Area<'a, 'b>,
    few: Folded,
    long: Folded,
    values: HashMap<Place, Value>,
    /// The blocks' results, and their places.
    made: HashMap<u32, Place>,
    reads: Vec<u32>,
    writer: Writer,
    body: String,
    count: usize,
    /// Does the second block use anything that the first one makes?
    linked: bool,
}

/// The kernels of a block and the next one; none if they do not suit each other.
pub(crate) fn paired(batch: &BatchRef<'_>, first: u32, target: &Target) -> Option<Paired> {
    let [few, long] = [folded(batch, first)?, folded(batch, first + 1)?];
    let (few, long, shape) = (few.0, long.0, (few.1 == long.1).then_some(few.1)?);
    if few.mask & long.mask != 0 || shape[few.axis] > MOST || shape.contains(&0) {
        return None;
    }
    let (Lowered::Loops(short, _), Lowered::Loops(stages, temporaries)) =
        (lower(batch, first, Runner::Items), lower(batch, first + 1, Runner::Items))
    else {
        return None;
    };
    let (_, _, alone) = reduction(short.first().filter(|stage| stage.kernel.reduces())?, target)?;
    let (outputs, each, fold) = reduction(stages.first().filter(|stage| stage.kernel.reduces())?, target)?;
    if (alone.lanes, alone.splits) != (1, 1) || each != shape[long.axis] {
        return None;
    }
    let wide = short.iter().chain(&stages).any(|stage| is_wide(&stage.parameters, target));
    let mut pair = Pair {
        area: Area { batch, blocks: first..first + 2, shape },
        few,
        long,
        values: HashMap::new(),
        made: HashMap::new(),
        reads: Vec::new(),
        writer: Writer::new(Variant::Specialised, wide),
        body: String::new(),
        count: 0,
        linked: false,
    };
    let folds = pair.instructions()?;
    let results = pair.results(&stages[0], &folds)?;
    let (elements, mut scratch) = (pair.area.shape.iter().product(), Vec::new());
    if fold.splits > 1 {
        scratch.extend(results.iter().map(|result| (outputs * fold.splits) as usize * result.dtype.size()));
    }
    let local = results.iter().map(|it| it.dtype.size()).sum::<usize>() * pair.components() as usize * fold.group;
    if !pair.linked || (fold.lanes > 1 && local > LOCAL) {
        return None;
    }
    let reads = pair.reads.clone();
    let mut codes = vec![pair.kernel(&results, fold, target)];
    if fold.splits > 1 {
        codes.push(joined(&stages[0], fold.splits, target, Variant::Specialised, 0));
    }
    codes.extend(stages[1..].iter().flat_map(|it| stage(it, target, Variant::Specialised, &mut scratch)));
    Some(Paired { codes, scratch, reads, stages, temporaries, elements })
}

/// A fold of the second block: its opcode, the type, and where its result goes.
struct Outcome {
    opcode: Opcode,
    dtype: DType,
    value: Value,
    buffer: BufferRef,
    start: i64,
    /// For each axis of the box.
    strides: Vec<i64>,
}

impl Pair<'_, '_> {
    fn components(&self) -> i64 {
        self.area.shape[self.few.axis]
    }

    /// Goes through the instructions of both blocks. Returns the folds of the second one: the instruction, and what it folds.
    fn instructions(&mut self) -> Option<Vec<(Instr, Value)>> {
        let mut folds = Vec::new();
        for second in [false, true] {
            for instr in self.area.instrs(self.area.blocks.start + u32::from(second)) {
                let out = instr.outputs().first()?.as_view()?;
                let shape = self.area.batch.shape(out);
                let own = if second { self.long.mask } else { self.few.mask };
                if instr.opcode.kind() == Kind::Reduction {
                    let value = self.folded(&instr, own, second)?;
                    match second {
                        true => folds.push((instr, value)),
                        false => self.fold(&instr, out, value)?,
                    }
                } else if shape == self.area.shape {
                    self.compute(&instr, out, 0, second)?;
                } else if !second {
                    self.compute(&instr, out, own, second)?;
                }
            }
        }
        Some(folds)
    }

    /// The value that a fold over the axes of a mask folds.
    fn folded(&mut self, instr: &Instr, mask: u16, second: bool) -> Option<Value> {
        if self.area.folds(instr, mask) { self.read(instr.inputs()[0], 0, second) } else { None }
    }

    /// The value of an operand, which may have to be loaded.
    fn read(&mut self, operand: Operand, mask: u16, second: bool) -> Option<Value> {
        let dtype = self.area.batch.dtype(operand)?;
        let Some(view) = operand.as_view() else {
            let name = self.writer.constant(dtype, ConstantRef::Batch(operand.as_constant()?));
            return Some(Value { name, each: false });
        };
        let place = self.area.place(view, mask)?;
        if let Some(value) = self.values.get(&place) {
            self.linked |= second && self.made.contains_key(&place.0);
            return Some(value.clone());
        }
        if self.made.contains_key(&place.0) {
            return None;
        }
        if !self.reads.contains(&place.0) {
            self.reads.push(place.0);
        }
        let each = place.2[self.few.axis] != 0;
        let value = self.next(each);
        let buffer = self.writer.buffer(KernelMemory::Of(BufferRef::Base(place.0)), dtype, false);
        for component in 0..if each { self.components() } else { 1 } {
            let address = self.address(place.1, &place.2, component, "r");
            let (name, element) = (value.of(component), loaded(dtype, format!("{buffer}[{address}]")));
            self.body += &format!("const {} {name} = {element};\n", type_name(dtype));
        }
        self.values.insert(place, value.clone());
        Some(value)
    }

    fn next(&mut self, each: bool) -> Value {
        self.count += 1;
        Value { name: format!("v{}", self.count - 1), each }
    }

    /// The address of a component; `along` is the index of the second fold's axis.
    fn address(&mut self, start: i64, strides: &[i64], component: i64, along: &str) -> String {
        let name = |axis: usize| if axis == self.long.axis { along.to_owned() } else { format!("i{axis}") };
        let others = (0..strides.len()).filter(|&axis| axis != self.few.axis && strides[axis] != 0);
        let terms: Vec<(i64, String)> = others.map(|axis| (strides[axis], name(axis))).collect();
        self.writer.numbers.address(start + strides[self.few.axis] * component, &terms)
    }

    /// An elementwise operation on views of the box without the axes of a mask.
    fn compute(&mut self, instr: &Instr, out: u32, mask: u16, second: bool) -> Option<()> {
        let (param, input, output) = self.area.elementwise(instr, out)?;
        let args: Vec<Value> =
            instr.inputs().iter().map(|&operand| self.read(operand, mask, second)).collect::<Option<_>>()?;
        if instr.opcode == Opcode::Copy && input == output {
            return self.make(out, mask, args[0].clone());
        }
        let value = self.next(args.iter().any(|arg| arg.each));
        for component in 0..if value.each { self.components() } else { 1 } {
            let names: Vec<String> = args.iter().map(|arg| arg.of(component)).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let text = expression(instr.opcode, param, input, output, &names);
            self.body += &format!("const {} {} = {text};\n", type_name(output), value.of(component));
        }
        self.make(out, mask, value)
    }

    /// A fold of the first block.
    fn fold(&mut self, instr: &Instr, out: u32, folded: Value) -> Option<()> {
        let (dtype, value) = (self.area.batch.base_of(out)?.dtype(), self.next(false));
        let name = &value.name;
        self.body += &format!("{} {name} = {};\n", type_name(dtype), neutral(instr.opcode, dtype));
        for component in 0..self.components() {
            let text = expression(instr.opcode, 0, dtype, dtype, &[name, &folded.of(component)]);
            self.body += &format!("{name} = {text};\n");
        }
        self.make(out, self.few.mask, value)
    }

    /// A view gets a value. Its base must be one that nobody else sees, made through one view.
    fn make(&mut self, out: u32, mask: u16, value: Value) -> Option<()> {
        let place = self.area.place(out, mask)?;
        let known = self.made.entry(place.0).or_insert_with(|| place.clone());
        if *known != place || self.reads.contains(&place.0) || !self.area.is_own(place.0) {
            return None;
        }
        self.values.insert(place, value);
        Some(())
    }

    /// Where the results of the second block's folds go. Nothing of that is read before.
    fn results(&self, stage: &Stage, folds: &[(Instr, Value)]) -> Option<Vec<Outcome>> {
        let lowered = reductions(&stage.kernel);
        let shape = self.area.without(self.long.mask);
        let result = |((instr, value), &(opcode, slot, _)): (&(Instr, Value), &(Opcode, u16, _))| {
            let out = instr.outputs()[0].as_view()?;
            let (base, start, mut strides) = self.area.place(out, self.long.mask)?;
            let (buffer, known) = (stage.parameters.buffers[slot as usize], stage.parameters.starts[slot as usize]);
            let start = match buffer {
                BufferRef::Base(own)
                    if own == base && !self.reads.contains(&base) && !self.made.contains_key(&base) =>
                {
                    start
                }
                BufferRef::Temporary(_) => {
                    strides = self.spread(&contiguous(&shape));
                    0
                }
                _ => return None,
            };
            // Nests that walk kept axes backward number results in another order.
            (known == start && opcode == instr.opcode).then_some(())?;
            let dtype = stage.kernel.slots[slot as usize].dtype;
            Some(Outcome { opcode, dtype, value: value.clone(), buffer, start, strides })
        };
        if folds.len() != lowered.len() {
            return None;
        }
        folds.iter().zip(&lowered).map(result).collect()
    }

    /// Strides of the kept axes of the second fold as strides of all axes that have more than one element.
    fn spread(&self, kept: &[i64]) -> Vec<i64> {
        let mut kept = kept.iter();
        let stride = |axis: usize| match self.long.mask >> axis & 1 {
            1 => 0,
            _ => kept.next().copied().filter(|_| self.area.shape[axis] > 1).unwrap_or(0),
        };
        (0..self.area.shape.len()).map(stride).collect()
    }

    /// The kernel: each item has some results of all components.
    fn kernel(mut self, results: &[Outcome], fold: Fold, target: &Target) -> Code {
        let (components, index) = (self.components(), self.writer.index());
        let (lanes, across, splits) = (fold.lanes, fold.results(), fold.splits);
        let outer = (0..self.area.shape.len()).filter(|axis| (self.few.mask | self.long.mask) >> axis & 1 == 0);
        let (extents, names): (Vec<i64>, Vec<String>) =
            outer.map(|axis| (self.area.shape[axis], format!("i{axis}"))).unzip();
        let count: i64 = extents.iter().product();
        let (total, chunk) =
            (self.area.shape[self.long.axis], (self.area.shape[self.long.axis] as u64).div_ceil(splits as u64));
        let all: Vec<(usize, i64)> =
            (0..results.len()).flat_map(|number| (0..components).map(move |component| (number, component))).collect();
        let name = |number: usize| type_name(results[number].dtype);
        let shared = lanes > 1;
        let mut text = String::new();
        for &(number, component) in all.iter().filter(|_| shared) {
            text += &format!("BH_LOCAL {} l{number}_{component}[{}];\n", name(number), fold.group);
        }
        text += &format!("const int item = BH_ITEM, lane = item / {across}, result = item % {across};\n");
        text += &format!("const {index} split = BH_GROUP % {splits}, first = split * {chunk};\n");
        text += &format!("const {index} end = min(({index})(first + {chunk}), ({index}){total});\n");
        text += &format!(
            "for ({index} tile = BH_GROUP / {splits}; tile * {across} < {count}; tile += BH_GROUPS / {splits}) {{\n"
        );
        text += &format!("const {index} k = tile * {across} + result;\n");
        for &(number, component) in &all {
            let zero = neutral(results[number].opcode, results[number].dtype);
            text += &format!("{} a{number}_{component} = {zero};\n", name(number));
        }
        text += &self.writer.numbers.split(index, &format!("(k < {count} ? k : 0)"), &extents, &names);
        text +=
            &format!("if (k < {count}) {{\nfor ({index} r = first + lane; r < end; r += {lanes}) {{\n{}", self.body);
        let combined = |number: usize, left: &str, right: &str| {
            let Outcome { opcode, dtype, .. } = results[number];
            format!("{left} = {};\n", expression(opcode, 0, dtype, dtype, &[left, right]))
        };
        for &(number, component) in &all {
            text += &combined(number, &format!("a{number}_{component}"), &results[number].value.of(component));
        }
        text += "}\n}\n";
        if shared {
            all.iter().for_each(|(number, component)| {
                text += &format!("l{number}_{component}[item] = a{number}_{component};\n")
            });
            text += &format!("BH_BARRIER;\n{}if (lane < s) {{\n", halving(target, lanes));
            for &(number, component) in &all {
                let own = format!("l{number}_{component}");
                text += &combined(number, &format!("{own}[item]"), &format!("{own}[item + s * {across}]"));
            }
            text += "}\nBH_BARRIER;\n}\n";
        }
        text += &format!("if (lane == 0 && k < {count}) {{\n");
        let shape = self.area.without(self.long.mask);
        let dense = self.spread(&contiguous(&shape));
        for &(number, component) in &all {
            let result = &results[number];
            let element = if splits > 1 {
                let buffer = self.writer.buffer(KernelMemory::Scratch(number as u16), result.dtype, true);
                format!("{buffer}[({}) * {splits} + split]", self.address(0, &dense, component, "0"))
            } else {
                let buffer = self.writer.buffer(KernelMemory::Of(result.buffer), result.dtype, true);
                format!("{buffer}[{}]", self.address(result.start, &result.strides, component, "0"))
            };
            let value = if shared { format!("l{number}_{component}[item]") } else { format!("a{number}_{component}") };
            text += &format!("{element} = {value};\n");
        }
        text += if shared { "}\nBH_BARRIER;\n}\n" } else { "}\n}\n" };
        let tiles = (count as u64).div_ceil(across as u64);
        let groups = tiles.min(MOST_GROUPS / splits as u64).max(1) * splits as u64;
        self.writer.finish(target, groups as usize, fold.group, &text)
    }
}

/// The strides of a dense array in C order.
fn contiguous(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    strides
}
