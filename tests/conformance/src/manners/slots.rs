//! Cases about single slots: scalars, predictions, reports, serving, and memory of the program.

use super::{Findings, Library, calls};
use crate::program::{LEN, Script};
use crate::run;
use bh_bytecode::{Constant, DType, Kind, Opcode, View, base_flags};
use bh_core::abi::{Adoption, ExportRequest, ScalarOperation, adopt, capability, export, memory, status};
use bh_core::component::Collected;
use bh_core::error::{Error, Result};
use bh_core::stack::Stack;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};

/// Scalars, including those that cause errors.
const SCALARS: [f64; 6] = [0.0, 1.0, -3.5, 2.25, 1e9, -0.5];

/// Scalars computed immediately have the same values and errors as in a batch.
pub(super) fn evaluate(library: &Library, findings: &mut Findings) -> Result<()> {
    let mut stack = library.load("alone", "\"fuser\", \"node\", \"candidate\"", "")?;
    let announced = stack.capabilities().flags & capability::EVALUATES != 0;
    let mut script = Script::new(&stack, 3);
    let mut known = 0;
    let elementwise = Opcode::ALL.iter().copied().filter(|&opcode| {
        let info = opcode.info();
        let fits = (1..=2).contains(&info.inputs) && info.types.contains(DType::F64);
        info.kind == Kind::Elementwise && fits && opcode != Opcode::Powi
    });
    for opcode in elementwise {
        for (first, second) in SCALARS.iter().flat_map(|&first| SCALARS.map(|second| (first, second))) {
            let inputs = [Constant::from_value(first), Constant::from_value(second)];
            let inputs = &inputs[..opcode.info().inputs as usize];
            let Some(dtype) = bh_recorder::result_type(opcode, &[DType::F64]) else { continue };
            // SAFETY: the inputs live through the call.
            let operation = unsafe { ScalarOperation::new(opcode, 0, dtype, inputs) };
            let outcome = stack.evaluate(&operation);
            if outcome.as_ref().is_ok_and(|found| found.known == 0) {
                continue;
            }
            known += 1;
            if !announced {
                findings.fault("evaluates scalars, but does not announce EVALUATES");
            }
            script.bases[0].dtype = dtype as u8;
            script.clear().constants(opcode, 0, inputs);
            let expected = script.run(&mut stack).and_then(|()| run::read(&mut stack, &script.bases[0]));
            let text = format!("{opcode} of {first} and {second}");
            match (outcome, expected) {
                (Ok(found), Ok(bytes)) => {
                    let found = &found.value.bytes()[..dtype.size()];
                    let nan = |bytes: &[u8]| {
                        dtype == DType::F64 && bytes.try_into().is_ok_and(|bytes| f64::from_ne_bytes(bytes).is_nan())
                    };
                    if found != &bytes[..dtype.size()] && !(nan(found) && nan(&bytes[..8])) {
                        findings.fault(format!("evaluates {text} to other bits than in a batch"));
                    }
                }
                (Err(_), Err(error)) if error.status == status::UNSUPPORTED => {}
                (Ok(_), Err(error)) if error.status == status::UNSUPPORTED => {
                    findings.fault(format!("evaluates {text}, but refuses it in a batch"));
                }
                (Ok(_), Err(error)) => findings.fault(format!("evaluates {text}, which fails in a batch: {error}")),
                (Err(error), Ok(_)) => findings.fault(format!("fails to evaluate {text}, which a batch can: {error}")),
                (Err(_), Err(_)) => {}
            }
            script.discard(&mut stack)?;
        }
    }
    if announced && known == 0 {
        findings.fault("announces EVALUATES, but leaves all operations to batches");
    }
    findings.notes.push(format!("{known} scalars were evaluated at once"));
    Ok(())
}

