//! A device of CUDA in use: memory, programs, kernels and events.

use crate::api::{Address, Functions, NOT_READY, Rows};
use crate::devices;
use crate::graph::Graph;
use crate::language::{CUDA, FAST_OPTIONS, OPTIONS};
use crate::libraries::Libraries;
use crate::library::Handle;
use crate::nvrtc::{Form, Nvrtc};
use crate::peers::Opened;
use crate::stream::Stream;
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_device::device::DeviceInfo;
use bh_device::driver::{self, Driver, Options, Region, Times};
use bh_device::language::Language;
use std::any::Any;
use std::ffi::{CString, c_int, c_uint, c_void};
use std::ptr;
use std::sync::Arc;
use std::time::Instant;

/// `CU_MEMHOSTALLOC_PORTABLE`: pinned for all contexts.
const PORTABLE: c_uint = 1;
/// `CU_MEMORYTYPE_HOST` and `CU_MEMORYTYPE_DEVICE`.
const HOST: c_uint = 1;
const DEVICE: c_uint = 2;
/// `CU_POINTER_ATTRIBUTE_MEMORY_TYPE` and `CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL`.
const KIND_OF_POINTER: c_int = 2;
const DEVICE_OF_POINTER: c_int = 9;

/// A device in use.
pub(crate) struct Queue {
    info: DeviceInfo,
    pub(crate) stream: Arc<Stream>,
    /// The devices that are open for copies to and from this one.
    pub(crate) opened: Opened,
    nvrtc: &'static Nvrtc,
    form: Form,
    /// Of the compiler.
    options: &'static [&'static str],
    libraries: Libraries,
}

impl Queue {
    /// Opens a device.
    pub(crate) fn open(info: DeviceInfo, options: Options) -> Result<Queue> {
        let device = info.id as c_int;
        let stream = Stream::new(device, options.times)?;
        let functions = stream.context.functions;
        let nvrtc = devices::compiler(functions)?;
        let too_old = || Error::new(status::DEVICE, format!("NVRTC makes no code for device '{}'", info.name));
        let form = nvrtc.form(devices::capability(functions, device)).ok_or_else(too_old)?;
        let options = nvrtc.known(if options.fast_math { &FAST_OPTIONS[..] } else { &OPTIONS[..] });
        let libraries = Libraries::new(stream.clone(), nvrtc.version.0 as u32);
        Ok(Queue { info, stream, opened: Opened::default(), nvrtc, form, options, libraries })
    }

    /// Puts a command into the stream.
    pub(crate) fn ask(&self, what: &str, call: impl FnOnce(&Functions, Handle) -> c_int) -> Result<()> {
        self.stream.context.call(what, |functions| call(functions, self.stream.handle))
    }

    fn event(&self) -> Result<Arc<dyn driver::Event>> {
        Ok(Arc::new(Event { end: self.stream.event(false)?, begin: None, stream: self.stream.clone() }))
    }

    fn module(&self, code: Vec<u8>) -> Result<Arc<dyn driver::Program>> {
        let mut handle = Handle::NULL;
        let (place, image) = (&raw mut handle, code.as_ptr().cast());
        // SAFETY: `place` takes the module, and the code is a whole one: machine code, or PTX with a zero behind it.
        self.stream.context.call("loading a program", |it| unsafe { (it.module)(place, image) })?;
        Ok(Arc::new(Program { module: Arc::new(Module { handle, stream: self.stream.clone() }), code }))
    }
}

/// The address of a buffer.
pub(crate) fn address(buffer: &dyn driver::Buffer) -> Address {
    buffer.handle().expose_provenance() as Address
}

const TO_DEVICE: &str = "copying to the device";
pub(crate) const FROM_DEVICE: &str = "copying from the device";

