//! The adjoints of factorizations.
//!
//! Formulas are those of Giles, *Collected matrix derivative results for forward and reverse mode algorithmic differentiation*
//! (2008), of Walter and Lehmann, *Algorithmic differentiation of linear algebra functions with application in optimum
//! experimental design* (2012) for `qr`, and of Wan and Zhang, *Automatic differentiation for complex valued SVD* (2019). They
//! pair adjoints with changes as Re tr(Gᴴ·δ); so G is the conjugate of the adjoint that the sweep has.
//!
//! Factors of equal eigenvalues or singular values are not unique, and a function that depends on the choice has no derivative.
//! A difference of zero between them counts as if it had no share.
//!
//! All of it is said of one matrix, and done for the matrices of a stack, which are the last two axes of its operands.

use super::Form;
use crate::emit::{Emit, Place, Value, number, view_error};
use crate::reverse::{Call, Sweep};
use crate::tape::place_of;
use bh_bytecode::{DType, Opcode};
use bh_core::Result;

impl<'a, E: Emit> Sweep<'a, E> {
    /// Lets the adjoints of a factorization's outputs flow into the matrix. `calls`: one for each output that has an adjoint.
    pub(crate) fn factors(&mut self, form: Form, calls: &[Call<'a, E::Base>]) -> Result<()> {
        let flow = match form {
            Form::Lu => self.lu(calls)?,
            Form::Cholesky => self.cholesky(calls)?,
            Form::Qr => self.qr(calls)?,
            Form::Eigh => self.eigh(calls)?,
            Form::Eig => self.eig(calls)?,
            _ => self.svd(calls)?,
        };
        let flow = self.conjugate(&flow)?;
        let to = calls[0].input(0).map_or(flow.dtype, |(base, _)| base.dtype());
        let shape = flow.view;
        let flow = self.in_type(flow.clone().into(), flow.dtype, to, shape.shape())?;
        self.flow(&calls[0], 0, flow, &mut Vec::new())
    }

    /// P·A = L·U. With X = L⁻¹·P·dA·U⁻¹, dL = L·tril(X) and dU = triu(X)·U.
    fn lu(&mut self, calls: &[Call<'a, E::Base>]) -> Result<Place<E::Base>> {
        let shape = calls[0].out.1;
        let (shape, dtype) = (shape.shape(), calls[0].dtype());
        let (packed, order) = match calls[0].instr.outputs().len() {
            1 => {
                let a = self.input_place(&calls[0], 0)?;
                let (packed, order) = (self.fresh(dtype, shape)?, self.fresh(DType::I64, &shape[..shape.len() - 1])?);
                self.emit.call("lu", &[&packed, &order], &[a.into()])?;
                (packed, order)
            }
            _ => (self.written(&calls[0], 0)?, self.written(&calls[0], 1)?),
        };
        let adjoint = self.conjugate(&calls[0].adjoint)?;
        let strict = self.triangle(shape, true)?;
        let (zero, one) = (number(0.0, dtype), number(1.0, dtype));
        let low = self.choose(&strict, packed.clone().into(), zero.clone(), dtype, shape)?;
        self.emit.operate(Opcode::Copy, 0, &low.diagonal()?, &[one])?;
        let high = self.choose(&strict, zero, packed.into(), dtype, shape)?;
        let (low_turned, high_turned) = (self.adjoint_matrix(&low)?, self.adjoint_matrix(&high)?);
        let below = self.choose(&strict, adjoint.clone().into(), number(0.0, dtype), dtype, shape)?;
        let above = self.choose(&strict, number(0.0, dtype), adjoint.into(), dtype, shape)?;
        let (below, above) = (self.times(&low_turned, &below)?, self.times(&above, &high_turned)?);
        let x = self.choose(&strict, below.into(), above.into(), dtype, shape)?;
        let x = self.over_adjoint(&x, &high)?;
        let x = self.solved(&low_turned, &x)?;
        // Row i of P·A is row order[i] of A.
        let (rows, last) = (order.as_columns()?, shape.len() - 1);
        let (size, columns) = (number(shape[last] as f64, DType::I64), self.numbers(last, shape, 1)?);
        let index = self.both(Opcode::Multiply, rows.into(), size, DType::I64, shape)?;
        let mut index = self.both(Opcode::Add, index, columns.into(), DType::I64, shape)?;
        let mut step = shape[last] * shape[last];
        for axis in (0..last - 1).rev() {
            let matrices = self.numbers(axis, shape, step)?;
            index = self.both(Opcode::Add, index, matrices.into(), DType::I64, shape)?;
            step *= shape[axis];
        }
        let flow = self.full(0.0, dtype, shape)?;
        self.emit.operate(Opcode::Scatter, 0, &flow, &[x.into(), index])?;
        Ok(flow)
    }

    /// A = L·Lᴴ. With X = L⁻¹·dA·L⁻ᴴ, dL = L·Φ(X), where Φ takes the lower triangle with half of the diagonal.
    fn cholesky(&mut self, calls: &[Call<'a, E::Base>]) -> Result<Place<E::Base>> {
        let low = self.written(&calls[0], 0)?;
        let adjoint = self.conjugate(&calls[0].adjoint)?;
        let (dtype, shape) = (low.dtype, low.view);
        let turned = self.adjoint_matrix(&low)?;
        let x = self.times(&turned, &adjoint)?;
        let lower = self.triangle(shape.shape(), false)?;
        let x = self.choose(&lower, x.into(), number(0.0, dtype), dtype, shape.shape())?;
        self.halve(&x.diagonal()?)?;
        let x = self.solved(&turned, &x)?;
        let x = self.adjoint_matrix(&x)?;
        let x = self.solved(&turned, &x)?;
        self.hermitian(&x)
    }

    /// A = Q·R: (G_Q + Q·(T + Tᴴ))·R⁻ᴴ, where T is the upper triangle of G_R·Rᴴ − Qᴴ·G_Q with half of its real diagonal. Columns
    /// to the right of a square R are products of Q with those of R.
    fn qr(&mut self, calls: &[Call<'a, E::Base>]) -> Result<Place<E::Base>> {
        let (q, r) = (self.written(&calls[0], 0)?, self.written(&calls[0], 1)?);
        let (mut of_q, of_r) = (self.cotangent(calls, 0)?, self.cotangent(calls, 1)?);
        let (dtype, [size, columns]) = (q.dtype, r.extents());
        let (left, of_left) = (r.columns(0, size)?, of_r.columns(0, size)?);
        if columns > size {
            let (right, of_right) = (r.columns(size, columns)?, of_r.columns(size, columns)?);
            let of_right = self.adjoint_matrix(&of_right)?;
            let rest = self.times(&right, &of_right)?;
            let rest = self.times(&q, &rest)?;
            of_q = self.combined(Opcode::Add, &of_q, &rest)?;
        }
        let (q_turned, r_turned) = (self.adjoint_matrix(&q)?, self.adjoint_matrix(&left)?);
        let (first, second) = (self.times(&of_left, &r_turned)?, self.times(&q_turned, &of_q)?);
        let both = self.combined(Opcode::Subtract, &first, &second)?;
        let shape = both.view;
        let strict = self.triangle(shape.shape(), true)?;
        let upper = self.choose(&strict, number(0.0, dtype), both.into(), dtype, shape.shape())?;
        self.halve(&upper.diagonal()?)?;
        let lower = self.adjoint_matrix(&upper)?;
        let whole = self.combined(Opcode::Add, &upper, &lower)?;
        let inner = self.times(&q, &whole)?;
        let inner = self.combined(Opcode::Add, &of_q, &inner)?;
        let square = self.over_adjoint(&inner, &left)?;
        if columns == size {
            return Ok(square);
        }
        let flow = self.fresh(dtype, &with_extents(q.shape(), [q.extents()[0], columns]))?;
        self.emit.operate(Opcode::Copy, 0, &flow.columns(0, size)?, &[square.into()])?;
        let right = self.times(&q, &of_r.columns(size, columns)?)?;
        self.emit.operate(Opcode::Copy, 0, &flow.columns(size, columns)?, &[right.into()])?;
        Ok(flow)
    }

    /// A = V·diag(λ)·Vᴴ: V·(diag(g) + F∘(Vᴴ·G))·Vᴴ, where F is 1/(λⱼ − λᵢ) apart from its diagonal.
    fn eigh(&mut self, calls: &[Call<'a, E::Base>]) -> Result<Place<E::Base>> {
        let [values, vectors] = self.eigen("eigh", &calls[0])?;
        let (dtype, view) = (vectors.dtype, vectors.view);
        let shape = view.shape();
        let turned = self.adjoint_matrix(&vectors)?;
        let inner = match calls.iter().any(|call| call.position == 1) {
            true => {
                let of_vectors = self.cotangent(calls, 1)?;
                let inner = self.times(&turned, &of_vectors)?;
                let (columns, rows) = (values.as_rows()?, values.as_columns()?);
                let apart = self.both(Opcode::Subtract, columns.into(), rows.into(), values.dtype, shape)?;
                let apart = self.inverse_or_zero(apart, values.dtype, shape)?;
                let apart = self.in_type(apart, values.dtype, dtype, shape)?;
                let inner = self.both(Opcode::Multiply, inner.into(), apart, dtype, shape)?;
                self.place(inner, dtype, shape)?
            }
            false => self.full(0.0, dtype, shape)?,
        };
        let of_values = self.cotangent(calls, 0)?;
        self.add_in_type(&inner.diagonal()?, of_values)?;
        let flow = self.times(&vectors, &inner)?;
        let flow = self.times(&flow, &turned)?;
        self.hermitian(&flow)
    }

    /// A·V = V·diag(λ) with columns of length one: V⁻ᴴ·(diag(g) + (Vᴴ·G − Vᴴ·V·diag(Re Vᴴ·G))/E)·Vᴴ, where E is the conjugate of
    /// λⱼ − λᵢ.
    fn eig(&mut self, calls: &[Call<'a, E::Base>]) -> Result<Place<E::Base>> {
        let [values, vectors] = self.eigen("eig", &calls[0])?;
        let (dtype, view) = (vectors.dtype, vectors.view);
        let shape = view.shape();
        let turned = self.adjoint_matrix(&vectors)?;
        let inner = match calls.iter().any(|call| call.position == 1) {
            true => {
                let of_vectors = self.cotangent(calls, 1)?;
                let inner = self.times(&turned, &of_vectors)?;
                let (real, length) = (dtype.real_part(), &shape[..shape.len() - 1]);
                let parts = self.of(Opcode::Real, 0, &[inner.diagonal()?.into()], real, length)?;
                let parts = self.in_type(parts, real, dtype, length)?;
                let parts = self.place(parts, dtype, length)?.as_rows()?;
                let along = self.both(Opcode::Multiply, vectors.clone().into(), parts.into(), dtype, shape)?;
                let along = self.place(along, dtype, shape)?;
                let along = self.times(&turned, &along)?;
                let across = self.combined(Opcode::Subtract, &inner, &along)?;
                let values = self.conjugate(&values)?;
                let (columns, rows) = (values.as_rows()?, values.as_columns()?);
                let apart = self.both(Opcode::Subtract, columns.into(), rows.into(), dtype, shape)?;
                let apart = self.inverse_or_zero(apart, dtype, shape)?;
                let inner = self.both(Opcode::Multiply, across.into(), apart, dtype, shape)?;
                self.place(inner, dtype, shape)?
            }
            false => self.full(0.0, dtype, shape)?,
        };
        let of_values = self.cotangent(calls, 0)?;
        self.add_in_type(&inner.diagonal()?, of_values)?;
        let inner = self.times(&inner, &turned)?;
        self.solved(&turned, &inner)
    }

    /// Values and vectors of an operation that wrote the values alone or both.
    fn eigen(&mut self, method: &str, call: &Call<'a, E::Base>) -> Result<[Place<E::Base>; 2]> {
        if call.instr.outputs().len() > 1 {
            return Ok([self.written(call, 0)?, self.written(call, 1)?]);
        }
        let a = self.input_place(call, 0)?;
        let (dtype, matrix) = (if method == "eig" { call.dtype() } else { a.dtype }, a.view);
        let values = self.fresh(call.dtype(), &matrix.shape()[..matrix.rank() - 1])?;
        let vectors = self.fresh(dtype, matrix.shape())?;
        self.emit.call(method, &[&values, &vectors], &[a.into()])?;
        Ok([values, vectors])
    }

    /// A = U·diag(s)·Vᴴ: U·((W(Uᴴ·G_U)/E)·S + S·(W(Vᴴ·G_V)/E) + diag(g))·Vᴴ, where W(X) is X − Xᴴ and E is sⱼ² − sᵢ², and the parts
    /// of G_U/S and G_V/S that are orthogonal to U and to V.
    fn svd(&mut self, calls: &[Call<'a, E::Base>]) -> Result<Place<E::Base>> {
        let only_values = calls[0].instr.outputs().len() == 1;
        let [left, values, right] = self.singular(&calls[0])?;
        let (dtype, line) = (left.dtype, values.view);
        let (line, count) = (line.shape(), left.extents()[1]);
        let shape = with_extents(left.shape(), [count, count]);
        let inner = self.full(0.0, dtype, &shape)?;
        let mut outer = Vec::new();
        if !only_values {
            let (of_left, of_right) = (self.cotangent(calls, 0)?, self.cotangent(calls, 2)?);
            let scale = self.in_type(values.clone().into(), values.dtype, dtype, line)?;
            let scale = self.place(scale, dtype, line)?;
            let (columns, rows) = (scale.as_rows()?, scale.as_columns()?);
            let squares = self.combined(Opcode::Multiply, &scale, &scale)?;
            let (after, before) = (squares.as_rows()?.into(), squares.as_columns()?.into());
            let apart = self.both(Opcode::Subtract, after, before, dtype, &shape)?;
            let apart = self.inverse_or_zero(apart, dtype, &shape)?;
            let inverse = self.inverse_or_zero(scale.clone().into(), dtype, line)?;
            let inverse = self.place(inverse, dtype, line)?;
            let (left_turned, right_turned) = (self.adjoint_matrix(&left)?, self.adjoint_matrix(&right)?);
            // W(Uᴴ·G_U), and half of its diagonal, which is imaginary, over S.
            let projected = self.times(&left_turned, &of_left)?;
            let skew = self.skew(&projected)?;
            let term = self.both(Opcode::Multiply, skew.clone().into(), apart.clone(), dtype, &shape)?;
            let term = self.both(Opcode::Multiply, term, columns.into(), dtype, &shape)?;
            self.emit.operate(Opcode::Copy, 0, &inner, &[term])?;
            if dtype.is_complex() {
                let phase =
                    self.both(Opcode::Multiply, skew.diagonal()?.into(), inverse.clone().into(), dtype, line)?;
                let half = self.both(Opcode::Multiply, phase, number(0.5, dtype), dtype, line)?;
                self.add_to(&inner.diagonal()?, half)?;
            }
            let of_right_turned = self.adjoint_matrix(&of_right)?;
            let turned = self.times(&right, &of_right_turned)?;
            let skew = self.skew(&turned)?;
            let term = self.both(Opcode::Multiply, skew.into(), apart, dtype, &shape)?;
            let term = self.both(Opcode::Multiply, term, rows.into(), dtype, &shape)?;
            self.add_to(&inner, term)?;
            if left.extents()[0] > count {
                let along = self.times(&left, &projected)?;
                let across = self.combined(Opcode::Subtract, &of_left, &along)?;
                let across = self.combined(Opcode::Multiply, &across, &inverse.as_rows()?)?;
                outer.push(self.times(&across, &right)?);
            }
            if right.extents()[1] > count {
                let along = self.times(&of_right, &right_turned)?;
                let along = self.times(&along, &right)?;
                let across = self.combined(Opcode::Subtract, &of_right, &along)?;
                let across = self.combined(Opcode::Multiply, &across, &inverse.as_columns()?)?;
                outer.push(self.times(&left, &across)?);
            }
        }
        let of_values = self.cotangent(calls, usize::from(!only_values))?;
        self.add_in_type(&inner.diagonal()?, of_values)?;
        let inner = self.times(&left, &inner)?;
        let mut flow = self.times(&inner, &right)?;
        for term in outer {
            flow = self.combined(Opcode::Add, &flow, &term)?;
        }
        Ok(flow)
    }

    /// U, s and Vᴴ of an operation that wrote s alone or all.
    fn singular(&mut self, call: &Call<'a, E::Base>) -> Result<[Place<E::Base>; 3]> {
        if call.instr.outputs().len() > 1 {
            return Ok([self.written(call, 0)?, self.written(call, 1)?, self.written(call, 2)?]);
        }
        let a = self.input_place(call, 0)?;
        let (dtype, [rows, columns]) = (a.dtype, a.extents());
        let (count, rank) = (rows.min(columns), a.view.rank());
        let (left, right) = (with_extents(a.shape(), [rows, count]), with_extents(a.shape(), [count, columns]));
        let values = self.fresh(call.dtype(), &right[..rank - 1])?;
        let (left, right) = (self.fresh(dtype, &left)?, self.fresh(dtype, &right)?);
        self.emit.call("svd", &[&left, &values, &right], &[a.into()])?;
        Ok([left, values, right])
    }

    /// The conjugate of an output's adjoint; zeros if it has none.
    fn cotangent(&mut self, calls: &[Call<'a, E::Base>], position: usize) -> Result<Place<E::Base>> {
        if let Some(call) = calls.iter().find(|call| call.position == position) {
            return self.conjugate(&call.adjoint);
        }
        let (dtype, shape) = place_of(&calls[0].tables, calls[0].instr.outputs()[position])
            .map_or((calls[0].dtype(), calls[0].out.1), |(base, view)| (base.dtype(), view));
        self.full(0.0, dtype, shape.shape())
    }

    /// The conjugate of each element.
    fn conjugate(&mut self, a: &Place<E::Base>) -> Result<Place<E::Base>> {
        if !a.dtype.is_complex() {
            return Ok(a.clone());
        }
        let (dtype, view) = (a.dtype, a.view);
        let value = self.of(Opcode::Conj, 0, &[a.clone().into()], dtype, view.shape())?;
        self.place(value, dtype, view.shape())
    }

    /// The conjugate transpose of a matrix.
    fn adjoint_matrix(&mut self, a: &Place<E::Base>) -> Result<Place<E::Base>> {
        let turned = a.transposed()?;
        self.conjugate(&turned)
    }

    /// The matrix product; of stacks, that of each matrix with its partner.
    pub(crate) fn times(&mut self, a: &Place<E::Base>, b: &Place<E::Base>) -> Result<Place<E::Base>> {
        let ([rows, inner], [_, columns]) = (a.extents(), b.extents());
        let shape = with_extents(a.shape(), [rows, columns]);
        let rank = shape.len();
        if rank == 2 {
            let value = self.method("matmul", &[a, b], &shape)?;
            return self.place(value, a.dtype, &shape);
        }
        // Sums along the last axis of products over rows, columns and that.
        let mut all = shape.clone();
        all.push(inner);
        let wide = |place: &Place<E::Base>, at: usize| -> Result<Place<E::Base>> {
            let place = place.new_axis(at)?;
            Ok(place.with(place.view.broadcast_to(&all).map_err(view_error)?.canonical()))
        };
        let (left, right) = (wide(a, rank - 1)?, wide(&b.transposed()?, rank - 2)?);
        let product = self.fresh(a.dtype, &shape)?;
        self.emit.operate(Opcode::Contract, 1 << rank, &product, &[left.into(), right.into()])?;
        Ok(product)
    }

    /// a⁻¹·b.
    fn solved(&mut self, a: &Place<E::Base>, b: &Place<E::Base>) -> Result<Place<E::Base>> {
        let shape = b.view;
        let value = self.method("solve", &[a, b], shape.shape())?;
        self.place(value, b.dtype, shape.shape())
    }

    /// b·a⁻ᴴ.
    fn over_adjoint(&mut self, b: &Place<E::Base>, a: &Place<E::Base>) -> Result<Place<E::Base>> {
        let turned = self.adjoint_matrix(b)?;
        let turned = self.solved(a, &turned)?;
        self.adjoint_matrix(&turned)
    }

    /// An elementwise operation of two arrays, the second broadcast to the first.
    fn combined(&mut self, opcode: Opcode, a: &Place<E::Base>, b: &Place<E::Base>) -> Result<Place<E::Base>> {
        let (dtype, view) = (a.dtype, a.view);
        let value = self.both(opcode, a.clone().into(), b.clone().into(), dtype, view.shape())?;
        self.place(value, dtype, view.shape())
    }

    /// a − aᴴ.
    fn skew(&mut self, a: &Place<E::Base>) -> Result<Place<E::Base>> {
        let turned = self.adjoint_matrix(a)?;
        self.combined(Opcode::Subtract, a, &turned)
    }

    /// (a + aᴴ)/2.
    fn hermitian(&mut self, a: &Place<E::Base>) -> Result<Place<E::Base>> {
        let turned = self.adjoint_matrix(a)?;
        let sum = self.combined(Opcode::Add, a, &turned)?;
        self.halve(&sum)?;
        Ok(sum)
    }

    fn halve(&mut self, a: &Place<E::Base>) -> Result<()> {
        self.emit.operate(Opcode::Multiply, 0, a, &[a.clone().into(), number(0.5, a.dtype)])
    }

    fn add_to(&mut self, a: &Place<E::Base>, value: Value<E::Base>) -> Result<()> {
        self.emit.operate(Opcode::Add, 0, a, &[a.clone().into(), value])
    }

    /// Adds real numbers to real or complex ones.
    fn add_in_type(&mut self, a: &Place<E::Base>, value: Place<E::Base>) -> Result<()> {
        let shape = value.view;
        let value = self.in_type(value.clone().into(), value.dtype, a.dtype, shape.shape())?;
        self.add_to(a, value)
    }

    /// Where a matrix has its lower triangle: with its diagonal, or strictly below it.
    fn triangle(&mut self, shape: &[i64], strict: bool) -> Result<Value<E::Base>> {
        let last = shape.len() - 1;
        let (rows, columns) = (self.numbers(last - 1, shape, 1)?, self.numbers(last, shape, 1)?);
        let opcode = if strict { Opcode::Greater } else { Opcode::GreaterEqual };
        self.both(opcode, rows.into(), columns.into(), DType::Bool, shape)
    }

    /// One of two arrays or numbers, as a mask says.
    fn choose(
        &mut self,
        mask: &Value<E::Base>,
        yes: Value<E::Base>,
        no: Value<E::Base>,
        dtype: DType,
        shape: &[i64],
    ) -> Result<Place<E::Base>> {
        let value = self.of(Opcode::Where, 0, &[mask.clone(), yes, no], dtype, shape)?;
        self.place(value, dtype, shape)
    }

    /// 1/a, and zero where a is.
    fn inverse_or_zero(&mut self, a: Value<E::Base>, dtype: DType, shape: &[i64]) -> Result<Value<E::Base>> {
        let (zero, one) = (number(0.0, dtype), number(1.0, dtype));
        let is_zero = self.both(Opcode::Equal, a.clone(), zero.clone(), DType::Bool, shape)?;
        let divisor = self.of(Opcode::Where, 0, &[is_zero.clone(), one.clone(), a], dtype, shape)?;
        let inverse = self.both(Opcode::Divide, one, divisor, dtype, shape)?;
        self.of(Opcode::Where, 0, &[is_zero, zero, inverse], dtype, shape)
    }
}

/// The shape of a stack with matrices of these extents instead of its own.
fn with_extents(shape: &[i64], extents: [i64; 2]) -> Vec<i64> {
    let mut all = shape[..shape.len() - 2].to_vec();
    all.extend(extents);
    all
}
