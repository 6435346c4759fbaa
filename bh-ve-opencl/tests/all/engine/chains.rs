//! Chains of kernels that run as one: tile by tile, and folds of a few components with the folds that follow them.

use super::{Build, check};
use crate::support::{alone, count, load};
use bh_bytecode::random::{Program, Rng};
use bh_bytecode::{DType, Instr, Opcode, Operand, base_flags};
use bh_core::stack::Stack;
use bh_tests::run;

/// Two grids that are made of each other in turn, in place: rows of one are read before they change, and after.
#[test]
fn chains_run_tile_by_tile() {
    let _alone = alone();
    let keys = "placement = 'device'\ncache_dir = ''\nwhile_building = 'off'\ntime_tiles = '4'";
    let Some(mut stack) = load("'opencl'", keys) else { return };
    for dtype in [DType::F64, DType::C64] {
        let before = (count(&stack, "tilings"), count(&stack, "kernels in tiles"));
        check(&mut stack, &two_grids(dtype));
        let after = (count(&stack, "tilings"), count(&stack, "kernels in tiles"));
        assert_eq!((after.0 - before.0, after.1 - before.1), (2, 6), "{dtype}");
    }
}

/// The same in three dimensions, where items have elements of planes: neighbours along all axes, and two sides of the border.
#[test]
fn chains_of_planes_run_tile_by_tile() {
    let _alone = alone();
    let keys = "placement = 'device'\ncache_dir = ''\nwhile_building = 'off'\ntime_tiles = '6'";
    let Some(mut stack) = load("'opencl'", keys) else { return };
    for (dtype, n) in [(DType::F64, 40), (DType::I16, 21)] {
        let before = count(&stack, "kernels in tiles");
        check(&mut stack, &two_cubes(dtype, n));
        assert!(count(&stack, "kernels in tiles") >= before + 4, "{dtype}");
    }
}

/// Each cube is made of the neighbours of the other one's elements in turn, four times, and two of its sides of what lies beside.
fn two_cubes(dtype: DType, n: i64) -> Program {
    let mut build = Build::default();
    let cubes = [0, 1].map(|_| build.base(dtype, n * n * n, true));
    for turn in 0..4 {
        let (from, to) = (cubes[turn % 2], cubes[(turn + 1) % 2]);
        let middle = n * n + n + 1;
        let mut inner = |base, by| build.view(base, middle + by, &[n - 2, n - 2, n - 2], &[n * n, n, 1]);
        let inside = inner(to, 0);
        let [up, down, left, right, before, behind] = [-n * n, n * n, -n, n, -1, 1].map(|by| inner(from, by));
        build.push(Opcode::Subtract, &[inside, up, down]);
        for [one, other] in [[left, right], [before, behind]] {
            build.push(Opcode::Add, &[inside, inside, one]);
            build.push(Opcode::Subtract, &[inside, inside, other]);
        }
        let mut side = |start, step| build.view(to, start, &[n, n], &[n * n, step]);
        let [first, second, front, behind] = [side(0, 1), side(n, 1), side(n * n - n, 1), side(n * n - 2 * n, 1)];
        build.push(Opcode::Copy, &[first, second]);
        build.push(Opcode::Copy, &[front, behind]);
    }
    build.program.unwrap()
}

/// Each grid is made of the other one in turn, three times.
fn two_grids(dtype: DType) -> Program {
    let mut build = Build::default();
    let n = 40;
    let grids = [0, 1].map(|_| build.base(dtype, n * n, true));
    for turn in 0..6 {
        let (from, to) = (grids[turn % 2], grids[(turn + 1) % 2]);
        let mut inner = |base, start| build.view(base, start, &[n - 2, n - 2], &[n, 1]);
        let step = [inner(to, n + 1), inner(from, n), inner(from, 2 * n + 1)];
        build.push(Opcode::Subtract, &step);
    }
    build.program.unwrap()
}

