//! Programs by block primitives: each register is a block. An operation of some elements is computed for all of a block, and its
//! result is kept under a mask.

use super::operands::Operands;
use super::{BLOCK, End, Known, LARGEST};
use crate::primitives::Primitives;
use bh_bytecode::subscript::indexed;
use bh_bytecode::{DType, Opcode, Truth};
use bh_scalar::{Arg, Compute, Load, Statement, leaves};

/// The registers of a program in blocks.
pub(super) struct Registers<'a> {
    known: &'a Known,
    operands: &'a Operands<'a>,
    primitives: Primitives,
    memory: *mut u8,
    count: usize,
    /// Blocks of truth values: the elements that have left the enclosing blocks, and those that branches still need.
    exits: Vec<Mask>,
    /// The turns that are left to all loops.
    turns: i64,
    /// The first failure.
    failure: Option<String>,
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
    /// `memory` must have room, as long as the value is used and for nobody else, for a block of each register, of each
    /// constant, and one more, each of `BLOCK` elements of `LARGEST` bytes.
    pub(super) unsafe fn new(
        known: &'a Known,
        operands: &'a Operands<'a>,
        primitives: Primitives,
        memory: *mut u8,
    ) -> Registers<'a> {
        let (exits, failure) = (Vec::new(), None);
        let registers = Registers { known, operands, primitives, memory, count: 0, exits, turns: 0, failure };
        let first = known.program.registers.len();
        for (at, constant) in known.constants.iter().enumerate() {
            let fill = primitives.fill(constant.dtype().size());
            // SAFETY: `place` is one of the blocks of constants, for which `memory` has room, as `# Safety` asks,
            // behind those of registers.
            unsafe { fill(BLOCK, registers.place(first + at), constant.bytes().as_ptr()) };
        }
        registers
    }

    fn place(&self, register: usize) -> *mut u8 {
        self.memory.wrapping_add(register * BLOCK * LARGEST)
    }

    /// Runs the program on `count` elements of operands, inputs first, whose loops may have `most` turns together.
    ///
    /// # Safety
    /// `count` must be at most `BLOCK`. Each operand must have as many elements, of the program's types: inputs
    /// readable, and outputs writable; they must be no part of the registers' memory.
    pub(super) unsafe fn run(&mut self, operands: &[*mut u8], count: usize, most: i64) -> End {
        self.count = count;
        let program = &self.known.program;
        for (register, dtype) in self.known.types().enumerate().take(program.registers.len()) {
            let bytes = count * dtype.size();
            // SAFETY: the input has `count` elements, as `# Safety` asks, which is a block at most, and each register
            // has room for a block.
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
            // SAFETY: the output has room for `count` elements of this type, as `# Safety` asks, and as many are in its
            // register.
            unsafe { operands[output].copy_from_nonoverlapping(self.place(output), count * dtype.size()) };
        }
        match self.failure.take() {
            Some(text) => End::Failed(text),
            None if self.turns >= 0 => End::Reached,
            None => End::Late,
        }
    }

    fn list(&mut self, statements: &'a [Statement], active: &mut Mask) {
        for statement in statements {
            match statement {
                Statement::Compute(compute) => self.compute(compute, active),
                Statement::Load(load) => self.load(load, active),
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
        // SAFETY: the register has `count` truth values.
        let holds =
            unsafe { std::slice::from_raw_parts(self.place(usize::from(condition)).cast::<Truth>(), self.count) };
        let mut ways = [Mask([false; BLOCK]), Mask([false; BLOCK])];
        for (at, (active, holds)) in active.0.iter().zip(holds).enumerate() {
            (ways[0].0[at], ways[1].0[at]) = (*active && holds.get(), *active && !holds.get());
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

    /// Where the block of an operand is.
    fn operand(&self, arg: &Arg) -> *mut u8 {
        match arg {
            Arg::Register(register) => self.place(usize::from(*register)),
            Arg::Constant(constant) => {
                let at = self.known.constants.iter().position(|known| known == constant).unwrap_or(0);
                self.place(self.known.program.registers.len() + at)
            }
        }
    }

    /// Reads elements of a table. Where one is not there, all loops end.
    fn load(&mut self, load: &Load, active: &Mask) {
        let table = self.operands.tables[usize::from(load.table)];
        let (size, target) = (table.dtype.size(), self.place(usize::from(load.target)));
        for at in (0..self.count).filter(|at| active.0[*at]) {
            let mut data = table.data();
            for (dimension, arg) in load.subscripts.iter().enumerate() {
                // SAFETY: subscripts are blocks of `i64`.
                let subscript = unsafe { self.operand(arg).cast::<i64>().add(at).read() };
                let extent = table.shape[dimension];
                let Some(place) = indexed(extent, subscript) else {
                    let text = || self.known.program.out_of_range(load.table, dimension, subscript, extent);
                    self.failure = Some(self.failure.take().unwrap_or_else(text));
                    self.turns = -1;
                    return;
                };
                data = data.wrapping_offset(place as isize * table.stride[dimension]);
            }
            // SAFETY: the subscripts are within the table, and the register has room for a block of its type.
            unsafe { target.add(at * size).copy_from_nonoverlapping(data, size) };
        }
    }

    fn compute(&mut self, compute: &Compute, active: &Mask) {
        let (input, output) = self.known.program.types_of(compute);
        let first = self.known.program.registers.len();
        let [a, b, c] =
            [0, 1, 2].map(|at| compute.args.get(at).map_or(std::ptr::null(), |arg| self.operand(arg).cast_const()));
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
            // SAFETY: the mask is bytes of truth values, and the other operands and the result are blocks of the
            // output's type.
            unsafe { choose(self.count, target, active.0.as_ptr().cast(), made, target) };
        }
    }
}
