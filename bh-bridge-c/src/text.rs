//! How arrays look as text: NumPy's columns of numbers, brackets and line breaks.

use bh_bytecode::{Constant, DType, Truth, c128};

/// Digits after the point, at most.
const PRECISION: usize = 8;
/// Characters in a line, if elements are not longer.
const WIDTH: usize = 75;

/// Lays the shown elements of an array out. `shown` has the shown indices of each dimension.
pub(crate) fn array(elements: &[Constant], dtype: DType, shown: &[Vec<i64>], shape: &[i64]) -> String {
    if shape.is_empty() {
        return elements.first().map_or_else(String::new, |&element| scalar(element, dtype));
    }
    if shape.contains(&0) {
        return "[]".into();
    }
    let words = words(elements, dtype);
    let mut next = words.iter().map(String::as_str);
    let mut out = String::new();
    brackets(shown, shape, &mut next, " ", WIDTH, &mut out);
    out
}

/// One bracket and what is in it. `indent` stands before its further lines, which have `width` characters.
fn brackets<'a>(
    shown: &[Vec<i64>],
    shape: &[i64],
    next: &mut impl Iterator<Item = &'a str>,
    indent: &str,
    width: usize,
    out: &mut String,
) {
    let Some((indices, inner)) = shown.split_first() else { return };
    let gap_before = |place: usize| place > 0 && indices[place] != indices[place - 1] + 1;
    let gap_at_end = indices.last().zip(shape.first()).is_some_and(|(last, extent)| last + 1 < *extent);
    out.push('[');
    if inner.is_empty() {
        // The line so far, with the indent that stands before it.
        let mut line = indent.chars().count();
        let mut put = |word: &str, first: bool| {
            let length = word.chars().count();
            let separator = usize::from(!first);
            if !first && line + separator + length > width.saturating_sub(1) && line > indent.len() {
                out.push('\n');
                out.push_str(indent);
                line = indent.len();
            } else if !first {
                out.push(' ');
                line += 1;
            }
            out.push_str(word);
            line += length;
        };
        for place in 0..indices.len() {
            if gap_before(place) {
                put("...", false);
            }
            put(next.next().unwrap_or_default(), place == 0);
        }
        if gap_at_end {
            put("...", false);
        }
    } else {
        let deeper = format!("{indent} ");
        let separator = format!("{}{indent}", "\n".repeat(inner.len()));
        for place in 0..indices.len() {
            if place > 0 {
                out.push_str(&separator);
            }
            if gap_before(place) {
                out.push_str("...");
                out.push_str(&separator);
            }
            brackets(inner, &shape[1..], next, &deeper, width.saturating_sub(1), out);
        }
        if gap_at_end {
            out.push_str(&separator);
            out.push_str("...");
        }
    }
    out.push(']');
}

/// The elements as words of one width.
fn words(elements: &[Constant], dtype: DType) -> Vec<String> {
    match dtype {
        DType::Bool => {
            elements.iter().map(|element| if element.to::<Truth>().get() { " True" } else { "False" }.into()).collect()
        }
        DType::F32 | DType::F64 => {
            let values: Vec<f64> = elements.iter().map(|element| element.to()).collect();
            column(&values, dtype == DType::F32, false)
        }
        DType::C64 | DType::C128 => {
            let values: Vec<c128> = elements.iter().map(|element| element.to()).collect();
            let single = dtype == DType::C64;
            let real = column(&values.iter().map(|value| value.re).collect::<Vec<_>>(), single, false);
            let imaginary = column(&values.iter().map(|value| value.im).collect::<Vec<_>>(), single, true);
            let join = |(real, imaginary): (&String, &String)| {
                let digits = imaginary.trim_end();
                format!("{real}{digits}j{}", &imaginary[digits.len()..])
            };
            real.iter().zip(&imaginary).map(join).collect()
        }
        _ => {
            let texts: Vec<String> = elements.iter().map(|&element| integer(element, dtype)).collect();
            let width = texts.iter().map(String::len).max().unwrap_or(0);
            texts.iter().map(|text| format!("{text:>width$}")).collect()
        }
    }
}

fn integer(element: Constant, dtype: DType) -> String {
    if dtype == DType::U64 { element.to::<u64>().to_string() } else { element.to::<i64>().to_string() }
}

/// A number taken apart: sign and digits before the point, digits after it, exponent.
struct Parts {
    whole: String,
    fraction: String,
    exponent: i32,
}

