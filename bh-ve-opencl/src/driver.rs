//! A device of OpenCL in use: its context and its queue, memory, programs, kernels and events.

use crate::language::{OPENCL_C, contracted};
use crate::{devices, failed};
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_device::device::DeviceInfo;
use bh_device::driver::{self, Driver, Options, Region, Times};
use bh_device::language::Language;
use opencl3::command_queue::{CL_QUEUE_PROFILING_ENABLE, CommandQueue};
use opencl3::context::Context;
use opencl3::device::{CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT, Device};
use opencl3::event::CL_COMPLETE;
use opencl3::memory::{Buffer, CL_MAP_READ, CL_MAP_WRITE, CL_MEM_ALLOC_HOST_PTR, CL_MEM_READ_WRITE, ClMem};
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::Arc;

/// The platform of PoCL.
const POCL: &str = "Portable Computing Language";

/// An option with which PoCL does not read Clang's 18,000 lines of declarations, more than half of the time that a short text takes.
/// It is the guard of that header, no documented option: where it has no effect, `BUILTINS` declares the same again.
const WITHOUT_HEADER: &str = "-D_OPENCL_H_";
const BUILTINS: &str = include_str!("builtins.h");

/// A device in use.
pub(crate) struct Queue {
    info: DeviceInfo,
    pub(crate) context: Context,
    queue: Arc<CommandQueue>,
    /// Does the program use the queue, too?
    shared: bool,
    fast_math: bool,
    /// Of the compiler.
    options: String,
}

impl Queue {
    /// Opens a device.
    pub(crate) fn open(info: DeviceInfo, options: Options) -> Result<Queue> {
        let context = Context::from_device(&Device::new(devices::handle(&info)))
            .map_err(|why| failed("making a context", why))?;
        let queue = Queue::queue(&context, options.times)?;
        Ok(Queue::new(info, context, queue, false, options.fast_math))
    }

    /// A queue of a context's first device.
    pub(crate) fn queue(context: &Context, times: bool) -> Result<CommandQueue> {
        let properties = if times { CL_QUEUE_PROFILING_ENABLE } else { 0 };
        #[allow(deprecated, reason = "the call that replaces it needs OpenCL 2")]
        CommandQueue::create_default(context, properties).map_err(|why| failed("making a queue", why))
    }

    pub(crate) fn new(info: DeviceInfo, context: Context, queue: CommandQueue, shared: bool, fast_math: bool) -> Queue {
        // Warnings of the device's compiler about generated text are of no use to anybody.
        let mut options = String::from("-cl-std=CL1.2 -w");
        let config = Device::new(devices::handle(&info)).single_fp_config().unwrap_or_default();
        if config & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT != 0 && !fast_math {
            options += " -cl-fp32-correctly-rounded-divide-sqrt";
        }
        if fast_math {
            options += " -cl-mad-enable -cl-no-signed-zeros -cl-unsafe-math-optimizations";
        }
        Queue { info, context, queue: Arc::new(queue), shared, fast_math, options }
    }

    fn allocated(&self, flags: u64, bytes: usize) -> opencl3::Result<Buffer<u8>> {
        // SAFETY: no host memory is given.
        unsafe { Buffer::create(&self.context, flags, bytes, ptr::null_mut()) }
    }

    fn build(&self, text: &str, options: &str) -> std::result::Result<Arc<dyn driver::Program>, String> {
        let mut program = opencl3::program::Program::create_from_source(&self.context, text)
            .map_err(|why| format!("OpenCL: a program cannot be made: {why}"))?;
        let device = devices::handle(&self.info);
        if let Err(why) = program.build(&[device], options) {
            let log = program.get_build_log(device).unwrap_or_default();
            return Err(format!("OpenCL: building a kernel failed: {why}: {}", log.trim()));
        }
        Ok(self.program(program))
    }

    fn program(&self, program: opencl3::program::Program) -> Arc<dyn driver::Program> {
        Arc::new(Program { program, queue: self.queue.clone() })
    }
}

/// A buffer of an argument; it stays its owner's.
fn of(buffer: &dyn driver::Buffer) -> ManuallyDrop<Buffer<u8>> {
    ManuallyDrop::new(Buffer::new(buffer.handle()))
}

