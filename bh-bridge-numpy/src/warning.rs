//! Warnings of floating-point errors as NumPy's, for operations that were carried out where they were called.
//!
//! The processor's flags say that something may have happened. Where the result shows it, too, NumPy does the operation again
//! and tells.

use crate::array::Array;
use crate::operand::{Number, Operand, classify};
use crate::scalar::is_in_program;
use crate::strided::{Plain, Strided};
use bh_bytecode::compare::FUNCTIONS;
use bh_bytecode::{DType, Opcode};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// The functions of Python that warn.
struct Tellers {
    /// `f(function, arguments)`: NumPy's function is called again.
    again: Py<PyAny>,
    /// `f(function, flags, dtype)`: it has met the errors of these flags.
    met: Py<PyAny>,
    /// `f(function, arguments)`: a division of whole numbers whose divisor is waited for.
    divided: Py<PyAny>,
}

static TELLERS: OnceLock<Tellers> = OnceLock::new();

/// Tells the functions behind warnings.
#[pyfunction]
fn set_warnings(again: Py<PyAny>, met: Py<PyAny>, divided: Py<PyAny>) {
    // A second call, of a reloaded package, changes nothing.
    let _ = TELLERS.set(Tellers { again, met, divided });
}

fn tellers() -> PyResult<&'static Tellers> {
    TELLERS.get().ok_or_else(|| PyRuntimeError::new_err("the package bh is not imported"))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(set_warnings, module)?)?;
    module.add_function(wrap_pyfunction!(take_flags, module)?)?;
    module.add_function(wrap_pyfunction!(is_at_hand, module)?)?;
    module.add_function(wrap_pyfunction!(is_little, module)?)?;
    module.add_function(wrap_pyfunction!(comes_to_hand, module)?)?;
    module.add_function(wrap_pyfunction!(meets_hosts, module)?)?;
    module.add_function(wrap_pyfunction!(may_wait, module)?)?;
    module.add_function(wrap_pyfunction!(ask_for_errors, module)?)?;
    module.add_function(wrap_pyfunction!(errors_asked, module)?)?;
    module.add_function(wrap_pyfunction!(warn_of_cast, module)?)
}

/// Has the program asked for more than warnings, such as exceptions?
static ASKED: AtomicBool = AtomicBool::new(false);

/// From now on the operation that meets errors reports them, or no longer.
#[pyfunction]
fn ask_for_errors(asked: bool) {
    ASKED.store(asked, Ordering::Relaxed);
}

/// Has some thread asked for errors by the operations that meet them?
#[pyfunction]
#[inline]
pub fn errors_asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

const INVALID: u32 = 1;
const ZERO: u32 = 2;
const OVERFLOW: u32 = 4;

/// The flags of invalid operations, divisions by zero and overflow, of which some may be older than the last operation.
#[inline]
pub fn flags() -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        let state = state();
        // Between the first two is the flag of denormal operands.
        state & INVALID | state >> 1 & (ZERO | OVERFLOW)
    }
    #[cfg(target_arch = "aarch64")]
    {
        state() as u32 & (INVALID | ZERO | OVERFLOW)
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        INVALID | ZERO | OVERFLOW
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn state() -> u32 {
    let mut state = 0u32;
    // SAFETY: stores MXCSR into a local.
    unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut state, options(nostack, preserves_flags)) };
    state
}

#[cfg(target_arch = "aarch64")]
#[inline]
fn state() -> u64 {
    let state: u64;
    // SAFETY: reads FPSR.
    unsafe { std::arch::asm!("mrs {}, fpsr", out(reg) state, options(nomem, nostack, preserves_flags)) };
    state
}

/// Clears the flags.
pub fn clear() {
    #[cfg(target_arch = "x86_64")]
    {
        let state = state() & !0x3F;
        // SAFETY: loads the state that there is, without its sticky flags. They change, so that the option `preserves_flags`,
        // which stands for them too, is not given.
        unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const state, options(nostack)) };
    }
    #[cfg(target_arch = "aarch64")]
    {
        let state = state() & !0x1F;
        // SAFETY: writes the state that there is, without its sticky flags. They change, so that the option `preserves_flags`,
        // which stands for them too, is not given.
        unsafe { std::arch::asm!("msr fpsr, {}", in(reg) state, options(nomem, nostack)) };
    }
}

