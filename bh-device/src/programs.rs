//! The kernels that are known for a device, and the threads that build them.

use crate::compiler::{Compiler, Entry};
use crate::driver::Driver;
use crate::settings::Settings;
use bh_core::abi::status;
use bh_core::kernel_store::KernelStore;
use bh_core::threads::without_signals;
use bh_core::{Error, Host, Result};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// All kernels of an engine.
#[derive(Clone)]
pub(crate) struct Programs {
    shared: Arc<Shared>,
}

struct Shared {
    compiler: Compiler,
    known: Mutex<HashMap<u128, Vec<Arc<Entry>>>>,
    builders: usize,
    /// The most kernels of a program.
    together: usize,
    beside: Mutex<Beside>,
    /// A thread has built a program, or ends.
    built: Condvar,
}

/// Kernels that become one program.
type Group = Vec<Arc<Entry>>;

/// The threads that build kernels beside the program.
#[derive(Default)]
struct Beside {
    waiting: VecDeque<Group>,
    threads: Vec<JoinHandle<()>>,
    /// Threads that have not found that nothing waits any more.
    running: usize,
    /// Are compilers being added, or have they been?
    grown: bool,
    /// None is started any more.
    closed: bool,
}

/// Threads that add compilers. They take a while, and programs are to be built meanwhile.
const GROWERS: usize = 3;

/// The form of what is kept on disk.
const STORED: &str = "programs of several kernels";

/// The cache key of a choice; no kernel's text is like that.
fn choice_key(name: u128) -> Vec<u8> {
    format!("choice {name:032x}").into_bytes()
}

/// The most kernels that are known by their texts; beyond, all that nobody uses go.
const KNOWN: usize = 8192;

impl Programs {
    pub(crate) fn new(driver: Arc<dyn Driver>, settings: &Settings, host: &Host) -> Programs {
        let identity = format!("{}\n{STORED}", driver.identity());
        let store = settings.cache_dir.clone();
        let store = store.and_then(|directory| KernelStore::new(directory, identity.into_bytes()));
        let keeps = settings.cache_given || !driver.keeps_programs();
        let compiler = Compiler::new(driver, store, keeps, settings.dump.clone(), host);
        Programs {
            shared: Arc::new(Shared {
                compiler,
                known: Mutex::default(),
                builders: settings.builders,
                together: settings.together,
                beside: Mutex::default(),
                built: Condvar::new(),
            }),
        }
    }

    /// The driver that builds them.
    pub(crate) fn driver(&self) -> &dyn Driver {
        self.shared.compiler.driver()
    }

    /// The entry of a text, of which this many bytes at the end may be in a program with others.
    pub(crate) fn entry(&self, text: String, own: usize) -> Arc<Entry> {
        let hash = bh_bytecode::hash::hash_bytes(text.as_bytes());
        let mut known = self.shared.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() > KNOWN {
            known.retain(|_, entries| entries.iter().any(|entry| Arc::strong_count(entry) > 1));
        }
        let entries = known.entry(hash).or_default();
        if let Some(entry) = entries.iter().find(|entry| entry.text == text) {
            return entry.clone();
        }
        let entry = Arc::new(Entry::new(text, own, hash));
        entries.push(entry.clone());
        entry
    }

    /// Is the kernel built, now that the disk has been asked for it?
    pub(crate) fn load_stored(&self, entry: &Entry) -> bool {
        self.shared.compiler.load(entry)
    }

    /// The number that was kept on disk for a name.
    pub(crate) fn choice(&self, name: u128) -> Option<usize> {
        let kept = self.shared.compiler.store.as_ref()?.read(&choice_key(name))?;
        std::str::from_utf8(&kept).ok()?.parse().ok()
    }

    /// Keeps a number for a name on disk.
    pub(crate) fn keep_choice(&self, name: u128, number: usize) {
        if let Some(store) = &self.shared.compiler.store {
            store.write(&choice_key(name), number.to_string().as_bytes());
        }
    }

    /// Builds what is not built yet: some in a program, programs side by side. Fails with the first failure.
    pub(crate) fn build(&self, entries: &[Arc<Entry>]) -> Result<()> {
        self.begin(entries);
        self.finish(entries)
    }

    /// Begins to build entries beside the program that [`Programs::finish`] will wait for, some in a program. Those on disk are there at
    /// once.
    pub(crate) fn begin(&self, entries: &[Arc<Entry>]) {
        let shared = &self.shared;
        let missing = entries.iter().filter(|entry| !shared.compiler.load(entry) && entry.begins()).cloned();
        shared.put(missing.collect(), |waiting, group| waiting.push_front(group));
    }

