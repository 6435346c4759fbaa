//! Arrays in pieces: operations on rolled, joined, padded and part-filled arrays are cut into boxes that read what was copied
//! there where it came from, so that the copies are not made.
//!
//! *Proof.* An element of a base that was last written by a copy without conversion, or by a fill, has the value of the source's
//! element, as long as nothing writes to the source's base since ([`sources`]); dropping a source is put off until after its
//! last reader. An elementwise operation or a generator computes each element from those at the same index, so that it may
//! run box by box. So may operations that pass elements on from index to equal index, all of them in one box before any of
//! them in the next; a cluster of them ends before an instruction that uses what they write, or writes what they read, at
//! other indices ([`clusters`]). Instructions that it does not end before do not depend on it, so they may run before it.
//! Each base that is written loses its data by the same causes as before: the sources of all boxes together are lost by those
//! of the array in pieces, and the base had none that an operation on the whole would have overcome
//! ([`Losses::keeps_in_parts`](crate::losses::Losses::keeps_in_parts)). Folds read whole arrays.
//!
//! Before that, arrays in pieces along a short axis become arrays of their own ([`slices`]), whose pieces are larger and fewer.
//!
//! Copies that nobody reads any more are left to `dead_code`.

mod boxes;
mod clusters;
mod slices;
mod sources;
mod split;
mod worth;

use super::Options;
use bh_bytecode::Batch;
use clusters::Cluster;
use split::Split;
use worth::Worth;

/// Runs the pass.
pub fn run(batch: &mut Batch, options: &Options) -> usize {
    let divided = slices::run(batch, options);
    if divided > 0 {
        // Slices that are copies of other arrays are read there.
        super::copies::run(batch, options);
    }
    if !worth::has_pieces(batch, options.pieces_from) {
        return divided;
    }
    let mut clusters = clusters::find(batch);
    let worth = Worth::new(batch, &mut clusters, options);
    let mut losses = None;
    let split = |cluster: Cluster| {
        let cuts = worth.cuts(&cluster, &mut losses)?;
        Some(Split { cuts, own: worth.own(&cluster), cluster })
    };
    let splits: Vec<Split> = clusters.into_iter().filter_map(split).collect();
    divided + if splits.is_empty() { 0 } else { split::run(batch, splits) }
}
