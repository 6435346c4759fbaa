//! Ranks in separate processes: messages go through a transport library, loaded on demand.

use crate::transport::{Transport, buffers};
use bh_cluster_abi::{OPEN_SYMBOL, OpenFn, OpenOptions, TransportTable, VERSION, outcome};
use bh_core::abi::status;
use bh_core::error::{Error, Result};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_void};
use std::ops::Range;
use std::path::PathBuf;

/// The text of the error that reports the end of rank 0's process, which is no failure.
pub const ENDED: &str = "rank 0 has ended";

/// The connection to the other processes.
#[derive(Clone, Copy)]
pub struct Remote {
    table: &'static TransportTable,
    /// Longer messages are sent in parts.
    part_bytes: usize,
}

impl Remote {
    /// Loads a transport library by name and joins the other processes: all of them, or those of the program's
    /// communicator. Messages longer than `part_bytes` are sent in parts.
    pub fn open(name: &str, communicator: Option<i32>, part_bytes: usize) -> Result<Remote> {
        let file = find(name)?;
        let fail = |text: String| Error::new(status::LIBRARY, format!("cluster: '{}': {text}", file.display()));
        // SAFETY: the file is a transport library of bh from this library's directories, whose initialisers are safe to
        // run.
        let library = unsafe { Library::open(Some(&file), RTLD_NOW | RTLD_LOCAL) };
        let library = library.map_err(|error| fail(format!("cannot be loaded: {error}")))?;
        // SAFETY: transport libraries export this name as an `OpenFn`.
        let open = unsafe { library.get::<OpenFn>(OPEN_SYMBOL) }.map(|symbol| *symbol);
        let open = open.map_err(|_| fail(format!("exports no '{OPEN_SYMBOL}'")))?;
        std::mem::forget(library);
        let mut text = [0 as c_char; 1024];
        let communicator = communicator.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let options = OpenOptions { communicator, part_bytes };
        // SAFETY: the options and the text live through the call.
        let table = unsafe { open(VERSION, &options, text.as_mut_ptr(), text.len()).as_ref() };
        let Some(table) = table else {
            // SAFETY: after a failure, `open` has written a NUL-terminated text.
            let text = unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy();
            return Err(Error::new(status::INIT, format!("cluster: {text}")));
        };
        Ok(Remote { table, part_bytes })
    }

    /// This process's rank.
    pub fn rank(&self) -> usize {
        self.table.rank as usize
    }

    /// Did the program initialise the message library? It then continues after rank 0's last context has ended.
    pub fn is_borrowed(&self) -> bool {
        self.table.borrowed != 0
    }

    /// Sets the exit code of this process. Older transport libraries ignore it.
    pub fn end_with(&self, code: i32) {
        if self.table.struct_size > std::mem::offset_of!(TransportTable, end_with) {
            // SAFETY: the context belongs to the table, whose size includes the slot.
            unsafe { (self.table.end_with)(self.table.context, code) }
        }
    }

    /// Waits until all sent messages have left.
    pub fn flush(&self) -> Result<()> {
        // SAFETY: the context belongs to the table.
        self.check(unsafe { (self.table.flush)(self.table.context) })
    }

    /// Name and version of the message library.
    pub fn library(&self) -> String {
        // SAFETY: the text lives as long as the process.
        unsafe { CStr::from_ptr(self.table.library) }.to_string_lossy().into_owned()
    }

    fn check(&self, code: i32) -> Result<()> {
        match code {
            outcome::OK => Ok(()),
            outcome::ENDED => Err(Error::new(status::SHUTDOWN, ENDED)),
            // This rank can no longer send or receive; the others would wait for it.
            _ => {
                let mut text = [0 as c_char; 1024];
                // SAFETY: `text` has the given capacity, and `error` writes a NUL-terminated text.
                unsafe {
                    (self.table.error)(self.table.context, text.as_mut_ptr(), text.len());
                    (self.table.abort)(self.table.context, text.as_ptr());
                }
                Err(Error::new(status::EXECUTION, "cluster: a message is lost"))
            }
        }
    }
}

