//! Which operations of a list work on the same value.

use crate::{Arg, Compute, Statement};
use bh_bytecode::Opcode;
use std::collections::HashMap;

/// A register with one of the values that it has, by the number of the statement that gave it; 0 for what it had before.
type Value = (u16, usize);

/// Pairs of two operations on the same value, of those that are taken: their places in the list, the first one first. Between them are
/// operations only. `keeps`: does a copy have the type that it is of?
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
            // What follows may be come to in other ways.
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
