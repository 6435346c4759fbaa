//! Random programs for many members at once, against the interpreter for one member after the other.

use super::batch::{Builder, run};
use super::oracle::{bytes, is_smooth, numbers, width};
use super::programs::{bases, cut, options, random, types};
use crate::members::replay::Replay;
use crate::members::tape::MemberTape;
use bh_bytecode::interp::{Memory, execute};
use bh_bytecode::random::{Rng, program};
use bh_bytecode::{Base, DType, Opcode};
use std::collections::{HashMap, HashSet};

const MEMBERS: usize = 3;
/// Identities from here on are those of copies, of the members' arguments, and of the program for all.
const COPIES: u64 = 1 << 40;
const GIVEN: u64 = 1 << 41;
const MADE: u64 = 1 << 42;

fn alike(dtype: DType, a: &[u8], b: &[u8]) -> bool {
    if !is_smooth(dtype) {
        return a == b;
    }
    let close = |(a, b): (&f64, &f64)| {
        a == b
            || (a.is_nan() && b.is_nan())
            || (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
            || a.abs().max(b.abs()) > 1e100
    };
    numbers(a).iter().zip(&numbers(b)).all(close)
}

/// Compares one program. Returns how many of its arrays differ among the members; `None` if a member's program fails.
fn check(seed: u64) -> Option<usize> {
    let mut rng = Rng::new(seed ^ 0x517c);
    let sets =
        [types(&[DType::F64, DType::Bool, DType::I64]), types(&[DType::F64, DType::C128, DType::Bool, DType::I64])];
    let given = program(seed, &options(sets[seed as usize % 2]));
    if given.batch.instrs.iter().any(|instr| instr.opcode == Opcode::Random) {
        return None;
    }
    let batches = cut(&mut rng, &given.batch);
    let all = bases(&batches);
    let is_given = |base: &&Base| given.memory.get(base.id).is_some();
    let varied: Vec<Base> =
        all.iter().filter(is_given).filter(|base| is_smooth(base.dtype()) && rng.chance(60)).copied().collect();
    let mut members = vec![given.memory.clone(); MEMBERS];
    for base in &varied {
        for member in &mut members {
            member.insert(base.id, bytes(&random(&mut rng, base.len as usize * width(base.dtype()), 0.4, 1.9)));
        }
    }
    let mut tape = MemberTape::new(varied.iter().map(|base| base.id));
    for base in &all {
        tape.adopt(base.id, given.memory.get(base.id).is_some());
    }
    let mut memory = Memory::new();
    for base in all.iter().filter(|base| given.memory.get(base.id).is_some()) {
        memory.insert(base.id, given.memory.get(base.id)?.to_vec());
    }
    let mut known = all.clone();
    let mut stacks = HashMap::new();
    for (at, base) in varied.iter().enumerate() {
        let id = GIVEN + at as u64;
        let data: Vec<u8> =
            members.iter().flat_map(|member| member.get(base.id).unwrap_or_default().to_vec()).collect();
        memory.insert(id, data);
        known.push(Base::new(id, base.dtype(), base.len * MEMBERS as i64));
        stacks.insert(base.id, id);
    }
    for member in &mut members {
        for batch in &batches {
            execute(&batch.as_ref(), member).ok()?;
        }
    }
    run(&mut tape, &batches, &mut memory, COPIES, &HashSet::new())?;
    tape.check().expect("all arrays are the program's own");
    for id in tape.saved.values() {
        let like = tape
            .saved
            .iter()
            .find(|(_, array)| *array == id)
            .and_then(|((of, _), _)| all.iter().find(|base| base.id == *of));
        known.push(Base { id: id.0, ..*like? });
    }
    let source = |base: u64, number: u32| Some(tape.saved.get(&(base, number)).map_or(base, |array| array.0));
    let mut builder = Builder::new(MADE, &known);
    let mut replay = Replay::new(&mut builder, &tape, MEMBERS as i64, stacks, &source, &|_| Ok(()));
    replay.run().expect("the program is recorded for all members");
    let found: Vec<(Base, Option<u64>)> = all.iter().map(|base| (*base, replay.find(base.id))).collect();
    let batch = &builder.batch;
    let text = || {
        format!(
            "seed {seed}\n{}\n{}",
            bh_bytecode::text::print(&given.batch.as_ref()),
            bh_bytecode::text::print(&batch.as_ref())
        )
    };
    bh_bytecode::validate(&batch.as_ref()).unwrap_or_else(|error| panic!("{error:?}: {}", text()));
    execute(&batch.as_ref(), &mut memory).unwrap_or_else(|error| panic!("{error:?}: {}", text()));
    let mut differing = 0;
    for (base, all_members) in found {
        differing += usize::from(all_members.is_some());
        let data = memory.get(all_members.unwrap_or(base.id)).unwrap_or_default().to_vec();
        for (number, member) in members.iter().enumerate() {
            let Some(expected) = member.get(base.id) else { continue };
            let own =
                if all_members.is_some() { &data[number * expected.len()..][..expected.len()] } else { &data[..] };
            assert!(alike(base.dtype(), own, expected), "base {} of member {number}: {}", base.id, text());
        }
    }
    Some(differing)
}

#[test]
fn programs_for_many_members_give_what_each_gives() {
    let results: Vec<usize> = (0..20_000).filter_map(check).collect();
    let differing = results.iter().filter(|&&count| count > 0).count();
    println!("{} programs compared, {differing} with arrays that differ", results.len());
    assert!(differing > 8_000, "only {differing} programs of {} were of use", results.len());
}
