//! QR, eigenvalues and singular values, by faer (blocked Householder transformations; divide and conquer for Hermitian
//! matrices and singular values; QR iterations with aggressive deflation for eigenvalues of others). All compute in double
//! precision, on one thread.

use super::{Inexact, Matrix, in_double};
use crate::scratch::Scratch;
use crate::{Call, Parallel};
use bh_core::abi::status;
use bh_core::{Error, Result};
use faer::diag::DiagMut;
use faer::dyn_stack::{MemStack, StackReq};
use faer::linalg::evd::{self, ComputeEigenvectors, EvdError};
use faer::linalg::householder;
use faer::linalg::qr::no_pivoting::factor::{qr_in_place, qr_in_place_scratch, recommended_block_size};
use faer::linalg::svd::{ComputeSvdVectors, svd as singular_values, svd_scratch};
use faer::traits::math_utils::{from_real, is_finite, one, real};
use faer::{Conj, Par, Spec, c64};
use std::mem::MaybeUninit;

/// Q · R = a with orthonormal columns in Q and zeros below the diagonal of R. Q has as many columns, and R rows, as the
/// shorter side of `a`, or as `a` has rows: the outputs' shapes say which.
pub(crate) fn qr(call: &Call<'_, '_>, threads: &mut dyn Parallel) -> Result<()> {
    call.check()?;
    in_double!(call.inputs[0].dtype, T => {
        let mut factors = Matrix::<T>::read(call, &call.inputs[0])?;
        let (rows, short) = (factors.rows, factors.rows.min(factors.columns));
        let block = recommended_block_size::<T>(rows, factors.columns);
        let mut coefficients = Matrix::<T>::zeros(call, block, short)?;
        let mut q = Matrix::<T>::zeros(call, rows, call.outputs[0].shape[1] as usize)?;
        let columns = q.columns;
        let mut memory = Memory::new(call, qr_in_place_scratch::<T>(rows, factors.columns, block, Par::Seq, Spec::default())
            .or(householder::apply_block_householder_sequence_on_the_left_in_place_scratch::<T>(rows, block, columns)))?;
        if short > 0 {
            qr_in_place(factors.view_mut(), coefficients.view_mut(), Par::Seq, memory.stack(), Spec::default());
        }
        (0..columns).for_each(|number| q.elements[number * rows + number] = one());
        if short > 0 {
            householder::apply_block_householder_sequence_on_the_left_in_place_with_conj(
                factors.view().subcols(0, short),
                coefficients.view(),
                Conj::No,
                q.view_mut(),
                Par::Seq,
                memory.stack(),
            );
        }
        q.write(&call.outputs[0], threads);
        let mut r = Matrix::<T>::zeros(call, call.outputs[1].shape[0] as usize, factors.columns)?;
        for column in 0..r.columns {
            let above = r.rows.min(column + 1);
            let (to, from) = (column * r.rows, column * rows);
            r.elements[to..to + above].copy_from_slice(&factors.elements[from..from + above]);
        }
        r.write(&call.outputs[1], threads);
        Ok(())
    })
}

/// Eigenvalues of a Hermitian matrix in rising order, and as a second output its eigenvectors in columns. Only the lower
/// triangle is read.
pub(crate) fn eigh(call: &Call<'_, '_>, threads: &mut dyn Parallel) -> Result<()> {
    call.check()?;
    in_double!(call.inputs[0].dtype, T => {
        let mut matrix = Matrix::<T>::read(call, &call.inputs[0])?;
        let size = matrix.rows;
        (0..size).for_each(|number| {
            let place = number * size + number;
            matrix.elements[place] = from_real(&real(&matrix.elements[place]));
        });
        require_finite(call, &matrix)?;
        let wanted = call.outputs.len() > 1;
        let compute = if wanted { ComputeEigenvectors::Yes } else { ComputeEigenvectors::No };
        let mut values = Matrix::<T>::zeros(call, size, 1)?;
        let mut vectors = Matrix::<T>::zeros(call, size, if wanted { size } else { 0 })?;
        let mut memory = Memory::new(call, evd::self_adjoint_evd_scratch::<T>(size, compute, Par::Seq, Spec::default()))?;
        let diagonal = DiagMut::from_slice_mut(&mut values.elements);
        let result = evd::self_adjoint_evd(
            matrix.view(), diagonal, wanted.then(|| vectors.view_mut()), Par::Seq, memory.stack(), Spec::default());
        result.map_err(|_: EvdError| no_convergence(call))?;
        values.write(&call.outputs[0], threads);
        if wanted {
            vectors.write(&call.outputs[1], threads);
        }
        Ok(())
    })
}

