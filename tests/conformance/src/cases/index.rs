//! Generators, gather and scatters.

use super::{Builder, Case, Layout};
use crate::data::Values;
use bh_bytecode::batch::NO_BASE;
use bh_bytecode::{Constant, DType, Opcode, TypeSet, View};

/// All cases of a generator or an index operation.
pub(super) fn cases(opcode: Opcode) -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in opcode.info().types.iter() {
        for &layout in Layout::ALL {
            match opcode {
                Opcode::Range | Opcode::Random => cases.extend(generator(opcode, dtype, layout)),
                _ => cases.extend(TypeSet::INDEX.iter().filter_map(|index| moves(opcode, dtype, index, layout))),
            }
        }
    }
    cases
}

fn generator(opcode: Opcode, dtype: DType, layout: Layout) -> Vec<Case> {
    if matches!(layout, Layout::InPlace | Layout::Overlapping | Layout::Constant) {
        return Vec::new();
    }
    let shape = layout.shape();
    // A plain count, one that jumps and runs backwards, and one that repeats a number of more than 32 bits.
    let counts = [(0i64, 1i64), (-5, -3), (1 << 33, 0)];
    let case = |(start, step): (i64, i64)| {
        let title = format!("{} {dtype} from {start} by {step} {}", opcode.name(), layout.name());
        let mut builder = Builder::new(&title);
        let mut stride = vec![step; shape.len()];
        for dim in (1..shape.len()).rev() {
            stride[dim - 1] = stride[dim] * shape[dim];
        }
        let index = View::new(start, shape, &stride).ok()?;
        let mut operands = vec![builder.output(dtype, shape, layout), builder.view(NO_BASE, &index)];
        if opcode == Opcode::Random {
            let key = builder.rng.bits();
            operands.push(bh_bytecode::Operand::constant(builder.batch.push_constant(Constant::from_value(key))));
        }
        Some(builder.finish(title, layout, opcode, 0, &operands))
    };
    counts.into_iter().filter_map(case).collect()
}

/// Gather and the scatters; values and indices have the layout's shape, the flattened side has another one.
fn moves(opcode: Opcode, dtype: DType, index: DType, layout: Layout) -> Option<Case> {
    if layout == Layout::InPlace || layout == Layout::Overlapping {
        return None;
    }
    let gather = opcode == Opcode::Gather;
    if layout == Layout::Constant && gather {
        return None;
    }
    let title = format!("{} {dtype} by {index} {}", opcode.name(), layout.name());
    let mut builder = Builder::new(&title);
    let places = layout.shape();
    let flat: &[i64] = if places.len() == 2 { &[11, 5] } else { &[6, 2, 3] };
    let length = flat.iter().product();
    let array = if layout == Layout::Constant { Layout::Contiguous } else { layout };
    if gather {
        let target = builder.output(dtype, places, layout);
        let source = builder.input(dtype, flat, layout, 0, Values::Wild);
        let index = builder.input(index, places, array, 1, Values::Indices(length));
        return Some(builder.finish(title, layout, opcode, 0, &[target, source, index]));
    }
    // A scatter leaves some elements unchanged, so its output has data.
    let (len, view) = layout.output(flat);
    let base = builder.base(dtype, len, Values::Tame);
    builder.hint(base, &view);
    let mut operands = vec![builder.view(base, &view)];
    operands.push(builder.input(dtype, places, layout, 1, Values::Tame));
    operands.push(builder.input(index, places, array, 0, Values::Indices(length)));
    if opcode == Opcode::CondScatter {
        operands.push(builder.input(DType::Bool, places, array, 1, Values::Tame));
    }
    Some(builder.finish(title, layout, opcode, 0, &operands))
}