/// The flags, which are cleared.
#[pyfunction]
fn take_flags() -> u32 {
    let flags = flags();
    clear();
    flags
}

/// Is an array's data computed?
#[pyfunction]
fn is_at_hand(array: &Array) -> bool {
    let hand = array.context.recorder.hand();
    array.link.is_none() && hand.is_some_and(|hand| hand.data(array.store(), array.view.start()).is_some())
}

/// Is an array's data computed, or can it be made so without waiting?
#[pyfunction]
fn comes_to_hand(array: &Array) -> bool {
    is_at_hand(array) || array.link.is_none() && array.context.recorder.settle_part(array.anchor(), 1)
}

/// Has an array so few bytes that operations on it may be carried out at once?
#[pyfunction]
pub fn is_little(array: &Array) -> bool {
    array.len() as u64 * array.dtype.size() as u64 <= array.context.little
}

/// Is an array on a stack that shares its memory with the host?
#[pyfunction]
fn meets_hosts(array: &Array) -> bool {
    array.link.is_none() && array.context.recorder.hand().is_some()
}

/// Bytes of the largest divisor that is waited for.
const WAITED: usize = 128 << 10;

/// May a divisor be waited for, to tell of divisions by zero? Only on stacks that do little work at once, and not much of it.
#[pyfunction]
fn may_wait(array: &Array) -> bool {
    array.len() as usize * array.dtype.size() <= WAITED && array.context.recorder.hand().is_some()
}

/// Elements that are looked at together, which the processor does faster than one after the other.
const PART: usize = 64;

/// Does `found` hold for an element of a computed array? `T`: the form of elements in memory.
fn any<T: Plain>(array: &Array, found: impl Fn(T) -> bool) -> bool {
    let Some(hand) = array.context.recorder.hand() else { return false };
    // SAFETY: the hand is held as long as they are used, and no slice of them is written to meanwhile.
    let Some(elements) = (unsafe { Strided::of(&hand, array) }) else { return false };
    if let Some(all) = elements.slice::<T>() {
        return all.chunks(PART).any(|part| part.iter().fold(false, |one, &value| one | found(value)));
    }
    // SAFETY: views lie inside their bases, whose data does not move while the hand is held; memory may be less aligned.
    elements.addresses::<T>().any(|address| found(unsafe { address.read_unaligned() }))
}

/// The flags that the elements of a result bear out: it has NaN or infinities.
fn borne_out(array: &Array, flags: u32) -> u32 {
    let kinds = |nan: bool, infinite: bool| {
        let of_nan = if nan { flags & INVALID } else { 0 };
        of_nan | if infinite { flags & (ZERO | OVERFLOW) } else { 0 }
    };
    let (nan, infinite) = match array.dtype {
        DType::F32 => (any(array, f32::is_nan), any(array, f32::is_infinite)),
        DType::F64 => (any(array, f64::is_nan), any(array, f64::is_infinite)),
        DType::C64 => (
            any(array, |z: [f32; 2]| z.iter().any(|x| x.is_nan())),
            any(array, |z: [f32; 2]| z.iter().any(|x| x.is_infinite())),
        ),
        DType::C128 => (
            any(array, |z: [f64; 2]| z.iter().any(|x| x.is_nan())),
            any(array, |z: [f64; 2]| z.iter().any(|x| x.is_infinite())),
        ),
        _ => (false, false),
    };
    kinds(nan, infinite)
}

