//! From texts to kernels: several in one program, as drivers build programs one after the other and take less time for one of
//! several kernels. Built programs are kept on disk, by the text of each kernel.

use crate::code;
use crate::driver::{Driver, Kernel, Program};
use bh_core::kernel_store::KernelStore;
use bh_core::kernel_trace::code_detail;
use bh_core::{Counter, Host};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Instant;

/// A kernel's text, and the kernel once it is built.
pub(crate) struct Entry {
    pub(crate) text: String,
    pub(crate) hash: u128,
    /// Bytes at the end of the text that may be in a program with others; 0 for none.
    own: usize,
    built: OnceLock<Outcome>,
    /// Held by who builds it.
    building: Mutex<()>,
    /// Does it wait to be built beside the program, or has it?
    begun: AtomicBool,
}

type Outcome = Result<Built, String>;

/// A built kernel.
pub(crate) struct Built {
    /// Its arguments are part of its state, so that only one can use it at a time.
    pub(crate) kernel: Mutex<Box<dyn Kernel>>,
    _program: Arc<dyn Program>,
}

impl Entry {
    pub(crate) fn new(text: String, own: usize, hash: u128) -> Entry {
        let (built, building, begun) = (OnceLock::new(), Mutex::default(), AtomicBool::new(false));
        Entry { text, hash, own, built, building, begun }
    }

    /// Is it built, or known not to be buildable?
    pub(crate) fn is_done(&self) -> bool {
        self.built.get().is_some()
    }

    /// The kernel, if it is built and usable.
    pub(crate) fn ready(&self) -> Option<&Built> {
        self.built.get()?.as_ref().ok()
    }

    /// Why it cannot be built.
    pub(crate) fn failure(&self) -> Option<String> {
        self.built.get()?.as_ref().err().cloned()
    }

    /// Is it to be built beside the program, as nobody has asked for that before?
    pub(crate) fn begins(&self) -> bool {
        !self.is_done() && !self.begun.swap(true, Ordering::Relaxed)
    }

    fn own(&self) -> &str {
        &self.text[self.text.len() - self.own..]
    }

    fn is_built(&self, outcome: Outcome) {
        // One thread sets it, except that another one may find the same program on disk.
        let _ = self.built.set(outcome);
    }
}

/// The driver's compiler, and what it has built before.
pub(crate) struct Compiler {
    driver: Arc<dyn Driver>,
    pub(crate) store: Option<KernelStore>,
    /// Are programs kept in the store?
    keeps: bool,
    dump: Option<PathBuf>,
    /// Programs of several kernels, by the names under which they are on disk.
    programs: Mutex<HashMap<u128, Weak<dyn Program>>>,
    built: Counter,
    programs_built: Counter,
    loaded: Counter,
    nanoseconds: Counter,
    host: Host,
}

/// The entry on disk for a kernel's text: its program, or its number in a program and that one's name.
enum Stored {
    Program(Vec<u8>),
    Part(u32, u128),
}

impl Stored {
    fn write(&self) -> Vec<u8> {
        match self {
            Stored::Program(binary) => [&[0], sealed(binary).as_slice()].concat(),
            Stored::Part(number, name) => [&[1], &number.to_le_bytes()[..], &name.to_le_bytes()].concat(),
        }
    }

    fn read(bytes: &[u8]) -> Option<Stored> {
        match bytes.split_first()? {
            (0, binary) => Some(Stored::Program(unsealed(binary)?.to_vec())),
            (_, part) => {
                let (number, name) = part.split_first_chunk()?;
                Some(Stored::Part(u32::from_le_bytes(*number), u128::from_le_bytes(name.try_into().ok()?)))
            }
        }
    }
}

/// A program as it is on disk: no driver is given one that is damaged.
fn sealed(binary: &[u8]) -> Vec<u8> {
    [&bh_bytecode::hash::hash_bytes(binary).to_le_bytes(), binary].concat()
}

fn unsealed(bytes: &[u8]) -> Option<&[u8]> {
    let (hash, binary) = bytes.split_first_chunk()?;
    (u128::from_le_bytes(*hash) == bh_bytecode::hash::hash_bytes(binary)).then_some(binary)
}

/// The cache key of a program of several kernels; no kernel's text is like that.
fn program_key(name: u128) -> Vec<u8> {
    format!("program {name:032x}").into_bytes()
}

/// The name of a program's kernel with this number.
fn kernel_name(number: u32) -> String {
    format!("bh{number}")
}

impl Compiler {
    /// The driver.
    pub(crate) fn driver(&self) -> &dyn Driver {
        self.driver.as_ref()
    }

    pub(crate) fn new(
        driver: Arc<dyn Driver>,
        store: Option<KernelStore>,
        keeps: bool,
        dump: Option<PathBuf>,
        host: &Host,
    ) -> Compiler {
        Compiler {
            driver,
            store,
            keeps,
            dump,
            programs: Mutex::default(),
            built: host.counter("kernels built"),
            programs_built: host.counter("programs built"),
            loaded: host.counter("kernels loaded"),
            nanoseconds: host.counter("build_ns"),
            host: *host,
        }
    }

