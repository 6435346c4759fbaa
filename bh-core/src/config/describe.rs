//! Describes one stack of a configuration as a configuration of its own, so that another process can build the same
//! stack.

use super::{ChosenStack, Config, Entries, Item};
use std::fmt::Write;

impl Config {
    /// The text of a configuration with only this stack, and the keys of its components and the core. Excludes the
    /// environment; paths do not depend on the location of the file.
    pub fn describe(&self, stack: &ChosenStack) -> String {
        let mut text = String::new();
        let paths: Vec<String> = self.library_path.iter().map(|path| quoted(&path.display().to_string())).collect();
        if !paths.is_empty() {
            line(&mut text, "library_path", &format!("[{}]", paths.join(", ")));
        }
        text.push_str("[stacks]\n");
        line(&mut text, &quoted(&stack.name), &list(&stack.items));
        let mut names = Vec::new();
        collect(&stack.items, &mut names);
        for name in names {
            if let Some(section) = self.components.get(&name) {
                self.section(&mut text, &format!("components.{}", quoted(&name)), section);
            }
        }
        for (name, section) in &self.core {
            self.section(&mut text, name, section);
        }
        text
    }

    fn section(&self, text: &mut String, name: &str, section: &Entries) {
        text.push_str(&format!("[{name}]\n"));
        for entry in &section.entries {
            let path = entry.key.text == "library" && entry.value.contains('/');
            let value = match path {
                true => self.directory().join(&entry.value).display().to_string(),
                false => entry.value.clone(),
            };
            line(text, &quoted(&entry.key.text), &quoted(&value));
        }
    }
}

fn line(text: &mut String, key: &str, value: &str) {
    // Writing to a string does not fail.
    let _ = writeln!(text, "{key} = {value}");
}

fn quoted(text: &str) -> String {
    let escaped: String = text
        .chars()
        .map(|character| match character {
            '"' | '\\' => format!("\\{character}"),
            control if control.is_control() => format!("\\u{:04X}", control as u32),
            other => other.to_string(),
        })
        .collect();
    format!("\"{escaped}\"")
}

fn list(items: &[Item]) -> String {
    let shown: Vec<String> = items
        .iter()
        .map(|item| match item {
            Item::One(name) => quoted(&name.text),
            Item::Each(name) => quoted(&format!("{}*", name.text)),
            Item::Siblings(chains) => {
                let chains: Vec<String> = chains.iter().map(|chain| list(chain)).collect();
                format!("[{}]", chains.join(", "))
            }
        })
        .collect();
    format!("[{}]", shown.join(", "))
}

fn collect(items: &[Item], names: &mut Vec<String>) {
    for item in items {
        match item {
            Item::One(name) | Item::Each(name) => {
                for name in name.alternatives() {
                    if !names.contains(&name.text) {
                        names.push(name.text);
                    }
                }
            }
            Item::Siblings(chains) => chains.iter().for_each(|chain| collect(chain, names)),
        }
    }
}
