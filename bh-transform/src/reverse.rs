//! Reverse mode: the adjoint program of a tape.
//!
//! Every base that depends on the arguments has an adjoint base of its length and type, made when a first derivative flows into
//! it. The sweep goes through the tape from its end. The adjoint of what an operation wrote flows into the adjoints of what it
//! read, over the same views, and is then zero, as the operation overwrote what was there before.
//!
//! Derivatives of complex numbers pair with changes as Re Σ a·δ, without a conjugate.

use crate::emit::{Emit, Place, Value, contiguous, number, view};
use crate::rules::expression::{Expression, Partial};
use crate::rules::{Needs, Rule};
use crate::tape::{Segment, Step, Tape, is_whole, place_of, rule_of};
use bh_bytecode::{Base, BatchRef, Constant, DType, Instr, Opcode, Operand, View};
use bh_core::Result;
use std::collections::HashMap;

/// The sweep through a tape.
pub(crate) struct Sweep<'a, E: Emit> {
    pub(crate) emit: &'a mut E,
    tape: &'a Tape,
    /// The bases that hold values, by their identities.
    bases: &'a dyn Fn(u64) -> Option<E::Base>,
    /// How far the sweep is.
    pub(crate) progress: Progress<E::Base>,
}

/// How far a sweep is, and what it has found.
pub(crate) struct Progress<B> {
    adjoints: HashMap<u64, B>,
    /// Bases that stand for others with older values, and whether they may be changed.
    older: HashMap<u64, (B, bool)>,
    /// The segments before it.
    segments: usize,
}

impl<B> Progress<B> {
    /// A sweep that begins at the end of a tape.
    pub(crate) fn of(tape: &Tape) -> Progress<B> {
        Progress { adjoints: HashMap::new(), older: HashMap::new(), segments: tape.segments.len() }
    }

    /// The adjoint of a base, if any derivative has flowed into it. From here on there is none.
    pub(crate) fn take(&mut self, base: u64) -> Option<B> {
        self.adjoints.remove(&base)
    }
}

/// An operation of the tape, as its rule sees it.
pub(crate) struct Call<'t, B> {
    pub(crate) tables: BatchRef<'t>,
    pub(crate) instr: &'t Instr,
    pub(crate) needs: Needs,
    /// The output's place among the outputs.
    pub(crate) position: usize,
    /// The output, where it was written.
    pub(crate) out: (Base, View),
    /// The adjoint of the output.
    pub(crate) adjoint: Place<B>,
    /// The old values of the output, if they were saved.
    saved: Option<Place<B>>,
}

impl<B> Call<'_, B> {
    /// The view of an input, and its base.
    pub(crate) fn input(&self, at: usize) -> Option<(Base, View)> {
        place_of(&self.tables, self.instr.inputs()[at])
    }

    /// The inputs into which derivatives flow.
    pub(crate) fn flows(&self, at: usize) -> bool {
        self.needs.flows >> at & 1 == 1
    }

    /// The type of the output.
    pub(crate) fn dtype(&self) -> DType {
        self.adjoint.dtype
    }
}

