//! Failures that show only while a kernel runs.

use super::gather::BadIndex;
use bh_core::Error;
use bh_core::abi::status;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// The failure of a running kernel: of several, the one of the first instruction is kept.
#[derive(Debug, Default)]
pub(crate) struct Failure {
    failed: AtomicBool,
    first: Mutex<Option<(u32, String)>>,
}

impl Failure {
    /// Records an index out of range.
    #[cold]
    pub(crate) fn index(&self, instr: u32, index: BadIndex, len: i64) {
        let text = if index.signed {
            format!("index {} is out of range for {len} elements", index.bits)
        } else {
            format!("index {} is out of range for {len} elements", index.bits as u64)
        };
        let mut first = self.first.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if first.as_ref().is_none_or(|known| (instr, &text) < (known.0, &known.1)) {
            *first = Some((instr, text));
        }
        self.failed.store(true, Ordering::Release);
    }

    /// The failure, if there was one; afterwards there is none.
    pub(crate) fn take(&self) -> Option<Error> {
        if !self.failed.swap(false, Ordering::Acquire) {
            return None;
        }
        let (instr, text) = self.first.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take()?;
        let mut error = Error::new(status::BOUNDS, text);
        error.instr = Some(instr);
        Some(error)
    }
}
