//! Handles, DISCARD, base flags, limits, mapping, adoption, shutdown.

use super::*;
use bh_bytecode::batch::NO_SLOT;
use bh_bytecode::{Packed, base_flags};
use bh_core::abi::{access, status};
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn the_last_handle_discards_the_base() {
    let (recorder, log) = context(Options::default());
    let a = array(&recorder, &[2], &[1.0, 2.0]);
    let temporary = add(&recorder, a, a);
    let view = recorder.derive(temporary, |view| view.reverse(0)).unwrap();
    recorder.free(temporary).unwrap();
    let kept = add(&recorder, view, a);
    recorder.free(view).unwrap();
    assert_eq!(recorder.free(view).unwrap_err().status, status::HANDLE);
    assert_eq!(values(&recorder, kept), [5.0, 4.0]);
    let batches = lock(&log.batches);
    let opcodes: Vec<Opcode> = batches[0].instrs.iter().map(|instr| instr.opcode).collect();
    assert_eq!(opcodes, [Opcode::Add, Opcode::Add, Opcode::Discard, Opcode::Sync]);
    let flags: Vec<u32> = batches[0].bases.iter().map(|base| base.flags).collect();
    let (born, dies, live) = (base_flags::BORN, base_flags::DIES, base_flags::LIVE_OUT);
    assert_eq!(flags, [born | dies, live, born | live]);
    assert_eq!(recorder.statistics().arrays, 2);
}

#[test]
fn arrays_never_used_leave_no_trace() {
    let (recorder, log) = context(Options::default());
    for _ in 0..10 {
        let a = recorder.empty(DType::F64, &[1 << 30]).unwrap();
        recorder.free(a).unwrap();
    }
    recorder.sync().unwrap();
    assert!(lock(&log.batches).is_empty());
    assert_eq!(recorder.statistics().bases, 0);
}

#[test]
fn row_hints_come_from_the_first_writing_view() {
    let (recorder, log) = context(Options::default());
    let grid = recorder.empty(DType::F64, &[6, 5]).unwrap();
    let inner = |view: &View| view.slice(0, Some(1), Some(-1), 1)?.slice(1, Some(1), Some(-1), 1);
    let inner = recorder.derive(grid, inner).unwrap();
    recorder.operate(Opcode::Copy, 0, inner, &[number(1.0)], HERE).unwrap();
    recorder.sync().unwrap();
    assert_eq!(lock(&log.batches)[0].bases[0].row_hint, 5);
}

#[test]
fn row_hints_of_arrays_written_mapped_and_adopted_as_a_whole() {
    let (recorder, log) = context(Options::default());
    let written = array(&recorder, &[2, 3], &[1.0; 6]);
    let mapped = recorder.empty(DType::F64, &[3, 4]).unwrap();
    recorder.map(mapped, access::WRITE).unwrap();
    recorder.unmap(mapped).unwrap();
    let mut memory = [0.0f64; 10];
    // SAFETY: the memory outlives the context.
    let adopted =
        unsafe { recorder.adopt(DType::F64, &[2, 5], memory.as_mut_ptr().cast(), None, std::ptr::null_mut()).unwrap() };
    let hint = |array| {
        recorder.free(add(&recorder, array, array)).unwrap();
        recorder.sync().unwrap();
        let id = recorder.info(array).unwrap().base;
        let batches = lock(&log.batches);
        let mut bases = batches.iter().flat_map(|batch| &batch.bases);
        bases.find(|base| base.id == id).unwrap().row_hint
    };
    assert_eq!([hint(written), hint(mapped), hint(adopted)], [3, 4, 5]);
    recorder.shutdown().unwrap();
}

#[test]
fn long_programs_are_cut_where_they_repeat() {
    let (recorder, log) = context(Options { max_instructions: 40, ..Options::default() });
    let mut a = array(&recorder, &[4], &[0.0; 4]);
    let one = array(&recorder, &[4], &[1.0; 4]);
    for _ in 0..5 {
        recorder.operate(Opcode::Sqrt, 0, one, &[Input::Array(one)], HERE).unwrap();
    }
    for _ in 0..100 {
        let b = add(&recorder, a, one);
        recorder.free(a).unwrap();
        let line = Location { file: b"program.c", line: 8 };
        a = recorder.operate_new(Opcode::Add, 0, None, &[Input::Array(b), Input::Array(one)], line).unwrap();
        recorder.free(b).unwrap();
    }
    assert_eq!(values(&recorder, a), [200.0; 4]);
    let batches = lock(&log.batches);
    assert!(batches.len() >= 9, "{}", batches.len());
    let shapes: Vec<Vec<Opcode>> =
        batches.iter().map(|batch| batch.instrs.iter().map(|instr| instr.opcode).collect()).collect();
    for pair in shapes[1..shapes.len() - 1].windows(2) {
        assert_eq!(pair[0], pair[1]);
    }
    assert_eq!(shapes[1].len() % 4, 0);
    assert_eq!(shapes[1][..2], [Opcode::Add, Opcode::Discard]);
}

