//! References for vector functions, in more digits.

pub mod accuracy;
pub mod mpc;
pub mod mpfr;
