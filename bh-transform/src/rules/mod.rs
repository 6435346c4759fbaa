//! How derivatives flow through each operation: a column of the opcode table and of the methods.
//!
//! [`rule`] is matched exhaustively over the rows of the opcode table, so that an opcode without a rule does not compile.

mod elementwise;
pub(crate) mod expression;
mod factors;
mod folds;
mod forms;
mod indices;
mod methods;
mod partials;
pub(crate) mod programs;

use bh_bytecode::methods::is_program;
use bh_bytecode::{DType, Opcode, View, for_each_opcode};
use expression::Partial;

/// How derivatives flow through an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rule {
    /// Not at all: the output is constant between jumps, or no number.
    Zero,
    /// Element by element, with one partial derivative per input.
    Partials(&'static [Partial]),
    /// In a form of its own.
    Form(Form),
    /// There is a derivative, and no rule for it.
    Missing,
}

/// Operations that are no products of partial derivatives, element by element and within one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A copy into another type.
    Cast,
    /// The conjugate.
    Conjugate,
    /// The real part.
    Real,
    /// The imaginary part.
    Imaginary,
    /// The modulus of complex numbers.
    Modulus,
    /// One of two inputs, as a mask says.
    Choice,
    /// A sum over axes, with a mask or without.
    Sum,
    /// A product over axes, with a mask or without.
    Product,
    /// The smallest or the largest over axes, with a mask or without.
    Extreme,
    /// Running sums along an axis.
    RunningSum,
    /// Running products along an axis.
    RunningProduct,
    /// Elements at indices.
    Gather,
    /// Assignments at indices.
    Scatter,
    /// Sums at indices.
    ScatterAdd,
    /// Assignments at indices where a mask is true.
    CondScatter,
    /// A sum over axes of products of two inputs.
    Contraction,
    /// The matrix product.
    Matmul,
    /// The solution of linear equations.
    Solve,
    /// Lower and upper triangular factors with a permutation of rows.
    Lu,
    /// The lower triangular factor of a positive definite matrix.
    Cholesky,
    /// Orthonormal columns and an upper triangular factor.
    Qr,
    /// Eigenvalues of a Hermitian matrix, and eigenvectors or not.
    Eigh,
    /// Eigenvalues of any square matrix, and eigenvectors or not.
    Eig,
    /// Singular values, and singular vectors or not.
    Svd,
    /// A discrete Fourier transform, forward.
    Fourier,
    /// A discrete Fourier transform, backward.
    InverseFourier,
    /// The first half of the transform of real numbers.
    RealFourier,
    /// Real numbers from the first half of their transform.
    InverseRealFourier,
    /// Elements in ascending order.
    Sort,
    /// Elements where a mask is true.
    Compress,
    /// A scalar program.
    Program,
}

/// The values that the derivative of an operation reads, a bit for each input and output, and the inputs it flows into.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    pub(crate) flows: u8,
    pub(crate) inputs: u8,
    pub(crate) outputs: u8,
}

macro_rules! define_rows {
    ($(($variant:ident, $name:literal, $code:literal, $($rest:tt)*)),* $(,)?) => {
        /// A row of the opcode table.
        #[derive(Clone, Copy)]
        enum Row {
            $($variant),*
        }

        impl Row {
            fn of(opcode: Opcode) -> Option<Row> {
                match opcode {
                    $(Opcode::$variant => Some(Row::$variant),)*
                    _ => None,
                }
            }
        }
    };
}
for_each_opcode!(define_rows);

