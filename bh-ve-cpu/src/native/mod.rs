//! Tier 1: kernels that have proved hot are compiled to machine code, in the background, and run in place of their block
//! operations with the same bits. Without the compiler's library nothing changes but the speed.

mod gate;
mod kernel;
mod library;
mod object;
mod relocation;
mod request;
mod rest;

pub(crate) use gate::close;
pub(crate) use kernel::{Code, NativeKernel};
pub(crate) use request::{Compilation, SlotMemory, request};

use crate::primitives::Primitives;
use crate::settings::{Jit, Settings};
use bh_core::abi::{fork, log_level};
use bh_core::kernel_store::KernelStore;
use bh_core::threads::without_signals;
use bh_core::{Counter, Host};
use bh_jit_abi::{Artifact, Divider, Request};
use library::Compiler;
use rest::Rest;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;

/// A kernel is compiled when it has done this much work (in units of about 0.04 ns): when it has run for about as long
/// as compiling takes.
const HOT: u64 = 100_000_000;

/// The kernels of an engine, by their requests, and the compiler.
pub(crate) struct Tier1 {
    shared: Arc<CompilerState>,
    kernels: HashMap<Request, (Arc<NativeKernel>, u64)>,
    clock: u64,
    most: usize,
    worker: Option<CompilerThread>,
    synchronous: bool,
    divider: Divider,
    fast_math: bool,
}

/// The state of the background thread.
struct CompilerState {
    host: Host,
    primitives: Primitives,
    tools: Mutex<Option<Tools>>,
    cache: Option<PathBuf>,
    /// None: there is no compiler.
    library: Option<PathBuf>,
    stopping: AtomicBool,
    rest: Rest,
    compiled: Counter,
    loaded: Counter,
    refused: Counter,
    blocks_only: Counter,
}

/// The compiler's library and the caches; made when the first kernel is hot.
struct Tools {
    compiler: Option<Compiler>,
    disk: Option<KernelStore>,
    failed: bool,
}

struct CompilerThread {
    queue: Sender<Weak<NativeKernel>>,
    thread: Option<JoinHandle<()>>,
}

impl Tier1 {
    /// Prepares compilation; `None` if it is switched off, or the library or the instruction set is not there.
    pub(crate) fn new(host: Host, settings: &Settings) -> Option<Tier1> {
        if settings.jit == Jit::Off {
            return None;
        }
        let synchronous = settings.jit == Jit::On;
        let library = settings.jit_library.clone().or_else(library::find);
        if library.is_none() && synchronous {
            host.log(
                log_level::WARN,
                "jit = \"on\", but the kernel compiler is not installed: kernels are interpreted",
            );
        }
        // The library's identity is a part of the cache's key, so without the library there is no cached code either.
        if library.is_none() || request::level(settings.isa).is_none() {
            return None;
        }
        let cache = settings.jit_cache_dir.clone();
        Some(Tier1 {
            shared: Arc::new(CompilerState::new(host, settings.primitives(), library, cache)),
            kernels: HashMap::new(),
            clock: 0,
            most: settings.jit_kernels,
            worker: None,
            synchronous,
            divider: settings.divider,
            fast_math: settings.fast_math,
        })
    }

    /// The target of compilation; `in_order` if each row must be complete before the next one begins.
    pub(crate) fn compilation(&self, in_order: bool) -> Compilation {
        let (divider, fast_math) = (self.divider, self.fast_math);
        Compilation { isa: self.shared.primitives.isa, divider, fast_math, in_order }
    }

    /// Counts a kernel that compiled code cannot do.
    pub(crate) fn count_refused(&self) {
        self.shared.blocks_only.add(1);
    }

    /// The kernel of a scalar program; `None` if the instruction set has none.
    pub(crate) fn program(&mut self, text: &str) -> Option<Arc<NativeKernel>> {
        let level = request::level(self.shared.primitives.isa)?;
        Some(self.kernel(Request::of_program(level, text.to_owned())))
    }

    /// The kernel of a request: programs that compute the same share it.
    pub(crate) fn kernel(&mut self, request: Request) -> Arc<NativeKernel> {
        self.clock += 1;
        if let Some((kernel, used)) = self.kernels.get_mut(&request) {
            *used = self.clock;
            return Arc::clone(kernel);
        }
        if self.kernels.len() >= self.most.max(1) {
            // An eighth at once, so that room is seldom made. Programs that still run a kernel keep it.
            let mut ages: Vec<u64> = self.kernels.values().map(|&(_, used)| used).collect();
            let (_, &mut oldest, _) = ages.select_nth_unstable(self.kernels.len() / 8);
            self.kernels.retain(|_, &mut (_, used)| used > oldest);
        }
        let kernel = Arc::new(NativeKernel::new(request.clone()));
        self.kernels.insert(request, (Arc::clone(&kernel), self.clock));
        kernel
    }

