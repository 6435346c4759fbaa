//! Random contractions on devices whose groups have any number of items: stacks of matrices, sides of several loops, all types, and
//! views in any order, backward and with gaps. The interpreter says what they should be.

use crate::support;

use bh_bytecode::batch::Extension;
use bh_bytecode::compare::opencl_tolerance;
use bh_bytecode::random::{Program, Rng};
use bh_bytecode::{Base, Batch, DType, Instr, Opcode, Operand, View, base_flags};
use bh_tests::{data, run};
use support::{alone, count, load_with_groups};

/// Axes of a box: extent, whether they are summed, and which operands have them (the others are constant along them).
type Axes = Vec<(i64, bool, [bool; 2])>;

/// Axes of a random product with up to two of each role.
fn axes(rng: &mut Rng) -> Axes {
    let roles = [(false, [true, true]), (false, [true, false]), (true, [true, true]), (false, [false, true])];
    let mut axes = Vec::new();
    for (role, (summed, has)) in roles.into_iter().enumerate() {
        let stack = role == 0;
        for _ in 0..rng.between(i64::from(!stack), 2) {
            let most = if stack { 3 } else { 24 };
            axes.push((rng.between(if stack { 1 } else { 4 }, most), summed, has));
        }
    }
    if rng.chance(25) {
        // A long sum into a small result.
        axes.retain(|(_, summed, has)| *summed || has[0] != has[1]);
        axes.truncate(3);
        axes.iter_mut().filter(|axis| axis.1).for_each(|axis| axis.0 = rng.between(1000, 5000));
    }
    for at in (1..axes.len()).rev() {
        axes.swap(at, rng.below(at + 1));
    }
    axes
}

/// An operand with some axes, in any order in memory, perhaps with gaps or backward.
fn operand(program: &mut Program, rng: &mut Rng, dtype: DType, axes: &[(i64, bool)]) -> Operand {
    let mut order: Vec<usize> = (0..axes.len()).filter(|&axis| axes[axis].1).collect();
    for at in (1..order.len()).rev() {
        order.swap(at, rng.below(at + 1));
    }
    let gap = i64::from(rng.chance(30));
    let (mut stride, mut step, mut start) = (vec![0; axes.len()], 1 + gap, rng.between(0, 3));
    for &axis in &order {
        stride[axis] = step;
        step = step * axes[axis].0 + gap;
        if rng.chance(15) {
            start += stride[axis] * (axes[axis].0 - 1);
            stride[axis] = -stride[axis];
        }
    }
    let shape: Vec<i64> = axes.iter().map(|axis| axis.0).collect();
    let (id, elements) = (program.batch.bases.len() as u64 + 1, step + 4);
    // Sums of whole numbers are exact; results have gaps, which stay as they are.
    program.memory.insert(id, data::fill(rng, dtype, elements, data::Values::Whole));
    let flags = base_flags::LIVE_OUT;
    let base = program.batch.push_base(Base { flags, ..Base::new(id, dtype, elements) });
    Operand::view(program.batch.push_view(base, &View::new(start, &shape, &stride).unwrap()))
}

fn program(seed: u64) -> (Program, String) {
    let mut rng = Rng::new(seed);
    let axes = axes(&mut rng);
    let types: Vec<DType> = Opcode::Contract.info().types.iter().collect();
    let dtype = *rng.pick(&types).unwrap();
    let mut program = Program { batch: Batch::default(), memory: Default::default() };
    let kept: Vec<(i64, bool)> = axes.iter().filter(|axis| !axis.1).map(|axis| (axis.0, true)).collect();
    let out = operand(&mut program, &mut rng, dtype, &kept);
    let [left, right] = [0, 1].map(|at| {
        let own: Vec<(i64, bool)> = axes.iter().map(|axis| (axis.0, axis.2[at])).collect();
        operand(&mut program, &mut rng, dtype, &own)
    });
    let param = axes.iter().enumerate().fold(0, |mask, (at, axis)| mask | u16::from(axis.1) << at);
    program.batch.push_instr(Instr { param, ..Instr::new(Opcode::Contract, &[out, left, right]) });
    (program, format!("seed {seed}: {dtype} {axes:?}"))
}

#[test]
fn random_contractions_equal_the_oracle() {
    let _alone = alone();
    let programs = std::env::var("BH_TEST_PROGRAMS").map_or(16, |text| text.parse().unwrap());
    for (group, specialise) in [(16, "off"), (256, "on")] {
        let keys = format!("specialise = '{specialise}'\ncache_dir = ''\nplacement = 'device'");
        let Some(mut stack) = load_with_groups(group, "'opencl'", &keys) else { return };
        for seed in 0..programs {
            let (program, what) = program(seed);
            let memory = run::run(&mut stack, &program).unwrap_or_else(|error| panic!("{what}: {error}"));
            let oracle = program.oracle().unwrap();
            let outcome = oracle.check_within(&program.batch, &memory, opencl_tolerance);
            outcome.unwrap_or_else(|why| panic!("groups of {group}, {what}: {why}"));
        }
        assert!(count(&stack, "kernels") >= programs);
    }
}