impl Driver for Queue {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn language(&self) -> &'static Language {
        &CUDA
    }

    fn identity(&self) -> String {
        let DeviceInfo { name, platform, version, .. } = &self.info;
        format!("{name}\n{platform}\n{version}\n{:?}\n{:?}", self.form, self.options)
    }

    fn shares_queue(&self) -> bool {
        false
    }

    fn allocate(&self, bytes: usize) -> Result<Box<dyn driver::Buffer>> {
        let (mut address, pools, bytes) = (0, self.stream.pools, bytes.max(1));
        self.ask("allocating memory", |it, stream| {
            // SAFETY: `address` takes the memory's address.
            unsafe {
                if pools { (it.allocate_in)(&mut address, bytes, stream) } else { (it.allocate)(&mut address, bytes) }
            }
        })?;
        Ok(Box::new(Memory { address, stream: Some(self.stream.clone()) }))
    }

    unsafe fn adopt(&self, handle: *mut c_void, bytes: usize) -> Result<Box<dyn driver::Buffer>> {
        let address = handle.expose_provenance() as Address;
        let (mut kind, mut device, mut start, mut size): (c_uint, c_int, Address, usize) = (0, 0, 0, 0);
        let no = |text: String| Err(Error::new(status::ARGUMENT, format!("adopt: {text}")));
        let known = self.stream.context.call("asking for a pointer", |it| {
            // SAFETY: the places take what is asked for.
            unsafe {
                let kind = (it.pointer_fact)((&raw mut kind).cast(), KIND_OF_POINTER, address);
                let device = (it.pointer_fact)((&raw mut device).cast(), DEVICE_OF_POINTER, address);
                kind.max(device).max((it.range)(&mut start, &mut size, address))
            }
        });
        if known.is_err() || kind != DEVICE {
            return no("the pointer does not lead to memory of CUDA on a device".into());
        }
        if device as usize != self.info.id {
            return no(format!("the memory is on device {device}, and the array on device {}", self.info.id));
        }
        let left = (start as usize).saturating_add(size).saturating_sub(address as usize);
        if left < bytes {
            return no(format!("the memory has {left} bytes, and the array {bytes}"));
        }
        Ok(Box::new(Memory { address, stream: None }))
    }

    fn pinned(&self, bytes: usize) -> Option<Box<dyn driver::Pinned>> {
        let mut address = ptr::null_mut();
        // SAFETY: `address` takes the memory's address.
        self.ask("pinning memory", |it, _| unsafe { (it.host)(&mut address, bytes, PORTABLE) }).ok()?;
        Some(Box::new(Pinned { address: address.expose_provenance(), stream: self.stream.clone() }))
    }

    unsafe fn upload(&self, to: &dyn driver::Buffer, offset: usize, bytes: &[u8]) -> Result<()> {
        let (to, len) = (address(to) + offset as Address, bytes.len());
        // SAFETY: the buffer has these bytes, as `# Safety` asks, and they live until the stream is done.
        self.ask(TO_DEVICE, |it, stream| unsafe { (it.upload)(to, bytes.as_ptr().cast(), len, stream) })?;
        self.finish()
    }

    unsafe fn upload_rows(&self, to: &dyn driver::Buffer, rows: &Region, bytes: &[u8]) -> Result<()> {
        let rows = Rows {
            from_x: 0,
            from_y: 0,
            from_kind: HOST,
            from_host: bytes[rows.first..].as_ptr().cast(),
            from_device: 0,
            from_array: ptr::null_mut(),
            from_pitch: rows.pitch,
            to_x: 0,
            to_y: 0,
            to_kind: DEVICE,
            to_host: ptr::null_mut(),
            to_device: address(to) + rows.first as Address,
            to_array: ptr::null_mut(),
            to_pitch: rows.pitch,
            width: rows.len,
            height: rows.rows,
        };
        // SAFETY: host memory and the buffer have all rows, as `# Safety` asks, and they live until the stream is done.
        self.ask("copying rows to the device", |it, stream| unsafe { (it.copy_rows)(&rows, stream) })?;
        self.finish()
    }

    unsafe fn download(&self, from: &dyn driver::Buffer, offset: usize, bytes: &mut [u8]) -> Result<()> {
        let (from, len, to) = (address(from) + offset as Address, bytes.len(), bytes.as_mut_ptr());
        // SAFETY: the buffer has these bytes, as `# Safety` asks, and there is room for them until the stream is done.
        self.ask(FROM_DEVICE, |it, stream| unsafe { (it.download)(to.cast(), from, len, stream) })?;
        self.finish()
    }

    unsafe fn begin_upload(
        &self,
        to: &dyn driver::Buffer,
        offset: usize,
        data: *const u8,
        len: usize,
    ) -> Result<Arc<dyn driver::Event>> {
        let to = address(to) + offset as Address;
        // SAFETY: the buffer has these bytes, and `data` leads to them until the event has come, as `# Safety` asks.
        self.ask(TO_DEVICE, |it, stream| unsafe { (it.upload)(to, data.cast(), len, stream) })?;
        self.event()
    }

    unsafe fn begin_download(
        &self,
        from: &dyn driver::Buffer,
        offset: usize,
        data: *mut u8,
        len: usize,
    ) -> Result<Arc<dyn driver::Event>> {
        let from = address(from) + offset as Address;
        // SAFETY: the buffer has these bytes, and `data` has room for them until the event has come, as `# Safety` asks.
        self.ask(FROM_DEVICE, |it, stream| unsafe { (it.download)(data.cast(), from, len, stream) })?;
        self.event()
    }

    unsafe fn copy(&self, from: &dyn driver::Buffer, to: &dyn driver::Buffer, bytes: usize) -> Result<()> {
        let (from, to) = (address(from), address(to));
        // SAFETY: both buffers have these bytes, as `# Safety` asks.
        self.ask("copying on the device", |it, stream| unsafe { (it.copy)(to, from, bytes, stream) })
    }

    unsafe fn clear(&self, buffer: &dyn driver::Buffer, bytes: usize) -> Result<()> {
        let address = address(buffer);
        // SAFETY: the buffer has these bytes, as `# Safety` asks.
        self.ask("filling device memory", |it, stream| unsafe { (it.fill)(address, 0, bytes / 4, stream) })
    }

    fn compile(&self, text: &str) -> std::result::Result<Arc<dyn driver::Program>, String> {
        let code = self.nvrtc.compile(text, self.form, self.options);
        let code = code.map_err(|why| format!("CUDA: building a kernel failed: {why}"))?;
        self.module(code).map_err(|error| error.text)
    }

    fn compilers(&self) -> usize {
        self.nvrtc.count()
    }

    fn add_compiler(&self) -> bool {
        self.nvrtc.add()
    }

    fn load(&self, binary: &[u8]) -> Option<Arc<dyn driver::Program>> {
        self.module(binary.to_vec()).ok()
    }

    fn libraries(&self) -> Option<&dyn driver::Libraries> {
        Some(&self.libraries)
    }

    fn peers(&self) -> Option<&dyn driver::Peers> {
        Some(self)
    }

    fn graph(&self) -> Option<Box<dyn driver::Graph>> {
        Graph::new(&self.stream).map(|graph| Box::new(graph) as Box<dyn driver::Graph>)
    }

    /// Other libraries of the process use the context, too.
    fn settle(&self) -> Result<()> {
        // SAFETY: the context is the thread's.
        self.stream.context.call("waiting for the device", |it| unsafe { (it.wait_for_all)() })
    }

    fn mark(&self) -> Result<Arc<dyn driver::Event>> {
        self.event()
    }

    /// The device starts with everything at once.
    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn finish(&self) -> Result<()> {
        self.stream.finish()
    }
}

