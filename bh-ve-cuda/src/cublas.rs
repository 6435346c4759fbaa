//! cuBLAS, NVIDIA's library of products of matrices, which is loaded by the first product that it may compute.

use crate::api::Address;
use crate::library::{Handle, Known, Loaded, functions};
use crate::stream::Stream;
use bh_bytecode::DType;
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
        apply_f32: "cublasSgemv_v2"(
            Handle, c_int, c_int, c_int, *const c_void, Address, c_int, Address, c_int, *const c_void, Address, c_int
        );
        apply_f64: "cublasDgemv_v2"(
            Handle, c_int, c_int, c_int, *const c_void, Address, c_int, Address, c_int, *const c_void, Address, c_int
        );
        apply_c64: "cublasCgemv_v2"(
            Handle, c_int, c_int, c_int, *const c_void, Address, c_int, Address, c_int, *const c_void, Address, c_int
        );
        apply_c128: "cublasZgemv_v2"(
            Handle, c_int, c_int, c_int, *const c_void, Address, c_int, Address, c_int, *const c_void, Address, c_int
        );
        substitute_f32: "cublasStrsm_v2"(
            Handle, c_int, c_int, c_int, c_int, c_int, c_int, *const c_void, Address, c_int, Address, c_int
        );
        substitute_f64: "cublasDtrsm_v2"(
            Handle, c_int, c_int, c_int, c_int, c_int, c_int, *const c_void, Address, c_int, Address, c_int
        );
        substitute_c64: "cublasCtrsm_v2"(
            Handle, c_int, c_int, c_int, c_int, c_int, c_int, *const c_void, Address, c_int, Address, c_int
        );
        substitute_c128: "cublasZtrsm_v2"(
            Handle, c_int, c_int, c_int, c_int, c_int, c_int, *const c_void, Address, c_int, Address, c_int
        );
    }
}

/// `CUBLAS_STATUS_ALLOC_FAILED`.
const NO_MEMORY: c_int = 3;

/// `CUBLAS_OP_N` and `CUBLAS_OP_T`.
const AS_IT_IS: c_int = 0;
const TURNED: c_int = 1;

