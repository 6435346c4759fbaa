//! A batch with the operations of its shadows, and what measures how far these are apart.

use super::{Digits, SHADOWS};
use crate::stack::added::Added;
use bh_bytecode::batch::NO_BASE;
use bh_bytecode::{Base, Batch, BatchRef, Constant, DType, Instr, Kind, Opcode, Operand, View, base_flags, c128};
use std::collections::HashMap;
use std::sync::atomic::AtomicU64;

/// A batch with its shadows' operations.
pub(super) struct Shadowed {
    pub(super) batch: Batch,
    /// For each measured operation, the largest relative distance of an element, the largest distance and the largest element.
    pub(super) found: Option<Base>,
    /// The entries of the measured operations.
    pub(super) lines: Vec<usize>,
}

/// Adds the shadows' operations to a batch.
pub(super) fn shadowed(digits: &mut Digits, batch: &BatchRef<'_>, ids: &AtomicU64) -> Shadowed {
    let (added, instrs) = Added::new(batch, ids);
    let mut writer = Writer { added, source: batch, digits, shadows: Vec::new(), views: HashMap::new() };
    writer.begin_shadows();
    let measured = |instr: &&Instr| rounds(batch, instr) && batch.origin(instr).is_some();
    let count = instrs.iter().filter(measured).count() as i64;
    let found = writer.begin_findings(count);
    let mut lines = Vec::new();
    for instr in &instrs {
        let measured = writer.instruction(instr).filter(|_| measured(&instr));
        if let (Some((place, _)), Some(operand)) = (found, measured)
            && let Some(line) = writer.measure(instr, operand, place, lines.len())
        {
            lines.push(line);
        }
    }
    let found = found.filter(|_| !lines.is_empty());
    if let Some((_, all)) = found {
        writer.added.op(Opcode::Sync, 0, &[all]);
    }
    let batch = writer.added.finish();
    Shadowed { found: found.map(|(place, _)| batch.bases[place as usize]), batch, lines }
}

fn is_inexact(dtype: DType) -> bool {
    dtype.is_float() || dtype.is_complex()
}

/// Does an instruction round its results?
fn rounds(batch: &BatchRef<'_>, instr: &Instr) -> bool {
    let Some(output) = instr.outputs().first().and_then(|operand| batch.dtype(*operand)) else { return false };
    if !is_inexact(output) {
        return false;
    }
    let input = instr.inputs().first().and_then(|operand| batch.dtype(*operand));
    let power_of_two = |operand: &Operand| {
        operand.as_constant().is_some_and(|constant| {
            let value = batch.constants[constant as usize].cast(DType::C128).value::<c128>().unwrap_or_default();
            value.im == 0.0 && value.re.to_bits() << 12 == 0
        })
    };
    match instr.opcode {
        Opcode::Multiply => !instr.inputs().iter().any(power_of_two),
        Opcode::Divide => !instr.inputs().last().is_some_and(power_of_two),
        Opcode::Absolute => input.is_some_and(DType::is_complex),
        Opcode::Copy => input.is_some_and(|input| input.is_int() || input.size() > output.size()),
        Opcode::Sign | Opcode::Conj | Opcode::Real | Opcode::Imag | Opcode::Maximum | Opcode::Minimum => false,
        Opcode::Where | Opcode::Fmod | Opcode::Remainder => false,
        Opcode::Ceil | Opcode::Trunc | Opcode::Floor | Opcode::Rint | Opcode::FloorDivide => false,
        Opcode::MinimumReduce | Opcode::MaximumReduce => false,
        Opcode::MaskedMinimumReduce | Opcode::MaskedMaximumReduce => false,
        opcode => !matches!(opcode.kind(), Kind::Generator | Kind::System) && opcode.kind() != Kind::Index,
    }
}

struct Writer<'a, 'b> {
    added: Added<'a>,
    source: &'b BatchRef<'b>,
    digits: &'b mut Digits,
    /// The shadows of the batch's bases, where they have some, as places among the bases.
    shadows: Vec<Option<[u32; SHADOWS]>>,
    views: HashMap<(u32, usize), Operand>,
}

