//! Compares the algorithms: `partition_costs [--paper|--all-renames] PATH…` prints, for each file or folder of dumps,
//! the cost (bytes of distinct views), the kernels, and the microseconds that partitioning took, as JSON.
//!
//! With `--paper` only the rules of the original publication hold: no renames, and reductions alone. With `--all-renames`
//! a rename may copy any part of what its kernel writes, which matters for tiny arrays.

use bh_bytecode::{Batch, dump, text};
use bh_fuser::options::ALGORITHMS;
use bh_fuser::{Algorithm, Legality, Options, Partitioner, cost, price};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// Partitioning is timed this often, and the least time counts.
const RUNS: usize = 5;

type Failure = Box<dyn std::error::Error>;

#[derive(Default)]
struct Sum {
    cost: i64,
    kernels: usize,
    microseconds: f64,
    in_budget: bool,
}

/// The batch of a dump, or of a file in text form, without a partition.
fn read(path: &Path) -> Result<Batch, Failure> {
    let bytes = std::fs::read(path)?;
    let mut batch = match std::str::from_utf8(&bytes) {
        Ok(words) if words.starts_with("bh batch") => text::parse(words).map_err(|error| error.to_string())?,
        _ => dump::read(&bytes)?.batch,
    };
    batch.blocks.clear();
    batch.block_instrs.clear();
    batch.contracted.clear();
    batch.renames.clear();
    batch.rename_views.clear();
    Ok(batch)
}

/// The files of a folder in order, or the file itself.
fn files(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = std::fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, Failure>>()?;
    files.sort();
    Ok(files)
}

/// The sums over some batches.
fn measure(batches: &[Batch], options: &Options) -> Result<Sum, Failure> {
    let mut sum = Sum { in_budget: true, ..Sum::default() };
    for batch in batches {
        let reference = batch.as_ref();
        let runs = if options.algorithm == Algorithm::Optimal { 1 } else { RUNS };
        let mut least = f64::MAX;
        let (mut found, mut complete) = (None, true);
        for _ in 0..runs {
            let mut partitioner = Partitioner::default();
            let begin = Instant::now();
            found = Some(partitioner.partition(&reference, options));
            least = least.min(begin.elapsed().as_secs_f64() * 1e6);
            complete &= partitioner.was_complete();
        }
        let Some(partition) = found else { continue };
        let whole = partition.apply(&reference);
        bh_bytecode::validate::partition(&whole)?;
        let price = price(&whole, options);
        sum.cost += price.total();
        sum.kernels += price.unfused.iter().filter(|&&unfused| unfused > 0).count();
        sum.microseconds += least;
        sum.in_budget &= complete;
    }
    Ok(sum)
}

fn run() -> Result<(), Failure> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let paper = arguments.iter().any(|word| word == "--paper");
    let all_renames = arguments.iter().any(|word| word == "--all-renames");
    arguments.retain(|word| word != "--paper" && word != "--all-renames");
    let mut programs = Vec::new();
    for path in &arguments {
        let batches = files(Path::new(path))?.iter().map(|file| read(file)).collect::<Result<Vec<_>, _>>()?;
        let mut fields = Vec::new();
        for &(name, algorithm) in ALGORITHMS {
            let (legality, renames) = if paper { (Legality::Paper, false) } else { (Legality::Full, true) };
            let mut options = Options { algorithm, cost: &cost::UNIQUE_VIEWS, legality, renames, ..Options::default() };
            if all_renames {
                options.rename_percent = 100;
            }
            let Sum { cost, kernels, microseconds, in_budget } = measure(&batches, &options)?;
            fields.push(format!(
                "\"{name}\":{{\"cost\":{cost},\"kernels\":{kernels},\"us\":{microseconds:.1},\"in_budget\":{in_budget}}}"
            ));
        }
        programs.push(format!("{path:?}:{{{}}}", fields.join(",")));
    }
    println!("{{{}}}", programs.join(",\n"));
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("partition_costs: {error}");
            ExitCode::FAILURE
        }
    }
}
