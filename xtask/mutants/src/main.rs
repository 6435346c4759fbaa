//! Writes a copy of the workspace in which every sampled mutant is there, asleep: `bh-mutants ROOT TREE SEED SAMPLE UNVIABLE`.
//! The environment variable `BH_MUTANT` of a process that uses the copy's code wakes one of them by its number. Keys of
//! mutants that do not compile are lines of the file `UNVIABLE`. The sample is written to `TREE/mutants.json`.

mod embed;
mod find;
mod modules;
mod mutant;
mod text;

use mutant::Mutant;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::process::ExitCode;

/// A crate by its folder, and the folders of its sources that take part; all without any.
const CRATES: &[(&str, &[&str])] = &[
    ("bh-filter", &[]),
    ("bh-fuser", &[]),
    ("bh-kernel", &[]),
    ("bh-recorder", &[]),
    ("bh-ve-cpu", &["src/block", "src/plan", "src/exec"]),
    ("bh-vem-cluster", &[]),
];

type Outcome<T> = Result<T, String>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [root, tree, seed, sample, unviable] => {
            run(Path::new(root), Path::new(tree), seed, sample, Path::new(unviable))
        }
        _ => Err("usage: bh-mutants ROOT TREE SEED SAMPLE UNVIABLE".to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("bh-mutants: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(root: &Path, tree: &Path, seed: &str, sample: &str, unviable: &Path) -> Outcome<()> {
    let sample: usize = sample.parse().map_err(|_| format!("'{sample}' is no number of mutants"))?;
    let mut files = HashMap::new();
    let mut mutants = Vec::new();
    for (name, folders) in CRATES {
        for (path, source) in modules::sources(root, name, folders)? {
            mutants.extend(find::mutants(name, &path, &source)?);
            files.insert(path, source);
        }
    }
    number_equal_keys(&mut mutants);
    let all = mutants.len();
    let out: HashSet<String> =
        std::fs::read_to_string(unviable).unwrap_or_default().lines().map(str::to_owned).collect();
    mutants.retain(|mutant| !out.contains(&mutant.key()));
    // The sample stays the same while other places change.
    mutants.sort_by_cached_key(|mutant| text::hash(&format!("{seed}: {}", mutant.key())));
    mutants.truncate(sample);
    embed::write(root, tree, &files, &mutants, CRATES)?;
    println!("{} of {all} mutants, {} known not to compile", mutants.len(), out.len());
    Ok(())
}

/// Numbers equal changes of one function in their order, to distinguish them.
fn number_equal_keys(mutants: &mut [Mutant]) {
    let mut seen: HashMap<String, u32> = HashMap::new();
    for mutant in mutants {
        let count = seen.entry(mutant.key()).or_default();
        *count += 1;
        if *count > 1 {
            mutant.change = format!("{} (place {count})", mutant.change);
        }
    }
}
