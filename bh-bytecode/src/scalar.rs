//! The result of every opcode for one element: the scalar functions that the opcode table names.
//!
//! The functions are generic over small traits of element classes, which follow the type sets of the table. Simple
//! arithmetic is always inlined, so that loops around it can be vectorised.

mod complex;
mod complex_functions;
mod float;
mod integer;

use crate::element::{CastFrom, Element};
use crate::truth::Truth;

/// Sums and products: all types. Sums and products of bool are logical or and and.
pub trait Arithmetic: Element {
    /// The neutral element of sums.
    const ZERO: Self;
    /// The neutral element of products.
    const ONE: Self;
    /// Sum.
    fn add(self, other: Self) -> Self;
    /// Product.
    fn multiply(self, other: Self) -> Self;
}

/// All types but bool.
pub trait Numeric: Arithmetic {
    /// The type of absolute values.
    type Abs: Element;
    /// Difference.
    fn subtract(self, other: Self) -> Self;
    /// Quotient.
    fn divide(self, other: Self) -> Self;
    /// Power.
    fn power(self, exponent: Self) -> Self;
    /// Absolute value.
    fn absolute(self) -> Self::Abs;
    /// -1, 0 or 1; x/|x| of complex numbers.
    fn sign(self) -> Self;
}

/// All types but complex.
pub trait Ordered: Element + PartialOrd {
    /// The neutral element of minima.
    const HIGHEST: Self;
    /// The neutral element of maxima.
    const LOWEST: Self;
    /// The larger; NaN if either is; the first of equal operands.
    fn maximum(self, other: Self) -> Self;
    /// The smaller; NaN if either is; the first of equal operands.
    fn minimum(self, other: Self) -> Self;
}

/// Integers and floats.
pub trait Real: Numeric + Ordered {
    /// Largest whole number not above the quotient.
    fn floor_divide(self, other: Self) -> Self;
    /// Remainder with the sign of the dividend.
    fn fmod(self, other: Self) -> Self;
    /// Remainder with the sign of the divisor.
    fn remainder(self, other: Self) -> Self;
}

/// bool and integers.
pub trait Bits: Element {
    /// The neutral element of the bitwise and.
    const ALL_ONES: Self;
    /// Bitwise and.
    fn bit_and(self, other: Self) -> Self;
    /// Bitwise or.
    fn bit_or(self, other: Self) -> Self;
    /// Bitwise exclusive or.
    fn bit_xor(self, other: Self) -> Self;
    /// Bitwise complement.
    fn invert(self) -> Self;
}

/// Integers.
pub trait Integer: Bits + Real {
    /// Left shift; a count outside the width gives 0.
    fn left_shift(self, count: Self) -> Self;
    /// Right shift, arithmetic if signed; a count outside the width gives 0, or -1 for negative numbers.
    fn right_shift(self, count: Self) -> Self;
}

/// Complex types.
pub trait ComplexElement: Numeric {
    /// The type of the parts.
    type Part: Float;
    /// Complex conjugate.
    fn conj(self) -> Self;
    /// 1/x.
    fn reciprocal(self) -> Self;
    /// Real part.
    fn real(self) -> Self::Part;
    /// Imaginary part.
    fn imag(self) -> Self::Part;
}

/// Tests for special values: all types.
pub trait Classify: Element {
    /// Is it, or either part of it, NaN?
    fn isnan(self) -> bool;
    /// Is it, or either part of it, infinite?
    fn isinf(self) -> bool;
    /// Is it, with all its parts, finite?
    fn isfinite(self) -> bool;
}

/// Generic functions that call the trait methods of the same names.
macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident: $trait:ident($($arg:ident),*) -> $result:ty;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub fn $name<T: $trait>($($arg: T),*) -> $result {
            T::$name($($arg),*).into()
        }
    )*};
}

