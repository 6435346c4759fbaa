//! Arrays in files of NumPy's `.npy` format.

use crate::error::{Out, bh_status, frame, frame_out, read_text, with_place};
use crate::handle::{self, bh_array, bh_context, context};
use bh_recorder::{Inside, Patience};
use std::ffi::c_char;

/// Writes an array to a file in NumPy's format, as `numpy.save`. Waits for the elements. Of a view that is not in one piece
/// a copy is made for the time of the call.
///
/// # Safety
/// `path` must be a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_save(path: *const c_char, a: *const bh_array) -> bh_status {
    frame(|| {
        let _inside = Inside::enter();
        // SAFETY: `path` is null, which `read_text` refuses, or a C string, as `# Safety` asks, and is used within the
        // call only.
        let path = unsafe { read_text(path, "path") }?;
        let array = handle::array(a, "a")?;
        with_place(|place| bh_compose::save(array.recorder, path, array.id, place, &mut Patience::endless()))
    })
}

/// A new array with the contents of a file in NumPy's format, as `numpy.load`. The data goes from the file to the array
/// without detours.
///
/// # Safety
/// `out` must be null or the address of a pointer, `path` a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_load(out: *mut *mut bh_array, context: *mut bh_context, path: *const c_char) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    frame_out(out, || {
        let _inside = Inside::enter();
        // SAFETY: `path` is null, which `read_text` refuses, or a C string, as `# Safety` asks, and is used within the
        // call only.
        let path = unsafe { read_text(path, "path") }?;
        let context = self::context(context)?;
        with_place(|place| bh_compose::load(context.recorder, path, place)).map(|array| context.array(array))
    })
}