/// Two predictions of a batch agree, run nothing, and hold if they are announced as exact.
pub(super) fn predict(library: &Library, findings: &mut Findings) -> Result<()> {
    let mut stack = library.above_cpu("over-cpu")?;
    let exact = stack.capabilities().flags & capability::PREDICTS != 0;
    let mut script = Script::new(&stack, 3);
    script.clear().fill(0, 2.0);
    script.run(&mut stack)?;
    script.clear().op(Opcode::Add, &[1, 0, 0]).op(Opcode::Multiply, &[2, 1, 0]).fill(0, 9.0);
    let bytes = 8 * LEN as u64;
    script.batch().bases[0].flags = base_flags::LIVE_OUT;
    for base in 1..3 {
        script.batch().bases[base].flags = base_flags::BORN | base_flags::LIVE_OUT;
    }
    let foretold = [(); 2].map(|()| stack.predict(&script.batch().as_ref(), &[]));
    let [first, second] = foretold;
    let (first, second) = (first?, second?);
    if first != second {
        findings.fault(format!("foretells the same batch in different ways: {first:?}, then {second:?}"));
    }
    if !first.seconds.is_finite() || first.seconds < 0.0 {
        findings.fault(format!("foretells {} seconds", first.seconds));
    }
    if exact && !(2 * bytes..=64 * bytes + (1 << 20)).contains(&first.peak_bytes) {
        let text = format!("foretells {} bytes for two new arrays of {bytes} bytes each", first.peak_bytes);
        findings.fault(text);
    }
    if script.values(&mut stack, 0)?.iter().any(|&value| value != 2.0) {
        findings.fault("runs a batch that was only to be foretold");
    }
    script.run(&mut stack)?;
    if script.values(&mut stack, 2)?.iter().any(|&value| value != 8.0) {
        findings.fault("wrong values in a batch that was foretold");
    }
    script.discard(&mut stack)
}

/// The report of a batch: times, and failed instructions.
pub(super) fn reports(library: &Library, findings: &mut Findings) -> Result<()> {
    let mut stack = library.above_cpu("over-cpu")?;
    let mut script = Script::new(&stack, 4);
    script.bases[1].dtype = DType::I64 as u8;
    let mut seconds = (0.0, 0.0);
    for round in 0..4 {
        let step = if round % 2 == 0 { 1 } else { 2 };
        let indices: Vec<u8> = (0..LEN).flat_map(|index| (step * index).to_ne_bytes()).collect();
        run::write(&mut stack, &script.bases[1], &indices)?;
        script.clear().fill(0, 1.5).op(Opcode::Gather, &[2, 0, 1]).op(Opcode::Add, &[3, 0, 0]);
        let mut collected = Collected::default();
        let tables = script.batch().as_ref();
        let count = tables.instrs.len() as u32;
        let outcome = stack.execute_reported(&tables, &[], &mut collected).and_then(|ticket| stack.wait(ticket));
        let spent = collected.seconds();
        if !(spent.0.is_finite() && spent.1.is_finite()) || spent.0 < 0.0 || spent.1 < 0.0 {
            findings.fault(format!("reports {} seconds of planning and {} of running", spent.0, spent.1));
        }
        seconds = (seconds.0 + spent.0, seconds.1 + spent.1);
        for failure in collected.failures() {
            if failure.instr >= count || failure.error.status == status::OK || failure.error.text.is_empty() {
                findings.fault(format!("reports a failure that names nothing: {failure:?}"));
            }
        }
        let failed = outcome.is_err() || !collected.failures().is_empty();
        if failed != (step == 2) {
            findings.fault(format!("an index out of range, in a round with step {step}: failure is {failed}"));
        }
        if script.values(&mut stack, 3)?.iter().any(|&value| value != 3.0) {
            findings.fault("what needs nothing that failed has wrong values");
        }
    }
    findings.notes.push(format!("reported: {:.6} s of planning, {:.6} s of running", seconds.0, seconds.1));
    script.discard(&mut stack)
}

/// In the process of the program, `serve` and `progress` return immediately.
pub(super) fn serve(library: &Library, findings: &mut Findings) -> Result<()> {
    // A component that served would end the process.
    let mut stack = library.above_cpu("over-cpu")?;
    let serves = stack.capabilities().flags & capability::SERVES != 0;
    for context in [0, 1] {
        let served = stack.serve(context)?;
        if served.ended != 0 {
            findings.fault("says that it served another process, in the one that runs the program");
        }
    }
    stack.progress()?;
    findings.notes.push(if serves { "serves other processes" } else { "serves no other process" }.into());
    let mut script = Script::new(&stack, 2);
    script.clear().fill(0, 2.0).op(Opcode::Add, &[1, 0, 0]);
    script.run(&mut stack)?;
    if script.values(&mut stack, 1)?.iter().any(|&value| value != 4.0) {
        findings.fault("wrong values after serve and progress");
    }
    script.discard(&mut stack)
}

/// Counts its calls in the argument.
unsafe extern "C" fn count(argument: *mut c_void, _: *mut c_void) {
    // SAFETY: the argument is the counter given below, which outlives the calls.
    unsafe { &*argument.cast::<AtomicU32>() }.fetch_add(1, Ordering::SeqCst);
}

