//! Reductions over every choice of axes, and accumulates along each.

use super::{Builder, Case, Layout};
use crate::data::Values;
use bh_bytecode::{AxisOrder, DType, Kind, Opcode};

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

/// Shapes whose reductions take different loops: long and short rows, few columns of many rows, kept elements inside
/// and outside.
const SHAPES: &[&[i64]] = &[
    &[5, 64],
    &[70, 9],
    &[130, 5],
    &[200, 3],
    &[3, 200],
    &[12, 100],
    &[1, 90],
    &[60, 60],
    &[7, 8, 32],
    &[32, 4, 8],
    &[8, 130, 3],
    &[2, 3, 70],
    &[70, 2, 3],
    &[9, 1, 65],
    &[2, 5, 1, 3, 64],
];

/// Sums and maxima of all these shapes along all choices of axes, in C order, in Fortran order, and reversed.
pub(super) fn shaped() -> Vec<Case> {
    let mut cases = Vec::new();
    let types = [DType::F64, DType::F32, DType::C64];
    let all = types.into_iter().flat_map(|dtype| SHAPES.iter().map(move |&shape| (dtype, shape)));
    for (dtype, shape) in all {
        for param in masks(Kind::Reduction, shape) {
            let kept: Vec<i64> =
                (0..shape.len()).filter(|axis| param >> axis & 1 == 0).map(|axis| shape[axis]).collect();
            let axes: Vec<u8> = (0..shape.len() as u8).collect();
            let forward: Vec<(u8, bool)> = axes.iter().map(|&axis| (axis, false)).collect();
            let fortran: Vec<(u8, bool)> = forward.iter().copied().rev().collect();
            let backward: Vec<(u8, bool)> = axes.iter().map(|&axis| (axis, param >> axis & 1 == 1)).collect();
            for (order, name) in [(forward, "C"), (fortran, "F"), (backward, "backward")] {
                let order = AxisOrder::of_axes(&order).map_or(0, |order| order.code());
                for opcode in [Opcode::AddReduce, Opcode::MaximumReduce] {
                    if !opcode.info().types.contains(dtype) {
                        continue;
                    }
                    let title = format!("{} {dtype} {shape:?} axes {param:#b} order {name}", opcode.name());
                    let mut builder = Builder::new(&title);
                    let source = builder.input(dtype, shape, Layout::Contiguous, 0, Values::Tame);
                    let target = builder.output(dtype, &kept, Layout::Contiguous);
                    let mut case = builder.finish(title, Layout::Contiguous, opcode, param, &[target, source]);
                    case.program.batch.instrs[0].order = order;
                    cases.push(case);
                }
            }
        }
    }
    cases
}

/// The axis masks to test: all of a small rank, a few of rank 16.
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
    if opcode == Opcode::Contract {
        operands.push(builder.input(dtype, shape, layout, 1, values));
    }
    Some(builder.finish(title, layout, opcode, param, &operands))
}