#[test]
fn the_batches_of_a_loop_are_equal_byte_for_byte() {
    let (recorder, log) = context(Options { max_instructions: 24, ..Options::default() });
    let line = |line| Location { file: b"program.c", line };
    let ones = || array(&recorder, &[4], &[1.0; 4]);
    let (mut old, mut new, fixed) = (ones(), ones(), ones());
    for turn in 0..200u32 {
        let factor = number(1.0 / f64::from(turn + 1));
        let make = |opcode, inputs: &[Input], at| recorder.operate_new(opcode, 0, None, inputs, line(at)).unwrap();
        let scaled = make(Opcode::Multiply, &[Input::Array(new), factor], 1);
        let moved = make(Opcode::Add, &[Input::Array(scaled), Input::Array(fixed)], 2);
        recorder.free(scaled).unwrap();
        let next = make(Opcode::Subtract, &[Input::Array(moved), Input::Array(old)], 3);
        recorder.free(moved).unwrap();
        recorder.free(old).unwrap();
        (old, new) = (new, next);
    }
    values(&recorder, new);
    let batches = lock(&log.batches);
    assert!(batches.len() > 30, "{}", batches.len());
    // By then they are worth being planned in full.
    let packed: Vec<Packed> = batches[20..batches.len() - 1].iter().map(|batch| Packed::new(&batch.as_ref())).collect();
    for (at, pair) in packed.windows(2).enumerate() {
        assert_eq!(pair[0].words_before_constants(), pair[1].words_before_constants(), "{at}");
        assert_ne!(pair[0], pair[1], "the factors differ");
        let [first, second] = [0, 1].map(|at| pair[at].as_ref().header);
        assert_eq!((first.seen + 1, first.signature), (second.seen, second.signature));
        assert!(pair[0].as_ref().slots.iter().all(|&slot| slot == NO_SLOT || slot < first.slot_count));
    }
    assert!(packed[0].as_ref().header.slot_count <= 5);
}

#[test]
fn a_turn_longer_than_half_the_limit_is_not_cut_in_the_middle() {
    let (recorder, log) = context(Options { max_instructions: 100, ..Options::default() });
    let a = array(&recorder, &[4], &[0.0; 4]);
    let one = array(&recorder, &[4], &[1.0; 4]);
    for _ in 0..4 {
        for line in 0..60 {
            let line = Location { file: b"program.c", line };
            recorder.operate(Opcode::Add, 0, a, &[Input::Array(a), Input::Array(one)], line).unwrap();
        }
    }
    assert_eq!(values(&recorder, a), [240.0; 4]);
    let lengths: Vec<usize> = lock(&log.batches).iter().map(|batch| batch.instrs.len()).collect();
    assert!(lengths.iter().take(2).all(|&length| length == 120), "{lengths:?}");
}

#[test]
fn a_memory_limit_flushes() {
    let (recorder, log) = context(Options { max_bytes: 1 << 20, ..Options::default() });
    let full = || recorder.full(Constant::from_value(1.0f64), &[1 << 14], HERE).unwrap();
    let arrays: Vec<_> = (0..600).map(|_| full()).collect();
    recorder.sync().unwrap();
    let batches = lock(&log.batches).len();
    assert!(batches >= 3);
    // Temporaries hold no memory once they are dropped.
    for _ in 0..40 {
        recorder.free(full()).unwrap();
    }
    recorder.sync().unwrap();
    assert_eq!(lock(&log.batches).len(), batches + 1);
    arrays.into_iter().for_each(|array| recorder.free(array).unwrap());
}

#[test]
fn temporaries_of_a_statement_do_not_end_a_batch() {
    let (recorder, log) = context(Options { max_bytes: 1 << 20, ..Options::default() });
    let full = || recorder.full(Constant::from_value(1.0f64), &[1 << 14], HERE).unwrap();
    let temporaries: Vec<_> = (0..100).map(|_| full()).collect();
    temporaries.into_iter().for_each(|array| recorder.free(array).unwrap());
    recorder.sync().unwrap();
    assert_eq!(lock(&log.batches).len(), 1);
}

