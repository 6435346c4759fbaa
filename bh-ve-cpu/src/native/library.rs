//! The kernel compiler's library.

use bh_core::loader::{own_directory, whole_text};
use bh_jit_abi::{Api, Artifact, ENTRY_SYMBOL, EntryFn, Request, VERSION, fingerprint};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The file's name.
const FILE: &str = "libbh_ve_cpu_jit.so";

/// The library's file: beside the engine's own, or where installations and builds have it.
pub(super) fn find() -> Option<PathBuf> {
    let own = own_directory()?;
    let places = [own.clone(), own.join("bh"), own.join("../lib/bh"), own.join("..")];
    places.into_iter().map(|place| place.join(FILE)).find(|file| file.is_file())
}

/// The identity of a build of the library.
pub(super) fn identity(file: &Path) -> Vec<u8> {
    let mut bytes = Vec::from(fingerprint().to_le_bytes());
    if let Ok(found) = std::fs::metadata(file) {
        for number in [found.len() as i64, found.mtime(), found.mtime_nsec()] {
            bytes.extend(number.to_le_bytes());
        }
    }
    bytes
}

/// The loaded compiler. It is never unloaded, as LLVM cannot be.
#[derive(Clone, Copy)]
pub(super) struct Compiler(&'static Api);

impl Compiler {
    /// Loads a library.
    pub(super) fn load(file: &Path) -> Result<Compiler, String> {
        let shown = file.display();
        // SAFETY: the library belongs to this installation.
        let library = unsafe { Library::open(Some(file), RTLD_NOW | RTLD_LOCAL) }
            .map_err(|error| format!("'{shown}' cannot be loaded: {}", whole_text(&error)))?;
        // SAFETY: a symbol of this name is an entry function.
        let entry = unsafe { library.get::<EntryFn>(ENTRY_SYMBOL.as_bytes()).map(|symbol| *symbol) };
        let entry = entry.map_err(|_| format!("'{shown}' does not export '{ENTRY_SYMBOL}'"))?;
        std::mem::forget(library);
        Compiler::negotiate(&shown.to_string(), entry)
    }

    /// The compiler behind an entry function, if it fits.
    fn negotiate(shown: &str, entry: EntryFn) -> Result<Compiler, String> {
        // SAFETY: the table is static, and starts alike in all versions.
        let (version, found) = unsafe {
            let api = entry();
            ((*api).version, (*api).fingerprint)
        };
        if version != VERSION || found != fingerprint() {
            return Err(format!(
                "'{shown}' belongs to another version of bh (interface {version}, table {found:016x}; \
                 the engine has {VERSION}, {:016x})",
                fingerprint()
            ));
        }
        // SAFETY: of this version, it is the whole table.
        Ok(Compiler(unsafe { &*entry() }))
    }

    /// Compiles a kernel; the error says why it cannot be.
    pub(super) fn compile(self, request: &Request) -> Result<Vec<u8>, String> {
        let request = request.encode();
        let (mut ok, mut length) = (0, 0);
        // SAFETY: the request lives through the call, and the compiler returns `length` bytes, which it frees by their
        // address and length, as [`Api`] says.
        let bytes = unsafe {
            let data = (self.0.compile)(request.as_ptr(), request.len(), &mut ok, &mut length);
            let bytes = std::slice::from_raw_parts(data, length).to_vec();
            (self.0.free)(data, length);
            bytes
        };
        if ok != 1 {
            return Err(String::from_utf8_lossy(&bytes).into_owned());
        }
        match Artifact::decode(&bytes) {
            Some(_) => Ok(bytes),
            None => Err("the compiler's result is malformed".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C" fn compile(_: *const u8, _: usize, _: *mut u32, _: *mut usize) -> *mut u8 {
        std::ptr::null_mut()
    }

    unsafe extern "C" fn free(_: *mut u8, _: usize) {}

    unsafe extern "C" fn newer() -> *const Api {
        static API: Api = Api { version: VERSION + 1, reserved: 0, fingerprint: 0, compile, free };
        &API
    }

    unsafe extern "C" fn other_table() -> *const Api {
        static API: Api = Api { version: VERSION, reserved: 0, fingerprint: 0, compile, free };
        &API
    }

    #[test]
    fn another_version_is_refused() {
        for entry in [newer as EntryFn, other_table] {
            let error = Compiler::negotiate("lib.so", entry).err().expect("refused");
            assert!(error.contains("'lib.so' belongs to another version of bh"), "{error}");
        }
    }
}
