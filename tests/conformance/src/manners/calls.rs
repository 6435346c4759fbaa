//! Cases about tickets, unknown methods and kinds of memory, and addresses that must stay.

use super::{Findings, Library};
use crate::program::{LEN, Script};
use bh_bytecode::Opcode;
use bh_core::abi::{Adoption, ExportRequest, access, adopt, export, memory, status};
use bh_core::component::Ticket;
use bh_core::error::Result;
use bh_core::stack::Stack;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The number of polls after which a ticket counts as never finished. A count instead of a time, because loaded
/// machines may stop processes.
const POLLS: usize = 20_000;

/// Work behind tickets: batches that are dropped before it finishes, waits in any order, polls that terminate.
pub(super) fn tickets(library: &Library, findings: &mut Findings) -> Result<()> {
    let mut stack = library.above_cpu("over-cpu")?;
    let mut script = Script::new(&stack, 3);
    let mut late = 0;
    for round in 0..6 {
        let mut open = Vec::new();
        let mut begin =
            |script: &mut Script| stack.execute(&script.batch().as_ref(), &[]).map(|ticket| open.push(ticket));
        begin(script.clear().fill(0, 2.0).op(Opcode::Add, &[1, 0, 0]))?;
        begin(script.clear().op(Opcode::Multiply, &[2, 1, 1]))?;
        begin(script.clear().op(Opcode::Add, &[1, 2, 0]).op(Opcode::Multiply, &[0, 0, 1]))?;
        // The batch's memory is changed while tickets are open.
        script.clear().fill(0, 99.0).fill(1, 99.0).fill(2, 99.0);
        late += open.iter().filter(|ticket| **ticket != Ticket::DONE).count();
        if round % 2 == 1 {
            open.reverse();
        }
        for &ticket in &open {
            if round % 3 == 0 && !poll(&mut stack, ticket)? {
                findings.fault("'poll' does not say that a ticket is done, however long it is asked");
                return Ok(());
            }
            stack.wait(ticket)?;
        }
        for (array, wanted) in [(0, 36.0), (1, 18.0), (2, 16.0)] {
            let values = script.values(&mut stack, array)?;
            if values.iter().any(|&value| value != wanted) {
                findings.fault(format!(
                    "array {array} of three batches that wait for each other: {values:?}, not {wanted}"
                ));
            }
        }
    }
    findings.notes.push(format!("{late} of 18 batches were not done when they had been handed over"));
    script.discard(&mut stack)
}

