//! `printf`: templates, repeated until all arguments are printed.

use crate::device::Device;
use crate::display::{exponent, general};
use crate::lexer::escape;
use crate::operators::matrix;
use crate::source::{Fault, Outcome};
use crate::value::Value;

enum Argument {
    Number(f64),
    Text(String),
}

/// The text of a template with arguments.
pub fn format(device: &Device, template: &str, values: &[Value]) -> Outcome<String> {
    let mut arguments = Vec::new();
    for value in values {
        match value {
            Value::Text(text) => arguments.push(Argument::Text(text.to_string())),
            Value::Number(value) => arguments.push(Argument::Number(*value)),
            other => arguments.extend(device.download(&matrix(device, other)?)?.into_iter().map(Argument::Number)),
        }
    }
    let mut text = String::new();
    let mut arguments = arguments.into_iter().peekable();
    let empty = arguments.peek().is_none();
    loop {
        let before = arguments.len();
        if once(template, &mut arguments, empty, &mut text)? || arguments.len() == 0 || arguments.len() == before {
            return Ok(text);
        }
    }
}

/// One pass; true if it ended at a conversion without an argument.
fn once(
    template: &str,
    arguments: &mut std::iter::Peekable<std::vec::IntoIter<Argument>>,
    empty: bool,
    text: &mut String,
) -> Outcome<bool> {
    let mut chars = template.chars().peekable();
    let mut used = false;
    while let Some(c) = chars.next() {
        if c == '\\' {
            text.push(chars.next().map_or('\\', escape));
            continue;
        }
        if c != '%' {
            text.push(c);
            continue;
        }
        if chars.next_if_eq(&'%').is_some() {
            text.push('%');
            continue;
        }
        let mut flags = String::new();
        while let Some(flag) = chars.next_if(|c| "-+ 0#".contains(*c)) {
            flags.push(flag);
        }
        let count = |chars: &mut std::iter::Peekable<std::str::Chars<'_>>| -> Option<usize> {
            let mut digits = String::new();
            while let Some(digit) = chars.next_if(char::is_ascii_digit) {
                digits.push(digit);
            }
            digits.parse().ok()
        };
        let width = count(&mut chars).unwrap_or(0).min(10_000);
        let precision =
            if chars.next_if_eq(&'.').is_some() { Some(count(&mut chars).unwrap_or(0).min(1000)) } else { None };
        while chars.next_if(|c| matches!(c, 'l' | 'h')).is_some() {}
        let Some(kind) = chars.next() else { return Err(Fault::new("printf: the template ends inside a conversion")) };
        if !"dioufFeEgGxscX".contains(kind) {
            return Err(Fault::new(format!("printf: the conversion %{kind} is not supported")));
        }
        let argument = arguments.next();
        if argument.is_none() && used | !empty {
            return Ok(true);
        }
        used = true;
        let field = match argument {
            None => String::new(),
            Some(argument) => convert(kind, precision, &flags, argument)?,
        };
        let missing = width.saturating_sub(field.chars().count());
        if flags.contains('-') {
            text.push_str(&field);
            text.push_str(&" ".repeat(missing));
        } else if flags.contains('0') && kind != 's' && field.ends_with(|c: char| c.is_ascii_digit()) {
            let (sign, digits) = field.split_at(usize::from(field.starts_with(['-', '+', ' '])));
            text.push_str(sign);
            text.push_str(&"0".repeat(missing));
            text.push_str(digits);
        } else {
            text.push_str(&" ".repeat(missing));
            text.push_str(&field);
        }
    }
    Ok(false)
}

fn convert(kind: char, precision: Option<usize>, flags: &str, argument: Argument) -> Outcome<String> {
    let number = match argument {
        Argument::Text(text) if matches!(kind, 's' | 'c') => {
            return Ok(precision.map_or(text.clone(), |most| text.chars().take(most).collect()));
        }
        Argument::Text(text) => {
            let mut chars = text.chars();
            match (chars.next(), chars.next()) {
                (Some(one), None) => f64::from(one as u32),
                _ => return Err(Fault::new(format!("printf: a text for %{kind} is not supported"))),
            }
        }
        Argument::Number(number) => number,
    };
    let whole = number.fract() == 0.0;
    let field = match kind {
        _ if !number.is_finite() => general(number, 5),
        'c' if whole && number >= 0.0 => char::from_u32(number as u32).map_or(String::new(), String::from),
        's' | 'c' => general(number, precision.unwrap_or(if whole { 17 } else { 5 })),
        'd' | 'i' | 'u' if whole => format!("{:.0}", number + 0.0),
        'x' | 'X' | 'o' if whole && number >= 0.0 => match kind {
            'x' => format!("{:x}", number as u64),
            'X' => format!("{:X}", number as u64),
            _ => format!("{:o}", number as u64),
        },
        'f' | 'F' => format!("{number:.*}", precision.unwrap_or(6)),
        'e' => exponent(number, precision.unwrap_or(6)),
        'E' => exponent(number, precision.unwrap_or(6)).to_uppercase(),
        'G' => general(number, precision.unwrap_or(6)).to_uppercase(),
        'g' => general(number, precision.unwrap_or(6)),
        // A number that is not whole is printed as such, whatever the conversion.
        _ => general(number, precision.unwrap_or(6)),
    };
    let plus = flags.contains('+') && !field.starts_with('-') && !matches!(kind, 's' | 'c');
    Ok(if plus { format!("+{field}") } else { field })
}
