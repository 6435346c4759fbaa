//! The recorder's interface for bridges in Rust: described results, handles that free themselves, places as numbers, waits that end.

use super::*;
use bh_bytecode::View;
use std::sync::atomic::{AtomicU32, Ordering};

#[test]
fn results_are_described() {
    let (recorder, _) = context(Options::default());
    let a = array(&recorder, &[2, 3], &[1.0; 6]);
    let row = array(&recorder, &[3], &[1.0; 3]);
    let inputs = [Input::Array(a), Input::Array(row)];
    let (sum, info) = recorder.operate_described(Opcode::Add, 0, None, &inputs, HERE).unwrap();
    assert_eq!((info.dtype, info.view.shape()), (DType::F64, &[2, 3][..]));
    assert_eq!(info.base, recorder.info(sum).unwrap().base);
    let (less, info) = recorder.operate_described(Opcode::Less, 0, None, &inputs, HERE).unwrap();
    assert_eq!(info.dtype, DType::Bool);
    recorder.free(less).unwrap();
}

#[test]
fn questions_are_answered_as_by_descriptions() {
    let (recorder, _) = context(Options::default());
    let a = array(&recorder, &[4, 3], &[1.0; 12]);
    let list = [Subscript::Slice { start: None, stop: None, step: -2 }, Subscript::Index(1)];
    let part = recorder.part(a, list.into_iter().map(Ok)).unwrap();
    let facts = |array: ArrayRef<'_>| (array.dtype, array.view.start, array.view.shape.to_vec(), array.len);
    assert_eq!(recorder.ask(part, facts).unwrap(), (DType::F64, 10, vec![2], 2));
    let view = recorder.info(part).unwrap().view;
    assert_eq!((view.start(), view.shape(), view.stride()), (10, &[2][..], &[-6][..]));
    recorder.free(part).unwrap();
    let error = recorder.ask(part, |array| array.len).unwrap_err();
    assert_eq!((error.status, error.text), (status::HANDLE, recorder.info(part).unwrap_err().text));
}

#[test]
fn handles_free_themselves_and_run_nothing() {
    let (recorder, log) = context(Options { max_instructions: 2, ..Options::default() });
    let a = Array::new(recorder.clone(), array(&recorder, &[2], &[1.0, 2.0]));
    let before = lock(&log.batches).len();
    let sum = Array::new(recorder.clone(), add(&recorder, a.id(), a.id()));
    let second = sum.duplicate().unwrap();
    assert!(Arc::ptr_eq(second.context(), &recorder));
    drop((a, sum));
    assert_eq!(lock(&log.batches).len(), before);
    assert_eq!(values(&recorder, second.id()), [2.0, 4.0]);
    drop(second);
    assert_eq!(recorder.statistics().arrays, 0);
    // A handle may outlive its context.
    let last = Array::new(recorder.clone(), array(&recorder, &[1], &[1.0]));
    recorder.shutdown().unwrap();
    drop(last);
}

