//! What conversions make of floats beyond an integer type.

/// What conversions of floats to integer types make of numbers that the type lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Casts {
    /// What NumPy makes of them on this processor.
    #[default]
    Numpy,
    /// The nearest number of the type, and 0 of NaN.
    Saturate,
}

impl Casts {
    /// The parameter of COPY that stands for this rule on this processor.
    pub fn param(self) -> u16 {
        u16::from(self == Casts::Numpy && cfg!(target_arch = "x86_64"))
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
