//! Products of matrices and of stacks of matrices: what is multiplied, and which kernels do it. Tiles serve matrices; a product
//! with a vector is a reduction like any other.

use super::tiles::{Into, tiles};
use super::{Code, KernelMemory, Placement, Target, Variant, stage};
use crate::driver::{Libraries, MatrixPlace, MatrixProduct, Task};
use bh_bytecode::contraction::{Loops, are_large};
use bh_bytecode::walk::{Loop, Walk};
use bh_bytecode::{BatchRef, DType, Instr, Opcode, Operand};
use bh_kernel::{Arg, BufferRef, Dim, Kernel, Lowered, Parameters, Runner, Slot, SlotMode, Special, Stage, Step};

/// Blocks of this many rows and columns are counted where a result is small; up to `SMALL` of them, the inner loop is cut so that
/// about `PARTS` parts come of all, each with `TERMS` terms at least. These depend on nothing but shapes, so that results have the
/// same bits on all devices whose kernels round alike.
const BLOCK: i64 = 64;
const SMALL: i64 = 128;
const PARTS: i64 = 512;
const TERMS: i64 = 512;

/// Rows, columns and inner elements of a product that a library computes, and its multiplications, at least, and the pieces that its
/// inner loop would be cut into, at most. bh's kernels compute the others.
const LIBRARY_SIDE: i64 = 16;
const LIBRARY_WORK: i64 = 1 << 20;
const LIBRARY_PIECES: i64 = 8;

/// A factor or the product as a matrix.
#[derive(Clone, Copy)]
pub(crate) struct Matrix {
    pub(crate) dtype: DType,
    pub(crate) place: KernelMemory,
    pub(crate) start: i64,
    pub(crate) rows: i64,
    pub(crate) columns: i64,
    pub(crate) row_stride: i64,
    pub(crate) column_stride: i64,
}

impl Matrix {
    /// A view as a matrix; a vector is a row or a column. None of a constant or of other ranks.
    fn new(batch: &BatchRef<'_>, operand: Operand, vector_is_row: bool) -> Option<Matrix> {
        let view = operand.as_view()?;
        let (rows, columns, row_stride, column_stride) = match (batch.shape(view), batch.stride(view)) {
            (&[rows, columns], &[row, column]) => (rows, columns, row, column),
            (&[len], &[stride]) if vector_is_row => (1, len, 0, stride),
            (&[len], &[stride]) => (len, 1, stride, 0),
            _ => return None,
        };
        let (dtype, (place, start)) = (batch.dtype(operand)?, place(batch, view));
        Some(Matrix { dtype, place, start, rows, columns, row_stride, column_stride })
    }
}

/// The memory of a view and its first element there.
fn place(batch: &BatchRef<'_>, view: u32) -> (KernelMemory, i64) {
    let record = &batch.views[view as usize];
    (KernelMemory::Of(BufferRef::Base(record.base)), record.start)
}

/// A product of two matrices, or of each two of two stacks. Steps of the loops are elements: of the product, of the first factor,
/// of the second one. There is a loop over rows, one over columns and one over inner elements at least.
#[derive(Clone, Copy)]
pub(crate) struct Product {
    pub(super) dtype: DType,
    /// Memory and first element, in the same order.
    pub(super) places: [(KernelMemory, i64); 3],
    pub(super) loops: Loops,
    /// Pieces of the inner loop, which are summed apart.
    pub(super) pieces: i64,
}

/// Iterations of all loops.
pub(super) fn count(walk: &Walk<3>) -> i64 {
    walk.loops().iter().map(|each| each.extent).product()
}

impl Product {
    /// That of two matrices.
    pub(crate) fn of_matrices([left, right, out]: [&Matrix; 3]) -> Product {
        let side = |extent: i64, steps: [i64; 3]| {
            let mut walk = Walk::default();
            // An extent of 1 has only the index 0.
            walk.push(Loop { extent, steps: steps.map(|step| if extent == 1 { 0 } else { step as isize }) });
            walk
        };
        Product {
            dtype: out.dtype,
            places: [out, left, right].map(|matrix| (matrix.place, matrix.start)),
            loops: Loops {
                stack: Walk::default(),
                rows: side(out.rows, [out.row_stride, left.row_stride, 0]),
                inner: side(left.columns, [0, left.column_stride, right.row_stride]),
                columns: side(out.columns, [out.column_stride, 0, right.column_stride]),
            },
            pieces: 1,
        }
    }

