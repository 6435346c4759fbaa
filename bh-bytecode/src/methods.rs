//! What the extension methods that come with bh take: shapes and types of their operands, checked where a call is recorded
//! and again where it runs.

use crate::dtype::DType;

/// An operand of a call.
#[derive(Clone, Copy, Debug)]
pub struct Form<'a> {
    /// The type of its elements.
    pub dtype: DType,
    /// Its extents.
    pub shape: &'a [i64],
}

/// What a call does not fulfil.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// The numbers of operands.
    Count(String),
    /// The types of elements.
    Type(String),
    /// The shapes.
    Shape(String),
}

/// The methods, with the numbers of their outputs and inputs.
const METHODS: &[(&str, std::ops::RangeInclusive<usize>, usize)] = &[
    ("matmul", 1..=1, 2),
    ("solve", 1..=1, 2),
    ("lu", 1..=2, 1),
    ("cholesky", 1..=1, 1),
    ("qr", 2..=2, 1),
    ("eigh", 1..=2, 1),
    ("eig", 1..=2, 1),
    ("svd", 1..=3, 1),
    ("fft", 1..=1, 1),
    ("ifft", 1..=1, 1),
    ("sort", 1..=1, 1),
    ("argsort", 1..=1, 1),
    ("searchsorted_left", 1..=1, 2),
    ("searchsorted_right", 1..=1, 2),
    ("count_nonzero", 1..=1, 1),
    ("flatnonzero", 1..=1, 1),
    ("compress", 1..=1, 2),
];

/// Does a method of this name come with bh?
pub fn is_shipped(name: &str) -> bool {
    METHODS.iter().any(|(known, ..)| *known == name)
}

/// Checks the operands of a method; of one that does not come with bh, nothing is known.
pub fn check(name: &str, outputs: &[Form<'_>], inputs: &[Form<'_>]) -> Result<(), Misfit> {
    let Some((_, out_count, in_count)) = METHODS.iter().find(|(known, ..)| *known == name) else { return Ok(()) };
    if !out_count.contains(&outputs.len()) || inputs.len() != *in_count {
        let (given_out, given_in) = (outputs.len(), inputs.len());
        let text = format!("{name}: {given_out} outputs and {given_in} inputs given; it takes {in_count} inputs");
        return Err(Misfit::Count(text));
    }
    if !types_fit(name, outputs, inputs) {
        let list = |forms: &[Form<'_>]| forms.iter().map(|form| form.dtype.name()).collect::<Vec<_>>().join(", ");
        let text = format!("{name}: not for inputs of {} and an output of {}", list(inputs), list(outputs));
        return Err(Misfit::Type(text));
    }
    if !shapes_fit(name, outputs, inputs) {
        let list = |forms: &[Form<'_>]| forms.iter().map(|form| format!("{:?}", form.shape)).collect::<Vec<_>>();
        let (from, to) = (list(inputs).join(", "), list(outputs).join(", "));
        return Err(Misfit::Shape(format!("{name}: shapes {from} do not fit the output's {to}")));
    }
    Ok(())
}

fn types_fit(name: &str, outputs: &[Form<'_>], inputs: &[Form<'_>]) -> bool {
    let first = inputs[0].dtype;
    let inexact = first.is_float() || first.is_complex();
    let alike = inputs.iter().all(|form| form.dtype == first);
    let complex = if first.real_part() == DType::F32 { DType::C64 } else { DType::C128 };
    match name {
        "matmul" | "sort" => alike && outputs[0].dtype == first,
        "count_nonzero" | "flatnonzero" => first == DType::Bool && outputs[0].dtype == DType::I64,
        "compress" => first == DType::Bool && outputs[0].dtype == inputs[1].dtype,
        "solve" | "cholesky" => inexact && alike && outputs[0].dtype == first,
        "lu" => inexact && outputs[0].dtype == first && outputs[1..].iter().all(|form| form.dtype == DType::I64),
        "qr" => inexact && outputs.iter().all(|form| form.dtype == first),
        "eigh" => {
            inexact && outputs[0].dtype == first.real_part() && outputs[1..].iter().all(|form| form.dtype == first)
        }
        "eig" | "fft" | "ifft" => inexact && outputs.iter().all(|form| form.dtype == complex),
        "svd" => {
            let values = usize::from(outputs.len() > 1);
            let is_right =
                |(at, form): (usize, &Form<'_>)| form.dtype == if at == values { first.real_part() } else { first };
            inexact && outputs.iter().enumerate().all(is_right)
        }
        _ => alike && outputs[0].dtype == DType::I64,
    }
}

fn shapes_fit(name: &str, outputs: &[Form<'_>], inputs: &[Form<'_>]) -> bool {
    let (input, output) = (inputs[0].shape, outputs[0].shape);
    let square = |shape: &[i64]| matches!(shape, &[rows, columns] if rows == columns);
    match name {
        "matmul" => match (input, inputs[1].shape) {
            (&[m, k], &[l, n]) => k == l && output == [m, n],
            (&[k], &[l, n]) => k == l && output == [n],
            (&[m, k], &[l]) => k == l && output == [m],
            _ => false,
        },
        "solve" => {
            let sides = inputs[1].shape;
            square(input) && sides.first() == input.first() && sides.len() <= 2 && output == sides
        }
        "lu" => square(input) && output == input && outputs[1..].iter().all(|form| form.shape == &input[..1]),
        "cholesky" => square(input) && output == input,
        "count_nonzero" => output.is_empty(),
        "flatnonzero" => output.len() == 1,
        "compress" => output.len() == 1 && input == inputs[1].shape,
        "qr" => match (input, output, outputs[1].shape) {
            (&[m, n], &[rows, k], &[l, columns]) => rows == m && columns == n && k == l && (k == m || k == m.min(n)),
            _ => false,
        },
        "eigh" | "eig" => square(input) && output == &input[..1] && outputs[1..].iter().all(|form| form.shape == input),
        "svd" => match (input, outputs) {
            (&[m, n], [values]) => values.shape == [m.min(n)],
            (&[m, n], [left, values, right]) => {
                let short = m.min(n);
                let sides = [[m, short], [short, n]];
                let full = left.shape == [m, m] && right.shape == [n, n];
                values.shape == [short] && (full || (left.shape == sides[0] && right.shape == sides[1]))
            }
            _ => false,
        },
        "searchsorted_left" | "searchsorted_right" => input.len() == 1 && output == inputs[1].shape,
        _ => !input.is_empty() && output == input,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(dtype: DType, shape: &[i64]) -> Form<'_> {
        Form { dtype, shape }
    }

    #[test]
    fn calls_are_checked() {
        use DType::{C64, F32, F64, I64};
        let matrix = form(F64, &[3, 3]);
        assert_eq!(check("solve", &[form(F64, &[3])], &[matrix, form(F64, &[3])]), Ok(()));
        assert_eq!(check("lu", &[matrix, form(I64, &[3])], &[matrix]), Ok(()));
        assert_eq!(check("fft", &[form(C64, &[2, 5])], &[form(F32, &[2, 5])]), Ok(()));
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
