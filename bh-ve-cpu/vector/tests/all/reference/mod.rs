//! What vector functions are compared with, in more digits.

pub mod accuracy;
pub mod mpc;
pub mod mpfr;
