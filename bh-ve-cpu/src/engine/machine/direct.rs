//! Small work at once: the elementwise operations of a block one by one, by the calling thread, straight from the batch's
//! tables. Nothing is planned and nothing allocated, as what never comes again would not pay for either.
//!
//! An operation goes through the primitives that planned blocks are made of, so its bits are theirs. The order of a block's
//! instructions makes renames needless, and contracted bases get memory for as long as the block runs.

use super::Machine;
use crate::primitives::{PrimFn, Primitives};
use bh_bytecode::batch::NO_BASE;
use bh_bytecode::{BatchRef, Instr, Kind, MAX_RANK, Opcode};
use bh_core::abi::{access, status};
use bh_core::{Error, Registry, Result};
use bh_fuser::lower::BaseUse;
use std::mem::MaybeUninit;

/// Elements that an operation does at a time where operands have to be copied: four blocks of the largest type stay in the
/// nearest cache.
const BLOCK: usize = 256;
/// Operands of an elementwise operation, its output among them.
const OPERANDS: usize = 4;
/// Operations on arrays of more elements are planned at once: about as many as are computed in the time of planning one.
const LITTLE: i64 = 8 << 10;

/// Is there no operation with much work in a batch?
pub(in crate::engine) fn is_little(batch: &BatchRef<'_>) -> bool {
    batch.views.iter().all(|view| view.len <= LITTLE)
}

/// Copies of blocks of operands.
#[repr(align(64))]
struct Buffers([[MaybeUninit<u8>; BLOCK * 16]; OPERANDS]);

/// An operand: where its next element lies, bytes of an element, and strides in bytes along the dimensions of the loop.
#[derive(Clone, Copy)]
struct Side {
    data: *mut u8,
    size: usize,
    strides: [isize; MAX_RANK],
}

impl Machine {
    /// Runs a block whose operations are all elementwise; false if it has others, and nothing has happened.
    pub(in crate::engine) fn direct(
        &mut self,
        registry: &Registry,
        batch: &BatchRef<'_>,
        instrs: &[u32],
    ) -> Result<bool> {
        let work = || {
            let instrs = instrs.iter().map(|&index| (index, &batch.instrs[index as usize]));
            instrs.filter(|(_, instr)| !instr.opcode.is_system())
        };
        if !work().all(|(_, instr)| instr.opcode.kind() == Kind::Elementwise) {
            return Ok(false);
        }
        let mut uses = std::mem::take(&mut self.uses);
        uses.clear();
        work().for_each(|(_, instr)| add_uses(batch, instr, &mut uses));
        let mut result = self.lend(registry, batch, &uses, std::iter::empty());
        for (index, instr) in work() {
            if result.is_err() {
                break;
            }
            let data = |base: u32| uses.iter().position(|used| used.base == base).map(|at| self.lent[at].data().cast());
            // SAFETY: the registry lends the whole buffers of validated bases.
            result =
                unsafe { operate(self.primitives, batch, instr, data) }.map_err(|error| error.at_instr(batch, index));
        }
        self.lent.clear();
        self.uses = uses;
        result.map(|()| true)
    }
}

/// Adds the bases of an operation, and how it uses them after those before it.
fn add_uses(batch: &BatchRef<'_>, instr: &Instr, uses: &mut Vec<BaseUse>) {
    let mut add = |view: u32, mode: u32| {
        let base = batch.views[view as usize].base;
        match uses.iter_mut().find(|known| known.base == base) {
            // What was written as a whole before is not needed from before the block.
            Some(known) if known.access & access::DISCARD != 0 => {}
            Some(known) => known.access |= mode & !access::DISCARD,
            None if base != NO_BASE => uses.push(BaseUse { base, access: mode }),
            None => {}
        }
    };
    instr.inputs().iter().filter_map(|operand| operand.as_view()).for_each(|view| add(view, access::READ));
    for view in instr.outputs().iter().filter_map(|operand| operand.as_view()) {
        let whole = batch.base_of(view).is_some_and(|base| base.len == batch.views[view as usize].len);
        add(view, Registry::output_access(whole));
    }
}

