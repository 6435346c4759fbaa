//! Parses TOML into a [`Config`], with the line of every name.

use super::names::hint;
use super::{Config, DEFAULT, Definition, Entries, Entry, Item, Name, Table, core_sections};
use crate::abi::status;
use crate::error::{Error, Result};
use std::collections::BTreeSet;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The top-level names of a file besides the sections of the core.
const TOP_LEVEL: [&str; 3] = ["library_path", "stacks", "components"];

/// A value with its position in the text.
type Node<'i> = Spanned<DeValue<'i>>;

/// Fills the config from a text; relative paths start from `directory`.
pub(super) fn parse(config: &mut Config, text: &str, directory: &Path) -> Result<()> {
    let mut parser = Parser { config, text, lines: Some(line_starts(text)) };
    parser.document(directory)?;
    if parser.config.stacks.is_empty() {
        let mut built_in = Config { source: parser.config.source.clone(), ..Config::default() };
        Parser { config: &mut built_in, text: DEFAULT, lines: None }.document(Path::new(""))?;
        inherit(parser.config, built_in);
    }
    parser.check_sections_used()
}

/// Takes over the built-in stacks, and their component keys that the file leaves unset.
fn inherit(config: &mut Config, built_in: Config) {
    config.stacks = built_in.stacks;
    for (name, section) in built_in.components {
        let own = &mut config.components.entry(name).or_default().entries;
        for entry in section.entries {
            if !own.iter().any(|other| other.key.text == entry.key.text) {
                own.push(entry);
            }
        }
    }
}

struct Parser<'a> {
    config: &'a mut Config,
    text: &'a str,
    /// The offsets of line starts, if the text has the same lines as the config's file.
    lines: Option<Vec<usize>>,
}

/// The offsets of the first bytes of all lines.
fn line_starts(text: &str) -> Vec<usize> {
    let after_breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(offset, _)| offset + 1);
    std::iter::once(0).chain(after_breaks).collect()
}

