//! Quotients by divisors that are constant along a row, computed by multiplications.

mod invariant;

pub(crate) use invariant::{InvariantDivisor, invariant_quotient, prepare};
