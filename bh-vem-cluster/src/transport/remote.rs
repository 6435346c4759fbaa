//! Ranks in processes of their own: messages go through a library that is loaded when a cluster asks for it.

use crate::transport::{Transport, buffers};
use bh_cluster_abi::{OPEN_SYMBOL, OpenFn, OpenOptions, TransportTable, VERSION, outcome};
use bh_core::abi::status;
use bh_core::error::{Error, Result};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_void};
use std::ops::Range;
use std::path::PathBuf;

/// The error text of a rank's end: no failure, but the end of rank 0's process.
pub const ENDED: &str = "rank 0 has ended";

/// The other processes.
#[derive(Clone, Copy)]
pub struct Remote {
    table: &'static TransportTable,
    /// Longer messages go in parts.
    part_bytes: usize,
}

impl Remote {
    /// Loads the transport library of this name and joins the other processes: all, or those of the program's own
    /// communicator. Messages longer than `part_bytes` go in parts.
    pub fn open(name: &str, communicator: Option<i32>, part_bytes: usize) -> Result<Remote> {
        let file = find(name)?;
        let fail = |text: String| Error::new(status::LIBRARY, format!("cluster: '{}': {text}", file.display()));
        // SAFETY: the file is a library of bh, beside this one.
        let library = unsafe { Library::open(Some(&file), RTLD_NOW | RTLD_LOCAL) };
        let library = library.map_err(|error| fail(format!("cannot be loaded: {error}")))?;
        // SAFETY: what exports this name is an open function.
        let open = unsafe { library.get::<OpenFn>(OPEN_SYMBOL) }.map(|symbol| *symbol);
        let open = open.map_err(|_| fail(format!("exports no '{OPEN_SYMBOL}'")))?;
        std::mem::forget(library);
        let mut text = [0 as c_char; 1024];
        let communicator = communicator.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let options = OpenOptions { communicator, part_bytes };
        // SAFETY: the options and the text live through the call.
        let table = unsafe { open(VERSION, &options, text.as_mut_ptr(), text.len()).as_ref() };
        let Some(table) = table else {
            // SAFETY: the function wrote a text with its NUL.
            let text = unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy();
            return Err(Error::new(status::INIT, format!("cluster: {text}")));
        };
        Ok(Remote { table, part_bytes })
    }

    /// This process.
    pub fn rank(&self) -> usize {
        self.table.rank as usize
    }

    /// Did the program initialise the library that moves the messages? Then it goes on when rank 0's contexts end.
    pub fn is_borrowed(&self) -> bool {
        self.table.borrowed != 0
    }

    /// This process, which is about to end, is to end with another code than it would. A library that cannot do that lets it be.
    pub fn end_with(&self, code: i32) {
        if self.table.struct_size > std::mem::offset_of!(TransportTable, end_with) {
            // SAFETY: the context is the table's, and the slot is there.
            unsafe { (self.table.end_with)(self.table.context, code) }
        }
    }

    /// Waits until all that was sent has left.
    pub fn flush(&self) -> Result<()> {
        // SAFETY: the context is the table's.
        self.check(unsafe { (self.table.flush)(self.table.context) })
    }

    /// Name and version of the library that moves the messages.
    pub fn library(&self) -> String {
        // SAFETY: the text lives as long as the process.
        unsafe { CStr::from_ptr(self.table.library) }.to_string_lossy().into_owned()
    }

    fn check(&self, code: i32) -> Result<()> {
        match code {
            outcome::OK => Ok(()),
            outcome::ENDED => Err(Error::new(status::SHUTDOWN, ENDED)),
            // The others would wait for what this rank cannot send or receive.
            _ => {
                let mut text = [0 as c_char; 1024];
                // SAFETY: the text has this capacity, and the function ends it with a NUL.
                unsafe {
                    (self.table.error)(self.table.context, text.as_mut_ptr(), text.len());
                    (self.table.abort)(self.table.context, text.as_ptr());
                }
                Err(Error::new(status::EXECUTION, "cluster: a message is lost"))
            }
        }
    }
}

/// The library's file: beside this one, or in a directory of `BH_LIBRARY_PATH`, as packages for Python come without MPI.
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
            // SAFETY: made below by `Box::into_raw`.
            buffers::give(*unsafe { Box::from_raw(owner.cast::<Vec<u8>>()) });
        }
        let owner = Box::into_raw(Box::new(bytes));
        let table = self.table;
        // SAFETY: the bytes live until the library releases them, once.
        self.check(unsafe {
            let (data, count) = ((*owner).as_ptr(), (*owner).len());
            (table.send)(table.context, to as u32, data, count, owner.cast(), release)
        })
    }

    fn receive(&mut self, _at: usize, from: usize) -> Result<Vec<u8>> {
        let mut count = 0;
        // SAFETY: the count lives through the call.
        self.check(unsafe { (self.table.receive)(self.table.context, from as u32, &mut count) })?;
        let mut bytes = buffers::take(count);
        // SAFETY: the buffer has as many bytes as were announced.
        self.check(unsafe { (self.table.take)(self.table.context, bytes.as_mut_ptr(), count) })?;
        Ok(bytes)
    }

    fn abort(&mut self, text: &str) {
        let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
        // SAFETY: the text lives through the call, which does not return.
        unsafe { (self.table.abort)(self.table.context, text.as_ptr()) }
    }
}

/// Shorter messages are sent before anybody asks for them.
const EXPECTED_BYTES: usize = 16 << 10;

/// The other processes, with room for long messages made ready before they come: MPI moves those only when it knows where to.
pub struct Wire {
    remote: Remote,
    expected: HashMap<usize, Vec<u8>>,
}

impl Wire {
    /// Nothing is expected.
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
        let mut room = buffers::take(bytes);
        let table = self.remote.table;
        // SAFETY: the room does not move, and is freed only when the message has come.
        self.remote.check(unsafe { (table.expect)(table.context, from as u32, room.as_mut_ptr(), bytes) })?;
        self.expected.insert(from, room);
        Ok(())
    }

    fn receive(&mut self, at: usize, from: usize) -> Result<Vec<u8>> {
        let Some(room) = self.expected.remove(&from) else { return self.remote.receive(at, from) };
        let (table, mut count) = (self.remote.table, 0);
        // The library may still write to it after a failure.
        let room = std::mem::ManuallyDrop::new(room);
        // SAFETY: the count lives through the call.
        self.remote.check(unsafe { (table.receive)(table.context, from as u32, &mut count) })?;
        Ok(std::mem::ManuallyDrop::into_inner(room))
    }

    fn abort(&mut self, text: &str) {
        self.remote.abort(text);
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        // What has not come may still come.
        self.expected.drain().for_each(|(_, room)| std::mem::forget(room));
    }
}
