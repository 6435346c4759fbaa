//! The methods' work on a block of systems: reading, an algorithm, writing.

use super::eliminate::{cholesky, eliminate, is_doubtful, substitute};
use super::pack::{Mask, Number, Part, Real, Scalar};
use super::rotate::{eigen, left, singular, sort};
use super::{Block, LANES, Many, Room, SIDE, Stack, Work, by_type, orthogonal};
use crate::{Call, Parallel};
use bh_bytecode::DType;
use bh_core::abi::status;
use bh_core::{Error, Result};

type Done = std::result::Result<(), &'static str>;

const NOT_FINITE: &str = "the matrix has elements that are infinite or not a number";
const NO_END: &str = "the iterations do not converge";

/// Solutions of systems; a second output says which ones are doubtful, instead of an error for singular matrices.
pub(super) struct Solve;
/// Inverses, and which ones are doubtful.
pub(super) struct Inverse;
/// Determinants, and which ones overflow or underflow on the way.
pub(super) struct Determinant;
/// Cholesky factors.
pub(super) struct Cholesky;
/// QR factors.
pub(super) struct Qr;
/// Eigenvalues of Hermitian matrices, and eigenvectors.
pub(super) struct Eigen;
/// Singular values, and both kinds of vectors.
pub(super) struct Singular;

/// `solve` with a second output of one truth value for each system: is its matrix *doubtful*, so that LAPACK may find it singular?
pub(crate) fn solve(call: &Call<'_, '_>, threads: &mut dyn Parallel) -> Result<()> {
    let alike = |call: &Call<'_, '_>| {
        call.inputs[1].dtype == call.inputs[0].dtype && call.outputs[0].shape == call.inputs[1].shape
    };
    check(call, [2, 2], 2, alike)?;
    of_stack::<Solve>(call, threads)
}

/// The inverse of each matrix of a stack, and whether it is doubtful.
pub(crate) fn inverse(call: &Call<'_, '_>, threads: &mut dyn Parallel) -> Result<()> {
    check(call, [2, 1], 2, |call| call.outputs[0].shape == call.inputs[0].shape)?;
    of_stack::<Inverse>(call, threads)
}

/// The determinant of each matrix of a stack, and whether a product on the way to it is too large or too small.
pub(crate) fn det(call: &Call<'_, '_>, threads: &mut dyn Parallel) -> Result<()> {
    check(call, [2, 1], 0, |_| true)?;
    of_stack::<Determinant>(call, threads)
}

fn of_stack<W: Work>(call: &Call<'_, '_>, threads: &mut dyn Parallel) -> Result<()> {
    by_type::<W>(&Stack { call, axes: call.inputs[0].shape.len() - 2 }, threads)
}

/// Checks the operands of a method with doubts: the first output has `rank` dimensions behind the stack.
fn check(call: &Call<'_, '_>, counts: [usize; 2], rank: usize, fits: impl Fn(&Call<'_, '_>) -> bool) -> Result<()> {
    let fail = |code, text: &str| Err(Error::new(code, format!("{}: {text}", call.name)));
    if [call.outputs.len(), call.inputs.len()] != counts {
        return fail(status::ARGUMENT, "another number of operands");
    }
    let [first, doubt, matrix] = [&call.outputs[0], &call.outputs[1], &call.inputs[0]];
    if !(matrix.dtype.is_float() || matrix.dtype.is_complex())
        || first.dtype != matrix.dtype
        || doubt.dtype != DType::Bool
    {
        return fail(status::TYPE, "inexact matrices, results of their type and truth values");
    }
    let little = |extent: &i64| (1..=SIDE as i64).contains(extent);
    let Some((stack, &[rows, columns])) = matrix.shape.split_last_chunk::<2>() else {
        return fail(status::SHAPE, "matrices have two dimensions");
    };
    let operands = call.inputs.iter().chain([first]);
    let behind = |shape: &[i64]| shape.strip_prefix(stack).is_some_and(|own| own.iter().all(little));
    let is_right = rows == columns
        && operands.clone().all(|view| behind(view.shape))
        && operands.skip(1).all(|view| view.shape.len() == stack.len() + rank)
        && call.inputs[1..].iter().all(|sides| sides.shape[stack.len()] == rows)
        && doubt.shape == stack;
    if is_right && fits(call) {
        Ok(())
    } else {
        fail(status::SHAPE, "stacks of little square matrices and results for each")
    }
}

/// The cube of a side, by which operations are counted.
fn cube(side: usize) -> f64 {
    (side * side * side) as f64
}

