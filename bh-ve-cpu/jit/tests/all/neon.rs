//! Checks the AArch64 kernels of well-known programs on any machine: LLVM's own program makes the assembly language
//! of their text.

#[path = "../../examples/bodies/mod.rs"]
#[expect(dead_code, reason = "the other bodies are for people")]
mod bodies;

use bh_jit_abi::Level;
use bodies::Body;
use std::io::Write;
use std::process::{Command, Stdio};

/// LLVM's code generator for every machine, of Debian's package that `llvm-19-dev` needs.
const GENERATOR: &str = "llc-19";

/// The assembly language of a kernel for NEON, with the settings of the compiler. `None` without LLVM's program.
fn assembly(mut body: Body) -> Option<String> {
    body.0.level = Level::Neon;
    let text = bh_ve_cpu_jit::text(&body.0).unwrap();
    let mut command = Command::new(GENERATOR);
    command.args(["-O1", "-mtriple=aarch64-unknown-linux-gnu", "-relocation-model=pic", "-o", "-"]);
    let Ok(mut generator) = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() else {
        eprintln!("{GENERATOR} is not there: nothing is compared");
        return None;
    };
    generator.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = generator.wait_with_output().unwrap();
    assert!(output.status.success());
    Some(String::from_utf8(output.stdout).unwrap())
}

/// Instructions of floats on one number, rather than on vectors.
fn is_scalar(line: &str) -> bool {
    let operations = ["fadd\td", "fsub\td", "fmul\td", "fdiv\td", "fsqrt\td", "fmadd\td", "fmsub\td"];
    operations.iter().any(|operation| line.starts_with(operation))
}

/// Checks that the pieces of the code that compute in vectors compute in nothing else, that the named instructions are among
/// these, and that no library is called.
fn is_vectors(name: &str, body: Body, instructions: &[&str]) {
    let Some(assembly) = assembly(body) else { return };
    let lines: Vec<&str> = assembly.lines().map(str::trim).collect();
    let pieces = lines.split(|line| line.starts_with(".LBB"));
    let in_vectors: Vec<&[&str]> = pieces.filter(|piece| piece.iter().any(|line| line.contains(".2d"))).collect();
    for instruction in instructions {
        let count =
            in_vectors.iter().flat_map(|piece| piece.iter()).filter(|line| line.starts_with(instruction)).count();
        assert!(count > 0, "{name} has no {instruction}: {assembly}");
    }
    let scalar = in_vectors.iter().flat_map(|piece| piece.iter()).find(|line| is_scalar(line));
    assert_eq!(scalar, None, "{name}: {assembly}");
    assert!(!lines.iter().any(|line| line.starts_with("bl\t")), "{name}: {assembly}");
}

#[test]
fn programs_are_vectors() {
    is_vectors("heat", bodies::stencil(), &["fadd\tv", "fmul\tv", "fabd\tv"]);
    is_vectors("N-body", bodies::gravity(), &["fsub\tv", "fmul\tv", "fsqrt\tv", "fdiv\tv", "fadd\tv"]);
    is_vectors("Black-Scholes", bodies::prices(), &["fmla\tv", "fdiv\tv", "fsqrt\tv", "fcmgt\tv"]);
}
