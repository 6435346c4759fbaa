//! `BH_CHECK`: what is found, how it is named, and what goes on afterwards.

use super::*;

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
    let (recorder, _) = checked("nan", true);
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
    let (recorder, _) = checked("nan", true);
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
        let (recorder, log) = checked("nan,bounds", eager);
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
