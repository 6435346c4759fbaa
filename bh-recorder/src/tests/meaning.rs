//! Results of recorded programs, and refused programs.

use super::*;
use bh_core::abi::{access, status};

#[test]
fn adds_and_reads() {
    let (recorder, log) = context(Options::default());
    let a = array(&recorder, &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let row = array(&recorder, &[3], &[10.0, 20.0, 30.0]);
    let sum = add(&recorder, a, row);
    recorder.operate(Opcode::Multiply, 0, sum, &[Input::Array(sum), number(2.0)], HERE).unwrap();
    assert_eq!(values(&recorder, sum), [22.0, 44.0, 66.0, 28.0, 50.0, 72.0]);
    let batches = lock(&log.batches);
    assert_eq!(batches.len(), 1);
    let batch = batches[0].as_ref();
    assert_eq!(batch.origin(&batch.instrs[0]), Some(("program.c", 7)));
    // The views of `sum` are one entry.
    assert_eq!(batch.views.len(), 3);
}

#[test]
fn views_share_their_base() {
    let (recorder, _) = context(Options::default());
    let a = array(&recorder, &[2, 3], &[0.0; 6]);
    let column = recorder.derive(a, |view| view.index(1, -1)).unwrap();
    recorder.operate(Opcode::Copy, 0, column, &[number(9.0)], HERE).unwrap();
    assert_eq!(values(&recorder, a), [0.0, 0.0, 9.0, 0.0, 0.0, 9.0]);
    let flat = recorder.reshape(a, &[6], HERE).unwrap();
    let turned = recorder.derive(a, |view| view.transpose(&[1, 0])).unwrap();
    let copied = recorder.reshape(turned, &[6], HERE).unwrap();
    recorder.operate(Opcode::Copy, 0, a, &[number(1.0)], HERE).unwrap();
    assert_eq!(values(&recorder, flat), [1.0; 6]);
    assert_eq!(values(&recorder, copied), [0.0, 0.0, 0.0, 0.0, 9.0, 9.0]);
}

#[test]
fn overlapping_output_keeps_numpys_meaning() {
    let (recorder, log) = context(Options::default());
    let a = array(&recorder, &[5], &[1.0, 2.0, 3.0, 4.0, 5.0]);
    let tail = recorder.derive(a, |view| view.slice(0, Some(1), None, 1)).unwrap();
    let head = recorder.derive(a, |view| view.slice(0, None, Some(-1), 1)).unwrap();
    recorder.operate(Opcode::Add, 0, tail, &[Input::Array(tail), Input::Array(head)], HERE).unwrap();
    assert_eq!(values(&recorder, a), [1.0, 3.0, 5.0, 7.0, 9.0]);
    let opcodes: Vec<Opcode> = lock(&log.batches)[0].instrs.iter().map(|instr| instr.opcode).collect();
    assert_eq!(opcodes, [Opcode::Copy, Opcode::Add, Opcode::Discard, Opcode::Sync]);
    // A broadcast row of the output itself, an accumulate in place, and a gather from the output.
    let b = array(&recorder, &[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let row = recorder.derive(b, |view| view.index(0, 0)).unwrap();
    recorder.operate(Opcode::Add, 0, b, &[Input::Array(b), Input::Array(row)], HERE).unwrap();
    assert_eq!(values(&recorder, b), [2.0, 4.0, 4.0, 6.0]);
    recorder.operate(Opcode::AddAccumulate, 0b10, b, &[Input::Array(b)], HERE).unwrap();
    assert_eq!(values(&recorder, b), [2.0, 6.0, 4.0, 10.0]);
    let index = recorder.empty(DType::I64, &[2, 2]).unwrap();
    recorder.range(index, 3, -1, HERE).unwrap();
    recorder.operate(Opcode::Gather, 0, b, &[Input::Array(b), Input::Array(index)], HERE).unwrap();
    assert_eq!(values(&recorder, b), [10.0, 4.0, 6.0, 2.0]);
}

#[test]
fn reductions_generators_and_scatters() {
    let (recorder, _) = context(Options::default());
    let a = recorder.empty(DType::F64, &[3, 4]).unwrap();
    recorder.range(a, 0, 1, HERE).unwrap();
    let rows = recorder.operate_new(Opcode::AddReduce, 0b10, None, &[Input::Array(a)], HERE).unwrap();
    assert_eq!(values(&recorder, rows), [6.0, 22.0, 38.0]);
    let all = recorder.operate_new(Opcode::AddReduce, 0b11, None, &[Input::Array(a)], HERE).unwrap();
    assert_eq!(recorder.read_scalar(all).unwrap().to::<f64>(), 66.0);
    let random = recorder.empty(DType::F64, &[100]).unwrap();
    recorder.random(random, 42, 0, HERE).unwrap();
    let part = recorder.empty(DType::F64, &[10]).unwrap();
    recorder.random(part, 42, 90, HERE).unwrap();
    assert_eq!(values(&recorder, random)[90..], values(&recorder, part));
    let index = recorder.empty(DType::I64, &[2]).unwrap();
    recorder.range(index, 0, 2, HERE).unwrap();
    recorder.operate(Opcode::Scatter, 0, rows, &[number(-1.0), Input::Array(index)], HERE).unwrap();
    assert_eq!(values(&recorder, rows), [-1.0, 22.0, -1.0]);
}

#[test]
fn rank_zero_and_sixteen_and_empty() {
    let (recorder, _) = context(Options::default());
    let zero = recorder.full(Constant::from_value(2.5f64), &[], HERE).unwrap();
    assert_eq!(values(&recorder, zero), [2.5]);
    let shape = [1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2];
    let deep = recorder.full(Constant::from_value(1.0f64), &shape, HERE).unwrap();
    assert_eq!(values(&recorder, add(&recorder, deep, zero)), [3.5; 4]);
    let none = recorder.empty(DType::F64, &[0, 3]).unwrap();
    let sum = add(&recorder, none, none);
    assert_eq!(values(&recorder, sum), [0.0; 0]);
    assert_eq!(recorder.empty(DType::F64, &[1; 17]).unwrap_err().status, status::SHAPE);
    assert_eq!(recorder.empty(DType::F64, &[1 << 40, 1 << 40]).unwrap_err().status, status::SHAPE);
    assert_eq!(recorder.empty(DType::F64, &[1 << 61]).unwrap_err().status, status::SHAPE);
    assert_eq!(recorder.empty(DType::F64, &[-1]).unwrap_err().status, status::SHAPE);
}

#[test]
fn wrong_arguments_are_refused_with_a_reason() {
    let (recorder, _) = context(Options::default());
    let a = array(&recorder, &[3], &[1.0; 3]);
    let b = array(&recorder, &[4], &[1.0; 4]);
    let c = recorder.empty(DType::F32, &[3]).unwrap();
    let refused =
        |opcode, param, out, inputs: &[Input]| recorder.operate(opcode, param, out, inputs, HERE).unwrap_err();
    let error = refused(Opcode::Add, 0, a, &[Input::Array(a), Input::Array(b)]);
    assert_eq!((error.status, error.text.contains("input 2")), (status::SHAPE, true), "{error}");
    let error = refused(Opcode::Add, 0, a, &[Input::Array(a), Input::Array(c)]);
    assert_eq!((error.status, error.text.contains("f32")), (status::TYPE, true), "{error}");
    let error = refused(Opcode::Add, 0, a, &[Input::Array(a)]);
    assert_eq!((error.status, error.text.contains("takes 2")), (status::ARGUMENT, true), "{error}");
    let error = refused(Opcode::AddReduce, 0b10, a, &[Input::Array(a)]);
    assert_eq!((error.status, error.text.contains("axis 1")), (status::ARGUMENT, true), "{error}");
    let error = refused(Opcode::Powi, 9, a, &[Input::Array(a)]);
    assert_eq!(error.status, status::ARGUMENT);
    let stretched = recorder.derive(a, |view| view.broadcast_to(&[2, 3])).unwrap();
    let error = refused(Opcode::Copy, 0, stretched, &[number(0.0)]);
    assert!(error.text.contains("several elements"), "{error}");
    let error = recorder.derive(a, |_| View::new(1, &[3], &[1])).unwrap_err();
    assert_eq!(error.status, status::BOUNDS);
    assert_eq!(refused(Opcode::Range, 0, a, &[]).status, status::ARGUMENT);
    assert_eq!(refused(Opcode::Discard, 0, a, &[]).status, status::ARGUMENT);
    assert_eq!(refused(Opcode(77), 0, a, &[]).status, status::ARGUMENT);
    // The context is still good.
    assert_eq!(values(&recorder, add(&recorder, a, a)), [2.0; 3]);
}

#[test]
fn failures_come_once_with_their_line_and_poison_stays() {
    let (recorder, _) = context(Options { small_bytes: 0, ..Options::default() });
    let a = array(&recorder, &[3], &[1.0; 3]);
    let far = recorder.empty(DType::I64, &[3]).unwrap();
    recorder.range(far, 5, 1, HERE).unwrap();
    let bad = recorder.operate_new(Opcode::Gather, 0, None, &[Input::Array(a), Input::Array(far)], HERE).unwrap();
    let good = array(&recorder, &[1], &[5.0]);
    let error = recorder.sync().unwrap_err();
    assert_eq!(error.origin, Some(("program.c".to_owned(), 7)), "{error}");
    recorder.sync().unwrap();
    let again = recorder.read_scalar(recorder.derive(bad, |view| view.index(0, 0)).unwrap()).unwrap_err();
    assert_eq!(again.origin, error.origin);
    assert_eq!(values(&recorder, good), [5.0]);
    // The first wait reports the failure, also if it is for another array.
    let other = array(&recorder, &[3], &[5.0; 3]);
    recorder.operate_new(Opcode::Gather, 0, None, &[Input::Array(a), Input::Array(far)], HERE).unwrap();
    // A flush would tell of the failure if the batch were done by then.
    let submitted = recorder.state().submit().unwrap();
    submitted.drive().unwrap();
    submitted.executor.complete(submitted.epoch, &mut Patience::endless()).unwrap();
    // To pin an array that waits for nothing leaves the failure to others.
    let fresh = recorder.empty(DType::F64, &[3]).unwrap();
    recorder.pin_new(fresh).unwrap();
    let sum = add(&recorder, other, other);
    let mut value = [0.0f64; 3];
    // SAFETY: three elements.
    let mut read = || unsafe { recorder.read(sum, value.as_mut_ptr().cast(), None) };
    assert_eq!(read().unwrap_err().origin, error.origin);
    read().unwrap();
    assert_eq!(value, [10.0; 3]);
}

#[test]
fn extensions_are_checked_and_named() {
    let (recorder, log) = context(Options::default());
    assert_eq!(recorder.extension("unknown").unwrap_err().status, status::UNSUPPORTED);
    let opcode = recorder.extension("known").unwrap();
    assert_eq!(recorder.extension("known").unwrap(), opcode);
    let other = recorder.extension("known too").unwrap();
    assert_ne!(other, opcode);
    assert_eq!([recorder.extension("known"), recorder.extension("known too")].map(Result::unwrap), [opcode, other]);
    let a = array(&recorder, &[3], &[1.0; 3]);
    recorder.call_extension(opcode, &[a], &[Input::Array(a), number(1.0)], HERE).unwrap();
    assert!(recorder.sync().is_err(), "the interpreter has no methods");
    let batches = lock(&log.batches);
    let batch = batches[0].as_ref();
    assert_eq!(batch.extension_name(opcode), Some("known"));
    // The input that the output overlaps is copied.
    assert_eq!(batch.instrs[0].opcode, Opcode::Copy);
    assert!(recorder.call_extension(Opcode(0x4002), &[a], &[], HERE).is_err());
}

#[test]
fn views_that_repeat_elements_are_read_only() {
    let (recorder, _) = context(Options::default());
    let a = array(&recorder, &[3], &[1.0, 2.0, 3.0]);
    let wide = recorder.derive(a, |view| view.broadcast_to(&[4, 3])).unwrap();
    for mode in [access::WRITE, access::READ | access::WRITE, access::WRITE | access::DISCARD] {
        let error = recorder.map(wide, mode).unwrap_err();
        assert!(error.text.contains("several elements at one place"), "{error}");
    }
    recorder.map(wide, access::READ).unwrap();
    recorder.unmap(wide).unwrap();
    assert_eq!(values(&recorder, a), [1.0, 2.0, 3.0]);
    // Strides that interleave without meeting are as good as any.
    let b = array(&recorder, &[9], &[0.0; 9]);
    let tangled = recorder.derive(b, |_| bh_bytecode::View::new(0, &[3, 2], &[2, 3])).unwrap();
    recorder.operate(Opcode::Copy, 0, tangled, &[number(7.0)], HERE).unwrap();
    recorder.map(tangled, access::WRITE).unwrap();
    recorder.unmap(tangled).unwrap();
    assert_eq!(values(&recorder, b), [7.0, 0.0, 7.0, 7.0, 7.0, 7.0, 0.0, 7.0, 0.0]);
    let meeting = recorder.derive(b, |_| bh_bytecode::View::new(0, &[2, 3], &[4, 2])).unwrap();
    let error = recorder.operate(Opcode::Copy, 0, meeting, &[number(7.0)], HERE).unwrap_err();
    assert!(error.text.contains("several elements to one place"), "{error}");
}
