//! Arrays that are made slice by slice along a short axis, as `stack` makes them, become an array for each slice, and operations on all slices
//! become an operation for each of them.
//!
//! ```text
//! s = stack([f(x), g(x)])         s0 = f(x); s1 = g(x)
//! r = s - s.sum(0)           →    t = s0 + s1
//!                                 r[0] = s0 - t; r[1] = s1 - t
//! ```
//!
//! So all of it runs over the slices' shape, and one kernel computes all slices and writes each to its place.
//!
//! *Proof.* A base is divided only if every view of it is within one slice, or in all slices, one for each index of a dimension; then each element
//! is an element of one new base, through the views of it as before. An elementwise operation computes each element from those at the same
//! index, and may run index by index of a dimension: it writes no element that it reads at another index. A fold along the dimension becomes
//! a chain of operations on pairs, where that gives the same bits: where the order of the elements is free, and where engines take them one after
//! the other ([`bh_kernel::folds_in_order`]). Each array that is not divided is lost by the same causes ([`losses::agree`]), or nothing changes.

mod axis;
mod divide;
mod group;

use super::Options;
use crate::losses;
use bh_bytecode::Batch;

/// Divides the groups that are worth it. Returns how many instructions were divided.
pub fn run(batch: &mut Batch, options: &Options) -> usize {
    let groups = group::find(batch, options);
    if groups.is_empty() {
        return 0;
    }
    let mut divided = batch.clone();
    let ends = divide::run(&mut divided, &groups);
    let is_divided = |base: u32| groups.iter().any(|group| group.bases.contains_key(&base));
    if !losses::agree(batch, &divided, &ends, is_divided) {
        return 0;
    }
    *batch = divided;
    groups.iter().map(|group| group.instrs.len()).sum()
}
