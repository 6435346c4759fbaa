//! Runs a program of this folder at a given size, and prints its results to the last bit like the C++ versions: `twin
//! FILE SIZE STEPS`.

use bh_minimatlab::{Fault, Interpreter};
use bh_recorder::Recorder;
use std::path::Path;

/// The variables with results, and their names in the output.
const RESULTS: &[(&str, &[(&str, &str)])] = &[
    ("heat", &[("delta", "delta"), ("grid", "grid")]),
    ("black_scholes", &[("checksum", "checksum"), ("prices", "prices")]),
    (
        "nbody",
        &[
            ("position", "x"),
            ("position", "y"),
            ("position", "z"),
            ("velocity", "u"),
            ("velocity", "v"),
            ("velocity", "w"),
        ],
    ),
    ("shallow_water", &[("height", "h"), ("momentum in x", "u"), ("momentum in y", "v")]),
];

/// A hash (FNV-1a) of the elements' bits.
fn hash(elements: &[f64]) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325;
    elements.iter().fold(start, |hash: u64, one| (hash ^ one.to_bits()).wrapping_mul(0x100_0000_01b3))
}

fn run(file: &Path, size: f64, steps: f64) -> Result<(), Fault> {
    let text = std::fs::read_to_string(file).map_err(|error| Fault::new(format!("{}: {error}", file.display())))?;
    let recorder = Recorder::new();
    recorder.open(None)?;
    let mut interpreter = Interpreter::new(recorder, Box::new(std::io::sink()));
    interpreter.set_number("n", size);
    interpreter.set_number("steps", steps);
    interpreter.run(&file.display().to_string(), &text)?;
    let name = file.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    let Some((_, results)) = RESULTS.iter().find(|(known, _)| *known == name) else {
        return Err(Fault::new(format!("'{name}' has no C++ version")));
    };
    let value =
        |name: &str| interpreter.variable_of(name).unwrap_or_else(|| Err(Fault::new(format!("{name} is not set"))));
    for (shown, name) in *results {
        let elements = value(name)?.elements;
        // Scalars are printed instead of hashed.
        let bits = if matches!(*name, "delta" | "checksum") { elements[0].to_bits() } else { hash(&elements) };
        println!("{shown} {bits:016x}");
    }
    eprintln!("seconds {:.4}", value("seconds")?.elements[0]);
    Ok(())
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let numbers = arguments.iter().skip(2).map(|number| number.parse().ok()).collect::<Option<Vec<f64>>>();
    let (Some(file), Some([size, steps])) = (arguments.get(1), numbers.as_deref()) else {
        eprintln!("twin FILE SIZE STEPS");
        std::process::exit(2);
    };
    if let Err(fault) = run(Path::new(file), *size, *steps) {
        eprintln!("{fault}");
        std::process::exit(1);
    }
}
