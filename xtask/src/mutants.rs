//! `cargo xtask mutants`: small errors put into the sources, one at a time, and which of them the tests find. All sampled ones
//! are built at once, each asleep behind its number; `xtask/mutants/run.py` wakes them one by one.

use crate::artifacts;
use crate::command::{Failure, Outcome, cargo, option, root, run as execute, target};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The tests of a mutated crate: the library's own, and suites by package and name; the nearest first.
const TESTS: &[(&str, &[(&str, &str)])] = &[
    (
        "bh-filter",
        &[
            ("bh-filter", "bh-filter-own"),
            ("bh-filter", "losses"),
            ("bh-filter", "random_programs"),
            ("bh-tests", "filters"),
            ("bh-tests", "lost"),
            ("bh-tests", "faults"),
            ("bh-tests", "cycles"),
            ("bh-tests", "random"),
        ],
    ),
    (
        "bh-fuser",
        &[
            ("bh-fuser", "bh-fuser-own"),
            ("bh-tests", "fusers"),
            ("bh-tests", "faults"),
            ("bh-tests", "partitions"),
            ("bh-tests", "cycles"),
            ("bh-tests", "loops"),
            ("bh-tests", "predictions"),
            ("bh-tests", "levels"),
            ("bh-tests", "filters"),
            ("bh-tests", "ordinary"),
            ("bh-tests", "lost"),
            ("bh-ve-cpu", "bh-ve-cpu-own"),
            ("bh-ve-cpu", "windows"),
            ("bh-ve-cpu", "plans"),
            ("bh-ve-cpu", "renames"),
            ("bh-tests", "looped"),
        ],
    ),
    (
        "bh-kernel",
        &[
            ("bh-kernel", "bh-kernel-own"),
            ("bh-tests", "fusers"),
            ("bh-tests", "cycles"),
            ("bh-tests", "loops"),
            ("bh-tests", "levels"),
            ("bh-tests", "ordinary"),
            ("bh-ve-cpu", "bh-ve-cpu-own"),
            ("bh-ve-cpu", "windows"),
            ("bh-ve-cpu", "plans"),
            ("bh-ve-cpu", "renames"),
            ("bh-tests", "looped"),
        ],
    ),
    (
        "bh-recorder",
        &[
            ("bh-recorder", "bh-recorder-own"),
            ("bh-tests", "memory"),
            ("bh-tests", "outside"),
            ("bh-tests", "loops"),
            ("bh-tests", "cycles"),
            ("bh-tests", "apart"),
            ("bh-tests", "faults"),
            ("bh-tests", "lost"),
            ("bh-tests", "levels"),
            ("bh-tests", "predictions"),
            ("bh-tests", "looped"),
        ],
    ),
    (
        "bh-ve-cpu",
        &[
            ("bh-ve-cpu", "bh-ve-cpu-own"),
            ("bh-ve-cpu", "engine"),
            ("bh-ve-cpu", "direct"),
            ("bh-ve-cpu", "threads"),
            ("bh-ve-cpu", "renames"),
            ("bh-ve-cpu", "plans"),
            ("bh-ve-cpu", "allocations"),
            ("bh-ve-cpu", "products"),
            ("bh-ve-cpu", "windows"),
            ("bh-ve-cpu", "random_programs"),
            ("bh-tests", "faults"),
            ("bh-tests", "lost"),
            ("bh-tests", "conformance"),
            ("bh-tests", "ordinary"),
            ("bh-tests", "expressions"),
            ("bh-tests", "looped"),
        ],
    ),
    (
        "bh-vem-cluster",
        &[
            ("bh-vem-cluster", "bh-vem-cluster-own"),
            ("bh-vem-cluster", "indices"),
            ("bh-vem-cluster", "programs"),
            ("bh-vem-cluster", "traffic"),
            ("bh-vem-cluster", "launched"),
            ("bh-vem-cluster", "suites"),
            ("bh-tests", "apart"),
            ("bh-tests", "lost"),
        ],
    ),
];

/// How the names of the programs end that have the tests of a library's own.
const OWN: &str = "-own";

/// How often mutants that do not compile may be taken out; each time finds those that earlier errors hid.
const ROUNDS: usize = 12;

/// Where the copy of the workspace and its build lie.
struct Places {
    tree: PathBuf,
    unviable: PathBuf,
    built: PathBuf,
}

/// Mutates, builds, and runs or stages.
pub fn run(arguments: &[String]) -> Outcome {
    let sample = option(arguments, "--sample")?.unwrap_or("200");
    let seed = option(arguments, "--seed")?.unwrap_or("1");
    let place = target().join("mutants");
    let places = Places { tree: place.join("tree"), unviable: place.join("unviable.txt"), built: place.join("build") };
    fs::create_dir_all(&places.tree)?;
    let built = places.build(seed, sample)?;
    let stage = option(arguments, "--stage")?.map_or_else(|| place.join("stage"), PathBuf::from);
    places.stage(&stage, &built)?;
    if option(arguments, "--stage")?.is_some() {
        return Ok(());
    }
    execute(Command::new("python3").arg(stage.join("run.py")).args(["--out"]).arg(&place).current_dir(root()))
}

impl Places {
    /// Writes the copy anew and builds its tests until all its mutants compile; returns what cargo says of the programs.
    fn build(&self, seed: &str, sample: &str) -> Outcome<String> {
        for _ in 0..ROUNDS {
            let mut write = cargo();
            write.args(["run", "--quiet", "--package", "bh-mutants", "--"]).arg(root()).arg(&self.tree);
            execute(write.args([seed, sample]).arg(&self.unviable))?;
            let built = self.tests().stderr(std::process::Stdio::inherit()).output()?;
            let text = String::from_utf8_lossy(&built.stdout).into_owned();
            if built.status.success() {
                return Ok(text);
            }
            let wrong = self.unviable(&text)?;
            let mut known = fs::read_to_string(&self.unviable).unwrap_or_default();
            wrong.iter().for_each(|key| known += &format!("{key}\n"));
            fs::write(&self.unviable, known)?;
            println!("{} mutants do not compile", wrong.len());
        }
        Err(Failure(format!("after {ROUNDS} rounds mutants still do not compile")))
    }

