//! Programs as statements of OpenCL C: registers are variables, and each item goes its own way.

use crate::{Arg, Compute, Program, Statement};
use bh_bytecode::c::{expression, type_name};
use bh_bytecode::{Constant, DType};
use std::fmt::Write;

/// The name of a register's variable.
pub fn variable(register: usize) -> String {
    format!("r{register}")
}

/// What is written, and the labels of the blocks around.
struct Writer<'a> {
    program: &'a Program,
    text: String,
    blocks: Vec<usize>,
    labels: usize,
}

impl Program {
    /// The declarations of all variables but the inputs', and the statements.
    pub fn opencl(&self) -> String {
        let mut writer = Writer { program: self, text: String::new(), blocks: Vec::new(), labels: 0 };
        for (register, dtype) in self.registers.iter().enumerate().skip(self.inputs) {
            let zero = number(&Constant::from_value(0u8).cast(*dtype));
            let _ = writeln!(writer.text, "{} {} = {zero};", type_name(*dtype), variable(register));
        }
        writer.list(&self.body);
        writer.text
    }
}

impl Writer<'_> {
    fn list(&mut self, statements: &[Statement]) {
        for statement in statements {
            match statement {
                Statement::Compute(compute) => self.compute(compute),
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
                    self.text.push_str("}\n");
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
        let text = |arg: &Arg| match arg {
            Arg::Register(register) => variable(usize::from(*register)),
            Arg::Constant(constant) => number(constant),
        };
        let args: Vec<String> = compute.args.iter().map(text).collect();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let value = expression(compute.opcode, compute.param, input, output, &args);
        let _ = writeln!(self.text, "{} = {value};", variable(usize::from(compute.target)));
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
