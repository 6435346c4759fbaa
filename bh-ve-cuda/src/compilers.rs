//! Compilers side by side: a lock within NVRTC lets one thread compile at a time, so that each further compiler is a copy of the library in
//! memory, with data of its own.

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{CStr, OsStr, c_void};
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// How many compilers a process has at most: one for every second core, but not more memory than for eight.
pub(crate) fn usual() -> usize {
    (std::thread::available_parallelism().map_or(1, usize::from) / 2).clamp(1, 8)
}

/// Compilers with the functions `F`.
pub(crate) struct Compilers<F> {
    state: Mutex<State<F>>,
    freed: Condvar,
}

struct State<F> {
    idle: Vec<Arc<F>>,
    count: usize,
    /// How many there are to be.
    most: usize,
    /// How many are being made.
    growing: usize,
}

impl<F> Compilers<F> {
    /// One compiler, to which others can be added until there are `most`.
    pub(crate) fn new(most: usize, first: F) -> Compilers<F> {
        let state = State { idle: vec![Arc::new(first)], count: 1, most, growing: 0 };
        Compilers { state: Mutex::new(state), freed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State<F>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many there are, with those that are being made.
    pub(crate) fn count(&self) -> usize {
        let state = self.state();
        state.count + state.growing
    }

    /// Runs `work` with a compiler that no other thread uses meanwhile; waits for one.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&F) -> T) -> T {
        let mut state = self.state();
        let own = loop {
            match state.idle.pop() {
                Some(own) => break own,
                None => state = self.freed.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        };
        drop(state);
        let back = Back { compilers: self, own };
        work(&back.own)
    }

    /// Adds one that `make` makes; false if there are enough, with those that other threads make. After a failure there are enough.
    pub(crate) fn add(&self, make: impl FnOnce() -> Option<F>) -> bool {
        let mut state = self.state();
        if state.count + state.growing >= state.most {
            return false;
        }
        state.growing += 1;
        drop(state);
        let made = make();
        let mut state = self.state();
        state.growing -= 1;
        match made {
            Some(made) => {
                state.idle.push(Arc::new(made));
                state.count += 1;
                self.freed.notify_one();
            }
            None => state.most = state.count,
        }
        state.count + state.growing < state.most
    }
}

/// Gives a compiler back, even after a panic.
struct Back<'a, F> {
    compilers: &'a Compilers<F>,
    own: Arc<F>,
}

impl<F> Drop for Back<'_, F> {
    fn drop(&mut self) {
        self.compilers.state().idle.push(self.own.clone());
        self.compilers.freed.notify_one();
    }
}

/// The file from which the library with this function was loaded.
pub(crate) fn file_of(function: *const c_void) -> Option<PathBuf> {
    // SAFETY: the structure is plain data, which the call fills.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: `info` receives the facts about the address, and lives through the call.
    let found = unsafe { libc::dladdr(function, &mut info) } != 0 && !info.dli_fname.is_null();
    // SAFETY: the name is a text of the loader's, which lives as long as the library.
    found.then(|| PathBuf::from(OsStr::from_bytes(unsafe { CStr::from_ptr(info.dli_fname) }.to_bytes())))
}

/// A copy of a library that is loaded already, with data of its own. It and the memory of its file stay for as long as the process lives;
/// none if the system does not allow that.
pub(crate) fn copy(file: &Path) -> Option<Library> {
    // SAFETY: the name is a text with a zero behind it.
    let descriptor = unsafe { libc::memfd_create(c"bh-nvrtc".as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return None;
    }
    // SAFETY: the descriptor was made above, and nobody else has it.
    let mut memory = unsafe { File::from_raw_fd(descriptor) };
    std::io::copy(&mut File::open(file).ok()?, &mut memory).ok()?;
    // SAFETY: NVIDIA's libraries may be loaded at any time.
    let library =
        unsafe { Library::open(Some(&format!("/proc/self/fd/{}", memory.as_raw_fd())), RTLD_NOW | RTLD_LOCAL) };
    if library.is_ok() {
        // The loader knows libraries by their names: no other copy may get this descriptor.
        std::mem::forget(memory);
    }
    library.ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn each_compiler_has_one_user_at_a_time_and_failures_end_the_copies() {
        let compilers = Compilers::new(4, AtomicUsize::new(0));
        assert!(compilers.add(|| Some(AtomicUsize::new(0))));
        // While two are made, others are enough.
        assert!(!compilers.add(|| {
            assert!(!compilers.add(|| {
                assert!(!compilers.add(|| unreachable!()));
                None
            }));
            Some(AtomicUsize::new(0))
        }));
        assert!(!compilers.add(|| unreachable!()));
        assert_eq!(compilers.count(), 3);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        compilers.with(|users| {
                            assert_eq!(users.fetch_add(1, Ordering::SeqCst), 0);
                            users.fetch_sub(1, Ordering::SeqCst);
                        });
                    }
                });
            }
        });
        assert_eq!(compilers.state().idle.len(), 3);
    }

    #[test]
    fn copies_of_a_library_have_data_of_their_own() {
        // SAFETY: the system's mathematics may be loaded at any time.
        let first = unsafe { Library::open(Some("libm.so.6"), RTLD_NOW | RTLD_LOCAL) }.unwrap();
        let place = |library: &Library| {
            // SAFETY: the symbol is a number of the library.
            unsafe { *library.get::<*const c_void>("signgam").unwrap() }
        };
        let file = file_of(place(&first)).unwrap();
        let copies = [copy(&file).unwrap(), copy(&file).unwrap()];
        let places = [place(&first), place(&copies[0]), place(&copies[1])];
        assert!(places[0] != places[1] && places[1] != places[2] && places[0] != places[2]);
        // Libraries that tests load stay, as compilers do.
        copies.into_iter().for_each(std::mem::forget);
    }
}