fn parts(value: f64, single: bool, scientific: bool, plus: bool) -> Parts {
    // The shortest digits that are this number, unless they are too many.
    let shortest = match (single, scientific) {
        (true, false) => format!("{}", value as f32),
        (true, true) => format!("{:e}", value as f32),
        (false, false) => format!("{value}"),
        (false, true) => format!("{value:e}"),
    };
    let fraction_of = |text: &str| {
        let mantissa = text.split('e').next().unwrap_or_default();
        mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len())
    };
    let text = match (fraction_of(&shortest) > PRECISION, scientific) {
        (false, _) => shortest,
        (true, false) => format!("{value:.PRECISION$}"),
        (true, true) => format!("{value:.PRECISION$e}"),
    };
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let sign = if plus && !value.is_sign_negative() { "+" } else { "" };
    Parts {
        whole: format!("{sign}{whole}"),
        fraction: fraction.trim_end_matches('0').to_owned(),
        exponent: exponent.parse().unwrap_or(0),
    }
}

/// Numbers with their points below each other. `plus`: positive ones have a sign, too.
fn column(values: &[f64], single: bool, plus: bool) -> Vec<String> {
    let magnitudes = || values.iter().map(|value| value.abs()).filter(|value| value.is_finite() && *value != 0.0);
    let (least, greatest) = (magnitudes().fold(f64::INFINITY, f64::min), magnitudes().fold(0.0, f64::max));
    let scientific = greatest != 0.0 && (greatest >= 1e8 || least < 1e-4 || greatest / least > 1000.0);
    let apart = |&value: &f64| value.is_finite().then(|| parts(value, single, scientific, plus));
    let all: Vec<Option<Parts>> = values.iter().map(apart).collect();
    let longest = |length: fn(&Parts) -> usize| all.iter().flatten().map(length).max().unwrap_or(0);
    let fraction = longest(|parts| parts.fraction.len());
    let digits = longest(|parts| parts.exponent.unsigned_abs().to_string().len()).max(2);
    let right = if scientific { fraction + digits + 2 } else { fraction };
    let odd = |value: f64| match (value.is_nan(), value < 0.0) {
        (true, _) => {
            if plus {
                "+nan"
            } else {
                "nan"
            }
        }
        (false, true) => "-inf",
        (false, false) => {
            if plus {
                "+inf"
            } else {
                "inf"
            }
        }
    };
    let odd_length = values.iter().filter(|value| !value.is_finite()).map(|&value| odd(value).len()).max().unwrap_or(0);
    let left = longest(|parts| parts.whole.len()).max(odd_length.saturating_sub(right + 1));
    let word = |(value, parts): (&f64, &Option<Parts>)| match parts {
        None => format!("{:>width$}", odd(*value), width = left + right + 1),
        Some(Parts { whole, fraction: digits_after, exponent }) if scientific => {
            let sign = if *exponent < 0 { '-' } else { '+' };
            format!("{whole:>left$}.{digits_after:0<fraction$}e{sign}{:0>digits$}", exponent.unsigned_abs())
        }
        Some(Parts { whole, fraction: digits_after, .. }) => format!("{whole:>left$}.{digits_after:<fraction$}"),
    };
    values.iter().zip(&all).map(word).collect()
}

/// The element of an array without dimensions.
fn scalar(element: Constant, dtype: DType) -> String {
    match dtype {
        DType::Bool => if element.to::<Truth>().get() { "True" } else { "False" }.into(),
        DType::F32 | DType::F64 => number(element.to(), dtype == DType::F32, ".0"),
        DType::C64 | DType::C128 => {
            let (value, single): (c128, bool) = (element.to(), dtype == DType::C64);
            let imaginary = number(value.im, single, "");
            if value.re == 0.0 && value.re.is_sign_positive() {
                return format!("{imaginary}j");
            }
            let plus = if imaginary.starts_with('-') { "" } else { "+" };
            format!("({}{plus}{imaginary}j)", number(value.re, single, ""))
        }
        _ => integer(element, dtype),
    }
}

