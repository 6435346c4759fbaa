//! Ordinary programs on arrays of ordinary sizes: scaled sums, stencils with boundaries, normalisations, choices,
//! polynomials, arrays joined from parts of others or moved, and views of kept arrays. All of their operations are
//! exact.

mod grids;
mod parts;
mod pieces;
mod windows;

use crate::data::Values;
use crate::expressions;
use crate::writer::{Given, Seen, Writer};
use bh_bytecode::random::{Program, Rng};
use bh_bytecode::{DType, Opcode};

/// Sizes at which engines change their methods: lanes, blocks, rows, planning, chunks, threads.
const THRESHOLDS: &[i64] = &[1, 32, 64, 256, 512, 4_096, 8_192, 32_768, 65_536];

/// The sizes of arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// Up to some hundred elements.
    Small,
    /// Around the thresholds, and up to a hundred thousand elements.
    Ordinary,
}

/// A number of elements.
fn elements(rng: &mut Rng, sizes: Sizes) -> i64 {
    match (sizes, rng.below(3)) {
        (Sizes::Small, 0) => 1 + rng.below(12) as i64,
        (Sizes::Small, _) => rng.between(13, 300),
        (_, 0) => rng.between(8_193, 100_000),
        _ => (rng.pick(THRESHOLDS).copied().unwrap_or(1) + rng.between(-1, 1)).max(1),
    }
}

/// The program of a seed.
pub fn program(seed: u64, sizes: Sizes) -> Program {
    let mut rng = Rng::new(seed);
    let dtype = if rng.chance(80) { DType::F64 } else { DType::F32 };
    let mut writer = Writer::default();
    let count = elements(&mut rng, sizes);
    match rng.below(11) {
        0 => {
            let all: Vec<_> = (0..1 + rng.below(3)).map(|_| expressions::pattern(&mut rng)).collect();
            return expressions::program(&all, None, dtype, count);
        }
        1 => normalised(&mut writer, &mut rng, dtype, count),
        2 => chosen(&mut writer, &mut rng, dtype, count),
        3 => polynomial(&mut writer, &mut rng, dtype, count),
        4 => parts::put_together(&mut writer, &mut rng, dtype, count),
        9 | 10 => pieces::moved(&mut writer, &mut rng, dtype, count),
        5 | 6 => windows::windows(&mut writer, &mut rng, dtype, count),
        _ => grids::stencil(&mut writer, &mut rng, dtype, count),
    }
    writer.finish()
}

/// The program of a seed that only has views of arrays, which grow between reads: on clusters, the ranks' coverage
/// changes while elements are in flight.
pub fn windowed(seed: u64) -> Program {
    let mut rng = Rng::new(seed);
    let mut writer = Writer::default();
    let count = elements(&mut rng, Sizes::Small);
    windows::growing(&mut writer, &mut rng, DType::F64, count);
    writer.finish()
}

/// The program of a seed with arrays in pieces: rolled, padded, joined and filled by parts.
pub fn moved(seed: u64, sizes: Sizes) -> Program {
    let mut rng = Rng::new(seed);
    let dtype = [DType::F64, DType::F32, DType::I32][rng.below(3)];
    let mut writer = Writer::default();
    let count = elements(&mut rng, sizes);
    pieces::moved(&mut writer, &mut rng, dtype, count);
    writer.finish()
}

/// The other operand of an operation: a number.
fn number(rng: &mut Rng) -> Given {
    Given::Number(*rng.pick(&[0.25, 0.5, 0.3, 2.0, 3.0, -1.0, 0.1]).unwrap_or(&1.0))
}

