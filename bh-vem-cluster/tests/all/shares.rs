//! Shares: after a device is lost, with little memory, and with one engine for each part of the memory.

use crate::support;

use bh_bytecode::Opcode;
use bh_core::stack::Stack;
use bh_tests::stacks;
use support::{Program, two_devices};

/// The second device fails after a few kernels.
const FAULT: &str = "fault_after = 4\nspecialise = 'off'";

/// The share of a lost device moves to the other one; its data is lost.
#[test]
fn a_lost_device_gets_nothing_more() {
    let Some(mut stack) = two_devices("weights = [1, 1]", FAULT) else { return };
    assert!(stack.message("info").unwrap().contains("shares 50.0%, 50.0%"));
    let mut program = Program::new(&mut stack);
    let (mut failed, mut right) = (0, 0);
    for turn in 0..8 {
        let grid = program.grid(&[40, 10], |index| (index + turn) as f64);
        let twice = program.scale(grid, 2.0);
        let sum = program.sum(program.all(twice));
        match program.try_run().and_then(|()| program.try_value(sum)) {
            Ok(value) => {
                assert_eq!(value, (0..400).map(|index| 2.0 * (index + turn) as f64).sum::<f64>());
                right += 1;
            }
            Err(error) => {
                assert!(error.text.contains("is lost"), "{error}");
                failed += 1;
            }
        }
    }
    assert!(failed > 0 && failed <= 2 && right >= 6, "{failed} {right}");
    let before = program.traffic();
    let grid = program.grid(&[40, 10], |index| index as f64);
    let twice = program.scale(grid, 2.0);
    let sum = program.sum(program.all(twice));
    program.try_run().unwrap();
    assert_eq!(program.value(sum), 400.0 * 399.0);
    assert_eq!((program.traffic() - before).bytes, 0);
    assert!(stack.message("info").unwrap().contains("shares 100.0%, 0.0%"));
}

/// Existing arrays move to the other device; errors name the elements that only the lost device had.
#[test]
fn arrays_from_before_a_device_is_lost_move_to_the_others() {
    let Some(mut stack) = two_devices("weights = [1, 1]", FAULT) else { return };
    let mut program = Program::new(&mut stack);
    let shape = [40, 10];
    let kept = program.grid(&shape, |index| index as f64);
    let made = program.zeros(&shape);
    program.op(Opcode::Add, program.all(made), &[program.all(kept), program.all(kept)]);
    program.run();
    let mut turns = 0;
    loop {
        let twice = program.scale(kept, 2.0);
        let sum = program.sum(program.all(twice));
        if program.try_run().and_then(|()| program.try_value(sum)).is_err() {
            break;
        }
        turns += 1;
        assert!(turns < 20, "the device is not lost");
    }
    let twice = program.scale(kept, 2.0);
    let sum = program.sum(program.all(twice));
    program.try_run().unwrap();
    assert_eq!(program.value(sum), 400.0 * 399.0);
    let (before, sum) = (program.traffic(), program.sum(program.all(kept)));
    program.try_run().unwrap();
    assert_eq!(program.value(sum), 200.0 * 399.0);
    assert_eq!((program.traffic() - before).bytes, 0);
    let error = program.try_value(made).unwrap_err();
    assert!(error.text.contains("is lost"), "{error}");
    assert_eq!(program.values(kept)[399], 399.0);
}

/// A device with less memory gets a smaller share, so that arrays fit without being split in pieces.
#[test]
fn shares_respect_memory() {
    let Some(mut stack) = two_devices("", "memory = '1MiB'") else { return };
    assert!(stack.message("info").unwrap().contains("shares 50.0%, 50.0%"));
    let mut program = Program::new(&mut stack);
    let shape = [256, 256];
    let arrays: Vec<u32> = (0..4).map(|number| program.grid(&shape, |index| (index + number) as f64)).collect();
    for _ in 0..3 {
        for pair in arrays.windows(2) {
            program.op(Opcode::Add, program.all(pair[1]), &[program.all(pair[0]), program.all(pair[1])]);
        }
        program.run();
    }
    let mut expected: Vec<f64> = (0..4).map(|number| (number + 65_535) as f64).collect();
    for _ in 0..3 {
        (1..4).for_each(|place| expected[place] += expected[place - 1]);
    }
    for (&array, expected) in arrays.iter().zip(expected) {
        assert_eq!(program.values(array)[65_535], expected);
    }
    for name in ["second.evictions", "second.blocks in pieces"] {
        assert_eq!(program.count(name), 0, "{name}");
    }
    assert!(program.count("second.kernels") > 0);
    let info = stack.message("info").unwrap();
    assert!(!info.contains("shares 50.0%"), "{info}");
    assert!(stack.message("cluster shares").unwrap().contains("2 ranks, shares "));
}

