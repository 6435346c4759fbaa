//! Extension methods: operations that components add at run time.

use crate::constant::operand;
use crate::error::{Out, argument, bh_status, frame, frame_out, null, read_text, with_place};
use crate::handle::{self, bh_array, bh_context, context};
use bh_bytecode::DType;
use bh_bytecode::batch::MAX_OPERANDS;
use bh_bytecode::methods::{self, Form, Misfit};
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_recorder::ArrayInfo;
use std::ffi::c_char;

/// Makes an extension method known to a context. With `library` (a path), the component named `component` first loads the
/// method from it; else both are null, and some component must have it already.
///
/// # Safety
/// `name` must be null or a C string, and so must `component` and `library`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_extmethod_register(
    context: *mut bh_context,
    name: *const c_char,
    component: *const c_char,
    library: *const c_char,
) -> bh_status {
    frame(|| {
        let context = self::context(context)?;
        // SAFETY: `name` is null, which `read_text` refuses, or a C string, as `# Safety` asks, and is used within the
        // call only.
        let name = unsafe { read_text(name, "name") }?;
        if !library.is_null() {
            // SAFETY: each is null, which `read_text` refuses, or a C string, as `# Safety` asks, and is used within
            // the call only.
            let (component, library) = unsafe { (read_text(component, "component")?, read_text(library, "library")?) };
            if [name, component].iter().any(|word| word.is_empty() || word.contains(char::is_whitespace)) {
                return Err(argument(format!(
                    "extension method '{name}' of component '{component}': names have no spaces"
                )));
            }
            let answer = context.recorder.message(&format!("extmethod-library {component} {name} {library}"))?;
            if answer.is_empty() {
                let text =
                    format!("component '{component}' does not take libraries of extension methods, or is not there");
                return Err(Error::new(status::UNSUPPORTED, text));
            }
        }
        context.recorder.refresh_extension(name).map(drop)
    })
}

/// Calls an extension method on outputs and inputs (arrays or constants), of which there are at most 8 together.
///
/// # Safety
/// `name` must be null or a C string, `outs` null or `out_count` handles, and `inputs` null or `input_count` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_extmethod(
    name: *const c_char,
    out_count: usize,
    outs: *const *mut bh_array,
    input_count: usize,
    inputs: *const *const bh_array,
) -> bh_status {
    frame(|| {
        // SAFETY: `name` is null or a C string, and each list null or as many handles as its count says, as `# Safety`
        // asks; all are used within the call only.
        let (name, outs, inputs) = unsafe {
            (read_text(name, "name")?, handles(out_count, outs, "outs")?, handles(input_count, inputs, "inputs")?)
        };
        if methods::shipped(name).is_some() { call_shipped(name, outs, inputs) } else { call(name, outs, inputs) }
    })
}

/// # Safety
/// `handles` must be null or `count` handles that live as long as the result.
unsafe fn handles<'a, T>(count: usize, handles: *const T, name: &str) -> Result<&'a [T]> {
    if count > MAX_OPERANDS {
        return Err(argument(format!("{count} '{name}' are more than the {MAX_OPERANDS} operands of a call")));
    }
    if handles.is_null() && count > 0 {
        return Err(null(name));
    }
    // SAFETY: not null, and so `count` handles that live as long as the result, as `# Safety` asks.
    Ok(if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(handles, count) } })
}

fn call(name: &str, outs: &[*mut bh_array], inputs: &[*const bh_array]) -> Result<()> {
    let first = *outs.first().ok_or_else(|| argument(format!("{name}: there must be an output")))?;
    let mut home = Some(handle::array(first, "out")?);
    let mut targets = Vec::with_capacity(outs.len());
    for &out in outs {
        operand(out, &mut home, "out")?;
        targets.push(handle::array(out, "out")?.id);
    }
    let inputs = inputs.iter().map(|&input| operand(input, &mut home, "input")).collect::<Result<Vec<_>>>()?;
    let recorder = handle::array(first, "out")?.recorder;
    let opcode = recorder.extension(name)?;
    with_place(|place| recorder.call_extension(opcode, &targets, &inputs, place))
}

/// Calls a method that comes with bh: what its operands have to be is known, and checked before anything is recorded.
fn call_shipped(name: &str, outs: &[*mut bh_array], inputs: &[*const bh_array]) -> Result<()> {
    let info = |handle: *const bh_array, name: &str| {
        let array = handle::array(handle, name)?;
        array.recorder.info(array.id)
    };
    let outputs = outs.iter().map(|&out| info(out, "out")).collect::<Result<Vec<_>>>()?;
    let sources = inputs.iter().map(|&input| info(input, "input")).collect::<Result<Vec<_>>>()?;
    fn forms(infos: &[ArrayInfo]) -> Vec<Form<'_>> {
        infos.iter().map(|info| Form { dtype: info.dtype, shape: info.view.shape() }).collect()
    }
    methods::check(name, &forms(&outputs), &forms(&sources)).map_err(|misfit| match misfit {
        Misfit::Count(text) => argument(text),
        Misfit::Type(text) => Error::new(status::TYPE, text),
        Misfit::Shape(text) => Error::new(status::SHAPE, text),
    })?;
    call(name, outs, inputs)
}

