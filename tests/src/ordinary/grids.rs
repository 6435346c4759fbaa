//! Stencils in one to three dimensions with common boundary conditions.

use super::number;
use crate::data::Values;
use crate::writer::{Given, Seen, Writer};
use bh_bytecode::random::Rng;
use bh_bytecode::{DType, Opcode};

/// The extents of a grid of about `count` elements, each at least three.
fn grid(rng: &mut Rng, count: i64) -> Vec<i64> {
    let rank = 1 + rng.below(3);
    let mut rest = count;
    let mut grid = Vec::new();
    for left in (0..rank).rev() {
        let even = (rest as f64).powf(1.0 / (left + 1) as f64).round() as i64;
        let extent = if left == 0 { rest } else { rng.between(even / 2, even * 2) };
        grid.push(extent.max(3));
        rest /= extent.max(3);
    }
    grid
}

/// All but the border, shifted by `by` elements along an axis.
fn inside(of: Seen, axis: usize, by: i64) -> Seen {
    let mut view = of.view;
    for dim in 0..view.rank() {
        let by = if dim == axis { by } else { 0 };
        let last = view.shape()[dim] - 1;
        view = view.slice(dim, Some(1 + by), Some(last + by), 1).expect("grids have borders");
    }
    of.through(view)
}

/// The first or last elements along an axis, or their neighbours.
fn edge(of: Seen, axis: usize, at: i64) -> Seen {
    of.through(of.view.slice(axis, Some(at), Some(at + 1), 1).expect("grids have borders"))
}

/// The boundary condition.
#[derive(Clone, Copy)]
enum Border {
    /// The old values.
    Stays,
    /// A constant.
    Number,
    /// The neighbouring elements.
    Mirror,
    /// The elements of the opposite side.
    Periodic,
}

/// One to four steps of a stencil.
pub(super) fn stencil(writer: &mut Writer, rng: &mut Rng, dtype: DType, count: i64) {
    let shape = grid(rng, count);
    let border = [Border::Stays, Border::Number, Border::Mirror, Border::Periodic][rng.below(4)];
    let in_place = rng.chance(40);
    let mut field = writer.input(rng, dtype, &shape, Values::Tame);
    for _ in 0..1 + rng.below(4) {
        let update = neighbours(writer, rng, field);
        let next = if in_place { field } else { writer.make(Opcode::Copy, 0, dtype, &shape, &[Given::Array(field)]) };
        let target = inside(next, 0, 0);
        if rng.chance(50) {
            writer.write(target, Opcode::Copy, 0, &[Given::Array(update)]);
        } else {
            writer.write(target, Opcode::Add, 0, &[Given::Array(target), Given::Array(update)]);
        }
        borders(writer, next, border);
        if rng.chance(30) {
            let change = writer.make(Opcode::Subtract, 0, dtype, &shape, &[Given::Array(next), Given::Array(field)]);
            let whole = (1 << shape.len()) - 1;
            let most = writer.make(Opcode::MaximumReduce, whole, dtype, &[], &[Given::Array(change)]);
            writer.keep(most);
        }
        field = next;
    }
    writer.keep(field);
}

/// The mean of the neighbours, or a part of their difference, for the interior.
fn neighbours(writer: &mut Writer, rng: &mut Rng, field: Seen) -> Seen {
    let (rank, dtype) = (field.view.rank(), field.dtype);
    let mut terms: Vec<Seen> = (0..rank).flat_map(|axis| [inside(field, axis, -1), inside(field, axis, 1)]).collect();
    let centre = inside(field, 0, 0);
    let shape = centre.view.shape().to_vec();
    let mut each = |opcode, a: Seen, b| writer.make(opcode, 0, dtype, &shape, &[Given::Array(a), b]);
    let with_centre = rng.chance(50);
    if with_centre {
        let factor = if rng.chance(50) { 2.0 * rank as f64 } else { 0.3 };
        terms.push(each(Opcode::Multiply, centre, Given::Number(-factor)));
    }
    if rng.chance(30) {
        terms.reverse();
    }
    let mut sum = terms[0];
    for &term in &terms[1..] {
        sum = each(Opcode::Add, sum, Given::Array(term));
    }
    for _ in 0..rng.below(4) {
        sum = if rng.chance(25) {
            each(Opcode::Divide, sum, Given::Number(2.0 * rank as f64))
        } else {
            each(Opcode::Multiply, sum, number(rng))
        };
    }
    each(Opcode::Multiply, sum, Given::Number(0.125))
}

fn borders(writer: &mut Writer, field: Seen, border: Border) {
    for axis in 0..field.view.rank() {
        let last = field.view.shape()[axis] - 1;
        for (at, beside, opposite) in [(0, 1, last - 1), (last, last - 1, 1)] {
            let from = match border {
                Border::Stays => continue,
                Border::Number => Given::Number(1.5),
                Border::Mirror => Given::Array(edge(field, axis, beside)),
                Border::Periodic => Given::Array(edge(field, axis, opposite)),
            };
            writer.write(edge(field, axis, at), Opcode::Copy, 0, &[from]);
        }
    }
}
