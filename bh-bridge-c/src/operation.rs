//! Operations: one or two functions for each row of the opcode table, and one for all.

use crate::constant::operand;
use crate::create::{bh_dtype, dtype};
use crate::error::{Out, argument, bh_status, frame, frame_out, null, with_place};
use crate::handle::{self, Array, bh_array};
use crate::view::counted_axis;
use bh_bytecode::{DType, Opcode};
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_recorder::Input;

/// An operation: one of the `BH_OP_*` numbers.
pub type bh_opcode = u16;

/// The axis that stands for all.
const ALL_AXES: i32 = i32::MAX;

/// The most inputs of an operation of the opcode table, and one more.
const INPUTS: usize = 4;

/// How messages call them.
const NAMES: [&str; INPUTS] = ["a", "b", "c", "d"];

/// Operands of an operation, looked up, in place.
struct Operands {
    home: Option<Array>,
    inputs: [Input; INPUTS],
    count: usize,
}

impl Operands {
    /// None yet; those that follow are of the context of `home`, if there is one.
    #[inline]
    fn new(home: Option<Array>) -> Operands {
        let nothing = Input::Constant(bh_bytecode::Constant { bits: [0; 2], dtype: 0, reserved: [0; 7] });
        Operands { home, inputs: [nothing; INPUTS], count: 0 }
    }

    #[inline(always)]
    fn find(&mut self, handles: &[*const bh_array]) -> Result<()> {
        if handles.len() > INPUTS {
            return Err(argument(format!("{} inputs are more than an operation may have", handles.len())));
        }
        for (position, &handle) in handles.iter().enumerate() {
            self.inputs[position] = operand(handle, &mut self.home, NAMES[position])?;
        }
        self.count = handles.len();
        Ok(())
    }

    fn inputs(&self) -> &[Input] {
        &self.inputs[..self.count]
    }

    /// The context that the operands are of.
    fn home(&self, opcode: Opcode) -> Result<Array> {
        self.home.ok_or_else(|| argument(format!("{}: at least one operand must be an array", opcode.name())))
    }
}

#[inline]
fn into(opcode: Opcode, param: u16, out: *mut bh_array, inputs: &[*const bh_array]) -> bh_status {
    frame(|| {
        let target = handle::array(out, "out")?;
        let mut operands = Operands::new(Some(target));
        operands.find(inputs)?;
        with_place(|place| target.recorder.operate(opcode, param, target.id, operands.inputs(), place))
    })
}

#[inline]
fn new(
    opcode: Opcode,
    param: u16,
    dtype: Option<DType>,
    out: Out<*mut bh_array>,
    inputs: &[*const bh_array],
) -> bh_status {
    frame_out(out, || {
        let mut operands = Operands::new(None);
        operands.find(inputs)?;
        let home = operands.home(opcode)?;
        let made = with_place(|place| home.recorder.operate_new(opcode, param, dtype, operands.inputs(), place))?;
        Ok(home.sibling(made))
    })
}

/// The axis mask of a reduction or an accumulate, whose box has as many axes as the input that has most.
fn axes(opcode: Opcode, inputs: &[*const bh_array], axis: i32) -> Result<u16> {
    let mut rank = 0;
    for (&input, name) in inputs.iter().zip(NAMES) {
        let array = handle::array(input, name)?;
        rank = rank.max(array.recorder.ask(array.id, |array| array.view.shape.len())?);
    }
    if axis == ALL_AXES {
        return Ok(((1u32 << rank) - 1) as u16);
    }
    let axis = counted_axis(axis, rank).map_err(|error| argument(format!("{}: {error}", opcode.name())))?;
    Ok(1 << axis)
}

fn fold_into(opcode: Opcode, out: *mut bh_array, inputs: &[*const bh_array], axis: i32) -> bh_status {
    match axes(opcode, inputs, axis) {
        Ok(mask) => into(opcode, mask, out, inputs),
        Err(error) => frame(|| Err(error)),
    }
}

fn fold_new(opcode: Opcode, out: Out<*mut bh_array>, inputs: &[*const bh_array], axis: i32) -> bh_status {
    match axes(opcode, inputs, axis) {
        Ok(mask) => new(opcode, mask, None, out, inputs),
        Err(error) => frame_out(out, || Err(error)),
    }
}

