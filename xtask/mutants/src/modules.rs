//! The sources of a crate that are not only for tests and checks: its modules, followed from `lib.rs`.

use crate::Outcome;
use std::path::{Path, PathBuf};
use syn::{Attribute, File, Item};

/// A source, seen from the repository, with its text.
pub type Source = (String, String);

/// The sources of a crate, of some folders of it only if any are named.
pub fn sources(root: &Path, name: &str, folders: &[&str]) -> Outcome<Vec<Source>> {
    let mut found = Vec::new();
    let library = root.join(name).join("src/lib.rs");
    follow(root, &library, &root.join(name).join("src"), &mut found)?;
    found.retain(|(path, _)| {
        folders.is_empty() || folders.iter().any(|folder| path.starts_with(&format!("{name}/{folder}/")))
    });
    found.sort();
    Ok(found)
}

/// Adds a file and the modules that it declares, which lie in `folder`.
fn follow(root: &Path, path: &Path, folder: &Path, found: &mut Vec<Source>) -> Outcome<()> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let file: File = syn::parse_file(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    for item in &file.items {
        let Item::Mod(module) = item else { continue };
        if module.content.is_some() || is_conditional(&module.attrs) {
            continue;
        }
        let name = module.ident.to_string();
        let (flat, nested) = (folder.join(format!("{name}.rs")), folder.join(&name).join("mod.rs"));
        let file: PathBuf = if flat.exists() { flat } else { nested };
        follow(root, &file, &folder.join(&name), found)?;
    }
    let relative = path.strip_prefix(root).map_err(|error| error.to_string())?;
    found.push((relative.display().to_string(), text));
    Ok(())
}

/// Is a part of the source there under a condition only? Tests and checks are; what else is conditional is left alone too.
pub fn is_conditional(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let path = attribute.path();
        path.is_ident("cfg") || path.is_ident("test") || path.is_ident("path") || path.is_ident("cfg_attr")
    })
}
