//! The straight ways of elementwise operations on little data that is at hand, without a place in the program, as nothing is
//! recorded: on parts of arrays without handles of their own, and on whole arrays.
//!
//! What has to be recorded, what fails, and folds' orders other than C's are left to the general way, which is as if nothing
//! had been tried.

use crate::array::small_view::goes_in_c_order;
use crate::immediate::{NOTHING, OPERANDS, array_of, element};
use crate::record::check::{check_param, result_type};
use crate::record::power::whole_exponent;
use crate::record::{INPUTS, Input, Operation};
use crate::state::State;
use crate::state::layout::Layout;
use crate::{ArrayId, Location, Recorder};
use bh_bytecode::batch::MAX_OPERANDS;
use bh_bytecode::view::element_count;
use bh_bytecode::{Constant, DType, Kind, MAX_RANK, Opcode, View};
use bh_core::abi::MethodArray;
use bh_core::reserve;

/// An input of an operation.
#[derive(Clone, Copy)]
pub enum Known<'a> {
    /// A view of an array's base.
    Part(ArrayId, &'a View),
    /// A number.
    Number(&'a Constant),
}

/// Strides of inputs that are broadcast.
type Stretched = [Option<[i64; MAX_RANK]>; INPUTS];

impl Recorder {
    /// An elementwise operation into a new array of this type and shape, to which the inputs broadcast. `None` if it has to be
    /// recorded.
    #[inline]
    pub fn make_at_hand(&self, opcode: Opcode, dtype: DType, inputs: &[Known<'_>], shape: &[i64]) -> Option<ArrayId> {
        let len = element_count(shape).filter(|&len| len > 0)?;
        let mut state = self.state();
        let (operation, inputs) = state.begin_at_hand(opcode, dtype, inputs, len)?;
        let begin = state.clock();
        // Known scalars lie among the bases, and must stay where they are while the result is made.
        state.bases.reserve(1);
        let (mut stretched, mut operands) = (Stretched::default(), [NOTHING; OPERANDS]);
        state.gather_inputs(operation.opcode, dtype, inputs, shape, (&mut operands, &mut stretched))?;
        let out = state.new_contiguous(dtype, shape, len).ok()?;
        let told = (0, Layout::default());
        let done = state.finish_into(operation, told, out, &mut operands[..=inputs.len()]);
        if !matches!(done, Ok(true)) {
            state.release(out);
            return None;
        }
        state.count_recording(begin);
        Some(state.name(out))
    }

    /// An elementwise operation into a view of an array's base, to whose shape the inputs broadcast. `None` if it has to be
    /// recorded.
    #[inline]
    pub fn change_at_hand(&self, opcode: Opcode, out: (ArrayId, &View), inputs: &[Known<'_>]) -> Option<()> {
        let ((array, view), mut state) = (out, self.state());
        let handle = state.find(array).ok()?;
        let (base, dtype) = (state.handles.at(handle).base, state.dtype(handle));
        let len = Some(view.len()).filter(|&len| len > 0)?;
        let (operation, inputs) = state.begin_at_hand(opcode, dtype, inputs, len)?;
        let begin = state.clock();
        let entry = state.bases.at(base);
        let writable = entry.settled.as_ref().is_some_and(|settled| settled.is_writable());
        let fits = writable && state.is_free_standing(base) && entry.base.row_hint != 0;
        if !fits || !state.handles.at(handle).view.injective {
            return None;
        }
        let data = entry.readable(view.start())?;
        let meets = |input: &Known<'_>| match input {
            // The same elements are read before they are written.
            Known::Part(other, part) => {
                *part != view && state.find(*other).is_ok_and(|other| state.handles.at(other).base == base)
            }
            Known::Number(_) => false,
        };
        if inputs.iter().any(meets) {
            return None;
        }
        let (mut stretched, mut operands) = (Stretched::default(), [NOTHING; OPERANDS]);
        state.gather_inputs(operation.opcode, dtype, inputs, view.shape(), (&mut operands, &mut stretched))?;
        operands[0] = array_of(view.shape(), view.stride(), data, dtype);
        if !matches!(state.call(operation, 0, &operands[..=inputs.len()]), Ok(true)) {
            return None;
        }
        state.note_change(base);
        state.note_link_of(view.len() as u64 * dtype.size() as u64, Kind::Elementwise);
        state.bases.at_mut(base).layout = Layout::default();
        state.recorded += 1;
        state.immediate += 1;
        state.count_recording(begin);
        Some(())
    }
}

impl State {
    /// Is an operation with this number of elements little? What it does, and on what: powers may be products.
    #[inline]
    fn begin_at_hand<'a, 'b>(
        &self,
        opcode: Opcode,
        dtype: DType,
        inputs: &'a [Known<'b>],
        len: i64,
    ) -> Option<(Operation<'static>, &'a [Known<'b>])> {
        let bytes = (len as u64).saturating_mul(dtype.size() as u64);
        self.settles(bytes).filter(|_| !self.is_in_chain(bytes, Kind::Elementwise))?;
        reserve::check().ok()?;
        let (opcode, param, inputs) = match inputs {
            [base, Known::Number(exponent)] if opcode == Opcode::Power => match whole_exponent(**exponent) {
                Some(param) => (Opcode::Powi, param, std::slice::from_ref(base)),
                None => (opcode, 0, inputs),
            },
            _ => (opcode, 0, inputs),
        };
        let first = || match inputs.first()? {
            Known::Number(constant) => Some(constant.dtype()),
            Known::Part(array, _) => Some(self.dtype(self.find(*array).ok()?)),
        };
        Some((self.with_rule(Operation { opcode, param, location: Location::UNKNOWN }, dtype, first), inputs))
    }

    /// The inputs as the engine takes them, if all are at hand, of types that the operation takes, and in C's order.
    #[inline]
    fn gather_inputs(
        &self,
        opcode: Opcode,
        dtype: DType,
        inputs: &[Known<'_>],
        shape: &[i64],
        (operands, stretched): (&mut [MethodArray; OPERANDS], &mut Stretched),
    ) -> Option<()> {
        let mut types = [DType::Bool; MAX_OPERANDS];
        for (at, (input, stretched)) in inputs.iter().zip(stretched).enumerate() {
            (operands[at + 1], types[at]) = match input {
                Known::Number(constant) => (element(constant.bits.as_ptr().cast(), constant.dtype()), constant.dtype()),
                Known::Part(array, view) => {
                    let entry = self.bases.at(self.handles.at(self.find(*array).ok()?).base);
                    let (own, stride) = (view.shape(), view.stride());
                    if !entry.layout.is_own() || !goes_in_c_order(own, stride) {
                        return None;
                    }
                    let (data, dtype) = (entry.readable(view.start())?, entry.base.dtype());
                    let operand = if own == shape {
                        array_of(shape, stride, data, dtype)
                    } else if view.len() == 1 {
                        element(data, dtype)
                    } else {
                        array_of(shape, stretched.insert(stretch(view, shape.len())), data, dtype)
                    };
                    (operand, dtype)
                }
            };
        }
        opcode.check_types(dtype, &types[..inputs.len()]).then_some(())
    }

    /// An elementwise operation on whole arrays of one shape, and numbers, into another one or a new one. `None` if it has to be
    /// done in the general way.
    #[inline]
    pub(crate) fn whole_at_hand(
        &mut self,
        (opcode, param): (Opcode, u16),
        dtype: Option<DType>,
        out: Option<u32>,
        inputs: &[Input],
    ) -> Option<u32> {
        if opcode.kind() != Kind::Elementwise || opcode == Opcode::Power || inputs.len() > INPUTS {
            return None;
        }
        let (mut handles, mut types) = ([u32::MAX; INPUTS], [DType::Bool; INPUTS]);
        let mut first = out;
        for (at, input) in inputs.iter().enumerate() {
            let Input::Array(array) = input else { continue };
            let handle = self.find(*array).ok()?;
            (handles[at], types[at]) = (handle, self.dtype(handle));
            let shown = self.handles.at(handle);
            let entry = self.bases.at(shown.base);
            // A single element may be a known scalar, which is computed with otherwise.
            if shown.view.len < 2 || !shown.view.in_c_order || !entry.layout.is_own() || entry.readable(0).is_none() {
                return None;
            }
            match first {
                None => first = Some(handle),
                Some(first) if self.handles.at(first).view.shape() == shown.view.shape() => {}
                Some(_) => return None,
            }
        }
        for (dtype, input) in types.iter_mut().zip(inputs) {
            if let Input::Constant(constant) = input {
                *dtype = constant.dtype();
            }
        }
        let (model, types) = (first?, &types[..inputs.len()]);
        let dtype = match out {
            Some(out) => self.dtype(out),
            None => dtype.or_else(|| result_type(opcode, types))?,
        };
        let len = Some(self.handles.at(model).view.len).filter(|&len| len > 0)?;
        let bytes = len as u64 * dtype.size() as u64;
        self.settles(bytes).filter(|_| !self.is_in_chain(bytes, Kind::Elementwise))?;
        let meets = |out: u32| handles.iter().any(|&other| other != u32::MAX && self.needs_copy(out, other, false));
        let fits = match out {
            Some(out) => self.bases.at(self.handles.at(out).base).settled.is_some() && !meets(out),
            None => true,
        };
        if !fits
            || !opcode.check_types(dtype, types)
            || check_param(opcode, param, 0).is_err()
            || reserve::check().is_err()
        {
            return None;
        }
        let target = match out {
            Some(out) if self.handles.at(out).view.injective => out,
            Some(_) => return None,
            None => {
                let view = self.handles.at(model).view.as_new();
                self.new_array(dtype, view, len).ok()?
            }
        };
        let mut operands = [NOTHING; OPERANDS];
        for ((operand, input), &handle) in operands[1..].iter_mut().zip(inputs).zip(&handles) {
            *operand = match input {
                Input::Constant(constant) => element(constant.bits.as_ptr().cast(), constant.dtype()),
                Input::Array(_) => {
                    let shown = self.handles.at(handle);
                    let entry = self.bases.at(shown.base);
                    let data = entry.readable(shown.view.start).unwrap_or(std::ptr::null());
                    array_of(shown.view.shape(), shown.view.stride(), data, entry.base.dtype())
                }
            };
        }
        let operation = Operation { opcode, param, location: Location::UNKNOWN };
        let operation = self.with_rule(operation, dtype, || types.first().copied());
        let told = (0, Layout::default());
        let done = self.finish_into(operation, told, target, &mut operands[..=inputs.len()]);
        if matches!(done, Ok(true)) {
            return Some(target);
        }
        if out.is_none() {
            self.release(target);
        }
        None
    }
}

/// The strides of a view that is broadcast to `rank` dimensions.
fn stretch(view: &View, rank: usize) -> [i64; MAX_RANK] {
    let mut strides = [0; MAX_RANK];
    let missing = rank - view.rank();
    for (axis, (&extent, &stride)) in view.shape().iter().zip(view.stride()).enumerate() {
        strides[missing + axis] = if extent == 1 { 0 } else { stride };
    }
    strides
}
