//! The `bh` command: inspects installations and configurations, replays and draws dumped batches, profiles programs.

mod batch_file;
mod check;
mod info;
mod replay;
mod run;

use bh_core::Result;
use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "bh", version, about = "Inspect, check, replay and profile lazy array programs")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Stacks, components, versions, cache paths and processor features
    Info {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Reads a configuration, loads every stack it names, and reports what is wrong
    CheckConfig {
        /// The configuration file
        file: PathBuf,
    },
    /// Runs a dumped batch and prints what it computes
    Replay {
        /// A file written through BH_DUMP, or a batch in text form
        file: PathBuf,
        /// The stack; by default the configured one
        #[arg(long)]
        stack: Option<String>,
        /// Print the batch's text form only
        #[arg(long)]
        text: bool,
        /// How many elements of each array to print
        #[arg(long, default_value_t = 8)]
        elements: usize,
    },
    /// Runs a program, and shows where its time went
    Run {
        /// Print a table of times, kernels, bytes, cache hits and allocations
        #[arg(long)]
        profile: bool,
        /// Write a trace for chrome://tracing or Perfetto
        #[arg(long)]
        trace: Option<PathBuf>,
        /// The stack
        #[arg(long)]
        stack: Option<String>,
        /// The program with its arguments
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
}

fn main() -> ExitCode {
    let outcome: Result<ExitCode> = match Arguments::parse().command {
        Command::Info { json } => info::run(json),
        Command::CheckConfig { file } => check::config(&file),
        Command::Replay { file, stack, text, elements } => replay::run(&file, stack.as_deref(), text, elements),
        Command::Run { profile, trace, stack, command } => run::run(profile, trace, stack, &command),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("bh: {error}");
        ExitCode::FAILURE
    })
}
