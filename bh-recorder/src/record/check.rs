//! Checks of arguments as they are recorded, with messages that name the operation, the operand, shapes and types.

use bh_bytecode::opcode::Signature;
use bh_bytecode::{DType, Kind, Opcode};
use bh_core::abi::status;
use bh_core::error::{Error, Result};

/// The type of a new result, or `None` if the inputs do not determine it.
pub fn result_type(opcode: Opcode, inputs: &[DType]) -> Option<DType> {
    match opcode.info().signature {
        Signature::Same | Signature::Reduce | Signature::Masked | Signature::Product | Signature::Gather => {
            inputs.first().copied()
        }
        Signature::Test => Some(DType::Bool),
        Signature::Abs | Signature::Part => inputs.first().map(|input| input.real_part()),
        Signature::Select => inputs.get(1).copied(),
        _ => None,
    }
}

/// Why these operand types are refused.
#[cold]
pub(crate) fn type_error(opcode: Opcode, output: DType, inputs: &[DType]) -> Error {
    let info = opcode.info();
    let name = info.name;
    if inputs.len() != info.inputs as usize {
        let text = format!("{name}: {} inputs given, but it takes {}", inputs.len(), info.inputs);
        return Error::new(status::ARGUMENT, text);
    }
    let given: Vec<&str> = inputs.iter().map(|input| input.name()).collect();
    let mut text = format!("{name}: no such operation for ({}) -> {}", given.join(", "), output.name());
    let first = inputs.first().copied();
    match info.signature {
        Signature::Same | Signature::Test | Signature::Reduce | Signature::Masked | Signature::Product
            if first.is_some_and(|t| !info.types.contains(t)) =>
        {
            text += &format!("; the first input must be one of {}", type_names(opcode));
        }
        Signature::Same | Signature::Product if inputs.iter().any(|&input| input != inputs[0]) => {
            text += "; all inputs must have one type, so cast one of them";
        }
        Signature::Test if inputs.iter().any(|&input| input != inputs[0]) => {
            text += "; both inputs must have one type, so cast one of them";
        }
        _ => match result_type(opcode, inputs) {
            Some(expected) if expected != output => {
                text += &format!("; the result would have type {}", expected.name());
            }
            _ => text += &format!("; it is for {}", type_names(opcode)),
        },
    }
    Error::new(status::TYPE, text)
}

fn type_names(opcode: Opcode) -> String {
    opcode.info().types.iter().map(DType::name).collect::<Vec<_>>().join(" ")
}

/// Checks a parameter against the input's rank (elementwise: 0).
pub(crate) fn check_param(opcode: Opcode, param: u16, rank: usize) -> Result<()> {
    let name = opcode.name();
    let refuse = |text: String| Err(Error::new(status::ARGUMENT, text));
    let all = ((1u32 << rank) - 1) as u16;
    match opcode.kind() {
        Kind::Reduction | Kind::Accumulate if param & !all != 0 => {
            refuse(format!("{name}: axis {} does not exist in an input of rank {rank}", 15 - param.leading_zeros()))
        }
        Kind::Reduction if param == 0 && rank > 0 => refuse(format!("{name}: no axis is given")),
        Kind::Accumulate if param.count_ones() != 1 => {
            refuse(format!("{name}: exactly one axis is needed, {} are given", param.count_ones()))
        }
        Kind::Elementwise if !opcode.takes_param(param) => refuse(match opcode {
            Opcode::Powi => format!("{name}: the exponent is {param}, but must be 2 to 5"),
            Opcode::Copy => {
                format!("{name}: the rule for floats beyond integer types is {param}, but must be 0, 1 or 2")
            }
            _ => format!("{name}: takes no parameter, but {param} is given"),
        }),
        _ => Ok(()),
    }
}

/// Does NumPy's broadcasting stretch `from` to `to`?
#[inline]
pub(crate) fn broadcasts(from: &[i64], to: &[i64]) -> bool {
    from.len() <= to.len()
        && from.iter().rev().zip(to.iter().rev()).all(|(&extent, &target)| extent == target || extent == 1)
}

#[cold]
pub(crate) fn broadcast_error(opcode: Opcode, operand: usize, from: &[i64], to: &[i64], whose: &str) -> Error {
    let name = opcode.name();
    let text = format!("{name}: shape {from:?} of input {operand} cannot be broadcast to the {whose} shape {to:?}");
    Error::new(status::SHAPE, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_types_are_the_legal_ones() {
        for &opcode in Opcode::ALL {
            for dtype in DType::ALL {
                let inputs = match opcode.info().signature {
                    Signature::Select => vec![DType::Bool, dtype, dtype],
                    Signature::Masked => vec![dtype, DType::Bool],
                    Signature::Gather => vec![dtype, DType::I64],
                    _ => vec![dtype; opcode.info().inputs as usize],
                };
                let Some(result) = result_type(opcode, &inputs) else { continue };
                let legal = DType::ALL.into_iter().any(|output| opcode.check_types(output, &inputs));
                assert_eq!(opcode.check_types(result, &inputs), legal, "{opcode} {dtype}");
            }
        }
    }

    #[test]
    fn messages_name_the_cause() {
        let error = type_error(Opcode::Add, DType::F64, &[DType::F64, DType::F32]);
        assert!(error.text.contains("add") && error.text.contains("cast one"), "{error}");
        let error = type_error(Opcode::Less, DType::F64, &[DType::F64, DType::F64]);
        assert!(error.text.contains("type bool"), "{error}");
        let error = type_error(Opcode::Cos, DType::I32, &[DType::I32]);
        assert!(error.text.contains("one of f32 f64"), "{error}");
        assert!(check_param(Opcode::AddReduce, 4, 2).unwrap_err().text.contains("axis 2"));
    }

    #[test]
    fn shapes_broadcast_as_in_numpy() {
        assert!(broadcasts(&[1, 4], &[3, 4]) && !broadcasts(&[2, 4], &[3, 4]) && !broadcasts(&[1, 4], &[4]));
    }
}