    /// Counts work that a kernel is about to do, and has it compiled when it is time.
    pub(crate) fn count(&mut self, kernel: &Arc<NativeKernel>, work: u64) {
        let hot = if self.synchronous { 1 } else { HOT };
        if !kernel.is_due(work, hot) {
            return;
        }
        if self.synchronous {
            return self.shared.compile(kernel);
        }
        let shared = &self.shared;
        if shared.library.is_none() {
            return;
        }
        let worker = self.worker.get_or_insert_with(|| CompilerThread::start(Arc::clone(shared)));
        // Without the thread, which the system may have refused, the kernel stays as it is.
        let _ = worker.queue.send(Arc::downgrade(kernel));
    }

    /// Has a kernel compiled that has proved worth it, while the caller waits.
    pub(crate) fn compile_now(&mut self, kernel: &NativeKernel) {
        if kernel.code().is_none() {
            self.shared.compile(kernel);
        }
    }

    /// Follows a fork of the process. A child goes on with the kernels that are compiled; there will be no more of them.
    pub(crate) fn fork(&mut self, moment: u32) {
        match moment {
            fork::BEFORE => self.shared.rest.begin_fork(),
            fork::CHILD => {
                let old = &self.shared;
                let shared = Arc::new(CompilerState::new(old.host, old.primitives, None, None));
                // The thread is gone, and may have held any of the locks.
                std::mem::forget(std::mem::replace(&mut self.shared, shared));
                std::mem::forget(self.worker.take());
            }
            _ => self.shared.rest.end_fork(),
        }
    }
}

impl Drop for Tier1 {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::Relaxed);
        if let Some(CompilerThread { queue, thread }) = self.worker.take() {
            drop(queue);
            if let Some(thread) = thread.filter(|_| !gate::ends_inside()) {
                // A panic in there was reported there.
                let _ = thread.join();
            }
        }
    }
}

impl CompilerThread {
    fn start(shared: Arc<CompilerState>) -> CompilerThread {
        let (queue, kernels): (_, Receiver<Weak<NativeKernel>>) = channel();
        let run = move || {
            for kernel in kernels {
                if shared.stopping.load(Ordering::Relaxed) {
                    return;
                }
                if let Some(kernel) = kernel.upgrade() {
                    shared.compile(&kernel);
                }
            }
        };
        let builder = std::thread::Builder::new().name("bh-jit".into());
        let thread = without_signals(|| builder.spawn(run)).ok();
        CompilerThread { queue, thread }
    }
}

impl CompilerState {
    fn new(host: Host, primitives: Primitives, library: Option<PathBuf>, cache: Option<PathBuf>) -> CompilerState {
        CompilerState {
            host,
            primitives,
            tools: Mutex::new(None),
            cache,
            library,
            stopping: AtomicBool::new(false),
            rest: Rest::default(),
            compiled: host.counter("kernels compiled"),
            loaded: host.counter("kernels loaded"),
            refused: host.counter("kernels not compiled"),
            blocks_only: host.counter("kernels for blocks only"),
        }
    }

    /// Compiles a kernel, or reads it from disk; if neither succeeds, it stays as it is for good. So it does after a panic, and
    /// the thread goes on with other kernels.
    fn compile(&self, kernel: &NativeKernel) {
        if catch_unwind(AssertUnwindSafe(|| self.try_compile(kernel))).is_err() {
            self.refused.add(1);
            self.host.log(log_level::WARN, "compiling a kernel panicked; it runs in blocks");
        }
    }

    fn try_compile(&self, kernel: &NativeKernel) {
        let Some(library) = &self.library else { return };
        let Some(_running) = gate::enter() else { return };
        let at_work = self.rest.work();
        let mut tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        let tools = tools.get_or_insert_with(|| Tools {
            compiler: None,
            disk: self.cache.clone().and_then(|directory| KernelStore::new(directory, library::identity(library))),
            failed: false,
        });
        let request = kernel.request().encode();
        let stored = tools.disk.as_ref().and_then(|disk| disk.read(&request));
        if let Some(code) = stored.and_then(|bytes| self.code(&bytes)) {
            self.loaded.add(1);
            return kernel.finish(code);
        }
        if tools.compiler.is_none() && !tools.failed {
            match Compiler::load(library) {
                Ok(compiler) => {
                    tools.compiler = Some(compiler);
                    gate::compiler_is_loaded();
                }
                Err(error) => {
                    tools.failed = true;
                    let text = format!("the kernel compiler {error}; kernels are interpreted");
                    self.host.log(log_level::WARN, &text);
                }
            }
        }
        let Some(compiler) = tools.compiler else { return };
        let begin = self.host.trace_clock();
        match at_work.away(|| compiler.compile(kernel.request())) {
            Ok(bytes) => match self.code(&bytes) {
                Some(code) => {
                    self.compiled.add(1);
                    kernel.finish(code);
                    if let Some(disk) = &tools.disk {
                        disk.write(&request, &bytes);
                    }
                }
                None => self.refused.add(1),
            },
            Err(reason) => {
                self.refused.add(1);
                self.host.log(log_level::DEBUG, &format!("a kernel is not compiled: {reason}"));
            }
        }
        self.host.trace("compile", begin, &format!("{} steps", kernel.request().steps.len()));
    }

    /// The code of an encoded artifact.
    fn code(&self, bytes: &[u8]) -> Option<Code> {
        Code::new(&Artifact::decode(bytes)?, self.primitives)
    }
}
