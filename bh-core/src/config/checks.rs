//! The checks of operations that a configuration asks for, by their names.

/// The checks that a context makes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checks {
    /// No stored element is NaN that is made of other numbers.
    pub nan: bool,
    /// No stored element is an infinity that is made of finite numbers.
    pub inf: bool,
    /// No sum, difference or product of integers is beyond its type.
    pub overflow: bool,
    /// No integer is divided by zero.
    pub zero_division: bool,
    /// No operation makes NaN of other numbers, or infinities of finite ones, stored or not.
    pub nan_all: bool,
    /// Indices of gather and scatter lie inside of the arrays, and views inside of theirs.
    pub bounds: bool,
}

/// The names of the checks.
const NAMES: &str = "bounds, inf, nan, nan-all, overflow, zero-division";

impl Checks {
    /// Is anything checked?
    pub fn any(self) -> bool {
        self.fused() || self.one_by_one()
    }

    /// Is there a check of fused programs?
    pub fn fused(self) -> bool {
        self.nan || self.inf || self.overflow || self.zero_division
    }

    /// Is there a check for which operations run one by one?
    pub fn one_by_one(self) -> bool {
        self.nan_all || self.bounds
    }

    /// The checks of a list like "nan,inf"; "none" stands for no checks. Fails with the name that is none.
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
