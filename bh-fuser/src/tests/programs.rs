//! Known programs: how many kernels they take.

use crate::Partitioner;
use crate::options::{Algorithm, Options};
use crate::tests::simulate;
use bh_bytecode::batch::NO_BASE;
use bh_bytecode::random::Rng;
use bh_bytecode::validate::partition as verify;
use bh_bytecode::{Base, Batch, Constant, DType, Instr, Opcode, Operand, View, base_flags};

/// Builds batches the way a bridge does.
struct Program {
    batch: Batch,
}

#[derive(Clone, Copy)]
struct Array {
    base: u32,
    view: View,
}

impl Program {
    fn new() -> Program {
        Program { batch: Batch::default() }
    }

    fn array(&mut self, shape: &[i64], flags: u32) -> Array {
        let view = View::contiguous(shape).unwrap();
        let base = Base::new(self.batch.bases.len() as u64 + 1, DType::F64, view.len());
        Array { base: self.batch.push_base(Base { flags, ..base }), view }
    }

    /// A temporary that is dropped by [`Program::drop`].
    fn temporary(&mut self, shape: &[i64]) -> Array {
        self.array(shape, base_flags::BORN | base_flags::DIES)
    }

    fn kept(&mut self, shape: &[i64]) -> Array {
        self.array(shape, base_flags::BORN | base_flags::LIVE_OUT)
    }

    fn old(&mut self, shape: &[i64]) -> Array {
        self.array(shape, base_flags::LIVE_OUT)
    }

    fn operand(&mut self, array: Array) -> Operand {
        Operand::view(self.batch.intern_view(array.base, &array.view))
    }

    fn constant(&mut self, value: f64) -> Operand {
        Operand::constant(self.batch.push_constant(Constant::from_value(value)))
    }

    fn run(&mut self, opcode: Opcode, param: u16, operands: &[Operand]) {
        let mut instr = Instr::new(opcode, operands);
        instr.param = param;
        self.batch.push_instr(instr);
    }

    fn binary(&mut self, opcode: Opcode, out: Array, a: Array, b: Array) {
        let operands = [self.operand(out), self.operand(a), self.operand(b)];
        self.run(opcode, 0, &operands);
    }

    fn scale(&mut self, out: Array, a: Array, factor: f64) {
        let operands = [self.operand(out), self.operand(a), self.constant(factor)];
        self.run(Opcode::Multiply, 0, &operands);
    }

    fn unary(&mut self, opcode: Opcode, out: Array, a: Array) {
        let operands = [self.operand(out), self.operand(a)];
        self.run(opcode, 0, &operands);
    }

    fn sum(&mut self, out: Array, a: Array, axes: u16) {
        let operands = [self.operand(out), self.operand(a)];
        self.run(Opcode::AddReduce, axes, &operands);
    }

    fn drop(&mut self, array: Array) {
        let operand = [self.operand(array)];
        self.run(Opcode::Discard, 0, &operand);
    }

    fn sync(&mut self, array: Array) {
        let operand = [self.operand(array)];
        self.run(Opcode::Sync, 0, &operand);
    }

    /// Kernels, renames and aliases of greedy's partition, which is checked.
    fn partition(&self) -> Outcome {
        bh_bytecode::validate::validate(&self.batch.as_ref()).unwrap();
        let reference = self.batch.as_ref();
        let partition = Partitioner::default().partition(
            &reference,
            &Options { algorithm: Algorithm::Greedy, rename_percent: 400, ..Options::default() },
        );
        let batch = partition.apply(&reference);
        let text = bh_bytecode::text::print(&batch);
        verify(&batch).unwrap_or_else(|error| panic!("{error}\n{text}"));
        simulate(&reference, &batch, &mut Rng::new(7)).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let works = |block: &&bh_bytecode::Block| {
            batch.block_instrs(block).iter().any(|&instr| !batch.instrs[instr as usize].opcode.is_system())
        };
        Outcome {
            kernels: batch.blocks.iter().filter(works).count(),
            contracted: batch.contracted.len(),
            renames: batch.renames.len(),
            aliases: batch.renames.iter().filter(|rename| rename.alias != NO_BASE).count(),
            text,
        }
    }
}

struct Outcome {
    kernels: usize,
    contracted: usize,
    renames: usize,
    aliases: usize,
    text: String,
}

