//! The configuration: named stacks, a section for each component, and settings of the core; unknown names are errors.
//!
//! bh reads one file, the first of: `BH_CONFIG`, the user's config directory, the install prefix, the built-in default.
//! A file without `[stacks]` uses the built-in stacks. `BH_STACK` selects a stack and `BH_<SECTION>_<KEY>` overrides a
//! key.

pub(crate) mod casts;
mod checks;
mod describe;
pub(crate) mod key;
mod names;
mod parse;
pub(crate) mod recipes;
mod settings;
pub(crate) mod size;
#[cfg(test)]
mod tests;

use crate::abi::{ComponentTable, status};
use crate::environment;
use crate::error::{Error, Result};
use crate::keys;
pub use casts::Casts;
pub use checks::Checks;
pub use key::{Key, Row, Section, Setting};
use names::hint;
pub use recipes::Recipes;
pub use size::{Size, parse_size};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The built-in configuration.
const DEFAULT: &str = include_str!("../../config/default.toml");

/// The largest file, in bytes.
const LONGEST: u64 = 1 << 20;

/// The most components in a stack, counting what follows siblings once for each of them.
const MOST_COMPONENTS: usize = 256;

/// Keys that every component section may have in addition to the component's own.
const COMMON_KEYS: [&str; 1] = ["library"];

/// Sections of the core and their keys.
fn core_sections() -> impl Iterator<Item = &'static Section> {
    keys::SECTIONS.iter().filter(|section| !section.is_component)
}

/// A name and the line that contains it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The name.
    pub text: String,
    /// Line from 1.
    pub line: u32,
}

impl Name {
    /// The components of one position in a stack: `A|B` means the first of them that has a device.
    pub fn alternatives(&self) -> impl Iterator<Item = Name> + '_ {
        self.text.split('|').map(|text| Name { text: text.trim().to_owned(), line: self.line })
    }
}

/// An element of a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A component, or alternatives: see [`Name::alternatives`].
    One(Name),
    /// `NAME*`: the chain of siblings that contains it exists once for each device that the component offers.
    Each(Name),
    /// Children of the previous component, side by side; each is a chain, and each gets its own instances of what
    /// follows.
    Siblings(Vec<Vec<Item>>),
}

/// The definition of a stack's name.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Definition {
    /// Another stack.
    Alias(Name),
    /// Its components from top to bottom.
    List(Vec<Item>),
}

/// A stack that was selected by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenStack {
    /// Its name after resolving aliases.
    pub name: String,
    /// Line of the definition.
    pub line: u32,
    /// Its components from top to bottom.
    pub items: Vec<Item>,
}

impl ChosenStack {
    /// The components below the one that `is` selects, within the same chain.
    pub(crate) fn below(&self, is: &dyn Fn(&str) -> bool) -> Option<&[Item]> {
        below(&self.items, is)
    }
}

fn below<'a>(items: &'a [Item], is: &dyn Fn(&str) -> bool) -> Option<&'a [Item]> {
    items.iter().enumerate().find_map(|(place, item)| match item {
        Item::One(name) | Item::Each(name) => {
            name.alternatives().any(|name| is(&name.text)).then_some(&items[place + 1..])
        }
        Item::Siblings(chains) => chains.iter().find_map(|chain| below(chain, is)),
    })
}

/// The sections that have keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table<'a> {
    /// `[components.NAME]`.
    Component(&'a str),
    /// A section of the core, like `[memory]`.
    Core(&'a str),
}

impl Table<'_> {
    fn name(&self) -> &str {
        match self {
            Table::Component(name) | Table::Core(name) => name,
        }
    }

    fn shown(&self) -> String {
        match self {
            Table::Component(name) => format!("[components.{name}]"),
            Table::Core(name) => format!("[{name}]"),
        }
    }

    /// The environment variable that overrides a key of this section.
    fn variable(&self, key: &str) -> String {
        format!("{}{}", variable_prefix(self.name()), key.to_uppercase().replace('-', "_"))
    }
}

/// The prefix of a section's environment variables.
fn variable_prefix(section: &str) -> String {
    format!("BH_{}_", section.to_uppercase().replace('-', "_"))
}

/// A key's value as text, and the place that set it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// The text; lists are joined by commas.
    pub value: String,
    /// `file:line`, or the environment variable.
    pub place: String,
}

/// One `key = value` line.
#[derive(Clone, Debug)]
struct Entry {
    key: Name,
    value: String,
}

/// Keys of a section, with the line of its header.
#[derive(Clone, Debug, Default)]
struct Entries {
    line: u32,
    entries: Vec<Entry>,
}

