//! Operations on little computed data run immediately, by the stack's engine.
//!
//! The inputs must be numbers, known scalars or settled, and the output settled, new, or overwritten as a whole. The other
//! effects of recording, orders of folds and hints among them, are those of a batch, so that later operations see no difference.

pub(crate) mod at_hand;
pub(crate) mod hand;
pub(crate) mod here;
pub(crate) mod product;
pub(crate) mod scalars;
pub(crate) mod settled;
pub(crate) mod settling;

use crate::array::small_view::SmallView;
use crate::immediate::here::Here;
use crate::process::floating::DefaultFloatState;
use crate::record::{INPUTS, Operation, Source};
use crate::state::State;
use crate::state::layout::Layout;
use crate::state::settled::Own;
use bh_bytecode::neutral::neutral_constant;
use bh_bytecode::view::ViewRef;
use bh_bytecode::{Constant, DType, Kind, MAX_RANK, Opcode};
use bh_core::abi::{ImmediateOperation, MethodArray, status};
use bh_core::component::SharedCalls;
use bh_core::error::Result;

/// The output of an operation, and its inputs.
pub(crate) const OPERANDS: usize = INPUTS + 1;

/// A fold takes as long as an elementwise operation on this part of what it folds, and makes little.
const FOLDED: i64 = 4;

/// How many of the elements that an operation of a kind uses count for whether it is carried out at once.
#[inline]
pub(crate) fn part_that_counts(elements: i64, kind: Kind) -> i64 {
    if kind == Kind::Reduction { (elements + FOLDED - 1) / FOLDED } else { elements }
}

/// An input of an operation: a view of elements, or a number.
#[derive(Clone, Copy)]
pub(crate) enum Found<'a> {
    Part(Part<'a>),
    Number(&'a Constant),
}

/// A view of a base, or of a little array that only the bridge knows.
#[derive(Clone, Copy)]
pub(crate) struct Part<'a> {
    /// The base's place, or [`OUTSIDE`].
    base: u32,
    /// The address of the first element, if it is computed.
    data: Option<*const u8>,
    dtype: DType,
    /// Do folds take the elements of its base in the order of memory?
    is_own: bool,
    view: ViewRef<'a>,
}

/// In place of a base that only the bridge knows.
const OUTSIDE: u32 = u32::MAX;

impl<'a> Found<'a> {
    const NOTHING: Found<'static> = Found::Part(Part {
        base: OUTSIDE,
        data: None,
        dtype: DType::Bool,
        is_own: true,
        view: ViewRef { start: 0, shape: &[], stride: &[] },
    });

    /// A view of a little array.
    #[inline]
    fn here(here: &Here, view: ViewRef<'a>) -> Found<'a> {
        let data = Some(here.data(view.start).cast_const());
        Found::Part(Part { base: OUTSIDE, data, dtype: here.dtype(), is_own: true, view })
    }

    #[inline]
    fn dtype(&self) -> DType {
        match self {
            Found::Part(part) => part.dtype,
            Found::Number(constant) => constant.dtype(),
        }
    }
}

/// The operands of an operation as the engine takes them, the output first.
pub(crate) struct Operands {
    all: [MethodArray; OPERANDS],
    inputs: usize,
    /// Strides of inputs that are stretched.
    wide: [Option<[i64; MAX_RANK]>; INPUTS],
}

impl Operands {
    #[inline]
    fn new() -> Operands {
        Operands { all: [NOTHING; OPERANDS], inputs: 0, wide: [None; INPUTS] }
    }

    #[inline]
    fn all(&mut self) -> &mut [MethodArray] {
        &mut self.all[..=self.inputs]
    }
}

/// Where an output's data goes.
enum Target {
    /// Into settled data.
    Settled,
    /// Into memory that becomes the base's.
    New(Own),
    /// Into a known scalar.
    Scalar,
}