fn window(grid: Array, row: i64, col: i64) -> Array {
    let cut = |view: View, dim: usize, shift: i64, extent: i64| {
        view.slice(dim, Some(1 + shift), Some(extent - 1 + shift), 1).unwrap()
    };
    let (rows, cols) = (grid.view.shape()[0], grid.view.shape()[1]);
    Array { view: cut(cut(grid.view, 0, row, rows), 1, col, cols), ..grid }
}

/// work = 0.2 * (center + north + east + west + south), through temporaries.
fn stencil(p: &mut Program, grid: Array, work: Array) {
    let inner = work.view.shape().to_vec();
    let mut sum = window(grid, 0, 0);
    for (row, col) in [(-1, 0), (0, 1), (0, -1), (1, 0)] {
        let next = p.temporary(&inner);
        p.binary(Opcode::Add, next, sum, window(grid, row, col));
        if sum.base != grid.base {
            p.drop(sum);
        }
        sum = next;
    }
    p.scale(work, sum, 0.2);
    p.drop(sum);
}

/// delta = sum(|work - center|)
fn change(p: &mut Program, grid: Array, work: Array, delta: Array) {
    let inner = work.view.shape().to_vec();
    let (difference, size) = (p.temporary(&inner), p.temporary(&inner));
    p.binary(Opcode::Subtract, difference, work, window(grid, 0, 0));
    p.unary(Opcode::Absolute, size, difference);
    p.drop(difference);
    p.sum(delta, size, 0b11);
    p.drop(size);
}

#[test]
fn heat_with_delta_read_at_the_end_is_one_kernel_a_step() {
    let mut p = Program::new();
    let grid = p.old(&[8, 8]);
    let steps = 3;
    for _ in 0..steps {
        let (work, delta) = (p.temporary(&[6, 6]), p.temporary(&[]));
        stencil(&mut p, grid, work);
        change(&mut p, grid, work, delta);
        p.unary(Opcode::Copy, window(grid, 0, 0), work);
        p.drop(work);
        p.drop(delta);
    }
    let outcome = p.partition();
    assert_eq!((outcome.kernels, outcome.renames), (steps, steps), "{}", outcome.text);
    assert_eq!(outcome.contracted, 9 * steps - steps, "{}", outcome.text);
}

#[test]
fn heat_with_work_still_held_is_one_kernel_with_an_alias() {
    let mut p = Program::new();
    let grid = p.old(&[8, 8]);
    let previous = p.array(&[6, 6], base_flags::DIES);
    let (work, delta) = (p.kept(&[6, 6]), p.kept(&[]));
    stencil(&mut p, grid, work);
    p.drop(previous);
    change(&mut p, grid, work, delta);
    p.unary(Opcode::Copy, window(grid, 0, 0), work);
    p.sync(delta);
    let outcome = p.partition();
    assert_eq!((outcome.kernels, outcome.renames, outcome.aliases), (1, 1, 1), "{}", outcome.text);
}

#[test]
fn heat_that_keeps_one_work_array_aliases_it_each_step() {
    let mut p = Program::new();
    let (grid, work, delta) = (p.old(&[8, 8]), p.old(&[6, 6]), p.old(&[]));
    for _ in 0..3 {
        stencil(&mut p, grid, work);
        change(&mut p, grid, work, delta);
        p.unary(Opcode::Copy, window(grid, 0, 0), work);
    }
    let outcome = p.partition();
    assert_eq!((outcome.kernels, outcome.renames, outcome.aliases), (3, 3, 3), "{}", outcome.text);
}

#[test]
fn heat_that_reads_delta_before_the_copy_is_two_kernels() {
    let mut p = Program::new();
    let (grid, work) = (p.old(&[8, 8]), p.old(&[6, 6]));
    let delta = p.kept(&[]);
    p.unary(Opcode::Copy, window(grid, 0, 0), work);
    stencil(&mut p, grid, work);
    change(&mut p, grid, work, delta);
    p.sync(delta);
    let outcome = p.partition();
    assert_eq!(outcome.kernels, 2, "{}", outcome.text);
}

