//! Methods from libraries of the user.

use crate::Strided;
use bh_core::abi::{ErrorRecord, MethodArray, MethodFn, status};
use bh_core::loader::whole_text;
use bh_core::{Error, Result};
use libloading::Library;

/// A function of a library.
pub(crate) struct UserMethod {
    pub(crate) name: String,
    run: MethodFn,
    /// Keeps the function there; libraries are never unloaded while the engine lives.
    _library: Library,
}

impl UserMethod {
    /// Loads the function `name` from a library.
    pub(crate) fn load(name: &str, path: &str) -> Result<UserMethod> {
        let failed = |what: &str, error: libloading::Error| {
            Error::new(status::LIBRARY, format!("extension method '{name}': {what} '{path}': {}", whole_text(&error)))
        };
        // SAFETY: the user names a library whose initialisers may run, as for any component.
        let library = unsafe { Library::new(path) }.map_err(|error| failed("cannot load", error))?;
        // SAFETY: the contract of a method's library is that the symbol is such a function.
        let run = unsafe { library.get::<MethodFn>(name.as_bytes()) }
            .map(|symbol| *symbol)
            .map_err(|error| failed("no such function in", error))?;
        Ok(UserMethod { name: name.to_owned(), run, _library: library })
    }

    /// Calls it.
    pub(crate) fn run(&self, outputs: &[Strided<'_>], inputs: &[Strided<'_>]) -> Result<()> {
        let strides = |views: &[Strided<'_>]| -> Vec<Vec<i64>> {
            views
                .iter()
                .map(|view| view.stride.iter().map(|&step| step as i64 / view.dtype.size() as i64).collect())
                .collect()
        };
        let describe = |views: &[Strided<'_>], strides: &[Vec<i64>]| -> Vec<MethodArray> {
            views
                .iter()
                .zip(strides)
                .map(|(view, stride)| MethodArray {
                    data: view.data().cast(),
                    shape: view.shape.as_ptr(),
                    stride: stride.as_ptr(),
                    rank: view.shape.len() as u32,
                    dtype: view.dtype as u32,
                })
                .collect()
        };
        let (out_strides, in_strides) = (strides(outputs), strides(inputs));
        let (outs, ins) = (describe(outputs, &out_strides), describe(inputs, &in_strides));
        let mut record = ErrorRecord::empty();
        // SAFETY: the arrays describe memory that is lent for the call; the record is valid.
        let code = unsafe { (self.run)(outs.as_ptr(), outs.len(), ins.as_ptr(), ins.len(), &mut record) };
        if code == status::OK { Ok(()) } else { Err(Error::read(code, &record).unplaced()) }
    }
}
