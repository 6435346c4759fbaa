//! Reverse mode: the adjoint program of a tape.
//!
//! Every base that depends on the arguments has an adjoint base of its length and type, made when a first derivative flows into
//! it. The sweep goes through the tape from its end. The adjoint of what an operation wrote flows into the adjoints of what it
//! read, over the same views, and is then zero, as the operation overwrote what was there before.
//!
//! Derivatives of complex numbers pair with changes as Re Σ a·δ, without a conjugate.

use crate::adjoints::Adjoint;
use crate::emit::{Emit, Place, Value, contiguous, number, view};
use crate::identities::ByBase;
use crate::rules::{Form, Needs, Rule};
use crate::tape::{Segment, Step, Tape, is_whole, keeps_elements, method, place_of};
use bh_bytecode::{Base, Batch, BatchRef, DType, Instr, Opcode, Operand, View};
use bh_core::Result;

/// The sweep through a tape.
pub(crate) struct Sweep<'a, E: Emit> {
    pub(crate) emit: &'a mut E,
    /// Grids of fewer elements are added to box by box.
    pub(crate) least: i64,
    tape: &'a Tape,
    /// The bases that hold values, by their identities.
    bases: &'a dyn Fn(u64) -> Option<E::Base>,
    /// How far the sweep is.
    pub(crate) progress: Progress<E::Base>,
}

/// How far a sweep is, and what it has found.
pub(crate) struct Progress<B> {
    pub(crate) adjoints: ByBase<Adjoint<B>>,
    /// Bases that stand for others with older values, and whether they may be changed.
    older: ByBase<(B, bool)>,
    /// The segments before it.
    segments: usize,
}

impl<B> Progress<B> {
    /// A sweep that begins at the end of a tape.
    pub(crate) fn of(tape: &Tape) -> Progress<B> {
        Progress::with(ByBase::default(), tape)
    }

    /// As [`Progress::of`], with adjoints that were found behind the tape.
    pub(crate) fn with(adjoints: ByBase<Adjoint<B>>, tape: &Tape) -> Progress<B> {
        Progress { adjoints, older: ByBase::default(), segments: tape.segments.len() }
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
    /// The adjoint of the output, for rules to read.
    pub(crate) adjoint: Place<B>,
    /// Where the adjoint of the output is.
    pub(crate) own: Place<B>,
    /// The number that the adjoint is to be multiplied with.
    pub(crate) factor: f64,
    /// Does nothing change the adjoint from here on?
    pub(crate) is_still: bool,
    /// The old values of the output, if they were saved.
    saved: Option<Place<B>>,
}

/// A value times a number that flows into the view that an operation wrote.
pub(crate) struct Kept<B> {
    pub(crate) value: Value<B>,
    pub(crate) factor: f64,
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

    /// Is an input the view that the operation writes?
    pub(crate) fn stays(&self, at: usize) -> bool {
        self.input(at).is_some_and(|(base, view)| base.id == self.out.0.id && view == self.out.1)
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
        least: i64,
    ) -> Sweep<'a, E> {
        Sweep { emit, least, tape, bases, progress }
    }

    /// Has the tape left copies of elements out?
    pub(crate) fn has_left_out(&self) -> bool {
        self.tape.has_left_out
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
        let tables = Batch::as_ref(&segment.batch);
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
        let keeps = keeps_elements(step.rule);
        let mut calls = Vec::with_capacity(1);
        self.emit.locate(tables.origin(instr));
        for (position, &operand) in instr.outputs().iter().enumerate() {
            let Some(out) = place_of(&tables, operand) else { continue };
            if !self.progress.adjoints.contains_key(&out.0.id) {
                continue;
            }
            let is_still = is_whole(&out.0, &out.1) && !keeps;
            let found = match is_still {
                true => self.take_whole(&out.0, &out.1)?,
                false => Some((self.total(&out.0)?.with(out.1), 1.0)),
            };
            let Some((adjoint, factor)) = found else { continue };
            let saved = saves.iter().find(|save| usize::from(save.0) == position).map(|save| save.3.clone());
            let own = adjoint.clone();
            calls.push(Call { tables, instr, needs: step.needs, position, out, adjoint, own, factor, is_still, saved });
        }
        if !calls.is_empty() {
            self.operation(step.rule, calls)?;
        }
        for (_, of, old, place, restored) in saves {
            if restored {
                self.restore(&of, &old, place)?;
            }
        }
        Ok(())
    }

