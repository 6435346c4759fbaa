//! Phrases that stop readers of the pages, and the pages that are checked for them; comments that begin with a clause.

use crate::command::{Failure, Outcome, files, root};
use std::fs;
use std::path::{Path, PathBuf};

/// Phrases without a plain meaning, in lower case, and the words to write.
const PHRASES: &[(&str, &str)] = &[
    ("are met by", "raise, fail"),
    ("are told", "get, report"),
    ("as ever", "as before"),
    ("as it were", "(leave it out)"),
    ("as said", "as described"),
    ("at hand", "already computed"),
    ("be had", "be available"),
    ("come again", "repeat"),
    ("comes again", "repeats"),
    ("dealt with", "handled"),
    ("foretell", "predict"),
    ("foretells", "predicts"),
    ("foretold", "predicted"),
    ("has its way", "(say what happens)"),
    ("if need be", "if necessary"),
    ("is met by", "raises, fails"),
    ("is told", "gets, reports"),
    ("no such case", "an exception"),
    ("of its own accord", "by itself"),
    ("so it is with", "the same holds for"),
    ("that which", "(name the thing)"),
    ("those who", "(name them)"),
    ("turn of a loop", "iteration"),
    ("turns of a loop", "iterations"),
    ("who asks", "(name the caller)"),
    ("who reads", "(name the reader)"),
    ("whoever", "(name the one)"),
    ("whomever", "(name the one)"),
];

/// Pages that are written from tables in the sources.
const GENERATED: &[&str] = &["api.md", "cpp-reference.md", "keys.md", "opcodes.md"];

/// Words that begin a clause in the place of a noun.
const CLAUSES: &[&str] = &["What", "Whatever", "Who", "Whoever"];

/// Refuses pages with such phrases, and comments with such beginnings.
pub fn check() -> Outcome {
    let mut found = Vec::new();
    for page in pages()? {
        let text = fs::read_to_string(&page)?;
        found.extend(findings(&text).map(|(line, phrase, instead)| {
            format!("{}:{line}: \"{phrase}\": write {instead}", page.strip_prefix(root()).unwrap_or(&page).display())
        }));
    }
    for source in [files("*.rs")?, files("*.py")?].concat() {
        let Ok(text) = fs::read_to_string(root().join(&source)) else { continue };
        found.extend(beginnings(&text).map(|(line, word)| {
            format!("{source}:{line}: \"{word} …\": begin the comment with the noun or verb that says it")
        }));
    }
    if found.is_empty() { Ok(()) } else { Err(Failure(found.join("\n"))) }
}

/// The phrases of a text, with the number of the line in which each ends, and the words to write.
fn findings(text: &str) -> impl Iterator<Item = (usize, &'static str, &'static str)> {
    let text = text.to_lowercase();
    // A phrase may go over the end of a line.
    let joined = text.replace('\n', " ");
    PHRASES.iter().flat_map(move |&(phrase, instead)| {
        let is_word = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
        let places: Vec<usize> = joined.match_indices(phrase).map(|(place, _)| place).collect();
        let whole = |&place: &usize| {
            !is_word(joined[..place].chars().next_back()) && !is_word(joined[place + phrase.len()..].chars().next())
        };
        let lines: Vec<usize> =
            places.iter().filter(|place| whole(place)).map(|&place| line(&text, place + phrase.len())).collect();
        lines.into_iter().map(move |line| (line, phrase, instead))
    })
}

/// The comments and docstrings of a source that begin with a clause: the numbers of their lines, and their first words.
fn beginnings(text: &str) -> impl Iterator<Item = (usize, &str)> {
    const MARKS: &[&str] = &["//!", "///", "//", "#", "\"\"\"", "r\"\"\""];
    text.lines().enumerate().filter_map(|(number, line)| {
        let comment = MARKS.iter().find_map(|mark| line.trim_start().strip_prefix(mark))?;
        let word = comment.trim_start().split(|letter: char| !letter.is_alphanumeric()).next()?;
        CLAUSES.contains(&word).then_some((number + 1, word))
    })
}

fn line(text: &str, place: usize) -> usize {
    text[..place].matches('\n').count() + 1
}

/// The pages for users and developers, but for those that are made.
fn pages() -> Outcome<Vec<PathBuf>> {
    let mut pages: Vec<PathBuf> = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"]
        .iter()
        .map(|name| root().join(name))
        .collect();
    for folder in ["docs", "docs/design"] {
        for entry in fs::read_dir(root().join(folder))? {
            let page = entry?.path();
            if page.extension().is_some_and(|kind| kind == "md") && !is_generated(&page) {
                pages.push(page);
            }
        }
    }
    pages.sort();
    Ok(pages)
}

fn is_generated(page: &Path) -> bool {
    page.file_name().is_some_and(|name| GENERATED.iter().any(|generated| name == *generated))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_found_over_ends_of_lines_and_only_as_whole_words() {
        let found: Vec<_> = findings("Its value is at\nhand.\nThat hand\nWhoever reads\nthe Cathand\n").collect();
        assert_eq!(
            found.iter().map(|(line, phrase, _)| (*line, *phrase)).collect::<Vec<_>>(),
            [(2, "at hand"), (4, "whoever")]
        );
    }

    #[test]
    fn comments_and_docstrings_begin_with_nouns() {
        let rust = "//! What it is.\nlet a = 1; // What\n    /// Whatever\n//! Whole\n//\n#[what]\n// So What\n";
        assert_eq!(beginnings(rust).collect::<Vec<_>>(), [(1, "What"), (3, "Whatever")]);
        let python = "# Who asks.\ndef f():\n    \"\"\"Whoever asks.\"\"\"\n    # what\n\"\"\"The one.\"\"\"\n";
        assert_eq!(beginnings(python).collect::<Vec<_>>(), [(1, "Who"), (3, "Whoever")]);
    }

    #[test]
    fn the_pages_and_sources_have_none() {
        check().unwrap_or_else(|failure| panic!("{}", failure.0));
    }
}
