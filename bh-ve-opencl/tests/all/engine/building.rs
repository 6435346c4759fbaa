//! Kernels: when they are built, in which form, and where they are kept.

use super::{Build, check, heat, indexed, running_sums, sums};
use crate::support::{alone, count, load};
use bh_bytecode::random::{Options, Program, program};
use bh_bytecode::{Base, Constant, DType, Instr, Opcode, Operand, View, base_flags};
use bh_core::stack::Stack;
use bh_tests::run;
use std::path::PathBuf;

#[test]
fn the_next_engine_runs_what_is_not_built_yet() {
    let _alone = alone();
    let keys = "placement = 'device'\nspecialise = 'off'\ncache_dir = ''\nwhile_building = 'auto'";
    let Some(mut stack) = load("'opencl', 'interp'", keys) else { return };
    let program = sums(2, 1000);
    check(&mut stack, &program);
    assert_eq!((count(&stack, "kernels"), count(&stack, "blocks elsewhere while kernels are built")), (0, 1));
    stack.message("finish building").unwrap();
    for _ in 0..3 {
        check(&mut stack, &program);
    }
    assert!(count(&stack, "kernels") > 0);
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
    let directory = std::env::temp_dir().join(format!("bh-device-race-{}", std::process::id()));
    let count = if std::env::var("BH_TEST_ALL").is_ok() { 64 } else { 4 };
    let start = |_| {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child
            .args(["--exact", "engine::building::one_of_many_processes", "--ignored"])
            .env("BH_TEST_CACHE", &directory);
        child.stdout(std::process::Stdio::piped()).spawn().unwrap()
    };
    let all: Vec<_> = (0..count).map(start).collect();
    for child in all {
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
    }
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn kernels_are_kept_on_disk_for_the_next_process() {
    let _alone = alone();
    let directory = std::env::temp_dir().join(format!("bh-device-cache-{}", std::process::id()));
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
    // A damaged program is built again.
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

/// Run by the next test in a process of its own, whose caches are in an empty directory.
#[test]
#[ignore = "part of another test"]
fn in_an_empty_cache_directory() {
    let Some(mut stack) = load("'opencl'", "specialise = 'off'\ntune = 'off'") else { return };
    check(&mut stack, &heat(false));
    let built = count(&stack, "kernels built");
    assert!(built > 0);
    let is_pocl = stack.message("info").unwrap().to_lowercase().contains("portable computing language");
    drop(stack);
    let mut again = load("'opencl'", "specialise = 'off'\ntune = 'off'").unwrap();
    check(&mut again, &heat(false));
    let (built_again, loaded) = (count(&again, "kernels built"), count(&again, "kernels loaded"));
    assert_eq!((built_again, loaded), if is_pocl { (built, 0) } else { (0, built) });
}

#[test]
fn kernels_that_the_driver_keeps_itself_are_not_kept_twice() {
    let _alone = alone();
    let directory = std::env::temp_dir().join(format!("bh-device-default-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "engine::building::in_an_empty_cache_directory", "--ignored"]);
    let output = child.env("XDG_CACHE_HOME", &directory).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
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
    let directory = std::env::temp_dir().join(format!("bh-device-together-{}", std::process::id()));
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
fn kernels_that_differ_in_numbers_have_few_forms_with_these_in_the_text() {
    let _alone = alone();
    let Some(mut stack) = load("'opencl'", "specialise = 'auto'\ncache_dir = ''") else { return };
    for _ in 0..5 {
        (0..20).for_each(|more| check(&mut stack, &sums(2, 3000 + more)));
        stack.message("finish building").unwrap();
    }
    assert_eq!(count(&stack, "blocks specialised"), 8);
    // The others are prepared without one.
    let prepared = count(&stack, "batches prepared");
    (0..20).for_each(|more| check(&mut stack, &sums(2, 3000 + more)));
    assert_eq!(count(&stack, "batches prepared"), prepared + 20);
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
    let directory = std::env::temp_dir().join(format!("bh-device-tune-{}", std::process::id()));
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
    let keys = "memory = '50KiB'\nplacement = '1KiB 4194304'\nspecialise = 'auto'\ncache_dir = ''\nplacements = 'private,local'";
    let Some(mut stack) = load("'opencl', 'interp'", keys) else { return };
    let said = |stack: &mut Stack, program: &Program| {
        let mut batch = program.batch.clone();
        let all: Vec<u32> = (0..batch.instrs.len() as u32).collect();
        batch.push_block(&all, &[]);
        let file = std::env::temp_dir().join(format!("bh-device-explain-{}", std::process::id()));
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