/// Operations with the elements of two arrays of vectors, all pairs: a fold over the components, something with its results and the
/// components, and a fold over the vectors of one array. `axes`: where the axes of one array, of the other one, and of the components
/// are in the box.
fn pairs(rng: &mut Rng, dtype: DType, [few, long, other]: [i64; 3], axes: [usize; 3]) -> Program {
    let mut build = Build::default();
    let mut shape = [0; 3];
    axes.iter().zip([other, long, few]).for_each(|(&axis, extent)| shape[axis] = extent);
    let instr = |build: &mut Build, opcode: Opcode, mask: u16, operands: &[Operand]| {
        build.program().batch.push_instr(Instr { param: mask, ..Instr::new(opcode, operands) });
    };
    // The vectors of an array, given by the place of its axis; the axis of the other one is none of its own.
    let vectors = |build: &mut Build, own: usize, extent: i64| {
        let base = build.base(dtype, extent * few, true);
        let mut stride = [0; 3];
        (stride[own], stride[axes[2]]) = (few, 1);
        build.view(base, 0, &shape, &stride)
    };
    let (one, two) = (vectors(&mut build, axes[0], other), vectors(&mut build, axes[1], long));
    let passing = |build: &mut Build, mask: u16| {
        let kept: Vec<i64> = (0..3).filter(|axis| mask >> axis & 1 == 0).map(|axis| shape[axis]).collect();
        let base = build.base(dtype, kept.iter().product(), false);
        build.program().batch.bases[base as usize].flags = base_flags::BORN | base_flags::DIES;
        let mut stride = vec![1; kept.len()];
        (1..kept.len()).rev().for_each(|at| stride[at - 1] = stride[at] * kept[at]);
        (base, build.view(base, 0, &kept, &stride), stride)
    };
    let folds = [Opcode::AddReduce, Opcode::MinimumReduce, Opcode::MaximumReduce];
    let works = [Opcode::Add, Opcode::Subtract, Opcode::Multiply];
    let mut choose = |all: &[Opcode]| all[rng.below(all.len())];
    let (few_mask, long_mask) = (1 << axes[2], 1 << axes[1]);
    let (_, apart, _) = passing(&mut build, 0);
    instr(&mut build, choose(&works), 0, &[apart, one, two]);
    let (_, worked, _) = passing(&mut build, 0);
    instr(&mut build, choose(&works), 0, &[worked, apart, if rng.chance(50) { apart } else { one }]);
    let (base, size, stride) = passing(&mut build, few_mask);
    instr(&mut build, folds[rng.below(3)], few_mask, &[size, worked]);
    instr(&mut build, works[rng.below(3)], 0, &[size, size, size]);
    let mut spread = stride.into_iter();
    let spread: Vec<i64> = (0..3).map(|axis| if axis == axes[2] { 0 } else { spread.next().unwrap() }).collect();
    let sizes = build.view(base, 0, &shape, &spread);
    let (_, weighted, _) = passing(&mut build, 0);
    instr(&mut build, works[rng.below(3)], 0, &[weighted, apart, sizes]);
    let kept: Vec<i64> = (0..3).filter(|axis| long_mask >> axis & 1 == 0).map(|axis| shape[axis]).collect();
    let result = build.base(dtype, kept[0] * kept[1], false);
    let result = build.view(result, 0, &kept, &[kept[1], 1]);
    instr(&mut build, folds[rng.below(3)], long_mask, &[result, weighted]);
    if rng.chance(50) {
        instr(&mut build, Opcode::Add, 0, &[result, result, result]);
    }
    for gone in [apart, worked, size, weighted] {
        instr(&mut build, Opcode::Discard, 0, &[gone]);
    }
    build.program.unwrap()
}

