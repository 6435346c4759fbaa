//! Element-wise operations as vector instructions, with the results of the scalar functions of the opcode table.

use crate::whole;
use crate::writer::{Value, Writer, element, float, vector};
use bh_bytecode::{DType, Opcode};
use bh_jit_abi::Level;

/// An element-wise operation on vectors of a width.
#[derive(Clone, Copy)]
pub(crate) struct Operation {
    pub(crate) opcode: Opcode,
    /// The exponent of POWI, else 0.
    pub(crate) param: u16,
    /// Type of the last operand.
    pub(crate) input: DType,
    /// Type of the result.
    pub(crate) output: DType,
    pub(crate) level: Level,
    pub(crate) fast_math: bool,
    pub(crate) width: u16,
}

pub(crate) fn is_signed(dtype: DType) -> bool {
    matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64)
}

fn is_integer(dtype: DType) -> bool {
    !matches!(dtype, DType::Bool) && !dtype.is_float() && !dtype.is_complex()
}

impl Operation {
    /// Are there instructions for it?
    pub(crate) fn is_native(&self) -> bool {
        let mut writer = Writer::default();
        let any = Value::Register(0);
        self.write(&mut writer, [any; 3]).is_some()
    }

    /// The vector type of elements of a type.
    pub(crate) fn kind(&self, dtype: DType) -> String {
        vector(dtype, self.width)
    }

    /// A number in all lanes of the input's type.
    pub(crate) fn splat(&self, writer: &mut Writer, number: f64) -> Value {
        match self.input {
            DType::F32 | DType::F64 => writer.splat(element(self.input), self.width, float(number)),
            _ => writer.splat(element(self.input), self.width, number as i64),
        }
    }

    /// Writes the instructions; `None` if there are none.
    pub(crate) fn write(&self, writer: &mut Writer, [a, b, c]: [Value; 3]) -> Option<Value> {
        if self.input.is_complex() || self.output.is_complex() {
            return self.complex(writer, [a, b, c]);
        }
        match self.opcode {
            Opcode::Copy => return self.cast(writer, a),
            Opcode::Where => {
                let (mask, kind) = (self.kind(DType::Bool), self.kind(self.output));
                return Some(writer.value(format_args!("select {mask} {a}, {kind} {b}, {kind} {c}")));
            }
            Opcode::Powi => return self.power(writer, a),
            _ => {}
        }
        if let Some(predicate) = self.predicate() {
            let compare = if self.input.is_float() { "fcmp" } else { "icmp" };
            return Some(writer.value(format_args!("{compare} {predicate} {} {a}, {b}", self.kind(self.input))));
        }
        match self.input {
            DType::F32 | DType::F64 => self.float(writer, a, b),
            DType::Bool => self.boolean(writer, a, b),
            _ => self.integer(writer, a, b),
        }
    }

    fn predicate(&self) -> Option<String> {
        let name = match self.opcode {
            Opcode::Greater => "gt",
            Opcode::GreaterEqual => "ge",
            Opcode::Less => "lt",
            Opcode::LessEqual => "le",
            Opcode::Equal => "eq",
            Opcode::NotEqual => "ne",
            _ => return None,
        };
        Some(match (self.input, name) {
            (DType::F32 | DType::F64, "ne") => "une".to_owned(),
            (DType::F32 | DType::F64, _) => format!("o{name}"),
            (_, "eq" | "ne") => name.to_owned(),
            (dtype, _) if is_signed(dtype) => format!("s{name}"),
            _ => format!("u{name}"),
        })
    }

    /// `name` of two operands of the input's type.
    pub(crate) fn plain(&self, writer: &mut Writer, name: &str, a: Value, b: Value) -> Value {
        writer.value(format_args!("{name} {} {a}, {b}", self.kind(self.input)))
    }

    pub(crate) fn multiply(&self, writer: &mut Writer, a: Value, b: Value) -> Value {
        let name = if self.input.is_float() { self.flagged("fmul") } else { "mul".to_owned() };
        self.plain(writer, &name, a, b)
    }

    /// A float instruction with the liberties that it has.
    pub(crate) fn flagged(&self, name: &str) -> String {
        if self.fast_math { format!("{name} reassoc nsz arcp contract afn") } else { name.to_owned() }
    }

