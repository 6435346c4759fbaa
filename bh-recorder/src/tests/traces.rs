//! Traces, and the recordings that are made of them.

use super::*;

/// Traces the sum of products of two arrays, twice the first of which is written back into it.
fn traced(recorder: &Arc<Recorder>, [a, b]: [ArrayId; 2]) -> (Recording, ArrayId) {
    recorder.begin_trace(&[a, b]).unwrap();
    let products = recorder.operate_new(Opcode::Multiply, 0, None, &[a, b].map(Input::Array), HERE).unwrap();
    let sum = recorder.operate_new(Opcode::AddReduce, 1, None, &[Input::Array(products)], HERE).unwrap();
    recorder.operate(Opcode::Multiply, 0, a, &[Input::Array(a), number(2.0)], HERE).unwrap();
    recorder.free_later(products);
    (recorder.end_trace(&[a, b], &[sum]).unwrap().unwrap(), sum)
}

#[test]
fn a_recording_runs_with_other_arrays() {
    let (recorder, log) = context(Options::default());
    let (a, b) = (array(&recorder, &[3], &[1.0, 2.0, 3.0]), array(&recorder, &[3], &[4.0, 5.0, 6.0]));
    let (recording, sum) = traced(&recorder, [a, b]);
    assert_eq!((values(&recorder, sum), values(&recorder, a)), (vec![32.0], vec![2.0, 4.0, 6.0]));
    for turn in 0..3 {
        let c = array(&recorder, &[3], &[f64::from(turn), 1.0, 1.0]);
        assert_eq!(recorder.guard(&[c, b]).unwrap(), recorder.guard(&[a, b]).unwrap());
        let made = recorder.replay(&recording, &[c, b], &[]).unwrap().unwrap();
        assert_eq!(values(&recorder, made[0].array), [4.0 * f64::from(turn) + 11.0]);
        assert_eq!(values(&recorder, c), [2.0 * f64::from(turn), 2.0, 2.0]);
        recorder.free(made[0].array).unwrap();
        recorder.free(c).unwrap();
    }
    recorder.sync().unwrap();
    // Each call has the structure of the trace.
    let batches = lock(&log.batches);
    let keys: Vec<_> = batches.iter().filter(|batch| batch.instrs.len() > 2).map(|batch| &batch.key).collect();
    assert_eq!(keys.len(), 4);
    assert!(keys.iter().all(|key| *key == keys[0]));
}

