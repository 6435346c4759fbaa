//! Tests of numbers as operations of a batch: stored elements and results of single operations, folded into truth values that the
//! kernels of the batch make beside their results.

use super::faults::{Fault, wanted};
use super::programs::Tested as TestedProgram;
use crate::stack::added::Added;
use bh_bytecode::{Base, Batch, BatchRef, Constant, DType, Instr, Kind, Opcode, Operand, View, base_flags};
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

/// Adds the tests of the checks to a batch. `kept`: bases that the batch drops, and that have to stay. `program`: the program with
/// tests that stands for the one that an instruction calls.
pub(super) fn tested(
    batch: &BatchRef<'_>,
    checks: Checks,
    kept: &HashSet<u64>,
    ids: &AtomicU64,
    mut program: impl FnMut(&Instr) -> Option<TestedProgram>,
) -> Tested {
    let (added, instrs) = Added::new(batch, ids);
    let mut writer = Writer::new(added);
    for instr in &instrs {
        if let Some(fault) = wanted(batch, instr, checks) {
            writer.test_operation(instr, fault);
        }
        let program = if instr.opcode.is_extension() { program(instr) } else { None };
        if program.is_some_and(|program| writer.test_program(instr, &program).is_some()) {
            continue;
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
        if instr.opcode.kind() == Kind::Reduction {
            let bad = self.bad_folds(instr, fault, (dtype, &shape))?;
            return self.raise(bad, &shape);
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
        let operand = self.added.of(Opcode::Absolute, real, shape, &[operand])?;
        self.lost(result, operand, (real, shape), bits)
    }

    /// Results that are not zero, and at most 2 to the power of -`bits` of these sizes.
    fn lost(&mut self, result: Operand, size: Operand, (real, shape): (DType, &[i64]), bits: u8) -> Option<Operand> {
        let result = self.added.of(Opcode::Absolute, real, shape, &[result])?;
        let factor = self.added.constant(Constant::from_value(2f64.powi(bits.into())).cast(real));
        let scaled = self.added.of(Opcode::Multiply, real, shape, &[result, factor])?;
        let small = self.added.of(Opcode::LessEqual, DType::Bool, shape, &[scaled, size])?;
        let zero = self.number(0, real);
        let is_some = self.added.of(Opcode::Greater, DType::Bool, shape, &[result, zero])?;
        self.added.of(Opcode::LogicalAnd, DType::Bool, shape, &[small, is_some])
    }

    /// Sums that have lost bits, beside the sum of magnitudes; and sums and products of integers that differ from those of floats by
    /// what the type wraps at.
    fn bad_folds(&mut self, instr: &Instr, fault: Fault, (dtype, shape): (DType, &[i64])) -> Option<Operand> {
        let input = instr.operands[1];
        let all = self.added.batch.as_ref().shape(input.as_view()?).to_vec();
        let result = self.folded(instr, dtype, shape, input)?;
        match fault {
            Fault::Cancellation(bits) => {
                let real = dtype.real_part();
                let sizes = self.added.of(Opcode::Absolute, real, &all, &[input])?;
                let size = self.folded(instr, real, shape, sizes)?;
                self.lost(result, size, (real, shape), bits)
            }
            Fault::Overflow => {
                let floats = self.added.of(Opcode::Copy, DType::F64, &all, &[input])?;
                let wide = self.folded(instr, DType::F64, shape, floats)?;
                self.wrapped(wide, result, (dtype, shape))
            }
            Fault::ZeroDivision => None,
        }
    }

    /// The fold of an instruction with another input.
    fn folded(&mut self, instr: &Instr, dtype: DType, shape: &[i64], input: Operand) -> Option<Operand> {
        let out = self.added.scrap(dtype, shape)?;
        self.added.batch.push_instr(Instr {
            param: instr.param,
            order: instr.order,
            ..Instr::new(instr.opcode, &[out, input])
        });
        Some(out)
    }

    /// Calls a program with tests instead of the one that an instruction calls.
    fn test_program(&mut self, instr: &Instr, program: &TestedProgram) -> Option<()> {
        let shape = self.added.batch.as_ref().shape(instr.operands[0].as_view()?).to_vec();
        let lost = self.added.scrap(DType::Bool, &shape)?;
        program.declare(&mut self.added.batch);
        self.added.batch.push_instr(program.call(instr, lost));
        if !shape.contains(&0) {
            self.raise(lost, &shape);
        }
        Some(())
    }

    /// Products as floats differ from wrapped ones by multiples of what the type wraps at, if at all; rounding makes less.
    fn beyond_products(&mut self, [a, b]: [Operand; 2], dtype: DType, shape: &[i64]) -> Option<Operand> {
        let result = self.added.of(Opcode::Multiply, dtype, shape, &[a, b])?;
        let [a, b] = [a, b].map(|operand| self.added.of(Opcode::Copy, DType::F64, shape, &[operand]));
        let product = self.added.of(Opcode::Multiply, DType::F64, shape, &[a?, b?])?;
        self.wrapped(product, result, (dtype, shape))
    }

    /// Integers that are far from what they are as floats.
    fn wrapped(&mut self, wide: Operand, result: Operand, (dtype, shape): (DType, &[i64])) -> Option<Operand> {
        let float = DType::F64;
        let result = self.added.of(Opcode::Copy, float, shape, &[result])?;
        let apart = self.added.of(Opcode::Subtract, float, shape, &[wide, result])?;
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
