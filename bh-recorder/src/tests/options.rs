//! Options of batches.

use super::*;

#[test]
fn batches_may_keep_half_of_the_memory_unless_it_is_set() {
    let bytes = |text: &str| Options::from_config(&Config::from_text("my.toml", text).unwrap()).unwrap().max_bytes;
    assert_eq!(bytes("[memory]\nlimit = '1GiB'"), 1 << 29);
    assert_eq!(bytes("[recorder]\nmax_bytes = '3MiB'\n[memory]\nlimit = '1MiB'"), 3 << 20);
    assert_eq!(bytes("[memory]\nlimit = 'none'"), Options::default().max_bytes);
}
