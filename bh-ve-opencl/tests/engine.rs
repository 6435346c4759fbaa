//! The OpenCL engine in stacks of its own configuration: what goes to the next engine, memory that is too small, renames,
//! kernels on disk, both forms of kernels. Machines without OpenCL leave these tests out, and say so.

mod support;

use bh_bytecode::random::{Options, Program, Rng, program};
use bh_bytecode::{Base, Batch, Constant, DType, Instr, Opcode, Operand, View, base_flags};
use bh_core::stack::Stack;
use bh_tests::{data, run, stacks};
use std::path::PathBuf;
use support::{alone, count, load, load_with_groups};

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
    program.oracle().unwrap().check_within(&program.batch, &memory, stacks::bounds("opencl")).unwrap();
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
    let keys = "memory = '50KiB'\nsmall_bytes = '1KiB'\nspecialise = 'off'\ncache_dir = ''";
    let Some(mut stack) = load("'opencl', 'interp'", keys) else { return };
    check(&mut stack, &indexed(Opcode::Gather, 8192));
    assert_eq!((count(&stack, "kernels"), count(&stack, "blocks too large")), (0, 1));
    check(&mut stack, &sums(2, 20));
    assert_eq!((count(&stack, "kernels"), count(&stack, "blocks too small")), (0, 1));
    check(&mut stack, &sums(2, 1000));
    assert_eq!(count(&stack, "kernels"), 1);
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
    // What cannot be parted is an error that says so.
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
    let keys = "memory = '2KiB'\nsmall_bytes = 0\nsmall_operations = 0\nspecialise = 'off'\ncache_dir = ''\nwhile_building = 'off'";
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
    let _alone = alone();
    let Some(mut stack) = load("'opencl'", "specialise = 'off'\ncache_dir = ''") else { return };
    let used = |stack: &mut Stack| {
        let info = stack.message("info").unwrap();
        let own = info.lines().find(|line| line.starts_with("OpenCL device")).unwrap();
        own.split("; ").nth(1).unwrap().split(' ').next().unwrap().parse::<u64>().unwrap()
    };
    let options = Options { max_rank: 3, ..Options::default() };
    let mut bytes = 0;
    for seed in 0..8 {
        // When a program comes again, its plans are there.
        for time in 0..2 {
            let random = program(seed, &options);
            let batch = run::bring(&mut stack, &random).unwrap();
            let before = used(&mut stack);
            let foretold = stack.predict(&batch.as_ref(), &[]).unwrap().peak_bytes;
            assert_eq!(used(&mut stack), before, "what is foretold takes nothing");
            stack.services().stats().set("opencl.device peak_bytes", before);
            stack.execute(&batch.as_ref(), &[]).and_then(|ticket| stack.wait(ticket)).unwrap();
            let counted = count(&stack, "device peak_bytes") - before;
            assert_eq!(foretold, counted, "seed {seed}, time {time}");
            run::discard(&mut stack, &batch).unwrap();
            bytes += counted;
        }
    }
    assert!(bytes > 0);
}