    fn power(&self, writer: &mut Writer, x: Value) -> Option<Value> {
        powers(self.param, x, |a, b| self.multiply(writer, a, b))
    }

    pub(crate) fn intrinsic(&self, writer: &mut Writer, name: &str, a: Value) -> Value {
        let kind = self.kind(self.input);
        let suffix = format!("v{}{}", self.width, if self.input == DType::F32 { "f32" } else { "f64" });
        writer.intrinsic(&format!("llvm.{name}.{suffix}"), &kind, &[(&kind, &a)])
    }

    pub(crate) fn select(&self, writer: &mut Writer, mask: Value, a: Value, b: Value) -> Value {
        let kind = self.kind(self.input);
        writer.value(format_args!("select {} {mask}, {kind} {a}, {kind} {b}", self.kind(DType::Bool)))
    }

    pub(crate) fn compare(&self, writer: &mut Writer, predicate: &str, a: Value, b: Value) -> Value {
        let compare = if self.input.is_float() { "fcmp" } else { "icmp" };
        writer.value(format_args!("{compare} {predicate} {} {a}, {b}", self.kind(self.input)))
    }

    fn float(&self, writer: &mut Writer, a: Value, b: Value) -> Option<Value> {
        Some(match self.opcode {
            Opcode::Add => self.plain(writer, &self.flagged("fadd"), a, b),
            Opcode::Subtract => self.plain(writer, &self.flagged("fsub"), a, b),
            Opcode::Multiply => self.multiply(writer, a, b),
            Opcode::Divide => self.plain(writer, &self.flagged("fdiv"), a, b),
            Opcode::Maximum | Opcode::Minimum => {
                // The first of equal operands, and any operand that is NaN.
                let predicate = if self.opcode == Opcode::Maximum { "ogt" } else { "olt" };
                let second = self.compare(writer, predicate, b, a);
                let chosen = self.select(writer, second, b, a);
                let unordered = self.compare(writer, "uno", b, b);
                self.select(writer, unordered, b, chosen)
            }
            Opcode::Absolute => self.intrinsic(writer, "fabs", a),
            Opcode::Sqrt => self.intrinsic(writer, "sqrt", a),
            Opcode::Floor => self.intrinsic(writer, "floor", a),
            Opcode::Ceil => self.intrinsic(writer, "ceil", a),
            Opcode::Trunc => self.intrinsic(writer, "trunc", a),
            Opcode::Rint => self.intrinsic(writer, "roundeven", a),
            Opcode::Sign => {
                let (zero, one, minus) = (self.splat(writer, 0.0), self.splat(writer, 1.0), self.splat(writer, -1.0));
                let (above, below, equal) = (
                    self.compare(writer, "ogt", a, zero),
                    self.compare(writer, "olt", a, zero),
                    self.compare(writer, "oeq", a, zero),
                );
                let rest = self.select(writer, equal, zero, a);
                let rest = self.select(writer, below, minus, rest);
                self.select(writer, above, one, rest)
            }
            Opcode::Isnan => self.compare(writer, "uno", a, a),
            Opcode::Isinf | Opcode::Isfinite => {
                let size = self.intrinsic(writer, "fabs", a);
                let infinite = self.splat(writer, f64::INFINITY);
                let predicate = if self.opcode == Opcode::Isinf { "oeq" } else { "olt" };
                self.compare(writer, predicate, size, infinite)
            }
            _ => return None,
        })
    }

    fn boolean(&self, writer: &mut Writer, a: Value, b: Value) -> Option<Value> {
        let name = match self.opcode {
            Opcode::Add | Opcode::LogicalOr | Opcode::BitwiseOr | Opcode::Maximum => "or",
            Opcode::Multiply | Opcode::LogicalAnd | Opcode::BitwiseAnd | Opcode::Minimum => "and",
            Opcode::LogicalXor | Opcode::BitwiseXor => "xor",
            Opcode::LogicalNot | Opcode::Invert => {
                let ones = writer.splat("i1", self.width, "true");
                return Some(self.plain(writer, "xor", a, ones));
            }
            _ => return self.classify(writer),
        };
        Some(self.plain(writer, name, a, b))
    }

