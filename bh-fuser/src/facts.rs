//! The facts about a batch that the algorithms need, gathered in one pass into reusable tables.

use bh_bytecode::batch::NO_BASE;
use bh_bytecode::contraction::is_product;
use bh_bytecode::planning::Work;
use bh_bytecode::view::is_contiguous;
use bh_bytecode::{BatchRef, Kind, Opcode, base_flags};
pub use bh_kernel::table::NONE;

/// How an instruction may share a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Data management: no work.
    System,
    /// Always alone: accumulates, scatters, products of matrices, extension methods.
    Alone,
    /// Elementwise or generator.
    Map,
    /// Gather.
    Gather,
    /// Reduction over at least one axis.
    Reduction,
}

/// Bits of [`Access::flags`].
pub mod access {
    /// The instruction reads the view.
    pub const READ: u8 = 1;
    /// The instruction writes the view.
    pub const WRITE: u8 = 2;
    /// The instruction gathers from the view.
    pub const SOURCE: u8 = 4;
    /// The write is a reduction's result.
    pub const RESULT: u8 = 8;
}

/// One use of a view by an instruction; reading and writing one view is one access.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// The base.
    pub base: u32,
    /// The view.
    pub view: u32,
    /// Bits of [`access`].
    pub flags: u8,
    /// Counts FREE, DISCARD, SYNC and what may fail between uses of the base that must not share a kernel.
    pub epoch: u32,
}

/// An instruction.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    /// How it may share a kernel.
    pub class: Class,
    /// Shape (number) of the box it runs over: its output's, or a reduction's input's.
    pub shape: u32,
    /// Shape (number) of a reduction's result, or [`NONE`].
    pub kept: u32,
    /// Axes of a reduction.
    pub mask: u16,
    /// The order in which a reduction takes its elements, as the instruction has it.
    pub order: u16,
    /// Elements of the box it runs over.
    pub elements: i64,
    /// First of its accesses.
    pub first: u32,
    /// End of its accesses.
    pub end: u32,
}

/// A view.
#[derive(Clone, Copy, Debug)]
pub struct ViewFact {
    /// Its shape's number.
    pub shape: u32,
    /// Bytes of the distinct elements it shows.
    pub bytes: u64,
    /// Lowest offset.
    pub low: i64,
    /// Highest offset; below `low` if empty.
    pub high: i64,
    /// Does it show the whole base as one dense run in C order?
    pub whole: bool,
}

/// A base.
#[derive(Clone, Copy, Debug, Default)]
pub struct BaseFact {
    /// Accesses of working instructions.
    pub accesses: u32,
    /// Written by a working instruction?
    pub written: bool,
    /// May its data vanish if all its accesses fall into one kernel?
    pub contractible: bool,
    /// Must its memory stay where it is?
    pub pinned: bool,
    /// Named by a SYNC?
    pub synced: bool,
    /// The last working instruction that uses it.
    pub last: u32,
    epoch: u32,
    pending: u8,
    /// May it be lost with an instruction of the batch that fails?
    at_risk: bool,
}

impl BaseFact {
    /// Is the base dropped or handed over between uses?
    pub fn has_epochs(&self) -> bool {
        self.epoch > 0
    }

    /// Must any two accesses keep their order?
    pub fn is_ordered(&self) -> bool {
        self.written || self.epoch > 0
    }
}

/// A data-management instruction.
#[derive(Clone, Copy, Debug)]
pub struct SystemOp {
    /// Index of the instruction.
    pub instr: u32,
    /// The base, or [`NONE`].
    pub base: u32,
    /// The base's epoch that it ends.
    pub epoch: u32,
}

const PENDING_ANY: u8 = 1;
const PENDING_WRITE: u8 = 2;

/// The tables.
#[derive(Default)]
pub struct Facts {
    /// Instructions, by index.
    pub ops: Vec<Op>,
    /// Accesses, instruction by instruction.
    pub accesses: Vec<Access>,
    /// Views, by index.
    pub views: Vec<ViewFact>,
    /// Bases, by index.
    pub bases: Vec<BaseFact>,
    /// Data management, in program order.
    pub systems: Vec<SystemOp>,
    /// Number of working instructions.
    pub work: usize,
    shapes: Vec<(u32, u32)>,
}

