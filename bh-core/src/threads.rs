//! Threads of bh in processes that handle signals.

use std::mem::MaybeUninit;

/// Signals that an instruction of the thread itself raises; if they were blocked, they would end the process without
/// calling their handlers.
const OWN: [libc::c_int; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP];

/// Runs a function that starts a thread. The thread gets no signals that are sent to the process, so the program's
/// handlers run on the program's threads. A handler that ends the process must not run in the middle of a compiler, or
/// of work that the rest of the process waits for.
pub fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    struct Restore(libc::sigset_t);

    impl Drop for Restore {
        fn drop(&mut self) {
            // SAFETY: the set comes from the same function; the current set is not needed.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
        }
    }

    let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: the first call initialises the set that the others use; the last one stores the previous set, as it
    // succeeds for every valid set.
    let _restore = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        for signal in OWN {
            libc::sigdelset(all.as_mut_ptr(), signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr());
        Restore(before.assume_init())
    };
    start()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether this thread accepts the signal.
    fn gets(signal: libc::c_int) -> bool {
        let mut now = MaybeUninit::uninit();
        // SAFETY: the set is filled in before it is read.
        unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), now.as_mut_ptr());
            libc::sigismember(now.as_ptr(), signal) == 0
        }
    }

    #[test]
    fn threads_get_only_signals_of_their_own() {
        let signals = [libc::SIGPROF, libc::SIGINT, libc::SIGALRM, libc::SIGSEGV];
        let found = without_signals(|| std::thread::spawn(move || signals.map(gets))).join().unwrap();
        assert_eq!(found, [false, false, false, true]);
        assert_eq!(signals.map(gets), [true; 4], "the thread that starts others gets what it got before");
    }
}
