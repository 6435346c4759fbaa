//! How many rows each nest of a draft stays behind the front of its tile.

use super::chain::Chain;
use super::draft::{Access, DraftNest, Manner, Source};

/// How far nests lag: a row is touched by a nest no earlier than by those before it, where one of them writes.
pub(super) fn lags(chain: &Chain<'_>, nests: &mut [DraftNest]) {
    let lags = Lags(chain);
    let mut times: Vec<Times> = vec![Times::default(); chain.arrays.len()];
    for number in 0..nests.len() {
        let nest = &nests[number];
        // A nest that depends on none runs where the first nest to touch such a row is.
        let late = match (lags.late(nest, &times), nest.source) {
            (None, Source::Load(array)) => lags.first_use(&nests[number + 1..], array, &times),
            (late, _) => late.unwrap_or_else(|| begin(chain, nest)),
        };
        nests[number].late = late;
        let nest = &nests[number];
        for access in &nest.accesses {
            let times = &mut times[access.array];
            let last = match (access.write, lags.is_beside(nest, access)) {
                (true, _) => &mut times.written,
                (false, false) => &mut times.read,
                (false, true) => &mut times.read_beside,
            };
            let time = late - access.place[0];
            *last = Some(last.map_or(time, |known| known.max(time)));
        }
    }
}

/// The last time at which a row was written, read, and read from another column, less the row.
#[derive(Clone, Copy, Default)]
struct Times {
    written: Option<i64>,
    read: Option<i64>,
    read_beside: Option<i64>,
}

struct Lags<'a>(&'a Chain<'a>);

impl Lags<'_> {
    /// Is the column of another item touched?
    fn is_beside(&self, nest: &DraftNest, access: &Access) -> bool {
        self.0.manner == Manner::Items && nest.beside(self.0, access) != [0, 0]
    }

    /// When a nest may do a row, less the row; `None` if it depends on nothing.
    fn late(&self, nest: &DraftNest, times: &[Times]) -> Option<i64> {
        let after = |access: &Access| {
            let known = &times[access.array];
            let next = |time: Option<i64>| time.map(|time| time + 1);
            let last = match access.write {
                true => known.written.max(known.read).max(next(known.read_beside)),
                false if self.is_beside(nest, access) => next(known.written),
                false => known.written,
            };
            last.map(|last| last + access.place[0])
        };
        nest.accesses.iter().filter_map(after).max()
    }

    /// The time, less the row, at which an array is read from memory: as early as the first nest that needs it would run without.
    fn first_use(&self, nests: &[DraftNest], array: usize, times: &[Times]) -> i64 {
        let Some(nest) = nests.iter().find(|nest| nest.accesses.iter().any(|access| access.array == array)) else {
            return 0;
        };
        let late = self.late(nest, times).unwrap_or_else(|| begin(self.0, nest));
        let own = nest.accesses.iter().filter(|access| access.array == array);
        late - own.map(|access| access.place[0] + i64::from(self.is_beside(nest, access))).max().unwrap_or(0)
    }
}

/// Where a nest that depends on nothing runs: at the row that it touches first.
fn begin(chain: &Chain<'_>, nest: &DraftNest) -> i64 {
    let row = |access: &Access| access.place[0] + chain.offset(&chain.arrays[access.array])[0];
    nest.accesses.iter().map(row).max().unwrap_or(0)
}
