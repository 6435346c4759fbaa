//! The documentation: its programs compile and print the given output, generated pages are current, and links are
//! valid.

use super::support::{Scratch, command, compile, prefix, root, run};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The users' pages.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md"), root().join("CONTRIBUTING.md"), root().join("ARCHITECTURE.md")];
    for folder in ["docs", "docs/design"] {
        for entry in std::fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

/// A fenced block of code: page and line for messages, the words after the fence, the text.
struct Code {
    place: String,
    language: String,
    text: String,
}

fn code_blocks(page: &PathBuf) -> Vec<Code> {
    let text = std::fs::read_to_string(page).unwrap();
    let name = page.strip_prefix(root()).unwrap().display().to_string();
    let mut blocks: Vec<Code> = Vec::new();
    let mut open = false;
    for (index, line) in text.lines().enumerate() {
        match (line.strip_prefix("```"), open) {
            (Some(language), false) => {
                blocks.push(Code {
                    place: format!("{name}:{}", index + 1),
                    language: language.into(),
                    text: String::new(),
                });
                open = true;
            }
            (Some(_), true) => open = false,
            (None, true) => {
                let block = blocks.last_mut().unwrap();
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, false) => {}
        }
    }
    assert!(!open, "{name}: a block of code does not end");
    blocks
}

/// Every C and C++ block is a whole program. A following block marked `output` is its output.
#[test]
fn programs_in_the_documentation_run() {
    let prefix = prefix();
    let scratch = Scratch::new("docs");
    let mut programs = 0;
    for page in pages() {
        let blocks = code_blocks(&page);
        for (index, block) in blocks.iter().enumerate() {
            let extension = match block.language.as_str() {
                "c run" => "c",
                "cpp run" => "cpp",
                other => {
                    let marked = !["c", "cpp", "c++"].contains(&other);
                    assert!(marked, "{}: mark the program 'run'; what is shown is tested", block.place);
                    continue;
                }
            };
            let source = scratch.write(&format!("block{programs}.{extension}"), &block.text);
            println!("{}", block.place);
            let printed = run(command(compile(&prefix, &source)).current_dir(scratch.path()));
            if let Some(expected) = blocks.get(index + 1).filter(|next| next.language == "output") {
                assert_eq!(printed, expected.text, "{}: prints something else", block.place);
            }
            programs += 1;
        }
    }
    assert!(programs >= 8, "only {programs} programs were found");
}

/// Files that pages name in code font exist.
#[test]
fn files_that_the_documentation_names_exist() {
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for word in text.split('`').skip(1).step_by(2) {
            let is_path = word.contains('/')
                && [".rs", ".md", ".toml", ".h", ".hpp", ".sh", ".c"].iter().any(|ending| word.ends_with(ending))
                && !word.contains([' ', '*', '~', '$', '<', '…'])
                && !word.starts_with("PREFIX")
                && !word.starts_with('/')
                && !word.starts_with("./");
            if is_path {
                let beside = page.parent().unwrap().join(word);
                let header = root().join("bh-bridge-c/include").join(word);
                let found = root().join(word).exists() || beside.exists() || header.exists();
                assert!(found, "{}: there is no file '{word}'", page.display());
            }
        }
    }
}

/// All files of the repository with one of these endings, except for built or fetched ones.
fn sources(endings: &[&str]) -> Vec<PathBuf> {
    let (mut folders, mut found) = (vec![root()], Vec::new());
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && !name.starts_with('.') && name != "target" {
                folders.push(path);
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                found.push(path);
            }
        }
    }
    found
}

/// Files that pages name without their folder exist somewhere.
#[test]
fn files_that_are_named_alone_exist() {
    let endings = [".rs", ".py", ".h", ".hpp", ".c", ".toml"];
    let there: BTreeSet<_> = sources(&endings).iter().map(|file| file.file_name().unwrap().to_owned()).collect();
    // Files of engines, methods and packages that the reader writes, and the user's own.
    let own = ["Cargo.toml", "config.toml", "first.py", "script.py", "program.py"];
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for word in text
            .split('`')
            .skip(1)
            .step_by(2)
            .filter(|word| !word.contains([' ', '/', '*', '<']) && !own.contains(word))
        {
            let is_file = endings.iter().any(|ending| word.strip_suffix(ending).is_some_and(|name| !name.is_empty()));
            let found = !is_file || there.contains(std::ffi::OsStr::new(word));
            assert!(found, "{}: there is no file '{word}'", page.display());
        }
    }
}

/// The tests named in the page on reliability exist.
#[test]
fn tests_that_the_page_on_reliability_names_exist() {
    let page = std::fs::read_to_string(root().join("docs/reliability.md")).unwrap();
    let code: String = sources(&[".rs", ".py"]).iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    let is_test = |word: &&str| word.contains('_') && word.bytes().all(|it| it.is_ascii_lowercase() || it == b'_');
    let named: Vec<&str> = page.split('`').skip(1).step_by(2).filter(is_test).collect();
    let system = ["pthread_create"];
    let missing: Vec<_> = named
        .iter()
        .filter(|name| !system.contains(name))
        .filter(|name| !["fn", "def"].iter().any(|word| code.contains(&format!("{word} {name}("))))
        .collect();
    assert!(named.len() > 3 && missing.is_empty(), "no such tests: {missing:?}");
}

/// Every obligation in code or pages is defined once.
#[test]
fn obligations_are_numbered_once() {
    let contract = std::fs::read_to_string(root().join("docs/engines.md")).unwrap();
    let defined: Vec<&str> = contract
        .lines()
        .filter_map(|line| line.strip_prefix("* **")?.split_once("**").map(|(number, _)| number))
        .filter(|number| number.starts_with("E-"))
        .collect();
    assert!(defined.len() >= 30, "{defined:?}");
    for (index, number) in defined.iter().enumerate() {
        assert!(!defined[..index].contains(number), "{number} is defined twice");
    }
    for file in ["engines.md", "engine-kit/c/engine.c", "engine-kit/rust/src/lib.rs", "engine-kit/filter-c/filter.c"] {
        let text = std::fs::read_to_string(root().join("docs").join(file)).unwrap();
        for (at, _) in text.match_indices("E-") {
            let digits: String = text[at + 2..].chars().take_while(char::is_ascii_digit).collect();
            let number = format!("E-{digits}");
            assert!(digits.is_empty() || defined.contains(&number.as_str()), "docs/{file}: no obligation {number}");
        }
    }
}
