//! Arrays that exceed device memory: arrays come and go, and in pieces; unused elements are not copied.

use super::{Build, apart, check, indexed, running_sums, sums};
use crate::support::{alone, alone_and_optimised, count, load};
use bh_bytecode::batch::NO_BASE;
use bh_bytecode::random::{Options, Program, program};
use bh_bytecode::{DType, Instr, Opcode, Operand};
use bh_core::stack::Stack;
use bh_tests::{run, stacks};

#[test]
fn arrays_larger_than_device_memory_together_come_and_go() {
    let _alone = alone();
    // 24 arrays of 64 KiB, of which 6 fit.
    let Some(mut stack) = load("'opencl'", "memory = '512KiB'\nspecialise = 'off'\ncache_dir = ''") else { return };
    check(&mut stack, &apart(8, 8192));
    assert!(count(&stack, "evictions") >= 10, "{}", count(&stack, "evictions"));
    assert!(count(&stack, "device peak_bytes") <= 512 << 10);
}

#[test]
fn what_is_too_large_or_too_small_goes_to_the_next_engine() {
    let _alone = alone();
    let keys = "memory = '50KiB'\nplacement = '1KiB 4194304'\nspecialise = 'off'\ncache_dir = ''";
    let Some(mut stack) = load("'opencl', 'interp'", keys) else { return };
    check(&mut stack, &indexed(Opcode::Gather, 8192));
    assert_eq!((count(&stack, "kernels"), count(&stack, "blocks too large")), (0, 1));
    check(&mut stack, &sums(2, 20));
    assert_eq!((count(&stack, "kernels"), count(&stack, "blocks too small")), (0, 1));
    check(&mut stack, &sums(2, 1000));
    assert_eq!(count(&stack, "kernels"), 1);
}

/// Small blocks run on the device if it computes their inputs or uses their results, which then are not copied. Others stay
/// with the next engine.
#[test]
fn little_work_beside_that_of_the_device_runs_there() {
    let _alone = alone();
    let keys = "placement = '64KiB 20000'\nspecialise = 'off'\ncache_dir = ''";
    for (beside, expected) in [(false, (0, 4)), (true, (4, 2))] {
        let Some(mut stack) = load("'opencl', 'interp'", keys) else { return };
        let mut build = Build::default();
        let add = |build: &mut Build, from: Operand, len: i64| {
            let to = build.base(DType::F64, len, false);
            let to = build.view(to, 0, &[len], &[1]);
            build.push(Opcode::Add, &[to, from, from]);
            to
        };
        let vectors = [40, 50, 30].map(|len| build.base(DType::F64, len, true));
        let [rows, other, after] =
            [(0, 40), (1, 50), (2, 30)].map(|(at, len)| build.view(vectors[at], 0, &[len], &[1]));
        add(&mut build, rows, 40);
        add(&mut build, other, 50);
        let numbers = build.base(DType::I64, 60, false);
        let numbers = [numbers, NO_BASE].map(|base| build.view(base, 0, &[60], &[1]));
        build.push(Opcode::Range, &numbers);
        if beside {
            let row = build.program().batch.instrs[0].operands()[0].as_view().unwrap();
            let row = build.program().batch.views[row as usize].base;
            let shape = [1000, 40];
            let bases = [true, false].map(|filled| build.base(DType::F64, 40_000, filled));
            let [from, to] = bases.map(|base| build.view(base, 0, &shape, &[40, 1]));
            let row = build.view(row, 0, &shape, &[0, 1]);
            let after = build.view(vectors[2], 0, &[1000, 30], &[0, 1]);
            let part = build.view(bases[1], 0, &[1000, 30], &[40, 1]);
            build.push(Opcode::Add, &[to, from, row]);
            build.push(Opcode::Add, &[part, part, after]);
        }
        add(&mut build, after, 30);
        check(&mut stack, &build.program.unwrap());
        assert_eq!((count(&stack, "kernels"), count(&stack, "blocks too small")), expected, "{beside}");
    }
}

