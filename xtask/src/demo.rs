//! `cargo xtask demo`: the main job, from source to a picture and a table.

use crate::command::{Failure, Outcome, option, output, root, run as execute, target};
use crate::{install, packages, picture};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the demonstration runs on: the cores, with the kernel compiler if LLVM is there.
const COMPONENTS: &[&str] = &["bh-filter", "bh-fuser", "bh-vem-node", "bh-ve-cpu"];

/// Benchmark programs of the table, with their sizes and iterations.
const PROGRAMS: &[(&str, &str, &str)] =
    &[("heat_equation", "2000", "50"), ("black_scholes", "1000000", "5"), ("shallow_water", "1000", "20")];

/// Builds, installs into a prefix, compiles the heat example with nothing but `cc` and pkg-config, runs it, and compares
/// programs with plain C and NumPy.
pub fn run(arguments: &[String]) -> Outcome {
    let size = option(arguments, "--size")?.unwrap_or("2000");
    let iterations = option(arguments, "--iterations")?.unwrap_or("200");
    packages::ensure(&[("cc", "gcc"), ("c++", "g++"), ("pkg-config", "pkg-config")])?;
    packages::ensure_llvm();
    step(1, "building the recorder, the fuser, the CPU engine and the kernel compiler: a few minutes");
    let prefix = target().join("demo-prefix");
    let compiler = packages::has_llvm().then_some(packages::COMPILER);
    let libraries: Vec<&str> = COMPONENTS.iter().copied().chain(compiler).collect();
    install::place(&install::build("release", &libraries)?, &prefix, &libraries)?;
    step(2, "examples/heat.c, compiled with cc and pkg-config");
    let png = heat(&prefix, size, iterations)?;
    step(3, "programs of the benchmarks beside plain C on all cores, and NumPy where Python has it");
    let rows = PROGRAMS.iter().map(|program| beside(&prefix, *program)).collect::<Outcome<Vec<String>>>()?;
    println!("\n{:<16}{:>10}{:>10}{:>10}   bh is", "seconds", "bh", "C", "NumPy");
    println!("{}", rows.join("\n"));
    println!("\ntemperature field: {}", png.display());
    Ok(())
}

fn step(number: usize, text: &str) {
    eprintln!("\n[{number}/3] {text}");
}

/// Runs the heat example and draws the field.
fn heat(prefix: &Path, size: &str, iterations: &str) -> Outcome<PathBuf> {
    let program = target().join("heat");
    compile(prefix, &root().join("examples/heat.c"), &program)?;
    let field = target().join("heat.f64");
    execute(Command::new(&program).arg(size).arg(iterations).arg(&field))?;
    let bytes = std::fs::read(&field)?;
    let values: Vec<f64> =
        bytes.chunks_exact(8).map(|chunk| f64::from_ne_bytes(chunk.try_into().unwrap_or_default())).collect();
    let side = (values.len() as f64).sqrt() as usize;
    let png = target().join("heat.png");
    picture::write_png(&png, &values, side, side)?;
    Ok(png)
}

/// A row of the table: one program on bh, in C and on NumPy, each once to get warm and then measured.
fn beside(prefix: &Path, (name, size, iterations): (&str, &str, &str)) -> Outcome<String> {
    let folder = root().join("benches").join(name);
    let arguments = [size, iterations, "f64", "--warm"];
    let own = target().join(format!("{name}-bh"));
    let mut compiler = Command::new("c++");
    compiler.args(["-std=c++17", "-O2", "-o"]).arg(&own).arg(folder.join("bh.cpp"));
    link(&mut compiler, prefix)?;
    let own = seconds(Command::new(&own).args(arguments))?;
    let twin = target().join(format!("{name}-twin"));
    let mut compiler = Command::new("cc");
    compiler.args(["-std=gnu11", "-O3", "-march=native", "-ffast-math", "-fopenmp", "-o"]).arg(&twin);
    execute(compiler.arg(folder.join("twin.c")).arg("-lm"))?;
    let twin = seconds(Command::new(&twin).args(arguments))?;
    let numpy = has_numpy();
    let numpy = numpy.then(|| seconds(Command::new("python3").arg(folder.join("numpy_version.py")).args(arguments)));
    let numpy = numpy.transpose()?;
    let times = |other: f64| format!("{:.1} times as fast as", other / own);
    let verdict = match numpy {
        Some(numpy) => format!("{} NumPy, {} C", times(numpy), times(twin)),
        None => format!("{} C", times(twin)),
    };
    let numpy = numpy.map_or_else(|| "-".into(), |numpy| format!("{numpy:.3}"));
    Ok(format!("{name:<16}{own:>10.3}{twin:>10.3}{numpy:>10}   {verdict}"))
}

fn has_numpy() -> bool {
    Command::new("python3").args(["-c", "import numpy"]).output().is_ok_and(|output| output.status.success())
}

/// The seconds that a benchmark program reports.
fn seconds(program: &mut Command) -> Outcome<f64> {
    let text = output(program)?;
    let report = serde_json::from_str::<serde_json::Value>(text.trim());
    let seconds = report.ok().and_then(|report| report["seconds"].as_f64());
    seconds.ok_or_else(|| Failure(format!("a benchmark program reports no seconds: {text}")))
}

/// Compiles one C file against an installed prefix.
pub fn compile(prefix: &Path, source: &Path, program: &Path) -> Outcome {
    let mut command = Command::new("cc");
    command.args(["-std=c99", "-Wall", "-Wextra", "-O2", "-o"]).arg(program).arg(source);
    link(&mut command, prefix)
}

/// Adds what pkg-config says to a compiler's command line, and runs it.
fn link(compiler: &mut Command, prefix: &Path) -> Outcome {
    let flags = output(
        Command::new("pkg-config")
            .args(["--cflags", "--libs", "bh"])
            .env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")),
    )?;
    compiler.args(flags.split_whitespace());
    execute(compiler.arg(format!("-Wl,-rpath,{}", prefix.join("lib").display())).arg("-lm"))
}
