//! cuSOLVER, NVIDIA's library of factors of matrices, which is loaded by the first question about them.

use crate::api::Address;
use crate::driver::address;
use crate::library::{Handle, Known, Loaded, NO_MEMORY, functions};
use crate::stream::Stream;
use bh_bytecode::DType;
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_device::driver::{Buffer, Factors, Task};
use std::ffi::{c_char, c_int, c_longlong, c_void};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

functions! {
    /// The library's functions: those of 64 bits take types of elements as arguments; of `orgqr`, each type has its own.
    Functions {
        create: "cusolverDnCreate"(*mut Handle);
        destroy: "cusolverDnDestroy"(Handle);
        stream: "cusolverDnSetStream"(Handle, Handle);
        create_params: "cusolverDnCreateParams"(*mut Handle);
        destroy_params: "cusolverDnDestroyParams"(Handle);
        property: "cusolverGetProperty"(c_int, *mut c_int);
        cholesky_room: "cusolverDnXpotrf_bufferSize"(
            Handle, Handle, c_int, c_longlong, c_int, Address, c_longlong, c_int, *mut usize, *mut usize
        );
        cholesky: "cusolverDnXpotrf"(
            Handle, Handle, c_int, c_longlong, c_int, Address, c_longlong, c_int, Address, usize, *mut c_void, usize, Address
        );
        lu_room: "cusolverDnXgetrf_bufferSize"(
            Handle, Handle, c_longlong, c_longlong, c_int, Address, c_longlong, c_int, *mut usize, *mut usize
        );
        lu: "cusolverDnXgetrf"(
            Handle, Handle, c_longlong, c_longlong, c_int, Address, c_longlong, Address, c_int, Address, usize, *mut c_void, usize,
            Address
        );
        solve: "cusolverDnXgetrs"(
            Handle, Handle, c_int, c_longlong, c_longlong, c_int, Address, c_longlong, Address, c_int, Address, c_longlong, Address
        );
        qr_room: "cusolverDnXgeqrf_bufferSize"(
            Handle, Handle, c_longlong, c_longlong, c_int, Address, c_longlong, c_int, Address, c_int, *mut usize, *mut usize
        );
        qr: "cusolverDnXgeqrf"(
            Handle, Handle, c_longlong, c_longlong, c_int, Address, c_longlong, c_int, Address, c_int, Address, usize, *mut c_void,
            usize, Address
        );
        eigen_room: "cusolverDnXsyevd_bufferSize"(
            Handle, Handle, c_int, c_int, c_longlong, c_int, Address, c_longlong, c_int, Address, c_int, *mut usize, *mut usize
        );
        eigen: "cusolverDnXsyevd"(
            Handle, Handle, c_int, c_int, c_longlong, c_int, Address, c_longlong, c_int, Address, c_int, Address, usize,
            *mut c_void, usize, Address
        );
        singular_room: "cusolverDnXgesvd_bufferSize"(
            Handle, Handle, c_char, c_char, c_longlong, c_longlong, c_int, Address, c_longlong, c_int, Address, c_int, Address,
            c_longlong, c_int, Address, c_longlong, c_int, *mut usize, *mut usize
        );
        singular: "cusolverDnXgesvd"(
            Handle, Handle, c_char, c_char, c_longlong, c_longlong, c_int, Address, c_longlong, c_int, Address, c_int, Address,
            c_longlong, c_int, Address, c_longlong, c_int, Address, usize, *mut c_void, usize, Address
        );
        unfold_room_f32: "cusolverDnSorgqr_bufferSize"(Handle, c_int, c_int, c_int, Address, c_int, Address, *mut c_int);
        unfold_room_f64: "cusolverDnDorgqr_bufferSize"(Handle, c_int, c_int, c_int, Address, c_int, Address, *mut c_int);
        unfold_room_c64: "cusolverDnCungqr_bufferSize"(Handle, c_int, c_int, c_int, Address, c_int, Address, *mut c_int);
        unfold_room_c128: "cusolverDnZungqr_bufferSize"(Handle, c_int, c_int, c_int, Address, c_int, Address, *mut c_int);
        unfold_f32: "cusolverDnSorgqr"(Handle, c_int, c_int, c_int, Address, c_int, Address, Address, c_int, Address);
        unfold_f64: "cusolverDnDorgqr"(Handle, c_int, c_int, c_int, Address, c_int, Address, Address, c_int, Address);
        unfold_c64: "cusolverDnCungqr"(Handle, c_int, c_int, c_int, Address, c_int, Address, Address, c_int, Address);
        unfold_c128: "cusolverDnZungqr"(Handle, c_int, c_int, c_int, Address, c_int, Address, Address, c_int, Address);
    }
}

