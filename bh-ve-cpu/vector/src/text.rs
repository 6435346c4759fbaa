//! Functions as text of C, for compilers of devices: the operations of [`crate::math`] in the same order, written down by vectors whose
//! lanes are names of variables. Results have the bits of [`crate::simd::Isa::Fused`].

use crate::math;
use crate::simd::single::Single;
use crate::simd::{Alone, Scalar, Vector};
use bh_bytecode::{DType, Opcode};
use std::cell::RefCell;
use std::marker::PhantomData;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// The text so far.
#[derive(Default)]
struct Writer {
    body: String,
    variables: usize,
    /// The words of the tables that it reads.
    tables: Vec<Vec<String>>,
    /// A function reached for memory, which a text has not.
    fails: bool,
}

thread_local! {
    static WRITER: RefCell<Writer> = RefCell::default();
}

/// The body of a C function that returns the value of an opcode on `x`, or on `x` and `y`, of a type of floats; `None` if the opcode
/// has no text. It calls `fma`, `sqrt`, `rint`, `floor`, `ceil`, `trunc` and `fmod` of C, and `BH_AS(type, value)` for the bits of a value
/// as `ulong`, `uint`, `double` or `float`. Products and sums must not be contracted, and all functions named must round rightly.
pub fn body(opcode: Opcode, dtype: DType) -> Option<String> {
    WRITER.set(Writer::default());
    let single = dtype == DType::F32;
    let result = match (opcode, dtype) {
        (Opcode::Exp | Opcode::Log, DType::F32) => math::evaluate_single(opcode, named::<f32>("x"))?.name(),
        (_, DType::F32 | DType::F64) => {
            let second = if math::BINARY.contains(&opcode) { "y" } else { "x" };
            math::evaluate(opcode, single, named::<f64>("x"), named::<f64>(second))?.name()
        }
        _ => return None,
    };
    let writer = WRITER.take();
    let result = if single { format!("(float){result}") } else { result };
    let tables = writer.tables.iter().enumerate();
    let tables: String = tables
        .map(|(number, words)| format!("const ulong t{number}[{}] = {{{}}};\n", words.len(), words.join(", ")))
        .collect();
    (!writer.fails).then(|| format!("{tables}{}return {result};\n", writer.body))
}

/// A number by the number of its variable.
struct Text<T>(usize, PhantomData<T>);

/// A truth value by the number of its variable.
#[derive(Clone, Copy)]
struct Holds(usize);

impl<T> Clone for Text<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Text<T> {}

/// The types of C for numbers and their bits.
trait Lane {
    const TYPE: &str;
    const BITS: &str;
}

impl Lane for f64 {
    const TYPE: &str = "double";
    const BITS: &str = "ulong";
}

impl Lane for f32 {
    const TYPE: &str = "float";
    const BITS: &str = "uint";
}

/// Writes a variable with this value.
fn declared(declared: &str, value: &str) -> usize {
    WRITER.with_borrow_mut(|writer| {
        writer.variables += 1;
        writer.body += &format!("{declared} v{} = {value};\n", writer.variables);
        writer.variables
    })
}

/// Writes a constant with this value.
fn variable(kind: &str, value: &str) -> usize {
    declared(&format!("const {kind}"), value)
}

fn write(text: &str) {
    WRITER.with_borrow_mut(|writer| writer.body += text);
}

/// The name of a table.
fn table(words: &[u64]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("0x{word:016x}UL")).collect();
    WRITER.with_borrow_mut(|writer| {
        let known = writer.tables.iter().position(|known| *known == words);
        let number = known.unwrap_or(writer.tables.len());
        if known.is_none() {
            writer.tables.push(words);
        }
        format!("t{number}")
    })
}

fn number<T: Lane>(value: &str) -> Text<T> {
    Text(variable(T::TYPE, value), PhantomData)
}

/// A parameter of the function.
fn named<T: Lane>(name: &str) -> Text<T> {
    Text(variable(T::TYPE, name), PhantomData)
}

/// A number of these bits.
fn of_bits<T: Lane>(bits: &str) -> Text<T> {
    number(&format!("BH_AS({}, {bits})", T::TYPE))
}

fn holds(value: &str) -> Holds {
    Holds(variable("int", value))
}

impl<T: Lane> Text<T> {
    fn name(self) -> String {
        format!("v{}", self.0)
    }

