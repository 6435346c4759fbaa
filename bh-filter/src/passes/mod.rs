//! The rewriting passes, one file each. A pass changes what an instruction computes or reads only when its output keeps
//! its values, and is lost by the same causes where something fails ([`Losses`](crate::losses::Losses)); removing what
//! nobody needs any more is `dead_code`'s job alone.

mod collect;
mod common;
mod copies;
mod dead_code;
mod extents;
mod matmul;
mod pieces;
mod programs;
mod reduction_chain;
mod shapes;
mod simplify;
mod tables;

pub use programs::Made;

use bh_bytecode::Batch;
use tables::{Views, new_base};

/// Inputs of the passes besides the batch.
#[derive(Default)]
pub struct Options {
    /// May floating-point operations be regrouped?
    pub reassociate: bool,
    /// Operations on fewer elements are not cut where arrays in pieces are.
    pub pieces_from: i64,
    /// Bytes that memory moves while a kernel starts, on engines that start each kernel by itself; 0 on those that run chains of kernels in
    /// lock-step, row by row.
    pub kernel_bytes: i64,
    /// Do engines take a fold's elements as [`bh_kernel::folds_in_order`] says? Ranks fold their own parts first.
    pub in_order: bool,
    /// Scalar programs that passes made.
    pub programs: Made,
}

/// A pass.
pub struct Pass {
    /// The name in the list of passes.
    pub name: &'static str,
    /// Rewrites a batch in place and returns how many instructions it changed or removed.
    pub run: fn(&mut Batch, &Options) -> usize,
    /// Does it look at the values of constants, beyond their classes?
    pub by_value: bool,
}

/// All passes, in the order in which they run by default.
pub static ALL: &[Pass] = &[
    Pass { name: "simplify", run: simplify::run, by_value: false },
    Pass { name: "collect", run: collect::run, by_value: true },
    Pass { name: "reduction-chain", run: reduction_chain::run, by_value: false },
    Pass { name: "matmul", run: matmul::run, by_value: false },
    Pass { name: "common", run: common::run, by_value: true },
    Pass { name: "copies", run: copies::run, by_value: false },
    Pass { name: "pieces", run: pieces::run, by_value: false },
    Pass { name: "programs", run: programs::run, by_value: false },
    Pass { name: "dead-code", run: dead_code::run, by_value: false },
];

#[cfg(test)]
mod tests {
    #[test]
    fn the_key_lists_all_passes_in_their_order() {
        let names: Vec<&str> = super::ALL.iter().map(|pass| pass.name).collect();
        assert_eq!(bh_core::keys::filter::PASSES.default(), names.join(","));
    }
}