impl State {
    /// Carries out an operation whose operands have been checked, if it can be done at once.
    #[inline]
    pub(crate) fn at_once(
        &mut self,
        operation: Operation<'_>,
        told: (u16, Layout),
        out: u32,
        sources: &[Source],
        index_box: Option<(u32, bool)>,
    ) -> Result<bool> {
        if self.handles.at(out).view.len == 0 && operation.opcode.kind() == Kind::Elementwise {
            return Ok(self.skip_empty());
        }
        let kind = operation.opcode.kind();
        if let (Kind::Reduction, &[Source::Handle(input), ..]) = (kind, sources)
            && self.handles.at(input).view.len == 0
        {
            // Such an input has no data that could be there.
            let neutral = neutral_constant(operation.opcode, self.dtype(out));
            let fill = Operation { opcode: Opcode::Copy, param: 0, ..operation };
            return self.at_once(fill, told, out, &[Source::Constant(neutral)], None);
        }
        let (owner, own_first) = match (kind, sources, index_box) {
            (Kind::Elementwise, _, _) => (out, false),
            (Kind::Reduction | Kind::Accumulate, &[Source::Handle(input), ..], _) => (input, true),
            (Kind::Index, _, Some(index_box)) => index_box,
            _ => return Ok(false),
        };
        let on_device = self.is_on_device();
        let handle = |source: &Source| if let Source::Handle(handle) = *source { Some(handle) } else { None };
        let inputs = sources.iter().filter_map(handle);
        // A matrix beside a little vector is much work, which a device does best.
        let is_little = self.is_little(owner, kind)
            && !(on_device && kind == Kind::Reduction && inputs.clone().any(|input| !self.is_little(input, kind)));
        let done = is_little && self.carry_out(operation, told, out, (owner, own_first), sources)?;
        if !done {
            self.little.count(is_little);
            if on_device {
                inputs.chain([out]).for_each(|handle| self.weigh_use(handle, is_little));
            }
            if kind == Kind::Elementwise {
                self.note_link(out, kind);
            }
        }
        Ok(done)
    }

    /// As [`State::at_once`], for an extension method with one output, which overlaps no input. Failures are left to a batch.
    pub(crate) fn method_at_once(&mut self, operation: Operation<'_>, out: u32, sources: &[Source]) -> bool {
        if sources.len() >= OPERANDS || !self.is_little(out, Kind::Extension) {
            return false;
        }
        let fits = |source: &Source| match *source {
            Source::Handle(handle) => self.is_little(handle, Kind::Extension) && !self.needs_copy(out, handle, true),
            Source::Constant(_) => true,
        };
        let mut operands = Operands::new();
        let inputs = sources.iter().map(|source| self.found_source(source));
        sources.iter().all(fits)
            && gather(inputs, &[], u32::MAX, &mut operands).is_some()
            && self.finish_into(operation, (0, Layout::default()), out, operands.all()).unwrap_or(false)
    }

    /// Counts an operation without elements as carried out, where operations are.
    #[cold]
    fn skip_empty(&mut self) -> bool {
        let skips = self.works_at_once();
        self.recorded += u64::from(skips);
        self.immediate += u64::from(skips);
        skips
    }

    /// As [`State::at_once`], for a generator: `numbers` and the first of them are the elements' positions in its sequence.
    pub(crate) fn generate_at_once(
        &mut self,
        operation: Operation<'_>,
        out: u32,
        (first, numbers): (i64, &SmallView),
        key: Option<Constant>,
    ) -> bool {
        if !self.is_little(out, Kind::Generator) {
            return false;
        }
        let first = [first];
        let mut operands = [NOTHING, array(numbers, first.as_ptr().cast_mut().cast(), DType::I64), NOTHING];
        let key = key.as_ref().map(|key| element(key.bits.as_ptr().cast(), key.dtype()));
        let count = 2 + usize::from(key.is_some());
        operands[2] = key.unwrap_or(NOTHING);
        self.finish_into(operation, (0, Layout::default()), out, &mut operands[..count]).unwrap_or(false)
    }

