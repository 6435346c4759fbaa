//! Contractions: products of matrices and of stacks of them, in all memory layouts, and contractions that are no matrix
//! products.

use super::{Builder, Case, Layout};
use crate::data::Values;
use bh_bytecode::{DType, Opcode, Operand, View, base_flags};

/// The axes of a box with their extents: of a stack, rows, columns, inner axes, or summed axes of one operand only.
const SHAPES: &[&[(i64, char)]] = &[
    &[(37, 'r'), (29, 'i'), (23, 'c')],
    &[(65, 'r'), (40, 'c'), (70, 'i')],
    &[(33, 'i'), (31, 'c'), (30, 'r')],
    &[(3, 's'), (20, 'r'), (30, 'i'), (21, 'c')],
    &[(24, 'r'), (2, 's'), (25, 'c'), (3, 's'), (26, 'i')],
    &[(9, 'i'), (2, 's'), (40, 'r'), (7, 'i'), (30, 'c')],
    &[(5, 'r'), (6, 'c'), (7, 'r'), (20, 'i'), (8, 'c')],
    &[(5, 'r'), (3000, 'i'), (4, 'c')],
    &[(4, 'r'), (5, 'i'), (700, 'c')],
    &[(700, 'r'), (4, 'i'), (5, 'c')],
    &[(20, 'r'), (11, 'a'), (20, 'i'), (25, 'c')],
    &[(20, 'r'), (20, 'i'), (25, 'c'), (11, 'b')],
    &[(3, 'r'), (2, 'i'), (2, 'c')],
    &[(100, 's'), (3, 'r'), (3, 'i'), (3, 'c')],
    &[(130, 'r'), (90, 'i')],
    &[(90, 'i'), (130, 'c')],
    &[(40, 's'), (70, 'i')],
    &[(8, 'r'), (0, 'i'), (9, 'c')],
    &[(8, 'r'), (9, 'i'), (0, 'c')],
];

/// The memory layout of an operand.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// C order.
    Rows,
    /// Fortran order.
    Columns,
    /// With gaps, and the first axis reversed.
    Loose,
}

const WAYS: [[Way; 3]; 5] = [
    [Way::Rows, Way::Rows, Way::Rows],
    [Way::Columns, Way::Columns, Way::Columns],
    [Way::Rows, Way::Columns, Way::Rows],
    [Way::Columns, Way::Rows, Way::Loose],
    [Way::Loose, Way::Loose, Way::Rows],
];

/// All of them.
pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, axes) in SHAPES.iter().enumerate() {
        for (way, ways) in WAYS.into_iter().enumerate() {
            for (at, dtype) in Opcode::Contract.info().types.iter().enumerate() {
                // Each type is combined with all shapes and all layouts, but not with all pairs of them.
                if matches!(dtype, DType::F32 | DType::F64) || (number + way + at) % WAYS.len() == 0 {
                    cases.push(case(dtype, axes, ways));
                }
            }
        }
    }
    cases
}

fn case(dtype: DType, axes: &[(i64, char)], ways: [Way; 3]) -> Case {
    let title = format!("contract {dtype} {axes:?} {ways:?}");
    let mut builder = Builder::new(&title);
    let has = |roles: &str| axes.iter().map(|(_, role)| roles.contains(*role)).collect::<Vec<bool>>();
    let summed = has("iab");
    let kept: Vec<(i64, bool)> =
        axes.iter().zip(&summed).filter(|(_, summed)| !**summed).map(|((extent, _), _)| (*extent, true)).collect();
    let own = |roles: &str| axes.iter().map(|axis| axis.0).zip(has(roles)).collect::<Vec<(i64, bool)>>();
    let target = operand(&mut builder, dtype, &kept, ways[2], false);
    let operands = [
        target,
        operand(&mut builder, dtype, &own("sria"), ways[0], true),
        operand(&mut builder, dtype, &own("scib"), ways[1], true),
    ];
    let param = summed.iter().enumerate().fold(0, |mask, (axis, &summed)| mask | u16::from(summed) << axis);
    builder.finish(title, Layout::Contiguous, Opcode::Contract, param, &operands)
}

/// An operand over some of the axes with their extents; it is constant along the others.
fn operand(builder: &mut Builder, dtype: DType, axes: &[(i64, bool)], way: Way, given: bool) -> Operand {
    let (mut stride, mut step, mut start) = (vec![0; axes.len()], 1, 0);
    let mut order: Vec<usize> = (0..axes.len()).filter(|&axis| axes[axis].1).rev().collect();
    if matches!(way, Way::Columns) {
        order.reverse();
    }
    let loose = matches!(way, Way::Loose);
    step += i64::from(loose);
    for &axis in &order {
        stride[axis] = step;
        step = step * axes[axis].0.max(1) + i64::from(loose);
    }
    if let Some(&first) = order.last().filter(|_| loose) {
        start = (axes[first].0 - 1).max(0) * stride[first];
        stride[first] = -stride[first];
    }
    let shape: Vec<i64> = axes.iter().map(|axis| axis.0).collect();
    let view = View::new(start, &shape, &stride).expect("a legal view");
    let len = if view.is_empty() { 0 } else { step };
    let base = match given || loose {
        true => builder.base(dtype, len, Values::Tame),
        false => builder.bare_base(dtype, len, base_flags::BORN),
    };
    builder.hint(base, &view);
    builder.view(base, &view)
}
