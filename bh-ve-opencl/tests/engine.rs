//! The OpenCL engine in stacks of its own configuration: what goes to the next engine, memory that is too small, renames,
//! kernels on disk, both forms of kernels. Machines without OpenCL leave these tests out, and say so.

mod support;

use bh_bytecode::random::{Options, Program, Rng, program};
use bh_bytecode::{Base, Batch, Constant, DType, Instr, Opcode, Operand, View, base_flags};
use bh_core::stack::Stack;
use bh_tests::{data, run, stacks};
use std::path::PathBuf;
use support::{alone, count, load};

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

#[test]
fn arrays_larger_than_device_memory_together_come_and_go() {
    let _alone = alone();
    // 23 arrays of 64 KiB, of which 8 fit.
    let Some(mut stack) = load("'opencl'", "memory = '512KiB'\nspecialise = 'off'\ncache_dir = ''") else { return };
    check(&mut stack, &sums(12, 8192));
    assert!(count(&stack, "evictions") >= 10, "{}", count(&stack, "evictions"));
    assert!(count(&stack, "device peak_bytes") <= 512 << 10);
}

#[test]
fn what_is_too_large_or_too_small_goes_to_the_next_engine() {
    let _alone = alone();
    let keys = "memory = '100KiB'\nsmall_bytes = '1KiB'\nspecialise = 'off'\ncache_dir = ''";
    let Some(mut stack) = load("'opencl', 'interp'", keys) else { return };
    check(&mut stack, &sums(2, 8192));
    assert_eq!((count(&stack, "kernels"), count(&stack, "blocks too large")), (0, 1));
    check(&mut stack, &sums(2, 20));
    assert_eq!((count(&stack, "kernels"), count(&stack, "blocks too small")), (0, 1));
    check(&mut stack, &sums(2, 1000));
    assert_eq!(count(&stack, "kernels"), 1);
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
    assert!(stack.message("info").unwrap().contains("OpenCL device: "), "{}", stack.message("info").unwrap());
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
