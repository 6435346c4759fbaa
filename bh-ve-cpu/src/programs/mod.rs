//! Scalar programs: elements in blocks, each block by compiled code, or operation by operation under masks until that is there.
//! Both have the same bits.

mod blocks;
mod operands;

use crate::exec::{Scratch, Workers};
use crate::native::{Code, NativeKernel, Tier1};
use crate::primitives::Primitives;
use bh_bytecode::methods::is_program;
use bh_bytecode::{Constant, DType, Opcode};
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_jit_abi::{Call, FAILURE_AT, FAILURE_LANES, Failure, SCRATCH_BYTES, TURNS_AT};
use bh_methods::Strided;
use bh_scalar::{Program, Statement};
use operands::{Operands, Side};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Elements of a block.
const BLOCK: usize = 512;
/// Bytes of an element, at most.
const LARGEST: usize = 16;
/// Units of work (about 0.04 ns) of a simple operation on an element; turns that a loop is expected to have.
const OPERATION: u64 = 3;
const LOAD: u64 = 4;
const TURNS: u64 = 16;
/// Turns of all loops of a block together, by compiled code and by primitives, that are too many: they take some seconds at least.
const MOST_TURNS: i64 = 1 << 33;
const MOST_TURNS_OF_PRIMITIVES: i64 = 1 << 27;
/// Turns after which a block is left to compiled code.
const LONG: i64 = 1 << 14;

/// The programs that the engine knows.
#[derive(Default)]
pub(crate) struct Programs {
    known: Vec<(Opcode, Arc<Known>)>,
}

/// A program, ready to run.
struct Known {
    program: Program,
    constants: Vec<Constant>,
    native: Option<Arc<NativeKernel>>,
    /// Units of an element.
    work: u64,
}

impl Programs {
    /// Learns the opcode of a program; false for other names, and for programs with operations that there are no primitives for.
    pub(crate) fn announce(
        &mut self,
        name: &str,
        opcode: Opcode,
        primitives: Primitives,
        tier1: &mut Option<Tier1>,
    ) -> Result<bool> {
        if !is_program(name) {
            return Ok(false);
        }
        let program =
            Program::parse(name).map_err(|why| Error::new(status::ARGUMENT, format!("scalar program: {why}")))?;
        let has_primitive = |compute: &bh_scalar::Compute| {
            let (input, output) = program.types_of(compute);
            primitives.elementwise(compute.opcode, compute.param, input, output).is_some()
        };
        if !program.operations().all(has_primitive) {
            return Ok(false);
        }
        let constants = program.constants();
        let work = (OPERATION * work(&program.body)).max(1);
        let native = tier1.as_mut().and_then(|tier1| tier1.program(name));
        self.known.retain(|(number, _)| *number != opcode);
        self.known.push((opcode, Arc::new(Known { program, constants, native, work })));
        Ok(true)
    }

    /// Is it the opcode of a program?
    pub(crate) fn knows(&self, opcode: Opcode) -> bool {
        self.find(opcode).is_some()
    }

    fn find(&self, opcode: Opcode) -> Option<&Arc<Known>> {
        self.known.iter().find(|(number, _)| *number == opcode).map(|(_, known)| known)
    }

    /// Bytes of work memory of each thread, if it is the opcode of a program.
    pub(crate) fn work_bytes(&self, opcode: Opcode) -> Option<usize> {
        self.find(opcode).map(|known| known.bytes())
    }

