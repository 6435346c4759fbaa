//! Cases about an engine's behaviour.

use super::{Findings, Library, process};
use crate::program::{LEN, Script};
use crate::run;
use bh_bytecode::random::{Options, program};
use bh_bytecode::{DType, Instr, Opcode, Operand, View};
use bh_core::abi::{Capabilities, HostMemory, kind, memory, retire, status};
use bh_core::error::{Error, Result};
use bh_core::loader;
use bh_core::stack::Stack;
use std::path::Path;

/// The highest bit of the capabilities known to this version.
const KNOWN_FLAGS: u64 = (bh_core::abi::capability::ACQUIRES_FIRST << 1) - 1;

pub(super) fn start(library: &Library, findings: &mut Findings) -> Result<()> {
    let path = Path::new(&library.path);
    let table = loader::open_component(path)?;
    if table.kind() != kind::ENGINE {
        return Err(Error::new(status::LIBRARY, format!("'{}' is a component, but no engine", library.path)));
    }
    let own = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libbh_"));
    if table.trusted() && !own {
        let text =
            format!("its version '{}' names the family bh, so its batches would not be validated", table.version);
        findings.fault(text);
    }
    for _ in 0..3 {
        let mut stack = library.load("alone", "\"candidate\"", "")?;
        check_capabilities(&stack.capabilities(), findings);
        // An unknown message has no answer, and is no error.
        match stack.message("a question that nobody knows") {
            Ok(answer) if answer.is_empty() => {}
            Ok(answer) => findings.fault(format!("answers a question that it cannot know: {answer}")),
            Err(error) => findings.fault(format!("fails at a message that it does not know: {error}")),
        }
        stack.shutdown()?;
    }
    Ok(())
}

fn check_capabilities(found: &Capabilities, findings: &mut Findings) {
    for (name, number) in [("bandwidth", found.bandwidth), ("launch_seconds", found.launch_seconds)] {
        if !number.is_finite() || number < 0.0 {
            findings.fault(format!("capabilities: {name} is {number}"));
        }
    }
    if found.flags & !KNOWN_FLAGS != 0 {
        findings.fault(format!("capabilities: the flags {:#x} are not all known", found.flags));
    }
    if found.reserved != 0 || found.reserved_bytes != 0 {
        findings.fault("capabilities: what is reserved is not zero; clear the whole struct first");
    }
}

/// Programs that a witness observes.
const WATCHED: u64 = 150;

/// Runs random programs below a witness, and records its observations.
fn watch(stack: &mut Stack, findings: &mut Findings) -> Result<()> {
    let options = Options { allow_inexact: false, max_rank: 3, ..Options::default() };
    for seed in 0..WATCHED {
        // Other cases compare results; operations that no engine supports may fail.
        let _ = run::run(stack, &program(seed, &options));
        // A stencil step with arrays that the program keeps: the engine may rename them.
        let _ = stencil(stack);
    }
    let seen = stack.message("witness")?;
    seen.lines().for_each(|line| findings.fault(line));
    Ok(())
}

/// `work = (grid[:-2] + grid[2:]); grid[1:-1] = work`.
fn stencil(stack: &mut Stack) -> Result<()> {
    let mut script = Script::new(stack, 2);
    script.bases[0].len = LEN + 2;
    script.clear();
    let whole = script.batch().push_view(0, &View::contiguous(&[LEN + 2]).unwrap_or_default());
    let mut part = |first: i64| script.batch().push_view(0, &View::new(first, &[LEN], &[1]).unwrap_or_default());
    let (left, middle, right) = (part(0), part(1), part(2));
    script.fill(whole, 1.5).op(Opcode::Add, &[1, left, right]).op(Opcode::Copy, &[middle, 1]);
    script.run(stack)?;
    let values = script.values(stack, 1)?;
    script.discard(stack)?;
    match values.iter().all(|&value| value == 3.0) {
        true => Ok(()),
        false => Err(Error::new(status::EXECUTION, "a stencil has wrong values")),
    }
}

pub(super) fn supports(library: &Library, findings: &mut Findings) -> Result<()> {
    watch(&mut library.load("alone", "\"fuser\", \"node\", \"witness\", \"candidate\"", "")?, findings)
}

