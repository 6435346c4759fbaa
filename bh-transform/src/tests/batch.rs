//! A transformed program as a batch, for the reference interpreter, and taped batches that run there.

use crate::emit::{Emit, Place, Value, contiguous};
use bh_bytecode::batch::NO_BASE;
use bh_bytecode::interp::{Memory, execute};
use bh_bytecode::view::overlap;
use bh_bytecode::{Base, Batch, BatchRef, Constant, DType, Instr, Kind, Opcode, Operand, Overlap, View};
use bh_core::Result;
use bh_core::abi::status;
use bh_recorder::{ArrayId, Ending, Tape};
use std::collections::HashSet;

/// Records into a batch. Bases are known by their identities.
pub(super) struct Builder {
    pub(super) batch: Batch,
    next: u64,
}

impl Builder {
    /// `next`: the first identity of new bases; `known`: bases that are there.
    pub(super) fn new(next: u64, known: &[Base]) -> Builder {
        let mut batch = Batch::default();
        known.iter().for_each(|base| _ = batch.push_base(*base));
        Builder { batch, next }
    }

    fn operand(&mut self, value: &Value<u64>, shape: Option<&[i64]>) -> Operand {
        match value {
            Value::Number(constant) => Operand::constant(self.batch.push_constant(*constant)),
            Value::Place(place) => {
                let wide = |shape: &[i64]| place.view.broadcast_to(shape).expect("inputs broadcast to their outputs");
                self.view(place.base, &shape.map_or(place.view, wide))
            }
        }
    }

    fn view(&mut self, base: u64, view: &View) -> Operand {
        let at = self.batch.bases.iter().position(|other| other.id == base).expect("the base is known");
        Operand::view(self.batch.push_view(at as u32, view))
    }

    fn copy_of(&mut self, place: &Place<u64>) -> Place<u64> {
        let view = contiguous(place.shape()).expect("the view was legal");
        let base = self.base(place.dtype, view.len()).expect("there is memory");
        let copy = Place { base, dtype: place.dtype, view };
        self.operate(Opcode::Copy, 0, &copy, &[place.clone().into()]).expect("copies are recorded");
        copy
    }
}

impl Emit for Builder {
    type Base = u64;
    /// A copy.
    type Stored = u64;

    fn same(a: &u64, b: &u64) -> bool {
        a == b
    }

    fn base(&mut self, dtype: DType, len: i64) -> Result<u64> {
        self.next += 1;
        self.batch.push_base(Base::new(self.next, dtype, len));
        Ok(self.next)
    }

    fn store(&mut self, array: &u64, of: &Base) -> Result<u64> {
        let flat = Place { base: *array, dtype: of.dtype(), view: contiguous(&[of.len])? };
        Ok(self.copy_of(&flat).base)
    }

    fn load(&mut self, stored: &u64, of: &Base) -> Result<u64> {
        self.store(stored, of)
    }

    fn operate(&mut self, opcode: Opcode, param: u16, out: &Place<u64>, inputs: &[Value<u64>]) -> Result<()> {
        let elementwise = opcode.kind() == Kind::Elementwise;
        let mut operands = vec![self.view(out.base, &out.view)];
        for (at, input) in inputs.iter().enumerate() {
            let input = match input {
                Value::Place(place) if place.base == out.base && overlaps(place, out, elementwise) => {
                    self.copy_of(place).into()
                }
                input => input.clone(),
            };
            let index_shape = |value: &Value<u64>| match value {
                Value::Place(place) => Some(place.shape().to_vec()),
                Value::Number(_) => None,
            };
            let shape = match opcode.kind() {
                Kind::Elementwise => Some(out.shape().to_vec()),
                Kind::Index if opcode == Opcode::Gather && at == 1 => Some(out.shape().to_vec()),
                Kind::Index if opcode != Opcode::Gather => index_shape(&inputs[1]),
                _ => None,
            };
            operands.push(self.operand(&input, shape.as_deref()));
        }
        self.batch.push_instr(Instr { param, ..Instr::new(opcode, &operands) });
        Ok(())
    }

