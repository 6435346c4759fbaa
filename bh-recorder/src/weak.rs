//! The recorder's threads in a model of weak memory: the same files as the recorder's, on the words of a model that tries
//! every order in which a processor may show writes to other threads.

mod sync {
    pub(super) use loom::sync::atomic::{AtomicBool, AtomicU32};
    pub(super) use loom::sync::{Condvar, Mutex, MutexGuard};
    pub(super) use loom::thread::yield_now;

    use std::sync::PoisonError;

    pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// Loaded once more on purpose: `sync` means the model here.
#[allow(clippy::duplicate_mod)]
#[path = "."]
mod files {
    #[path = "executor/handoff.rs"]
    pub(super) mod handoff;
    #[path = "array/later.rs"]
    pub(super) mod later;
    #[allow(dead_code, reason = "nothing forks here")]
    #[path = "state/word.rs"]
    pub(super) mod word;
}

use crate::ArrayId;
use crate::array::slab::{INDEX_BITS, Slab};
use files::handoff::handoff;
use files::later::Later;
use files::word::Word;
use loom::cell::UnsafeCell;
use loom::sync::{Arc, Mutex};
use loom::thread::{JoinHandle, spawn};
use sync::lock;

/// Memory that a thread writes before it hands over the right to read it; the model finds a reader that does not have it.
struct Result(UnsafeCell<u32>);

// SAFETY: the writer hands the value over before anyone reads it, which is what the model tests.
unsafe impl Send for Result {}
// SAFETY: as above.
unsafe impl Sync for Result {}

impl Result {
    fn write(&self, value: u32) {
        // SAFETY: nobody has the right to read it yet.
        self.0.with_mut(|place| unsafe { *place = value });
    }

    fn read(&self) -> u32 {
        // SAFETY: the writer has handed it over.
        self.0.with(|place| unsafe { *place })
    }
}

#[test]
fn a_value_comes_with_the_memory_behind_it() {
    loom::model(|| {
        let (giver, taker) = handoff();
        let result = Arc::new(Result(UnsafeCell::new(0)));
        let written = Arc::clone(&result);
        let thread = spawn(move || {
            written.write(7);
            giver.give(());
        });
        assert!(taker.take().is_some());
        assert_eq!(result.read(), 7);
        thread.join().unwrap();
    });
}

#[test]
fn a_giver_that_goes_wakes_its_taker() {
    loom::model(|| {
        let (giver, taker) = handoff::<u32>();
        let thread = spawn(move || drop(giver));
        assert!(taker.take().is_none());
        thread.join().unwrap();
    });
}

/// The arrays of a context, and the handles that wait to be freed.
struct Context {
    arrays: Mutex<Slab<u64>>,
    later: Later,
}

/// The key of an array of the slab.
fn key(arrays: &mut Slab<u64>, value: u64) -> ArrayId {
    let index = arrays.insert(value).unwrap();
    ArrayId(u64::from(arrays.generation(index)) << INDEX_BITS | u64::from(index))
}

impl Context {
    /// A context with an array for each of the values, and their keys.
    fn new<const N: usize>(values: [u64; N]) -> (Arc<Context>, [ArrayId; N]) {
        let mut arrays = Slab::new();
        let keys = values.map(|value| key(&mut arrays, value));
        (Arc::new(Context { arrays: Mutex::new(arrays), later: Later::default() }), keys)
    }

    /// The first step of a call under the lock of the arrays: it frees the handles that wait.
    fn free_waiting(&self, arrays: &mut Slab<u64>) {
        if self.later.is_wanted() {
            let mut waiting = Vec::new();
            self.later.swap(&mut waiting);
            waiting.iter().for_each(|array| arrays.remove(array.parts().0));
        }
    }

    /// A call that looks an array up.
    fn find(&self, array: ArrayId) -> Option<u64> {
        let mut arrays = lock(&self.arrays);
        self.free_waiting(&mut arrays);
        let (index, generation) = array.parts();
        arrays.find(index, generation).copied()
    }
}

/// Another thread, which does as `Recorder::free_later` does where the lock is held.
fn free_later(context: &Arc<Context>, array: ArrayId) -> JoinHandle<()> {
    let context = Arc::clone(context);
    spawn(move || context.later.push(array))
}

#[test]
fn handles_that_wait_are_freed_once() {
    loom::model(|| {
        let (context, keys) = Context::new([1, 2, 3]);
        let threads = [keys[0], keys[1]].map(|key| free_later(&context, key));
        // A look at the same time may miss some; they are not lost.
        assert_eq!(context.find(keys[2]), Some(3));
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(keys.map(|key| context.find(key)), [None, None, Some(3)]);
        assert_eq!(lock(&context.arrays).len(), 1);
    });
}

#[test]
fn a_stale_key_never_finds_another_array() {
    loom::model(|| {
        let (context, [first]) = Context::new([1]);
        let thread = free_later(&context, first);
        let other = Arc::clone(&context);
        let maker = spawn(move || {
            let mut arrays = lock(&other.arrays);
            other.free_waiting(&mut arrays);
            key(&mut arrays, 2)
        });
        assert!(matches!(context.find(first), None | Some(1)));
        let second = maker.join().unwrap();
        thread.join().unwrap();
        assert_eq!((context.find(first), context.find(second)), (None, Some(2)));
    });
}

#[test]
fn an_engine_changes_only_while_nobody_is_inside() {
    loom::model(|| {
        let gate = Arc::new((Word::default(), Result(UnsafeCell::new(0))));
        let threads = [0, 1].map(|_| {
            let gate = Arc::clone(&gate);
            spawn(move || {
                let found = gate.0.enter().then(|| gate.1.read());
                gate.0.leave();
                assert!(found.is_none_or(|value| value > 0));
            })
        });
        for value in [1, 2] {
            gate.0.set(false);
            gate.1.write(value);
            gate.0.set(true);
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(gate.0.is_open() && gate.1.read() == 2);
    });
}
