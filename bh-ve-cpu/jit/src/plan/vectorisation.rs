//! How many elements and rows a kernel's loops do at once.

use super::cost::cost;
use super::divider::Multiplied;
use super::{Form, Plan};
use crate::builder::Builder;
use crate::mathematics::is_chain;
use bh_bytecode::Opcode;
use bh_jit_abi::{Folds, JOINED, Level, Request, Stride};
use bh_kernel::{SlotMode, Step};
use std::collections::HashSet;

/// How many rows may be done side by side, the best first.
const ROWS: [u16; 2] = [4, 2];
/// The same where they fold into the same elements: memory gives eight rows side by side in 0.4 of the time of one after the
/// other.
const FOLDED_ROWS: [u16; 3] = [8, 4, 2];
/// The most instructions, about, of such a loop.
const INSTRUCTIONS: usize = 520;
/// Instructions for each array that is read or written, from which on long chains are the limit and not memory.
const CHAIN: usize = 10;
/// Instructions, about, that processors look ahead.
const WINDOW: usize = 200;
/// The most instructions, about, of several vectors side by side: the code generator takes a second for them.
const LARGE: usize = 10_000;
/// Instructions that begin while the divider is busy with one vector.
const DIVISION: usize = 20;
/// The most instructions, about, of which more are carried out than there are elements for.
const CARRIED: usize = 10;
/// The most elements of an iteration of a loop.
const WIDEST: u16 = 32;

/// A loop over a segment's elements: `unroll` vectors of `width` elements at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loop {
    /// Elements of a vector, which may be more than the processor's vectors have: it is several of those then, for each
    /// of which every instruction is written before the next one.
    pub(crate) width: u16,
    pub(crate) unroll: u16,
    /// Does it end in the middle of a vector?
    pub(crate) masked: bool,
}

/// How the rows and their elements are gone through.
#[derive(Debug, Default)]
pub(crate) struct Vectorisation {
    /// The loops over one row's elements.
    pub(crate) loops: Vec<Loop>,
    /// How many rows are done side by side where there are that many, and the loops over their elements.
    pub(crate) rows: u16,
    pub(crate) loops_of_many: Vec<Loop>,
    /// Do lanes stay in registers all along a row, which makes a result? Then each loop does as many elements as there are
    /// lanes.
    pub(crate) carries: bool,
    /// The slot whose vectors are not to cross lines of the caches.
    pub(crate) aligned: Option<u16>,
    /// The quotients and roots that are computed without the divider.
    pub(crate) multiplied: Multiplied,
    /// The slots that are written past the caches for which there are loops that take them as lying alike in lines of the
    /// caches.
    pub(crate) alike: Vec<u16>,
}

/// The facts that a vectorisation is chosen by.
struct Kernel<'a> {
    request: &'a Request,
    plan: &'a Plan,
    multiplied: Multiplied,
    /// Instructions of a vector, about.
    cost: usize,
}

/// Chooses the loops over a row's elements, and how many rows are done side by side.
pub(super) fn vectorise(request: &Request, plan: &Plan, probe: &Builder) -> Vectorisation {
    let steps = request.steps.iter().zip(&plan.forms);
    let cost: usize = steps.map(|(step, form)| cost(request, step, *form, probe)).sum();
    let kernel = Kernel { request, plan, multiplied: Multiplied::choose(request, cost), cost };
    let native = kernel.native();
    let width = native * kernel.vectors(native);
    let group = WIDEST / width;
    let unroll = match request.folds {
        folds if folds.has_lanes() && cost * usize::from(group) <= 160 => group,
        folds if folds.has_lanes() => 1,
        _ if cost <= 20 => 4,
        _ if cost <= 50 => 2,
        _ => 1,
    };
    let mut row_loops = loops(request.level, (native, width), unroll);
    // As many lanes as are left of each row make a vector at least.
    let is_wide = usize::from(native) >= JOINED;
    let carries = kernel.can_carry() && (width, unroll) == (native, group) && is_wide;
    if carries {
        // The rest of a row is one group as well.
        row_loops[1] = Loop { masked: true, ..row_loops[0] };
    }
    let (rows, unroll) = kernel.rows(unroll);
    let loops_of_many = if rows > 1 { loops(request.level, (native, width), unroll) } else { Vec::new() };
    Vectorisation {
        loops: row_loops,
        rows,
        loops_of_many,
        carries,
        aligned: kernel.aligned(),
        alike: kernel.alike(rows),
        multiplied: kernel.multiplied,
    }
}