/// The rule of an opcode of the table, for an input of this type.
fn rule_of_row(row: Row, input: DType) -> Rule {
    use Rule::{Form as Of, Partials, Zero};
    use elementwise as e;
    match row {
        Row::Add => Partials(e::ADD),
        Row::Subtract => Partials(e::SUBTRACT),
        Row::Multiply => Partials(e::MULTIPLY),
        Row::Divide => Partials(e::DIVIDE),
        Row::Fmod => Partials(e::FMOD),
        Row::Remainder => Partials(e::REMAINDER),
        Row::Power => Partials(e::POWER),
        Row::Powi => Partials(e::POWI),
        Row::Absolute if input.is_complex() => Of(Form::Modulus),
        Row::Absolute => Partials(e::ABSOLUTE),
        Row::Conj => Of(Form::Conjugate),
        Row::Real => Of(Form::Real),
        Row::Imag => Of(Form::Imaginary),
        Row::Maximum => Partials(e::MAXIMUM),
        Row::Minimum => Partials(e::MINIMUM),
        Row::Cos => Partials(e::COS),
        Row::Sin => Partials(e::SIN),
        Row::Tan => Partials(e::TAN),
        Row::Cosh => Partials(e::COSH),
        Row::Sinh => Partials(e::SINH),
        Row::Tanh => Partials(e::TANH),
        Row::Arcsin => Partials(e::ARCSIN),
        Row::Arccos => Partials(e::ARCCOS),
        Row::Arctan => Partials(e::ARCTAN),
        Row::Arcsinh => Partials(e::ARCSINH),
        Row::Arccosh => Partials(e::ARCCOSH),
        Row::Arctanh => Partials(e::ARCTANH),
        Row::Arctan2 => Partials(e::ARCTAN2),
        Row::Exp => Partials(e::EXP),
        Row::Exp2 => Partials(e::EXP2),
        Row::Expm1 => Partials(e::EXPM1),
        Row::Log => Partials(e::LOG),
        Row::Log2 => Partials(e::LOG2),
        Row::Log10 => Partials(e::LOG10),
        Row::Log1p => Partials(e::LOG1P),
        Row::Sqrt => Partials(e::SQRT),
        Row::Erf => Partials(e::ERF),
        Row::Erfc => Partials(e::ERFC),
        Row::Cbrt => Partials(e::CBRT),
        Row::Reciprocal => Partials(e::RECIPROCAL),
        Row::Copy => Of(Form::Cast),
        Row::Where => Of(Form::Choice),
        // Constant between jumps.
        Row::FloorDivide | Row::Sign | Row::Ceil | Row::Trunc | Row::Floor | Row::Rint => Zero,
        // Truth values and bits.
        Row::Greater | Row::GreaterEqual | Row::Less | Row::LessEqual | Row::Equal | Row::NotEqual => Zero,
        Row::LogicalAnd | Row::LogicalOr | Row::LogicalXor | Row::LogicalNot => Zero,
        Row::BitwiseAnd | Row::BitwiseOr | Row::BitwiseXor | Row::Invert | Row::LeftShift | Row::RightShift => Zero,
        Row::Isnan | Row::Isinf | Row::Isfinite | Row::Signbit => Zero,
        Row::LogicalAndReduce | Row::LogicalOrReduce | Row::LogicalXorReduce => Zero,
        Row::BitwiseAndReduce | Row::BitwiseOrReduce | Row::BitwiseXorReduce => Zero,
        Row::AddReduce | Row::MaskedAddReduce => Of(Form::Sum),
        Row::MultiplyReduce | Row::MaskedMultiplyReduce => Of(Form::Product),
        Row::MinimumReduce | Row::MaximumReduce | Row::MaskedMinimumReduce | Row::MaskedMaximumReduce => {
            Of(Form::Extreme)
        }
        Row::Contract => Of(Form::Contraction),
        Row::AddAccumulate => Of(Form::RunningSum),
        Row::MultiplyAccumulate => Of(Form::RunningProduct),
        // Numbers that follow from no array.
        Row::Range | Row::Random => Zero,
        Row::Gather => Of(Form::Gather),
        Row::Scatter => Of(Form::Scatter),
        Row::ScatterAdd => Of(Form::ScatterAdd),
        Row::CondScatter => Of(Form::CondScatter),
        Row::Nop | Row::Sync | Row::Free | Row::Discard => Zero,
    }
}

/// The rule of a method.
fn rule_of_method(name: &str) -> Rule {
    match name {
        "matmul" => Rule::Form(Form::Matmul),
        "solve" => Rule::Form(Form::Solve),
        "lu" => Rule::Form(Form::Lu),
        "cholesky" => Rule::Form(Form::Cholesky),
        "qr" => Rule::Form(Form::Qr),
        "eigh" => Rule::Form(Form::Eigh),
        "eig" => Rule::Form(Form::Eig),
        "svd" => Rule::Form(Form::Svd),
        "fft" => Rule::Form(Form::Fourier),
        "ifft" => Rule::Form(Form::InverseFourier),
        "rfft" => Rule::Form(Form::RealFourier),
        "irfft" => Rule::Form(Form::InverseRealFourier),
        "sort" => Rule::Form(Form::Sort),
        "compress" => Rule::Form(Form::Compress),
        "argsort" | "searchsorted_left" | "searchsorted_right" | "count_nonzero" | "flatnonzero" => Rule::Zero,
        _ => Rule::Missing,
    }
}