#[test]
fn a_step_on_a_device_may_hold_more() {
    for (device, cut) in [(None, true), (Some(1 << 30), false)] {
        let log = Log { device, ..Log::default() };
        let (recorder, seen) = (Recorder::new(), log.clone());
        let options = Options { max_bytes: 1 << 20, ..Options::default() };
        recorder.start(options, move || Ok(Box::new(Fake::new(seen)))).unwrap();
        let arrays: Vec<_> =
            (0..20).map(|_| recorder.full(Constant::from_value(1.0f64), &[1 << 14], HERE).unwrap()).collect();
        recorder.sync().unwrap();
        let before = lock(&log.batches).len();
        for array in arrays {
            recorder.operate(Opcode::Add, 0, array, &[Input::Array(array), number(1.0)], HERE).unwrap();
            recorder.free(array).unwrap();
        }
        recorder.sync().unwrap();
        assert_eq!(lock(&log.batches).len() > before + 1, cut);
        recorder.shutdown().unwrap();
    }
}

#[test]
fn new_memory_waits_for_what_is_given_up() {
    let (recorder, log) = context(Options::default());
    let large = || recorder.empty(DType::F64, &[1 << 17]).unwrap();
    let map = |array| {
        recorder.map(array, access::WRITE).unwrap();
        recorder.unmap(array).unwrap();
    };
    let (first, second) = (large(), large());
    map(first);
    map(second);
    let batches = || lock(&log.batches).len();
    let before = batches();
    let third = large();
    map(third);
    assert_eq!(batches(), before, "nothing is given up");
    recorder.free(array(&recorder, &[1], &[1.0])).unwrap();
    let small = batches();
    map(large());
    assert_eq!(batches(), small, "a small array is no room");
    recorder.free(first).unwrap();
    map(large());
    assert_eq!(batches(), small + 1, "the first array is free before another gets memory");
    // Memory that is there already waits for nothing.
    recorder.free(second).unwrap();
    map(third);
    assert_eq!(batches(), small + 1);
}

#[test]
fn mapped_arrays_are_left_alone() {
    let (recorder, _) = context(Options::default());
    let a = array(&recorder, &[3], &[1.0, 2.0, 3.0]);
    let tail = recorder.derive(a, |view| view.slice(0, Some(1), None, 1)).unwrap();
    let data = recorder.map(tail, access::READ | access::WRITE).unwrap().cast::<f64>();
    // SAFETY: two elements are mapped.
    unsafe {
        assert_eq!(*data, 2.0);
        *data.add(1) = 30.0;
    }
    let refused = recorder.operate(Opcode::Sqrt, 0, a, &[Input::Array(a)], HERE).unwrap_err();
    assert!(refused.text.contains("mapped"), "{refused}");
    assert!(recorder.read_scalar(a).is_err());
    recorder.unmap(tail).unwrap();
    assert!(recorder.unmap(tail).is_err());
    assert_eq!(values(&recorder, a), [1.0, 2.0, 30.0]);
    recorder.map(a, access::READ).unwrap();
    // Reading is fine while it is mapped for reading.
    assert_eq!(values(&recorder, add(&recorder, a, a)), [2.0, 4.0, 60.0]);
    recorder.free(tail).unwrap();
    recorder.free(a).unwrap();
    recorder.sync().unwrap();
    assert_eq!(recorder.map(a, access::READ).unwrap_err().status, status::HANDLE);
    assert!(recorder.map(add_one(&recorder), 0).is_err());
}

fn add_one(recorder: &Recorder) -> ArrayId {
    recorder.full(Constant::from_value(1.0f64), &[1], HERE).unwrap()
}

static RELEASED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn released(argument: *mut c_void, _data: *mut c_void) {
    RELEASED.fetch_add(argument as usize, Ordering::SeqCst);
}

#[test]
fn operations_on_adopted_memory_complete_at_once() {
    let (recorder, _) = context(Options::default());
    let mut memory = [1.0f64, 2.0, 3.0];
    let data = memory.as_mut_ptr().cast::<u8>();
    let argument = 5 as *mut c_void;
    // SAFETY: the memory outlives the context.
    let a = unsafe { recorder.adopt(DType::F64, &[3], data, Some(released), argument).unwrap() };
    recorder.operate(Opcode::Add, 0, a, &[Input::Array(a), number(1.0)], HERE).unwrap();
    assert_eq!(recorder.statistics().pending, 0);
    // SAFETY: as above; read past the optimiser, which knows nothing of the adopted pointer.
    assert_eq!(unsafe { std::ptr::read_volatile(data.cast::<[f64; 3]>()) }, [2.0, 3.0, 4.0]);
    recorder.free(a).unwrap();
    recorder.sync().unwrap();
    assert_eq!(RELEASED.load(Ordering::SeqCst), 5);
    // SAFETY: refused before use.
    unsafe {
        assert!(recorder.adopt(DType::F64, &[3], std::ptr::null_mut(), None, argument).is_err());
        assert!(recorder.adopt(DType::F64, &[3], data.add(1), None, argument).is_err());
    }
}

