//! Derivatives of the operations that a stretch of a program records.

use crate::context::store;
use crate::error::{Out, argument, bh_status, frame, frame_out, null};
use crate::handle::{self, Array, bh_array};
use bh_bytecode::Constant;
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_recorder::{ArrayId, ArrayInfo, Location, Recorder};
use bh_transform::{Disk, Taping, shaped};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A stretch of a program that is differentiated, see `bh_gradient_begin`.
pub struct bh_stretch {
    _private: [u8; 0],
}

struct Stretch {
    taping: Taping,
    /// The handle of the context, as a number.
    context: usize,
    /// The arguments as they were at the begin.
    arguments: Vec<ArrayInfo>,
}

/// Stretches by number; no number is given twice.
struct Stretches {
    last: usize,
    open: Option<HashMap<usize, Stretch>>,
}

static STRETCHES: Mutex<Stretches> = Mutex::new(Stretches { last: 0, open: None });

fn stretches() -> MutexGuard<'static, Stretches> {
    STRETCHES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes a stretch out of the table.
fn take(stretch: *mut bh_stretch) -> Result<Stretch> {
    if stretch.is_null() {
        return Err(null("stretch"));
    }
    let found = stretches().open.as_mut().and_then(|open| open.remove(&stretch.addr()));
    found.ok_or_else(|| Error::new(status::HANDLE, "argument 'stretch': there is no such stretch, or it has ended"))
}

/// Checks an argument: real or complex floating-point numbers that fill memory of their own in C order.
fn fitting(recorder: &Recorder, array: ArrayId) -> Result<ArrayInfo> {
    let info = recorder.info(array)?;
    if !info.dtype.is_float() && !info.dtype.is_complex() {
        let text = format!(
            "argument 'arguments': derivatives are taken by floating-point and complex numbers, not by type {}",
            info.dtype
        );
        return Err(Error::new(status::TYPE, text));
    }
    let is_whole = info.view.start() == 0 && info.view.len() == info.base_len && info.view.is_contiguous();
    if !is_whole || info.pinned || !recorder.is_only_handle(array)? {
        let text =
            "argument 'arguments': an array is not all of memory of its own in C order; differentiate by a copy of it";
        return Err(argument(text.into()));
    }
    Ok(info)
}

/// Begins a stretch of the program that is to be differentiated by the values that `count` arrays have now. Each of them is
/// floating-point or complex and fills memory of its own, as the results of `bh_copy_new` do; the program may change them. Until the
/// stretch ends, elements that depend on them cannot be read. The stretch has all operations of the context, on any thread.
/// `memory`: the most bytes that the derivative may take, or 0 for no bound; values that do not fit are computed again. `disk`: how
/// many bytes of states of the program may go to a temporary file before that, or 0 for none.
///
/// # Safety
/// `out` must be null or the address of a pointer; `arguments` must be null or `count` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_gradient_begin(
    out: *mut *mut bh_stretch,
    count: usize,
    arguments: *const *const bh_array,
    memory: u64,
    disk: u64,
) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    frame_out(out, || {
        if disk > 0 && memory == 0 {
            return Err(argument("argument 'disk': states go to the disk only under a bound of memory".into()));
        }
        // SAFETY: `arguments` is null or `count` handles, as `# Safety` asks.
        let (first, ids) = unsafe { crate::compose::listed(count, arguments, "arguments") }?;
        if (1..ids.len()).any(|at| ids[..at].contains(&ids[at])) {
            return Err(argument("argument 'arguments': an array is given twice".into()));
        }
        let fitting = |&id| fitting(first.recorder, id);
        let arguments = ids.iter().map(fitting).collect::<Result<Vec<ArrayInfo>>>()?;
        let recorder = handle::shared_recorder(&first)?;
        let disk = (disk > 0).then(|| Disk::open(None, disk)).transpose()?;
        let taping = Taping::begin(recorder, &ids, (memory > 0).then_some((memory, disk)))?;
        let stretch = Stretch { taping, context: handle::context_of(first)?.addr(), arguments };
        let mut stretches = stretches();
        stretches.last += 1;
        let number = stretches.last;
        stretches.open.get_or_insert_default().insert(number, stretch);
        Ok(std::ptr::without_provenance_mut(number))
    })
}

/// Ends a stretch, and records the derivatives of `result`, an array of one real number, by the arguments that the stretch began
/// with: `gradients` gets a new array for each of them, of its type and shape. The gradient by an argument that the stretch has changed
/// is that by its value at the begin; by complex numbers, it is the conjugate of the direction of steepest ascent. The stretch is gone
/// afterwards, also after an error.
///
/// # Safety
/// `gradients` must be null or room for as many pointers as the stretch has arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_gradient(
    gradients: *mut *mut bh_array,
    stretch: *mut bh_stretch,
    result: *const bh_array,
) -> bh_status {
    frame(|| {
        let Stretch { taping, context, arguments } = take(stretch)?;
        handle::context(std::ptr::without_provenance_mut(context))?;
        let result = handle::array(result, "result")?;
        if gradients.is_null() {
            return Err(null("gradients"));
        }
        if handle::context_of(result)?.addr() != context {
            return Err(Error::new(status::HANDLE, "argument 'result': the array belongs to another context"));
        }
        for (at, id) in differentiate(taping, &arguments, result)?.into_iter().enumerate() {
            // SAFETY: there is room for a pointer for each argument, as `# Safety` asks.
            unsafe { store(gradients.add(at), result.sibling(id)) }?;
        }
        Ok(())
    })
}

fn differentiate(taping: Taping, arguments: &[ArrayInfo], result: Array) -> Result<Vec<ArrayId>> {
    let recorder = result.recorder;
    let info = recorder.info(result.id)?;
    if info.view.len() != 1 || !info.dtype.is_float() {
        let text = format!(
            "argument 'result': one real number is differentiated, not an array of shape {:?} and type {}",
            info.view.shape(),
            info.dtype
        );
        return Err(Error::new(status::SHAPE, text));
    }
    let pullback = taping.end(&[result.id], false)?;
    let number = |value: f64, like: &ArrayInfo| {
        recorder.full(Constant::from_value(value).cast(like.dtype), like.view.shape(), Location::UNKNOWN)
    };
    let one = number(1.0, &info)?;
    let begun = pullback.begin(&[one], true);
    recorder.free_later(one);
    let mut way = begun?;
    pullback.run_to(&mut way, 0)?;
    let mut gradient = |argument: &ArrayInfo| match pullback.take(&mut way, argument.base)? {
        Some(flat) => shaped(recorder, &flat, argument.view.shape()),
        None => number(0.0, argument),
    };
    let (found, failed): (Vec<_>, Vec<_>) = arguments.iter().map(&mut gradient).partition(Result::is_ok);
    let found = found.into_iter().flatten();
    match failed.into_iter().find_map(Result::err) {
        Some(error) => {
            found.for_each(|id| recorder.free_later(id));
            Err(error)
        }
        None => Ok(found.collect()),
    }
}

/// Ends a stretch of which no derivative is wanted.
#[unsafe(no_mangle)]
pub extern "C" fn bh_gradient_cancel(stretch: *mut bh_stretch) -> bh_status {
    frame(|| take(stretch).map(drop))
}
