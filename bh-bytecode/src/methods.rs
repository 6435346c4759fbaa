//! The operands of the extension methods that come with bh: their shapes and types, checked where a call is recorded and
//! again where it runs.

use crate::dtype::DType;
use std::ops::RangeInclusive;

/// An operand of a call.
#[derive(Clone, Copy, Debug)]
pub struct Form<'a> {
    /// The type of its elements.
    pub dtype: DType,
    /// Its extents.
    pub shape: &'a [i64],
}

/// The condition that a call violates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// The numbers of operands.
    Count(String),
    /// The types of elements.
    Type(String),
    /// The shapes.
    Shape(String),
}

/// Are outputs and inputs as they have to be?
type Fits = fn(&[Form<'_>], &[Form<'_>]) -> bool;

/// A method that comes with bh.
pub struct Method {
    /// Its name.
    pub name: &'static str,
    /// Its result, in words.
    pub doc: &'static str,
    /// Names and shapes of outputs and inputs.
    pub operands: &'static str,
    /// The types of their elements.
    pub types: &'static str,
    /// Its failures besides wrong types and shapes; empty for none.
    pub fails: &'static str,
    /// Does it take stacks, of which each matrix is a call of its own?
    stacks: bool,
    outputs: RangeInclusive<usize>,
    inputs: usize,
    types_fit: Fits,
    shapes_fit: Fits,
}

const ALIKE: &str = "all, alike";
const INEXACT: &str = "floats, complex, alike";
const NOT_FINITE: &str = "elements that are infinite or not a number";

