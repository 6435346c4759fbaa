//! The engine's counters.

use crate::prepared::Ran;
use crate::whereabouts::Verdict;
use bh_core::{Counter, Host};

pub(crate) struct Counters {
    pub(crate) kernels: Counter,
    small: Counter,
    unsupported: Counter,
    pub(crate) too_large: Counter,
    pub(crate) in_pieces: Counter,
    pub(crate) pieces: Counter,
    pub(crate) meanwhile: Counter,
    refused: Counter,
    pub(crate) lower: Counter,
    pub(crate) specialised: Counter,
    pub(crate) tilings: Counter,
    pub(crate) in_tiles: Counter,
    pub(crate) wait: Counter,
    pub(crate) prepared: Counter,
    pub(crate) graphs: Counter,
}

impl Counters {
    pub(crate) fn new(host: &Host) -> Counters {
        Counters {
            kernels: host.counter("kernels"),
            small: host.counter("blocks too small"),
            unsupported: host.counter("blocks unsupported"),
            too_large: host.counter("blocks too large"),
            in_pieces: host.counter("blocks in pieces"),
            pieces: host.counter("pieces"),
            meanwhile: host.counter("blocks elsewhere while kernels are built"),
            refused: host.counter("blocks refused by the compiler"),
            lower: host.counter("lower_ns"),
            specialised: host.counter("blocks specialised"),
            tilings: host.counter("tilings"),
            in_tiles: host.counter("kernels in tiles"),
            wait: host.counter("wait_ns"),
            prepared: host.counter("batches prepared"),
            graphs: host.counter("graphs"),
        }
    }

    /// A prepared batch ran. One that only drops arrays is not counted.
    pub(crate) fn ran(&self, ran: &Ran) {
        self.kernels.add(ran.kernels);
        self.tilings.add(ran.tilings);
        self.in_tiles.add(ran.in_tiles);
        self.prepared.add(u64::from(ran.kernels > 0));
        self.graphs.add(u64::from(ran.graph));
    }

    /// A block goes to the next engine.
    pub(crate) fn count(&self, place: Verdict) {
        match place {
            Verdict::TooSmall => self.small.add(1),
            Verdict::TooLarge => self.too_large.add(1),
            Verdict::Unsupported => self.unsupported.add(1),
            Verdict::NotBuilt => self.meanwhile.add(1),
            Verdict::Refused => self.refused.add(1),
            Verdict::Device | Verdict::Pieces | Verdict::Lost => {}
        }
    }
}