/// Has a divisor elements by which whole numbers cannot be divided: 0, or -1, by which the least number cannot?
fn is_critical(divisor: &Bound<'_, PyAny>) -> bool {
    match classify(divisor) {
        Some((_, Operand::Number(Number::Int(value)))) => value == 0 || value == -1,
        Some((_, Operand::Number(Number::Bool(value)))) => !value,
        Some((_, Operand::Array(array))) => match array.dtype.size() {
            1 => any(array, |x: i8| matches!(x, 0 | -1)),
            2 => any(array, |x: i16| matches!(x, 0 | -1)),
            4 => any(array, |x: i32| matches!(x, 0 | -1)),
            _ => any(array, |x: i64| matches!(x, 0 | -1)),
        },
        _ => false,
    }
}

/// The place where errors of an operation show.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// The processor's flags, as the processor does the operation itself.
    Flags,
    /// The result, as code that does the operation raises flags of its own.
    Result,
    /// The divisor, as whole numbers have no flags.
    Divisor,
}

/// How errors of an operation show.
pub fn sign_of(opcode: Opcode, dtype: DType) -> Sign {
    let divisions = [Opcode::Divide, Opcode::FloorDivide, Opcode::Fmod, Opcode::Remainder];
    // Of many instructions: all of these but plain division, and functions.
    let is_composed = divisions[1..].contains(&opcode) || FUNCTIONS.contains(&opcode);
    match () {
        () if dtype.is_int() && divisions.contains(&opcode) => Sign::Divisor,
        () if (dtype.is_float() || dtype.is_complex()) && is_composed => Sign::Result,
        () => Sign::Flags,
    }
}

/// Is there an element that an operation of one operand made infinite or NaN?
fn makes_unlike(from: &Array, result: &Array) -> bool {
    fn any_pair<T: Plain>(from: &Array, result: &Array, found: impl Fn(T, T) -> bool) -> bool {
        let Some(hand) = result.context.recorder.hand() else { return false };
        // SAFETY: the hand is held as long as they are used, and no slice of them is written to meanwhile.
        let (Some(x), Some(y)) = (unsafe { Strided::of(&hand, from) }, unsafe { Strided::of(&hand, result) }) else {
            return false;
        };
        if let (Some(x), Some(y)) = (x.slice::<T>(), y.slice::<T>()) {
            let pairs = |x: &[T], y: &[T]| x.iter().zip(y).fold(false, |one, (&x, &y)| one | found(x, y));
            return x.chunks(PART).zip(y.chunks(PART)).any(|(x, y)| pairs(x, y));
        }
        let mut pairs = x.addresses::<T>().zip(y.addresses::<T>());
        // SAFETY: views lie inside their bases, whose data does not move while the hand is held; memory may be less aligned.
        pairs.any(|(x, y)| found(unsafe { x.read_unaligned() }, unsafe { y.read_unaligned() }))
    }
    match result.dtype {
        DType::F32 => any_pair(from, result, |x: f32, y| y.is_nan() && !x.is_nan() || y.is_infinite() && x.is_finite()),
        DType::F64 => any_pair(from, result, |x: f64, y| y.is_nan() && !x.is_nan() || y.is_infinite() && x.is_finite()),
        _ => borne_out(result, INVALID | ZERO | OVERFLOW) != 0,
    }
}

/// Tells of the errors that a call made, if there are signs of some.
#[cold]
pub fn of_call<'py>(
    py: Python<'py>,
    function: &Py<PyAny>,
    arguments: &[&Bound<'py, PyAny>],
    sign: Sign,
    result: &Array,
) -> PyResult<()> {
    let flags = take_flags();
    let only = || match arguments {
        [only] => only.cast_exact::<Array>().ok().map(|only| only.borrow()),
        _ => None,
    };
    let shown = match (sign, only()) {
        (Sign::Divisor, _) => return of_division(py, function, arguments, result),
        (Sign::Result, Some(from)) if from.dtype == result.dtype => makes_unlike(&from, result),
        (Sign::Result, _) => borne_out(result, INVALID | ZERO | OVERFLOW) != 0,
        (Sign::Flags, _) => borne_out(result, flags) != 0,
    };
    if shown && is_in_program(py) && is_at_hand(result) {
        again(py, function.bind(py), PyTuple::new(py, arguments)?)?;
    }
    Ok(())
}

