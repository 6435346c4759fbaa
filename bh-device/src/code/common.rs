//! Folds whose results all read the same elements, as distances of all pairs do: a group brings these to local memory once for
//! all of its results. Each item folds the elements that it would fold anyway, in the same order.

use super::part::Part;
use super::{Fold, Placement, Target};
use bh_bytecode::c::type_name;
use bh_kernel::{Dim, SlotMode, Stage};

/// The most elements of an array in local memory, and the fewest that an item of those that share a result folds of them.
const LONGEST: usize = 1024;
const LEAST: usize = 4;
/// Bytes of local memory for tiles and what is folded in it, where there is much and where there is little.
const LOCAL: [usize; 2] = [40 << 10, 24 << 10];

/// Values that are staged in local memory.
pub(super) struct Common {
    slots: Vec<usize>,
    /// Elements of each.
    pub(super) len: usize,
}

impl Common {
    /// The arrays that all results of a group read; the error says why bringing them would not pay.
    pub(super) fn find(stage: &Stage, target: &Target, fold: &Fold) -> Result<Common, &'static str> {
        let (kernel, parameters) = (&stage.kernel, &stage.parameters);
        let kept = || parameters.extents.iter().zip(&kernel.dims).filter(|(_, dim)| **dim == Dim::Kept);
        if !target.placements.has(Placement::Local) {
            return Err("not among the placements");
        }
        let [along] = (0..kernel.dims.len()).filter(|&dim| kernel.dims[dim] == Dim::Reduced).collect::<Vec<_>>()[..]
        else {
            return Err("reductions read along their own order");
        };
        if fold.results() < 2 || kept().map(|(extent, _)| *extent).product::<i64>() < fold.results() as i64 {
            return Err("a group folds one result");
        }
        let mut slots = Vec::new();
        for (at, slot) in kernel.slots.iter().enumerate() {
            let strides = parameters.stride(at);
            let varies = |dim: usize| strides[dim] != 0 && parameters.extents[dim] > 1;
            match slot.mode {
                SlotMode::Result => {}
                _ if !varies(along) => {}
                SlotMode::Read if !(0..strides.len()).any(|dim| dim != along && varies(dim)) => slots.push(at),
                _ => return Err("reductions read along their own order"),
            }
        }
        if slots.is_empty() || !parameters.gathers.is_empty() {
            return Err("reductions read along their own order");
        }
        let size = |at: usize| kernel.slots[at].dtype.size();
        let folded: usize =
            kernel.slots.iter().filter(|slot| slot.mode == SlotMode::Result).map(|it| it.dtype.size()).sum();
        let room = LOCAL[usize::from(target.halves() < 2)].saturating_sub(fold.group * folded);
        let fitting = room / slots.iter().map(|&at| size(at)).sum::<usize>();
        let len = if fitting == 0 { 0 } else { LONGEST.min(1 << fitting.ilog2()) };
        let each = parameters.extents[along] / fold.splits;
        if len < LEAST * fold.lanes || each < (LEAST * fold.lanes) as i64 {
            return Err("there are too few elements, or too little local memory");
        }
        Ok(Common { slots, len })
    }

    /// How many arrays there are.
    pub(super) fn count(&self) -> usize {
        self.slots.len()
    }

    /// The declarations of the memory.
    pub(super) fn declare(&self, stage: &Stage) -> String {
        let of =
            |slot: &usize| format!("BH_LOCAL {} t{slot}[{}];\n", type_name(stage.kernel.slots[*slot].dtype), self.len);
        self.slots.iter().map(of).collect()
    }

    /// Opens the loop over tiles, and brings one: `index` is the type of indices, `name` that of the elements that are folded.
    pub(super) fn bring(&self, part: &mut Part<'_>, group: usize, index: &str, name: &str) {
        let len = self.len;
        part.body += &format!("for ({index} from = first; from < end; from += {len}) {{\n");
        part.body += &format!("const {index} stop = min(({index})(from + {len}), ({index})end);\n");
        part.body += "BH_BARRIER;\n";
        part.body += &format!("for ({index} {name} = from + item; {name} < stop; {name} += {group}) {{\n");
        for &slot in &self.slots {
            let element = part.element(slot as u16, 0);
            part.body += &format!("t{slot}[{name} - from] = {element};\n");
        }
        part.body += "}\nBH_BARRIER;\n";
        part.staged = self.slots.iter().map(|slot| (*slot as u16, format!("t{slot}[r - from]"))).collect();
    }
}
