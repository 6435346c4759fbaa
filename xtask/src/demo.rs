//! `cargo xtask demo`: the main job, from source to a picture and a table.

use crate::command::{Failure, Outcome, option, output, root, run as execute, target};
use crate::{artifacts, install, packages, picture};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The components of the demonstration: the cores, with the kernel compiler if LLVM is there.
const COMPONENTS: &[&str] = &["bh-filter", "bh-fuser", "bh-vem-node", "bh-ve-cpu"];

/// Benchmark programs of the table, with their sizes and iterations: about half a second of bh's work each on two cores, so
/// that it is not the compiler's time in the background that is measured.
const PROGRAMS: &[(&str, &str, &str)] =
    &[("heat_equation", "2000", "150"), ("black_scholes", "2000000", "25"), ("shallow_water", "1000", "120")];

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
    // The program `bh` is not run here; with it come a command line, MiniMatlab and what checks engines.
    let crates = [&["bh-bridge-c"], &libraries[..]].concat();
    install::place_libraries(&artifacts::build_crates("release", &crates)?, &prefix, &libraries)?;
    step(2, "examples/heat.c, compiled with cc and pkg-config");
    let png = heat(&prefix, size, iterations)?;
    step(3, "programs of the benchmarks beside plain C on all cores and NumPy: half a minute");
    let numpy = numpy();
    let kernels = target().join("demo-kernels");
    // Kernels that an earlier demonstration compiled would make the first run a later one.
    let _ = std::fs::remove_dir_all(&kernels);
    let beside = Beside { prefix: &prefix, kernels: &kernels, numpy: numpy.as_deref() };
    let rows = PROGRAMS.iter().map(|program| beside.row(*program)).collect::<Outcome<Vec<String>>>()?;
    println!("\n{:<16}{:>10}{:>10}{:>10}{:>10}   from then on bh is", "seconds", "bh, first", "then", "C", "NumPy");
    println!("{}", rows.join("\n"));
    println!("\ntemperature field: {}", png.display());
    let heat = target().join("heat");
    println!("\ncargo xtask install --prefix ~/bh brings the rest, and the program bh:");
    println!("  what fused:       ~/bh/bin/bh explain -- {}", heat.display());
    println!("  where time went:  ~/bh/bin/bh run --report page.html -- {}", heat.display());
    Ok(())
}

/// A Python with NumPy, if one can be had.
fn numpy() -> Option<PathBuf> {
    let python = packages::python_with_numpy();
    if let Err(reason) = &python {
        eprintln!("xtask: without NumPy its column stays empty: {reason}");
    }
    python.ok()
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

/// The values that the rows of the table have in common.
struct Beside<'a> {
    prefix: &'a Path,
    /// Where bh keeps compiled kernels.
    kernels: &'a Path,
    /// A Python with NumPy.
    numpy: Option<&'a Path>,
}

impl Beside<'_> {
    /// A row: bh in a process that has no compiled kernels yet, bh and C after a run that is not measured, and NumPy, which has
    /// nothing to prepare.
    fn row(&self, (name, size, iterations): (&str, &str, &str)) -> Outcome<String> {
        let folder = root().join("benches").join(name);
        let arguments = [size, iterations, "f64"];
        let own = target().join(format!("{name}-bh"));
        let mut compiler = Command::new("c++");
        compiler.args(["-std=c++17", "-O2", "-o"]).arg(&own).arg(folder.join("bh.cpp"));
        link(&mut compiler, self.prefix)?;
        let own = || {
            let mut program = Command::new(&own);
            program.args(arguments).env("BH_VE_CPU_JIT_CACHE_DIR", self.kernels);
            program
        };
        let first = seconds(&mut own())?;
        let then = seconds(own().arg("--warm"))?;
        let twin = target().join(format!("{name}-twin"));
        let mut compiler = Command::new("cc");
        compiler.args(["-std=gnu11", "-O3", "-march=native", "-ffast-math", "-fopenmp", "-o"]).arg(&twin);
        execute(compiler.arg(folder.join("twin.c")).arg("-lm"))?;
        let twin = seconds(Command::new(&twin).args(arguments).arg("--warm"))?;
        let numpy =
            self.numpy.map(|python| seconds(Command::new(python).arg(folder.join("numpy_version.py")).args(arguments)));
        let numpy = numpy.transpose()?;
        let times = |other: f64| format!("{:.1} times as fast as", other / then);
        let verdict = match numpy {
            Some(numpy) => format!("{} NumPy, {} C", times(numpy), times(twin)),
            None => format!("{} C", times(twin)),
        };
        let numpy = numpy.map_or_else(|| "-".into(), |numpy| format!("{numpy:.3}"));
        Ok(format!("{name:<16}{first:>10.3}{then:>10.3}{twin:>10.3}{numpy:>10}   {verdict}"))
    }
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
