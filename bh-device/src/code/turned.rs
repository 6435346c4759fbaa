//! Element by element where some arrays are read across their memory order, as in a transpose: these come tile by tile
//! through local memory, read along their own order and used along that of the others.

use super::part::Part;
use super::{Code, Placement, Target, Variant};
use bh_bytecode::c::type_name;
use bh_kernel::{SlotMode, Stage};

/// Elements of a side of a tile at most: what neighbours read together.
const SIDE: usize = 32;
/// Shorter dimensions are not worth it.
const SHORT: i64 = 16;
/// Bytes of local memory for tiles.
const LOCAL: usize = 20 << 10;

/// Elements of a side.
fn side(target: &Target) -> usize {
    SIDE.min(target.group)
}

/// Values that go through local memory: the dimension that neighbours of the memory are along, and the slots.
struct Turned {
    along: usize,
    slots: Vec<usize>,
}

/// How many arrays come in tiles, or why none does.
pub(super) fn turns(stage: &Stage, target: &Target) -> Result<usize, &'static str> {
    find(stage, target).map(|turned| turned.slots.len())
}

/// Finds the slots that are read across their order; the error says why tiles would not pay.
fn find(stage: &Stage, target: &Target) -> Result<Turned, &'static str> {
    if !target.placements.has(Placement::Local) {
        return Err("not among the placements");
    }
    let (kernel, parameters, side) = (&stage.kernel, &stage.parameters, side(target));
    let last = parameters.extents.len().saturating_sub(1);
    let long = |dim: usize| parameters.extents[dim] >= SHORT;
    if last == 0 || !long(last) {
        return Err("there are no two long dimensions");
    }
    let step = |slot: usize, dim: usize| parameters.stride(slot)[dim].unsigned_abs();
    let across = |slot: usize| {
        let unit = (0..last).find(|&dim| step(slot, dim) == 1 && long(dim));
        unit.filter(|_| kernel.slots[slot].mode == SlotMode::Read && step(slot, last) > 1)
    };
    let along = (0..kernel.slots.len()).find_map(across).ok_or("nothing is read across its order")?;
    let mut writes = (0..kernel.slots.len()).filter(|&slot| kernel.slots[slot].mode.writes());
    // Writes along another order would wait for memory whatever reads do.
    if writes.any(|slot| step(slot, last) > 1) {
        return Err("something is written across its order");
    }
    let mut bytes = 0;
    let mut fits = |slot: &usize| {
        bytes += side * (side + 1) * kernel.slots[*slot].dtype.size();
        bytes <= LOCAL
    };
    let slots = (0..kernel.slots.len()).filter(|&slot| across(slot) == Some(along));
    Ok(Turned { along, slots: slots.take_while(|slot| fits(slot)).collect() })
}

/// The kernel in tiles, if that pays.
pub(super) fn turned(stage: &Stage, target: &Target, variant: Variant) -> Option<Code> {
    let side = side(target);
    let Turned { along, slots } = find(stage, target).ok()?;
    let mut part = Part::new(stage, variant, target, 0);
    let index = part.writer.index();
    let last = stage.parameters.extents.len() - 1;
    let ends = [along, last].map(|dim| part.writer.numbers.text(stage.parameters.extents[dim]));
    // Of the two dimensions of a tile the number of the tile is taken apart, of the others the index.
    let (mut extents, mut names) = (stage.parameters.extents.clone(), part.names.clone());
    for (dim, name) in [(along, "down"), (last, "right")] {
        extents[dim] = (extents[dim] as u64).div_ceil(side as u64) as i64;
        names[dim] = name.into();
    }
    let tiles: i64 = extents.iter().product();
    let count = part.writer.numbers.text(tiles);
    let pad = side + usize::from(target.placements.has(Placement::Padding));
    let rows = target.group / side;
    for slot in &slots {
        part.body += &format!("BH_LOCAL {} t{slot}[{}];\n", type_name(stage.kernel.slots[*slot].dtype), side * pad);
    }
    part.body += &format!("const int item = BH_ITEM, x = item % {side}, y = item / {side};\n");
    part.body += &format!("for ({index} t = BH_GROUP; t < {count}; t += BH_GROUPS) {{\n");
    part.body += &part.writer.numbers.split(index, "t", &extents, &names);
    let within = |first: &str, second: &str| {
        format!(
            "for (int q = y; q < {side}; q += {rows}) {{\n\
             const {index} i{along} = down * {side} + {first}, i{last} = right * {side} + {second};\n\
             if (i{along} < {} && i{last} < {}) {{\n",
            ends[0], ends[1]
        )
    };
    part.body += &within("x", "q");
    for slot in &slots {
        let element = part.element(*slot as u16, 0);
        part.body += &format!("t{slot}[q * {pad} + x] = {element};\n");
    }
    part.body += "}\n}\nBH_BARRIER;\n";
    part.body += &within("q", "x");
    part.staged = slots.iter().map(|slot| (*slot as u16, format!("t{slot}[x * {pad} + q]"))).collect();
    part.steps();
    part.body += "}\n}\nBH_BARRIER;\n}\n";
    let groups = tiles.min(1 << 22) as usize;
    Some(part.writer.finish(target, groups, target.group, &part.body))
}
