//! Moves the elements of views between rank 0's program and their owners, and no others.

use crate::plan::boxes::{IndexBox, inside, span_of};
use crate::plan::grid::layout::{axes_of, part, region_of};
use crate::plan::planner::Planner;
use crate::plan::stage::Place;
use crate::run::machine::Machine;
use crate::transport::Class;
use bh_bytecode::{Base, View};
use bh_core::abi::HostMemory;
use bh_core::error::Result;
use bh_core::strided::{self, Side};

/// The parts of a view by rank.
pub type Parts = Vec<(usize, Vec<IndexBox>)>;

impl Planner {
    /// The parts of a view by rank: those that it owns, or computes if `writes`. On rank 0's process those of all
    /// ranks, elsewhere only its own. `None` if there are too many boxes, the view repeats elements, or the array is
    /// unknown or lost.
    pub fn parts_of_view(&self, base: &Base, view: &View, writes: bool) -> Option<Parts> {
        let array = self.arrays.get(&base.id).filter(|array| array.lost.is_none() && view.len() <= base.len)?;
        if let Some(layout) = &array.layout {
            let axes = axes_of(&layout.shape, view)?;
            let ranks = match self.stages.hosted().start {
                0 => layout.owners(&region_of(&axes)),
                _ => self.stages.hosted().clone().collect(),
            };
            let of = |rank: usize| Some((rank, vec![part(&axes, view.shape(), &layout.own(rank)?)?]));
            return Some(ranks.into_iter().filter_map(of).collect());
        }
        let span = span_of(view);
        let reach = |rank: usize| if writes { array.reach(rank) } else { array.cuts.own(rank) };
        let hosted = self.stages.hosted();
        let touched = if writes { array.reaching(span) } else { array.cuts.range(span) };
        let touched = match hosted.start {
            0 => touched,
            own => touched.start.max(own)..touched.end.min(hosted.end),
        };
        let touched = touched.filter(|&rank| !reach(rank).meet(span).is_empty());
        let parts: Option<Parts> = touched.map(|rank| Some((rank, inside(view, reach(rank))?))).collect();
        Some(parts?.into_iter().filter(|(_, boxes)| !boxes.is_empty()).collect())
    }

    /// A part of a view in its rank's memory.
    fn place_of(&mut self, base: &Base, view: &View, (rank, part): (usize, &IndexBox)) -> Result<Place> {
        if self.is_on_grid(base.id) {
            return self.on_rank(base.id, rank, &part.of(view, 0)?);
        }
        let shard = self.shard(base.id, rank);
        Ok(Place { base: shard.base, view: part.of(view, shard.window.low)? })
    }
}

/// The address of a box's first element in the program's memory.
fn corner(part: &IndexBox, memory: &HostMemory) -> *mut u8 {
    let reach: i64 = part.first().iter().zip(memory.stride()).map(|(first, stride)| first * stride).sum();
    memory.data().wrapping_offset(reach as isize)
}

impl Machine {
    /// Copies a view's elements to `into` on rank 0.
    pub fn read_view(&mut self, base: &Base, view: &View, parts: &Parts, into: Option<&HostMemory>) -> Result<()> {
        for (rank, boxes) in parts {
            let mut bytes = Vec::new();
            if self.port.hosts(*rank) {
                let packed = self.pack_boxes(base, view, *rank, boxes, &mut bytes);
                self.local(packed)?;
                if *rank != 0 {
                    self.port.send(Class::Payload, *rank, 0, std::mem::take(&mut bytes))?;
                }
            }
            if let Some(memory) = into {
                if *rank != 0 {
                    bytes = self.port.receive(0, *rank)?;
                }
                let mut rest = &bytes[..];
                for part in boxes {
                    let packed = View::contiguous(part.extent()).unwrap_or_default();
                    // SAFETY: `memory` is valid for the whole view, so also for the box; `rest` has the box's elements,
                    // packed.
                    unsafe {
                        let memory = HostMemory::new(corner(part, memory), memory.stride());
                        strided::load(base.dtype(), &packed, rest.as_ptr(), &memory);
                    }
                    rest = &rest[part.len() as usize * base.dtype().size()..];
                }
            }
        }
        Ok(())
    }

    fn pack_boxes(
        &mut self,
        base: &Base,
        view: &View,
        rank: usize,
        boxes: &[IndexBox],
        bytes: &mut Vec<u8>,
    ) -> Result<()> {
        for part in boxes {
            let place = self.planner.place_of(base, view, (rank, part))?;
            let (state, child) = self.rank(rank);
            state.pack(child, &place, bytes)?;
        }
        Ok(())
    }

    /// Overwrites a view, which must not be the whole array, with elements of `from` on rank 0.
    pub fn write_view(&mut self, base: &Base, view: &View, parts: &Parts, from: Option<&HostMemory>) -> Result<()> {
        let size = base.dtype().size();
        for (rank, boxes) in parts {
            let mut bytes = Vec::new();
            if let Some(memory) = from {
                for part in boxes {
                    let first = bytes.len();
                    bytes.resize(first + part.len() as usize * size, 0);
                    let packed = View::contiguous(part.extent()).unwrap_or_default();
                    let stride: Vec<i64> = packed.stride().iter().map(|stride| stride * size as i64).collect();
                    let to = Side { data: bytes[first..].as_mut_ptr(), stride: &stride };
                    let side = Side { data: corner(part, memory), stride: memory.stride() };
                    // SAFETY: `memory` is valid for the whole view, so also for the box; `bytes` has space for the box,
                    // packed.
                    unsafe { strided::copy(base.dtype(), part.extent(), to, side) };
                }
                if *rank != 0 {
                    self.port.send(Class::Payload, 0, *rank, std::mem::take(&mut bytes))?;
                }
            }
            if self.port.hosts(*rank) {
                if *rank != 0 {
                    bytes = self.port.receive(*rank, 0)?;
                }
                let mut rest = &bytes[..];
                for part in boxes {
                    let place = self.planner.place_of(base, view, (*rank, part))?;
                    let (state, child) = self.rank(*rank);
                    let unpacked = state.unpack(child, &place, rest);
                    rest = self.local(unpacked)?;
                }
            }
        }
        self.planner.note_external_write(base.id, view);
        self.run_planned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::layout::Weights;
    use crate::plan::settings::Settings;
    use bh_bytecode::DType;

    #[test]
    fn a_rank_examines_its_own_part_of_a_view() {
        let (ranks, base) = (4096usize, Base { row_hint: 10, ..Base::new(1, DType::F64, 81_920) });
        let column = View::new(3, &[8192], &[10]).unwrap();
        for rank in [0, 1, 2048, 4095] {
            let settings = Settings { weights: Weights::even(ranks), ..Settings::default(ranks) };
            let mut planner = Planner::new(ranks, rank..rank + 1, settings, Box::new(|| 7));
            planner.array(&base, None);
            for writes in [false, true] {
                let parts = planner.parts_of_view(&base, &column, writes).unwrap();
                assert_eq!(parts.len(), if rank == 0 { ranks } else { 1 });
                assert!(parts.iter().all(|(_, boxes)| boxes.len() == 1 && boxes[0].len() == 2));
                let first = View::new(0, &[20], &[1]).unwrap();
                let parts = planner.parts_of_view(&base, &first, writes).unwrap();
                assert_eq!(parts.len(), usize::from(rank == 0));
            }
        }
    }
}
