//! Folding vectors into lanes or elements.

mod results;

pub(crate) use results::{begin_result, end_result, load_neutral};

use crate::arithmetic::Operation;
use crate::builder::{Builder, Value};
use crate::kernel::{At, Kernel};
use crate::memory::{load_packed, load_vector, pack, store_packed, store_vector, unpack};
use crate::plan::Loop;
use bh_bytecode::{DType, Opcode};
use bh_jit_abi::LANES;

/// Folds vectors, one after the other, into the same lanes or elements.
pub(crate) fn fold<'c>(
    b: &Builder<'c>,
    kernel: &mut Kernel<'c>,
    fold: usize,
    operation: Operation,
    values: &[Value<'c>],
    at: &At<'c>,
) -> Result<(), String> {
    let dtype = operation.input;
    let apply = |mut after: Value<'c>, mask: Option<Value<'c>>| {
        for &value in values {
            let before = after;
            let folded = operation.emit(b, [before, value, value]);
            after = folded.ok_or_else(|| format!("folding with {} of {dtype}", operation.opcode))?;
            if let Some(mask) = mask {
                let chosen = Operation { opcode: Opcode::Where, ..operation };
                after = chosen.emit(b, [mask, after, before]).ok_or("choosing")?;
            }
        }
        Ok::<_, String>(after)
    };
    if let Some(vector) = at.register {
        let sum = &mut kernel.sums[usize::from(at.row)][fold][vector];
        *sum = apply(*sum, at.mask)?;
        return Ok(());
    }
    let has_lanes = kernel.request.folds.has_lanes();
    let index = b.add(if has_lanes { at.index } else { at.element }, b.index(at.offset.into()));
    let index = if has_lanes { b.and(index, b.index(LANES as i64 - 1)) } else { index };
    let address = b.element(kernel.rows.accumulator(fold, at.row), dtype, index);
    let masked = at.mask.filter(|_| !has_lanes);
    let before = unpack(b, dtype, load_packed(b, dtype, address, at.width, masked));
    let mut after = apply(before, None)?;
    if let (Some(mask), None) = (at.mask, masked) {
        let chosen = Operation { opcode: Opcode::Where, ..operation };
        after = chosen.emit(b, [mask, after, before]).ok_or("choosing")?;
    }
    store_packed(b, dtype, pack(b, dtype, after), address, masked);
    Ok(())
}

/// The vectors of lanes that a loop holds in registers: row, fold, type and first lane.
fn vectors(kernel: &Kernel, folds: &[(Opcode, DType)], each: Loop) -> Vec<(u16, usize, DType, u16)> {
    let rows = 0..kernel.rows.count;
    let folds = folds.iter().enumerate().map(|(fold, (_, dtype))| (fold, *dtype));
    let all = rows.flat_map(|row| folds.clone().map(move |(fold, dtype)| (row, fold, dtype)));
    let lanes = |(row, fold, dtype)| (0..each.unroll).map(move |vector| (row, fold, dtype, vector * each.width));
    all.flat_map(lanes).collect()
}

/// Reads the lanes of each row and fold that a loop holds in registers.
pub(crate) fn load_lanes<'c>(
    b: &Builder<'c>,
    kernel: &Kernel<'c>,
    folds: &[(Opcode, DType)],
    each: Loop,
) -> Vec<Value<'c>> {
    let load = |(row, fold, dtype, lane)| load_vector(b, dtype, kernel.rows.accumulator(fold, row), lane, each.width);
    vectors(kernel, folds, each).into_iter().map(load).collect()
}

/// Writes them.
pub(crate) fn store_lanes<'c>(b: &Builder<'c>, kernel: &Kernel<'c>, folds: &[(Opcode, DType)], each: Loop) {
    let sums = kernel.sums.iter().flatten().flatten();
    for ((row, fold, dtype, lane), &sum) in vectors(kernel, folds, each).into_iter().zip(sums) {
        store_vector(b, dtype, kernel.rows.accumulator(fold, row), lane, sum);
    }
}