/// A trait with unary functions of one type, and the generic functions that call them.
macro_rules! unary_class {
    ($(#[$class_doc:meta])* $trait:ident: $($super:ident)|+ { $($(#[$doc:meta])* $name:ident;)* }) => {
        $(#[$class_doc])*
        pub trait $trait: $($super +)+ {
            $($(#[$doc])* fn $name(self) -> Self;)*
        }
        $(
            $(#[$doc])*
            #[inline]
            pub fn $name<T: $trait>(x: T) -> T {
                T::$name(x)
            }
        )*
    };
}

unary_class! {
    /// Floats and complex numbers.
    Inexact: Numeric {
        /// Cosine.
        cos;
        /// Sine.
        sin;
        /// Tangent.
        tan;
        /// Hyperbolic cosine.
        cosh;
        /// Hyperbolic sine.
        sinh;
        /// Hyperbolic tangent.
        tanh;
        /// e to the power x.
        exp;
        /// Natural logarithm.
        log;
        /// Logarithm to base 10.
        log10;
        /// Square root.
        sqrt;
        /// Inverse sine.
        arcsin;
        /// Inverse cosine.
        arccos;
        /// Inverse tangent.
        arctan;
        /// Inverse hyperbolic sine.
        arcsinh;
        /// Inverse hyperbolic cosine.
        arccosh;
        /// Inverse hyperbolic tangent.
        arctanh;
        /// 2 to the power x.
        exp2;
        /// e to the power x, minus 1.
        expm1;
        /// Logarithm to base 2.
        log2;
        /// Natural logarithm of 1 + x.
        log1p;
    }
}

unary_class! {
    /// Unary functions of floats; [`Float`] completes them.
    FloatFunctions: Inexact | Real {
        /// Cube root.
        cbrt;
        /// Smallest whole number not below x.
        ceil;
        /// Nearest whole number towards zero.
        trunc;
        /// Largest whole number not above x.
        floor;
        /// Nearest whole number, halves to even.
        rint;
        /// Error function.
        erf;
        /// Complementary error function.
        erfc;
    }
}

/// Floats.
pub trait Float: FloatFunctions {
    /// Angle of the point (`x`, `self`).
    fn arctan2(self, x: Self) -> Self;
    /// Is the sign bit set?
    fn signbit(self) -> bool;
}

functions! {
    /// Sum; logical or for bool.
    add: Arithmetic(a, b) -> T;
    /// Product; logical and for bool.
    multiply: Arithmetic(a, b) -> T;
    /// Difference.
    subtract: Numeric(a, b) -> T;
    /// Quotient; integers round towards minus infinity, and division by zero gives 0.
    divide: Numeric(a, b) -> T;
    /// Absolute value.
    absolute: Numeric(x) -> T::Abs;
    /// -1, 0 or 1; x/|x| of complex numbers.
    sign: Numeric(x) -> T;
    /// Largest whole number not above the quotient; integer division by zero gives 0.
    floor_divide: Real(a, b) -> T;
    /// Remainder with the sign of the dividend; integer modulo zero gives 0.
    fmod: Real(a, b) -> T;
    /// Remainder with the sign of the divisor; integer modulo zero gives 0.
    remainder: Real(a, b) -> T;
    /// Complex conjugate.
    conj: ComplexElement(x) -> T;
    /// 1/x; NaN for zero.
    reciprocal: ComplexElement(x) -> T;
    /// Real part.
    real: ComplexElement(x) -> T::Part;
    /// Imaginary part.
    imag: ComplexElement(x) -> T::Part;
    /// The larger; NaN if either is; the first of equal operands.
    maximum: Ordered(a, b) -> T;
    /// The smaller; NaN if either is; the first of equal operands.
    minimum: Ordered(a, b) -> T;
    /// Bitwise and.
    bit_and: Bits(a, b) -> T;
    /// Bitwise or.
    bit_or: Bits(a, b) -> T;
    /// Bitwise exclusive or.
    bit_xor: Bits(a, b) -> T;
    /// Bitwise complement; logical not for bool.
    invert: Bits(x) -> T;
    /// Left shift; a count outside the width gives 0.
    left_shift: Integer(a, b) -> T;
    /// Right shift, arithmetic if signed; a count outside the width gives 0, or -1 for negative numbers.
    right_shift: Integer(a, b) -> T;
    /// Is it, or either part of it, NaN?
    isnan: Classify(x) -> Truth;
    /// Is it, or either part of it, infinite?
    isinf: Classify(x) -> Truth;
    /// Is it, with all its parts, finite?
    isfinite: Classify(x) -> Truth;
    /// Is the sign bit set? Also of -0 and NaN.
    signbit: Float(x) -> Truth;
}

/// Power; integers exactly (wrapping), and a negative integer exponent truncates the true value towards 0.
#[inline]
pub fn power<T: Numeric>(a: T, b: T) -> T {
    a.power(b)
}

/// Angle of the point (`b`, `a`).
#[inline]
pub fn arctan2<T: Float>(a: T, b: T) -> T {
    a.arctan2(b)
}

/// Power with a constant exponent in the order of products x², x²·x, 1·(x²·x²), x⁴·(1·x); exponents above 5, which no valid
/// instruction has, go on multiplying by x. The products by one change signs of zeros, and infinite parts, of complex
/// numbers, and nothing else; a complex 0 of any signs gives 0: as [`power`].
#[inline(always)]
pub fn powi<T: Arithmetic>(x: T, exponent: u16) -> T {
    let square = || x.multiply(x);
    if T::DTYPE.is_complex() && exponent > 1 && x == T::ZERO {
        return T::ZERO;
    }
    match exponent {
        0 => T::ONE,
        1 => x,
        2 => square(),
        3 => square().multiply(x),
        4 => T::ONE.multiply(square().multiply(square())),
        _ => (4..exponent).fold(square().multiply(square()), |product, _| product.multiply(T::ONE.multiply(x))),
    }
}

/// Is the first greater?
#[inline(always)]
pub fn greater<T: Ordered>(a: T, b: T) -> Truth {
    Truth::from(a > b)
}

/// Is the first greater or equal?
#[inline(always)]
pub fn greater_equal<T: Ordered>(a: T, b: T) -> Truth {
    Truth::from(a >= b)
}

/// Is the first less?
#[inline(always)]
pub fn less<T: Ordered>(a: T, b: T) -> Truth {
    Truth::from(a < b)
}

/// Is the first less or equal?
#[inline(always)]
pub fn less_equal<T: Ordered>(a: T, b: T) -> Truth {
    Truth::from(a <= b)
}

/// Are they equal?
#[inline(always)]
pub fn equal<T: Element>(a: T, b: T) -> Truth {
    Truth::from(a == b)
}

/// Do they differ?
#[inline(always)]
pub fn not_equal<T: Element>(a: T, b: T) -> Truth {
    Truth::from(a != b)
}

/// The value converted to another type.
#[inline(always)]
pub fn cast<S: Element, D: CastFrom<S>>(x: S) -> D {
    D::cast_from(x)
}

/// The value converted to another type, floats beyond an integer type as x86's instructions convert them.
#[inline(always)]
pub fn wrap<S: Element, D: CastFrom<S>>(x: S) -> D {
    D::wrapped_from(x)
}

/// The value converted to another type, floats beyond an integer type as AArch64's vector instructions convert them.
#[inline(always)]
pub fn narrow<S: Element, D: CastFrom<S>>(x: S) -> D {
    D::narrowed_from(x)
}

/// `a` where the mask is true, else `b`.
#[inline(always)]
pub fn select<T: Copy>(mask: Truth, a: T, b: T) -> T {
    if mask.get() { a } else { b }
}

/// The neutral element of sums, or, or exclusive or.
#[inline(always)]
pub const fn zero<T: Arithmetic>() -> T {
    T::ZERO
}

/// The neutral element of products.
#[inline(always)]
pub const fn one<T: Arithmetic>() -> T {
    T::ONE
}

/// The neutral element of minima.
#[inline(always)]
pub const fn highest<T: Ordered>() -> T {
    T::HIGHEST
}

/// The neutral element of maxima.
#[inline(always)]
pub const fn lowest<T: Ordered>() -> T {
    T::LOWEST
}

/// The neutral element of and.
#[inline(always)]
pub const fn all_ones<T: Bits>() -> T {
    T::ALL_ONES
}
