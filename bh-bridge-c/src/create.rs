//! Making and freeing arrays.

use crate::error::{Out, argument, bh_status, frame, frame_out, null, with_place};
use crate::handle::{self, Context, bh_array, bh_context, context};
use bh_bytecode::{Constant, DType, MAX_RANK, Opcode};
use bh_compose::{Spacing, linspace, steps};
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_recorder::{ArrayId, Input, Recorder};
use std::ffi::c_void;

/// An element type: one of the `BH_TYPE_*` numbers.
pub type bh_dtype = i32;

/// Called with the two pointers when adopted memory is no longer used. It must not call this library.
pub type bh_release = Option<unsafe extern "C" fn(argument: *mut c_void, data: *mut c_void)>;

/// Checks an element type.
pub(crate) fn dtype(code: bh_dtype) -> Result<DType> {
    let found = u8::try_from(code).ok().and_then(DType::from_code);
    found.ok_or_else(|| Error::new(status::TYPE, format!("argument 'dtype': there is no element type {code}")))
}

/// Borrows `rank` numbers.
///
/// # Safety
/// `numbers` must be null or point to `rank` numbers that live as long as the result.
pub(crate) unsafe fn numbers<'a>(rank: i32, numbers: *const i64, name: &str) -> Result<&'a [i64]> {
    let count = match usize::try_from(rank) {
        Ok(count) if count <= MAX_RANK => count,
        _ => {
            let text = format!("argument 'rank' is {rank}, but must be 0 to {MAX_RANK}");
            return Err(Error::new(status::SHAPE, text));
        }
    };
    if count == 0 {
        return Ok(&[]);
    }
    if numbers.is_null() {
        return Err(null(name));
    }
    // SAFETY: not null, and so `rank`, which is `count`, numbers that live as long as the result, as `# Safety` asks.
    Ok(unsafe { std::slice::from_raw_parts(numbers, count) })
}

/// Makes an array, fills it, and returns its handle; frees it when filling fails.
pub(crate) fn filled(
    context: Context,
    dtype: DType,
    shape: &[i64],
    fill: impl FnOnce(&Recorder, ArrayId) -> Result<()>,
) -> Result<*mut bh_array> {
    let array = context.recorder.empty(dtype, shape)?;
    match fill(context.recorder, array) {
        Ok(()) => Ok(context.array(array)),
        Err(error) => {
            // The caller gets no handle; freeing fails only if a shutdown came first.
            let _ = context.recorder.free(array);
            Err(error)
        }
    }
}

fn full(context: *mut bh_context, value: Constant, shape: &[i64]) -> Result<*mut bh_array> {
    let context = self::context(context)?;
    with_place(|place| context.recorder.full(value, shape, place)).map(|array| context.array(array))
}

/// A new array whose elements are undefined until they are written.
///
/// # Safety
/// `out` must be null or the address of a pointer, `shape` null or `rank` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_empty(
    out: *mut *mut bh_array,
    context: *mut bh_context,
    dtype: bh_dtype,
    rank: i32,
    shape: *const i64,
) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    frame_out(out, || {
        let context = self::context(context)?;
        // SAFETY: `shape` is null or `rank` numbers, as `# Safety` asks, and they are used within the call only.
        let shape = unsafe { numbers(rank, shape, "shape") }?;
        context.recorder.empty(self::dtype(dtype)?, shape).map(|array| context.array(array))
    })
}

/// A new array of zeros (false, for bool).
///
/// # Safety
/// As `bh_empty`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_zeros(
    out: *mut *mut bh_array,
    context: *mut bh_context,
    dtype: bh_dtype,
    rank: i32,
    shape: *const i64,
) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    frame_out(out, || {
        let value = Constant::from_value(0u8).cast(self::dtype(dtype)?);
        // SAFETY: `shape` is null or `rank` numbers, as `# Safety` asks, and they are used within the call only.
        full(context, value, unsafe { numbers(rank, shape, "shape") }?)
    })
}

/// A new array of ones (true, for bool).
///
/// # Safety
/// As `bh_empty`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_ones(
    out: *mut *mut bh_array,
    context: *mut bh_context,
    dtype: bh_dtype,
    rank: i32,
    shape: *const i64,
) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    frame_out(out, || {
        let value = Constant::from_value(1u8).cast(self::dtype(dtype)?);
        // SAFETY: `shape` is null or `rank` numbers, as `# Safety` asks, and they are used within the call only.
        full(context, value, unsafe { numbers(rank, shape, "shape") }?)
    })
}

