//! The statements of one iteration of a stage's loop nest.

use super::{KernelMemory, Target, Variant, Writer, loaded};
use crate::functions::expression;
use bh_bytecode::c::type_name;
use bh_bytecode::{DType, Opcode};
use bh_kernel::{Arg, BufferRef, Parameters, Stage, Step};

/// Memory between the two kernels of a reduction, as a slot names it.
pub(super) const PARTIALS: BufferRef = BufferRef::None;

/// A kernel under construction.
pub(super) struct Part<'a> {
    pub(super) stage: &'a Stage,
    pub(super) writer: Writer,
    /// Names of the indices of all dimensions.
    pub(super) names: Vec<String>,
    pub(super) scratch: u16,
    /// Slots whose elements have been brought elsewhere, and where.
    pub(super) staged: Vec<(u16, String)>,
    pub(super) body: String,
}

impl<'a> Part<'a> {
    pub(super) fn new(stage: &'a Stage, variant: Variant, target: &Target, scratch: u16) -> Part<'a> {
        Part::with(stage, Writer::new(variant, is_wide(&stage.parameters, target)), scratch)
    }

    /// A part of the kernel that `writer` makes.
    pub(super) fn with(stage: &'a Stage, writer: Writer, scratch: u16) -> Part<'a> {
        let names = (0..stage.parameters.extents.len()).map(|dim| format!("i{dim}")).collect();
        Part { stage, writer, names, scratch, staged: Vec::new(), body: String::new() }
    }

    /// The memory of a slot; of the slots between two kernels, that of the reduction with this number.
    fn place(&self, slot: u16, number: usize) -> KernelMemory {
        match self.stage.parameters.buffers[slot as usize] {
            PARTIALS => KernelMemory::Scratch(self.scratch + number as u16),
            buffer => KernelMemory::Of(buffer),
        }
    }

    /// The element of a slot at the indices.
    pub(super) fn element(&mut self, slot: u16, number: usize) -> String {
        let known = self.stage.kernel.slots[slot as usize];
        let buffer = self.writer.buffer(self.place(slot, number), known.dtype, known.mode.writes());
        format!("{buffer}[{}]", self.address(slot))
    }

    /// The elements of a slot from index `at` on, as a value of the vector type `name`.
    pub(super) fn neighbours(&mut self, slot: u16, name: &str) -> String {
        let known = self.stage.kernel.slots[slot as usize];
        let buffer = self.writer.buffer(self.place(slot, 0), known.dtype, known.mode.writes());
        let start = self.writer.numbers.text(self.stage.parameters.starts[slot as usize]);
        let constant = if known.mode.writes() { "" } else { "const " };
        format!("*(BH_GLOBAL {constant}{name} *)({buffer} + {start} + at)")
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
    pub(super) fn steps(&mut self) {
        let kernel = &self.stage.kernel;
        let (mut value, mut folded) = (0, 0);
        for (at, step) in kernel.steps.iter().enumerate() {
            let instr = self.stage.parameters.instrs[at];
            let args: Vec<String> = step.args().iter().map(|&arg| self.arg(arg)).collect();
            let refs: Vec<&str> = args.iter().map(String::as_str).collect();
            let text = match *step {
                Step::Load { slot } => {
                    let staged = self.staged.iter().find(|(staged, _)| *staged == slot);
                    let element = staged.map(|(_, element)| element.clone());
                    let element = element.unwrap_or_else(|| self.element(slot, value));
                    loaded(kernel.slots[slot as usize].dtype, element)
                }
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
                    let staged = self.staged.iter().find(|(staged, _)| *staged == slot);
                    let element = staged.map(|(_, element)| element.clone()).unwrap_or_else(|| self.element(slot, 0));
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
        let failure = self.writer.failure(instr, super::Why::Index(signed, gather.len));
        let notes = self.writer.buffer(KernelMemory::Failures, DType::I32, true);
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
        self.body += &super::note(&format!("!w{source}"), &notes, failure, index);
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
        let buffer = self.writer.buffer(KernelMemory::Of(gather.buffer), output, false);
        // An element that is always there: a source without elements has no valid index, and its buffer at least one.
        self.body += &format!("const long p{source} = w{source} ? {offset} : 0;\n");
        loaded(output, format!("{buffer}[p{source}]"))
    }
}

/// Do the indices of a nest need 64 bits?
pub(super) fn is_wide(parameters: &Parameters, target: &Target) -> bool {
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
