//! Formats values like Octave's short format.

use std::fmt::Write;

/// Significant digits.
const PRECISION: i32 = 5;
/// Width of the terminal.
const TERMINAL: usize = 80;

/// A value to print: its elements in column order.
pub struct Shown<'a> {
    /// Elements.
    pub values: &'a [f64],
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// Truth values.
    pub logical: bool,
    /// Created by a range.
    pub range: bool,
}

enum Form {
    Whole(usize),
    Fixed(usize, usize),
    Exponent,
}

fn digits(value: f64) -> i32 {
    if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 + 1 }
}

fn places(digits: i32) -> (i32, i32) {
    match digits {
        1.. => (digits, if PRECISION > digits { PRECISION - digits } else { PRECISION }),
        0 => (1, PRECISION - 1),
        _ => (1, PRECISION - digits),
    }
}

fn form(values: &[f64], scalar: bool) -> Form {
    let finite = || values.iter().copied().filter(|value| value.is_finite());
    let odd = values.iter().any(|value| !value.is_finite());
    let largest = finite().fold(0.0, |a: f64, b| a.max(b.abs()));
    if finite().all(|value| value.fract() == 0.0) {
        let digits = digits(largest).max(1);
        let width = (digits as usize + 1).max(if odd && !scalar { 4 } else { 0 });
        // The number of digits at which Octave changes to powers of ten.
        let most = if scalar { 7 } else { 6 };
        return if digits > most { Form::Exponent } else { Form::Whole(width) };
    }
    let smallest = finite().fold(f64::INFINITY, |a: f64, b| a.min(b.abs()));
    let (high, low) = (places(digits(largest)), places(digits(smallest)));
    let (left, right) = (high.0.max(low.0), high.1.max(low.1));
    let width = 1 + left + 1 + right;
    if width > 9 { Form::Exponent } else { Form::Fixed(width as usize, right as usize) }
}

fn number(value: f64, form: &Form) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Inf" } else { "-Inf" }.to_owned();
    }
    match form {
        Form::Whole(_) => format!("{:.0}", value + 0.0),
        Form::Fixed(..) if value == 0.0 => "0".to_owned(),
        Form::Fixed(_, right) => format!("{value:.right$}"),
        Form::Exponent if value == 0.0 => "0".to_owned(),
        Form::Exponent => exponent(value, PRECISION as usize - 1),
    }
}

/// Formats like C's `%.Ne`.
pub fn exponent(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    let (mantissa, power) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, power) = power.strip_prefix('-').map_or(('+', power), |power| ('-', power));
    format!("{mantissa}e{sign}{power:0>2}")
}

/// A single number.
pub fn scalar(value: f64) -> String {
    number(value, &form(&[value], true))
}

/// `name = ...`
pub fn named(name: &str, shown: &Shown<'_>) -> String {
    if shown.values.is_empty() {
        return format!("{name} = []({}x{})\n", shown.rows, shown.cols);
    }
    match shown.values {
        [value] => format!("{name} = {}\n", scalar(*value)),
        _ => format!("{name} =\n\n{}\n", rows(shown)),
    }
}

/// The output of `disp`.
pub fn plain(shown: &Shown<'_>) -> String {
    match shown.values {
        [] => format!("[]({}x{})\n", shown.rows, shown.cols),
        [value] => format!("{}\n", scalar(*value)),
        _ => rows(shown),
    }
}

fn rows(shown: &Shown<'_>) -> String {
    let form = form(shown.values, false);
    let width = match form {
        _ if shown.logical => 3,
        Form::Whole(width) => width + 2,
        Form::Fixed(width, _) => width + 2 + usize::from(shown.range),
        Form::Exponent => 13,
    };
    let most = (TERMINAL / width).max(1);
    let mut text = String::new();
    for first in (0..shown.cols).step_by(most) {
        let end = (first + most).min(shown.cols);
        if shown.cols > most {
            let _ = match (first + 1, end) {
                (one, last) if one == last => write!(text, " Column {one}:\n\n"),
                (one, last) if one + 1 == last && last == shown.cols => write!(text, " Columns {one} and {last}:\n\n"),
                (one, last) => write!(text, " Columns {one} through {last}:\n\n"),
            };
        }
        for row in 0..shown.rows {
            for col in first..end {
                let _ = write!(text, "{:>width$}", number(shown.values[col * shown.rows + row], &form));
            }
            text.push('\n');
        }
        if shown.cols > most && end < shown.cols {
            text.push('\n');
        }
    }
    text
}

/// Formats like C's `%.Ng`.
pub fn general(value: f64, precision: usize) -> String {
    if !value.is_finite() {
        return number(value, &Form::Exponent);
    }
    if value == 0.0 {
        return if value.is_sign_negative() { "-0" } else { "0" }.to_owned();
    }
    let precision = precision.max(1);
    let rounded = format!("{value:.*e}", precision - 1);
    let power: i32 = rounded.split_once('e').and_then(|(_, power)| power.parse().ok()).unwrap_or(0);
    if power < -4 || power >= precision as i32 {
        let text = exponent(value, precision - 1);
        let (mantissa, power) = text.split_once('e').unwrap_or((&text, "+00"));
        let mantissa =
            if mantissa.contains('.') { mantissa.trim_end_matches('0').trim_end_matches('.') } else { mantissa };
        return format!("{mantissa}e{power}");
    }
    let text = format!("{value:.*}", (precision as i32 - 1 - power).max(0) as usize);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}
