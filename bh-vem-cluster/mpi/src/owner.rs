//! The thread that initialises and finalises MPI, and moves on what is under way while nobody else calls it.

use crate::messages::{Messages, Options, World};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long the thread pauses between two looks at what is under way.
const PAUSE: Duration = Duration::from_micros(100);

/// What the thread is told.
enum Word {
    /// Something is on its way that needs calls to get on.
    Sent,
    /// Finalise MPI; answered when that is done.
    Finish(Sender<Result<(), String>>),
}

/// MPI, as the process's threads share it.
pub struct Owner {
    words: Mutex<Sender<Word>>,
    /// The thread looks after what is on its way.
    awake: Arc<AtomicBool>,
    messages: Arc<Mutex<Messages>>,
}

/// Locks even if a thread panicked while it held the lock: MPI's own state is unharmed by that.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Owner {
    /// Starts the thread, which initialises MPI.
    pub fn start(options: Options) -> Result<(Owner, World), String> {
        let (words, heard) = channel();
        let (started, start) = channel();
        let awake = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&awake);
        let run = move || match Messages::start(&options) {
            Ok(messages) => {
                let messages = Arc::new(Mutex::new(messages));
                let _ = started.send(Ok(Arc::clone(&messages)));
                look_after(&messages, &heard, &flag);
            }
            Err(text) => drop(started.send(Err(text))),
        };
        let thread = std::thread::Builder::new().name("bh-mpi".into()).spawn(run);
        thread.map_err(|error| format!("the thread for MPI cannot be started: {error}"))?;
        let messages = start.recv().map_err(|_| "the thread for MPI ended while it started".to_owned())??;
        let world = lock(&messages).world().clone();
        Ok((Owner { words: Mutex::new(words), awake, messages }, world))
    }

    /// The connection, for one caller at a time.
    pub fn messages(&self) -> MutexGuard<'_, Messages> {
        lock(&self.messages)
    }

    /// The connection, if nobody else uses it.
    pub fn try_messages(&self) -> Option<MutexGuard<'_, Messages>> {
        self.messages.try_lock().ok()
    }

    /// Something is on its way: the thread moves it on.
    pub fn wake(&self) {
        if !self.awake.swap(true, Ordering::AcqRel) {
            let _ = lock(&self.words).send(Word::Sent);
        }
    }

    /// Lets the thread finalise MPI. `None` if that takes longer than `patience`.
    pub fn finish(&self, patience: Duration) -> Option<Result<(), String>> {
        let (answer, answered) = channel();
        lock(&self.words).send(Word::Finish(answer)).ok()?;
        answered.recv_timeout(patience).ok()
    }
}

fn look_after(messages: &Mutex<Messages>, words: &Receiver<Word>, awake: &AtomicBool) {
    while let Ok(word) = words.recv() {
        match word {
            Word::Finish(answer) => {
                let _ = answer.send(lock(messages).finish());
                return;
            }
            Word::Sent => {
                loop {
                    std::thread::sleep(PAUSE);
                    let Ok(mut messages) = messages.try_lock() else { continue };
                    // Who waits for a message finds out about failures.
                    if messages.progress().is_err() || messages.is_idle() {
                        break;
                    }
                }
                awake.store(false, Ordering::Release);
            }
        }
    }
}
