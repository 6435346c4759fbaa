//! Contractions as products of matrices: loops of the box become rows, inner elements and columns of matrices; other loops number
//! matrices, or are added up.
//!
//! How a contraction is cut follows from its shape and strides alone. Each element of the result is a sum of products over the
//! longest inner loop, in the order of [`crate::multiply`]; further inner loops are added in their order. Where the result is
//! small and the inner loop long, pieces of it are summed apart, and their sums are added in order. So bits do not depend on the
//! number of threads.

use crate::little;
use crate::multiply::{Matrix, add_product, clear, tile, tiles};
use crate::scratch::Scratch;
use crate::{Parallel, Strided};
use bh_bytecode::contraction::{LITTLE_SIDE, Loops, Role, role};
use bh_bytecode::scalar::Arithmetic;
use bh_bytecode::walk::{Loop, Walk};
use bh_bytecode::{DType, MAX_RANK, with_dtype};
use bh_core::{Host, Result};

/// Iterations of a loop with which the matrices are large enough: operands of shorter loops that are none together are packed.
const SIDE: i64 = 64;
/// Elements of the result up to which a long inner loop is cut into pieces.
const SMALL: i64 = 1 << 14;
/// Elements of a piece of the inner loop, at least.
const PIECE: i64 = 1 << 11;
/// Pieces, at most.
const PIECES: i64 = 16;
/// Elements that a task copies, about.
const COPIED: i64 = 1 << 14;

/// Shape and strides of a contraction.
#[derive(Clone, Copy)]
pub struct Form<'a> {
    /// The type of the elements.
    pub dtype: DType,
    /// The box.
    pub shape: &'a [i64],
    /// Strides of the output, in elements, along the axes that are kept.
    pub out: &'a [i64],
    /// Strides of both operands, in elements, along all axes.
    pub operands: [&'a [i64]; 2],
    /// Bit mask of the axes that are summed over.
    pub summed: u16,
}

/// Where the elements of a packed operand lie: one stride for each axis of the box, and how many there are.
struct Packed {
    stride: [i64; MAX_RANK],
    len: i64,
}

/// How a contraction is done.
struct Plan {
    packed: [Option<Packed>; 2],
    /// One matrix to the next.
    outer: Walk<3>,
    rows: Loop<3>,
    columns: Loop<3>,
    inner: Loop<3>,
    /// Inner loops around that one.
    sums: Walk<3>,
    /// Pieces of the inner loop that are summed apart.
    pieces: i64,
}

fn count(walk: &Walk<3>) -> i64 {
    walk.loops().iter().map(|each| each.extent).product()
}

/// Takes the longest loop out.
fn longest(walk: &Walk<3>) -> (Loop<3>, Walk<3>) {
    let Some((at, longest)) = walk.loops().iter().enumerate().max_by_key(|(at, each)| (each.extent, *at)) else {
        return (Loop { extent: 1, steps: [0; 3] }, *walk);
    };
    let mut rest = Walk::default();
    walk.loops().iter().enumerate().filter(|(other, _)| *other != at).for_each(|(_, each)| rest.push(*each));
    (*longest, rest)
}

/// Is it several loops, none of which is long?
fn is_cut(walk: &Walk<3>) -> bool {
    walk.loops().len() > 1 && longest(walk).0.extent < SIDE
}