#[test]
fn running_sums_and_scatters_come_in_pieces() {
    let _alone = alone();
    // Arrays of 256 KiB, each of which is larger than the memory.
    let keys = "memory = '100KiB'\nspecialise = 'off'\ncache_dir = ''";
    let Some(mut stack) = load("'opencl'", keys) else { return };
    for (shape, axis) in [([1, 32768], 1), ([256, 128], 0), ([256, 128], 1)] {
        for dtype in [DType::I64, DType::F64] {
            check(&mut stack, &running_sums(dtype, shape, axis));
        }
    }
    for opcode in [Opcode::Scatter, Opcode::ScatterAdd, Opcode::CondScatter] {
        check(&mut stack, &indexed(opcode, 32768));
    }
    assert_eq!((count(&stack, "blocks in pieces"), count(&stack, "blocks too large")), (9, 0));
    assert!(count(&stack, "pieces") >= 9 * 4 && count(&stack, "device peak_bytes") <= 100 << 10);
    // An index out of range is an error of the instruction, as without pieces.
    let mut wrong = indexed(Opcode::Scatter, 32768);
    let mut indices = wrong.memory.get(3).unwrap().to_vec();
    indices[8 * 30000..][..8].copy_from_slice(&40000i64.to_ne_bytes());
    wrong.memory.insert(3, indices);
    let error = run::run(&mut stack, &wrong).unwrap_err().to_string();
    assert!(error.contains("index 40000 is out of range for 32768 elements"), "{error}");
}

#[test]
fn arrays_larger_than_device_memory_come_in_pieces() {
    let _alone = alone();
    // Three arrays of 256 KiB, each of which is larger than the memory.
    let keys = "memory = '100KiB'\nspecialise = 'off'\ncache_dir = ''";
    let Some(mut stack) = load("'opencl'", keys) else { return };
    check(&mut stack, &sums(2, 32768));
    assert_eq!((count(&stack, "blocks in pieces"), count(&stack, "blocks too large")), (1, 0));
    assert!(count(&stack, "pieces") >= 8 && count(&stack, "device peak_bytes") <= 100 << 10);
    // An operation that cannot be split fails with an error that says so.
    let error = run::run(&mut stack, &indexed(Opcode::Gather, 32768)).unwrap_err().to_string();
    assert!(error.contains("gather") && error.contains("out of device memory"), "{error}");
}

#[test]
fn views_without_elements_need_nothing_of_arrays_that_do_not_fit() {
    let _alone = alone();
    let Some(mut stack) = load("'opencl'", "memory = '100KiB'\nspecialise = 'off'\ncache_dir = ''") else { return };
    // Shapes and strides of what is read and of what is written, and the axes of a fold.
    let cases: [([i64; 2], [i64; 2], u16); 6] = [
        ([0, 4], [0, 1], 0),
        ([4, 0], [1, 0], 0),
        ([0, 0], [0, 0], 0),
        ([4, 0], [1, 0], 2),
        ([0, 4], [0, 0], 1),
        ([0, 4], [0, 1], 3),
    ];
    for (shape, stride, folded) in cases {
        let mut build = Build::default();
        let (source, target) = (build.base(DType::F64, 32768, true), build.base(DType::F64, 32768, true));
        let read = build.view(source, 7, &shape, &stride);
        let kept: Vec<i64> = (0..2).filter(|dim| folded >> dim & 1 == 0).map(|dim| shape[dim]).collect();
        let strides = [4, 1];
        let result = build.view(target, 9, &kept, &strides[2 - kept.len()..]);
        let opcode = if folded == 0 { Opcode::Sqrt } else { Opcode::AddReduce };
        let instr = Instr { param: folded, ..Instr::new(opcode, &[result, read]) };
        build.program().batch.push_instr(instr);
        check(&mut stack, &build.program.unwrap());
    }
}

