//! Copies elements between the program's memory and ranks that are all in this process: directly, and in parallel if
//! each rank has its own stack.

use crate::plan::boxes::Span;
use crate::plan::stage::Place;
use crate::run::local::LocalRank;
use crate::run::machine::{Machine, for_each};
use bh_bytecode::Base;
use bh_core::component::Child;
use bh_core::error::Result;

impl Machine {
    /// Runs a job on some ranks, in parallel if each has its own stack; returns the first error by rank.
    fn for_each_rank<J: Send>(
        &mut self,
        jobs: Vec<Option<J>>,
        work: impl Fn(&mut LocalRank, &mut Child, J) -> Result<()> + Sync,
    ) -> Result<()> {
        let several = jobs.iter().flatten().count() > 1;
        let outcomes = match self.pool.as_ref().filter(|_| several) {
            Some(pool) => {
                let ranks = self.children.iter_mut().zip(&mut self.locals).zip(jobs);
                let asked = ranks.filter_map(|(own, job)| Some((own, job?)));
                for_each(Some(pool), asked, &|((child, rank), job): ((&mut Child, &mut LocalRank), J)| {
                    work(rank, child, job)
                })
            }
            None => {
                let asked = jobs.into_iter().enumerate().filter_map(|(rank, job)| Some((rank, job?)));
                let one = |(rank, job)| {
                    let (state, child) = self.rank(rank);
                    work(state, child, job)
                };
                asked.map(one).collect()
            }
        };
        outcomes.into_iter().collect()
    }

    /// Copies elements of an array to `into`, which has space for the whole array.
    pub(crate) fn read_alone(&mut self, base: &Base, span: Span, into: &mut [u8]) -> Result<()> {
        let size = base.dtype().size();
        let cuts = self.planner.arrays[&base.id].cuts.clone();
        let mut jobs: Vec<Option<(Place, &mut [u8])>> = (0..cuts.ranks()).map(|_| None).collect();
        let mut rest = &mut into[span.low as usize * size..span.high as usize * size];
        for rank in cuts.owners(span) {
            let part = cuts.own(rank).meet(span);
            let shard = self.planner.shard(base.id, rank);
            let place = Place::run(shard.base, part, shard.window)?;
            self.port.note_message(rank, if rank == 0 { 0 } else { place.bytes() });
            let (mine, behind) = std::mem::take(&mut rest).split_at_mut(place.bytes());
            rest = behind;
            jobs[rank] = Some((place, mine));
        }
        self.for_each_rank(jobs, |state, child, (place, mine)| state.read(child, &place, mine))
    }

    /// Overwrites elements of an array from `from`, which has the whole array.
    pub(crate) fn write_alone(&mut self, base: &Base, span: Span, from: &[u8]) -> Result<()> {
        let size = base.dtype().size();
        let mut jobs: Vec<Option<(Place, &[u8])>> = (0..self.port.ranks()).map(|_| None).collect();
        for rank in self.planner.arrays[&base.id].reaching(span) {
            let part = self.planner.arrays[&base.id].reach(rank).meet(span);
            if part.is_empty() {
                continue;
            }
            let shard = self.planner.shard(base.id, rank);
            let place = Place::run(shard.base, part, shard.window)?;
            self.port.note_message(0, if rank == 0 { 0 } else { place.bytes() });
            jobs[rank] = Some((place, &from[part.low as usize * size..]));
        }
        self.for_each_rank(jobs, |state, child, (place, from)| state.unpack(child, &place, from).map(drop))
    }
}