impl Plan {
    fn new(form: &Form<'_>) -> Plan {
        let loops = Loops::new(form.shape, form.out, form.operands, form.summed);
        let inner = is_cut(&loops.inner);
        // Where the output has gaps, no other place of an operand joins its loops.
        let alone = |walk: &Walk<3>| {
            let own = walk.loops().iter().map(|each| Loop { steps: [each.steps[0], 0, 0], ..*each });
            Walk::merged(own).loops().len() < walk.loops().len()
        };
        let packs = [
            inner || is_cut(&loops.rows) && alone(&loops.rows),
            inner || is_cut(&loops.columns) && alone(&loops.columns),
        ];
        let packed = [0, 1].map(|operand| packs[operand].then(|| Packed::new(form, operand)));
        let mut strides = form.operands;
        for (stride, packed) in strides.iter_mut().zip(&packed) {
            if let Some(packed) = packed {
                *stride = &packed.stride[..form.shape.len()];
            }
        }
        let loops = Loops::new(form.shape, form.out, strides, form.summed);
        let mut outer = loops.stack;
        let (rows, more_rows) = longest(&loops.rows);
        let (columns, more_columns) = longest(&loops.columns);
        let (inner, sums) = longest(&loops.inner);
        more_rows.loops().iter().chain(more_columns.loops()).for_each(|each| outer.push(*each));
        let elements = count(&outer).saturating_mul(rows.extent).saturating_mul(columns.extent);
        let pieces = if elements <= SMALL { (inner.extent / PIECE).clamp(1, PIECES) } else { 1 };
        Plan { packed, outer, rows, columns, inner, sums, pieces }
    }

    /// Elements of the results of pieces.
    fn partial(&self) -> i64 {
        if self.pieces == 1 { 0 } else { self.pieces * self.elements() }
    }

    fn elements(&self) -> i64 {
        count(&self.outer) * self.rows.extent * self.columns.extent
    }
}

impl Packed {
    /// An operand without gaps: matrices of a stack, in them lines, in them elements. Axes along which it is constant stay so,
    /// but for inner ones.
    fn new(form: &Form<'_>, operand: usize) -> Packed {
        let mut kept = form.out.iter();
        let mut axes: Vec<(u8, i64, usize)> = Vec::new();
        for axis in 0..form.shape.len() {
            let role = role(form.summed >> axis & 1 == 1, form.operands.map(|stride| stride[axis]));
            let to = if role == Role::Inner { 0 } else { kept.next().copied().unwrap_or(0) };
            let (own, other) = (form.operands[operand][axis], form.operands[1 - operand][axis]);
            let (place, by) = match role {
                Role::Stack => (0, to),
                Role::Inner if operand == 0 => (2, own),
                // In the order of the first operand, which is packed with it.
                Role::Inner => (1, other),
                _ if own == 0 => continue,
                _ => (2 - operand as u8, to),
            };
            let place = if operand == 1 && role == Role::Column { 2 } else { place };
            axes.push((place, -by.abs(), axis));
        }
        axes.sort();
        let (mut stride, mut len) = ([0; MAX_RANK], 1);
        for &(.., axis) in axes.iter().rev() {
            stride[axis] = len;
            len *= form.shape[axis];
        }
        Packed { stride, len }
    }

    /// Copies an operand here.
    fn fill(&self, form: &Form<'_>, operand: usize, from: Data, to: Data, threads: &mut dyn Parallel) {
        let axes: Vec<[i64; 3]> = (0..form.shape.len())
            .filter(|&axis| self.stride[axis] != 0 && form.shape[axis] != 1)
            .map(|axis| [form.shape[axis], form.operands[operand][axis], self.stride[axis]])
            .collect();
        let mut axes = axes;
        axes.sort_by_key(|axis| std::cmp::Reverse(axis[2]));
        let (mut tasks, mut split) = (1, 0);
        while split < axes.len() && self.len / tasks > COPIED {
            tasks *= axes[split][0];
            split += 1;
        }
        let size = form.dtype.size();
        let (outer, inner) = axes.split_at(split);
        let inner = Walk::merged(inner.iter().map(|&[extent, from, to]| Loop {
            extent,
            steps: [from as isize * size as isize, to as isize * size as isize],
        }));
        let participants = threads.participants(self.len as u64 * 8);
        threads.run(participants, tasks as usize, &|numbers| {
            for number in numbers {
                let (mut rest, mut places) = (number as i64, [0isize; 2]);
                for &[extent, from, to] in outer.iter().rev() {
                    places[0] += (rest % extent * from) as isize;
                    places[1] += (rest % extent * to) as isize;
                    rest /= extent;
                }
                let at = [from.at(places[0], size), to.at(places[1], size)];
                // SAFETY: the loops reach elements of the operand, and of memory that has room for all of them, each of them
                // from one task.
                unsafe { copy(&inner, size, at) };
            }
        });
    }
}

