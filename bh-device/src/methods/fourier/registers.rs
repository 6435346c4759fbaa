//! The text of transforms of a few numbers in registers: by halves, and of odd numbers of values directly.

use super::number;
use bh_bytecode::DType;
use bh_bytecode::c::type_name;
use std::fmt::Write;

/// Statements that transform values in registers.
pub(super) struct Registers<'a> {
    pub(super) text: &'a mut String,
    pub(super) dtype: DType,
    /// How many have names.
    pub(super) count: usize,
}

/// The expressions of a number's parts.
type Parts = (String, String);

impl Registers<'_> {
    fn number(&self, value: f64) -> String {
        format!("({})", number(self.dtype, value))
    }

    /// Gives a number a name.
    fn name(&mut self, re: &str, im: &str) -> Parts {
        let (part, count) = (type_name(self.dtype.real_part()), self.count);
        self.count += 1;
        writeln!(self.text, "const {part} r{count} = {re}, i{count} = {im};").unwrap_or_default();
        (format!("r{count}"), format!("i{count}"))
    }

    /// The transform of these values.
    pub(super) fn transform(&mut self, values: &[Parts]) -> Vec<Parts> {
        match values.len() {
            1 => values.to_vec(),
            even if even.is_multiple_of(2) => self.halves(values),
            _ => self.odd(values),
        }
    }

    /// Of an even number of values: from the transforms of every second one.
    fn halves(&mut self, values: &[Parts]) -> Vec<Parts> {
        let n = values.len();
        let of = |odd: usize| values.iter().skip(odd).step_by(2).cloned().collect::<Vec<_>>();
        let (even, odd) = (self.transform(&of(0)), self.transform(&of(1)));
        let mut results = vec![Parts::default(); n];
        for (k, ((er, ei), odd)) in even.into_iter().zip(odd).enumerate() {
            let (tr, ti) = self.turned(odd, k, n);
            results[k] = self.name(&format!("{er} + {tr}"), &format!("{ei} + {ti}"));
            results[k + n / 2] = self.name(&format!("{er} - {tr}"), &format!("{ei} - {ti}"));
        }
        results
    }

    /// A value times exp(-2πi·k/n).
    fn turned(&mut self, (re, im): Parts, k: usize, n: usize) -> Parts {
        let (c, s) = (self.number(angle(k, n).cos()), self.number(angle(k, n).sin()));
        match 8 * k {
            0 => (re, im),
            eighths if eighths == 2 * n => (im, format!("(-{re})")),
            eighths if eighths == n => self.name(&format!("{c} * ({re} + {im})"), &format!("{c} * ({im} - {re})")),
            eighths if eighths == 3 * n => self.name(&format!("{s} * ({im} - {re})"), &format!("-{s} * ({re} + {im})")),
            _ => self.name(&format!("{re} * {c} + {im} * {s}"), &format!("{im} * {c} - {re} * {s}")),
        }
    }

    /// Of an odd number of values: pairs at the same distance from the first one have the same factors.
    fn odd(&mut self, values: &[Parts]) -> Vec<Parts> {
        let n = values.len();
        let (mut sums, mut differences) = (Vec::new(), Vec::new());
        for j in 1..=n / 2 {
            let ((ar, ai), (br, bi)) = (&values[j], &values[n - j]);
            sums.push(self.name(&format!("{ar} + {br}"), &format!("{ai} + {bi}")));
            differences.push(self.name(&format!("{ar} - {br}"), &format!("{ai} - {bi}")));
        }
        let (re, im) = &values[0];
        let all = |first: &str, part: fn(&Parts) -> &String| {
            sums.iter().fold(first.to_owned(), |text, sum| format!("{text} + {}", part(sum)))
        };
        let mut results = vec![Parts::default(); n];
        results[0] = self.name(&all(re, |sum| &sum.0), &all(im, |sum| &sum.1));
        for k in 1..=n / 2 {
            let (mut along, mut across) = ((re.clone(), im.clone()), (String::from("0"), String::from("0")));
            for (j, (sum, difference)) in (1..).zip(sums.iter().zip(&differences)) {
                let turn = angle(j * k % n, n);
                let (c, s) = (self.number(turn.cos()), self.number(turn.sin()));
                along = (format!("{} + {c} * {}", along.0, sum.0), format!("{} + {c} * {}", along.1, sum.1));
                across = (
                    format!("{} + {s} * {}", across.0, difference.0),
                    format!("{} + {s} * {}", across.1, difference.1),
                );
            }
            let (ar, ai) = self.name(&along.0, &along.1);
            let (br, bi) = self.name(&across.0, &across.1);
            results[k] = self.name(&format!("{ar} + {bi}"), &format!("{ai} - {br}"));
            results[n - k] = self.name(&format!("{ar} - {bi}"), &format!("{ai} + {br}"));
        }
        results
    }
}

fn angle(k: usize, of: usize) -> f64 {
    2.0 * std::f64::consts::PI * k as f64 / of as f64
}