    fn bits(self) -> String {
        format!("BH_AS({}, v{})", T::BITS, self.0)
    }

    fn with(self, operator: &str, other: Self) -> Self {
        number(&format!("v{} {operator} v{}", self.0, other.0))
    }

    fn of(self, function: &str) -> Self {
        number(&format!("{function}(v{})", self.0))
    }

    fn bits_with(self, operator: &str, other: Self) -> Self {
        of_bits(&format!("({} {operator} {})", self.bits(), other.bits()))
    }

    fn fused(self, sign: &str, b: Self, c: Self) -> Self {
        number(&format!("fma({sign}v{}, v{}, v{})", self.0, b.0, c.0))
    }

    fn compared(self, operator: &str, b: Self) -> Holds {
        holds(&format!("v{} {operator} v{}", self.0, b.0))
    }

    fn chosen(mask: Holds, a: Self, b: Self) -> Self {
        number(&format!("v{} ? v{} : v{}", mask.0, a.0, b.0))
    }

    fn limited(self, operator: &str, limit: Self) -> Self {
        number(&format!("v{1} {operator} v{0} ? v{1} : v{0}", self.0, limit.0))
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $operator:literal;)*) => {$(
        impl<T: Lane> $trait for Text<T> {
            type Output = Self;
            fn $method(self, b: Self) -> Self {
                self.with($operator, b)
            }
        }
    )*};
}
operators! {
    Add add "+";
    Sub sub "-";
    Mul mul "*";
    Div div "/";
}

impl<T: Lane> Neg for Text<T> {
    type Output = Self;
    fn neg(self) -> Self {
        self.of("-")
    }
}

/// Notes that a function computes some lanes by code that has no text.
fn fail() {
    WRITER.with_borrow_mut(|writer| writer.fails = true);
}

/// The methods whose text is the same in both precisions.
macro_rules! of_both {
    () => {
        fn mul_add(self, b: Self, c: Self) -> Self {
            self.fused("", b, c)
        }

        fn neg_mul_add(self, b: Self, c: Self) -> Self {
            self.fused("-", b, c)
        }

        fn at_most(self, limit: Self) -> Self {
            self.limited("<", limit)
        }

        fn at_least(self, limit: Self) -> Self {
            self.limited(">", limit)
        }

        fn bits_and(self, b: Self) -> Self {
            self.bits_with("&", b)
        }

        fn bits_add(self, b: Self) -> Self {
            self.bits_with("+", b)
        }

        fn lt(self, b: Self) -> Holds {
            self.compared("<", b)
        }

        fn eq(self, b: Self) -> Holds {
            self.compared("==", b)
        }

        fn select(mask: Holds, a: Self, b: Self) -> Self {
            Self::chosen(mask, a, b)
        }

        fn mask_and(a: Holds, b: Holds) -> Holds {
            holds(&format!("v{} & v{}", a.0, b.0))
        }

        fn mask_not(a: Holds) -> Holds {
            holds(&format!("!v{}", a.0))
        }
    };
}

impl Vector for Text<f64> {
    const LANES: usize = 1;
    const FUSED: bool = true;
    type Mask = Holds;

    // Functions reach for memory where scalar code computes some lanes.
    unsafe fn load(_: *const f64) -> Self {
        fail();
        Self::splat(0.0)
    }

    unsafe fn load_f32(_: *const f32) -> Self {
        fail();
        Self::splat(0.0)
    }

    unsafe fn store(self, _: *mut f64) {
        fail();
    }

    unsafe fn store_f32(self, _: *mut f32) {
        fail();
    }

    of_both!();

    fn splat(x: f64) -> Self {
        Self::splat_bits(x.to_bits())
    }

    fn splat_bits(bits: u64) -> Self {
        of_bits(&format!("(ulong)0x{bits:016x}UL"))
    }

    fn sqrt(self) -> Self {
        self.of("sqrt")
    }

    fn rint(self) -> Self {
        self.of("rint")
    }

    fn floor(self) -> Self {
        self.of("floor")
    }

    fn ceil(self) -> Self {
        self.of("ceil")
    }

    fn trunc(self) -> Self {
        self.of("trunc")
    }

    fn round_f32(self) -> Self {
        self.of("(double)(float)")
    }

    fn bits_or(self, b: Self) -> Self {
        self.bits_with("|", b)
    }

    fn bits_xor(self, b: Self) -> Self {
        self.bits_with("^", b)
    }

