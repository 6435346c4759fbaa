//! The short way of elementwise operations on small arrays that are computed already, without a place in the program, as nothing is
//! recorded: on parts of arrays without handles of their own, and on whole arrays.
//!
//! Operations that have to be recorded or fail, and folds in other orders than C's go the general way, as if nothing had been
//! tried.

use crate::array::small_view::{SmallView, goes_in_c_order};
use crate::immediate::here::{Here, Made, Store, contiguous_strides};
use crate::immediate::{Found, Operands, array_of, ask, gather};
use crate::record::check::{check_param, result_type};
use crate::record::power::whole_exponent;
use crate::record::rules::with_rule_of;
use crate::record::{INPUTS, Input, Operation};
use crate::state::State;
use crate::state::layout::Layout;
use crate::state::settled::Settled;
use crate::{Location, Options, Recorder};
use bh_bytecode::batch::MAX_OPERANDS;
use bh_bytecode::view::{ViewRef, element_count};
use bh_bytecode::{Constant, DType, Kind, Opcode, View};
use bh_core::reserve;

/// An input of an operation.
#[derive(Clone, Copy)]
pub enum Known<'a> {
    /// A view of an array's base.
    Part(Store<'a>, &'a View),
    /// A number.
    Number(&'a Constant),
}

/// Inputs that were found, in the first places.
type All<'a> = [Found<'a>; INPUTS];

impl Recorder {
    /// An elementwise operation into a new array of this type and shape, to which the inputs broadcast: if all inputs are little
    /// arrays, into such a one. `None` if it has to be recorded.
    #[inline]
    pub fn make_at_hand(&self, opcode: Opcode, dtype: DType, inputs: &[Known<'_>], shape: &[i64]) -> Option<Made> {
        let len = element_count(shape)?;
        if let Some(made) = self.make_here(opcode, dtype, inputs, (shape, len)) {
            return Some(Made::Here(made));
        }
        let mut state = self.state();
        let (begin, mut operands) = (state.clock(), Operands::new());
        state.keep_places();
        let all = state.found(inputs)?;
        let operation = state.begin((opcode, 0), dtype, &all[..inputs.len()], (shape, len), &mut operands)?;
        let out = state.make(operation, dtype, SmallView::contiguous(shape), &mut operands)?;
        state.count_recording(begin);
        Some(Made::Handle(state.name(out)))
    }

    /// An elementwise operation into a view of an array's base, to whose shape the inputs broadcast. `None` if it has to be
    /// recorded.
    #[inline]
    pub fn change_at_hand(&self, opcode: Opcode, out: (Store<'_>, &View), inputs: &[Known<'_>]) -> Option<()> {
        let array = match out.0 {
            Store::Here(here) => return self.change_here(opcode, (here, out.1), inputs),
            Store::Handle(array) => array,
        };
        let mut state = self.state();
        let (begin, handle) = (state.clock(), state.find(array).ok()?);
        let all = state.found(inputs)?;
        let bytes = state.change((opcode, 0), (handle, out.1.into()), &all[..inputs.len()])?;
        state.note_changed(handle, bytes);
        state.count_recording(begin);
        Some(())
    }

    /// As [`Recorder::make_at_hand`], on little arrays only, without the lock.
    #[inline]
    fn make_here(
        &self,
        opcode: Opcode,
        dtype: DType,
        inputs: &[Known<'_>],
        (shape, len): (&[i64], i64),
    ) -> Option<Box<Here>> {
        let all = found_here(inputs)?;
        let inside = self.gate.enter()?;
        let engine = inside.engine().filter(|engine| engine.takes(len as u64 * dtype.size() as u64))?;
        let mut operands = Operands::new();
        let operation = prepare(&engine.options, (opcode, 0), dtype, &all[..inputs.len()], shape, &mut operands)?;
        let made = Here::new(&engine.services, &engine.ids, dtype, len)?;
        let stride = contiguous_strides(shape);
        operands.all()[0] = array_of(shape, &stride[..shape.len()], made.data(0), dtype);
        if !matches!(ask(&*engine.calls, operation, 0, operands.all()), Ok(true)) {
            made.end();
            return None;
        }
        inside.count();
        Some(made)
    }

    /// As [`Recorder::change_at_hand`], of little arrays only, without the lock. The view has each element once.
    #[inline]
    fn change_here(&self, opcode: Opcode, (out, view): (&Here, &View), inputs: &[Known<'_>]) -> Option<()> {
        let all = found_here(inputs)?;
        let (view, dtype): (ViewRef<'_>, DType) = (view.into(), out.dtype());
        // Elements that are read before they are written may be the same.
        let meets = |input: &Known<'_>| match input {
            Known::Part(Store::Here(here), part) => std::ptr::eq(*here, out) && !same(&(*part).into(), &view),
            _ => false,
        };
        if inputs.iter().any(meets) {
            return None;
        }
        let inside = self.gate.enter()?;
        let len = view.shape.iter().product::<i64>();
        let engine = inside.engine().filter(|engine| engine.takes(len as u64 * dtype.size() as u64))?;
        reserve::check().ok()?;
        let mut operands = Operands::new();
        let operation = prepare(&engine.options, (opcode, 0), dtype, &all[..inputs.len()], view.shape, &mut operands)?;
        operands.all()[0] = array_of(view.shape, view.stride, out.data(view.start), dtype);
        let done = matches!(ask(&*engine.calls, operation, 0, operands.all()), Ok(true));
        done.then(|| inside.count())
    }
}

/// Inputs that are little arrays or numbers; `None` if one is behind a handle.
#[inline]
fn found_here<'a>(inputs: &[Known<'a>]) -> Option<All<'a>> {
    let mut all = [Found::NOTHING; INPUTS];
    for (found, input) in all.iter_mut().zip(inputs) {
        *found = match *input {
            Known::Part(Store::Here(here), view) => Found::here(here, view.into()),
            Known::Part(Store::Handle(_), _) => return None,
            Known::Number(constant) => Found::Number(constant),
        };
    }
    Some(all)
}

