//! The CUDA engine without a device: its texts are compiled, and other engines take its place. Tests that need a device run
//! in the suites of `bh-ve-opencl`, with `BH_TEST_DRIVER=cuda`.

mod factors;
mod limits;
mod nowhere;
mod texts;

use std::io::Write;

/// Prints past the capture of the test harness: what was left out is part of the result.
fn say(text: std::fmt::Arguments<'_>) {
    let mut output = std::io::stdout();
    writeln!(output, "{text}").unwrap();
}
