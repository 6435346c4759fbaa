//! Complex numbers as pairs of floats, laid out as in C and NumPy.

/// A complex number in Cartesian form.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Complex<T> {
    /// The real part.
    pub re: T,
    /// The imaginary part.
    pub im: T,
}

/// Complex of two binary32.
#[allow(non_camel_case_types, reason = "named like the primitive types beside it")]
pub type c64 = Complex<f32>;
/// Complex of two binary64.
#[allow(non_camel_case_types, reason = "named like the primitive types beside it")]
pub type c128 = Complex<f64>;

impl<T> Complex<T> {
    /// The number re + i·im.
    pub const fn new(re: T, im: T) -> Complex<T> {
        Complex { re, im }
    }
}