    /// Is an array small enough for operations of this kind at once?
    #[inline]
    fn is_little(&self, handle: u32, kind: Kind) -> bool {
        let elements = part_that_counts(self.handles.at(handle).view.len, kind);
        let bytes = elements as u64 * self.dtype(handle).size() as u64;
        self.settles(bytes).is_some() && !self.is_in_chain(bytes, kind)
    }

    /// The shape of `owner` is that of the operation's loop; with `own_first`, the first input keeps its own.
    fn carry_out(
        &mut self,
        operation: Operation<'_>,
        told: (u16, Layout),
        out: u32,
        (owner, own_first): (u32, bool),
        sources: &[Source],
    ) -> Result<bool> {
        let mut operands = Operands::new();
        let inputs = sources.iter().map(|source| self.found_source(source));
        let shape = self.handles.at(owner).view.shape();
        if gather(inputs, shape, u32::from(own_first), &mut operands).is_none() {
            return Ok(false);
        }
        self.finish_into(operation, told, out, operands.all())
    }

    fn found_source<'a>(&'a self, source: &'a Source) -> Found<'a> {
        match source {
            Source::Constant(constant) => Found::Number(constant),
            Source::Handle(handle) => {
                let handle = self.handles.at(*handle);
                self.found_part(handle.base, (&handle.view).into())
            }
        }
    }

    /// A view of a base, for as long as bases stay where they are.
    #[inline]
    fn found_part<'a>(&self, base: u32, view: ViewRef<'a>) -> Found<'a> {
        let entry = self.bases.at(base);
        let (data, dtype) = (entry.readable(view.start), entry.base.dtype());
        Found::Part(Part { base, data, dtype, is_own: entry.layout.is_own(), view })
    }

    /// Carries out an operation whose inputs are there.
    pub(crate) fn finish_into(
        &mut self,
        operation: Operation<'_>,
        (order, layout): (u16, Layout),
        out: u32,
        operands: &mut [MethodArray],
    ) -> Result<bool> {
        let Some(target) = self.target(out) else { return Ok(false) };
        let keeps = operation.opcode.kind() == Kind::Index && operation.opcode != Opcode::Gather;
        if keeps && !matches!(target, Target::Settled) {
            return Ok(false);
        }
        let mut scalar = [0u64; 2];
        let (view, dtype) = (&self.handles.at(out).view, self.dtype(out));
        let first = view.start as isize * dtype.size() as isize;
        let data = match &target {
            Target::Scalar => scalar.as_mut_ptr().cast(),
            Target::New(own) => own.data().wrapping_offset(first),
            Target::Settled => self.data_at_hand(out).map_or(std::ptr::null_mut(), <*const u8>::cast_mut),
        };
        operands[0] = array(view, data, dtype);
        let done = self.call(operation, order, operands)?;
        if done {
            self.finish_at_once(out, target, layout, scalar);
            self.note_link(out, operation.opcode.kind());
        }
        Ok(done)
    }

    /// Asks the engine.
    pub(crate) fn call(&self, operation: Operation<'_>, order: u16, operands: &[MethodArray]) -> Result<bool> {
        let Some(immediate) = self.running.as_ref().and_then(|running| running.immediate.as_ref()) else {
            return Ok(false);
        };
        ask(&*immediate.calls, operation, order, operands)
    }

    /// The address of an array's element (0, …, 0), if its data is computed.
    #[inline]
    pub(crate) fn data_at_hand(&self, handle: u32) -> Option<*const u8> {
        let handle = self.handles.at(handle);
        self.bases.at(handle.base).at_hand(handle.view.start)
    }

    /// Where the result of an operation at once would go, if it can.
    #[inline]
    fn target(&self, out: u32) -> Option<Target> {
        let handle = self.handles.at(out);
        let entry = self.bases.at(handle.base);
        if !self.is_free_standing(handle.base) {
            return None;
        }
        if let Some(settled) = &entry.settled {
            return settled.is_writable().then_some(Target::Settled);
        }
        let whole = handle.view.len == entry.base.len;
        if entry.base.len == 1 {
            return whole.then_some(Target::Scalar);
        }
        if entry.known && !whole {
            return None;
        }
        self.make_own(handle.base, !whole).map(Target::New)
    }

    /// Notes the result of an operation that was carried out.
    #[inline]
    fn finish_at_once(&mut self, out: u32, target: Target, layout: Layout, scalar: [u64; 2]) {
        let base = self.handles.at(out).base;
        match target {
            Target::Settled => self.note_change(base),
            Target::New(own) => self.set_own(base, own, false),
            Target::Scalar => {
                let mut bytes = [0; 16];
                bytes[..8].copy_from_slice(&scalar[0].to_ne_bytes());
                bytes[8..].copy_from_slice(&scalar[1].to_ne_bytes());
                self.set_value(out, Constant::from_bytes(self.dtype(out), &bytes));
            }
        }
        self.hint_rows(out);
        self.bases.at_mut(base).layout = layout;
        self.recorded += 1;
        self.immediate += 1;
    }
}

