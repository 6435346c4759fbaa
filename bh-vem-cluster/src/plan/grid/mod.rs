//! Arrays that are cut along several axes over a grid of ranks, and matrix products on such a grid.

pub mod layout;
pub mod moves;
pub mod operate;
mod output;
pub mod product;
pub mod reduce;
