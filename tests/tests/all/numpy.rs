//! NumPy as a second oracle of elementwise operations and reductions.

use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn numpy_agrees_with_the_oracle() {
    let python = std::env::var_os("BH_TEST_PYTHON").map_or_else(|| PathBuf::from("python3"), PathBuf::from);
    let has_numpy = Command::new(&python).args(["-c", "import numpy"]).output();
    assert!(
        has_numpy.is_ok_and(|output| output.status.success()),
        "this test needs NumPy, but '{}' cannot import it; `cargo xtask test` installs it",
        python.display()
    );
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("numpy");
    std::fs::create_dir_all(&directory).unwrap();
    let exported = bh_tests::numpy::export(&directory).unwrap();
    let script = bh_tests::stacks::root().join("tests/numpy/check.py");
    let output = Command::new(&python).arg(script).arg(&directory).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}");
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(exported > 3000, "only {exported} cases were exported");
}
