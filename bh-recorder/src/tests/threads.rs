//! The threads that run batches, and many threads on one context.

use super::*;
use bh_core::abi::capability;
use std::thread;

#[test]
fn a_reader_runs_the_batch_itself() {
    let (recorder, log) = context(Options::default());
    let a = array(&recorder, &[2], &[1.0, 2.0]);
    values(&recorder, add(&recorder, a, a));
    assert_eq!(lock(&log.threads)[..], [thread::current().id()]);
    assert_eq!(recorder.statistics().batches_on_caller, 1);
}

#[test]
fn a_stack_with_thread_affinity_sees_one_thread() {
    let log = Log { flags: capability::THREAD_AFFINE, ..Log::default() };
    let seen = log.clone();
    let recorder = Recorder::new();
    recorder.start(Options::default(), move || Ok(Box::new(Fake::new(seen)))).unwrap();
    let a = array(&recorder, &[2], &[1.0, 2.0]);
    assert_eq!(values(&recorder, add(&recorder, a, a)), [2.0, 4.0]);
    recorder.flush().unwrap();
    recorder.shutdown().unwrap();
    let threads = lock(&log.threads);
    assert!(threads.len() >= 2 && threads.iter().all(|&id| id == threads[0] && id != thread::current().id()));
}

#[test]
fn tickets_are_waited_for_before_data_is_read() {
    for small_bytes in [0, 1 << 20] {
        let log = Log { tickets: true, ..Log::default() };
        let seen = log.clone();
        let recorder = Recorder::new();
        let options = Options { small_bytes, max_instructions: 3, ..Options::default() };
        recorder.start(options, move || Ok(Box::new(Fake::new(seen)))).unwrap();
        let mut a = array(&recorder, &[2], &[0.0, 1.0]);
        let one = array(&recorder, &[2], &[1.0, 1.0]);
        for _ in 0..50 {
            let next = add(&recorder, a, one);
            recorder.free(a).unwrap();
            a = next;
        }
        assert_eq!(values(&recorder, a), [50.0, 51.0]);
        recorder.shutdown().unwrap();
    }
}

#[test]
fn many_threads_use_one_context_and_shared_arrays() {
    for small_bytes in [0, 1 << 20] {
        let (recorder, _) = context(Options { small_bytes, max_instructions: 16, ..Options::default() });
        let total = array(&recorder, &[8], &[0.0; 8]);
        thread::scope(|scope| {
            for thread in 0..4 {
                let recorder = &recorder;
                scope.spawn(move || {
                    let mine = array(recorder, &[8], &[f64::from(thread); 8]);
                    for round in 0..100 {
                        let next = add(recorder, mine, mine);
                        recorder.operate(Opcode::Add, 0, total, &[Input::Array(total), number(1.0)], HERE).unwrap();
                        if round % 10 == 0 {
                            assert_eq!(values(recorder, next), [2.0 * f64::from(thread); 8]);
                            recorder.flush().unwrap();
                        }
                        recorder.free(next).unwrap();
                    }
                    recorder.free(mine).unwrap();
                });
            }
        });
        assert_eq!(values(&recorder, total), [400.0; 8]);
        assert_eq!(recorder.statistics().arrays, 1);
    }
}

#[test]
fn a_forked_child_works_on() {
    let (recorder, _) = context(Options::default());
    let a = array(&recorder, &[2], &[1.0, 2.0]);
    let sum = add(&recorder, a, a);
    // SAFETY: the child only uses this context, whose locks the fork handlers take care of, and leaves by _exit.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let good = values(&recorder, sum) == [2.0, 4.0] && recorder.message("x").is_ok() && recorder.shutdown().is_ok();
        // SAFETY: ends the child without running the test harness's exit code.
        unsafe { libc::_exit(if good { 7 } else { 1 }) };
    }
    let mut outcome = 0;
    // SAFETY: waits for the child made above.
    unsafe { libc::waitpid(child, &mut outcome, 0) };
    assert_eq!((libc::WIFEXITED(outcome), libc::WEXITSTATUS(outcome)), (true, 7));
    assert_eq!(values(&recorder, sum), [2.0, 4.0]);
}

/// As MPI does, which starts a process of its own where no launcher did.
#[test]
fn what_starts_with_a_context_may_fork() {
    let recorder = Recorder::new();
    let make = move || {
        let forks = thread::spawn(|| {
            // SAFETY: the child leaves at once.
            let child = unsafe { libc::fork() };
            if child == 0 {
                // SAFETY: ends the child without running the test harness's exit code.
                unsafe { libc::_exit(7) };
            }
            let mut outcome = 0;
            // SAFETY: waits for the child made above.
            unsafe { libc::waitpid(child, &mut outcome, 0) };
            (libc::WIFEXITED(outcome), libc::WEXITSTATUS(outcome))
        });
        assert_eq!(forks.join().unwrap(), (true, 7));
        Ok(Box::new(Fake::new(Log::default())) as Box<dyn Backend>)
    };
    recorder.start(Options::default(), make).unwrap();
    let a = array(&recorder, &[2], &[1.0, 2.0]);
    assert_eq!(values(&recorder, add(&recorder, a, a)), [2.0, 4.0]);
}

#[test]
fn several_contexts_live_side_by_side() {
    let (first, _) = context(Options::default());
    let (second, _) = context(Options::default());
    let a = array(&first, &[1], &[1.0]);
    let b = array(&second, &[1], &[2.0]);
    first.shutdown().unwrap();
    assert_eq!(values(&second, b), [2.0]);
    assert!(first.read_scalar(a).is_err());
}