    /// Tests for special values that whole numbers do not have.
    fn classify(&self, writer: &mut Writer) -> Option<Value> {
        match self.opcode {
            Opcode::Isnan | Opcode::Isinf => Some(writer.splat("i1", self.width, "false")),
            Opcode::Isfinite => Some(writer.splat("i1", self.width, "true")),
            _ => None,
        }
    }

    fn integer(&self, writer: &mut Writer, a: Value, b: Value) -> Option<Value> {
        let signed = is_signed(self.input);
        let kind = self.kind(self.input);
        let name = match self.opcode {
            Opcode::Add => "add",
            Opcode::Subtract => "sub",
            Opcode::Multiply => "mul",
            Opcode::BitwiseAnd => "and",
            Opcode::BitwiseOr => "or",
            Opcode::BitwiseXor => "xor",
            Opcode::Invert => {
                let ones = self.splat(writer, -1.0);
                return Some(self.plain(writer, "xor", a, ones));
            }
            Opcode::Maximum | Opcode::Minimum => {
                let which = if self.opcode == Opcode::Maximum { "max" } else { "min" };
                let name =
                    format!("llvm.{}{which}.v{}{}", if signed { "s" } else { "u" }, self.width, element(self.input));
                return Some(writer.intrinsic(&name, &kind, &[(&kind, &a), (&kind, &b)]));
            }
            Opcode::Absolute if signed => {
                let name = format!("llvm.abs.v{}{}", self.width, element(self.input));
                return Some(writer.intrinsic(&name, &kind, &[(&kind, &a), ("i1", &"false")]));
            }
            Opcode::Absolute => return Some(a),
            Opcode::Sign => {
                let (zero, one) = (self.splat(writer, 0.0), self.splat(writer, 1.0));
                if !signed {
                    let other = self.compare(writer, "ne", a, zero);
                    return Some(self.select(writer, other, one, zero));
                }
                let minus = self.splat(writer, -1.0);
                let (above, below) = (self.compare(writer, "sgt", a, zero), self.compare(writer, "slt", a, zero));
                let rest = self.select(writer, below, minus, zero);
                return Some(self.select(writer, above, one, rest));
            }
            Opcode::LeftShift | Opcode::RightShift => return Some(self.shift(writer, a, b)),
            _ if whole::divides(self.opcode, self.input) => return self.division(writer, a, b),
            _ => return self.classify(writer),
        };
        Some(self.plain(writer, name, a, b))
    }

    /// Shifts by any count: too large ones, and negative ones, shift everything out.
    fn shift(&self, writer: &mut Writer, a: Value, count: Value) -> Value {
        let bits = self.splat(writer, (self.input.size() * 8) as f64);
        let inside = self.compare(writer, "ult", count, bits);
        if self.opcode == Opcode::RightShift && is_signed(self.input) {
            let most = self.splat(writer, (self.input.size() * 8 - 1) as f64);
            let count = self.select(writer, inside, count, most);
            return self.plain(writer, "ashr", a, count);
        }
        let zero = self.splat(writer, 0.0);
        // Whatever the instruction gives for a count outside is not selected.
        let confined = self.select(writer, inside, count, zero);
        let name = if self.opcode == Opcode::LeftShift { "shl" } else { "lshr" };
        let shifted = self.plain(writer, name, a, confined);
        self.select(writer, inside, shifted, zero)
    }

    fn cast(&self, writer: &mut Writer, a: Value) -> Option<Value> {
        let (input, output) = (self.input, self.output);
        let (from, to) = (self.kind(input), self.kind(output));
        let (narrow, wide) = (input.size() > output.size(), input.size() < output.size());
        let convert = |writer: &mut Writer, name: &str| Some(writer.value(format_args!("{name} {from} {a} to {to}")));
        match (input, output) {
            _ if input == output => Some(a),
            (DType::F64, DType::F32) => convert(writer, "fptrunc"),
            (DType::F32, DType::F64) => convert(writer, "fpext"),
            (_, DType::Bool) => {
                let zero = self.splat(writer, 0.0);
                Some(self.compare(writer, if input.is_float() { "une" } else { "ne" }, a, zero))
            }
            (DType::Bool, _) if output.is_float() => convert(writer, "uitofp"),
            (DType::Bool, _) => convert(writer, "zext"),
            // Without AVX-512, 64-bit integers have no conversions.
            _ if is_integer(input) && output.is_float() => {
                let short = input.size() <= 4 || self.level == Level::Avx512;
                short.then(|| convert(writer, if is_signed(input) { "sitofp" } else { "uitofp" })).flatten()
            }
            _ if input.is_float() => self.whole_number(writer, a),
            _ if narrow => convert(writer, "trunc"),
            _ if wide => convert(writer, if is_signed(input) { "sext" } else { "zext" }),
            // Integers of one size.
            _ => Some(a),
        }
    }
}

