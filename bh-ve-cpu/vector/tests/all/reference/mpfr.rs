//! GNU MPFR as the multiple-precision reference, loaded at run time: the library is on every machine with gcc, and no
//! build needs its headers.

use libloading::Library;
use std::ffi::c_int;

/// A number, laid out as `__mpfr_struct`.
#[repr(C)]
struct Number {
    precision: isize,
    sign: c_int,
    exponent: isize,
    limbs: *mut u64,
}

type UnaryFn = unsafe extern "C" fn(*mut Number, *const Number, c_int) -> c_int;
type BinaryFn = unsafe extern "C" fn(*mut Number, *const Number, *const Number, c_int) -> c_int;

/// Round to nearest.
const NEAREST: c_int = 0;
/// Enough bits that the reference's own error is invisible.
const PRECISION: isize = 110;

/// The reference library and registers to compute in.
pub struct Mpfr {
    library: Library,
    set: unsafe extern "C" fn(*mut Number, f64, c_int) -> c_int,
    get: unsafe extern "C" fn(*const Number, c_int) -> f64,
    subtract: unsafe extern "C" fn(*mut Number, *const Number, f64, c_int) -> c_int,
    scale: unsafe extern "C" fn(*mut Number, *const Number, isize, c_int) -> c_int,
    registers: [Box<Number>; 4],
}

/// A function of the reference.
#[derive(Clone, Copy)]
pub struct Function(Arity);

#[derive(Clone, Copy)]
enum Arity {
    Unary(UnaryFn),
    Binary(BinaryFn),
}

impl Mpfr {
    /// Loads the library.
    pub fn load() -> Result<Mpfr, String> {
        // SAFETY: loading MPFR runs no code with requirements; the signatures below are those of mpfr.h.
        unsafe {
            let library = Library::new("libmpfr.so.6")
                .map_err(|error| format!("the reference needs libmpfr.so.6 (Debian package libmpfr6): {error}"))?;
            let symbol = |error: libloading::Error| error.to_string();
            let init = *library.get::<unsafe extern "C" fn(*mut Number, isize)>(b"mpfr_init2\0").map_err(symbol)?;
            let register = || {
                let mut number = Box::new(Number { precision: 0, sign: 0, exponent: 0, limbs: std::ptr::null_mut() });
                init(&mut *number, PRECISION);
                number
            };
            Ok(Mpfr {
                set: *library.get(b"mpfr_set_d\0").map_err(symbol)?,
                get: *library.get(b"mpfr_get_d\0").map_err(symbol)?,
                subtract: *library.get(b"mpfr_sub_d\0").map_err(symbol)?,
                scale: *library.get(b"mpfr_mul_2si\0").map_err(symbol)?,
                registers: [register(), register(), register(), register()],
                library,
            })
        }
    }

    /// The function behind `mpfr_NAME`.
    pub fn function(&self, name: &str, inputs: usize) -> Result<Function, String> {
        let symbol = format!("mpfr_{name}\0");
        // SAFETY: the mathematical functions of mpfr.h have these signatures by their number of arguments.
        unsafe {
            if inputs == 2 {
                self.library.get(symbol.as_bytes()).map(|function| Function(Arity::Binary(*function)))
            } else {
                self.library.get(symbol.as_bytes()).map(|function| Function(Arity::Unary(*function)))
            }
        }
        .map_err(|error| error.to_string())
    }

    /// Computes f(x, y), keeps it for [`Mpfr::distance`], and returns it rounded.
    pub fn evaluate(&mut self, function: Function, x: f64, y: f64) -> f64 {
        let [result, left, right, _] = &mut self.registers;
        // SAFETY: the registers were initialised by mpfr_init2 and are distinct.
        unsafe {
            (self.set)(&mut **left, x, NEAREST);
            match function.0 {
                Arity::Unary(f) => f(&mut **result, &**left, NEAREST),
                Arity::Binary(f) => {
                    (self.set)(&mut **right, y, NEAREST);
                    f(&mut **result, &**left, &**right, NEAREST)
                }
            };
            (self.get)(&**result, NEAREST)
        }
    }

    /// |got - result| in units of 2^exponent, for the last result and a finite `got`.
    pub fn distance(&mut self, got: f64, exponent: i32) -> f64 {
        let [result, _, _, difference] = &mut self.registers;
        // SAFETY: the registers were initialised by mpfr_init2 and are distinct.
        unsafe {
            (self.subtract)(&mut **difference, &**result, got, NEAREST);
            (self.scale)(&mut **difference, &**difference, -(exponent as isize), NEAREST);
            (self.get)(&**difference, NEAREST).abs()
        }
    }
}
