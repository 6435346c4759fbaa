//! [`Host`]: the services of the host as a component sees them, and its [`Counter`]s.

use crate::abi::{HostTable, ProgressFn, status};
use crate::config::{Key, Setting};
use crate::error::{Error, Result};
use std::ffi::{CStr, CString, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

/// Services of the host.
#[derive(Clone, Copy)]
pub struct Host {
    table: *const HostTable,
}

// SAFETY: the host's functions may be called from any thread.
unsafe impl Send for Host {}
// SAFETY: as above.
unsafe impl Sync for Host {}

/// A counter of the statistics; counting is one relaxed atomic addition.
#[derive(Clone, Copy)]
pub struct Counter(*const AtomicU64);

// SAFETY: it points to an atomic that lives as long as the instance.
unsafe impl Send for Counter {}
// SAFETY: as above.
unsafe impl Sync for Counter {}

impl Counter {
    /// A counter outside the statistics.
    pub fn unseen() -> Counter {
        static UNSEEN: AtomicU64 = AtomicU64::new(0);
        Counter(&raw const UNSEEN)
    }

    /// Adds to the counter.
    #[inline]
    pub fn add(self, count: u64) {
        // SAFETY: the host keeps counters alive as long as the instance, and [`Host::new`] asks that none is used
        // afterwards.
        unsafe { (*self.0).fetch_add(count, Ordering::Relaxed) };
    }

    /// Sets the counter, for a value that describes a state, not a number of events.
    #[inline]
    pub fn set(self, value: u64) {
        // SAFETY: the host keeps counters alive as long as the instance, and [`Host::new`] asks that none is used
        // afterwards.
        unsafe { (*self.0).store(value, Ordering::Relaxed) };
    }

    /// Raises the counter to at least `value`.
    pub fn raise(self, value: u64) {
        // SAFETY: the host keeps counters alive as long as the instance, and [`Host::new`] asks that none is used
        // afterwards.
        unsafe { (*self.0).fetch_max(value, Ordering::Relaxed) };
    }
}

/// The key, among the config values of a component with one instance per device, under which it finds the number of its
/// device.
pub(crate) const DEVICE_NUMBER: &str = "device number";

impl Host {
    /// The index, from 0, of this instance's device among those that its configuration offers, if the stack has one
    /// instance per device (`NAME*`). Such a component answers the message `device count`.
    pub fn device_number(&self) -> Option<usize> {
        self.text(DEVICE_NUMBER)?.parse().ok()
    }

    /// Wraps the host's table.
    ///
    /// # Safety
    /// `table` must point to a table that is valid, with the context of its functions, as long as this value, a copy of
    /// it or a [`Counter`] of it is used.
    pub unsafe fn new(table: *const HostTable) -> Host {
        Host { table }
    }

    fn table(&self) -> &HostTable {
        // SAFETY: [`Host::new`] asks for a table that is valid as long as the value is used.
        unsafe { &*self.table }
    }

    /// The text of a config key, if it is set.
    pub fn config<T: Setting>(&self, key: &Key<T>) -> Option<String> {
        key.row().names().find_map(|name| self.text(name))
    }

    /// The name under which the configuration sets a key: its current name, unless only the older one is set.
    pub fn spelling<T: Setting>(&self, key: &Key<T>) -> &'static str {
        key.row().names().find(|name| self.text(name).is_some()).unwrap_or(key.name())
    }

    fn text(&self, key: &str) -> Option<String> {
        let key = CString::new(key).ok()?;
        // SAFETY: the function and the context are the table's, which is valid, as [`Host::new`] asks; it returns null
        // or a text that lives as long as the instance.
        unsafe {
            let text = (self.table().config)(self.table().context, key.as_ptr());
            (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
        }
    }

    /// The value of a config key, or its default if it is unset. The error lists the valid values.
    pub fn setting<T: Setting>(&self, key: &Key<T>) -> Result<T> {
        match self.config(key) {
            None => Ok(key.default()),
            Some(text) => T::read(&text).ok_or_else(|| Error::of_key(self.spelling(key), T::FORM, &text)),
        }
    }

    /// A new base id.
    pub fn new_base_id(&self) -> u64 {
        // SAFETY: the function and the context are the table's, which is valid, as [`Host::new`] asks.
        unsafe { (self.table().new_base_id)(self.table().context) }
    }

    /// Host memory, see [`HostTable::alloc`]; free it with [`Host::free`].
    pub fn alloc(&self, bytes: usize, zeroed: bool) -> Result<*mut u8> {
        // SAFETY: the function and the context are the table's, which is valid, as [`Host::new`] asks.
        let data = unsafe { (self.table().alloc)(self.table().context, bytes, i32::from(zeroed)) };
        if data.is_null() {
            return Err(Error::new(
                status::MEMORY,
                format!("out of memory: cannot allocate {bytes} bytes of host memory"),
            ));
        }
        Ok(data.cast())
    }

    /// Gives memory back.
    ///
    /// # Safety
    /// `data` must come from [`Host::alloc`] with the same `bytes`, and be unused.
    pub unsafe fn free(&self, data: *mut u8, bytes: usize) {
        // SAFETY: `data` comes from the table's `alloc` with the same `bytes`, and is unused, as `# Safety` asks.
        unsafe { (self.table().free)(self.table().context, data.cast(), bytes) }
    }

    /// Writes a line to the log; see [`crate::abi::log_level`].
    pub fn log(&self, level: u32, text: &str) {
        if let Ok(text) = CString::new(text.replace('\0', " ")) {
            // SAFETY: the function and the context are the table's, which is valid, as [`Host::new`] asks; the text
            // lives through the call.
            unsafe { (self.table().log)(self.table().context, level, text.as_ptr()) }
        }
    }

    /// The counter of this name.
    pub fn counter(&self, name: &str) -> Counter {
        let name = CString::new(name).unwrap_or_default();
        // SAFETY: the function and the context are the table's, which is valid, as [`Host::new`] asks; the counter
        // lives as long as the instance.
        Counter(unsafe { (self.table().counter)(self.table().context, name.as_ptr()) }.cast())
    }

    /// The time for the start of a trace event; 0 if tracing is off.
    #[inline]
    pub fn trace_clock(&self) -> u64 {
        // SAFETY: the function and the context are the table's, which is valid, as [`Host::new`] asks.
        unsafe { (self.table().trace_clock)(self.table().context) }
    }

    /// Records a trace event from `begin` until now; does nothing if `begin` is 0.
    pub fn trace(&self, name: &str, begin: u64, detail: &str) {
        if begin == 0 {
            return;
        }
        if let (Ok(name), Ok(detail)) = (CString::new(name), CString::new(detail)) {
            // SAFETY: the function and the context are the table's, which is valid, as [`Host::new`] asks; the texts
            // live through the call.
            unsafe { (self.table().trace)(self.table().context, name.as_ptr(), begin, detail.as_ptr()) }
        }
    }

    /// Records work of a device from `begin` to `end`, on its own row of the trace; does nothing if `begin` is 0.
    pub fn trace_device(&self, name: &str, row: u64, begin: u64, end: u64, detail: &str) {
        if begin == 0 {
            return;
        }
        if let (Ok(name), Ok(detail)) = (CString::new(name), CString::new(detail)) {
            let (table, name, detail) = (self.table(), name.as_ptr(), detail.as_ptr());
            // SAFETY: the function and the context are the table's, which is valid, as [`Host::new`] asks; the texts
            // live through the call.
            unsafe { (table.trace_device)(table.context, name, row, begin, end, detail) }
        }
    }

    /// Lets components handle their messages; see [`HostTable::progress`].
    #[inline]
    pub fn progress(&self) {
        // SAFETY: the function and the context are the table's, which is valid, as [`Host::new`] asks.
        unsafe { (self.table().progress)(self.table().context) }
    }

    /// Sets what `progress` calls; see [`HostTable::set_progress`].
    ///
    /// # Safety
    /// The function must work with the argument, on any thread, until another one or none is set.
    pub unsafe fn set_progress(&self, function: Option<ProgressFn>, argument: *mut c_void) {
        // SAFETY: the host asks for what `# Safety` asks: a function that works with the argument, on any thread, until
        // another one is set.
        unsafe { (self.table().set_progress)(self.table().context, function, argument) }
    }

    /// The application's own handle of this name, or null; see [`HostTable::handle`].
    pub fn handle(&self, name: &str) -> *mut c_void {
        let name = CString::new(name).unwrap_or_default();
        // SAFETY: the function and the context are the table's, which is valid, as [`Host::new`] asks; the name lives
        // through the call.
        unsafe { (self.table().handle)(self.table().context, name.as_ptr()) }
    }

    /// Bytes that [`Host::alloc`] can still give before the memory limit.
    pub fn memory_left(&self) -> u64 {
        // SAFETY: the function and the context are the table's, which is valid, as [`Host::new`] asks.
        unsafe { (self.table().memory_left)(self.table().context) }
    }

    pub(crate) fn reply(&self, reply: *mut c_void, text: &str) {
        // SAFETY: `reply` is the pointer that the host passed to `message`.
        unsafe { (self.table().reply)(reply, text.as_ptr().cast(), text.len()) }
    }
}