impl Kernel<'_> {
    /// How many elements of the widest type a vector of the processor takes.
    fn native(&self) -> u16 {
        let request = self.request;
        let results = request.steps.iter().filter_map(|step| match *step {
            Step::Compute { input, output, .. } => Some(input.real_part().size().max(output.real_part().size())),
            _ => None,
        });
        let slots = request.slots.iter().filter(|slot| slot.mode != SlotMode::Index);
        let memory = slots.map(|slot| slot.dtype.real_part().size());
        let random = request.steps.iter().any(|step| matches!(step, Step::Range { .. } | Step::Random { .. }));
        let widest = results.chain(memory).chain(random.then_some(8)).max().unwrap_or(1);
        (request.level.bytes() / widest).min(WIDEST.into()) as u16
    }

    /// The slot to align: the last one that is written, as crossing lines of the caches costs most there. None if outputs bypass the
    /// caches, as their vectors are aligned anyway, or if there are folds, whose lanes count from the first element.
    fn aligned(&self) -> Option<u16> {
        let stores = self.request.steps.iter().rev().filter_map(|step| match *step {
            Step::Store { slot, .. } => Some(slot),
            _ => None,
        });
        let mut dense = stores.filter(|&slot| self.request.slots[usize::from(slot)].stride == Stride::Unit);
        let fits = self.request.level.has_masks()
            && !self.request.folds.has_lanes()
            && self.plan.block == 0
            && self.request.repeat == 0
            && !self.plan.non_temporal.contains(&true);
        dense.next().filter(|_| fits)
    }

    /// The slots for which loops are written that take them as lying alike: all that go past the caches, if these are several
    /// of one size.
    fn alike(&self, rows: u16) -> Vec<u16> {
        let non_temporal = (0..self.request.slots.len()).filter(|&slot| self.plan.non_temporal[slot]);
        let alike: Vec<u16> = non_temporal.map(|slot| slot as u16).collect();
        let size = |&slot: &u16| self.request.slots[usize::from(slot)].dtype.size();
        let several = alike.len() > 1 && alike.iter().all(|slot| size(slot) == size(&alike[0]));
        let fits = !self.request.folds.has_lanes() && rows == 1 && self.request.repeat == 0;
        if several && fits { alike } else { Vec::new() }
    }

    /// Can lanes stay in registers from the first element of a row to its result? Then all vectors of the group that ends a
    /// row are computed, however few of its elements there are.
    fn can_carry(&self) -> bool {
        self.request.folds == Folds::Results
            && self.request.level.has_masks()
            && self.cost <= CARRIED
            && self.plan.segments == 1
            && self.plan.block == 0
            && !self.plan.non_temporal.contains(&true)
    }

    /// How many of the processor's vectors to take side by side. Mathematical functions and random numbers are chains of
    /// some dozens of instructions that wait for each other, and the processor does not look far enough ahead to begin
    /// the next vector's: Black-Scholes takes two thirds of the time with four. So are steps of a loop's many turns that
    /// each wait for the one before. The values in use must about fit the registers, and memory must not be the limit.
    fn vectors(&self, native: u16) -> u16 {
        let mut chains = self.waits();
        for (step, form) in self.request.steps.iter().zip(&self.plan.forms) {
            match (step, form) {
                (Step::Random { .. }, _) => chains = true,
                (Step::Compute { opcode, .. }, Form::Inlined(_)) if is_chain(*opcode) => chains = true,
                (_, Form::Inlined(_)) => return 1,
                _ => {}
            }
        }
        let slots = self.request.slots.iter().filter(|slot| slot.mode != SlotMode::Index).count();
        let excluded = self.plan.block > 0 || self.reaches_rows();
        if !chains || excluded || self.cost < slots * CHAIN {
            return 1;
        }
        let (live, registers) = (self.plan.live(self.request), self.request.level.registers());
        let fits = |vectors: u16| {
            let all = usize::from(vectors);
            all * live <= registers && all * self.cost <= LARGE && native * vectors <= WIDEST
        };
        [4, 2].into_iter().find(|&vectors| fits(vectors)).unwrap_or(1)
    }

    /// Does a vector take at least twice as long as its instructions, of which two begin in a cycle, and is the next one too
    /// far away to be begun meanwhile? Quotients and roots wait for each other in any case.
    fn waits(&self) -> bool {
        let divides = |step: &&Step| match **step {
            Step::Compute { opcode: Opcode::Divide | Opcode::Sqrt, .. } => true,
            Step::Compute { opcode, input, .. } => opcode == Opcode::Absolute && input.is_complex(),
            _ => false,
        };
        let divisions = self.request.steps.iter().filter(divides).count();
        self.cost >= WINDOW && self.plan.wait(self.request) >= self.cost + DIVISION * divisions
    }

    /// Does it read elements of neighbouring rows?
    fn reaches_rows(&self) -> bool {
        self.request.slots.iter().any(|slot| slot.near.is_some_and(|near| near.rows != 0))
    }

    /// The number of rows to compute side by side, and of vectors of each. Rows that read the same elements are computed together, and
    /// so are rows that fold into the same elements, which they then read and write once.
    fn rows(&self, unroll: u16) -> (u16, u16) {
        let (request, registers) = (self.request, self.request.level.registers());
        if self.plan.block > 0 || request.in_order || request.folds == Folds::Results {
            return (1, unroll);
        }
        if request.folds == Folds::Columns {
            let fits = |rows: &u16| {
                let rows = usize::from(*rows);
                rows * self.cost <= INSTRUCTIONS && rows * self.plan.live(request) <= registers
            };
            let rows = FOLDED_ROWS.into_iter().find(fits);
            return rows.map_or((1, unroll), |rows| (rows, 1));
        }
        if !self.reaches_rows() {
            return (1, unroll);
        }
        let folds = request.steps.iter().filter(|step| matches!(step, Step::Reduce { .. })).count();
        // Where lanes are not held in registers, one vector at a time is enough.
        let held = request.folds == Folds::Lanes && unroll > 1;
        let unrolls = if held { vec![unroll, 1] } else { vec![1] };
        let ways = unrolls.into_iter().flat_map(|unroll| ROWS.map(|rows| (rows, unroll)));
        let fits = |&(rows, unroll): &(u16, u16)| {
            let vectors = usize::from(rows * unroll);
            let shared = usize::from(unroll) * shared_loads(request, rows);
            vectors * self.cost - shared <= INSTRUCTIONS && (unroll == 1 || vectors * folds <= registers / 2)
        };
        ways.into_iter().find(fits).unwrap_or((1, unroll))
    }
}

