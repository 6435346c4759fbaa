//! The adjoints of extension methods.

use crate::emit::{Emit, Place, Value, contiguous, number, view};
use crate::reverse::{Call, Kept, Sweep};
use bh_bytecode::{DType, Opcode};
use bh_core::Result;

impl<'a, E: Emit> Sweep<'a, E> {
    /// a·bᵀ and aᵀ·b with the adjoint, or products of each with each where a vector meets a vector.
    pub(super) fn matmul(&mut self, call: &Call<'a, E::Base>, kept: &mut Vec<Kept<E::Base>>) -> Result<()> {
        let adjoint = call.adjoint.clone();
        for at in [0, 1] {
            let Some((base, own)) = call.input(at).filter(|_| call.flows(at)) else { continue };
            let other = self.input_place(call, 1 - at)?;
            let flow = if own.rank() == 1 {
                // A vector times a matrix, or a matrix times a vector: the same with the matrix turned.
                let turned = other.transposed()?;
                if at == 0 {
                    self.method("matmul", &[&adjoint, &turned], own.shape())?
                } else {
                    self.method("matmul", &[&turned, &adjoint], own.shape())?
                }
            } else if other.view.rank() == 1 {
                let (column, row) = if at == 0 { (adjoint.clone(), other) } else { (other, adjoint.clone()) };
                let (column, row) = (column.new_axis(1)?.into(), row.new_axis(0)?.into());
                let products = self.both(Opcode::Multiply, column, row, call.dtype(), own.shape())?;
                if base.id != call.out.0.id {
                    self.add_at_once(&base, &own, products)?;
                    continue;
                }
                products
            } else if at == 0 {
                self.method("matmul", &[&adjoint, &other.transposed()?], own.shape())?
            } else {
                self.method("matmul", &[&other.transposed()?, &adjoint], own.shape())?
            };
            self.flow(call, at, flow, kept)?;
        }
        Ok(())
    }

    /// x of a·x = b: into b flows y of aᵀ·y = adjoint, into a flow the products of −y with x.
    pub(super) fn solve(&mut self, call: &Call<'a, E::Base>, kept: &mut Vec<Kept<E::Base>>) -> Result<()> {
        let (dtype, view) = (call.dtype(), call.out.1);
        let turned = self.input_place(call, 0)?.transposed()?;
        let y = self.method("solve", &[&turned, &call.adjoint], view.shape())?;
        let y = self.place(y, dtype, view.shape())?;
        if call.flows(0)
            && let Some((_, matrix)) = call.input(0)
        {
            let x = self.output(call)?;
            let minus = self.both(Opcode::Multiply, y.clone().into(), number(-1.0, dtype), dtype, view.shape())?;
            let minus = self.place(minus, dtype, view.shape())?;
            let flow = if view.rank() < matrix.rank() {
                let (column, row) = (minus.as_columns()?.into(), x.as_rows()?.into());
                self.both(Opcode::Multiply, column, row, dtype, matrix.shape())?
            } else {
                self.times(&minus, &x.transposed()?)?.into()
            };
            self.flow(call, 0, flow, kept)?;
        }
        if call.flows(1) { self.flow(call, 1, y.into(), kept) } else { Ok(()) }
    }

    /// The matrix of the transform is its own transpose.
    pub(super) fn fourier(&mut self, call: &Call<'a, E::Base>, method: &str) -> Result<Value<E::Base>> {
        let view = call.out.1;
        let flow = self.method(method, &[&call.adjoint], view.shape())?;
        let to = call.input(0).map_or(call.dtype(), |(base, _)| base.dtype());
        self.in_type(flow, call.dtype(), to, view.shape())
    }

    /// The real part of the transform of the adjoint with zeros for the other half, which is an inverse transform, too: of the conjugate
    /// times n/2, but for the elements that have no partner in the other half, which count twice.
    pub(super) fn real_fourier(&mut self, call: &Call<'a, E::Base>) -> Result<Value<E::Base>> {
        let (dtype, shape) = (call.dtype(), call.out.1.shape());
        let Some((_, whole)) = call.input(0) else { return Ok(number(0.0, dtype)) };
        let len = whole.shape().last().copied().unwrap_or(1);
        let conjugate = self.of(Opcode::Conj, 0, &[call.adjoint.clone().into()], dtype, shape)?;
        let weights = self.alone_or_paired(dtype, (shape, len), (len as f64, len as f64 / 2.0))?;
        let weighted = self.both(Opcode::Multiply, conjugate, weights.into(), dtype, shape)?;
        let flow = self.fresh(dtype.real_part(), whole.shape())?;
        self.emit.call("irfft", &[&flow], &[weighted])?;
        Ok(flow.into())
    }

