//! `BH_CHECK`: what is found, how it is named, and what goes on afterwards.

use super::*;
use bh_bytecode::Batch;

fn checked(list: &str, eager: bool) -> (Arc<Recorder>, Log) {
    context(Options { checks: Checks::parse(list).unwrap(), eager, ..Options::default() })
}

fn operate(recorder: &Recorder, opcode: Opcode, param: u16, inputs: &[Input]) -> Result<ArrayId> {
    recorder.operate_new(opcode, param, None, inputs, HERE)
}

/// The whole text of an operation's failure.
fn failure(recorder: &Recorder, opcode: Opcode, param: u16, inputs: &[Input]) -> String {
    operate(recorder, opcode, param, inputs).unwrap_err().to_string()
}

const FINITE: &str = "but only finite numbers went into it; elements like that: ";

#[test]
fn new_infinities_and_nans_are_found() {
    let (recorder, _) = checked("nan-all", true);
    let a = array(&recorder, &[2, 2], &[4.0, 0.0, -1.0, 0.0]);
    let input = Input::Array(a);
    assert_eq!(
        failure(&recorder, Opcode::Divide, 0, &[number(1.0), input]),
        format!("program.c:7: divide: element (0, 1) of the result is inf, {FINITE}2")
    );
    assert_eq!(
        failure(&recorder, Opcode::Sqrt, 0, &[input]),
        "program.c:7: sqrt: element (1, 0) of the result is nan, but no NaN went into it; elements like that: 1"
    );
    let huge = array(&recorder, &[2, 2], &[1.0, 1e308, 2.0, 1e308]);
    assert_eq!(
        failure(&recorder, Opcode::AddReduce, 1, &[Input::Array(huge)]),
        format!("program.c:7: add_reduce: element 1 of the result is inf, {FINITE}1")
    );
    // An array that is its own input: what was there before counts.
    let error = recorder.operate(Opcode::Log, 0, huge, &[number(0.0)], HERE).unwrap_err();
    assert!(error.text.starts_with("log: element (0, 0) of the result is -inf"), "{error}");
    assert_eq!(values(&recorder, huge), [f64::NEG_INFINITY; 4]);
    recorder.operate(Opcode::Multiply, 0, huge, &[Input::Array(huge), number(2.0)], HERE).unwrap();
    let error = recorder.operate(Opcode::Subtract, 0, huge, &[Input::Array(huge), Input::Array(huge)], HERE);
    assert!(error.unwrap_err().text.contains("nan, but no NaN went into it; elements like that: 4"));
    // Nothing is left of results that nobody got, and the context goes on.
    assert_eq!(recorder.statistics().arrays, 2);
    assert_eq!(values(&recorder, add(&recorder, a, a)), [8.0, 0.0, -2.0, 0.0]);
}

#[test]
fn what_was_there_before_is_not_reported_again() {
    let (recorder, _) = checked("nan-all", true);
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    let a = array(&recorder, &[2, 2], &[nan, 1.0, inf, 2.0]);
    let b = add(&recorder, a, a);
    let column = operate(&recorder, Opcode::AddReduce, 1, &[Input::Array(b)]).unwrap();
    assert!(values(&recorder, column)[0].is_nan());
    operate(&recorder, Opcode::AddAccumulate, 1, &[Input::Array(a)]).unwrap();
    let infinite = recorder.full(Constant::from_value(inf), &[3], HERE).unwrap();
    operate(&recorder, Opcode::Add, 0, &[Input::Array(infinite), number(1.0)]).unwrap();
    // A view of it that is finite may still not become NaN.
    let finite = recorder.derive(a, |view| view.slice(1, Some(1), None, 1)).unwrap();
    assert!(operate(&recorder, Opcode::Log, 0, &[Input::Array(finite)]).is_ok());
    let text = failure(&recorder, Opcode::Arccos, 0, &[Input::Array(finite)]);
    assert!(text.contains("arccos: element (1, 0) of the result is nan"), "{text}");
}

