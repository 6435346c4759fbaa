//! Small work at once: the operations of a batch one by one, by the calling thread, straight from the batch's tables. Nothing
//! is planned and nothing allocated, as a batch that never repeats would not pay for either.
//!
//! An operation goes through the primitives that planned blocks are made of, and a fold through their tree, so its bits are
//! theirs. The order of a block's instructions makes renames needless, and contracted bases get memory until they are
//! discarded. Loans last from one block to the next.

use super::super::elementwise::{Elements, OPERANDS, elementwise};
use super::super::fold;
use super::Machine;
use super::run::chosen;
use crate::primitives::Primitives;
use bh_bytecode::batch::NO_BASE;
use bh_bytecode::contraction::is_product;
use bh_bytecode::planning::LITTLE;
use bh_bytecode::{BatchRef, DType, Instr, Kind};
use bh_core::abi::{access, status};
use bh_core::component::enter_block;
use bh_core::{Error, Registry, Result};
use bh_kernel::BaseUse;

impl Machine {
    /// Begins to run a batch operation by operation, or ends it: what was lent is given back.
    pub(super) fn begin_direct(&mut self, batch: &BatchRef<'_>) {
        self.held.reset(batch.bases.len());
    }

    /// Gives back what a block's data management drops.
    pub(super) fn drop_ended(&mut self, batch: &BatchRef<'_>, instrs: &[u32]) {
        for &index in instrs {
            let instr = &batch.instrs[index as usize];
            if let (true, Some(view)) = (instr.opcode.is_system(), instr.operands().first().and_then(|it| it.as_view()))
                && let Some(held) = self.held.bases.get_mut(batch.views[view as usize].base as usize)
            {
                held.loan = None;
            }
        }
    }

    /// Does something with blocks of a batch, all if none is named, while what they borrow stays lent from block to block.
    pub(super) fn direct(
        &mut self,
        batch: &BatchRef<'_>,
        blocks: &[u32],
        mut run: impl FnMut(&mut Machine, u32) -> Result<()>,
    ) -> Result<()> {
        self.begin_direct(batch);
        let result = chosen(batch, blocks).try_for_each(|block| {
            enter_block(block);
            run(self, block)
        });
        self.begin_direct(batch);
        result
    }

    /// Borrows the memory of a block whose operations can all do without a plan; false if it has others, and nothing has happened.
    pub(super) fn hold(&mut self, registry: &Registry, batch: &BatchRef<'_>, instrs: &[u32]) -> Result<bool> {
        if !work(batch, instrs).all(|(_, instr)| is_direct(batch, instr)) {
            return Ok(false);
        }
        // All memory comes before anything changes, so that a block that lacks some can be run again.
        let uses = &mut self.held.uses;
        uses.clear();
        work(batch, instrs).for_each(|(_, instr)| add_uses(batch, instr, uses));
        for at in 0..self.held.uses.len() {
            let used = self.held.uses[at];
            self.held.acquire(registry, batch, used)?;
        }
        Ok(true)
    }

    /// Runs a block whose operations can all do without a plan; false if it has others, and nothing has happened.
    pub(super) fn operate(&mut self, registry: &Registry, batch: &BatchRef<'_>, instrs: &[u32]) -> Result<bool> {
        if !self.hold(registry, batch, instrs)? {
            return Ok(false);
        }
        for (index, instr) in work(batch, instrs) {
            let held = &self.held;
            // SAFETY: the registry lends the whole buffers of validated bases.
            let result = unsafe { operate(self.primitives, batch, instr, |base| held.data(base)) };
            result.map_err(|error| error.at_instr(batch, index))?;
        }
        Ok(true)
    }
}

/// The operations of a block that compute.
fn work<'a>(batch: &'a BatchRef<'_>, instrs: &'a [u32]) -> impl Iterator<Item = (u32, &'a Instr)> {
    let instrs = instrs.iter().map(|&index| (index, &batch.instrs[index as usize]));
    instrs.filter(|(_, instr)| !instr.opcode.is_system())
}

