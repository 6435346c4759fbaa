//! Mathematical functions in the text of a kernel: the functions of `bh-vector`, evaluated on vectors whose operations
//! write instructions. So both tiers have the same operations in the same order, and the same bits.
//!
//! The functions ask whether any lane is special. Here the answer is always no, and the questions are collected: the
//! caller branches to the block primitive where one of them holds.

use crate::writer::{Value, Writer, element, float};
use bh_bytecode::{DType, Opcode};
use bh_jit_abi::Level;
use bh_vector::math;
use bh_vector::simd::Vector;
use std::cell::RefCell;
use std::fmt::Display;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// What the vectors write to.
struct Context {
    writer: Writer,
    level: Level,
    width: u16,
    /// Is any lane special?
    special: Option<Value>,
    /// Was something asked for that has no vector instructions?
    impossible: bool,
}

thread_local! {
    /// Operators have no argument for it.
    static CONTEXT: RefCell<Option<Context>> = const { RefCell::new(None) };
}

/// Evaluates the function of an opcode on vectors of `f64`; `single` asks for what serves `f32`. Returns the result and
/// the mask of lanes that the result is wrong for, if there can be any. `None` if the opcode has no such function.
pub(crate) fn evaluate(
    writer: &mut Writer,
    level: Level,
    width: u16,
    (opcode, single): (Opcode, bool),
    (x, y): (Value, Value),
) -> Option<(Value, Option<Value>)> {
    let context = Context { writer: std::mem::take(writer), level, width, special: None, impossible: false };
    CONTEXT.set(Some(context));
    let result = math::evaluate(opcode, single, Lanes(x), Lanes(y));
    let context = CONTEXT.take()?;
    *writer = context.writer;
    match result {
        Some(Lanes(value)) if !context.impossible => Some((value, context.special)),
        _ => None,
    }
}

/// The sum of the squares of complex numbers' parts, of `f64`, and the lanes where its root is not the modulus.
pub(crate) fn square_of_modulus(writer: &mut Writer, level: Level, width: u16, parts: [Value; 2]) -> [Value; 2] {
    let [x, y] = parts.map(Lanes);
    written(writer, level, width, || {
        let (square, common) = math::square_of_modulus(x, y);
        [square.0, Lanes::mask_not(common).0]
    })
}

/// The modulus of any complex numbers, from the sum of their squares.
pub(crate) fn modulus_of_all(writer: &mut Writer, level: Level, width: u16, parts: [Value; 2], square: Value) -> Value {
    let [x, y] = parts.map(Lanes);
    written(writer, level, width, || math::modulus_of_all(x, y, Lanes(square)).0)
}

/// What `body` makes of vectors.
fn written<R>(writer: &mut Writer, level: Level, width: u16, body: impl FnOnce() -> R) -> R {
    let context = Context { writer: std::mem::take(writer), level, width, special: None, impossible: false };
    CONTEXT.set(Some(context));
    let result = body();
    *writer = CONTEXT.take().map(|context| context.writer).unwrap_or_default();
    result
}

/// Roughly how many instructions the function of an opcode is.
pub(crate) fn instructions(level: Level, opcode: Opcode, single: bool) -> usize {
    let mut writer = Writer::default();
    let any = Value::Register(0);
    evaluate(&mut writer, level, 8, (opcode, single), (any, any));
    writer.instructions()
}

/// Is the function a chain of instructions with little else in use? Trigonometric functions hold a dozen values: with two
/// vectors side by side they took a tenth longer.
pub(crate) fn is_chain(opcode: Opcode) -> bool {
    !matches!(opcode, Opcode::Sin | Opcode::Cos | Opcode::Tan)
}

/// The opcodes that are worth their code in a kernel; other functions are called.
pub(crate) fn is_inlined(opcode: Opcode, dtype: DType) -> bool {
    let both = [
        Opcode::Sin,
        Opcode::Cos,
        Opcode::Tan,
        Opcode::Sinh,
        Opcode::Cosh,
        Opcode::Tanh,
        Opcode::Arctan,
        Opcode::Arcsin,
        Opcode::Arccos,
        Opcode::Exp2,
        Opcode::Expm1,
        Opcode::Log2,
        Opcode::Log10,
        Opcode::Log1p,
        Opcode::Erf,
        Opcode::Erfc,
        Opcode::Power,
    ];
    // In f32, exp and log have lanes of their own.
    dtype.is_float() && both.contains(&opcode) || dtype == DType::F64 && [Opcode::Exp, Opcode::Log].contains(&opcode)
}

/// Lanes of `f64` in the text.
#[derive(Clone, Copy)]
struct Lanes(Value);

/// A truth value per lane in the text.
#[derive(Clone, Copy)]
struct Mask(Value);

