//! The compiler takes all texts of kernels: those of the conformance suite and of random programs. A driver without a device
//! compiles them to machine code, which has limits of its own, and its kernels do nothing, so that the results are of no account.

use bh_bytecode::Opcode;
use bh_bytecode::random::program;
use bh_core::abi::{ComponentTable, memory, status};
use bh_core::config::Row;
use bh_core::export::LazyTable;
use bh_core::stack::Stack;
use bh_core::{Error, Host, Result, keys};
use bh_device::Engine;
use bh_device::device::{Class, DeviceInfo};
use bh_device::driver::{Buffer, Driver, Event, Kernel, Options, Pinned, Platform, Program, Region, Times};
use bh_device::language::Language;
use bh_tests::{conformance, random, run, stacks};
use bh_ve_cuda::language::{CUDA, OPTIONS};
use bh_ve_cuda::nvrtc::{Form, Nvrtc};
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// One case of the conformance suite in this many is in the sample; with `BH_TEST_ALL` all are.
const STEP: usize = 61;
/// Random programs of the sample.
const PROGRAMS: u64 = 15;

/// Programs that were compiled.
static COMPILED: AtomicU64 = AtomicU64::new(0);
/// Those that were not, with the compiler's log.
static REFUSED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// A platform whose device is a compiler, or one whose compiler refuses all texts.
struct Texts<const TAKES: bool>;

impl<const TAKES: bool> Platform for Texts<TAKES> {
    const NAME: &'static str = "texts";
    const TITLE: &'static str = "Texts";
    const KEYS: &'static [Row] = keys::opencl::ALL;
    const MEMORY: u32 = memory::FIRST_PRIVATE;

    fn devices() -> Result<Vec<DeviceInfo>> {
        Ok(vec![DeviceInfo {
            id: 0,
            number: 0,
            name: "a compiler".into(),
            platform: "NVRTC".into(),
            version: "1".into(),
            class: Class::Gpu,
            global_bytes: 1 << 30,
            largest_bytes: 1 << 30,
            local_bytes: 48 << 10,
            units: 132,
            megahertz: 1000,
            largest_group: 1024,
            parameter_bytes: 4096,
            f64: true,
            matrix_units: true,
        }])
    }

    fn open(device: DeviceInfo, _: Options) -> Result<Arc<dyn Driver>> {
        let find = || Nvrtc::find(u32::MAX).map_err(|why| Error::new(status::DEVICE, why));
        let nvrtc = if TAKES { Some(find()?) } else { None };
        Ok(Arc::new(Compiler { device, nvrtc }))
    }

    fn borrow(_: &Host, _: Options) -> Option<Result<Arc<dyn Driver>>> {
        None
    }
}

struct Compiler {
    device: DeviceInfo,
    nvrtc: Option<&'static Nvrtc>,
}

/// Every object of this driver: it is complete at once, and does nothing.
struct Nothing;

impl Buffer for Nothing {
    fn handle(&self) -> *mut c_void {
        std::ptr::null_mut()
    }
}

impl Event for Nothing {
    fn wait(&self, _: &str) -> Result<()> {
        Ok(())
    }

    fn is_done(&self) -> bool {
        true
    }

    fn times(&self) -> Option<Times> {
        None
    }
}

impl Kernel for Nothing {
    fn set_buffer(&mut self, _: u32, _: &dyn Buffer) -> Result<()> {
        Ok(())
    }

    fn set_value(&mut self, _: u32, _: &[u8]) -> Result<()> {
        Ok(())
    }

    unsafe fn launch(&mut self, _: usize, _: usize, _: bool) -> Result<Option<Arc<dyn Event>>> {
        Ok(None)
    }
}

/// The machine code of a program.
struct Code(Vec<u8>);

impl Program for Code {
    fn kernel(&self, name: &str) -> std::result::Result<Box<dyn Kernel>, String> {
        let section = format!(".text.{name}\0");
        let has = self.0.windows(section.len()).any(|bytes| bytes == section.as_bytes());
        if has { Ok(Box::new(Nothing)) } else { Err(format!("there is no kernel '{name}'")) }
    }

    fn binary(&self) -> Option<Vec<u8>> {
        None
    }
}

impl Driver for Compiler {
    fn info(&self) -> &DeviceInfo {
        &self.device
    }

