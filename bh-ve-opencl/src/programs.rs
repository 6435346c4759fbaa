//! Built kernels: by their text, in memory and on disk, and the threads that build them.

use crate::device::Facts;
use bh_core::abi::status;
use bh_core::kernel_store::KernelStore;
use bh_core::kernel_trace::code_detail;
use bh_core::threads::without_signals;
use bh_core::{Counter, Error, Host, Result};
use opencl3::command_queue::{CL_QUEUE_PROFILING_ENABLE, CommandQueue};
use opencl3::context::Context;
use opencl3::device::Device;
use opencl3::kernel::Kernel;
use opencl3::program::Program;
use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

/// A device in use: its context and its queue, on which everything happens in order.
pub(crate) struct Gpu {
    pub(crate) facts: Facts,
    pub(crate) context: Context,
    pub(crate) queue: CommandQueue,
    /// Does the program use the queue, too?
    pub(crate) shares_queue: bool,
    pub(crate) presence: Presence,
}

/// Is the device still there?
#[derive(Default)]
pub(crate) struct Presence {
    lost: AtomicBool,
    /// Kernels until it is as lost; 0 for never.
    fault: AtomicU64,
}

/// An error of OpenCL, with what was being done.
pub(crate) fn failed(what: &str, error: opencl3::error_codes::ClError) -> Error {
    let status = if matches!(error.0, -6..=-4) { status::MEMORY } else { status::DEVICE };
    Error::new(status, format!("OpenCL: {what} failed: {error}"))
}

impl Gpu {
    /// Opens a device.
    pub(crate) fn open(facts: Facts, times: bool) -> Result<Gpu> {
        let context =
            Context::from_device(&Device::new(facts.device())).map_err(|why| failed("making a context", why))?;
        let properties = if times { CL_QUEUE_PROFILING_ENABLE } else { 0 };
        #[allow(deprecated, reason = "the call that replaces it needs OpenCL 2")]
        let queue = CommandQueue::create_default(&context, properties).map_err(|why| failed("making a queue", why))?;
        Ok(Gpu { facts, context, queue, shares_queue: false, presence: Presence::default() })
    }

    /// Waits until everything is done.
    pub(crate) fn finish(&self) -> Result<()> {
        self.usable()?;
        self.queue.finish().map_err(|why| failed("waiting for the device", why))
    }

    /// Is the device known to be lost?
    pub(crate) fn is_lost(&self) -> bool {
        self.presence.lost.load(Ordering::Relaxed)
    }

    /// Fails if the device is lost.
    pub(crate) fn usable(&self) -> Result<()> {
        match self.is_lost() {
            true => Err(Error::new(status::DEVICE, format!("OpenCL: device '{}' is lost", self.facts.name))),
            false => Ok(()),
        }
    }

    /// After an error: finds out whether the device still works.
    pub(crate) fn look(&self) {
        if self.finish().is_err() {
            self.presence.lost.store(true, Ordering::Relaxed);
        }
    }

    /// For tests: the device is as lost at the kernel with this number.
    pub(crate) fn lose_after(&self, kernels: u64) {
        self.presence.fault.store(kernels, Ordering::Relaxed);
    }

    /// A kernel is to start.
    pub(crate) fn kernel_starts(&self) -> Result<()> {
        if self.presence.fault.load(Ordering::Relaxed) > 0 && self.presence.fault.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.presence.lost.store(true, Ordering::Relaxed);
        }
        self.usable()
    }
}

/// A kernel's text, and the kernel once it is built.
pub(crate) struct Entry {
    pub(crate) text: String,
    pub(crate) hash: u128,
    built: OnceLock<std::result::Result<Built, String>>,
    busy: AtomicUsize,
}

/// A built kernel.
pub(crate) struct Built {
    /// Its arguments are part of its state, so that only one can use it at a time.
    pub(crate) kernel: Mutex<Prepared>,
    _program: Program,
}

/// A number as a kernel's argument; none if it has not been set.
pub(crate) type Value = Option<[u8; 16]>;

/// A kernel with the arguments of its last launch.
pub(crate) struct Prepared {
    pub(crate) kernel: Kernel,
    /// By argument; those that are buffers are always set.
    pub(crate) values: Vec<Value>,
}

