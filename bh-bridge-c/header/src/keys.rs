//! Texts written from the table of configuration keys: the documented part of `config/default.toml`, and `docs/keys.md`.

use bh_core::config::{Row, Section};
use bh_core::keys::SECTIONS;
use std::fmt::Write;

/// Where the part begins that is written here.
const MARK: &str = "# All keys at their defaults. `cargo xtask header` makes the rest of this file; do not edit it.\n";
/// Columns of a line, at most.
const WIDTH: usize = 120;

/// The default configuration: what stands before the mark, and the keys.
pub fn default_file(written: &str) -> Result<String, String> {
    let (head, _) = written.split_once(MARK).ok_or_else(|| format!("config/default.toml lacks the line '{MARK}'"))?;
    let mut text = format!("{head}{MARK}");
    for section in SECTIONS {
        text.push('\n');
        comment(&mut text, section.text);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "# [{}]", title(&section));
        for row in section.rows {
            comment(&mut text, row.text);
            let _ = writeln!(text, "# {} = {}", row.name, row.default);
        }
    }
    Ok(text)
}

fn title(section: &Section) -> String {
    if section.is_component { format!("components.{}", section.name) } else { section.name.to_owned() }
}

/// A text as lines of a comment.
fn comment(text: &mut String, words: &str) {
    let mut line = String::from("#");
    for word in words.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            *text += &format!("{line}\n");
            line = String::from("#");
        }
        line += &format!(" {word}");
    }
    if line.len() > 1 {
        *text += &format!("{line}\n");
    }
}

/// The page of all keys.
pub fn page() -> String {
    let mut text = String::from(
        "# Keys of the configuration\n\n\
         Made from `bh-core/src/keys.rs`; do not edit. [The guide](guide.md) says where the file lies and how its stacks are written.\n\
         A variable of the environment overrides a key: `BH_VE_CPU_THREADS` the key `threads` of `[components.ve-cpu]`. Every\n\
         component has the key `library`, too: the file that it is loaded from. `bh info --keys` shows what counts and where it was set.\n",
    );
    for section in SECTIONS {
        let _ = write!(text, "\n## {}\n\n", title(&section));
        if !section.text.is_empty() {
            let _ = write!(text, "{}\n\n", section.text);
        }
        text += "| key | default | meaning |\n|---|---|---|\n";
        for row in section.rows {
            let _ = writeln!(text, "| `{}` | `{}` | {} |", row.name, row.default.replace('|', "\\|"), meaning(row));
        }
    }
    text
}

fn meaning(row: &Row) -> String {
    let older = row.older.map_or(String::new(), |name| format!(" Older configurations call it `{name}`."));
    format!("{}{older}", row.text.replace('|', "\\|"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_wrapped_between_words() {
        let mut text = String::new();
        comment(&mut text, &"seven letters ".repeat(20));
        assert!(text.lines().count() == 3 && text.lines().all(|line| line.len() <= WIDTH && line.starts_with("# ")));
        let made = default_file(&format!("[stacks]\n{MARK}what was here")).unwrap();
        assert!(
            made.starts_with("[stacks]\n")
                && !made.contains("what was here")
                && made.contains("\n# [components.ve-cpu]\n")
        );
        assert!(default_file("[stacks]\n").is_err());
    }
}