pub(super) fn registry(library: &Library, findings: &mut Findings) -> Result<()> {
    let mut stack = library.load("over-cpu", "\"fuser\", \"node\", \"witness\", \"candidate\", \"ve-cpu\"", "")?;
    watch(&mut stack, findings)?;
    if let Err(error) = stencil(&mut stack) {
        findings.fault(error.to_string());
    }
    Ok(())
}

/// Reads the elements of a view in C order.
fn read_view(stack: &mut Stack, script: &Script, array: usize, view: &View) -> Result<Vec<f64>> {
    let mut values = vec![0f64; view.len() as usize];
    let mut stride = vec![8i64; view.rank()];
    for dim in (1..view.rank()).rev() {
        stride[dim - 1] = stride[dim] * view.shape()[dim];
    }
    // SAFETY: the vector has space for the view's elements in C order.
    let memory = unsafe { HostMemory::new(values.as_mut_ptr().cast(), &stride) };
    stack.read(&script.bases[array], view, &memory)?;
    Ok(values)
}

fn expect(findings: &mut Findings, what: &str, values: Vec<f64>, wanted: f64) {
    if values.iter().any(|&value| value != wanted) {
        findings.fault(format!("{what}: {values:?} instead of {wanted}"));
    }
}

pub(super) fn data(library: &Library, findings: &mut Findings) -> Result<()> {
    let mut stack = library.above_cpu("over-cpu")?;
    let mut script = Script::new(&stack, 3);
    let column = View::new(2, &[4], &[6]).unwrap_or_default();
    for round in 0..4 {
        script.clear().fill(0, 2.0).op(Opcode::Add, &[1, 0, 0]).op(Opcode::Multiply, &[1, 1, 0]);
        script.run(&mut stack)?;
        expect(findings, "a column that is read", read_view(&mut stack, &script, 1, &column)?, 8.0);
        let five = [5f64; 4];
        // SAFETY: `five` has the view's four elements, packed.
        let memory = unsafe { HostMemory::new(five.as_ptr().cast_mut().cast(), &[8]) };
        stack.write(&script.bases[1], &column, &memory)?;
        stack.prefetch(&script.bases[1], Some(&column), memory::HOST)?;
        script.clear().op(Opcode::Add, &[2, 1, 0]);
        script.run(&mut stack)?;
        expect(findings, "what is made of a column that was written", read_view(&mut stack, &script, 2, &column)?, 7.0);
        let other = View::new(3, &[4], &[6]).unwrap_or_default();
        expect(findings, "its neighbour", read_view(&mut stack, &script, 2, &other)?, 10.0);
        // A block that needs results of the previous one.
        script.clear();
        let columns: Vec<u32> = (1..3).map(|base| script.batch().push_view(base, &column)).collect();
        script.op(Opcode::Add, &[1, 0, 0]).op(Opcode::Add, &[columns[1], columns[0], columns[0]]);
        script.run(&mut stack)?;
        expect(findings, "what two blocks give in order", read_view(&mut stack, &script, 2, &column)?, 8.0);
        if round % 2 == 0 {
            stack.detach(&script.bases[2])?;
            if stack.residency(&script.bases[2])?.spaces != 0 {
                findings.fault("an array stays in the engine's memory when it is detached");
            }
        }
        expect(findings, "the same after it was detached", read_view(&mut stack, &script, 2, &column)?, 8.0);
        stack.retire(&script.bases[2], retire::FREE)?;
        expect(findings, "what is freed", read_view(&mut stack, &script, 2, &column)?, 0.0);
    }
    script.discard(&mut stack)
}