impl State {
    /// An elementwise operation on whole arrays of one shape, and numbers, into a new array. `None` if it has to go the general
    /// way.
    #[inline]
    pub(crate) fn make_of(
        &mut self,
        (opcode, param): (Opcode, u16),
        dtype: Option<DType>,
        inputs: &[Input],
    ) -> Option<u32> {
        if opcode.kind() != Kind::Elementwise || inputs.len() > INPUTS {
            return None;
        }
        self.keep_places();
        let mut operands = Operands::new();
        let (all, model) = self.found_whole(inputs, None)?;
        let dtype = dtype.or_else(|| result_type(opcode, &types_of(&all[..inputs.len()])[..inputs.len()]))?;
        let model = &self.handles.at(model?).view;
        let shape = (model.shape(), model.len);
        let operation = self.begin((opcode, param), dtype, &all[..inputs.len()], shape, &mut operands)?;
        let view = model.as_new();
        self.make(operation, dtype, view, &mut operands)
    }

    /// As [`State::make_of`], into an array.
    #[inline]
    pub(crate) fn change_of(&mut self, what: (Opcode, u16), out: u32, inputs: &[Input]) -> Option<()> {
        if what.0.kind() != Kind::Elementwise || inputs.len() > INPUTS {
            return None;
        }
        let (all, _) = self.found_whole(inputs, Some(out))?;
        let view = (&self.handles.at(out).view).into();
        let bytes = self.change(what, (out, view), &all[..inputs.len()])?;
        self.note_changed(out, bytes);
        Some(())
    }

    /// Keeps handles and bases of later results in place: views and known scalars lie among them.
    #[inline]
    fn keep_places(&mut self) {
        self.handles.reserve(1);
        self.bases.reserve(1);
    }

