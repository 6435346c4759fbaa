//! The kernels that are known for a device, and the threads that build them.

use crate::compiler::{Compiler, Entry};
use crate::driver::Driver;
use crate::settings::Settings;
use bh_core::abi::status;
use bh_core::kernel_store::KernelStore;
use bh_core::threads::without_signals;
use bh_core::{Error, Host, Result};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
    later: Mutex<Later>,
}

/// The threads that build kernels beside the program.
#[derive(Default)]
struct Later {
    waiting: VecDeque<Arc<Entry>>,
    threads: Vec<JoinHandle<()>>,
    /// Threads that have not found that nothing waits any more.
    running: usize,
    /// None is started any more.
    closed: bool,
}

/// The form of what is kept on disk.
const STORED: &str = "programs of several kernels";

/// What a choice is kept under; no kernel's text is like that.
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
        let compiler = Compiler::new(driver, store, settings.dump.clone(), host);
        Programs {
            shared: Arc::new(Shared {
                compiler,
                known: Mutex::default(),
                builders: settings.builders,
                together: settings.together,
                later: Mutex::default(),
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
        let shared = &self.shared;
        let missing: Vec<Arc<Entry>> = entries.iter().filter(|entry| !shared.compiler.load(entry)).cloned().collect();
        let programs = missing.len().div_ceil(shared.together);
        let groups: Vec<&[Arc<Entry>]> = missing.chunks(missing.len().div_ceil(programs.max(1)).max(1)).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some(group) = groups.get(next.fetch_add(1, Ordering::Relaxed)) {
                shared.compiler.build(group);
            }
        };
        match groups.len() {
            0 => {}
            1 => work(),
            many => {
                std::thread::scope(|scope| {
                    for _ in 1..many.min(shared.builders) {
                        // Whoever cannot be started leaves its work to the others.
                        let _ = without_signals(|| std::thread::Builder::new().spawn_scoped(scope, work));
                    }
                    work();
                });
            }
        }
        match entries.iter().find_map(|entry| entry.failure()) {
            Some(text) => Err(Error::new(status::DEVICE, text)),
            None => Ok(()),
        }
    }

    /// Builds entries beside the program, but those for which that has begun.
    pub(crate) fn build_later<'a>(&self, entries: impl IntoIterator<Item = &'a Arc<Entry>>) {
        let shared = &self.shared;
        let mut later = shared.later();
        if later.closed {
            return;
        }
        later.waiting.extend(entries.into_iter().filter(|entry| entry.begins()).cloned());
        later.threads.retain(|thread| !thread.is_finished());
        while later.running < later.waiting.len().div_ceil(shared.together).min(shared.builders) {
            let own = shared.clone();
            let builder = std::thread::Builder::new().name("bh-device-build".into());
            // Without a thread the kernels stay as they are, which is only slower.
            let Ok(thread) = without_signals(|| builder.spawn(move || own.build_waiting())) else { return };
            later.running += 1;
            later.threads.push(thread);
        }
    }

    /// Waits until all that is built beside the program is there.
    pub(crate) fn finish_building(&self) {
        let threads = std::mem::take(&mut self.shared.later().threads);
        // A thread that panicked leaves its kernel as it was.
        threads.into_iter().for_each(|thread| drop(thread.join()));
    }

    /// Waits for the threads that build, and lets no other begin: the driver's own data ends before that of this library
    /// when the process exits, and a compiler that still runs then would use it.
    pub(crate) fn close(&self) {
        self.shared.later().closed = true;
        self.finish_building();
    }
}

impl Shared {
    fn later(&self) -> MutexGuard<'_, Later> {
        self.later.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Builds what waits, until nothing does.
    fn build_waiting(&self) {
        loop {
            let mut later = self.later();
            let count = if later.closed { 0 } else { later.waiting.len().min(self.together) };
            if count == 0 {
                later.running -= 1;
                return;
            }
            let group: Vec<Arc<Entry>> = later.waiting.drain(..count).collect();
            drop(later);
            self.compiler.build(&group);
        }
    }
}
