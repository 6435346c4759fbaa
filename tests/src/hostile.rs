//! Readers of untrusted bytes: they parse any bytes or report an error, do not panic, and do not allocate memory beyond
//! the input's size. The fuzzers in `fuzz/` and the tests call them.

use bh_bytecode::{dump, text};
use bh_core::Config;

/// A reader, with valid bytes.
pub struct Target {
    /// Its name in `fuzz/`.
    pub name: &'static str,
    /// Reads bytes; returns whether they are valid.
    pub read: fn(&[u8]) -> bool,
    /// Valid bytes, as a seed.
    pub good: fn() -> Vec<u8>,
}

/// All readers.
pub const TARGETS: [Target; 4] = [
    Target { name: "dump", read: dumped, good: good_dump },
    Target { name: "text", read: written, good: || BATCH.into() },
    Target { name: "config", read: configured, good: || include_bytes!("../../config/default.toml").to_vec() },
    Target { name: "npy", read: saved, good: good_array },
];

const BATCH: &str = r#"bh batch 1
base b0 = f64[100] id 1 row 100
base b1 = f64[100] id 2 row 100 born
view v0 = b0 at 0 [10:10,10:1]
view v1 = b1 at 0 [10:10,10:1]
const c0 = f64 2.0
origin o1 = "a.c":4
i0: v1 = multiply v0, c0 @o1
"#;

/// A dump that was read is written identically.
fn dumped(bytes: &[u8]) -> bool {
    let Ok(read) = dump::read(bytes) else { return false };
    let again = dump::read(&dump::write(&read)).expect("what was written can be read");
    assert!(read.batch == again.batch, "a dump is another one after it was written");
    true
}

fn good_dump() -> Vec<u8> {
    let batch = text::parse(BATCH).expect("the batch is right");
    dump::write(&dump::Dump { batch, contents: Vec::new() })
}

fn written(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|bytes| text::parse(bytes).is_ok())
}

/// A configuration, and the stack that it chooses.
fn configured(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    Config::from_text("bytes", text).is_ok_and(|config| config.choose_stack(None).is_ok())
}

fn saved(bytes: &[u8]) -> bool {
    bh_compose::npy_shape(bytes).is_ok()
}

fn good_array() -> Vec<u8> {
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    let head = b"{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }\n";
    file.extend((head.len() as u16).to_le_bytes());
    file.extend(head);
    file.extend([0; 48]);
    file
}
