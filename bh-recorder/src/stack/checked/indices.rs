//! The check `bounds`: indices of gathers and scatters before they are used.

use super::elements::{index_text, visit};
use super::name;
use crate::stack::backend::Backend;
use bh_bytecode::{BatchRef, DType, Opcode, Truth};
use bh_core::abi::status;
use bh_core::error::{Error, Result};

/// Fails with the first index of the batch's operation that is out of range.
pub(super) fn check(backend: &mut dyn Backend, batch: &BatchRef<'_>) -> Result<()> {
    let Some(instr) = batch.instrs.iter().find(|instr| !instr.opcode.is_system()) else { return Ok(()) };
    let operands = instr.operands();
    // Indices count the elements of what is gathered from or scattered into.
    let (target, index, mask) = match (instr.opcode, operands) {
        (Opcode::Gather, &[_, source, index]) => (source, index, None),
        (Opcode::Scatter | Opcode::ScatterAdd, &[out, _, index]) => (out, index, None),
        (Opcode::CondScatter, &[out, _, index, mask]) => (out, index, mask.as_view()),
        _ => return Ok(()),
    };
    let (Some(target), Some(index)) = (target.as_view(), index.as_view()) else { return Ok(()) };
    let mut wanted = Vec::new();
    if let Some(mask) = mask
        && visit::<Truth>(backend, batch, mask, |_, flag| wanted.push(flag.get())).is_none()
    {
        return Ok(());
    }
    let size = batch.views[target as usize].len;
    let mut position = 0usize;
    let mut bad: Option<(usize, i128)> = None;
    let mut look = |value: i128, signed: bool| {
        let least = if signed { -i128::from(size) } else { 0 };
        let counts = mask.is_none() || wanted.get(position).copied().unwrap_or(true);
        if counts && !(least..i128::from(size)).contains(&value) {
            bad.get_or_insert((position, value));
        }
        position += 1;
    };
    let known = match batch.dtype(operands[2]) {
        Some(DType::I64) => visit::<i64>(backend, batch, index, |_, value| look(value.into(), true)),
        _ => visit::<u64>(backend, batch, index, |_, value| look(value.into(), false)),
    };
    // Without data (of lost arrays) there is nothing to look at: the operation reports that itself.
    match (known, bad) {
        (Some(()), Some((position, value))) => {
            let text = format!(
                "{}: index {value} at element {} of the index array is out of range for {size} elements",
                name(batch, instr),
                index_text(batch.shape(index), position)
            );
            Err(Error::new(status::BOUNDS, text))
        }
        _ => Ok(()),
    }
}