#[test]
fn indices_out_of_range_are_named_with_their_place() {
    let (recorder, _) = checked("bounds", true);
    let source = array(&recorder, &[4], &[1.0, 2.0, 3.0, 4.0]);
    let indices = |list: [i64; 4]| {
        let index = recorder.empty(DType::I64, &[2, 2]).unwrap();
        // SAFETY: four elements each.
        unsafe { recorder.write(index, list.as_ptr().cast(), None).unwrap() };
        Input::Array(index)
    };
    let good = operate(&recorder, Opcode::Gather, 0, &[Input::Array(source), indices([0, 3, -1, -4])]).unwrap();
    assert_eq!(values(&recorder, good), [1.0, 4.0, 4.0, 1.0]);
    assert_eq!(
        failure(&recorder, Opcode::Gather, 0, &[Input::Array(source), indices([0, 3, 7, 4])]),
        "program.c:7: gather: index 7 at element (1, 0) of the index array is out of range for 4 elements"
    );
    let scatter = |list| recorder.operate(Opcode::Scatter, 0, source, &[number(9.0), indices(list)], HERE);
    assert_eq!(
        scatter([0, -5, 1, 2]).unwrap_err().to_string(),
        "program.c:7: scatter: index -5 at element (0, 1) of the index array is out of range for 4 elements"
    );
}

#[test]
fn operations_run_one_by_one_and_mean_the_same() {
    for eager in [false, true] {
        let (recorder, log) = checked("nan-all,bounds", eager);
        let a = array(&recorder, &[3], &[1.0, 2.0, 3.0]);
        let b = add(&recorder, a, a);
        let c = add(&recorder, b, a);
        recorder.free(b).unwrap();
        let d = add(&recorder, c, c);
        assert_eq!(values(&recorder, d), [6.0, 12.0, 18.0]);
        recorder.sync().unwrap();
        for batch in lock(&log.batches).iter() {
            assert!(batch.instrs.iter().filter(|instr| !instr.opcode.is_system()).count() <= 1);
        }
        // Without eager mode, the next call that waits reports, with the line that recorded it.
        if !eager {
            operate(&recorder, Opcode::Log, 0, &[number(-1.0)]).unwrap();
            let error = recorder.sync().unwrap_err().to_string();
            assert!(error.starts_with("program.c:7: log: element () of the result is nan"), "{error}");
        }
    }
}

/// The text of the failure that the next wait reports.
fn reported(recorder: &Recorder) -> String {
    recorder.sync().unwrap_err().to_string()
}

#[test]
fn fused_programs_are_checked_where_they_store() {
    let (recorder, log) = checked("nan", false);
    let a = array(&recorder, &[2, 2], &[4.0, 0.0, -1.0, 9.0]);
    let there = |line| Location { file: b"program.c", line };
    let made = |opcode, inputs: &[Input], line| recorder.operate_new(opcode, 0, None, inputs, there(line)).unwrap();
    let less = made(Opcode::Subtract, &[Input::Array(a), number(1.0)], 3);
    let root = made(Opcode::Sqrt, &[Input::Array(less)], 4);
    let twice = made(Opcode::Multiply, &[Input::Array(root), number(2.0)], 5);
    for gone in [less, root] {
        recorder.free(gone).unwrap();
    }
    assert_eq!(
        reported(&recorder),
        "program.c:4: sqrt: element (0, 1) of the result is nan, but no NaN went into it (operands: -1); elements like that: 2; \
         its operands come from program.c:3 (subtract)"
    );
    // All operations were one batch.
    let most = lock(&log.batches)
        .iter()
        .map(|batch| batch.instrs.iter().filter(|instr| !instr.opcode.is_system()).count())
        .max();
    assert!(most.unwrap() >= 3);
    // A NaN in the inputs is not reported again, and the context goes on.
    let kept = add(&recorder, twice, twice);
    assert!(values(&recorder, kept)[1].is_nan());
    assert_eq!(values(&recorder, add(&recorder, a, a)), [8.0, 0.0, -2.0, 18.0]);
}

#[test]
fn discarded_nans_are_none() {
    let (recorder, _) = checked("nan,inf", false);
    let a = array(&recorder, &[3], &[4.0, -4.0, 9.0]);
    let root = operate(&recorder, Opcode::Sqrt, 0, &[Input::Array(a)]).unwrap();
    let mask = operate(&recorder, Opcode::Greater, 0, &[Input::Array(a), number(0.0)]).unwrap();
    let chosen = operate(&recorder, Opcode::Where, 0, &[Input::Array(mask), Input::Array(root), number(0.0)]).unwrap();
    for gone in [root, mask] {
        recorder.free(gone).unwrap();
    }
    assert_eq!(values(&recorder, chosen), [2.0, 0.0, 3.0]);
    // The first NaN is the logarithm's, although the root of the same array has one.
    let root = operate(&recorder, Opcode::Sqrt, 0, &[Input::Array(a)]).unwrap();
    let log = recorder.operate_new(Opcode::Log, 0, None, &[Input::Array(a)], Location { file: b"program.c", line: 9 });
    recorder.free(root).unwrap();
    let text = reported(&recorder);
    assert!(text.starts_with("program.c:9: log: element 1 of the result is nan"), "{text}");
    recorder.free(log.unwrap()).unwrap();
}