/// The event of a call, or its error.
fn event(what: &str, found: opencl3::Result<opencl3::event::Event>) -> Result<Arc<dyn driver::Event>> {
    Ok(Arc::new(Event(found.map_err(|why| failed(what, why))?)))
}

const TO_DEVICE: &str = "copying to the device";
const FROM_DEVICE: &str = "copying from the device";

impl Driver for Queue {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn language(&self) -> &'static Language {
        &OPENCL_C
    }

    fn identity(&self) -> String {
        format!("{}\n{}\n{}\n{}", self.info.name, self.info.platform, self.info.version, self.options)
    }

    /// PoCL keeps kernels for the size of their groups. For a binary it builds each kernel once more, for any size, and then builds
    /// it a third time for the launch after loading.
    fn keeps_programs(&self) -> bool {
        self.info.platform == POCL
    }

    fn shares_queue(&self) -> bool {
        self.shared
    }

    fn allocate(&self, bytes: usize) -> Result<Box<dyn driver::Buffer>> {
        let made = self.allocated(CL_MEM_READ_WRITE, bytes);
        Ok(Box::new(Memory(made.map_err(|why| Error::new(status::MEMORY, why.to_string()))?)))
    }

    unsafe fn adopt(&self, handle: *mut c_void, bytes: usize) -> Result<Box<dyn driver::Buffer>> {
        // SAFETY: the handle is a buffer's, as `# Safety` asks.
        Ok(Box::new(Memory(unsafe { self.take_over(handle, bytes)? })))
    }

    fn pinned(&self, bytes: usize) -> Option<Box<dyn driver::Pinned>> {
        let buffer = self.allocated(CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes).ok()?;
        let (mut address, flags) = (ptr::null_mut(), CL_MAP_READ | CL_MAP_WRITE);
        // SAFETY: the buffer is mapped as a whole, and stays mapped until it is released.
        unsafe { self.queue.enqueue_map_buffer(&buffer, 1, flags, 0, bytes, &mut address, &[]).ok()? };
        Some(Box::new(Pinned { _buffer: buffer, address: address.expose_provenance() }))
    }

    unsafe fn upload(&self, to: &dyn driver::Buffer, offset: usize, bytes: &[u8]) -> Result<()> {
        // SAFETY: the buffer has these bytes, as `# Safety` asks, and the call blocks until they are read.
        let copied = unsafe { self.queue.enqueue_write_buffer(&mut of(to), 1, offset, bytes, &[]) };
        copied.map(drop).map_err(|why| failed(TO_DEVICE, why))
    }

    unsafe fn upload_rows(&self, to: &dyn driver::Buffer, rows: &Region, bytes: &[u8]) -> Result<()> {
        let &Region { first, len, rows, pitch } = rows;
        // The call starts at a whole row in both.
        let (origin, shape) = ([first % pitch, first / pitch, 0], [len, rows, 1]);
        // SAFETY: host memory and the buffer have all rows, as `# Safety` asks, and the call blocks until they are read.
        let copied = unsafe {
            self.queue.enqueue_write_buffer_rect(
                &mut of(to),
                1,
                origin.as_ptr(),
                origin.as_ptr(),
                shape.as_ptr(),
                pitch,
                0,
                pitch,
                0,
                bytes.as_ptr().cast_mut().cast(),
                &[],
            )
        };
        copied.map(drop).map_err(|why| failed("copying rows to the device", why))
    }

    unsafe fn download(&self, from: &dyn driver::Buffer, offset: usize, bytes: &mut [u8]) -> Result<()> {
        // SAFETY: the buffer has these bytes, as `# Safety` asks, and the call blocks until they are there.
        let copied = unsafe { self.queue.enqueue_read_buffer(&of(from), 1, offset, bytes, &[]) };
        copied.map(drop).map_err(|why| failed(FROM_DEVICE, why))
    }

    unsafe fn begin_upload(
        &self,
        to: &dyn driver::Buffer,
        offset: usize,
        data: *const u8,
        len: usize,
    ) -> Result<Arc<dyn driver::Event>> {
        // SAFETY: the buffer has these bytes, and `data` leads to them until the event has come, as `# Safety` asks.
        let begun = unsafe {
            let bytes = std::slice::from_raw_parts(data, len);
            self.queue.enqueue_write_buffer(&mut of(to), 0, offset, bytes, &[])
        };
        let begun = event(TO_DEVICE, begun)?;
        self.flush().map(|()| begun)
    }

    unsafe fn begin_download(
        &self,
        from: &dyn driver::Buffer,
        offset: usize,
        data: *mut u8,
        len: usize,
    ) -> Result<Arc<dyn driver::Event>> {
        // SAFETY: the buffer has these bytes, and `data` has room for them until the event has come, as `# Safety` asks.
        let begun = unsafe {
            let bytes = std::slice::from_raw_parts_mut(data, len);
            self.queue.enqueue_read_buffer(&of(from), 0, offset, bytes, &[])
        };
        let begun = event(FROM_DEVICE, begun)?;
        self.flush().map(|()| begun)
    }

    unsafe fn copy(&self, from: &dyn driver::Buffer, to: &dyn driver::Buffer, bytes: usize) -> Result<()> {
        // SAFETY: both buffers have these bytes, as `# Safety` asks.
        let copied = unsafe { self.queue.enqueue_copy_buffer(&of(from), &mut of(to), 0, 0, bytes, &[]) };
        copied.map(drop).map_err(|why| failed("copying on the device", why))
    }

    unsafe fn clear(&self, buffer: &dyn driver::Buffer, bytes: usize) -> Result<()> {
        // With a pattern of one byte, an H100 fills 340 GB in a second, a tenth of what it writes.
        let pattern = if bytes.is_multiple_of(16) { &[0u8; 16][..] } else { &[0u8; 4] };
        // SAFETY: the buffer has these bytes, as `# Safety` asks.
        let filled = unsafe { self.queue.enqueue_fill_buffer(&mut of(buffer), pattern, 0, bytes, &[]) };
        filled.map(drop).map_err(|why| failed("filling device memory", why))
    }

    fn compile(&self, text: &str) -> std::result::Result<Arc<dyn driver::Program>, String> {
        let is_own = text.starts_with(OPENCL_C.prelude);
        let contracted = self.fast_math.then(|| contracted(text));
        let text = contracted.as_deref().unwrap_or(text);
        if is_own && self.info.platform == POCL {
            let brief = self.build(&format!("{BUILTINS}{text}"), &format!("{} {WITHOUT_HEADER}", self.options));
            // A text may call a function that these lack.
            if brief.is_ok() {
                return brief;
            }
        }
        self.build(text, &self.options)
    }

    fn load(&self, binary: &[u8]) -> Option<Arc<dyn driver::Program>> {
        let program = opencl3::program::Program::create_and_build_from_binary(&self.context, &[binary], "").ok()?;
        Some(self.program(program))
    }

    fn mark(&self) -> Result<Arc<dyn driver::Event>> {
        // SAFETY: the list of events is empty.
        event("marking the end of a batch", unsafe { self.queue.enqueue_marker_with_wait_list(&[]) })
    }

    fn flush(&self) -> Result<()> {
        self.queue.flush().map_err(|why| failed("starting the queue", why))
    }

    fn finish(&self) -> Result<()> {
        self.queue.finish().map_err(|why| failed("waiting for the device", why))
    }
}

