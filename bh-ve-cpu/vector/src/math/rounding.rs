//! Correctly rounded single instructions as functions of the table.

use crate::simd::Vector;

/// Smallest whole number not below x.
#[inline(always)]
pub(crate) fn ceil<V: Vector, const SINGLE: bool>(x: V) -> V {
    x.ceil()
}

/// Nearest whole number towards zero.
#[inline(always)]
pub(crate) fn trunc<V: Vector, const SINGLE: bool>(x: V) -> V {
    x.trunc()
}

/// Largest whole number not above x.
#[inline(always)]
pub(crate) fn floor<V: Vector, const SINGLE: bool>(x: V) -> V {
    x.floor()
}

/// Nearest whole number, halves to even.
#[inline(always)]
pub(crate) fn rint<V: Vector, const SINGLE: bool>(x: V) -> V {
    x.rint()
}
