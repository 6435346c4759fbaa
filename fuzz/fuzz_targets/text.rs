//! Any bytes at all for the reader `text`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let target = bh_tests::hostile::TARGETS.iter().find(|target| target.name == "text");
    (target.expect("the target is there").read)(bytes);
});