/// Polls until the work is finished; false if it never is.
fn poll(stack: &mut Stack, ticket: Ticket) -> Result<bool> {
    for _ in 0..POLLS {
        match stack.poll(ticket) {
            Ok(false) => std::thread::sleep(Duration::from_micros(100)),
            Ok(true) => return Ok(true),
            // The slot is optional.
            Err(error) if error.status == status::UNSUPPORTED => return Ok(true),
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}

/// Unknown methods are refused, before and after they have a number, and other work continues.
pub(super) fn methods(library: &Library, findings: &mut Findings) -> Result<()> {
    let mut stack = library.load("alone", "\"fuser\", \"node\", \"candidate\"", "")?;
    let opcode = Opcode(Opcode::FIRST_EXTENSION + 77);
    let mut script = Script::new(&stack, 3);
    for told in [false, true] {
        if told && stack.extmethod("a-method-that-nobody-has", opcode)? {
            findings.fault("says that it has a method that nobody has");
        }
        script.clear().op(opcode, &[1, 0]);
        match script.run(&mut stack) {
            Err(error) if error.status == status::UNSUPPORTED => {}
            Err(error) => {
                findings.fault(format!("fails at a method that it does not know, instead of refusing it: {error}"))
            }
            Ok(()) => findings.fault("runs a method that nobody has"),
        }
    }
    let answer = stack.message("extmethod-library somebody-else method /nowhere/libmethod.so")?;
    if !answer.is_empty() {
        findings.fault(format!("answers for the methods of another component: {answer}"));
    }
    script.clear().fill(0, 2.0).op(Opcode::Add, &[2, 0, 0]);
    match script.run(&mut stack) {
        Ok(()) if script.values(&mut stack, 2)?.iter().any(|&value| value != 4.0) => {
            findings.fault("wrong values after methods that it does not know");
        }
        Err(error) if error.status != status::UNSUPPORTED => findings.fault(error.to_string()),
        _ => {}
    }
    script.discard(&mut stack)
}

/// Counts its calls in the argument.
unsafe extern "C" fn count(argument: *mut c_void, _: *mut c_void) {
    // SAFETY: the argument is the counter given below, which outlives the calls.
    unsafe { &*argument.cast::<AtomicU32>() }.fetch_add(1, Ordering::SeqCst);
}

/// An unknown kind of memory is refused, and stays with its owner.
pub(super) fn unknown_memory(stack: &mut Stack, findings: &mut Findings) -> Result<()> {
    const NOBODYS: u32 = memory::FIRST_PRIVATE - 1;
    let mut script = Script::new(stack, 1);
    let mut elements = vec![3.0f64; LEN as usize];
    let released = AtomicU32::new(0);
    let argument = (&raw const released).cast_mut().cast();
    for mode in [adopt::SHARED, adopt::DONATED, adopt::IMMUTABLE] {
        // SAFETY: the array has the base's number of elements, and outlives the call.
        let adoption = unsafe { Adoption::new(elements.as_mut_ptr().cast(), mode, NOBODYS, Some(count), argument) };
        refused(stack.adopt(&script.bases[0], &adoption), "adopts memory of a kind that nobody has", findings);
    }
    script.clear().fill(0, 2.0);
    script.run(stack)?;
    for mode in [export::SNAPSHOT, export::READ_ONLY, export::SHARED] {
        let lent = stack.export_data(&script.bases[0], &ExportRequest::new(mode, NOBODYS)).map(drop);
        refused(lent, "lends memory of a kind that nobody has", findings);
    }
    if script.values(stack, 0)?.iter().any(|&value| value != 2.0) {
        findings.fault("wrong values in an array whose memory was refused");
    }
    script.discard(stack)?;
    if released.load(Ordering::SeqCst) != 0 {
        findings.fault("releases memory that it refused to adopt");
    }
    Ok(())
}

fn refused(outcome: Result<()>, what: &str, findings: &mut Findings) {
    match outcome {
        Err(error) if error.status == status::UNSUPPORTED => {}
        Err(error) => findings.fault(format!("{what}, but fails: {error}")),
        Ok(()) => findings.fault(what),
    }
}

/// A pinned array stays in place, and has the values written to it.
pub(super) fn pinned(stack: &mut Stack, findings: &mut Findings) -> Result<()> {
    let mut script = Script::new(stack, 2);
    script.clear().fill(0, 2.0);
    script.run(stack)?;
    let base = script.bases[0];
    stack.pin(&base, true)?;
    let first = stack.map(&base, None, access::READ)?;
    stack.unmap(&base)?;
    script.bases[0].flags |= bh_bytecode::base_flags::PINNED;
    for round in 0..3 {
        script.clear().op(Opcode::Add, &[1, 0, 0]).op(Opcode::Copy, &[0, 1]).op(Opcode::Sync, &[0]);
        script.run(stack)?;
        let now = stack.map(&base, None, access::READ)?;
        // SAFETY: the map keeps the address valid.
        let value = unsafe { *now.cast::<f64>() };
        stack.unmap(&base)?;
        if now != first {
            findings.fault("an array that is pinned moves");
        }
        if value != f64::from(4 << round) {
            findings.fault(format!("a pinned array has {value} instead of {}", 4 << round));
        }
    }
    stack.pin(&base, false)?;
    script.discard(stack)
}
