//! The adjoints of folds and of running folds.

use crate::emit::{Emit, Place, Value, number};
use crate::reverse::{Call, Kept, Sweep};
use bh_bytecode::{DType, Opcode, View};
use bh_core::Result;

impl<'a, E: Emit> Sweep<'a, E> {
    /// The shape of what is folded.
    fn folded(&self, call: &Call<'a, E::Base>) -> View {
        call.input(0).map_or(call.out.1, |(_, view)| view)
    }

    /// A result of the fold, repeated along the folded axes.
    fn repeated(&self, call: &Call<'a, E::Base>, place: &Place<E::Base>) -> Result<Place<E::Base>> {
        place.repeated(call.instr.param, self.folded(call).shape())
    }

    /// The mask of a masked fold.
    fn mask(&self, call: &Call<'a, E::Base>) -> Result<Option<Value<E::Base>>> {
        if call.instr.inputs().len() > 1 { self.input(call, 1).map(Some) } else { Ok(None) }
    }

    /// The flow where the mask is true, else zero.
    fn where_folded(
        &mut self,
        flow: Value<E::Base>,
        mask: Option<Value<E::Base>>,
        dtype: DType,
        shape: &[i64],
    ) -> Result<Value<E::Base>> {
        match mask {
            Some(mask) => self.of(Opcode::Where, 0, &[mask, flow, number(0.0, dtype)], dtype, shape),
            None => Ok(flow),
        }
    }

    pub(super) fn sum(&mut self, call: &Call<'a, E::Base>) -> Result<Value<E::Base>> {
        let (folded, mask) = (self.folded(call), self.mask(call)?);
        let flow = self.repeated(call, &call.adjoint)?.into();
        self.where_folded(flow, mask, call.dtype(), folded.shape())
    }

    /// The adjoint times the other input, over the box. Axes along which an input is broadcast are summed as it flows there.
    pub(super) fn contraction(&mut self, call: &Call<'a, E::Base>, kept: &mut Vec<Kept<E::Base>>) -> Result<()> {
        let folded = self.folded(call);
        for at in [0, 1] {
            if call.flows(at) {
                let (adjoint, other) = (self.repeated(call, &call.adjoint)?, self.input(call, 1 - at)?);
                let flow = self.both(Opcode::Multiply, adjoint.into(), other, call.dtype(), folded.shape())?;
                self.flow(call, at, flow, kept)?;
            }
        }
        Ok(())
    }

    /// The product of the other elements: of none is zero, the quotient; of one, the product of the rest; else zero.
    pub(super) fn product(&mut self, call: &Call<'a, E::Base>) -> Result<Value<E::Base>> {
        let (folded, mask, dtype) = (self.folded(call), self.mask(call)?, call.dtype());
        let (shape, axes) = (folded.shape(), call.instr.param);
        let (zero, one) = (number(0.0, dtype), number(1.0, dtype));
        let mut x = self.input(call, 0)?;
        if let Some(mask) = &mask {
            x = self.of(Opcode::Where, 0, &[mask.clone(), x, one.clone()], dtype, shape)?;
        }
        let is_zero = self.both(Opcode::Equal, x.clone(), zero.clone(), DType::Bool, shape)?;
        let rest = self.of(Opcode::Where, 0, &[is_zero.clone(), one.clone(), x], dtype, shape)?;
        let zeros = self.of(Opcode::Where, 0, &[is_zero.clone(), one.clone(), zero.clone()], dtype, shape)?;
        let product = self.fresh(dtype, call.out.1.shape())?;
        self.emit.operate(Opcode::MultiplyReduce, axes, &product, std::slice::from_ref(&rest))?;
        let count = self.fresh(dtype, call.out.1.shape())?;
        self.emit.operate(Opcode::AddReduce, axes, &count, &[zeros])?;
        let (product, count): (Value<_>, Value<_>) =
            (self.repeated(call, &product)?.into(), self.repeated(call, &count)?.into());
        let quotient = self.both(Opcode::Divide, product.clone(), rest, dtype, shape)?;
        let others = self.of(Opcode::Where, 0, &[is_zero.clone(), product, quotient], dtype, shape)?;
        // How many of the other elements are zero.
        let own = self.of(Opcode::Where, 0, &[is_zero, one, zero.clone()], dtype, shape)?;
        let is_none = self.both(Opcode::Equal, count, own, DType::Bool, shape)?;
        let others = self.of(Opcode::Where, 0, &[is_none, others, zero], dtype, shape)?;
        let adjoint = self.repeated(call, &call.adjoint)?.into();
        let flow = self.both(Opcode::Multiply, adjoint, others, dtype, shape)?;
        self.where_folded(flow, mask, dtype, shape)
    }