/// Tells of the errors of a division of whole numbers, by what is known of its operands.
fn of_division<'py>(
    py: Python<'py>,
    function: &Py<PyAny>,
    arguments: &[&Bound<'py, PyAny>],
    result: &Array,
) -> PyResult<()> {
    let (Some(last), true) = (arguments.last(), is_in_program(py)) else { return Ok(()) };
    let pending = |one: &&Bound<'py, PyAny>| one.cast_exact::<Array>().is_ok_and(|array| !is_at_hand(array.get()));
    if pending(last) {
        return match last.cast_exact::<Array>().is_ok_and(|array| may_wait(array.get())) {
            true => tellers()?.divided.bind(py).call1((function, PyTuple::new(py, arguments)?)).map(drop),
            false => Ok(()),
        };
    }
    match is_critical(last) {
        true if !arguments.iter().any(pending) => again(py, function.bind(py), PyTuple::new(py, arguments)?),
        true if (is_zero(last) || has_zeros(last)) && result.len() > 0 => {
            tellers()?.met.bind(py).call1((function, ZERO, result.dtype.numpy_name())).map(drop)
        }
        _ => Ok(()),
    }
}

/// Is it the number 0?
fn is_zero(divisor: &Bound<'_, PyAny>) -> bool {
    match classify(divisor) {
        Some((_, Operand::Number(Number::Int(value)))) => value == 0,
        Some((_, Operand::Number(Number::Bool(value)))) => !value,
        _ => false,
    }
}

/// Has a computed divisor elements that are 0?
fn has_zeros(divisor: &Bound<'_, PyAny>) -> bool {
    let Ok(array) = divisor.cast_exact::<Array>() else { return false };
    let array = array.get();
    match array.dtype.size() {
        1 => any(array, |x: u8| x == 0),
        2 => any(array, |x: u16| x == 0),
        4 => any(array, |x: u32| x == 0),
        _ => any(array, |x: u64| x == 0),
    }
}

/// The operands of a call into an array, if all are computed; those that share memory with it, and are little, as copies.
pub fn kept<'py, const N: usize>(
    arguments: [&Bound<'py, PyAny>; N],
    out: &Array,
) -> PyResult<Option<[Bound<'py, PyAny>; N]>> {
    let mut kept = arguments.map(Bound::clone);
    for one in &mut kept {
        let Ok(array) = one.cast_exact::<Array>().map(Bound::get) else { continue };
        let copy = match array.shares_memory(out) {
            true if is_little(array) => crate::create::copied(array),
            true => None,
            false if is_at_hand(array) => continue,
            false => None,
        };
        let Some(copy) = copy else { return Ok(None) };
        *one = Bound::new(one.py(), copy)?.into_any();
    }
    Ok(Some(kept))
}

/// As [`of_call`], of a call whose result may have replaced its operands: only what flags and divisors tell is known.
#[cold]
pub fn of_call_into<'py>(
    py: Python<'py>,
    function: &Py<PyAny>,
    last: &Bound<'py, PyAny>,
    sign: Sign,
    result: &Array,
) -> PyResult<()> {
    let flags = take_flags();
    let met = match sign {
        Sign::Divisor if is_zero(last) && result.len() > 0 || has_zeros(last) => ZERO,
        Sign::Flags => borne_out(result, flags),
        _ => 0,
    };
    if met != 0 && is_in_program(py) {
        tellers()?.met.bind(py).call1((function, met, result.dtype.numpy_name()))?;
    }
    Ok(())
}

/// Tells of the errors of a fold, as [`of_call`] does.
#[cold]
pub fn of_fold(py: Python<'_>, function: &Py<PyAny>, array: &Array, axes: u16, result: &Array) -> PyResult<()> {
    if borne_out(result, take_flags()) == 0 || !is_in_program(py) {
        return Ok(());
    }
    let axes: Vec<usize> = (0..16).filter(|axis| axes >> axis & 1 == 1).collect();
    let axes = PyTuple::new(py, axes)?;
    let copy = crate::array::alias(array)?;
    let arguments = PyTuple::new(py, [Bound::new(py, copy)?.into_any(), axes.into_any()])?;
    again(py, &function.bind(py).getattr("reduce")?, arguments)
}