    fn bits_shl<const N: i32>(self) -> Self {
        of_bits(&format!("({} << {N})", self.bits()))
    }

    fn bits_shr<const N: i32>(self) -> Self {
        of_bits(&format!("({} >> {N})", self.bits()))
    }

    fn le(self, b: Self) -> Holds {
        self.compared("<=", b)
    }

    fn mask_or(a: Holds, b: Holds) -> Holds {
        holds(&format!("v{} | v{}", a.0, b.0))
    }

    // Lanes are blended wherever a branch asks for some.
    fn mask_bits(_: Holds) -> u32 {
        1
    }

    fn alone<F: Alone<N, M>, const N: usize, const M: usize>(
        mask: Holds,
        numbers: [Self; N],
        others: [Self; M],
    ) -> [Self; M] {
        let results = others.map(|other| Text(declared("double", &other.name()), PhantomData));
        write(&format!("if (v{}) {{\n", mask.0));
        for (result, value) in results.iter().zip(F::of(numbers)) {
            write(&format!("v{} = v{};\n", result.0, value.0));
        }
        write("}\n");
        results
    }
}

impl Scalar for Text<f64> {
    fn bits_mul(self, b: Self) -> Self {
        self.bits_with("*", b)
    }

    fn bits_shl_by(self, count: Self) -> Self {
        self.bits_with("<<", count)
    }

    fn bits_shr_by(self, count: Self) -> Self {
        self.bits_with(">>", count)
    }

    fn bits_eq(self, b: Self) -> Holds {
        holds(&format!("{} == {}", self.bits(), b.bits()))
    }

    fn word(words: &[u64], index: Self) -> Self {
        of_bits(&format!("{}[{}]", table(words), index.bits()))
    }

    fn fmod(self, b: Self) -> Self {
        number(&format!("fmod(v{}, v{})", self.0, b.0))
    }
}

impl Single for Text<f32> {
    const LANES: usize = 1;
    type Mask = Holds;

    unsafe fn load(_: *const f32) -> Self {
        fail();
        Self::splat(0.0)
    }

    unsafe fn store(self, _: *mut f32) {
        fail();
    }

    of_both!();

    fn splat(x: f32) -> Self {
        Self::splat_bits(x.to_bits())
    }

    fn splat_bits(bits: u32) -> Self {
        of_bits(&format!("(uint)0x{bits:08x}U"))
    }

    fn add(self, b: Self) -> Self {
        self.with("+", b)
    }

    fn sub(self, b: Self) -> Self {
        self.with("-", b)
    }

    fn mul(self, b: Self) -> Self {
        self.with("*", b)
    }

    fn scale(self, k: Self) -> Self {
        // Of NaN, any factors do; its conversion to an integer has no value that C fixes.
        let whole = variable("int", &format!("v{0} == v{0} ? (int)v{0} : 0", k.0));
        let power = |k: &str| of_bits::<f32>(&format!("((uint)({k} + 127) << 23)"));
        let (first, second) = (power(&format!("(v{whole} >> 1)")), power(&format!("(v{whole} - (v{whole} >> 1))")));
        self.with("*", first).with("*", second)
    }

    fn exponent_field(self) -> Self {
        number(&format!("(float)({} >> 23)", self.bits()))
    }

    fn any(_: Holds) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_a_text() {
        for dtype in [DType::F32, DType::F64] {
            for opcode in math::UNARY.iter().chain(math::BINARY) {
                assert!(body(*opcode, dtype).is_some_and(|text| text.ends_with(";\n")), "{opcode:?} {dtype}");
            }
        }
        assert_eq!(body(Opcode::Exp, DType::C128), None);
        let floor = "const double v1 = x;\nconst double v2 = x;\nconst double v3 = floor(v1);\nreturn v3;\n";
        assert_eq!(body(Opcode::Floor, DType::F64).unwrap(), floor);
    }

    #[test]
    fn rare_arguments_are_behind_a_branch_and_tables_are_written_once() {
        let sine = body(Opcode::Sin, DType::F64).unwrap();
        let [tables, branches] = ["const ulong t", "if (v"].map(|text| sine.matches(text).count());
        assert_eq!((tables, branches), (1, 1), "{sine}");
        assert!(sine.contains("t0[BH_AS(ulong, v") && sine.contains("}\n"), "{sine}");
        assert!(body(Opcode::Fmod, DType::F32).unwrap().contains("= fmod(v"));
    }
}