    /// Equal parts for all elements that are the extreme.
    pub(super) fn extreme(&mut self, call: &Call<'a, E::Base>) -> Result<Value<E::Base>> {
        let (folded, mask, dtype) = (self.folded(call), self.mask(call)?, call.dtype());
        let shape = folded.shape();
        let (x, extreme) = (self.input(call, 0)?, self.output(call)?);
        let extreme = self.repeated(call, &extreme)?.into();
        let mut is_extreme = self.both(Opcode::Equal, x, extreme, DType::Bool, shape)?;
        if let Some(mask) = mask {
            is_extreme = self.both(Opcode::LogicalAnd, is_extreme, mask, DType::Bool, shape)?;
        }
        let (zero, one) = (number(0.0, dtype), number(1.0, dtype));
        let ones = self.of(Opcode::Where, 0, &[is_extreme.clone(), one, zero.clone()], dtype, shape)?;
        let count = self.fresh(dtype, call.out.1.shape())?;
        self.emit.operate(Opcode::AddReduce, call.instr.param, &count, &[ones])?;
        // A mask may leave none.
        self.emit.operate(Opcode::Maximum, 0, &count, &[count.clone().into(), number(1.0, dtype)])?;
        let (adjoint, count) = (self.repeated(call, &call.adjoint)?, self.repeated(call, &count)?);
        let part = self.both(Opcode::Divide, adjoint.into(), count.into(), dtype, shape)?;
        self.of(Opcode::Where, 0, &[is_extreme, part, zero], dtype, shape)
    }

    /// Running sums from the other end.
    pub(super) fn running_sum(&mut self, call: &Call<'a, E::Base>, of: Place<E::Base>) -> Result<Place<E::Base>> {
        let axes = call.instr.param;
        let axis = axes.trailing_zeros() as usize;
        let sums = self.fresh(of.dtype, of.shape())?;
        self.emit.operate(Opcode::AddAccumulate, axes, &sums.backward(axis)?, &[of.backward(axis)?.into()])?;
        Ok(sums)
    }

    /// Running sums of a·y from the other end, over x. At the first zero of a line, the products count without that factor; behind
    /// it all derivatives are zero.
    pub(super) fn running_product(&mut self, call: &Call<'a, E::Base>) -> Result<Value<E::Base>> {
        let (dtype, axes, view) = (call.dtype(), call.instr.param, call.out.1);
        let shape = view.shape();
        let (zero, one) = (number(0.0, dtype), number(1.0, dtype));
        let (x, y) = (self.input(call, 0)?, self.output(call)?);
        let adjoint: Value<E::Base> = call.adjoint.clone().into();
        let is_zero = self.both(Opcode::Equal, x.clone(), zero.clone(), DType::Bool, shape)?;
        let zeros = self.of(Opcode::Where, 0, &[is_zero.clone(), one.clone(), zero.clone()], dtype, shape)?;
        let count = self.fresh(dtype, shape)?;
        self.emit.operate(Opcode::AddAccumulate, axes, &count, &[zeros])?;
        let is_one = self.both(Opcode::Equal, count.into(), one.clone(), DType::Bool, shape)?;
        let is_first = self.both(Opcode::LogicalAnd, is_zero.clone(), is_one, DType::Bool, shape)?;
        let without = self.of(Opcode::Where, 0, &[is_first.clone(), one.clone(), x.clone()], dtype, shape)?;
        let products = self.fresh(dtype, shape)?;
        self.emit.operate(Opcode::MultiplyAccumulate, axes, &products, &[without])?;
        let mut sums = Vec::new();
        for of in [y, products] {
            let terms = self.both(Opcode::Multiply, adjoint.clone(), of.into(), dtype, shape)?;
            let terms = self.place(terms, dtype, shape)?;
            sums.push(Value::Place(self.running_sum(call, terms)?));
        }
        let (at_first, plain) = (sums.pop(), sums.pop());
        let (Some(at_first), Some(plain)) = (at_first, plain) else { return Ok(zero) };
        let divisor = self.of(Opcode::Where, 0, &[is_zero.clone(), one, x], dtype, shape)?;
        let quotient = self.both(Opcode::Divide, plain, divisor, dtype, shape)?;
        let elsewhere = self.of(Opcode::Where, 0, &[is_zero, zero, quotient], dtype, shape)?;
        self.of(Opcode::Where, 0, &[is_first, at_first, elsewhere], dtype, shape)
    }
}
