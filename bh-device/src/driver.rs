//! What the engine asks of a driver. A device has one queue, on which everything happens in the order in which it was asked for;
//! the objects of a driver free what they stand for when they are dropped, which may be before the queue has used it.

use crate::device::DeviceInfo;
use crate::language::Language;
use bh_bytecode::DType;
use bh_core::config::Row;
use bh_core::{Host, Result};
use std::ffi::c_void;
use std::sync::Arc;

/// A kind of driver, which finds and opens devices.
pub trait Platform: Send + 'static {
    /// The name of the engine's component, in lower case: as in stacks, and in `BH_NAME_DEVICE`.
    const NAME: &'static str;
    /// Its name in texts for people.
    const TITLE: &'static str;
    /// The keys of the component.
    const KEYS: &'static [Row];
    /// The kind of memory, of [`bh_core::abi::memory`], that programs give to arrays and get of them.
    const MEMORY: u32;

    /// All usable devices, in any order. The error, of status `DEVICE`, says why there are none.
    fn devices() -> Result<Vec<DeviceInfo>>;

    /// Opens a device of the list.
    fn open(device: DeviceInfo, options: Options) -> Result<Arc<dyn Driver>>;

    /// The device that the program has opened and lends by handles of the host; none if it lends none.
    fn borrow(host: &Host, options: Options) -> Option<Result<Arc<dyn Driver>>>;
}

/// How a device is opened.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Does anybody ask for [`Event::times`]?
    pub times: bool,
    /// May kernels round differently: contraction of products and sums, reciprocals?
    pub fast_math: bool,
}

/// A device in use. Any thread may call it.
pub trait Driver: Send + Sync {
    /// What the device can do.
    fn info(&self) -> &DeviceInfo;

    /// The language of kernels.
    fn language(&self) -> &'static Language;

    /// What built programs depend on besides their texts: versions and options, as one text.
    fn identity(&self) -> String;

    /// Does the program use the queue, too?
    fn shares_queue(&self) -> bool;

    /// A buffer of this many bytes. Its content is undefined.
    fn allocate(&self, bytes: usize) -> Result<Box<dyn Buffer>>;

    /// A buffer of the program, which must have this many bytes, belong to the device and be there to be read and written.
    ///
    /// # Safety
    /// `handle` must be a valid handle of the driver for a buffer.
    unsafe fn adopt(&self, handle: *mut c_void, bytes: usize) -> Result<Box<dyn Buffer>>;

    /// Host memory that the device reads and writes by itself; none if there is no such memory left.
    fn pinned(&self, bytes: usize) -> Option<Box<dyn Pinned>>;

    /// Copies host memory to a buffer from `offset` on; returns when the host memory may change.
    ///
    /// # Safety
    /// The buffer must be the driver's and have these bytes.
    unsafe fn upload(&self, to: &dyn Buffer, offset: usize, bytes: &[u8]) -> Result<()>;

    /// Copies rows of host memory to the same places of a buffer; returns when the host memory may change.
    ///
    /// # Safety
    /// The buffer must be the driver's; it and `bytes` must have all rows.
    unsafe fn upload_rows(&self, to: &dyn Buffer, rows: &Region, bytes: &[u8]) -> Result<()>;

    /// Copies bytes of a buffer from `offset` on to host memory; returns when they are there.
    ///
    /// # Safety
    /// The buffer must be the driver's and have these bytes.
    unsafe fn download(&self, from: &dyn Buffer, offset: usize, bytes: &mut [u8]) -> Result<()>;

    /// Begins an [`Driver::upload`] of `len` bytes, which the device starts at once.
    ///
    /// # Safety
    /// As [`Driver::upload`]; `data` must be valid for reading `len` bytes until the event has come, and nobody write them
    /// meanwhile.
    unsafe fn begin_upload(
        &self,
        to: &dyn Buffer,
        offset: usize,
        data: *const u8,
        len: usize,
    ) -> Result<Arc<dyn Event>>;

    /// Begins a [`Driver::download`] of `len` bytes, which the device starts at once.
    ///
    /// # Safety
    /// As [`Driver::download`]; `data` must be valid for writing `len` bytes until the event has come, and nobody use them
    /// meanwhile.
    unsafe fn begin_download(
        &self,
        from: &dyn Buffer,
        offset: usize,
        data: *mut u8,
        len: usize,
    ) -> Result<Arc<dyn Event>>;

    /// Copies the first bytes of a buffer to another one.
    ///
    /// # Safety
    /// The buffers must be the driver's and have these bytes.
    unsafe fn copy(&self, from: &dyn Buffer, to: &dyn Buffer, bytes: usize) -> Result<()>;

