//! Whether operations run where they are called, and by which engine, asked without the recorder's lock.

use crate::Options;
use crate::state::word::Word;
use bh_core::component::SharedCalls;
use bh_core::services::Services;
use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The engine that runs operations on little arrays.
pub(crate) struct Engine {
    pub(crate) calls: Arc<dyn SharedCalls>,
    pub(crate) services: Arc<Services>,
    pub(crate) ids: Arc<AtomicU64>,
    pub(crate) options: Options,
}

impl Engine {
    /// As [`takes`], with these options.
    #[inline]
    pub(crate) fn takes(&self, bytes: u64) -> bool {
        takes(&self.options, bytes)
    }
}

/// May only its bridge know an array of this size? Chains of operations on larger ones are counted.
#[inline]
pub(crate) fn takes(options: &Options, bytes: u64) -> bool {
    bytes > 0 && bytes <= options.immediate_bytes / 2
}

/// The gate, and the engine behind it.
#[derive(Default)]
pub(crate) struct Gate {
    word: Word,
    engine: UnsafeCell<Option<Engine>>,
    /// Operations that were carried out inside.
    pub(crate) done: AtomicU64,
    /// Has one of them, or a read, ended a chain of operations on larger arrays? The recorder notes that when it is locked next.
    ends_chain: AtomicBool,
}

// SAFETY: the engine is written by the holder of the recorder's lock while the gate is closed and nobody is inside, and read by
// threads inside of the open gate.
unsafe impl Sync for Gate {}

impl Gate {
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.word.is_open()
    }

    /// Enters the gate, if it is open. Code inside must be short, and must not take the recorder's lock.
    #[inline]
    pub(crate) fn enter(&self) -> Option<Inside<'_>> {
        let is_open = self.word.enter();
        let inside = Inside(self);
        is_open.then_some(inside)
    }

    /// Opens or closes the gate. The caller holds the recorder's lock.
    pub(crate) fn set(&self, open: bool) {
        self.word.set(open);
    }

    /// Changes the engine. The caller holds the recorder's lock.
    pub(crate) fn set_engine(&self, engine: Option<Engine>) {
        self.set(false);
        // SAFETY: the gate is closed, and `set` has waited for those inside; the lock keeps others from changing it.
        drop(std::mem::replace(unsafe { &mut *self.engine.get() }, engine));
    }

    /// Notes that a chain of operations on larger arrays ends.
    #[inline]
    pub(crate) fn end_chain(&self) {
        self.ends_chain.store(true, Ordering::Relaxed);
    }

    /// Was [`Gate::end_chain`] called since this was?
    #[inline]
    pub(crate) fn takes_end_of_chain(&self) -> bool {
        self.ends_chain.load(Ordering::Relaxed) && self.ends_chain.swap(false, Ordering::Relaxed)
    }

    /// Forgets threads that are not in this process.
    pub(crate) fn forget_threads(&self) {
        self.word.forget_threads();
    }
}

/// The gate stays open while this lives.
pub(crate) struct Inside<'a>(&'a Gate);

impl Inside<'_> {
    #[inline]
    pub(crate) fn engine(&self) -> Option<&Engine> {
        // SAFETY: the engine changes only while nobody is inside.
        unsafe { (*self.0.engine.get()).as_ref() }
    }

    /// Counts an operation.
    #[inline]
    pub(crate) fn count(&self) {
        self.0.done.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.word.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn nobody_is_inside_while_the_gate_is_closed() {
        let (gate, closed, ends) = (Gate::default(), AtomicBool::new(false), AtomicBool::new(false));
        gate.set(true);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !ends.load(Ordering::Acquire) {
                        if let Some(inside) = gate.enter() {
                            assert!(!closed.load(Ordering::Acquire));
                            inside.count();
                        }
                    }
                });
            }
            while gate.done.load(Ordering::Relaxed) < 1000 {
                gate.set_engine(None);
                closed.store(true, Ordering::Release);
                assert!(gate.enter().is_none());
                thread::yield_now();
                closed.store(false, Ordering::Release);
                gate.set(true);
                thread::yield_now();
            }
            ends.store(true, Ordering::Release);
        });
        assert!(gate.is_open());
    }
}