#[test]
fn memory_stays_in_place_from_the_first_pin_to_the_last() {
    let (recorder, log) = context(Options::default());
    let a = array(&recorder, &[3], &[1.0, 2.0, 3.0]);
    let flags = || {
        add(&recorder, a, a);
        recorder.sync().unwrap();
        let (id, batches) = (recorder.info(a).unwrap().base, lock(&log.batches));
        let bases = &batches.last().unwrap().bases;
        bases.iter().find(|base| base.id == id).unwrap().flags
    };
    assert_eq!(flags(), base_flags::LIVE_OUT);
    for pinned in [true, true, false] {
        recorder.pin(a, pinned, false).unwrap();
        assert_eq!(flags(), base_flags::LIVE_OUT | base_flags::PINNED);
    }
    recorder.pin(a, false, false).unwrap();
    assert_eq!(flags(), base_flags::LIVE_OUT);
    assert!(recorder.pin(a, false, false).is_err());
}

#[test]
fn the_stack_hears_of_writes_to_exported_memory_before_each_batch_and_at_its_end() {
    let (recorder, log) = context(Options::default());
    let a = array(&recorder, &[3], &[1.0, 2.0, 3.0]);
    let writes = || lock(&log.maps).drain(..).filter(|mode| *mode == access::READ | access::WRITE).count();
    recorder.pin(a, true, true).unwrap();
    assert_eq!(writes(), 0);
    add(&recorder, a, a);
    assert_eq!(writes(), 1);
    recorder.pin(a, false, false).unwrap();
    assert_eq!(writes(), 1);
    recorder.pin(a, true, false).unwrap();
    recorder.pin(a, false, false).unwrap();
    assert_eq!(writes(), 0);
}

#[test]
fn eager_mode_runs_each_operation() {
    let (recorder, log) = context(Options { eager: true, ..Options::default() });
    let a = array(&recorder, &[2], &[1.0, 2.0]);
    add(&recorder, a, a);
    add(&recorder, a, a);
    assert_eq!(lock(&log.batches).len(), 2);
    recorder.set_eager(false).unwrap();
    add(&recorder, a, a);
    assert_eq!(lock(&log.batches).len(), 2);
}

#[test]
fn after_shutdown_everything_is_refused_until_a_new_start() {
    let (recorder, log) = context(Options::default());
    let a = array(&recorder, &[2], &[1.0, 2.0]);
    let b = add(&recorder, a, a);
    recorder.shutdown().unwrap();
    assert_eq!(lock(&log.batches).len(), 1, "pending work is done first");
    for error in [
        recorder.free(b).unwrap_err(),
        recorder.empty(DType::F64, &[1]).unwrap_err(),
        recorder.sync().unwrap_err(),
        recorder.flush().unwrap_err(),
        recorder.shutdown().unwrap_err(),
        recorder.message("?").unwrap_err(),
        recorder.operate(Opcode::Add, 0, a, &[Input::Array(a), Input::Array(a)], HERE).unwrap_err(),
    ] {
        assert_eq!(error.status, status::SHUTDOWN, "{error}");
    }
    recorder.start(Options::default(), || Ok(Box::new(Fake::new(Log::default())))).unwrap();
    assert_eq!(recorder.free(b).unwrap_err().status, status::HANDLE);
    assert_eq!(recorder.message("hi").unwrap(), "you said hi");
    let fresh = array(&recorder, &[2], &[1.0, 2.0]);
    assert_eq!(values(&recorder, add(&recorder, fresh, fresh)), [2.0, 4.0]);
}

#[test]
fn a_stack_that_does_not_start_is_an_error() {
    let recorder = Recorder::new();
    let error = recorder.start(Options::default(), || Err(Error::new(status::INIT, "no device"))).unwrap_err();
    assert_eq!(error.text, "no device");
    let error = recorder.start(Options::default(), || panic!("oops")).unwrap_err();
    assert_eq!(error.status, status::PANIC);
    assert!(!recorder.is_running());
}

#[test]
fn batches_are_dumped_with_the_data_they_start_from() {
    let directory = std::env::temp_dir().join(format!("bh-dump-{}", std::process::id()));
    let (recorder, log) = context(Options { dump: Some(directory.clone()), ..Options::default() });
    let a = array(&recorder, &[2], &[1.0, 2.0]);
    values(&recorder, add(&recorder, a, a));
    let file = std::fs::read_dir(&directory).unwrap().next().unwrap().unwrap().path();
    let dump = bh_bytecode::dump::read(&std::fs::read(file).unwrap()).unwrap();
    assert_eq!(dump.batch, lock(&log.batches)[0]);
    assert_eq!(dump.contents, [(1, [1.0f64, 2.0].iter().flat_map(|value| value.to_ne_bytes()).collect::<Vec<u8>>())]);
    std::fs::remove_dir_all(directory).unwrap();
}