/// Exports the functions of one row of the opcode table. Their declarations are generated from the same table.
macro_rules! export {
    ($variant:ident, $name:literal, System, $inputs:literal) => {};
    (Powi, $name:literal, $kind:ident, $inputs:literal) => {
        export!(@ $name, fn f(out: *mut bh_array, a: *const bh_array, exponent: i32) -> {
            match u16::try_from(exponent) {
                Ok(exponent) => into(Opcode::Powi, exponent, out, &[a]),
                Err(_) => frame(|| Err(argument(format!("powi: the exponent is {exponent}, but must be 2 to 5")))),
            }
        });
        export!(@new $name, fn f(out, a: *const bh_array, exponent: i32) -> {
            match u16::try_from(exponent) {
                Ok(exponent) => new(Opcode::Powi, exponent, None, out, &[a]),
                Err(_) => frame_out(out, || Err(argument(format!("powi: the exponent is {exponent}, but must be 2 to 5")))),
            }
        });
    };
    (Copy, $name:literal, $kind:ident, $inputs:literal) => {
        export!(@ $name, fn f(out: *mut bh_array, a: *const bh_array) -> { into(Opcode::Copy, 0, out, &[a]) });
    };
    ($variant:ident, $name:literal, Elementwise, 1) => {
        export!(@ $name, fn f(out: *mut bh_array, a: *const bh_array) -> { into(Opcode::$variant, 0, out, &[a]) });
        export!(@new $name, fn f(out, a: *const bh_array) -> {
            new(Opcode::$variant, 0, None, out, &[a])
        });
    };
    ($variant:ident, $name:literal, Elementwise, 2) => {
        export!(@ $name, fn f(out: *mut bh_array, a: *const bh_array, b: *const bh_array) -> {
            into(Opcode::$variant, 0, out, &[a, b])
        });
        export!(@new $name, fn f(out, a: *const bh_array, b: *const bh_array) -> {
            new(Opcode::$variant, 0, None, out, &[a, b])
        });
    };
    ($variant:ident, $name:literal, Elementwise, 3) => {
        export!(@ $name, fn f(out: *mut bh_array, a: *const bh_array, b: *const bh_array, c: *const bh_array) -> {
            into(Opcode::$variant, 0, out, &[a, b, c])
        });
        export!(@new $name, fn f(out, a: *const bh_array, b: *const bh_array, c: *const bh_array) -> {
                new(Opcode::$variant, 0, None, out, &[a, b, c])
            });
    };
    ($variant:ident, $name:literal, Reduction, 1) => { export!(fold $variant, $name); };
    ($variant:ident, $name:literal, Reduction, 2) => {
        export!(@ $name, fn f(out: *mut bh_array, a: *const bh_array, b: *const bh_array, axis: i32) -> {
            fold_into(Opcode::$variant, out, &[a, b], axis)
        });
        export!(@new $name, fn f(out, a: *const bh_array, b: *const bh_array, axis: i32) -> {
                fold_new(Opcode::$variant, out, &[a, b], axis)
            });
    };
    ($variant:ident, $name:literal, Accumulate, 1) => { export!(fold $variant, $name); };
    (fold $variant:ident, $name:literal) => {
        export!(@ $name, fn f(out: *mut bh_array, a: *const bh_array, axis: i32) -> {
            fold_into(Opcode::$variant, out, &[a], axis)
        });
        export!(@new $name, fn f(out, a: *const bh_array, axis: i32) -> {
            fold_new(Opcode::$variant, out, &[a], axis)
        });
    };
    (Range, $name:literal, Generator, $inputs:literal) => {
        export!(@ $name, fn f(out: *mut bh_array, first: i64, step: i64) -> {
            frame(|| {
                let target = handle::array(out, "out")?;
                with_place(|place| target.recorder.range(target.id, first, step, place))
            })
        });
    };
    (Random, $name:literal, Generator, $inputs:literal) => {
        export!(@ $name, fn f(out: *mut bh_array, key: u64, first: i64) -> {
            frame(|| {
                let target = handle::array(out, "out")?;
                with_place(|place| target.recorder.random(target.id, key, first, place))
            })
        });
    };
    (Gather, $name:literal, Index, 2) => { export!(Gather, $name, Elementwise, 2); };
    ($variant:ident, $name:literal, Index, 2) => {
        export!(@ $name, fn f(out: *mut bh_array, a: *const bh_array, b: *const bh_array) -> {
            into(Opcode::$variant, 0, out, &[a, b])
        });
    };
    ($variant:ident, $name:literal, Index, 3) => {
        export!(@ $name, fn f(out: *mut bh_array, a: *const bh_array, b: *const bh_array, c: *const bh_array) -> {
            into(Opcode::$variant, 0, out, &[a, b, c])
        });
    };
    (@new $name:literal, fn f($out:ident, $($argument:ident: $type:ty),*) -> $body:block) => {
        const _: () = {
            /// # Safety
            /// The place must be null or the address of a pointer.
            #[unsafe(export_name = concat!("bh_", $name, "_new"))]
            unsafe extern "C" fn f(place: *mut *mut bh_array, $($argument: $type),*) -> bh_status {
                // SAFETY: null or the address of a pointer, as `# Safety` asks.
                let $out = unsafe { Out::new(place) };
                $body
            }
        };
    };
    (@ $name:expr, fn f($($argument:ident: $type:ty),*) -> $body:block) => {
        const _: () = {
            #[unsafe(export_name = concat!("bh_", $name))]
            extern "C" fn f($($argument: $type),*) -> bh_status $body
        };
    };
}