#[test]
fn sums_beyond_the_type_and_other_bad_numbers_are_not_reported() {
    let (recorder, log) = checked("nan", false);
    for values in [[1e308, 1e308, 1e308, 0.0], [f64::INFINITY, f64::NEG_INFINITY, 1.0, 2.0]] {
        let a = array(&recorder, &[4], &values);
        let twice = operate(&recorder, Opcode::Multiply, 0, &[Input::Array(a), number(1.0)]).unwrap();
        recorder.sync().unwrap();
        recorder.free(twice).unwrap();
    }
    // The batches ran once, and their stored elements were tested, without a replay.
    let products = |batch: &&Batch| batch.instrs.iter().any(|instr| instr.opcode == Opcode::Multiply);
    assert_eq!(lock(&log.batches).iter().filter(products).count(), 2);
    let tests = |batch: &&Batch| batch.instrs.iter().any(|instr| instr.opcode == Opcode::Isnan);
    assert_eq!(lock(&log.batches).iter().filter(tests).count(), 2);
}

#[test]
fn arrays_that_change_in_place_are_found_after_many_batches() {
    let (recorder, log) = checked("nan", false);
    let a = array(&recorder, &[4], &[8.0, 5.0, 9.0, 7.0]);
    for turn in 0..12 {
        let part = recorder.derive(a, |view| view.slice(0, Some(0), Some(4), 1)).unwrap();
        recorder.operate(Opcode::Subtract, 0, part, &[Input::Array(part), number(1.0)], HERE).unwrap();
        let root = Location { file: b"program.c", line: 100 + turn };
        let made = recorder.operate_new(Opcode::Sqrt, 0, None, &[Input::Array(a)], root).unwrap();
        recorder.free(part).unwrap();
        let result = recorder.sync();
        if turn < 5 {
            result.unwrap();
        } else if turn == 5 {
            let text = result.unwrap_err().to_string();
            assert!(text.starts_with("program.c:105: sqrt: element 1 of the result is nan"), "{text}");
            assert!(text.contains("(operands: -1)"), "{text}");
            recorder.free(made).unwrap();
            break;
        }
        recorder.free(made).unwrap();
    }
    assert_eq!(values(&recorder, a), [2.0, -1.0, 3.0, 1.0]);
    // The array was copied once, not in each batch.
    let copies = |batch: &&Batch| batch.instrs.len() == 1 && batch.instrs[0].opcode == Opcode::Copy;
    assert!(lock(&log.batches).iter().filter(copies).count() <= 3);
}

#[test]
fn what_the_program_writes_itself_ends_the_log() {
    let (recorder, _) = checked("nan", false);
    let a = array(&recorder, &[2], &[1.0, 2.0]);
    for value in [4.0, 9.0, -1.0] {
        recorder.operate(Opcode::Multiply, 0, a, &[Input::Array(a), number(1.0)], HERE).unwrap();
        recorder.sync().unwrap();
        // SAFETY: two elements.
        unsafe { recorder.write(a, [value, 1.0].as_ptr().cast(), None).unwrap() };
        let root = operate(&recorder, Opcode::Sqrt, 0, &[Input::Array(a)]).unwrap();
        let result = recorder.sync();
        recorder.free(root).unwrap();
        if value < 0.0 {
            let text = result.unwrap_err().to_string();
            assert!(text.contains("(operands: -1)") && text.contains("elements like that: 1"), "{text}");
        } else {
            result.unwrap();
        }
    }
}

