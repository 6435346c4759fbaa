//! Liveness of registers in inactive lanes: an operation need not preserve them if only the statements after it read its target, or
//! if no inactive lane reads the target before its next assignment.

use bh_scalar::{Arg, Compute, Program, Statement, leaves};
use std::collections::{BTreeSet, HashSet};

/// For each register: is it such a one?
pub(super) fn temporaries(program: &Program) -> Vec<bool> {
    let count = program.registers.len();
    let mut scopes = Scopes { sets: vec![0; count], there: vec![false; count], other: vec![false; count] };
    scopes.other[..program.inputs + program.outputs].fill(true);
    for compute in program.operations() {
        scopes.sets[usize::from(compute.target)] += 1;
    }
    program.loads().for_each(|load| scopes.sets[usize::from(load.target)] += 1);
    scopes.list(&program.body);
    scopes.other.iter().zip(&scopes.sets).map(|(other, sets)| !other && *sets == 1).collect()
}

struct Scopes {
    /// How many statements set a register.
    sets: Vec<u32>,
    /// Was it set in this list, or in one around it?
    there: Vec<bool>,
    /// Is it used where it was not?
    other: Vec<bool>,
}

impl Scopes {
    fn uses(&mut self, register: u16) {
        let register = usize::from(register);
        self.other[register] |= !self.there[register];
    }

    fn list(&mut self, statements: &[Statement]) {
        let mut own = Vec::new();
        for statement in statements {
            match statement {
                Statement::Compute(compute) => {
                    registers(&compute.args).for_each(|register| self.uses(register));
                    self.there[usize::from(compute.target)] = true;
                    own.push(usize::from(compute.target));
                }
                Statement::Load(load) => {
                    registers(&load.subscripts).for_each(|register| self.uses(register));
                    self.there[usize::from(load.target)] = true;
                    own.push(usize::from(load.target));
                }
                Statement::If(condition, ..) => self.uses(*condition),
                _ => {}
            }
            statement.parts().into_iter().for_each(|part| self.list(part));
        }
        own.into_iter().for_each(|register| self.there[register] = false);
    }
}

/// The registers among operands.
fn registers(args: &[Arg]) -> impl Iterator<Item = u16> {
    args.iter().filter_map(|arg| match *arg {
        Arg::Register(register) => Some(register),
        Arg::Constant(_) => None,
    })
}

/// Registers.
type Set = BTreeSet<u16>;

/// The operations whose target's old value is needed by lanes that are elsewhere meanwhile.
pub(super) fn keepers(program: &Program) -> HashSet<*const Compute> {
    let outputs = (program.inputs..program.inputs + program.outputs).map(|register| register as u16).collect();
    let mut needs = Needs { blocks: Vec::new(), keepers: HashSet::new() };
    needs.note(&program.body, &outputs, &Set::new());
    needs.keepers
}

struct Needs {
    /// The registers that are live after each enclosing block.
    blocks: Vec<Set>,
    keepers: HashSet<*const Compute>,
}

impl Needs {
    /// The registers that are live before statements, if those of `after` are live after them.
    fn before(&mut self, statements: &[Statement], after: &Set) -> Set {
        statements.iter().rev().fold(after.clone(), |after, statement| self.before_one(statement, &after))
    }

    fn before_one(&mut self, statement: &Statement, after: &Set) -> Set {
        match statement {
            Statement::Compute(compute) => {
                let mut needed = after.clone();
                needed.remove(&compute.target);
                needed.extend(registers(&compute.args));
                needed
            }
            Statement::Load(load) => {
                let mut needed = after.clone();
                needed.remove(&load.target);
                needed.extend(registers(&load.subscripts));
                needed
            }
            Statement::If(condition, then, orelse) => {
                let mut needed = self.before(then, after);
                needed.extend(self.before(orelse, after));
                needed.insert(*condition);
                needed
            }
            Statement::Block(body) => {
                self.blocks.push(after.clone());
                let needed = self.before(body, after);
                self.blocks.pop();
                needed
            }
            Statement::Loop(body) => self.head(body),
            Statement::Leave(block) => self.blocks[self.blocks.len() - 1 - usize::from(*block)].clone(),
        }
    }

    /// The registers that are live where an iteration of a loop begins.
    fn head(&mut self, body: &[Statement]) -> Set {
        let mut head = Set::new();
        loop {
            let found = self.before(body, &head);
            if found.is_subset(&head) {
                return head;
            }
            head.extend(found);
        }
    }

    /// Notes keepers in statements, while inactive lanes need the registers of `needed`.
    fn note(&mut self, statements: &[Statement], after: &Set, needed: &Set) {
        let mut behind = vec![after.clone()];
        for statement in statements[1.min(statements.len())..].iter().rev() {
            let next = self.before_one(statement, &behind[behind.len() - 1]);
            behind.push(next);
        }
        for (statement, after) in statements.iter().zip(behind.iter().rev()) {
            match statement {
                Statement::Compute(compute) if needed.contains(&compute.target) => {
                    self.keepers.insert(compute);
                }
                Statement::If(_, then, orelse) => {
                    for (part, other) in [(then, orelse), (orelse, then)] {
                        let mut elsewhere = needed | after;
                        elsewhere.extend(self.before(other, after));
                        self.note(part, after, &elsewhere);
                    }
                }
                Statement::Block(body) => {
                    self.blocks.push(after.clone());
                    let elsewhere = if leaves(body, 0) { needed | after } else { needed.clone() };
                    self.note(body, after, &elsewhere);
                    self.blocks.pop();
                }
                Statement::Loop(body) => {
                    let head = self.head(body);
                    self.note(body, &head, needed);
                }
                Statement::Compute(_) | Statement::Load(_) | Statement::Leave(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_those_need_who_have_left_is_kept() {
        let text = "program f (f64) -> (f64) with (f64 bool f64) { block { loop { r3 = less r0 f64:4.0; if r3 { } else { leave 0 } \
            r4 = multiply r0 r0; r0 = add r4 f64:1.0; r2 = add r2 r0; r1 = add r1 f64:1.0; } } }";
        let program = Program::parse(text).unwrap();
        let keepers = keepers(&program);
        let kept: Vec<u16> = program
            .operations()
            .filter(|&compute| keepers.contains(&std::ptr::from_ref(compute)))
            .map(|it| it.target)
            .collect();
        assert_eq!(kept, [1]);
        let single: Vec<usize> = (0..5).filter(|&register| temporaries(&program)[register]).collect();
        assert_eq!(single, [3, 4]);
    }
}