    /// Fills the first bytes of a buffer, a multiple of four, with zeros.
    ///
    /// # Safety
    /// The buffer must be the driver's and have these bytes.
    unsafe fn clear(&self, buffer: &dyn Buffer, bytes: usize) -> Result<()>;

    /// Builds a program. The error says why, with the compiler's log.
    fn compile(&self, text: &str) -> std::result::Result<Arc<dyn Program>, String>;

    /// A program from what [`Program::binary`] gave, in a process with the same [`Driver::identity`]; none if it cannot be used.
    fn load(&self, binary: &[u8]) -> Option<Arc<dyn Program>>;

    /// Products of matrices by a library of the device's maker, loaded by the first call; none if there is no such library.
    fn products(&self) -> Option<&dyn Products> {
        None
    }

    /// An event that comes when all that was asked for is done.
    fn mark(&self) -> Result<Arc<dyn Event>>;

    /// Makes the device start with what was asked for.
    fn flush(&self) -> Result<()>;

    /// Waits until all that was asked for is done.
    fn finish(&self) -> Result<()>;
}

/// A library that multiplies matrices, without a loss of precision.
pub trait Products: Send + Sync {
    /// Puts products into the queue; their results replace what is in the buffer of the product. The buffers come in the order of
    /// [`MatrixProduct::places`].
    ///
    /// # Safety
    /// The buffers must be the driver's and have all elements that the places lead to, and that of the product be apart from the
    /// others.
    unsafe fn multiply(&self, product: &MatrixProduct, buffers: [&dyn Buffer; 3]) -> Result<()>;
}

/// The products of each two matrices of two stacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatrixProduct {
    /// The type of all elements: real or complex numbers of single or double precision.
    pub dtype: DType,
    /// Rows, inner elements and columns.
    pub extents: [i64; 3],
    /// Matrices of a stack.
    pub count: i64,
    /// Where the products, the first factors and the second factors lie. The steps of each are positive, and one of `row` and
    /// `column` is 1 while the other is no smaller than what it steps over.
    pub places: [MatrixPlace; 3],
}

/// Where the matrices of a stack lie, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatrixPlace {
    /// The first element in the buffer.
    pub first: i64,
    /// From a row to the next.
    pub row: i64,
    /// From a column to the next.
    pub column: i64,
    /// From a matrix to the next.
    pub next: i64,
}

/// Rows of an array, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Where the first begins.
    pub first: usize,
    /// How long each is.
    pub len: usize,
    /// How many there are.
    pub rows: usize,
    /// How far one is from the next.
    pub pitch: usize,
}

/// Memory of a device.
pub trait Buffer: Send + Sync {
    /// The driver's handle, for the program.
    fn handle(&self) -> *mut c_void;
}

/// Host memory that a device reads and writes by itself.
pub trait Pinned: Send + Sync {
    /// Where it is, for as long as this lives.
    fn address(&self) -> *mut u8;
}

/// The end of something that was asked for.
pub trait Event: Send + Sync {
    /// Waits for it. `what` is what an error says that failed.
    fn wait(&self, what: &str) -> Result<()>;

    /// Has it come? Also if it failed.
    fn is_done(&self) -> bool;

    /// Waits for it, and says when it was; none if that is not known.
    fn times(&self) -> Option<Times>;
}

/// Nanoseconds on a clock of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// When something was asked for.
    pub queued: u64,
    /// When it began.
    pub start: u64,
    /// When it ended.
    pub end: u64,
}

/// Built kernels.
pub trait Program: Send + Sync {
    /// The kernel of a name. The program outlives it.
    fn kernel(&self, name: &str) -> std::result::Result<Box<dyn Kernel>, String>;

    /// What [`Driver::load`] makes the program of; none if it cannot be kept.
    fn binary(&self) -> Option<Vec<u8>>;
}

/// A kernel with its arguments, which stay from launch to launch.
pub trait Kernel: Send {
    /// Sets an argument that is a buffer.
    fn set_buffer(&mut self, at: u32, buffer: &dyn Buffer) -> Result<()>;

    /// Sets an argument that is a number of at most 16 bytes.
    fn set_value(&mut self, at: u32, bytes: &[u8]) -> Result<()>;

    /// Puts the kernel into the queue: groups of `group` items each. If it is `timed`, its event says when it ran; else a driver for
    /// which events are work gives none.
    ///
    /// # Safety
    /// All arguments must be set, to buffers of the same driver that have what the kernel uses of them.
    unsafe fn launch(&mut self, groups: usize, group: usize, timed: bool) -> Result<Option<Arc<dyn Event>>>;
}