/// Runs `body` on the context.
fn with<R>(body: impl FnOnce(&mut Context) -> R) -> R {
    CONTEXT.with_borrow_mut(|context| body(context.as_mut().expect("vectors exist while a function is evaluated")))
}

impl Context {
    fn kind(&self) -> String {
        format!("<{} x double>", self.width)
    }

    fn bits_kind(&self) -> String {
        format!("<{} x i64>", self.width)
    }

    fn binary(&mut self, operation: &str, a: Value, b: Value) -> Value {
        self.writer.value(format_args!("{operation} <{} x double> {a}, {b}", self.width))
    }

    fn bitwise(&mut self, operation: &str, a: Value, b: impl Display) -> Value {
        self.writer.value(format_args!("{operation} <{} x i64> {a}, {b}", self.width))
    }

    fn as_bits(&mut self, a: Value) -> Value {
        self.writer.value(format_args!("bitcast {} {a} to {}", self.kind(), self.bits_kind()))
    }

    fn as_floats(&mut self, a: Value) -> Value {
        self.writer.value(format_args!("bitcast {} {a} to {}", self.bits_kind(), self.kind()))
    }

    fn call(&mut self, name: &str, arguments: &[Value]) -> Value {
        let kind = self.kind();
        let arguments: Vec<(&str, &dyn Display)> =
            arguments.iter().map(|value| (kind.as_str(), value as &dyn Display)).collect();
        self.writer.intrinsic(&format!("llvm.{name}.v{}f64", self.width), &kind, &arguments)
    }

    fn compare(&mut self, predicate: &str, a: Value, b: Value) -> Value {
        self.writer.value(format_args!("fcmp {predicate} <{} x double> {a}, {b}", self.width))
    }

    fn select(&mut self, mask: Value, a: Value, b: Value) -> Value {
        let width = self.width;
        self.writer.value(format_args!("select <{width} x i1> {mask}, <{width} x double> {a}, <{width} x double> {b}"))
    }

    /// The scaling instruction of AVX-512, eight lanes at a time.
    fn scale_parts(&mut self, x: Value, k: Value) -> Value {
        self.writer.by_eights(self.width, [x, k], |writer, [x, k]| {
            let kind = "<8 x double>";
            writer.intrinsic(
                "llvm.x86.avx512.mask.scalef.pd.512",
                kind,
                &[(kind, &x), (kind, &k), (kind, &"zeroinitializer"), ("i8", &"-1"), ("i32", &"4")],
            )
        })
    }
}

macro_rules! operator {
    ($trait:ident, $method:ident, $operation:literal) => {
        impl $trait for Lanes {
            type Output = Lanes;
            fn $method(self, b: Lanes) -> Lanes {
                Lanes(with(|context| context.binary($operation, self.0, b.0)))
            }
        }
    };
}
operator!(Add, add, "fadd");
operator!(Sub, sub, "fsub");
operator!(Mul, mul, "fmul");
operator!(Div, div, "fdiv");

impl Neg for Lanes {
    type Output = Lanes;
    fn neg(self) -> Lanes {
        Lanes(with(|context| context.writer.value(format_args!("fneg <{} x double> {}", context.width, self.0))))
    }
}

impl Lanes {
    /// An operation on the bits of two vectors.
    fn bitwise(self, operation: &str, b: Lanes) -> Lanes {
        Lanes(with(|context| {
            let (a, b) = (context.as_bits(self.0), context.as_bits(b.0));
            let result = context.bitwise(operation, a, b);
            context.as_floats(result)
        }))
    }

    /// A shift of the bits.
    fn shift(self, operation: &str, count: i32) -> Lanes {
        Lanes(with(|context| {
            let a = context.as_bits(self.0);
            let count = context.writer.splat("i64", context.width, count);
            let result = context.bitwise(operation, a, count);
            context.as_floats(result)
        }))
    }

    /// An intrinsic function.
    fn call(self, name: &str, others: &[Lanes]) -> Lanes {
        let arguments: Vec<Value> = std::iter::once(self.0).chain(others.iter().map(|other| other.0)).collect();
        Lanes(with(|context| context.call(name, &arguments)))
    }

    fn compare(self, predicate: &str, b: Lanes) -> Mask {
        Mask(with(|context| context.compare(predicate, self.0, b.0)))
    }

    /// Something without vector instructions.
    fn impossible(self) -> Lanes {
        with(|context| context.impossible = true);
        self
    }
}

/// An operation on masks.
fn masks(operation: &str, a: Value, b: impl Display) -> Mask {
    Mask(with(|context| context.writer.value(format_args!("{operation} <{} x i1> {a}, {b}", context.width))))
}

impl Vector for Lanes {
    // Only loops over memory ask for the number of lanes, and there are none here.
    const LANES: usize = 0;
    const FUSED: bool = true;
    type Mask = Mask;