/// A number alone, as Python shows it. `end` follows whole numbers.
fn number(value: f64, single: bool, end: &str) -> String {
    if !value.is_finite() {
        return if value.is_nan() { "nan".into() } else { format!("{value}") };
    }
    let magnitude = value.abs();
    if magnitude >= 1e16 || (magnitude < 1e-4 && magnitude != 0.0) {
        let text = if single { format!("{:e}", value as f32) } else { format!("{value:e}") };
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        return format!("{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs());
    }
    let text = if single { format!("{}", value as f32) } else { format!("{value}") };
    if text.contains('.') { text } else { text + end }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bh_bytecode::Complex;

    fn floats(values: &[f64], shape: &[i64]) -> String {
        let shown: Vec<Vec<i64>> = shape.iter().map(|&extent| (0..extent).collect()).collect();
        let elements: Vec<Constant> = values.iter().map(|&value| Constant::from_value(value)).collect();
        array(&elements, DType::F64, &shown, shape)
    }

    // The expected texts are what NumPy 2 prints.
    #[test]
    fn floats_look_as_in_numpy() {
        assert_eq!(floats(&[1.0, 2.5], &[2]), "[1.  2.5]");
        assert_eq!(floats(&[1.0, -2.0, 0.25, 100.0], &[2, 2]), "[[  1.    -2.  ]\n [  0.25 100.  ]]");
        assert_eq!(floats(&[1e-10, 1.5e10], &[2]), "[1.0e-10 1.5e+10]");
        assert_eq!(floats(&[f64::NAN, 1.0, f64::NEG_INFINITY], &[3]), "[ nan   1. -inf]");
        assert_eq!(floats(&[f64::NAN], &[1]), "[nan]");
        assert_eq!(floats(&[1e8, 1.0], &[2]), "[1.e+08 1.e+00]");
        assert_eq!(floats(&[1e-5, 1e300], &[2]), "[1.e-005 1.e+300]");
        assert_eq!(floats(&[1.0 / 3.0, 0.0], &[2]), "[0.33333333 0.        ]");
        assert_eq!(floats(&[2.0], &[]), "2.0");
        assert_eq!(floats(&[1e-5], &[]), "1e-05");
        assert_eq!(floats(&[], &[0, 3]), "[]");
    }

    #[test]
    fn long_lines_are_broken() {
        let values: Vec<f64> = (0..30).map(|i| f64::from(i) * 1.5).collect();
        let expected = "[ 0.   1.5  3.   4.5  6.   7.5  9.  10.5 12.  13.5 15.  16.5 18.  19.5\n 21.  22.5 24.  25.5 27.  28.5 30.  31.5 33.  34.5 36.  37.5 39.  40.5\n 42.  43.5]";
        assert_eq!(floats(&values, &[30]), expected);
    }

    #[test]
    fn other_types_look_as_in_numpy() {
        let one = |elements: &[Constant], dtype| {
            array(elements, dtype, &[(0..elements.len() as i64).collect()], &[elements.len() as i64])
        };
        let c = |re: f64, im: f64| Constant::from_value(Complex::new(re, im));
        assert_eq!(one(&[c(1.0, 2.0), c(-0.0, -0.5)], DType::C128), "[ 1.+2.j  -0.-0.5j]");
        assert_eq!(
            one(&[true, false].map(|value| Constant::from_value(Truth::from(value))), DType::Bool),
            "[ True False]"
        );
        assert_eq!(one(&[Constant::from_value(-1i32), Constant::from_value(10i32)], DType::I32), "[-1 10]");
        assert_eq!(array(&[c(1.0, 2.0)], DType::C128, &[], &[]), "(1+2j)");
        let third = [Constant::from_value(1f32 / 3.0), Constant::from_value(2f32 / 3.0)];
        assert_eq!(one(&third, DType::F32), "[0.33333334 0.6666667 ]");
    }

    #[test]
    fn dimensions_and_gaps() {
        let elements: Vec<Constant> = (0..8).map(|i| Constant::from_value(i64::from(i))).collect();
        let text = array(&elements, DType::I64, &[vec![0, 1], vec![0, 1], vec![0, 1]], &[2, 2, 2]);
        assert_eq!(text, "[[[0 1]\n  [2 3]]\n\n [[4 5]\n  [6 7]]]");
        let text = array(&elements[..4], DType::I64, &[vec![0, 1, 98, 99]], &[100]);
        assert_eq!(text, "[0 1 ... 2 3]");
        let text = array(&elements[..2], DType::I64, &[vec![0], vec![0, 1]], &[5, 2]);
        assert_eq!(text, "[[0 1]\n ...]");
    }
}
