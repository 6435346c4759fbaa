//! A context and a queue of the program's own, and memory of that context.

use crate::driver::Queue;
use crate::{devices, failed};
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_device::device::numbered;
use bh_device::driver::Options;
use opencl3::command_queue::{
    CL_QUEUE_CONTEXT, CL_QUEUE_DEVICE, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, CL_QUEUE_PROPERTIES, CommandQueue,
    get_command_queue_info, retain_command_queue,
};
use opencl3::context::{Context, context};
use opencl3::memory::{
    Buffer, CL_MEM_CONTEXT, CL_MEM_FLAGS, CL_MEM_OBJECT_BUFFER, CL_MEM_READ_ONLY, CL_MEM_SIZE, CL_MEM_TYPE,
    CL_MEM_WRITE_ONLY, cl_mem, get_mem_object_info, retain_mem_object,
};
use std::ffi::c_void;

/// An error of OpenCL about something that the program gave.
fn refused(what: &str, code: i32) -> Error {
    let error = opencl3::error_codes::ClError(code);
    Error::new(status::ARGUMENT, format!("OpenCL: {what}: {error}"))
}

impl Queue {
    /// Uses a context and a queue of the program. Both are kept until the end. Without a queue, or with one that runs
    /// commands out of order, there is a queue of the engine's own.
    ///
    /// # Safety
    /// `own` must be null or a `cl_context`, and `queue` null or a `cl_command_queue`, both valid.
    pub(crate) unsafe fn borrow(own: *mut c_void, queue: *mut c_void, options: Options) -> Result<Queue> {
        if own.is_null() {
            return Err(Error::new(status::ARGUMENT, "OpenCL: a queue is given without its context"));
        }
        let devices = context::get_context_info(own, context::CL_CONTEXT_DEVICES)
            .map_err(|code| refused("the context is not usable", code))?
            .to_vec_intptr();
        let mut device = devices.first().copied().unwrap_or_default();
        let mut ordered = false;
        if !queue.is_null() {
            let of_queue = |fact| {
                get_command_queue_info(queue, fact).map_err(|code| refused("the command queue is not usable", code))
            };
            if of_queue(CL_QUEUE_CONTEXT)?.to_ptr() != own as isize {
                return Err(Error::new(status::ARGUMENT, "OpenCL: the command queue belongs to another context"));
            }
            device = of_queue(CL_QUEUE_DEVICE)?.to_ptr();
            ordered = of_queue(CL_QUEUE_PROPERTIES)?.to_ulong() & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE == 0;
        }
        let facts = numbered(devices::list()?);
        let unknown =
            || Error::new(status::DEVICE, "OpenCL: the device of the context is none of those that are listed");
        let facts = facts.into_iter().find(|facts| facts.id == device as usize).ok_or_else(unknown)?;
        // SAFETY: the program's handles are valid, and counted from now on; the values release them.
        let (context, queue) = unsafe {
            context::retain_context(own).map_err(|code| refused("the context is not usable", code))?;
            let context = Context::new(own, &[devices::handle(&facts)]);
            let queue = if ordered {
                retain_command_queue(queue).map_err(|code| refused("the command queue is not usable", code))?;
                let device = opencl3::device::Device::new(devices::handle(&facts));
                CommandQueue::wrap_cl_command_queue(queue, &device)
            } else {
                Ok(Queue::queue(&context, options.times)?)
            };
            (context, queue.map_err(|why| failed("making a queue", why))?)
        };
        Ok(Queue::new(facts, context, queue, ordered, options.fast_math))
    }

    /// A buffer of the program, which must have this many bytes, be of this context, and be there to be read and written.
    ///
    /// # Safety
    /// `memory` must be a valid `cl_mem`.
    pub(crate) unsafe fn take_over(&self, memory: cl_mem, bytes: usize) -> Result<Buffer<u8>> {
        let no = |text: String| Err(Error::new(status::ARGUMENT, format!("adopt: {text}")));
        let fact = |name| get_mem_object_info(memory, name).map_err(|code| refused("the cl_mem is not usable", code));
        if fact(CL_MEM_CONTEXT)?.to_ptr() != self.context.get() as isize {
            return no("the cl_mem belongs to another OpenCL context than the one that bh was given or has made".into());
        }
        if fact(CL_MEM_TYPE)?.to_uint() != CL_MEM_OBJECT_BUFFER {
            return no("the cl_mem is no buffer".into());
        }
        let size = fact(CL_MEM_SIZE)?.to_size();
        if size < bytes {
            return no(format!("the cl_mem has {size} bytes, and the array {bytes}"));
        }
        if fact(CL_MEM_FLAGS)?.to_ulong() & (CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY) != 0 {
            return no("the cl_mem is not there to be read and written by kernels".into());
        }
        // SAFETY: the handle is valid, and counted from now on; the value releases it.
        unsafe { retain_mem_object(memory).map_err(|code| refused("the cl_mem is not usable", code))? };
        Ok(Buffer::new(memory))
    }
}
