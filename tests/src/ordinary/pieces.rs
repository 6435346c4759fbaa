//! Arrays in pieces: rolled, padded, joined, stacked and filled by parts, and computations with them, also in place.

use super::number;
use crate::data::Values;
use crate::writer::{Given, Seen, Writer};
use bh_bytecode::random::Rng;
use bh_bytecode::{DType, Opcode, View};

/// The most axes.
const RANK: usize = 3;

/// Some statements on arrays of one shape, most of which read arrays in pieces.
pub(super) fn moved(writer: &mut Writer, rng: &mut Rng, dtype: DType, count: i64) {
    let shape = shape(rng, count);
    let mut arrays: Vec<Seen> = (0..1 + rng.below(3)).map(|_| writer.input(rng, dtype, &shape, Values::Tame)).collect();
    for _ in 0..2 + rng.below(6) {
        let of = arrays[rng.below(arrays.len())];
        let other = arrays[rng.below(arrays.len())];
        let result = match rng.below(18) {
            0..3 => neighbours(writer, rng, of, rolled),
            3..5 => neighbours(writer, rng, of, padded),
            5 => joined(writer, rng, of, other),
            6 => filled(writer, rng, of, other),
            7 => chosen(writer, rng, of, other),
            8 => in_place(writer, rng, of, other),
            9 => folded(writer, rng, of),
            10 => counted(writer, rng, of),
            11..14 => stacked(writer, rng, of, other),
            14..17 => reshaped(writer, rng, of, other),
            _ => each(writer, rng, of, other),
        };
        if rng.chance(20) {
            writer.keep(result);
        }
        arrays.push(result);
    }
    arrays.last().into_iter().for_each(|&array| writer.keep(array));
}

/// Extents whose product is about `count`.
fn shape(rng: &mut Rng, count: i64) -> Vec<i64> {
    let rank = 1 + rng.below(RANK);
    let mut shape = vec![count];
    while shape.len() < rank {
        let rest = shape.pop().unwrap_or(1);
        let own = [1, 2, 3, 7, 40][rng.below(5)].min(rest);
        if rng.chance(50) { shape.extend([own, rest / own]) } else { shape.extend([rest / own, own]) }
    }
    shape
}

/// The part of a view between two indices of an axis.
fn cut(of: Seen, axis: usize, first: i64, stop: i64) -> Seen {
    of.through(of.view.slice(axis, Some(first), Some(stop), 1).expect("parts are within their arrays"))
}

fn copy(writer: &mut Writer, into: Seen, from: Given) {
    if !into.view.is_empty() {
        writer.write(into, Opcode::Copy, 0, &[from]);
    }
}

fn operation(rng: &mut Rng) -> Opcode {
    [Opcode::Add, Opcode::Subtract, Opcode::Multiply, Opcode::Maximum][rng.below(4)]
}

fn each(writer: &mut Writer, rng: &mut Rng, a: Seen, b: Seen) -> Seen {
    let other = if rng.chance(30) { number(rng) } else { Given::Array(b) };
    writer.make(operation(rng), 0, a.dtype, a.view.shape(), &[Given::Array(a), other])
}

/// Combines an array with some shifted copies of it.
fn neighbours(
    writer: &mut Writer,
    rng: &mut Rng,
    of: Seen,
    moved: impl Fn(&mut Writer, &mut Rng, Seen) -> Seen,
) -> Seen {
    let mut sum = of;
    for _ in 0..1 + rng.below(4) {
        let next = moved(writer, rng, of);
        sum = each(writer, rng, sum, next);
        if rng.chance(10) {
            writer.keep(next);
        }
    }
    sum
}

/// An array, rolled along some axes, in one statement or several.
fn rolled(writer: &mut Writer, rng: &mut Rng, of: Seen) -> Seen {
    let mut rolled = of;
    for axis in 0..of.view.rank() {
        let extent = of.view.shape()[axis];
        if rng.chance(60) {
            let by = if rng.chance(70) { 1.min(extent - 1) } else { rng.below(extent as usize) as i64 };
            let by = if rng.chance(50) { by } else { (extent - by) % extent };
            let into = writer.empty(of.dtype, of.view.shape());
            copy(writer, cut(into, axis, 0, by), Given::Array(cut(rolled, axis, extent - by, extent)));
            copy(writer, cut(into, axis, by, extent), Given::Array(cut(rolled, axis, 0, extent - by)));
            rolled = into;
        }
    }
    rolled
}

