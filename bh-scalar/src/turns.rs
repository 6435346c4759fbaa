//! Upper limits for the iterations of loops that count up to a number.

use crate::{Arg, Compute, Statement};
use bh_bytecode::{Constant, DType, Opcode};

/// The largest numbers that cannot overflow here.
const LARGE: i64 = 1 << 20;

/// The most iterations of a loop that compares a counter with a constant: the counter begins at a constant, and every
/// iteration adds 1 and reaches the comparison. `None` for other loops, and for loops with inner loops. `before`: the
/// statements before the loop in its list, then those before the enclosing block, and so on.
pub(crate) fn most_turns(before: &[&[Statement]], body: &[Statement]) -> Option<u32> {
    if has_loops(body) {
        return None;
    }
    body.iter().enumerate().find_map(|(at, statement)| {
        let Statement::If(condition, then, orelse) = statement else { return None };
        let leaves = then.is_empty() && matches!(orelse[..], [Statement::Leave(_)]);
        let test = leaves.then(|| once(body, &body[..at], *condition))??;
        let [Arg::Register(place), Arg::Constant(limit)] = test.args[..] else { return None };
        let limit = (test.opcode == Opcode::Less).then(|| small(limit))??;
        let (counter, more) = counter(body, place)?;
        let first = begins(before, counter)?;
        u32::try_from((limit - more - first).max(0) + 3).ok()
    })
}

fn has_loops(statements: &[Statement]) -> bool {
    let is_loop =
        |statement: &Statement| matches!(statement, Statement::Loop(_)) || statement.parts().into_iter().any(has_loops);
    statements.iter().any(is_loop)
}

/// How often statements set a register.
fn sets(statements: &[Statement], register: u16) -> usize {
    let of = |statement: &Statement| match statement {
        Statement::Compute(compute) => usize::from(compute.target == register),
        Statement::Load(load) => usize::from(load.target == register),
        other => other.parts().into_iter().map(|part| sets(part, register)).sum(),
    };
    statements.iter().map(of).sum()
}

/// The only operation in a body that sets a register, if it is among these statements of its list.
fn once<'a>(body: &[Statement], among: &'a [Statement], register: u16) -> Option<&'a Compute> {
    let found = among.iter().find_map(|statement| match statement {
        Statement::Compute(compute) if compute.target == register => Some(compute),
        _ => None,
    })?;
    (sets(body, register) == 1).then_some(found)
}

/// The counter that a register copies, and the number added to it apart from the iteration's increment.
fn counter(body: &[Statement], register: u16) -> Option<(u16, i64)> {
    let (mut register, mut more) = (register, 0);
    for _ in 0..8 {
        let set = once(body, body, register)?;
        match (set.opcode, &set.args[..]) {
            (Opcode::Copy, &[Arg::Register(from)]) => register = from,
            (Opcode::Add, &[Arg::Register(from), Arg::Constant(number)]) if from == register => {
                return (small(number)? == 1).then_some((register, more));
            }
            (Opcode::Add, &[Arg::Register(from), Arg::Constant(number)]) => {
                more += small(number)?;
                register = from;
            }
            _ => return None,
        }
    }
    None
}

/// The constant value of a register after these statements.
fn begins(before: &[&[Statement]], register: u16) -> Option<i64> {
    let all = before.iter().rev().flat_map(|list| list.iter().rev());
    let last = all.into_iter().find(|statement| sets(std::slice::from_ref(*statement), register) > 0)?;
    match last {
        Statement::Compute(Compute { opcode: Opcode::Copy, args, .. }) => match args[..] {
            [Arg::Constant(number)] => small(number),
            _ => None,
        },
        _ => None,
    }
}

/// A 64-bit whole number that is not large.
fn small(number: Constant) -> Option<i64> {
    (number.dtype() == DType::I64 && number.to::<i64>().abs() <= LARGE).then(|| number.to())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Program;

    fn of(loops: &str) -> Option<u32> {
        let program = Program::parse(&format!("program f (i64) -> (i64) with (i64 i64 bool) {{ {loops} }}")).unwrap();
        let at = program.body.iter().position(|statement| matches!(statement, Statement::Block(_))).unwrap();
        let Statement::Block(inside) = &program.body[at] else { panic!("{loops}") };
        let Some(Statement::Loop(body)) = inside.last() else { panic!("{loops}") };
        most_turns(&[&program.body[..at], &inside[..inside.len() - 1]], body)
    }

    #[test]
    fn a_range_ends_by_itself() {
        let body =
            "r3 = copy r2; r2 = add r2 i64:1; r1 = add r3 i64:2; r4 = less r1 i64:10; if r4 { } else { leave 0 }";
        assert_eq!(of(&format!("block {{ r2 = copy i64:3; loop {{ {body} }} }}")), Some(8));
        assert_eq!(of(&format!("r2 = copy i64:3; block {{ loop {{ {body} }} }}")), Some(8));
        // A counter with an unknown beginning, another step, or that is not always incremented.
        assert_eq!(of(&format!("block {{ r2 = copy r0; loop {{ {body} }} }}")), None);
        assert_eq!(of(&format!("block {{ r2 = copy i64:3; loop {{ {body} r2 = copy r0; }} }}")), None);
        let skipped = "if r4 { r2 = add r2 i64:1; } r4 = less r2 i64:10; if r4 { } else { leave 0 }";
        assert_eq!(of(&format!("block {{ r2 = copy i64:0; loop {{ {skipped} }} }}")), None);
        let down = "r2 = add r2 i64:-1; r4 = less r2 i64:10; if r4 { } else { leave 0 }";
        assert_eq!(of(&format!("block {{ r2 = copy i64:0; loop {{ {down} }} }}")), None);
    }
}