impl Facts {
    /// Fills the tables for a validated batch.
    pub fn gather(&mut self, batch: &BatchRef<'_>) {
        self.ops.clear();
        self.accesses.clear();
        self.systems.clear();
        self.work = 0;
        self.gather_views(batch);
        self.bases.clear();
        self.bases.extend(batch.bases.iter().map(|base| BaseFact {
            pinned: base.has(base_flags::PINNED),
            contractible: base.flags
                & (base_flags::BORN | base_flags::DIES | base_flags::PINNED | base_flags::LIVE_OUT)
                == base_flags::BORN | base_flags::DIES,
            ..BaseFact::default()
        }));
        for index in 0..batch.instrs.len() as u32 {
            self.gather_op(batch, index);
        }
    }

    /// The work of the batch.
    pub fn work(&self) -> Work {
        let mut work = Work::default();
        self.ops.iter().filter(|op| op.class != Class::System).for_each(|op| work.add(op.elements as u64));
        work
    }

    /// The accesses of an instruction.
    #[inline]
    pub fn accesses_of(&self, op: u32) -> &[Access] {
        let op = &self.ops[op as usize];
        &self.accesses[op.first as usize..op.end as usize]
    }

    fn gather_views(&mut self, batch: &BatchRef<'_>) {
        let slots = (2 * batch.views.len()).next_power_of_two().max(16);
        self.shapes.clear();
        self.shapes.resize(slots, (NONE, 0));
        self.views.clear();
        let mut count = 0;
        for (index, record) in batch.views.iter().enumerate() {
            let (shape, stride) = (batch.shape(index as u32), batch.stride(index as u32));
            let mut hash = shape.len() as u64;
            let (mut elements, mut low, mut high) = (1u64, record.start, record.start);
            for (&extent, &stride) in shape.iter().zip(stride) {
                hash = (hash ^ extent as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                if stride != 0 {
                    elements *= extent as u64;
                    let reach = stride * (extent - 1);
                    if reach < 0 { low += reach } else { high += reach }
                }
            }
            if record.len == 0 {
                (elements, high) = (0, low - 1);
            }
            let mut at = (hash >> 32) as usize & (slots - 1);
            let number = loop {
                let (first, number) = self.shapes[at];
                if first == NONE {
                    self.shapes[at] = (index as u32, count);
                    count += 1;
                    break count - 1;
                }
                if batch.shape(first) == shape {
                    break number;
                }
                at = (at + 1) & (slots - 1);
            };
            let (mut size, mut whole) = (8, false);
            if record.base != NO_BASE {
                let base = &batch.bases[record.base as usize];
                size = base.dtype().size() as u64;
                whole = record.start == 0 && record.len == base.len && is_contiguous(shape, stride);
            }
            self.views.push(ViewFact { shape: number, bytes: elements * size, low, high, whole });
        }
    }

    fn gather_op(&mut self, batch: &BatchRef<'_>, index: u32) {
        let instr = &batch.instrs[index as usize];
        let first = self.accesses.len() as u32;
        let class = match instr.opcode.kind() {
            Kind::System => Class::System,
            Kind::Elementwise | Kind::Generator => Class::Map,
            Kind::Index if instr.opcode == Opcode::Gather => Class::Gather,
            // A reduction of a rank-0 array folds nothing: it is a copy.
            Kind::Reduction if instr.param == 0 => Class::Map,
            Kind::Reduction if is_product(batch, instr) => Class::Alone,
            Kind::Reduction => Class::Reduction,
            Kind::Accumulate | Kind::Index | Kind::Extension => Class::Alone,
        };
        let mut op = Op { class, shape: NONE, kept: NONE, mask: 0, order: 0, elements: 0, first, end: first };
        if class == Class::System {
            self.gather_system(batch, index);
            self.ops.push(op);
            return;
        }
        self.work += 1;
        let writes_also_read = instr.opcode.reads_output();
        for (at, operand) in instr.operands().iter().enumerate() {
            let Some(view) = operand.as_view() else { continue };
            let base = batch.views[view as usize].base;
            if base == NO_BASE {
                continue;
            }
            let flags = if at < instr.outputs as usize {
                let extra = if writes_also_read { access::READ } else { 0 };
                access::WRITE | extra | if class == Class::Reduction { access::RESULT } else { 0 }
            } else if class == Class::Gather && at == 1 {
                access::READ | access::SOURCE
            } else {
                access::READ
            };
            match self.accesses[first as usize..].iter_mut().find(|access| access.view == view) {
                Some(access) => access.flags |= flags,
                None => self.accesses.push(Access { base, view, flags, epoch: 0 }),
            }
        }
        if let Some(view) = instr.outputs().first().and_then(|operand| operand.as_view()) {
            op.shape = self.views[view as usize].shape;
            op.elements = batch.views[view as usize].len;
        }
        if class == Class::Reduction {
            op.kept = op.shape;
            op.mask = instr.param;
            if let Some(view) = instr.inputs().first().and_then(|operand| operand.as_view()) {
                op.shape = self.views[view as usize].shape;
                op.elements = batch.views[view as usize].len;
                op.order = instr.order;
            } else {
                // Folding a constant over no array: leave it alone.
                op.class = Class::Alone;
            }
        }
        let accesses = &self.accesses[first as usize..];
        let source = accesses.iter().find(|access| access.flags & access::SOURCE != 0);
        if source.is_some_and(|source| accesses.iter().any(|a| a.base == source.base && a.flags & access::WRITE != 0)) {
            // It writes another part of its own source.
            op.class = Class::Alone;
        }
        op.end = self.accesses.len() as u32;
        let needs_lost = |access: &Access| {
            let needs = access.flags & access::READ != 0 || !self.views[access.view as usize].whole;
            needs && self.bases[access.base as usize].at_risk
        };
        let at_risk = matches!(instr.opcode.kind(), Kind::Index | Kind::Extension)
            || self.accesses[first as usize..].iter().any(needs_lost);
        self.stand_between(first, at_risk);
        for access in &mut self.accesses[first as usize..] {
            let base = &mut self.bases[access.base as usize];
            base.accesses += 1;
            base.last = index;
            let writes = access.flags & access::WRITE != 0;
            base.written |= writes;
            base.at_risk = if writes { at_risk } else { base.at_risk };
            // An instruction that runs alone has no registers to keep a base in.
            base.contractible &= op.class != Class::Alone;
            if base.pending & PENDING_ANY != 0 || (writes && base.pending & PENDING_WRITE != 0) {
                base.pending = 0;
                base.epoch += 1;
                base.contractible = false;
            }
            access.epoch = base.epoch;
        }
        self.stand_between(first, at_risk);
        self.ops.push(op);
    }

    /// An instruction that fails, or needs lost data, loses all of each base that it writes a part of: instructions
    /// that use other parts keep them if they run before it, and lose them if they run after it.
    fn stand_between(&mut self, first: u32, at_risk: bool) {
        for access in self.accesses[first as usize..].iter().filter(|_| at_risk) {
            let base = &mut self.bases[access.base as usize];
            let part = access.flags & access::WRITE != 0 && !self.views[access.view as usize].whole;
            if part && base.accesses > 0 {
                base.pending |= PENDING_ANY;
            }
        }
    }

    fn gather_system(&mut self, batch: &BatchRef<'_>, index: u32) {
        let instr = &batch.instrs[index as usize];
        let view = instr.operands().first().and_then(|operand| operand.as_view());
        let base = view.map_or(NO_BASE, |view| batch.views[view as usize].base);
        let mut system = SystemOp { instr: index, base: NONE, epoch: 0 };
        if let Some(fact) = self.bases.get_mut(base as usize) {
            (system.base, system.epoch) = (base, fact.epoch);
            if instr.opcode == Opcode::Sync {
                fact.synced = true;
                fact.contractible = false;
                fact.pending |= PENDING_WRITE;
            } else if instr.opcode != Opcode::Nop {
                fact.pending |= PENDING_ANY;
                fact.at_risk = false;
            }
        }
        self.systems.push(system);
    }
}