/// Memory of a device; without a stream it is the program's.
struct Memory {
    address: Address,
    stream: Option<Arc<Stream>>,
}

impl driver::Buffer for Memory {
    fn handle(&self) -> *mut c_void {
        ptr::with_exposed_provenance_mut(self.address as usize)
    }
}

impl Drop for Memory {
    /// The memory goes when the stream has used it.
    fn drop(&mut self) {
        let Some(stream) = &self.stream else { return };
        // SAFETY: the memory was allocated so, and is freed once; without pools the call waits for the device.
        let _ = stream.context.call("freeing memory", |it| unsafe {
            if stream.pools { (it.free_in)(self.address, stream.handle) } else { (it.free)(self.address) }
        });
    }
}

struct Pinned {
    address: usize,
    stream: Arc<Stream>,
}

impl driver::Pinned for Pinned {
    fn address(&self) -> *mut u8 {
        ptr::with_exposed_provenance_mut(self.address)
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let memory = driver::Pinned::address(self);
        // SAFETY: the memory was allocated so, and is freed once.
        let _ = self.stream.context.call("freeing pinned memory", |it| unsafe { (it.free_host)(memory.cast()) });
    }
}

/// A place of the stream, and the place before what ends there, if it is timed.
pub(crate) struct Event {
    pub(crate) end: Handle,
    begin: Option<(Handle, Instant)>,
    stream: Arc<Stream>,
}

impl driver::Event for Event {
    fn wait(&self, what: &str) -> Result<()> {
        // SAFETY: the event lives.
        self.stream.context.call(what, |it| unsafe { (it.wait)(self.end) })
    }

    fn is_done(&self) -> bool {
        let context = &self.stream.context;
        // SAFETY: the event lives. A failed event is done; the wait reports the failure.
        context.enter().is_ok_and(|_entered| unsafe { (context.functions.ask)(self.end) } != NOT_READY)
    }

