//! Recording of operations: resolves operands, checks them, keeps NumPy's meaning where operands overlap, and appends
//! to the batch.

use super::check::{broadcast_error, broadcast_shapes, broadcasts, check_param, result_type, type_error};
use super::order::Layout;
use super::small_view::{SmallView, mix};
use super::state::{Followup, Shape, State};
use super::{ArrayId, Location};
use bh_bytecode::batch::MAX_OPERANDS;
use bh_bytecode::view::{element_count, overlap, too_many_elements};
use bh_bytecode::{Constant, DType, Instr, Kind, MAX_RANK, Opcode, Operand, Overlap};
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
pub(super) enum Source {
    Handle(u32),
    Constant(Constant),
}

/// What is recorded, besides operands.
#[derive(Clone, Copy)]
pub(super) struct Operation<'a> {
    pub(super) opcode: Opcode,
    pub(super) param: u16,
    pub(super) location: Location<'a>,
}

impl Operation<'_> {
    pub(super) fn error(&self, code: i32, text: impl std::fmt::Display) -> Error {
        Error::new(code, format!("{}: {text}", self.opcode.name()))
    }
}

/// The most inputs of an operation of the opcode table, and one more.
const INPUTS: usize = 4;

/// The resolved inputs of an operation of the opcode table.
pub(super) struct Sources {
    count: usize,
    all: [Source; INPUTS],
}

impl Sources {
    #[inline]
    pub(super) fn as_slice(&self) -> &[Source] {
        &self.all[..self.count]
    }
}

impl State {
    /// Resolves the handles of an operation of the opcode table and checks that they may be read.
    #[inline(always)]
    pub(super) fn resolve(&self, opcode: Opcode, inputs: &[Input]) -> Result<Sources> {
        let mut sources = Sources { count: inputs.len(), all: [Source::Handle(0); INPUTS] };
        if inputs.len() > INPUTS {
            let (name, taken) = (opcode.name(), opcode.info().inputs);
            let text = format!("{name}: {} inputs given, but it takes {taken}", inputs.len());
            return Err(Error::new(status::ARGUMENT, text));
        }
        for (position, input) in inputs.iter().enumerate() {
            sources.all[position] = self.resolve_one(opcode, position, input)?;
        }
        Ok(sources)
    }

