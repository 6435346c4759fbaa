//! Writing LLVM's assembly language: numbered values, labels, and declarations of intrinsic functions.

use bh_bytecode::DType;
use std::collections::BTreeSet;
use std::fmt::{self, Display, Write};
use std::ops::Range;

/// A value in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// The result of an instruction.
    Register(u32),
    /// A constant of the kernel in vectors of a width.
    Constant(u16, u16),
    /// The element of a slot that stays the same along a row, in vectors of a width: for a loop over rows, and the row
    /// among those that it does side by side.
    Invariant(u16, u16, &'static str, u16),
}

impl Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Register(number) => write!(f, "%r{number}"),
            Value::Constant(constant, width) => write!(f, "%c{constant}.w{width}"),
            Value::Invariant(slot, width, rows, row) => write!(f, "%z{slot}.{rows}.{row}.w{width}"),
        }
    }
}

/// The text of a function and what it declares.
#[derive(Default)]
pub(crate) struct Writer {
    text: String,
    registers: u32,
    labels: u32,
    declarations: BTreeSet<String>,
    /// The label of the block that is being written.
    block: String,
}

impl Writer {
    /// Writes an instruction without a result.
    pub(crate) fn line(&mut self, line: impl Display) {
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "  {line}");
    }

    /// Writes an instruction with a result.
    pub(crate) fn value(&mut self, instruction: impl Display) -> Value {
        self.registers += 1;
        let value = Value::Register(self.registers);
        self.line(format_args!("{value} = {instruction}"));
        value
    }

    /// How many instructions have a result, without those that only name it or see it as another type.
    pub(crate) fn instructions(&self) -> usize {
        let counts = |line: &&str| line.contains(" = ") && !line.contains(" freeze ") && !line.contains(" bitcast ");
        self.text.lines().filter(counts).count()
    }

    /// A name for a label that is not taken.
    pub(crate) fn label(&mut self, purpose: &str) -> String {
        self.labels += 1;
        format!("{purpose}.{}", self.labels)
    }

    /// Begins a block.
    pub(crate) fn begin(&mut self, label: &str) {
        let _ = writeln!(self.text, "{label}:");
        label.clone_into(&mut self.block);
    }

    /// The label of the block that is being written.
    pub(crate) fn block(&self) -> &str {
        &self.block
    }

    /// A vector constant with all lanes equal.
    pub(crate) fn splat(&mut self, element: &str, width: u16, literal: impl Display) -> Value {
        let mut lanes = String::new();
        for lane in 0..width {
            let comma = if lane == 0 { "" } else { ", " };
            let _ = write!(lanes, "{comma}{element} {literal}");
        }
        self.value(format_args!("freeze <{width} x {element}> <{lanes}>"))
    }

    /// A scalar in all lanes.
    pub(crate) fn broadcast(&mut self, element: &str, width: u16, scalar: impl Display) -> Value {
        let inserted =
            self.value(format_args!("insertelement <{width} x {element}> poison, {element} {scalar}, i64 0"));
        self.value(format_args!(
            "shufflevector <{width} x {element}> {inserted}, <{width} x {element}> poison, <{width} x i32> zeroinitializer"
        ))
    }

    /// Applies a function of eight lanes of `double` to vectors of `width` lanes: one part after the other, put together
    /// again.
    pub(crate) fn by_eights<const N: usize>(
        &mut self,
        width: u16,
        operands: [Value; N],
        eight: impl Fn(&mut Writer, [Value; N]) -> Value,
    ) -> Value {
        let kind = format!("<{width} x double>");
        let mut parts = Vec::new();
        for begin in (0..width).step_by(8) {
            let operands = operands.map(|operand| self.part(&kind, operand, begin..begin + 8));
            parts.push(eight(self, operands));
        }
        self.join("double", 8, &parts)
    }

    /// Some lanes of a vector of the type `kind`.
    pub(crate) fn part(&mut self, kind: &str, vector: Value, of: Range<u16>) -> Value {
        let order = lanes(of);
        self.value(format_args!("shufflevector {kind} {vector}, {kind} poison, {order}"))
    }

    /// Vectors of `width` lanes one after the other in one.
    pub(crate) fn join(&mut self, element: &str, width: u16, parts: &[Value]) -> Value {
        let mut joined = parts[0];
        for (begin, part) in (width..).step_by(width.into()).zip(&parts[1..]) {
            // Both operands of a shuffle have one width: the new part is widened first.
            let order = lanes((0..begin).map(|lane| lane % width));
            let kind = format!("<{width} x {element}>");
            let wide = self.value(format_args!("shufflevector {kind} {part}, {kind} poison, {order}"));
            let order = lanes(0..begin + width);
            let kind = format!("<{begin} x {element}>");
            joined = self.value(format_args!("shufflevector {kind} {joined}, {kind} {wide}, {order}"));
        }
        joined
    }

    /// Calls an intrinsic function: its full name, the type of the result, and arguments with their types.
    pub(crate) fn intrinsic(&mut self, name: &str, result: &str, arguments: &[(&str, &dyn Display)]) -> Value {
        let call = self.call_text(name, result, arguments);
        self.value(call)
    }

    /// [`Writer::intrinsic`] without a result.
    pub(crate) fn intrinsic_line(&mut self, name: &str, arguments: &[(&str, &dyn Display)]) {
        let call = self.call_text(name, "void", arguments);
        self.line(call);
    }

    /// a·b + c, rounded once, for the type `kind`, which the names of functions call `suffix`.
    pub(crate) fn multiply_add(&mut self, kind: &str, suffix: &str, operands: [&dyn Display; 3]) -> Value {
        self.intrinsic(&format!("llvm.fma.{suffix}"), kind, &operands.map(|operand| (kind, operand)))
    }

    fn call_text(&mut self, name: &str, result: &str, arguments: &[(&str, &dyn Display)]) -> String {
        let types: Vec<&str> = arguments.iter().map(|(kind, _)| *kind).collect();
        let values: Vec<String> = arguments.iter().map(|(kind, value)| format!("{kind} {value}")).collect();
        self.declarations.insert(format!("declare {result} @{name}({})", types.join(", ")));
        format!("call {result} @{name}({})", values.join(", "))
    }

    /// The module: the function's text between `head` and a brace, and the declarations.
    pub(crate) fn module(&self, head: &str, tail: &str) -> String {
        let mut module = format!("{head}\n{}}}\n", self.text);
        for declaration in &self.declarations {
            module.push_str(declaration);
            module.push('\n');
        }
        module + tail
    }
}

