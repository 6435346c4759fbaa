//! Copies of views: within the device, and between it and host memory that has a layout of its own.

use crate::code::{self, KernelMemory, Variant};
use crate::memory::{Memory, Pool};
use crate::start::Launch;
use bh_bytecode::view::is_contiguous;
use bh_bytecode::{Constant, DType, View};
use bh_core::abi::HostMemory;
use bh_core::strided;
use bh_core::{Error, Result};
use bh_kernel::{Arg, BufferRef, Dim, Kernel, Parameters, Slot, SlotMode, Stage, Step};
use std::sync::Arc;

/// Elements that are read or written in rows with gaps, if the gaps are no more than this many times the elements: a kernel
/// that puts them together would take longer.
const GAPS: i64 = 4;

/// From this many bytes on, elements with gaps between them are put together on the device, if they are to lie one after the other.
const PACKED: usize = 1 << 20;

/// Where elements lie in a buffer.
struct Layout<'a> {
    start: i64,
    shape: &'a [i64],
    stride: &'a [i64],
}

impl<'a> Layout<'a> {
    fn of(view: &'a View) -> Layout<'a> {
        Layout { start: view.start(), shape: view.shape(), stride: view.stride() }
    }
}

/// A type of this size; its bits are moved as they are.
fn carrier(dtype: DType) -> DType {
    match dtype.size() {
        1 => DType::U8,
        2 => DType::U16,
        4 => DType::U32,
        8 => DType::U64,
        _ => dtype,
    }
}

/// The loop nest that copies elements between two buffers.
fn copies(dtype: DType, from: &Layout<'_>, to: &Layout<'_>) -> Stage {
    let some = |numbers: &[i64], one: i64| if numbers.is_empty() { vec![one] } else { numbers.to_vec() };
    let shape = some(from.shape, 1);
    let slot = |mode, same_as| Slot { dtype: carrier(dtype), mode, same_as };
    Stage {
        kernel: Kernel {
            dims: vec![Dim::Kept; shape.len()],
            slots: vec![slot(SlotMode::Read, 0), slot(SlotMode::Write, 1)],
            constants: Vec::new(),
            steps: vec![Step::Load { slot: 0 }, Step::Store { slot: 1, arg: Arg::Value(0) }],
        },
        parameters: Parameters {
            extents: shape,
            buffers: vec![BufferRef::Base(0), BufferRef::Base(1)],
            starts: vec![from.start, to.start],
            strides: [some(from.stride, 0), some(to.stride, 0)].concat(),
            instrs: vec![0; 2],
            ..Parameters::default()
        },
    }
}

/// Puts a copy between two buffers of the device into the queue.
fn copy(pool: &Arc<Pool>, dtype: DType, from: (&Memory, Layout<'_>), to: (&Memory, Layout<'_>)) -> Result<()> {
    let stage = copies(dtype, &from.1, &to.1);
    for code in code::stage(&stage, &pool.target, Variant::Parameterised, &mut Vec::new()) {
        let launch = Launch::new(code, &pool.programs);
        pool.programs.build(std::slice::from_ref(&launch.entry))?;
        launch.bring_numbers(|bytes| pool.take(bytes))?;
        let memory = |place| match place {
            KernelMemory::Of(BufferRef::Base(0)) => Some(from.0),
            KernelMemory::Of(BufferRef::Base(1)) => Some(to.0),
            _ => None,
        };
        launch.start(&pool.gpu, &memory, &|_, _| Constant::from_value(0u8), false)?;
    }
    Ok(())
}

/// A dense copy of a view of a buffer, on the device.
pub(crate) fn clone(memory: &Memory, dtype: DType, view: &View) -> Result<Memory> {
    let pool = &memory.pool;
    let copied = pool.take(view.len() as usize * dtype.size())?;
    if !view.is_empty() {
        let dense = dense(view)?;
        copy(pool, dtype, (memory, Layout::of(view)), (&copied, Layout::of(&dense)))?;
    }
    Ok(copied)
}

/// Copies elements that lie one after the other to a view of a buffer, on the device.
pub(crate) fn spread(packed: &Memory, memory: &Memory, dtype: DType, view: &View) -> Result<()> {
    let dense = dense(view)?;
    copy(&memory.pool, dtype, (packed, Layout::of(&dense)), (memory, Layout::of(view)))
}

/// The elements of a view one after the other.
fn dense(view: &View) -> Result<View> {
    View::contiguous(view.shape()).map_err(|why| Error::new(bh_core::abi::status::ARGUMENT, why.to_string()))
}

/// Copies the elements of a view of a buffer to host memory; the bytes that travelled.
///
/// # Safety
/// `view`, of elements of `dtype`, must lie inside the buffer, and `host` be writable for its elements, with a stride
/// for each dimension.
pub(crate) unsafe fn read(memory: &Memory, dtype: DType, view: &View, host: &HostMemory) -> Result<usize> {
    if view.is_empty() {
        return Ok(0);
    }
    let (size, len) = (dtype.size(), view.len() as usize);
    if view.is_contiguous() && is_dense(dtype, view, host) {
        // SAFETY: `host` is dense, and writable for the view's `len` elements, as `# Safety` asks.
        let target = unsafe { std::slice::from_raw_parts_mut(host.data(), len * size) };
        memory.download_at(view.start() as usize * size, target)?;
        normalise(dtype, target);
        return Ok(len * size);
    }
    let packs = is_dense(dtype, view, host) && len * size >= PACKED;
    if let Some((first, moved, bytes)) = span(dtype, view).filter(|_| !packs) {
        let mut staged = vec![0u8; bytes];
        memory.download_at(first, &mut staged)?;
        // SAFETY: the moved view has its elements within the span, which was staged, and `host` is writable for them,
        // as `# Safety` asks.
        unsafe { strided::load(dtype, &moved, staged.as_ptr(), host) };
        return Ok(bytes);
    }
    let packed = clone(memory, dtype, view)?;
    if is_dense(dtype, view, host) {
        // SAFETY: `host` is dense, and writable for the view's `len` elements, as `# Safety` asks.
        let target = unsafe { std::slice::from_raw_parts_mut(host.data(), len * size) };
        packed.download_at(0, target)?;
        normalise(dtype, target);
        return Ok(len * size);
    }
    let mut staged = vec![0u8; len * size];
    packed.download_at(0, &mut staged)?;
    // SAFETY: the staged bytes are the view's elements, densely, and `host` is writable for them, as `# Safety` asks.
    unsafe { strided::load(dtype, &dense(view)?, staged.as_ptr(), host) };
    Ok(len * size)
}

/// Makes truth values 0 or 1, as [`strided::load`] does.
fn normalise(dtype: DType, elements: &mut [u8]) {
    if dtype == DType::Bool {
        elements.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
    }
}

/// Overwrites the elements of a view of a buffer from host memory; the bytes that travelled.
///
/// # Safety
/// `view`, of elements of `dtype`, must lie inside the buffer, and `host` be readable for its elements, with a stride
/// for each dimension.
pub(crate) unsafe fn write(memory: &Memory, dtype: DType, view: &View, host: &HostMemory) -> Result<usize> {
    if view.is_empty() {
        return Ok(0);
    }
    let (size, len) = (dtype.size(), view.len() as usize);
    let mut staged = Vec::new();
    let elements = if is_dense(dtype, view, host) {
        // SAFETY: `host` is dense, and readable for the view's `len` elements, as `# Safety` asks.
        unsafe { std::slice::from_raw_parts(host.data(), len * size) }
    } else {
        staged.resize(len * size, 0u8);
        // SAFETY: the staged bytes have room for the view's elements, densely, and `host` is readable for them, as
        // `# Safety` asks.
        unsafe { strided::store(dtype, &dense(view)?, staged.as_mut_ptr(), host) };
        &staged
    };
    if view.is_contiguous() {
        memory.upload_at(view.start() as usize * size, elements)?;
    } else {
        let packed = memory.pool.take(elements.len())?;
        packed.upload(elements)?;
        spread(&packed, memory, dtype, view)?;
    }
    Ok(len * size)
}

/// Does the host memory have the elements one after the other?
fn is_dense(dtype: DType, view: &View, host: &HostMemory) -> bool {
    let size = dtype.size() as i64;
    let strides: Option<Vec<i64>> =
        host.stride().iter().map(|stride| (stride % size == 0).then_some(stride / size)).collect();
    strides.is_some_and(|strides| is_contiguous(view.shape(), &strides))
}

/// The first byte of the piece of memory that has all elements of a view, the view within that, and its bytes; none if most
/// of it would be other elements.
fn span(dtype: DType, view: &View) -> Option<(usize, View, usize)> {
    let (low, high) = view.extent()?;
    let reach = high - low + 1;
    if reach > view.len().saturating_mul(GAPS) {
        return None;
    }
    let moved = View::new(view.start() - low, view.shape(), view.stride()).ok()?;
    Some((low as usize * dtype.size(), moved, reach as usize * dtype.size()))
}