impl Writer<'_, '_> {
    /// Gives each base of floats its shadows: those that it has, new ones, or copies of what it holds.
    fn begin_shadows(&mut self) {
        for (place, base) in self.source.bases.iter().enumerate() {
            if !is_inexact(base.dtype()) {
                self.shadows.push(None);
                continue;
            }
            let known = self.digits.shadows.get(&base.id).copied();
            let made = known.unwrap_or_else(|| [(); SHADOWS].map(|()| Base { id: self.added.id(), ..*base }));
            let flags = base.flags & !base_flags::PINNED;
            let flags = if known.is_none() { flags | base_flags::BORN } else { flags & !base_flags::BORN };
            let places = made.map(|shadow| self.added.batch.push_base(Base { flags, ..shadow }));
            self.shadows.push(Some(places));
            if known.is_none() && !base.has(base_flags::BORN) {
                let whole = View::contiguous(&[base.len]).expect("the length of a base is one of a view");
                let from = Operand::view(self.added.batch.push_view(place as u32, &whole));
                for shadow in places {
                    let to = Operand::view(self.added.batch.push_view(shadow, &whole));
                    self.added.op(Opcode::Copy, 0, &[to, from]);
                }
            }
            if base.has(base_flags::DIES) && !base.has(base_flags::LIVE_OUT) {
                self.digits.shadows.remove(&base.id);
            } else {
                self.digits.shadows.insert(base.id, made.map(|shadow| Base { flags: 0, ..shadow }));
            }
        }
    }

    /// The array of what is measured, as a place among the bases and whole.
    fn begin_findings(&mut self, count: i64) -> Option<(u32, Operand)> {
        let whole = View::contiguous(&[3 * count]).ok().filter(|_| count > 0)?;
        let base = Base::checked(self.added.id(), DType::F64, 3 * count)?;
        let flags = base_flags::BORN | base_flags::LIVE_OUT;
        let place = self.added.batch.push_base(Base { flags, ..base });
        Some((place, Operand::view(self.added.batch.push_view(place, &whole))))
    }

    /// An operand of a shadow: views of floats are of the shadow's arrays.
    fn operand(&mut self, operand: Operand, number: usize) -> Operand {
        let Some(view) = operand.as_view() else { return operand };
        let base = self.source.views[view as usize].base;
        let Some(places) = self.shadows.get(base as usize).copied().flatten().filter(|_| base != NO_BASE) else {
            return operand;
        };
        if let Some(known) = self.views.get(&(view, number)) {
            return *known;
        }
        let made = Operand::view(self.added.batch.push_view(places[number], &self.source.view(view)));
        self.views.insert((view, number), made);
        made
    }

    /// Appends an instruction and its shadows. Returns the result if that is one array of floats.
    fn instruction(&mut self, instr: &Instr) -> Option<Operand> {
        self.added.batch.push_instr(*instr);
        let first = *instr.operands().first()?;
        let dtype = self.source.dtype(first).filter(|dtype| is_inexact(*dtype))?;
        if matches!(instr.opcode, Opcode::Sync | Opcode::Nop) {
            return None;
        }
        for number in 0..SHADOWS {
            self.shadow(instr, number, dtype);
        }
        instr.outputs().first().copied()
    }

    /// Appends the instruction of a shadow.
    fn shadow(&mut self, instr: &Instr, number: usize, dtype: DType) -> Option<()> {
        let mut own = *instr;
        for operand in own.operands_mut() {
            *operand = self.operand(*operand, number);
        }
        if instr.opcode.kind() == Kind::Generator {
            // Numbers that the program draws are the same for all.
            self.added.op(Opcode::Copy, 0, &[own.operands[0], instr.operands[0]]);
            return Some(());
        }
        let is_one = instr.outputs == 1 && instr.opcode.kind() != Kind::Index;
        if !is_one || !rounds(self.source, instr) {
            self.added.batch.push_instr(own);
            if instr.opcode.is_extension() {
                self.move_outputs(&own);
            }
            return Some(());
        }
        let shape = self.shape(instr.operands[0])?;
        if shape.contains(&0) {
            return None;
        }
        let target = own.operands[0];
        let exact = self.sum_is_exact(&own, dtype, &shape);
        own.operands[0] = self.added.scrap(dtype, &shape)?;
        self.added.batch.push_instr(own);
        let factor = self.noise(dtype, &shape, exact)?;
        self.added.op(Opcode::Multiply, 0, &[target, own.operands[0], factor]);
        Some(())
    }

    /// Moves what a method wrote.
    fn move_outputs(&mut self, own: &Instr) {
        for &output in own.outputs() {
            let (Some(base), Some(shape)) = (self.added.base_of(output), self.shape_of_new(output)) else { continue };
            if is_inexact(base.dtype())
                && !shape.contains(&0)
                && let Some(factor) = self.noise(base.dtype(), &shape, None)
            {
                self.added.op(Opcode::Multiply, 0, &[output, output, factor]);
            }
        }
    }

    fn shape(&self, operand: Operand) -> Option<Vec<i64>> {
        operand.as_view().map(|view| self.source.shape(view).to_vec())
    }

    fn shape_of_new(&self, operand: Operand) -> Option<Vec<i64>> {
        operand.as_view().map(|view| self.added.batch.as_ref().shape(view).to_vec())
    }