/// The lanes that a shuffle takes.
pub(crate) fn lanes(lanes: impl Iterator<Item = u16>) -> String {
    let lanes: Vec<String> = lanes.map(|lane| format!("i32 {lane}")).collect();
    format!("<{} x i32> <{}>", lanes.len(), lanes.join(", "))
}

/// The type of an element in registers, or of the parts of a complex one.
pub(crate) fn element(dtype: DType) -> &'static str {
    match dtype.real_part() {
        DType::Bool => "i1",
        part => memory(part),
    }
}

/// The type of an element in memory. Complex numbers are aligned as their parts are.
pub(crate) fn memory(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool | DType::I8 | DType::U8 => "i8",
        DType::I16 | DType::U16 => "i16",
        DType::I32 | DType::U32 => "i32",
        DType::I64 | DType::U64 => "i64",
        DType::F32 => "float",
        DType::F64 => "double",
        DType::C64 => "[2 x float]",
        DType::C128 => "[2 x double]",
    }
}

/// The numbers that an element is made of.
pub(crate) fn parts(dtype: DType) -> u16 {
    if dtype.is_complex() { 2 } else { 1 }
}

/// The type of a vector in registers.
pub(crate) fn vector(dtype: DType, width: u16) -> String {
    format!("<{} x {}>", width * parts(dtype), element(dtype))
}

/// The type of a vector in memory.
pub(crate) fn packed(dtype: DType, width: u16) -> String {
    format!("<{} x {}>", width * parts(dtype), memory(dtype.real_part()))
}

/// The name of the type of a vector in memory within those of intrinsic functions.
pub(crate) fn suffix(dtype: DType, width: u16) -> String {
    let part = match memory(dtype.real_part()) {
        "float" => "f32",
        "double" => "f64",
        other => other,
    };
    format!("v{}{part}", width * parts(dtype))
}

/// A float as a literal: LLVM writes both types with the bits of the wider one.
pub(crate) fn float(x: f64) -> String {
    format!("0x{:016X}", x.to_bits())
}
