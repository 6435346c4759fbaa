//! The interface to a driver. A device has one queue, which runs everything in the order of the calls; the objects of a
//! driver free their resources when they are dropped, which may be before the queue has used them.

use crate::device::DeviceInfo;
use crate::language::Language;
use bh_bytecode::DType;
use bh_core::config::Row;
use bh_core::{Host, Result};
use std::any::Any;
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
pub trait Driver: Any + Send + Sync {
    /// The device's properties.
    fn info(&self) -> &DeviceInfo;

    /// The language of kernels.
    fn language(&self) -> &'static Language;

    /// The versions and options that built programs depend on besides their texts, as one text.
    fn identity(&self) -> String;

    /// Does the driver itself keep programs on disk, so that [`Program::binary`] only costs time?
    fn keeps_programs(&self) -> bool {
        false
    }

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

    /// Programs that are built at a time, whatever number of threads asks.
    fn compilers(&self) -> usize {
        1
    }

    /// Makes ready to build one more program at a time, which may take memory and a while; false if there are enough. Some threads
    /// ask for it when the first program is built.
    fn add_compiler(&self) -> bool {
        false
    }

    /// A program from what [`Program::binary`] gave, in a process with the same [`Driver::identity`]; none if it cannot be used.
    fn load(&self, binary: &[u8]) -> Option<Arc<dyn Program>>;

    /// The libraries of the device's maker; none if there are none.
    fn libraries(&self) -> Option<&dyn Libraries> {
        None
    }

    /// Direct copies from other devices; none if the driver has none.
    fn peers(&self) -> Option<&dyn Peers> {
        None
    }

    /// An empty graph; none if the driver has no graphs.
    fn graph(&self) -> Option<Box<dyn Graph>> {
        None
    }

    /// Waits for what the program has asked of the device in queues of its own, before memory that both use is read or written. On a
    /// driver with such queues that the program keeps in order itself, nothing.
    fn settle(&self) -> Result<()> {
        Ok(())
    }

    /// An event that comes when all that was asked for is done.
    fn mark(&self) -> Result<Arc<dyn Event>>;

    /// Makes the device start with what was asked for.
    fn flush(&self) -> Result<()>;

    /// Waits until all that was asked for is done.
    fn finish(&self) -> Result<()>;
}

/// Direct copies between the devices of a driver in one process. Their queues wait for each other; the host waits for nothing.
pub trait Peers: Send + Sync {
    /// Can the queue wait for events of another device, and copy from its memory?
    fn reaches(&self, other: &dyn Driver) -> bool;

    /// Lets everything that is asked for from now on begin after an event of a device that [`Peers::reaches`] names.
    fn wait_for(&self, event: &dyn Event) -> Result<()>;

    /// Copies `len` bytes from a place of another device's buffer to a place of a buffer of this one.
    ///
    /// # Safety
    /// This device must reach the other one. Both buffers must have these bytes and belong to these devices, and the first one
    /// must live and not be written to until the copy is done.
    unsafe fn copy_from(
        &self,
        other: &dyn Driver,
        from: (&dyn Buffer, usize),
        to: (&dyn Buffer, usize),
        len: usize,
    ) -> Result<()>;
}

/// Libraries of the device's maker. The first question about a subject loads its library.
pub trait Libraries: Send + Sync {
    /// Is there a library for this subject?
    fn has(&self, subject: Subject) -> bool;

    /// Each library in a line: its name, its version and its file, or why there is none. It loads all.
    fn told(&self) -> Vec<String>;

    /// Bytes of the work space of a task whose subject there is a library for. The error, of status `UNSUPPORTED`, says why the
    /// library does not take the task.
    fn room(&self, task: &Task) -> Result<usize>;

    /// Puts a task into the queue. [`Task`] names its buffers.
    ///
    /// # Safety
    /// The buffers must be the driver's, be apart from each other if one of them is written, have all elements that the task
    /// names, and the work space as many bytes as [`Libraries::room`] says.
    unsafe fn run(&self, task: &Task, buffers: &[&dyn Buffer]) -> Result<()>;
}

/// The purpose of a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Products of matrices.
    Products,
    /// Factors of matrices, eigenvalues and singular values.
    Factors,
    /// Fourier transforms.
    Transforms,
}

/// Work of a library, without a loss of precision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    /// Products of matrices; the buffers are those of [`MatrixProduct::places`]. It needs no work space.
    Product(MatrixProduct),
    /// Factors of a matrix. The buffers are the matrix, which lies in columns without gaps and is overwritten; a number of 32 bits,
    /// which becomes 0 if the factors exist; the work space; and what [`Factors`] adds.
    Factors {
        /// The type of the elements: real or complex numbers of single or double precision.
        dtype: DType,
        /// Rows of the matrix, one at least.
        rows: i64,
        /// Columns of the matrix, one at least.
        columns: i64,
        /// Which factors.
        of: Factors,
    },
    /// Fourier transforms of lines. The buffers are the results, the lines, and the work space.
    Transforms(Transforms),
}

