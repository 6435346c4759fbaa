//! Setting a kernel's arguments and putting it into the queue.

use crate::code::{Code, KernelMemory};
use crate::compiler::Entry;
use crate::driver::{Event, Kernel};
use crate::gpu::Gpu;
use crate::memory::Memory;
use crate::programs::Programs;
use bh_bytecode::{Constant, DType};
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_kernel::ConstantRef;
use std::sync::{Arc, MutexGuard, OnceLock, PoisonError};

/// One kernel to launch.
pub(crate) struct Launch {
    pub(crate) code: Code,
    pub(crate) entry: Arc<Entry>,
    /// Numbers on the device, if they are no arguments.
    pub(crate) numbers: OnceLock<Memory>,
}

impl Launch {
    /// The launch of a kernel, which may have to be built yet, or of a library's task.
    pub(crate) fn new(mut code: Code, programs: &Programs) -> Launch {
        let entry = programs.entry(std::mem::take(&mut code.text), code.own);
        Launch { code, entry, numbers: OnceLock::new() }
    }

    /// The kernel that has to be built; none if a library does its work.
    pub(crate) fn kernel(&self) -> Option<&Arc<Entry>> {
        if self.code.library.is_some() { None } else { Some(&self.entry) }
    }

    /// Can it start?
    pub(crate) fn is_ready(&self) -> bool {
        self.kernel().is_none_or(|entry| entry.ready().is_some())
    }

    /// Brings the numbers to the device, to memory from `take`, if they are no arguments.
    pub(crate) fn bring_numbers(&self, take: impl FnOnce(usize) -> Result<Memory>) -> Result<()> {
        if !self.code.packed || self.numbers.get().is_some() {
            return Ok(());
        }
        let numbers = &self.code.numbers;
        let bytes: Vec<u8> = match self.code.wide {
            true => numbers.iter().flat_map(|number| number.to_ne_bytes()).collect(),
            false => numbers.iter().flat_map(|number| (*number as i32).to_ne_bytes()).collect(),
        };
        let memory = take(bytes.len())?;
        memory.upload(&bytes)?;
        // Nobody else brings them: an engine runs one batch at a time.
        let _ = self.numbers.set(memory);
        Ok(())
    }

    /// Where the arguments that are memory come from, in their order.
    pub(crate) fn places(&self) -> &[KernelMemory] {
        self.code.library.as_ref().map_or(&self.code.places, |(_, places)| places)
    }

    /// Puts the kernel into the queue, with this memory and these constants; its event, if the driver has one or it is `timed`.
    pub(crate) fn start<'a>(
        &self,
        gpu: &Gpu,
        memory: &dyn Fn(KernelMemory) -> Option<&'a Memory>,
        constant: &dyn Fn(DType, ConstantRef) -> Constant,
        timed: bool,
    ) -> Result<Option<Arc<dyn Event>>> {
        let memory: Option<Vec<&Memory>> = self.places().iter().map(|&place| memory(place)).collect();
        self.start_with(gpu, &memory.ok_or_else(missing)?, constant, timed)
    }

    /// The same with the memory of each of [`Launch::places`].
    pub(crate) fn start_with(
        &self,
        gpu: &Gpu,
        memory: &[&Memory],
        constant: &dyn Fn(DType, ConstantRef) -> Constant,
        timed: bool,
    ) -> Result<Option<Arc<dyn Event>>> {
        gpu.kernel_starts()?;
        if let (Some((task, _)), Some(libraries)) = (&self.code.library, gpu.driver.libraries()) {
            let buffers: Vec<_> = memory.iter().map(|memory| memory.buffer()).collect();
            // SAFETY: the views of the instruction lie inside of its buffers, which were validated, its outputs are in other memory
            // than its inputs, and memory between kernels has the bytes that the task and its library ask for.
            unsafe { libraries.run(task, &buffers)? };
            return if timed { gpu.driver.mark().map(Some) } else { Ok(None) };
        }
        let mut kernel = self.set(memory, constant)?;
        // SAFETY: all arguments are set, and the kernel's views lie inside of its buffers, which were validated.
        unsafe { kernel.launch(self.code.groups, self.code.group, timed) }
    }

    /// The kernel with all its arguments set, for as long as nobody else uses it.
    pub(crate) fn set(
        &self,
        memory: &[&Memory],
        constant: &dyn Fn(DType, ConstantRef) -> Constant,
    ) -> Result<MutexGuard<'_, Box<dyn Kernel>>> {
        let code = &self.code;
        let Some(built) = self.entry.ready() else {
            return Err(Error::new(status::DEVICE, "a kernel is not built"));
        };
        let mut kernel = built.kernel.lock().unwrap_or_else(PoisonError::into_inner);
        let mut at = 0;
        for memory in memory {
            kernel.set_buffer(at, memory.buffer())?;
            at += 1;
        }
        for &(dtype, name) in &code.constants {
            let bytes = constant(dtype, name).bytes();
            kernel.set_value(at, &bytes[..dtype.size()])?;
            at += 1;
        }
        if code.packed {
            kernel.set_buffer(at, self.numbers.get().ok_or_else(missing)?.buffer())?;
        } else {
            for &number in &code.numbers {
                match code.wide {
                    true => kernel.set_value(at, &number.to_ne_bytes())?,
                    false => kernel.set_value(at, &(number as i32).to_ne_bytes())?,
                }
                at += 1;
            }
        }
        Ok(kernel)
    }
}

fn missing() -> Error {
    Error::new(status::DEVICE, "a kernel's memory is missing")
}
