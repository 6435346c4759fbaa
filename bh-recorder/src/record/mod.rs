//! Recording of operations: resolves operands, checks them, keeps NumPy's meaning where operands overlap, and appends
//! to the batch.

pub(crate) mod assemble;
pub(crate) mod check;
mod contract;
pub(crate) mod create;
pub(crate) mod extension;
pub(crate) mod location;
pub(crate) mod operate;
pub(crate) mod order;
pub(crate) mod power;
mod repeat;
pub(crate) mod result;
pub(crate) mod rules;
pub(crate) mod special;

use crate::array::small_view::mix;
use crate::batch::recording::takes_any_number;
use crate::record::check::{broadcast_error, broadcasts, check_param, type_error};
use crate::record::power::as_products;
use crate::state::layout::Layout;
use crate::state::{Followup, State};
use crate::{ArrayId, Location};
use bh_bytecode::batch::MAX_OPERANDS;
use bh_bytecode::view::overlap;
use bh_bytecode::{Constant, DType, Instr, Kind, Opcode, Operand, Overlap};
use bh_core::abi::status;
use bh_core::error::{Error, Result};
use bh_core::reserve;

/// An operand of an operation that is recorded.
#[derive(Clone, Copy, Debug)]
pub enum Input {
    /// An array.
    Array(ArrayId),
    /// A number.
    Constant(Constant),
}

/// A resolved [`Input`].
#[derive(Clone, Copy)]
pub(crate) enum Source {
    Handle(u32),
    Constant(Constant),
}

/// A recorded operation, without its operands.
#[derive(Clone, Copy)]
pub(crate) struct Operation<'a> {
    pub(crate) opcode: Opcode,
    pub(crate) param: u16,
    pub(crate) location: Location<'a>,
}

impl Operation<'_> {
    pub(crate) fn error(&self, code: i32, text: impl std::fmt::Display) -> Error {
        Error::new(code, format!("{}: {text}", self.opcode.name()))
    }

    /// The failure of an operation that was carried out at once, as it would have been told by its batch.
    #[cold]
    pub(crate) fn failed(&self, error: Error) -> Error {
        let Location { file, line } = self.location;
        let origin = (!file.is_empty()).then(|| (String::from_utf8_lossy(file).into_owned(), line));
        Error { text: format!("{}: {}", self.opcode.name(), error.text), origin, ..error }
    }
}

/// The most inputs of an operation of the opcode table, and one more.
pub(crate) const INPUTS: usize = 4;

/// The resolved inputs of an operation of the opcode table, filled in place.
pub(crate) struct Sources {
    count: usize,
    all: [Source; INPUTS],
}

impl Sources {
    #[inline]
    pub(crate) fn new() -> Sources {
        Sources { count: 0, all: [Source::Handle(0); INPUTS] }
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> &[Source] {
        &self.all[..self.count]
    }

    /// Takes the inputs, whose handles must be of arrays that may be read.
    #[inline(always)]
    pub(crate) fn resolve(&mut self, state: &State, opcode: Opcode, inputs: &[Input]) -> Result<()> {
        if inputs.len() > INPUTS {
            let (name, taken) = (opcode.name(), opcode.info().inputs);
            let text = format!("{name}: {} inputs given, but it takes {taken}", inputs.len());
            return Err(Error::new(status::ARGUMENT, text));
        }
        for (position, input) in inputs.iter().enumerate() {
            self.all[position] = state.resolve_one(opcode, position, input)?;
        }
        self.count = inputs.len();
        Ok(())
    }
}

impl State {
    #[inline(always)]
    pub(crate) fn resolve_one(&self, opcode: Opcode, position: usize, input: &Input) -> Result<Source> {
        match *input {
            Input::Constant(constant) => Ok(Source::Constant(constant)),
            Input::Array(array) => {
                let handle = self.find(array).map_err(|error| operand_error(opcode, position, error))?;
                if self.bases.at(self.handles.at(handle).base).mapped_for_writing {
                    return Err(operand_error(opcode, position, mapped()));
                }
                Ok(Source::Handle(handle))
            }
        }
    }