/// How many vectors one of some rows side by side reads that another one has read.
pub(super) fn shared_loads(request: &Request, rows: u16) -> usize {
    let place = |slot: u16| {
        let near = request.slots[usize::from(slot)].near;
        near.map_or((slot, 0, 0), |near| (near.slot, i64::from(near.rows), near.distance))
    };
    let loads = request.steps.iter().filter_map(|step| match *step {
        Step::Load { slot } if request.slots[usize::from(slot)].stride == Stride::Unit => Some(place(slot)),
        _ => None,
    });
    let all: Vec<(u16, i64, i16)> = loads.collect();
    let read = |row: u16| all.iter().map(move |&(slot, at, distance)| (slot, at + i64::from(row), distance));
    let distinct: HashSet<(u16, i64, i16)> = (0..rows).flat_map(read).collect();
    all.len() * usize::from(rows) - distinct.len()
}

/// The loops over the elements of a row: whole groups of vectors first, then the rest.
fn loops(level: Level, (native, width): (u16, u16), unroll: u16) -> Vec<Loop> {
    let mut loops = vec![Loop { width, unroll, masked: false }];
    if level.has_masks() {
        loops.push(Loop { width: native, unroll: 1, masked: true });
    } else {
        if width * unroll > native {
            loops.push(Loop { width: native, unroll: 1, masked: false });
        }
        loops.push(Loop { width: 1, unroll: 1, masked: false });
    }
    loops
}
