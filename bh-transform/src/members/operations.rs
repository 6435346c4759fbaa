//! Each kind of operation with the members as one more axis.

use super::replay::{Replay, with_axis};
use crate::emit::{Emit, Place, Value, number, view, view_error};
use crate::tape::method;
use bh_bytecode::methods::is_by_element;
use bh_bytecode::{BatchRef, DType, Instr, Kind, Opcode, Operand, View};
use bh_core::abi::status;
use bh_core::{Error, Result};

/// Random numbers of one member, at most: those of the next one are this far away in the stream.
const DRAWS: i64 = (1 << 40) - 1;

impl<E: Emit> Replay<'_, E> {
    /// Records an operation for all members.
    pub(crate) fn operation(&mut self, tables: &BatchRef<'_>, instr: &Instr) -> Result<()> {
        match instr.opcode.kind() {
            Kind::Elementwise => {
                let inputs = self.values(tables, instr)?;
                let out = self.output(tables, instr.outputs()[0])?;
                self.emit.operate(instr.opcode, instr.param, &out, &inputs)
            }
            Kind::Reduction | Kind::Accumulate => self.fold(tables, instr),
            Kind::Generator => self.generator(tables, instr),
            Kind::Index if instr.opcode == Opcode::Gather => self.gather(tables, instr),
            Kind::Index => self.scatter(tables, instr),
            Kind::Extension => self.method(method(tables, instr).unwrap_or_default(), tables, instr),
            Kind::System => Ok(()),
        }
    }

    fn values(&mut self, tables: &BatchRef<'_>, instr: &Instr) -> Result<Vec<Value<E::Base>>> {
        instr.inputs().iter().map(|&input| self.value(tables, input)).collect()
    }

    fn wide_values(&mut self, tables: &BatchRef<'_>, instr: &Instr) -> Result<Vec<Value<E::Base>>> {
        instr.inputs().iter().map(|&input| self.wide(tables, input)).collect()
    }

    fn fold(&mut self, tables: &BatchRef<'_>, instr: &Instr) -> Result<()> {
        let mut inputs = self.wide_values(tables, instr)?;
        let mut axes = instr.param << 1;
        if axes == 0 {
            // One member's number is folded along no axis; those of all are along one of a single element.
            axes = 0b10;
            for input in &mut inputs {
                if let Value::Place(place) = input {
                    *place = place.new_axis(1)?;
                }
            }
        }
        let out = self.output(tables, instr.outputs()[0])?;
        self.emit.operate(instr.opcode, axes, &out, &inputs)
    }

    /// Numbers that all members have in common, or random ones, of which each member has its own part of the stream.
    fn generator(&mut self, tables: &BatchRef<'_>, instr: &Instr) -> Result<()> {
        let [index, rest @ ..] = instr.inputs() else { return Ok(()) };
        let index = index.as_view().map(|index| tables.view(index)).unwrap_or_default();
        let step = match instr.opcode {
            Opcode::Random => {
                let (_, last) = index.extent().unwrap_or_default();
                let too_many = || Error::new(status::ARGUMENT, "vmap: the members draw too many random numbers");
                let far = apart(last).ok_or_else(too_many)?;
                far.checked_mul(self.count).and_then(|all| all.checked_add(last)).ok_or_else(too_many)?;
                far
            }
            _ => 0,
        };
        let key = rest.first().and_then(|key| key.as_constant()).map(|key| tables.constants[key as usize]);
        let out = self.output(tables, instr.outputs()[0])?;
        self.emit.generate(instr.opcode, &out, &with_axis(&index, self.count, step)?, key)
    }

    fn gather(&mut self, tables: &BatchRef<'_>, instr: &Instr) -> Result<()> {
        let (source, index) = (instr.inputs()[0], instr.inputs()[1]);
        let inputs = match (self.varies(tables, source), self.value(tables, source)?) {
            (true, Value::Place(place)) => {
                let len = place.view.len() / self.count.max(1);
                [place.into(), self.shifted(tables, index, len)?.into()]
            }
            (_, source) => [source, self.wide(tables, index)?],
        };
        let out = self.output(tables, instr.outputs()[0])?;
        self.emit.operate(instr.opcode, 0, &out, &inputs)
    }

    fn scatter(&mut self, tables: &BatchRef<'_>, instr: &Instr) -> Result<()> {
        let [value, index, mask @ ..] = instr.inputs() else { return Ok(()) };
        let mut inputs = vec![self.wide(tables, *value)?];
        let out = self.output(tables, instr.outputs()[0])?;
        let len = out.view.len() / self.count.max(1);
        inputs.push(self.shifted(tables, *index, len)?.into());
        for &mask in mask {
            inputs.push(self.wide(tables, mask)?);
        }
        self.emit.operate(instr.opcode, 0, &out, &inputs)
    }

    /// Indices into the elements of one member as indices into those of all. Those outside of one member's are outside of all.
    fn shifted(&mut self, tables: &BatchRef<'_>, index: Operand, len: i64) -> Result<Place<E::Base>> {
        let own = index.as_view().map(|index| tables.view(index).canonical()).unwrap_or_default();
        let shape = with_axis(&own, self.count, 0)?;
        let (shape, whole) = (shape.shape(), DType::I64);
        let mut index = self.wide(tables, index)?;
        if !matches!(&index, Value::Place(place) if place.dtype == whole) {
            index = self.emit.of(Opcode::Copy, 0, &[index], whole, shape)?;
        }
        let zero = number(0.0, whole);
        let is_negative = self.emit.of(Opcode::Less, 0, &[index.clone(), zero.clone()], DType::Bool, shape)?;
        let from_end = self.emit.of(Opcode::Add, 0, &[index.clone(), integer(len)], whole, shape)?;
        let index = self.emit.of(Opcode::Where, 0, &[is_negative, from_end, index], whole, shape)?;
        let above = self.emit.of(Opcode::GreaterEqual, 0, &[index.clone(), zero], DType::Bool, shape)?;
        let below = self.emit.of(Opcode::Less, 0, &[index.clone(), integer(len)], DType::Bool, shape)?;
        let inside = self.emit.of(Opcode::LogicalAnd, 0, &[above, below], DType::Bool, shape)?;
        let offsets = self.offsets(len, shape)?;
        let moved = self.emit.of(Opcode::Add, 0, &[index, offsets.into()], whole, shape)?;
        let outside = integer(len.saturating_mul(self.count));
        let all = self.emit.fresh(whole, shape)?;
        self.emit.operate(Opcode::Where, 0, &all, &[inside, moved, outside])?;
        Ok(all)
    }

    fn method(&mut self, name: &str, tables: &BatchRef<'_>, instr: &Instr) -> Result<()> {
        let along_last = matches!(name, "fft" | "ifft" | "rfft" | "irfft" | "sort" | "argsort");
        let one_table = name.starts_with("searchsorted") && !self.varies(tables, instr.inputs()[0]);
        if name == "matmul" {
            return self.matmul(tables, instr);
        }
        if !(along_last || one_table || is_by_element(name)) {
            return self.one_by_one(name, tables, instr);
        }
        let mut inputs = self.wide_values(tables, instr)?;
        if one_table {
            inputs[0] = self.value(tables, instr.inputs()[0])?;
        }
        let outs = self.outputs(tables, instr)?;
        self.emit.call(name, &outs.iter().collect::<Vec<_>>(), &inputs)
    }

    fn outputs(&mut self, tables: &BatchRef<'_>, instr: &Instr) -> Result<Vec<Place<E::Base>>> {
        instr.outputs().iter().map(|&out| self.output(tables, out)).collect()
    }

    /// A method that knows nothing of stacks, for each member.
    fn one_by_one(&mut self, name: &str, tables: &BatchRef<'_>, instr: &Instr) -> Result<()> {
        let wide = self.outputs(tables, instr)?;
        for number in 0..self.count {
            let one = |out: &Place<E::Base>| out.view.index(0, number).map(|view| out.with(view.canonical()));
            let outs = wide.iter().map(one).collect::<std::result::Result<Vec<_>, _>>().map_err(view_error)?;
            let inputs: Result<Vec<_>> =
                instr.inputs().iter().map(|&input| self.member(tables, input, number)).collect();
            self.emit.call(name, &outs.iter().collect::<Vec<_>>(), &inputs?)?;
        }
        Ok(())
    }

    /// Products of matrices and vectors: one of more rows where the members have the second factor in common, else a contraction.
    fn matmul(&mut self, tables: &BatchRef<'_>, instr: &Instr) -> Result<()> {
        let (first, second) = (instr.inputs()[0], instr.inputs()[1]);
        if !self.varies(tables, second)
            && let (Value::Place(a), b) = (self.wide(tables, first)?, self.value(tables, second)?)
        {
            let out = self.output(tables, instr.outputs()[0])?;
            let rows = |view: &View, kept: usize| {
                let (front, back) = view.shape().split_at(view.rank() - kept);
                let shape: Vec<i64> = std::iter::once(front.iter().product()).chain(back.iter().copied()).collect();
                view.reshape(&shape).ok().flatten().map(View::canonical)
            };
            let columns = matches!(&b, Value::Place(b) if b.view.rank() == 2);
            if let (Some(left), Some(to)) = (rows(&a.view, 1), rows(&out.view, usize::from(columns))) {
                return self.emit.call("matmul", &[&out.with(to)], &[a.with(left).into(), b]);
            }
        }
        self.contraction(tables, instr)
    }

    fn contraction(&mut self, tables: &BatchRef<'_>, instr: &Instr) -> Result<()> {
        let (a, b) = (self.wide(tables, instr.inputs()[0])?, self.wide(tables, instr.inputs()[1])?);
        let (a, b) = (a.into_place()?, b.into_place()?);
        let out = self.output(tables, instr.outputs()[0])?;
        // The box is of members, rows, the summed axis, and columns.
        let inner = a.view.rank() - 1;
        let columns = &b.shape()[2..];
        let shape: Vec<i64> = a.shape().iter().chain(columns).copied().collect();
        let left: Vec<i64> = a.view.stride().iter().copied().chain(columns.iter().map(|_| 0)).collect();
        let mut right = vec![0; shape.len()];
        right[0] = b.view.stride()[0];
        right[inner..].copy_from_slice(&b.view.stride()[1..]);
        let (a, b) = (a.with(view(a.view.start(), &shape, &left)?), b.with(view(b.view.start(), &shape, &right)?));
        self.emit.operate(Opcode::Contract, 1 << inner, &out, &[a.into(), b.into()])
    }
}

fn integer<B>(value: i64) -> Value<B> {
    Value::Number(bh_bytecode::Constant::from_value(value))
}

/// How far apart the random numbers of two members are, if those of one end with this one.
fn apart(last: i64) -> Option<i64> {
    let power = u64::try_from(last.max(DRAWS)).ok()?.checked_add(1)?.checked_next_power_of_two()?;
    i64::try_from(power).ok()
}
