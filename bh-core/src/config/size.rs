//! Sizes in configurations.

use super::key::Setting;
use crate::machine;

/// Bytes, or another number, as [`parse_size`] reads them. Percentages are of the machine's memory, or of a container's
/// limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub usize);

impl Setting for Size {
    const FORM: &'static str = "a size like 8GiB, 512MiB, 4096 or 90% (of the machine's memory), or none";

    fn read(text: &str) -> Option<Size> {
        parse_size(text, machine::memory).map(Size)
    }
}

/// Bytes: a number with an optional unit (KiB, MiB, GiB, TiB), a percentage of `whole`, or "none" for no limit.
pub fn parse_size(text: &str, whole: impl Fn() -> u64) -> Option<usize> {
    let text = text.trim();
    if text == "none" {
        return Some(usize::MAX);
    }
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..digits], text[digits..].trim());
    let factor = match unit {
        "%" => {
            let percent: f64 = number.parse().ok()?;
            return (percent <= 100.0).then(|| (whole() as f64 * percent / 100.0) as usize);
        }
        "" | "B" => 1,
        "KiB" | "K" => 1 << 10,
        "MiB" | "M" => 1 << 20,
        "GiB" | "G" => 1 << 30,
        "TiB" | "T" => 1u64 << 40,
        _ => return None,
    };
    match number.parse::<u64>() {
        Ok(number) => usize::try_from(number.checked_mul(factor)?).ok(),
        Err(_) => number.parse::<f64>().ok().filter(|_| factor > 1).map(|number| (number * factor as f64) as usize),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_and_parts() {
        let parse = |text| parse_size(text, || 1000);
        let cases = [
            ("0", Some(0)),
            ("4096", Some(4096)),
            ("8GiB", Some(8 << 30)),
            ("1.5 MiB", Some(3 << 19)),
            ("90%", Some(900)),
            ("none", Some(usize::MAX)),
            ("101%", None),
            ("1.5", None),
            ("8GB", None),
            ("", None),
            ("-1", None),
            ("99999999TiB", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text), expected, "{text}");
        }
    }
}