/// Eigenvalues of any square matrix, complex and in no order, and as a second output its eigenvectors in columns, of length
/// 1 and with a real largest element.
pub(crate) fn eig(call: &Call<'_, '_>, threads: &mut dyn Parallel) -> Result<()> {
    call.check()?;
    let size = call.inputs[0].shape[0] as usize;
    let wanted = call.outputs.len() > 1;
    let compute = if wanted { ComputeEigenvectors::Yes } else { ComputeEigenvectors::No };
    let columns = if wanted { size } else { 0 };
    let mut values = Matrix::<c64>::zeros(call, size, 1)?;
    let mut vectors = Matrix::<c64>::zeros(call, size, columns)?;
    if call.inputs[0].dtype.is_complex() {
        let matrix = Matrix::<c64>::read(call, &call.inputs[0])?;
        require_finite(call, &matrix)?;
        let request = evd::evd_scratch::<c64>(size, ComputeEigenvectors::No, compute, Par::Seq, Spec::default());
        let mut memory = Memory::new(call, request)?;
        let diagonal = DiagMut::from_slice_mut(&mut values.elements);
        let right = wanted.then(|| vectors.view_mut());
        evd::evd_cplx(matrix.view(), diagonal, None, right, Par::Seq, memory.stack(), Spec::default())
            .map_err(|_| no_convergence(call))?;
    } else {
        let matrix = Matrix::<f64>::read(call, &call.inputs[0])?;
        require_finite(call, &matrix)?;
        let request = evd::evd_scratch::<f64>(size, ComputeEigenvectors::No, compute, Par::Seq, Spec::default());
        let mut memory = Memory::new(call, request)?;
        let mut parts = Matrix::<f64>::zeros(call, size, 2)?;
        let mut pairs = Matrix::<f64>::zeros(call, size, columns)?;
        let (re, im) = parts.elements.split_at_mut(size);
        let (re_view, im_view) = (DiagMut::from_slice_mut(&mut *re), DiagMut::from_slice_mut(&mut *im));
        let right = wanted.then(|| pairs.view_mut());
        evd::evd_real(matrix.view(), re_view, im_view, None, right, Par::Seq, memory.stack(), Spec::default())
            .map_err(|_| no_convergence(call))?;
        values.elements.iter_mut().zip(re.iter().zip(&*im)).for_each(|(value, (&re, &im))| *value = c64::new(re, im));
        if wanted {
            unpack(&mut vectors, &pairs, im);
        }
    }
    values.write(&call.outputs[0], threads);
    if wanted {
        vectors.elements.chunks_exact_mut(size.max(1)).for_each(normalize);
        vectors.write(&call.outputs[1], threads);
    }
    Ok(())
}

/// The complex eigenvectors of a real matrix: those of a conjugate pair of values are the sum and the difference of two
/// columns, real and imaginary part.
fn unpack(vectors: &mut Matrix<c64>, pairs: &Matrix<f64>, imaginary: &[f64]) {
    let size = vectors.rows;
    let mut number = 0;
    while number < size {
        let pair = imaginary[number] != 0.0 && number + 1 < size;
        for row in 0..size {
            let re = pairs.elements[number * size + row];
            let im = if pair { pairs.elements[(number + 1) * size + row] } else { 0.0 };
            vectors.elements[number * size + row] = c64::new(re, im);
            if pair {
                vectors.elements[(number + 1) * size + row] = c64::new(re, -im);
            }
        }
        number += if pair { 2 } else { 1 };
    }
}

