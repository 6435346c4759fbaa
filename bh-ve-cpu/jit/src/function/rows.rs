//! The loops over rows around everything else.
//!
//! If views of one array reach into neighbouring rows, several rows are computed side by side: one row reads above it the elements
//! that the row before reads in its middle, so each vector of an array is read from the caches once for all of them. The remaining
//! rows are computed one by one.

use super::{blocks, loops};
use crate::builder::{Block, Builder, Kind, Value};
use crate::kernel::{Kernel, Rows, Uniform, folds, positions, slots};
use crate::memory::place_prefetched;
use crate::reduction::{begin_result, end_result};
use bh_jit_abi::{Folds, LANES, Request, SlotForm, Stride};
use bh_kernel::SlotMode;
use inkwell::IntPredicate;
use std::collections::HashMap;

/// The loop over rows `from` to `end`, `count` of them side by side; goes on to `after`.
pub(super) fn build<'c>(
    b: &Builder<'c>,
    kernel: &mut Kernel<'c>,
    count: u16,
    (from, end): (Value<'c>, Value<'c>),
    after: Block<'c>,
) -> Result<(), String> {
    kernel.rows = Rows { count, ..Rows::new(&kernel.parameters) };
    place_prefetched(b, kernel);
    let [row, latch] = b.blocks(["row", "row.end"]);
    let before = b.current();
    b.branch(b.compare(IntPredicate::SLT, from, end), (row, after));
    b.begin(row);
    let number = b.phi(Kind::I64, &[(from, before)]);
    kernel.rows.number = number.value;
    kernel.rows.positions = place_slots(b, kernel);
    kernel.rows.accumulators = place_accumulators(b, kernel);
    begin_result(b, kernel);
    load_invariants(b, kernel);
    if kernel.plan.block == 0 {
        loops::segment(b, kernel, 0, kernel.parameters.count, None)?;
    } else {
        blocks::build(b, kernel)?;
    }
    end_result(b, kernel, end)?;
    b.jump(latch);
    b.begin(latch);
    let next = b.add(number.value, b.index(count.into()));
    number.add(next, latch);
    b.branch(b.compare(IntPredicate::SLT, next, end), (row, after));
    Ok(())
}

/// The rows from the first one in which something of a slot is read.
fn reach(request: &Request, slot: usize, count: u16) -> Vec<i64> {
    let near = slots(request).filter_map(|(_, form)| form.near).filter(|near| usize::from(near.slot) == slot);
    let reach: Vec<i64> = near.map(|near| i64::from(near.rows)).chain([0]).collect();
    let mut rows: Vec<i64> = reach.iter().flat_map(|reach| (0..i64::from(count)).map(move |row| row + reach)).collect();
    rows.sort_unstable();
    rows.dedup();
    rows
}

/// Where the slots are in the rows that are read and written.
fn place_slots<'c>(b: &Builder<'c>, kernel: &Kernel<'c>) -> HashMap<(usize, i64), Value<'c>> {
    let mut places = HashMap::new();
    for (slot, kind) in positions(kernel.request) {
        for row in reach(kernel.request, slot, kernel.rows.count) {
            let parameters = &kernel.parameters.slots[slot];
            let number = b.add(kernel.rows.number, b.index(row));
            let distance = b.mul(number, parameters.pitch());
            let begin = parameters.position();
            let place = if kind == Kind::POINTER { b.byte(begin, distance) } else { b.add(begin, distance) };
            places.insert((slot, row), place);
        }
    }
    places
}

/// Where each row is folded into: one of the sets of lanes, elements of its own, or the same ones as the others.
fn place_accumulators<'c>(b: &Builder<'c>, kernel: &Kernel<'c>) -> Vec<Vec<Value<'c>>> {
    let place = |fold: usize, row: u16| {
        let dtype = kernel.folds()[fold].1;
        let number = || b.add(kernel.rows.number, b.index(row.into()));
        let elements = match kernel.request.folds {
            // The lanes of one row after the other, at an address that is made once.
            Folds::Results => b.freeze(b.index(LANES as i64)),
            Folds::Elements => b.mul(number(), kernel.parameters.count),
            Folds::Columns => b.mul(number(), b.index(0)),
            Folds::Lanes | Folds::Sets | Folds::None => {
                b.mul(b.and(number(), kernel.parameters.last_set), b.index(LANES as i64))
            }
        };
        b.element(kernel.parameters.folds[fold], dtype, elements)
    };
    let folds = folds(kernel.request).len();
    (0..folds).map(|fold| (0..kernel.rows.count).map(|row| place(fold, row)).collect()).collect()
}

/// Reads the slots that are constant along each row.
fn load_invariants<'c>(b: &Builder<'c>, kernel: &mut Kernel<'c>) {
    let is_invariant = |slot: &SlotForm| slot.mode == SlotMode::Read && slot.stride == Stride::Zero;
    for (slot, form) in slots(kernel.request).filter(|(_, slot)| is_invariant(slot)) {
        let divides = kernel.plan.vectors.multiplied.divides_by_slot(kernel.request, slot as u16);
        for row in 0..kernel.rows.count {
            let address = kernel.rows.position(slot, row.into());
            let invariant = Uniform::load(b, address, form.dtype, kernel.plan);
            if divides {
                let divisors = invariant.prepare(b, kernel.request, form.dtype, kernel.parameters.count);
                kernel.rows.divisors.extend(divisors);
            }
            kernel.rows.invariants.insert((slot as u16, row), invariant);
        }
    }
}
