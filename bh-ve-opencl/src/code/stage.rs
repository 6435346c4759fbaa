//! A stage of a lowered block as one or two kernels: element by element, or with reductions.

use super::{Code, Fold, Place, Target, Variant, Writer};
use bh_bytecode::c::{expression, neutral, type_name};
use bh_bytecode::{DType, Opcode};
use bh_fuser::lower::{Arg, BufferRef, Dim, Kernel, Parameters, Slot, SlotMode, Stage, Step, StrideClass};
use std::fmt::Write;

/// The kernels of a stage, in order; `scratch` gets the bytes of each piece of memory between them. None if there is
/// nothing to do.
pub(crate) fn stage(stage: &Stage, target: &Target, variant: Variant, scratch: &mut Vec<usize>) -> Vec<Code> {
    let (kernel, parameters) = (&stage.kernel, &stage.parameters);
    let extents_of = |role: Dim| {
        let pairs = kernel.dims.iter().zip(&parameters.extents);
        pairs.filter(|(dim, _)| **dim == role).map(|(_, extent)| *extent).collect::<Vec<i64>>()
    };
    let (kept, reduced) = (extents_of(Dim::Kept), extents_of(Dim::Reduced));
    let (outputs, each) = (kept.iter().product::<i64>(), reduced.iter().product::<i64>());
    if !kernel.reduces() {
        // Without reductions all dimensions are kept, whatever they are called.
        return if parameters.iterations() == 0 { Vec::new() } else { vec![map(stage, target, variant)] };
    }
    if outputs == 0 {
        return Vec::new();
    }
    let inner = kernel.dims.last() == Some(&Dim::Reduced);
    let fold = Fold::choose(target, outputs, each, inner);
    let first = scratch.len();
    if fold.splits > 1 {
        for (_, slot, _) in reductions(kernel) {
            scratch.push((outputs * fold.splits) as usize * kernel.slots[slot as usize].dtype.size());
        }
    }
    let mut codes = vec![reduce(stage, target, variant, fold, first as u16)];
    if fold.splits > 1 {
        let finish = finish(stage, &kept, fold.splits);
        let fold = Fold { splits: 1, ..Fold::choose(target, outputs, fold.splits, true) };
        codes.push(reduce(&finish, target, variant, fold, first as u16));
    }
    codes
}

/// The reductions of a kernel: opcode, slot of the results, what is folded.
fn reductions(kernel: &Kernel) -> Vec<(Opcode, u16, Arg)> {
    let of = |step: &Step| match *step {
        Step::Reduce { opcode, slot, arg } => Some((opcode, slot, arg)),
        _ => None,
    };
    kernel.steps.iter().filter_map(of).collect()
}

/// Memory between the two kernels of a reduction, as a slot names it.
const PARTIALS: BufferRef = BufferRef::None;

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
            kernel.slots.push(Slot { dtype: result.dtype, mode, inner: StrideClass::Unit, same_as: place });
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

/// A kernel under construction.
struct Part<'a> {
    stage: &'a Stage,
    writer: Writer,
    /// Names of the indices of all dimensions.
    names: Vec<String>,
    scratch: u16,
    body: String,
}

/// Element by element.
fn map(stage: &Stage, target: &Target, variant: Variant) -> Code {
    let mut part = Part::new(stage, variant, target, 0);
    let total = stage.parameters.iterations();
    let (index, names) = (part.writer.index(), part.names.clone());
    let end = part.writer.numbers.text(total);
    part.body += unroll(&stage.kernel);
    part.body += &format!("for ({index} t = get_global_id(0); t < {end}; t += get_global_size(0)) {{\n");
    part.body += &part.writer.numbers.split(index, "t", &stage.parameters.extents, &names);
    part.steps();
    part.body += "}\n";
    let each = if total >= EACH * TURNS * target.items() { EACH } else { 1 };
    let groups = (total as u64).div_ceil(target.group as u64 * each as u64).min(MOST_GROUPS) as usize;
    part.writer.finish(target, groups, target.group, &part.body)
}

/// Elements of an item, one after the other, where there are enough: several reads are on their way at once.
const EACH: i64 = 4;
/// So many times the items that fill the device are enough.
const TURNS: i64 = 4;
/// Longer bodies are not unrolled.
const LONG: usize = 40;

/// What comes before the loop over elements.
fn unroll(kernel: &Kernel) -> &'static str {
    if kernel.steps.len() <= LONG { "#pragma unroll 4\n" } else { "" }
}

