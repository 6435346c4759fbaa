//! The adjoints of elementwise operations within one type: the adjoint of the output times each partial derivative.

use super::expression::{Expression, Partial, constant};
use crate::emit::{Emit, Value, number};
use crate::reverse::{Call, Kept, Sweep};
use bh_bytecode::view::overlap;
use bh_bytecode::{DType, Opcode, Overlap};
use bh_core::Result;

impl<'a, E: Emit> Sweep<'a, E> {
    /// The adjoint times each partial derivative. Products with numbers are left to what adds them up.
    pub(crate) fn partials(&mut self, call: &mut Call<'a, E::Base>, partials: &'static [Partial]) -> Result<()> {
        let flows = call.needs.flows;
        let flowing = || partials.iter().enumerate().filter(|(at, _)| flows >> at & 1 == 1);
        let stays: Vec<usize> = flowing().map(|(at, _)| at).filter(|&at| call.stays(at)).collect();
        // The adjoint of an operation that works in place changes in place, behind what flows elsewhere.
        let in_place = stays.first().copied().filter(|_| stays.len() == 1 && !call.is_still);
        let goes_on = in_place.is_some_and(|at| self.constant_factor(call, &partials[at]) == Some(1.0));
        let (mut kept, mut still) = (Vec::new(), None);
        for (at, partial) in flowing().filter(|(at, _)| in_place != Some(*at)) {
            let Some((base, to)) = call.input(at) else { continue };
            let Some(factor) = self.constant_factor(call, partial) else {
                self.settle(call, false)?;
                let flow = self.partial(call, partial)?;
                self.flow(call, at, flow, &mut kept)?;
                continue;
            };
            if call.stays(at) {
                kept.push(Kept { value: call.adjoint.clone().into(), factor: factor * call.factor });
                continue;
            }
            // The sum of the same base takes the adjoint up before that changes.
            let is_beside = base.id == call.out.0.id && base.len < self.least && to.is_injective();
            if goes_on && is_beside && overlap(&to, &call.out.1) == Overlap::Disjoint {
                self.add_times(&base, &to, call.adjoint.clone(), factor)?;
                continue;
            }
            if still.is_none() {
                let from = if call.is_still { call.adjoint.clone() } else { self.copied(&call.adjoint)? };
                still = Some((from, call.factor));
            }
            let Some((from, own)) = still.clone() else { continue };
            self.add_times(&base, &to, from, factor * own)?;
        }
        match in_place {
            Some(_) if goes_on => Ok(()),
            Some(at) => {
                let (opcode, other) = self.factor(call, &partials[at])?;
                self.emit.operate(opcode, 0, &call.own, &[call.own.clone().into(), other])
            }
            None => self.overwrite(call, kept),
        }
    }

    /// The number that a partial derivative is.
    fn constant_factor(&self, call: &Call<'a, E::Base>, partial: &Partial) -> Option<f64> {
        match partial {
            Partial::One => Some(1.0),
            Partial::MinusOne => Some(-1.0),
            Partial::Times(Expression::Input(at)) => {
                let constant = call.instr.inputs()[usize::from(*at)].as_constant()?;
                let constant = call.tables.constants[constant as usize];
                constant.value::<f64>().or_else(|| constant.value::<f32>().map(f64::from))
            }
            _ => None,
        }
    }

    /// The adjoint times a partial derivative.
    fn partial(&mut self, call: &Call<'a, E::Base>, partial: &'static Partial) -> Result<Value<E::Base>> {
        let (adjoint, dtype, shape) = (call.adjoint.clone().into(), call.dtype(), call.out.1);
        if matches!(partial, Partial::One) {
            return Ok(adjoint);
        }
        let (opcode, other) = self.factor(call, partial)?;
        self.both(opcode, adjoint, other, dtype, shape.shape())
    }

    /// The operation that multiplies with a partial derivative, and its second input.
    fn factor(&mut self, call: &Call<'a, E::Base>, partial: &'static Partial) -> Result<(Opcode, Value<E::Base>)> {
        match partial {
            Partial::One => Ok((Opcode::Multiply, number(1.0, call.dtype()))),
            Partial::MinusOne => Ok((Opcode::Multiply, number(-1.0, call.dtype()))),
            Partial::Times(factor) => Ok((Opcode::Multiply, self.evaluate(call, factor)?)),
            Partial::Over(divisor) => Ok((Opcode::Divide, self.evaluate(call, divisor)?)),
        }
    }

    /// The value of an expression, of the operation's type and shape.
    fn evaluate(&mut self, call: &Call<'a, E::Base>, expression: &'static Expression) -> Result<Value<E::Base>> {
        let (dtype, view) = (call.dtype(), call.out.1);
        let shape = view.shape();
        match expression {
            Expression::Input(at) => self.input(call, usize::from(*at)),
            Expression::Output => self.output(call).map(Value::Place),
            Expression::Number(value) => Ok(Value::Number(constant(*value, dtype))),
            Expression::LowerPower => {
                let (power, x) = (call.instr.param, self.input(call, 0)?);
                let lower = if power == 2 { x } else { self.of(Opcode::Powi, power - 1, &[x], dtype, shape)? };
                self.both(Opcode::Multiply, lower, number(f64::from(power), dtype), dtype, shape)
            }
            Expression::Of(opcode, a) => {
                let a = self.evaluate(call, a)?;
                self.of(*opcode, 0, &[a], dtype, shape)
            }
            Expression::Both(opcode, a, b) => {
                let (a, b) = (self.evaluate(call, a)?, self.evaluate(call, b)?);
                self.both(*opcode, a, b, dtype, shape)
            }
            Expression::Where(test, [a, b], yes, no) => {
                let (a, b) = (self.evaluate(call, a)?, self.evaluate(call, b)?);
                let (yes, no) = (self.evaluate(call, yes)?, self.evaluate(call, no)?);
                let mask = self.both(*test, a, b, DType::Bool, shape)?;
                self.of(Opcode::Where, 0, &[mask, yes, no], dtype, shape)
            }
        }
    }
}
