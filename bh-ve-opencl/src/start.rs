//! Setting a kernel's arguments and putting it into the queue.

use crate::code::{Code, Place};
use crate::memory::Memory;
use crate::programs::{Entry, Gpu, Programs, failed};
use bh_bytecode::{Constant, DType};
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_fuser::lower::ConstantRef;
use opencl3::event::Event;
use opencl3::kernel::Kernel;
use std::sync::{Arc, PoisonError};

/// One kernel to launch.
pub(crate) struct Launch {
    pub(crate) code: Code,
    pub(crate) entry: Arc<Entry>,
    /// Numbers on the device, if they are no arguments.
    pub(crate) numbers: Option<Memory>,
}

impl Launch {
    /// The launch of a kernel, which may have to be built yet.
    pub(crate) fn new(mut code: Code, programs: &Programs) -> Launch {
        let entry = programs.entry(std::mem::take(&mut code.text));
        Launch { code, entry, numbers: None }
    }

    /// The numbers as the device reads them.
    pub(crate) fn packed(&self) -> Vec<u8> {
        let numbers = &self.code.numbers;
        if self.code.wide {
            numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
        } else {
            numbers.iter().flat_map(|number| (*number as i32).to_ne_bytes()).collect()
        }
    }

    /// Puts the kernel into the queue, with this memory and these constants.
    pub(crate) fn start<'a>(
        &self,
        gpu: &Gpu,
        memory: &dyn Fn(Place) -> Option<&'a Memory>,
        constant: &dyn Fn(DType, ConstantRef) -> Constant,
    ) -> Result<Event> {
        let code = &self.code;
        let Some(built) = self.entry.ready() else {
            return Err(Error::new(status::DEVICE, "OpenCL: a kernel is not built"));
        };
        let kernel = built.kernel.lock().unwrap_or_else(PoisonError::into_inner);
        let mut at = 0;
        for &place in &code.places {
            let Some(memory) = memory(place) else {
                return Err(Error::new(status::DEVICE, "OpenCL: a kernel's memory is missing"));
            };
            set_memory(&kernel, at, memory)?;
            at += 1;
        }
        for &(dtype, name) in &code.constants {
            let bytes = constant(dtype, name).bytes();
            set_bytes(&kernel, at, &bytes[..dtype.size()])?;
            at += 1;
        }
        if let Some(numbers) = &self.numbers {
            set_memory(&kernel, at, numbers)?;
        } else {
            for &number in &code.numbers {
                match code.wide {
                    true => set_bytes(&kernel, at, &number.to_ne_bytes())?,
                    false => set_bytes(&kernel, at, &(number as i32).to_ne_bytes())?,
                }
                at += 1;
            }
        }
        let (global, local) = (code.groups * code.group, code.group);
        let (queue, whole) = (&gpu.queue, std::ptr::null());
        // SAFETY: all arguments are set, and the kernel's views lie inside of its buffers, which were validated; the queue
        // keeps buffers that are released while it uses them.
        let event = unsafe { queue.enqueue_nd_range_kernel(kernel.get(), 1, whole, &global, &local, &[]) };
        event.map_err(|why| failed("starting a kernel", why))
    }
}

/// Sets an argument that is a buffer.
fn set_memory(kernel: &Kernel, at: u32, memory: &Memory) -> Result<()> {
    use opencl3::memory::ClMem;
    // SAFETY: the argument is a buffer of the kernel's context.
    unsafe { kernel.set_arg(at, &memory.buffer().get()) }.map_err(|why| failed("setting an argument", why))
}

/// Sets an argument that is a number of these bytes.
fn set_bytes(kernel: &Kernel, at: u32, bytes: &[u8]) -> Result<()> {
    // SAFETY: the driver copies as many bytes as it is told from there, and refuses a size that is not the argument's.
    let outcome = unsafe { opencl3::kernel::set_kernel_arg(kernel.get(), at, bytes.len(), bytes.as_ptr().cast()) };
    outcome.map_err(|why| failed("setting an argument", why.into()))
}