#[test]
fn parts_of_larger_arrays_are_as_good_as_they_fit() {
    let (recorder, _) = context(Options::default());
    let (a, b) = (array(&recorder, &[3], &[1.0; 3]), array(&recorder, &[3], &[4.0, 5.0, 6.0]));
    let (recording, _) = traced(&recorder, [a, b]);
    let large = array(&recorder, &[10], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
    let part = recorder.derive(large, |view| view.slice(0, Some(7), Some(10), 1)).unwrap();
    let made = recorder.replay(&recording, &[part, b], &[]).unwrap().unwrap();
    assert_eq!(values(&recorder, made[0].array), [4.0 * 7.0 + 5.0 * 8.0 + 6.0 * 9.0]);
    assert_eq!(values(&recorder, large)[6..], [6.0, 14.0, 16.0, 18.0]);
    // The guard tells arrays of the same memory apart; a recording that is run with fewer elements than it uses refuses.
    assert_ne!(recorder.guard(&[part, part]).unwrap(), recorder.guard(&[part, b]).unwrap());
    let short = recorder.derive(large, |view| view.slice(0, Some(9), Some(10), 1)).unwrap();
    assert!(recorder.replay(&recording, &[short, b], &[]).unwrap().is_none());
}

#[test]
fn what_is_not_repeated_is_refused() {
    let (recorder, _) = context(Options::default());
    let (a, other) = (array(&recorder, &[3], &[1.0; 3]), array(&recorder, &[3], &[5.0; 3]));
    let refused = |error: Error| {
        assert_eq!(error.status, status::UNSUPPORTED, "{error}");
        error.to_string()
    };
    recorder.begin_trace(&[a]).unwrap();
    assert!(refused(recorder.sync().unwrap_err()).contains("waits"));
    let mut value = [0.0f64; 3];
    // SAFETY: as many elements as the array has.
    let read = unsafe { recorder.read(a, value.as_mut_ptr().cast(), None) };
    assert!(refused(read.unwrap_err()).contains("elements"));
    let random = recorder.empty(DType::U64, &[4]).unwrap();
    assert!(refused(recorder.random(random, 1, 0, HERE).unwrap_err()).contains("random"));
    assert!(refused(recorder.begin_trace(&[a]).unwrap_err()).contains("traces"));
    let sum = add(&recorder, a, other);
    assert!(refused(recorder.end_trace(&[a], &[sum]).err().unwrap()).contains("program.c:7"));
    // The recorded operations run all the same.
    assert_eq!(values(&recorder, sum), [6.0; 3]);
    recorder.begin_trace(&[a]).unwrap();
    let kept = add(&recorder, a, a);
    assert!(refused(recorder.end_trace(&[a], &[]).err().unwrap()).contains("keeps"));
    assert_eq!(values(&recorder, kept), [2.0; 3]);
    assert!(recorder.end_trace(&[a], &[]).is_err());
}

#[test]
fn data_given_in_a_trace_is_kept_for_later_calls() {
    let (recorder, _) = context(Options::default());
    let a = array(&recorder, &[3], &[1.0, 2.0, 3.0]);
    recorder.begin_trace(&[a]).unwrap();
    let weights = array(&recorder, &[3], &[10.0, 20.0, 30.0]);
    recorder.operate(Opcode::Add, 0, weights, &[Input::Array(weights), Input::Array(a)], HERE).unwrap();
    let recording = recorder.end_trace(&[a], &[weights]).unwrap().unwrap();
    assert_eq!(values(&recorder, weights), [11.0, 22.0, 33.0]);
    for _ in 0..2 {
        let made = recorder.replay(&recording, &[a], &[]).unwrap().unwrap();
        assert_eq!(values(&recorder, made[0].array), [11.0, 22.0, 33.0]);
    }
    let arrays = recorder.statistics().arrays;
    drop(recording);
    assert_eq!(recorder.statistics().arrays, arrays - 1);
}

#[test]
fn marked_constants_are_those_of_the_call() {
    let (recorder, _) = context(Options::default());
    let a = array(&recorder, &[3], &[1.0, 2.0, 3.0]);
    let marked = |value: f64, mark: u8| {
        Input::Constant(Constant { reserved: [mark, 0, 0, 0, 0, 0, 0], ..Constant::from_value(value) })
    };
    recorder.begin_trace(&[a]).unwrap();
    let scaled = recorder.operate_new(Opcode::Multiply, 0, None, &[Input::Array(a), marked(3.0, 2)], HERE).unwrap();
    let moved = recorder.operate_new(Opcode::Add, 0, None, &[Input::Array(scaled), marked(3.0, 1)], HERE).unwrap();
    assert!(recorder.operate_new(Opcode::Power, 0, None, &[Input::Array(a), marked(2.0, 1)], HERE).is_err());
    recorder.free_later(scaled);
    let recording = recorder.end_trace(&[a], &[moved]).unwrap().unwrap();
    assert_eq!(recording.numbers().collect::<Vec<_>>(), [(DType::F64, 2), (DType::F64, 1)]);
    assert_eq!(values(&recorder, moved), [6.0, 9.0, 12.0]);
    let numbers = [0.5, 100.0].map(Constant::from_value::<f64>);
    let made = recorder.replay(&recording, &[a], &numbers).unwrap().unwrap();
    assert_eq!(values(&recorder, made[0].array), [100.5, 101.0, 101.5]);
}

/// The recording and the values of a trace of `a + a` during which another thread works.
fn disturbed(work: impl FnOnce(&Recorder) + Send) -> (Option<Recording>, Vec<f64>) {
    let (recorder, _) = context(Options::default());
    let a = array(&recorder, &[3], &[1.0, 2.0, 3.0]);
    recorder.begin_trace(&[a]).unwrap();
    let sum = add(&recorder, a, a);
    std::thread::scope(|scope| scope.spawn(|| work(&recorder)).join().unwrap());
    let recording = recorder.end_trace(&[a], &[sum]).unwrap();
    (recording, values(&recorder, sum))
}

#[test]
fn what_other_threads_do_meanwhile_is_not_recorded() {
    let (recording, sum) = disturbed(|recorder| recorder.sync().unwrap());
    assert!(recording.is_none() && sum == [2.0, 4.0, 6.0]);
    let (recording, sum) = disturbed(|recorder| {
        let other = array(recorder, &[2], &[5.0, 6.0]);
        let twice = add(recorder, other, other);
        assert_eq!(values(recorder, twice), [10.0, 12.0]);
    });
    assert!(recording.is_none() && sum == [2.0, 4.0, 6.0]);
    let (recording, sum) = disturbed(|recorder| {
        let other = array(recorder, &[2], &[5.0, 6.0]);
        let _kept = add(recorder, other, other);
    });
    assert!(recording.is_none() && sum == [2.0, 4.0, 6.0]);
    // Arrays that are made, looked at and freed leave nothing in the batch.
    let (recording, sum) = disturbed(|recorder| {
        let other = array(recorder, &[2], &[5.0, 6.0]);
        assert_eq!(values(recorder, other), [5.0, 6.0]);
        recorder.free_later(other);
    });
    assert!(recording.is_some_and(|recording| recording.operations() == 1) && sum == [2.0, 4.0, 6.0]);
}

#[test]
fn a_recording_ends_with_its_context() {
    let (recorder, _) = context(Options::default());
    let a = array(&recorder, &[3], &[1.0, 2.0, 3.0]);
    let (recording, _) = traced(&recorder, [a, a]);
    recorder.shutdown().unwrap();
    recorder.start(Options::default(), || Ok(Box::new(Fake::new(Log::default())))).unwrap();
    let b = array(&recorder, &[3], &[1.0, 2.0, 3.0]);
    assert!(recorder.replay(&recording, &[b, b], &[]).unwrap().is_none());
}
