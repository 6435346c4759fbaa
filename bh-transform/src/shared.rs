//! A tape with two owners: the recorder, which shows it batches, and the stretch of the program that is taped.

use bh_bytecode::Batch;
use bh_core::Error;
use bh_recorder::{ArrayId, Ending, Errand, Tape};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The tape, from either of its ends.
pub(crate) struct Shared<T>(Arc<Mutex<T>>);

impl<T: Tape + Default + 'static> Shared<T> {
    /// A tape that one owner has so far.
    pub(crate) fn new(tape: T) -> Shared<T> {
        Shared(Arc::new(Mutex::new(tape)))
    }

    /// The recorder's end.
    pub(crate) fn watcher(&self) -> Box<dyn Tape> {
        Box::new(Shared(self.0.clone()))
    }

    /// The tape.
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the tape, of which an empty one is left.
    pub(crate) fn take_all(&self) -> T {
        std::mem::take(&mut *self.lock())
    }
}

impl<T: Tape + Default + 'static> Tape for Shared<T> {
    fn followed(&self) -> Option<Vec<ArrayId>> {
        self.lock().followed()
    }

    fn expect(&mut self, ending: Ending) {
        self.lock().expect(ending);
    }

    fn release(&mut self) -> Vec<ArrayId> {
        self.lock().release()
    }

    fn longest(&self) -> usize {
        self.lock().longest()
    }

    fn take(&mut self, batch: &mut Batch) -> Vec<u32> {
        self.lock().take(batch)
    }

    fn receive(&mut self, kept: &[(u64, ArrayId)], made: &[(u64, ArrayId)]) {
        self.lock().receive(kept, made);
    }

    fn depends(&self, base: u64) -> bool {
        self.lock().depends(base)
    }

    fn refusal(&self) -> &'static str {
        self.lock().refusal()
    }

    fn relies_on(&self, base: u64) -> bool {
        self.lock().relies_on(base)
    }

    fn errand(&mut self) -> Option<Errand> {
        self.lock().errand()
    }

    fn fail(&mut self, error: Error) {
        self.lock().fail(error);
    }
}
