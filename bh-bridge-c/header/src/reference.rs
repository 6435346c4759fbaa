//! The reference of the C interface, `docs/api.md`: made from the comments and declarations of the header.

use std::fmt::Write as _;

/// A declaration with the comment above it.
struct Entry {
    comment: String,
    code: String,
}

impl Entry {
    /// The name of the function, type or constant that is declared.
    fn name(&self) -> &str {
        let first = self.code.lines().next().unwrap_or_default();
        if let Some(rest) = first.strip_prefix("#define ") {
            return rest.split([' ', '(']).next().unwrap_or_default();
        }
        if let Some(rest) = first.strip_prefix("typedef struct ") {
            return rest.split([' ', ';']).next().unwrap_or_default();
        }
        if let Some((_, rest)) = first.split_once("(*") {
            return rest.split(')').next().unwrap_or_default();
        }
        if first.starts_with("typedef") {
            return first.trim_end_matches(';').rsplit(' ').next().unwrap_or_default();
        }
        first.split('(').next().and_then(|before| before.rsplit([' ', '*']).next()).unwrap_or_default()
    }

    /// The declaration on one line.
    fn line(&self) -> String {
        self.code.split_whitespace().collect::<Vec<_>>().join(" ").replace("( ", "(")
    }
}

/// The documented declarations of a part of the header.
fn entries(text: &str) -> Vec<Entry> {
    let mut found = Vec::new();
    let mut comment = String::new();
    let mut code = String::new();
    let mut depth = 0;
    for line in text.lines() {
        if depth == 0 && code.is_empty() {
            if let Some(words) = line.strip_prefix("/// ") {
                comment = if comment.is_empty() { words.into() } else { format!("{comment} {words}") };
                continue;
            }
            if line.is_empty() {
                comment.clear();
                continue;
            }
        }
        depth += line.matches('{').count();
        depth -= line.matches('}').count();
        code.push_str(line);
        code.push('\n');
        if depth == 0 && (line.ends_with(';') || line.starts_with('#')) {
            let entry = Entry { comment: std::mem::take(&mut comment), code: std::mem::take(&mut code) };
            if !entry.comment.is_empty() {
                found.push(entry);
            }
        }
    }
    found
}

/// The text of the page.
pub fn page(header: &str) -> String {
    let (_, header) = header.split_once("extern \"C\" {\n#endif").expect("the declarations are for C and C++");
    let (interface, operations) = header.split_once("/* Operations.").expect("the header has a part with operations");
    let (introduction, operations) = operations.split_once("*/").expect("the comment ends");
    let operations = operations.split_once("/* The same names as macros").expect("the header ends with macros").0;
    let mut text = String::from(
        "# Reference of the C interface\n\nMade from `bh.h`; do not edit. `docs/guide.md` explains it, `docs/opcodes.md` has the \
         types of all operations.\n\n## Types and functions\n",
    );
    for entry in entries(interface) {
        let _ = write!(text, "\n### {}\n\n{}\n\n```h\n{}```\n", entry.name(), entry.comment, entry.code);
    }
    let introduction = introduction.replace("\n * ", " ").split_whitespace().collect::<Vec<_>>().join(" ");
    let _ = write!(text, "\n## Operations\n\n{introduction}\n\n| function | meaning |\n|---|---|\n");
    for entry in entries(operations) {
        let _ = writeln!(text, "| `{}` | {} |", entry.line().trim_end_matches(';'), entry.comment.replace('|', "\\|"));
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn functions_types_and_operations_are_listed() {
        let header = std::fs::read_to_string(crate::root().join("bh-bridge-c/include/bh.h")).unwrap();
        let made = super::page(&header);
        for name in ["### bh_context_create\n", "### bh_statistics\n", "| `bh_status bh_add_new(bh_array **out, "] {
            assert!(made.contains(name), "{name:?} in\n{made}");
        }
    }
}