/// The rule of an operation. `method`: the name of an extension method; `input`: the type of the first array that it reads.
pub(crate) fn rule(opcode: Opcode, method: Option<&str>, input: DType) -> Rule {
    match (method, Row::of(opcode)) {
        (Some(name), _) if is_program(name) => Rule::Form(Form::Program),
        (Some(name), _) => rule_of_method(name),
        (None, Some(row)) => rule_of_row(row, input),
        (None, None) => Rule::Missing,
    }
}

impl Rule {
    /// The values that the derivative reads, if these inputs depend on the variables. `counts`: of outputs and of
    /// inputs.
    pub(crate) fn needs(self, active: u8, counts: (usize, usize)) -> Needs {
        match self {
            Rule::Zero | Rule::Missing => Needs::default(),
            Rule::Partials(partials) => {
                let mut needs = Needs::default();
                for (at, partial) in partials.iter().enumerate() {
                    if active >> at & 1 == 1 {
                        let (read, output) = partial.reads();
                        needs.flows |= 1 << at;
                        needs.inputs |= read;
                        needs.outputs |= u8::from(output);
                    }
                }
                needs
            }
            Rule::Form(form) => form.needs(active, counts),
        }
    }
}

impl Form {
    fn needs(self, active: u8, (outputs, inputs): (usize, usize)) -> Needs {
        let masked = inputs > 1;
        let all = (1 << outputs) - 1;
        let (flows, inputs, outputs) = match self {
            Form::Cast | Form::Conjugate | Form::Real | Form::Imaginary => (active, 0, 0),
            Form::RunningSum => (active & 1, 0, 0),
            Form::Fourier | Form::InverseFourier | Form::RealFourier | Form::InverseRealFourier => (active & 1, 0, 0),
            Form::Modulus => (active & 1, 1, 1),
            Form::Choice => (active & 0b110, 1, 0),
            Form::Sum => (active & 1, if masked { 0b10 } else { 0 }, 0),
            Form::Product => (active & 1, if masked { 0b11 } else { 1 }, 0),
            Form::Extreme => (active & 1, if masked { 0b11 } else { 1 }, 1),
            Form::RunningProduct => (active & 1, 1, 1),
            Form::Gather | Form::ScatterAdd => (active & 1, 0b10, 0),
            // Where elements are overwritten, what they were flows nowhere, whatever the new ones depend on.
            Form::Scatter => return Needs { flows: active & 1, inputs: 0b10, outputs: 0 },
            Form::CondScatter => return Needs { flows: active & 1, inputs: 0b110, outputs: 0 },
            Form::Contraction | Form::Matmul => (active & 0b11, (active & 1) << 1 | active >> 1 & 1, 0),
            Form::Solve => (active & 0b11, 0b01, active & 1),
            Form::Cholesky | Form::Qr => (active & 1, 0, all),
            // An operation that gives part of the factors is done again for all.
            Form::Lu | Form::Eigh | Form::Eig | Form::Svd if outputs == 1 => (active & 1, 1, 0),
            Form::Lu | Form::Eigh | Form::Eig | Form::Svd => (active & 1, 0, all),
            Form::Sort => (active & 1, 1, 0),
            Form::Compress => (active & 0b10, 1, 0),
            Form::Program => (active, ((1u16 << inputs) - 1) as u8, 0),
        };
        if flows == 0 { Needs::default() } else { Needs { flows, inputs, outputs } }
    }

    /// May what flows into the input be the adjoint of the output itself?
    pub(crate) fn passes_on(self) -> bool {
        matches!(self, Form::Cast | Form::Real | Form::Imaginary | Form::Sum)
    }

    /// Is the operation a factorization, whose outputs' adjoints flow together?
    pub(crate) fn is_factorization(self) -> bool {
        matches!(self, Form::Lu | Form::Cholesky | Form::Qr | Form::Eigh | Form::Eig | Form::Svd)
    }

    /// Has a factorization with these shapes a derivative? Columns that complete a factor to a square are not determined.
    pub(crate) fn is_determined(self, outputs: &[View], input: &View) -> bool {
        let shorter = input.shape().iter().rev().take(2).min();
        match self {
            Form::Qr => outputs[0].shape().last() == shorter,
            Form::Svd if outputs.len() > 1 => {
                outputs[0].shape().last() == shorter && outputs[2].shape().iter().rev().nth(1) == shorter
            }
            _ => true,
        }
    }

    /// Does the operation change some elements of its output and keep the others?
    pub(crate) fn keeps_elements(self) -> bool {
        matches!(self, Form::Scatter | Form::ScatterAdd | Form::CondScatter)
    }
}
