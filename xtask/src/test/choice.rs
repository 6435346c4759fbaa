//! Which tests a name stands for: those of a crate, of a file, or the functions whose names contain it, found in the sources.

use crate::command::{Failure, Outcome, files, root};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Crates whose tests load no library that is built beside them.
const ALONE: &[&str] = &[
    "bh-bytecode",
    "bh-core",
    "bh-compose",
    "bh-transform",
    "bh-recorder",
    "bh-scalar",
    "bh-kernel",
    "bh-fuser",
    "bh-report",
    "xtask",
];

/// Tests of one crate.
#[derive(Debug, PartialEq)]
pub struct Run {
    pub package: String,
    /// Which of its programs cargo builds.
    pub targets: Vec<String>,
    /// The expression by which nextest selects tests; all run without one.
    pub filter: Option<String>,
}

impl Run {
    pub fn title(&self) -> String {
        format!("Rust, {}", self.package)
    }
}

/// The chosen tests.
#[derive(Debug, Default)]
pub struct Choice {
    pub rust: Vec<Run>,
    /// Arguments for pytest: files, or tests in them.
    pub python: Vec<String>,
    pub dotnet: bool,
    libraries: bool,
}

/// A test function in Rust.
struct Test {
    package: String,
    target: Target,
    /// Its path within the program, as nextest has it.
    name: String,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    Lib,
    Bins,
    All,
}

impl Target {
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Target::Lib => &["--lib"],
            Target::Bins => &["--bins"],
            Target::All => &["--tests"],
        }
    }
}

impl Choice {
    /// The tests whose crate or file has one of these names, or whose path contains it.
    pub fn named(names: &[&str]) -> Outcome<Choice> {
        let (rust, python) = (rust_tests()?, python_tests()?);
        let mut choice = Choice::default();
        for name in names {
            let before = choice.size();
            choice.add_rust(name, &rust);
            choice.add_python(name, &python);
            if ["cil", "dotnet", "bh-bridge-cil"].contains(name) {
                choice.dotnet = true;
            }
            if choice.size() == before {
                return Err(Failure(format!("no test, file of tests or crate has '{name}' in its name")));
            }
        }
        choice.libraries = !choice.python.is_empty()
            || choice.dotnet
            || choice.rust.iter().any(|run| !ALONE.contains(&run.package.as_str()));
        Ok(choice)
    }

    /// All unit tests, the conformance suite on the plain stack, and these files of Python's tests.
    pub fn quick(files: &[&str]) -> Outcome<Choice> {
        let packages: BTreeSet<String> = rust_tests()?
            .into_iter()
            .filter(|test| test.target == Target::Lib)
            .filter(|test| test.package != crate::packages::COMPILER || crate::packages::has_llvm())
            .map(|test| test.package)
            .collect();
        let own = |package| Run { package, targets: vec!["--lib".into()], filter: None };
        let mut rust: Vec<Run> = packages.into_iter().map(own).collect();
        rust.push(Run {
            package: "bh-tests".into(),
            targets: vec!["--tests".into()],
            filter: Some("test(=conformance::cpu)".into()),
        });
        let python = files.iter().map(|file| format!("bh-bridge-numpy/tests/{file}.py")).collect();
        Ok(Choice { rust, python, dotnet: false, libraries: true })
    }

    /// Do the tests load libraries?
    pub fn needs_libraries(&self) -> bool {
        self.libraries
    }

    fn size(&self) -> usize {
        self.rust.len() + self.python.len() + usize::from(self.dotnet)
    }

    fn add_rust(&mut self, name: &str, tests: &[Test]) {
        let whole = tests.iter().any(|test| test.package == name);
        let mut packages: BTreeMap<&str, BTreeSet<Target>> = BTreeMap::new();
        for test in tests.iter().filter(|test| if whole { test.package == name } else { test.name.contains(name) }) {
            packages.entry(&test.package).or_default().insert(test.target);
        }
        self.rust.extend(packages.into_iter().map(|(package, targets)| Run {
            package: package.to_owned(),
            targets: targets.iter().flat_map(|target| target.arguments()).map(|&it| it.to_owned()).collect(),
            filter: (!whole).then(|| format!("test({name})")),
        }));
    }

    fn add_python(&mut self, name: &str, tests: &[(String, String)]) {
        if name == "bh-bridge-numpy" {
            self.python.push("bh-bridge-numpy/tests".into());
            return;
        }
        let files: BTreeSet<&String> =
            tests.iter().map(|(file, _)| file).filter(|file| stem(file).contains(name)).collect();
        self.python.extend(files.iter().map(|file| (*file).clone()));
        let others = tests.iter().filter(|(file, test)| !files.contains(file) && test.contains(name));
        self.python.extend(others.map(|(file, test)| format!("{file}::{test}")));
    }
}

/// The crates and the files of Python's that have tests, by the names that choose them.
#[cfg(test)]
pub fn owners() -> Outcome<BTreeSet<String>> {
    let crates = rust_tests()?.into_iter().map(|test| test.package);
    let files = python_tests()?.into_iter().map(|(file, _)| stem(&file).to_owned());
    Ok(crates.chain(files).collect())
}

fn stem(file: &str) -> &str {
    Path::new(file).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()
}