/// The program's memory used by arrays, and arrays' memory used by the program.
pub(super) fn exports(library: &Library, findings: &mut Findings) -> Result<()> {
    let mut stack = library.above_cpu("over-cpu")?;
    for (mode, name) in [(adopt::SHARED, "shared"), (adopt::DONATED, "donated"), (adopt::IMMUTABLE, "immutable")] {
        adopted(&mut stack, mode, name, findings)?;
    }
    for (mode, name) in [(export::SNAPSHOT, "snapshot"), (export::READ_ONLY, "export for reading")] {
        let mut script = Script::new(&stack, 2);
        script.clear().fill(0, 2.0).op(Opcode::Add, &[1, 0, 0]);
        script.run(&mut stack)?;
        let lent = stack.export_data(&script.bases[1], &ExportRequest::new(mode, memory::HOST))?;
        if lent.data.is_null() || lent.bytes != 8 * LEN as usize {
            return Err(Error::new(status::EXECUTION, format!("{name}: no data")));
        }
        // SAFETY: the export lends `LEN` elements until it ends.
        let seen = |value: f64| unsafe { std::slice::from_raw_parts(lent.data.cast::<f64>(), LEN as usize) } == [value; LEN as usize];
        if !seen(4.0) {
            findings.fault(format!("{name}: wrong values"));
        }
        script.clear();
        let part = script.batch().push_view(1, &View::new(3, &[4], &[2]).unwrap_or_default());
        script.op(Opcode::Add, &[part, part, part]);
        script.run(&mut stack)?;
        script.clear().op(Opcode::Multiply, &[1, 1, 1]);
        script.run(&mut stack)?;
        if !seen(4.0) {
            findings.fault(format!("{name}: the engine writes to what is lent for reading"));
        }
        let values = script.values(&mut stack, 1)?;
        if values[0] != 16.0 || values[3] != 64.0 {
            findings.fault(format!("wrong values of an array with an {name}: {values:?}"));
        }
        stack.end_export(&script.bases[1], lent.token)?;
        script.discard(&mut stack)?;
    }
    calls::unknown_memory(&mut stack, findings)?;
    calls::pinned(&mut stack, findings)?;
    let leaks = stack.message("leaks")?;
    if leaks != "0 arrays alive, 0 bytes of host memory" {
        findings.fault(format!("memory stays when all is given back: {leaks}"));
    }
    Ok(())
}

fn adopted(stack: &mut Stack, mode: u32, name: &str, findings: &mut Findings) -> Result<()> {
    let mut script = Script::new(stack, 2);
    let mut elements = vec![3.0f64; LEN as usize];
    let released = AtomicU32::new(0);
    if mode == adopt::SHARED {
        script.bases[0].flags |= base_flags::PINNED;
    }
    let argument = (&raw const released).cast_mut().cast();
    // SAFETY: the vector has the base's number of elements, and outlives the array.
    let adoption = unsafe { Adoption::new(elements.as_mut_ptr().cast(), mode, memory::HOST, Some(count), argument) };
    stack.adopt(&script.bases[0], &adoption)?;
    // Another array, a part of the memory, then all of it.
    script.clear();
    let part = script.batch().push_view(0, &View::new(2, &[5], &[3]).unwrap_or_default());
    script.op(Opcode::Add, &[1, 0, 0]).op(Opcode::Multiply, &[part, part, part]).op(Opcode::Add, &[0, 0, 1]);
    script.op(Opcode::Sync, &[0]);
    script.run(stack)?;
    let wanted = |index: usize| if (2..=14).contains(&index) && (index - 2).is_multiple_of(3) { 15.0 } else { 9.0 };
    let values = script.values(stack, 0)?;
    if (0..LEN as usize).any(|index| values[index] != wanted(index)) {
        findings.fault(format!("wrong values in {name} memory: {values:?}"));
    }
    match mode {
        adopt::SHARED if (0..LEN as usize).any(|index| elements[index] != wanted(index)) => {
            findings.fault("results are not in the memory that the program shares");
        }
        adopt::IMMUTABLE if elements.iter().any(|&element| element != 3.0) => {
            findings.fault("the engine writes to memory that is immutable");
        }
        _ => {}
    }
    script.discard(stack)?;
    if released.load(Ordering::SeqCst) != 1 {
        let times = released.load(Ordering::SeqCst);
        findings.fault(format!("{name} memory is given back {times} times when its array is gone"));
    }
    Ok(())
}
