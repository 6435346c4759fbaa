//! Programs print what GNU Octave printed for them (`examples/*.txt`), and wrong programs give errors with their place.

use bh_core::stack::Stack;
use bh_minimatlab::Interpreter;
use bh_recorder::{Options, Recorder};
use bh_tests::stacks;
use std::cell::RefCell;
use std::io::Write;
use std::path::Path;
use std::rc::Rc;

#[derive(Clone, Default)]
struct Output(Rc<RefCell<Vec<u8>>>);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn interpreter() -> (Interpreter, Output) {
    let config = stacks::config("cpu").expect("the config of the stack");
    let recorder = Recorder::new();
    let start = recorder.start(Options::default(), move || Ok(Box::new(Stack::load(&config, Some("cpu"))?)));
    start.expect("the stack starts");
    let output = Output::default();
    (Interpreter::new(recorder, Box::new(output.clone())), output)
}

#[test]
fn programs_print_what_octave_prints() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    for name in ["heat", "black_scholes", "nbody", "shallow_water", "values"] {
        let text = std::fs::read_to_string(examples.join(format!("{name}.m"))).expect("a program");
        let expected = std::fs::read_to_string(examples.join(format!("{name}.txt"))).expect("what Octave printed");
        let (mut interpreter, output) = interpreter();
        let outcome = interpreter.run(name, &text);
        assert!(outcome.is_ok(), "{}", outcome.unwrap_err());
        let printed = String::from_utf8(output.0.take()).expect("text");
        for (number, (ours, theirs)) in printed.lines().zip(expected.lines()).enumerate() {
            assert_eq!(ours, theirs, "{name}, line {} of the output", number + 1);
        }
        assert_eq!(printed.lines().count(), expected.lines().count(), "{name}");
    }
}

/// Wrong programs, with line and column of the error.
const WRONG: &[(&str, usize, usize)] = &[
    ("x = (1", 1, 5),
    ("x = [1 2", 1, 5),
    ("x = 'abc", 1, 5),
    ("x = 1)", 1, 6),
    ("x = 3 $ 4", 1, 7),
    ("if 1\nx = 2", 1, 1),
    ("while 1", 1, 1),
    ("for k = 1:3", 1, 1),
    ("end", 1, 1),
    ("x = ", 1, 5),
    ("x = 3x", 1, 6),
    ("x = 1 +", 1, 8),
    ("x = * 2", 1, 5),
    ("5 = x", 1, 1),
    ("x = {1, 2}", 1, 5),
    ("switch x\nend", 1, 1),
    ("try\nend", 1, 1),
    ("global x", 1, 1),
    ("x = 2i", 1, 5),
    ("a = 1; a.b = 2", 1, 9),
    ("y = x + 1", 1, 5),
    ("y = missing(3)", 1, 5),
    ("x = [1 2 3];\ny = x(4)", 2, 5),
    ("x = [1 2 3];\ny = x(0)", 2, 5),
    ("x = [1 2 3];\ny = x(1.5)", 2, 5),
    ("x = [1 2] + [1 2 3]", 1, 11),
    ("x = [1 2] * [3 4]", 1, 11),
    ("x = [1 2; 3]", 1, 5),
    ("x = zeros(2, 2);\nx(:, 3) = [1 2 3]", 2, 1),
    ("x = sqrt(-1)", 1, 5),
    ("x = (-8) ^ 0.5", 1, 10),
    ("error('no %d', 3)", 1, 1),
    ("function f()\n  y = z;\nend\nf()", 2, 7),
    ("function f()\n  f()\nend\nf()", 2, 3),
    ("x = reshape(1:6, 4, 2)", 1, 5),
    ("x = ones(2, 3) ^ 2", 1, 16),
    ("f = @(x) x; f(1, 2)", 1, 13),
    ("x = end", 1, 5),
    ("printf('%q', 1)", 1, 1),
    ("x = 1:2:3:4", 1, 10),
];

#[test]
fn wrong_programs_give_errors_with_their_place() {
    let (mut interpreter, _) = interpreter();
    let mut different = Vec::new();
    for (program, line, column) in WRONG {
        let _ = interpreter.run("clear", "clear all");
        match interpreter.run("wrong.m", program) {
            Ok(()) => different.push(format!("{program:?}: no error")),
            Err(fault) => {
                let place = fault.place.as_ref().map(bh_minimatlab::Place::line_column);
                if place != Some((*line, *column)) {
                    different.push(format!("{program:?}: {place:?} instead of {line}:{column}\n{fault}"));
                }
            }
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}
