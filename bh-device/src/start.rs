//! Setting a kernel's arguments and putting it into the queue.

use crate::code::{Code, KernelMemory};
use crate::compiler::Entry;
use crate::driver::Event;
use crate::gpu::Gpu;
use crate::memory::Memory;
use crate::programs::Programs;
use bh_bytecode::{Constant, DType};
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_kernel::ConstantRef;
use std::sync::{Arc, PoisonError};

/// One kernel to launch.
pub(crate) struct Launch {
    pub(crate) code: Code,
    pub(crate) entry: Arc<Entry>,
    /// Numbers on the device, if they are no arguments.
    pub(crate) numbers: Option<Memory>,
}

impl Launch {
    /// The launch of a kernel, which may have to be built yet, or of a library's task.
    pub(crate) fn new(mut code: Code, programs: &Programs) -> Launch {
        let entry = programs.entry(std::mem::take(&mut code.text), code.own);
        Launch { code, entry, numbers: None }
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

    /// Puts the kernel into the queue, with this memory and these constants; its event, if the driver has one or it is `timed`.
    pub(crate) fn start<'a>(
        &self,
        gpu: &Gpu,
        memory: &dyn Fn(KernelMemory) -> Option<&'a Memory>,
        constant: &dyn Fn(DType, ConstantRef) -> Constant,
        timed: bool,
    ) -> Result<Option<Arc<dyn Event>>> {
        let code = &self.code;
        gpu.kernel_starts()?;
        let missing = || Error::new(status::DEVICE, "a kernel's memory is missing");
        if let (Some((task, places)), Some(libraries)) = (&code.library, gpu.driver.libraries()) {
            let buffers = places.iter().map(|&place| memory(place).map(Memory::buffer).ok_or_else(missing));
            let buffers = buffers.collect::<Result<Vec<_>>>()?;
            // SAFETY: the views of the instruction lie inside of its buffers, which were validated, its outputs are in other memory
            // than its inputs, and memory between kernels has the bytes that the task and its library ask for.
            unsafe { libraries.run(task, &buffers)? };
            return if timed { gpu.driver.mark().map(Some) } else { Ok(None) };
        }
        let Some(built) = self.entry.ready() else {
            return Err(Error::new(status::DEVICE, "a kernel is not built"));
        };
        let mut kernel = built.kernel.lock().unwrap_or_else(PoisonError::into_inner);
        let mut at = 0;
        for &place in &code.places {
            let Some(memory) = memory(place) else {
                return Err(missing());
            };
            kernel.set_buffer(at, memory.buffer())?;
            at += 1;
        }
        for &(dtype, name) in &code.constants {
            let bytes = constant(dtype, name).bytes();
            kernel.set_value(at, &bytes[..dtype.size()])?;
            at += 1;
        }
        if code.packed {
            kernel.set_buffer(at, self.numbers.as_ref().ok_or_else(missing)?.buffer())?;
        } else {
            for &number in &code.numbers {
                match code.wide {
                    true => kernel.set_value(at, &number.to_ne_bytes())?,
                    false => kernel.set_value(at, &(number as i32).to_ne_bytes())?,
                }
                at += 1;
            }
        }
        // SAFETY: all arguments are set, and the kernel's views lie inside of its buffers, which were validated.
        unsafe { kernel.launch(code.groups, code.group, timed) }
    }
}
