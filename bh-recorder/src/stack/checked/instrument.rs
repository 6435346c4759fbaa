//! Tests of numbers as operations of a batch: stored elements and results of single operations, folded into truth values that the
//! kernels of the batch make beside their results.

use super::faults::{Fault, wanted};
use crate::stack::added::Added;
use bh_bytecode::{Base, Batch, BatchRef, Constant, DType, Instr, Opcode, Operand, View, base_flags};
use bh_core::config::Checks;
use std::collections::HashSet;
use std::sync::atomic::AtomicU64;

/// Views of one base that are tested one by one; of more, the whole base is.
const FEW: usize = 4;

/// A batch with tests of its own.
pub(super) struct Tested {
    pub(super) batch: Batch,
    /// The truth value that says whether a test failed, one element; `None` if there is nothing to test.
    pub(super) flag: Option<Base>,
    /// As `flag`, of floats whose sum is not finite: one of them may be bad.
    pub(super) suspicion: Option<Base>,
}

/// Adds the tests of the checks to a batch. `kept`: bases that the batch drops, and that have to stay.
pub(super) fn tested(batch: &BatchRef<'_>, checks: Checks, kept: &HashSet<u64>, ids: &AtomicU64) -> Tested {
    let (added, instrs) = Added::new(batch, ids);
    let mut writer = Writer::new(added);
    for instr in &instrs {
        if let Some(fault) = wanted(batch, instr, checks) {
            writer.test_operation(instr, fault);
        }
        let drops = matches!(instr.opcode, Opcode::Discard)
            && writer.added.base_of(instr.operands[0]).is_some_and(|base| kept.contains(&base.id));
        if !drops {
            writer.added.batch.push_instr(*instr);
        }
    }
    for base in &mut writer.added.batch.bases {
        if kept.contains(&base.id) {
            base.flags = base.flags & !base_flags::DIES | base_flags::LIVE_OUT;
        }
    }
    if checks.nan || checks.inf {
        for view in stored(batch) {
            writer.suspect_floats(view);
        }
    }
    writer.finish()
}

/// A batch that tests the floats that a batch has stored, element by element.
pub(super) fn exactly_tested(batch: &BatchRef<'_>, checks: Checks, ids: &AtomicU64) -> Tested {
    let (mut bases, mut views) = (Batch::default(), Vec::new());
    for (place, view) in stored(batch) {
        let base = batch.bases[place as usize];
        let known = bases.bases.iter().position(|other| other.id == base.id);
        let flags = base.flags & base_flags::PINNED | base_flags::LIVE_OUT;
        let place = known.map_or_else(|| bases.push_base(Base { flags, ..base }), |place| place as u32);
        views.push((place, view));
    }
    let bases = bases.as_ref();
    let mut writer = Writer::new(Added::new(&bases, ids).0);
    for view in views {
        writer.test_floats(view, checks);
    }
    writer.finish()
}

/// The views through which a batch writes floats that live on.
fn stored(batch: &BatchRef<'_>) -> Vec<(u32, View)> {
    let mut bases: Vec<(u32, Vec<u32>)> = Vec::new();
    let outputs = batch.instrs.iter().flat_map(|instr| instr.outputs()).filter_map(|operand| operand.as_view());
    for view in outputs {
        let place = batch.views[view as usize].base;
        let Some(base) = batch.base_of(view).filter(|base| base.has(base_flags::LIVE_OUT)) else { continue };
        if !(base.dtype().is_float() || base.dtype().is_complex()) || batch.views[view as usize].len == 0 {
            continue;
        }
        match bases.iter_mut().find(|(known, _)| *known == place) {
            Some((_, views)) if views.contains(&view) => {}
            Some((_, views)) => views.push(view),
            None => bases.push((place, vec![view])),
        }
    }
    let mut all = Vec::new();
    for (place, views) in bases {
        let whole = View::contiguous(&[batch.bases[place as usize].len]);
        match whole {
            Ok(whole) if views.len() > FEW => all.push((place, whole)),
            _ => all.extend(views.into_iter().map(|view| (place, batch.view(view)))),
        }
    }
    all
}