/// More groups than this take turns.
const MOST_GROUPS: u64 = 1 << 22;

/// With reductions; `scratch` is the number of the first piece of memory between two kernels.
fn reduce(stage: &Stage, target: &Target, variant: Variant, fold: Fold, scratch: u16) -> Code {
    let (kernel, parameters) = (&stage.kernel, &stage.parameters);
    let mut part = Part::new(stage, variant, target, scratch);
    let index = part.writer.index();
    let of_role = |role: Dim, names: &[String]| {
        let all = kernel.dims.iter().zip(&parameters.extents).zip(names);
        let chosen = all.filter(|((dim, _), _)| **dim == role).map(|((_, extent), name)| (*extent, name.clone()));
        chosen.unzip::<i64, String, Vec<i64>, Vec<String>>()
    };
    let (kept, kept_names) = of_role(Dim::Kept, &part.names);
    let (reduced, reduced_names) = of_role(Dim::Reduced, &part.names);
    let (outputs, each) = (kept.iter().product::<i64>(), reduced.iter().product::<i64>());
    let (lanes, results) = (fold.lanes, fold.results());
    let tiles = (outputs as u64).div_ceil(results as u64);
    let (count, total) = (part.writer.numbers.text(outputs), part.writer.numbers.text(each));
    let folds = reductions(kernel);
    let shared = lanes > 1;
    let mut text = String::new();
    if shared {
        for (number, (_, slot, _)) in folds.iter().enumerate() {
            let name = type_name(kernel.slots[*slot as usize].dtype);
            writeln!(text, "__local {name} l{number}[{}];", fold.group).unwrap_or_default();
        }
    }
    let (lane, result) = if fold.inner {
        (format!("item % {lanes}"), format!("item / {lanes}"))
    } else {
        (format!("item / {results}"), format!("item % {results}"))
    };
    text += &format!("const int item = get_local_id(0), lane = {lane}, result = {result};\n");
    let split = fold.splits > 1;
    let (splits, chunk) = (fold.splits, (each as u64).div_ceil(fold.splits as u64) as i64);
    if split {
        let (splits, chunk) = (part.writer.numbers.text(splits), part.writer.numbers.text(chunk));
        text += &format!("const {index} split = get_group_id(0) % {splits}, first = split * {chunk};\n");
        text += &format!("const {index} end = min(({index})(first + {chunk}), ({index}){total});\n");
        text += &format!("for ({index} tile = get_group_id(0) / {splits}; tile * {results} < {count}; ");
        text += &format!("tile += get_num_groups(0) / {splits}) {{\n");
    } else {
        text += &format!("const {index} first = 0, end = {total};\n");
        text += &format!(
            "for ({index} tile = get_group_id(0); tile * {results} < {count}; tile += get_num_groups(0)) {{\n"
        );
    }
    text += &format!("const {index} k = tile * {results} + result;\n");
    for (number, (opcode, slot, _)) in folds.iter().enumerate() {
        let dtype = kernel.slots[*slot as usize].dtype;
        text += &format!("{} a{number} = {};\n", type_name(dtype), neutral(*opcode, dtype));
    }
    // What a store needs is the kept indices, which are the same for all lanes.
    let within = format!("k < {count} ? k : 0");
    part.body += &text;
    part.body += &part.writer.numbers.split(index, &within, &kept, &kept_names);
    part.body += &format!("if (k < {count}) {{\n{}", unroll(kernel));
    part.body += &format!("for ({index} r = first + lane; r < end; r += {lanes}) {{\n");
    part.body += &part.writer.numbers.split(index, "r", &reduced, &reduced_names);
    part.steps();
    part.body += "}\n}\n";
    let combine = |number: usize, left: &str, right: &str| {
        let (opcode, slot, _) = folds[number];
        let dtype = kernel.slots[slot as usize].dtype;
        expression(opcode, 0, dtype, dtype, &[left, right])
    };
    if shared {
        let unit = if fold.inner { String::from("s") } else { format!("s * {results}") };
        for number in 0..folds.len() {
            part.body += &format!("l{number}[item] = a{number};\n");
        }
        part.body += "barrier(CLK_LOCAL_MEM_FENCE);\n";
        part.body += &format!("for (int s = {}; s > 0; s >>= 1) {{\nif (lane < s) {{\n", lanes / 2);
        for number in 0..folds.len() {
            let (left, right) = (format!("l{number}[item]"), format!("l{number}[item + {unit}]"));
            part.body += &format!("{left} = {};\n", combine(number, &left, &right));
        }
        part.body += "}\nbarrier(CLK_LOCAL_MEM_FENCE);\n}\n";
    }
    part.body += &format!("if (lane == 0 && k < {count}) {{\n");
    for (number, (_, slot, _)) in folds.iter().enumerate() {
        let value = if shared { format!("l{number}[item]") } else { format!("a{number}") };
        let dtype = kernel.slots[*slot as usize].dtype;
        let target = if split {
            let buffer = part.writer.buffer(Place::Scratch(scratch + number as u16), dtype, true);
            format!("{buffer}[k * {} + split]", part.writer.numbers.text(splits))
        } else {
            part.element(*slot, number)
        };
        part.body += &format!("{target} = {value};\n");
    }
    part.body += "}\n";
    if shared {
        part.body += "barrier(CLK_LOCAL_MEM_FENCE);\n";
    }
    part.body += "}\n";
    let groups = tiles.min(MOST_GROUPS / splits as u64).max(1) * splits as u64;
    part.writer.finish(target, groups as usize, fold.group, &part.body)
}