    /// The build of all tests, with the features that a build of all crates has: a copy of `target/checked` at
    /// `target/mutants/build` saves the building of what has no mutants.
    fn tests(&self) -> Command {
        let mut build = cargo();
        build.current_dir(&self.tree).env("CARGO_TARGET_DIR", &self.built);
        build.args(["test", "--no-run", "--profile", "checked", "--message-format=json", "--no-fail-fast", "--quiet"]);
        build.args(["--workspace", "--exclude", "bh-mutants"]);
        let names = TESTS.iter().flat_map(|(_, tests)| tests.iter().map(|(_, name)| *name));
        let own: BTreeSet<&str> = names.filter(|name| name.ends_with(OWN)).chain([artifacts::TESTS]).collect();
        build.args(own.iter().flat_map(|name| ["--test", name]));
        build
    }

    /// The keys of mutants on whose lines the compiler has errors.
    fn unviable(&self, said: &str) -> Outcome<BTreeSet<String>> {
        let errors = messages(said).filter(|message| message["message"]["level"] == "error");
        let numbers: BTreeSet<u64> = errors.flat_map(|message| self.numbers(&message["message"])).collect();
        let keys: BTreeSet<String> = self
            .mutants()?
            .iter()
            .filter(|mutant| mutant["number"].as_u64().is_some_and(|number| numbers.contains(&number)))
            .filter_map(|mutant| mutant["key"].as_str().map(str::to_owned))
            .collect();
        if keys.is_empty() {
            return Err(Failure("the copy does not compile, and no mutant is to blame".to_owned()));
        }
        Ok(keys)
    }

    /// The mutants at the places that an error names, or else those next to them.
    fn numbers(&self, message: &Value) -> BTreeSet<u64> {
        let mut numbers = BTreeSet::new();
        let spans = message["spans"].as_array().map_or(&[][..], Vec::as_slice);
        for span in spans.iter().filter(|span| span["is_primary"] == true) {
            let Some(text) = span["file_name"].as_str().and_then(|file| fs::read_to_string(self.tree.join(file)).ok())
            else {
                continue;
            };
            let line = |key: &str| span[key].as_u64().unwrap_or(1) as usize;
            let lines: Vec<&str> = text.lines().collect();
            let (first, last) = (line("line_start") - 1, line("line_end").min(lines.len()));
            let named = numbers_in(&lines[first..last].join("\n"));
            if named.is_empty() {
                numbers.extend(numbers_in(&lines[..first].join("\n")).last());
                numbers.extend(numbers_in(&lines[last..].join("\n")).first());
            }
            numbers.extend(named);
        }
        numbers
    }

    fn mutants(&self) -> Outcome<Vec<Value>> {
        let text = fs::read_to_string(self.tree.join("mutants.json"))?;
        serde_json::from_str(&text).map_err(|error| Failure(error.to_string()))
    }

    /// Places the tests with the libraries, what is to be run, and the program that runs it.
    fn stage(&self, stage: &Path, built: &str) -> Outcome {
        let _ = fs::remove_dir_all(stage);
        for folder in ["tests", "lib"] {
            fs::create_dir_all(stage.join(folder))?;
        }
        let mut plan = Vec::new();
        for message in messages(built) {
            let Some((package, target, program)) = artifacts::test_program(&message) else { continue };
            let manifest = Path::new(message["manifest_path"].as_str().unwrap_or_default());
            let folder = manifest.parent().and_then(|folder| folder.strip_prefix(&self.tree).ok());
            let folder = folder.map(|folder| folder.display().to_string());
            let file = format!("{package}-{target}");
            for (crate_name, tests) in TESTS {
                let suite = |name: &str| target == artifacts::TESTS && !name.ends_with(OWN);
                let mine = tests.iter().enumerate().filter(|(_, (of, _))| *of == package);
                for (order, (_, name)) in mine.filter(|(_, (_, name))| *name == target || suite(name)) {
                    artifacts::copy(&program, &stage.join("tests").join(&file))?;
                    let filter = suite(name).then(|| format!("{name}::"));
                    plan.push(json!({
                        "crate": crate_name, "test": format!("{package}-{name}"), "program": file, "filter": filter,
                        "order": order, "folder": folder,
                    }));
                }
            }
        }
        for entry in fs::read_dir(self.built.join("checked/deps"))?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with("libbh_") && name.ends_with(".so") && !name.contains("jit") && !name.contains("numpy") {
                artifacts::copy(&entry.path(), &stage.join("lib").join(name))?;
            }
        }
        artifacts::strip(stage)?;
        let plan = json!({"tree": self.tree, "tests": plan, "mutants": self.mutants()?});
        fs::write(stage.join("plan.json"), plan.to_string())?;
        for name in ["run.py", "unchanged.txt"] {
            fs::copy(root().join("xtask/mutants").join(name), stage.join(name))?;
        }
        println!("staged into {}", stage.display());
        Ok(())
    }
}

/// Cargo's messages, line by line.
fn messages(text: &str) -> impl Iterator<Item = Value> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok())
}

/// The numbers of mutants in a text of the copy, in order.
fn numbers_in(text: &str) -> Vec<u64> {
    let numbers = text.split("crate::bh_mutant(").skip(1);
    numbers.filter_map(|rest| rest.split_once(')').and_then(|(number, _)| number.parse().ok())).collect()
}
