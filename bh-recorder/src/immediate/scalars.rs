//! Scalars whose values are known: operations on them are computed where they are recorded, by the stack's engine, and reading
//! them waits for nothing.
//!
//! A value is known if the program gave it, if it was computed here from known ones, or if the program has read it: what is
//! recorded follows from the program alone, and not from what is done by then. Bases of one element have values; what is not
//! written yet is written when a batch first needs the base.

use crate::array::small_view::SmallView;
use crate::process::floating::DefaultFloatState;
use crate::record::check::check_param;
use crate::record::{Operation, Source};
use crate::state::State;
use crate::state::scalar::Scalar;
use crate::{ArrayId, Recorder};
use bh_bytecode::{Constant, DType, Instr, Kind, Opcode, Operand};
use bh_core::abi::ScalarOperation;
use bh_core::error::Result;
use bh_core::strided::{self, Side};

/// The most inputs of an elementwise operation.
const INPUTS: usize = 3;

impl Recorder {
    /// Gives an array of one element the value at an address, if that needs nobody else.
    ///
    /// # Safety
    /// `data` must be valid for reading an element of the array's type.
    pub(crate) unsafe fn write_value(&self, array: ArrayId, data: *mut u8) -> Result<bool> {
        let mut state = self.state();
        let handle = state.find(array)?;
        let dtype = state.dtype(handle);
        if !state.takes_value(handle) || state.settles(dtype.size() as u64).is_none() {
            return Ok(false);
        }
        let mut bytes = [0u8; 16];
        let (to, from) = (Side { data: bytes.as_mut_ptr(), stride: &[] }, Side { data, stride: &[] });
        // SAFETY: an element has at most as many bytes, and `data` is valid for reading one, as `# Safety` asks.
        unsafe { strided::copy(dtype, &[], to, from) };
        state.set_value(handle, Constant::from_bytes(dtype, &bytes));
        Ok(true)
    }
}

impl State {
    /// The value of an input, if it is a number or a known scalar.
    #[inline]
    fn known_input(&self, source: &Source) -> Option<Constant> {
        match *source {
            Source::Constant(constant) => Some(constant),
            Source::Handle(handle) => self.known_value(handle),
        }
    }

    /// The known value of an array of one element.
    #[inline]
    pub(crate) fn known_value(&self, handle: u32) -> Option<Constant> {
        let handle = self.handles.at(handle);
        let scalar = self.bases.at(handle.base).scalar.filter(|_| !self.records_all())?;
        (handle.view.len == 1).then_some(scalar.value)
    }

    /// The result of an operation on known scalars, if the stack computes it here.
    pub(crate) fn evaluate(&self, operation: Operation<'_>, dtype: DType, sources: &[Source]) -> Option<Constant> {
        let running = self.running.as_ref()?;
        let evaluator =
            running.evaluator.as_ref().filter(|_| running.options.works_at_once() && !self.records_all())?;
        let opcode = operation.opcode;
        if opcode.kind() != Kind::Elementwise || sources.is_empty() || sources.len() > INPUTS {
            return None;
        }
        let mut inputs = [Constant { bits: [0; 2], dtype: 0, reserved: [0; 7] }; INPUTS];
        for (input, source) in inputs.iter_mut().zip(sources) {
            *input = self.known_input(source)?;
        }
        let inputs = &inputs[..sources.len()];
        if opcode == Opcode::Copy && inputs[0].dtype() == dtype {
            return Some(inputs[0]);
        }
        check_param(opcode, operation.param, 0).ok()?;
        let _state = DefaultFloatState::enter();
        // SAFETY: the inputs live through the call.
        let question = unsafe { ScalarOperation::new(opcode, operation.param, dtype, inputs) };
        // An operation that fails here fails again in its batch, which reports it.
        let answer = evaluator.evaluate(&question).ok()?;
        (answer.known == 1 && answer.value.dtype == dtype as u8).then_some(answer.value)
    }

    /// May an array's only element be given a value, without anybody who looks at its memory?
    pub(crate) fn takes_value(&self, handle: u32) -> bool {
        let handle = self.handles.at(handle);
        let base = self.bases.at(handle.base);
        base.base.len == 1 && handle.view.len == 1 && self.is_free_standing(handle.base)
    }

    /// Gives an array of one element a value.
    pub(crate) fn set_value(&mut self, handle: u32, value: Constant) {
        let base = self.handles.at(handle).base;
        self.forget_value(base);
        self.bases.at_mut(base).scalar = Some(Scalar { value, written: false });
        self.unwritten += 1;
    }

    /// Notes the value of an array that was read.
    pub(crate) fn note_value(&mut self, handle: u32, value: Constant) {
        if self.takes_value(handle) && self.running.as_ref().is_some_and(|running| running.evaluator.is_some()) {
            let pending = self.first_pending();
            let entry = self.bases.at_mut(self.handles.at(handle).base);
            // An operation recorded meanwhile has written another value.
            if entry.scalar.is_none() && entry.written < pending {
                entry.scalar = Some(Scalar { value, written: true });
            }
        }
    }

    /// Forgets the settled data and the known value of a base that is changed elsewhere, or ends.
    #[inline]
    pub(crate) fn forget_value(&mut self, base: u32) {
        self.forget_own(base);
        if let Some(scalar) = self.bases.at_mut(base).scalar.take() {
            self.unwritten -= u64::from(!scalar.written);
        }
    }

    /// Gives the stack the known value or settled data of a base, or records its recipe, before other uses of it.
    #[inline]
    pub(crate) fn settle(&mut self, base: u32) {
        if self.unwritten > 0
            && let Some(scalar) = self.bases.at_mut(base).scalar.as_mut().filter(|scalar| !scalar.written)
        {
            scalar.written = true;
            let value = scalar.value;
            self.unwritten -= 1;
            self.write_value(base, value);
        } else if self.unwritten > 0 && !self.make_of_recipe(base) {
            self.give(base);
        }
    }

    #[cold]
    fn write_value(&mut self, base: u32, value: Constant) {
        let view = SmallView::contiguous(&[]);
        let index = self.enter_base(base);
        let to = Operand::view(self.builder.intern_view(index, &view));
        let from = self.builder.push_constant(value);
        let epoch = self.builder.epoch;
        let entry = self.bases.at_mut(base);
        entry.written = epoch;
        entry.base.row_hint = 1;
        self.builder.batch.bases[index as usize].row_hint = 1;
        self.builder.push_instr(Instr::new(Opcode::Copy, &[to, from]), view.hash);
    }
}