/// Adds the bases of an operation, and how it uses them after those before it.
fn add_uses(batch: &BatchRef<'_>, instr: &Instr, uses: &mut Vec<BaseUse>) {
    let mut add = |view: u32, mode: u32| {
        let record = &batch.views[view as usize];
        if record.len == 0 {
            return;
        }
        let base = record.base;
        match uses.iter_mut().find(|known| known.base == base) {
            // A base that was written as a whole is not needed from before the block.
            Some(known) if known.access & access::DISCARD != 0 => {}
            Some(known) => known.access |= mode & !access::DISCARD,
            None => uses.push(BaseUse { base, access: mode }),
        }
    };
    instr.inputs().iter().filter_map(|operand| operand.as_view()).for_each(|view| add(view, access::READ));
    for view in instr.outputs().iter().filter_map(|operand| operand.as_view()) {
        let whole = batch.base_of(view).is_some_and(|base| base.len == batch.views[view as usize].len);
        add(view, Registry::output_access(whole));
    }
}

/// Can an operation do without a plan? It must be elementwise, or a fold of one chunk, and be little work.
fn is_direct(batch: &BatchRef<'_>, instr: &Instr) -> bool {
    let is_little = |view: u32| batch.views[view as usize].len as u64 <= LITTLE && base_is_real(batch, view);
    instr.operands().iter().filter_map(|operand| operand.as_view()).all(is_little)
        && match instr.opcode.kind() {
            Kind::Elementwise => true,
            Kind::Reduction => {
                let shape = instr.inputs().first().and_then(|input| input.as_view()).map(|view| batch.shape(view));
                let masked = instr.inputs().get(1).is_some_and(|mask| batch.dtype(*mask) == Some(DType::Bool));
                let fits = |shape| fold::fits(shape, (instr.param, instr.order), masked);
                shape.is_some_and(fits) && !is_product(batch, instr)
            }
            _ => false,
        }
}

fn base_is_real(batch: &BatchRef<'_>, view: u32) -> bool {
    batch.views[view as usize].base != NO_BASE
}

/// Runs an operation on bases that lie at `data`.
///
/// # Safety
/// The batch must be valid: views lie inside their bases. `data` must give the address of each base's element 0, of
/// memory that holds the whole base for this call alone.
unsafe fn operate(
    primitives: Primitives,
    batch: &BatchRef<'_>,
    instr: &Instr,
    data: impl Fn(u32) -> Option<*mut u8>,
) -> Result<()> {
    let missing = || Error::new(status::UNSUPPORTED, format!("the CPU engine cannot run {} at once", instr.opcode));
    let operands = instr.operands();
    let (Some(out), true) = (operands[0].as_view(), operands.len() <= OPERANDS) else { return Err(missing()) };
    // Bases that nothing is read or written of have no memory here.
    if batch.shape(out).contains(&0) {
        return Ok(());
    }
    let none = Elements { data: std::ptr::null_mut(), dtype: DType::Bool, stride: &[] };
    let mut all = [none; OPERANDS];
    for (at, operand) in operands.iter().enumerate() {
        let dtype = batch.dtype(*operand).ok_or_else(missing)?;
        all[at] = match (operand.as_view(), operand.as_constant()) {
            (Some(view), _) => {
                let record = &batch.views[view as usize];
                let base = data(record.base).ok_or_else(missing)?;
                let data = base.wrapping_offset(record.start as isize * dtype.size() as isize);
                Elements { data, dtype, stride: batch.stride(view) }
            }
            (_, Some(constant)) => {
                let data = batch.constants[constant as usize].bits.as_ptr().cast_mut().cast();
                Elements { data, dtype, stride: &[] }
            }
            _ => return Err(missing()),
        };
    }
    let all = &all[..operands.len()];
    // SAFETY: views lie inside the memory of their bases; constants are single elements.
    let done = unsafe {
        match (instr.opcode.kind(), operands.get(1).and_then(|input| input.as_view())) {
            (Kind::Reduction, Some(input)) => {
                fold::fold(primitives, instr.opcode, (instr.param, instr.order), batch.shape(input), all)
            }
            _ => elementwise(primitives, (instr.opcode, instr.param), batch.shape(out), all),
        }
    };
    if done { Ok(()) } else { Err(missing()) }
}
