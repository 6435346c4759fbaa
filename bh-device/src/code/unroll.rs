//! How many elements an item does one after the other.

use super::{Placement, Target};
use bh_bytecode::Opcode;
use bh_bytecode::compare::{Tolerance, tolerance};
use bh_kernel::{Kernel, Step};

/// Elements of an item, one after the other, where there are enough: several reads are on their way at once.
pub(super) const EACH: i64 = 4;
/// This many times the items that fill the device are enough.
pub(super) const TURNS: i64 = 4;
/// Longer bodies are not unrolled.
const LONG: usize = 40;

/// How many elements an item does one after the other; the error says why one. Functions are long, and registers few:
/// neither has room for some of each.
pub(super) fn unrolls(kernel: &Kernel, target: &Target) -> Result<i64, &'static str> {
    if !target.placements.has(Placement::Unroll) {
        return Err("not among the placements");
    }
    let function = |step: &Step| match *step {
        Step::Compute { opcode, input, .. } => tolerance(opcode, input) != Tolerance::Exact && opcode != Opcode::Sqrt,
        _ => false,
    };
    if kernel.steps.iter().any(function) {
        return Err("it has functions, which need registers");
    }
    if kernel.steps.len() > LONG { Err("too many operations") } else { Ok(EACH) }
}

/// A loop of more turns stays a loop: compilers take minutes over texts of hundreds of copies of its body.
const MOST_TURNS: usize = 16;

/// The directive before a loop of this many turns, which becomes statements if they are few and the device has registers for them.
pub(crate) fn loop_directive(target: &Target, turns: usize) -> &'static str {
    if target.is_processor() || turns > MOST_TURNS { "#pragma unroll 1\n" } else { "#pragma unroll\n" }
}

/// The directive before a loop whose iterations are many or long, or end at barriers: copies of its body take the compiler long and bring no speed.
pub(super) fn rolled(target: &Target) -> &'static str {
    // A processor's compiler makes vectors of such loops.
    if target.is_processor() { "" } else { "#pragma unroll 1\n" }
}

/// The beginning of the loop in which a group folds two halves of its `lanes` places into one, until one place is left.
pub(crate) fn halving(target: &Target, lanes: usize) -> String {
    format!("{}for (int s = {}; s > 0; s >>= 1) {{\n", rolled(target), lanes / 2)
}

/// More groups than this take turns.
pub(super) const MOST_GROUPS: u64 = 1 << 22;