/// A view of an array padded with numbers or its own edges.
fn padded(writer: &mut Writer, rng: &mut Rng, of: Seen) -> Seen {
    let widths: Vec<(i64, i64)> = of.view.shape().iter().map(|_| (rng.below(3) as i64, rng.below(3) as i64)).collect();
    let larger: Vec<i64> = of.view.shape().iter().zip(&widths).map(|(extent, (a, b))| extent + a + b).collect();
    let all = writer.empty(of.dtype, &larger);
    let dims: Vec<usize> = (0..of.view.rank()).collect();
    let inside = dims.iter().fold(all, |part, &dim| cut(part, dim, widths[dim].0, larger[dim] - widths[dim].1));
    if rng.chance(50) {
        let value = number(rng);
        copy(writer, all, value);
        copy(writer, inside, Given::Array(of));
    } else {
        copy(writer, inside, Given::Array(of));
        // Along each axis, on both sides; later axes include earlier padding.
        for &dim in &dims {
            let rows = dims[dim + 1..]
                .iter()
                .fold(all, |part, &dim| cut(part, dim, widths[dim].0, larger[dim] - widths[dim].1));
            for at in (0..widths[dim].0).rev() {
                copy(writer, cut(rows, dim, at, at + 1), Given::Array(cut(rows, dim, at + 1, at + 2)));
            }
            for at in larger[dim] - widths[dim].1..larger[dim] {
                copy(writer, cut(rows, dim, at, at + 1), Given::Array(cut(rows, dim, at - 1, at)));
            }
        }
    }
    dims.iter().fold(all, |part, &dim| {
        let first = rng.between(0, widths[dim].0 + widths[dim].1);
        cut(part, dim, first, first + of.view.shape()[dim])
    })
}

/// Two or three joined arrays, of which a computation uses a view, every second element or a reversed part.
fn joined(writer: &mut Writer, rng: &mut Rng, a: Seen, b: Seen) -> Seen {
    let axis = rng.below(a.view.rank());
    let extent = a.view.shape()[axis];
    let twice = writer.make(Opcode::Multiply, 0, a.dtype, a.view.shape(), &[Given::Array(b), number(rng)]);
    let parts = if rng.chance(50) { vec![a, twice] } else { vec![twice, b, a] };
    let mut shape = a.view.shape().to_vec();
    shape[axis] *= parts.len() as i64;
    let all = writer.empty(a.dtype, &shape);
    for (number, &part) in parts.iter().enumerate() {
        let first = number as i64 * extent;
        copy(writer, cut(all, axis, first, first + extent), Given::Array(part));
    }
    let seen = match rng.below(4) {
        0 => all.view.slice(axis, Some(0), Some(2 * extent), 2),
        1 => {
            let first = rng.between(0, shape[axis] - extent);
            all.view.slice(axis, Some(first), Some(first + extent), 1).and_then(|view| view.reverse(axis))
        }
        2 => {
            let whole = each(writer, rng, all, all);
            return cut(whole, axis, 0, extent);
        }
        _ => all.view.slice(axis, Some(extent / 2), Some(extent / 2 + extent), 1),
    };
    let seen = all.through(seen.expect("parts are within their arrays"));
    each(writer, rng, seen, b)
}