/// A configuration.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Its name in errors: the path, or "built-in configuration".
    source: String,
    /// The file, if the configuration comes from one.
    file: Option<PathBuf>,
    stacks: BTreeMap<String, (u32, Definition)>,
    components: BTreeMap<String, Entries>,
    core: BTreeMap<String, Entries>,
    library_path: Vec<PathBuf>,
    environment: Vec<(String, String)>,
    linked: Vec<(String, Linked)>,
}

/// The table of a component that the program links.
#[derive(Clone, Copy, Debug)]
struct Linked(&'static ComponentTable);

// SAFETY: component tables are immutable, and their pointers refer to static data.
unsafe impl Send for Linked {}
// SAFETY: as above.
unsafe impl Sync for Linked {}

impl Config {
    /// The configuration of this process, with its environment.
    pub fn find() -> Result<Config> {
        let config = match config_file() {
            Some(file) => Config::from_file(&file)?,
            None => Config::built_in()?,
        };
        Ok(config.with_environment(environment::bh_variables()))
    }

    /// The built-in configuration, without the environment.
    pub fn built_in() -> Result<Config> {
        Config::from_text("built-in configuration", DEFAULT)
    }

    /// Reads a file, without the environment.
    pub fn from_file(file: &Path) -> Result<Config> {
        let shown = file.display().to_string();
        let text = read_text(file).map_err(|error| {
            Error::new(status::CONFIG, format!("{shown}: the configuration cannot be read: {error}"))
        })?;
        let directory = file.parent().map(Path::to_path_buf).unwrap_or_default();
        let mut config = Config { source: shown, file: Some(file.to_owned()), ..Config::default() };
        parse::parse(&mut config, &text, &directory)?;
        Ok(config)
    }

    /// Reads a text, without the environment; errors name it `source`.
    pub fn from_text(source: &str, text: &str) -> Result<Config> {
        let mut config = Config { source: source.to_owned(), ..Config::default() };
        parse::parse(&mut config, text, Path::new(""))?;
        Ok(config)
    }

    /// The configuration with these `BH_` variables.
    pub fn with_environment(mut self, variables: Vec<(String, String)>) -> Config {
        self.environment = variables;
        self
    }

    /// Uses a component that the program links in place of the library with this name.
    pub fn with_component(mut self, library: &str, table: &'static ComponentTable) -> Config {
        self.linked.push((library.to_owned(), Linked(table)));
        self
    }

    /// Its name in errors: the path of the file, or "built-in configuration".
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The names of all stacks.
    pub fn stack_names(&self) -> impl Iterator<Item = &str> {
        self.stacks.keys().map(String::as_str)
    }

    /// The stack `name`, or else the stack of `BH_STACK`, or else `default`, or else the only one.
    pub fn choose_stack(&self, name: Option<&str>) -> Result<ChosenStack> {
        let (place, wanted) = match (name, self.variable("BH_STACK")) {
            (Some(name), _) => (self.source.clone(), name),
            (None, Some(name)) => ("environment variable BH_STACK".to_owned(), name),
            (None, None) if self.stacks.contains_key("default") => (self.source.clone(), "default"),
            (None, None) if self.stacks.len() == 1 => {
                (self.source.clone(), self.stacks.keys().next().map_or("", |n| n))
            }
            (None, None) => {
                let names: Vec<_> = self.stack_names().collect();
                let text = format!(
                    "{}: [stacks] has no key 'default', and no stack is chosen; stacks: {}",
                    self.source,
                    names.join(", ")
                );
                return Err(Error::new(status::CONFIG, text));
            }
        };
        self.resolve(place, wanted)
    }

    /// Resolves aliases to a list of components.
    fn resolve(&self, mut place: String, name: &str) -> Result<ChosenStack> {
        let mut path = vec![name.to_owned()];
        let mut known = BTreeSet::from([name.to_owned()]);
        loop {
            let name = path.last().cloned().unwrap_or_default();
            let Some((line, definition)) = self.stacks.get(&name) else {
                let text = format!("{place}: unknown stack '{name}'{}", hint(&name, "stacks", self.stack_names()));
                return Err(Error::new(status::CONFIG, text));
            };
            match definition {
                Definition::List(items) => {
                    let mut count = 0;
                    count_components(items, &mut count);
                    if count > MOST_COMPONENTS {
                        let place = self.place(*line);
                        let text = format!("{place}: stack '{name}' has more than {MOST_COMPONENTS} components");
                        return Err(Error::new(status::CONFIG, text));
                    }
                    self.check_chain(&name, items, &mut Vec::new())?;
                    return Ok(ChosenStack { name, line: *line, items: items.clone() });
                }
                Definition::Alias(next) => {
                    let cycle = !known.insert(next.text.clone());
                    path.push(next.text.clone());
                    if cycle {
                        let text = format!("{}: stacks form a cycle: {}", self.place(next.line), path.join(" -> "));
                        return Err(Error::new(status::CONFIG, text));
                    }
                    place = self.place(next.line);
                }
            }
        }
    }

    /// Rejects a component above itself.
    fn check_chain(&self, stack: &str, items: &[Item], above: &mut Vec<String>) -> Result<()> {
        let depth = above.len();
        for (index, item) in items.iter().enumerate() {
            match item {
                Item::One(name) | Item::Each(name) => {
                    let names: Vec<String> = name.alternatives().map(|name| name.text).collect();
                    let cycle = names.iter().any(|name| above.contains(name));
                    above.extend(names);
                    if cycle {
                        let text = format!(
                            "{}: stack '{stack}' forms a cycle: {}; give the second instance a section of its own with \
                             the same 'library'",
                            self.place(name.line),
                            above.join(" -> ")
                        );
                        return Err(Error::new(status::CONFIG, text));
                    }
                }
                Item::Siblings(chains) => {
                    for chain in chains {
                        let branch: Vec<Item> = chain.iter().chain(&items[index + 1..]).cloned().collect();
                        self.check_chain(stack, &branch, above)?;
                    }
                    break;
                }
            }
        }
        above.truncate(depth);
        Ok(())
    }

    /// Every component that a stack names, once, sorted.
    pub fn component_names(&self) -> Vec<Name> {
        fn collect(items: &[Item], names: &mut BTreeMap<String, Name>) {
            for item in items {
                match item {
                    Item::One(name) | Item::Each(name) => {
                        for name in name.alternatives() {
                            names.entry(name.text.clone()).or_insert(name);
                        }
                    }
                    Item::Siblings(chains) => chains.iter().for_each(|chain| collect(chain, names)),
                }
            }
        }
        let mut names = BTreeMap::new();
        for (_, definition) in self.stacks.values() {
            if let Definition::List(items) = definition {
                collect(items, &mut names);
            }
        }
        names.into_values().collect()
    }

    /// The value of a key: the environment's, else the file's. `BH_DEVICE` sets the key `device` of every component.
    pub fn value(&self, section: Table<'_>, key: &str) -> Option<Value> {
        let devices = matches!(section, Table::Component(_)) && key == "device";
        let variables = std::iter::once(section.variable(key)).chain(devices.then(|| "BH_DEVICE".to_owned()));
        for variable in variables {
            if let Some(value) = self.variable(&variable) {
                return Some(Value { value: value.to_owned(), place: format!("environment variable {variable}") });
            }
        }
        let entries = match section {
            Table::Component(name) => self.components.get(name),
            Table::Core(name) => self.core.get(name),
        };
        let entry = entries?.entries.iter().find(|entry| entry.key.text == key)?;
        Some(Value { value: entry.value.clone(), place: self.place(entry.key.line) })
    }

    /// An environment variable, if it is set.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        let found = self.environment.iter().find(|(known, value)| known == name && !value.is_empty());
        found.map(|(_, value)| value.as_str())
    }

    /// `file:line`.
    pub(crate) fn place(&self, line: u32) -> String {
        if line == 0 { self.source.clone() } else { format!("{}:{line}", self.source) }
    }

    /// The `library` key of a component, if it is set.
    pub(crate) fn component_library(&self, component: &str) -> Option<Value> {
        self.value(Table::Component(component), "library")
    }

    /// The linked component that replaces a library, if there is one.
    pub(crate) fn linked_component(&self, library: &str) -> Option<&'static ComponentTable> {
        self.linked.iter().find(|(name, _)| name == library).map(|(_, linked)| linked.0)
    }

    /// Directories that the file adds to the search for libraries.
    pub fn library_path(&self) -> &[PathBuf] {
        &self.library_path
    }

    /// The directory for relative paths.
    pub(crate) fn directory(&self) -> &Path {
        self.file.as_deref().and_then(Path::parent).unwrap_or(Path::new(""))
    }

    /// The end of an error about a component whose library is missing: suggests the nearest other name.
    pub(crate) fn component_hint(&self, component: &str) -> String {
        let named: Vec<String> = self.component_names().into_iter().map(|name| name.text).collect();
        let shipped = ["filter", "fuser", "node", "ve-cpu"];
        let others = named.iter().chain(self.components.keys()).map(String::as_str).chain(shipped);
        names::nearest(component, others.filter(|&other| other != component))
            .map_or(String::new(), |name| format!("; did you mean component '{name}'?"))
    }

    /// Checks the keys of a component's section against the known ones.
    pub fn check_keys(&self, component: &str, known: &[String]) -> Result<()> {
        let valid = || known.iter().map(String::as_str).chain(COMMON_KEYS);
        let entries = self.components.get(component).map_or(&[][..], |section| &section.entries);
        match entries.iter().find(|entry| !valid().any(|key| key == entry.key.text)) {
            Some(entry) => Err(self.unknown_key(&entry.key, Table::Component(component), valid())),
            None => Ok(()),
        }
    }

    fn unknown_key<'a>(&self, key: &Name, section: Table<'_>, valid: impl Iterator<Item = &'a str>) -> Error {
        let text = format!(
            "{}: unknown key '{}' in {}{}",
            self.place(key.line),
            key.text,
            section.shown(),
            hint(&key.text, "valid keys", valid)
        );
        Error::new(status::CONFIG, text)
    }

    /// Rejects variables that look like a key of one of these components, or of the core, but are not one.
    pub(crate) fn check_environment<'a>(
        &self,
        components: impl Iterator<Item = (&'a str, &'a [String])>,
    ) -> Result<()> {
        let mut sections: Vec<(String, Vec<String>)> = Vec::new();
        for (name, keys) in components {
            let keys = keys.iter().map(String::as_str).chain(COMMON_KEYS);
            sections.push((variable_prefix(name), keys.map(|key| Table::Core(name).variable(key)).collect()));
        }
        for Section { name, rows, .. } in core_sections() {
            let variables = rows.iter().map(|row| Table::Core(name).variable(row.name)).collect();
            sections.push((variable_prefix(name), variables));
        }
        for (variable, _) in &self.environment {
            let matching = || sections.iter().filter(|(prefix, _)| variable.starts_with(prefix.as_str()));
            let known = matching().any(|(_, variables)| variables.contains(variable));
            let section = matching().max_by_key(|(prefix, _)| prefix.len());
            if let (false, Some((prefix, variables))) = (known, section) {
                let keys = variables.iter().map(|variable| &variable[prefix.len()..]);
                let nearest = names::nearest(&variable[prefix.len()..], keys);
                let hint = match nearest {
                    Some(key) => format!("; did you mean '{prefix}{key}'?"),
                    None => format!("; valid: {}", variables.join(", ")),
                };
                let text = format!("unknown environment variable {variable}{hint}");
                return Err(Error::new(status::CONFIG, text));
            }
        }
        Ok(())
    }
}

