//! One value, handed from one thread to another. (A channel of the standard library would leave thread-local data behind
//! in every thread of the program that ever waited.)

use super::super::sync::{Condvar, Mutex, lock};
use std::sync::{Arc, PoisonError};

struct Slot<T> {
    content: Mutex<Content<T>>,
    changed: Condvar,
}

enum Content<T> {
    Nothing,
    Value(T),
    /// The giver is gone without a value.
    Abandoned,
}

/// The end that gives. Dropped without a value, it lets the taker know.
pub(crate) struct Giver<T>(Arc<Slot<T>>);

/// The end that waits.
pub(crate) struct Taker<T>(Arc<Slot<T>>);

/// Both ends.
pub(crate) fn handoff<T>() -> (Giver<T>, Taker<T>) {
    let slot = Arc::new(Slot { content: Mutex::new(Content::Nothing), changed: Condvar::new() });
    (Giver(slot.clone()), Taker(slot))
}

impl<T> Giver<T> {
    /// Gives the value.
    pub(crate) fn give(self, value: T) {
        *lock(&self.0.content) = Content::Value(value);
    }
}

impl<T> Drop for Giver<T> {
    fn drop(&mut self) {
        let mut content = lock(&self.0.content);
        if matches!(*content, Content::Nothing) {
            *content = Content::Abandoned;
        }
        self.0.changed.notify_one();
    }
}

impl<T> Taker<T> {
    /// Waits for the value; `None` if there will be none.
    pub(crate) fn take(self) -> Option<T> {
        let mut content = lock(&self.0.content);
        loop {
            match std::mem::replace(&mut *content, Content::Nothing) {
                Content::Value(value) => return Some(value),
                Content::Abandoned => return None,
                Content::Nothing => content = self.0.changed.wait(content).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}
