//! The plans of some kernels.

use super::vectorisation::shared_loads;
use super::{Loop, Plan};
use bh_bytecode::{DType, Opcode};
use bh_jit_abi::{Level, Near, Request};
use bh_kernel::{Arg, SlotMode, Step};

fn compute(opcode: Opcode, value: u16) -> Step {
    let (input, output) = (DType::F64, DType::F64);
    Step::Compute { opcode, param: 0, input, output, args: [Arg::Value(value); 3], count: opcode.info().inputs }
}

/// The plan of a kernel that applies these to one array after another.
fn plan(level: Level, opcodes: &[Opcode]) -> Plan {
    let mut steps = vec![Step::Load { slot: 0 }];
    steps.extend((0..).zip(opcodes).map(|(at, opcode)| compute(*opcode, at)));
    steps.push(Step::Store { slot: 1, arg: Arg::Value(opcodes.len() as u16) });
    let request = crate::request(level, &[SlotMode::Read, SlotMode::Write], steps);
    Plan::new(&request).unwrap()
}

fn widest(level: Level, opcodes: &[Opcode]) -> u16 {
    plan(level, opcodes).vectors.loops[0].width
}

#[test]
fn chains_take_several_vectors() {
    let (chain, many) = ([Opcode::Exp, Opcode::Log], [Opcode::Add; 60]);
    assert_eq!((widest(Level::Avx512, &chain), widest(Level::Avx2, &chain)), (32, 16));
    // The rest of a row takes a vector at a time.
    assert_eq!(plan(Level::Avx512, &chain).vectors.loops[1], Loop { width: 8, unroll: 1, masked: true });
    assert_eq!((widest(Level::Avx512, &many), widest(Level::Avx2, &many)), (8, 4));
    assert_eq!(widest(Level::Avx512, &[Opcode::Sin, Opcode::Exp]), 8);
}

#[test]
fn long_waits_take_several_vectors() {
    // Each step waits for the one before; in the second kernel for two loads only.
    let waiting = [Opcode::Add; 250];
    assert_eq!((widest(Level::Avx512, &waiting), widest(Level::Avx2, &waiting)), (32, 16));
    let mut steps = vec![Step::Load { slot: 0 }];
    steps.extend((0..250).map(|_| compute(Opcode::Add, 0)));
    steps.push(Step::Store { slot: 1, arg: Arg::Value(1) });
    let request = crate::request(Level::Avx512, &[SlotMode::Read, SlotMode::Write], steps);
    assert_eq!(Plan::new(&request).unwrap().vectors.loops[0].width, 8);
}

#[test]
fn live_values_are_counted() {
    // Products of earlier values: 0 and 1 are loads.
    let request = |args: &[[u16; 2]]| {
        let mut steps = vec![Step::Load { slot: 0 }, Step::Load { slot: 0 }];
        steps.extend(args.iter().map(|&[a, b]| match compute(Opcode::Multiply, a) {
            Step::Compute { opcode, param, input, output, count, .. } => {
                let args = [Arg::Value(a), Arg::Value(b), Arg::Value(b)];
                Step::Compute { opcode, param, input, output, args, count }
            }
            other => other,
        }));
        steps.push(Step::Store { slot: 1, arg: Arg::Value(args.len() as u16 + 1) });
        crate::request(Level::Avx512, &[SlotMode::Read, SlotMode::Write], steps)
    };
    let live = |args: &[[u16; 2]]| {
        let request = request(args);
        Plan::new(&request).unwrap().live(&request)
    };
    assert_eq!(live(&[[0, 0], [2, 2], [3, 3]]), 1);
    assert_eq!(live(&[[0, 0], [2, 2], [3, 2], [4, 1], [5, 0]]), 3);
}

/// The sum of dense views around cells of `planes` planes, each of three rows and three elements.
fn stencil(planes: u16) -> Request {
    let slots = 9 * planes + 1;
    let modes: Vec<SlotMode> = (1..slots).map(|_| SlotMode::Read).chain([SlotMode::Write]).collect();
    let mut steps: Vec<Step> = (1..slots).map(|slot| Step::Load { slot: slot - 1 }).collect();
    for slot in 1..slots - 1 {
        let sum = if slot == 1 { 0 } else { slots + slot - 3 };
        let Step::Compute { opcode, param, input, output, .. } = compute(Opcode::Add, 0) else { unreachable!() };
        let args = [Arg::Value(sum), Arg::Value(slot), Arg::Value(slot)];
        steps.push(Step::Compute { opcode, param, input, output, args, count: 2 });
    }
    steps.push(Step::Store { slot: slots - 1, arg: Arg::Value(2 * slots - 4) });
    let mut request = crate::request(Level::Avx512, &modes, steps);
    for slot in (0..slots - 1).filter(|slot| slot % 9 > 0) {
        let near = Near { slot: slot / 9 * 9, rows: (slot % 9 / 3) as i8, distance: (slot % 3) as i16 };
        request.slots[usize::from(slot)].near = Some(near);
    }
    request
}

#[test]
fn what_rows_share_counts_once() {
    let rows = |planes| Plan::new(&stencil(planes)).unwrap().vectors.rows;
    // 6 rows of 3 vectors are read for 4 rows, and 4 for 2.
    assert_eq!((shared_loads(&stencil(1), 4), shared_loads(&stencil(1), 2)), (36 - 18, 18 - 12));
    assert_eq!((rows(3), rows(9), rows(12)), (4, 4, 2));
}

#[test]
fn many_rows_side_by_side_fetch_the_next_ones() {
    let fetches_next = |planes| {
        let text = crate::text(&stencil(planes)).unwrap();
        assert!(text.contains("llvm.prefetch"), "{text}");
        text.contains("%next.rows = ")
    };
    assert!(!fetches_next(1) && fetches_next(3));
}
