//! The `bh` command: inspects installations and configurations, replays and draws dumped batches, profiles programs.

mod batch_file;
mod check;
mod compared;
mod engine;
mod graph;
mod info;
mod keys;
mod progress;
mod ranks;
mod replay;
mod run;
mod serve;
mod tune;

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
        /// The keys of the configuration instead: what counts for each, and where it was set
        #[arg(long)]
        keys: bool,
    },
    /// Reads a configuration, loads every stack it names, and reports what is wrong
    CheckConfig {
        /// The configuration file
        file: PathBuf,
    },
    /// Runs the conformance suite, and checks of conduct, on an engine's shared library
    CheckEngine {
        /// The library
        library: PathBuf,
        /// Only the case of this name; may be given several times
        #[arg(long = "case")]
        cases: Vec<String>,
        /// Seconds that a case may take
        #[arg(long, default_value_t = 600)]
        limit: u64,
        /// Runs one case in this process and writes what it finds here
        #[arg(long, hide = true)]
        report: Option<PathBuf>,
    },
    /// Draws the kernel partition of a dumped batch, or of the largest batch of a program
    Graph {
        /// A file written through BH_DUMP, or a batch in text form
        file: Option<PathBuf>,
        /// singleton, naive, greedy, unintrusive or optimal
        #[arg(long)]
        algorithm: Option<String>,
        /// Ask the engines of this stack what they make of each kernel; by default that of BH_STACK
        #[arg(long)]
        stack: Option<String>,
        /// Write Graphviz dot here
        #[arg(long)]
        dot: Option<PathBuf>,
        /// Write an SVG picture here
        #[arg(long)]
        svg: Option<PathBuf>,
        /// A program with its arguments
        #[arg(last = true)]
        command: Vec<OsString>,
    },
    /// Says why neighbouring operations of a batch are in different kernels
    Explain {
        /// A file written through BH_DUMP, or a batch in text form
        file: Option<PathBuf>,
        /// singleton, naive, greedy, unintrusive or optimal
        #[arg(long)]
        algorithm: Option<String>,
        /// Ask the engines of this stack what they make of each kernel; by default that of BH_STACK
        #[arg(long)]
        stack: Option<String>,
        /// A program with its arguments
        #[arg(last = true)]
        command: Vec<OsString>,
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
    /// Runs a program, and its batches again as configured and by the interpreter; names the first line whose array differs
    Check {
        /// The stack; by default the configured one
        #[arg(long)]
        stack: Option<String>,
        /// The program with its arguments
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
    /// Measures the engines of a stack that share arrays, and computes the share of each
    Tune {
        /// The stack; by default the configured one
        #[arg(long)]
        stack: Option<String>,
        /// Write the shares to this file, which the key weights of cluster can name
        #[arg(long)]
        write: Option<PathBuf>,
    },
    /// Serves the program that rank 0 runs, as the other ranks of a cluster: mpirun -n 1 ./app : -n 3 bh serve
    Serve {
        /// The stack, of which the cluster manager is a part; by default the configured one
        #[arg(long)]
        stack: Option<String>,
    },
    /// Runs a program, and shows where its time went
    Run {
        /// Print a table of times, kernels, bytes, cache hits and allocations
        #[arg(long)]
        profile: bool,
        /// Write a trace for chrome://tracing or Perfetto
        #[arg(long)]
        trace: Option<PathBuf>,
        /// Write a page of HTML that shows kernels, fusion, memory and transfers over time
        #[arg(long, conflicts_with = "trace")]
        report: Option<PathBuf>,
        /// Serve that page on this machine while the program runs, at an address that is printed
        #[arg(long, conflicts_with = "trace")]
        live: bool,
        /// The stack
        #[arg(long)]
        stack: Option<String>,
        /// The program with its arguments
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
}

fn source<'a>(file: &'a Option<PathBuf>, command: &'a [OsString]) -> graph::Source<'a> {
    file.as_deref().map_or(graph::Source::Program(command), graph::Source::File)
}

fn main() -> ExitCode {
    // End like other commands when the reader of the output ends, instead of failing to print. SAFETY: the system's own
    // handler, set before any thread is started.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    let outcome: Result<ExitCode> = match Arguments::parse().command {
        Command::Info { json, keys: true } => keys::run(json),
        Command::Info { json, keys: false } => info::run(json),
        Command::CheckConfig { file } => check::config(&file),
        Command::CheckEngine { library, cases, limit, report } => match (report, cases.as_slice()) {
            (Some(report), [case]) => engine::run_case(&library, case, &report),
            _ => engine::check(&library, &cases, limit),
        },
        Command::Graph { file, algorithm, stack, dot, svg, command } => {
            graph::draw(&source(&file, &command), (algorithm.as_deref(), stack.as_deref()), dot, svg)
        }
        Command::Explain { file, algorithm, stack, command } => {
            graph::explain(&source(&file, &command), algorithm.as_deref(), stack.as_deref())
        }
        Command::Replay { file, stack, text, elements } => replay::run(&file, stack.as_deref(), text, elements),
        Command::Check { stack, command } => compared::run(stack.as_deref(), &command),
        Command::Tune { stack, write } => tune::run(stack.as_deref(), write.as_deref()),
        Command::Serve { stack } => serve::run(stack.as_deref()),
        Command::Run { profile, trace, report, live, stack, command } => {
            run::run(run::Wanted { profile, trace, report, live, stack }, &command)
        }
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("bh: {error}");
        ExitCode::FAILURE
    })
}