/// x², x²·x, x²·x², x⁴·x, as products.
pub(crate) fn powers(exponent: u16, x: Value, mut multiply: impl FnMut(Value, Value) -> Value) -> Option<Value> {
    let square = multiply(x, x);
    Some(match exponent {
        2 => square,
        3 => multiply(square, x),
        4 => multiply(square, square),
        5 => {
            let fourth = multiply(square, square);
            multiply(fourth, x)
        }
        _ => return None,
    })
}

/// The number of an index view, 64 bits wide, in another type.
pub(crate) fn from_number(writer: &mut Writer, number: Value, output: DType, width: u16) -> Value {
    let (from, to) = (format!("<{width} x i64>"), format!("<{width} x {}>", element(output)));
    match output {
        DType::I64 | DType::U64 => number,
        DType::F32 | DType::F64 => writer.value(format_args!("sitofp {from} {number} to {to}")),
        _ => writer.value(format_args!("trunc {from} {number} to {to}")),
    }
}

/// The random number that belongs to a number under a key: see `bh_bytecode::philox`.
pub(crate) fn random(writer: &mut Writer, number: Value, key: Value, output: DType, width: u16) -> Value {
    let kind = format!("<{width} x i64>");
    let constant = |writer: &mut Writer, value: u64| writer.splat("i64", width, value);
    let low = constant(writer, 0xffff_ffff);
    let half = constant(writer, 32);
    let multiplier = constant(writer, 0xD256_D193);
    let weyl = constant(writer, 0x9E37_79B9);
    let (mut left, mut key) = (number, key);
    let mut right = writer.value(format_args!("lshr {kind} {number}, {half}"));
    for _ in 0..10 {
        let factor = writer.value(format_args!("and {kind} {left}, {low}"));
        let product = writer.value(format_args!("mul {kind} {factor}, {multiplier}"));
        let upper = writer.value(format_args!("lshr {kind} {product}, {half}"));
        let mixed = writer.value(format_args!("xor {kind} {upper}, {right}"));
        left = writer.value(format_args!("xor {kind} {mixed}, {key}"));
        right = product;
        let next = writer.value(format_args!("add {kind} {key}, {weyl}"));
        key = writer.value(format_args!("and {kind} {next}, {low}"));
    }
    let upper = writer.value(format_args!("shl {kind} {right}, {half}"));
    let lower = writer.value(format_args!("and {kind} {left}, {low}"));
    match output {
        DType::U32 => writer.value(format_args!("trunc {kind} {left} to <{width} x i32>")),
        DType::F32 => {
            let bits = writer.value(format_args!("trunc {kind} {left} to <{width} x i32>"));
            let eight = writer.splat("i32", width, 8);
            let shifted = writer.value(format_args!("lshr <{width} x i32> {bits}, {eight}"));
            let number = writer.value(format_args!("sitofp <{width} x i32> {shifted} to <{width} x float>"));
            let scale = writer.splat("float", width, float(1.0 / (1u64 << 24) as f64));
            writer.value(format_args!("fmul <{width} x float> {number}, {scale}"))
        }
        _ => {
            let bits = writer.value(format_args!("or {kind} {upper}, {lower}"));
            if output == DType::U64 {
                return bits;
            }
            let eleven = constant(writer, 11);
            let shifted = writer.value(format_args!("lshr {kind} {bits}, {eleven}"));
            let number = writer.value(format_args!("uitofp {kind} {shifted} to <{width} x double>"));
            let scale = writer.splat("double", width, float(1.0 / (1u64 << 53) as f64));
            writer.value(format_args!("fmul <{width} x double> {number}, {scale}"))
        }
    }
}
