//! Finds, loads and chains the components of a stack. Libraries are never unloaded.

use crate::abi::{ENTRY_SYMBOL, EntryFn, status};
use crate::component::{Child, DEVICE_NUMBER};
use crate::config::{ChosenStack, Config, Item, Name, Table};
use crate::error::{Error, Result};
use crate::foreign::ForeignTable;
use crate::host::HostInstance;
pub use crate::installed::own_directory;
use crate::link::Link;
use crate::services::Services;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::collections::HashMap;
use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The directories to search for libraries, in this order.
pub fn library_directories(config: &Config) -> Vec<PathBuf> {
    let mut directories: Vec<PathBuf> =
        config.variable("BH_LIBRARY_PATH").iter().flat_map(|paths| std::env::split_paths(paths)).collect();
    directories.extend(config.library_path().iter().cloned());
    if let Some(own) = own_directory() {
        directories.extend([own.join("bh"), own.join("../lib/bh"), own.join("../lib")]);
        directories.insert(directories.len() - 3, own);
    }
    directories
}

/// The possible library names of a component without a `library` key, the likeliest first.
fn default_libraries(component: &str) -> [String; 3] {
    let name = component.replace('-', "_");
    [format!("bh_{name}"), format!("bh_vem_{name}"), format!("bh_ve_{name}")]
}

/// Loads the libraries of components.
pub struct Libraries<'a> {
    config: &'a Config,
    directories: Vec<PathBuf>,
    loaded: HashMap<PathBuf, Arc<ForeignTable>>,
}

impl<'a> Libraries<'a> {
    /// Without any loaded library.
    pub fn new(config: &'a Config) -> Libraries<'a> {
        Libraries { config, directories: library_directories(config), loaded: HashMap::new() }
    }

    /// The component of this name; loads it at first use. The error includes the line of the config that named it.
    pub fn component(&mut self, name: &Name) -> Result<Arc<ForeignTable>> {
        let (place, library) = match self.config.component_library(&name.text) {
            Some(library) => (library.place, Some(library.value)),
            None => (self.config.place(name.line), None),
        };
        let located = |error: Error| Error::new(error.status, format!("{place}: {}", error.text));
        let candidates = match &library {
            Some(library) => vec![library.clone()],
            None => default_libraries(&name.text).to_vec(),
        };
        for candidate in &candidates {
            if let Some(table) = self.find(candidate).map_err(located)? {
                return Ok(table);
            }
        }
        let text = format!(
            "component '{}': no library '{}' in {}{}",
            name.text,
            file_name(&candidates[0]),
            self.directories.iter().map(|directory| directory.display().to_string()).collect::<Vec<_>>().join(", "),
            self.config.component_hint(&name.text),
        );
        Err(located(Error::new(status::LIBRARY, text)))
    }

    fn find(&mut self, library: &str) -> Result<Option<Arc<ForeignTable>>> {
        if let Some(table) = self.config.linked_component(library) {
            // SAFETY: linked tables are static.
            return unsafe { ForeignTable::read(library, table) }.map(|table| Some(Arc::new(table)));
        }
        let files: Vec<PathBuf> = if is_path(library) {
            vec![self.config.directory().join(library)]
        } else {
            self.directories.iter().map(|directory| directory.join(file_name(library))).collect()
        };
        match files.into_iter().find(|file| file.is_file()) {
            Some(file) => self.open(&file).map(Some),
            None => Ok(None),
        }
    }

    fn open(&mut self, file: &Path) -> Result<Arc<ForeignTable>> {
        if let Some(table) = self.loaded.get(file) {
            return Ok(Arc::clone(table));
        }
        let table = Arc::new(open_component(file)?);
        self.loaded.insert(file.to_owned(), Arc::clone(&table));
        Ok(table)
    }
}

/// Whether a library's name is a path.
fn is_path(library: &str) -> bool {
    library.contains('/')
}

/// The file name of a library whose name lacks the platform's prefix and suffix.
fn file_name(library: &str) -> String {
    if is_path(library) { library.to_owned() } else { format!("lib{library}.so") }
}

/// An error followed by its causes, such as the dynamic loader's own text.
pub fn whole_text(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| {
        let cause = cause.to_string();
        if text.contains(&cause) { text } else { format!("{text}: {cause}") }
    })
}