pub(super) fn failures(library: &Library, findings: &mut Findings) -> Result<()> {
    let mut stack = library.above_cpu("over-cpu")?;
    let mut script = Script::new(&stack, 7);
    script.bases[1].dtype = DType::I64 as u8;
    for round in 0..3 {
        let indices: Vec<u8> = (0..LEN).flat_map(|index| (2 * index).to_ne_bytes()).collect();
        run::write(&mut stack, &script.bases[1], &indices)?;
        script.clear().fill(0, 1.5).op(Opcode::Gather, &[2, 0, 1]).op(Opcode::Add, &[3, 2, 0]);
        script.op(Opcode::Add, &[4, 0, 0]).op(Opcode::Multiply, &[5, 3, 0]).fill(5, 1.0).op(Opcode::Add, &[5, 5, 0]);
        // An empty sum of a lost array.
        let none = View::new(0, &[0, LEN], &[LEN, 1]).unwrap_or_default();
        let none = Operand::view(script.batch().push_view(3, &none));
        script.batch().push_instr(Instr { param: 1, ..Instr::new(Opcode::AddReduce, &[Operand::view(6), none]) });
        let Err(first) = script.run(&mut stack) else {
            findings.fault("an index out of range is no error");
            continue;
        };
        for lost in [2, 3] {
            match script.values(&mut stack, lost) {
                Ok(_) => findings.fault(format!("array {lost}, which depends on a failed operation, is not lost")),
                Err(error) if error.to_string() != first.to_string() => {
                    findings.fault(format!("a lost array gives '{error}' instead of the first cause, '{first}'"));
                }
                Err(_) => {}
            }
        }
        for (kept, value) in [(0, 1.5), (4, 3.0), (5, 2.5), (6, 0.0)] {
            match script.values(&mut stack, kept) {
                Ok(values) if values.iter().all(|&found| found == value) => {}
                Ok(values) => findings.fault(format!("array {kept} has wrong values after a failure: {values:?}")),
                Err(error) => {
                    findings.fault(format!("array {kept}, which needs nothing that failed, is lost: {error}"))
                }
            }
        }
        // The engine continues, and overwriting heals a lost array.
        script.clear().op(Opcode::Add, &[2, 0, 0]).op(Opcode::Multiply, &[3, 2, 2]);
        script.run(&mut stack)?;
        if script.values(&mut stack, 3)?.iter().any(|&value| value != 9.0) {
            findings.fault(format!("wrong values after a failure, in round {round}"));
        }
    }
    script.discard(&mut stack)
}

/// Elements of a large array: 1 MiB.
const LARGE: i64 = 1 << 17;
/// Iterations with such arrays: uncounted ones first, then counted ones.
const TURNS: (u32, u32) = (16, 64);
/// Growth of the process's memory that counts as no leak.
const GROWTH: u64 = 24 << 20;

pub(super) fn memory(library: &Library, findings: &mut Findings) -> Result<()> {
    let mut stack = library.above_cpu("over-cpu")?;
    let mut begin = None;
    for turn in 0..TURNS.0 + TURNS.1 {
        let mut script = Script::new(&stack, 2);
        script.bases.iter_mut().for_each(|base| base.len = LARGE);
        script.clear();
        let whole = View::contiguous(&[LARGE]).unwrap_or_default();
        let views: Vec<u32> = (0..2).map(|base| script.batch().push_view(base, &whole)).collect();
        script.fill(views[0], f64::from(turn)).op(Opcode::Add, &[views[1], views[0], views[0]]);
        script.op(Opcode::Multiply, &[views[0], views[1], views[0]]);
        script.run(&mut stack)?;
        script.values(&mut stack, 1)?;
        script.discard(&mut stack)?;
        if turn + 1 == TURNS.0 {
            begin = process::resident();
        }
    }
    if let (Some(begin), Some(end)) = (begin, process::resident())
        && end > begin + GROWTH
    {
        let text =
            format!("{} turns with arrays of 1 MiB, all dropped, leave {} MiB behind", TURNS.1, (end - begin) >> 20);
        findings.fault(text);
    }
    Ok(())
}

pub(super) fn contexts(library: &Library, findings: &mut Findings) -> Result<()> {
    let mut stacks = [library.above_cpu("first")?, library.above_cpu("second")?];
    let mut scripts = stacks.each_ref().map(|stack| Script::new(stack, 2));
    for (number, (stack, script)) in stacks.iter_mut().zip(&mut scripts).enumerate() {
        script.clear().fill(0, number as f64).op(Opcode::Add, &[1, 0, 0]);
        script.run(stack)?;
    }
    let [first, mut second] = stacks;
    drop(first);
    scripts[1].clear().op(Opcode::Add, &[1, 1, 0]);
    scripts[1].run(&mut second)?;
    if scripts[1].values(&mut second, 1)?.iter().any(|&value| value != 3.0) {
        findings.fault("a stack has wrong values after another one has ended");
    }
    scripts[1].discard(&mut second)
}
