//! The node manager owns the arrays of one address space. It tracks which copy of an array is valid, allocates host
//! memory on first use, and performs the data management of batches.

mod arrays;
mod buffer;
mod copy;
mod data;
mod fit;
mod loans;
mod node;
mod registry;
mod rehearsal;
mod tally;
#[cfg(test)]
mod tests;

pub use arrays::Leak;
pub use node::Node;
pub use registry::ArrayRegistry;

bh_core::export_component!(Node);