    /// Where a sum or difference of real numbers rounds: its error, which D. Knuth's algorithm gives, is not zero.
    fn sum_is_exact(&mut self, own: &Instr, dtype: DType, shape: &[i64]) -> Option<Operand> {
        if !matches!(own.opcode, Opcode::Add | Opcode::Subtract) || dtype.is_complex() {
            return None;
        }
        let (a, b) = (own.operands[1], own.operands[2]);
        let (same, other) = match own.opcode {
            Opcode::Add => (Opcode::Add, Opcode::Subtract),
            _ => (Opcode::Subtract, Opcode::Add),
        };
        let mut of = |opcode, inputs: &[Operand]| self.added.of(opcode, dtype, shape, inputs);
        let sum = of(same, &[a, b])?;
        let part = of(Opcode::Subtract, &[sum, a])?;
        let rest = of(Opcode::Subtract, &[sum, part])?;
        let first = of(Opcode::Subtract, &[a, rest])?;
        let second = of(other, &[b, part])?;
        let error = of(same, &[first, second])?;
        let zero = self.added.constant(Constant::from_value(0.0f64).cast(dtype));
        self.added.of(Opcode::NotEqual, DType::Bool, shape, &[error, zero])
    }

    /// Random factors within about one unit of the last place of one. `where_rounded`: elsewhere they are one.
    fn noise(&mut self, dtype: DType, shape: &[i64], where_rounded: Option<Operand>) -> Option<Operand> {
        let real = dtype.real_part();
        let unit = if real == DType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON };
        let numbers = View::contiguous(shape).ok()?;
        let numbers = Operand::view(self.added.batch.push_view(NO_BASE, &numbers));
        self.digits.drawn = self.digits.drawn.wrapping_add(1);
        let key = self.added.constant(Constant::from_value(u64::from(self.digits.drawn)));
        let [wide, low, one] = [2.0 * unit, 1.0 - unit, 1.0].map(|value| Constant::from_value(value).cast(real));
        let [wide, low, one] = [wide, low, one].map(|value| self.added.constant(value));
        let drawn = self.added.of(Opcode::Random, real, shape, &[numbers, key])?;
        let scaled = self.added.of(Opcode::Multiply, real, shape, &[drawn, wide])?;
        let mut factor = self.added.of(Opcode::Add, real, shape, &[scaled, low])?;
        if let Some(mask) = where_rounded {
            factor = self.added.of(Opcode::Where, real, shape, &[mask, factor, one])?;
        }
        if dtype.is_complex() { self.added.of(Opcode::Copy, dtype, shape, &[factor]) } else { Some(factor) }
    }

    /// Appends what measures how far the shadows of a result are from it. Returns the entry of the operation's line.
    fn measure(&mut self, instr: &Instr, result: Operand, found: u32, number: usize) -> Option<usize> {
        let (dtype, shape) = (self.source.dtype(result)?, self.shape(result)?);
        let real = dtype.real_part();
        if shape.contains(&0) {
            return None;
        }
        let mut farthest: Option<Operand> = None;
        for shadow in 0..SHADOWS {
            let own = self.operand(result, shadow);
            let apart = self.added.of(Opcode::Subtract, dtype, &shape, &[own, result])?;
            let distance = self.added.of(Opcode::Absolute, real, &shape, &[apart])?;
            farthest = Some(match farthest {
                Some(other) => self.added.of(Opcode::Maximum, real, &shape, &[other, distance])?,
                None => distance,
            });
        }
        let zero = self.added.constant(Constant::from_value(0.0f64).cast(real));
        let size = self.added.of(Opcode::Absolute, real, &shape, &[result])?;
        // Neither zeros that are equal nor infinities and NaN are apart.
        let distance = farthest?;
        let is_apart = self.added.of(Opcode::Greater, DType::Bool, &shape, &[distance, zero])?;
        let distance = self.added.of(Opcode::Where, real, &shape, &[is_apart, distance, zero])?;
        let ratio = self.added.of(Opcode::Divide, real, &shape, &[distance, size])?;
        let relative = self.added.of(Opcode::Where, real, &shape, &[is_apart, ratio, zero])?;
        for (at, all) in [relative, distance, size].into_iter().enumerate() {
            let largest = self.added.fold(Opcode::MaximumReduce, real, &shape, all)?;
            let place = View::new((3 * number + at) as i64, &[], &[]).ok()?;
            let place = Operand::view(self.added.batch.push_view(found, &place));
            self.added.op(Opcode::Copy, 0, &[place, largest]);
        }
        let (file, line) = self.source.origin(instr)?;
        Some(self.digits.line((file.to_owned(), line), self.source.operation_name(instr.opcode), real))
    }
}
