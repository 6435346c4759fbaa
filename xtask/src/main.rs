//! Developer commands: `cargo xtask <command>`. Run without arguments for the list.

mod artifacts;
mod bench;
mod cil;
mod cluster;
mod command;
mod cross;
mod debian;
mod demo;
mod docs;
mod header;
mod install;
mod kit;
mod materials;
mod miri;
mod mutants;
mod older;
mod opencl;
mod packages;
mod phrases;
mod picture;
#[path = "../../bh-cli/src/progress.rs"]
mod progress;
mod python;
mod pythons;
mod soak;
mod stage;
mod table;
mod test;
mod validate;
mod worktree;

use command::Failure;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  demo                         build, run examples/heat.c, draw its picture, and compare programs with C and NumPy
  test [--all] [NAME...]       install what the tests need and run all of them, or those whose crate, file or function has the
                               name; faults at a sample of places, or at all
  quick                        unit tests, the conformance suite on the processor, and the core of Python's tests
  cross-check                  lint all crates for AArch64 Linux, with Debian's cross compiler unpacked into target/cross
  cross-test [CRATE...]        the tests of these crates, of Python's core (python), or of a choice, built for AArch64 Linux and
                               run under qemu; --write puts the counts into docs/tests.md
  worktree DIR                 a further checkout, on a branch of that name, which begins with what is built here
  soak [options]               random programs with fresh seeds on all stacks: --minutes N, --seed S, and --report DIR for what
                               fails (target/soak)
  mutants [options]            small errors put into the sources, and which of them the tests find: --sample N, --seed S;
                               --stage DIR leaves the running to DIR/run.py on another machine
  opencl-suites [NAME...]      suites of the OpenCL engine on implementations for processors: pocl, intel, oclgrind, rusticl
  miri                         unit tests of what works on raw memory under Miri, which needs a nightly toolchain
  validate                     cheapest checks first: format, phrases of the pages, clippy, generated files, then the tests
  build [--profile NAME]       build what is installed (release), and a cluster library for each MPI that is there
  install --prefix DIR         build (release) and install
  wheel [--out DIR]            build the Python package's wheel (into target/wheels); with --target aarch64, that for AArch64 Linux
  docs [--package DIR]         build the documentation site into target/site, its gallery run
  libraries --out DIR          the wheel's libraries (--built DIR: from where they are built already)
  pythons [--package DIR]      tests of the core on each Python that is installed, with each NumPy that has a wheel for it;
                               --write puts the counts into docs/tests.md
  materials [--out FILE]       bill of materials of the wheel's libraries, in CycloneDX's form
  packaging                    check the recipes for conda, Spack and EasyBuild, and the citation
  array-api --suite DIR        run array-api-tests, checked out in DIR, against the Python package
  numpy-suite [SUITE]          run others' tests with bh in NumPy's place: numpy's own, cupy's or scipy's (--only TEXT, --list, --jobs N)
  stage [--profile NAME]       what benches/device.py needs on a machine without cargo, into .stage
  header [--check]             write what is made from tables: headers, .NET declarations, pages, the default configuration;
                               or verify that it is current
  bench overhead [--json FILE] cost of recording, of a tiny round trip, of a repeated batch, of start-up
  bench planning [options]     what planning costs for each operation, by family, stage and length of batches
  bench fusion [options]       costs, kernels and times of the fusion algorithms
  bench statements [options]   single statements against NumPy
  bench loops [options]        loops over rows, columns and elements against NumPy, first runs too
  bench python [NAME...]       recording from Python, and the papers' NumPy sources on NumPy and on bh
  bench fronts [NAME...]       the papers' programs in .NET and MiniMatlab against C++
  bench cluster [options]      ranks of a cluster against one rank, and against threads (see benches/cluster.py)
  bench [NAME...] [options]    benchmark programs against their C twins and NumPy (see benches/README.md)
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rest = arguments.get(1..).unwrap_or_default();
    let outcome = match arguments.first().map(String::as_str) {
        Some("demo") => demo::run(rest),
        Some("docs") => docs::run(rest),
        Some("test") => test::run(rest),
        Some("quick") => test::quick(rest),
        Some("cross-check") => cross::check(rest),
        Some("cross-test") => cross::test(rest),
        Some("worktree") => worktree::run(rest),
        Some("soak") => soak::run(rest),
        Some("mutants") => mutants::run(rest),
        Some("validate") => validate::run(rest),
        Some("build") => cluster::run_build(rest),
        Some("install") => install::run(rest),
        Some("stage") => stage::run(rest),
        Some("wheel") => python::wheel(rest),
        Some("pythons") => pythons::run_pairs(rest),
        Some("materials") => materials::run_bill(rest),
        Some("packaging") => python::packaging(rest),
        Some("libraries") => python::libraries(rest),
        Some("array-api") => python::array_api(rest),
        Some("numpy-suite") => python::numpy_suite(rest),
        Some("opencl-suites") => opencl::run_suites(rest),
        Some("miri") => miri::run(rest),
        Some("header") => header::run(rest),
        Some("bench") => bench::run(rest),
        Some("help" | "--help" | "-h") | None => {
            print!("{USAGE}");
            Ok(())
        }
        Some(other) => Err(Failure(format!("unknown command '{other}'\n\n{USAGE}"))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}
