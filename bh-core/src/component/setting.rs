//! The types that config keys have.

/// A type that the value of a config key can have.
pub trait Setting: Sized {
    /// What its values look like, as an error says it after "must be".
    const FORM: &'static str;

    /// The value that a text stands for.
    fn read(text: &str) -> Option<Self>;
}

impl Setting for bool {
    const FORM: &'static str = "true or false";

    fn read(text: &str) -> Option<bool> {
        match text {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ => None,
        }
    }
}

macro_rules! numbers {
    ($($type:ty = $form:literal;)*) => {$(
        impl Setting for $type {
            const FORM: &'static str = $form;

            fn read(text: &str) -> Option<$type> {
                text.parse().ok()
            }
        }
    )*};
}
numbers! {
    u32 = "a whole number from 0 to 4294967295";
    u64 = "a whole number from 0";
    usize = "a whole number from 0";
    f64 = "a number";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_of_their_form_alone() {
        assert_eq!(["true", "1", "false", "0"].map(bool::read), [Some(true), Some(true), Some(false), Some(false)]);
        assert_eq!(["on", "True", ""].map(bool::read), [None; 3]);
        assert_eq!(
            ["0", "4294967295", "4294967296", "-1", "1.5"].map(u32::read),
            [Some(0), Some(u32::MAX), None, None, None]
        );
        assert_eq!(["2.5", "half"].map(f64::read), [Some(2.5), None]);
    }
}
