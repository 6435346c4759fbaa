//! `#define`s for the constants of Rust modules, read from the source, where cbindgen would lose the module's name.

use std::fmt::Write;

/// The constants of the inner module `module` of a source file as `#define PREFIX_NAME value`, with their documentation.
pub fn defines(source: &str, module: &str, prefix: &str) -> Result<String, String> {
    let start = format!("pub mod {module} {{");
    let body = source.split_once(&start).ok_or_else(|| format!("there is no module '{module}'"))?.1;
    let body = body.split_once("\n}").map_or(body, |(body, _)| body);
    let mut text = String::new();
    for line in body.lines().map(str::trim) {
        if let Some(doc) = line.strip_prefix("///") {
            write_line(&mut text, &format!("/*{doc} */"));
        } else if let Some((name, value)) = constant(line) {
            write_line(&mut text, &format!("#define {prefix}{name} {value}"));
        }
    }
    if text.is_empty() { Err(format!("module '{module}' has no constants")) } else { Ok(text) }
}

/// `pub const NAME: type = value;` as name and value in C.
fn constant(line: &str) -> Option<(&str, String)> {
    let (name, rest) = line.strip_prefix("pub const ")?.split_once(':')?;
    let (kind, value) = rest.strip_suffix(';')?.split_once('=')?;
    let suffix = match kind.trim() {
        "u32" => "u",
        "u64" => "ull",
        _ => "",
    };
    Some((name, format!("{}{suffix}", value.trim())))
}

fn write_line(text: &mut String, line: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_found_in_their_module() {
        let source = "pub mod other {\n    pub const A: u32 = 9;\n}\npub mod kind {\n    /// Rewrites.\n    pub const A: u32 = 1;\n}\n";
        assert_eq!(defines(source, "kind", "BH_KIND_").unwrap(), "/* Rewrites. */\n#define BH_KIND_A 1u\n");
        assert!(defines(source, "none", "").is_err());
    }
}