    fn splat(x: f64) -> Lanes {
        Lanes(with(|context| context.writer.splat("double", context.width, float(x))))
    }

    fn splat_bits(bits: u64) -> Lanes {
        Lanes(with(|context| context.writer.splat("double", context.width, float(f64::from_bits(bits)))))
    }

    unsafe fn load(_: *const f64) -> Lanes {
        Lanes::splat(0.0).impossible()
    }

    unsafe fn store(self, _: *mut f64) {
        self.impossible();
    }

    unsafe fn load_f32(_: *const f32) -> Lanes {
        Lanes::splat(0.0).impossible()
    }

    unsafe fn store_f32(self, _: *mut f32) {
        self.impossible();
    }

    fn mul_add(self, b: Lanes, c: Lanes) -> Lanes {
        self.call("fma", &[b, c])
    }

    fn neg_mul_add(self, b: Lanes, c: Lanes) -> Lanes {
        (-self).call("fma", &[b, c])
    }

    fn sqrt(self) -> Lanes {
        self.call("sqrt", &[])
    }

    fn reciprocal_root_estimate(self) -> Option<Lanes> {
        with(|context| {
            let kind = "<8 x double>";
            (context.level == Level::Avx512 && context.width.is_multiple_of(8)).then(|| {
                Lanes(context.writer.by_eights(context.width, [self.0], |writer, [x]| {
                    let arguments: [(&str, &dyn Display); 3] = [(kind, &x), (kind, &"zeroinitializer"), ("i8", &"-1")];
                    writer.intrinsic("llvm.x86.avx512.rsqrt14.pd.512", kind, &arguments)
                }))
            })
        })
    }

    fn rint(self) -> Lanes {
        self.call("roundeven", &[])
    }

    fn floor(self) -> Lanes {
        self.call("floor", &[])
    }

    fn ceil(self) -> Lanes {
        self.call("ceil", &[])
    }

    fn trunc(self) -> Lanes {
        self.call("trunc", &[])
    }

    fn round_f32(self) -> Lanes {
        Lanes(with(|context| {
            let width = context.width;
            let narrow =
                context.writer.value(format_args!("fptrunc <{width} x double> {} to <{width} x float>", self.0));
            context.writer.value(format_args!("fpext <{width} x float> {narrow} to <{width} x double>"))
        }))
    }

    fn at_most(self, limit: Lanes) -> Lanes {
        Lanes::select(limit.lt(self), limit, self)
    }

    fn at_least(self, limit: Lanes) -> Lanes {
        Lanes::select(limit.gt(self), limit, self)
    }

    fn bits_and(self, b: Lanes) -> Lanes {
        self.bitwise("and", b)
    }

    fn bits_or(self, b: Lanes) -> Lanes {
        self.bitwise("or", b)
    }

    fn bits_xor(self, b: Lanes) -> Lanes {
        self.bitwise("xor", b)
    }

    fn bits_add(self, b: Lanes) -> Lanes {
        self.bitwise("add", b)
    }

    fn bits_shl<const N: i32>(self) -> Lanes {
        self.shift("shl", N)
    }

    fn bits_shr<const N: i32>(self) -> Lanes {
        self.shift("lshr", N)
    }

    fn lt(self, b: Lanes) -> Mask {
        self.compare("olt", b)
    }

    fn le(self, b: Lanes) -> Mask {
        self.compare("ole", b)
    }

    fn eq(self, b: Lanes) -> Mask {
        self.compare("oeq", b)
    }

    fn gt(self, b: Lanes) -> Mask {
        self.compare("ogt", b)
    }

    fn select(mask: Mask, a: Lanes, b: Lanes) -> Lanes {
        Lanes(with(|context| context.select(mask.0, a.0, b.0)))
    }

    fn mask_and(a: Mask, b: Mask) -> Mask {
        masks("and", a.0, b.0)
    }

    fn mask_or(a: Mask, b: Mask) -> Mask {
        masks("or", a.0, b.0)
    }

    fn mask_not(a: Mask) -> Mask {
        let ones = with(|context| context.writer.splat(element(DType::Bool), context.width, "true"));
        masks("xor", a.0, ones)
    }

    fn mask_bits(a: Mask) -> u32 {
        let before = with(|context| context.special);
        let special = before.map_or(a, |before| masks("or", before, a.0));
        with(|context| context.special = Some(special.0));
        0
    }

    fn scale(self, k: Lanes) -> Lanes {
        let wide = with(|context| context.level == Level::Avx512);
        if wide {
            return Lanes(with(|context| context.scale_parts(self.0, k.0)));
        }
        // As the other levels do it.
        let first = (k * Lanes::splat(0.5)).rint_small();
        let second = k - first;
        self * first.pow2() * second.pow2()
    }
}