/// Sums over an axis of a product of a matrix and itself turned, at 3 times the memory and more. Hundreds of pieces, so only with
/// `BH_TEST_ALL`.
#[test]
fn reductions_and_transposes_come_in_pieces() {
    if std::env::var("BH_TEST_ALL").is_err() {
        return;
    }
    let _alone = alone();
    let keys = "memory = '64KiB'\nspecialise = 'off'\ncache_dir = ''";
    let Some(mut stack) = load("'opencl'", keys) else { return };
    let n = 160;
    for axes in [1, 2, 3] {
        let mut build = Build::default();
        let (source, whole) = (build.base(DType::I64, n * n, true), build.base(DType::I64, n * n, false));
        let len = if axes == 3 { 1 } else { n };
        let result = build.base(DType::I64, len, false);
        let (rows, columns) = (build.view(source, 0, &[n, n], &[n, 1]), build.view(source, 0, &[n, n], &[1, n]));
        let product = build.view(whole, 0, &[n, n], &[n, 1]);
        let result = if axes == 3 { build.view(result, 0, &[], &[]) } else { build.view(result, 0, &[n], &[1]) };
        build.push(Opcode::Add, &[product, rows, columns]);
        let mut instr = Instr::new(Opcode::AddReduce, &[result, product]);
        instr.param = axes;
        build.program().batch.push_instr(instr);
        check(&mut stack, &build.program.unwrap());
    }
    assert!(count(&stack, "pieces") > 3 * 4, "{} pieces", count(&stack, "pieces"));
}

/// So little memory that most blocks of small programs do not fit it. Only with `BH_TEST_ALL`, as drivers take long to build kernels.
#[test]
fn random_programs_in_pieces_equal_the_oracle() {
    if std::env::var("BH_TEST_ALL").is_err() {
        return;
    }
    let _alone = alone();
    let keys = "memory = '2KiB'\nplacement = 'device'\nspecialise = 'off'\ncache_dir = ''\nwhile_building = 'off'";
    let Some(mut stack) = load("'opencl', 'interp'", keys) else { return };
    let options = Options { max_instrs: 8, max_rank: 3, ..Options::default() };
    let programs = std::env::var("BH_TEST_PROGRAMS").map_or(60, |text| text.parse().unwrap());
    for seed in 0..programs {
        check(&mut stack, &program(seed, &options));
    }
    assert!(count(&stack, "blocks in pieces") >= programs / 4, "{} blocks", count(&stack, "blocks in pieces"));
    assert!(count(&stack, "device peak_bytes") <= 2 << 10);
}

#[test]
fn device_memory_is_foretold_to_the_byte() {
    let _alone = alone_and_optimised();
    let Some(mut stack) = load("'opencl'", "specialise = 'off'\ncache_dir = ''") else { return };
    let used = |stack: &mut Stack| {
        let info = stack.message("info").unwrap();
        let own = info.lines().find(|line| line.starts_with(&format!("{} device", stacks::title()))).unwrap();
        own.split("; ").nth(1).unwrap().split(' ').next().unwrap().parse::<u64>().unwrap()
    };
    let options = Options { max_rank: 3, ..Options::default() };
    let mut bytes = 0;
    for seed in 0..8 {
        // A second run finds the plans, and a later one the prepared batch.
        for time in 0..4 {
            let random = program(seed, &options);
            let batch = run::bring(&mut stack, &random).unwrap();
            let before = used(&mut stack);
            let foretold = stack.predict(&batch.as_ref(), &[]).unwrap().peak_bytes;
            assert_eq!(used(&mut stack), before, "what is foretold takes nothing");
            stack.services().stats().set(&format!("{}.device peak_bytes", stacks::driver()), before);
            stack.execute(&batch.as_ref(), &[]).and_then(|ticket| stack.wait(ticket)).unwrap();
            let counted = count(&stack, "device peak_bytes") - before;
            assert_eq!(foretold, counted, "seed {seed}, time {time}");
            run::discard(&mut stack, &batch).unwrap();
            bytes += counted;
        }
    }
    assert!(bytes > 0);
}

/// Sums of two views of an array, of this shape.
fn parts(len: i64, starts: [i64; 2], shape: &[i64], stride: &[i64]) -> Program {
    let mut build = Build::default();
    let (source, target) = (build.base(DType::F32, len, true), build.base(DType::F32, shape.iter().product(), false));
    let views = starts.map(|start| build.view(source, start, shape, stride));
    let mut dense = vec![1; shape.len()];
    for dim in (1..shape.len()).rev() {
        dense[dim - 1] = dense[dim] * shape[dim];
    }
    let result = build.view(target, 0, shape, &dense);
    build.push(Opcode::Add, &[result, views[0], views[1]]);
    build.program.unwrap()
}