impl Entry {
    /// Is it built, or known not to be buildable?
    pub(crate) fn is_done(&self) -> bool {
        self.built.get().is_some()
    }

    /// The kernel, if it is built and usable.
    pub(crate) fn ready(&self) -> Option<&Built> {
        self.built.get()?.as_ref().ok()
    }
}

/// All kernels of an engine.
#[derive(Clone)]
pub(crate) struct Programs {
    shared: Arc<Shared>,
}

struct Shared {
    gpu: Arc<Gpu>,
    options: String,
    contract: bool,
    store: Option<KernelStore>,
    dump: Option<PathBuf>,
    known: Mutex<HashMap<u128, Vec<Arc<Entry>>>>,
    builders: usize,
    later: Mutex<Later>,
    built: Counter,
    loaded: Counter,
    nanoseconds: Counter,
    host: Host,
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

/// What a choice is kept under; no kernel's text is like that.
fn choice_key(name: u128) -> Vec<u8> {
    format!("choice {name:032x}").into_bytes()
}

/// The most kernels that are known by their texts; beyond, all that nobody uses go.
const KNOWN: usize = 8192;

impl Programs {
    pub(crate) fn new(gpu: Arc<Gpu>, settings: &crate::settings::Settings, host: &Host) -> Programs {
        // Warnings of the device's compiler about generated text are of no use to anybody.
        let mut options = String::from("-cl-std=CL1.2 -w");
        if gpu.facts.exact_division && !settings.fast_math {
            options += " -cl-fp32-correctly-rounded-divide-sqrt";
        }
        if settings.fast_math {
            options += " -cl-mad-enable -cl-no-signed-zeros -cl-unsafe-math-optimizations";
        }
        let facts = &gpu.facts;
        let identity = format!("{}\n{}\n{}\n{options}", facts.name, facts.platform, facts.version);
        let store = settings.cache_dir.clone();
        let store = store.and_then(|directory| KernelStore::new(directory, identity.into_bytes()));
        Programs {
            shared: Arc::new(Shared {
                options,
                contract: settings.fast_math,
                store,
                dump: settings.dump.clone(),
                known: Mutex::default(),
                builders: settings.builders,
                later: Mutex::default(),
                built: host.counter("kernels built"),
                loaded: host.counter("kernels loaded"),
                nanoseconds: host.counter("build_ns"),
                host: *host,
                gpu,
            }),
        }
    }

    /// The entry of a text.
    pub(crate) fn entry(&self, text: String) -> Arc<Entry> {
        let text = if self.shared.contract { text.replace("FP_CONTRACT OFF", "FP_CONTRACT ON") } else { text };
        let hash = bh_bytecode::hash::hash_bytes(text.as_bytes());
        let mut known = self.shared.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() > KNOWN {
            known.retain(|_, entries| entries.iter().any(|entry| Arc::strong_count(entry) > 1));
        }
        let entries = known.entry(hash).or_default();
        if let Some(entry) = entries.iter().find(|entry| entry.text == text) {
            return entry.clone();
        }
        let entry = Arc::new(Entry { text, hash, built: OnceLock::new(), busy: AtomicUsize::new(0) });
        entries.push(entry.clone());
        entry
    }

    /// Is the kernel built, now that the disk has been asked for it?
    pub(crate) fn load_stored(&self, entry: &Entry) -> bool {
        if entry.built.get().is_none()
            && let Some(built) = self.shared.load(&entry.text)
        {
            // Somebody else may have been faster.
            let _ = entry.built.set(Ok(built));
        }
        entry.ready().is_some()
    }

    /// The number that was kept on disk for a name.
    pub(crate) fn choice(&self, name: u128) -> Option<usize> {
        let kept = self.shared.store.as_ref()?.read(&choice_key(name))?;
        std::str::from_utf8(&kept).ok()?.parse().ok()
    }

    /// Keeps a number for a name on disk.
    pub(crate) fn keep_choice(&self, name: u128, number: usize) {
        if let Some(store) = &self.shared.store {
            store.write(&choice_key(name), number.to_string().as_bytes());
        }
    }