/// Asks an engine.
#[inline]
fn ask(calls: &dyn SharedCalls, operation: Operation<'_>, order: u16, operands: &[MethodArray]) -> Result<bool> {
    let _state = DefaultFloatState::enter();
    // SAFETY: the operands are views of data that lives, and stays as it is, through the call.
    let question = unsafe { ImmediateOperation::new(operation.opcode, operation.param, order, operands) };
    match calls.immediate(&question) {
        Err(error) if error.status == status::BOUNDS => Err(operation.failed(error)),
        // Other failures repeat in the operation's batch, which reports them.
        answer => Ok(answer.unwrap_or(false)),
    }
}

/// The inputs of an operation as the engine takes them, if their data is computed, for as long as bases, handles and
/// `operands` stay where they are. They are stretched to a shape, except those of which `own` has the bits.
#[inline]
fn gather<'a>(inputs: impl Iterator<Item = Found<'a>>, shape: &[i64], own: u32, operands: &mut Operands) -> Option<()> {
    for (at, input) in inputs.enumerate() {
        operands.inputs = at + 1;
        operands.all[at + 1] = match input {
            Found::Number(constant) => element(constant.bits.as_ptr().cast(), constant.dtype()),
            Found::Part(Part { data, dtype, view, .. }) => {
                let data = data?;
                if own >> at & 1 == 1 || view.shape == shape {
                    array_of(view.shape, view.stride, data, dtype)
                } else if view.shape.iter().all(|&extent| extent == 1) {
                    element(data, dtype)
                } else {
                    array_of(shape, operands.wide[at].insert(stretch(view, shape.len())), data, dtype)
                }
            }
        };
    }
    Some(())
}

pub(crate) const NOTHING: MethodArray =
    MethodArray { data: std::ptr::null_mut(), shape: std::ptr::null(), stride: std::ptr::null(), rank: 0, dtype: 0 };

/// One element, for the whole of an operation.
pub(crate) fn element(data: *const u8, dtype: DType) -> MethodArray {
    MethodArray { data: data.cast_mut().cast(), dtype: dtype as u32, ..NOTHING }
}

/// An array on data that begins with its element (0, …, 0).
fn array(view: &SmallView, data: *mut u8, dtype: DType) -> MethodArray {
    array_of(view.shape(), view.stride(), data, dtype)
}

/// The strides of a view that is broadcast to `rank` dimensions.
fn stretch(view: ViewRef<'_>, rank: usize) -> [i64; MAX_RANK] {
    let mut strides = [0; MAX_RANK];
    let missing = rank - view.shape.len();
    for (axis, (&extent, &stride)) in view.shape.iter().zip(view.stride).enumerate() {
        strides[missing + axis] = if extent == 1 { 0 } else { stride };
    }
    strides
}

/// As [`array`], of extents and strides that live as long as the operation.
#[inline]
pub(crate) fn array_of(shape: &[i64], stride: &[i64], data: *const u8, dtype: DType) -> MethodArray {
    let (shape, stride, rank) = (shape.as_ptr(), stride.as_ptr(), shape.len() as u32);
    MethodArray { data: data.cast_mut().cast(), shape, stride, rank, dtype: dtype as u32 }
}
