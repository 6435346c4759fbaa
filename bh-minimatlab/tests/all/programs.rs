//! Programs print the same as in GNU Octave (`examples/*.txt`), and wrong programs give errors with their place.

use crate::support;

use std::path::Path;
use support::interpreter;

#[test]
fn programs_print_what_octave_prints() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    for name in ["heat", "black_scholes", "nbody", "shallow_water", "values"] {
        let text = std::fs::read_to_string(examples.join(format!("{name}.m"))).expect("a program");
        let expected = std::fs::read_to_string(examples.join(format!("{name}.txt"))).expect("what Octave printed");
        let (mut interpreter, output) = interpreter();
        let outcome = interpreter.run(name, &text);
        assert!(outcome.is_ok(), "{}", outcome.unwrap_err());
        let printed = output.take();
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
    // Tokens and brackets.
    ("x = 1;\ny = (2 + [3, 4);", 2, 15),
    ("x = [1, 2", 1, 5),
    ("x = {", 1, 5),
    ("x = (1,\n2)", 1, 5),
    ("x = \"abc\ny = 2", 1, 5),
    ("x = 'it''s", 1, 5),
    ("%{\ncomment", 1, 1),
    ("x = 1 2", 1, 7),
    ("x = 1e", 1, 6),
    ("x = 1..2", 1, 7),
    ("x = ~", 1, 6),
    ("x = !", 1, 6),
    ("\u{e9} = 1", 1, 1),
    ("x = 1 ? 2", 1, 7),
    ("x = \\ 2", 1, 5),
    // Statements.
    ("if x = 1\nend", 1, 6),
    ("if\nend", 1, 3),
    ("while\nend", 1, 6),
    ("for 3 = 1:2\nend", 1, 5),
    ("for k 1:3\nend", 1, 7),
    ("for k = 1:3\nif k\nend", 1, 1),
    ("do\nx = 1;", 1, 1),
    ("else", 1, 1),
    ("until 1", 1, 1),
    ("endwhile", 1, 1),
    ("if 1, endfor", 1, 7),
    ("case 1", 1, 1),
    ("persistent x", 1, 1),
    ("unwind_protect\nend_unwind_protect", 1, 1),
    ("if 1\nfunction f()\nend\nend", 2, 1),
    ("function\n", 1, 9),
    ("function f(\nend", 1, 11),
    ("function f(a, a)\nend", 1, 15),
    ("function f(a = 1)\nend", 1, 14),
    ("function [a, 3] = f()\nend", 1, 14),
    ("[1, x] = size(2)", 1, 2),
    ("[] = size(2)", 1, 2),
    ("x + 1 = 2", 1, 3),
    ("x(1)(2) = 3", 1, 1),
    ("(1:3)++", 1, 3),
    ("format long", 1, 1),
    // Values of the wrong kind or size.
    ("x = undefined_name", 1, 5),
    ("x = 1;\nx = x + y;", 2, 9),
    ("x = ones(2, 3) + ones(3, 2)", 1, 16),
    ("x = ones(2, 3) & ones(3, 2)", 1, 16),
    ("x = ones(2, 3) == [1; 2; 3]", 1, 16),
    ("x = ones(2, 3) * ones(2, 3)", 1, 16),
    ("x = [1, 2; 3, 4] \\ [1; 2; 3]", 1, 18),
    ("x = [ones(2, 2), ones(3, 3)]", 1, 5),
    ("x = [ones(2, 2); ones(3, 3)]", 1, 5),
    ("x = ones(2, 2)(3, 1)", 1, 5),
    ("x = ones(2, 2)(:, 0)", 1, 5),
    ("x = 5;\nx(2, 2)", 2, 1),
    ("x = 1:3;\nx(-1) = 2", 2, 1),
    ("x = 1:3;\nx([1 2]) = [1 2 3]", 2, 1),
    ("x = ones(2, 2);\nx(7) = 1", 2, 1),
    ("x = ones(2, 2);\nx(1, 1) = []", 2, 1),
    ("x = ones(2, 2, 2)", 1, 5),
    ("x = 1:3;\nx(1, 2, 3)", 2, 1),
    ("x = 1:3;\nx('a')", 2, 1),
    ("x = @sin + 1", 1, 10),
    ("x = [@sin, 1]", 1, 5),
    ("x = -(@sin)", 1, 5),
    ("if @sin\nend", 1, 4),
    ("x = NaN;\nif x\nend", 2, 4),
    ("x = ~NaN", 1, 5),
    ("x = 1:NaN", 1, 6),
    ("x = (1:2):3", 1, 7),
    ("x = 1:1e20", 1, 6),
    ("x = log(-1)", 1, 5),
    ("x = acos(2)", 1, 5),
    ("x = [1 2; 3 4] ^ [1 2; 3 4]", 1, 16),
    // Calls.
    ("x = sin()", 1, 5),
    ("x = sin(1, 2)", 1, 5),
    ("x = zeros(1.5)", 1, 5),
    ("x = zeros(-1, 2, 3)", 1, 5),
    ("x = size()", 1, 5),
    ("x = size([1 2], 0)", 1, 5),
    ("x = sum()", 1, 5),
    ("x = sum([1 2], 3)", 1, 5),
    ("x = mod(1)", 1, 5),
    ("x = mod([1 2], [1 2 3])", 1, 5),
    ("x = repmat(1)", 1, 5),
    ("x = linspace(1)", 1, 5),
    ("x = reshape(1:6, [4 2])", 1, 5),
    ("x = sqrt('ab', 2)", 1, 5),
    ("x = num2str()", 1, 5),
    ("x = disp(1)", 1, 5),
    ("feval(3)", 1, 1),
    ("feval()", 1, 1),
    ("feval('missing', 1)", 1, 1),
    ("f = @(x) x + y;\nf(1)", 1, 14),
    ("f = @missing;\nf(1)", 2, 1),
    ("function r = f(x)\nend\ny = f(1)", 1, 10),
    ("function r = f(x)\nr = 1;\nend\ny = f(1, 2)", 4, 5),
    ("function r = f(x)\nr = 1;\nend\n[a, b] = f(1)", 4, 10),
    ("function r = f(x)\nr = x(3);\nend\ny = f([1 2])", 2, 5),
    ("[a, b] = numel([1 2])", 1, 1),
    ("plot()", 1, 1),
    ("plot([1 2], [1 2 3])", 1, 1),
    ("print('picture.svg')", 1, 1),
    ("plot(1:3, 'missing/folder/picture.png')", 1, 1),
    ("printf(3)", 1, 1),
    ("printf('%d %')", 1, 1),
    ("x = toc", 1, 5),
];

#[test]
fn wrong_programs_give_errors_with_their_place() {
    let (mut interpreter, _) = interpreter();
    let mut different = Vec::new();
    assert!(WRONG.len() >= 100);
    for (program, line, column) in WRONG {
        interpreter.clear();
        match interpreter.run("wrong.m", program) {
            Ok(()) => different.push(format!("{program:?}: no error")),
            Err(fault) => {
                let place = fault.place.as_ref().map(bh_minimatlab::TextPosition::line_column);
                if place != Some((*line, *column)) {
                    different.push(format!("{program:?}: {place:?} instead of {line}:{column}\n{fault}"));
                }
            }
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}