    /// Builds what is not built yet, side by side. Fails with the first failure.
    pub(crate) fn build(&self, entries: &[Arc<Entry>]) -> Result<()> {
        let missing: Vec<&Arc<Entry>> = entries.iter().filter(|entry| entry.built.get().is_none()).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some(entry) = missing.get(next.fetch_add(1, Ordering::Relaxed)) {
                self.shared.build(entry);
            }
        };
        match missing.len() {
            0 => {}
            1 => work(),
            many => {
                std::thread::scope(|scope| {
                    for _ in 1..many.min(self.shared.builders) {
                        // Whoever cannot be started leaves its work to the others.
                        let _ = without_signals(|| std::thread::Builder::new().spawn_scoped(scope, work));
                    }
                    work();
                });
            }
        }
        for entry in entries {
            if let Some(Err(text)) = entry.built.get() {
                return Err(Error::new(status::DEVICE, text.clone()));
            }
        }
        Ok(())
    }

    /// Builds an entry beside the program, unless that has begun.
    pub(crate) fn build_later(&self, entry: &Arc<Entry>) {
        let mut later = self.shared.later();
        if later.closed || entry.built.get().is_some() || entry.busy.swap(1, Ordering::Relaxed) == 1 {
            return;
        }
        later.waiting.push_back(entry.clone());
        if later.running >= self.shared.builders {
            return;
        }
        later.threads.retain(|thread| !thread.is_finished());
        let shared = self.shared.clone();
        let builder = std::thread::Builder::new().name("bh-opencl-build".into());
        // Without a thread the kernel stays as it is, which is only slower.
        if let Ok(thread) = without_signals(|| builder.spawn(move || shared.build_waiting())) {
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
            let next = if later.closed { None } else { later.waiting.pop_front() };
            let Some(entry) = next else {
                later.running -= 1;
                return;
            };
            drop(later);
            self.build(&entry);
        }
    }

    fn build(&self, entry: &Entry) {
        entry.built.get_or_init(|| {
            let (begin, clock) = (Instant::now(), self.host.trace_clock());
            let outcome = self.load(&entry.text).map_or_else(|| self.compile(&entry.text), Ok);
            self.host.trace("compile", clock, &code_detail(&entry.text));
            self.nanoseconds.add(begin.elapsed().as_nanos() as u64);
            outcome
        });
    }

    fn kernel(&self, program: Program) -> std::result::Result<Built, String> {
        let kernel =
            Kernel::create(&program, "bh").map_err(|why| format!("OpenCL: the kernel is not usable: {why}"))?;
        Ok(Built { kernel: Mutex::new(Prepared { kernel, values: Vec::new() }), _program: program })
    }

    /// The kernel as it was stored.
    fn load(&self, text: &str) -> Option<Built> {
        let binary = self.store.as_ref()?.read(text.as_bytes())?;
        let program = Program::create_and_build_from_binary(&self.gpu.context, &[&binary], "").ok()?;
        let built = self.kernel(program).ok()?;
        self.loaded.add(1);
        Some(built)
    }

    fn compile(&self, text: &str) -> std::result::Result<Built, String> {
        if let Some(directory) = &self.dump {
            let file = directory.join(format!("{:032x}.cl", bh_bytecode::hash::hash_bytes(text.as_bytes())));
            // A text that cannot be written is only not there to be read.
            let _ = std::fs::create_dir_all(directory).and_then(|()| std::fs::write(file, text));
        }
        let mut program = Program::create_from_source(&self.gpu.context, text)
            .map_err(|why| format!("OpenCL: a program cannot be made: {why}"))?;
        let device = self.gpu.facts.device();
        if let Err(why) = program.build(&[device], &self.options) {
            let log = program.get_build_log(device).unwrap_or_default();
            let kernel = text.find("__kernel").map_or(text, |at| &text[at..]);
            return Err(format!("OpenCL: building a kernel failed: {why}: {}\n{kernel}", log.trim()));
        }
        self.built.add(1);
        if let (Some(store), Ok(binaries)) = (&self.store, program.get_binaries())
            && let Some(binary) = binaries.first().filter(|binary| !binary.is_empty())
        {
            store.write(text.as_bytes(), binary);
        }
        self.kernel(program)
    }
}