/// The methods.
pub const METHODS: &[Method] = &[
    Method {
        name: "matmul",
        doc: "The matrix product; either input may be a vector.",
        operands: "out (m, n) ← a (m, k), b (k, n)",
        types: ALIKE,
        fails: "",
        stacks: false,
        outputs: 1..=1,
        inputs: 2,
        types_fit: |outputs, inputs| alike(inputs) && outputs[0].dtype == inputs[0].dtype,
        shapes_fit: |outputs, inputs| match (inputs[0].shape, inputs[1].shape, outputs[0].shape) {
            (&[m, k], &[l, n], output) => k == l && output == [m, n],
            (&[k], &[l, n], output) => k == l && output == [n],
            (&[m, k], &[l], output) => k == l && output == [m],
            _ => false,
        },
    },
    Method {
        name: "solve",
        doc: "The solution x of a·x = b, for one right side or several in columns.",
        operands: "out as b ← a (n, n), b (n) or (n, k)",
        types: INEXACT,
        fails: "a singular matrix",
        stacks: true,
        outputs: 1..=1,
        inputs: 2,
        types_fit: inexact_alike,
        shapes_fit: |outputs, inputs| {
            let (matrix, sides) = (inputs[0].shape, inputs[1].shape);
            square(matrix) && sides.first() == matrix.first() && sides.len() <= 2 && outputs[0].shape == sides
        },
    },
    Method {
        name: "lu",
        doc: "The factors L (without its diagonal of ones) and U in one matrix, and, if there is a second output, the permutation of rows.",
        operands: "out (n, n), permutation (n) ← a (n, n)",
        types: "floats, complex; permutation i64",
        fails: "",
        stacks: true,
        outputs: 1..=2,
        inputs: 1,
        types_fit: |outputs, inputs| {
            let of_rows = |form: &Form<'_>| form.dtype == DType::I64;
            inexact(inputs) && outputs[0].dtype == inputs[0].dtype && outputs[1..].iter().all(of_rows)
        },
        shapes_fit: |outputs, inputs| {
            let matrix = inputs[0].shape;
            let of_rows = |form: &Form<'_>| form.shape == &matrix[..1];
            square(matrix) && outputs[0].shape == matrix && outputs[1..].iter().all(of_rows)
        },
    },
    Method {
        name: "cholesky",
        doc: "The lower triangular L whose product with its conjugate transpose is a, of which the lower triangle is read.",
        operands: "out (n, n) ← a (n, n)",
        types: INEXACT,
        fails: "a matrix that is not positive definite",
        stacks: true,
        outputs: 1..=1,
        inputs: 1,
        types_fit: inexact_alike,
        shapes_fit: |outputs, inputs| square(inputs[0].shape) && outputs[0].shape == inputs[0].shape,
    },
    Method {
        name: "qr",
        doc: "Orthonormal columns q and the upper triangular r whose product is a; k is m, or the smaller of m and n.",
        operands: "q (m, k), r (k, n) ← a (m, n)",
        types: INEXACT,
        fails: "",
        stacks: true,
        outputs: 2..=2,
        inputs: 1,
        types_fit: inexact_alike,
        shapes_fit: |outputs, inputs| match (inputs[0].shape, outputs[0].shape, outputs[1].shape) {
            (&[m, n], &[rows, k], &[l, columns]) => rows == m && columns == n && k == l && (k == m || k == m.min(n)),
            _ => false,
        },
    },
    Method {
        name: "eigh",
        doc: "Eigenvalues of a Hermitian matrix, rising, of which the lower triangle is read; eigenvectors in columns, if there is a second output.",
        operands: "values (n), vectors (n, n) ← a (n, n)",
        types: "floats, complex; values of the real type",
        fails: NOT_FINITE,
        stacks: true,
        outputs: 1..=2,
        inputs: 1,
        types_fit: |outputs, inputs| {
            let first = inputs[0].dtype;
            let vectors = outputs[1..].iter().all(|form| form.dtype == first);
            inexact(inputs) && outputs[0].dtype == first.real_part() && vectors
        },
        shapes_fit: eigen_shapes,
    },
    Method {
        name: "eig",
        doc: "Eigenvalues of a square matrix; eigenvectors in columns, if there is a second output.",
        operands: "values (n), vectors (n, n) ← a (n, n)",
        types: "floats, complex; outputs complex",
        fails: NOT_FINITE,
        stacks: true,
        outputs: 1..=2,
        inputs: 1,
        types_fit: into_complex,
        shapes_fit: eigen_shapes,
    },
    Method {
        name: "svd",
        doc: "The singular values alone, falling, or in the middle: u · diag(values) · v is a. With k the smaller of m and n, u may also be (m, m) and v (n, n).",
        operands: "u (m, k), values (k), v (k, n) ← a (m, n)",
        types: "floats, complex; values of the real type",
        fails: NOT_FINITE,
        stacks: true,
        outputs: 1..=3,
        inputs: 1,
        types_fit: |outputs, inputs| {
            let (first, values) = (inputs[0].dtype, usize::from(outputs.len() > 1));
            let is_right =
                |(at, form): (usize, &Form<'_>)| form.dtype == if at == values { first.real_part() } else { first };
            inexact(inputs) && outputs.iter().enumerate().all(is_right)
        },
        shapes_fit: |outputs, inputs| match (inputs[0].shape, outputs) {
            (&[m, n], [values]) => values.shape == [m.min(n)],
            (&[m, n], [left, values, right]) => {
                let short = m.min(n);
                let sides = [[m, short], [short, n]];
                let full = left.shape == [m, m] && right.shape == [n, n];
                values.shape == [short] && (full || (left.shape == sides[0] && right.shape == sides[1]))
            }
            _ => false,
        },
    },
    Method {
        name: "fft",
        doc: "The discrete Fourier transform along the last axis.",
        operands: "out (…, n) ← a (…, n)",
        types: "floats, complex; out complex",
        fails: "",
        stacks: false,
        outputs: 1..=1,
        inputs: 1,
        types_fit: into_complex,
        shapes_fit: lines,
    },
    Method {
        name: "ifft",
        doc: "The inverse of fft, with the factor 1/n.",
        operands: "out (…, n) ← a (…, n)",
        types: "floats, complex; out complex",
        fails: "",
        stacks: false,
        outputs: 1..=1,
        inputs: 1,
        types_fit: into_complex,
        shapes_fit: lines,
    },
    Method {
        name: "rfft",
        doc: "The first half of fft of real numbers, which determines the other half; h is n / 2 + 1.",
        operands: "out (…, h) ← a (…, n)",
        types: "floats; out complex",
        fails: "",
        stacks: false,
        outputs: 1..=1,
        inputs: 1,
        types_fit: |outputs, inputs| inputs[0].dtype.is_float() && into_complex(outputs, inputs),
        shapes_fit: |outputs, inputs| half_lines(outputs[0].shape, inputs[0].shape),
    },
    Method {
        name: "irfft",
        doc: "The inverse of rfft, with the factor 1/n; h is n / 2 + 1. It takes the first element as real, and for an even n the last one.",
        operands: "out (…, n) ← a (…, h)",
        types: "complex; out of the real type",
        fails: "",
        stacks: false,
        outputs: 1..=1,
        inputs: 1,
        types_fit: |outputs, inputs| inputs[0].dtype.is_complex() && outputs[0].dtype == inputs[0].dtype.real_part(),
        shapes_fit: |outputs, inputs| half_lines(inputs[0].shape, outputs[0].shape),
    },
    Method {
        name: "sort",
        doc: "The elements in ascending order along the last axis; NaN comes last.",
        operands: "out (…, n) ← a (…, n)",
        types: ALIKE,
        fails: "",
        stacks: false,
        outputs: 1..=1,
        inputs: 1,
        types_fit: |outputs, inputs| outputs[0].dtype == inputs[0].dtype,
        shapes_fit: lines,
    },
    Method {
        name: "argsort",
        doc: "The positions along the last axis that put the elements in ascending order; equal elements keep theirs.",
        operands: "out (…, n) ← a (…, n)",
        types: "all; out i64",
        fails: "",
        stacks: false,
        outputs: 1..=1,
        inputs: 1,
        types_fit: into_positions,
        shapes_fit: lines,
    },
    Method {
        name: "searchsorted_left",
        doc: "For each value the first position in the sorted vector before which it could stand.",
        operands: "out as values ← sorted (n), values",
        types: "all, inputs alike; out i64",
        fails: "",
        stacks: false,
        outputs: 1..=1,
        inputs: 2,
        types_fit: into_positions,
        shapes_fit: |outputs, inputs| inputs[0].shape.len() == 1 && outputs[0].shape == inputs[1].shape,
    },
    Method {
        name: "searchsorted_right",
        doc: "For each value the last position in the sorted vector before which it could stand.",
        operands: "out as values ← sorted (n), values",
        types: "all, inputs alike; out i64",
        fails: "",
        stacks: false,
        outputs: 1..=1,
        inputs: 2,
        types_fit: into_positions,
        shapes_fit: |outputs, inputs| inputs[0].shape.len() == 1 && outputs[0].shape == inputs[1].shape,
    },
    Method {
        name: "count_nonzero",
        doc: "The number of true elements.",
        operands: "out () ← mask",
        types: "mask bool; out i64",
        fails: "",
        stacks: false,
        outputs: 1..=1,
        inputs: 1,
        types_fit: of_mask,
        shapes_fit: |outputs, _| outputs[0].shape.is_empty(),
    },
    Method {
        name: "flatnonzero",
        doc: "The positions of the true elements in C order.",
        operands: "out (k) ← mask",
        types: "mask bool; out i64",
        fails: "an output that has not k elements, the number of true ones",
        stacks: false,
        outputs: 1..=1,
        inputs: 1,
        types_fit: of_mask,
        shapes_fit: |outputs, _| outputs[0].shape.len() == 1,
    },
    Method {
        name: "compress",
        doc: "The elements of an array where a mask is true, in C order.",
        operands: "out (k) ← mask, a as mask",
        types: "mask bool; out and a all, alike",
        fails: "an output that has not k elements, the number of true ones",
        stacks: false,
        outputs: 1..=1,
        inputs: 2,
        types_fit: |outputs, inputs| inputs[0].dtype == DType::Bool && outputs[0].dtype == inputs[1].dtype,
        shapes_fit: |outputs, inputs| outputs[0].shape.len() == 1 && inputs[0].shape == inputs[1].shape,
    },
];

fn alike(inputs: &[Form<'_>]) -> bool {
    inputs.iter().all(|form| form.dtype == inputs[0].dtype)
}

fn inexact(inputs: &[Form<'_>]) -> bool {
    inputs[0].dtype.is_float() || inputs[0].dtype.is_complex()
}

fn inexact_alike(outputs: &[Form<'_>], inputs: &[Form<'_>]) -> bool {
    inexact(inputs) && alike(inputs) && outputs.iter().all(|form| form.dtype == inputs[0].dtype)
}

fn into_complex(outputs: &[Form<'_>], inputs: &[Form<'_>]) -> bool {
    let complex = if inputs[0].dtype.real_part() == DType::F32 { DType::C64 } else { DType::C128 };
    inexact(inputs) && outputs.iter().all(|form| form.dtype == complex)
}

fn into_positions(outputs: &[Form<'_>], inputs: &[Form<'_>]) -> bool {
    alike(inputs) && outputs[0].dtype == DType::I64
}

fn of_mask(outputs: &[Form<'_>], inputs: &[Form<'_>]) -> bool {
    inputs[0].dtype == DType::Bool && outputs[0].dtype == DType::I64
}

fn square(shape: &[i64]) -> bool {
    matches!(shape, &[rows, columns] if rows == columns)
}

fn eigen_shapes(outputs: &[Form<'_>], inputs: &[Form<'_>]) -> bool {
    let matrix = inputs[0].shape;
    let vectors = outputs[1..].iter().all(|form| form.shape == matrix);
    square(matrix) && outputs[0].shape == &matrix[..1] && vectors
}

fn lines(outputs: &[Form<'_>], inputs: &[Form<'_>]) -> bool {
    !inputs[0].shape.is_empty() && outputs[0].shape == inputs[0].shape
}

/// Does `halves` have the shape of the first halves of transforms of lines of the shape `whole`?
fn half_lines(halves: &[i64], whole: &[i64]) -> bool {
    match (halves.split_last(), whole.split_last()) {
        (Some((half, stack)), Some((&len, other))) => stack == other && len > 0 && *half == len / 2 + 1,
        _ => false,
    }
}

/// The prefix of the names of scalar programs: such a name is the program's whole text, in which its own name follows.
pub const PROGRAM: &str = "program ";

/// The text before the list of arrays that a scalar program reads at subscripts, if it does.
pub const READS: &str = " reads (";

/// Is it a scalar program?
pub fn is_program(name: &str) -> bool {
    name.starts_with(PROGRAM)
}

/// Is it a scalar program that makes each element of its outputs of the elements of its inputs at the same place?
pub fn is_by_element(name: &str) -> bool {
    is_program(name) && !name.contains(READS)
}

/// A method's name as people see it: of a scalar program without its text.
pub fn shown(name: &str) -> &str {
    if is_program(name) { name.split_once(" (").map_or(name, |(head, _)| head) } else { name }
}

/// The method of this name, if it comes with bh.
pub fn shipped(name: &str) -> Option<&'static Method> {
    METHODS.iter().find(|method| method.name == name)
}

/// Checks the operands of a method; of one that does not come with bh, nothing is known.
pub fn check(name: &str, outputs: &[Form<'_>], inputs: &[Form<'_>]) -> Result<(), Misfit> {
    let Some(method) = shipped(name) else { return Ok(()) };
    if !method.outputs.contains(&outputs.len()) || inputs.len() != method.inputs {
        let (given_out, given_in) = (outputs.len(), inputs.len());
        let text = format!("{name}: {given_out} outputs and {given_in} inputs given; it takes {}", method.operands);
        return Err(Misfit::Count(text));
    }
    if !(method.types_fit)(outputs, inputs) {
        let list = |forms: &[Form<'_>]| forms.iter().map(|form| form.dtype.name()).collect::<Vec<_>>().join(", ");
        let text = format!("{name}: not for inputs of {} and an output of {}", list(inputs), list(outputs));
        return Err(Misfit::Type(text));
    }
    if !method.shapes_are_right(outputs, inputs) {
        let list = |forms: &[Form<'_>]| forms.iter().map(|form| format!("{:?}", form.shape)).collect::<Vec<_>>();
        let (from, to) = (list(inputs).join(", "), list(outputs).join(", "));
        return Err(Misfit::Shape(format!("{name}: shapes {from} do not fit the output's {to}")));
    }
    Ok(())
}

impl Method {
    /// The extents of the stack that a call is for: those before the two of its first input's matrices. Of a method that takes no
    /// stacks, none.
    pub fn stack<'a>(&self, first: &'a [i64]) -> &'a [i64] {
        if self.stacks { &first[..first.len().saturating_sub(2)] } else { &[] }
    }

    /// Do all operands begin with the extents of the stack, and are the rest as one call wants them?
    fn shapes_are_right(&self, outputs: &[Form<'_>], inputs: &[Form<'_>]) -> bool {
        let stack = self.stack(inputs[0].shape);
        if stack.is_empty() {
            return (self.shapes_fit)(outputs, inputs);
        }
        fn each<'a>(forms: &[Form<'a>], stack: &[i64]) -> Option<Vec<Form<'a>>> {
            let one = |form: &Form<'a>| form.shape.strip_prefix(stack).map(|shape| Form { shape, ..*form });
            forms.iter().map(one).collect()
        }
        let parts = each(outputs, stack).zip(each(inputs, stack));
        parts.is_some_and(|(outputs, inputs)| (self.shapes_fit)(&outputs, &inputs))
    }

    /// The documentation in sentences.
    pub fn sentences(&self) -> Vec<String> {
        let mut all =
            vec![self.doc.to_owned(), format!("Operands: {}.", self.operands), format!("Types: {}.", self.types)];
        if self.stacks {
            all.push("Takes stacks: all operands have further axes before these, of the same extents.".into());
        }
        if !self.fails.is_empty() {
            all.push(format!("Fails for {}.", self.fails));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(dtype: DType, shape: &[i64]) -> Form<'_> {
        Form { dtype, shape }
    }

    #[test]
    fn programs_are_shown_without_their_texts() {
        assert_eq!(shown("program steps (i64) -> (i64) {}"), "program steps");
        assert_eq!(["matmul", "program"].map(shown), ["matmul", "program"]);
        assert!(is_program("program f (f64) -> (f64) {}") && !is_program("programs"));
        let reading = "program f (f64) -> (f64) with () reads (a:f64:1) {}";
        assert!(is_by_element("program f (f64) -> (f64) {}") && is_program(reading) && !is_by_element(reading));
    }

    #[test]
    fn calls_are_checked() {
        use DType::{C64, F32, F64, I64};
        let matrix = form(F64, &[3, 3]);
        assert_eq!(check("solve", &[form(F64, &[3])], &[matrix, form(F64, &[3])]), Ok(()));
        assert_eq!(check("lu", &[matrix, form(I64, &[3])], &[matrix]), Ok(()));
        let (stack, sides) = (form(F64, &[7, 2, 3, 3]), form(F64, &[7, 2, 3]));
        assert_eq!(check("solve", &[sides], &[stack, sides]), Ok(()));
        assert_eq!(check("lu", &[stack, form(I64, &[7, 2, 3])], &[stack]), Ok(()));
        assert!(matches!(check("solve", &[sides], &[stack, form(F64, &[7, 3])]), Err(Misfit::Shape(_))));
        assert!(matches!(check("solve", &[form(F64, &[2, 7, 3])], &[stack, sides]), Err(Misfit::Shape(_))));
        assert!(matches!(check("matmul", &[stack], &[stack, stack]), Err(Misfit::Shape(_))));
        assert_eq!(check("fft", &[form(C64, &[2, 5])], &[form(F32, &[2, 5])]), Ok(()));
        for len in [1, 4, 5] {
            let (whole, half) = (&[2, len], &[2, len / 2 + 1]);
            assert_eq!(check("rfft", &[form(C64, half)], &[form(F32, whole)]), Ok(()));
            assert_eq!(check("irfft", &[form(F32, whole)], &[form(C64, half)]), Ok(()));
            assert!(matches!(check("irfft", &[form(F64, whole)], &[form(C64, half)]), Err(Misfit::Type(_))));
            assert!(matches!(check("rfft", &[form(C64, &[2, len])], &[form(F32, &[len, 2])]), Err(Misfit::Shape(_))));
        }
        assert_eq!(check("matmul", &[form(I64, &[2])], &[form(I64, &[3]), form(I64, &[3, 2])]), Ok(()));
        let (mask, chosen) = (form(DType::Bool, &[3, 3]), [form(F64, &[4])]);
        assert_eq!(check("compress", &chosen, &[mask, matrix]), Ok(()));
        assert!(matches!(check("compress", &chosen, &[form(DType::Bool, &[9]), matrix]), Err(Misfit::Shape(_))));
        assert!(matches!(check("flatnonzero", &[form(I64, &[4])], &[matrix]), Err(Misfit::Type(_))));
        assert_eq!(check("the user's", &[], &[]), Ok(()));
        assert!(matches!(check("solve", &[], &[matrix]), Err(Misfit::Count(_))));
        assert!(matches!(check("cholesky", &[form(I64, &[3, 3])], &[form(I64, &[3, 3])]), Err(Misfit::Type(_))));
        assert!(matches!(check("fft", &[form(F32, &[5])], &[form(F32, &[5])]), Err(Misfit::Type(_))));
        assert!(matches!(check("sort", &[form(F64, &[])], &[form(F64, &[])]), Err(Misfit::Shape(_))));
        let text = "solve: shapes [3, 3], [2] do not fit the output's [2]";
        let misfit = check("solve", &[form(F64, &[2])], &[matrix, form(F64, &[2])]);
        assert_eq!(misfit, Err(Misfit::Shape(text.into())));
    }
}
