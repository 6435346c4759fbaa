//! `cargo xtask demo`: the main job, from source to a picture.

use crate::command::{Failure, Outcome, option, output, root, run as execute, target};
use crate::{install, packages, picture};
use std::path::Path;
use std::process::Command;

/// Builds, installs into a prefix, compiles the heat example with nothing but `cc` and pkg-config, and runs it.
pub fn run(arguments: &[String]) -> Outcome {
    let size = option(arguments, "--size")?.unwrap_or("2000");
    let iterations = option(arguments, "--iterations")?.unwrap_or("200");
    packages::ensure(&[("cc", "gcc"), ("pkg-config", "pkg-config")])?;
    let prefix = target().join("prefix");
    install::install(&prefix, "release")?;
    let program = target().join("heat");
    compile(&prefix, &root().join("examples/heat.c"), &program)?;
    let field = target().join("heat.f64");
    execute(Command::new(&program).arg(size).arg(iterations).arg(&field))?;
    let bytes = std::fs::read(&field)?;
    let values: Vec<f64> =
        bytes.chunks_exact(8).map(|chunk| f64::from_ne_bytes(chunk.try_into().unwrap_or_default())).collect();
    let side = (values.len() as f64).sqrt() as usize;
    let png = target().join("heat.png");
    picture::write_png(&png, &values, side, side)?;
    println!("temperature field: {}", png.display());
    Ok(())
}

/// Compiles one C file against an installed prefix.
pub fn compile(prefix: &Path, source: &Path, program: &Path) -> Outcome {
    let flags = output(
        Command::new("pkg-config")
            .args(["--cflags", "--libs", "bh"])
            .env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")),
    )?;
    let library = prefix.join("lib");
    let mut command = Command::new("cc");
    command.args(["-std=c99", "-Wall", "-Wextra", "-O2", "-o"]).arg(program).arg(source);
    command.args(flags.split_whitespace()).arg(format!("-Wl,-rpath,{}", library.display())).arg("-lm");
    execute(&mut command).map_err(|failure| Failure(format!("{}: {failure}", source.display())))
}