/// A new array with all elements equal to a constant, whose type it has: `bh_full(&a, NULL, bh_f64(1.5), 2, shape)`.
///
/// # Safety
/// As `bh_empty`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_full(
    out: *mut *mut bh_array,
    context: *mut bh_context,
    value: *const bh_array,
    rank: i32,
    shape: *const i64,
) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    frame_out(out, || match crate::constant::operand(value, &mut None, "value")? {
        // SAFETY: `shape` is null or `rank` numbers, as `# Safety` asks, and they are used within the call only.
        Input::Constant(value) => full(context, value, unsafe { numbers(rank, shape, "shape") }?),
        Input::Array(_) => Err(argument("full: 'value' is an array, but must be a constant as of bh_f64".into())),
    })
}

/// A new one-dimensional array of start, start + step, … below (for negative steps: above) stop. Integer types take
/// whole numbers only.
///
/// # Safety
/// `out` must be null or the address of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_arange(
    out: *mut *mut bh_array,
    context: *mut bh_context,
    dtype: bh_dtype,
    start: f64,
    stop: f64,
    step: f64,
) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    frame_out(out, || {
        let dtype = self::dtype(dtype)?;
        if step == 0.0 || !(start.is_finite() && stop.is_finite() && step.is_finite()) {
            return Err(argument(format!("arange: start {start}, stop {stop} and step {step} make no range")));
        }
        let count = ((stop - start) / step).ceil().max(0.0);
        if count >= 9.0e18 {
            return Err(Error::new(status::SHAPE, format!("arange: {count} elements are too many")));
        }
        let whole = |number: f64| number == number.trunc() && number.abs() <= 9.0e18;
        if dtype.is_int() {
            if !whole(start) || !whole(step) {
                let text = format!("arange: start {start} and step {step} must be whole numbers for type {dtype}");
                return Err(argument(text));
            }
            return filled(self::context(context)?, dtype, &[count as i64], |recorder, array| {
                with_place(|place| recorder.range(array, start as i64, step as i64, place))
            });
        }
        let context = self::context(context)?;
        let array = with_place(|place| steps(context.recorder, dtype, &[count as i64], (start, step), place))?;
        Ok(context.array(array))
    })
}

/// A new one-dimensional array of `count` evenly spaced numbers from start to stop, both included. Floating-point types
/// only.
///
/// # Safety
/// `out` must be null or the address of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_linspace(
    out: *mut *mut bh_array,
    context: *mut bh_context,
    dtype: bh_dtype,
    start: f64,
    stop: f64,
    count: i64,
) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    frame_out(out, || {
        let (context, dtype) = (self::context(context)?, self::dtype(dtype)?);
        let spacing = Spacing { start, stop, count, endpoint: true };
        let array = with_place(|place| linspace(context.recorder, dtype, &[count], spacing, place))?;
        Ok(context.array(array))
    })
}

/// A new array of random numbers: uniform in [0, 1) for f32 and f64, raw bits for u32 and u64. The same key gives the
/// same numbers everywhere.
///
/// # Safety
/// As `bh_empty`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_random_uniform(
    out: *mut *mut bh_array,
    context: *mut bh_context,
    dtype: bh_dtype,
    rank: i32,
    shape: *const i64,
    key: u64,
) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    frame_out(out, || {
        // SAFETY: `shape` is null or `rank` numbers, as `# Safety` asks, and they are used within the call only.
        let shape = unsafe { numbers(rank, shape, "shape") }?;
        filled(self::context(context)?, self::dtype(dtype)?, shape, |recorder, array| {
            with_place(|place| recorder.random(array, key, 0, place))
        })
    })
}

/// A new array of normally distributed random numbers with mean 0 and variance 1 (f32 or f64), by the method of Box and
/// Muller.
///
/// # Safety
/// As `bh_empty`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_random_normal(
    out: *mut *mut bh_array,
    context: *mut bh_context,
    dtype: bh_dtype,
    rank: i32,
    shape: *const i64,
    key: u64,
) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    frame_out(out, || {
        let context = self::context(context)?;
        let dtype = self::dtype(dtype)?;
        // SAFETY: `shape` is null or `rank` numbers, as `# Safety` asks, and they are used within the call only.
        let shape = unsafe { numbers(rank, shape, "shape") }?;
        let made = with_place(|place| bh_compose::normal(context.recorder, dtype, shape, key, place))?;
        Ok(context.array(made))
    })
}

/// A new array with a copy of the data at `data`, in C order.
///
/// # Safety
/// As `bh_empty`; `data` must be null or hold all elements in C order.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_from_data(
    out: *mut *mut bh_array,
    context: *mut bh_context,
    dtype: bh_dtype,
    rank: i32,
    shape: *const i64,
    data: *const c_void,
) -> bh_status {
    // SAFETY: `data` is null or holds all elements, as `# Safety` asks, which is one of the two that
    // `bh_from_data_sized` accepts; the rest is asked alike.
    unsafe { bh_from_data_sized(out, context, dtype, rank, shape, data, usize::MAX) }
}

