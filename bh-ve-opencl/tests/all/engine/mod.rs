//! The OpenCL engine in stacks of its own configuration: what goes to the next engine, memory that is too small, renames,
//! kernels on disk, both forms of kernels. Machines without OpenCL leave these tests out, and say so.

mod building;
mod chains;
mod devices;
mod memory;
mod passing;
mod reading;
mod repeating;

use bh_bytecode::random::{Program, Rng};
use bh_bytecode::{Base, Batch, Constant, DType, Instr, Opcode, Operand, View, base_flags};
use bh_core::stack::Stack;
use bh_tests::{data, run, stacks};

/// A batch under construction, with the data of its bases.
#[derive(Default)]
struct Build {
    program: Option<Program>,
}

impl Build {
    fn program(&mut self) -> &mut Program {
        self.program.get_or_insert_with(|| Program { batch: Batch::default(), memory: Default::default() })
    }

    fn base(&mut self, dtype: DType, len: i64, filled: bool) -> u32 {
        let program = self.program();
        let id = program.batch.bases.len() as u64 + 1;
        let flags = base_flags::LIVE_OUT | if filled { 0 } else { base_flags::BORN };
        if filled {
            let mut rng = Rng::new(id);
            program.memory.insert(id, data::fill(&mut rng, dtype, len, data::Values::Tame));
        }
        program.batch.push_base(Base { flags, ..Base::new(id, dtype, len) })
    }

    fn view(&mut self, base: u32, start: i64, shape: &[i64], stride: &[i64]) -> Operand {
        Operand::view(self.program().batch.push_view(base, &View::new(start, shape, stride).unwrap()))
    }

    fn push(&mut self, opcode: Opcode, operands: &[Operand]) {
        self.program().batch.push_instr(Instr::new(opcode, operands));
    }
}

fn check(stack: &mut Stack, program: &Program) {
    let memory = run::run(stack, program).unwrap();
    program.oracle().unwrap().check_within(&program.batch, &memory, stacks::bounds(&stacks::driver())).unwrap();
}

/// Many sums of pairs of arrays, all of which stay.
fn sums(arrays: i64, len: i64) -> Program {
    let mut build = Build::default();
    let bases: Vec<u32> = (0..arrays).map(|_| build.base(DType::F64, len, true)).collect();
    let mut views: Vec<Operand> = bases.iter().map(|&base| build.view(base, 0, &[len], &[1])).collect();
    for at in 0..arrays as usize - 1 {
        let base = build.base(DType::F64, len, false);
        let result = build.view(base, 0, &[len], &[1]);
        let pair = [result, views[at], views[at + 1]];
        build.push(Opcode::Add, &pair);
        views.push(result);
    }
    build.program.unwrap()
}

/// Sums of pairs of arrays of different lengths, which are no kernel together.
fn apart(count: i64, len: i64) -> Program {
    let mut build = Build::default();
    for len in len..len + count {
        let bases = [build.base(DType::F64, len, true), build.base(DType::F64, len, true)];
        let result = build.base(DType::F64, len, false);
        let [a, b, result] = [bases[0], bases[1], result].map(|base| build.view(base, 0, &[len], &[1]));
        build.push(Opcode::Add, &[result, a, b]);
    }
    build.program.unwrap()
}

/// center = (left + right) / 2, through `work`, which is dropped or held.
fn heat(held: bool) -> Program {
    let mut build = Build::default();
    let n = 40;
    let grid = build.base(DType::F64, n * n, true);
    let inner = [n - 2, n - 2];
    let shifted = |build: &mut Build, start| build.view(grid, start, &inner, &[n, 1]);
    let (center, left, right) = (shifted(&mut build, n + 1), shifted(&mut build, n), shifted(&mut build, n + 2));
    let work = build.base(DType::F64, inner[0] * inner[1], false);
    let work_view = build.view(work, 0, &inner, &[inner[1], 1]);
    build.push(Opcode::Add, &[work_view, left, right]);
    let half = Operand::constant(build.program().batch.push_constant(Constant::from_value(0.5)));
    build.push(Opcode::Multiply, &[work_view, work_view, half]);
    build.push(Opcode::Copy, &[center, work_view]);
    let mut program = build.program.unwrap();
    if !held {
        program.batch.bases[work as usize].flags = base_flags::BORN | base_flags::DIES;
        program.batch.push_instr(Instr::new(Opcode::Discard, &[work_view]));
    }
    program
}

/// A gather, whose source cannot be parted, or a scatter.
fn indexed(opcode: Opcode, len: i64) -> Program {
    let mut build = Build::default();
    let bases = [true, true, false].map(|filled| build.base(DType::I64, len, filled));
    let [whole, values, index] = bases.map(|base| build.view(base, 0, &[len], &[1]));
    match opcode {
        Opcode::Gather => build.push(opcode, &[values, whole, index]),
        Opcode::CondScatter => {
            let mask = build.base(DType::Bool, len, true);
            let mask = build.view(mask, 0, &[len], &[1]);
            build.push(opcode, &[whole, values, index, mask]);
        }
        _ => build.push(opcode, &[whole, values, index]),
    }
    let mut program = build.program.unwrap();
    program.batch.bases[2].flags = base_flags::LIVE_OUT;
    let mut rng = Rng::new(5);
    program.memory.insert(3, data::fill(&mut rng, DType::I64, len, data::Values::Indices(len)));
    program
}

/// Running sums of a matrix along an axis.
fn running_sums(dtype: DType, shape: [i64; 2], axis: u16) -> Program {
    let mut build = Build::default();
    let len = shape[0] * shape[1];
    let (source, result) = (build.base(dtype, len, true), build.base(dtype, len, false));
    let [source, result] = [source, result].map(|base| build.view(base, 0, &shape, &[shape[1], 1]));
    let mut instr = Instr::new(Opcode::AddAccumulate, &[result, source]);
    instr.param = 1 << axis;
    build.program().batch.push_instr(instr);
    build.program.unwrap()
}