    pub(crate) fn check_writable(&self, operation: Operation<'_>, out: u32) -> Result<()> {
        let handle = self.handles.at(out);
        if self.bases.at(handle.base).maps > 0 {
            return Err(operation.error(status::ARGUMENT, format_args!("the output {}", mapped().text)));
        }
        if !handle.view.injective {
            let text = format!("the output view maps several elements to one place: {:?}", handle.view.view());
            return Err(operation.error(status::ARGUMENT, text));
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn type_of(&self, source: &Source) -> DType {
        match source {
            Source::Handle(handle) => self.dtype(*handle),
            Source::Constant(constant) => constant.dtype(),
        }
    }

    #[inline]
    pub(crate) fn types(&self, sources: &[Source]) -> [DType; MAX_OPERANDS] {
        let mut types = [DType::Bool; MAX_OPERANDS];
        for (dtype, source) in types.iter_mut().zip(sources) {
            *dtype = self.type_of(source);
        }
        types
    }

    /// Records an operation of the opcode table into an array.
    #[inline]
    pub(crate) fn record(&mut self, operation: Operation<'_>, out: u32, sources: &[Source]) -> Result<Followup> {
        if self.recipes.chosen > 0
            && let Some(recorded) = self.record_in_chosen(operation, out, sources)
        {
            return recorded;
        }
        let opcode = operation.opcode;
        let types = self.types(sources);
        let dtype = self.dtype(out);
        if !opcode.check_types(dtype, &types[..sources.len()]) {
            return Err(type_error(opcode, dtype, &types[..sources.len()]));
        }
        self.over_box(operation, sources, |state, sources| state.record_typed(operation, out, sources))
    }

    /// Records an operation whose types have been checked.
    #[inline]
    pub(crate) fn record_typed(&mut self, operation: Operation<'_>, out: u32, sources: &[Source]) -> Result<Followup> {
        self.check_writable(operation, out)?;
        match operation.opcode.kind() {
            Kind::Elementwise => {
                check_param(operation.opcode, operation.param, 0)?;
                self.check_broadcast(operation, out, sources)?;
                let (operation, sources) = as_products(operation, sources);
                let operation = self.with_rule(operation, self.dtype(out), || Some(self.type_of(sources.first()?)));
                if self.takes_value(out)
                    && let Some(value) = self.evaluate(operation, self.dtype(out), sources)
                {
                    self.set_value(out, value);
                    self.recorded += 1;
                    return Ok(Followup::Nothing);
                }
                self.append(operation, out, sources, None)
            }
            Kind::Reduction | Kind::Accumulate => {
                let input = self.folded_array(operation, sources)?;
                let expected = self.folded_shape(operation, input)?;
                if self.handles.at(out).view.shape() != expected.extents() {
                    let (shape, given) = (self.shape(input), self.shape(out));
                    let text = format!(
                        "an input of shape {:?} gives a result of shape {:?}, but the output has shape {:?}",
                        shape.extents(),
                        expected.extents(),
                        given.extents()
                    );
                    return Err(operation.error(status::SHAPE, text));
                }
                // The second input is broadcast to what is folded.
                self.append(operation, out, sources, (sources.len() > 1).then_some((input, true)))
            }
            Kind::Index => {
                let dtype = self.dtype(out);
                self.record_index(self.with_rule(operation, dtype, || Some(dtype)), out, sources)
            }
            Kind::Generator | Kind::System | Kind::Extension => {
                Err(operation.error(status::ARGUMENT, "is not recorded as a plain operation"))
            }
        }
    }

    #[inline]
    fn check_broadcast(&self, operation: Operation<'_>, out: u32, sources: &[Source]) -> Result<()> {
        let target = self.handles.at(out).view.shape();
        for (position, source) in sources.iter().enumerate() {
            if let Source::Handle(handle) = *source {
                let shape = self.handles.at(handle).view.shape();
                if shape != target && !broadcasts(shape, target) {
                    return Err(broadcast_error(operation.opcode, position + 1, shape, target, "output's"));
                }
            }
        }
        Ok(())
    }

    fn record_index(&mut self, operation: Operation<'_>, out: u32, sources: &[Source]) -> Result<Followup> {
        let gather = operation.opcode == Opcode::Gather;
        let arrays = if gather { sources } else { &sources[1..] };
        if arrays.iter().any(|source| matches!(source, Source::Constant(_))) {
            return Err(operation.error(status::ARGUMENT, "only the values to scatter may be a constant"));
        }
        let Some(&Source::Handle(index)) = sources.get(1) else {
            return Err(operation.error(status::ARGUMENT, "the index array is missing"));
        };
        // Gather writes one element per index; scatters go through one value (and mask) per index.
        let box_owner = if gather { out } else { index };
        let target = self.shape(box_owner);
        for (position, source) in sources.iter().enumerate() {
            if let (Source::Handle(handle), false) = (*source, gather && position == 0) {
                let shape = self.shape(handle);
                if !broadcasts(shape.extents(), target.extents()) {
                    let whose = if gather { "output's" } else { "index's" };
                    let (from, to) = (shape.extents(), target.extents());
                    return Err(broadcast_error(operation.opcode, position + 1, from, to, whose));
                }
            }
        }
        self.append(operation, out, sources, Some((box_owner, gather)))
    }

    /// Must `input` be copied before an operation that writes `out`? `strict`: even when the views are identical.
    #[inline]
    pub(crate) fn needs_copy(&self, out: u32, input: u32, strict: bool) -> bool {
        let (out, input) = (self.handles.at(out), self.handles.at(input));
        if out.base != input.base {
            return false;
        }
        if out.view.same(&input.view) {
            return strict && out.view.len > 0;
        }
        overlap(&out.view, &input.view) != Overlap::Disjoint
    }

    /// Records a copy of an array into a new temporary.
    pub(crate) fn copy(&mut self, handle: u32, location: Location<'_>) -> Result<u32> {
        let (shape, len) = (self.shape(handle), self.handles.at(handle).view.len);
        let copy = self.new_contiguous(self.dtype(handle), shape.extents(), len)?;
        let operation = Operation { opcode: Opcode::Copy, param: 0, location };
        self.append_plain(operation, copy, &[Source::Handle(handle)], None)?;
        Ok(copy)
    }

    /// Appends a checked operation. Inputs are broadcast to the output's box; `index_box` says for index operations whose
    /// box it is instead, and whether the first input keeps its own shape (a gather source).
    #[inline]
    fn append(
        &mut self,
        operation: Operation<'_>,
        out: u32,
        sources: &[Source],
        index_box: Option<(u32, bool)>,
    ) -> Result<Followup> {
        let strict = operation.opcode.kind() != Kind::Elementwise;
        let overlaps =
            |source: &Source| matches!(*source, Source::Handle(handle) if self.needs_copy(out, handle, strict));
        if sources.iter().any(overlaps) {
            return self.append_with_copies(operation, out, sources, index_box);
        }
        self.append_plain(operation, out, sources, index_box)
    }

    /// As [`State::append`], with copies of the inputs that the output overlaps.
    #[cold]
    fn append_with_copies(
        &mut self,
        operation: Operation<'_>,
        out: u32,
        sources: &[Source],
        index_box: Option<(u32, bool)>,
    ) -> Result<Followup> {
        let strict = operation.opcode.kind() != Kind::Elementwise;
        let mut sources = sources.to_vec();
        let mut copies = Vec::new();
        for source in &mut sources {
            if let Source::Handle(handle) = *source
                && self.needs_copy(out, handle, strict)
            {
                let copy = self.copy(handle, operation.location)?;
                *source = Source::Handle(copy);
                copies.push(copy);
            }
        }
        let result = self.append_plain(operation, out, &sources, index_box);
        for copy in copies {
            self.release(copy);
        }
        result
    }

    #[inline]
    pub(crate) fn append_plain(
        &mut self,
        operation: Operation<'_>,
        out: u32,
        sources: &[Source],
        index_box: Option<(u32, bool)>,
    ) -> Result<Followup> {
        reserve::check()?;
        let (order, layout) = match (operation.opcode.kind(), sources) {
            (_, &[Source::Handle(a), Source::Handle(b)]) if operation.opcode == Opcode::Contract => {
                let order = self.contraction_order([a, b], operation.param);
                (self.in_tree(operation, order, a), Layout::default())
            }
            (Kind::Reduction, &[Source::Handle(input), ..]) => {
                let order = self.fold_order(input, operation.param);
                (self.in_tree(operation, order, input), Layout::default())
            }
            (Kind::Accumulate, &[Source::Handle(input)]) => (self.in_tree(operation, 0, input), Layout::default()),
            (Kind::Elementwise, _) => (0, self.result_layout(out, sources)),
            _ => (0, Layout::default()),
        };
        if self.at_once(operation, (order, layout), out, sources, index_box)? {
            return Ok(Followup::Nothing);
        }
        let opcode = operation.opcode;
        let kind = opcode.kind();
        let mut operands = [Operand::NONE; MAX_OPERANDS];
        operands[0] = Operand::view(self.intern(out));
        let mut structure = self.handles.at(out).view.hash ^ self.dtype(out) as u64;
        let mut followup = self.followup(out);
        let folds = matches!(kind, Kind::Reduction | Kind::Accumulate);
        for (position, source) in sources.iter().enumerate() {
            operands[position + 1] = match *source {
                Source::Constant(constant) => {
                    if constant.reserved != [0; 7] && !takes_any_number(opcode) {
                        self.refuse_in_trace("raises to a power that changes between calls")?;
                    }
                    self.builder.push_constant(constant)
                }
                Source::Handle(handle) => {
                    followup = followup.max(self.followup(handle));
                    structure = mix(structure, self.handles.at(handle).view.hash);
                    let target = index_box.map_or(out, |(owner, _)| owner);
                    if let (Kind::Elementwise, Some(value)) = (kind, self.known_value(handle)) {
                        operands[position + 1] = self.builder.push_constant(value);
                        continue;
                    }
                    let own_box = position == 0 && (folds || matches!(index_box, Some((_, true))));
                    let shape = self.handles.at(target).view.shape();
                    if own_box || self.handles.at(handle).view.shape() == shape {
                        Operand::view(self.intern(handle))
                    } else {
                        let view = self.handles.at(handle).view.broadcast_to(shape);
                        Operand::view(self.intern_other(handle, &view))
                    }
                }
            };
        }
        self.mark_written(out, layout);
        let instr = Instr {
            opcode,
            param: operation.param,
            count: sources.len() as u8 + 1,
            outputs: 1,
            order,
            origin: 0,
            operands,
            attributes: 0,
        };
        self.push_instr(instr, operation.location, structure);
        let work = if folds { sources.first() } else { None };
        let work = match work {
            Some(&Source::Handle(input)) => input,
            _ => index_box.map_or(out, |(owner, _)| owner),
        };
        self.count_work(work);
        self.sync_pinned(out, followup);
        Ok(followup)
    }

    pub(crate) fn count_work(&mut self, handle: u32) {
        // Repeated elements are read once.
        let handle = self.handles.at(handle);
        let base = &self.bases.at(handle.base).base;
        let bytes = handle.view.len.min(base.len) as u64 * base.dtype().size() as u64;
        self.builder.work_bytes = self.builder.work_bytes.saturating_add(bytes);
    }

    /// The follow-up of an operation on this operand. Before a batch works on exported memory, the stack must learn that the
    /// user may have changed it.
    #[inline]
    pub(crate) fn followup(&mut self, handle: u32) -> Followup {
        let entry = self.bases.at(self.handles.at(handle).base);
        if entry.pins == 0 {
            return Followup::Nothing;
        }
        if entry.exported && self.builder.exported.iter().all(|base| base.id != entry.base.id) {
            self.builder.exported.push(entry.base);
        }
        Followup::Complete
    }

    /// Asks for pinned results in host memory.
    #[inline]
    pub(crate) fn sync_pinned(&mut self, out: u32, followup: Followup) {
        if followup == Followup::Complete && self.bases.at(self.handles.at(out).base).pins > 0 {
            self.push_sync(out);
        }
    }
}

fn mapped() -> Error {
    Error::new(status::ARGUMENT, "is mapped; unmap it first")
}

#[cold]
fn operand_error(opcode: Opcode, position: usize, error: Error) -> Error {
    let text = format!("{}: input {}: {}", opcode.name(), position + 1, error.text);
    Error { text, ..error }
}
