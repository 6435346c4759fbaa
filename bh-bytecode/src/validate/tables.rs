//! Checks of bases, views, constants, origins, and names of extensions and attributes, each for itself.

use crate::batch::{Base, BatchRef, Constant, MAX_BASE_BYTES, NO_BASE, ViewRec, base_bytes, base_flags};
use crate::dtype::DType;
use crate::opcode::Opcode;
use crate::view::{MAX_RANK, element_count, reach, too_many_elements};
use std::collections::HashSet;

/// Checks all tables but the instructions and the partition.
pub(super) fn check(batch: &BatchRef) -> Result<(), String> {
    for (index, base) in batch.bases.iter().enumerate() {
        check_base(base).map_err(|message| format!("base {index}: {message}"))?;
    }
    if let Some(id) = repeated_id(batch.bases) {
        return Err(format!("two bases have the identity {id}"));
    }
    for (index, view) in batch.views.iter().enumerate() {
        check_view(batch, view).map_err(|message| format!("view {index}: {message}"))?;
    }
    for (index, constant) in batch.constants.iter().enumerate() {
        check_constant(constant).map_err(|message| format!("constant {index}: {message}"))?;
    }
    for (index, origin) in batch.origins.iter().enumerate() {
        check_string(batch, origin.file, origin.file_len).map_err(|message| format!("origin {index}: {message}"))?;
    }
    for (index, extension) in batch.extensions.iter().enumerate() {
        if !extension.opcode.is_extension() {
            let (number, first) = (extension.opcode.0, Opcode::FIRST_EXTENSION);
            return Err(format!("extension {index}: number {number} is below {first}, the first of extension methods"));
        }
        check_string(batch, extension.name, extension.name_len)
            .map_err(|message| format!("extension {index}: {message}"))?;
    }
    for (index, attribute) in batch.attributes.iter().enumerate() {
        check_string(batch, attribute.name, attribute.name_len)
            .map_err(|message| format!("attribute {index}: {message}"))?;
    }
    Ok(())
}

fn check_base(base: &Base) -> Result<(), String> {
    let Some(dtype) = DType::from_code(base.dtype) else {
        return Err(format!("there is no element type {}", base.dtype));
    };
    let known = base_flags::PINNED | base_flags::BORN | base_flags::DIES | base_flags::LIVE_OUT;
    if base.flags & !known != 0 {
        return Err(format!("flags {:#x} are not all known", base.flags));
    }
    if base.len < 0 || base.row_hint < 0 {
        return Err(format!("length {} or row hint {} is negative", base.len, base.row_hint));
    }
    match base_bytes(dtype, base.len) {
        Some(_) => Ok(()),
        None => Err(format!("{} elements of {dtype} are more than {MAX_BASE_BYTES} bytes", base.len)),
    }
}

fn repeated_id(bases: &[Base]) -> Option<u64> {
    // Few bases are compared in pairs, which needs no memory.
    if bases.len() <= 16 {
        let earlier = |&(index, base): &(usize, &Base)| bases[..index].iter().any(|other| other.id == base.id);
        return bases.iter().enumerate().find(earlier).map(|(_, base)| base.id);
    }
    let mut seen = HashSet::with_capacity(bases.len());
    bases.iter().find(|base| !seen.insert(base.id)).map(|base| base.id)
}

fn check_view(batch: &BatchRef, view: &ViewRec) -> Result<(), String> {
    let rank = view.rank as usize;
    if rank > MAX_RANK {
        return Err(format!("rank {rank} exceeds the limit of {MAX_RANK} dimensions"));
    }
    let Some(dims) = batch.dims.get(view.dims as usize..).and_then(|dims| dims.get(..2 * rank)) else {
        return Err(format!("its dimensions lie outside the pool of {}", batch.dims.len()));
    };
    let (shape, stride) = dims.split_at(rank);
    if let Some(extent) = shape.iter().find(|&&extent| extent < 0) {
        return Err(format!("extent {extent} is negative"));
    }
    match element_count(shape) {
        None => return Err(too_many_elements(shape)),
        Some(count) if count != view.len => {
            return Err(format!("it claims {} elements, but shape {shape:?} has {count}", view.len));
        }
        Some(_) => {}
    }
    if view.len == 0 {
        if view.start != 0 || stride.iter().any(|&stride| stride != 0) {
            return Err("it is empty, but its start and strides are not 0".into());
        }
    } else if let Some(dim) = (0..rank).find(|&dim| shape[dim] == 1 && stride[dim] != 0) {
        return Err(format!("dimension {dim} has extent 1, but its stride {} is not 0", stride[dim]));
    }
    let Some((low, high)) = reach(view.start, shape, stride) else {
        return Err(format!("offsets of shape {shape:?} with strides {stride:?} overflow 64 bits"));
    };
    if view.base == NO_BASE {
        return Ok(());
    }
    let Some(base) = batch.bases.get(view.base as usize) else {
        return Err(format!("base {} does not exist; there are {}", view.base, batch.bases.len()));
    };
    if view.len > 0 && (low < 0 || high >= base.len) {
        return Err(format!("it reaches elements {low} to {high} of base {}, which has {}", view.base, base.len));
    }
    Ok(())
}

fn check_constant(constant: &Constant) -> Result<(), String> {
    match DType::from_code(constant.dtype) {
        None => Err(format!("there is no element type {}", constant.dtype)),
        Some(DType::Bool) if constant.bytes()[0] > 1 => Err("a bool is neither 0 nor 1".into()),
        Some(_) => Ok(()),
    }
}

fn check_string(batch: &BatchRef, offset: u32, len: u32) -> Result<(), String> {
    match batch.strings.get(offset as usize..).and_then(|strings| strings.get(..len as usize)) {
        None => Err(format!("its name lies outside the pool of {} bytes", batch.strings.len())),
        Some(bytes) if std::str::from_utf8(bytes).is_err() => Err("its name is not UTF-8".into()),
        Some(_) => Ok(()),
    }
}