/// Folds of the rows of an array and operations on the rows and their results, one after the other, as in a softmax. Some arrays
/// stay.
fn rows(rng: &mut Rng, dtype: DType, shape: [i64; 3]) -> Program {
    let mut build = Build::default();
    let instr = |build: &mut Build, opcode: Opcode, mask: u16, operands: &[Operand]| {
        build.program().batch.push_instr(Instr { param: mask, ..Instr::new(opcode, operands) });
    };
    let [height, width, len] = shape;
    let dense = [width * len, len, 1];
    let mut gone = Vec::new();
    let mut array = |build: &mut Build, rng: &mut Rng, len: i64| {
        let base = build.base(dtype, len, false);
        if rng.chance(75) {
            build.program().batch.bases[base as usize].flags = base_flags::BORN | base_flags::DIES;
            gone.push(base);
        }
        base
    };
    let inputs = [0, 1].map(|_| build.base(dtype, height * width * len, true));
    let [one, two] = inputs.map(|base| build.view(base, 0, &shape, &dense));
    let weights = build.base(dtype, len, true);
    let weights = build.view(weights, 0, &shape, &[0, 0, 1]);
    let each = build.base(dtype, height * width, true);
    let mut boxes = vec![one, two, weights, build.view(each, 0, &shape, &[width, 1, 0])];
    let folds = [Opcode::AddReduce, Opcode::MinimumReduce, Opcode::MaximumReduce];
    let works = [Opcode::Add, Opcode::Subtract, Opcode::Multiply];
    for _ in 0..2 + rng.below(2) {
        let base = array(&mut build, rng, height * width * len);
        let made = build.view(base, 0, &shape, &dense);
        let from = [boxes[boxes.len() - 1], boxes[rng.below(boxes.len())]];
        instr(&mut build, works[rng.below(3)], 0, &[made, from[0], from[1]]);
        let base = array(&mut build, rng, height * width);
        let result = build.view(base, 0, &[height, width], &[width, 1]);
        instr(&mut build, folds[rng.below(3)], 0b100, &[result, made]);
        // An operation on the results may keep the folded axis.
        let kept = build.view(base, 0, &[height, width, 1], &[width, 1, 1]);
        let again = [None, Some(result), Some(kept)][rng.below(3)];
        again.iter().for_each(|&result| instr(&mut build, works[rng.below(3)], 0, &[result, result, result]));
        boxes.extend([made, build.view(base, 0, &shape, &[width, 1, 0])]);
    }
    let out = build.base(dtype, height * width * len, false);
    let out = build.view(out, 0, &shape, &dense);
    let made = boxes[boxes.len() - 2];
    instr(&mut build, works[rng.below(3)], 0, &[out, made, boxes[boxes.len() - 1]]);
    for base in gone {
        let whole = build.program().batch.bases[base as usize].len;
        let view = build.view(base, 0, &[whole], &[1]);
        instr(&mut build, Opcode::Discard, 0, &[view]);
    }
    build.program.unwrap()
}

/// Stacks whose chains run as one, and block by block.
fn chained_and_apart(chains: &str) -> Option<[Stack; 2]> {
    let stack = |chains: &str| {
        let keys = "placement = 'device'\ncache_dir = ''\nwhile_building = 'off'";
        load("'opencl'", &format!("{keys}\ntime_tiles = '{chains}'"))
    };
    Some([stack(chains)?, stack("off")?])
}

/// The same bits on both stacks.
fn check_bits([one, two]: &mut [Stack; 2], program: &Program, what: &str) {
    let [alone, apart] = [one, two].map(|stack| run::run(stack, program).unwrap());
    let results = program.batch.bases.iter().filter(|base| base.has(base_flags::LIVE_OUT));
    results.for_each(|base| assert_eq!(alone.get(base.id), apart.get(base.id), "{what}"));
}

/// The same bits as of a kernel for each fold, and the oracle's values of whole numbers, whose sums have no order.
#[test]
fn folds_of_the_same_rows_run_as_one() {
    let _alone = alone();
    let Some(mut stacks) = chained_and_apart("8") else { return };
    let mut rng = Rng::new(7);
    for turn in 0..12 {
        let dtype = [DType::I64, DType::F64, DType::F32][turn % 3];
        let len = [3, 20, 64, 100, 190][turn % 5] + rng.below(3) as i64;
        let shape = [2 + rng.below(4) as i64, 6 + rng.below(20) as i64, len];
        let program = rows(&mut rng, dtype, shape);
        if dtype == DType::I64 {
            check(&mut stacks[0], &program);
        }
        check_bits(&mut stacks, &program, &format!("{dtype} {shape:?}"));
    }
    let [one, two] = &stacks;
    assert!(count(one, "kernels in tiles") >= 24, "{}", count(one, "kernels in tiles"));
    assert_eq!(count(two, "kernels in tiles"), 0);
}

/// The same bits as of two kernels, and the oracle's values.
#[test]
fn folds_of_components_run_with_the_folds_that_follow() {
    let _alone = alone();
    let Some(mut stacks) = chained_and_apart("2") else { return };
    let mut rng = Rng::new(3);
    for turn in 0..8 {
        let dtype = [DType::F64, DType::I64, DType::F32][turn % 3];
        let extents = [2 + rng.below(6) as i64, 5 + rng.below(120) as i64, 16 + rng.below(40) as i64];
        let axes = [[0, 1, 2], [1, 0, 2], [0, 2, 1], [1, 2, 0]][turn % 4];
        let program = pairs(&mut rng, dtype, extents, axes);
        check(&mut stacks[0], &program);
        check_bits(&mut stacks, &program, &format!("{dtype} {extents:?} {axes:?}"));
    }
    let [one, two] = &stacks;
    assert!(count(one, "kernels in tiles") >= 8, "{}", count(one, "kernels in tiles"));
    assert_eq!(count(two, "kernels in tiles"), 0);
}