#[test]
fn the_next_engine_runs_what_is_not_built_yet() {
    let _alone = alone();
    let keys = "small_bytes = 0\nsmall_operations = 0\nspecialise = 'off'\ncache_dir = ''\nwhile_building = 'auto'";
    let Some(mut stack) = load("'opencl', 'interp'", keys) else { return };
    let program = sums(2, 1000);
    check(&mut stack, &program);
    assert_eq!((count(&stack, "kernels"), count(&stack, "blocks elsewhere while kernels are built")), (0, 1));
    // The kernel is there some time later.
    for _ in 0..600 {
        if count(&stack, "kernels built") > 0 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    for _ in 0..3 {
        check(&mut stack, &program);
    }
    assert!(count(&stack, "kernels") > 0);
}

/// Programs one after the other on a device that is lost after some kernels: which of them were right.
fn on_a_device_that_is_lost(below: &str, keys: &str) -> Option<Vec<Result<(), String>>> {
    let keys =
        format!("fault_after = 3\nsmall_bytes = 0\nsmall_operations = 0\nspecialise = 'off'\ncache_dir = ''\n{keys}");
    let mut stack = load(below, &keys)?;
    let program = sums(2, 1000);
    let outcomes = (0..5).map(|_| {
        let memory = run::run(&mut stack, &program).map_err(|error| error.to_string())?;
        program.oracle().unwrap().check_within(&program.batch, &memory, stacks::bounds("opencl"))
    });
    let outcomes = outcomes.collect();
    assert_eq!(stack.message("leaks").unwrap().lines().last(), Some("0 arrays alive, 0 bytes of host memory"));
    Some(outcomes)
}

#[test]
fn a_lost_device_is_an_error_or_the_next_engine_takes_over() {
    let _alone = alone();
    let Some(alone) = on_a_device_that_is_lost("'opencl'", "") else { return };
    let (before, after) = alone.split_at(2);
    assert!(before.iter().all(Result::is_ok), "{alone:?}");
    assert!(after.iter().all(|it| it.as_ref().is_err_and(|text| text.contains("is lost"))), "{alone:?}");
    let followed = on_a_device_that_is_lost("'opencl', 'interp'", "while_building = 'off'").unwrap();
    let failed = followed.iter().position(Result::is_err);
    assert_eq!((failed, followed.iter().filter(|it| it.is_err()).count()), (Some(2), 1), "{followed:?}");
}

#[test]
fn arrays_that_were_only_on_a_lost_device_are_named_and_others_stay() {
    let _alone = alone();
    let keys = "fault_after = 2\nspecialise = 'off'\ncache_dir = ''";
    let Some(mut stack) = load("'opencl'", keys) else { return };
    // The first kernel's result is on the device when the second kernel finds it lost.
    let program = apart(2, 1000);
    let outcome = run::run_failing(&mut stack, &program).unwrap();
    assert!(outcome.result.is_err());
    let read = |at: usize| outcome.bases[at].as_ref().unwrap().as_ref();
    let [first, second] = [2, 5].map(|at| read(at).unwrap_err().to_string());
    assert!(first.contains("newest copy of base") && first.contains("f64[1000]"), "{first}");
    assert!(first.contains("is lost") && second.contains("is lost"), "{first} {second}");
    for at in [0, 1, 3, 4] {
        assert_eq!(read(at).unwrap().as_slice(), program.memory.get(program.batch.bases[at].id).unwrap());
    }
}

/// Run by the next test in processes of their own, with the directory of the cache in the environment.
#[test]
#[ignore = "part of another test"]
fn one_of_many_processes() {
    let directory = std::env::var("BH_TEST_CACHE").unwrap();
    let keys = format!("specialise = 'off'\nwhile_building = 'off'\ncache_dir = '{directory}'");
    let Some(mut stack) = load("'opencl'", &keys) else { return };
    check(&mut stack, &heat(false));
}

/// 64 with `BH_TEST_ALL`, as each takes the driver's time.
#[test]
fn many_processes_share_the_kernels_on_disk() {
    let _alone = alone();
    if load("'opencl'", "cache_dir = ''").is_none() {
        return;
    }
    let directory = std::env::temp_dir().join(format!("bh-opencl-race-{}", std::process::id()));
    let count = if std::env::var("BH_TEST_ALL").is_ok() { 64 } else { 4 };
    let start = |_| {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "one_of_many_processes", "--ignored"]).env("BH_TEST_CACHE", &directory);
        child.stdout(std::process::Stdio::piped()).spawn().unwrap()
    };
    let all: Vec<_> = (0..count).map(start).collect();
    for child in all {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    std::fs::remove_dir_all(directory).unwrap();
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

#[test]
fn a_stencil_that_is_written_back_is_one_kernel_and_copies_of_the_border() {
    let _alone = alone();
    let Some(mut stack) = load("'opencl'", "specialise = 'off'\ncache_dir = ''") else { return };
    for held in [false, true] {
        let before = count(&stack, "kernels");
        check(&mut stack, &heat(held));
        // One kernel for the inside and one for the border; `work` costs none, and is read from where the inside lies.
        let kernels = count(&stack, "kernels") - before;
        assert!((1..=2).contains(&kernels), "{kernels} kernels");
    }
    assert_eq!(count(&stack, "copies on the device"), 0);
}

#[test]
fn what_is_held_keeps_its_values_when_the_array_it_lies_in_changes() {
    let _alone = alone();
    let Some(mut stack) = load("'opencl'", "specialise = 'off'\ncache_dir = ''") else { return };
    let mut program = heat(true);
    let flags = base_flags::LIVE_OUT | base_flags::BORN;
    let next = program.batch.push_base(Base { flags, ..Base::new(9, DType::F64, 1600) });
    let mut view =
        |base, start, len| Operand::view(program.batch.push_view(base, &View::new(start, &[len], &[1]).unwrap()));
    let (grid, all, row, last) = (view(0, 0, 1600), view(next, 0, 1600), view(0, 40, 40), view(next, 1560, 40));
    program.batch.push_instr(Instr::new(Opcode::Multiply, &[all, grid, grid]));
    program.batch.push_instr(Instr::new(Opcode::Copy, &[row, last]));
    check(&mut stack, &program);
    assert_eq!(count(&stack, "copies on the device"), 1);
}

#[test]
fn rows_that_read_what_their_neighbours_read_are_done_together() {
    let _alone = alone();
    let Some(mut stack) = load("'opencl'", "specialise = 'on'\ncache_dir = ''") else { return };
    // A height that is no multiple of the rows that an item does.
    let (height, width) = (259, 131);
    let mut build = Build::default();
    let (grid, out) =
        (build.base(DType::F32, (height + 2) * width, true), build.base(DType::F32, height * width, true));
    let rows: Vec<Operand> = (0..3).map(|at| build.view(grid, at * width, &[height, width - 4], &[width, 1])).collect();
    let result = build.view(out, 0, &[height, width - 4], &[width, 1]);
    build.push(Opcode::Add, &[result, rows[0], rows[1]]);
    build.push(Opcode::Add, &[result, result, rows[2]]);
    check(&mut stack, &build.program.unwrap());
}

#[test]
fn arrays_read_across_their_order_are_turned_in_tiles() {
    let _alone = alone();
    let Some(mut stack) = load("'opencl'", "specialise = 'off'\ncache_dir = ''") else { return };
    // Two factors that lie by columns, one of them backward, and one by rows; sides are no multiples of a tile's.
    let (height, width) = (37, 50);
    let mut build = Build::default();
    let bases = [0; 3].map(|_| build.base(DType::F32, height * width, true));
    let out = build.base(DType::F32, height * width, false);
    let shape = [height, width];
    let columns = build.view(bases[0], 0, &shape, &[1, height]);
    let backward = build.view(bases[1], height - 1, &shape, &[-1, height]);
    let rows = build.view(bases[2], 0, &shape, &[width, 1]);
    let result = build.view(out, 0, &shape, &[width, 1]);
    build.push(Opcode::Multiply, &[result, columns, rows]);
    build.push(Opcode::Subtract, &[result, result, backward]);
    check(&mut stack, &build.program.unwrap());
    assert_eq!(count(&stack, "kernels"), 1);
}

/// Sums over all pairs of the elements of two arrays, of distances and of products, along the axis `folded`.
fn pairs(rows: i64, columns: i64, folded: u16) -> Program {
    let mut build = Build::default();
    let (down, right) = (build.base(DType::F32, rows, true), build.base(DType::F32, columns + 3, true));
    let (down, right) =
        (build.view(down, 0, &[rows, columns], &[1, 0]), build.view(right, columns + 2, &[rows, columns], &[0, -1]));
    let kept = if folded == 1 { columns } else { rows };
    let temporaries: Vec<Operand> = (0..2)
        .map(|_| {
            let base = build.base(DType::F32, rows * columns, false);
            build.program().batch.bases[base as usize].flags = base_flags::BORN | base_flags::DIES;
            build.view(base, 0, &[rows, columns], &[columns, 1])
        })
        .collect();
    build.push(Opcode::Subtract, &[temporaries[0], right, down]);
    build.push(Opcode::Multiply, &[temporaries[1], temporaries[0], right]);
    for from in &temporaries {
        let base = build.base(DType::F32, kept, false);
        let result = build.view(base, 0, &[kept], &[1]);
        let instr = Instr { param: folded, ..Instr::new(Opcode::AddReduce, &[result, *from]) };
        build.program().batch.push_instr(instr);
    }
    temporaries.iter().for_each(|&temporary| build.push(Opcode::Discard, &[temporary]));
    build.program.unwrap()
}

#[test]
fn what_all_results_of_a_fold_read_comes_to_local_memory_and_changes_no_bit() {
    let _alone = alone();
    for (group, specialise) in [(16, "on"), (128, "off"), (128, "on")] {
        let keys =
            |placements: &str| format!("specialise = '{specialise}'\ncache_dir = ''\nplacements = '{placements}'");
        let Some(mut plain) = load_with_groups(group, "'opencl'", &keys("unroll")) else { return };
        let Some(mut tiled) = load_with_groups(group, "'opencl'", &keys("local,unroll")) else { return };
        for (rows, columns) in [(37, 1003), (300, 77), (130, 4500), (5, 9), (2000, 130)] {
            for folded in [1, 2] {
                let program = pairs(rows, columns, folded);
                check(&mut tiled, &program);
                let found = [&mut plain, &mut tiled].map(|stack| run::run(stack, &program).unwrap());
                for base in program.batch.bases.iter().filter(|base| base.flags & base_flags::LIVE_OUT != 0) {
                    assert_eq!(found[0].get(base.id), found[1].get(base.id), "{rows} {columns} {folded} {group}");
                }
            }
        }
    }
}

/// Sums of squares of what points and centres are apart, both of `axes` elements; `turned`: centres lie axis by axis.
fn distances(points: i64, centres: i64, axes: i64, turned: bool) -> Program {
    let mut build = Build::default();
    let shape = [points, centres, axes];
    let (down, right) = (build.base(DType::F64, points * axes, true), build.base(DType::F64, centres * axes, true));
    let down = build.view(down, 0, &shape, &[axes, 0, 1]);
    let right = build.view(right, 0, &shape, &if turned { [0, 1, centres] } else { [0, axes, 1] });
    let temporary = build.base(DType::F64, points * centres * axes, false);
    build.program().batch.bases[temporary as usize].flags = base_flags::BORN | base_flags::DIES;
    let temporary = build.view(temporary, 0, &shape, &[centres * axes, axes, 1]);
    build.push(Opcode::Subtract, &[temporary, down, right]);
    build.push(Opcode::Multiply, &[temporary, temporary, temporary]);
    let base = build.base(DType::F64, points * centres, false);
    let result = build.view(base, 0, &[points, centres], &[centres, 1]);
    build.program().batch.push_instr(Instr { param: 0b100, ..Instr::new(Opcode::AddReduce, &[result, temporary]) });
    build.push(Opcode::Discard, &[temporary]);
    build.program.unwrap()
}

#[test]
fn tables_that_neighbours_read_in_turn_come_to_local_memory_and_change_no_bit() {
    let _alone = alone();
    for (group, specialise) in [(16, "on"), (128, "off"), (128, "on")] {
        let keys =
            |placements: &str| format!("specialise = '{specialise}'\ncache_dir = ''\nplacements = '{placements}'");
        let Some(mut plain) = load_with_groups(group, "'opencl'", &keys("unroll")) else { return };
        let Some(mut tabled) = load_with_groups(group, "'opencl'", &keys("local,unroll")) else { return };
        for (points, centres, axes, turned) in
            [(3000, 13, 7, false), (3000, 13, 7, true), (5000, 2, 16, false), (9, 5, 3, false)]
        {
            let program = distances(points, centres, axes, turned);
            check(&mut tabled, &program);
            let found = [&mut plain, &mut tabled].map(|stack| run::run(stack, &program).unwrap());
            let result = program.batch.bases.last().unwrap().id;
            assert_eq!(found[0].get(result), found[1].get(result), "{points} {centres} {axes} {turned} {group}");
        }
    }
}

#[test]
fn elements_that_come_as_vectors_are_the_same() {
    let _alone = alone();
    let Some(mut stack) = load("'opencl'", "specialise = 'off'\ncache_dir = ''\nplacements = 'all'") else { return };
    // Enough elements for all items, and some that are left over; a shifted array, which is not aligned, and one element.
    let len = 200_003;
    for dtype in [DType::F64, DType::F32, DType::I16, DType::Bool] {
        let mut build = Build::default();
        let (source, shifted) = (build.base(dtype, len, true), build.base(dtype, len + 1, true));
        let (single, out) = (build.base(dtype, 1, true), build.base(dtype, len, false));
        let [source, out] = [source, out].map(|base| build.view(base, 0, &[len], &[1]));
        let (shifted, single) = (build.view(shifted, 1, &[len], &[1]), build.view(single, 0, &[len], &[0]));
        build.push(Opcode::Add, &[out, source, shifted]);
        build.push(Opcode::Multiply, &[out, out, single]);
        check(&mut stack, &build.program.unwrap());
    }
    assert_eq!(count(&stack, "kernels"), 4);
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

#[test]
fn kernels_are_kept_on_disk_for_the_next_process() {
    let _alone = alone();
    let directory = std::env::temp_dir().join(format!("bh-opencl-cache-{}", std::process::id()));
    let keys = format!("specialise = 'off'\ncache_dir = '{}'", directory.display());
    let Some(mut stack) = load("'opencl'", &keys) else { return };
    check(&mut stack, &heat(false));
    let built = count(&stack, "kernels built");
    assert!(built > 0);
    drop(stack);
    let mut again = load("'opencl'", &keys).unwrap();
    check(&mut again, &heat(false));
    assert_eq!((count(&again, "kernels built"), count(&again, "kernels loaded")), (0, built));
    drop(again);
    // What is damaged is built again.
    for entry in std::fs::read_dir(&directory).unwrap() {
        let file: PathBuf = entry.unwrap().path();
        let mut bytes = std::fs::read(&file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&file, bytes).unwrap();
    }
    let mut third = load("'opencl'", &keys).unwrap();
    check(&mut third, &heat(false));
    assert_eq!((count(&third, "kernels built"), count(&third, "kernels loaded")), (built, 0));
    std::fs::remove_dir_all(directory).unwrap();
}

/// Sums of arrays of different types and lengths: a kernel each.
fn of_types() -> Program {
    let mut build = Build::default();
    for (len, dtype) in (100..).zip([DType::F64, DType::F32, DType::I64, DType::I32, DType::U8]) {
        let bases = [build.base(dtype, len, true), build.base(dtype, len, true), build.base(dtype, len, false)];
        let [a, b, result] = bases.map(|base| build.view(base, 0, &[len], &[1]));
        build.push(Opcode::Add, &[result, a, b]);
    }
    build.program.unwrap()
}

#[test]
fn kernels_of_a_batch_are_built_as_few_programs_and_each_is_found_on_disk() {
    let _alone = alone();
    let directory = std::env::temp_dir().join(format!("bh-opencl-together-{}", std::process::id()));
    let keys = |together: usize, directory: &str| {
        format!("specialise = 'off'\ntogether = {together}\ncache_dir = '{directory}'")
    };
    for (together, programs) in [(1, 5), (2, 3), (8, 1)] {
        let Some(mut stack) = load("'opencl'", &keys(together, "")) else { return };
        check(&mut stack, &of_types());
        assert_eq!((count(&stack, "kernels built"), count(&stack, "programs built")), (5, programs));
    }
    let shared = directory.display().to_string();
    let mut stack = load("'opencl'", &keys(8, &shared)).unwrap();
    check(&mut stack, &of_types());
    drop(stack);
    // One of them alone, and what is there with what is not.
    let mut again = load("'opencl'", &keys(8, &shared)).unwrap();
    check(&mut again, &sums(2, 300));
    assert_eq!((count(&again, "kernels built"), count(&again, "kernels loaded")), (0, 1));
    check(&mut again, &heat(false));
    check(&mut again, &of_types());
    assert_eq!(count(&again, "kernels loaded"), 5);
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn kernels_with_their_sizes_in_the_text_give_the_same() {
    let _alone = alone();
    let Some(mut stack) = load("'opencl'", "specialise = 'on'\ncache_dir = ''") else { return };
    let options = Options { max_instrs: 10, max_rank: 3, allow_inexact: false, ..Options::default() };
    for seed in 0..6 {
        check(&mut stack, &program(seed, &options));
    }
    assert!(count(&stack, "blocks specialised") > 5);
}

#[test]
fn kernels_are_built_for_their_sizes_at_the_third_call_in_any_batch() {
    let _alone = alone();
    let Some(mut stack) = load("'opencl'", "specialise = 'auto'\ncache_dir = ''") else { return };
    // The same kernel in batches of their own, and in one with another kernel.
    let mut other = sums(2, 3000);
    let base =
        other.batch.push_base(Base { flags: base_flags::LIVE_OUT | base_flags::BORN, ..Base::new(99, DType::F64, 7) });
    let view = Operand::view(other.batch.push_view(base, &View::contiguous(&[7]).unwrap()));
    let zero = Operand::constant(other.batch.push_constant(Constant::from_value(0.0)));
    other.batch.push_instr(Instr::new(Opcode::Copy, &[view, zero]));
    check(&mut stack, &sums(2, 3000));
    check(&mut stack, &other);
    assert_eq!(count(&stack, "blocks specialised"), 0);
    check(&mut stack, &sums(2, 3000));
    assert_eq!(count(&stack, "blocks specialised"), 1);
    let built = count(&stack, "kernels built");
    stack.message("finish building").unwrap();
    check(&mut stack, &sums(2, 3000));
    assert!(count(&stack, "kernels built") <= built + 1);
    // Another size is another kernel.
    check(&mut stack, &sums(2, 3001));
    assert_eq!(count(&stack, "blocks specialised"), 1);
}

#[test]
fn ways_of_building_hot_kernels_are_measured_and_kept() {
    let _alone = alone();
    let directory = std::env::temp_dir().join(format!("bh-opencl-tune-{}", std::process::id()));
    let keys = format!("specialise = 'auto'\ntune = 'on'\ncache_dir = '{}'", directory.display());
    let Some(mut stack) = load("'opencl'", &keys) else { return };
    let programs = [sums(3, 5000), running_sums(DType::F64, [50, 40], 1)];
    let first: Vec<_> = programs.iter().map(|program| run::run(&mut stack, program).unwrap()).collect();
    let mut calls = 0;
    while count(&stack, "blocks tuned") < 2 && calls < 400 {
        for (program, first) in programs.iter().zip(&first) {
            // The same bits in every way.
            assert_eq!(&run::run(&mut stack, program).unwrap(), first);
        }
        calls += 1;
        if calls == 20 {
            stack.message("finish building").unwrap();
        }
    }
    assert_eq!((count(&stack, "blocks tuned"), count(&stack, "choices loaded")), (2, 0), "after {calls} calls");
    drop(stack);
    let mut again = load("'opencl'", &keys).unwrap();
    for _ in 0..4 {
        check(&mut again, &programs[0]);
    }
    assert_eq!((count(&again, "blocks tuned"), count(&again, "choices loaded")), (0, 1));
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn it_says_where_each_kernel_would_run_and_how() {
    let _alone = alone();
    let keys =
        "memory = '50KiB'\nsmall_bytes = '1KiB'\nspecialise = 'auto'\ncache_dir = ''\nplacements = 'private,local'";
    let Some(mut stack) = load("'opencl', 'interp'", keys) else { return };
    let said = |stack: &mut Stack, program: &Program| {
        let mut batch = program.batch.clone();
        let all: Vec<u32> = (0..batch.instrs.len() as u32).collect();
        batch.push_block(&all, &[]);
        let file = std::env::temp_dir().join(format!("bh-opencl-explain-{}", std::process::id()));
        let notes = bh_fuser::Notes::ask(&batch.as_ref(), &file, |text| stack.message(text)).unwrap();
        assert!(!file.exists());
        notes.of(0).map(str::to_owned).collect::<Vec<String>>()
    };
    let elementwise = said(&mut stack, &sums(2, 1000)).join("\n");
    assert!(
        elementwise.starts_with("on ") && elementwise.contains("unroll: no, not among the placements"),
        "{elementwise}"
    );
    assert!(elementwise.contains("indices of 32 bits") && elementwise.contains("after 2 calls"), "{elementwise}");
    let small = said(&mut stack, &sums(2, 5)).join("\n");
    assert!(small.contains("while its arrays are in host memory on the next engine"), "{small}");
    let large = said(&mut stack, &sums(2, 8192)).join("\n");
    assert!(large.contains("pieces"), "{large}");
    let refused = said(&mut stack, &indexed(Opcode::Gather, 8192)).join("\n");
    assert!(refused.contains("the next engine: does not fit the device"), "{refused}");
    assert_eq!(count(&stack, "kernels"), 0);
}

#[test]
fn indices_out_of_range_are_errors_of_their_instruction() {
    let _alone = alone();
    let Some(mut stack) = load("'opencl'", "specialise = 'off'\ncache_dir = ''") else { return };
    for opcode in [Opcode::Gather, Opcode::Scatter] {
        let mut build = Build::default();
        let source = build.base(DType::F32, 10, true);
        let index = build.base(DType::I64, 5, false);
        let result = build.base(DType::F32, 5, true);
        let [source, index, result] =
            [(source, 10), (index, 5), (result, 5)].map(|(base, len)| build.view(base, 0, &[len], &[1]));
        let operands = if opcode == Opcode::Gather { [result, source, index] } else { [source, result, index] };
        build.push(opcode, &operands);
        let mut program = build.program.unwrap();
        program.batch.bases[1].flags = base_flags::LIVE_OUT;
        let bytes = [0i64, 1, -11, 3, 4].iter().flat_map(|value| value.to_ne_bytes()).collect();
        program.memory.insert(2, bytes);
        let error = run::run(&mut stack, &program).unwrap_err().to_string();
        assert!(error.contains("index -11 is out of range for 10 elements"), "{error}");
    }
}

#[test]
fn wrong_devices_are_named_and_right_ones_listed() {
    let _alone = alone();
    let Some(mut stack) = load("'opencl'", "specialise = 'off'\ncache_dir = ''") else { return };
    assert!(stack.message("info").unwrap().contains("OpenCL device "), "{}", stack.message("info").unwrap());
    let text = "[stacks]\nit = ['node', 'opencl']\n[components.opencl]\ndevice = 'no such device'\n";
    let error = Stack::load(&stacks::from_text("it.toml", text).unwrap(), Some("it")).err().unwrap().to_string();
    assert!(error.contains("no such device") && error.contains("0: "), "{error}");
}

/// Run by the next test in a process of its own.
#[test]
#[ignore = "needs an environment without OpenCL platforms"]
fn without_platforms() {
    let _alone = alone();
    let text = "[stacks]\nit = ['node', 'opencl', 'interp']\nalone = ['node', 'opencl']\n";
    let config = stacks::from_text("it.toml", text).unwrap();
    let mut stack = Stack::load(&config, Some("it")).unwrap();
    check(&mut stack, &sums(3, 100));
    assert_eq!(count(&stack, "kernels"), 0);
    let error = Stack::load(&config, Some("alone")).err().unwrap().to_string();
    assert!(error.contains("no OpenCL"), "{error}");
}

#[test]
fn without_opencl_the_next_engine_takes_over() {
    let _alone = alone();
    let program = std::env::current_exe().unwrap();
    let mut child = std::process::Command::new(program);
    child.args(["--exact", "without_platforms", "--ignored"]).env("OCL_ICD_VENDORS", "/nonexistent");
    let output = child.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// Two grids that are made of each other in turn, in place: rows of one are read before they change, and after.
#[test]
fn chains_run_tile_by_tile() {
    let _alone = alone();
    let keys = "small_bytes = 0\nsmall_operations = 0\ncache_dir = ''\nwhile_building = 'off'\ntime_tiles = '4'";
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
    let keys = "small_bytes = 0\nsmall_operations = 0\ncache_dir = ''\nwhile_building = 'off'\ntime_tiles = '6'";
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
