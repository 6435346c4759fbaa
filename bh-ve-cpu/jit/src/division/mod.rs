//! Quotients by what stays the same along a row, made by multiplications.

mod invariant;

pub(crate) use invariant::{InvariantDivisor, invariant_quotient, prepare};
