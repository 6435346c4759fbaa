//! Writes the copy of the workspace: sources with mutants in them, everything else as it is.

use crate::Outcome;
use crate::mutant::{Mutant, Piece};
use serde_json::json;
use std::collections::HashMap;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::process::Command;

/// The text at the end of the `lib.rs` of a crate with mutants.
const SWITCH: &str = r#"
/// The number in `BH_MUTANT`, read once, plus one.
static BH_MUTANT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);

/// Is this mutant awake?
#[inline]
pub(crate) fn bh_mutant(number: u32) -> bool {
    #[cold]
    fn read() -> u32 {
        let number = std::env::var("BH_MUTANT").ok().and_then(|text| text.parse().ok()).unwrap_or(0u32) + 1;
        BH_MUTANT.store(number, std::sync::atomic::Ordering::Relaxed);
        number
    }
    let awake = BH_MUTANT.load(std::sync::atomic::Ordering::Relaxed);
    (if awake == 0 { read() } else { awake }) == number + 1
}
"#;

/// Brings the copy up to date. Files that stay as they are keep their times, so that builds do again only what changed.
pub fn write(
    root: &Path,
    tree: &Path,
    files: &HashMap<String, String>,
    mutants: &[Mutant],
    crates: &[(&str, &[&str])],
) -> Outcome<()> {
    let listed = Command::new("git").args(["ls-files", "-co", "--exclude-standard"]).current_dir(root).output();
    let listed = listed.map_err(|error| format!("git ls-files: {error}"))?;
    for path in String::from_utf8_lossy(&listed.stdout).lines().filter(|path| root.join(path).is_file()) {
        let from = root.join(path);
        let bytes = match changed(root, path, files, mutants, crates)? {
            Some(text) => text.into_bytes(),
            None => fs::read(&from).map_err(|error| format!("{path}: {error}"))?,
        };
        place(&from, &tree.join(path), &bytes)?;
    }
    let list = mutants.iter().enumerate().map(
        |(at, mutant)| json!({"number": at + 1, "crate": mutant.crate_name, "key": mutant.key(), "line": mutant.line}),
    );
    let list = serde_json::to_string_pretty(&list.collect::<Vec<_>>()).map_err(|error| error.to_string())?;
    fs::write(tree.join("mutants.json"), list).map_err(|error| error.to_string())
}

/// The text of a file that differs from the original.
fn changed(
    root: &Path,
    path: &str,
    files: &HashMap<String, String>,
    mutants: &[Mutant],
    crates: &[(&str, &[&str])],
) -> Outcome<Option<String>> {
    let here: Vec<(usize, &Mutant)> =
        mutants.iter().enumerate().filter(|(_, mutant)| mutant.file == path).map(|(at, it)| (at + 1, it)).collect();
    let source = files.get(path).filter(|_| !here.is_empty());
    let mut out = source.map(|source| render(source, 0..source.len(), &here, 0));
    let manifest = manifest(path, crates);
    if !manifest.is_empty() {
        let text = fs::read_to_string(root.join(path)).map_err(|error| format!("{path}: {error}"))?;
        return Ok(Some(text + &manifest));
    }
    if crates.iter().any(|(name, _)| path == format!("{name}/src/lib.rs")) {
        let text = match out {
            Some(text) => text,
            None => fs::read_to_string(root.join(path)).map_err(|error| format!("{path}: {error}"))?,
        };
        out = Some(format!("#![allow(warnings)]\n{text}{SWITCH}"));
    }
    Ok(out)
}

/// The text at the end of a manifest. A library's own tests are built under a name, so that those of other libraries need
/// not be built; crates with mutants are built often, and optimised little.
fn manifest(path: &str, crates: &[(&str, &[&str])]) -> String {
    if path == "Cargo.toml" {
        let profile = |(name, _): &(&str, _)| format!("\n[profile.checked.package.{name}]\nopt-level = 1\n");
        return crates.iter().map(profile).collect();
    }
    match path.strip_suffix("/Cargo.toml").filter(|folder| crates.iter().any(|(name, _)| name == folder)) {
        Some(name) => format!("\n[[test]]\nname = \"{name}-own\"\npath = \"src/lib.rs\"\n"),
        None => String::new(),
    }
}

/// Writes a file if its content differs; an unchanged source's time is kept.
fn place(from: &Path, to: &Path, bytes: &[u8]) -> Outcome<()> {
    let failed = |error: std::io::Error| format!("{}: {error}", to.display());
    if fs::read(to).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    fs::create_dir_all(to.parent().unwrap_or(to)).map_err(failed)?;
    fs::write(to, bytes).map_err(failed)?;
    let meta = fs::metadata(from).map_err(failed)?;
    fs::set_permissions(to, meta.permissions()).map_err(failed)?;
    if fs::read(from).is_ok_and(|source| source == bytes) {
        let file = fs::File::options().write(true).open(to).map_err(failed)?;
        file.set_modified(meta.modified().map_err(failed)?).map_err(failed)?;
    }
    Ok(())
}

/// The text of a region with the mutants within it; the first `done` mutants of exactly this region stand around it already.
fn render(source: &str, region: Range<usize>, mutants: &[(usize, &Mutant)], done: usize) -> String {
    let same: Vec<_> = mutants.iter().filter(|(_, mutant)| mutant.region == region).collect();
    if let Some((number, mutant)) = same.get(done) {
        let pieces = mutant.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.replace("$M", &format!("crate::bh_mutant({number})")),
            Piece::Original => render(source, region.clone(), mutants, done + 1),
            Piece::Part(part) => render(source, part.clone(), mutants, 0),
        });
        return pieces.collect();
    }
    let mut inner: Vec<&Range<usize>> = mutants.iter().map(|(_, mutant)| &mutant.region).collect();
    inner.retain(|it| region.start <= it.start && it.end <= region.end && **it != region);
    inner.sort_by_key(|it| (it.start, std::cmp::Reverse(it.end)));
    inner.dedup();
    let (mut out, mut at) = (String::new(), region.start);
    for part in inner {
        if part.start < at {
            continue;
        }
        out.push_str(&source[at..part.start]);
        out.push_str(&render(source, part.clone(), mutants, 0));
        at = part.end;
    }
    out.push_str(&source[at..region.end]);
    out
}