    /// That of an instruction. None if it is not for the device: constants, other ranks, a product that lies in the memory of a
    /// factor.
    fn of(batch: &BatchRef<'_>, instr: u32) -> Option<Product> {
        let record = &batch.instrs[instr as usize];
        let &[out, left, right] = record.operands() else { return None };
        let product = if record.opcode == Opcode::Contract {
            Product::contraction(batch, record)?
        } else {
            let vector = left.as_view().is_some_and(|view| batch.shape(view).len() == 1);
            let (left, right) = (Matrix::new(batch, left, true)?, Matrix::new(batch, right, false)?);
            let out = Matrix::new(batch, out, vector)?;
            let fits = left.rows == out.rows && right.columns == out.columns && left.columns == right.rows;
            let alike = left.dtype == out.dtype && right.dtype == out.dtype;
            (fits && alike).then(|| Product::of_matrices([&left, &right, &out]))?
        };
        let [out, left, right] = product.places.map(|(place, _)| place);
        (out != left && out != right).then(|| product.cut())
    }

    fn contraction(batch: &BatchRef<'_>, instr: &Instr) -> Option<Product> {
        let of = |at: usize| Some(place(batch, instr.operands[at].as_view()?));
        let places = [of(0)?, of(1)?, of(2)?];
        let loops = Loops::of(batch, instr);
        // The blocks of the kernel are for large matrices; stacks of others are folds.
        let is_large = are_large(&[&loops.rows, &loops.inner, &loops.columns].map(count));
        is_large.then_some(Product { dtype: batch.dtype(instr.operands[0])?, places, loops, pieces: 1 })
    }

    /// With as many pieces as its shape asks for.
    fn cut(self) -> Product {
        let [rows, columns, terms] = [&self.loops.rows, &self.loops.columns, &self.loops.inner].map(count);
        let blocks = [rows, columns].map(|extent| (extent as u64).div_ceil(BLOCK as u64) as i64);
        let blocks = count(&self.loops.stack).saturating_mul(blocks[0]).saturating_mul(blocks[1]);
        let pieces = if (1..=SMALL).contains(&blocks) { (PARTS / blocks).min(terms / TERMS).max(1) } else { 1 };
        Product { pieces, ..self }
    }

    /// Elements of the result.
    pub(super) fn elements(&self) -> i64 {
        count(&self.loops.stack) * count(&self.loops.rows) * count(&self.loops.columns)
    }

    /// The buffer of an operand.
    fn buffer(&self, operand: usize) -> BufferRef {
        match self.places[operand].0 {
            KernelMemory::Of(buffer) => buffer,
            KernelMemory::Scratch(_) | KernelMemory::Failures => BufferRef::None,
        }
    }

    /// The product as libraries take it: of large matrices without gaps between neighbours, or of one with a vector.
    fn for_library(&self) -> Option<(Task, Vec<KernelMemory>)> {
        let one = |walk: &Walk<3>| match walk.loops() {
            [] => Some(Loop { extent: 1, steps: [0; 3] }),
            &[one] => Some(one),
            _ => None,
        };
        let Loops { stack, rows, inner, columns } = &self.loops;
        let [stack, rows, inner, columns] = [one(stack)?, one(rows)?, one(inner)?, one(columns)?];
        let extents = [rows, inner, columns].map(|each| each.extent);
        let work = extents.iter().fold(stack.extent, |work, &extent| work.saturating_mul(extent));
        let known = matches!(self.dtype, DType::F32 | DType::F64 | DType::C64 | DType::C128);
        // Products of a matrix and a vector, one at a time, are as fast as memory whatever their shape.
        let is_vector = rows.extent == 1 || columns.extent == 1;
        let sides = |least: i64| extents.iter().filter(|&&extent| extent >= least).count();
        let is_large = sides(LIBRARY_SIDE) == if is_vector { 2 } else { 3 } && work >= LIBRARY_WORK;
        let suits = if is_vector { stack.extent == 1 } else { self.pieces <= LIBRARY_PIECES };
        if !known || !is_large || !suits {
            return None;
        }
        let sides = [[rows, columns], [rows, inner], [inner, columns]];
        let place = |operand: usize| {
            let [down, across] = sides[operand];
            let [row, column, next] = [down, across, stack].map(|each| each.steps[operand] as i64);
            // A vector is a matrix of one column or one row.
            let [row, column] = match [down.extent, across.extent] {
                [_, 1] if row == 1 => [1, down.extent],
                [1, _] if column == 1 => [across.extent, 1],
                [_, 1] => [row, 1],
                [1, _] => [1, column],
                _ => [row, column],
            };
            let dense = (row == 1 && column >= down.extent) || (column == 1 && row >= across.extent);
            dense.then_some(MatrixPlace { first: self.places[operand].1, row, column, next })
        };
        let places = [place(0)?, place(1)?, place(2)?];
        let product = MatrixProduct { dtype: self.dtype, extents, count: stack.extent, places };
        Some((Task::Product(product), self.places.iter().map(|(memory, _)| *memory).collect()))
    }