macro_rules! export_all {
    ($(($variant:ident, $name:literal, $code:literal, $kind:ident, $inputs:tt, $signature:ident $set:ident, $scalar:ident, $neutral:ident, $cost:literal, $expression:literal, [$($front:literal),*], $doc:literal)),* $(,)?) => {
        $(export!($variant, $name, $kind, $inputs);)*
    };
}
bh_bytecode::for_each_opcode!(export_all);

/// Looks the inputs of a general call up.
///
/// # Safety
/// `inputs` must be null or `count` handles that live as long as the result.
unsafe fn general<'a>(
    opcode: bh_opcode,
    count: usize,
    inputs: *const *const bh_array,
) -> Result<(Opcode, &'a [*const bh_array])> {
    let known = Opcode::from_code(opcode).filter(|opcode| !opcode.is_extension() && !opcode.is_system());
    let Some(known) = known else {
        return Err(Error::new(status::ARGUMENT, format!("argument 'opcode': there is no operation {opcode}")));
    };
    if count > INPUTS {
        return Err(argument(format!("{}: {count} inputs are more than an operation may have", known.name())));
    }
    if inputs.is_null() && count > 0 {
        return Err(null("inputs"));
    }
    // SAFETY: not null, and so `count` handles that live as long as the result, as `# Safety` asks.
    Ok((known, if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(inputs, count) } }))
}

/// Any operation with arrays and constants as inputs into an array. `param`: the axes of a reduction or an accumulate as
/// a bit mask, the exponent of powi, else 0.
///
/// # Safety
/// `inputs` must be null or `count` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_op(
    out: *mut bh_array,
    opcode: bh_opcode,
    param: u16,
    count: usize,
    inputs: *const *const bh_array,
) -> bh_status {
    // SAFETY: `inputs` is null or `count` handles, as `# Safety` asks, and they are used within the call only.
    match unsafe { general(opcode, count, inputs) } {
        Ok((opcode, inputs)) => into(opcode, param, out, inputs),
        Err(error) => frame(|| Err(error)),
    }
}

/// Any operation with arrays and constants as inputs into a new array. `dtype` is the type of the result where the inputs
/// leave it open (copy), else -1.
///
/// # Safety
/// `out` must be null or the address of a pointer; `inputs` must be null or `count` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bh_op_new(
    out: *mut *mut bh_array,
    opcode: bh_opcode,
    param: u16,
    dtype: bh_dtype,
    count: usize,
    inputs: *const *const bh_array,
) -> bh_status {
    // SAFETY: null or the address of a pointer, as `# Safety` asks.
    let out = unsafe { Out::new(out) };
    let result = if dtype == -1 { Ok(None) } else { self::dtype(dtype).map(Some) };
    // SAFETY: `inputs` is null or `count` handles, as `# Safety` asks, and they are used within the call only.
    match unsafe { general(opcode, count, inputs) }.and_then(|call| Ok((call, result?))) {
        Ok(((opcode, inputs), dtype)) => new(opcode, param, dtype, out, inputs),
        Err(error) => frame_out(out, || Err(error)),
    }
}