/// Makes a vector's length 1 and its largest element real.
fn normalize(vector: &mut [c64]) {
    let length = vector.iter().map(|element| element.norm_sqr()).sum::<f64>().sqrt();
    let largest = vector
        .iter()
        .fold(c64::new(0.0, 0.0), |best, &element| if element.norm_sqr() > best.norm_sqr() { element } else { best });
    if length > 0.0 && largest.norm() > 0.0 {
        // Real vectors keep their sign.
        let turn = if largest.im == 0.0 { c64::new(1.0, 0.0) } else { largest.conj() / largest.norm() };
        vector.iter_mut().for_each(|element| *element = *element * turn / length);
    }
}

/// Singular values in falling order, as one output; or U, the values and Vᴴ with U · diag(s) · Vᴴ = a, where U and Vᴴ are
/// square or have as many columns and rows as there are values: the outputs' shapes say which.
pub(crate) fn svd(call: &Call<'_, '_>, threads: &mut dyn Parallel) -> Result<()> {
    call.check()?;
    let wanted = call.outputs.len() > 1;
    in_double!(call.inputs[0].dtype, T => {
        let matrix = Matrix::<T>::read(call, &call.inputs[0])?;
        require_finite(call, &matrix)?;
        let (rows, columns) = (matrix.rows, matrix.columns);
        let short = rows.min(columns);
        let counts = if wanted { [call.outputs[0].shape[1] as usize, call.outputs[2].shape[0] as usize] } else { [0, 0] };
        let compute = |count: usize, all: usize| match count {
            _ if !wanted => ComputeSvdVectors::No,
            _ if count == short && count < all => ComputeSvdVectors::Thin,
            _ => ComputeSvdVectors::Full,
        };
        let mut left = Matrix::<T>::zeros(call, rows, counts[0])?;
        let mut right = Matrix::<T>::zeros(call, columns, counts[1])?;
        let mut values = Matrix::<T>::zeros(call, short, 1)?;
        let (of_left, of_right) = (compute(counts[0], rows), compute(counts[1], columns));
        let mut memory =
            Memory::new(call, svd_scratch::<T>(rows, columns, of_left, of_right, Par::Seq, Spec::default()))?;
        let diagonal = DiagMut::from_slice_mut(&mut values.elements);
        let (u, v) = (wanted.then(|| left.view_mut()), wanted.then(|| right.view_mut()));
        singular_values(matrix.view(), diagonal, u, v, Par::Seq, memory.stack(), Spec::default())
            .map_err(|_| no_convergence(call))?;
        values.write(&call.outputs[usize::from(wanted)], threads);
        if wanted {
            left.write(&call.outputs[0], threads);
            right.write_adjoint(&call.outputs[2], threads);
        }
        Ok(())
    })
}

/// Fails for elements with which iterations would not end.
fn require_finite<T: Inexact>(call: &Call<'_, '_>, matrix: &Matrix<T>) -> Result<()> {
    if matrix.elements.iter().all(is_finite) {
        return Ok(());
    }
    let text = format!("{}: the matrix has elements that are infinite or not a number", call.name);
    Err(Error::new(status::EXECUTION, text))
}

fn no_convergence(call: &Call<'_, '_>) -> Error {
    Error::new(status::EXECUTION, format!("{}: the iterations do not converge", call.name))
}

/// Work memory of a decomposition.
struct Memory(Scratch<MaybeUninit<u8>>);

impl Memory {
    fn new(call: &Call<'_, '_>, request: StackReq) -> Result<Memory> {
        Ok(Memory(Scratch::zeros(call.memory, request.unaligned_bytes_required())?))
    }

    fn stack(&mut self) -> &mut MemStack {
        MemStack::new(&mut self.0)
    }
}