/// A truth value that tests set: its base and its only element.
type Flag = Option<(u32, Operand)>;

struct Writer<'a> {
    added: Added<'a>,
    flag: Flag,
    suspicion: Flag,
}

impl<'a> Writer<'a> {
    fn new(added: Added<'a>) -> Writer<'a> {
        Writer { added, flag: None, suspicion: None }
    }

    /// Suspects elements stored through a view if the sum of its elements is not finite: NaN and infinities make it so, and seldom
    /// something else. A sum is the cheapest test.
    fn suspect_floats(&mut self, (base, view): (u32, View)) -> Option<()> {
        let operand = Operand::view(self.added.batch.intern_view(base, &view));
        let dtype = self.added.base_of(operand)?.dtype();
        let sum = self.added.fold(Opcode::AddReduce, dtype, view.shape(), operand)?;
        let fine = self.added.of(Opcode::Isfinite, DType::Bool, &[], &[sum])?;
        let bad = self.added.of(Opcode::LogicalNot, DType::Bool, &[], &[fine])?;
        raise(&mut self.added, &mut self.suspicion, bad)
    }

    /// Tests what is stored through a view.
    fn test_floats(&mut self, (base, view): (u32, View), checks: Checks) -> Option<()> {
        let shape = view.shape().to_vec();
        let operand = Operand::view(self.added.batch.intern_view(base, &view));
        let opcode = if checks.inf { Opcode::Isinf } else { Opcode::Isnan };
        let bad = match checks.nan && checks.inf {
            true => {
                let fine = self.added.of(Opcode::Isfinite, DType::Bool, &shape, &[operand])?;
                self.added.of(Opcode::LogicalNot, DType::Bool, &shape, &[fine])?
            }
            false => self.added.of(opcode, DType::Bool, &shape, &[operand])?,
        };
        self.raise(bad, &shape)
    }

    /// Tests an operation, before it runs.
    fn test_operation(&mut self, instr: &Instr, fault: Fault) -> Option<()> {
        let view = instr.operands[0].as_view()?;
        let shape = self.added.batch.as_ref().shape(view).to_vec();
        let dtype = self.added.base_of(instr.operands[0])?.dtype();
        if shape.contains(&0) {
            return None;
        }
        let operands = [instr.operands[1], instr.operands[2]];
        let bad = match fault {
            Fault::ZeroDivision => {
                // Operations have an array among their inputs.
                let b = self.added.of(Opcode::Copy, dtype, &shape, &[operands[1]])?;
                let zero = self.number(0, dtype);
                self.added.of(Opcode::Equal, DType::Bool, &shape, &[b, zero])?
            }
            Fault::Overflow if instr.opcode == Opcode::Multiply => self.beyond_products(operands, dtype, &shape)?,
            Fault::Overflow => self.beyond_sums(instr.opcode, operands, dtype, &shape)?,
            Fault::Cancellation(bits) => self.cancelled(instr.opcode, operands, (dtype, &shape), bits)?,
        };
        self.raise(bad, &shape)
    }

    /// A sum is less than its first operand where the second is negative, and nowhere else; a difference the other way round.
    fn beyond_sums(&mut self, opcode: Opcode, [a, b]: [Operand; 2], dtype: DType, shape: &[i64]) -> Option<Operand> {
        let result = self.added.of(opcode, dtype, shape, &[a, b])?;
        let order = if opcode == Opcode::Add { Opcode::Less } else { Opcode::Greater };
        let moved = self.added.of(order, DType::Bool, shape, &[result, a])?;
        let b = self.added.of(Opcode::Copy, dtype, shape, &[b])?;
        let zero = self.number(0, dtype);
        let negative = self.added.of(Opcode::Less, DType::Bool, shape, &[b, zero])?;
        self.added.of(Opcode::LogicalXor, DType::Bool, shape, &[moved, negative])
    }

    /// Sums and differences that are not zero, and at most 2 to the power of -`bits` of an operand. Where operands cancel, both are
    /// equally large to within that part.
    fn cancelled(
        &mut self,
        opcode: Opcode,
        [a, b]: [Operand; 2],
        (dtype, shape): (DType, &[i64]),
        bits: u8,
    ) -> Option<Operand> {
        let real = dtype.real_part();
        let operand = if a.as_view().is_some() { a } else { b };
        let result = self.added.of(opcode, dtype, shape, &[a, b])?;
        let [result, operand] = [result, operand].map(|number| self.added.of(Opcode::Absolute, real, shape, &[number]));
        let (result, operand) = (result?, operand?);
        let factor = self.added.constant(Constant::from_value(2f64.powi(bits.into())).cast(real));
        let scaled = self.added.of(Opcode::Multiply, real, shape, &[result, factor])?;
        let small = self.added.of(Opcode::LessEqual, DType::Bool, shape, &[scaled, operand])?;
        let zero = self.number(0, real);
        let is_some = self.added.of(Opcode::Greater, DType::Bool, shape, &[result, zero])?;
        self.added.of(Opcode::LogicalAnd, DType::Bool, shape, &[small, is_some])
    }

    /// Products as floats differ from wrapped ones by multiples of what the type wraps at, if at all; rounding makes less.
    fn beyond_products(&mut self, [a, b]: [Operand; 2], dtype: DType, shape: &[i64]) -> Option<Operand> {
        let result = self.added.of(Opcode::Multiply, dtype, shape, &[a, b])?;
        let float = DType::F64;
        let [a, b, result] = [a, b, result].map(|operand| self.added.of(Opcode::Copy, float, shape, &[operand]));
        let product = self.added.of(Opcode::Multiply, float, shape, &[a?, b?])?;
        let apart = self.added.of(Opcode::Subtract, float, shape, &[product, result?])?;
        let size = self.added.of(Opcode::Absolute, float, shape, &[apart])?;
        let half = Constant::from_value(2f64.powi(8 * dtype.size() as i32 - 1));
        let half = self.added.constant(half);
        self.added.of(Opcode::Greater, DType::Bool, shape, &[size, half])
    }

    fn number(&mut self, value: i8, dtype: DType) -> Operand {
        self.added.constant(Constant::from_value(value).cast(dtype))
    }

    /// Sets the flag if one of these truth values holds.
    fn raise(&mut self, bad: Operand, shape: &[i64]) -> Option<()> {
        let any = self.added.fold(Opcode::LogicalOrReduce, DType::Bool, shape, bad)?;
        raise(&mut self.added, &mut self.flag, any)
    }

    fn finish(mut self) -> Tested {
        for (_, flag) in [self.flag, self.suspicion].into_iter().flatten() {
            self.added.op(Opcode::Sync, 0, &[flag]);
        }
        let batch = self.added.finish();
        let base = |flag: Flag| flag.map(|(base, _)| batch.bases[base as usize]);
        Tested { flag: base(self.flag), suspicion: base(self.suspicion), batch }
    }
}

/// Sets a flag if a truth value holds.
fn raise(added: &mut Added<'_>, flag: &mut Flag, holds: Operand) -> Option<()> {
    match *flag {
        Some((_, flag)) => added.op(Opcode::LogicalOr, 0, &[flag, flag, holds]),
        None => {
            let base = Base::checked(added.id(), DType::Bool, 1)?;
            let flags = base_flags::BORN | base_flags::LIVE_OUT;
            let base = added.batch.push_base(Base { flags, row_hint: 1, ..base });
            let made = Operand::view(added.batch.push_view(base, &View::contiguous(&[]).ok()?));
            added.op(Opcode::Copy, 0, &[made, holds]);
            *flag = Some((base, made));
        }
    }
    Some(())
}
