//! Compositions of recorded operations for several bridges: positions of extremes, rolled, padded and joined arrays,
//! unit matrices, evenly spaced numbers, normal numbers, and arrays in files.
//!
//! Functions take arrays by number, and the place in the user's program for errors. Results are new arrays, which the
//! caller frees. Only functions on files wait.

mod arrange;
mod assembly;
mod extreme;
mod join;
mod npy;
mod random;
mod scope;
mod spaced;

pub use arrange::{Border, roll, rolled, steps_of_roll, with_numbers};
pub use assembly::{Assembly, Segment};
pub use extreme::{Extreme, position_of_extreme};
pub use join::{concatenate, eye, stack};
pub use npy::{load, npy_shape, save};
pub use random::normal;
pub use spaced::{Spacing, linspace, steps};
