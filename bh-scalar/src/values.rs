//! Finds operations of a list on the same value.

use crate::{Arg, Compute, Statement};
use bh_bytecode::Opcode;
use std::collections::HashMap;

/// A register and the statement that set it, by number; 0 for its value before the list.
type Value = (u16, usize);

/// Pairs of two `taken` operations on the same value: their places in the list, in order, with only operations between
/// them. `keeps`: does a copy keep the type of its operand?
pub(crate) fn both(
    statements: &[Statement],
    one: Opcode,
    other: Opcode,
    takes: impl Fn(&Compute) -> bool,
    keeps: impl Fn(&Compute) -> bool,
) -> Vec<(usize, usize)> {
    let (mut values, mut open, mut pairs) =
        (HashMap::<u16, Value>::new(), Vec::<(usize, Opcode, Value)>::new(), Vec::new());
    for (at, statement) in statements.iter().enumerate() {
        let Statement::Compute(compute) = statement else {
            // Other control flow may reach the following statements.
            values.clear();
            open.clear();
            continue;
        };
        let value = |arg: &Arg| match *arg {
            Arg::Register(register) => Some(values.get(&register).copied().unwrap_or((register, 0))),
            Arg::Constant(_) => None,
        };
        let argument = compute.args.first().and_then(value);
        if let Some(argument) =
            argument.filter(|_| (compute.opcode == one || compute.opcode == other) && takes(compute))
        {
            match open.iter().position(|&(_, opcode, of)| opcode != compute.opcode && of == argument) {
                Some(place) => pairs.push((open.swap_remove(place).0, at)),
                None => open.push((at, compute.opcode, argument)),
            }
        }
        let copied = argument.filter(|_| compute.opcode == Opcode::Copy && keeps(compute));
        values.insert(compute.target, copied.unwrap_or((compute.target, at + 1)));
    }
    pairs
}
