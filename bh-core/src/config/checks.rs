//! The checks of operations that a configuration enables, by name.

use bh_bytecode::DType;

/// The enabled checks of a context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checks {
    /// Stored elements: no NaN from operands without NaN.
    pub nan: bool,
    /// Stored elements: no infinity from finite operands.
    pub inf: bool,
    /// Integers: no sum, difference or product overflows its type.
    pub overflow: bool,
    /// Integers: no division by zero.
    pub zero_division: bool,
    /// Floats and complex numbers: no sum or difference loses this many bits.
    pub cancellation: Cancellation,
    /// All operations, stored or not: no NaN from operands without NaN, no infinity from finite operands.
    pub nan_all: bool,
    /// Indices of gather and scatter are inside the arrays, and views inside their bases.
    pub bounds: bool,
}

/// The bits that a sum or difference may lose because its operands cancel each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cancellation {
    /// Any number: the check is off.
    #[default]
    Unchecked,
    /// Fewer than three quarters of the type's bits.
    ByType,
    /// Fewer than this number.
    Bits(u8),
}

impl Cancellation {
    /// The bits whose loss is reported, in numbers of this type; `None` if the check is off.
    pub fn limit(self, dtype: DType) -> Option<u8> {
        match self {
            Cancellation::Unchecked => None,
            Cancellation::ByType if dtype.real_part() == DType::F32 => Some(18),
            Cancellation::ByType => Some(40),
            Cancellation::Bits(bits) => Some(bits),
        }
    }

    /// Reads the number of bits of "cancellation=20".
    fn parse(bits: &str) -> std::result::Result<Cancellation, String> {
        match bits.parse() {
            Ok(bits @ 1..=52) => Ok(Cancellation::Bits(bits)),
            _ => Err(format!("'{bits}' is no number of bits of the check cancellation; valid: 1 to 52")),
        }
    }
}

/// The names of the checks.
const NAMES: &str = "bounds, cancellation, cancellation=BITS, inf, nan, nan-all, overflow, zero-division";

impl Checks {
    /// Whether any check is enabled.
    pub fn any(self) -> bool {
        self.fused() || self.one_by_one()
    }

    /// Whether a check of fused programs is enabled.
    pub fn fused(self) -> bool {
        self.nan || self.inf || self.overflow || self.zero_division || self.cancellation != Cancellation::Unchecked
    }

    /// Whether an enabled check requires operations to run one by one.
    pub fn one_by_one(self) -> bool {
        self.nan_all || self.bounds
    }

    /// The checks of a list such as "nan,cancellation=20"; "none" disables all. Fails with the unknown name.
    pub fn parse(list: &str) -> std::result::Result<Checks, String> {
        let mut checks = Checks::default();
        for name in list.split(',').map(str::trim) {
            match name {
                "nan" => checks.nan = true,
                "inf" => checks.inf = true,
                "overflow" => checks.overflow = true,
                "zero-division" => checks.zero_division = true,
                "cancellation" => checks.cancellation = Cancellation::ByType,
                "nan-all" => checks.nan_all = true,
                "bounds" => checks.bounds = true,
                "" | "none" => {}
                _ if name.starts_with("cancellation=") => {
                    checks.cancellation = Cancellation::parse(&name["cancellation=".len()..])?;
                }
                _ => return Err(format!("'{name}' is no check; valid: {NAMES}, or a list of them, or none")),
            }
        }
        Ok(checks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_a_cancellation_follows_from_the_type() {
        let limits = |check: Cancellation| [DType::F32, DType::F64, DType::C64].map(|dtype| check.limit(dtype));
        assert_eq!(limits(Cancellation::ByType), [Some(18), Some(40), Some(18)]);
        assert_eq!(limits(Cancellation::Bits(7)), [Some(7); 3]);
        assert_eq!(limits(Cancellation::Unchecked), [None; 3]);
    }

    #[test]
    fn lists_of_checks_are_read_strictly() {
        let none = Checks::default();
        for (list, expected) in [
            ("nan,bounds", Checks { nan: true, bounds: true, ..none }),
            (" bounds , nan,nan ", Checks { nan: true, bounds: true, ..none }),
            ("nan-all", Checks { nan_all: true, ..none }),
            ("inf,overflow", Checks { inf: true, overflow: true, ..none }),
            ("zero-division", Checks { zero_division: true, ..none }),
            ("cancellation", Checks { cancellation: Cancellation::ByType, ..none }),
            ("cancellation=52,inf", Checks { cancellation: Cancellation::Bits(52), inf: true, ..none }),
            ("none", none),
            ("", none),
        ] {
            assert_eq!(Checks::parse(list), Ok(expected), "{list}");
        }
        for list in ["nans", "nan,infinity", "1", "nan bounds", "cancellations"] {
            let error = Checks::parse(list).unwrap_err();
            let valid = "valid: bounds, cancellation, cancellation=BITS, inf, nan, nan-all, overflow, zero-division, or a list of them, or none";
            assert!(error.ends_with(valid), "{error}");
        }
        for list in ["cancellation=0", "cancellation=53", "cancellation=", "nan,cancellation=x"] {
            let error = Checks::parse(list).unwrap_err();
            assert!(error.ends_with("is no number of bits of the check cancellation; valid: 1 to 52"), "{error}");
        }
    }
}