    fn programs(&self) -> MutexGuard<'_, HashMap<u128, Weak<dyn Program>>> {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Is the kernel built, now that the disk has been asked for it?
    pub(crate) fn load(&self, entry: &Entry) -> bool {
        if !entry.is_done()
            && let Some(built) = self.stored(&entry.text)
        {
            self.loaded.add(1);
            entry.is_built(Ok(built));
        }
        entry.is_done()
    }

    /// The kernel as it was stored.
    fn stored(&self, text: &str) -> Option<Built> {
        let store = self.store.as_ref()?;
        match Stored::read(&store.read(text.as_bytes())?)? {
            Stored::Program(binary) => kernel(&self.driver.load(&binary)?, "bh").ok(),
            Stored::Part(number, name) => {
                let known = self.programs().get(&name).and_then(Weak::upgrade);
                let program = match known {
                    Some(program) => program,
                    None => {
                        let program = self.driver.load(unsealed(&store.read(&program_key(name))?)?)?;
                        self.keep(name, &program);
                        program
                    }
                };
                kernel(&program, &kernel_name(number)).ok()
            }
        }
    }

    fn keep(&self, name: u128, program: &Arc<dyn Program>) {
        let mut programs = self.programs();
        programs.retain(|_, program| program.strong_count() > 0);
        programs.insert(name, Arc::downgrade(program));
    }

    /// Builds entries as one program, and those that nobody builds meanwhile; each alone if that fails, so that the error is of
    /// the one that cannot be built.
    pub(crate) fn build(&self, entries: &[Arc<Entry>]) {
        let mut all: Vec<&Arc<Entry>> = entries.iter().collect();
        // All threads lock them in the same order.
        all.sort_by_key(|entry| Arc::as_ptr(entry));
        all.dedup_by(|a, b| Arc::ptr_eq(a, b));
        let _held: Vec<MutexGuard<'_, ()>> =
            all.iter().map(|entry| entry.building.lock().unwrap_or_else(PoisonError::into_inner)).collect();
        let (begin, clock) = (Instant::now(), self.host.trace_clock());
        all.retain(|entry| !self.load(entry));
        let (sharing, alone): (Vec<&Entry>, Vec<&Entry>) =
            all.iter().map(|entry| entry.as_ref()).partition(|entry| entry.own > 0 && all.len() > 1);
        let together = sharing.len() > 1 && self.together(&sharing).is_some();
        for entry in alone.iter().chain(if together { &[][..] } else { &sharing }) {
            entry.is_built(self.alone(entry));
        }
        if !all.is_empty() {
            self.host.trace("compile", clock, &code_detail(&all[0].text));
        }
        self.nanoseconds.add(begin.elapsed().as_nanos() as u64);
    }

    /// Builds entries as one program; none if that cannot be built.
    fn together(&self, entries: &[&Entry]) -> Option<()> {
        entries.iter().for_each(|entry| self.dump(&entry.text));
        let text = code::program(self.driver.language(), entries.iter().map(|entry| entry.own()));
        let program = self.compile(&text).ok()?;
        let numbers = || (0..entries.len() as u32).zip(entries);
        let built: Option<Vec<Built>> =
            numbers().map(|(number, _)| kernel(&program, &kernel_name(number)).ok()).collect();
        let built = built?;
        if let Some((store, binary)) = self.kept(&*program) {
            let name = bh_bytecode::hash::hash_bytes(text.as_bytes());
            store.write(&program_key(name), &sealed(&binary));
            self.keep(name, &program);
            for (number, entry) in numbers() {
                store.write(entry.text.as_bytes(), &Stored::Part(number, name).write());
            }
        }
        self.built.add(built.len() as u64);
        entries.iter().zip(built).for_each(|(entry, built)| entry.is_built(Ok(built)));
        Some(())
    }

    /// Builds a program of one kernel.
    fn alone(&self, entry: &Entry) -> Outcome {
        let text = &entry.text;
        self.dump(text);
        let program = self.compile(text).map_err(|why| format!("{why}\n{}", code::kernel_of(text)))?;
        self.built.add(1);
        if let Some((store, binary)) = self.kept(&*program) {
            store.write(text.as_bytes(), &Stored::Program(binary).write());
        }
        kernel(&program, "bh")
    }

    /// Writes a text to a file, if that is asked for.
    fn dump(&self, text: &str) {
        if let Some(directory) = &self.dump {
            let file = directory.join(format!("{:032x}.cl", bh_bytecode::hash::hash_bytes(text.as_bytes())));
            // A text that cannot be written is only not there to be read.
            let _ = std::fs::create_dir_all(directory).and_then(|()| std::fs::write(file, text));
        }
    }

    fn compile(&self, text: &str) -> Result<Arc<dyn Program>, String> {
        let program = self.driver.compile(text)?;
        self.programs_built.add(1);
        Ok(program)
    }

    /// The store, and what it can keep of a program.
    fn kept(&self, program: &dyn Program) -> Option<(&KernelStore, Vec<u8>)> {
        let store = self.store.as_ref().filter(|_| self.keeps)?;
        Some((store, program.binary().filter(|binary| !binary.is_empty())?))
    }
}

fn kernel(program: &Arc<dyn Program>, name: &str) -> Outcome {
    Ok(Built { kernel: Mutex::new(program.kernel(name)?), _program: program.clone() })
}
