//! Recording of operations that differ from the common form: generators and extension methods.

use crate::array::small_view::{SmallView, mix};
use crate::record::rules::own_bits;
use crate::record::{Operation, Source};
use crate::state::layout::Layout;
use crate::state::{Followup, State};
use bh_bytecode::batch::{MAX_OPERANDS, NO_BASE};
use bh_bytecode::methods::{is_program, shown};
use bh_bytecode::{Constant, DType, Instr, MAX_RANK, Opcode, Operand, View};
use bh_core::abi::status;
use bh_core::error::{Error, Result};

impl State {
    /// The numbers first + i·step, where i counts the elements of an array in C order.
    pub(crate) fn numbers_in_order(&self, operation: Operation<'_>, out: u32, first: i64, step: i64) -> Result<View> {
        let shape = self.shape(out);
        let overflow = || operation.error(status::ARGUMENT, "the indices overflow 64 bits");
        let mut stride = [0i64; MAX_RANK];
        let mut next = step;
        for (dim, &extent) in shape.extents().iter().enumerate().rev() {
            stride[dim] = if extent == 1 { 0 } else { next };
            next = if extent > 1 { next.checked_mul(extent).ok_or_else(overflow)? } else { next };
        }
        View::new(first, shape.extents(), &stride[..shape.extents().len()]).map_err(|_| overflow())
    }

    /// Records RANGE (without key) or RANDOM into an array: each element is made from the number that a view of its shape has there.
    pub(crate) fn record_generator(
        &mut self,
        operation: Operation<'_>,
        out: u32,
        numbers: &View,
        key: Option<Constant>,
    ) -> Result<Followup> {
        let opcode = operation.opcode;
        let dtype = self.dtype(out);
        if !opcode.check_types(dtype, &[]) {
            let legal: Vec<&str> = opcode.info().types.iter().map(DType::name).collect();
            let text = format!("cannot make elements of type {}; it is for {}", dtype.name(), legal.join(" "));
            return Err(operation.error(status::TYPE, text));
        }
        self.check_writable(operation, out)?;
        if key.is_some() {
            self.refuse_in_trace("draws random numbers")?;
        }
        if numbers.shape() != self.shape(out).extents() {
            return Err(operation.error(status::SHAPE, "the numbers have another shape than the output"));
        }
        let index = SmallView::new(numbers);
        if self.generate_at_once(operation, out, (numbers.start(), &index), key) {
            return Ok(Followup::Nothing);
        }
        let followup = self.followup(out);
        let to = Operand::view(self.intern(out));
        let numbers = Operand::view(self.builder.intern_view(NO_BASE, &index));
        let structure = mix(self.handles.at(out).view.hash, index.hash);
        let mut instr = match key {
            None => Instr::new(opcode, &[to, numbers]),
            Some(key) => {
                let key = self.builder.push_constant(key);
                Instr::new(opcode, &[to, numbers, key])
            }
        };
        instr.param = operation.param;
        self.mark_written(out, Layout::default());
        self.push_instr(instr, operation.location, structure);
        self.count_work(out);
        self.sync_pinned(out, followup);
        Ok(followup)
    }

    /// Records a call of an extension method. Its types and shapes are the method's own business.
    pub(crate) fn record_extension(
        &mut self,
        operation: Operation<'_>,
        outs: &[u32],
        sources: &[Source],
    ) -> Result<Followup> {
        let opcode = operation.opcode;
        let name = (opcode.0 - Opcode::FIRST_EXTENSION) as usize;
        if outs.is_empty() || outs.len() + sources.len() > MAX_OPERANDS {
            let name = shown(&self.extensions[name]);
            let text = format!(
                "{name}: {} outputs and {} inputs given; there must be an output and at most {MAX_OPERANDS} operands",
                outs.len(),
                sources.len()
            );
            return Err(Error::new(status::ARGUMENT, text));
        }
        for (position, &out) in outs.iter().enumerate() {
            self.check_writable(operation, out)?;
            if outs[..position].iter().any(|&other| self.needs_copy(out, other, true)) {
                let name = shown(&self.extensions[name]);
                return Err(Error::new(status::ARGUMENT, format!("{name}: two outputs overlap")));
            }
        }
        if self.has_own_bits(&self.extensions[name], sources) {
            return match (&self.extensions[name][..], outs, sources) {
                ("matmul", &[out], &[Source::Handle(a), Source::Handle(b)]) => {
                    self.record_product(operation, out, [a, b])
                }
                (name, ..) => Err(own_bits(name)),
            };
        }
        if let &[out] = outs
            && self.method_at_once(operation, out, sources)
        {
            return Ok(Followup::Nothing);
        }
        let mut operands = [Operand::NONE; MAX_OPERANDS];
        let mut structure = 0;
        let mut followup = Followup::Nothing;
        let mut temporaries = Vec::new();
        for (position, source) in sources.iter().enumerate() {
            operands[outs.len() + position] = match *source {
                Source::Constant(constant) => self.builder.push_constant(constant),
                Source::Handle(mut handle) => {
                    followup = followup.max(self.followup(handle));
                    if outs.iter().any(|&out| self.needs_copy(out, handle, true)) {
                        handle = self.copy(handle, operation.location)?;
                        temporaries.push(handle);
                    }
                    structure = mix(structure, self.handles.at(handle).view.hash);
                    Operand::view(self.intern(handle))
                }
            };
        }
        for (operand, &out) in operands.iter_mut().zip(outs) {
            followup = followup.max(self.followup(out));
            structure = mix(structure, self.handles.at(out).view.hash);
            *operand = Operand::view(self.intern(out));
            self.mark_written(out, Layout::default());
            // Methods do more work per element than arithmetic does, and what loops do nobody knows.
            let work = if is_program(&self.extensions[name]) { 1 << 28 } else { 1 << 20 };
            self.builder.work_bytes = self.builder.work_bytes.saturating_add(work);
            self.count_work(out);
        }
        self.builder.declare_extension(opcode, &self.extensions[name]);
        let mut instr = Instr::new(opcode, &operands[..outs.len() + sources.len()]);
        instr.outputs = outs.len() as u8;
        instr.param = operation.param;
        self.push_instr(instr, operation.location, structure);
        for copy in temporaries {
            self.release(copy);
        }
        for &out in outs {
            self.sync_pinned(out, followup);
        }
        Ok(followup)
    }
}
