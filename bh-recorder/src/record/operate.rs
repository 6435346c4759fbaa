//! The public side of recording operations.

use crate::immediate::settling::Use;
use crate::record::{Input, Operation, Source, Sources};
use crate::state::State;
use crate::{ArrayId, ArrayInfo, Location, Recorder};
use bh_bytecode::{Constant, DType, Opcode, View};
use bh_core::error::Result;

impl Recorder {
    /// Records an elementwise, reduction, accumulate or index operation into an existing array. `param`: the axes of a
    /// reduction or an accumulate as a bit mask, the exponent of POWI, else 0.
    pub fn operate(
        &self,
        opcode: Opcode,
        param: u16,
        out: ArrayId,
        inputs: &[Input],
        location: Location<'_>,
    ) -> Result<()> {
        let mut state = self.state_for(opcode, inputs, Some(Use::of_output(out, None)));
        let begin = state.clock();
        let target = state.find(out)?;
        if state.change_of((opcode, param), target, inputs).is_some() {
            state.count_recording(begin);
            return Ok(());
        }
        let mut sources = Sources::new();
        sources.resolve(&state, opcode, inputs)?;
        let followup = state.record(Operation { opcode, param, location }, target, sources.as_slice())?;
        state.count_recording(begin);
        self.follow(state, followup)
    }

    /// As [`Recorder::operate`], into a part of an array: a view on its base that the caller knows.
    pub fn operate_in(
        &self,
        opcode: Opcode,
        param: u16,
        (out, view): (ArrayId, &View),
        inputs: &[Input],
        location: Location<'_>,
    ) -> Result<()> {
        let mut state = self.state_for(opcode, inputs, Some(Use::of_output(out, Some(view.len()))));
        let begin = state.clock();
        let whole = state.find(out)?;
        let target = state.window(whole, view)?;
        let mut sources = Sources::new();
        let recorded = sources
            .resolve(&state, opcode, inputs)
            .and_then(|()| state.record(Operation { opcode, param, location }, target, sources.as_slice()));
        state.release(target);
        let followup = recorded?;
        state.count_recording(begin);
        self.follow(state, followup)
    }

    /// Records a copy of a part of an array, a view on its base that the caller knows, into a new one.
    pub fn copy_of(&self, (array, view): (ArrayId, &View), location: Location<'_>) -> Result<ArrayId> {
        let mut state = self.state_for(Opcode::Copy, &[], Some(Use::of_input(array, Some(view.len()))));
        state.running()?;
        let begin = state.clock();
        let whole = state.find(array)?;
        let dtype = state.dtype(whole);
        let source = state.window(whole, view)?;
        let operation = Operation { opcode: Opcode::Copy, param: 0, location };
        let recorded = state.record_new(operation, Some(dtype), &[Source::Handle(source)]);
        state.release(source);
        let (handle, followup) = recorded?;
        state.count_recording(begin);
        let made = state.name(handle);
        // Without it, the caller gets no handle, so this one must go.
        self.follow(state, followup).inspect_err(|_| self.free_later(made))?;
        Ok(made)
    }

    /// Records an operation into a new array. `dtype`: the type of the result where the inputs leave it open (COPY).
    pub fn operate_new(
        &self,
        opcode: Opcode,
        param: u16,
        dtype: Option<DType>,
        inputs: &[Input],
        location: Location<'_>,
    ) -> Result<ArrayId> {
        self.operate_into_new(opcode, param, dtype, inputs, location, State::name)
    }

    /// As [`Recorder::operate_new`], and says what the result is, which costs no second lock.
    pub fn operate_described(
        &self,
        opcode: Opcode,
        param: u16,
        dtype: Option<DType>,
        inputs: &[Input],
        location: Location<'_>,
    ) -> Result<(ArrayId, ArrayInfo)> {
        let made = |state: &State, handle| (state.name(handle), state.info(handle));
        self.operate_into_new(opcode, param, dtype, inputs, location, made)
    }

    #[inline]
    fn operate_into_new<R>(
        &self,
        opcode: Opcode,
        param: u16,
        dtype: Option<DType>,
        inputs: &[Input],
        location: Location<'_>,
        made: impl FnOnce(&State, u32) -> R,
    ) -> Result<R> {
        let mut state = self.state_for(opcode, inputs, None);
        state.running()?;
        let begin = state.clock();
        if let Some(handle) = state.make_of((opcode, param), dtype, inputs) {
            state.count_recording(begin);
            return Ok(made(&state, handle));
        }
        let mut sources = Sources::new();
        sources.resolve(&state, opcode, inputs)?;
        let operation = Operation { opcode, param, location };
        let (handle, followup) = state.record_new(operation, dtype, sources.as_slice())?;
        state.count_recording(begin);
        let (array, made) = (state.name(handle), made(&state, handle));
        match self.follow(state, followup) {
            Ok(()) => Ok(made),
            Err(error) => {
                // The caller gets no handle, so this one must go.
                self.free_later(array);
                Err(error)
            }
        }
    }

    /// Records RANGE: element number i in C order becomes first + i·step, computed as 64-bit integers.
    pub fn range(&self, out: ArrayId, first: i64, step: i64, location: Location<'_>) -> Result<()> {
        self.generate_in_order(Opcode::Range, out, (first, step), None, location)
    }

    /// Records RANDOM: element number i in C order becomes number first + i of the stream of this key.
    pub fn random(&self, out: ArrayId, key: u64, first: i64, location: Location<'_>) -> Result<()> {
        self.generate_in_order(Opcode::Random, out, (first, 1), Some(Constant::from_value(key)), location)
    }

    /// Records RANGE, or RANDOM with a key. Each element is made from the number that a view of the output's shape has there.
    pub fn generate(
        &self,
        opcode: Opcode,
        out: ArrayId,
        numbers: &View,
        key: Option<Constant>,
        location: Location<'_>,
    ) -> Result<()> {
        let mut state = self.state();
        let target = state.find(out)?;
        let operation = Operation { opcode, param: 0, location };
        let followup = state.record_generator(operation, target, numbers, key)?;
        self.follow(state, followup)
    }

    fn generate_in_order(
        &self,
        opcode: Opcode,
        out: ArrayId,
        (first, step): (i64, i64),
        key: Option<Constant>,
        location: Location<'_>,
    ) -> Result<()> {
        let mut state = self.state();
        let target = state.find(out)?;
        let operation = Operation { opcode, param: 0, location };
        let numbers = state.numbers_in_order(operation, target, first, step)?;
        let followup = state.record_generator(operation, target, &numbers, key)?;
        self.follow(state, followup)
    }
}