/// Parts that are computed from arrays of one shape and each other, joined along a new axis, and computations with all of them.
fn stacked(writer: &mut Writer, rng: &mut Rng, a: Seen, b: Seen) -> Seen {
    let (axis, count) = (rng.below(a.view.rank() + 1), 2 + rng.below(4) as i64);
    let mut shape = a.view.shape().to_vec();
    shape.insert(axis, count);
    let shared = each(writer, rng, a, b);
    let all = match rng.chance(20) {
        true => writer.make(Opcode::Copy, 0, a.dtype, &shape, &[number(rng)]),
        false => writer.empty(a.dtype, &shape),
    };
    let slice = |of: Seen, at: i64| of.through(of.view.index(axis, at).expect("slices are within their arrays"));
    let wide = |of: Seen| of.through(of.view.new_axis(axis).expect("there may be one more axis"));
    for at in 0..count {
        let source = match rng.below(5) {
            0 => rolled(writer, rng, a),
            1 => padded(writer, rng, b),
            2 => shared,
            _ => each(writer, rng, shared, a),
        };
        match rng.below(4) {
            0 => writer.write(slice(all, at), operation(rng), 0, &[Given::Array(source), number(rng)]),
            1 => copy(writer, slice(all, at), Given::Array(source)),
            _ => copy(writer, cut(all, axis, at, at + 1), Given::Array(wide(source))),
        }
    }
    let mut whole = all;
    for _ in 0..rng.below(4) {
        let repeated = wide(shared).view.broadcast_to(&shape).expect("one slice is as good as many");
        let other = [all, whole, shared.through(repeated)][rng.below(3)];
        whole = each(writer, rng, whole, other);
    }
    if rng.chance(20) {
        writer.keep(whole);
    }
    if rng.chance(20) {
        let part = slice(whole, rng.below(count as usize) as i64);
        writer.write(part, operation(rng), 0, &[Given::Array(part), number(rng)]);
    }
    let sum = if a.dtype.is_int() { Opcode::AddReduce } else { Opcode::MaximumReduce };
    match rng.below(5) {
        0 => slice(whole, rng.below(count as usize) as i64),
        1 => {
            let other = slice(all, rng.below(count as usize) as i64);
            each(writer, rng, slice(whole, 0), other)
        }
        2 => {
            // Along any axis.
            let axis = rng.below(shape.len());
            let kept: Vec<i64> = (0..shape.len()).filter(|&dim| dim != axis).map(|dim| shape[dim]).collect();
            let fold = writer.make(Opcode::MinimumReduce, 1 << axis, a.dtype, &kept, &[Given::Array(whole)]);
            // The sign of an extreme zero is free.
            let fold = writer.make(Opcode::Add, 0, a.dtype, &kept, &[Given::Array(fold), Given::Number(0.0)]);
            writer.keep(fold);
            slice(whole, 0)
        }
        _ => {
            let kept = a.view.shape();
            let fold = writer.make(sum, 1 << axis, a.dtype, kept, &[Given::Array(whole)]);
            let fold = writer.make(Opcode::Add, 0, a.dtype, kept, &[Given::Array(fold), Given::Number(0.0)]);
            each(writer, rng, fold, shared)
        }
    }
}

/// Computations on the elements of one array in several shapes, some of them repeated.
fn reshaped(writer: &mut Writer, rng: &mut Rng, a: Seen, b: Seen) -> Seen {
    let mut all = if rng.chance(60) { each(writer, rng, a, b) } else { a };
    let as_shape = |of: Seen, shape: &[i64]| {
        let view = of.view.reshape(shape).expect("as many elements");
        view.map(|view| of.through(view))
    };
    for _ in 0..1 + rng.below(3) {
        let (axis, count) = (rng.below(all.view.rank()), 1 + rng.below(3) as i64);
        let mut shape = all.view.shape().to_vec();
        // Each element several times, or the whole several times.
        let at = axis + rng.below(2);
        shape.insert(at, count);
        let wide = all.view.new_axis(at).and_then(|view| view.broadcast_to(&shape)).expect("elements may be repeated");
        let copied = writer.make(Opcode::Copy, 0, all.dtype, &shape, &[Given::Array(all.through(wide))]);
        let mut flat = all.view.shape().to_vec();
        flat[axis] *= count;
        let flat = if rng.chance(30) { vec![flat.iter().product()] } else { flat };
        all = as_shape(copied, &flat).expect("copies have no gaps");
        if rng.chance(60) {
            all = each(writer, rng, all, all);
        }
        if rng.chance(15) {
            writer.keep(copied);
        }
    }
    let sums = |writer: &mut Writer, of: Seen, kept: i64| {
        let parts = as_shape(of, &[kept, of.view.len() / kept]).expect("results have no gaps");
        let fold = writer.make(Opcode::MaximumReduce, 2, of.dtype, &[kept], &[Given::Array(parts)]);
        writer.make(Opcode::Add, 0, of.dtype, &[kept], &[Given::Array(fold), Given::Number(0.0)])
    };
    // Back to as many elements as there were.
    let count = a.view.len();
    let found = match rng.below(2) {
        0 => sums(writer, all, count),
        _ => {
            let all = as_shape(all, &[all.view.len()]).unwrap_or(all);
            if all.view.rank() == 1 { cut(all, 0, 0, count) } else { sums(writer, all, count) }
        }
    };
    let other = as_shape(b, &[count]).unwrap_or(found);
    let found = each(writer, rng, found, other);
    as_shape(found, a.view.shape()).expect("results have no gaps")
}

