//! Programs as statements of OpenCL C: registers are variables, and each item goes its own way.

use crate::{Arg, Compute, Load, Program, Statement};
use bh_bytecode::c::{expression, type_name};
use bh_bytecode::{Constant, DType, Opcode};
use std::fmt::Write;

/// The name of a register's variable.
pub fn variable(register: usize) -> String {
    format!("r{register}")
}

/// The type of a register's variable.
pub fn variable_type(dtype: DType) -> &'static str {
    // Compilers keep these in predicates.
    if dtype == DType::Bool { "bool" } else { type_name(dtype) }
}

/// What kernels do where a program needs more than its registers.
pub struct Around<'a> {
    /// Statements that give a variable an element of a table, whose subscripts are these expressions.
    pub load: &'a mut dyn FnMut(&Load, &str, &[String]) -> String,
    /// A statement for loops that have had [`TURNS_AT_ONCE`] more turns, of which all are counted in `turns`.
    pub many_turns: String,
}

/// How often devices look whether a loop had too many turns, a power of two.
pub const TURNS_AT_ONCE: u32 = 1 << 20;

/// What is written, and the labels of the blocks around.
struct Writer<'a, 'b> {
    program: &'a Program,
    around: &'a mut Around<'b>,
    text: String,
    blocks: Vec<usize>,
    labels: usize,
}

impl Program {
    /// The declarations of all variables but the inputs', and the statements.
    pub fn opencl(&self, around: &mut Around<'_>) -> String {
        let mut writer = Writer { program: self, around, text: String::new(), blocks: Vec::new(), labels: 0 };
        if self.has_loops() {
            writer.text.push_str("uint turns = 0;\n");
        }
        for (register, dtype) in self.registers.iter().enumerate().skip(self.inputs) {
            let zero = number(&Constant::from_value(0u8).cast(*dtype));
            let _ = writeln!(writer.text, "{} {} = {zero};", variable_type(*dtype), variable(register));
        }
        writer.list(&self.body);
        writer.text
    }
}

impl Writer<'_, '_> {
    fn list(&mut self, statements: &[Statement]) {
        for statement in statements {
            match statement {
                Statement::Compute(compute) => self.compute(compute),
                Statement::Load(load) => self.load(load),
                Statement::If(condition, then, orelse) => {
                    let _ = writeln!(self.text, "if ({}) {{", variable(usize::from(*condition)));
                    self.list(then);
                    if !orelse.is_empty() {
                        self.text.push_str("} else {\n");
                        self.list(orelse);
                    }
                    self.text.push_str("}\n");
                }
                Statement::Block(body) => {
                    let label = self.labels;
                    self.labels += 1;
                    self.blocks.push(label);
                    self.list(body);
                    self.blocks.pop();
                    let _ = writeln!(self.text, "leave{label}: ;");
                }
                Statement::Loop(body) => {
                    self.text.push_str("for (;;) {\n");
                    self.list(body);
                    let last = TURNS_AT_ONCE - 1;
                    let _ = writeln!(self.text, "if ((++turns & {last}u) == 0) {{ {} }}\n}}", self.around.many_turns);
                }
                Statement::Leave(block) => {
                    let label = self.blocks[self.blocks.len() - 1 - usize::from(*block)];
                    let _ = writeln!(self.text, "goto leave{label};");
                }
            }
        }
    }

    fn compute(&mut self, compute: &Compute) {
        let (input, output) = self.program.types_of(compute);
        let args: Vec<String> = compute.args.iter().map(operand).collect();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let value = by_constant(compute, input, args[0])
            .unwrap_or_else(|| expression(compute.opcode, compute.param, input, output, &args));
        let _ = writeln!(self.text, "{} = {value};", variable(usize::from(compute.target)));
    }

    fn load(&mut self, load: &Load) {
        let subscripts: Vec<String> = load.subscripts.iter().map(operand).collect();
        self.text += &(self.around.load)(load, &variable(usize::from(load.target)), &subscripts);
    }
}

fn operand(arg: &Arg) -> String {
    match arg {
        Arg::Register(register) => variable(usize::from(*register)),
        Arg::Constant(constant) => number(constant),
    }
}

/// Whole quotients and remainders by powers of two: shifts and bits.
fn by_constant(compute: &Compute, input: DType, x: &str) -> Option<String> {
    let [_, Arg::Constant(second)] = compute.args[..] else { return None };
    let number = if input.is_int() { second.to::<i64>() } else { return None };
    if number <= 0 || number & (number - 1) != 0 {
        return None;
    }
    match compute.opcode {
        Opcode::Divide | Opcode::FloorDivide => Some(format!("({x} >> {})", number.trailing_zeros())),
        Opcode::Remainder => Some(format!("({x} & {}L)", number - 1)),
        _ => None,
    }
}

/// A constant by its bits, so that no digits are lost.
fn number(constant: &Constant) -> String {
    let (dtype, bits) = (constant.dtype(), constant.bits);
    match dtype {
        DType::F32 => format!("as_float(0x{:x}u)", bits[0] as u32),
        DType::F64 => format!("as_double(0x{:x}UL)", bits[0]),
        DType::C64 => {
            format!("bh_make_c64(as_float(0x{:x}u), as_float(0x{:x}u))", bits[0] as u32, bits[0] >> 32)
        }
        DType::C128 => format!("bh_make_c128(as_double(0x{:x}UL), as_double(0x{:x}UL))", bits[0], bits[1]),
        _ => format!("(({})0x{:x}UL)", type_name(dtype), bits[0]),
    }
}
