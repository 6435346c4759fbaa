//! Recording, running, waiting and access to data do not wait for each other.

use super::*;
use bh_core::abi::{access, capability};
use std::sync::atomic::Ordering;
use std::thread;

/// A context whose batches stop at the log's gate.
fn gated(log: Log, options: Options) -> (Arc<Recorder>, Log) {
    let seen = log.clone();
    let recorder = Recorder::new();
    recorder.start(options, move || Ok(Box::new(Fake::new(seen)))).unwrap();
    (recorder, log)
}

/// Batches go to the executor thread.
fn large() -> Options {
    Options { small_bytes: 0, ..Options::default() }
}

#[test]
fn recording_and_data_calls_go_on_while_a_batch_runs() {
    let (recorder, log) = gated(Log { shared: true, ..Log::default() }, large());
    let finished = array(&recorder, &[2], &[1.0, 2.0]);
    let other = add(&recorder, finished, finished);
    assert_eq!(values(&recorder, other), [2.0, 4.0]);
    let reached = log.gate.reached.load(Ordering::SeqCst);
    log.gate.set_closed(true);
    let slow = add(&recorder, finished, other);
    recorder.flush().unwrap();
    log.gate.await_arrivals(reached + 1);
    // The batch stands still from here on.
    let sum = thread::scope(|scope| {
        let second = scope.spawn(|| add(&recorder, other, other));
        second.join().unwrap()
    });
    assert_eq!(values(&recorder, finished), [1.0, 2.0]);
    assert_eq!(values(&recorder, other), [2.0, 4.0]);
    let new = array(&recorder, &[1 << 18], &vec![7.0; 1 << 18]);
    assert_eq!(values(&recorder, new)[5], 7.0);
    let mut memory = [5.0f64; 4];
    // SAFETY: the memory outlives the context's use of it: the array is freed and everything waited for below.
    let adopted =
        unsafe { recorder.adopt(DType::F64, &[4], memory.as_mut_ptr().cast(), None, std::ptr::null_mut()).unwrap() };
    assert_eq!(values(&recorder, adopted), [5.0; 4]);
    recorder.pin(new, true, false).unwrap();
    recorder.pin(new, false, false).unwrap();
    recorder.map(finished, access::READ).unwrap();
    recorder.unmap(finished).unwrap();
    recorder.free(adopted).unwrap();
    recorder.free(new).unwrap();
    assert!(log.gate.is_closed());
    log.gate.set_closed(false);
    assert_eq!(values(&recorder, sum), [4.0, 8.0]);
    assert_eq!(values(&recorder, slow), [3.0, 6.0]);
    recorder.sync().unwrap();
    recorder.shutdown().unwrap();
}

#[test]
fn batches_are_enqueued_behind_a_slow_ticket() {
    let (recorder, log) = gated(Log { tickets: true, shared: true, ..Log::default() }, large());
    let a = array(&recorder, &[2], &[1.0, 2.0]);
    log.gate.set_closed(true);
    let mut sums = vec![a];
    for _ in 0..3 {
        sums.push(add(&recorder, *sums.last().unwrap(), a));
        recorder.flush().unwrap();
    }
    while lock(&log.batches).len() < 3 {
        thread::yield_now();
    }
    assert_eq!(log.gate.reached.load(Ordering::SeqCst), 0, "no ticket is done");
    assert_eq!(values(&recorder, a), [1.0, 2.0]);
    log.gate.set_closed(false);
    assert_eq!(values(&recorder, sums[3]), [4.0, 8.0]);
    recorder.shutdown().unwrap();
}

#[test]
fn a_thread_that_only_records_does_not_wait_for_one_that_has_handed_over_too_much() {
    let (recorder, log) = gated(Log { shared: true, ..Log::default() }, large());
    let a = array(&recorder, &[2], &[1.0, 2.0]);
    log.gate.set_closed(true);
    thread::scope(|scope| {
        let busy = scope.spawn(|| {
            for _ in 0..8 {
                let sum = add(&recorder, a, a);
                recorder.flush().unwrap();
                recorder.free(sum).unwrap();
            }
        });
        log.gate.await_arrivals(1);
        // Whether or not the other thread stands already, this one goes on.
        for _ in 0..100 {
            recorder.free(add(&recorder, a, a)).unwrap();
        }
        log.gate.set_closed(false);
        busy.join().unwrap();
    });
    recorder.shutdown().unwrap();
}

#[test]
fn a_batch_does_not_begin_while_its_data_is_read() {
    let (recorder, _) = gated(Log { shared: true, ..Log::default() }, large());
    let total = array(&recorder, &[1 << 12], &[0.0; 1 << 12]);
    thread::scope(|scope| {
        let adder = scope.spawn(|| {
            for _ in 0..200 {
                recorder.operate(Opcode::Add, 0, total, &[Input::Array(total), number(1.0)], HERE).unwrap();
                recorder.flush().unwrap();
            }
        });
        while !adder.is_finished() {
            let seen = values(&recorder, total);
            assert!(seen.iter().all(|value| *value == seen[0]), "values of two batches were read");
        }
        adder.join().unwrap();
    });
    assert_eq!(values(&recorder, total), [200.0; 1 << 12]);
}

#[test]
fn an_array_that_finds_no_memory_waits_for_what_is_given_up() {
    let (recorder, log) = gated(Log { shared: true, ..Log::default() }, large());
    let a = array(&recorder, &[2], &[1.0, 2.0]);
    let pending = add(&recorder, a, a);
    log.short_of_memory.store(true, Ordering::SeqCst);
    let new = array(&recorder, &[2], &[3.0, 4.0]);
    assert_eq!(values(&recorder, new), [3.0, 4.0]);
    log.short_of_memory.store(true, Ordering::SeqCst);
    let refused = recorder.empty(DType::F64, &[1]).unwrap();
    // SAFETY: one element is read.
    let error = unsafe { recorder.write(refused, [0.0f64].as_ptr().cast(), None) }.unwrap_err();
    assert_eq!(error.status, status::MEMORY);
    assert_eq!(values(&recorder, pending), [2.0, 4.0]);
}

#[test]
fn a_stack_with_thread_affinity_serves_data_calls_between_the_chunks_of_a_batch() {
    let log = Log { shared: true, flags: capability::THREAD_AFFINE, ..Log::default() };
    let (recorder, log) = gated(log, large());
    let finished = array(&recorder, &[2], &[1.0, 2.0]);
    let other = add(&recorder, finished, finished);
    assert_eq!(values(&recorder, other), [2.0, 4.0]);
    let reached = log.gate.reached.load(Ordering::SeqCst);
    log.gate.set_closed(true);
    let slow = add(&recorder, other, other);
    recorder.flush().unwrap();
    log.gate.await_arrivals(reached + 1);
    // Arrays that the batch does not use can be read.
    assert_eq!(values(&recorder, finished), [1.0, 2.0]);
    let new = array(&recorder, &[3], &[7.0; 3]);
    assert_eq!(values(&recorder, new), [7.0; 3]);
    recorder.free(new).unwrap();
    assert!(log.gate.is_closed());
    log.gate.set_closed(false);
    assert_eq!(values(&recorder, slow), [4.0, 8.0]);
    recorder.shutdown().unwrap();
}