#[test]
fn integers_beyond_their_type_and_divisions_by_zero_are_found() {
    let (recorder, _) = checked("overflow,zero-division", false);
    let whole = |values: [i32; 3]| {
        let array = recorder.empty(DType::I32, &[3]).unwrap();
        // SAFETY: three elements.
        unsafe { recorder.write(array, values.as_ptr().cast(), None).unwrap() };
        array
    };
    let (large, small) = (whole([i32::MAX, 1 << 16, 2]), whole([1, 1 << 15, 0]));
    let text = |opcode, a, b: Input| {
        let made = operate(&recorder, opcode, 0, &[Input::Array(a), b]).unwrap();
        let text = recorder.sync().err().map(|error| error.to_string());
        recorder.free(made).unwrap();
        text
    };
    let added = text(Opcode::Add, large, Input::Array(small)).unwrap();
    assert_eq!(
        added,
        "program.c:7: add: element 0 of the result is beyond its type (operands: 2147483647, 1); elements like that: 1"
    );
    assert!(text(Opcode::Multiply, large, Input::Array(small)).unwrap().contains("(operands: 65536, 32768)"));
    assert_eq!(text(Opcode::Subtract, large, Input::Array(small)), None);
    let divided = text(Opcode::FloorDivide, large, Input::Array(small)).unwrap();
    assert!(divided.starts_with("program.c:7: floor_divide: element 2 of the result is divided by zero"), "{divided}");
    let one = Input::Constant(Constant::from_value(1i32));
    assert_eq!(text(Opcode::Remainder, large, one), None);
}

#[test]
fn sums_and_differences_that_lose_their_bits_are_found() {
    for (list, bits) in [("cancellation", 40), ("cancellation=30", 30)] {
        let (recorder, _) = checked(list, false);
        let apart = |bits: i32| 1.0 + 2f64.powi(-bits);
        let a = array(&recorder, &[5], &[2.0, 1.0, apart(bits - 1), apart(bits), apart(50)]);
        let text = |opcode, b: f64, out: Option<ArrayId>| {
            let inputs = [Input::Array(a), number(b)];
            let made = match out {
                Some(out) => recorder.operate(opcode, 0, out, &inputs, HERE).map(|()| None),
                None => operate(&recorder, opcode, 0, &inputs).map(Some),
            };
            let text = recorder.sync().err().map(|error| error.to_string());
            made.unwrap().map_or(Ok(()), |made| recorder.free(made)).unwrap();
            text
        };
        // Equal operands, whose difference is exact, have nothing to lose.
        assert_eq!(text(Opcode::Add, 1.0, None), None);
        let expected = format!("element 3 of the result has lost {bits} of its 53 bits by cancellation (operands: ");
        for (opcode, name, b) in [(Opcode::Subtract, "subtract", 1.0), (Opcode::Add, "add", -1.0)] {
            let found = text(opcode, b, None).unwrap();
            assert!(found.starts_with(&format!("program.c:7: {name}: {expected}{}, {b}); ", apart(bits))), "{found}");
            assert!(found.ends_with("elements like that: 2"), "{found}");
        }
        // In place.
        assert!(text(Opcode::Subtract, 1.0, Some(a)).unwrap().contains(&expected));
        assert_eq!(values(&recorder, a)[0], 1.0);
    }
}

#[test]
fn cancellation_depends_on_the_type() {
    let (recorder, _) = checked("cancellation", false);
    let narrow = recorder.empty(DType::F32, &[2]).unwrap();
    // SAFETY: two elements.
    unsafe { recorder.write(narrow, [1.0 + 2f32.powi(-17), 1.0 + 2f32.powi(-18)].as_ptr().cast(), None).unwrap() };
    let one = Input::Constant(Constant::from_value(1f32));
    operate(&recorder, Opcode::Subtract, 0, &[one, Input::Array(narrow)]).unwrap();
    assert_eq!(
        reported(&recorder),
        "program.c:7: subtract: element 1 of the result has lost 18 of its 24 bits by cancellation (operands: 1, 1.0000038); \
         elements like that: 1"
    );
}

#[test]
fn checks_change_while_the_program_runs() {
    let (recorder, _) = checked("none", false);
    let a = array(&recorder, &[2], &[-1.0, 1.0]);
    let root = |recorder: &Recorder| {
        let made = operate(recorder, Opcode::Sqrt, 0, &[Input::Array(a)]).unwrap();
        let result = recorder.sync();
        recorder.free(made).unwrap();
        result
    };
    root(&recorder).unwrap();
    recorder.set_checks(Checks::parse("nan").unwrap()).unwrap();
    assert!(root(&recorder).unwrap_err().text.starts_with("sqrt: element 0"));
    recorder.set_checks(Checks::default()).unwrap();
    root(&recorder).unwrap();
}

