//! The adjoints of operations that have forms of their own.

use super::Form;
use crate::emit::{Emit, Value, number};
use crate::reverse::{Call, Kept, Sweep};
use bh_bytecode::{DType, Opcode};
use bh_core::Result;

impl<'a, E: Emit> Sweep<'a, E> {
    /// Lets the adjoint of an operation's output flow into its inputs.
    pub(crate) fn form(&mut self, form: Form, call: &Call<'a, E::Base>, kept: &mut Vec<Kept<E::Base>>) -> Result<()> {
        let (at, flow) = match form {
            Form::Choice => return self.choice(call, kept),
            Form::Contraction => return self.contraction(call, kept),
            Form::Matmul => return self.matmul(call, kept),
            Form::Solve => return self.solve(call, kept),
            Form::Cast => (0, self.cast(call)?),
            Form::Conjugate => {
                let adjoint = call.adjoint.clone().into();
                (0, self.of(Opcode::Conj, 0, &[adjoint], call.dtype(), call.out.1.shape())?)
            }
            Form::Real => (0, self.cast(call)?),
            Form::Imaginary => (0, self.imaginary(call)?),
            Form::Modulus => (0, self.modulus(call)?),
            Form::Sum => (0, self.sum(call)?),
            Form::Product => (0, self.product(call)?),
            Form::Extreme => (0, self.extreme(call)?),
            Form::RunningSum => (0, self.running_sum(call, call.adjoint.clone())?.into()),
            Form::RunningProduct => (0, self.running_product(call)?),
            Form::Gather => return self.gather(call),
            Form::Fourier => (0, self.fourier(call, "fft")?),
            Form::InverseFourier => (0, self.fourier(call, "ifft")?),
            Form::RealFourier => (0, self.real_fourier(call)?),
            Form::InverseRealFourier => (0, self.inverse_real_fourier(call)?),
            Form::Sort => (0, self.sort(call)?),
            Form::Compress => return self.compress(call),
            Form::Scatter | Form::ScatterAdd | Form::CondScatter => return self.assignment(form, call),
            // Their outputs' adjoints flow together.
            Form::Lu | Form::Cholesky | Form::Qr | Form::Eigh | Form::Eig | Form::Svd | Form::Program => return Ok(()),
        };
        self.flow(call, at, flow, kept)
    }

    /// The type of an input.
    pub(super) fn type_of(&self, call: &Call<'a, E::Base>, at: usize) -> DType {
        call.input(at).map_or(call.dtype(), |(base, _)| base.dtype())
    }

    /// The adjoint in the type of the input: of complex numbers that were made of real ones, the real part.
    fn cast(&mut self, call: &Call<'a, E::Base>) -> Result<Value<E::Base>> {
        let to = self.type_of(call, 0);
        self.in_type(call.adjoint.clone().into(), call.dtype(), to, call.out.1.shape())
    }

    /// A value in another type; into real ones, the real part.
    pub(crate) fn in_type(
        &mut self,
        value: Value<E::Base>,
        from: DType,
        to: DType,
        shape: &[i64],
    ) -> Result<Value<E::Base>> {
        if from == to {
            return Ok(value);
        }
        let real = from.real_part();
        let (value, from) = match from.is_complex() && !to.is_complex() {
            true => (self.of(Opcode::Real, 0, &[value], real, shape)?, real),
            false => (value, from),
        };
        if from == to { Ok(value) } else { self.of(Opcode::Copy, 0, &[value], to, shape) }
    }

    /// −i times the adjoint, as Re(−i·a·δ) = a·Im(δ).
    fn imaginary(&mut self, call: &Call<'a, E::Base>) -> Result<Value<E::Base>> {
        let complex = self.cast(call)?;
        let to = self.type_of(call, 0);
        let unit = minus_i(to);
        self.both(Opcode::Multiply, complex, unit, to, call.out.1.shape())
    }

    /// a·conj(z)/|z|, and zero where z is.
    fn modulus(&mut self, call: &Call<'a, E::Base>) -> Result<Value<E::Base>> {
        let (dtype, to, view) = (call.dtype(), self.type_of(call, 0), call.out.1);
        let shape = view.shape();
        let (z, modulus) = (self.input(call, 0)?, self.output(call)?);
        let is_zero = self.both(Opcode::Equal, modulus.clone().into(), number(0.0, dtype), DType::Bool, shape)?;
        // No quotient by zero: the way back from this one would multiply zero by infinity.
        let divisor =
            self.of(Opcode::Where, 0, &[is_zero.clone(), number(1.0, dtype), modulus.into()], dtype, shape)?;
        let ratio = self.both(Opcode::Divide, call.adjoint.clone().into(), divisor, dtype, shape)?;
        let ratio = self.of(Opcode::Where, 0, &[is_zero, number(0.0, dtype), ratio], dtype, shape)?;
        let ratio = self.of(Opcode::Copy, 0, &[ratio], to, shape)?;
        let conjugate = self.of(Opcode::Conj, 0, &[z], to, shape)?;
        self.both(Opcode::Multiply, ratio, conjugate, to, shape)
    }

    fn choice(&mut self, call: &Call<'a, E::Base>, kept: &mut Vec<Kept<E::Base>>) -> Result<()> {
        let (dtype, view) = (call.dtype(), call.out.1);
        let mask = self.input(call, 0)?;
        for at in [1, 2] {
            if call.flows(at) {
                let (adjoint, zero) = (call.adjoint.clone().into(), number(0.0, dtype));
                let (yes, no) = if at == 1 { (adjoint, zero) } else { (zero, adjoint) };
                let flow = self.of(Opcode::Where, 0, &[mask.clone(), yes, no], dtype, view.shape())?;
                self.flow(call, at, flow, kept)?;
            }
        }
        Ok(())
    }
}

/// The number −i.
fn minus_i<B>(dtype: DType) -> Value<B> {
    use bh_bytecode::{Constant, c128};
    Value::Number(Constant::from_value(c128::new(0.0, -1.0)).cast(dtype))
}
