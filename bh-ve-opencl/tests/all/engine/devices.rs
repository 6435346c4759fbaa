//! Devices that are lost, wrong or not there, and indices that are out of range.

use super::{Build, apart, check, sums};
use crate::support::{alone, count, load};
use bh_bytecode::{DType, Opcode, base_flags};
use bh_core::stack::Stack;
use bh_tests::{run, stacks};

/// Programs one after the other on a device that is lost after some kernels: which of them were right.
fn on_a_device_that_is_lost(below: &str, keys: &str) -> Option<Vec<Result<(), String>>> {
    let keys = format!("fault_after = 3\nplacement = 'device'\nspecialise = 'off'\ncache_dir = ''\n{keys}");
    let mut stack = load(below, &keys)?;
    let program = sums(2, 1000);
    let outcomes = (0..5).map(|_| {
        let memory = run::run(&mut stack, &program).map_err(|error| error.to_string())?;
        program.oracle().unwrap().check_within(&program.batch, &memory, stacks::bounds(&stacks::driver()))
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
    let info = stack.message("info").unwrap();
    assert!(info.contains(&format!("{} device ", stacks::title())), "{info}");
    let text = "[stacks]\nit = ['node', 'opencl']\n[components.opencl]\ndevice = 'no such device'\n";
    let error = Stack::load(&stacks::from_text("it.toml", text).unwrap(), Some("it")).err().unwrap().to_string();
    assert!(error.contains("no such device") && error.contains("0: "), "{error}");
}

/// Run by the next test in a process of its own.
#[test]
#[ignore = "needs an environment without devices"]
fn without_platforms() {
    let _alone = alone();
    let text = "[stacks]\nit = ['node', 'opencl', 'interp']\nalone = ['node', 'opencl']\n";
    let config = stacks::from_text("it.toml", text).unwrap();
    let mut stack = Stack::load(&config, Some("it")).unwrap();
    check(&mut stack, &sums(3, 100));
    assert_eq!(count(&stack, "kernels"), 0);
    let error = Stack::load(&config, Some("alone")).err().unwrap().to_string();
    assert!(error.contains("no OpenCL") || error.contains("finds no device"), "{error}");
}

#[test]
fn without_a_device_the_next_engine_takes_over() {
    let _alone = alone();
    let program = std::env::current_exe().unwrap();
    let mut child = std::process::Command::new(program);
    child.args(["--exact", "engine::devices::without_platforms", "--ignored"]).env("OCL_ICD_VENDORS", "/nonexistent");
    child.env_remove("OCL_ICD_FILENAMES").env("CUDA_VISIBLE_DEVICES", "");
    let output = child.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