    /// Builds entries beside the program, after those that a block waits for. Entries of which the building has begun are left out.
    pub(crate) fn build_later<'a>(&self, entries: impl IntoIterator<Item = &'a Arc<Entry>>) {
        let missing = entries.into_iter().filter(|entry| entry.begins()).cloned();
        self.shared.put(missing.collect(), |waiting, group| waiting.push_back(group));
    }

    /// Waits until entries are built, and takes part in that. Fails with the first failure.
    pub(crate) fn finish(&self, entries: &[Arc<Entry>]) -> Result<()> {
        let shared = &self.shared;
        for entry in entries {
            let mut beside = shared.beside();
            while !entry.is_done() {
                let is_own = |group: &Group| group.iter().any(|other| Arc::ptr_eq(other, entry));
                let own = beside.waiting.iter().position(is_own).and_then(|at| beside.waiting.remove(at));
                if own.is_none() && beside.running > 0 {
                    beside = shared.built.wait(beside).unwrap_or_else(PoisonError::into_inner);
                    continue;
                }
                drop(beside);
                shared.compiler.build(own.as_deref().unwrap_or(std::slice::from_ref(entry)));
                beside = shared.beside();
            }
        }
        match entries.iter().find_map(|entry| entry.failure()) {
            Some(text) => Err(Error::new(status::DEVICE, text)),
            None => Ok(()),
        }
    }

    /// Waits until all that is built beside the program is there.
    pub(crate) fn finish_building(&self) {
        let threads = std::mem::take(&mut self.shared.beside().threads);
        // A thread that panicked leaves its kernel as it was.
        threads.into_iter().for_each(|thread| drop(thread.join()));
    }

    /// Waits for the threads that build, and lets no other begin: the driver's own data ends before that of this library
    /// when the process exits, and a compiler that still runs then would use it.
    pub(crate) fn close(&self) {
        self.shared.beside().closed = true;
        self.finish_building();
    }
}

impl Shared {
    fn beside(&self) -> MutexGuard<'_, Beside> {
        self.beside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has entries built beside the program; `put` puts programs into the line of those that wait.
    fn put(self: &Arc<Shared>, entries: Vec<Arc<Entry>>, put: fn(&mut VecDeque<Group>, Group)) {
        let mut beside = self.beside();
        if entries.is_empty() || beside.closed {
            return;
        }
        shared_out(entries, self.together, self.compiler.driver().compilers())
            .into_iter()
            .for_each(|group| put(&mut beside.waiting, group));
        beside.threads.retain(|thread| !thread.is_finished());
        while beside.running < beside.waiting.len().min(self.builders) {
            // Without a thread, the block that waits for a kernel builds it.
            let Some(thread) = self.spawn("bh-device-build", Shared::build_waiting) else { return };
            beside.running += 1;
            beside.threads.push(thread);
        }
        if !std::mem::replace(&mut beside.grown, true) {
            beside.threads.extend((0..GROWERS).filter_map(|_| self.spawn("bh-device-grow", Shared::add_compilers)));
        }
    }

    fn spawn(self: &Arc<Shared>, name: &str, work: fn(&Shared)) -> Option<JoinHandle<()>> {
        let (own, builder) = (self.clone(), std::thread::Builder::new().name(name.into()));
        without_signals(|| builder.spawn(move || work(&own))).ok()
    }

    /// Builds what waits, until nothing does.
    fn build_waiting(&self) {
        let end = End(self);
        loop {
            let mut beside = self.beside();
            let group = if beside.closed { None } else { beside.waiting.pop_front() };
            let Some(group) = group else { return end.now(beside) };
            drop(beside);
            self.compiler.build(&group);
            self.built.notify_all();
        }
    }

    /// Adds compilers until there are enough.
    fn add_compilers(&self) {
        while !self.beside().closed && self.compiler.driver().add_compiler() {}
    }
}

/// Ends a thread that builds, even if it panics, so that no block waits for it.
struct End<'a>(&'a Shared);

impl End<'_> {
    /// Ends it while nobody puts more into the line.
    fn now(self, mut beside: MutexGuard<'_, Beside>) {
        beside.running -= 1;
        self.0.built.notify_all();
        std::mem::forget(self);
    }
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        End(self.0).now(self.0.beside());
    }
}

/// Entries in groups that become one program each, of at most `together`: for each of the compilers one, if there are enough entries. The
/// longest texts, which take longest, come first, each to the group that has least.
fn shared_out(mut entries: Vec<Arc<Entry>>, together: usize, compilers: usize) -> Vec<Group> {
    let count = entries.len().div_ceil(together).max(compilers.min(entries.len()));
    let mut groups: Vec<(usize, Group)> = vec![Default::default(); count];
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.text.len()));
    for entry in entries {
        let with_room = groups.iter_mut().filter(|(_, group)| group.len() < together);
        if let Some((bytes, group)) = with_room.min_by_key(|(bytes, _)| *bytes) {
            *bytes += entry.text.len();
            group.push(entry);
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_shared_out_by_the_length_of_their_texts() {
        let lengths = |lengths: &[usize], together, compilers| -> Vec<Vec<usize>> {
            let entry = |&len: &usize| Arc::new(Entry::new("x".repeat(len), 0, len as u128));
            let groups = shared_out(lengths.iter().map(entry).collect(), together, compilers);
            groups.iter().map(|group| group.iter().map(|entry| entry.text.len()).collect()).collect()
        };
        assert_eq!(lengths(&[1, 2, 9, 3, 4], 8, 1), [[9, 4, 3, 2, 1]]);
        assert_eq!(lengths(&[1, 2, 9, 3, 4], 8, 2), [vec![9, 1], vec![4, 3, 2]]);
        assert_eq!(lengths(&[1, 2, 9, 3, 4], 2, 1), [vec![9], vec![4, 1], vec![3, 2]]);
        assert_eq!(lengths(&[5, 6], 8, 4), [vec![6], vec![5]]);
    }
}