/// Tells of the errors of a product of vectors and matrices by NumPy's function of this name, as [`of_call`] does.
#[cold]
pub fn of_product<'py>(py: Python<'py>, name: &str, factors: [&Bound<'py, PyAny>; 2], result: &Array) -> PyResult<()> {
    if borne_out(result, take_flags()) == 0 || !is_in_program(py) {
        return Ok(());
    }
    again(py, &py.import("numpy")?.getattr(name)?, PyTuple::new(py, factors)?)
}

fn again<'py>(py: Python<'py>, function: &Bound<'py, PyAny>, arguments: Bound<'py, PyTuple>) -> PyResult<()> {
    tellers()?.again.bind(py).call1((function, arguments)).map(drop)
}

/// Has an array elements that another type cannot hold, and is it computed?
pub fn loses(array: &Array, dtype: DType) -> bool {
    if array.link.is_some() || !array.dtype.is_float() && !array.dtype.is_complex() {
        return false;
    }
    let limits: (f64, f64) = match dtype {
        DType::I8 => (i8::MIN.into(), i8::MAX.into()),
        DType::I16 => (i16::MIN.into(), i16::MAX.into()),
        DType::I32 => (i32::MIN.into(), i32::MAX.into()),
        DType::I64 => (i64::MIN as f64, i64::MAX as f64),
        DType::U8 => (0.0, u8::MAX.into()),
        DType::U16 => (0.0, u16::MAX.into()),
        DType::U32 => (0.0, u32::MAX.into()),
        DType::U64 => (0.0, u64::MAX as f64),
        DType::F32 | DType::C64 => {
            let beyond = |x: f64| x.is_finite() && x.abs() > f64::from(f32::MAX);
            return match array.dtype {
                DType::F64 => any(array, beyond),
                DType::C128 => any(array, |z: [f64; 2]| beyond(z[0]) || dtype == DType::C64 && beyond(z[1])),
                _ => false,
            };
        }
        _ => return false,
    };
    let outside = |x: f64| !(limits.0 - 1.0 < x && x < limits.1 + 1.0);
    match array.dtype {
        DType::F64 => any(array, outside),
        DType::F32 => any(array, |x: f32| outside(x.into())),
        DType::C64 => any(array, |z: [f32; 2]| outside(z[0].into())),
        _ => any(array, |z: [f64; 2]| outside(z[0])),
    }
}

/// Are there elements of one type that another one cannot hold?
fn may_lose(from: DType, to: DType) -> bool {
    let inexact = |dtype: DType| dtype.is_float() || dtype.is_complex();
    inexact(from) && to != DType::Bool && (!inexact(to) || matches!(to, DType::F32 | DType::C64))
}

/// Warns of losses by a conversion of an array to the type with this number, if its data is computed.
#[pyfunction]
pub fn warn_of_cast(py: Python<'_>, array: &Bound<'_, Array>, code: u8) -> PyResult<()> {
    let Some(dtype) = DType::from_code(code) else { return Ok(()) };
    let asked = errors_asked() && may_lose(array.get().dtype, dtype);
    if !asked && !loses(array.get(), dtype) {
        return Ok(());
    }
    let convert = py.import("numpy")?.getattr("ndarray")?.getattr("astype")?;
    // That imaginary parts are lost is warned of elsewhere.
    let loses_part = array.borrow().dtype.is_complex() && !dtype.is_complex();
    let from = if loses_part { array.getattr("real")? } else { array.clone().into_any() };
    let dtype = crate::numpy_types::numpy_dtype(py, dtype)?;
    again(py, &convert, PyTuple::new(py, [from, dtype])?)
}
