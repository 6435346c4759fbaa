//! The stacks under test, from the configurations in `config/test/`.

use bh_bytecode::compare::{opencl_tolerance, tolerance};
use bh_bytecode::random::Bounds;
use bh_core::config::Config;
use bh_core::error::Result;
use bh_core::stack::Stack;
use std::path::{Path, PathBuf};

/// The stacks that all suites run on.
pub const STACKS: &[&str] = &["cpu", "cpu-linear", "cpu-plain", "direct", "shadow", "split"];

/// The repository; `BH_TEST_ROOT` names it on other machines than the one that built the tests.
pub fn root() -> PathBuf {
    if let Some(root) = std::env::var_os("BH_TEST_ROOT") {
        return PathBuf::from(root);
    }
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The directory of the component libraries built with the tests: that of the test program.
pub fn libraries() -> PathBuf {
    match std::env::var_os("BH_TEST_LIBRARIES") {
        Some(directory) => PathBuf::from(directory),
        None => bh_core::loader::own_directory().unwrap_or_default(),
    }
}

/// The configuration of a conformance stack, with the libraries of this build.
pub fn config(stack: &str) -> Result<Config> {
    let file = root().join("config/test").join(format!("{stack}.toml"));
    let text = std::fs::read_to_string(&file).map_err(|error| {
        bh_core::Error::new(bh_core::abi::status::FILE, format!("config '{}' cannot be read: {error}", file.display()))
    })?;
    from_text(&file.display().to_string(), &text)
}

/// A configuration from a text, with the libraries of this build before its own.
pub fn from_text(source: &str, text: &str) -> Result<Config> {
    let text = format!("library_path = [{:?}]\n{}", libraries().display().to_string(), on_device(text));
    Config::from_text(source, &text)
}

/// The driver for stacks and suites of devices: `BH_TEST_DRIVER`, or OpenCL.
pub fn driver() -> String {
    std::env::var("BH_TEST_DRIVER").unwrap_or_else(|_| "opencl".to_owned())
}

/// The driver's name for messages.
pub fn title() -> &'static str {
    if driver() == "cuda" { "CUDA" } else { "OpenCL" }
}

/// Does an error report that the machine has no device of the driver? Suites are skipped then.
pub fn is_absent(error: &bh_core::Error) -> bool {
    let text = error.to_string();
    ["OpenCL", "CUDA", "NVIDIA"].iter().any(|title| text.contains(title))
}

/// Replaces OpenCL, its processor device and its small groups in a text by the settings of `BH_TEST_DRIVER`,
/// `BH_TEST_DEVICE` and `BH_TEST_GROUP`.
fn on_device(text: &str) -> String {
    let given = |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
    let device = format!("device = '{}'", given("BH_TEST_DEVICE", "cpu"));
    let group = format!("group = {}", given("BH_TEST_GROUP", "16"));
    let text = text.replace("opencl", &driver());
    text.replace("device = 'cpu'", &device).replace("device = \"cpu\"", &device).replace("group = 16", &group)
}

/// The tolerance of a stack's elementwise operations.
pub fn bounds(stack: &str) -> Bounds {
    if ["opencl", &driver()].iter().any(|driver| stack.starts_with(driver)) { opencl_tolerance } else { tolerance }
}

/// Loads a conformance stack; OpenCL stacks with the driver of [`driver`].
pub fn load(stack: &str) -> Result<Stack> {
    Stack::load(&config(stack)?, Some(&stack.replace("opencl", &driver())))
}
