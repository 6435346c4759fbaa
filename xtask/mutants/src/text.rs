//! Texts of sources: short forms, and hashes that do not change.

/// A text on one line, cut to what identifies it.
pub fn short(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    if line.chars().count() <= 72 { line } else { line.chars().take(70).chain(['…']).collect() }
}

/// FNV-1a with a final mix, the same everywhere.
pub fn hash(text: &str) -> u64 {
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let mixed = (hash ^ (hash >> 31)).wrapping_mul(0x7fb5_d329_728e_a185);
    mixed ^ (mixed >> 29)
}
