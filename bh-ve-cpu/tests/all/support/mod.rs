//! A host and an array registry without a stack around them: just enough to drive the engine alone.

#![allow(dead_code, reason = "every test binary uses a part of it")]

pub mod chains;
pub mod columns;
pub mod points;
pub mod rows;
pub mod tree;

use bh_bytecode::interp::Memory;
use bh_bytecode::random::Program;
use bh_bytecode::{Base, Batch, BatchRef, Constant, View};
use bh_core::abi::{self, HostTable, ProgressFn, RegistryTable};
use bh_core::component::{RegistryService, registry_table};
use bh_core::{Component, Error, Host, Registry, Report, Result};
use bh_ve_cpu::Engine;
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_void};
use std::ops::Range;
use std::ptr;
use std::sync::Mutex;

/// Memory of a base, on a page boundary like the real registry's.
struct Block {
    data: *mut u8,
    bytes: usize,
}

impl Block {
    /// Zeroed pages that take no memory before they are touched.
    fn new(bytes: usize) -> Block {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a fresh anonymous mapping.
        let data =
            unsafe { libc::mmap(ptr::null_mut(), bytes.max(1), libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
        assert_ne!(data, libc::MAP_FAILED);
        Block { data: data.cast(), bytes }
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: allocated with this size, zeroed.
        unsafe { std::slice::from_raw_parts(self.data, self.bytes) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: mapped with this size.
        unsafe { libc::munmap(self.data.cast(), self.bytes.max(1)) };
    }
}

/// The host's and the registry's state behind the tables.
#[derive(Default)]
struct State {
    config: HashMap<CString, CString>,
    counters: HashMap<CString, Box<u64>>,
    bases: HashMap<u64, Block>,
    fresh: HashMap<u64, Block>,
    /// Freed blocks, for use again, as the real registry has them.
    free: Vec<Block>,
    aliases: Vec<(u64, Vec<u8>)>,
    next: u64,
    /// The engine's log messages, from any of its threads.
    log: Mutex<Vec<(u32, CString)>>,
}

/// An engine with a host and a registry of its own.
pub struct Driver {
    pub engine: Engine,
    state: Box<State>,
    _host: Box<HostTable>,
    _registry: Box<RegistryTable>,
    _service: Box<Service>,
}

/// # Safety
/// `context` must be that of the driver's tables, and no other reference to its state be in use.
unsafe fn state<'a>(context: *mut c_void) -> &'a mut State {
    // SAFETY: the context of both tables is the driver's state, used from one thread.
    unsafe { &mut *context.cast::<State>() }
}

unsafe extern "C" fn config(context: *mut c_void, key: *const c_char) -> *const c_char {
    // SAFETY: the key lives through the call.
    unsafe { state(context).config.get(CStr::from_ptr(key)) }.map_or(ptr::null(), |value| value.as_ptr())
}

unsafe extern "C" fn new_base_id(context: *mut c_void) -> u64 {
    // SAFETY: our context.
    unsafe {
        state(context).next += 1;
        state(context).next
    }
}

unsafe extern "C" fn alloc(_: *mut c_void, bytes: usize, _: i32) -> *mut c_void {
    let block = std::mem::ManuallyDrop::new(Block::new(bytes));
    block.data.cast()
}

unsafe extern "C" fn free(_: *mut c_void, data: *mut c_void, bytes: usize) {
    drop(Block { data: data.cast(), bytes });
}

unsafe extern "C" fn log(context: *mut c_void, level: u32, text: *const c_char) {
    // SAFETY: our context, and the text lives through the call.
    unsafe { (*context.cast::<State>()).log.lock().unwrap().push((level, CStr::from_ptr(text).to_owned())) };
}

unsafe extern "C" fn counter(context: *mut c_void, name: *const c_char) -> *mut u64 {
    // SAFETY: the name lives through the call, and boxes do not move.
    unsafe { &mut **state(context).counters.entry(CStr::from_ptr(name).to_owned()).or_default() }
}

unsafe extern "C" fn trace_clock(_: *mut c_void) -> u64 {
    0
}

unsafe extern "C" fn trace(_: *mut c_void, _: *const c_char, _: u64, _: *const c_char) {}

fn take(free: &mut Vec<Block>, bytes: usize) -> Block {
    match free.iter().position(|block| block.bytes == bytes) {
        Some(at) => free.swap_remove(at),
        None => Block::new(bytes),
    }
}

/// The array registry: the driver's state, used from one thread at a time.
struct Service(*mut State);

// SAFETY: the engine calls the registry from the thread that calls the engine.
unsafe impl Sync for Service {}

impl Service {
    #[allow(clippy::mut_from_ref)]
    fn state(&self) -> &mut State {
        // SAFETY: the driver keeps its state boxed, and calls come from one thread.
        unsafe { &mut *self.0 }
    }
}

impl RegistryService for Service {
    fn acquire(&self, base: &Base, _: u32, _: u32) -> Result<abi::Loan> {
        let state = self.state();
        let bytes = base.bytes() as usize;
        let free = &mut state.free;
        let block = state.bases.entry(base.id).or_insert_with(|| take(free, bytes));
        Ok(abi::Loan { data: block.data.cast(), bytes, token: 1 })
    }

    fn release(&self, _: u64) {}

    fn fresh(&self, base: &Base) -> Result<abi::Fresh> {
        let state = self.state();
        let bytes = base.bytes() as usize;
        let block = take(&mut state.free, bytes);
        // Old contents must not be taken for a result.
        // SAFETY: the block has this size.
        unsafe { ptr::write_bytes(block.data, 0xa5, bytes) };
        let data = block.data.cast();
        state.fresh.insert(base.id, block);
        Ok(abi::Fresh { data, bytes, token: base.id })
    }

    fn commit_rename(&self, base: &Base, _: u64) -> Result<()> {
        let (state, id) = (self.state(), base.id);
        let block = state.fresh.remove(&id).unwrap();
        if let Some(old) = state.bases.insert(id, block) {
            state.free.push(old);
        }
        Ok(())
    }

    fn alias(&self, alias: &Base, base: &Base, view: &View) -> Result<()> {
        let state = self.state();
        let (size, source) = (base.dtype().size(), state.bases[&base.id].bytes());
        let block = Block::new(alias.bytes() as usize);
        for (at, offset) in bh_bytecode::interp::offsets(view.start(), view.shape(), view.stride()).enumerate() {
            // SAFETY: the view fits the base, and the block has room for its elements.
            unsafe {
                ptr::copy_nonoverlapping(source[offset as usize * size..].as_ptr(), block.data.add(at * size), size);
            }
        }
        state.bases.insert(alias.id, block);
        Ok(())
    }

    fn poison(&self, _: &Base, _: Error) {}

    fn block_done(&self, _: &BatchRef<'_>, _: u32) {}
}

unsafe extern "C" fn progress(_: *mut c_void) {}

unsafe extern "C" fn set_progress(_: *mut c_void, _: Option<ProgressFn>, _: *mut c_void) {}

unsafe extern "C" fn handle(_: *mut c_void, _: *const c_char) -> *mut c_void {
    ptr::null_mut()
}

unsafe extern "C" fn trace_device(_: *mut c_void, _: *const c_char, _: u64, _: u64, _: u64, _: *const c_char) {}

unsafe extern "C" fn memory_left(_: *mut c_void) -> u64 {
    u64::MAX
}

unsafe extern "C" fn reply(_: *mut c_void, _: *const c_char, _: usize) {}

impl Driver {
    /// An engine with these config values, which plans everything unless they say otherwise.
    pub fn new(config_values: &[(&str, &str)]) -> Result<Driver> {
        let mut state = Box::<State>::default();
        state.config.insert(c"planning".into(), c"full".into());
        for (key, value) in config_values {
            state.config.insert(CString::new(*key).unwrap(), CString::new(*value).unwrap());
        }
        let context: *mut c_void = (&raw mut *state).cast();
        let host = Box::new(HostTable {
            struct_size: size_of::<HostTable>(),
            context,
            config,
            new_base_id,
            alloc,
            free,
            log,
            counter,
            trace_clock,
            trace,
            reply,
            progress,
            set_progress,
            handle,
            memory_left,
            trace_device,
        });
        let service = Box::new(Service(context.cast()));
        // SAFETY: the service is boxed and lives as long as the driver.
        let registry = Box::new(unsafe { registry_table::<Service>(&*service) });
        // SAFETY: the tables live as long as the engine.
        let (host_ref, registry_ref) = unsafe { (Host::new(&*host), Registry::new(&*registry)) };
        let mut engine = Engine::create(host_ref, Vec::new())?;
        engine.bind(registry_ref)?;
        Ok(Driver { engine, state, _host: host, _registry: registry, _service: service })
    }

    /// Gives a base its data.
    pub fn put(&mut self, id: u64, bytes: &[u8]) {
        let block = Block::new(bytes.len());
        // SAFETY: the block has this size.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), block.data, bytes.len()) };
        self.state.bases.insert(id, block);
    }

    /// The warnings that the engine has logged.
    pub fn warnings(&self) -> Vec<String> {
        let log = self.state.log.lock().unwrap();
        let warnings = log.iter().filter(|(level, _)| *level == bh_core::abi::log_level::WARN);
        warnings.map(|(_, text)| text.to_string_lossy().into_owned()).collect()
    }

    /// A counter of the engine.
    pub fn counter(&self, name: &str) -> u64 {
        let name = CString::new(name).unwrap();
        self.state.counters.get(&name).map_or(0, |count| **count)
    }

    /// The data of a base.
    pub fn get(&self, id: u64) -> Option<&[u8]> {
        self.state.bases.get(&id).map(Block::bytes)
    }

    /// Forgets a base.
    pub fn drop_base(&mut self, id: u64) {
        if let Some(block) = self.state.bases.remove(&id) {
            self.state.free.push(block);
        }
    }

    /// Runs all blocks.
    pub fn run(&mut self, batch: &BatchRef<'_>) -> Result<()> {
        self.engine.execute(batch, &[], &mut Report::none()).map(|_| ())
    }

    /// Runs a batch, with this partition, on a memory, and returns what the memory has then.
    pub fn run_on(&mut self, batch: &BatchRef<'_>, memory: &Memory) -> Result<Memory> {
        self.state.bases.clear();
        for id in memory.ids() {
            self.put(id, memory.get(id).unwrap());
        }
        self.run(batch)?;
        let mut result = Memory::new();
        for (&id, block) in &self.state.bases {
            result.insert(id, block.bytes().to_vec());
        }
        Ok(result)
    }
}

/// How many programs `BH_TEST_PROGRAMS` asks for: each takes an emulator ten times as long.
fn programs_asked_for() -> Option<usize> {
    std::env::var("BH_TEST_PROGRAMS").ok().map(|text| text.parse().unwrap())
}

/// The first of a test's seeds, `BH_TEST_PROGRAMS` of them, or all.
pub fn sample(seeds: Range<u64>) -> Range<u64> {
    let most = programs_asked_for().map_or(u64::MAX, |count| count as u64);
    seeds.start..seeds.end.min(seeds.start.saturating_add(most))
}

/// Combinations that a test lists: three of them for each program that `BH_TEST_PROGRAMS` asks for, or all. The step from one to
/// the next shares no factor with their number, so that the choices of no list come in step with it.
pub fn spread<T: Clone>(combinations: &[T]) -> Vec<T> {
    let (all, most) = (combinations.len(), programs_asked_for().map_or(usize::MAX, |count| 3 * count));
    let step = (all * 618 / 1000..).find(|&step| divisor(step, all) == 1).unwrap_or(1);
    (0..all.min(most)).map(|at| combinations[at * step % all].clone()).collect()
}

/// The greatest common divisor.
fn divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { divisor(b, a % b) }
}

/// The batch with one block for each instruction.
pub fn singletons(batch: &Batch) -> Batch {
    let mut whole = batch.clone();
    for index in 0..batch.instrs.len() as u32 {
        whole.push_block(&[index], &[]);
    }
    whole
}

/// A program with other constants: the same ones everywhere in rounds 0 and 3, equal in twos or threes in others.
pub fn with_constants(program: &Program, round: u64) -> Program {
    let mut program = program.clone();
    for (at, constant) in (0..).zip(&mut program.batch.constants) {
        let number: u64 = match round {
            0 | 3 => 2,
            1 => 1 + at / 2 % 4,
            _ => 1 + at % 3,
        };
        *constant = Constant::from_value(number).cast(constant.dtype());
    }
    program
}
