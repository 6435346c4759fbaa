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
    let mut writer =
        Writer { added, source: batch, digits, shadows: Vec::new(), views: HashMap::new(), drawn: HashMap::new() };
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

/// Operations that share random numbers, at most.
const SHARED: u64 = 1024;

/// Random numbers, and how many operations before this one have used them.
#[derive(Clone, Copy)]
struct Drawn {
    numbers: Operand,
    uses: u64,
}

impl Drawn {
    /// The factor of a shadow's numbers. The fractions of the products are its own: of a uniform number, those of different
    /// whole multiples are uniform and uncorrelated. None is a multiple of another one, and 11 bits of single precision
    /// remain.
    fn multiplier(self, number: usize) -> f64 {
        let place = self.uses * SHADOWS as u64 + number as u64;
        (4097 + place * 2531 % 4093) as f64
    }
}

struct Writer<'a, 'b> {
    added: Added<'a>,
    source: &'b BatchRef<'b>,
    digits: &'b mut Digits,
    /// The shadows of the batch's bases, where they have some, as places among the bases.
    shadows: Vec<Option<[u32; SHADOWS]>>,
    views: HashMap<(u32, usize), Operand>,
    /// Random numbers by type and shape, and how many operations have used them.
    drawn: HashMap<(DType, Vec<i64>), (Operand, u64)>,
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
        let is_one = instr.outputs == 1 && instr.opcode.kind() != Kind::Index;
        let moved = self.shape(first).filter(|shape| is_one && rounds(self.source, instr) && !shape.contains(&0));
        let drawn = moved.and_then(|shape| Some((self.draw(dtype, &shape)?, shape)));
        for number in 0..SHADOWS {
            match &drawn {
                Some((drawn, shape)) => self.rounded(instr, number, (dtype, shape), *drawn),
                None => self.shadow(instr, number),
            };
        }
        instr.outputs().first().copied()
    }

    /// An instruction on a shadow's arrays.
    fn own(&mut self, instr: &Instr, number: usize) -> Instr {
        let mut own = *instr;
        for operand in own.operands_mut() {
            *operand = self.operand(*operand, number);
        }
        own
    }

    /// Appends the instruction of a shadow as it is.
    fn shadow(&mut self, instr: &Instr, number: usize) -> Option<()> {
        let own = self.own(instr, number);
        if instr.opcode.kind() == Kind::Generator {
            // Numbers that the program draws are the same for all.
            self.added.op(Opcode::Copy, 0, &[own.operands[0], instr.operands[0]]);
            return Some(());
        }
        self.added.batch.push_instr(own);
        if instr.opcode.is_extension() {
            self.move_outputs(&own);
        }
        Some(())
    }

    /// Appends the instruction of a shadow, whose result of this type and shape is rounded at random.
    fn rounded(&mut self, instr: &Instr, number: usize, result: (DType, &[i64]), drawn: Drawn) -> Option<()> {
        let (dtype, shape) = result;
        let mut own = self.own(instr, number);
        let target = own.operands[0];
        own.operands[0] = self.added.scrap(dtype, shape)?;
        self.added.batch.push_instr(own);
        let value = own.operands[0];
        let noise = self.noise(drawn, number, dtype.real_part(), shape)?;
        if matches!(own.opcode, Opcode::Add | Opcode::Subtract) && !dtype.is_complex() {
            let error = self.error_of_sum(&own, dtype, shape)?;
            let moved = self.added.of(Opcode::Multiply, dtype, shape, &[value, noise])?;
            let moved = self.added.of(Opcode::Add, dtype, shape, &[moved, error])?;
            let zero = self.added.constant(Constant::from_value(0.0f64).cast(dtype));
            // False for the NaN of infinite sums.
            let size = self.added.of(Opcode::Absolute, dtype, shape, &[error])?;
            let is_rounded = self.added.of(Opcode::Greater, DType::Bool, shape, &[size, zero])?;
            let moved = self.added.of(Opcode::Where, dtype, shape, &[is_rounded, moved, zero])?;
            self.added.op(Opcode::Add, 0, &[target, value, moved]);
            return Some(());
        }
        let factor = self.factor(noise, dtype, shape)?;
        self.added.op(Opcode::Multiply, 0, &[target, value, factor]);
        Some(())
    }

    /// Moves what a method wrote.
    fn move_outputs(&mut self, own: &Instr) {
        for &output in own.outputs() {
            let (Some(base), Some(shape)) = (self.added.base_of(output), self.shape_of_new(output)) else { continue };
            if is_inexact(base.dtype())
                && !shape.contains(&0)
                && let Some(factor) = self.factor_drawn(base.dtype(), &shape)
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

    /// The rounding error of a sum or difference of real numbers, by D. Knuth's algorithm.
    fn error_of_sum(&mut self, own: &Instr, dtype: DType, shape: &[i64]) -> Option<Operand> {
        let [sum, a, b] = [0, 1, 2].map(|at| own.operands[at]);
        let (same, other) = match own.opcode {
            Opcode::Add => (Opcode::Add, Opcode::Subtract),
            _ => (Opcode::Subtract, Opcode::Add),
        };
        let mut of = |opcode, inputs: &[Operand]| self.added.of(opcode, dtype, shape, inputs);
        let part = of(Opcode::Subtract, &[sum, a])?;
        let rest = of(Opcode::Subtract, &[sum, part])?;
        let first = of(Opcode::Subtract, &[a, rest])?;
        let second = of(other, &[b, part])?;
        of(same, &[first, second])
    }

    /// Random numbers below one for an operation. Drawing takes longer than the rest, so that operations share them.
    fn draw(&mut self, dtype: DType, shape: &[i64]) -> Option<Drawn> {
        let kind = (dtype.real_part(), shape.to_vec());
        if let Some((numbers, uses)) = self.drawn.get_mut(&kind).filter(|(_, uses)| *uses < SHARED) {
            *uses += 1;
            return Some(Drawn { numbers: *numbers, uses: *uses });
        }
        let view = View::contiguous(shape).ok()?;
        let view = Operand::view(self.added.batch.push_view(NO_BASE, &view));
        self.digits.drawn = self.digits.drawn.wrapping_add(1);
        let key = self.added.constant(Constant::from_value(u64::from(self.digits.drawn)));
        let numbers = self.added.of(Opcode::Random, kind.0, shape, &[view, key])?;
        self.drawn.insert(kind, (numbers, 0));
        Some(Drawn { numbers, uses: 0 })
    }

    /// Random numbers between a unit of the last place of one and its negative, for the shadow of a number.
    fn noise(&mut self, drawn: Drawn, number: usize, real: DType, shape: &[i64]) -> Option<Operand> {
        let unit = if real == DType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON };
        let [many, wide] = [drawn.multiplier(number), 2.0 * unit].map(|value| Constant::from_value(value).cast(real));
        let [many, wide] = [many, wide].map(|value| self.added.constant(value));
        let mut of = |opcode, inputs: &[Operand]| self.added.of(opcode, real, shape, inputs);
        let multiplied = of(Opcode::Multiply, &[drawn.numbers, many])?;
        let whole = of(Opcode::Rint, &[multiplied])?;
        let part = of(Opcode::Subtract, &[multiplied, whole])?;
        of(Opcode::Multiply, &[part, wide])
    }

    /// Factors that differ from one by this noise.
    fn factor(&mut self, noise: Operand, dtype: DType, shape: &[i64]) -> Option<Operand> {
        let real = dtype.real_part();
        let one = self.added.constant(Constant::from_value(1.0f64).cast(real));
        let factor = self.added.of(Opcode::Add, real, shape, &[noise, one])?;
        if dtype.is_complex() { self.added.of(Opcode::Copy, dtype, shape, &[factor]) } else { Some(factor) }
    }

    /// Random factors of their own.
    fn factor_drawn(&mut self, dtype: DType, shape: &[i64]) -> Option<Operand> {
        let drawn = self.draw(dtype, shape)?;
        let noise = self.noise(drawn, 0, dtype.real_part(), shape)?;
        self.factor(noise, dtype, shape)
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn shadows_and_operations_have_noise_of_their_own() {
        let multipliers = (0..=SHARED).flat_map(|uses| (0..SHADOWS).map(move |number| (uses, number)));
        let drawn = |uses| Drawn { numbers: Operand::view(0), uses };
        let all: Vec<f64> = multipliers.map(|(uses, number)| drawn(uses).multiplier(number)).collect();
        assert_eq!(all.iter().map(|it| *it as u64).collect::<HashSet<_>>().len(), all.len());
        let word = |at: u64| {
            u64::from_le_bytes(bh_bytecode::hash::hash_bytes(&at.to_le_bytes()).to_le_bytes()[..8].try_into().unwrap())
        };
        let numbers: Vec<f64> = (0..5000).map(|at| (word(at) >> 11) as f64 / (1u64 << 53) as f64).collect();
        let part = |many: f64| numbers.iter().map(move |it| it * many - (it * many).round_ties_even());
        for pair in all.windows(2) {
            let product: f64 = part(pair[0]).zip(part(pair[1])).map(|(a, b)| a * b).sum();
            assert!((product / 5000.0 * 12.0).abs() < 0.2, "{pair:?}: {product}");
        }
    }
}
