//! The error type of everything above the bytecode, and its form at the ABI.

use crate::abi::{ErrorRecord, NO_BLOCK, Status, status};
use bh_bytecode::BatchRef;
use std::fmt;
use std::mem::MaybeUninit;

/// Result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;

/// An error with its status and, if known, the failing block, instruction and source line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// A value of [`status`], never `OK`.
    pub status: Status,
    /// The message, which names the cause.
    pub text: String,
    /// Index of the failing block of the batch.
    pub block: Option<u32>,
    /// Index of the failing instruction of the batch.
    pub instr: Option<u32>,
    /// File and line in the user's program.
    pub origin: Option<(String, u32)>,
    /// Rank of the failing process.
    pub rank: Option<i32>,
}

impl Error {
    /// An error of this status.
    pub fn new(status: Status, text: impl Into<String>) -> Error {
        Error { status, text: text.into(), block: None, instr: None, origin: None, rank: None }
    }

    /// A config key of a component has a value of the wrong form; `form` is the right one, such as "true or false".
    pub fn of_key(key: &str, form: &str, value: &str) -> Error {
        Error::new(crate::abi::status::CONFIG, format!("config key '{key}' must be {form}, not '{value}'"))
    }

    /// Names the failing block.
    pub fn in_block(mut self, block: u32) -> Error {
        self.block = Some(block);
        self
    }

    /// Adds the failing instruction, and its source line if the batch has it. Does not replace an earlier place.
    pub fn at_instr(mut self, batch: &BatchRef<'_>, instr: u32) -> Error {
        if self.instr.is_none() && self.origin.is_none() {
            self.instr = Some(instr);
            self.locate(batch);
        }
        self
    }

    /// Converts the instruction index to file and line, while the batch exists.
    pub fn locate(&mut self, batch: &BatchRef<'_>) {
        if let (None, Some(instr)) = (&self.origin, self.instr.and_then(|index| batch.instrs.get(index as usize))) {
            self.origin = batch.origin(instr).map(|(file, line)| (file.to_owned(), line));
        }
    }

    /// Removes the indices of block and instruction, which are valid only for one batch; the source line stays.
    pub fn unplaced(mut self) -> Error {
        self.block = None;
        self.instr = None;
        self
    }

    /// Fills the record for the ABI, truncating texts to fit. Returns the status.
    pub fn write(&self, record: &mut ErrorRecord) -> Status {
        record.status = self.status;
        record.block = self.block.unwrap_or(NO_BLOCK);
        record.instr = self.instr.map_or(0, |index| index + 1);
        record.rank = self.rank.unwrap_or(-1);
        let (file, line) = self.origin.as_ref().map_or(("", 0), |(file, line)| (file.as_str(), *line));
        record.line = line;
        copy_text(file, &mut record.file);
        copy_text(&self.text, &mut record.text);
        self.status
    }

    /// Reads a record that came with a failing status.
    pub fn read(status: Status, record: &ErrorRecord) -> Error {
        // SAFETY: the whole record is initialised.
        unsafe { Error::read_raw(status, record) }
    }

    /// Reads a record whose texts may be uninitialised behind their terminators.
    ///
    /// # Safety
    /// `record` must point to a record with initialised numbers, and with texts that are initialised up to their NUL,
    /// or entirely if they have none.
    unsafe fn read_raw(status: Status, record: *const ErrorRecord) -> Error {
        let status = if status == status::OK { status::EXECUTION } else { status };
        // SAFETY: the numbers are initialised, and so is each text, an array of the given size, up to its NUL or as a
        // whole, as `# Safety` asks.
        let (block, instr, line, rank, file, text) = unsafe {
            (
                (*record).block,
                (*record).instr,
                (*record).line,
                (*record).rank,
                read_text((&raw const (*record).file).cast(), size_of_val(&(*record).file)),
                read_text((&raw const (*record).text).cast(), size_of_val(&(*record).text)),
            )
        };
        Error {
            status,
            text: if text.is_empty() { format!("status {status} without a message") } else { text },
            block: (block != NO_BLOCK).then_some(block),
            instr: instr.checked_sub(1),
            origin: (!file.is_empty()).then_some((file, line)),
            rank: (rank >= 0).then_some(rank),
        }
    }
}

/// Memory for an [`ErrorRecord`]: initialises only the numbers and the terminators of the texts before a call, because
/// clearing a kilobyte costs more than many calls do.
pub(crate) struct RecordSpace(MaybeUninit<ErrorRecord>);

impl RecordSpace {
    /// A record without an error.
    #[inline]
    pub(crate) fn new() -> RecordSpace {
        let mut space = MaybeUninit::<ErrorRecord>::uninit();
        let record = space.as_mut_ptr();
        // SAFETY: the fields are in bounds of the space.
        unsafe {
            (*record).status = status::OK;
            (*record).block = NO_BLOCK;
            (*record).instr = 0;
            (*record).line = 0;
            (*record).rank = -1;
            (*record).reserved = 0;
            (&raw mut (*record).file).cast::<u8>().write(0);
            (&raw mut (*record).text).cast::<u8>().write(0);
        }
        RecordSpace(space)
    }

    /// The record, for a call.
    #[inline]
    pub(crate) fn as_mut_ptr(&mut self) -> *mut ErrorRecord {
        self.0.as_mut_ptr()
    }

    /// The result of the call that returned this status.
    #[inline]
    pub(crate) fn check(&self, code: Status) -> Result<()> {
        // SAFETY: `new` set the numbers and ended the texts, and callees write terminated texts only.
        if code == status::OK { Ok(()) } else { Err(unsafe { Error::read_raw(code, self.0.as_ptr()) }) }
    }
}

impl ErrorRecord {
    /// A record without an error.
    pub fn empty() -> ErrorRecord {
        ErrorRecord {
            status: status::OK,
            block: NO_BLOCK,
            instr: 0,
            line: 0,
            rank: -1,
            reserved: 0,
            file: [0; 256],
            text: [0; 744],
        }
    }
}

fn copy_text(text: &str, into: &mut [u8]) {
    let mut end = text.len().min(into.len() - 1);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    into[..end].copy_from_slice(&text.as_bytes()[..end]);
    into[end] = 0;
}

/// The text up to its NUL, or all of `capacity` bytes.
///
/// # Safety
/// `from` must point to `capacity` bytes, initialised up to the first NUL, or entirely if there is none.
unsafe fn read_text(from: *const u8, capacity: usize) -> String {
    // SAFETY: no byte behind the first NUL is looked at, and those up to it, or all `capacity`, are initialised, as
    // `# Safety` asks.
    unsafe {
        let end = (0..capacity).position(|index| *from.add(index) == 0).unwrap_or(capacity);
        String::from_utf8_lossy(std::slice::from_raw_parts(from, end)).into_owned()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((file, line)) = &self.origin {
            write!(f, "{file}:{line}: ")?;
        }
        f.write_str(&self.text)?;
        if let Some(rank) = self.rank {
            write!(f, " (rank {rank})")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}