/// The library's file: beside this one, or in a directory of `BH_LIBRARY_PATH`. Python packages come without MPI.
fn find(name: &str) -> Result<PathBuf> {
    let own = bh_core::loader::own_directory().unwrap_or_default();
    let file = format!("libbh_cluster_{name}.so");
    let further = bh_core::environment::variable_os("BH_LIBRARY_PATH").unwrap_or_default();
    let directories = [own.clone(), own.join("bh"), own.join(name)].into_iter().chain(std::env::split_paths(&further));
    let found = directories.map(|directory| directory.join(&file)).find(|file| file.is_file());
    found.ok_or_else(|| {
        let text = format!(
            "cluster: bh was built without the library '{file}', which moves messages through {name}; it is looked for in {} and in BH_LIBRARY_PATH",
            own.display()
        );
        Error::new(status::LIBRARY, text)
    })
}

impl Transport for Remote {
    fn ranks(&self) -> usize {
        self.table.ranks as usize
    }

    fn hosted(&self) -> Range<usize> {
        self.rank()..self.rank() + 1
    }

    fn send(&mut self, _from: usize, to: usize, bytes: Vec<u8>) -> Result<()> {
        unsafe extern "C" fn release(owner: *mut c_void) {
            // SAFETY: `owner` comes from `Box::into_raw` below, and is released once.
            buffers::give(*unsafe { Box::from_raw(owner.cast::<Vec<u8>>()) });
        }
        let owner = Box::into_raw(Box::new(bytes));
        let table = self.table;
        // SAFETY: the bytes live until the library calls `release`, which it does once.
        self.check(unsafe {
            let (data, count) = ((*owner).as_ptr(), (*owner).len());
            (table.send)(table.context, to as u32, data, count, owner.cast(), release)
        })
    }

    fn receive(&mut self, _at: usize, from: usize) -> Result<Vec<u8>> {
        let mut count = 0;
        // SAFETY: `count` lives through the call.
        self.check(unsafe { (self.table.receive)(self.table.context, from as u32, &mut count) })?;
        let mut bytes = buffers::take(count);
        // SAFETY: the buffer has `count` bytes, as `receive` reported.
        self.check(unsafe { (self.table.take)(self.table.context, bytes.as_mut_ptr(), count) })?;
        Ok(bytes)
    }

    fn abort(&mut self, text: &str) {
        let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
        // SAFETY: the text lives through the call, which does not return.
        unsafe { (self.table.abort)(self.table.context, text.as_ptr()) }
    }
}

/// Shorter messages are sent eagerly, before a receive is posted.
const EXPECTED_BYTES: usize = 16 << 10;

/// The other processes, with posted receives for long messages: MPI transfers these only to a known address.
pub struct Wire {
    remote: Remote,
    expected: HashMap<usize, Vec<u8>>,
}

impl Wire {
    /// A wire without posted receives.
    pub fn new(remote: Remote) -> Wire {
        Wire { remote, expected: HashMap::new() }
    }
}

impl Transport for Wire {
    fn ranks(&self) -> usize {
        self.remote.ranks()
    }

    fn hosted(&self) -> Range<usize> {
        self.remote.hosted()
    }

    fn send(&mut self, from: usize, to: usize, bytes: Vec<u8>) -> Result<()> {
        self.remote.send(from, to, bytes)
    }

    fn expect(&mut self, _at: usize, from: usize, bytes: usize) -> Result<()> {
        if !(EXPECTED_BYTES..=self.remote.part_bytes).contains(&bytes) || self.expected.contains_key(&from) {
            return Ok(());
        }
        let mut buffer = buffers::take(bytes);
        let table = self.remote.table;
        // SAFETY: moving the vector does not move its memory, which is freed only after the message has arrived.
        self.remote.check(unsafe { (table.expect)(table.context, from as u32, buffer.as_mut_ptr(), bytes) })?;
        self.expected.insert(from, buffer);
        Ok(())
    }

    fn receive(&mut self, at: usize, from: usize) -> Result<Vec<u8>> {
        let Some(buffer) = self.expected.remove(&from) else { return self.remote.receive(at, from) };
        let (table, mut count) = (self.remote.table, 0);
        // After a failure the library may still write to the memory: leak it.
        let buffer = std::mem::ManuallyDrop::new(buffer);
        // SAFETY: the count lives through the call.
        self.remote.check(unsafe { (table.receive)(table.context, from as u32, &mut count) })?;
        Ok(std::mem::ManuallyDrop::into_inner(buffer))
    }

    fn abort(&mut self, text: &str) {
        self.remote.abort(text);
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        // Messages may still arrive: leak their memory.
        self.expected.drain().for_each(|(_, buffer)| std::mem::forget(buffer));
    }
}