/// `CUBLAS_SIDE_LEFT` and `CUBLAS_DIAG_NON_UNIT`; `CUBLAS_FILL_MODE_LOWER` and `CUBLAS_FILL_MODE_UPPER`.
const LEFT: c_int = 0;
const ANY_DIAGONAL: c_int = 0;
const LOWER: c_int = 0;
const UPPER: c_int = 1;

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
        let size = product.dtype.size();
        let address = |number: usize| {
            let start = buffers[number].handle().expose_provenance() as Address;
            start + product.places[number].first as Address * size as Address
        };
        let addresses = [address(0), address(1), address(2)];
        // SAFETY: the buffers have what the places lead to, as `# Safety` asks.
        unsafe {
            match product.extents {
                [_, _, 1] | [1, _, _] if product.count == 1 => self.apply(product, addresses),
                _ => self.multiply_at(product, addresses),
            }
        }
    }

    /// Puts the product of a matrix and a vector into the stream.
    ///
    /// # Safety
    /// The addresses must lead to the operands.
    unsafe fn apply(&self, product: &MatrixProduct, [to, left, right]: [Address; 3]) -> Result<()> {
        let apply = match product.dtype {
            DType::F32 => self.functions.apply_f32,
            DType::F64 => self.functions.apply_f64,
            DType::C64 => self.functions.apply_c64,
            _ => self.functions.apply_c128,
        };
        let [out, first, second] = &product.places;
        let [rows, inner, columns] = product.extents;
        // A row by a matrix is the turned matrix by a column.
        let (turned, place, matrix, vector) = match columns {
            1 => (false, first, left, (second.row, right)),
            _ => (true, second, right, (first.column, left)),
        };
        let (results, step) = if turned { (columns, out.column) } else { (rows, out.row) };
        let matrix = (Operand::new(place, turned).ok_or_else(too_large)?, matrix);
        let (m, n) = if matrix.0.form == AS_IT_IS { (results, inner) } else { (inner, results) };
        let numbers = [m, n, vector.0, step].map(|number| c_int::try_from(number).map_err(|_| too_large()));
        let [m, n, from, to_step] = numbers;
        let (m, n, from, to_step) = (m?, n?, from?, to_step?);
        let [one, zero] = one_and_zero(product.dtype);
        let _entered = self.stream.context.enter()?;
        let handle = self.handle.lock().unwrap_or_else(PoisonError::into_inner);
        let (Operand { form, column, .. }, matrix) = matrix;
        // SAFETY: the addresses have what `# Safety` asks; the stream keeps the order of all work. The library reads both numbers
        // before it returns.
        let code = unsafe { apply(*handle, form, m, n, one, matrix, column, vector.1, from, zero, to, to_step) };
        check("a product of a matrix and a vector", code)
    }

    /// Puts products of matrices into the stream.
    ///
    /// # Safety
    /// The addresses must lead to the operands.
    unsafe fn multiply_at(&self, product: &MatrixProduct, addresses: [Address; 3]) -> Result<()> {
        let multiply = match product.dtype {
            DType::F32 => self.functions.multiply_f32,
            DType::F64 => self.functions.multiply_f64,
            DType::C64 => self.functions.multiply_c64,
            _ => self.functions.multiply_c128,
        };
        let [one, zero] = one_and_zero(product.dtype);
        let [rows, inner, columns] = product.extents;
        // The library writes columns. Of a product in rows, it makes the turned one: the turned factors in the other order.
        let turned = product.places[0].row != 1;
        let (first, second, m, n) = if turned { (2, 1, columns, rows) } else { (1, 2, rows, columns) };
        let operand = |number: usize| Operand::new(&product.places[number], turned).ok_or_else(too_large);
        let (left, right, out) = (operand(first)?, operand(second)?, operand(0)?);
        let [m, n, k, count] =
            [m, n, inner, product.count].map(|extent| c_int::try_from(extent).map_err(|_| too_large()));
        let (m, n, k, count) = (m?, n?, k?, count?);
        let (a, b, c) = (addresses[first], addresses[second], addresses[0]);
        let _entered = self.stream.context.enter()?;
        let handle = self.handle.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the addresses have what `# Safety` asks; the stream keeps the order of all work. The library reads both numbers
        // before it returns.
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
        check("a product of matrices", code)
    }

    /// Replaces right sides by the solutions of a system whose matrix is a triangle. Both lie in columns without gaps.
    ///
    /// # Safety
    /// There must be a matrix of `rows` rows and columns at the first address, and `sides` columns of as many rows at the second one.
    pub(crate) unsafe fn substitute(
        &self,
        dtype: DType,
        [rows, sides]: [c_int; 2],
        is_lower: bool,
        [matrix, right]: [Address; 2],
    ) -> Result<()> {
        let substitute = match dtype {
            DType::F32 => self.functions.substitute_f32,
            DType::F64 => self.functions.substitute_f64,
            DType::C64 => self.functions.substitute_c64,
            _ => self.functions.substitute_c128,
        };
        let ([one, _], triangle) = (one_and_zero(dtype), if is_lower { LOWER } else { UPPER });
        let _entered = self.stream.context.enter()?;
        let handle = self.handle.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: both addresses have what `# Safety` asks; the stream keeps the order of all work. The library reads the number before
        // it returns.
        let code = unsafe {
            substitute(*handle, LEFT, triangle, AS_IT_IS, ANY_DIAGONAL, rows, sides, one, matrix, rows, right, rows)
        };
        check("a system with a triangle", code)
    }
}

fn too_large() -> Error {
    Error::new(status::DEVICE, "CUDA: a product of matrices is too large for cuBLAS")
}

/// Where one and zero of a type are: real, or with an imaginary part of zero.
fn one_and_zero(dtype: DType) -> [*const c_void; 2] {
    static SINGLE: [f32; 4] = [1.0, 0.0, 0.0, 0.0];
    static DOUBLE: [f64; 4] = [1.0, 0.0, 0.0, 0.0];
    let at = |number: usize| -> *const c_void {
        match dtype {
            DType::F32 | DType::C64 => (&raw const SINGLE[number]).cast(),
            _ => (&raw const DOUBLE[number]).cast(),
        }
    };
    [at(0), at(2)]
}

/// Fails unless the library's status is that all is well.
fn check(what: &str, code: c_int) -> Result<()> {
    let status = match code {
        0 => return Ok(()),
        NO_MEMORY => status::MEMORY,
        _ => status::DEVICE,
    };
    Err(Error::new(status, format!("CUDA: {what} by cuBLAS failed: status {code}")))
}