    /// The adjoint of one operation, with a call for each output that has an adjoint.
    fn operation(&mut self, rule: Rule, mut calls: Vec<Call<'a, E::Base>>) -> Result<()> {
        let flows = calls[0].needs.flows != 0;
        if !matches!(rule, Rule::Partials(_)) && flows {
            for call in &mut calls {
                self.settle(call, matches!(rule, Rule::Form(form) if form.passes_on()))?;
            }
        }
        match rule {
            Rule::Form(form) if form.keeps_elements() => {
                return calls.iter().try_for_each(|call| self.assignment(form, call));
            }
            Rule::Form(form) if form.is_factorization() && flows => self.factors(form, &calls)?,
            Rule::Form(Form::Program) if flows => {
                self.program(method(&calls[0].tables, calls[0].instr).unwrap_or_default(), &calls)?;
            }
            Rule::Partials(partials) if flows => {
                return calls.iter_mut().try_for_each(|call| self.partials(call, partials));
            }
            Rule::Form(form) if flows => {
                return calls.iter().try_for_each(|call| {
                    let mut kept = Vec::new();
                    self.form(form, call, &mut kept)?;
                    self.overwrite(call, kept)
                });
            }
            _ => {}
        }
        calls.iter().try_for_each(|call| self.overwrite(call, Vec::new()))
    }

    /// Gives a call an adjoint without a factor. `passes_on`: what flows is the adjoint itself, so that it has to be still.
    pub(crate) fn settle(&mut self, call: &mut Call<'a, E::Base>, passes_on: bool) -> Result<()> {
        if call.factor != 1.0 {
            call.adjoint = self.scaled(call.adjoint.clone(), call.factor)?;
            call.factor = 1.0;
        } else if passes_on && !call.is_still {
            call.adjoint = self.copied(&call.adjoint)?;
        }
        Ok(())
    }

    pub(crate) fn copied(&mut self, place: &Place<E::Base>) -> Result<Place<E::Base>> {
        let copy = self.fresh(place.dtype, place.shape())?;
        self.emit.operate(Opcode::Copy, 0, &copy, &[place.clone().into()])?;
        Ok(copy)
    }

    /// Lets an adjoint flow into an input. Flows into the view that the operation wrote are kept until all rules have read
    /// the adjoint there.
    pub(crate) fn flow(
        &mut self,
        call: &Call<'a, E::Base>,
        at: usize,
        flow: Value<E::Base>,
        kept: &mut Vec<Kept<E::Base>>,
    ) -> Result<()> {
        let Some((base, view)) = call.input(at) else { return Ok(()) };
        if call.stays(at) {
            kept.push(Kept { value: flow, factor: 1.0 });
            return Ok(());
        }
        self.add(&base, &view, flow)
    }

    /// Gives the adjoint of what an operation wrote the values that it has before the operation.
    pub(crate) fn overwrite(&mut self, call: &Call<'a, E::Base>, kept: Vec<Kept<E::Base>>) -> Result<()> {
        let (adjoint, (base, to)) = (&call.own, &call.out);
        let (dtype, shape) = (adjoint.dtype, to.shape());
        if call.is_still {
            // There is none any more.
            for Kept { value, factor } in kept {
                let from = self.place(value, dtype, shape)?;
                self.add_times(base, to, from, factor)?;
            }
            return Ok(());
        }
        if let [Kept { value: Value::Place(place), factor }] = kept.as_slice()
            && *factor == 1.0
            && E::same(&place.base, &adjoint.base)
            && place.view == adjoint.view
        {
            // The output's own adjoint goes on.
            return Ok(());
        }
        let mut sum = None;
        for Kept { value, factor } in kept {
            let place = self.place(value, dtype, shape)?;
            let term = self.scaled(place, factor)?.into();
            sum = Some(match sum {
                None => term,
                Some(sum) => self.both(Opcode::Add, sum, term, dtype, shape)?,
            });
        }
        self.emit.operate(Opcode::Copy, 0, adjoint, &[sum.unwrap_or(number(0.0, dtype))])
    }

    /// The number of each element along an axis times a step, stretched to a shape.
    pub(crate) fn numbers(&mut self, axis: usize, shape: &[i64], step: i64) -> Result<Place<E::Base>> {
        let numbers = self.fresh(DType::I64, &[shape[axis]])?;
        self.emit.range(&numbers, step)?;
        let stride: Vec<i64> = (0..shape.len()).map(|other| i64::from(other == axis)).collect();
        Ok(numbers.with(view(0, shape, &stride)?))
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
pub(crate) fn lost() -> bh_core::Error {
    bh_core::Error::new(bh_core::abi::status::HANDLE, "derivative: a value of the program was not kept")
}
