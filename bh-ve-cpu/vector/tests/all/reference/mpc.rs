//! GNU MPC as the reference for complex functions, loaded at run time like MPFR beside it.

use libloading::Library;
use std::ffi::c_int;

/// A real number, laid out as `__mpfr_struct`.
#[repr(C)]
struct Real {
    precision: isize,
    sign: c_int,
    exponent: isize,
    limbs: *mut u64,
}

/// A number, laid out as `__mpc_struct`.
#[repr(C)]
struct Number {
    re: Real,
    im: Real,
}

type UnaryFn = unsafe extern "C" fn(*mut Number, *const Number, c_int) -> c_int;
type BinaryFn = unsafe extern "C" fn(*mut Number, *const Number, *const Number, c_int) -> c_int;

/// Round both parts to nearest.
const NEAREST: c_int = 0;
const PRECISION: isize = 200;

/// The reference library and registers to compute in.
pub struct Mpc {
    library: Library,
    set: unsafe extern "C" fn(*mut Number, f64, f64, c_int) -> c_int,
    get: unsafe extern "C" fn(*const Real, c_int) -> f64,
    subtract: unsafe extern "C" fn(*mut Real, *const Real, f64, c_int) -> c_int,
    registers: [Box<Number>; 4],
}

impl Mpc {
    /// Loads the library.
    pub fn load() -> Result<Mpc, String> {
        let fail =
            |error: libloading::Error| format!("the reference needs libmpc.so.3 (Debian package libmpc3): {error}");
        // SAFETY: loading MPC and MPFR runs no code with requirements; the signatures are those of mpc.h and mpfr.h.
        unsafe {
            let library = Library::new("libmpc.so.3").map_err(fail)?;
            let real = Library::new("libmpfr.so.6").map_err(fail)?;
            let init = *library.get::<unsafe extern "C" fn(*mut Number, isize)>(b"mpc_init2\0").map_err(fail)?;
            let zero = || Real { precision: 0, sign: 0, exponent: 0, limbs: std::ptr::null_mut() };
            let register = || {
                let mut number = Box::new(Number { re: zero(), im: zero() });
                init(&mut *number, PRECISION);
                number
            };
            let mpc = Mpc {
                set: *library.get(b"mpc_set_d_d\0").map_err(fail)?,
                get: *real.get(b"mpfr_get_d\0").map_err(fail)?,
                subtract: *real.get(b"mpfr_sub_d\0").map_err(fail)?,
                registers: [register(), register(), register(), register()],
                library,
            };
            // MPC holds the library loaded anyway.
            std::mem::forget(real);
            Ok(mpc)
        }
    }

    /// |f(x, y) - got| / |f(x, y)| for the function behind `mpc_NAME`; None where the result is not a finite number of
    /// ordinary magnitude.
    pub fn error(
        &mut self,
        name: &str,
        x: [f64; 2],
        y: Option<[f64; 2]>,
        got: [f64; 2],
    ) -> Result<Option<f64>, String> {
        let symbol = format!("mpc_{name}\0");
        let [result, left, right, difference] = &mut self.registers;
        // SAFETY: the registers were initialised by mpc_init2 and are distinct; the functions of mpc.h have these
        // signatures by their number of arguments.
        unsafe {
            (self.set)(&mut **left, x[0], x[1], NEAREST);
            if let Some(y) = y {
                (self.set)(&mut **right, y[0], y[1], NEAREST);
                let function = self.library.get::<BinaryFn>(symbol.as_bytes()).map_err(|error| error.to_string())?;
                function(&mut **result, &**left, &**right, NEAREST);
            } else {
                let function = self.library.get::<UnaryFn>(symbol.as_bytes()).map_err(|error| error.to_string())?;
                function(&mut **result, &**left, NEAREST);
            }
            let norm = f64::hypot((self.get)(&result.re, NEAREST), (self.get)(&result.im, NEAREST));
            if !(1e-280..1e280).contains(&norm) {
                return Ok(None);
            }
            (self.subtract)(&mut difference.re, &result.re, got[0], NEAREST);
            (self.subtract)(&mut difference.im, &result.im, got[1], NEAREST);
            let error = f64::hypot((self.get)(&difference.re, NEAREST), (self.get)(&difference.im, NEAREST));
            Ok(Some(error / norm))
        }
    }
}