    fn language(&self) -> &'static Language {
        &CUDA
    }

    fn identity(&self) -> String {
        String::new()
    }

    fn shares_queue(&self) -> bool {
        false
    }

    fn allocate(&self, _: usize) -> Result<Box<dyn Buffer>> {
        Ok(Box::new(Nothing))
    }

    unsafe fn adopt(&self, _: *mut c_void, _: usize) -> Result<Box<dyn Buffer>> {
        Ok(Box::new(Nothing))
    }

    fn pinned(&self, _: usize) -> Option<Box<dyn Pinned>> {
        None
    }

    unsafe fn upload(&self, _: &dyn Buffer, _: usize, _: &[u8]) -> Result<()> {
        Ok(())
    }

    unsafe fn upload_rows(&self, _: &dyn Buffer, _: &Region, _: &[u8]) -> Result<()> {
        Ok(())
    }

    unsafe fn download(&self, _: &dyn Buffer, _: usize, bytes: &mut [u8]) -> Result<()> {
        bytes.fill(0);
        Ok(())
    }

    unsafe fn begin_upload(&self, _: &dyn Buffer, _: usize, _: *const u8, _: usize) -> Result<Arc<dyn Event>> {
        Ok(Arc::new(Nothing))
    }

    unsafe fn begin_download(&self, _: &dyn Buffer, _: usize, data: *mut u8, len: usize) -> Result<Arc<dyn Event>> {
        // SAFETY: there is room for so many bytes, as `# Safety` asks.
        unsafe { data.write_bytes(0, len) };
        Ok(Arc::new(Nothing))
    }

    unsafe fn copy(&self, _: &dyn Buffer, _: &dyn Buffer, _: usize) -> Result<()> {
        Ok(())
    }

    unsafe fn clear(&self, _: &dyn Buffer, _: usize) -> Result<()> {
        Ok(())
    }

    fn compile(&self, text: &str) -> std::result::Result<Arc<dyn Program>, String> {
        let Some(nvrtc) = self.nvrtc else { return Err("no text is to its taste".into()) };
        let code = nvrtc.compile(text, Form::Code(90), nvrtc.known(&OPTIONS));
        let code = code.inspect_err(|why| REFUSED.lock().unwrap().push(format!("{why}\n{text}")))?;
        COMPILED.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(Code(code)))
    }

    fn compilers(&self) -> usize {
        self.nvrtc.map_or(1, Nvrtc::count)
    }

    fn add_compiler(&self) -> bool {
        self.nvrtc.is_some_and(Nvrtc::add)
    }

    fn load(&self, _: &[u8]) -> Option<Arc<dyn Program>> {
        None
    }

    fn mark(&self) -> Result<Arc<dyn Event>> {
        Ok(Arc::new(Nothing))
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn finish(&self) -> Result<()> {
        Ok(())
    }
}

/// Fails if the compiler has refused a program.
pub fn none_is_refused() {
    let refused = REFUSED.lock().unwrap();
    let shown: Vec<&str> = refused.iter().take(3).map(String::as_str).collect();
    assert!(refused.is_empty(), "{} programs are refused:\n{}", refused.len(), shown.join("\n\n"));
}

/// The stack of the compiler alone, unless there is none; that is said.
pub fn load(keys: &str) -> Option<Stack> {
    static TABLE: LazyTable = LazyTable::new();
    match stack(TABLE.get::<Engine<Texts<true>>>("bh-ve-cuda", "1"), "", keys) {
        Ok(stack) => Some(stack),
        Err(error) => {
            assert!(error.to_string().contains("NVRTC"), "{error}");
            crate::say(format_args!("left out: {error}"));
            None
        }
    }
}

/// The stack of a compiler that refuses all texts, with these engines below it.
pub fn refusing(engines: &str) -> Stack {
    static TABLE: LazyTable = LazyTable::new();
    stack(TABLE.get::<Engine<Texts<false>>>("bh-ve-cuda", "1"), engines, "").unwrap()
}

fn stack(table: &'static ComponentTable, engines: &str, keys: &str) -> Result<Stack> {
    let text = format!(
        "[stacks]\nit = ['filter', 'fuser', 'node', 'texts', {engines}]\n[components.texts]\ncache_dir = ''\nplacement = 'device'\n{keys}\n"
    );
    let config = stacks::from_text("texts.toml", &text)?.with_component("bh_texts", table);
    Stack::load(&config, Some("it"))
}

#[test]
fn the_compiler_takes_all_texts() {
    let all = std::env::var_os("BH_TEST_ALL").is_some();
    let (step, programs) = if all { (1, 1000) } else { (STEP, PROGRAMS) };
    for keys in ["specialise = 'off'", "specialise = 'on'\nplacements = 'all'"] {
        let Some(mut stack) = load(keys) else { return };
        // Groups do nothing, so that all results differ.
        let cases = conformance::run_sample(&mut stack, Opcode::ALL, step, &mut |_| {}).cases;
        for seed in 0..programs {
            let _ = run::run(&mut stack, &program(seed, &random::options(seed)));
        }
        none_is_refused();
        let compiled = COMPILED.load(Ordering::Relaxed);
        crate::say(format_args!("{cases} cases and {programs} random programs: {compiled} texts compiled"));
        assert!(compiled as usize > cases / 4, "{compiled} of {cases}");
    }
}