/// The library.
pub(crate) const KNOWN: Known = Known {
    title: "cuSOLVER",
    stem: "cusolver",
    version: |cuda| cuda - 1,
    needs: &[("nvJitLink", |cuda| cuda), ("cublasLt", |cuda| cuda), ("cublas", |cuda| cuda), ("cusparse", |_| 12)],
};

/// The library of this major version of CUDA, or why there is none. It is looked for once in a process.
pub(crate) fn found(cuda: u32) -> &'static std::result::Result<Loaded<Functions>, String> {
    static FOUND: OnceLock<std::result::Result<Loaded<Functions>, String>> = OnceLock::new();
    FOUND.get_or_init(|| KNOWN.load(cuda, Functions::of, |functions| functions.property))
}

/// `CUBLAS_OP_N`, `CUBLAS_FILL_MODE_LOWER`.
const AS_IT_IS: c_int = 0;
const LOWER: c_int = 0;

/// The library's state for a device.
struct State {
    handle: Handle,
    params: Handle,
}

/// The library on the stream of a device.
pub(crate) struct Cusolver {
    functions: &'static Functions,
    state: Mutex<State>,
    stream: Arc<Stream>,
}

/// A task in the library's types.
struct Shape {
    dtype: DType,
    /// `cudaDataType` of elements, and of their real parts.
    kind: c_int,
    real: c_int,
    rows: c_longlong,
    columns: c_longlong,
    of: Factors,
}

/// Bytes of work space on the device and on the host.
#[derive(Clone, Copy, Default)]
struct Room {
    device: usize,
    host: usize,
}

fn too_large() -> Error {
    Error::new(status::UNSUPPORTED, "CUDA: a matrix is too large for cuSOLVER")
}

/// Fails unless the library's status is that all is well.
fn check(code: c_int) -> Result<()> {
    let status = match code {
        0 => return Ok(()),
        NO_MEMORY => status::MEMORY,
        _ => status::DEVICE,
    };
    Err(Error::new(status, format!("CUDA: factors of a matrix by cuSOLVER failed: status {code}")))
}

impl Shape {
    fn new(task: &Task) -> Result<Shape> {
        let &Task::Factors { dtype, rows, columns, of } = task else { return Err(too_large()) };
        let kind = |dtype| match dtype {
            DType::F32 => 0,
            DType::F64 => 1,
            DType::C64 => 4,
            _ => 5,
        };
        Ok(Shape { dtype, kind: kind(dtype), real: kind(dtype.real_part()), rows, columns, of })
    }

    /// Rows, columns and reflections of orthonormal columns.
    fn unfolded(&self, columns: i64) -> Result<[c_int; 3]> {
        let number = |number: i64| c_int::try_from(number).map_err(|_| too_large());
        Ok([number(self.rows)?, number(columns)?, number(self.rows.min(self.columns))?])
    }

    /// `jobu` and `jobvt` for this many columns of `u`.
    fn job(&self, left: i64) -> c_char {
        let job = match left {
            0 => b'N',
            all if all == self.rows => b'A',
            _ => b'S',
        };
        job as c_char
    }
}

