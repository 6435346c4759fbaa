//! Element by element with loads and stores of some neighbours at once, where all arrays are read and written in their order
//! and lie aligned for that.

use super::part::Part;
use super::unroll::{MOST_GROUPS, unrolls};
use super::{Code, Placement, Target, Variant};
use bh_bytecode::DType;
use bh_kernel::{SlotMode, Stage};

/// Bytes of a load.
const BYTES: usize = 16;
/// The most elements of a load.
const MOST: usize = 4;

/// The name of a type of this many elements.
fn vector_name(dtype: DType, width: i64) -> String {
    let name = match dtype {
        DType::I8 => "char",
        DType::I16 => "short",
        DType::U16 => "ushort",
        DType::I32 => "int",
        DType::U32 => "uint",
        DType::I64 => "long",
        DType::U64 => "ulong",
        DType::F32 => "float",
        DType::F64 => "double",
        DType::Bool | DType::U8 | DType::C64 | DType::C128 => "uchar",
    };
    format!("BH_VECTOR({name}, {width})")
}

/// How many elements come at once, and which slots are loaded and stored so; the error says why one.
pub(super) fn vectors(stage: &Stage, target: &Target) -> Result<(i64, Vec<u16>), &'static str> {
    if !target.placements.has(Placement::Vector) {
        return Err("not among the placements");
    }
    unrolls(&stage.kernel, target)?;
    let (slots, parameters) = (&stage.kernel.slots, &stage.parameters);
    if parameters.extents.len() != 1 || !parameters.gathers.is_empty() {
        return Err("not all arrays are read in their order");
    }
    if slots.iter().any(|slot| slot.dtype.is_complex() || slot.mode == SlotMode::Index) {
        return Err("complex numbers and indices come one by one");
    }
    let in_order = |slot: &usize| parameters.stride(*slot)[0] == 1;
    let largest = (0..slots.len()).filter(in_order).map(|slot| slots[slot].dtype.size()).max().unwrap_or(BYTES);
    let width = (BYTES / largest).min(MOST) as i64;
    let aligned = |slot: &usize| in_order(slot) && parameters.starts[*slot] % width == 0;
    let chosen: Vec<u16> = (0..slots.len()).filter(aligned).map(|slot| slot as u16).collect();
    if width < 2 || chosen.is_empty() {
        return Err("nothing is aligned");
    }
    if (0..slots.len()).any(|slot| slots[slot].mode.writes() && !aligned(&slot)) {
        return Err("something is not written in its order, or not aligned");
    }
    if parameters.iterations() / width < target.items() {
        return Err("too few elements for the items of the device");
    }
    Ok((width, chosen))
}

/// The kernel with loads of some elements, if that is chosen.
pub(super) fn vector(stage: &Stage, target: &Target, variant: Variant) -> Option<Code> {
    let (width, chosen) = vectors(stage, target).ok()?;
    let mut part = Part::new(stage, variant, target, 0);
    let (index, total) = (part.writer.index(), stage.parameters.iterations());
    let (count, end) = ((total as u64).div_ceil(width as u64), part.writer.numbers.text(total));
    part.body += &format!("for ({index} t = BH_INDEX; t * {width} < {end}; t += BH_INDICES) {{\n");
    part.body += &format!("const {index} at = t * {width};\nif (at + {width} <= {end}) {{\n");
    let slot = |at: u16| &stage.kernel.slots[at as usize];
    for &at in &chosen {
        let name = vector_name(slot(at).dtype, width);
        if slot(at).mode.writes() {
            part.body += &format!("{name} w{at};\n");
        } else {
            let place = part.neighbours(at, &name);
            part.body += &format!("const {name} w{at} = {place};\n");
        }
    }
    for lane in 0..width {
        part.staged = chosen.iter().map(|&at| (at, format!("w{at}.s{lane}"))).collect();
        part.body += &format!("{{\nconst {index} i0 = at + {lane};\n");
        part.steps();
        part.body += "}\n";
    }
    for &at in chosen.iter().filter(|&&at| slot(at).mode.writes()) {
        let place = part.neighbours(at, &vector_name(slot(at).dtype, width));
        part.body += &format!("{place} = w{at};\n");
    }
    part.staged.clear();
    part.body += &format!("}} else for ({index} i0 = at; i0 < {end}; i0++) {{\n");
    part.steps();
    part.body += "}\n}\n";
    let groups = count.div_ceil(target.group as u64).min(MOST_GROUPS) as usize;
    Some(part.writer.finish(target, groups, target.group, &part.body))
}