/// Loads a library permanently and negotiates with its component.
pub fn open_component(file: &Path) -> Result<ForeignTable> {
    let shown = file.display();
    // SAFETY: the user's config chose this library, whose initialisers may run code.
    let library = unsafe { Library::open(Some(file), RTLD_NOW | RTLD_LOCAL) }.map_err(|error| {
        Error::new(status::LIBRARY, format!("library '{shown}' cannot be loaded: {}", whole_text(&error)))
    })?;
    let stem = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let stem = stem.strip_prefix("lib").unwrap_or(stem).split('.').next().unwrap_or_default();
    let own_symbol = format!("{stem}_component_entry");
    // SAFETY: a symbol of this name is an entry function, by the contract of components.
    let entry = unsafe {
        library.get::<EntryFn>(ENTRY_SYMBOL).or_else(|_| library.get::<EntryFn>(&own_symbol)).map(|symbol| *symbol)
    };
    let entry = entry.map_err(|_| {
        let text = format!("library '{shown}' is no component: it exports neither '{ENTRY_SYMBOL}' nor '{own_symbol}'");
        Error::new(status::LIBRARY, text)
    })?;
    std::mem::forget(library);
    if !is_code(entry as *const ()) {
        let text = format!("library '{shown}' is no component: what it exports as its entry is no function");
        return Err(Error::new(status::LIBRARY, text));
    }
    // SAFETY: the symbol is the entry function.
    unsafe { ForeignTable::negotiate(&shown.to_string(), entry) }
}

/// Whether an address is in a loaded file; the loader of macOS does not say in which of its segments.
#[cfg(target_os = "macos")]
fn is_code(address: *const ()) -> bool {
    let mut file = std::mem::MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: `dladdr` takes any address, and writes to `file`, which nobody reads.
    unsafe { libc::dladdr(address.cast(), file.as_mut_ptr()) != 0 }
}

/// Whether an address is in an executable segment of a loaded file.
#[cfg(not(target_os = "macos"))]
fn is_code(address: *const ()) -> bool {
    struct Search {
        address: u64,
        found: bool,
    }
    unsafe extern "C" fn look(file: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> i32 {
        // SAFETY: the dynamic loader passes a description of a file, and our own `search`.
        let (file, search) = unsafe { (&*file, &mut *search.cast::<Search>()) };
        // SAFETY: `dlpi_phdr` points to `dlpi_phnum` headers, as the dynamic loader says, which live through the call.
        let parts = unsafe { std::slice::from_raw_parts(file.dlpi_phdr, file.dlpi_phnum.into()) };
        let runs = parts.iter().filter(|part| part.p_type == libc::PT_LOAD && part.p_flags & libc::PF_X != 0);
        let place = search.address.wrapping_sub(file.dlpi_addr);
        search.found |= runs.into_iter().any(|part| place.wrapping_sub(part.p_vaddr) < part.p_memsz);
        i32::from(search.found)
    }
    let mut search = Search { address: address.addr() as u64, found: false };
    // SAFETY: the callback uses its arguments only during the call.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
    search.found
}

/// Creates the instances of one stack.
pub(crate) struct Loader<'a> {
    config: &'a Config,
    libraries: Libraries<'a>,
    services: Arc<Services>,
    instances: HashMap<String, usize>,
    /// The chosen component for each position of the stack with alternatives.
    chosen: HashMap<String, Name>,
    /// The number of devices of the last chain's component with one instance per device.
    devices: Option<usize>,
}