#[inline(always)]
fn is_finite<N: Number>(numbers: &[N]) -> bool {
    let infinite = N::Real::ONE.div(N::Real::ZERO);
    let mut is_finite = N::Real::not(infinite.above(infinite));
    for x in numbers {
        is_finite = N::Real::and(is_finite, infinite.above(x.size()));
    }
    !N::Real::any(N::Real::not(is_finite), N::LANES)
}

/// Writes which systems are doubtful: those that are not sound, if a look at them alone does not clear them.
#[inline(always)]
fn write_doubts<N: Number>(to: Many<'_, '_>, block: Block, is_sound: Mask<N>, matrices: Many<'_, '_>) {
    let mut doubts = [false; LANES];
    for (lane, doubt) in doubts[..block.count].iter_mut().enumerate() {
        *doubt = !N::Real::is(is_sound, lane) && !is_clear::<N>(matrices, block.first + lane as i64);
    }
    to.write_truths(block, &doubts);
}

/// Is the matrix of one system beyond doubt, for all that its pivots are small beside others?
fn is_clear<N: Number>(matrices: Many<'_, '_>, number: i64) -> bool {
    let [n, _] = matrices.sides();
    let mut elements = vec![(0.0, 0.0); n * n];
    matrices.each(number, |from, row, column| {
        // SAFETY: it is the address of an element of the view, of this type.
        elements[row * n + column] = N::parts(unsafe { from.cast::<N::Element>().read_unaligned() });
    });
    let limits: [f64; 2] = [Part::<N>::SMALLEST, Part::<N>::LARGEST].map(Into::into);
    let is_extreme = |&(re, im): &(f64, f64)| {
        let size = re.abs() + im.abs();
        !(size == 0.0 || size > limits[0] && size < limits[1])
    };
    !elements.iter().any(is_extreme) && !is_doubtful(&mut elements, n, Part::<N>::EPSILON.into())
}

impl Work for Solve {
    fn operations(stack: &Stack<'_, '_>) -> f64 {
        let [n, columns] = stack.input(1).sides();
        cube(n) + (2 * n * n * columns) as f64
    }

    #[inline(always)]
    fn block<N: Number>(stack: &Stack<'_, '_>, block: Block, Room([a, sides, _]): &mut Room<N>) -> Done {
        let (matrices, right) = (stack.input(0), stack.input(1));
        let [n, columns] = right.sides();
        matrices.read(block, a, [n, 1]);
        right.read(block, sides, [columns, 1]);
        let sides = &mut sides[..n * columns];
        let pivots = eliminate(a, sides, [n, columns]);
        substitute(a, sides, [n, columns]);
        if stack.call.outputs.len() > 1 {
            write_doubts::<N>(stack.output(1), block, pivots.is_sound, matrices);
        } else if N::Real::any(pivots.has_zero, block.count) {
            return Err("the matrix is singular");
        }
        stack.output(0).write(block, sides, [columns, 1]);
        Ok(())
    }
}

impl Work for Inverse {
    fn operations(stack: &Stack<'_, '_>) -> f64 {
        3.0 * cube(stack.input(0).sides()[0])
    }

    #[inline(always)]
    fn block<N: Number>(stack: &Stack<'_, '_>, block: Block, Room([a, sides, _]): &mut Room<N>) -> Done {
        let matrices = stack.input(0);
        let [n, _] = matrices.sides();
        matrices.read(block, a, [n, 1]);
        let sides = &mut sides[..n * n];
        sides.fill(N::ZERO);
        for k in 0..n {
            sides[k * n + k] = N::ONE;
        }
        let pivots = eliminate(a, sides, [n, n]);
        substitute(a, sides, [n, n]);
        write_doubts::<N>(stack.output(1), block, pivots.is_sound, matrices);
        stack.output(0).write(block, sides, [n, 1]);
        Ok(())
    }
}

impl Work for Determinant {
    fn operations(stack: &Stack<'_, '_>) -> f64 {
        cube(stack.input(0).sides()[0])
    }

    #[inline(always)]
    fn block<N: Number>(stack: &Stack<'_, '_>, block: Block, Room([a, ..]): &mut Room<N>) -> Done {
        let [n, _] = stack.input(0).sides();
        stack.input(0).read(block, a, [n, 1]);
        let pivots = eliminate(a, &mut [], [n, 0]);
        let is_zero = N::Real::and(pivots.has_zero, pivots.determinant.size().equals(N::Real::ZERO));
        let is_doubtful = N::Real::and(N::Real::not(pivots.is_in_range), N::Real::not(is_zero));
        let mut doubts = [false; LANES];
        for (lane, doubt) in doubts[..block.count].iter_mut().enumerate() {
            *doubt = N::Real::is(is_doubtful, lane);
        }
        stack.output(1).write_truths(block, &doubts);
        stack.output(0).write(block, &[pivots.determinant], [1, 1]);
        Ok(())
    }
}

