//! The thread that initialises and finalises MPI, and progresses pending messages while no other thread calls it.

use crate::messages::{Messages, Options, World};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The thread's pause between calls for progress.
const PAUSE: Duration = Duration::from_micros(100);

/// A request to the thread.
enum Word {
    /// Messages are pending that need calls for progress.
    Sent,
    /// Finalise MPI, and send the outcome.
    Finish(Sender<Result<(), String>>),
}

/// MPI, shared by the process's threads.
pub struct Owner {
    words: Mutex<Sender<Word>>,
    /// The thread is progressing pending messages.
    awake: Arc<AtomicBool>,
    messages: Arc<Mutex<Messages>>,
}

/// Locks a mutex, even after a panic of its holder, which does not corrupt MPI's state.
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

    /// The connection, locked for one caller at a time.
    pub fn messages(&self) -> MutexGuard<'_, Messages> {
        lock(&self.messages)
    }

    /// The connection, if it is not locked.
    pub fn try_messages(&self) -> Option<MutexGuard<'_, Messages>> {
        self.messages.try_lock().ok()
    }

    /// Lets the thread progress pending messages.
    pub fn wake(&self) {
        if !self.awake.swap(true, Ordering::AcqRel) {
            let _ = lock(&self.words).send(Word::Sent);
        }
    }

    /// Lets the thread finalise MPI. `None` if this takes longer than `patience`.
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
                    // Threads that wait for messages report failures themselves.
                    if messages.progress().is_err() || messages.is_idle() {
                        break;
                    }
                }
                awake.store(false, Ordering::Release);
            }
        }
    }
}
