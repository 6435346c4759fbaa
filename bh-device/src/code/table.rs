//! Folds along memory whose neighbouring results read a small table in turn, as distances to some centres do. An item folds a
//! result alone, and a group brings the table to local memory once, turned, so that neighbouring items read neighbours.

use super::part::Part;
use super::{Fold, Placement, Target};
use bh_bytecode::c::type_name;
use bh_kernel::{Dim, SlotMode, Stage};

/// Bytes of a table in local memory: the least of these that it fits.
const LOCAL: [usize; 3] = [4 << 10, 12 << 10, 32 << 10];
/// Groups beyond those that fill the device: each brings the table.
const TURNS: usize = 4;
/// Elements of a fold at most.
const LONGEST: i64 = 256;

/// Values that are staged in local memory.
pub(super) struct Table {
    slots: Vec<usize>,
    /// The dimensions of neighbouring results, and of what is folded.
    across: usize,
    along: usize,
    /// Elements of each array in local memory.
    len: usize,
}

impl Table {
    /// The arrays that neighbouring results read in turn; the error says why there is no table.
    fn find(stage: &Stage, target: &Target) -> Result<Table, &'static str> {
        let (kernel, parameters) = (&stage.kernel, &stage.parameters);
        let of_role = |role: Dim| (0..kernel.dims.len()).filter(move |&dim| kernel.dims[dim] == role);
        let wide = |&dim: &usize| parameters.extents[dim] > 1;
        let why = "neighbouring results read no table";
        let [along] = of_role(Dim::Reduced).filter(wide).collect::<Vec<_>>()[..] else { return Err(why) };
        let across = of_role(Dim::Kept).rfind(wide).ok_or(why)?;
        let results: i64 = of_role(Dim::Kept).map(|dim| parameters.extents[dim]).product();
        let (width, depth) = (parameters.extents[across], parameters.extents[along]);
        let many = results >= target.items() && results / width >= target.groups as i64;
        if across > along || depth > LONGEST || !many || !parameters.gathers.is_empty() {
            return Err(why);
        }
        let mut slots = Vec::new();
        for (at, slot) in kernel.slots.iter().enumerate() {
            let strides = parameters.stride(at);
            let varies = |dim: usize| strides[dim] != 0 && wide(&dim);
            match slot.mode {
                SlotMode::Read if varies(across) && varies(along) => {
                    if strides[across].abs() == 1
                        || (0..strides.len()).any(|dim| ![across, along].contains(&dim) && varies(dim))
                    {
                        return Err(why);
                    }
                    slots.push(at);
                }
                SlotMode::Read | SlotMode::Result => {}
                _ => return Err(why),
            }
        }
        let size: usize = slots.iter().map(|&at| kernel.slots[at].dtype.size()).sum();
        let needed = size as i64 * depth * (width + 1);
        let room = LOCAL.into_iter().find(|&room| needed <= room as i64);
        match room {
            Some(room) if !slots.is_empty() && (target.halves() == 2 || room < LOCAL[2]) => {
                Ok(Table { slots, across, along, len: room / size })
            }
            _ => Err(why),
        }
    }

    /// How items share the fold: not at all, whether the table comes to local memory or not, so that placements change no bit.
    pub(super) fn fold(stage: &Stage, target: &Target) -> Option<Fold> {
        let alone = Fold { group: target.group, lanes: 1, inner: true, splits: 1 };
        Table::find(stage, target).is_ok().then_some(alone)
    }

    /// The table, if it comes to local memory.
    pub(super) fn placed(stage: &Stage, target: &Target) -> Result<Table, &'static str> {
        match target.placements.has(Placement::Local) {
            true => Table::find(stage, target),
            false => Err("not among the placements"),
        }
    }

    /// How many arrays there are.
    pub(super) fn count(&self) -> usize {
        self.slots.len()
    }

    /// Groups that work on this many tiles of results.
    pub(super) fn groups(tiles: u64, target: &Target) -> u64 {
        tiles.min((TURNS * target.groups) as u64)
    }

    /// Brings the table; `index` is the type of indices.
    pub(super) fn bring(&self, part: &mut Part<'_>, group: usize, index: &str) {
        let (slots, extents) = (&part.stage.kernel.slots, &part.stage.parameters.extents);
        let (width, depth) = (extents[self.across], extents[self.along]);
        for &slot in &self.slots {
            part.body += &format!("BH_LOCAL {} t{slot}[{}];\n", type_name(slots[slot].dtype), self.len);
        }
        let [across, along] = [self.across, self.along].map(|dim| part.names[dim].clone());
        let [count, depth, pitch] = [width * depth, depth, width + 1].map(|number| part.writer.numbers.text(number));
        part.body += &format!(
            "for ({index} e = BH_ITEM; e < {count}; e += {group}) {{\nconst {index} {across} = e / {depth}, {along} = e % {depth};\n"
        );
        for &slot in &self.slots {
            let element = part.element(slot as u16, 0);
            part.body += &format!("t{slot}[{along} * {pitch} + {across}] = {element};\n");
        }
        part.body += "}\nBH_BARRIER;\n";
        let staged = |slot: &usize| (*slot as u16, format!("t{slot}[{along} * {pitch} + {across}]"));
        part.staged = self.slots.iter().map(staged).collect();
    }
}