    #[inline]
    pub(super) fn found<'a>(&self, inputs: &[Known<'a>]) -> Option<All<'a>> {
        let mut all = [Found::NOTHING; INPUTS];
        for (found, input) in all.iter_mut().zip(inputs) {
            *found = match *input {
                Known::Part(Store::Handle(array), view) => {
                    self.found_part(self.handles.at(self.find(array).ok()?).base, view.into())
                }
                Known::Part(Store::Here(here), view) => Found::here(here, view.into()),
                Known::Number(constant) => Found::Number(constant),
            };
        }
        Some(all)
    }

    /// Inputs that are numbers or whole arrays of one shape: that of the handle `model`, or else of the first array, whose handle is
    /// returned.
    #[inline]
    fn found_whole<'a>(&'a self, inputs: &'a [Input], mut model: Option<u32>) -> Option<(All<'a>, Option<u32>)> {
        let mut all = [Found::NOTHING; INPUTS];
        for (found, input) in all.iter_mut().zip(inputs) {
            *found = match input {
                Input::Constant(constant) => Found::Number(constant),
                Input::Array(array) => {
                    let handle = self.find(*array).ok()?;
                    let shown = self.handles.at(handle);
                    if self.handles.at(*model.get_or_insert(handle)).view.shape() != shown.view.shape() {
                        return None;
                    }
                    self.found_part(shown.base, (&shown.view).into())
                }
            };
        }
        Some((all, model))
    }

    /// As [`prepare`], of an operation that is little.
    #[inline]
    fn begin(
        &self,
        (opcode, param): (Opcode, u16),
        dtype: DType,
        inputs: &[Found<'_>],
        (shape, len): (&[i64], i64),
        operands: &mut Operands,
    ) -> Option<Operation<'static>> {
        let bytes = (len as u64).saturating_mul(dtype.size() as u64);
        self.settles(bytes).filter(|_| len > 0 && !self.is_in_chain(bytes, Kind::Elementwise))?;
        let options = &self.running.as_ref()?.options;
        prepare(options, (opcode, param), dtype, inputs, shape, operands)
    }

    /// Carries out an operation whose inputs are gathered into a new array.
    #[inline]
    fn make(
        &mut self,
        operation: Operation<'_>,
        dtype: DType,
        view: SmallView,
        operands: &mut Operands,
    ) -> Option<u32> {
        let len = view.len;
        let out = self.new_array(dtype, view, len).ok()?;
        if matches!(self.finish_into(operation, (0, Layout::default()), out, operands.all()), Ok(true)) {
            return Some(out);
        }
        self.release(out);
        None
    }

    /// Carries out an elementwise operation into a view of an array's settled data, to which the inputs broadcast. Tells how many
    /// bytes it has written.
    #[inline]
    fn change(&self, what: (Opcode, u16), (out, view): (u32, ViewRef<'_>), inputs: &[Found<'_>]) -> Option<u64> {
        let handle = self.handles.at(out);
        let entry = self.bases.at(handle.base);
        let writable = entry.settled.as_ref().is_some_and(Settled::is_writable);
        let fits = writable && handle.view.injective && entry.base.row_hint != 0 && self.is_free_standing(handle.base);
        // Elements that are read before they are written may be the same.
        let meets = |input: &Found<'_>| match input {
            Found::Part(part) => part.base == handle.base && !same(&part.view, &view),
            Found::Number(_) => false,
        };
        if !fits || inputs.iter().any(meets) || reserve::check().is_err() {
            return None;
        }
        let (len, dtype) = (view.shape.iter().product(), entry.base.dtype());
        let mut operands = Operands::new();
        let operation = self.begin(what, dtype, inputs, (view.shape, len), &mut operands)?;
        operands.all()[0] = array_of(view.shape, view.stride, entry.readable(view.start)?, dtype);
        let done = self.call(operation, 0, operands.all());
        matches!(done, Ok(true)).then(|| len as u64 * dtype.size() as u64)
    }

    /// Notes an operation that has changed settled data in place.
    #[inline]
    fn note_changed(&mut self, out: u32, bytes: u64) {
        let base = self.handles.at(out).base;
        self.note_change(base);
        self.note_link_of(bytes, Kind::Elementwise);
        self.bases.at_mut(base).layout = Layout::default();
        self.recorded += 1;
        self.immediate += 1;
    }
}

#[inline]
fn types_of(all: &[Found<'_>]) -> [DType; MAX_OPERANDS] {
    let mut types = [DType::Bool; MAX_OPERANDS];
    types.iter_mut().zip(all).for_each(|(dtype, found)| *dtype = found.dtype());
    types
}

/// The operation as the engine takes it, on inputs that broadcast to a shape, and which `operands` gets. `None` unless it is legal
/// and its inputs are computed already, in C's order.
#[inline]
fn prepare(
    options: &Options,
    (opcode, param): (Opcode, u16),
    dtype: DType,
    inputs: &[Found<'_>],
    shape: &[i64],
    operands: &mut Operands,
) -> Option<Operation<'static>> {
    let is_plain = |input: &Found<'_>| match input {
        Found::Part(part) => part.is_own && goes_in_c_order(part.view.shape, part.view.stride),
        Found::Number(_) => true,
    };
    let types = types_of(inputs);
    if !opcode.check_types(dtype, &types[..inputs.len()])
        || check_param(opcode, param, 0).is_err()
        || !inputs.iter().all(is_plain)
    {
        return None;
    }
    let squared;
    let (opcode, param, inputs): (Opcode, u16, &[Found<'_>]) = match (opcode, inputs) {
        (Opcode::Power, [base, Found::Number(exponent)]) => match whole_exponent(**exponent) {
            None => (opcode, param, inputs),
            Some(whole) => {
                squared = [*base; 2];
                // Squares are products, which the engine computes sooner.
                let is_product = whole == 2 && !dtype.is_complex();
                if is_product { (Opcode::Multiply, 0, &squared[..]) } else { (Opcode::Powi, whole, &squared[..1]) }
            }
        },
        _ => (opcode, param, inputs),
    };
    gather(inputs.iter().copied(), shape, 0, operands)?;
    let operation = Operation { opcode, param, location: Location::UNKNOWN };
    Some(with_rule_of(options, operation, dtype, || types.first().copied()))
}

fn same(a: &ViewRef<'_>, b: &ViewRef<'_>) -> bool {
    (a.start, a.shape, a.stride) == (b.start, b.shape, b.stride)
}