/// Runs an elementwise operation on bases that lie at `data`.
///
/// # Safety
/// The views of the operation must lie inside the memory of their bases.
unsafe fn operate(
    primitives: Primitives,
    batch: &BatchRef<'_>,
    instr: &Instr,
    data: impl Fn(u32) -> Option<*mut u8>,
) -> Result<()> {
    let missing = || Error::new(status::UNSUPPORTED, format!("the CPU engine cannot run {} at once", instr.opcode));
    let operands = instr.operands();
    let (Some(out), true) = (operands[0].as_view(), operands.len() <= OPERANDS) else { return Err(missing()) };
    let shape = batch.shape(out);
    if shape.contains(&0) {
        return Ok(());
    }
    let none = Side { data: std::ptr::null_mut(), size: 0, strides: [0; MAX_RANK] };
    let (mut sides, mut views) = ([none; OPERANDS], [None; OPERANDS]);
    for (at, operand) in operands.iter().enumerate() {
        sides[at].size = batch.dtype(*operand).ok_or_else(missing)?.size();
        sides[at].data = match (operand.as_view(), operand.as_constant()) {
            (Some(view), _) => {
                views[at] = Some(batch.stride(view));
                let record = &batch.views[view as usize];
                let base = data(record.base).ok_or_else(missing)?;
                base.wrapping_offset(record.start as isize * sides[at].size as isize)
            }
            (_, Some(constant)) => batch.constants[constant as usize].bits.as_ptr().cast_mut().cast(),
            _ => return Err(missing()),
        };
    }
    let sides = &mut sides[..operands.len()];
    let mut extents = [1i64; MAX_RANK];
    let mut rank = 0;
    for (axis, &extent) in shape.iter().enumerate().filter(|(_, extent)| **extent != 1) {
        let stride = |at: usize, size: usize| views[at].map_or(0, |strides| strides[axis] as isize * size as isize);
        let merges = |(at, side): (usize, &Side)| side.strides[rank - 1] == stride(at, side.size) * extent as isize;
        if rank > 0 && sides.iter().enumerate().all(merges) {
            extents[rank - 1] *= extent;
        } else {
            extents[rank] = extent;
            rank += 1;
        }
        for (at, side) in sides.iter_mut().enumerate() {
            side.strides[rank - 1] = stride(at, side.size);
        }
    }
    if rank == 0 {
        rank = 1;
        sides.iter_mut().for_each(|side| side.strides[0] = side.size as isize);
    }
    let (input, output) = (batch.dtype(operands[operands.len() - 1]), batch.dtype(operands[0]));
    let run = match (input, output) {
        (Some(input), Some(output)) if instr.opcode == Opcode::Copy && input == output => None,
        (Some(input), Some(output)) => {
            Some(primitives.elementwise(instr.opcode, instr.param, input, output).ok_or_else(missing)?)
        }
        _ => return Err(missing()),
    };
    let row = Row { primitives, run, inner: rank - 1, elements: extents[rank - 1] as usize };
    let mut buffers = Buffers([[MaybeUninit::uninit(); BLOCK * 16]; OPERANDS]);
    let mut index = [0i64; MAX_RANK];
    loop {
        // SAFETY: promised by the caller for each element of the views.
        unsafe { row.run(sides, &mut buffers) };
        let mut dim = rank - 1;
        loop {
            let Some(outer) = dim.checked_sub(1) else { return Ok(()) };
            dim = outer;
            index[dim] += 1;
            let back = index[dim] == extents[dim];
            let steps = if back { 1 - extents[dim] } else { 1 };
            sides.iter_mut().for_each(|side| side.data = side.data.wrapping_offset(steps as isize * side.strides[dim]));
            if !back {
                break;
            }
            index[dim] = 0;
        }
    }
}

/// The innermost loop of an operation.
struct Row {
    primitives: Primitives,
    /// What it does; a plain copy if there is nothing.
    run: Option<PrimFn>,
    /// Its dimension.
    inner: usize,
    elements: usize,
}

impl Row {
    /// # Safety
    /// All operands must be valid for the row's elements.
    unsafe fn run(&self, sides: &[Side], buffers: &mut Buffers) {
        let is_dense = |side: &Side| side.strides[self.inner] == side.size as isize;
        let whole = sides.iter().all(is_dense);
        let block = if whole { self.elements } else { BLOCK };
        for first in (0..self.elements).step_by(block) {
            let count = block.min(self.elements - first);
            let mut places = [std::ptr::null_mut(); OPERANDS];
            for (at, side) in sides.iter().enumerate() {
                let stride = side.strides[self.inner];
                let position = side.data.wrapping_offset(first as isize * stride);
                places[at] = if is_dense(side) { position } else { buffers.0[at].as_mut_ptr().cast() };
                // What stays the same along the row is still there.
                if at > 0 && !is_dense(side) && (first == 0 || stride != 0) {
                    // SAFETY: promised by the caller; a buffer has room for a block of the largest type.
                    unsafe { self.primitives.gather_strided(side.size)(count, places[at], position, stride) };
                }
            }
            let (out, last) = (&sides[0], sides.len() - 1);
            let args = [1, 2, 3].map(|at: usize| places[at.min(last)]);
            // SAFETY: as above.
            unsafe {
                match self.run {
                    Some(run) => run(count, places[0], args[0], args[1], args[2]),
                    None => std::ptr::copy(args[0], places[0], count * out.size),
                }
                if !is_dense(out) {
                    let stride = out.strides[self.inner];
                    let position = out.data.wrapping_offset(first as isize * stride);
                    self.primitives.scatter_strided(out.size)(count, position, places[0], stride);
                }
            }
        }
    }
}
