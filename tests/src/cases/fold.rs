//! Reductions over every choice of axes, and accumulates along each.

use super::{Builder, Case, Layout};
use crate::data::Values;
use bh_bytecode::{DType, Kind, Opcode};

/// All cases of a reduction or an accumulate.
pub(super) fn cases(opcode: Opcode) -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in opcode.info().types.iter() {
        for &layout in Layout::ALL {
            for param in masks(opcode.kind(), layout.shape()) {
                cases.extend(case(opcode, dtype, layout, param, Values::Tame));
            }
        }
        let all = if opcode.kind() == Kind::Accumulate { 2 } else { 3 };
        cases.extend(case(opcode, dtype, Layout::Contiguous, all, Values::Wild));
    }
    cases
}

/// The axis masks worth testing: all of a small rank, a few of rank 16.
fn masks(kind: Kind, shape: &[i64]) -> Vec<u16> {
    let rank = shape.len();
    match (kind, rank) {
        (Kind::Accumulate, 0) => Vec::new(),
        (Kind::Accumulate, 16) => vec![1, 1 << 3, 1 << 15],
        (Kind::Accumulate, _) => (0..rank).map(|axis| 1 << axis).collect(),
        (_, 0) => vec![0],
        (_, 16) => vec![u16::MAX, 1, 1 << 15, 0b0000_0100_0100_1000, 0b1000_0000_0000_0001],
        _ => (1..1 << rank).collect(),
    }
}

fn case(opcode: Opcode, dtype: DType, layout: Layout, param: u16, values: Values) -> Option<Case> {
    let accumulate = opcode.kind() == Kind::Accumulate;
    let useless = match layout {
        Layout::Overlapping | Layout::Constant => true,
        Layout::InPlace => !accumulate,
        _ => false,
    };
    if useless {
        return None;
    }
    let wild = if values == Values::Wild { " wild" } else { "" };
    let title = format!("{} {dtype} axes {param:#b}{wild} {}", opcode.name(), layout.name());
    let mut builder = Builder::new(&title);
    let shape = layout.shape();
    let source = builder.input(dtype, shape, layout, 0, values);
    let kept: Vec<i64> = match accumulate {
        true => shape.to_vec(),
        false => (0..shape.len()).filter(|axis| param >> axis & 1 == 0).map(|axis| shape[axis]).collect(),
    };
    let target = if layout == Layout::InPlace { source } else { builder.output(dtype, &kept, layout) };
    let mut operands = vec![target, source];
    if opcode.unmasked().is_some() {
        operands.push(builder.input(DType::Bool, shape, layout, 1, Values::Tame));
    }
    Some(builder.finish(title, layout, opcode, param, &operands))
}
