//! The engine kit of an installation: the templates, and the sources of the crates that components in Rust are built with.

use crate::artifacts::{copy, copy_tree};
use crate::command::{Failure, Outcome, root};
use std::fs;
use std::path::Path;

/// The crates that a component in Rust may depend on.
const CRATES: &[&str] = &["bh-bytecode", "bh-core", "bh-kernel"];

/// Installs `share/bh/engine-kit`, `share/bh/rust` and the contract that goes with them, and names the second folder in `bh.pc`.
pub fn install(prefix: &Path) -> Outcome {
    let share = prefix.join("share/bh");
    let kit = share.join("engine-kit");
    for template in ["c", "device-c", "rust/src", "filter-c", "method-c"] {
        let (from, to) = (root().join("docs/engine-kit").join(template), kit.join(template));
        files(&from, &to)?;
    }
    files(&root().join("docs/engine-kit/rust"), &kit.join("rust"))?;
    let documents = prefix.join("share/doc/bh");
    fs::create_dir_all(&documents)?;
    for document in ["api.md", "cpp.md", "cpp-reference.md", "engines.md", "guide.md", "keys.md", "opcodes.md"] {
        copy(&root().join("docs").join(document), &documents.join(document))?;
    }
    let description = prefix.join("lib/pkgconfig/bh.pc");
    let text = fs::read_to_string(&description)?;
    fs::write(&description, format!("rustdir=${{pcfiledir}}/../../share/bh/rust\n{text}"))?;
    let rust = share.join("rust");
    for name in CRATES {
        copy_tree(&root().join(name).join("src"), &rust.join(name).join("src"))?;
        copy(&root().join(name).join("Cargo.toml"), &rust.join(name).join("Cargo.toml"))?;
    }
    // Embedded in bh-core as the configuration of last resort.
    fs::create_dir_all(rust.join("config"))?;
    copy(&root().join("config/default.toml"), &rust.join("config/default.toml"))?;
    copy(&root().join("Cargo.lock"), &rust.join("Cargo.lock"))?;
    fs::write(rust.join("Cargo.toml"), workspace(&fs::read_to_string(root().join("Cargo.toml"))?)?)?;
    Ok(())
}

/// Copies the files of a directory, not what building there may have left: libraries and directories.
fn files(from: &Path, to: &Path) -> Outcome {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        let text = name.to_string_lossy();
        if entry.file_type()?.is_file() && !text.ends_with(".so") && text != "demo" && text != "Cargo.lock" {
            copy(&entry.path(), &to.join(&name))?;
        }
    }
    Ok(())
}

/// The root manifest with the installed crates as its only members.
fn workspace(manifest: &str) -> Outcome<String> {
    let parts = manifest.split_once("members = [").and_then(|(before, rest)| Some((before, rest.split_once(']')?.1)));
    let (before, after) = parts.ok_or_else(|| Failure("the root manifest lists no members".into()))?;
    Ok(format!("{before}members = {CRATES:?}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_templates_need_is_there() {
        let prefix = std::env::temp_dir().join(format!("bh-kit-{}", std::process::id()));
        // The description that the installation of the libraries wrote before.
        let description = prefix.join("lib/pkgconfig");
        fs::create_dir_all(&description).and_then(|()| fs::write(description.join("bh.pc"), "Name: bh\n")).unwrap();
        let outcome = install(&prefix);
        assert!(outcome.is_ok(), "{}", outcome.err().map_or_else(String::new, |failure| failure.0));
        for file in [
            "share/bh/engine-kit/c/Makefile",
            "share/bh/engine-kit/device-c/device.c",
            "share/bh/engine-kit/rust/src/lib.rs",
            "share/bh/engine-kit/filter-c/config.toml",
            "share/bh/engine-kit/method-c/method.c",
            "share/bh/rust/Cargo.lock",
            "share/bh/rust/bh-core/src/abi.rs",
            "share/bh/rust/config/default.toml",
            "share/doc/bh/engines.md",
        ] {
            assert!(prefix.join(file).is_file(), "{file}");
        }
        // Nothing of the workspace but what was copied may be a member.
        let manifest = fs::read_to_string(prefix.join("share/bh/rust/Cargo.toml")).unwrap_or_default();
        assert!(manifest.contains("members = [\"bh-bytecode\", \"bh-core\", \"bh-kernel\"]\n"), "{manifest}");
        assert!(manifest.contains("[workspace.dependencies]"), "{manifest}");
        let _ = fs::remove_dir_all(&prefix);
    }
}