/// Counts the instances that a chain creates, up to one more than allowed: each sibling has its own instances of what
/// follows.
fn count_components(items: &[Item], count: &mut usize) {
    for (index, item) in items.iter().enumerate() {
        match item {
            _ if *count > MOST_COMPONENTS => return,
            Item::One(_) | Item::Each(_) => *count += 1,
            Item::Siblings(chains) => {
                for chain in chains {
                    count_components(chain, count);
                    count_components(&items[index + 1..], count);
                }
                return;
            }
        }
    }
}

/// The text of a regular file of bounded length. Does not block on opening, as a fifo without a writer would.
fn read_text(file: &Path) -> std::result::Result<String, String> {
    let text = |error: std::io::Error| error.to_string();
    let opened = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(file).map_err(text)?;
    let found = opened.metadata().map_err(text)?;
    if !found.is_file() {
        return Err("it is no regular file".into());
    }
    let mut bytes = Vec::new();
    // The file may grow meanwhile, and some files report no length.
    opened.take(LONGEST + 1).read_to_end(&mut bytes).map_err(text)?;
    if bytes.len() as u64 > LONGEST {
        return Err(format!("it is longer than {LONGEST} bytes"));
    }
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8".into())
}

/// The configuration file that applies, if there is one.
fn config_file() -> Option<PathBuf> {
    if let Some(file) = environment::variable_os("BH_CONFIG") {
        return Some(file.into());
    }
    let user = environment::variable_os("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| environment::variable_os("HOME").map(|home| PathBuf::from(home).join(".config")));
    let user = user.map(|directory| directory.join("bh/config.toml"));
    let own = crate::installed::own_directory();
    let installed = own.iter().flat_map(|own| ["..", "../.."].map(|up| own.join(up).join("share/bh/config.toml")));
    user.into_iter().chain(installed).find(|file| file.is_file())
}