/// A stack of products of large matrices, each operand with this order of its last two axes in memory.
fn large(dtype: DType, matrices: i64, [rows, inner, columns]: [i64; 3], layouts: usize) -> Program {
    let mut rng = Rng::new(layouts as u64);
    let mut program = Program { batch: Batch::default(), memory: Default::default() };
    let mut push = |down: i64, across: i64, turned: bool| {
        let (id, elements) = (program.batch.bases.len() as u64 + 1, matrices * down * across + 5);
        program.memory.insert(id, data::fill(&mut rng, dtype, elements, data::Values::Whole));
        let base = program.batch.push_base(Base { flags: base_flags::LIVE_OUT, ..Base::new(id, dtype, elements) });
        (base, down * across, if turned { [1, down] } else { [across, 1] })
    };
    let bits = [layouts & 1 != 0, layouts & 2 != 0, layouts & 4 != 0];
    let (out, next, [row, column]) = push(rows, columns, bits[0]);
    let (left, left_next, [left_row, left_term]) = push(rows, inner, bits[1]);
    let (right, right_next, [right_term, right_column]) = push(inner, columns, bits[2]);
    let shape = [matrices, rows, inner, columns];
    let mut view = |base: u32, shape: &[i64], stride: &[i64]| {
        Operand::view(program.batch.push_view(base, &View::new(3, shape, stride).unwrap()))
    };
    let operands = [
        view(out, &[matrices, rows, columns], &[next, row, column]),
        view(left, &shape, &[left_next, left_row, left_term, 0]),
        view(right, &shape, &[right_next, 0, right_term, right_column]),
    ];
    program.batch.push_instr(Instr { param: 0b0100, ..Instr::new(Opcode::Contract, &operands) });
    program
}

#[test]
fn large_products_of_all_layouts_equal_the_oracle() {
    let _alone = alone();
    let keys = "specialise = 'off'\ncache_dir = ''\nplacement = 'device'";
    let Some(mut stack) = load_with_groups(256, "'opencl'", keys) else { return };
    for layouts in 0..8 {
        let dtype = [DType::F32, DType::F64, DType::C64, DType::C128][layouts % 4];
        let program = large(dtype, [1, 3][layouts / 4], [130, 70, 120], layouts);
        let memory = run::run(&mut stack, &program).unwrap_or_else(|error| panic!("{dtype} {layouts}: {error}"));
        let outcome = program.oracle().unwrap().check(&program.batch, &memory);
        outcome.unwrap_or_else(|why| panic!("{dtype} {layouts}: {why}"));
    }
    assert!(count(&stack, "kernels") >= 8);
}

/// The product of a large matrix and a vector, or of a vector and a matrix; vectors have gaps, and the matrix may lie in columns.
fn of_a_vector(dtype: DType, [rows, columns]: [i64; 2], layouts: usize, is_contraction: bool) -> Program {
    let mut rng = Rng::new(layouts as u64);
    let mut program = Program { batch: Batch::default(), memory: Default::default() };
    let [comes_first, turned, has_gaps] = [1, 2, 4].map(|bit| layouts & bit != 0);
    let gap = if has_gaps { 3 } else { 1 };
    let mut push = |shape: &[i64], stride: &[i64]| {
        let elements = shape.iter().product::<i64>() * gap + 5;
        let id = program.batch.bases.len() as u64 + 1;
        program.memory.insert(id, data::fill(&mut rng, dtype, elements, data::Values::Whole));
        let base = program.batch.push_base(Base { flags: base_flags::LIVE_OUT, ..Base::new(id, dtype, elements) });
        Operand::view(program.batch.push_view(base, &View::new(3, shape, stride).unwrap()))
    };
    let (from, to) = if comes_first { (rows, columns) } else { (columns, rows) };
    let out = push(&[to], &[gap]);
    let matrix_stride = if turned { [1, rows] } else { [columns, 1] };
    let matrix = push(&[rows, columns], &matrix_stride);
    if is_contraction {
        // The same elements as a sum of products over an axis of the matrix.
        let vector = push(&[from], &[gap]);
        let base = program.batch.views[vector.as_view().unwrap() as usize].base;
        let stride = if comes_first { [gap, 0] } else { [0, gap] };
        let view = program.batch.push_view(base, &View::new(3, &[rows, columns], &stride).unwrap());
        let param = if comes_first { 0b01 } else { 0b10 };
        let operands = [out, matrix, Operand::view(view)];
        program.batch.push_instr(Instr { param, ..Instr::new(Opcode::Contract, &operands) });
        return program;
    }
    let vector = push(&[from], &[gap]);
    let factors = if comes_first { [vector, matrix] } else { [matrix, vector] };
    let opcode = Opcode(Opcode::FIRST_EXTENSION + 1);
    let (name, name_len) = program.batch.push_string("matmul");
    program.batch.extensions.push(Extension { opcode, reserved: 0, name, name_len });
    program.batch.push_instr(Instr::new(opcode, &[out, factors[0], factors[1]]));
    program
}

#[test]
fn large_products_with_a_vector_equal_the_oracle() {
    let _alone = alone();
    let keys = "specialise = 'off'\ncache_dir = ''\nplacement = 'device'";
    let Some(mut stack) = load_with_groups(256, "'opencl'", keys) else { return };
    assert!(stack.extmethod("matmul", Opcode(Opcode::FIRST_EXTENSION + 1)).unwrap());
    for layouts in 0..8 {
        let shape = [[1100, 1000], [20, 60_000], [60_000, 20]][layouts % 3];
        let dtype = [DType::F32, DType::F64, DType::C64, DType::C128][layouts * 5 / 4 % 4];
        let program = of_a_vector(dtype, shape, layouts, false);
        let memory = run::run(&mut stack, &program).unwrap_or_else(|error| panic!("{dtype} {layouts}: {error}"));
        let oracle = of_a_vector(dtype, shape, layouts, true);
        let outcome = oracle.oracle().unwrap().check(&oracle.batch, &memory);
        outcome.unwrap_or_else(|why| panic!("{dtype} {shape:?} {layouts}: {why}"));
    }
    assert!(count(&stack, "kernels") >= 8);
}
