//! Facts about a batch for the passes: the writers of each base, and whether a value is still the same further down.

use bh_bytecode::view::overlap;
use bh_bytecode::{Batch, Constant, DType, Instr, Kind, Opcode, Operand, Overlap, base_flags, steps};

/// How many writes of a base are looked at for one question, and how many of these closely: beyond that nothing is known.
const LOOK_AT: usize = 64;
const LOOK_CLOSELY: usize = 8;

/// Writers and droppers of every base, in program order.
pub struct Uses {
    writes: Vec<Vec<u32>>,
    reads: Vec<Vec<u32>>,
    drops: Vec<Vec<u32>>,
    /// The lowest and highest offset of each view.
    reach: Vec<(i64, i64)>,
}

/// The numbers of writes that a query may still examine, in all and closely.
struct Patience {
    all: usize,
    closely: usize,
}

impl Uses {
    /// Collects the uses of a batch. They stay right while instructions only change what they read.
    pub fn of(batch: &Batch) -> Uses {
        let empty = vec![Vec::new(); batch.bases.len()];
        let reach = (0..batch.views.len() as u32).map(|view| reach(batch, view)).collect();
        let mut uses = Uses { writes: empty.clone(), reads: empty.clone(), drops: empty, reach };
        for (index, instr) in batch.instrs.iter().enumerate() {
            for &operand in instr.outputs() {
                if let Some(base) = base_of(batch, operand) {
                    uses.writes[base as usize].push(index as u32);
                    if instr.opcode.reads_output() {
                        uses.reads[base as usize].push(index as u32);
                    }
                }
            }
            for &operand in instr.inputs() {
                if let Some(base) = base_of(batch, operand) {
                    match instr.opcode {
                        Opcode::Free | Opcode::Discard => uses.drops[base as usize].push(index as u32),
                        _ => uses.reads[base as usize].push(index as u32),
                    }
                }
            }
        }
        uses
    }

    /// Can the instructions `from..to` change the values under `view`? True as well when one of them drops the base.
    pub fn changed(&self, batch: &Batch, view: u32, from: u32, to: u32) -> bool {
        let base = batch.views[view as usize].base as usize;
        let between = |list: &[u32]| -> std::ops::Range<usize> {
            list.partition_point(|&at| at < from)..list.partition_point(|&at| at < to)
        };
        if !between(&self.drops[base]).is_empty() {
            return true;
        }
        let mut patience = Patience::new();
        self.writes[base][between(&self.writes[base])].iter().any(|&at| {
            let instr = &batch.instrs[at as usize];
            outputs_on(batch, instr, base as u32)
                .any(|output| self.relation(batch, output, view, &mut patience) != Some(Overlap::Disjoint))
        })
    }

    /// The instructions that write to a base, in program order.
    pub fn writers(&self, base: u32) -> &[u32] {
        &self.writes[base as usize]
    }

    /// The instructions that read a base, in program order.
    pub fn readers(&self, base: u32) -> &[u32] {
        &self.reads[base as usize]
    }

    /// Does the batch drop the data of a base that may be used again?
    pub fn is_freed(&self, batch: &Batch, base: u32) -> bool {
        self.drops[base as usize].iter().any(|&at| batch.instrs[at as usize].opcode == Opcode::Free)
    }

    /// Does one of the instructions `from..to` write to a base?
    pub fn is_written(&self, base: u32, from: u32, to: u32) -> bool {
        let writes = &self.writes[base as usize];
        writes[writes.partition_point(|&at| at < from)..].first().is_some_and(|&at| at < to)
    }

    /// How two views overlap, while there is patience for it.
    fn relation(&self, batch: &Batch, a: u32, b: u32, patience: &mut Patience) -> Option<Overlap> {
        patience.all = patience.all.checked_sub(1)?;
        let ((low, high), (other_low, other_high)) = (self.reach[a as usize], self.reach[b as usize]);
        if high < other_low || other_high < low {
            return Some(Overlap::Disjoint);
        }
        if a != b {
            patience.closely = patience.closely.checked_sub(1)?;
            steps::add(2);
        }
        Some(relation(batch, a, b))
    }

    /// The instruction that gave the values under `view` as they are read by instruction `at`: the last one before it
    /// that writes any of them, if it writes just them, in the same order, and nothing drops them since.
    pub fn definition(&self, batch: &Batch, view: u32, at: u32) -> Option<u32> {
        let base = batch.views[view as usize].base;
        let writes = &self.writes[base as usize];
        let before = writes.partition_point(|&write| write < at);
        let mut patience = Patience::new();
        for &write in writes[..before].iter().rev() {
            let instr = &batch.instrs[write as usize];
            for output in outputs_on(batch, instr, base) {
                match self.relation(batch, output, view, &mut patience)? {
                    Overlap::Disjoint => {}
                    Overlap::Identical => return (!self.changed(batch, view, write + 1, at)).then_some(write),
                    Overlap::Overlapping => return None,
                }
            }
        }
        None
    }

