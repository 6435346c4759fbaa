//! The checks of operations that a configuration enables, by name.

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
    /// All operations, stored or not: no NaN from operands without NaN, no infinity from finite operands.
    pub nan_all: bool,
    /// Indices of gather and scatter are inside the arrays, and views inside their bases.
    pub bounds: bool,
}

/// The names of the checks.
const NAMES: &str = "bounds, inf, nan, nan-all, overflow, zero-division";

impl Checks {
    /// Whether any check is enabled.
    pub fn any(self) -> bool {
        self.fused() || self.one_by_one()
    }

    /// Whether a check of fused programs is enabled.
    pub fn fused(self) -> bool {
        self.nan || self.inf || self.overflow || self.zero_division
    }

    /// Whether an enabled check requires operations to run one by one.
    pub fn one_by_one(self) -> bool {
        self.nan_all || self.bounds
    }

    /// The checks of a list such as "nan,inf"; "none" disables all. Fails with the unknown name.
    pub fn parse(list: &str) -> std::result::Result<Checks, String> {
        let mut checks = Checks::default();
        for name in list.split(',').map(str::trim) {
            match name {
                "nan" => checks.nan = true,
                "inf" => checks.inf = true,
                "overflow" => checks.overflow = true,
                "zero-division" => checks.zero_division = true,
                "nan-all" => checks.nan_all = true,
                "bounds" => checks.bounds = true,
                "" | "none" => {}
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
    fn lists_of_checks_are_read_strictly() {
        let none = Checks::default();
        for (list, expected) in [
            ("nan,bounds", Checks { nan: true, bounds: true, ..none }),
            (" bounds , nan,nan ", Checks { nan: true, bounds: true, ..none }),
            ("nan-all", Checks { nan_all: true, ..none }),
            ("inf,overflow", Checks { inf: true, overflow: true, ..none }),
            ("zero-division", Checks { zero_division: true, ..none }),
            ("none", none),
            ("", none),
        ] {
            assert_eq!(Checks::parse(list), Ok(expected), "{list}");
        }
        for list in ["nans", "nan,infinity", "1", "nan bounds"] {
            let error = Checks::parse(list).unwrap_err();
            let valid = "valid: bounds, inf, nan, nan-all, overflow, zero-division, or a list of them, or none";
            assert!(error.ends_with(valid), "{error}");
        }
    }
}