impl Parser<'_> {
    fn line(&self, offset: usize) -> u32 {
        self.lines.as_ref().map_or(0, |starts| starts.partition_point(|&start| start <= offset) as u32)
    }

    fn name(&self, key: &Spanned<impl AsRef<str>>) -> Name {
        Name { text: key.get_ref().as_ref().to_owned(), line: self.line(key.span().start) }
    }

    fn error(&self, line: u32, text: impl AsRef<str>) -> Error {
        Error::new(status::CONFIG, format!("{}: {}", self.config.place(line), text.as_ref()))
    }

    /// The error about a value of the wrong type.
    fn mistyped(&self, key: &Name, value: &Node<'_>, wanted: &str) -> Error {
        let found = value.get_ref().type_str();
        self.error(key.line, format!("key '{}' must be {wanted}, not {found}", key.text))
    }

    fn document(&mut self, directory: &Path) -> Result<()> {
        let text = self.text;
        let table = DeTable::parse(text).map_err(|error| {
            let line = self.line(error.span().map_or(0, |span| span.start));
            self.error(line, error.message().replace('\n', ", "))
        })?;
        for (key, value) in table.get_ref() {
            let name = self.name(key);
            match name.text.as_str() {
                "library_path" => {
                    let paths = self.text_list(&name, value)?;
                    self.config.library_path = paths.iter().map(|path| directory.join(path)).collect();
                }
                "stacks" => self.stacks(&name, value)?,
                "components" => {
                    for (key, value) in self.table(&name, value)? {
                        let component = self.name(key);
                        let entries = self.entries(&component, value)?;
                        self.config.components.insert(component.text, entries);
                    }
                }
                other => match core_sections().find(|section| section.name == other) {
                    Some(section) => {
                        let entries = self.entries(&name, value)?;
                        let mut known = section.rows.iter().map(|row| row.name);
                        let unknown = |entry: &&Entry| !known.clone().any(|key| key == entry.key.text);
                        if let Some(entry) = entries.entries.iter().find(unknown) {
                            return Err(self.config.unknown_key(&entry.key, Table::Core(section.name), known.by_ref()));
                        }
                        self.config.core.insert(name.text, entries);
                    }
                    None => {
                        let sections = core_sections().map(|section| section.name);
                        let hint = hint(other, "valid keys", TOP_LEVEL.into_iter().chain(sections));
                        return Err(self.error(name.line, format!("unknown key '{other}'{hint}")));
                    }
                },
            }
        }
        Ok(())
    }

    fn table<'t, 'i>(&self, key: &Name, value: &'t Node<'i>) -> Result<&'t DeTable<'i>> {
        value.get_ref().as_table().ok_or_else(|| self.mistyped(key, value, "a table"))
    }

    fn stacks(&mut self, key: &Name, value: &Node<'_>) -> Result<()> {
        for (key, value) in self.table(key, value)? {
            let stack = self.name(key);
            let definition = match value.get_ref() {
                DeValue::String(alias) => {
                    Definition::Alias(Name { text: alias.to_string(), line: self.line(value.span().start) })
                }
                DeValue::Array(items) => {
                    if items.is_empty() {
                        let text = format!("stack '{}' is empty; it needs at least one component", stack.text);
                        return Err(self.error(stack.line, text));
                    }
                    Definition::List(items.iter().map(|item| self.item(&stack, item, false)).collect::<Result<_>>()?)
                }
                _ => return Err(self.mistyped(&stack, value, "a list of components or the name of another stack")),
            };
            self.config.stacks.insert(stack.text, (stack.line, definition));
        }
        Ok(())
    }

    fn item(&self, stack: &Name, value: &Node<'_>, among_siblings: bool) -> Result<Item> {
        let line = self.line(value.span().start);
        match value.get_ref() {
            DeValue::String(component) if component.split('|').any(|name| name.trim().is_empty()) => {
                Err(self.error(line, format!("stack '{}' has '{component}', which lacks a name", stack.text)))
            }
            DeValue::String(component) => match (component.strip_suffix('*'), among_siblings) {
                (None, _) => Ok(Item::One(Name { text: component.to_string(), line })),
                (Some(each), true) => Ok(Item::Each(Name { text: each.to_owned(), line })),
                (Some(_), false) => {
                    let text = format!("stack '{}' has '{component}' outside of a list of siblings", stack.text);
                    Err(self.error(line, text))
                }
            },
            DeValue::Array(siblings) => {
                let chain = |sibling: &Node<'_>| match sibling.get_ref() {
                    DeValue::Array(items) if !items.is_empty() => {
                        items.iter().map(|item| self.item(stack, item, true)).collect()
                    }
                    _ => Ok(vec![self.item(stack, sibling, true)?]),
                };
                let siblings = siblings.iter().map(chain).collect::<Result<Vec<Vec<Item>>>>()?;
                match siblings.is_empty() {
                    true => Err(self.error(line, format!("stack '{}' has an empty set of siblings", stack.text))),
                    false => Ok(Item::Siblings(siblings)),
                }
            }
            other => {
                let text = format!("stack '{}' must list names of components, not {}", stack.text, other.type_str());
                Err(self.error(line, text))
            }
        }
    }

    fn entries(&self, section: &Name, value: &Node<'_>) -> Result<Entries> {
        let mut entries = Vec::new();
        for (key, value) in self.table(section, value)? {
            let key = self.name(key);
            let value = match value.get_ref() {
                DeValue::Array(_) => self.text_list(&key, value)?.join(","),
                _ => self.scalar(&key, value)?,
            };
            entries.push(Entry { key, value });
        }
        Ok(Entries { line: section.line, entries })
    }

    fn text_list(&self, key: &Name, value: &Node<'_>) -> Result<Vec<String>> {
        match value.get_ref() {
            DeValue::Array(items) => items.iter().map(|item| self.scalar(key, item)).collect(),
            _ => Err(self.mistyped(key, value, "a list")),
        }
    }

    fn scalar(&self, key: &Name, value: &Node<'_>) -> Result<String> {
        match value.get_ref() {
            DeValue::String(text) => Ok(text.to_string()),
            DeValue::Boolean(flag) => Ok(flag.to_string()),
            DeValue::Float(number) => Ok(number.as_str().to_owned()),
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
                .map(|number| number.to_string())
                .map_err(|_| self.error(key.line, format!("key '{}': the number does not fit 64 bits", key.text))),
            _ => Err(self.mistyped(key, value, "a text, a number, true, false, or a list of these")),
        }
    }

    /// Rejects a section that no stack refers to: it is probably misspelt.
    fn check_sections_used(&self) -> Result<()> {
        let used: BTreeSet<String> = self.config.component_names().into_iter().map(|name| name.text).collect();
        match self.config.components.iter().find(|(name, _)| !used.contains(name.as_str())) {
            Some((name, entries)) => {
                let hint = hint(name, "components of the stacks", used.iter().map(String::as_str));
                let text = format!("section [components.{name}] is of a component that no stack names{hint}");
                Err(self.error(entries.line, text))
            }
            None => Ok(()),
        }
    }
}
