//! Readers of untrusted bytes: the fuzzers' targets, on a fixed set of damaged files.

use bh_bytecode::random::Rng;
use bh_tests::hostile::{TARGETS, Target};

/// The number of damaged files for each reader; ten times as many with `BH_TEST_ALL`.
const FILES: u64 = 3_000;

/// Fragments of numbers and texts of all formats.
const PIECES: [&[u8]; 12] = [
    b"\xff\xff\xff\xff",
    b"\0\0\0\0\0\0\0\x80",
    b"9999999999",
    b"-1",
    b"[",
    b"]",
    b"(",
    b"'",
    b"\"",
    b" = ",
    b"\n",
    b"b0",
];

/// A file with one to four places damaged.
fn damaged(seed: u64, good: &[u8]) -> Vec<u8> {
    let (mut rng, mut bytes) = (Rng::new(seed), good.to_vec());
    for _ in 0..=rng.below(4) {
        let at = rng.below(bytes.len().max(1));
        match rng.below(5) {
            0 => bytes.truncate(at),
            1 => drop(bytes.splice(at..at, PIECES[rng.below(PIECES.len())].iter().copied())),
            2 => drop(bytes.drain(at..(at + rng.below(9)).min(bytes.len()))),
            _ if bytes.is_empty() => {}
            3 => bytes[at] ^= 1 << rng.below(8),
            _ => bytes[at] = rng.bits() as u8,
        }
    }
    bytes
}

/// How many damaged files a reader accepts.
fn taken(target: &Target) -> u64 {
    let good = (target.good)();
    assert!((target.read)(&good), "{}: what is right is refused", target.name);
    let files = if std::env::var_os("BH_TEST_ALL").is_some() { 10 * FILES } else { FILES };
    let read = |seed: u64| (target.read)(&damaged(seed, &good));
    (0..files)
        .filter(|&seed| {
            std::panic::catch_unwind(|| read(seed)).unwrap_or_else(|_| panic!("{}: seed {seed}", target.name))
        })
        .count() as u64
}

#[test]
fn damaged_files_are_refused_or_read() {
    for target in &TARGETS {
        let taken = taken(target);
        println!("{}: {taken} of the damaged files are read", target.name);
        assert!(taken < FILES * 10, "{}: nothing is ever refused", target.name);
    }
}

#[test]
fn no_bytes_and_only_zeros_are_refused() {
    for target in TARGETS.iter().filter(|target| target.name != "config") {
        assert!(!(target.read)(&[]) && !(target.read)(&[0; 64]), "{}", target.name);
    }
}

/// The fuzzers' folder has a program for each target, one for C calls, and no others.
#[test]
fn each_target_has_its_fuzzer() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/fuzz_targets");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    files.sort();
    let targets = TARGETS.iter().map(|target| target.name).chain(["calls"]);
    let mut names: Vec<_> = targets.map(|name| format!("{name}.rs")).collect();
    names.sort();
    assert_eq!(files, names);
}