impl Cusolver {
    /// The library of this major version of CUDA; none if it cannot be used.
    pub(crate) fn new(stream: Arc<Stream>, cuda: u32) -> Option<Cusolver> {
        let functions = &found(cuda).as_ref().ok()?.functions;
        let mut state = State { handle: Handle::NULL, params: Handle::NULL };
        let code = {
            let _entered = stream.context.enter().ok()?;
            // SAFETY: the handles take the library's state for the context, which is the thread's now and has the stream.
            unsafe {
                match (functions.create)(&mut state.handle) {
                    0 => (functions.stream)(state.handle, stream.handle)
                        .max((functions.create_params)(&mut state.params)),
                    code => code,
                }
            }
        };
        (code == 0).then(|| Cusolver { functions, state: Mutex::new(state), stream })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of the work space of a task on the device.
    pub(crate) fn room(&self, task: &Task) -> Result<usize> {
        let _entered = self.stream.context.enter()?;
        Ok(self.rooms(&self.state(), &Shape::new(task)?)?.device)
    }

    /// The work space of a task; the context is the thread's.
    fn rooms(&self, state: &State, shape: &Shape) -> Result<Room> {
        let (it, Room { mut device, mut host }) = (self.functions, Room::default());
        let (&State { handle, params }, &Shape { kind, real, rows, columns, .. }) = (state, shape);
        let (to_device, to_host) = (&raw mut device, &raw mut host);
        // SAFETY: the handles live, and the places take numbers of bytes; no function looks at matrices for that.
        unsafe {
            check(match shape.of {
                Factors::Cholesky => {
                    (it.cholesky_room)(handle, params, LOWER, rows, kind, 0, rows, kind, to_device, to_host)
                }
                Factors::Lu { .. } => {
                    (it.lu_room)(handle, params, rows, columns, kind, 0, rows, kind, to_device, to_host)
                }
                Factors::Qr { .. } => {
                    (it.qr_room)(handle, params, rows, columns, kind, 0, rows, kind, 0, kind, to_device, to_host)
                }
                Factors::Eigen { vectors } => {
                    let mode = c_int::from(vectors);
                    (it.eigen_room)(handle, params, mode, LOWER, rows, kind, 0, rows, real, 0, kind, to_device, to_host)
                }
                Factors::Singular { left } => {
                    let job = shape.job(left);
                    (it.singular_room)(
                        handle, params, job, job, rows, columns, kind, 0, rows, real, 0, kind, 0, rows, kind, 0,
                        columns, kind, to_device, to_host,
                    )
                }
            })?;
        }
        if let Factors::Qr { columns } = shape.of {
            let ([m, n, k], mut elements) = (shape.unfolded(columns)?, 0);
            let room = match shape.dtype {
                DType::F32 => it.unfold_room_f32,
                DType::F64 => it.unfold_room_f64,
                DType::C64 => it.unfold_room_c64,
                _ => it.unfold_room_c128,
            };
            // SAFETY: as above.
            check(unsafe { room(handle, m, n, k, 0, m, 0, &mut elements) })?;
            device = device.max(elements.max(0) as usize * shape.dtype.size());
        }
        Ok(Room { device, host })
    }

    /// Puts a task into the stream.
    ///
    /// # Safety
    /// As [`bh_device::driver::Libraries::run`].
    pub(crate) unsafe fn run(&self, task: &Task, buffers: &[&dyn Buffer]) -> Result<()> {
        let _entered = self.stream.context.enter()?;
        let (shape, state) = (Shape::new(task)?, self.state());
        let room = self.rooms(&state, &shape)?;
        let mut host = vec![0u8; room.host];
        let at = |number: usize| buffers.get(number).map_or(0, |buffer| address(*buffer));
        let (matrix, info, space) = (at(0), at(1), at(2));
        let (it, work) = (self.functions, host.as_mut_ptr().cast::<c_void>());
        let (&State { handle, params }, &Shape { kind, real, rows, columns, .. }) = (&*state, &shape);
        // SAFETY: the buffers have what the task names and the work space that the library asks for, as `# Safety` asks, which also
        // `rooms` says; the stream keeps the order of all work; work space on the host lives until the stream is done.
        unsafe {
            check(match shape.of {
                Factors::Cholesky => (it.cholesky)(
                    handle,
                    params,
                    LOWER,
                    rows,
                    kind,
                    matrix,
                    rows,
                    kind,
                    space,
                    room.device,
                    work,
                    room.host,
                    info,
                ),
                Factors::Lu { .. } => (it.lu)(
                    handle,
                    params,
                    rows,
                    columns,
                    kind,
                    matrix,
                    rows,
                    at(3),
                    kind,
                    space,
                    room.device,
                    work,
                    room.host,
                    info,
                ),
                Factors::Qr { .. } => (it.qr)(
                    handle,
                    params,
                    rows,
                    columns,
                    kind,
                    matrix,
                    rows,
                    kind,
                    at(3),
                    kind,
                    space,
                    room.device,
                    work,
                    room.host,
                    info,
                ),
                Factors::Eigen { vectors } => (it.eigen)(
                    handle,
                    params,
                    c_int::from(vectors),
                    LOWER,
                    rows,
                    kind,
                    matrix,
                    rows,
                    real,
                    at(3),
                    kind,
                    space,
                    room.device,
                    work,
                    room.host,
                    info,
                ),
                Factors::Singular { left } => (it.singular)(
                    handle,
                    params,
                    shape.job(left),
                    shape.job(left),
                    rows,
                    columns,
                    kind,
                    matrix,
                    rows,
                    real,
                    at(3),
                    kind,
                    at(4),
                    rows,
                    kind,
                    at(5),
                    columns,
                    kind,
                    space,
                    room.device,
                    work,
                    room.host,
                    info,
                ),
            })?;
        }
        if room.host > 0 {
            self.stream.finish()?;
        }
        match shape.of {
            // SAFETY: as above; the right sides lie behind the matrix.
            Factors::Lu { sides } if sides > 0 => check(unsafe {
                let beside = matrix + (rows * columns) as Address * shape.dtype.size() as Address;
                (it.solve)(handle, params, AS_IT_IS, rows, sides, kind, matrix, rows, at(3), kind, beside, rows, info)
            }),
            // SAFETY: as above.
            Factors::Qr { columns } => unsafe { self.unfold(&state, &shape, columns, buffers, room.device) },
            _ => Ok(()),
        }
    }

    /// Makes the orthonormal columns from the reflections, which lie below the triangle.
    ///
    /// # Safety
    /// As [`Cusolver::run`].
    unsafe fn unfold(
        &self,
        state: &State,
        shape: &Shape,
        columns: i64,
        buffers: &[&dyn Buffer],
        room: usize,
    ) -> Result<()> {
        let &[matrix, info, space, scales, q] = buffers else { return Err(too_large()) };
        let [matrix, info, space, scales, q] = [matrix, info, space, scales, q].map(address);
        let ([m, n, k], size) = (shape.unfolded(columns)?, shape.dtype.size());
        let functions = self.stream.context.functions;
        let bytes = shape.rows as usize * k as usize * size;
        let it = self.functions;
        let unfold = match shape.dtype {
            DType::F32 => it.unfold_f32,
            DType::F64 => it.unfold_f64,
            DType::C64 => it.unfold_c64,
            _ => it.unfold_c128,
        };
        // SAFETY: both matrices have the columns of all reflections, and the rest is as in `run`.
        unsafe {
            functions.check("copying on the device", (functions.copy)(q, matrix, bytes, self.stream.handle))?;
            check(unfold(state.handle, m, n, k, q, m, scales, space, (room / size) as c_int, info))
        }
    }
}

impl Drop for Cusolver {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Ok(_entered) = self.stream.context.enter() {
            // SAFETY: nobody uses the state any more.
            unsafe {
                (self.functions.destroy_params)(state.params);
                (self.functions.destroy)(state.handle);
            }
        }
    }
}