/// One engine for each list of processors in the key, as on a host with several memory nodes.
#[test]
fn engines_are_as_many_as_parts_of_the_memory() {
    let text = "[stacks]\nit = ['cluster', [['fuser', 'node', 've-cpu*']]]\n[components.cluster]\nsmall_bytes = 64\n\
                [components.ve-cpu]\ndomains = '0;0;0'\n";
    let config = stacks::from_text("numa.toml", text).unwrap();
    let mut stack = Stack::load(&config, Some("it")).unwrap();
    assert_eq!(stack.message("cluster ranks").unwrap(), "3");
    let mut program = Program::new(&mut stack);
    let grid = program.grid(&[30, 10], |index| index as f64);
    let twice = program.scale(grid, 2.0);
    let sum = program.sum(program.all(twice));
    program.run();
    assert_eq!(program.value(sum), 300.0 * 299.0);
    for name in ["ve-cpu.kernels", "ve-cpu#2.kernels", "ve-cpu#3.kernels"] {
        assert!(program.count(name) > 0, "{name}");
    }
    program.end();
}

/// Two processor engines, with keys of the cluster.
fn two_engines(keys: &str) -> Stack {
    let chain = "['fuser', 'node', 've-cpu']";
    let text = format!(
        "[stacks]\nit = ['cluster', [{chain}, {chain}]]\n[components.cluster]\n{keys}\n\
         [components.ve-cpu]\nthreads = 1\njit = 'off'\n"
    );
    let config = stacks::from_text("cluster.toml", &text).unwrap();
    Stack::load(&config, Some("it")).unwrap_or_else(|error| panic!("{error}"))
}

/// Shares follow the recent kinds of work, with rates from a file.
#[test]
fn shares_follow_the_kind_of_work() {
    let path = std::env::temp_dir().join(format!("bh-rates-shares-{}", std::process::id()));
    std::fs::write(&path, "# as bh tune writes them\n0: 0.01, 0.04, 0.03, 0.04, 9\n1: 0.01, 0.02, 0.01, 0.02, 9\n")
        .unwrap();
    let mut stack = two_engines(&format!("small_bytes = 64\nweights = '{}'", path.display()));
    std::fs::remove_file(&path).unwrap();
    let info = stack.message("cluster shares").unwrap();
    assert!(
        info.contains("shares 50.0%, 50.0%; by kind of work: bytes 50.0%, 50.0%; operations 66.7%, 33.3%"),
        "{info}"
    );
    let mut program = Program::new(&mut stack);
    let grid = program.grid(&[400, 10], |index| index as f64 / 1000.0);
    let mut expected: Vec<f64> = (0..4000).map(|index| f64::from(index) / 1000.0).collect();
    for turn in 0..60 {
        for _ in 0..if turn < 20 { 8 } else { 0 } {
            program.op(Opcode::Sqrt, program.all(grid), &[program.all(grid)]);
            program.op(Opcode::Exp2, program.all(grid), &[program.all(grid)]);
            expected.iter_mut().for_each(|value| *value = value.sqrt().exp2());
        }
        program.op(Opcode::Absolute, program.all(grid), &[program.all(grid)]);
        program.run();
        if turn == 19 {
            let near = |(found, value): (&f64, &f64)| (found - value).abs() < 1e-12;
            assert!(program.values(grid).iter().zip(&expected).all(near));
        }
    }
    program.end();
    let changes = stack.stats().get("cluster.changes of shares").unwrap();
    assert!((2..8).contains(&changes), "{changes}");
    let shares = stack.message("cluster shares").unwrap();
    let first: f64 = shares.split("shares ").nth(1).unwrap().split('%').next().unwrap().parse().unwrap();
    assert!((first - 50.0).abs() < 2.0, "{shares}");
}

/// One sibling does work that would take less time than messages, until there is more of it.
#[test]
fn little_work_stays_together() {
    let mut stack = two_engines("");
    let mut program = Program::new(&mut stack);
    let shape = [30, 30];
    let grid = program.grid(&shape, |index| index as f64);
    let inner = |program: &Program<'_>, from: i64, to: i64| {
        let (array, view) = program.all(grid);
        (array, view.slice(0, Some(from), Some(to), 1).unwrap())
    };
    let turn = |program: &mut Program<'_>| {
        let before = program.traffic();
        let (above, below) = (inner(program, 0, 28), inner(program, 2, 30));
        let sum = program.binary(Opcode::Maximum, above, below);
        program.op(Opcode::Absolute, inner(program, 1, 29), &[program.all(sum)]);
        program.run();
        (program.traffic() - before).messages
    };
    let sent: Vec<u64> = (0..30).map(|_| turn(&mut program)).collect();
    assert!(sent[0] > 0 && sent[20..].iter().all(|sent| *sent == 0), "{sent:?}");
    assert!(program.values(grid)[450] >= 450.0);
    let large = program.grid(&[1000, 1000], |index| index as f64 / 1e6);
    for _ in 0..10 {
        program.op(Opcode::Sin, program.all(large), &[program.all(large)]);
        program.run();
    }
    let before = program.traffic();
    let sum = program.sum(program.all(large));
    program.run();
    assert!(program.value(sum) > 0.0);
    assert!((program.traffic() - before).messages > 0, "much work stays with one");
    program.end();
}