/// Copies the elements of loops from the first place to the second.
///
/// # Safety
/// The loops must reach readable elements of `size` bytes from the first place on, and writable ones from the second.
unsafe fn copy(loops: &Walk<2>, size: usize, at: [*mut u8; 2]) {
    macro_rules! sized {
        ($($bytes:literal),*) => {
            match size {
                $($bytes => loops.each(at, |[from, to]| {
                    // SAFETY: both are elements of this size, as `# Safety` asks.
                    unsafe { to.cast::<[u8; $bytes]>().write(from.cast::<[u8; $bytes]>().read()) }
                }),)*
                _ => loops.each(at, |[from, to]| {
                    // SAFETY: as above.
                    unsafe { std::ptr::copy_nonoverlapping(from, to, size) }
                }),
            }
        };
    }
    sized!(1, 2, 4, 8, 16);
}

/// The first element of an operand, for all threads.
#[derive(Clone, Copy)]
struct Data(*mut u8);

// SAFETY: participants read operands, and write elements that are each of one task.
unsafe impl Send for Data {}
// SAFETY: as above.
unsafe impl Sync for Data {}

impl Data {
    fn at(self, elements: isize, size: usize) -> *mut u8 {
        self.0.wrapping_offset(elements * size as isize)
    }
}

/// Bytes of work memory that a contraction takes.
pub fn work_bytes(form: &Form<'_>) -> usize {
    let plan = Plan::new(form);
    let packed: i64 = plan.packed.iter().flatten().map(|packed| packed.len).sum();
    (packed + plan.partial()) as usize * form.dtype.size()
}

