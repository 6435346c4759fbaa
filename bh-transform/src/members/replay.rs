//! The operations of a function, for all members: every base whose values differ has a base that holds those of all members, one
//! after the other.

use super::tape::{MemberTape, Segment, Step};
use crate::emit::{Emit, Place, Value, contiguous, view};
use crate::tape::place_of;
use bh_bytecode::{Base, BatchRef, Opcode, Operand, View};
use bh_core::{Error, Result, abi::status};
use std::collections::HashMap;

/// Records the operations for all members.
pub(crate) struct Replay<'a, E: Emit> {
    pub(crate) emit: &'a mut E,
    tape: &'a MemberTape,
    /// How many members there are.
    pub(crate) count: i64,
    /// Bases in common, by their identities and the numbers of their values.
    sources: &'a dyn Fn(u64, u32) -> Option<E::Base>,
    /// Is called with new bases of all members whose first values count as constant for derivatives.
    stop: &'a dyn Fn(&E::Base) -> Result<()>,
    all: HashMap<u64, E::Base>,
    numbers: HashMap<u64, u32>,
}

impl<'a, E: Emit> Replay<'a, E> {
    /// `given`: for each base that the tape began with, the base of all members.
    pub(crate) fn new(
        emit: &'a mut E,
        tape: &'a MemberTape,
        count: i64,
        given: HashMap<u64, E::Base>,
        sources: &'a dyn Fn(u64, u32) -> Option<E::Base>,
        stop: &'a dyn Fn(&E::Base) -> Result<()>,
    ) -> Replay<'a, E> {
        Replay { emit, tape, count, sources, stop, all: given, numbers: HashMap::new() }
    }

    /// Records everything.
    pub(crate) fn run(&mut self) -> Result<()> {
        let tape = self.tape;
        for segment in &tape.segments {
            for &step in &segment.steps {
                self.step(segment, step)?;
            }
        }
        self.emit.locate(None);
        Ok(())
    }

    /// The base with the values of all members, if they differ.
    pub(crate) fn find(&self, base: u64) -> Option<E::Base> {
        self.all.get(&base).cloned()
    }

    fn step(&mut self, segment: &'a Segment, step: Step) -> Result<()> {
        match step {
            Step::Run(at) => {
                let (tables, instr) = (segment.batch.as_ref(), &segment.batch.instrs[at as usize]);
                self.emit.locate(tables.origin(instr));
                self.operation(&tables, instr)
            }
            Step::Vary(base) => {
                let flat = View::contiguous(&[base.len]).unwrap_or_default();
                let from = self.common(&base, flat)?;
                let to = self.members(&base, &flat)?;
                self.emit.operate(Opcode::Copy, 0, &to, &[from.into()])
            }
            Step::Renew(base) => {
                *self.numbers.entry(base).or_default() += 1;
                Ok(())
            }
            Step::End(base) => {
                self.all.remove(&base);
                Ok(())
            }
        }
    }

    /// A view of a base in common.
    fn common(&self, base: &Base, view: View) -> Result<Place<E::Base>> {
        let number = self.numbers.get(&base.id).copied().unwrap_or_default();
        let found = (self.sources)(base.id, number);
        let lost = || Error::new(status::HANDLE, "vmap: a value that members have in common was not kept");
        Ok(Place { base: found.ok_or_else(lost)?, dtype: base.dtype(), view })
    }

    /// A view of all members of a base, with them as the first axis. A base that is new has room for them.
    pub(crate) fn members(&mut self, base: &Base, of: &View) -> Result<Place<E::Base>> {
        let all = match self.all.get(&base.id) {
            Some(all) => all.clone(),
            None => {
                let too_many = || Error::new(status::SHAPE, "vmap: the members have too many elements");
                let len = base.len.checked_mul(self.count).ok_or_else(too_many)?;
                let all = self.emit.base(base.dtype(), len)?;
                if self.tape.stopped.contains(&base.id) {
                    (self.stop)(&all)?;
                }
                self.all.insert(base.id, all.clone());
                all
            }
        };
        Ok(Place { base: all, dtype: base.dtype(), view: with_axis(of, self.count, base.len)? })
    }

    /// Do the values of an operand differ?
    pub(crate) fn varies(&self, tables: &BatchRef<'_>, operand: Operand) -> bool {
        place_of(tables, operand).is_some_and(|(base, _)| self.all.contains_key(&base.id))
    }

    /// An operand as it is: with all members where they differ, else in common.
    pub(crate) fn value(&mut self, tables: &BatchRef<'_>, operand: Operand) -> Result<Value<E::Base>> {
        match (operand.as_constant(), place_of(tables, operand)) {
            (Some(constant), _) => Ok(Value::Number(tables.constants[constant as usize])),
            (None, Some((base, view))) if self.all.contains_key(&base.id) => Ok(self.members(&base, &view)?.into()),
            (None, Some((base, view))) => Ok(self.common(&base, view)?.into()),
            (None, None) => Err(Error::new(status::HANDLE, "vmap: an operand has no memory")),
        }
    }

    /// An operand with all members, which repeat what they have in common.
    pub(crate) fn wide(&mut self, tables: &BatchRef<'_>, operand: Operand) -> Result<Value<E::Base>> {
        match self.value(tables, operand)? {
            Value::Place(place) if !self.varies(tables, operand) => {
                let view = with_axis(&place.view, self.count, 0)?;
                Ok(place.with(view).into())
            }
            value => Ok(value),
        }
    }

    /// An output.
    pub(crate) fn output(&mut self, tables: &BatchRef<'_>, operand: Operand) -> Result<Place<E::Base>> {
        let lost = || Error::new(status::HANDLE, "vmap: an output has no memory");
        let (base, view) = place_of(tables, operand).ok_or_else(lost)?;
        self.members(&base, &view)
    }

    /// One member of an operand, or what all have in common.
    pub(crate) fn member(&mut self, tables: &BatchRef<'_>, operand: Operand, number: i64) -> Result<Value<E::Base>> {
        match self.value(tables, operand)? {
            Value::Place(place) if self.varies(tables, operand) => {
                let view = place.view.index(0, number).map_err(crate::emit::view_error)?;
                Ok(place.with(view.canonical()).into())
            }
            value => Ok(value),
        }
    }

    /// The number of each member times a step, over views of this rank behind the members.
    pub(crate) fn offsets(&mut self, step: i64, shape: &[i64]) -> Result<Place<E::Base>> {
        let numbers = Place {
            base: self.emit.base(bh_bytecode::DType::I64, self.count)?,
            dtype: bh_bytecode::DType::I64,
            view: contiguous(&[self.count])?,
        };
        self.emit.range(&numbers, step)?;
        let stride: Vec<i64> = (0..shape.len()).map(|axis| i64::from(axis == 0)).collect();
        Ok(numbers.with(view(0, shape, &stride)?))
    }
}

/// A view with one more axis in front.
pub(crate) fn with_axis(of: &View, extent: i64, step: i64) -> Result<View> {
    let shape: Vec<i64> = std::iter::once(extent).chain(of.shape().iter().copied()).collect();
    let stride: Vec<i64> = std::iter::once(step).chain(of.stride().iter().copied()).collect();
    view(of.start(), &shape, &stride)
}
