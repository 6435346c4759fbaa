//! GNU Octave's answers to programs, and the comparison with an interpreter's results.

use super::{Output, generate};
use bh_minimatlab::Interpreter;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// A variable: class, size, and elements in column order.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// `double`, `logical` or `char`.
    pub class: String,
    /// Rows and columns.
    pub size: (usize, usize),
    /// Elements.
    pub elements: Vec<f64>,
}

/// The result of a program.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// It ends with an error.
    pub fails: bool,
    /// Its output.
    pub printed: String,
    /// The variables that it leaves.
    pub variables: Vec<Variable>,
}

/// A program with Octave's answer.
#[derive(Clone, Debug)]
pub struct Case {
    /// The program.
    pub program: String,
    /// The answer.
    pub answer: Answer,
}

/// Runs each program and prints its answer in the form of the stored cases.
const DRIVER: &str = r#"
function answer__(count__, folder__)
  warning("off", "all");
  for number__ = 1:count__
    one__(fileread(sprintf("%s/%d.m", folder__, number__)));
  end
end
function one__(text__)
  printf("== program\n%s", text__);
  fails__ = 0;
  printed__ = evalc("try, eval(text__); catch, fails__ = 1; end");
  printf("== %d %d\n%s", fails__, columns(printed__), printed__);
  names__ = who();
  for name__ = names__'
    if any(regexp(name__{1}, "__$")), continue, end
    value__ = eval(name__{1});
    if ! (isnumeric(value__) || islogical(value__) || ischar(value__)), continue, end
    if iscomplex(value__), printf("%s complex 0 0\n", name__{1}); continue, end
    printf("%s %s %d %d", name__{1}, class(value__), rows(value__), columns(value__));
    printf(" %.17g", double(value__));
    printf("\n");
  end
end
"#;

/// Is Octave installed?
pub fn is_installed() -> bool {
    Command::new("octave-cli").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Octave's answers to the programs of these numbers, as text, without programs that have complex values.
pub fn answers(seeds: std::ops::Range<u64>, folder: &Path) -> String {
    std::fs::create_dir_all(folder).expect("a folder for the programs");
    let count = seeds.end - seeds.start;
    for (number, seed) in seeds.enumerate() {
        let file = folder.join(format!("{}.m", number + 1));
        std::fs::write(file, generate::program(seed)).expect("a program is written");
    }
    let call = format!("1;\n{DRIVER}\nanswer__({count}, \"{}\");\n", folder.display());
    let driver = folder.join("driver.m");
    std::fs::write(&driver, call).expect("the driver is written");
    let output =
        Command::new("octave-cli").args(["--no-init-file", "-q"]).arg(&driver).output().expect("Octave starts");
    let text = String::from_utf8(output.stdout).expect("Octave prints UTF-8");
    let errors = String::from_utf8_lossy(&output.stderr);
    let cases = read(&text);
    assert_eq!(cases.len() as u64, count, "{errors}");
    let real = |case: &&Case| case.answer.variables.iter().all(|variable| variable.class != "complex");
    cases.iter().filter(real).map(write).collect()
}

fn write(case: &Case) -> String {
    let answer = &case.answer;
    let mut text = format!(
        "== program\n{}== {} {}\n{}",
        case.program,
        u8::from(answer.fails),
        answer.printed.len(),
        answer.printed
    );
    for Variable { name, class, size, elements } in &answer.variables {
        // Writing to a text cannot fail.
        let _ = write!(text, "{name} {class} {} {}", size.0, size.1);
        for element in elements {
            let _ = write!(text, " {element}");
        }
        text.push('\n');
    }
    text
}

/// The cases of a text.
pub fn read(text: &str) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut rest = text;
    while let Some(after) = rest.strip_prefix("== program\n") {
        let (program, after) = after.split_once("\n== ").expect("the end of a program");
        let (head, after) = after.split_once('\n').expect("a line");
        let (fails, length) = head.split_once(' ').expect("two numbers");
        let (printed, after) = after.split_at(length.parse().expect("a length"));
        let end = after.find("== program\n").unwrap_or(after.len());
        let variables = after[..end].lines().map(variable).collect();
        let answer = Answer { fails: fails == "1", printed: printed.to_owned(), variables };
        cases.push(Case { program: format!("{program}\n"), answer });
        rest = &after[end..];
    }
    assert!(rest.is_empty(), "{rest}");
    cases
}

fn variable(line: &str) -> Variable {
    let mut words = line.split(' ');
    let mut word = || words.next().unwrap_or_default().to_owned();
    let (name, class) = (word(), word());
    let mut extent = || words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
    let size = (extent(), extent());
    let elements = words.filter(|word| !word.is_empty()).map(|word| word.parse().unwrap_or(f64::NAN)).collect();
    Variable { name, class, size, elements }
}

/// The difference between Octave's answer and the interpreter's; `None` if they agree.
pub fn difference(run: &mut Interpreter, output: &Output, case: &Case) -> Option<String> {
    output.take();
    run.clear();
    let outcome = run.run("program.m", &case.program);
    let printed = output.take();
    match (&outcome, case.answer.fails) {
        (Err(fault), false) => return Some(format!("fails: {fault}")),
        (Ok(()), true) => return Some("does not fail".to_owned()),
        // The error discards work recorded before it.
        (Err(fault), true) => return fault.place.is_none().then(|| format!("an error without a place: {fault}")),
        (Ok(()), false) => {}
    }
    for theirs in &case.answer.variables {
        let Some(ours) = run.variable_of(&theirs.name) else { return Some(format!("{} is not set", theirs.name)) };
        let ours = match ours {
            Ok(ours) => ours,
            Err(fault) => return Some(format!("{}: {fault}", theirs.name)),
        };
        if ours.class != theirs.class || ours.size != theirs.size || !agree(&ours.elements, &theirs.elements) {
            return Some(format!("{} is {ours:?}\n instead of {theirs:?}", theirs.name));
        }
    }
    (printed != case.answer.printed).then(|| format!("prints\n{printed}instead of\n{}", case.answer.printed))
}

/// Are they equal up to rounding of functions and of sums in another order?
fn agree(ours: &[f64], theirs: &[f64]) -> bool {
    let close = |(a, b): (&f64, &f64)| {
        a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-11 * a.abs().max(b.abs()).max(1.0)
    };
    ours.len() == theirs.len() && ours.iter().zip(theirs).all(close)
}