/// The digits of the worst element that the operations of a line keep.
fn digits_at(recorder: &Recorder, line: u32) -> f64 {
    let lines = recorder.digits().unwrap();
    let found = lines.iter().filter(|found| found.place == ("program.c".into(), line));
    found.map(|found| found.digits(found.element)).fold(f64::INFINITY, f64::min)
}

#[test]
fn digits_are_lost_where_numbers_cancel() {
    let (recorder, _) = checked("none", false);
    recorder.set_digits(true).unwrap();
    let there = |line| Location { file: b"program.c", line };
    let made = |opcode, inputs: &[Input], line| recorder.operate_new(opcode, 0, None, inputs, there(line)).unwrap();
    let x = array(&recorder, &[3], &[1e-4, 2e-4, 3e-4]);
    let cosine = made(Opcode::Cos, &[Input::Array(x)], 2);
    let direct = made(Opcode::Subtract, &[number(1.0), Input::Array(cosine)], 3);
    let half = made(Opcode::Multiply, &[Input::Array(x), number(0.5)], 4);
    let sine = made(Opcode::Sin, &[Input::Array(half)], 5);
    let square = made(Opcode::Multiply, &[Input::Array(sine), Input::Array(sine)], 6);
    let stable = made(Opcode::Multiply, &[Input::Array(square), number(2.0)], 7);
    let before = values(&recorder, direct);
    // 1 - cos x has lost as many digits as its size is below one; 2 sin² (x/2) has lost none.
    let lost = digits_at(&recorder, 3);
    assert!((7.0..9.5).contains(&lost), "{lost}");
    assert!(digits_at(&recorder, 2) > 15.0 && digits_at(&recorder, 6) > 14.5);
    // Products with powers of two do not round and are not measured.
    assert_eq!(digits_at(&recorder, 7), f64::INFINITY);
    // Whole numbers are exact.
    let whole = made(Opcode::Add, &[number(3.0), number(4.0)], 8);
    assert!(digits_at(&recorder, 8) > 15.8, "{}", digits_at(&recorder, 8));
    // Numbers that the program writes itself have their own values in all shadows.
    // SAFETY: three elements.
    unsafe { recorder.write(direct, [1.0f64, 2.0, 3.0].as_ptr().cast(), None).unwrap() };
    let sum = made(Opcode::Add, &[Input::Array(direct), number(1.0)], 9);
    assert!(digits_at(&recorder, 9) > 15.0);
    recorder.set_digits(false).unwrap();
    // The results are those of the program alone.
    assert_eq!(values(&recorder, made(Opcode::Subtract, &[number(1.0), Input::Array(cosine)], 10)), before);
    for gone in [whole, sum, stable] {
        recorder.free(gone).unwrap();
    }
}

#[test]
fn digits_are_kept_through_updates_in_place() {
    let (recorder, _) = checked("none", false);
    recorder.set_digits(true).unwrap();
    let there = |line| Location { file: b"program.c", line };
    // Muller's recurrence: each step loses more than a digit, and the results go to the wrong limit.
    let (x, y) = (array(&recorder, &[1], &[4.0]), array(&recorder, &[1], &[4.25]));
    let mut lost = Vec::new();
    for _ in 0..24 {
        let ratio =
            recorder.operate_new(Opcode::Divide, 0, None, &[number(1500.0), Input::Array(x)], there(1)).unwrap();
        let part =
            recorder.operate_new(Opcode::Subtract, 0, None, &[number(815.0), Input::Array(ratio)], there(2)).unwrap();
        let part =
            recorder.operate_new(Opcode::Divide, 0, None, &[Input::Array(part), Input::Array(y)], there(3)).unwrap();
        recorder.operate(Opcode::Copy, 0, x, &[Input::Array(y)], there(4)).unwrap();
        recorder.operate(Opcode::Subtract, 0, y, &[number(108.0), Input::Array(part)], there(5)).unwrap();
        recorder.sync().unwrap();
        lost.push(digits_at(&recorder, 5));
    }
    assert!(lost[0] > 14.0 && lost[23] < 1.0, "{lost:?}");
    assert!(lost.windows(2).all(|pair| pair[1] <= pair[0]), "{lost:?}");
}