    /// The device's clock begins with the stream. Milliseconds of single precision are exact enough between two events that are
    /// near each other, and for minutes from the beginning.
    fn times(&self) -> Option<Times> {
        let ((begin, asked), origin) = (self.begin?, self.stream.origin.as_ref()?);
        self.wait("waiting for a kernel").ok()?;
        let between = |first: Handle, last: Handle| {
            let mut milliseconds = 0.0f32;
            // SAFETY: the events have times, and have come.
            let elapsed = |it: &Functions| unsafe { (it.elapsed)(&mut milliseconds, first, last) };
            let told = self.stream.context.call("asking for times", elapsed);
            told.ok().map(|()| (f64::from(milliseconds) * 1e6) as u64)
        };
        let start = between(origin.event, begin)?;
        let end = start + between(begin, self.end)?;
        Some(Times { queued: (asked.duration_since(origin.at).as_nanos() as u64).min(start), start, end })
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let Some((begin, _)) = self.begin else { return self.stream.take_back(self.end) };
        // SAFETY: nobody else knows the events, and the driver keeps them until they have come.
        let _ = self.stream.context.call("ending an event", |it| unsafe {
            (it.end_event)(begin);
            (it.end_event)(self.end)
        });
    }
}

struct Module {
    handle: Handle,
    stream: Arc<Stream>,
}

impl Drop for Module {
    fn drop(&mut self) {
        // Its kernels may be in the stream still.
        let _ = self.stream.finish();
        // SAFETY: nobody uses the module any more.
        let _ = self.stream.context.call("unloading a program", |it| unsafe { (it.end_module)(self.handle) });
    }
}

struct Program {
    module: Arc<Module>,
    code: Vec<u8>,
}

impl driver::Program for Program {
    fn kernel(&self, name: &str) -> std::result::Result<Box<dyn driver::Kernel>, String> {
        let mut handle = Handle::NULL;
        let name = CString::new(name).map_err(|_| "CUDA: the name of a kernel has a byte of zeros".to_owned())?;
        let (module, stream) = (self.module.clone(), &self.module.stream);
        // SAFETY: `handle` takes the kernel, and the name lives through the call.
        let found = stream
            .context
            .call("finding a kernel", |it| unsafe { (it.kernel)(&mut handle, module.handle, name.as_ptr()) });
        found.map_err(|error| error.text)?;
        Ok(Box::new(Kernel { handle, arguments: Vec::new(), module }))
    }

    fn binary(&self) -> Option<Vec<u8>> {
        Some(self.code.clone())
    }
}

/// The bytes of an argument.
#[repr(align(16))]
#[derive(Clone, Copy, Default)]
struct Argument([u8; 16]);

pub(crate) struct Kernel {
    pub(crate) handle: Handle,
    arguments: Vec<Argument>,
    module: Arc<Module>,
}

impl Kernel {
    /// Where its arguments are, for a call of the driver, which changes none of them.
    pub(crate) fn arguments(&self) -> Vec<*mut c_void> {
        self.arguments.iter().map(|it| (&raw const *it).cast_mut().cast()).collect()
    }

    /// Keeps its code while it lives.
    pub(crate) fn module(&self) -> Arc<dyn Any + Send + Sync> {
        self.module.clone()
    }
}

impl driver::Kernel for Kernel {
    fn set_buffer(&mut self, at: u32, buffer: &dyn driver::Buffer) -> Result<()> {
        self.set_value(at, &address(buffer).to_ne_bytes())
    }

    fn set_value(&mut self, at: u32, bytes: &[u8]) -> Result<()> {
        let place = at as usize;
        if self.arguments.len() <= place {
            self.arguments.resize(place + 1, Argument::default());
        }
        self.arguments[place].0[..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    unsafe fn launch(&mut self, groups: usize, group: usize, timed: bool) -> Result<Option<Arc<dyn driver::Event>>> {
        let stream = &self.module.stream;
        let timed = timed && stream.origin.is_some();
        let begin = if timed { Some((stream.event(true)?, Instant::now())) } else { None };
        let mut arguments = self.arguments();
        let (groups, group, handle) = (groups as c_uint, group as c_uint, self.handle);
        stream.context.call("starting a kernel", |it| {
            // SAFETY: all arguments are set, as `# Safety` asks, and the driver copies as many bytes as each has, at most 16.
            unsafe {
                let (arguments, more) = (arguments.as_mut_ptr(), ptr::null_mut());
                (it.launch)(handle, groups, 1, 1, group, 1, 1, 0, stream.handle, arguments, more)
            }
        })?;
        let Some(begin) = begin else { return Ok(None) };
        Ok(Some(Arc::new(Event { end: stream.event(true)?, begin: Some(begin), stream: stream.clone() })))
    }
}