    /// Runs the program with this opcode on outputs and inputs.
    pub(crate) fn run(
        &self,
        opcode: Opcode,
        operands: &[Strided<'_>],
        (primitives, tier1): (Primitives, &mut Option<Tier1>),
        workers: &mut Workers,
    ) -> Result<()> {
        let Some(known) = self.find(opcode).map(Arc::clone) else {
            return Err(Error::new(status::UNSUPPORTED, "the CPU engine does not know the scalar program"));
        };
        let operands = Operands::new(&known.program, operands, primitives)?;
        if operands.len == 0 {
            return Ok(());
        }
        let units = known.work.saturating_mul(operands.len as u64);
        if let (Some(native), Some(tier1)) = (&known.native, &mut *tier1) {
            tier1.count(native, units);
        }
        let blocks = (operands.len as u64).div_ceil(BLOCK as u64) as i64;
        let pass = Pass { known: &known, operands: &operands, primitives, units };
        let first = if known.native.is_some() { LONG } else { MOST_TURNS_OF_PRIMITIVES };
        let mut left = pass.run(blocks, |block| block, first, workers)?;
        if let (Some(native), Some(tier1), false) = (&known.native, tier1, left.is_empty()) {
            tier1.compile_now(native);
            left = pass.run(left.len() as i64, |at| left[at as usize], MOST_TURNS_OF_PRIMITIVES, workers)?;
        }
        if left.is_empty() {
            return Ok(());
        }
        let text = format!("{}: a loop does not seem to end for some elements", known.program.name);
        Err(Error::new(status::EXECUTION, text))
    }
}

/// Blocks that are to be done.
struct Pass<'a> {
    known: &'a Known,
    operands: &'a Operands<'a>,
    primitives: Primitives,
    /// The work of all blocks.
    units: u64,
}

impl Pass<'_> {
    /// Does the blocks that `numbers` numbers, each with this many turns at most by primitives. Returns those that have not ended;
    /// fails with the first subscript that is out of range.
    fn run(
        &self,
        blocks: i64,
        numbers: impl Fn(i64) -> i64 + Sync,
        turns: i64,
        workers: &mut Workers,
    ) -> Result<Vec<i64>> {
        let participants = workers.participants(self.units);
        let tasks = workers.tasks(participants, self.units, blocks).max(1);
        let each = (blocks as u64).div_ceil(tasks as u64) as i64;
        let (left, gave_up) = (Mutex::new(Vec::new()), AtomicBool::new(false));
        let (failed, first) = (Mutex::new(None), AtomicI64::new(i64::MAX));
        workers.run(participants, (blocks as u64).div_ceil(each as u64) as usize, |scratch, tasks| {
            let mut participant = Participant::new(self, scratch);
            while let Some(task) = tasks.take() {
                for number in (task as i64 * each..((task as i64 + 1) * each).min(blocks)).map(&numbers) {
                    if number > first.load(Ordering::Relaxed) {
                        continue;
                    }
                    // One loop without an end is enough.
                    let gives_up = gave_up.load(Ordering::Relaxed);
                    let end = if gives_up { End::Late } else { participant.block(number * BLOCK as i64, turns) };
                    match end {
                        End::Reached => {}
                        End::Late => {
                            left.lock().unwrap_or_else(PoisonError::into_inner).push(number);
                            gave_up.fetch_or(turns > LONG, Ordering::Relaxed);
                        }
                        End::Failed(text) => {
                            let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                            if failed.as_ref().is_none_or(|(other, _)| *other > number) {
                                *failed = Some((number, text));
                                first.store(number, Ordering::Relaxed);
                            }
                        }
                    }
                }
            }
        });
        match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some((_, text)) => Err(Error::new(status::BOUNDS, text)),
            None => Ok(left.into_inner().unwrap_or_else(PoisonError::into_inner)),
        }
    }
}

/// How a block of elements ended.
enum End {
    Reached,
    /// Its loops have more turns than they may.
    Late,
    /// A subscript is out of range, as the text says.
    Failed(String),
}

/// About how many simple operations statements take for an element.
fn work(statements: &[Statement]) -> u64 {
    let all = statements.iter().map(|statement| match statement {
        Statement::Compute(compute) => u64::from(compute.opcode.info().cost),
        Statement::Load(_) => LOAD,
        Statement::Loop(body) => work(body).saturating_mul(TURNS),
        other => other.parts().into_iter().map(work).fold(1, u64::saturating_add),
    });
    all.fold(0, u64::saturating_add)
}

impl Known {
    /// Bytes of registers and constants in blocks, one more block for results under a mask, blocks of operands, and scratch memory of
    /// compiled code.
    fn bytes(&self) -> usize {
        let operands = self.program.inputs + self.program.outputs;
        let blocks = self.program.registers.len() + self.constants.len() + 1 + operands;
        SCRATCH_BYTES + blocks * BLOCK * LARGEST
    }

