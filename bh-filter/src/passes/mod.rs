//! The rewriting passes, one file each. A pass changes what an instruction computes or reads only when its output keeps
//! its values, and is lost by the same causes where something fails ([`Losses`](crate::losses::Losses)); removing what
//! nobody needs any more is `dead_code`'s job alone.

mod collect;
mod common;
mod copies;
mod dead_code;
mod matmul;
mod reduction_chain;
mod simplify;

use bh_bytecode::{Batch, Opcode};

/// What passes are told besides the batch.
pub struct Options {
    /// May floating-point operations be regrouped?
    pub reassociate: bool,
    /// The opcode of the `matmul` extension method, if the stack below has it.
    pub matmul: Option<Opcode>,
}

/// Rewrites a batch in place and returns how many instructions it changed or removed.
pub type Pass = fn(&mut Batch, &Options) -> usize;

/// All passes by name, in the order in which they run by default.
pub const ALL: &[(&str, Pass)] = &[
    ("simplify", simplify::run),
    ("collect", collect::run),
    ("reduction-chain", reduction_chain::run),
    ("matmul", matmul::run),
    ("common", common::run),
    ("copies", copies::run),
    ("dead-code", dead_code::run),
];

#[cfg(test)]
mod tests {
    #[test]
    fn the_key_lists_all_passes_in_their_order() {
        let names: Vec<&str> = super::ALL.iter().map(|(name, _)| *name).collect();
        assert_eq!(bh_core::keys::filter::PASSES.default(), names.join(","));
    }
}
