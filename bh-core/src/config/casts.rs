//! Conversion of floats outside the range of an integer type.

/// The result of converting a float outside the range of an integer type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Casts {
    /// NumPy's result on this processor.
    #[default]
    Numpy,
    /// The nearest value of the type; 0 for NaN.
    Saturate,
}

impl Casts {
    /// The parameter of COPY for this rule on this processor.
    pub fn param(self) -> u16 {
        match self {
            Casts::Numpy if cfg!(target_arch = "x86_64") => 1,
            Casts::Numpy if cfg!(target_arch = "aarch64") => 2,
            _ => 0,
        }
    }
}

impl super::Setting for Casts {
    const FORM: &'static str = "numpy or saturate";

    fn read(text: &str) -> Option<Casts> {
        match text {
            "numpy" => Some(Casts::Numpy),
            "saturate" => Some(Casts::Saturate),
            _ => None,
        }
    }
}
