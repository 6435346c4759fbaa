//! `bh graph` and `bh explain`: the kernel partition of a dumped batch, or of the batches of a program.

use crate::batch_file;
use bh_bytecode::{Batch, base_flags};
use bh_core::abi::{Prediction, capability, status};
use bh_core::{Config, Error, Result, Stack, private};
use bh_fuser::options::{ALGORITHMS, by_name};
use bh_fuser::{Notes, Options, Partitioner, draw, explain};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The source of a batch.
pub enum Source<'a> {
    /// A file.
    File(&'a Path),
    /// A program; its largest batch counts.
    Program(&'a [OsString]),
}

/// Draws the partition of an algorithm as dot, on standard output or to files.
pub fn draw(
    source: &Source<'_>,
    (algorithm, stack): (Option<&str>, Option<&str>),
    dot: Option<PathBuf>,
    svg: Option<PathBuf>,
) -> Result<ExitCode> {
    let (batch, options) = prepare(source, algorithm)?;
    let notes = notes(&batch, stack)?;
    let text = draw::dot(&batch.as_ref(), &options, &notes);
    match (&dot, &svg) {
        (None, None) => print!("{text}"),
        _ => {
            if let Some(file) = dot {
                write(&file, &text)?;
            }
            if let Some(file) = svg {
                write(&file, &draw::svg(&batch.as_ref(), &options, &notes))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Explains why neighbouring operations are in different kernels, and how the engines of a stack run each kernel.
pub fn explain(source: &Source<'_>, algorithm: Option<&str>, stack: Option<&str>) -> Result<ExitCode> {
    let (batch, options) = prepare(source, algorithm)?;
    let asked = notes(&batch, stack)?;
    print!("{}", explain::explain(&batch.as_ref(), &options, &asked));
    if let Some(mut stack) = asked_stack(&batch, stack)? {
        print!("{}", memory(&batch, &mut stack)?);
        let shares = stack.message("cluster shares").unwrap_or_default();
        if !shares.is_empty() {
            println!("{shares}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A line about the batch's memory on a stack that predicts it.
fn memory(batch: &Batch, stack: &mut Stack) -> Result<String> {
    if stack.capabilities().flags & capability::PREDICTS == 0 {
        return Ok(format!("memory: stack {} does not foretell what batches take\n", stack.name()));
    }
    // Arrays that exist before the batch have no memory here, so they count as well.
    let Prediction { peak_bytes, work_bytes, .. } = stack.predict(&batch.as_ref(), &[])?;
    let before = batch.bases.iter().filter(|base| !base.has(base_flags::BORN)).map(|base| base.bytes()).sum::<u64>();
    Ok(format!(
        "memory: at most {peak_bytes} bytes of arrays at a time, {before} of them there before; at most {work_bytes} bytes to work in\n"
    ))
}

/// Notes of the engines of a stack, if an argument or the environment names one.
fn notes(batch: &Batch, stack: Option<&str>) -> Result<Notes> {
    let Some(mut stack) = asked_stack(batch, stack)? else { return Ok(Notes::default()) };
    let directory = private::temporary_directory("bh-explain").map_err(|text| Error::new(status::FILE, text))?;
    let notes = Notes::ask(&batch.as_ref(), &directory.join("batch.bhb"), |text| stack.message(text));
    // Best effort: the files are in the temporary directory.
    let _ = std::fs::remove_dir_all(&directory);
    notes
}

/// The stack that an argument or the environment names, with the methods of a batch.
fn asked_stack(batch: &Batch, stack: Option<&str>) -> Result<Option<Stack>> {
    if stack.is_none() && bh_core::environment::variable("BH_STACK").is_none() {
        return Ok(None);
    }
    let mut stack = Stack::load(&Config::find()?, stack)?;
    for extension in &batch.extensions {
        if let Some(name) = batch.as_ref().extension_name(extension.opcode) {
            stack.extmethod(name, extension.opcode)?;
        }
    }
    Ok(Some(stack))
}

fn prepare(source: &Source<'_>, algorithm: Option<&str>) -> Result<(Batch, Options)> {
    let mut options = Options::default();
    if let Some(name) = algorithm {
        options.algorithm = by_name("algorithm", name, ALGORITHMS)?;
        if options.algorithm == bh_fuser::Algorithm::Optimal {
            options.cost = by_name("cost_model", "unique-views", bh_fuser::cost::MODELS)?;
        }
    }
    let mut batch = match source {
        Source::File(file) => batch_file::read(file)?.batch,
        Source::Program(line) => largest_batch(line)?,
    };
    // Partitioned again with the given options.
    batch.blocks.clear();
    batch.block_instrs.clear();
    batch.contracted.clear();
    batch.renames.clear();
    batch.rename_views.clear();
    let partition = Partitioner::default().partition(&batch.as_ref(), &options);
    Ok((partition.apply(&batch.as_ref()).to_owned(), options))
}

/// Runs a program with its batches dumped, and returns the one with the most instructions.
fn largest_batch(line: &[OsString]) -> Result<Batch> {
    let fail = |text: String| Error::new(status::FILE, text);
    let Some((program, arguments)) = line.split_first() else {
        return Err(Error::new(status::ARGUMENT, "name a file, or a program after --"));
    };
    let directory = private::temporary_directory("bh-graph").map_err(fail)?;
    let ended = Command::new(program).args(arguments).env("BH_DUMP", &directory).status();
    let entries = std::fs::read_dir(&directory).map_err(|error| fail(format!("{}: {error}", directory.display())))?;
    let batches = entries.filter_map(|entry| batch_file::read(&entry.ok()?.path()).ok());
    let largest = batches.map(|dump| dump.batch).max_by_key(|batch| batch.instrs.len());
    // Best effort: the files are in the temporary directory.
    let _ = std::fs::remove_dir_all(&directory);
    ended.map_err(|error| fail(format!("'{}' cannot be started: {error}", program.to_string_lossy())))?;
    largest.ok_or_else(|| fail("the program ran no batch".into()))
}

fn write(file: &Path, text: &str) -> Result<()> {
    std::fs::write(file, text).map_err(|error| Error::new(status::FILE, format!("{}: {error}", file.display())))
}