struct Memory(Buffer<u8>);

impl driver::Buffer for Memory {
    fn handle(&self) -> *mut c_void {
        self.0.get()
    }
}

struct Pinned {
    _buffer: Buffer<u8>,
    /// Where the buffer is mapped, as long as it lives.
    address: usize,
}

impl driver::Pinned for Pinned {
    fn address(&self) -> *mut u8 {
        ptr::with_exposed_provenance_mut(self.address)
    }
}

struct Event(opencl3::event::Event);

impl driver::Event for Event {
    fn wait(&self, what: &str) -> Result<()> {
        self.0.wait().map_err(|why| failed(what, why))
    }

    fn is_done(&self) -> bool {
        // Negative: it has failed, which the wait tells.
        self.0.command_execution_status().is_ok_and(|status| status.0 <= CL_COMPLETE)
    }

    fn times(&self) -> Option<Times> {
        self.0.wait().ok()?;
        Some(Times {
            queued: self.0.profiling_command_queued().ok()?,
            start: self.0.profiling_command_start().ok()?,
            end: self.0.profiling_command_end().ok()?,
        })
    }
}

struct Program {
    program: opencl3::program::Program,
    queue: Arc<CommandQueue>,
}

impl driver::Program for Program {
    fn kernel(&self, name: &str) -> std::result::Result<Box<dyn driver::Kernel>, String> {
        let made = opencl3::kernel::Kernel::create(&self.program, name);
        let kernel = made.map_err(|why| format!("OpenCL: the kernel is not usable: {why}"))?;
        Ok(Box::new(Kernel { kernel, values: Vec::new(), queue: self.queue.clone() }))
    }