/// An array filled by parts, some of them twice.
fn filled(writer: &mut Writer, rng: &mut Rng, a: Seen, b: Seen) -> Seen {
    let axis = rng.below(a.view.rank());
    let extent = a.view.shape()[axis];
    let into = match rng.chance(50) {
        true => writer.make(Opcode::Copy, 0, a.dtype, a.view.shape(), &[Given::Array(a)]),
        false => writer.make(Opcode::Copy, 0, a.dtype, a.view.shape(), &[number(rng)]),
    };
    for _ in 0..1 + rng.below(3) {
        let first = rng.below(extent as usize) as i64;
        let stop = rng.between(first + 1, extent);
        let (part, from) = (cut(into, axis, first, stop), cut(b, axis, first, stop));
        match rng.below(4) {
            0 => copy(writer, part, number(rng)),
            1 => writer.write(part, operation(rng), 0, &[Given::Array(from), number(rng)]),
            2 => writer.write(part, operation(rng), 0, &[Given::Array(part), Given::Array(from)]),
            _ => copy(writer, part, Given::Array(from)),
        }
    }
    let all = each(writer, rng, into, a);
    let square = into.view.shape().iter().all(|&other| other == extent);
    let axes: Vec<usize> = (0..into.view.rank()).rev().collect();
    match into.view.transpose(&axes) {
        Ok(turned) if square => each(writer, rng, all, into.through(turned)),
        _ => all,
    }
}

/// Choices by a shifted mask.
fn chosen(writer: &mut Writer, rng: &mut Rng, a: Seen, b: Seen) -> Seen {
    let shape = a.view.shape().to_vec();
    let mask = writer.make(Opcode::Greater, 0, DType::Bool, &shape, &[Given::Array(a), Given::Array(b)]);
    let mask = if rng.chance(50) { rolled(writer, rng, mask) } else { padded(writer, rng, mask) };
    let (first, second) = (rolled(writer, rng, a), if rng.chance(50) { Given::Array(b) } else { number(rng) });
    writer.make(Opcode::Where, 0, a.dtype, &shape, &[Given::Array(mask), Given::Array(first), second])
}

/// Updates an array by its neighbours: through a temporary, or in part before they are read.
fn in_place(writer: &mut Writer, rng: &mut Rng, of: Seen, other: Seen) -> Seen {
    let moved = rolled(writer, rng, of);
    if rng.chance(30) {
        let extent = of.view.shape()[0];
        copy(writer, cut(of, 0, 0, extent / 2), number(rng));
    }
    let change = each(writer, rng, moved, other);
    writer.write(of, operation(rng), 0, &[Given::Array(of), Given::Array(change)]);
    if rng.chance(50) { each(writer, rng, of, moved) } else { of }
}

/// An array minus its extremes along an axis, computed from its neighbours.
fn folded(writer: &mut Writer, rng: &mut Rng, of: Seen) -> Seen {
    let axis = rng.below(of.view.rank());
    let sum = neighbours(writer, rng, of, rolled);
    let mut kept = of.view.shape().to_vec();
    kept.remove(axis);
    let opcode = [Opcode::MinimumReduce, Opcode::MaximumReduce][rng.below(2)];
    let fold = writer.make(opcode, 1 << axis, of.dtype, &kept, &[Given::Array(sum)]);
    let wide = fold.view.new_axis(axis).and_then(|view| view.broadcast_to(of.view.shape()));
    let wide = fold.through(wide.expect("a folded axis is repeated"));
    let other = rolled(writer, rng, of);
    each(writer, rng, wide, other)
}

/// Numbers from 0 on next to an array in pieces.
fn counted(writer: &mut Writer, rng: &mut Rng, of: Seen) -> Seen {
    let first = View::contiguous(of.view.shape()).expect("shapes of programs are small");
    let numbers = writer.range(of.dtype, &first);
    let moved = padded(writer, rng, of);
    each(writer, rng, moved, numbers)
}
