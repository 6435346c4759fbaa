//! Failures that show only while a kernel runs.

use super::gather::BadIndex;
use bh_core::Error;
use bh_core::abi::status;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// The failures of a running kernel, by instruction: of several of one instruction, the same is kept on any number of
/// threads.
#[derive(Debug, Default)]
pub(crate) struct Failure {
    failed: AtomicBool,
    texts: Mutex<BTreeMap<u32, String>>,
}

impl Failure {
    /// Records an index out of range.
    #[cold]
    pub(crate) fn index(&self, instr: u32, index: BadIndex, len: i64) {
        let text = index.error(len).text;
        let mut texts = self.texts.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        match texts.get_mut(&instr) {
            Some(known) if *known <= text => {}
            Some(known) => *known = text,
            None => drop(texts.insert(instr, text)),
        }
        self.failed.store(true, Ordering::Release);
    }

    /// The failed instructions, in order, if there are any; afterwards there are none.
    pub(crate) fn take(&self) -> Vec<(u32, Error)> {
        if !self.failed.swap(false, Ordering::Acquire) {
            return Vec::new();
        }
        let texts = std::mem::take(&mut *self.texts.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
        texts.into_iter().map(|(instr, text)| (instr, Error::new(status::BOUNDS, text))).collect()
    }
}
