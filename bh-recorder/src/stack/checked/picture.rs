//! A small map of the array in which a bad number was made, for the report page: an event of the trace.

use super::elements::visit;
use crate::stack::backend::Backend;
use bh_bytecode::{BatchRef, Constant, Element, c128, with_dtype};
use bh_core::error::Error;
use serde_json::{Value, json};

/// Cells of the map in each direction, at most; of an array of one dimension.
const CELLS: usize = 48;
const LONG: usize = 192;

/// Draws the last two axes of a view, at the place of the first bad element on the axes before. `bad`: positions of the bad
/// elements in C order, at least one. `None` without a trace, or without data.
pub(super) fn of(backend: &mut dyn Backend, batch: &BatchRef<'_>, view: u32, bad: &[usize]) -> Option<Value> {
    backend.stack()?.services().trace()?;
    let shape: Vec<usize> = batch.shape(view).iter().map(|&extent| extent as usize).collect();
    let columns = shape.last().copied().unwrap_or(1);
    let rows = if shape.len() > 1 { shape[shape.len() - 2] } else { 1 };
    let plane = bad.first()? / (rows * columns);
    let (high, wide) = (rows.min(CELLS), columns.min(if rows > 1 { CELLS } else { LONG }));
    let cell = |position: usize| {
        let at = position.checked_sub(plane * rows * columns).filter(|&at| at < rows * columns)?;
        Some(at / columns * high / rows * wide + at % columns * wide / columns)
    };
    // The sum and the number of the finite elements of each cell.
    let mut means = vec![(0.0f64, 0u32); high * wide];
    let mut position = 0;
    let mut look = |value: f64| {
        if let (Some(cell), true) = (cell(position), value.is_finite()) {
            means[cell] = (means[cell].0 + value, means[cell].1 + 1);
        }
        position += 1;
    };
    with_dtype!(batch.base_of(view)?.dtype(), T => visit::<T>(backend, batch, view, |_, value| look(size(value))))?;
    let mut counts = vec![0u32; high * wide];
    bad.iter().filter_map(|&position| cell(position)).for_each(|cell| counts[cell] += 1);
    let mean = |&(sum, count): &(f64, u32)| (count > 0).then(|| sum / f64::from(count)).filter(|mean| mean.is_finite());
    Some(json!({
        "shape": shape, "plane": index(plane, &shape[..shape.len().saturating_sub(2)]), "high": high, "wide": wide,
        "means": means.iter().map(mean).collect::<Vec<_>>(), "bad": counts, "count": bad.len(),
    }))
}

/// Puts the map of a failure into the trace.
pub(super) fn leave(backend: &mut dyn Backend, picture: Option<&Value>, error: &Error) {
    if let (Some(picture), Some(stack)) = (picture, backend.stack())
        && let Some(trace) = stack.services().trace()
    {
        let mut detail = picture.clone();
        detail["what"] = error.to_string().into();
        trace.record("recorder", "bad number", trace.clock(), &detail.to_string());
    }
}

/// A number by its size: complex ones by their distance from zero.
fn size<T: Element>(value: T) -> f64 {
    let value = Constant::from_value(value).to::<c128>();
    if value.im == 0.0 { value.re } else { value.re.hypot(value.im) }
}

/// The index on leading axes at a position in C order.
fn index(position: usize, shape: &[usize]) -> Vec<usize> {
    let mut rest = position;
    let mut index: Vec<usize> = Vec::with_capacity(shape.len());
    for &extent in shape.iter().rev() {
        index.push(rest % extent.max(1));
        rest /= extent.max(1);
    }
    index.reverse();
    index
}