#[test]
fn what_one_kernel_alone_needs_is_computed_there() {
    // As in the game of life: the centre is tested where the step before wrote it, or where its neighbours are read.
    let mut p = Program::new();
    let grid = p.old(&[200, 200]);
    let steps = 3;
    for _ in 0..steps {
        let inner = [198, 198];
        let [around, more, own, next] = [(); 4].map(|()| p.temporary(&inner));
        p.binary(Opcode::Add, around, window(grid, -1, 0), window(grid, 1, 0));
        p.binary(Opcode::Add, more, around, window(grid, 0, 1));
        p.scale(own, window(grid, 0, 0), 3.0);
        p.binary(Opcode::Multiply, next, more, own);
        p.unary(Opcode::Copy, window(grid, 0, 0), next);
        [around, more, own, next].into_iter().for_each(|array| p.drop(array));
    }
    let partition = Partitioner::default().partition(&p.batch.as_ref(), &Options::default());
    assert_eq!((partition.blocks.len(), partition.contracted.len()), (steps, 4 * steps));
}

#[test]
fn pinned_grids_are_not_renamed() {
    let mut p = Program::new();
    let grid = p.array(&[8, 8], base_flags::LIVE_OUT | base_flags::PINNED);
    let work = p.temporary(&[6, 6]);
    stencil(&mut p, grid, work);
    p.unary(Opcode::Copy, window(grid, 0, 0), work);
    p.drop(work);
    let outcome = p.partition();
    assert_eq!((outcome.kernels, outcome.renames), (2, 0), "{}", outcome.text);
}

#[test]
fn a_full_reduction_and_what_follows_it_are_one_kernel() {
    // Leibnitz: 4 * sum(sign / (2i + 1)) with a generator inside.
    let mut p = Program::new();
    let n = [20];
    let (index, odd, term) = (p.temporary(&n), p.temporary(&n), p.temporary(&n));
    let (sum, pi) = (p.temporary(&[]), p.kept(&[]));
    let numbers = p.batch.push_view(NO_BASE, &View::contiguous(&n).unwrap());
    let out = p.operand(index);
    p.run(Opcode::Range, 0, &[out, Operand::view(numbers)]);
    p.scale(odd, index, 2.0);
    p.drop(index);
    let operands = [p.operand(term), p.constant(1.0), p.operand(odd)];
    p.run(Opcode::Divide, 0, &operands);
    p.drop(odd);
    p.sum(sum, term, 1);
    p.drop(term);
    p.scale(pi, sum, 4.0);
    p.drop(sum);
    let outcome = p.partition();
    assert_eq!((outcome.kernels, outcome.contracted), (1, 4), "{}", outcome.text);
}

#[test]
fn expand_then_reduce_never_writes_the_expansion() {
    // Accelerations of n bodies on a line: a = sum over j of m_j * (x_j - x_i), then v += a, then x += v.
    let mut p = Program::new();
    let n = 7;
    let (x, v, m) = (p.old(&[n]), p.old(&[n]), p.old(&[n]));
    let rows = Array { view: x.view.new_axis(1).unwrap().broadcast_to(&[n, n]).unwrap(), ..x };
    let cols = Array { view: x.view.broadcast_to(&[n, n]).unwrap(), ..x };
    let masses = Array { view: m.view.broadcast_to(&[n, n]).unwrap(), ..m };
    let (distance, force, a) = (p.temporary(&[n, n]), p.temporary(&[n, n]), p.temporary(&[n]));
    p.binary(Opcode::Subtract, distance, cols, rows);
    p.binary(Opcode::Multiply, force, distance, masses);
    p.drop(distance);
    p.sum(a, force, 0b10);
    p.drop(force);
    p.binary(Opcode::Add, v, v, a);
    p.drop(a);
    p.binary(Opcode::Add, x, x, v);
    let outcome = p.partition();
    assert_eq!((outcome.kernels, outcome.contracted), (2, 3), "{}", outcome.text);
}

#[test]
fn a_freed_base_that_is_used_again_keeps_its_lives_apart() {
    let mut p = Program::new();
    let (a, b, c) = (p.old(&[9]), p.kept(&[9]), p.kept(&[9]));
    p.scale(b, a, 2.0);
    let operand = [p.operand(a)];
    p.run(Opcode::Free, 0, &operand);
    p.scale(a, b, 3.0);
    p.scale(c, a, 4.0);
    let outcome = p.partition();
    assert_eq!(outcome.kernels, 2, "{}", outcome.text);
}