/// The test functions of all crates, by the attribute before them.
fn rust_tests() -> Outcome<Vec<Test>> {
    let mut tests = Vec::new();
    for file in files("*.rs")? {
        let Ok(text) = std::fs::read_to_string(root().join(&file)) else { continue };
        if !text.contains("#[test]") {
            continue;
        }
        let Some((package, folder)) = package_of(&file) else { continue };
        let Some((target, module)) = target_of(file.strip_prefix(&folder).unwrap_or_default()) else { continue };
        tests.extend(functions(&text).into_iter().map(|function| Test {
            package: package.clone(),
            target,
            name: if module.is_empty() { function } else { format!("{module}::{function}") },
        }));
    }
    Ok(tests)
}

/// The crate that a file belongs to, and its folder with a slash.
fn package_of(file: &str) -> Option<(String, String)> {
    let folder = Path::new(file).ancestors().skip(1).find(|folder| root().join(folder).join("Cargo.toml").is_file())?;
    let manifest = std::fs::read_to_string(root().join(folder).join("Cargo.toml")).ok()?;
    let name = manifest.lines().find_map(|line| line.strip_prefix("name = \""))?.strip_suffix('"')?.to_owned();
    Some((name, format!("{}/", folder.display())))
}

/// The program that has the tests of a file, by its path in the crate, and the file's module in it.
fn target_of(path: &str) -> Option<(Target, String)> {
    let (target, rest) = match path.strip_prefix("src/") {
        Some("main.rs") => return Some((Target::Bins, String::new())),
        Some("lib.rs") => return Some((Target::Lib, String::new())),
        Some(rest) => (Target::Lib, rest),
        None => (Target::All, path.strip_prefix("tests/")?),
    };
    let rest = rest.strip_prefix("all/").unwrap_or(rest).strip_suffix(".rs")?;
    let module = rest.strip_suffix("/mod").unwrap_or(rest).replace('/', "::");
    Some((target, if module == "main" { String::new() } else { module }))
}

/// The names of the functions after `#[test]`.
fn functions(text: &str) -> Vec<String> {
    let named = |rest: &str| {
        let line = rest.lines().map(str::trim).find(|line| line.starts_with("fn "))?;
        Some(line["fn ".len()..].split(['(', '<']).next()?.to_owned())
    };
    text.split("#[test]").skip(1).filter_map(named).collect()
}

/// The files of Python's tests, each with the name of every test function in it.
fn python_tests() -> Outcome<Vec<(String, String)>> {
    let mut tests = Vec::new();
    for file in files("bh-bridge-numpy/tests/test_*.py")? {
        let text = std::fs::read_to_string(root().join(&file))?;
        let names = text.lines().filter_map(|line| line.strip_prefix("def test_"));
        tests.extend(names.filter_map(|rest| Some((file.clone(), format!("test_{}", rest.split_once('(')?.0)))));
    }
    Ok(tests)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_stands_for_all_of_its_tests() {
        let choice = Choice::named(&["bh-kernel"]).unwrap();
        assert_eq!(choice.rust.len(), 1);
        assert_eq!((choice.rust[0].package.as_str(), &choice.rust[0].filter), ("bh-kernel", &None));
        assert!(choice.python.is_empty() && !choice.needs_libraries());
    }

    #[test]
    fn a_module_of_tests_is_one_crate_and_one_filter() {
        let choice = Choice::named(&["grids::"]).unwrap();
        let run = choice.rust.iter().find(|run| run.package == "bh-vem-cluster").unwrap();
        assert_eq!((&run.targets[..], run.filter.as_deref()), (&["--tests".to_owned()][..], Some("test(grids::)")));
        assert!(choice.needs_libraries());
    }

    #[test]
    fn a_file_of_python_is_run_as_a_whole_and_a_function_by_itself() {
        let choice = Choice::named(&["test_jit"]).unwrap();
        assert!(choice.python.contains(&"bh-bridge-numpy/tests/test_jit.py".to_owned()), "{:?}", choice.python);
        let choice = Choice::named(&["a_file_of_python_is_run_as_a_whole"]).unwrap();
        assert!(choice.python.is_empty());
    }

    #[test]
    fn a_name_without_a_test_is_an_error() {
        let missing = ["no_such", "_test_anywhere"].concat();
        assert!(Choice::named(&[&missing]).unwrap_err().0.contains(&missing));
    }

    #[test]
    fn tests_that_are_started_first_are_there() {
        let text = std::fs::read_to_string(root().join(".config/nextest.toml")).unwrap();
        let names: Vec<String> = rust_tests().unwrap().into_iter().map(|test| test.name).collect();
        let first: Vec<&str> = text.split("test(=").skip(1).filter_map(|rest| rest.split(')').next()).collect();
        assert!(first.len() > 5);
        for test in first {
            assert!(names.iter().any(|name| name == test), "{test}");
        }
    }

    #[test]
    fn the_quick_suite_names_a_test_that_is_there() {
        let names: Vec<String> = rust_tests().unwrap().into_iter().map(|test| test.name).collect();
        let quick = Choice::quick(super::super::CORE).unwrap();
        let filter = quick.rust.last().unwrap().filter.clone().unwrap();
        let test = filter.trim_start_matches("test(=").trim_end_matches(')').to_owned();
        assert!(names.contains(&test), "{test}");
        for file in &quick.python {
            assert!(root().join(file).is_file(), "{file}");
        }
    }
}