impl<'a, E: Emit> Sweep<'a, E> {
    pub(crate) fn new(
        emit: &'a mut E,
        tape: &'a Tape,
        bases: &'a dyn Fn(u64) -> Option<E::Base>,
        progress: Progress<E::Base>,
    ) -> Sweep<'a, E> {
        Sweep { emit, tape, bases, progress }
    }

    /// Goes on through the tape, back to a segment.
    pub(crate) fn run_to(&mut self, first: usize) -> Result<()> {
        let tape = self.tape;
        let last = std::mem::replace(&mut self.progress.segments, first);
        for segment in tape.segments.get(first..last).unwrap_or_default().iter().rev() {
            for step in segment.steps.iter().rev() {
                self.step(segment, step)?;
            }
        }
        self.emit.locate(None);
        Ok(())
    }

    fn step(&mut self, segment: &'a Segment, step: &Step) -> Result<()> {
        let tables = segment.batch.as_ref();
        let instr = &segment.batch.instrs[step.at as usize];
        let mut saves = Vec::with_capacity(step.saves.len());
        for &(position, saved) in &step.saves {
            let saved = &self.tape.saved[saved as usize];
            if let (Some(base), Some((of, old))) =
                ((self.bases)(saved.base), place_of(&tables, instr.outputs()[position as usize]))
            {
                let place = Place { base, dtype: of.dtype(), view: contiguous(old.shape())? };
                saves.push((position, of, old, place, saved.restored));
            }
        }
        let mut calls = Vec::with_capacity(1);
        for (position, &operand) in instr.outputs().iter().enumerate() {
            let Some(out) = place_of(&tables, operand) else { continue };
            let Some(base) = self.progress.adjoints.get(&out.0.id).cloned() else { continue };
            let adjoint = Place { base, dtype: out.0.dtype(), view: out.1 };
            let saved = saves.iter().find(|save| usize::from(save.0) == position).map(|save| save.3.clone());
            calls.push(Call { tables, instr, needs: step.needs, position, out, adjoint, saved });
        }
        if !calls.is_empty() {
            self.emit.locate(tables.origin(instr));
            self.operation(&calls)?;
        }
        for (_, of, old, place, restored) in saves {
            if restored {
                self.restore(&of, &old, place)?;
            }
        }
        Ok(())
    }

    /// The adjoint of one operation, with a call for each output that has an adjoint.
    fn operation(&mut self, calls: &[Call<'a, E::Base>]) -> Result<()> {
        match rule_of(&calls[0].tables, calls[0].instr) {
            Rule::Form(form) if form.is_factorization() && calls[0].needs.flows != 0 => {
                self.factors(form, calls)?;
                calls.iter().try_for_each(|call| self.overwrite(call, Vec::new()))
            }
            rule => calls.iter().try_for_each(|call| self.output_of(rule, call)),
        }
    }

    /// The adjoint of an operation with one output.
    fn output_of(&mut self, rule: Rule, call: &Call<'a, E::Base>) -> Result<()> {
        let mut kept = Vec::new();
        match rule {
            Rule::Form(form) if form.keeps_elements() => return self.assignment(form, call),
            _ if call.needs.flows == 0 => {}
            Rule::Partials(partials) => {
                for (at, partial) in partials.iter().enumerate() {
                    if call.flows(at) {
                        let flow = self.partial(call, partial)?;
                        self.flow(call, at, flow, &mut kept)?;
                    }
                }
            }
            Rule::Form(form) => self.form(form, call, &mut kept)?,
            Rule::Zero | Rule::Missing => {}
        }
        self.overwrite(call, kept)
    }

    /// Lets an adjoint flow into an input. What flows into the view that the operation wrote is kept until all rules have read
    /// the adjoint there.
    pub(crate) fn flow(
        &mut self,
        call: &Call<'a, E::Base>,
        at: usize,
        flow: Value<E::Base>,
        kept: &mut Vec<Value<E::Base>>,
    ) -> Result<()> {
        let Some((base, view)) = call.input(at) else { return Ok(()) };
        if base.id == call.out.0.id && view == call.out.1 {
            kept.push(flow);
            return Ok(());
        }
        self.add(&base, &view, flow)
    }

    /// Gives the adjoint of what an operation wrote the values that it has before the operation.
    fn overwrite(&mut self, call: &Call<'a, E::Base>, kept: Vec<Value<E::Base>>) -> Result<()> {
        let (adjoint, (base, view)) = (&call.adjoint, &call.out);
        let mut kept = kept.into_iter();
        let Some(first) = kept.next() else {
            if is_whole(base, view) {
                self.progress.adjoints.remove(&base.id);
                return Ok(());
            }
            return self.emit.operate(Opcode::Copy, 0, adjoint, &[number(0.0, adjoint.dtype)]);
        };
        let sum = kept.try_fold(first, |sum, next| self.both(Opcode::Add, sum, next, adjoint.dtype, view.shape()))?;
        match &sum {
            // The output's own adjoint goes on.
            Value::Place(place) if E::same(&place.base, &adjoint.base) && place.view == adjoint.view => Ok(()),
            _ => self.emit.operate(Opcode::Copy, 0, adjoint, &[sum]),
        }
    }

    /// Adds to the adjoint of a view. Axes along which the view repeats elements are summed.
    pub(crate) fn add(&mut self, base: &Base, to: &View, flow: Value<E::Base>) -> Result<()> {
        let dtype = base.dtype();
        let is_repeated = |axis: &usize| to.stride()[*axis] == 0 && to.shape()[*axis] > 1;
        let axes = (0..to.rank()).filter(is_repeated).fold(0u16, |axes, axis| axes | 1 << axis);
        if to.is_empty() {
            return Ok(());
        }
        let (to, flow) = if axes == 0 { (*to, flow) } else { self.sum_repeated(to, axes, flow, dtype)? };
        if !to.is_injective() {
            return self.add_at_offsets(base, &to, flow);
        }
        if let Some(adjoint) = self.progress.adjoints.get(&base.id) {
            let place = Place { base: adjoint.clone(), dtype, view: to };
            return self.emit.operate(Opcode::Add, 0, &place, &[Value::Place(place.clone()), flow]);
        }
        let adjoint = self.emit.base(dtype, base.len)?;
        let all = Place { base: adjoint.clone(), dtype, view: contiguous(&[base.len])? };
        if !is_whole(base, &to) {
            self.emit.operate(Opcode::Copy, 0, &all, &[number(0.0, dtype)])?;
        }
        self.emit.operate(Opcode::Copy, 0, &all.with(to), &[flow])?;
        self.progress.adjoints.insert(base.id, adjoint);
        Ok(())
    }

    fn sum_repeated(
        &mut self,
        to: &View,
        axes: u16,
        flow: Value<E::Base>,
        dtype: DType,
    ) -> Result<(View, Value<E::Base>)> {
        let flow = self.place(flow, dtype, to.shape())?;
        let kept = |values: &[i64]| -> Vec<i64> {
            values.iter().enumerate().filter(|(axis, _)| axes >> axis & 1 == 0).map(|(_, &value)| value).collect()
        };
        let (shape, stride) = (kept(to.shape()), kept(to.stride()));
        let sum = self.fresh(dtype, &shape)?;
        self.emit.operate(Opcode::AddReduce, axes, &sum, &[flow.into()])?;
        Ok((view(to.start(), &shape, &stride)?, sum.into()))
    }

    /// As [`Sweep::add`], of a view some of whose elements are at one place without being repeated along an axis.
    fn add_at_offsets(&mut self, base: &Base, to: &View, flow: Value<E::Base>) -> Result<()> {
        let dtype = base.dtype();
        let adjoint = self.adjoint_of(base)?;
        let flow = self.place(flow, dtype, to.shape())?;
        let offsets = self.fresh(DType::I64, to.shape())?;
        let start = Value::Number(Constant::from_value(to.start()));
        self.emit.operate(Opcode::Copy, 0, &offsets, &[start])?;
        for (axis, (&extent, &stride)) in to.shape().iter().zip(to.stride()).enumerate() {
            if extent > 1 {
                let numbers = self.numbers(axis, to.shape(), stride)?;
                self.emit.operate(Opcode::Add, 0, &offsets, &[offsets.clone().into(), numbers.into()])?;
            }
        }
        self.emit.operate(Opcode::ScatterAdd, 0, &adjoint, &[flow.into(), offsets.into()])
    }

    /// The number of each element along an axis times a step, stretched to a shape.
    pub(crate) fn numbers(&mut self, axis: usize, shape: &[i64], step: i64) -> Result<Place<E::Base>> {
        let numbers = self.fresh(DType::I64, &[shape[axis]])?;
        self.emit.range(&numbers, step)?;
        let stride: Vec<i64> = (0..shape.len()).map(|other| i64::from(other == axis)).collect();
        Ok(numbers.with(view(0, shape, &stride)?))
    }

    /// The whole adjoint of a base, of zeros if it had none.
    fn adjoint_of(&mut self, base: &Base) -> Result<Place<E::Base>> {
        let dtype = base.dtype();
        let view = contiguous(&[base.len])?;
        if let Some(adjoint) = self.progress.adjoints.get(&base.id) {
            return Ok(Place { base: adjoint.clone(), dtype, view });
        }
        let place = Place { base: self.emit.base(dtype, base.len)?, dtype, view };
        self.emit.operate(Opcode::Copy, 0, &place, &[number(0.0, dtype)])?;
        self.progress.adjoints.insert(base.id, place.base.clone());
        Ok(place)
    }

    /// Gives a view of a base that operations before have read its older values.
    fn restore(&mut self, base: &Base, old: &View, saved: Place<E::Base>) -> Result<()> {
        if is_whole(base, old) && old.is_contiguous() {
            self.progress.older.insert(base.id, (saved.base, false));
            return Ok(());
        }
        let (source, own) = match self.progress.older.remove(&base.id) {
            Some(older) => older,
            None => match (self.bases)(base.id) {
                Some(source) => (source, false),
                None => return Ok(()),
            },
        };
        let dtype = base.dtype();
        let all = |base: E::Base, len: i64| Ok(Place { base, dtype, view: contiguous(&[len])? });
        let older = if own {
            source
        } else {
            let copy = all(self.emit.base(dtype, base.len)?, base.len)?;
            self.emit.operate(Opcode::Copy, 0, &copy, &[all(source, base.len)?.into()])?;
            copy.base
        };
        let place = Place { base: older.clone(), dtype, view: *old };
        self.progress.older.insert(base.id, (older, true));
        self.emit.operate(Opcode::Copy, 0, &place, &[saved.into()])
    }

    /// The values that a view of a base has at this point of the sweep.
    fn value_at(&self, base: &Base, view: View) -> Option<Place<E::Base>> {
        let older = self.progress.older.get(&base.id).map(|(older, _)| older.clone());
        let found = older.or_else(|| (self.bases)(base.id))?;
        Some(Place { base: found, dtype: base.dtype(), view })
    }

    /// The values of an input, as the operation read them.
    pub(crate) fn input(&self, call: &Call<'a, E::Base>, at: usize) -> Result<Value<E::Base>> {
        let operand: Operand = call.instr.inputs()[at];
        if let Some(constant) = operand.as_constant() {
            return Ok(Value::Number(call.tables.constants[constant as usize]));
        }
        let found = call.input(at).and_then(|(base, view)| {
            let is_output = base.id == call.out.0.id && view == call.out.1;
            match &call.saved {
                Some(saved) if is_output => Some(saved.clone()),
                _ => self.value_at(&base, view),
            }
        });
        found.map(Value::Place).ok_or_else(lost)
    }

    /// The values of an input that is an array.
    pub(crate) fn input_place(&mut self, call: &Call<'a, E::Base>, at: usize) -> Result<Place<E::Base>> {
        match self.input(call, at)? {
            Value::Place(place) => Ok(place),
            Value::Number(number) => self.place(Value::Number(number), number.dtype(), call.out.1.shape()),
        }
    }

    /// The values that the operation wrote.
    pub(crate) fn output(&self, call: &Call<'a, E::Base>) -> Result<Place<E::Base>> {
        self.value_at(&call.out.0, call.out.1).ok_or_else(lost)
    }

    /// The values of one of several outputs.
    pub(crate) fn written(&self, call: &Call<'a, E::Base>, position: usize) -> Result<Place<E::Base>> {
        let out = place_of(&call.tables, call.instr.outputs()[position]);
        out.and_then(|(base, view)| self.value_at(&base, view)).ok_or_else(lost)
    }

    /// The adjoint times a partial derivative.
    fn partial(&mut self, call: &Call<'a, E::Base>, partial: &'static Partial) -> Result<Value<E::Base>> {
        let (adjoint, dtype, shape) = (Value::Place(call.adjoint.clone()), call.dtype(), call.out.1);
        match partial {
            Partial::One => Ok(adjoint),
            Partial::MinusOne => self.both(Opcode::Multiply, adjoint, number(-1.0, dtype), dtype, shape.shape()),
            Partial::Times(factor) => {
                let factor = self.evaluate(call, factor)?;
                self.both(Opcode::Multiply, adjoint, factor, dtype, shape.shape())
            }
            Partial::Over(divisor) => {
                let divisor = self.evaluate(call, divisor)?;
                self.both(Opcode::Divide, adjoint, divisor, dtype, shape.shape())
            }
        }
    }

    /// The value of an expression, of the operation's type and shape.
    fn evaluate(&mut self, call: &Call<'a, E::Base>, expression: &'static Expression) -> Result<Value<E::Base>> {
        let (dtype, view) = (call.dtype(), call.out.1);
        let shape = view.shape();
        match expression {
            Expression::Input(at) => self.input(call, usize::from(*at)),
            Expression::Output => self.output(call).map(Value::Place),
            Expression::Number(value) => Ok(number(*value, dtype)),
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

    /// A new array in C order.
    pub(crate) fn fresh(&mut self, dtype: DType, shape: &[i64]) -> Result<Place<E::Base>> {
        self.emit.fresh(dtype, shape)
    }

    /// A new array of one number.
    pub(crate) fn full(&mut self, value: f64, dtype: DType, shape: &[i64]) -> Result<Place<E::Base>> {
        self.place(number(value, dtype), dtype, shape)
    }

    /// The value as an array.
    pub(crate) fn place(&mut self, value: Value<E::Base>, dtype: DType, shape: &[i64]) -> Result<Place<E::Base>> {
        match value {
            Value::Place(place) => Ok(place),
            number => {
                let full = self.fresh(dtype, shape)?;
                self.emit.operate(Opcode::Copy, 0, &full, &[number])?;
                Ok(full)
            }
        }
    }

    /// The result of an elementwise operation.
    pub(crate) fn of(
        &mut self,
        opcode: Opcode,
        param: u16,
        inputs: &[Value<E::Base>],
        dtype: DType,
        shape: &[i64],
    ) -> Result<Value<E::Base>> {
        self.emit.of(opcode, param, inputs, dtype, shape)
    }

    /// The result of an elementwise operation with two inputs.
    pub(crate) fn both(
        &mut self,
        opcode: Opcode,
        a: Value<E::Base>,
        b: Value<E::Base>,
        dtype: DType,
        shape: &[i64],
    ) -> Result<Value<E::Base>> {
        self.of(opcode, 0, &[a, b], dtype, shape)
    }
}

/// A value that the tape should have kept.
fn lost() -> bh_core::Error {
    bh_core::Error::new(bh_core::abi::status::HANDLE, "derivative: a value of the program was not kept")
}
