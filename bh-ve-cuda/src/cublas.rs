//! cuBLAS, NVIDIA's library of products of matrices, which is loaded by the first product that it may compute.

use crate::api::Address;
use crate::driver::Stream;
use crate::library::{Handle, Known, Loaded, functions};
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_device::driver::{Buffer, MatrixPlace, MatrixProduct};
use std::ffi::{c_int, c_longlong, c_void};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

functions! {
    /// The library's functions. Those of products differ in the types of elements alone.
    Functions {
        create: "cublasCreate_v2"(*mut Handle);
        destroy: "cublasDestroy_v2"(Handle);
        property: "cublasGetProperty"(c_int, *mut c_int);
        stream: "cublasSetStream_v2"(Handle, Handle);
        multiply_f32: "cublasSgemmStridedBatched"(
            Handle, c_int, c_int, c_int, c_int, c_int, *const c_void, Address, c_int, c_longlong, Address, c_int, c_longlong,
            *const c_void, Address, c_int, c_longlong, c_int
        );
        multiply_f64: "cublasDgemmStridedBatched"(
            Handle, c_int, c_int, c_int, c_int, c_int, *const c_void, Address, c_int, c_longlong, Address, c_int, c_longlong,
            *const c_void, Address, c_int, c_longlong, c_int
        );
        multiply_c64: "cublasCgemmStridedBatched"(
            Handle, c_int, c_int, c_int, c_int, c_int, *const c_void, Address, c_int, c_longlong, Address, c_int, c_longlong,
            *const c_void, Address, c_int, c_longlong, c_int
        );
        multiply_c128: "cublasZgemmStridedBatched"(
            Handle, c_int, c_int, c_int, c_int, c_int, *const c_void, Address, c_int, c_longlong, Address, c_int, c_longlong,
            *const c_void, Address, c_int, c_longlong, c_int
        );
    }
}

/// `CUBLAS_STATUS_ALLOC_FAILED`.
const NO_MEMORY: c_int = 3;

/// `CUBLAS_OP_N` and `CUBLAS_OP_T`.
const AS_IT_IS: c_int = 0;
const TURNED: c_int = 1;

/// The library.
pub(crate) const KNOWN: Known =
    Known { title: "cuBLAS", stem: "cublas", version: |cuda| cuda, needs: &[("cublasLt", |cuda| cuda)] };

/// The library of this major version of CUDA, or why there is none. It is looked for once in a process.
pub(crate) fn found(cuda: u32) -> &'static std::result::Result<Loaded<Functions>, String> {
    static FOUND: OnceLock<std::result::Result<Loaded<Functions>, String>> = OnceLock::new();
    FOUND.get_or_init(|| KNOWN.load(cuda, Functions::of, |functions| functions.property))
}

/// The library on the stream of a device.
pub(crate) struct Cublas {
    functions: &'static Functions,
    handle: Mutex<Handle>,
    stream: Arc<Stream>,
}

/// A matrix as the library takes it, in columns: as it is or turned, from one column to the next, and from one matrix to the next.
struct Operand {
    form: c_int,
    column: c_int,
    next: c_longlong,
}

impl Operand {
    /// That of a matrix, or (`turned`) of the matrix with its axes exchanged. None if its steps are too large.
    fn new(place: &MatrixPlace, turned: bool) -> Option<Operand> {
        let (row, column) = if turned { (place.column, place.row) } else { (place.row, place.column) };
        let (form, step) = if row == 1 { (AS_IT_IS, column) } else { (TURNED, row) };
        Some(Operand { form, column: step.try_into().ok()?, next: place.next })
    }
}

impl Cublas {
    /// The library of this major version of CUDA; none if it cannot be used.
    pub(crate) fn new(stream: Arc<Stream>, version: u32) -> Option<Cublas> {
        let functions = &found(version).as_ref().ok()?.functions;
        let mut handle = Handle::NULL;
        let code = {
            let _entered = stream.context.enter().ok()?;
            // SAFETY: `handle` takes the library's state for the context, which is the thread's now and has the stream.
            unsafe {
                match (functions.create)(&mut handle) {
                    0 => (functions.stream)(handle, stream.handle),
                    code => code,
                }
            }
        };
        (code == 0).then(|| Cublas { functions, handle: Mutex::new(handle), stream })
    }
}

impl Drop for Cublas {
    fn drop(&mut self) {
        let handle = *self.handle.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Ok(_entered) = self.stream.context.enter() {
            // SAFETY: nobody uses the state any more.
            unsafe { (self.functions.destroy)(handle) };
        }
    }
}

impl Cublas {
    /// Puts products into the stream; the buffers are those of their places.
    ///
    /// # Safety
    /// As [`bh_device::driver::Libraries::run`].
    pub(crate) unsafe fn multiply(&self, product: &MatrixProduct, buffers: [&dyn Buffer; 3]) -> Result<()> {
        let too_large = || Error::new(status::DEVICE, "CUDA: a product of matrices is too large for cuBLAS");
        let size = product.dtype.size();
        let multiply = match (product.dtype.is_complex(), size) {
            (false, 4) => self.functions.multiply_f32,
            (false, _) => self.functions.multiply_f64,
            (true, 8) => self.functions.multiply_c64,
            (true, _) => self.functions.multiply_c128,
        };
        // One and zero of each type: real, or with an imaginary part of zero.
        let (single, double) = ([1.0f32, 0.0, 0.0, 0.0], [1.0f64, 0.0, 0.0, 0.0]);
        let is_single = matches!((product.dtype.is_complex(), size), (false, 4) | (true, 8));
        let at = |number: usize| -> *const c_void {
            if is_single { (&raw const single[number]).cast() } else { (&raw const double[number]).cast() }
        };
        let [one, zero] = [at(0), at(2)];
        let [rows, inner, columns] = product.extents;
        // The library writes columns. Of a product in rows, it makes the turned one: the turned factors in the other order.
        let turned = product.places[0].row != 1;
        let (first, second, m, n) = if turned { (2, 1, columns, rows) } else { (1, 2, rows, columns) };
        let operand = |number: usize| Operand::new(&product.places[number], turned).ok_or_else(too_large);
        let (left, right, out) = (operand(first)?, operand(second)?, operand(0)?);
        let [m, n, k, count] =
            [m, n, inner, product.count].map(|extent| c_int::try_from(extent).map_err(|_| too_large()));
        let (m, n, k, count) = (m?, n?, k?, count?);
        let address = |number: usize| {
            let start = buffers[number].handle().expose_provenance() as Address;
            start + product.places[number].first as Address * size as Address
        };
        let (a, b, c) = (address(first), address(second), address(0));
        let _entered = self.stream.context.enter()?;
        let handle = self.handle.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the buffers have what the places lead to, as `# Safety` asks; the stream keeps the order of all work. The library
        // reads both numbers before it returns.
        let code = unsafe {
            multiply(
                *handle,
                left.form,
                right.form,
                m,
                n,
                k,
                one,
                a,
                left.column,
                left.next,
                b,
                right.column,
                right.next,
                zero,
                c,
                out.column,
                out.next,
                count,
            )
        };
        let failed =
            |status| Err(Error::new(status, format!("CUDA: a product of matrices by cuBLAS failed: status {code}")));
        match code {
            0 => Ok(()),
            NO_MEMORY => failed(status::MEMORY),
            _ => failed(status::DEVICE),
        }
    }
}
