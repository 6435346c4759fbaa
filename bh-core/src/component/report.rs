//! The report of `execute` besides its result: failed instructions and times.

use crate::abi::{ErrorRecord, ReportRecord};
use crate::error::Error;
use std::ffi::c_void;
use std::ptr;

/// An instruction that failed while the rest of its block went on.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// Index of the block.
    pub block: u32,
    /// Index of the instruction.
    pub instr: u32,
    /// The reason.
    pub error: Error,
}

/// The destination of a component's report; may be absent.
pub struct Report {
    record: *mut ReportRecord,
}

impl Report {
    /// A report that is discarded.
    pub fn none() -> Report {
        Report { record: ptr::null_mut() }
    }

    /// Wraps the caller's record.
    ///
    /// # Safety
    /// The record must be null, or live as long as the value and be used only through it.
    pub unsafe fn new(record: *mut ReportRecord) -> Report {
        Report { record }
    }

    /// The record, for a call; null if the report is discarded.
    pub fn as_ptr(&mut self) -> *mut ReportRecord {
        self.record
    }

    /// Whether the caller accepts failed instructions. If not, a failure ends the block.
    pub fn is_wanted(&self) -> bool {
        !self.record.is_null()
    }

    /// Adds seconds spent on planning.
    pub fn planned(&mut self, seconds: f64) {
        // SAFETY: null, or a living record that is used here only, as [`Report::new`] asks.
        if let Some(record) = unsafe { self.record.as_mut() } {
            record.planning_seconds += seconds;
        }
    }

    /// Adds seconds spent on running.
    pub fn ran(&mut self, seconds: f64) {
        // SAFETY: null, or a living record that is used here only, as [`Report::new`] asks.
        if let Some(record) = unsafe { self.record.as_mut() } {
            record.running_seconds += seconds;
        }
    }

    /// Reports a failed instruction, whose independent siblings in the block have run or will run.
    pub fn fail(&mut self, block: u32, instr: u32, error: &Error) {
        // SAFETY: null, or a living record, as [`Report::new`] asks.
        if let Some(record) = unsafe { self.record.as_ref() } {
            let mut text = ErrorRecord::empty();
            error.write(&mut text);
            // SAFETY: the caller's function, with its own argument.
            unsafe { (record.failed)(record.context, block, instr, &text) };
        }
    }
}

/// A report that collects failures and times.
pub struct Collected {
    record: ReportRecord,
    failures: Vec<Failure>,
}

impl Default for Collected {
    fn default() -> Collected {
        let record = ReportRecord {
            struct_size: size_of::<ReportRecord>(),
            context: ptr::null_mut(),
            failed: keep,
            planning_seconds: 0.0,
            running_seconds: 0.0,
        };
        Collected { record, failures: Vec::new() }
    }
}

impl Collected {
    /// Calls `f` with a report that collects here.
    pub(crate) fn collect<T>(&mut self, f: impl FnOnce(&mut Report) -> T) -> T {
        self.record.context = (&raw mut self.failures).cast();
        f(&mut Report { record: &mut self.record })
    }

    /// Seconds of planning and of running.
    pub fn seconds(&self) -> (f64, f64) {
        (self.record.planning_seconds, self.record.running_seconds)
    }

    /// The failed instructions so far.
    pub fn failures(&self) -> &[Failure] {
        &self.failures
    }

    /// Removes and returns the failed instructions so far.
    pub fn take_failures(&mut self) -> Vec<Failure> {
        std::mem::take(&mut self.failures)
    }
}

unsafe extern "C" fn keep(context: *mut c_void, block: u32, instr: u32, error: *const ErrorRecord) {
    // SAFETY: the context is the list of a `Collected`, which lives through the call; the error is the callee's.
    unsafe {
        let error = Error::read((*error).status, &*error);
        (*context.cast::<Vec<Failure>>()).push(Failure { block, instr, error });
    }
}