impl<'a> Part<'a> {
    fn new(stage: &'a Stage, variant: Variant, target: &Target, scratch: u16) -> Part<'a> {
        let names = (0..stage.parameters.extents.len()).map(|dim| format!("i{dim}")).collect();
        let writer = Writer::new(variant, is_wide(&stage.parameters, target));
        Part { stage, writer, names, scratch, body: String::new() }
    }

    /// The memory of a slot; of the slots between two kernels, that of the reduction with this number.
    fn place(&self, slot: u16, number: usize) -> Place {
        match self.stage.parameters.buffers[slot as usize] {
            PARTIALS => Place::Scratch(self.scratch + number as u16),
            buffer => Place::Of(buffer),
        }
    }

    /// The element of a slot at the indices.
    fn element(&mut self, slot: u16, number: usize) -> String {
        let known = self.stage.kernel.slots[slot as usize];
        let buffer = self.writer.buffer(self.place(slot, number), known.dtype, known.mode.writes());
        format!("{buffer}[{}]", self.address(slot))
    }

    fn address(&mut self, slot: u16) -> String {
        let parameters = &self.stage.parameters;
        let strides = parameters.stride(slot as usize);
        // An extent of 1 has only the index 0.
        let terms: Vec<(i64, String)> = (strides.iter().zip(&parameters.extents).zip(&self.names))
            .map(|((stride, extent), name)| (if *extent == 1 { 0 } else { *stride }, name.clone()))
            .collect();
        self.writer.numbers.address(parameters.starts[slot as usize], &terms)
    }

    /// An index view's number at the indices, 64 bits wide.
    fn number(&mut self, slot: u16) -> String {
        let parameters = &self.stage.parameters;
        let wide = self.writer.numbers.wide;
        let mut text = String::new();
        // The numbers of a narrow kernel fit its indices too; see `is_wide`.
        let start = self.writer.numbers.text(parameters.starts[slot as usize]);
        text += &format!("(ulong)(long){start}");
        for (stride, name) in parameters.stride(slot as usize).iter().zip(&self.names) {
            if *stride != 0 {
                let stride = self.writer.numbers.text(*stride);
                let cast = if wide { "" } else { "(long)" };
                text += &format!(" + (ulong){cast}{stride} * (ulong){name}");
            }
        }
        format!("(long)({text})")
    }

    fn arg(&mut self, arg: Arg) -> String {
        match arg {
            Arg::Value(value) => format!("v{value}"),
            Arg::Constant(at) => {
                let dtype = self.stage.kernel.constants[at as usize];
                self.writer.constant(dtype, self.stage.parameters.constants[at as usize])
            }
        }
    }

    /// The statements of one iteration.
    fn steps(&mut self) {
        let kernel = &self.stage.kernel;
        let (mut value, mut folded) = (0, 0);
        for (at, step) in kernel.steps.iter().enumerate() {
            let instr = self.stage.parameters.instrs[at];
            let args: Vec<String> = step.args().iter().map(|&arg| self.arg(arg)).collect();
            let refs: Vec<&str> = args.iter().map(String::as_str).collect();
            let text = match *step {
                Step::Load { slot } => self.element(slot, value),
                Step::Compute { opcode, param, input, output, .. } => expression(opcode, param, input, output, &refs),
                Step::Range { slot, output } => {
                    let number = self.number(slot);
                    expression(Opcode::Range, 0, output, output, &[&number])
                }
                Step::Random { slot, output, .. } => {
                    let (number, key) = (self.number(slot), format!("(uint){}", args[0]));
                    expression(Opcode::Random, 0, output, output, &[&format!("(ulong){number}"), &key])
                }
                Step::Gather { source, input, output, .. } => self.gather(source, instr, input, output, &args[0]),
                Step::Store { slot, .. } => {
                    let element = self.element(slot, 0);
                    self.body += &format!("{element} = {};\n", args[0]);
                    continue;
                }
                Step::Reduce { opcode, slot, .. } => {
                    let dtype = kernel.slots[slot as usize].dtype;
                    let name = format!("a{folded}");
                    self.body += &format!("{name} = {};\n", expression(opcode, 0, dtype, dtype, &[&name, &args[0]]));
                    folded += 1;
                    continue;
                }
            };
            let dtype = step.output(&kernel.slots).unwrap_or(DType::Bool);
            self.body += &format!("const {} v{value} = {text};\n", type_name(dtype));
            value += 1;
        }
    }

    /// The element of a gather's source; statements that find its place come first.
    fn gather(&mut self, source: u16, instr: u32, input: DType, output: DType, index: &str) -> String {
        let gather = &self.stage.parameters.gathers[source as usize];
        let signed = input == DType::I64;
        let failure = self.writer.failure(instr, signed, gather.len);
        let notes = self.writer.buffer(Place::Failures, DType::I32, true);
        let name = format!("g{source}");
        // The source's numbers may be wide where those of the nest are not.
        let literal = |writer: &mut Writer, value: i64| {
            if writer.numbers.wide || i32::try_from(value).is_ok() {
                writer.numbers.text(value)
            } else {
                format!("{value}L")
            }
        };
        let len = literal(&mut self.writer, gather.len);
        self.body += &format!("long {name} = (long){index};\n");
        if signed {
            self.body += &format!("if ({name} < 0) {name} += {len};\n");
        }
        self.body += &format!("const int w{source} = (ulong){name} < (ulong){len};\n");
        self.body += &format!("if (!w{source} && atomic_cmpxchg({notes}, 0, {failure}) == 0) {{ ");
        self.body += &format!("{notes}[1] = (int)(ulong){index}; {notes}[2] = (int)((ulong){index} >> 32); }}\n");
        let mut offset = literal(&mut self.writer, gather.start);
        match gather.stride.as_slice() {
            [] => {}
            [1] => offset += &format!(" + {name}"),
            [step] => offset += &format!(" + {name} * {}", literal(&mut self.writer, *step)),
            _ => {
                for (dim, (&extent, &step)) in gather.shape.iter().zip(&gather.stride).enumerate().rev() {
                    let step = literal(&mut self.writer, step);
                    if dim == 0 {
                        offset += &format!(" + {name} * {step}");
                    } else {
                        let extent = literal(&mut self.writer, extent);
                        self.body += &format!("const long {name}_{dim} = {name} % {extent}; {name} /= {extent};\n");
                        offset += &format!(" + {name}_{dim} * {step}");
                    }
                }
            }
        }
        let buffer = self.writer.buffer(Place::Of(gather.buffer), output, false);
        // An element that is always there: a source without elements has no valid index, and its buffer at least one.
        self.body += &format!("const long p{source} = w{source} ? {offset} : 0;\n");
        format!("{buffer}[p{source}]")
    }
}

/// Do the indices of a nest need 64 bits?
fn is_wide(parameters: &Parameters, target: &Target) -> bool {
    let limit = i64::from(i32::MAX) - 2 * target.items() - (1 << 16);
    let spans = (0..parameters.starts.len()).any(|slot| {
        let mut far = parameters.starts[slot].unsigned_abs() as u128;
        for (stride, extent) in parameters.stride(slot).iter().zip(&parameters.extents) {
            far += stride.unsigned_abs() as u128 * (*extent).max(1) as u128;
        }
        far > limit as u128
    });
    let iterations: u128 = parameters.extents.iter().map(|&extent| extent.max(1) as u128).product();
    // A kernel that fits now takes part in a launch of at most twice as many items.
    spans || 2 * iterations > limit as u128
}
