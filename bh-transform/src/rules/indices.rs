//! The adjoints of gathers and scatters.

use super::Form;
use crate::emit::{Emit, Place, Value, number};
use crate::reverse::{Call, Sweep};
use bh_bytecode::{DType, Opcode};
use bh_core::Result;

impl<'a, E: Emit> Sweep<'a, E> {
    /// Adds the adjoint at the indices that were gathered from.
    pub(super) fn gather(&mut self, call: &Call<'a, E::Base>) -> Result<()> {
        let Some((base, source)) = call.input(0) else { return Ok(()) };
        let index = self.input(call, 1)?;
        if source.is_injective() && base.id != call.out.0.id {
            // A loop may gather a few elements of a large array each time.
            let to = self.total(&base)?.with(source);
            return self.emit.operate(Opcode::ScatterAdd, 0, &to, &[call.adjoint.clone().into(), index]);
        }
        let flow = self.full(0.0, call.dtype(), source.shape())?;
        self.emit.operate(Opcode::ScatterAdd, 0, &flow, &[call.adjoint.clone().into(), index])?;
        self.add(&base, &source, flow.into())
    }

    /// The adjoint of an operation that changes elements of its output at indices.
    pub(crate) fn assignment(&mut self, form: Form, call: &Call<'a, E::Base>) -> Result<()> {
        if form == Form::ScatterAdd && !call.flows(0) {
            return Ok(());
        }
        let mut index = self.input_place(call, 1)?;
        let dtype = call.dtype();
        let mask = if form == Form::CondScatter { Some(self.input(call, 2)?) } else { None };
        if let Some(mask) = &mask {
            // Where the mask is false, indices may be anything.
            let zero = number(0.0, index.dtype);
            let shape = index.view;
            let inside =
                self.of(Opcode::Where, 0, &[mask.clone(), index.clone().into(), zero], index.dtype, shape.shape())?;
            index = self.place(inside, index.dtype, shape.shape())?;
        }
        let shape = index.view;
        if call.flows(0)
            && let Some((base, to)) = call.input(0)
        {
            let flow = self.fresh(dtype, shape.shape())?;
            self.emit.operate(Opcode::Gather, 0, &flow, &[call.adjoint.clone().into(), index.clone().into()])?;
            let flow = match form {
                Form::ScatterAdd => flow.into(),
                _ => self.of_last(call, flow, &index, mask.as_ref())?,
            };
            self.add(&base, &to, flow)?;
        }
        match (form, mask) {
            (Form::ScatterAdd, _) => Ok(()),
            (_, None) => self.emit.operate(Opcode::Scatter, 0, &call.adjoint, &[number(0.0, dtype), index.into()]),
            (_, Some(mask)) => {
                self.emit.operate(Opcode::CondScatter, 0, &call.adjoint, &[number(0.0, dtype), index.into(), mask])
            }
        }
    }

    /// The flow into the values that were not overwritten by others of the same index, else zero.
    fn of_last(
        &mut self,
        call: &Call<'a, E::Base>,
        flow: Place<E::Base>,
        index: &Place<E::Base>,
        mask: Option<&Value<E::Base>>,
    ) -> Result<Value<E::Base>> {
        let shape = index.shape();
        let numbers = self.fresh(DType::I64, shape)?;
        self.emit.range(&numbers, 1)?;
        let winners = self.full(-1.0, DType::I64, call.out.1.shape())?;
        let mut inputs = vec![numbers.clone().into(), index.clone().into()];
        let opcode = match mask {
            None => Opcode::Scatter,
            Some(mask) => {
                inputs.push(mask.clone());
                Opcode::CondScatter
            }
        };
        self.emit.operate(opcode, 0, &winners, &inputs)?;
        let winner = self.fresh(DType::I64, shape)?;
        self.emit.operate(Opcode::Gather, 0, &winner, &[winners.into(), index.clone().into()])?;
        let is_last = self.both(Opcode::Equal, winner.into(), numbers.into(), DType::Bool, shape)?;
        self.of(Opcode::Where, 0, &[is_last, flow.into(), number(0.0, call.dtype())], call.dtype(), shape)
    }
}