impl Task {
    /// The purpose of the task's library.
    pub fn subject(&self) -> Subject {
        match self {
            Task::Product(_) => Subject::Products,
            Task::Factors { .. } => Subject::Factors,
            Task::Transforms(_) => Subject::Transforms,
        }
    }
}

/// Factors of a matrix `a`, which is square unless said otherwise. All matrices lie in columns without gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Factors {
    /// The lower factor l of `a = l lᴴ`, in the lower triangle of the matrix, which alone is read. The number is not 0 if `a` is not
    /// positive definite.
    Cholesky,
    /// `l` below the diagonal and `u` on and above it, with `p a = l u`. One more buffer gets, for each row, the row that it is
    /// exchanged with, counted from 1, in 64 bits: one row after the other. Behind the matrix, in the same buffer, lie this many
    /// columns of right sides, which become solutions. With right sides, two more numbers behind the first one, which is 0, say
    /// whether elements above and below the diagonal differ from zero. If some do not, a library may substitute instead, and leaves the
    /// matrix as it is.
    Lu {
        /// Columns of right sides.
        sides: i64,
    },
    /// `r` on and above the diagonal of a matrix of any shape, with `a = q r`. Two more buffers: one of as many elements as the
    /// smaller extent, for the library's own use, and `q` of this many columns, at least the smaller extent and at most the rows.
    Qr {
        /// Columns of `q`.
        columns: i64,
    },
    /// One more buffer gets the eigenvalues of a Hermitian matrix, rising, in the real type; its lower triangle alone is read. The
    /// matrix becomes the eigenvectors, in columns, if they are asked for. The number is not 0 if the iterations do not converge.
    Eigen {
        /// Are the vectors asked for?
        vectors: bool,
    },
    /// Three more buffers, for a matrix of at least as many rows as columns: the singular values, falling, in the real type; `u` of
    /// this many columns, and `vᴴ`, with `a = u s vᴴ`. Without vectors, the last two are not touched. The number is not 0 if the
    /// iterations do not converge.
    Singular {
        /// Columns of `u`: those of the matrix, or as many as it has rows; 0 for no vectors.
        left: i64,
    },
}

/// From what to what transforms lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From complex numbers to complex numbers; the exponent is negative.
    Forward,
    /// From complex numbers to complex numbers; the exponent is positive.
    Inverse,
    /// From real numbers to the first `len / 2 + 1` elements of their forward transforms.
    FromReal,
    /// From such first elements, of which those without a partner in the other half are real, to real numbers: the inverse. The lines are
    /// overwritten.
    ToReal,
}

/// Transforms of several lines: the sums over `j` of element `j` times exp(∓2πi·j·k/len), without a factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Transforms {
    /// The type of the complex numbers, of single or double precision, which that of real numbers follows from.
    pub dtype: DType,
    /// From what to what they lead.
    pub direction: Direction,
    /// Elements of a line; of real numbers and their halves, the real numbers.
    pub len: i64,
    /// Lines.
    pub count: i64,
    /// Where the results and the lines lie, each in elements of its type. The steps of both are positive, and the first real number has
    /// an even place.
    pub places: [LinePlace; 2],
}

/// Where lines lie, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LinePlace {
    /// The first element in the buffer.
    pub first: i64,
    /// From an element of a line to the next.
    pub step: i64,
    /// From a line to the next.
    pub next: i64,
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
pub trait Event: Any + Send + Sync {
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

    /// The bytes from which [`Driver::load`] makes the program; none if it cannot be kept.
    fn binary(&self) -> Option<Vec<u8>>;
}

/// Kernels that a driver launches as one, one after the other.
pub trait Graph: Send {
    /// Adds a kernel as the last one, with the arguments that it has now: groups of `group` items each. The graph keeps the kernel's
    /// program, and none of the buffers.
    fn add(&mut self, kernel: &dyn Kernel, groups: usize, group: usize) -> Result<()>;

    /// Makes the graph ready, when all kernels are added.
    fn finish(&mut self) -> Result<()>;

    /// Puts a finished graph into the queue.
    ///
    /// # Safety
    /// As [`Kernel::launch`], for each kernel with the arguments that it had when it was added: its buffers must still be there.
    unsafe fn launch(&mut self) -> Result<()>;
}

/// A kernel with its arguments, which stay from launch to launch.
pub trait Kernel: Any + Send {
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