    fn generate(&mut self, opcode: Opcode, out: &Place<u64>, numbers: &View, key: Option<Constant>) -> Result<()> {
        let to = self.view(out.base, &out.view);
        let mut operands = vec![to, Operand::view(self.batch.push_view(NO_BASE, numbers))];
        operands.extend(key.map(|key| Operand::constant(self.batch.push_constant(key))));
        self.batch.push_instr(Instr::new(opcode, &operands));
        Ok(())
    }

    fn call(&mut self, method: &str, _: &[&Place<u64>], _: &[Value<u64>]) -> Result<()> {
        Err(bh_core::Error::new(status::UNSUPPORTED, format!("{method}: the interpreter has no methods")))
    }

    fn repeat(&mut self, tables: &BatchRef<'_>, instr: &Instr, outputs: &[u64], inputs: &[(u32, u64)]) -> Result<()> {
        let mut operands = Vec::new();
        for (position, operand) in instr.operands().iter().enumerate() {
            operands.push(match operand.as_view() {
                None => {
                    let at = operand.as_constant().expect("operands are views or constants");
                    Operand::constant(self.batch.push_constant(tables.constants[at as usize]))
                }
                Some(view) if tables.views[view as usize].base == NO_BASE => {
                    Operand::view(self.batch.push_view(NO_BASE, &tables.view(view)))
                }
                Some(view) => {
                    let input = || inputs.iter().find(|(base, _)| *base == tables.views[view as usize].base);
                    let base = outputs.get(position).copied().or_else(|| Some(input()?.1));
                    self.view(base.expect("the base has an array"), &tables.view(view))
                }
            });
        }
        let repeated = Instr::new(instr.opcode, &operands);
        self.batch.push_instr(Instr { param: instr.param, order: instr.order, ..repeated });
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    fn locate(&mut self, _: Option<(&str, u32)>) {}
}

fn overlaps(input: &Place<u64>, out: &Place<u64>, elementwise: bool) -> bool {
    match overlap(&input.view, &out.view) {
        Overlap::Disjoint => false,
        Overlap::Identical => !elementwise,
        Overlap::Overlapping => true,
    }
}

/// Does an operation of a batch use a base?
pub(super) fn is_used(batch: &Batch, base: u64) -> bool {
    let views = batch.instrs.iter().flat_map(|instr| instr.operands().to_vec()).filter_map(|operand| operand.as_view());
    views.into_iter().any(|view| batch.as_ref().base_of(view).is_some_and(|other| other.id == base))
}

/// Shows a tape all batches, and runs what it leaves of them. Copies get identities behind `copies`. `ending`: bases that the program
/// drops behind their last use. Returns the batches as they ran; `None` if one fails.
pub(super) fn run(
    tape: &mut impl Tape,
    batches: &[Batch],
    memory: &mut Memory,
    copies: u64,
    ending: &HashSet<u64>,
) -> Option<Vec<Batch>> {
    let (mut ran, mut next) = (Vec::new(), copies);
    for (number, batch) in batches.iter().enumerate() {
        let mut batch = batch.clone();
        let known = batch.bases.len();
        let ends =
            |base: u64| ending.contains(&base) && !batches[number + 1..].iter().any(|later| is_used(later, base));
        if let Some(followed) = tape.followed() {
            let alone = followed.into_iter().filter(|array| ends(array.0) && !is_used(&batch, array.0)).collect();
            tape.expect(Ending { bases: batch.bases.iter().map(|base| ends(base.id)).collect(), alone });
        }
        let kept = tape.take(&mut batch);
        for base in &mut batch.bases[known..] {
            next += 1;
            base.id = next;
        }
        let named = |base: &Base| (base.id, ArrayId(base.id));
        let kept: Vec<_> = kept.iter().map(|&at| named(&batch.bases[at as usize])).collect();
        let made: Vec<_> = batch.bases[known..].iter().map(named).collect();
        tape.receive(&kept, &made);
        tape.release();
        execute(&batch.as_ref(), memory).ok()?;
        ran.push(batch);
    }
    Some(ran)
}