    /// The conjugate of the adjoint's transform over n, of which elements with a partner in the other half count twice.
    pub(super) fn inverse_real_fourier(&mut self, call: &Call<'a, E::Base>) -> Result<Value<E::Base>> {
        let dtype = self.type_of(call, 0);
        let Some((_, half)) = call.input(0) else { return Ok(number(0.0, dtype)) };
        let len = call.out.1.shape().last().copied().unwrap_or(1);
        let made = self.fresh(dtype, half.shape())?;
        self.emit.call("rfft", &[&made], &[call.adjoint.clone().into()])?;
        let conjugate = self.of(Opcode::Conj, 0, &[made.into()], dtype, half.shape())?;
        let weights = self.alone_or_paired(dtype, (half.shape(), len), (1.0 / len as f64, 2.0 / len as f64))?;
        self.both(Opcode::Multiply, conjugate, weights.into(), dtype, half.shape())
    }

    /// Numbers for the elements of the halves of transforms of `len` elements: one for those without a partner in the other half, the
    /// first and for an even length the last, and one for the others.
    fn alone_or_paired(
        &mut self,
        dtype: DType,
        (shape, len): (&[i64], i64),
        (alone, paired): (f64, f64),
    ) -> Result<Place<E::Base>> {
        let half = len / 2 + 1;
        let line = self.full(paired, dtype, &[half])?;
        let step = if len % 2 == 0 && half > 1 { half - 1 } else { half };
        let ends = line.with(view(0, &[(half - 1) / step + 1], &[step])?);
        self.emit.operate(Opcode::Copy, 0, &ends, &[number(alone, dtype)])?;
        let mut stride = vec![0; shape.len()];
        stride.last_mut().into_iter().for_each(|stride| *stride = 1);
        Ok(line.with(view(0, shape, &stride)?))
    }

    /// Back to where the elements came from.
    pub(super) fn sort(&mut self, call: &Call<'a, E::Base>) -> Result<Value<E::Base>> {
        let view = call.out.1;
        let shape = view.shape();
        let unsorted = self.input_place(call, 0)?;
        let order = self.fresh(DType::I64, shape)?;
        self.emit.call("argsort", &[&order], &[unsorted.into()])?;
        let mut step = 1;
        for axis in (0..shape.len()).rev() {
            if axis + 1 < shape.len() && shape[axis] > 1 {
                let numbers = self.numbers(axis, shape, step)?;
                self.emit.operate(Opcode::Add, 0, &order, &[order.clone().into(), numbers.into()])?;
            }
            step *= shape[axis];
        }
        let flow = self.fresh(call.dtype(), shape)?;
        self.emit.operate(Opcode::Copy, 0, &flow, &[number(0.0, call.dtype())])?;
        self.emit.operate(Opcode::Scatter, 0, &flow, &[call.adjoint.clone().into(), order.into()])?;
        Ok(flow.into())
    }

    /// Back to where the mask is true.
    pub(super) fn compress(&mut self, call: &Call<'a, E::Base>) -> Result<()> {
        let Some((base, to)) = call.input(1) else { return Ok(()) };
        let mask = self.input(call, 0)?;
        let places = self.fresh(DType::I64, call.out.1.shape())?;
        self.emit.call("flatnonzero", &[&places], &[mask])?;
        let flow = self.full(0.0, call.dtype(), to.shape())?;
        self.emit.operate(Opcode::Scatter, 0, &flow, &[call.adjoint.clone().into(), places.into()])?;
        self.add(&base, &to, flow.into())
    }

    /// The result of a method whose operands have the type of the first.
    pub(super) fn method(&mut self, name: &str, inputs: &[&Place<E::Base>], shape: &[i64]) -> Result<Value<E::Base>> {
        let dtype = inputs[0].dtype;
        let out = Place { base: self.emit.base(dtype, shape.iter().product())?, dtype, view: contiguous(shape)? };
        let inputs: Vec<Value<E::Base>> = inputs.iter().map(|&input| input.clone().into()).collect();
        self.emit.call(name, &[&out], &inputs)?;
        Ok(out.into())
    }
}
