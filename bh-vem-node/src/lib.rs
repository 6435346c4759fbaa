//! The node manager: owns the arrays of one address space. It decides which copy of an array is valid, hands out host
//! memory on first use, and carries out the data management that batches ask for.

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
