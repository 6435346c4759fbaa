//! Quotients by multiplications: those by what stays the same along a row, and those that share a divisor.

mod invariant;
mod shared;

pub(crate) use invariant::{InvariantDivisor, invariant_quotient, prepare};
pub(crate) use shared::{Reciprocal, shared_quotient};
