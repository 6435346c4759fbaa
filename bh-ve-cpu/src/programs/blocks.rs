//! Programs by block primitives: each register is a block, and what some elements do is done for all of a block and kept
//! under a mask.

use super::{BLOCK, Known, LARGEST};
use crate::primitives::Primitives;
use bh_bytecode::{DType, Opcode};
use bh_scalar::{Arg, Compute, Statement, leaves};

/// The registers of a program in blocks.
pub(super) struct Registers<'a> {
    known: &'a Known,
    primitives: Primitives,
    memory: *mut u8,
    count: usize,
    /// Blocks of truth values: who has left the blocks around, and what branches still need.
    exits: Vec<Mask>,
    /// The turns that are left to all loops.
    turns: i64,
}

/// Which elements of a block are at a point.
#[derive(Clone)]
struct Mask([bool; BLOCK]);

impl Mask {
    fn any(&self, count: usize) -> bool {
        self.0[..count].contains(&true)
    }

    fn join(&mut self, other: &Mask) {
        self.0.iter_mut().zip(&other.0).for_each(|(own, other)| *own |= other);
    }
}

impl<'a> Registers<'a> {
    /// # Safety
    /// `memory` has room for a block of each register, of each constant, and one more.
    pub(super) unsafe fn new(known: &'a Known, primitives: Primitives, memory: *mut u8) -> Registers<'a> {
        let registers = Registers { known, primitives, memory, count: 0, exits: Vec::new(), turns: 0 };
        let first = known.program.registers.len();
        for (at, constant) in known.constants.iter().enumerate() {
            let fill = primitives.fill(constant.dtype().size());
            // SAFETY: promised by the caller.
            unsafe { fill(BLOCK, registers.place(first + at), constant.bytes().as_ptr()) };
        }
        registers
    }

    fn place(&self, register: usize) -> *mut u8 {
        self.memory.wrapping_add(register * BLOCK * LARGEST)
    }

    /// Runs the program on `count` elements of operands, inputs first; false if its loops have more than
    /// `most` turns together.
    ///
    /// # Safety
    /// The operands have as many elements, of the program's types; outputs may be written.
    pub(super) unsafe fn run(&mut self, operands: &[*mut u8], count: usize, most: i64) -> bool {
        self.count = count;
        let program = &self.known.program;
        for (register, dtype) in self.known.types().enumerate().take(program.registers.len()) {
            let bytes = count * dtype.size();
            // SAFETY: a register has room for a block.
            unsafe {
                match operands.get(register).filter(|_| register < program.inputs) {
                    Some(input) => self.place(register).copy_from_nonoverlapping(*input, bytes),
                    None => self.place(register).write_bytes(0, bytes),
                }
            }
        }
        self.exits.clear();
        self.turns = most;
        let mut active = Mask([true; BLOCK]);
        self.list(&program.body, &mut active);
        for (output, dtype) in (program.inputs..).zip(program.output_types()) {
            // SAFETY: promised by the caller.
            unsafe { operands[output].copy_from_nonoverlapping(self.place(output), count * dtype.size()) };
        }
        self.turns >= 0
    }

    fn list(&mut self, statements: &'a [Statement], active: &mut Mask) {
        for statement in statements {
            match statement {
                Statement::Compute(compute) => self.compute(compute, active),
                Statement::If(condition, then, orelse) => self.branch(*condition, [then, orelse], active),
                Statement::Block(body) => {
                    self.exits.push(Mask([false; BLOCK]));
                    self.list(body, active);
                    if let Some(left) = self.exits.pop() {
                        active.join(&left);
                    }
                }
                Statement::Loop(body) => {
                    while active.any(self.count) && self.turns >= 0 {
                        self.list(body, active);
                        self.turns -= 1;
                    }
                    *active = Mask([false; BLOCK]);
                }
                Statement::Leave(block) => {
                    let place = self.exits.len() - 1 - usize::from(*block);
                    self.exits[place].join(active);
                    *active = Mask([false; BLOCK]);
                }
            }
            if leaves(std::slice::from_ref(statement), 0) && !active.any(self.count) {
                return;
            }
        }
    }

    fn branch(&mut self, condition: u16, [then, orelse]: [&'a [Statement]; 2], active: &mut Mask) {
        // SAFETY: truth values are bytes of 0 and 1, and the register has `count` of them.
        let holds =
            unsafe { std::slice::from_raw_parts(self.place(usize::from(condition)).cast::<bool>(), self.count) };
        let mut ways = [Mask([false; BLOCK]), Mask([false; BLOCK])];
        for (at, (active, holds)) in active.0.iter().zip(holds).enumerate() {
            (ways[0].0[at], ways[1].0[at]) = (*active && *holds, *active && !holds);
        }
        for (way, part) in ways.iter_mut().zip([then, orelse]) {
            if !part.is_empty() && way.any(self.count) {
                self.list(part, way);
            }
        }
        let [mut one, other] = ways;
        one.join(&other);
        *active = one;
    }

    fn compute(&mut self, compute: &Compute, active: &Mask) {
        let (input, output) = self.known.program.types_of(compute);
        let first = self.known.program.registers.len();
        let place = |arg: Option<&Arg>| match arg {
            Some(Arg::Register(register)) => self.place(usize::from(*register)),
            Some(Arg::Constant(constant)) => {
                let at = self.known.constants.iter().position(|known| known == constant).unwrap_or(0);
                self.place(first + at)
            }
            None => std::ptr::null_mut(),
        };
        let [a, b, c] = [0, 1, 2].map(|at| place(compute.args.get(at)).cast_const());
        let target = self.place(usize::from(compute.target));
        let all = active.0[..self.count].iter().all(|active| *active);
        let made = if all { target } else { self.place(first + self.known.constants.len()) };
        let lookup = |opcode, param, input: DType| self.primitives.elementwise(opcode, param, input, output);
        // That there are these primitives was seen when the program became known.
        if let Some(run) = lookup(compute.opcode, compute.param, input) {
            // SAFETY: operands and result are blocks of the types that the primitive was looked up for.
            unsafe { run(self.count, made, a, b, c) };
        }
        if let Some(choose) = lookup(Opcode::Where, 0, output).filter(|_| !all) {
            // SAFETY: as above; truth values are bytes.
            unsafe { choose(self.count, target, active.0.as_ptr().cast(), made, target) };
        }
    }
}