    fn binary(&self) -> Option<Vec<u8>> {
        self.program.get_binaries().ok()?.into_iter().next()
    }
}

struct Kernel {
    kernel: opencl3::kernel::Kernel,
    /// The numbers of the last launch, by argument.
    values: Vec<Option<[u8; 16]>>,
    queue: Arc<CommandQueue>,
}

impl driver::Kernel for Kernel {
    fn set_buffer(&mut self, at: u32, buffer: &dyn driver::Buffer) -> Result<()> {
        // SAFETY: the argument is a buffer of the kernel's context.
        unsafe { self.kernel.set_arg(at, &buffer.handle()) }.map_err(|why| failed("setting an argument", why))
    }

    /// A value that is set already is not set again.
    fn set_value(&mut self, at: u32, bytes: &[u8]) -> Result<()> {
        let place = at as usize;
        if self.values.len() <= place {
            self.values.resize(place + 1, None);
        }
        let mut value = [0; 16];
        value[..bytes.len()].copy_from_slice(bytes);
        if self.values[place] == Some(value) {
            return Ok(());
        }
        // SAFETY: the driver copies the given number of bytes from there, and refuses a size that is not the argument's.
        let outcome =
            unsafe { opencl3::kernel::set_kernel_arg(self.kernel.get(), at, bytes.len(), bytes.as_ptr().cast()) };
        outcome.map_err(|why| failed("setting an argument", why.into()))?;
        self.values[place] = Some(value);
        Ok(())
    }

    unsafe fn launch(&mut self, groups: usize, group: usize, _: bool) -> Result<Option<Arc<dyn driver::Event>>> {
        let (kernel, global) = (self.kernel.get(), groups * group);
        // SAFETY: all arguments are set, as `# Safety` asks; the queue keeps buffers that are released while it uses them.
        let begun = unsafe { self.queue.enqueue_nd_range_kernel(kernel, 1, ptr::null(), &global, &group, &[]) };
        event("starting a kernel", begun).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bh_bytecode::c::{expression, functions};
    use bh_bytecode::{DType, Opcode};

    /// PoCL's processor.
    fn pocl() -> Queue {
        let found = devices::list().unwrap().into_iter().find(|info| info.platform == POCL);
        Queue::open(found.expect("PoCL is installed"), Options { times: false, fast_math: false }).unwrap()
    }

    fn text(functions: &str, body: &str) -> String {
        let (prelude, f64) = (OPENCL_C.prelude, OPENCL_C.f64);
        format!("{prelude}{f64}{functions}BH_KERNEL(1) bh(BH_GLOBAL float *a) {{ {body} }}\n")
    }

    #[test]
    fn functions_of_all_opcodes_need_no_header() {
        let calls = |&opcode: &Opcode| {
            let call = move |&dtype: &DType| expression(opcode, 0, dtype, dtype, &["a", "b", "c"]);
            DType::ALL.iter().map(call).collect::<String>()
        };
        let all = functions(&Opcode::ALL.iter().map(calls).collect::<String>());
        assert!(all.contains("bh_erf_f64(") && all.contains("bh_exp_c64("), "{all}");
        let pocl = pocl();
        let built = pocl.build(&format!("{BUILTINS}{}", text(&all, "a[BH_INDEX] = 1;")), WITHOUT_HEADER);
        assert!(built.is_ok(), "{}", built.err().unwrap());
    }

    #[test]
    fn a_text_that_calls_other_functions_is_built_with_the_header() {
        let (pocl, text) = (pocl(), text("", "a[BH_INDEX] = native_sin(a[BH_INDEX]);"));
        assert!(pocl.build(&format!("{BUILTINS}{text}"), WITHOUT_HEADER).is_err());
        assert!(pocl.compile(&text).is_ok());
    }
}
