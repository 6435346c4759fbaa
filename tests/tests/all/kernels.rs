//! The number of kernels per iteration of the benchmark programs on an installed bh: counts, never times.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// Program, form (0 if it has only one), size, and the most kernels of an iteration.
type Row = (&'static str, u32, u32, u32);

/// Iterations of one run. Another run takes twice as many, and the difference counts.
const ITERATIONS: u32 = 24;

/// A grid's step is one kernel that reads and writes it once. A grid that is read before it is copied back needs two.
/// Shallow water: the columns, the rows and the whole grid of a step have different shapes, and its borders a fourth.
/// Grids are large, so that their borders, which a rename copies, are a small part.
const PROGRAMS: [Row; 12] = [
    ("heat_equation", 1, 50, 1),
    ("heat_equation", 2, 50, 1),
    ("heat_equation", 3, 50, 2),
    ("black_scholes", 0, 1000, 1),
    ("leibnitz_pi", 0, 1000, 1),
    ("montecarlo_pi", 0, 1000, 1),
    ("rosenbrock", 0, 1000, 1),
    ("stencil_27_point", 0, 80, 1),
    ("game_of_life", 0, 40, 1),
    ("nbody", 0, 50, 4),
    ("sor", 0, 40, 2),
    ("shallow_water", 0, 40, 4),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The installation under test; `cargo xtask test` names it.
fn prefix() -> PathBuf {
    std::env::var_os("BH_TEST_PREFIX").expect("BH_TEST_PREFIX names an installed bh; try `cargo xtask test`").into()
}

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{text}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn compile(name: &str, directory: &Path) {
    let (source, library) = (root().join("benches").join(name).join("bh.cpp"), prefix().join("lib"));
    let mut command = Command::new("g++");
    command.args(["-std=c++17", "-I"]).arg(prefix().join("include")).arg(source).arg("-o").arg(directory.join(name));
    command.arg("-L").arg(&library).args(["-lbh_bridge_c", "-lm", "-pthread"]);
    output(command.arg(format!("-Wl,-rpath,{}", library.display())));
}

/// The number for a key in a line of a program's output.
fn number(line: &str, key: &str) -> u32 {
    let after = line.split_once(&format!("\"{key}\":")).unwrap_or_else(|| panic!("no '{key}' in {line}")).1;
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or_else(|_| panic!("'{key}' is no number in {line}"))
}

/// Launches of the engine: a window or tiling counts once, regardless of its kernels.
fn launches(program: &Path, arguments: &[&str], iterations: u32) -> i64 {
    let mut command = Command::new(prefix().join("bin/bh"));
    command.args(["run", "--profile", "--"]).arg(program).arg(arguments[0]).arg(iterations.to_string()).arg("f64");
    command
        .args(&arguments[1..])
        .env("BH_FUSER_PLANNING", "full")
        .env("BH_CONFIG", prefix().join("share/bh/config.toml"))
        .env_remove("BH_STACK");
    let run = command.output().unwrap();
    assert!(run.status.success(), "{command:?}: {}", String::from_utf8_lossy(&run.stderr));
    let text = [run.stdout, run.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    // Counters that are 0 are missing.
    let counter = |name: &str| {
        let row = text.lines().find_map(|line| line.strip_prefix(&format!("ve-cpu.{name} ")));
        row.map_or(0, |row| row.trim().parse::<i64>().unwrap_or_else(|_| panic!("'{name}' is no number in {text}")))
    };
    assert!(counter("kernels") > 0, "no kernels in {text}");
    counter("kernels") - counter("kernels in windows") + counter("windows") - counter("kernels in tiles")
        + counter("tilings")
}

/// Half steps have other shapes, and copying a grid back before the next step reads it takes a kernel; results of a row
/// and its extremes, sums and means wait for these. In lock-step they are one launch, which moves the grid once.
#[test]
fn kernels_of_different_shapes_run_in_lock_step() {
    let directory = std::env::temp_dir().join(format!("bh-launches-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    for (name, arguments, most) in [
        ("shallow_water", &["500"][..], 2),
        ("heat_equation", &["1000", "--form", "3"][..], 1),
        ("knn", &["4000"][..], 1),
        ("row_norms", &["400"][..], 1),
    ] {
        compile(name, &directory);
        let program = directory.join(name);
        let count = launches(&program, arguments, 2 * ITERATIONS) - launches(&program, arguments, ITERATIONS);
        let (count, most) = (u32::try_from(count).unwrap(), most * ITERATIONS);
        assert!(0 < count && count <= most, "{name}: {count} launches in {ITERATIONS} iterations, at most {most}");
    }
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn iterations_take_few_kernels() {
    let directory = std::env::temp_dir().join(format!("bh-kernels-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let mut names: Vec<&str> = PROGRAMS.iter().map(|(name, ..)| *name).collect();
    names.dedup();
    let waiting = Mutex::new(names);
    let build = || {
        while let Some(name) = { waiting.lock().unwrap().pop() } {
            compile(name, &directory);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(build);
        build();
    });
    let mut wrong = Vec::new();
    for (name, form, size, most) in PROGRAMS {
        let kernels = |iterations: u32| {
            let mut command = Command::new(directory.join(name));
            command.args([size.to_string(), iterations.to_string(), "f64".into(), "--warm".into()]);
            if form > 0 {
                command.args(["--form".into(), form.to_string()]);
            }
            command.env("BH_CONFIG", prefix().join("share/bh/config.toml")).env_remove("BH_STACK");
            command.env("BH_FUSER_PLANNING", "full").env("BH_RECORDER_IMMEDIATE_BYTES", "0");
            number(&output(&mut command), "kernels")
        };
        let kernels = kernels(2 * ITERATIONS) - kernels(ITERATIONS);
        if kernels > most * ITERATIONS || kernels < ITERATIONS {
            wrong.push(format!("{name}, form {form}: {kernels} kernels in {ITERATIONS} iterations of at most {most}"));
        }
    }
    std::fs::remove_dir_all(directory).unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
