//! Calls about the data of bases, as the recorder makes them.

pub(crate) mod elements;
pub(crate) mod memory;

use bh_bytecode::{Base, View};
use bh_core::abi::{Adoption, Export, ExportRequest, access, status};
use bh_core::error::{Error, Result};
use bh_core::strided::{self, Side};

/// The data of bases behind a stack.
pub trait Data {
    /// Makes a base, or the part under `view`, accessible in host memory; returns the address of its element 0.
    fn map(&mut self, base: &Base, view: Option<&View>, access: u32) -> Result<*mut u8>;

    /// Ends a `map`.
    fn unmap(&mut self, base: &Base) -> Result<()>;

    /// Can the base be mapped with no copy, neither to host memory now nor to where an engine has one that becomes invalid?
    fn is_at_host(&mut self, _base: &Base, _access: u32) -> Result<bool> {
        Ok(true)
    }

    /// Takes the caller's memory, of the host or of a device, as the base's data.
    ///
    /// # Safety
    /// The adoption's memory must hold the whole base and stay valid, as its mode says, until its `release` is called,
    /// which must work with its argument on any thread.
    unsafe fn adopt(&mut self, base: &Base, adoption: &Adoption) -> Result<()>;

    /// Lends the base's data until `end_export`.
    fn export(&mut self, _base: &Base, _request: &ExportRequest) -> Result<Export> {
        Err(Error::new(status::UNSUPPORTED, "the stack lends no data"))
    }

    /// Ends an `export`, by its token.
    fn end_export(&mut self, _base: &Base, _token: u64) -> Result<()> {
        Err(Error::new(status::UNSUPPORTED, "the stack lends no data"))
    }

    /// Forbids or allows moving the base's host memory.
    fn pin(&mut self, base: &Base, pinned: bool) -> Result<()>;

    /// Copies the elements of a view to the program's memory.
    ///
    /// # Safety
    /// The view must lie inside the base. `to` must have a stride for each of its dimensions, be valid for writing its
    /// elements, on any thread, until this returns, and be no part of the base's own memory.
    unsafe fn read(&mut self, base: &Base, view: &View, to: Side<'_>) -> Result<()> {
        let mapped = self.map(base, Some(view), access::READ)?;
        let stride = byte_stride(base, view);
        let from = Side { data: element_address(mapped, base, view), stride: &stride };
        // SAFETY: the stack maps the view for reading; `to` is valid for writing its elements and elsewhere, as
        // `# Safety` asks.
        unsafe { strided::copy(base.dtype(), view.shape(), to, from) };
        self.unmap(base)
    }

    /// Overwrites the elements of an injective view from the program's memory. Truth values become 0 or 1.
    ///
    /// # Safety
    /// The view must lie inside the base. `from` must have a stride for each of its dimensions, be valid for reading
    /// its elements, on any thread, until this returns, and be no part of the base's own memory.
    unsafe fn write(&mut self, base: &Base, view: &View, from: Side<'_>) -> Result<()> {
        let whole = view.len() == base.len;
        let mode = if whole { access::WRITE | access::DISCARD } else { access::WRITE };
        let mapped = self.map(base, Some(view), mode)?;
        let stride = byte_stride(base, view);
        let to = Side { data: element_address(mapped, base, view), stride: &stride };
        // SAFETY: the stack maps the view for writing; `from` is valid for reading its elements and elsewhere, as
        // `# Safety` asks.
        unsafe { strided::copy(base.dtype(), view.shape(), to, from) };
        self.unmap(base)
    }
}

/// Tells the stack that the program may have written to a base's host memory, so that other copies are no longer valid.
pub(crate) fn refresh(data: &mut dyn Data, base: &Base) -> Result<()> {
    data.map(base, None, access::READ | access::WRITE)?;
    data.unmap(base)
}

/// A second way to the data, for use from any thread while a batch runs.
pub trait SharedData: Send + Sync {
    /// Calls `work` with the data.
    fn with(&self, work: &mut dyn FnMut(&mut dyn Data));
}

/// The view's strides in bytes.
fn byte_stride(base: &Base, view: &View) -> Vec<i64> {
    let size = base.dtype().size() as i64;
    view.stride().iter().map(|stride| stride * size).collect()
}

/// The address of the view's element (0, …, 0).
pub(crate) fn element_address(data: *mut u8, base: &Base, view: &View) -> *mut u8 {
    data.wrapping_offset((view.start() * base.dtype().size() as i64) as isize)
}

/// The byte strides of C order.
pub(crate) fn dense_stride(base: &Base, view: &View) -> Vec<i64> {
    let mut step = base.dtype().size() as i64;
    let mut all: Vec<i64> = Vec::with_capacity(view.rank());
    for &extent in view.shape().iter().rev() {
        all.push(step);
        step = step.saturating_mul(extent.max(1));
    }
    all.reverse();
    all
}
