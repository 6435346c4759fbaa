//! The checks of operations that a configuration asks for, by their names.

/// The checks that a context makes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checks {
    /// No operation makes NaN of other numbers, or infinities of finite ones.
    pub nan: bool,
    /// Indices of gather and scatter lie inside of the arrays, and views inside of theirs.
    pub bounds: bool,
}

/// The names of the checks.
const NAMES: &str = "bounds, nan";

impl Checks {
    /// Is anything checked?
    pub fn any(self) -> bool {
        self.nan || self.bounds
    }

    /// The checks of a list like "nan,bounds"; "none" stands for no checks. Fails with the name that is none.
    pub fn parse(list: &str) -> std::result::Result<Checks, String> {
        let mut checks = Checks::default();
        for name in list.split(',').map(str::trim) {
            match name {
                "nan" => checks.nan = true,
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
        let both = Checks { nan: true, bounds: true };
        for (list, expected) in [
            ("nan,bounds", both),
            (" bounds , nan,nan ", both),
            ("nan", Checks { nan: true, bounds: false }),
            ("bounds", Checks { nan: false, bounds: true }),
            ("none", Checks::default()),
            ("", Checks::default()),
        ] {
            assert_eq!(Checks::parse(list), Ok(expected), "{list}");
        }
        for list in ["nans", "nan,inf", "1", "nan bounds"] {
            let error = Checks::parse(list).unwrap_err();
            assert!(error.ends_with("is no check; valid: bounds, nan, or a list of them, or none"), "{error}");
        }
    }
}
