//! The stacks under test, from the config files of `config/test/`.

use bh_bytecode::compare::{opencl_tolerance, tolerance};
use bh_bytecode::random::Bounds;
use bh_core::config::Config;
use bh_core::error::Result;
use bh_core::stack::Stack;
use std::path::{Path, PathBuf};

/// The stacks that all suites run on.
pub const STACKS: &[&str] = &["cpu", "cpu-linear", "cpu-plain", "direct", "overlap", "shadow", "split"];

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(PathBuf::new, Path::to_path_buf)
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
    let text = format!("library_path = [{:?}]\n{text}", libraries().display().to_string());
    Config::from_text(source, &text)
}

/// How far elementwise operations of a stack may be from the oracle.
pub fn bounds(stack: &str) -> Bounds {
    if stack.starts_with("opencl") { opencl_tolerance } else { tolerance }
}

/// Loads a conformance stack.
pub fn load(stack: &str) -> Result<Stack> {
    Stack::load(&config(stack)?, Some(stack))
}
