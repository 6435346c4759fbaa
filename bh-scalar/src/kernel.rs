//! Translates programs to statements of the devices' kernel dialect: registers become variables, and each item has its
//! own control flow.

use crate::turns::most_turns;
use crate::values::both;
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
    // Compilers keep `bool` variables in predicates.
    if dtype == DType::Bool { "bool" } else { type_name(dtype) }
}

/// A kernel's code for program features beyond registers.
pub struct Around<'a> {
    /// A statement that loads a table's element into a variable; the subscripts are expressions.
    pub load: &'a mut dyn FnMut(&Load, &str, &[String]) -> String,
    /// A statement for elements whose loops exceed the limit of iterations.
    pub late: String,
}

/// The limit of iterations over all loops of one element; reaching it takes seconds.
pub const MOST_TURNS: u32 = 1 << 29;

/// The text being written, and the labels of enclosing blocks.
struct Writer<'a, 'b> {
    program: &'a Program,
    around: &'a mut Around<'b>,
    text: String,
    blocks: Vec<usize>,
    labels: usize,
    /// Second results of functions with two results.
    seconds: usize,
    /// The statements before the current list: those before its block, then those before the enclosing block, and so
    /// on.
    before: Vec<&'a [Statement]>,
}

impl Program {
    /// The declarations of all variables except for inputs, and the statements.
    pub fn kernel_text(&self, around: &mut Around<'_>) -> String {
        let mut writer = Writer {
            program: self,
            around,
            text: String::new(),
            blocks: Vec::new(),
            labels: 0,
            seconds: 0,
            before: Vec::new(),
        };
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

impl<'a> Writer<'a, '_> {
    fn list(&mut self, statements: &'a [Statement]) {
        let types = |compute: &Compute| self.program.types_of(compute);
        let (is_float, keeps) = (|one: &Compute| types(one).1.is_float(), |one: &Compute| types(one).0 == types(one).1);
        let pairs = both(statements, Opcode::Sin, Opcode::Cos, is_float, keeps);
        let second = self.seconds;
        self.seconds += pairs.len();
        for (at, statement) in statements.iter().enumerate() {
            match statement {
                Statement::Compute(compute) => match pairs.iter().position(|pair| pair.0 == at || pair.1 == at) {
                    Some(pair) => self.sine_and_cosine(compute, second + pair, pairs[pair].0 == at),
                    None => self.compute(compute),
                },
                Statement::Load(load) => self.load(load),
                Statement::If(condition, then, orelse) => {
                    let _ = writeln!(self.text, "if ({}) {{", variable(usize::from(*condition)));
                    let before = std::mem::take(&mut self.before);
                    self.list(then);
                    if !orelse.is_empty() {
                        self.text.push_str("} else {\n");
                        self.list(orelse);
                    }
                    self.before = before;
                    self.text.push_str("}\n");
                }
                Statement::Block(body) => {
                    let label = self.labels;
                    self.labels += 1;
                    self.blocks.push(label);
                    self.before.push(&statements[..at]);
                    self.list(body);
                    self.before.pop();
                    self.blocks.pop();
                    let _ = writeln!(self.text, "leave{label}: ;");
                }
                Statement::Loop(body) => {
                    self.before.push(&statements[..at]);
                    let most = most_turns(&self.before, body);
                    let before = std::mem::take(&mut self.before);
                    self.repeat(body, most);
                    self.before = before;
                    self.before.pop();
                }
                Statement::Leave(block) => {
                    let label = self.blocks[self.blocks.len() - 1 - usize::from(*block)];
                    let _ = writeln!(self.text, "goto leave{label};");
                }
            }
        }
    }

    fn repeat(&mut self, body: &'a [Statement], most: Option<u32>) {
        if let Some(most) = most {
            // A loop with a known limit is counted once, for the enclosing loops, instead of in each iteration.
            let _ = writeln!(self.text, "turns += {most}u;\nfor (;;) {{");
            self.list(body);
            self.text.push_str("}\n");
            return;
        }
        self.text.push_str("for (;;) {\n");
        self.list(body);
        // The loop is left by jumps, because compilers optimise these better than a condition in the loop.
        let _ = writeln!(self.text, "if (++turns >= {MOST_TURNS}u) break;\n}}\n{}", self.around.late);
    }

    fn compute(&mut self, compute: &Compute) {
        let (input, output) = self.program.types_of(compute);
        let args: Vec<String> = compute.args.iter().map(operand).collect();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let value = division(compute, input, &args)
            .or_else(|| by_power(compute, input, args[0]))
            .unwrap_or_else(|| expression(compute.opcode, compute.param, input, output, &args));
        let _ = writeln!(self.text, "{} = {value};", variable(usize::from(compute.target)));
    }

    /// Sine or cosine of an angle: if a program needs both, the first one computes them together.
    fn sine_and_cosine(&mut self, compute: &Compute, number: usize, is_first: bool) {
        let (target, other) = (variable(usize::from(compute.target)), format!("second{number}"));
        let dtype = self.program.types_of(compute).1;
        let _ = match (is_first, compute.opcode) {
            (false, _) => writeln!(self.text, "{target} = {other};"),
            (true, Opcode::Sin) => {
                writeln!(
                    self.text,
                    "{} {other};\n{target} = BH_SINCOS({}, &{other});",
                    type_name(dtype),
                    operand(&compute.args[0])
                )
            }
            (true, _) => {
                writeln!(
                    self.text,
                    "{0} {other};\n{other} = BH_SINCOS({1}, &{target});",
                    type_name(dtype),
                    operand(&compute.args[0])
                )
            }
        };
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

/// Division by a power of two as a multiplication, which is exact.
fn by_power(compute: &Compute, input: DType, x: &str) -> Option<String> {
    let [_, Arg::Constant(second)] = compute.args[..] else { return None };
    let divisor = second.to::<f64>();
    let is_power = divisor.to_bits().trailing_zeros() >= 52 && (1e-30..1e30).contains(&divisor.abs());
    if compute.opcode != Opcode::Divide || !input.is_float() || !is_power {
        return None;
    }
    let inverse = number(&Constant::from_value(1.0 / divisor).cast(input));
    Some(expression(Opcode::Multiply, 0, input, input, &[x, &inverse]))
}

/// Integer division and remainder by powers of two as shifts and masks; 64-bit ones in 32 bits if both operands fit,
/// which is several times faster on devices.
fn division(compute: &Compute, input: DType, args: &[&str]) -> Option<String> {
    let quotient = matches!(compute.opcode, Opcode::Divide | Opcode::FloorDivide);
    if !input.is_int() || !quotient && compute.opcode != Opcode::Remainder {
        return None;
    }
    let [x, y] = *args else { return None };
    let number = match compute.args[1] {
        Arg::Constant(constant) => Some(constant.to::<i64>()),
        Arg::Register(_) => None,
    };
    match number {
        Some(number) if number > 0 && number & (number - 1) == 0 => Some(match quotient {
            true => format!("({x} >> {})", number.trailing_zeros()),
            false => format!("({x} & {}L)", number - 1),
        }),
        _ if input.size() < 8 => None,
        _ => {
            let (sign, whole) = (if quotient { '/' } else { '%' }, expression(compute.opcode, 0, input, input, args));
            let kind = type_name(input);
            Some(format!(
                "((ulong)({x} | {y}) >> 32) == 0 && {y} != 0 ? ({kind})((uint){x} {sign} (uint){y}) : {whole}"
            ))
        }
    }
}

/// A constant given by its bits, so that no digits are lost.
fn number(constant: &Constant) -> String {
    let (dtype, bits) = (constant.dtype(), constant.bits);
    match dtype {
        DType::F32 => format!("BH_AS(float, 0x{:x}u)", bits[0] as u32),
        DType::F64 => format!("BH_AS(double, 0x{:x}UL)", bits[0]),
        DType::C64 => {
            format!("bh_make_c64(BH_AS(float, 0x{:x}u), BH_AS(float, 0x{:x}u))", bits[0] as u32, bits[0] >> 32)
        }
        DType::C128 => format!("bh_make_c128(BH_AS(double, 0x{:x}UL), BH_AS(double, 0x{:x}UL))", bits[0], bits[1]),
        _ => format!("(({})0x{:x}UL)", type_name(dtype), bits[0]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(program: &str) -> String {
        let mut load = |load: &Load, target: &str, subscripts: &[String]| {
            format!("{target} = t{}[{}];\n", load.table, subscripts.join("]["))
        };
        Program::parse(program).unwrap().kernel_text(&mut Around { load: &mut load, late: "late();".into() })
    }

    #[test]
    fn loops_are_counted_and_divisions_are_short() {
        let steps = text(crate::random::STEPS);
        assert!(steps.contains("(r0 & 1L)") && steps.contains("(r0 >> 1)"), "{steps}");
        assert!(steps.contains("if (++turns >= 536870912u) break;\n}\nlate();\n"), "{steps}");
        let straight = text("program f (i64 i64) -> (i64) with () { r2 = remainder r0 r1; }");
        let half = text("program f (f64) -> (f64) with () { r1 = divide r0 f64:-2.0; r1 = divide r1 f64:3.0; }");
        assert!(
            half.contains("mul_f64(r0, BH_AS(double, 0xbfe0000000000000UL))") && half.contains("divide_f64(r1"),
            "{half}"
        );
        assert!(straight.contains("(uint)r0 % (uint)r1") && !straight.contains("turns"), "{straight}");
    }

    #[test]
    fn what_ends_by_itself_is_not_counted_and_functions_of_one_angle_are_computed_together() {
        let few = text(
            "program f (f64) -> (f64) with (i64 bool) { r2 = copy i64:0; block { loop { r3 = less r2 i64:100; if r3 { } else { leave 0 } \
             r1 = add r1 r0; r2 = add r2 i64:1; } } }",
        );
        assert!(few.contains("turns += 103u;\nfor (;;) {") && !few.contains("break"), "{few}");
        let angle = text(
            "program f (f64) -> (f64) with (f64 f64 f64) { r2 = copy r0; r3 = sin r2; r4 = cos r0; r0 = sin r0; r2 = cos r0; r1 = add r3 r4; }",
        );
        assert!(
            angle.contains("r3 = BH_SINCOS(r2, &second0);\nr4 = second0;") && angle.contains("cos_f64(r0)"),
            "{angle}"
        );
        let back = text("program f (f32) -> (f32) with (f32) { r2 = cos r0; r1 = sin r0; }");
        assert!(back.contains("second0 = BH_SINCOS(r0, &r2);\nr1 = second0;"), "{back}");
    }

    #[test]
    fn elements_of_tables_are_what_their_kernel_says() {
        let read = text("program f (i64) -> (f64) with () reads (grid:f64:2) { r1 = t0 r0 i64:-1; }");
        assert!(read.contains("r1 = t0[r0][((bh_i64)0xffffffffffffffffUL)];"), "{read}");
    }
}