    /// Is the base of `view` a temporary of this batch that only instruction `at` reads?
    pub fn is_read_only_by(&self, batch: &Batch, view: u32, at: u32) -> bool {
        let base = batch.views[view as usize].base as usize;
        let flags = base_flags::BORN | base_flags::DIES;
        batch.bases[base].flags & flags == flags && self.reads[base].iter().all(|&read| read == at)
    }
}

impl Uses {
    /// Would reading a value at instruction `at` keep it for longer than anybody else does, though the base of `copy` keeps the
    /// same one in any case?
    pub fn would_be_kept(&self, batch: &Batch, value: u32, copy: u32, at: u32) -> bool {
        let base_of = |view: u32| batch.views[view as usize].base as usize;
        let flags = base_flags::BORN | base_flags::DIES;
        let is_temporary = |base: usize| batch.bases[base].flags & flags == flags;
        let base = base_of(value);
        is_temporary(base) && !is_temporary(base_of(copy)) && self.reads[base].last().is_none_or(|&last| last < at)
    }
}

impl Patience {
    fn new() -> Patience {
        Patience { all: LOOK_AT, closely: LOOK_CLOSELY }
    }
}

/// The lowest and highest offset of a view; nothing if it is empty.
fn reach(batch: &Batch, view: u32) -> (i64, i64) {
    let batch = batch.as_ref();
    let record = &batch.views[view as usize];
    if record.len == 0 {
        return (i64::MAX, i64::MIN);
    }
    let ends =
        batch.shape(view).iter().zip(batch.stride(view)).map(|(extent, stride)| stride.saturating_mul(extent - 1));
    ends.fold((record.start, record.start), |(low, high), end| {
        (low.saturating_add(end.min(0)), high.saturating_add(end.max(0)))
    })
}

fn outputs_on<'a>(batch: &'a Batch, instr: &'a Instr, base: u32) -> impl Iterator<Item = u32> + 'a {
    instr
        .outputs()
        .iter()
        .filter_map(|operand| operand.as_view())
        .filter(move |&view| batch.views[view as usize].base == base)
}

/// The base (index) of an operand that looks at one.
pub fn base_of(batch: &Batch, operand: Operand) -> Option<u32> {
    let base = batch.views[operand.as_view()? as usize].base;
    ((base as usize) < batch.bases.len()).then_some(base)
}

/// How two views of one base (indices) overlap.
pub fn relation(batch: &Batch, a: u32, b: u32) -> Overlap {
    if a == b {
        return if batch.views[a as usize].len == 0 { Overlap::Disjoint } else { Overlap::Identical };
    }
    let batch = batch.as_ref();
    overlap(&batch.view(a), &batch.view(b))
}

/// May an instruction of `kind` that writes `output` read `input`: another base, disjoint, or identical where it works in
/// place?
pub fn may_read_beside(batch: &Batch, kind: Kind, output: u32, input: u32) -> bool {
    batch.views[output as usize].base != batch.views[input as usize].base
        || match relation(batch, output, input) {
            Overlap::Disjoint => true,
            Overlap::Identical => kind.works_in_place(),
            Overlap::Overlapping => false,
        }
}

/// The output view of an instruction with exactly one output.
pub fn output(instr: &Instr) -> Option<u32> {
    match instr.outputs() {
        &[operand] => operand.as_view(),
        _ => None,
    }
}

/// The element type of an instruction's one output.
pub fn output_type(batch: &Batch, instr: &Instr) -> Option<DType> {
    batch.as_ref().dtype(*instr.outputs().first()?)
}

/// The constant behind an operand.
pub fn constant(batch: &Batch, operand: Operand) -> Option<Constant> {
    batch.constants.get(operand.as_constant()? as usize).copied()
}

/// Turns an instruction into a copy (or a fill, if `source` is a constant) to its output.
pub fn become_copy(instr: &mut Instr, source: Operand) {
    let origin = instr.origin;
    *instr = Instr::new(Opcode::Copy, &[instr.operands[0], source]);
    instr.origin = origin;
}

/// Removes what passes turned into `nop`.
pub fn sweep(batch: &mut Batch) {
    batch.instrs.retain(|instr| instr.opcode != Opcode::Nop);
}

/// Turns an instruction into nothing, until [`sweep`].
pub fn erase(instr: &mut Instr) {
    *instr = Instr::new(Opcode::Nop, &[]);
}
