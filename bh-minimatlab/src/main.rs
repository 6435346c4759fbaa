//! The program `minimatlab`: runs a file, or reads lines at a prompt.

use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;

/// Runs a MiniMatlab program, or reads one from a prompt
#[derive(Parser)]
#[command(name = "minimatlab", version)]
struct Arguments {
    /// The program; without it, a prompt
    file: Option<PathBuf>,
    /// The stack; by default the configured one
    #[arg(long)]
    stack: Option<String>,
}

fn main() -> ExitCode {
    // End like other commands when the reader of the output ends, instead of failing to print. SAFETY: the system's own
    // handler, set before any thread is started.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    let Arguments { file, stack } = Arguments::parse();
    let outcome = match file {
        Some(file) => bh_minimatlab::run_file(&file, stack.as_deref()),
        None => bh_minimatlab::prompt(stack.as_deref()),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("minimatlab: {error}");
            ExitCode::FAILURE
        }
    }
}
