//! Setting a kernel's arguments and putting it into the queue.

use crate::code::{Code, KernelMemory};
use crate::compiler::{Entry, Prepared, Value};
use crate::gpu::{Gpu, failed};
use crate::memory::Memory;
use crate::programs::Programs;
use bh_bytecode::{Constant, DType};
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_kernel::ConstantRef;
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
        let entry = programs.entry(std::mem::take(&mut code.text), code.own);
        Launch { code, entry, numbers: None }
    }

    /// Brings the numbers to the device, to memory from `take`, if they are no arguments.
    pub(crate) fn bring_numbers(&mut self, take: impl FnOnce(usize) -> Result<Memory>) -> Result<()> {
        if !self.code.packed || self.numbers.is_some() {
            return Ok(());
        }
        let numbers = &self.code.numbers;
        let bytes: Vec<u8> = match self.code.wide {
            true => numbers.iter().flat_map(|number| number.to_ne_bytes()).collect(),
            false => numbers.iter().flat_map(|number| (*number as i32).to_ne_bytes()).collect(),
        };
        let memory = take(bytes.len())?;
        memory.upload(&bytes)?;
        self.numbers = Some(memory);
        Ok(())
    }

    /// Puts the kernel into the queue, with this memory and these constants.
    pub(crate) fn start<'a>(
        &self,
        gpu: &Gpu,
        memory: &dyn Fn(KernelMemory) -> Option<&'a Memory>,
        constant: &dyn Fn(DType, ConstantRef) -> Constant,
    ) -> Result<Event> {
        let code = &self.code;
        gpu.kernel_starts()?;
        let Some(built) = self.entry.ready() else {
            return Err(Error::new(status::DEVICE, "OpenCL: a kernel is not built"));
        };
        let mut prepared = built.kernel.lock().unwrap_or_else(PoisonError::into_inner);
        let Prepared { kernel, values } = &mut *prepared;
        let mut at = 0;
        for &place in &code.places {
            let Some(memory) = memory(place) else {
                return Err(Error::new(status::DEVICE, "OpenCL: a kernel's memory is missing"));
            };
            set_memory(kernel, at, memory)?;
            at += 1;
        }
        for &(dtype, name) in &code.constants {
            let bytes = constant(dtype, name).bytes();
            set_value(kernel, values, at, &bytes[..dtype.size()])?;
            at += 1;
        }
        if let Some(numbers) = &self.numbers {
            set_memory(kernel, at, numbers)?;
        } else {
            for &number in &code.numbers {
                match code.wide {
                    true => set_value(kernel, values, at, &number.to_ne_bytes())?,
                    false => set_value(kernel, values, at, &(number as i32).to_ne_bytes())?,
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

/// Sets an argument that is a number of these bytes, unless it has that value from before.
fn set_value(kernel: &Kernel, values: &mut Vec<Value>, at: u32, bytes: &[u8]) -> Result<()> {
    let place = at as usize;
    if values.len() <= place {
        values.resize(place + 1, None);
    }
    let mut value = [0; 16];
    value[..bytes.len()].copy_from_slice(bytes);
    if values[place] == Some(value) {
        return Ok(());
    }
    // SAFETY: the driver copies as many bytes as it is told from there, and refuses a size that is not the argument's.
    let outcome = unsafe { opencl3::kernel::set_kernel_arg(kernel.get(), at, bytes.len(), bytes.as_ptr().cast()) };
    outcome.map_err(|why| failed("setting an argument", why.into()))?;
    values[place] = Some(value);
    Ok(())
}