/// Makes the output of a method that comes with bh, of the type and shape that follow from its inputs, and calls it.
fn shipped_new(
    name: &str,
    out: Out<*mut bh_array>,
    inputs: &[*const bh_array],
    form: impl FnOnce(&[ArrayInfo]) -> (DType, Vec<i64>),
) -> bh_status {
    frame_out(out, || {
        let mut infos = Vec::with_capacity(inputs.len());
        for &input in inputs {
            let array = handle::array(input, "input")?;
            infos.push(array.recorder.info(array.id)?);
        }
        let (dtype, shape) = form(&infos);
        let home = handle::array(inputs[0], "input")?;
        let made = home.sibling(home.recorder.empty(dtype, &shape)?);
        call_shipped(name, &[made], inputs).map(|()| made).inspect_err(|_| {
            // The caller gets no handle; freeing fails only if a shutdown came first.
            let _ = handle::array(made, "out").and_then(|array| array.recorder.free(array.id));
        })
    })
}

/// The method `matmul`; the header has the words of its row.
#[unsafe(no_mangle)]
pub extern "C" fn bh_matmul(out: *mut bh_array, a: *const bh_array, b: *const bh_array) -> bh_status {
    frame(|| call_shipped("matmul", &[out], &[a, b]))
}

/// As `bh_matmul`, into a new array.
///
/// # Safety
/// `out` must be null or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_matmul_new(out: *mut *mut bh_array, a: *const bh_array, b: *const bh_array) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    shipped_new("matmul", out, &[a, b], |infos| {
        let (left, right) = (infos[0].view.shape(), infos[1].view.shape());
        let rows = left.split_last().map_or(&[][..], |(_, rows)| rows);
        let columns = if right.len() > 1 { right.last() } else { None };
        (infos[0].dtype, rows.iter().chain(columns).copied().collect())
    })
}

/// The method `solve`; the header has the words of its row.
#[unsafe(no_mangle)]
pub extern "C" fn bh_solve(out: *mut bh_array, a: *const bh_array, b: *const bh_array) -> bh_status {
    frame(|| call_shipped("solve", &[out], &[a, b]))
}

/// The method `lu`; the header has the words of its row.
#[unsafe(no_mangle)]
pub extern "C" fn bh_lu(out: *mut bh_array, permutation: *mut bh_array, a: *const bh_array) -> bh_status {
    frame(|| call_shipped("lu", &[out, permutation], &[a]))
}

/// The method `cholesky`; the header has the words of its row.
#[unsafe(no_mangle)]
pub extern "C" fn bh_cholesky(out: *mut bh_array, a: *const bh_array) -> bh_status {
    frame(|| call_shipped("cholesky", &[out], &[a]))
}

/// The method `fft`; the header has the words of its row.
#[unsafe(no_mangle)]
pub extern "C" fn bh_fft(out: *mut bh_array, a: *const bh_array) -> bh_status {
    frame(|| call_shipped("fft", &[out], &[a]))
}

/// The method `ifft`; the header has the words of its row.
#[unsafe(no_mangle)]
pub extern "C" fn bh_ifft(out: *mut bh_array, a: *const bh_array) -> bh_status {
    frame(|| call_shipped("ifft", &[out], &[a]))
}

/// The method `sort`; the header has the words of its row.
#[unsafe(no_mangle)]
pub extern "C" fn bh_sort(out: *mut bh_array, a: *const bh_array) -> bh_status {
    frame(|| call_shipped("sort", &[out], &[a]))
}

/// As `bh_sort`, into a new array.
///
/// # Safety
/// `out` must be null or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_sort_new(out: *mut *mut bh_array, a: *const bh_array) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    shipped_new("sort", out, &[a], |infos| (infos[0].dtype, infos[0].view.shape().to_vec()))
}

/// As `bh_argsort`, into a new array.
///
/// # Safety
/// `out` must be null or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_argsort_new(out: *mut *mut bh_array, a: *const bh_array) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    shipped_new("argsort", out, &[a], |infos| (DType::I64, infos[0].view.shape().to_vec()))
}

/// The method `argsort`; the header has the words of its row.
#[unsafe(no_mangle)]
pub extern "C" fn bh_argsort(out: *mut bh_array, a: *const bh_array) -> bh_status {
    frame(|| call_shipped("argsort", &[out], &[a]))
}

/// For each of `values` the position (i64) in the vector `sorted` before which it could stand: the first one, or, if `right`
/// is not 0, the last.
#[unsafe(no_mangle)]
pub extern "C" fn bh_searchsorted(
    out: *mut bh_array,
    sorted: *const bh_array,
    values: *const bh_array,
    right: i32,
) -> bh_status {
    let name = if right == 0 { "searchsorted_left" } else { "searchsorted_right" };
    frame(|| call_shipped(name, &[out], &[sorted, values]))
}
