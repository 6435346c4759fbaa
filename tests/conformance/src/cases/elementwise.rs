//! Elementwise operations: all legal types in all layouts.

use super::{Builder, Case, Layout};
use crate::data::Values;
use bh_bytecode::opcode::Signature;
use bh_bytecode::{DType, Opcode, TypeSet};

/// All cases of an elementwise opcode.
pub(super) fn cases(opcode: Opcode) -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in opcode.info().types.iter() {
        for output in output_types(opcode, dtype) {
            for &layout in Layout::ALL {
                let differs = opcode != Opcode::Copy || dtype.is_float() && output.is_int();
                for param in (0..=5).filter(|&param| opcode.takes_param(param) && (param == 0 || differs)) {
                    cases.extend(case(opcode, dtype, output, layout, param));
                }
            }
        }
    }
    cases
}

/// The legal types of the output when the main input has this type.
fn output_types(opcode: Opcode, dtype: DType) -> Vec<DType> {
    match opcode.info().signature {
        Signature::Test => vec![DType::Bool],
        Signature::Abs | Signature::Part => vec![dtype.real_part()],
        Signature::Cast if dtype.is_complex() => TypeSet::COMPLEX.iter().collect(),
        Signature::Cast => TypeSet::ALL.iter().collect(),
        _ => vec![dtype],
    }
}

fn case(opcode: Opcode, dtype: DType, output: DType, layout: Layout, param: u16) -> Option<Case> {
    let info = opcode.info();
    let inputs = info.inputs as usize;
    let first = if info.signature == Signature::Select { DType::Bool } else { dtype };
    let useless = match layout {
        Layout::InPlace => first != output,
        Layout::Constant => inputs < 2,
        Layout::Overlapping => inputs < 2,
        _ => false,
    };
    if useless {
        return None;
    }
    let exponent = if param > 0 { format!(" {param}") } else { String::new() };
    let title = format!("{}{exponent} {dtype} -> {output} {}", opcode.name(), layout.name());
    let mut builder = Builder::new(&title);
    let shape = layout.shape();
    let mut operands = Vec::new();
    let mut shared = None;
    for place in 0..inputs {
        let dtype = if place == 0 { first } else { dtype };
        let operand = match (layout, shared) {
            // Windows on one base, for inputs of its type.
            (Layout::Overlapping, Some((base, its_type))) if its_type == dtype => {
                let (_, view) = layout.input(shape, place);
                builder.view(base, &view)
            }
            _ => builder.input(dtype, shape, layout, place, Values::Wild),
        };
        if let Some(view) = operand.as_view() {
            shared = Some((builder.batch.views[view as usize].base, dtype));
        }
        operands.push(operand);
    }
    let target = if layout == Layout::InPlace { operands[0] } else { builder.output(output, shape, layout) };
    operands.insert(0, target);
    Some(builder.finish(title, layout, opcode, param, &operands))
}