    /// The types of registers and constants.
    fn types(&self) -> impl Iterator<Item = DType> {
        self.program.registers.iter().copied().chain(self.constants.iter().map(Constant::dtype))
    }
}

/// The memory of one participant: scratch for compiled code, then a block for each operand, then registers.
struct Participant<'a> {
    known: &'a Known,
    operands: &'a Operands<'a>,
    primitives: Primitives,
    memory: *mut u8,
    /// Where the operands of the current block are, inputs first.
    slots: Vec<*mut u8>,
    /// The blocks of the program's registers, once they are needed.
    registers: Option<blocks::Registers<'a>>,
}

impl<'a> Participant<'a> {
    fn new(pass: &Pass<'a>, scratch: &mut Scratch) -> Self {
        let &Pass { known, operands, primitives, .. } = pass;
        let memory = scratch.rows.reserve(known.bytes());
        Participant { known, operands, primitives, memory, slots: Vec::new(), registers: None }
    }

    /// The elements from `first` on.
    fn block(&mut self, first: i64, most: i64) -> End {
        let count = (self.operands.len - first).min(BLOCK as i64) as usize;
        let room = |operand: usize| self.memory.wrapping_add(SCRATCH_BYTES + operand * BLOCK * LARGEST);
        self.slots.clear();
        for operand in 0..self.operands.count() {
            // SAFETY: the elements are inside of the operand, and the block has room for as many.
            self.slots.push(unsafe { self.operands.block(operand, first, count, room(operand)) });
        }
        self.slots.extend(self.operands.tables.iter().map(|table| table.data()));
        let end = match self.known.native.as_ref().and_then(|native| native.code()) {
            Some(code) => self.compiled(code, count),
            None => {
                let memory = room(self.operands.count());
                let registers = self.registers.get_or_insert_with(|| {
                    // SAFETY: the memory behind the operands' blocks has room for all registers.
                    unsafe { blocks::Registers::new(self.known, self.operands, self.primitives, memory) }
                });
                // SAFETY: the slots are the program's operands, with `count` elements each, in the arrays or in their
                // own blocks.
                unsafe { registers.run(&self.slots, count, most) }
            }
        };
        for operand in 0..self.operands.count() {
            if matches!(end, End::Reached) && self.operands.side(operand) == Side::Output {
                // SAFETY: as above; no other participant writes these elements.
                unsafe { self.operands.store(operand, first, count, self.slots[operand]) };
            }
        }
        end
    }

    /// Runs compiled code for the `count` elements in the slots.
    fn compiled(&self, code: &Code, count: usize) -> End {
        let turns = self.memory.wrapping_add(TURNS_AT).cast::<i64>();
        let failure = self.memory.wrapping_add(FAILURE_AT).cast::<Failure>();
        // SAFETY: both are in the scratch memory, at addresses that fit them.
        unsafe {
            turns.write(MOST_TURNS);
            (&raw mut (*failure).table).write(0);
        }
        let call = Call {
            rows: 1,
            count: count as i64,
            sets: 1,
            slots: self.slots.as_ptr(),
            inner: self.operands.numbers.as_ptr(),
            outer: std::ptr::null(),
            constants: std::ptr::null(),
            accumulators: std::ptr::null(),
            functions: code.functions(),
            scratch: self.memory,
        };
        // SAFETY: the slots are the program's operands, of its types, with `count` elements each; the code writes all of a failure
        // whose table is not 0.
        unsafe {
            code.run(&call);
            match (&raw const (*failure).table).read() {
                0 if turns.read() >= 0 => End::Reached,
                0 => End::Late,
                _ => End::Failed(self.text(&*failure)),
            }
        }
    }

    /// The message for a failure of compiled code.
    fn text(&self, failure: &Failure) -> String {
        let lane = (0..FAILURE_LANES).find(|lane| failure.lanes[*lane] != 0).unwrap_or(0);
        let (table, dimension) = ((failure.table - 1) as usize, failure.dimensions[lane] as usize);
        let extent = self.operands.tables[table].shape[dimension];
        self.known.program.out_of_range(table as u16, dimension, failure.subscripts[lane], extent)
    }
}