    #[inline(always)]
    pub(super) fn resolve_one(&self, opcode: Opcode, position: usize, input: &Input) -> Result<Source> {
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

    pub(super) fn check_writable(&self, operation: Operation<'_>, out: u32) -> Result<()> {
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
    fn type_of(&self, source: &Source) -> DType {
        match source {
            Source::Handle(handle) => self.dtype(*handle),
            Source::Constant(constant) => constant.dtype(),
        }
    }

    #[inline]
    fn types(&self, sources: &[Source]) -> [DType; MAX_OPERANDS] {
        let mut types = [DType::Bool; MAX_OPERANDS];
        for (dtype, source) in types.iter_mut().zip(sources) {
            *dtype = self.type_of(source);
        }
        types
    }

    /// Records an operation of the opcode table into an array.
    #[inline]
    pub(super) fn record(&mut self, operation: Operation<'_>, out: u32, sources: &[Source]) -> Result<Followup> {
        let opcode = operation.opcode;
        let types = self.types(sources);
        let dtype = self.dtype(out);
        if !opcode.check_types(dtype, &types[..sources.len()]) {
            return Err(type_error(opcode, dtype, &types[..sources.len()]));
        }
        self.record_typed(operation, out, sources)
    }

    /// Records an operation whose types have been checked.
    #[inline]
    fn record_typed(&mut self, operation: Operation<'_>, out: u32, sources: &[Source]) -> Result<Followup> {
        self.check_writable(operation, out)?;
        match operation.opcode.kind() {
            Kind::Elementwise => {
                check_param(operation.opcode, operation.param, 0)?;
                self.check_broadcast(operation, out, sources)?;
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
                // The mask is broadcast to what is folded.
                self.append(operation, out, sources, (sources.len() > 1).then_some((input, true)))
            }
            Kind::Index => self.record_index(operation, out, sources),
            Kind::Generator | Kind::System | Kind::Extension => {
                Err(operation.error(status::ARGUMENT, "is not recorded as a plain operation"))
            }
        }
    }

    /// Records an operation into a new array and returns it. `dtype` is needed where the inputs do not determine it.
    #[inline]
    pub(super) fn record_new(
        &mut self,
        operation: Operation<'_>,
        dtype: Option<DType>,
        sources: &[Source],
    ) -> Result<(u32, Followup)> {
        let opcode = operation.opcode;
        let types = self.types(sources);
        let types = &types[..sources.len()];
        let Some(dtype) = dtype.or_else(|| result_type(opcode, types)) else {
            return Err(operation.error(status::ARGUMENT, "does not determine the type of a new result"));
        };
        if !opcode.check_types(dtype, types) {
            return Err(type_error(opcode, dtype, types));
        }
        let (shape, len) = self.result_shape(operation, sources)?;
        let value = if len == 1 { self.evaluate(operation, dtype, sources) } else { None };
        let out = self.new_contiguous(dtype, shape.extents(), len)?;
        if let Some(value) = value {
            self.set_value(out, value);
            self.recorded += 1;
            return Ok((out, Followup::Nothing));
        }
        match self.record_typed(operation, out, sources) {
            Ok(followup) => Ok((out, followup)),
            Err(error) => {
                self.release(out);
                Err(error)
            }
        }
    }

    /// Shape and element count of a new result.
    #[inline]
    fn result_shape(&self, operation: Operation<'_>, sources: &[Source]) -> Result<(Shape, i64)> {
        match operation.opcode.kind() {
            Kind::Elementwise => {
                let mut first: Option<&SmallView> = None;
                let mut equal = true;
                for source in sources {
                    if let Source::Handle(handle) = *source {
                        let view = &self.handles.at(handle).view;
                        match first {
                            None => first = Some(view),
                            Some(first) => equal &= view.shape() == first.shape(),
                        }
                    }
                }
                match first {
                    None => Ok((Shape::of(&[]), 1)),
                    Some(view) if equal => Ok((Shape::of(view.shape()), view.len)),
                    Some(_) => self.broadcast_all(operation, sources),
                }
            }
            Kind::Reduction | Kind::Accumulate => {
                let input = self.folded_array(operation, sources)?;
                let shape = self.folded_shape(operation, input)?;
                self.counted(operation, shape)
            }
            _ => match (operation.opcode, sources) {
                (Opcode::Gather, &[_, Source::Handle(index)]) => {
                    Ok((self.shape(index), self.handles.at(index).view.len))
                }
                _ => Err(operation.error(status::ARGUMENT, "needs an output array")),
            },
        }
    }

    fn broadcast_all(&self, operation: Operation<'_>, sources: &[Source]) -> Result<(Shape, i64)> {
        let mut shape = Vec::with_capacity(MAX_RANK);
        for (position, source) in sources.iter().enumerate() {
            if let Source::Handle(handle) = *source {
                let other = self.handles.at(handle).view.shape();
                let before = shape.clone();
                if !broadcast_shapes(&mut shape, other) {
                    return Err(broadcast_error(operation.opcode, position + 1, other, &before, "common"));
                }
            }
        }
        self.counted(operation, Shape::of(&shape))
    }

    /// A shape with its element count.
    fn counted(&self, operation: Operation<'_>, shape: Shape) -> Result<(Shape, i64)> {
        match element_count(shape.extents()) {
            Some(len) => Ok((shape, len)),
            None => Err(operation.error(status::SHAPE, too_many_elements(shape.extents()))),
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

    /// The array that a fold goes through; the mask of a masked one must fit it.
    fn folded_array(&self, operation: Operation<'_>, sources: &[Source]) -> Result<u32> {
        match *sources {
            [Source::Handle(handle)] => Ok(handle),
            [Source::Handle(handle), Source::Handle(mask)] => {
                let (shape, given) = (self.shape(handle), self.shape(mask));
                if broadcasts(given.extents(), shape.extents()) {
                    return Ok(handle);
                }
                Err(broadcast_error(operation.opcode, 2, given.extents(), shape.extents(), "folded array's"))
            }
            _ => Err(operation.error(status::ARGUMENT, "the input must be an array, not a constant")),
        }
    }

    /// The shape that a reduction or an accumulate of `input` has.
    fn folded_shape(&self, operation: Operation<'_>, input: u32) -> Result<Shape> {
        let shape = self.handles.at(input).view.shape();
        check_param(operation.opcode, operation.param, shape.len())?;
        if operation.opcode.kind() == Kind::Accumulate {
            return Ok(Shape::of(shape));
        }
        let mut kept = Shape::of(&[]);
        for (axis, &extent) in shape.iter().enumerate() {
            if operation.param >> axis & 1 == 0 {
                kept.push(extent);
            }
        }
        Ok(kept)
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
    pub(super) fn needs_copy(&self, out: u32, input: u32, strict: bool) -> bool {
        let (out, input) = (self.handles.at(out), self.handles.at(input));
        if out.base != input.base {
            return false;
        }
        if out.view.same(&input.view) {
            return strict && out.view.len > 0;
        }
        overlap(&out.view.view(), &input.view.view()) != Overlap::Disjoint
    }

    /// Records a copy of an array into a new temporary.
    pub(super) fn copy(&mut self, handle: u32, location: Location<'_>) -> Result<u32> {
        let (shape, len) = (self.shape(handle), self.handles.at(handle).view.len);
        let copy = self.new_contiguous(self.dtype(handle), shape.extents(), len)?;
        let from = Operand::view(self.intern(handle));
        let structure = self.handles.at(handle).view.hash;
        let to = Operand::view(self.intern(copy));
        let layout = self.result_layout(copy, &[Source::Handle(handle)]);
        self.mark_written(copy, layout);
        self.push_instr(Instr::new(Opcode::Copy, &[to, from]), location, structure);
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
    fn append_plain(
        &mut self,
        operation: Operation<'_>,
        out: u32,
        sources: &[Source],
        index_box: Option<(u32, bool)>,
    ) -> Result<Followup> {
        reserve::check()?;
        let opcode = operation.opcode;
        let kind = opcode.kind();
        let mut operands = [Operand::NONE; MAX_OPERANDS];
        operands[0] = Operand::view(self.intern(out));
        let mut structure = self.handles.at(out).view.hash ^ self.dtype(out) as u64;
        let mut followup = self.followup(out);
        let folds = matches!(kind, Kind::Reduction | Kind::Accumulate);
        for (position, source) in sources.iter().enumerate() {
            operands[position + 1] = match *source {
                Source::Constant(constant) => self.builder.push_constant(constant),
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
                        let view = view.map_err(|error| operation.error(status::SHAPE, error))?;
                        Operand::view(self.intern_other(handle, &view))
                    }
                }
            };
        }
        let (order, layout) = match (kind, sources) {
            (Kind::Reduction, &[Source::Handle(input), ..]) => {
                (self.fold_order(input, operation.param), Layout::default())
            }
            (Kind::Elementwise, _) => (0, self.result_layout(out, sources)),
            _ => (0, Layout::default()),
        };
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

    pub(super) fn count_work(&mut self, handle: u32) {
        let bytes = self.handles.at(handle).view.len as u64 * self.dtype(handle).size() as u64;
        self.builder.work_bytes = self.builder.work_bytes.saturating_add(bytes);
    }

    /// What an operation on this operand asks for. Before a batch works on exported memory, the stack is told that the user
    /// may have changed it.
    #[inline]
    pub(super) fn followup(&mut self, handle: u32) -> Followup {
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
    pub(super) fn sync_pinned(&mut self, out: u32, followup: Followup) {
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