    /// The product as a reduction: the elements of the result, and terms, which are inside if neighbours of the first factor are
    /// terms. Where there is but one row, the second factor decides.
    fn fold(&self) -> Stage {
        let Loops { stack, rows, inner, columns } = &self.loops;
        let step = |walk: &Walk<3>, operand: usize| walk.loops().last().map_or(0, |it| it.steps[operand].abs());
        let inside = match count(rows) {
            1 => step(inner, 2) < step(columns, 2),
            _ => step(inner, 1) <= step(rows, 1),
        };
        let kept = [stack, rows, columns].into_iter().flat_map(Walk::loops).map(|each| (Dim::Kept, each));
        let reduced = inner.loops().iter().map(|each| (Dim::Reduced, each));
        let dims: Vec<(Dim, &Loop<3>)> =
            if inside { kept.chain(reduced).collect() } else { reduced.chain(kept).collect() };
        let dtype = self.dtype;
        let slot = |mode, same_as| Slot { dtype, mode, same_as };
        let kernel = Kernel {
            dims: dims.iter().map(|(dim, _)| *dim).collect(),
            slots: vec![slot(SlotMode::Read, 0), slot(SlotMode::Read, 1), slot(SlotMode::Result, 2)],
            constants: Vec::new(),
            steps: vec![
                Step::Load { slot: 0 },
                Step::Load { slot: 1 },
                Step::Compute {
                    opcode: Opcode::MultiplyReduce,
                    param: 0,
                    input: dtype,
                    output: dtype,
                    args: [Arg::Value(0), Arg::Value(1), Arg::Value(0)],
                    count: 2,
                },
                Step::Reduce { opcode: Opcode::AddReduce, slot: 2, arg: Arg::Value(2) },
            ],
        };
        let operands = [1, 2, 0];
        let parameters = Parameters {
            extents: dims.iter().map(|(_, each)| each.extent).collect(),
            buffers: operands.map(|operand| self.buffer(operand)).to_vec(),
            starts: operands.map(|operand| self.places[operand].1).to_vec(),
            strides: operands.iter().flat_map(|&at| dims.iter().map(move |(_, each)| each.steps[at] as i64)).collect(),
            instrs: vec![0; 4],
            ..Parameters::default()
        };
        Stage { kernel, parameters }
    }
}

/// The work of a block, with products that the device has no kernel of their own for as loops.
pub(crate) fn lowered(batch: &BatchRef<'_>, block: u32) -> Lowered {
    match bh_kernel::lower(batch, block, Runner::Items) {
        Lowered::Special(Special::Product(instr)) if !is_product(batch, instr) => {
            bh_kernel::lower_product(batch, block, instr)
        }
        lowered => lowered,
    }
}

/// Can the device do a product (index of the instruction in the batch)?
pub(crate) fn is_product(batch: &BatchRef<'_>, instr: u32) -> bool {
    Product::of(batch, instr).is_some()
}

/// The kernels of a product that [`is_product`], or its task for one of the libraries; `scratch` gets the bytes of memory between kernels.
pub(crate) fn product(
    batch: &BatchRef<'_>,
    instr: u32,
    target: &Target,
    variant: Variant,
    libraries: Option<&dyn Libraries>,
    scratch: &mut Vec<usize>,
) -> Vec<Code> {
    let Some(product) = Product::of(batch, instr).filter(|product| product.elements() > 0) else { return Vec::new() };
    let [rows, inner, columns] = [&product.loops.rows, &product.loops.inner, &product.loops.columns].map(count);
    let fold = |scratch| stage::stage(&product.fold(), target, variant, scratch);
    if inner == 0 {
        return fold(scratch);
    }
    if target.placements.has(Placement::Library)
        && let (Some(libraries), Some((task, places))) = (libraries, product.for_library())
        && libraries.has(task.subject())
    {
        return vec![Code::of_library(task, places)];
    }
    if rows == 1 || columns == 1 {
        return fold(scratch);
    }
    let first = scratch.len() as u16;
    let mut codes = vec![tiles(&product, Into::Own { pieces: KernelMemory::Scratch(first) }, target, variant)];
    if product.pieces > 1 {
        scratch.push((product.elements() * product.pieces) as usize * product.dtype.size());
        codes.push(stage::joined(&product.fold(), product.pieces, target, variant, first));
    }
    codes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(matrices: i64, [rows, inner, columns]: [i64; 3]) -> i64 {
        let walk = |extent: i64| Walk::merged([Loop { extent, steps: [1; 3] }]);
        let [stack, rows, inner, columns] = [matrices, rows, inner, columns].map(walk);
        let loops = Loops { stack, rows, inner, columns };
        let places = [(KernelMemory::Failures, 0); 3];
        Product { dtype: DType::F64, places, loops, pieces: 1 }.cut().pieces
    }

    #[test]
    fn long_inner_loops_of_small_results_are_cut() {
        assert_eq!(pieces(1, [16, 2_000_000, 8]), PARTS);
        assert_eq!(pieces(1, [16, 5000, 8]), 9);
        assert_eq!(pieces(8, [256, 4096, 64]), 8);
        // Many results need none, nor do short sums.
        assert_eq!([pieces(8, [2048, 2048, 64]), pieces(1, [64, 64, 64]), pieces(1, [2, 1000, 2])], [1; 3]);
    }
}