impl Work for Cholesky {
    fn operations(stack: &Stack<'_, '_>) -> f64 {
        cube(stack.input(0).sides()[0])
    }

    #[inline(always)]
    fn block<N: Number>(stack: &Stack<'_, '_>, block: Block, Room([a, ..]): &mut Room<N>) -> Done {
        let [n, _] = stack.input(0).sides();
        stack.input(0).read(block, a, [n, 1]);
        if N::Real::any(N::Real::not(cholesky(a, n)), block.count) {
            return Err("the matrix is not positive definite");
        }
        stack.output(0).write(block, a, [n, 1]);
        Ok(())
    }
}

impl Work for Qr {
    fn operations(stack: &Stack<'_, '_>) -> f64 {
        4.0 * cube(stack.input(0).sides().into_iter().fold(0, usize::max))
    }

    #[inline(always)]
    fn block<N: Number>(stack: &Stack<'_, '_>, block: Block, Room([a, q, _]): &mut Room<N>) -> Done {
        let ([rows, columns], count) = (stack.input(0).sides(), stack.output(0).sides()[1]);
        stack.input(0).read(block, a, [1, rows]);
        orthogonal::factor(a, q, [rows, columns, count]);
        stack.output(0).write(block, q, [1, rows]);
        stack.output(1).write(block, a, [1, rows]);
        Ok(())
    }
}

impl Work for Eigen {
    fn operations(stack: &Stack<'_, '_>) -> f64 {
        50.0 * cube(stack.input(0).sides()[0])
    }

    #[inline(always)]
    fn block<N: Number>(stack: &Stack<'_, '_>, block: Block, Room([a, vectors, _]): &mut Room<N>) -> Done {
        let [n, _] = stack.input(0).sides();
        stack.input(0).read(block, a, [n, 1]);
        // Elements above the diagonal are not read.
        for i in 0..n {
            a[i * n + i + 1..(i + 1) * n].fill(N::ZERO);
        }
        if !is_finite(&a[..n * n]) {
            return Err(NOT_FINITE);
        }
        let mut values = [N::Real::ZERO; SIDE];
        let wanted = stack.call.outputs.len() > 1;
        if !eigen(a, &mut values, wanted.then_some(&mut vectors[..]), n) {
            return Err(NO_END);
        }
        let rows = if wanted { n } else { 0 };
        sort(&mut values[..n], [(&mut vectors[..], rows)], true);
        stack.output(0).write(block, &values, [1, 1]);
        if wanted {
            stack.output(1).write(block, vectors, [1, n]);
        }
        Ok(())
    }
}

impl Work for Singular {
    fn operations(stack: &Stack<'_, '_>) -> f64 {
        100.0 * cube(stack.input(0).sides().into_iter().fold(0, usize::max))
    }

    #[inline(always)]
    fn block<N: Number>(stack: &Stack<'_, '_>, block: Block, Room([a, v, u]): &mut Room<N>) -> Done {
        let [height, width] = stack.input(0).sides();
        // The adjoint of a matrix with more columns than rows, whose vectors are the same ones, the other way round.
        let is_wide = width > height;
        let [rows, columns] = if is_wide { [width, height] } else { [height, width] };
        stack.input(0).read(block, a, if is_wide { [rows, 1] } else { [1, rows] });
        let a = &mut a[..rows * columns];
        if !is_finite(a) {
            return Err(NOT_FINITE);
        }
        if is_wide {
            for x in a.iter_mut() {
                *x = x.conj();
            }
        }
        let mut values = [N::Real::ZERO; SIDE];
        let wanted = stack.call.outputs.len() > 1;
        if !singular(a, &mut values, wanted.then_some(&mut v[..]), [rows, columns]) {
            return Err(NO_END);
        }
        let values = &mut values[..columns];
        if !wanted {
            sort::<N, 0>(values, [], false);
            stack.output(0).write(block, values, [1, 1]);
            return Ok(());
        }
        sort(values, [(&mut a[..], rows), (&mut v[..], columns)], false);
        stack.output(1).write(block, values, [1, 1]);
        let count = if is_wide { stack.output(2).sides()[0] } else { stack.output(0).sides()[1] };
        left(a, u, [rows, columns, count]);
        let (of_left, of_right) = if is_wide { ((v, columns), (u, rows)) } else { ((u, rows), (v, columns)) };
        stack.output(0).write(block, of_left.0, [1, of_left.1]);
        for x in &mut of_right.0[..of_right.1 * stack.output(2).sides()[0]] {
            *x = x.conj();
        }
        stack.output(2).write(block, of_right.0, [of_right.1, 1]);
        Ok(())
    }
}