/// Sums products over the axes of a mask; the operands have the shape of the box, and the output that of the axes that are kept.
pub fn contract([out, a, b]: [&Strided<'_>; 3], summed: u16, memory: Host, threads: &mut dyn Parallel) -> Result<()> {
    let size = out.dtype.size();
    let strides =
        [out, a, b].map(|view| view.stride.iter().map(|stride| (stride / size as isize) as i64).collect::<Vec<i64>>());
    let form =
        Form { dtype: out.dtype, shape: a.shape, out: &strides[0], operands: [&strides[1], &strides[2]], summed };
    let plan = Plan::new(&form);
    if plan.elements() == 0 {
        return Ok(());
    }
    let mut data = [out, a, b].map(|view| Data(view.data()));
    let mut held = Vec::new();
    for (operand, packed) in plan.packed.iter().enumerate() {
        let Some(packed) = packed else { continue };
        let mut scratch = Scratch::<u8>::zeros(Some(memory), packed.len as usize * size)?;
        let to = Data(scratch.as_mut_ptr());
        packed.fill(&form, operand, data[1 + operand], to, threads);
        data[1 + operand] = to;
        held.push(scratch);
    }
    if plan.is_of_little(form.dtype) {
        plan.run_little(form.dtype, data, threads);
        return Ok(());
    }
    if plan.pieces == 1 {
        plan.run(form.dtype, data, threads);
        return Ok(());
    }
    let mut partial = Scratch::<u8>::zeros(Some(memory), plan.partial() as usize * size)?;
    let sums = Data(partial.as_mut_ptr());
    plan.run_pieces(form.dtype, [sums, data[1], data[2]], threads);
    // SAFETY: the sums of all pieces are there, and the output has the elements of the loops.
    with_dtype!(form.dtype, T => unsafe { plan.join::<T>(sums, data[0]) });
    Ok(())
}

impl Plan {
    /// The matrix of an operand whose first element is at an address.
    fn matrix(&self, operand: usize, data: *mut u8) -> Matrix {
        let [down, across] = match operand {
            0 => [self.rows, self.columns],
            1 => [self.rows, self.inner],
            _ => [self.inner, self.columns],
        };
        Matrix {
            data,
            rows: down.extent,
            columns: across.extent,
            row_stride: down.steps[operand],
            column_stride: across.steps[operand],
        }
    }

    /// The places, in elements, of one of the matrices.
    fn place(&self, number: i64) -> [isize; 3] {
        let (mut rest, mut places) = (number, [0; 3]);
        for (at, each) in self.outer.loops().iter().enumerate().rev() {
            let index = if at == 0 { rest } else { rest % each.extent } as isize;
            if at > 0 {
                rest /= each.extent;
            }
            for (place, step) in places.iter_mut().zip(each.steps) {
                *place += index * step;
            }
        }
        places
    }

    /// The sum of the products of matrices, over the loops around the inner one.
    ///
    /// # Safety
    /// As [`add_product`], for all iterations of these loops.
    unsafe fn sum(&self, dtype: DType, a: Matrix, b: Matrix, out: Matrix) {
        let size = dtype.size();
        // SAFETY: the output is there, and each iteration leads to matrices of the operands.
        unsafe {
            clear(dtype, out);
            let steps = |each: &Loop<3>| Loop {
                extent: each.extent,
                steps: [each.steps[1], each.steps[2]].map(|step| step * size as isize),
            };
            let sums = Walk::merged(self.sums.loops().iter().map(steps));
            sums.each([a.data, b.data], |[left, right]| {
                add_product(dtype, Matrix { data: left, ..a }, Matrix { data: right, ..b }, out);
            });
        }
    }

    /// All products, in tiles.
    fn run(&self, dtype: DType, data: [Data; 3], threads: &mut dyn Parallel) {
        let (size, matrices) = (dtype.size(), count(&self.outer));
        let terms = (self.inner.extent * count(&self.sums)) as u64;
        let participants = threads.participants((self.elements() as u64).saturating_mul(terms) / 4);
        let each = (participants as i64 * 2 / matrices.max(1)).clamp(1, participants as i64);
        let [down, across] = tiles(self.rows.extent, self.columns.extent, each);
        threads.run(participants, (matrices * down * across) as usize, &|tasks| {
            for task in tasks {
                let (number, at) = (task as i64 / (down * across), task as i64 % (down * across));
                let places = self.place(number);
                let [out, a, b] =
                    [0, 1, 2].map(|operand| self.matrix(operand, data[operand].at(places[operand], size)));
                let rows = tile(self.rows.extent, down, at / across);
                let columns = tile(self.columns.extent, across, at % across);
                let (a, b) = (a.rows(rows.clone(), size), b.columns(columns.clone(), size));
                // SAFETY: the loops are those of views of validated bases, and tiles are apart.
                unsafe { self.sum(dtype, a, b, out.rows(rows, size).columns(columns, size)) };
            }
        });
    }

    /// Is it a product of little matrices?
    fn is_of_little(&self, dtype: DType) -> bool {
        (dtype.is_float() || dtype.is_complex())
            && self.sums.loops().is_empty()
            && [self.rows, self.inner, self.columns].iter().all(|side| (1..=LITTLE_SIDE).contains(&side.extent))
    }

    /// All products of little matrices, some at a time.
    fn run_little(&self, dtype: DType, data: [Data; 3], threads: &mut dyn Parallel) {
        let (size, matrices) = (dtype.size(), count(&self.outer));
        let elements = self.rows.extent * self.inner.extent + self.inner.extent * self.columns.extent;
        let each = (COPIED / elements).max(1);
        let work = (self.elements() as u64).saturating_mul(self.inner.extent as u64);
        let participants = threads.participants(work.saturating_mul(2));
        threads.run(participants, (matrices as u64).div_ceil(each as u64) as usize, &|tasks| {
            for task in tasks {
                let first = task as i64 * each;
                let mut places = (first..(first + each).min(matrices)).map(|number| {
                    let places = self.place(number);
                    [0, 1, 2].map(|operand| data[operand].at(places[operand], size))
                });
                let matrices = [0, 1, 2].map(|operand| self.matrix(operand, data[operand].0));
                // SAFETY: the loops are those of views of validated bases; sides are little, and results of tasks apart.
                unsafe { little::products(dtype, matrices, &mut places) };
            }
        });
    }

    /// The products of pieces of the inner loop, each into a matrix without gaps.
    fn run_pieces(&self, dtype: DType, data: [Data; 3], threads: &mut dyn Parallel) {
        let (size, matrices) = (dtype.size(), count(&self.outer));
        let terms = (self.inner.extent * count(&self.sums)) as u64;
        let participants = threads.participants((self.elements() as u64).saturating_mul(terms) / 4);
        let each = self.rows.extent * self.columns.extent;
        threads.run(participants, (matrices * self.pieces) as usize, &|tasks| {
            for task in tasks {
                let (piece, number) = (task as i64 / matrices, task as i64 % matrices);
                let edge = |piece: i64| self.inner.extent * piece / self.pieces;
                let terms = edge(piece)..edge(piece + 1);
                let places = self.place(number);
                let [a, b] = [1, 2].map(|operand| self.matrix(operand, data[operand].at(places[operand], size)));
                let out = Matrix {
                    data: data[0].at(task as isize * each as isize, size),
                    rows: self.rows.extent,
                    columns: self.columns.extent,
                    row_stride: self.columns.extent as isize,
                    column_stride: 1,
                };
                // SAFETY: as in `run`; each task has a matrix of the results of its own.
                unsafe { self.sum(dtype, a.columns(terms.clone(), size), b.rows(terms, size), out) };
            }
        });
    }

    /// Adds the sums of pieces up.
    ///
    /// # Safety
    /// The sums of all pieces must be at `sums`, one after the other, and the output have the elements of the loops, all of type
    /// `T`.
    unsafe fn join<T: Arithmetic>(&self, sums: Data, out: Data) {
        let (matrices, elements) = (count(&self.outer), self.elements());
        let mut next = 0;
        for number in 0..matrices {
            let to = self.matrix(0, out.at(self.place(number)[0], size_of::<T>()));
            for (row, column) in (0..to.rows).flat_map(|row| (0..to.columns).map(move |column| (row, column))) {
                let term = |piece: i64| sums.0.cast::<T>().wrapping_offset((piece * elements + next) as isize);
                let place = row as isize * to.row_stride + column as isize * to.column_stride;
                // SAFETY: all of these are elements of the sums and of the output.
                unsafe {
                    let rest = (1..self.pieces).fold(term(0).read(), |sum, piece| sum.add(term(piece).read()));
                    to.data.cast::<T>().wrapping_offset(place).write_unaligned(rest);
                }
                next += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(shape: &[i64], out: &[i64], operands: [&[i64]; 2], summed: u16) -> Plan {
        Plan::new(&Form { dtype: DType::F64, shape, out, operands, summed })
    }

    #[test]
    fn loops_become_sides_of_matrices() {
        // Σ over k of a[s, i, k] · b[s, k, j].
        let stack = plan(&[5, 100, 90, 80], &[8000, 80, 1], [&[9000, 90, 1, 0], &[7200, 0, 80, 1]], 0b0100);
        assert_eq!((stack.rows.extent, stack.inner.extent, stack.columns.extent), (100, 90, 80));
        assert_eq!((count(&stack.outer), stack.pieces, stack.packed.iter().flatten().count()), (5, 1, 0));
        // A long sum into a small result is cut.
        let long = plan(&[8, 100_000, 9], &[9, 1], [&[100_000, 1, 0], &[0, 9, 1]], 0b010);
        assert_eq!((long.pieces, long.partial()), (PIECES, PIECES * 72));
        // Σ over p, q of a[i, p, q] · b[q, p, j], with short loops: both are packed, into one inner loop.
        let short = plan(&[50, 8, 9, 60], &[60, 1], [&[72, 9, 1, 0], &[0, 60, 480, 1]], 0b0110);
        assert_eq!((short.inner.extent, count(&short.sums)), (72, 1));
        assert_eq!(short.packed.map(|packed| packed.map(|packed| packed.len)), [Some(3600), Some(4320)]);
        // With long ones, they are added up one after the other.
        let sums = plan(&[50, 80, 90, 60], &[60, 1], [&[7200, 90, 1, 0], &[0, 60, 4800, 1]], 0b0110);
        assert_eq!((sums.inner.extent, count(&sums.sums), sums.packed.iter().flatten().count()), (90, 80, 0));
    }
}