#[test]
fn what_is_read_of_a_large_array_travels_and_no_more() {
    let _alone = alone();
    let len = 1 << 19;
    // The bytes that travel: a range, one read backwards, two rectangles, a column (with what is between), and most of it.
    type Case = ([i64; 2], &'static [i64], &'static [i64], u64);
    let cases: [Case; 5] = [
        ([1000, 1000], &[5000], &[1], 5000),
        ([5999, 5999], &[5000], &[-1], 5000),
        ([3, 200_003], &[100, 128], &[1024, 1], 2 * 100 * 128),
        ([7, 7], &[20], &[1024], 19 * 1024 + 1),
        ([0, 1], &[524_287], &[1], 524_288),
    ];
    for (starts, shape, stride, elements) in cases {
        let Some(mut stack) = load("'opencl'", "specialise = 'off'\ncache_dir = ''") else { return };
        check(&mut stack, &parts(len, starts, shape, stride));
        assert_eq!(count(&stack, "upload_bytes"), 4 * elements, "{shape:?} {stride:?}");
    }
}

#[test]
fn what_nobody_wrote_does_not_travel() {
    let _alone = alone();
    let mut build = Build::default();
    let (source, grid) = (build.base(DType::F64, 500, true), build.base(DType::F64, 10_000, false));
    let inside = [build.view(grid, 100, &[500], &[2]), build.view(source, 0, &[500], &[1])];
    build.push(Opcode::Copy, &inside);
    let Some(mut stack) = load("'opencl'", "specialise = 'off'\ncache_dir = ''") else { return };
    // The oracle has zeros around what is written.
    check(&mut stack, &build.program.unwrap());
    assert_eq!((count(&stack, "upload_bytes"), count(&stack, "download_bytes")), (4_000, 80_000));
}

#[test]
fn large_transfers_go_through_pinned_memory_piece_by_piece() {
    let _alone = alone();
    // Arrays of 66 KB in pieces of 4 KiB, the last of which is not full.
    let keys = "staging = '4KiB'\nspecialise = 'off'\ncache_dir = ''";
    let Some(mut stack) = load("'opencl'", keys) else { return };
    check(&mut stack, &sums(3, 8300));
    assert!(count(&stack, "upload_bytes") >= 3 * 8300 * 8 && count(&stack, "download_bytes") >= 2 * 8300 * 8);
}

/// Rows of an array that is made part by part, of memory that held other values before: no zeros are needed where all rows are written
/// before they are read. Without the placement all get zeros, and results are the same.
#[test]
fn arrays_that_are_filled_part_by_part_need_no_zeros() {
    let _alone = alone();
    for (placements, fewest) in [("auto", 0), ("private,local", 1)] {
        let keys = format!("placement = 'device'\ncache_dir = ''\nplacements = '{placements}'");
        let Some(mut stack) = load("'opencl'", &keys) else { return };
        filled_by_parts(&mut stack, fewest);
    }
}

/// Arrays made of two parts, of which one makes up a whole array and needs as many zeros as `fewest` says.
fn filled_by_parts(stack: &mut Stack, fewest: i64) {
    let (rows, columns) = (24, 1000);
    let cases = [(vec![(0, 10), (10, 14)], fewest), (vec![(0, 10), (11, 13)], 1), (vec![(0, 12), (10, 14)], 1)];
    for (parts, zeros) in cases {
        check(stack, &sums(4, rows * columns));
        let before = count(stack, "cleared_bytes");
        let mut build = Build::default();
        let whole = [rows, columns];
        let source = build.base(DType::F64, rows * columns, true);
        let [made, after] = [0, 1].map(|_| build.base(DType::F64, rows * columns, false));
        for (first, count) in parts {
            let views = [made, source].map(|base| build.view(base, first * columns, &[count, columns], &[columns, 1]));
            build.push(Opcode::Sqrt, &views);
        }
        let views = [after, made].map(|base| build.view(base, 0, &whole, &[columns, 1]));
        build.push(Opcode::Absolute, &views);
        check(stack, &build.program.unwrap());
        assert_eq!(count(stack, "cleared_bytes") - before, (zeros * rows * columns * 8) as u64);
    }
}
