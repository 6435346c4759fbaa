//! The stacks under test, from the config files of `config/test/`.

use bh_bytecode::compare::{opencl_tolerance, tolerance};
use bh_bytecode::random::Bounds;
use bh_core::config::Config;
use bh_core::error::Result;
use bh_core::stack::Stack;
use std::path::{Path, PathBuf};

/// The stacks that all suites run on.
pub const STACKS: &[&str] = &["cpu", "cpu-linear", "cpu-plain", "direct", "shadow", "split"];

/// The repository; `BH_TEST_ROOT` names it where the tests were not built.
pub fn root() -> PathBuf {
    if let Some(root) = std::env::var_os("BH_TEST_ROOT") {
        return PathBuf::from(root);
    }
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The directory with the component libraries that were built with the tests: next to the test program.
pub fn libraries() -> PathBuf {
    match std::env::var_os("BH_TEST_LIBRARIES") {
        Some(directory) => PathBuf::from(directory),
        None => bh_core::loader::own_directory().unwrap_or_default(),
    }
}

/// The config of a conformance stack, with the libraries of this build.
pub fn config(stack: &str) -> Result<Config> {
    let file = root().join("config/test").join(format!("{stack}.toml"));
    let text = std::fs::read_to_string(&file).map_err(|error| {
        bh_core::Error::new(bh_core::abi::status::FILE, format!("config '{}' cannot be read: {error}", file.display()))
    })?;
    from_text(&file.display().to_string(), &text)
}

/// A config from a text, with the libraries of this build in front of its own.
pub fn from_text(source: &str, text: &str) -> Result<Config> {
    let text = format!("library_path = [{:?}]\n{}", libraries().display().to_string(), on_device(text));
    Config::from_text(source, &text)
}

/// The driver that stacks and suites of devices run on: `BH_TEST_DRIVER`, or OpenCL.
pub fn driver() -> String {
    std::env::var("BH_TEST_DRIVER").unwrap_or_else(|_| "opencl".to_owned())
}

/// The driver's name in texts for people.
pub fn title() -> &'static str {
    if driver() == "cuda" { "CUDA" } else { "OpenCL" }
}

/// Does an error say that the machine has no device of the driver? Suites are left out then.
pub fn is_absent(error: &bh_core::Error) -> bool {
    let text = error.to_string();
    ["OpenCL", "CUDA", "NVIDIA"].iter().any(|title| text.contains(title))
}

/// The text with the driver, its device and the size of groups that `BH_TEST_DRIVER`, `BH_TEST_DEVICE` and `BH_TEST_GROUP` name in
/// place of OpenCL, a processor and a small number.
fn on_device(text: &str) -> String {
    let given = |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
    let device = format!("device = '{}'", given("BH_TEST_DEVICE", "cpu"));
    let group = format!("group = {}", given("BH_TEST_GROUP", "16"));
    let text = text.replace("opencl", &driver());
    text.replace("device = 'cpu'", &device).replace("device = \"cpu\"", &device).replace("group = 16", &group)
}

/// How far elementwise operations of a stack may be from the oracle.
pub fn bounds(stack: &str) -> Bounds {
    if ["opencl", &driver()].iter().any(|driver| stack.starts_with(driver)) { opencl_tolerance } else { tolerance }
}

/// Loads a conformance stack; one of OpenCL's with the driver of [`driver`].
pub fn load(stack: &str) -> Result<Stack> {
    Stack::load(&config(stack)?, Some(&stack.replace("opencl", &driver())))
}