/// As `bh_from_data`, from a buffer of `capacity` bytes; a smaller one than the elements need is refused.
///
/// # Safety
/// As `bh_empty`; `data` must be null or hold all elements in C order or `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_from_data_sized(
    out: *mut *mut bh_array,
    context: *mut bh_context,
    dtype: bh_dtype,
    rank: i32,
    shape: *const i64,
    data: *const c_void,
    capacity: usize,
) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    frame_out(out, || {
        let context = self::context(context)?;
        // SAFETY: `shape` is null or `rank` numbers, as `# Safety` asks, and they are used within the call only.
        let shape = unsafe { numbers(rank, shape, "shape") }?;
        if data.is_null() && !shape.contains(&0) {
            return Err(null("data"));
        }
        let dtype = self::dtype(dtype)?;
        filled(context, dtype, shape, |recorder, array| {
            recorder.ask(array, |array| crate::access::fits(capacity, array.len, dtype))??;
            // SAFETY: not null unless there are no elements; it holds all of them, or the `capacity` bytes that they
            // were just seen to fit, as `# Safety` asks, and a new array's own memory is elsewhere.
            unsafe { recorder.write(array, data.cast(), None) }
        })
    })
}

/// A new array that uses the memory at `data` (in C order) without a copy. `release`, if not null, is called with
/// `argument` and `data` when the memory is no longer used, at the latest when the context ends. Look at the memory only
/// between `bh_map` and `bh_unmap`. Every operation on such an array completes before it returns.
///
/// # Safety
/// As `bh_empty`; `data` must hold all elements in C order until `release` is called, and `release` be null or work
/// with `argument` and `data` on any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_adopt(
    out: *mut *mut bh_array,
    context: *mut bh_context,
    dtype: bh_dtype,
    rank: i32,
    shape: *const i64,
    data: *mut c_void,
    release: bh_release,
    argument: *mut c_void,
) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    frame_out(out, || {
        let context = self::context(context)?;
        // SAFETY: `shape` is null or `rank` numbers, as `# Safety` asks, and they are used within the call only.
        let shape = unsafe { numbers(rank, shape, "shape") }?;
        // SAFETY: `data` holds the elements of `shape` until `release` is called, which works with both arguments on
        // any thread, as `# Safety` asks.
        let array = unsafe { context.recorder.adopt(self::dtype(dtype)?, shape, data.cast(), release, argument) }?;
        Ok(context.array(array))
    })
}

/// A new array with a copy of the elements of `a`.
///
/// # Safety
/// `out` must be null or the address of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_copy_new(out: *mut *mut bh_array, a: *const bh_array) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    frame_out(out, || {
        let array = handle::array(a, "a")?;
        let dtype = array.recorder.ask(array.id, |array| array.dtype)?;
        converted(array, dtype)
    })
}

/// A new array with the elements of `a` converted to another type: float to integer truncates (beyond the type: key `casts`), integers wrap,
/// to bool tests for non-zero. Complex numbers go to complex types and bool only; see `bh_real` and `bh_imag`.
///
/// # Safety
/// `out` must be null or the address of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_cast(out: *mut *mut bh_array, a: *const bh_array, dtype: bh_dtype) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    frame_out(out, || converted(handle::array(a, "a")?, self::dtype(dtype)?))
}

fn converted(array: handle::Array, dtype: DType) -> Result<*mut bh_array> {
    let input = [Input::Array(array.id)];
    let from = array.recorder.ask(array.id, |array| array.dtype)?;
    if from.is_complex() && dtype == DType::Bool {
        // Not a conversion of the table, whose others from complex numbers keep both parts.
        let zero = Input::Constant(Constant::from_value(0u8).cast(from));
        let truth =
            with_place(|place| array.recorder.operate_new(Opcode::NotEqual, 0, None, &[input[0], zero], place))?;
        return Ok(array.sibling(truth));
    }
    copy(&array, dtype).map(|copy| array.sibling(copy))
}

/// A new array of the elements of another one, in C order.
pub(crate) fn copy(array: &handle::Array, dtype: DType) -> Result<ArrayId> {
    with_place(|place| array.recorder.operate_new(Opcode::Copy, 0, Some(dtype), &[Input::Array(array.id)], place))
}

/// A second handle for the same array, to be freed on its own.
///
/// # Safety
/// `out` must be null or the address of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_retain(out: *mut *mut bh_array, a: *const bh_array) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    frame_out(out, || {
        let array = handle::array(a, "a")?;
        array.recorder.duplicate(array.id).map(|id| array.sibling(id))
    })
}

/// Frees a handle. The data goes with the last handle on it, once recorded operations have used it. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn bh_free(a: *mut bh_array) -> bh_status {
    frame(|| {
        if a.is_null() {
            return Ok(());
        }
        let array = handle::array(a, "a")?;
        array.recorder.free(array.id)
    })
}