#[test]
fn places_are_looked_up_when_an_error_names_them() {
    let (recorder, _) = context(Options { small_bytes: 0, ..Options::default() });
    let asked = Arc::new(AtomicU32::new(0));
    let seen = asked.clone();
    recorder.set_resolver(move |number| {
        seen.fetch_add(1, Ordering::SeqCst);
        Some((format!("script{number}.py"), 10 * number))
    });
    let a = array(&recorder, &[3], &[1.0; 3]);
    let far = recorder.empty(DType::I64, &[3]).unwrap();
    recorder.range(far, 5, 1, Location::token(3)).unwrap();
    let inputs = [Input::Array(a), Input::Array(far)];
    let bad = recorder.operate_new(Opcode::Gather, 0, None, &inputs, Location::token(4)).unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    let error = recorder.sync().unwrap_err();
    assert_eq!(error.origin, Some(("script4.py".to_owned(), 40)), "{error}");
    // Later reads get the same place.
    let mut value = [0.0f64; 3];
    // SAFETY: three elements are written.
    let again = unsafe { recorder.read(bad, value.as_mut_ptr().cast(), None) }.unwrap_err();
    assert_eq!(again.origin, error.origin);
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

#[test]
fn a_wait_can_be_ended_and_begun_again() {
    for tickets in [false, true] {
        let log = Log { tickets, ..Log::default() };
        let seen = log.clone();
        let recorder = Recorder::new();
        recorder.start(Options::default(), move || Ok(Box::new(Fake::new(seen)))).unwrap();
        let shape = [1 << 20];
        let a = recorder.empty(DType::F64, &shape).unwrap();
        recorder.range(a, 0, 1, HERE).unwrap();
        log.gate.set_closed(true);
        let mut turns = 0;
        let mut interrupt = || {
            turns += 1;
            if turns == 3 { Err(Error::new(status::EXECUTION, "interrupted")) } else { Ok(()) }
        };
        let error = recorder.sync_with(&mut Patience::until(&mut interrupt)).unwrap_err();
        assert_eq!(error.text, "interrupted");
        log.gate.set_closed(false);
        let mut interrupt = || Ok(());
        recorder.sync_with(&mut Patience::until(&mut interrupt)).unwrap();
        let last = recorder.derive(a, |view| view.index(0, -1)).unwrap();
        assert_eq!(recorder.read_scalar(last).unwrap().to::<f64>(), f64::from((1 << 20) - 1));
        recorder.shutdown().unwrap();
    }
}

#[test]
fn arrays_of_many_pieces_are_made_by_several_batches() {
    let (recorder, log) = context(Options { max_instructions: 100, ..Options::default() });
    let numbers: Vec<f64> = (0..1000).map(f64::from).collect();
    let source = array(&recorder, &[1000], &numbers);
    let one = |at| View::new(at, &[1], &[1]).unwrap();
    let piece = |at| Piece { to: one(at), from: one(999 - at), filling: Filling::Source(0) };
    let pieces: Vec<Piece> = (0..1000).map(piece).collect();
    let made = recorder.assemble((DType::F64, &[1000]), &[source], &pieces, HERE).unwrap();
    assert!(values(&recorder, made).into_iter().rev().eq(numbers));
    let longest = lock(&log.batches).iter().map(|batch| batch.instrs.len()).max();
    assert!(longest.is_some_and(|longest| longest < 400), "{longest:?}");
}

#[test]
fn arrays_are_assembled_of_parts_and_numbers() {
    let (recorder, _) = context(Options::default());
    let (a, b) = (array(&recorder, &[3], &[1.0, 2.0, 3.0]), array(&recorder, &[2], &[7.0, 8.0]));
    let view = |start, count, step| View::new(start, &[count], &[step]).unwrap();
    let pieces = [
        Piece { to: view(0, 3, 1), from: view(2, 3, -1), filling: Filling::Source(0) },
        Piece { to: view(3, 2, 1), from: view(1, 2, 0), filling: Filling::Source(1) },
        Piece { to: view(5, 1, 1), from: view(0, 1, 0), filling: Filling::Number(Constant::from_value(5.0)) },
    ];
    let (arrays, recorded) = (recorder.statistics().arrays, recorder.statistics().recorded);
    let made = recorder.assemble((DType::F64, &[6]), &[a, b], &pieces, HERE).unwrap();
    assert_eq!(recorder.statistics().recorded, recorded + 3);
    assert_eq!(values(&recorder, made), [3.0, 2.0, 1.0, 8.0, 8.0, 5.0]);
    let refused = |shape: &[i64], sources: &[ArrayId], pieces: &[Piece]| {
        recorder.assemble((DType::F64, shape), sources, pieces, HERE).unwrap_err().text
    };
    assert!(refused(&[5], &[a, b], &pieces).contains("leaves the base of 5 elements"));
    assert!(refused(&[6], &[a], &pieces).contains("source 1 of 1"));
    assert!(refused(&[-1], &[a, b], &pieces).contains("negative"));
    let outside = [Piece { to: view(0, 2, 1), from: view(2, 2, 1), filling: Filling::Source(0) }];
    assert!(refused(&[2], &[a], &outside).contains("leaves the base of 3 elements"));
    assert_eq!(recorder.statistics().arrays, arrays + 1);
}
