//! The stream of a device of CUDA: the order of all that it is asked for.

use crate::api::Context;
use crate::devices::{self, MEMORY_POOLS};
use crate::driver::{FROM_DEVICE, address};
use crate::library::Handle;
use bh_core::Result;
use bh_device::driver::Buffer;
use std::ffi::{c_int, c_uint};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// `CU_STREAM_NON_BLOCKING`: the stream is ordered by itself, whatever others do.
const ALONE: c_uint = 1;
/// `CU_EVENT_DISABLE_TIMING`.
const WITHOUT_TIME: c_uint = 2;
/// Events that are kept.
const SPARE: usize = 64;

/// The stream of a device, which all that it has made keeps.
pub(crate) struct Stream {
    pub(crate) context: Context,
    pub(crate) handle: Handle,
    /// Is memory taken and given back in the order of the stream?
    pub(crate) pools: bool,
    /// Events without times that nobody uses any more.
    spare: Mutex<Vec<Handle>>,
    /// When the stream began; none if nobody asks for times.
    pub(crate) origin: Option<Origin>,
}

/// An event that times are counted from, and when it came on the host.
pub(crate) struct Origin {
    pub(crate) event: Handle,
    pub(crate) at: Instant,
}

impl Stream {
    pub(crate) fn new(device: c_int, times: bool) -> Result<Arc<Stream>> {
        let context = Context::new(device)?;
        let pools = devices::fact(context.functions, device, MEMORY_POOLS) != 0;
        let mut handle = Handle::NULL;
        // SAFETY: `handle` takes the stream.
        context.call("making a stream", |it| unsafe { (it.stream)(&mut handle, ALONE) })?;
        let mut stream = Stream { context, handle, pools, spare: Mutex::default(), origin: None };
        if times {
            let event = stream.event(true)?;
            stream.origin = Some(Origin { event, at: Instant::now() });
            stream.finish()?;
            stream.origin = Some(Origin { event, at: Instant::now() });
        }
        Ok(Arc::new(stream))
    }

    /// An event that comes when all that was asked for is done.
    pub(crate) fn event(&self, timed: bool) -> Result<Handle> {
        let spare = if timed { None } else { self.spare().pop() };
        let mut event = spare.unwrap_or(Handle::NULL);
        let flags = if timed { 0 } else { WITHOUT_TIME };
        self.context.call("marking a place of the stream", |it| {
            // SAFETY: `event` is an event, or takes one, and the stream lives.
            unsafe {
                match if event == Handle::NULL { (it.event)(&mut event, flags) } else { 0 } {
                    0 => (it.record)(event, self.handle),
                    code => code,
                }
            }
        })?;
        Ok(event)
    }

    fn spare(&self) -> MutexGuard<'_, Vec<Handle>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes back an event without times, which nobody uses any more. Streams that wait for it wait for the place that it had.
    pub(crate) fn take_back(&self, event: Handle) {
        let mut spare = self.spare();
        if spare.len() < SPARE {
            return spare.push(event);
        }
        drop(spare);
        // SAFETY: nobody else knows the event, and the driver keeps it until it has come.
        let _ = self.context.call("ending an event", |it| unsafe { (it.end_event)(event) });
    }

    /// Waits for all that was asked for, and reads numbers of a buffer.
    ///
    /// # Safety
    /// The buffer must have the numbers.
    pub(crate) unsafe fn read<const COUNT: usize>(&self, from: &dyn Buffer) -> Result<[i32; COUNT]> {
        let (from, mut numbers) = (address(from), [0; COUNT]);
        let (to, bytes) = (numbers.as_mut_ptr().cast(), size_of_val(&numbers));
        // SAFETY: the buffer has the numbers, as `# Safety` asks, and their places live until the stream is done.
        self.context.call(FROM_DEVICE, |it| unsafe { (it.download)(to, from, bytes, self.handle) })?;
        self.finish()?;
        Ok(numbers)
    }

    pub(crate) fn finish(&self) -> Result<()> {
        // SAFETY: the stream lives.
        self.context.call("waiting for the device", |it| unsafe { (it.wait_for_stream)(self.handle) })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: nobody uses the stream any more; what it has begun goes on.
        let _ = self.context.call("ending a stream", |it| unsafe {
            let origin = self.origin.iter().map(|origin| origin.event);
            for event in self.spare().drain(..).chain(origin) {
                (it.end_event)(event);
            }
            (it.end_stream)(self.handle)
        });
    }
}
