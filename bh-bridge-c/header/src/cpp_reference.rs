//! The reference of the C++ interface, `docs/cpp-reference.md`: made from the comments and declarations of the headers.

use std::fmt::Write as _;
use std::path::Path;

/// The headers with what programs call, in the order of the page, with their titles.
const HEADERS: &[(&str, &str)] = &[
    ("array", "Arrays"),
    ("shape", "Shapes and subscripts"),
    ("selection", "Elements that a mask chooses"),
    ("create", "Making arrays"),
    ("operations", "Operations"),
    ("reductions", "Reductions"),
    ("indexing", "Taking and putting elements"),
    ("arrange", "Copies and triangles"),
    ("statistics", "Order and counts"),
    ("linear_algebra", "Linear algebra"),
    ("functional", "Functions of your own"),
    ("loops", "Choices, loops and folds"),
    ("gradient", "Derivatives"),
    ("graph", "Task graphs"),
    ("traced", "Traced values"),
    ("iterate", "Access to elements"),
    ("context", "Contexts"),
    ("error", "Errors"),
    ("runtime", "The library"),
];

/// A documented item of a header: the class that it belongs to, if any, the declaration and the comment above it.
struct Entry {
    class: Option<String>,
    code: String,
    comment: String,
}

/// The documented public declarations of a header.
fn entries(header: &str) -> Vec<Entry> {
    let mut found: Vec<Entry> = Vec::new();
    let (mut inner, mut class, mut public) = (false, None::<String>, true);
    let (mut comment, mut code) = (String::new(), String::new());
    for line in header.lines() {
        match line {
            "namespace detail {" => inner = true,
            "} // namespace detail" => inner = false,
            "};" => (class, public) = (None, true),
            "public:" => public = true,
            "private:" => public = false,
            _ if inner => {}
            _ => {
                let indent = if class.is_some() { "    " } else { "" };
                let words = line.strip_prefix(indent).filter(|words| !words.starts_with(' '));
                if let Some(text) = words.and_then(|words| words.strip_prefix("///")) {
                    comment = format!("{comment} {}", text.trim());
                    continue;
                }
                let opened = opened_class(line).filter(|_| class.is_none());
                if !comment.is_empty() {
                    code = format!("{code} {}", line.trim());
                    if !ends(&code) {
                        continue;
                    }
                    let (comment, code) = (std::mem::take(&mut comment), std::mem::take(&mut code));
                    if public && (class.is_none() || words.is_some()) {
                        let code = declaration(&code);
                        found.push(Entry { class: class.clone(), code, comment: comment.trim().into() });
                    }
                }
                if let Some((name, open)) = opened {
                    (class, public) = (Some(name), open);
                }
            }
        }
    }
    found
}

/// The class that begins with a line, and whether its members are public at first.
fn opened_class(line: &str) -> Option<(String, bool)> {
    let rest = without_template(line);
    let (word, rest) = rest.split_once(' ')?;
    let name = rest.split([' ', ':', '{']).next()?;
    (matches!(word, "class" | "struct") && line.ends_with('{')).then(|| (name.to_owned(), word == "struct"))
}

/// Is a declaration whole?
fn ends(code: &str) -> bool {
    code.ends_with('{') || code.ends_with(';') || code.ends_with('}') || code.trim().starts_with("BH_VIEW(")
}

/// The code after `template <...>`.
fn without_template(code: &str) -> &str {
    let Some(rest) = code.trim().strip_prefix("template <") else { return code.trim() };
    let mut depth = 1;
    for (at, letter) in rest.char_indices() {
        depth += i32::from(letter == '<') - i32::from(letter == '>');
        if depth == 0 {
            return without_template(&rest[at + 1..]);
        }
    }
    rest
}

/// A declaration as readers want it: no body, no template parameters, no places.
fn declaration(code: &str) -> String {
    let view = code.trim().strip_prefix("BH_VIEW(").and_then(|rest| rest.split_once(", ("));
    let code = view.map_or(code.to_owned(), |(name, rest)| format!("{name}({};", &rest[..closing(rest)]));
    let code = without_template(&code);
    let mut depth = 0;
    let end = code.char_indices().find(|&(at, letter)| {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        depth == 0 && (matches!(letter, '{' | ';') || code[at..].starts_with(" : "))
    });
    let mut code = code[..end.map_or(code.len(), |(at, _)| at)].trim().to_owned();
    for place in [", place at = place::here()", "place at = place::here()"] {
        code = code.replace(place, "");
    }
    for parameter in ["A", "B", "C", "D", "E", "F", "X", "Y", "Range"] {
        code = code.replace(&format!("({parameter} &&"), "(").replace(&format!(", {parameter} &&"), ", ");
    }
    for word in ["inline ", "explicit ", "friend ", "constexpr "] {
        code = code.replace(word, "");
    }
    code.trim_end_matches(" const").trim_end_matches(" &&").trim_end_matches(" const &").to_owned()
}

/// After the bracket that closes one which is open.
fn closing(text: &str) -> usize {
    let mut depth = 1;
    let end = text.char_indices().find(|(_, letter)| {
        depth += i32::from(*letter == '(') - i32::from(*letter == ')');
        depth == 0
    });
    end.map_or(text.len(), |(at, _)| at + 1)
}

/// The text of the page. `operations` is the header of operations, which is made in the same run.
pub fn page(root: &Path, operations: &str) -> Result<String, String> {
    let mut text = String::from(
        "# Reference of the C++ interface\n\nMade from the headers; do not edit. [bh in C++](cpp.md) explains it. All names are in \
         the namespace `bh`. Where an array is taken, a number may be as well if the function has another array.\n",
    );
    for (header, title) in HEADERS {
        let file = root.join(format!("bh-bridge-c/include/bh/{header}.hpp"));
        let read = || std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()));
        let declared = if *header == "operations" { operations.to_owned() } else { read()? };
        let _ = write!(text, "\n## {title}\n");
        let mut before = None;
        for entry in entries(&declared) {
            if before.as_ref() != Some(&entry.class) {
                let title =
                    entry.class.as_ref().map(|class| format!("\n### Members of `{class}`\n")).unwrap_or_default();
                let _ = write!(text, "{title}\n| declaration | meaning |\n|---|---|\n");
            }
            let cell = |text: &str| text.replace('|', "\\|");
            let _ = writeln!(text, "| `{}` | {} |", cell(&entry.code), cell(&entry.comment));
            before = Some(entry.class);
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    #[test]
    fn members_and_functions_are_listed() {
        let made = super::page(&crate::root(), &crate::operations::header()).unwrap();
        for part in ["| `array copy()` |", "### Members of `array`", "| `auto add(a, b)` | Sum;"] {
            assert!(made.contains(part), "{part:?} in\n{made}");
        }
    }
}