/// Rows minus their mean or minimum, divided by their range; all sums are of small whole numbers.
fn normalised(writer: &mut Writer, rng: &mut Rng, dtype: DType, count: i64) {
    let columns = [1, 3, 32, 33, 100, count][rng.below(6)].min(count);
    let shape = [(count / columns).max(1), columns];
    let x = writer.input(rng, dtype, &shape, Values::Whole);
    let axis = rng.below(2);
    let kept = shape[1 - axis];
    let mut fold = |opcode| {
        let folded = writer.make(opcode, 1 << axis, dtype, &[kept], &[Given::Array(x)]);
        let view = folded.view.new_axis(axis).and_then(|view| view.broadcast_to(&shape));
        folded.through(view.expect("a folded axis is repeated"))
    };
    let [low, high, sum] = [Opcode::MinimumReduce, Opcode::MaximumReduce, Opcode::AddReduce].map(&mut fold);
    let each = |writer: &mut Writer, opcode, a, b| writer.make(opcode, 0, dtype, &shape, &[a, b]);
    let mean = each(writer, Opcode::Divide, Given::Array(sum), Given::Number(shape[axis] as f64));
    let middle = if rng.chance(50) { mean } else { low };
    let range = each(writer, Opcode::Subtract, Given::Array(high), Given::Array(low));
    let range = each(writer, Opcode::Add, Given::Array(range), Given::Number(0.5));
    let centred = each(writer, Opcode::Subtract, Given::Array(x), Given::Array(middle));
    let mut scaled = each(writer, Opcode::Divide, Given::Array(centred), Given::Array(range));
    for _ in 0..rng.below(3) {
        scaled = each(writer, Opcode::Multiply, Given::Array(scaled), number(rng));
    }
    writer.keep(scaled);
}

/// Nested choices.
fn chosen(writer: &mut Writer, rng: &mut Rng, dtype: DType, count: i64) {
    let arrays: Vec<Seen> = (0..3).map(|_| writer.input(rng, dtype, &[count], Values::Tame)).collect();
    let any = |rng: &mut Rng| Given::Array(arrays[rng.below(3)]);
    let mut value = arrays[0];
    for _ in 0..1 + rng.below(5) {
        let opcode = [Opcode::Greater, Opcode::Less, Opcode::GreaterEqual, Opcode::Equal][rng.below(4)];
        let limit = if rng.chance(50) { number(rng) } else { any(rng) };
        let mask = writer.make(opcode, 0, DType::Bool, &[count], &[Given::Array(value), limit]);
        let scaled = writer.make(Opcode::Multiply, 0, dtype, &[count], &[Given::Array(value), number(rng)]);
        let other = if rng.chance(50) { Given::Array(scaled) } else { any(rng) };
        let sides = if rng.chance(50) { [other, Given::Array(value)] } else { [Given::Array(value), other] };
        value = writer.make(Opcode::Where, 0, dtype, &[count], &[Given::Array(mask), sides[0], sides[1]]);
        if rng.chance(20) {
            writer.keep(value);
        }
    }
    writer.keep(value);
}

/// Horner's rule, or powers, at kept positions.
fn polynomial(writer: &mut Writer, rng: &mut Rng, dtype: DType, count: i64) {
    let x = writer.input(rng, dtype, &[count], Values::Tame);
    let each = |writer: &mut Writer, opcode, a: Seen, b| writer.make(opcode, 0, dtype, &[count], &[Given::Array(a), b]);
    let mut value = each(writer, Opcode::Multiply, x, number(rng));
    let mut power = x;
    let by_powers = rng.chance(50);
    for _ in 0..1 + rng.below(6) {
        if by_powers {
            power = each(writer, Opcode::Multiply, power, Given::Array(x));
            let term = each(writer, Opcode::Multiply, power, number(rng));
            value = each(writer, Opcode::Add, value, Given::Array(term));
        } else {
            value = each(writer, Opcode::Add, value, number(rng));
            value = each(writer, Opcode::Multiply, value, Given::Array(x));
        }
    }
    for _ in 0..rng.below(3) {
        value = each(writer, Opcode::Multiply, value, number(rng));
    }
    writer.keep(value);
}