impl<'a> Loader<'a> {
    pub(crate) fn new(config: &'a Config, services: Arc<Services>) -> Loader<'a> {
        let (instances, chosen) = Default::default();
        Loader { config, libraries: Libraries::new(config), services, instances, chosen, devices: None }
    }

    /// Creates the instances from the bottom up; returns the top one.
    pub(crate) fn build(mut self, stack: &ChosenStack) -> Result<Box<Link>> {
        let mut tables = HashMap::new();
        self.load(&stack.items, &mut tables)?;
        self.config.check_environment(
            tables.iter().map(|(name, table): (&String, &Arc<ForeignTable>)| (name.as_str(), table.keys.as_slice())),
        )?;
        let mut top = self.chain(&stack.items, &tables, 0)?;
        match (top.pop(), top.is_empty()) {
            (Some(link), true) => Ok(link),
            _ => Err(Error::new(
                status::CONFIG,
                format!("{}: stack '{}' must begin with one component", self.config.place(stack.line), stack.name),
            )),
        }
    }

    /// Creates the instances below a component of a stack; returns the topmost of them.
    #[allow(clippy::vec_box)] // links stay at their addresses
    pub(crate) fn build_below(mut self, stack: &ChosenStack, component: &str) -> Result<Vec<Box<Link>>> {
        let mut tables = HashMap::new();
        self.load(&stack.items, &mut tables)?;
        let is = |name: &str| tables.get(name).is_some_and(|table| table.name == component);
        let items = stack.below(&is).ok_or_else(|| {
            Error::new(status::CONFIG, format!("stack '{}' has no component '{component}'", stack.name))
        })?;
        self.chain(items, &tables, 0)
    }

    /// Loads all libraries and checks all keys before any instance is created.
    fn load(&mut self, items: &[Item], tables: &mut HashMap<String, Arc<ForeignTable>>) -> Result<()> {
        for item in items {
            match item {
                Item::One(name) | Item::Each(name) => {
                    let outcomes: Vec<Result<()>> =
                        name.alternatives().map(|name| self.load_one(&name, tables)).collect();
                    // An alternative without its library is skipped if another one has its library.
                    let loaded = outcomes.iter().any(Result::is_ok);
                    let missing = |error: &Error| loaded && error.status == status::LIBRARY;
                    outcomes.into_iter().filter_map(Result::err).find(|error| !missing(error)).map_or(Ok(()), Err)?;
                }
                Item::Siblings(chains) => {
                    for chain in chains {
                        self.load(chain, tables)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn load_one(&mut self, name: &Name, tables: &mut HashMap<String, Arc<ForeignTable>>) -> Result<()> {
        if !tables.contains_key(&name.text) {
            let table = self.libraries.component(name)?;
            self.config.check_keys(&name.text, &table.keys)?;
            tables.insert(name.text.clone(), table);
        }
        Ok(())
    }

    /// The instances of a chain: one at the top, or several siblings, each with its own instances of what follows. A
    /// component with one instance per device uses the device with this number.
    #[allow(clippy::vec_box)] // links stay at their addresses
    fn chain(
        &mut self,
        items: &[Item],
        tables: &HashMap<String, Arc<ForeignTable>>,
        device: usize,
    ) -> Result<Vec<Box<Link>>> {
        let Some((first, rest)) = items.split_first() else { return Ok(Vec::new()) };
        let (place, each) = match first {
            Item::One(name) => (name, false),
            Item::Each(name) => (name, true),
            Item::Siblings(chains) => return self.siblings(chains, rest, tables),
        };
        let names: Vec<Name> = match self.chosen.get(&place.text) {
            Some(chosen) => vec![chosen.clone()],
            None => place.alternatives().filter(|name| tables.contains_key(&name.text)).collect(),
        };
        let Some((last, others)) = names.split_last() else { return Ok(Vec::new()) };
        for name in others {
            let instances = self.instances.clone();
            match self.instance(name, each.then_some(device), rest, tables, device) {
                Ok(link) if devices(&link)? != Some(0) => {
                    self.chosen.insert(place.text.clone(), name.clone());
                    return self.counted(link, each);
                }
                Err(error) if !matches!(error.status, status::INIT | status::DEVICE) => return Err(error),
                // It has no device: try the next alternative.
                _ => self.instances = instances,
            }
        }
        self.chosen.insert(place.text.clone(), last.clone());
        let link = self.instance(last, each.then_some(device), rest, tables, device)?;
        self.counted(link, each)
    }

    /// An instance of a component, and of the components that follow it.
    fn instance(
        &mut self,
        name: &Name,
        number: Option<usize>,
        rest: &[Item],
        tables: &HashMap<String, Arc<ForeignTable>>,
        device: usize,
    ) -> Result<Box<Link>> {
        let children = self.chain(rest, tables, device)?;
        let table = &tables[&name.text];
        let host = self.host(&name.text, table, number);
        let link = Link::create(Arc::clone(table), host, children);
        link.map_err(|error| self.placed(&name.text, &table.keys, error))
    }

    /// One chain of siblings. Counts the devices if the chain exists once per device.
    #[allow(clippy::vec_box)] // links stay at their addresses
    fn counted(&mut self, link: Box<Link>, each: bool) -> Result<Vec<Box<Link>>> {
        if each {
            self.devices = Some(devices(&link)?.unwrap_or(1));
        }
        Ok(vec![link])
    }

    /// The instances of siblings. Skips a chain per device that finds no device, unless it is the only one.
    #[allow(clippy::vec_box)]
    fn siblings(
        &mut self,
        chains: &[Vec<Item>],
        rest: &[Item],
        tables: &HashMap<String, Arc<ForeignTable>>,
    ) -> Result<Vec<Box<Link>>> {
        let (mut links, mut without) = (Vec::new(), Vec::new());
        for chain in chains {
            let items: Vec<Item> = chain.iter().chain(rest).cloned().collect();
            self.devices = None;
            let first = self.chain(&items, tables, 0)?;
            let devices = self.devices.take().unwrap_or(1);
            if devices == 0 {
                without.push(first);
                continue;
            }
            links.extend(first);
            for device in 1..devices {
                links.extend(self.chain(&items, tables, device)?);
            }
        }
        if links.is_empty() {
            links.extend(without.into_iter().next().unwrap_or_default());
        }
        Ok(links)
    }

    /// Adds the place where a key was set to a component's error about the key.
    fn placed(&self, component: &str, keys: &[String], mut error: Error) -> Error {
        let key = keys.iter().find(|key| error.status == status::CONFIG && error.text.contains(&format!("'{key}'")));
        if let Some(value) = key.and_then(|key| self.config.value(Table::Component(component), key)) {
            error.text = format!("{}: {}", value.place, error.text);
        }
        error
    }

    fn host(&mut self, component: &str, table: &ForeignTable, device: Option<usize>) -> Arc<HostInstance> {
        let number = self.instances.entry(component.to_owned()).or_default();
        *number += 1;
        let label = if *number == 1 { component.to_owned() } else { format!("{component}#{number}") };
        let values = table
            .keys
            .iter()
            .filter_map(|key| Some((key.clone(), self.config.value(Table::Component(component), key)?.value)));
        let values: Vec<(String, String)> =
            values.chain(device.map(|device| (DEVICE_NUMBER.to_owned(), device.to_string()))).collect();
        HostInstance::new(Arc::clone(&self.services), &label, &table.name, &values)
    }
}

/// The number of devices of a component; `None` if it does not report one.
fn devices(link: &Link) -> Result<Option<usize>> {
    // SAFETY: the link lives, and nothing else calls it.
    let answer = unsafe { Child::new(link.handle()) }.message("device count")?;
    Ok(answer.trim().parse().ok())
}

/// Loads every component that any stack of the config names and checks its keys; returns all errors.
pub fn check(config: &Config) -> Vec<Error> {
    let mut errors = Vec::new();
    let mut libraries = Libraries::new(config);
    for name in config.component_names() {
        let checked = libraries.component(&name).and_then(|table| config.check_keys(&name.text, &table.keys));
        errors.extend(checked.err());
    }
    errors
}
