//! How many elements and rows a kernel's loops do at once.

use crate::complex;
use crate::divider::Multiplied;
use crate::math;
use crate::operations::Operation;
use crate::plan::{Form, OutputIn, Plan};
use crate::whole;
use crate::writer::parts;
use bh_bytecode::{DType, Opcode};
use bh_fuser::lower::{Arg, SlotMode, Step};
use bh_jit_abi::{Divider, Folds, JOINED, Level, Request, Stride};
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
/// The most elements of what a loop does at once.
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

impl Plan {
    /// Chooses the loops over a row's elements, and how many rows are done side by side.
    pub(crate) fn choose_loops(&mut self, request: &Request) {
        let results = request.steps.iter().filter_map(|step| match *step {
            Step::Compute { input, output, .. } => Some(input.real_part().size().max(output.real_part().size())),
            _ => None,
        });
        let slots = request.slots.iter().filter(|slot| slot.mode != SlotMode::Index);
        let memory = slots.map(|slot| slot.dtype.real_part().size());
        let random = request.steps.iter().any(|step| matches!(step, Step::Range { .. } | Step::Random { .. }));
        let widest = results.chain(memory).chain(random.then_some(8)).max().unwrap_or(1);
        let cost: usize = request.steps.iter().zip(&self.forms).map(|(step, form)| cost(request, step, *form)).sum();
        self.multiplied = Multiplied::choose(request, cost);
        // Divisions and square roots take twice as long in vectors twice as wide, and beside slow dividers the other
        // instructions run at a higher clock without the wide ones. Multiplications instead of them are for wide ones.
        let divides = |step: &Step| {
            matches!(step, Step::Compute { opcode: Opcode::Divide | Opcode::Sqrt, input: DType::F64, .. })
                && !self.multiplied.has_quotient(step)
        };
        let slow = request.steps.iter().filter(|step| divides(step)).count();
        let plain = self.forms.iter().all(|form| matches!(form, Form::Own | Form::Native));
        let narrow = request.divider == Divider::Slow
            && plain
            && slow * 12 >= request.steps.len()
            && !self.multiplied.has_roots();
        let bytes = if request.level == Level::Avx512 && !narrow { 64 } else { 32 };
        let native = (bytes / widest).min(WIDEST.into()) as u16;
        let width = native * self.choose_vectors(request, cost, native);
        let group = WIDEST / width;
        let unroll = match request.folds {
            folds if folds.has_lanes() && cost * usize::from(group) <= 160 => group,
            folds if folds.has_lanes() => 1,
            _ if cost <= 20 => 4,
            _ if cost <= 50 => 2,
            _ => 1,
        };
        self.loops = loops(request.level, (native, width), unroll);
        // As many lanes as are left of each row make a vector at least.
        let is_wide = usize::from(native) >= JOINED;
        self.carries = self.can_carry(request, cost) && (width, unroll) == (native, group) && is_wide;
        if self.carries {
            // What remains of a row is one group as well.
            self.loops[1] = Loop { masked: true, ..self.loops[0] };
        }
        let (rows, unroll) = self.choose_rows(request, cost, unroll);
        self.rows = rows;
        if self.rows > 1 {
            self.loops_of_many = loops(request.level, (native, width), unroll);
        }
    }

    /// Chooses what is to be aligned: the last slot that is written, as crossing lines costs most there. What goes past
    /// the caches is put together to aligned vectors anyway, and lanes of folds count from the first element.
    pub(crate) fn choose_aligned(&mut self, request: &Request) {
        let stores = request.steps.iter().rev().filter_map(|step| match *step {
            Step::Store { slot, .. } => Some(slot),
            _ => None,
        });
        let mut dense = stores.filter(|&slot| request.slots[usize::from(slot)].stride == Stride::Unit);
        let fits = request.level == Level::Avx512
            && !request.folds.has_lanes()
            && self.block == 0
            && request.repeat == 0
            && !self.streams.contains(&true);
        self.aligned = dense.next().filter(|_| fits);
    }

    /// Chooses the slots for which loops are written that take them as lying alike: all that go past the caches, if these are
    /// several of one size.
    pub(crate) fn choose_alike(&mut self, request: &Request) {
        let streams = (0..request.slots.len()).filter(|&slot| self.streams[slot]);
        let alike: Vec<u16> = streams.map(|slot| slot as u16).collect();
        let size = |&slot: &u16| request.slots[usize::from(slot)].dtype.size();
        let several = alike.len() > 1 && alike.iter().all(|slot| size(slot) == size(&alike[0]));
        if several && !request.folds.has_lanes() && self.rows == 1 && request.repeat == 0 {
            self.alike = alike;
        }
    }

    /// Can lanes stay in registers from the first element of a row to its result? Then all vectors of the group that ends a
    /// row are computed, however few of its elements there are.
    fn can_carry(&self, request: &Request, cost: usize) -> bool {
        request.folds == Folds::Results
            && request.level == Level::Avx512
            && cost <= CARRIED
            && self.segments == 1
            && self.block == 0
            && !self.streams.contains(&true)
    }

    /// How many of the processor's vectors to take side by side. Mathematical functions and random numbers are chains of
    /// some dozens of instructions that wait for each other, and the processor does not look far enough ahead to begin
    /// the next vector's: Black-Scholes takes two thirds of the time with four. So are steps of a loop's many turns that
    /// each wait for the one before. What is in use must fit the registers more or less, and memory must not be the limit.
    /// Quotients that share a divisor are made of one vector.
    fn choose_vectors(&self, request: &Request, cost: usize, native: u16) -> u16 {
        let mut chains = self.waits(request, cost);
        for (step, form) in request.steps.iter().zip(&self.forms) {
            match (step, form) {
                (Step::Random { .. }, _) => chains = true,
                (Step::Compute { opcode, .. }, Form::Inlined(_)) if math::is_chain(*opcode) => chains = true,
                (_, Form::Inlined(_)) => return 1,
                _ => {}
            }
        }
        let slots = request.slots.iter().filter(|slot| slot.mode != SlotMode::Index).count();
        let registers = registers(request.level);
        if !chains
            || self.multiplied.has_any_shared()
            || self.block > 0
            || self.reaches_rows(request)
            || cost < slots * CHAIN
        {
            return 1;
        }
        let live = self.live(request);
        let fits = |vectors: u16| {
            let all = usize::from(vectors);
            all * live <= registers && all * cost <= LARGE && native * vectors <= WIDEST
        };
        [4, 2].into_iter().find(|&vectors| fits(vectors)).unwrap_or(1)
    }

    /// Does a vector take at least twice as long as its instructions, of which two begin in a cycle, and is the next one too
    /// far away to be begun meanwhile? Quotients and roots wait for each other in any case.
    fn waits(&self, request: &Request, cost: usize) -> bool {
        let divides = |step: &&Step| match **step {
            Step::Compute { opcode: Opcode::Divide | Opcode::Sqrt, .. } => true,
            Step::Compute { opcode, input, .. } => opcode == Opcode::Absolute && input.is_complex(),
            _ => false,
        };
        let divisions = request.steps.iter().filter(divides).count();
        cost >= WINDOW && self.wait(request) >= cost + DIVISION * divisions
    }

    /// The cycles that the longest chain of steps takes, more or less.
    fn wait(&self, request: &Request) -> usize {
        let mut ready: Vec<usize> = Vec::with_capacity(self.made.len());
        for &index in &self.made {
            let step = &request.steps[index];
            let begin = step.args().iter().map(|arg| match *arg {
                Arg::Value(value) => ready[usize::from(value)],
                Arg::Constant(_) => 0,
            });
            ready.push(begin.max().unwrap_or(0) + latency(step));
        }
        ready.into_iter().max().unwrap_or(0)
    }

    /// The most values that are in use at once, without what happens inside a step.
    fn live(&self, request: &Request) -> usize {
        let mut uses = vec![None; self.made.len()];
        for (index, step) in request.steps.iter().enumerate() {
            for arg in step.args() {
                if let Arg::Value(value) = *arg {
                    let first = uses[usize::from(value)].map_or(index, |(first, _)| first);
                    uses[usize::from(value)] = Some((first, index));
                }
            }
        }
        // What comes from memory is read when it is first used.
        let mut changes = vec![0; request.steps.len() + 1];
        for (value, (first, last)) in uses.iter().enumerate().filter_map(|(value, uses)| Some((value, (*uses)?))) {
            let begin = if self.is_repeatable(request, value as u16) { first } else { self.made[value] };
            let vectors = parts(request.steps[self.made[value]].output_in(request)) as isize;
            changes[begin] += vectors;
            changes[last] -= vectors;
        }
        let sums = changes.iter().scan(0_isize, |live, change| {
            *live += change;
            Some(*live)
        });
        sums.max().unwrap_or(0).unsigned_abs()
    }

    /// Does it read what lies in neighbouring rows?
    fn reaches_rows(&self, request: &Request) -> bool {
        request.slots.iter().any(|slot| slot.near.is_some_and(|near| near.rows != 0))
    }

    /// How many rows to do side by side, and how many vectors of each: several rows where they read what their neighbours
    /// read. Those that fold into the same elements read and write these once.
    fn choose_rows(&self, request: &Request, cost: usize, unroll: u16) -> (u16, u16) {
        if self.block > 0 || request.in_order || request.folds == Folds::Results {
            return (1, unroll);
        }
        if request.folds == Folds::Columns {
            let fits = |rows: &u16| {
                let rows = usize::from(*rows);
                rows * cost <= INSTRUCTIONS && rows * self.live(request) <= registers(request.level)
            };
            let rows = FOLDED_ROWS.into_iter().find(fits);
            return rows.map_or((1, unroll), |rows| (rows, 1));
        }
        if !self.reaches_rows(request) {
            return (1, unroll);
        }
        let folds = request.steps.iter().filter(|step| matches!(step, Step::Reduce { .. })).count();
        let registers = registers(request.level);
        // Where lanes are not held in registers, one vector at a time is enough.
        let held = request.folds == Folds::Lanes && unroll > 1;
        let unrolls = if held { vec![unroll, 1] } else { vec![1] };
        let ways = unrolls.into_iter().flat_map(|unroll| ROWS.map(|rows| (rows, unroll)));
        let fits = |&(rows, unroll): &(u16, u16)| {
            let vectors = usize::from(rows * unroll);
            let shared = usize::from(unroll) * self.shared_loads(request, rows);
            vectors * cost - shared <= INSTRUCTIONS && (unroll == 1 || vectors * folds <= registers / 2)
        };
        ways.into_iter().find(fits).unwrap_or((1, unroll))
    }

    /// How many vectors one of some rows side by side reads that another one has read.
    fn shared_loads(&self, request: &Request, rows: u16) -> usize {
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
}

/// The loops over the elements of a row: whole groups of vectors first, then what remains.
fn loops(level: Level, (native, width): (u16, u16), unroll: u16) -> Vec<Loop> {
    let mut loops = vec![Loop { width, unroll, masked: false }];
    if level == Level::Avx512 {
        loops.push(Loop { width: native, unroll: 1, masked: true });
    } else {
        if width * unroll > native {
            loops.push(Loop { width: native, unroll: 1, masked: false });
        }
        loops.push(Loop { width: 1, unroll: 1, masked: false });
    }
    loops
}

/// Cycles, about, from the operands of a step to its result.
fn latency(step: &Step) -> usize {
    let Step::Compute { opcode, param, input, .. } = *step else { return 0 };
    let product = if input.is_complex() { 8 } else { 4 };
    match opcode {
        Opcode::Absolute if input == DType::C64 => 60,
        Opcode::Absolute if input == DType::C128 => 45,
        Opcode::Divide if input.is_complex() => 60,
        Opcode::Divide | Opcode::Sqrt => 20,
        Opcode::Multiply => product,
        Opcode::Powi => product * usize::from(param.div_ceil(2)),
        Opcode::Real | Opcode::Imag | Opcode::Copy if input.is_complex() => 0,
        Opcode::Where => 2,
        _ => 4,
    }
}

/// Vector registers of the processor.
fn registers(level: Level) -> usize {
    if level == Level::Avx512 { 32 } else { 16 }
}

/// Roughly how many instructions a step is.
fn cost(request: &Request, step: &Step, form: Form) -> usize {
    match (step, form) {
        (Step::Random { .. }, _) => 60,
        (Step::Compute { opcode, input, .. }, Form::Inlined(_)) => {
            math::instructions(request.level, *opcode, *input == DType::F32)
        }
        (Step::Compute { opcode, param, input, .. }, Form::Native) if input.is_complex() => {
            complex::instructions(*opcode, *param, *input)
        }
        (&Step::Compute { opcode, param, input, output, .. }, Form::Native) if whole::divides(opcode, input) => {
            let (level, fast_math) = (request.level, request.fast_math);
            whole::instructions(Operation { opcode, param, input, output, level, fast_math, width: 8 })
        }
        // The parts are put in order.
        (Step::Load { slot } | Step::Store { slot, .. }, _) if request.slots[usize::from(*slot)].dtype.is_complex() => {
            4
        }
        // Windows, and shuffles of these.
        (Step::Load { slot }, _) if request.slots[usize::from(*slot)].stride.is_sparse() => {
            usize::from(request.slots[usize::from(*slot)].stride.step().unwrap_or(1)) * 2 - 1
        }
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bh_jit_abi::Near;

    fn compute(opcode: Opcode, value: u16) -> Step {
        let (input, output) = (DType::F64, DType::F64);
        Step::Compute { opcode, param: 0, input, output, args: [Arg::Value(value); 3], count: opcode.info().inputs }
    }

    /// The plan of a kernel that applies these to one array after another.
    fn plan(level: Level, opcodes: &[Opcode]) -> Plan {
        let mut steps = vec![Step::Load { slot: 0 }];
        steps.extend((0..).zip(opcodes).map(|(at, opcode)| compute(*opcode, at)));
        steps.push(Step::Store { slot: 1, arg: Arg::Value(opcodes.len() as u16) });
        let request = crate::request(level, &[SlotMode::Read, SlotMode::Write], steps);
        Plan::new(&request).unwrap()
    }

    fn widest(level: Level, opcodes: &[Opcode]) -> u16 {
        plan(level, opcodes).loops[0].width
    }

    #[test]
    fn chains_take_several_vectors() {
        let (chain, many) = ([Opcode::Exp, Opcode::Log], [Opcode::Add; 60]);
        assert_eq!((widest(Level::Avx512, &chain), widest(Level::Avx2, &chain)), (32, 16));
        // What is left takes a vector at a time.
        assert_eq!(plan(Level::Avx512, &chain).loops[1], Loop { width: 8, unroll: 1, masked: true });
        assert_eq!((widest(Level::Avx512, &many), widest(Level::Avx2, &many)), (8, 4));
        assert_eq!(widest(Level::Avx512, &[Opcode::Sin, Opcode::Exp]), 8);
    }

    #[test]
    fn long_waits_take_several_vectors() {
        // Each step waits for the one before; in the second kernel for two loads only.
        let waiting = [Opcode::Add; 250];
        assert_eq!((widest(Level::Avx512, &waiting), widest(Level::Avx2, &waiting)), (32, 16));
        let mut steps = vec![Step::Load { slot: 0 }];
        steps.extend((0..250).map(|_| compute(Opcode::Add, 0)));
        steps.push(Step::Store { slot: 1, arg: Arg::Value(1) });
        let request = crate::request(Level::Avx512, &[SlotMode::Read, SlotMode::Write], steps);
        assert_eq!(Plan::new(&request).unwrap().loops[0].width, 8);
    }

    #[test]
    fn reciprocals_take_one_vector() {
        let kernel = |quotients: u16| {
            let (input, output, divisor) = (DType::F64, DType::F64, Arg::Value(1));
            let quotient = |at| Step::Compute {
                opcode: Opcode::Divide,
                param: 0,
                input,
                output,
                args: [Arg::Value(at), divisor, divisor],
                count: 2,
            };
            let mut steps = vec![Step::Load { slot: 0 }, Step::Load { slot: 1 }, compute(Opcode::Exp, 0)];
            steps.extend((0..quotients).map(|number| quotient(2 + number)));
            steps.push(Step::Store { slot: 2, arg: Arg::Value(2 + quotients) });
            Plan::new(&crate::request(Level::Avx512, &[SlotMode::Read, SlotMode::Read, SlotMode::Write], steps))
                .unwrap()
        };
        let (one, many) = (kernel(1), kernel(16));
        assert!(!one.multiplied.has_any_shared() && many.multiplied.has_any_shared());
        assert_eq!((one.loops[0].width, many.loops[0].width), (32, 8));
    }

    #[test]
    fn live_values_are_counted() {
        // Products of earlier values: 0 and 1 are loads.
        let request = |args: &[[u16; 2]]| {
            let mut steps = vec![Step::Load { slot: 0 }, Step::Load { slot: 0 }];
            steps.extend(args.iter().map(|&[a, b]| match compute(Opcode::Multiply, a) {
                Step::Compute { opcode, param, input, output, count, .. } => {
                    let args = [Arg::Value(a), Arg::Value(b), Arg::Value(b)];
                    Step::Compute { opcode, param, input, output, args, count }
                }
                other => other,
            }));
            steps.push(Step::Store { slot: 1, arg: Arg::Value(args.len() as u16 + 1) });
            crate::request(Level::Avx512, &[SlotMode::Read, SlotMode::Write], steps)
        };
        let live = |args: &[[u16; 2]]| {
            let request = request(args);
            Plan::new(&request).unwrap().live(&request)
        };
        assert_eq!(live(&[[0, 0], [2, 2], [3, 3]]), 1);
        assert_eq!(live(&[[0, 0], [2, 2], [3, 2], [4, 1], [5, 0]]), 3);
    }

    /// The sum of dense views around cells of so many planes, each of three rows and three elements.
    fn stencil(planes: u16) -> Request {
        let slots = 9 * planes + 1;
        let modes: Vec<SlotMode> = (1..slots).map(|_| SlotMode::Read).chain([SlotMode::Write]).collect();
        let mut steps: Vec<Step> = (1..slots).map(|slot| Step::Load { slot: slot - 1 }).collect();
        for slot in 1..slots - 1 {
            let sum = if slot == 1 { 0 } else { slots + slot - 3 };
            let Step::Compute { opcode, param, input, output, .. } = compute(Opcode::Add, 0) else { unreachable!() };
            let args = [Arg::Value(sum), Arg::Value(slot), Arg::Value(slot)];
            steps.push(Step::Compute { opcode, param, input, output, args, count: 2 });
        }
        steps.push(Step::Store { slot: slots - 1, arg: Arg::Value(2 * slots - 4) });
        let mut request = crate::request(Level::Avx512, &modes, steps);
        for slot in (0..slots - 1).filter(|slot| slot % 9 > 0) {
            let near = Near { slot: slot / 9 * 9, rows: (slot % 9 / 3) as i8, distance: (slot % 3) as i16 };
            request.slots[usize::from(slot)].near = Some(near);
        }
        request
    }

    #[test]
    fn what_rows_share_counts_once() {
        let rows = |planes| Plan::new(&stencil(planes)).unwrap().rows;
        // 6 rows of 3 vectors are read for 4 rows, and 4 for 2.
        let plan = Plan::new(&stencil(1)).unwrap();
        assert_eq!((plan.shared_loads(&stencil(1), 4), plan.shared_loads(&stencil(1), 2)), (36 - 18, 18 - 12));
        assert_eq!((rows(3), rows(9), rows(12)), (4, 4, 2));
    }

    #[test]
    fn many_rows_side_by_side_fetch_the_next_ones() {
        let fetches_next = |planes| {
            let text = crate::text(&stencil(planes)).unwrap();
            assert!(text.contains("llvm.prefetch") && !text.contains("%next0.one"), "{text}");
            text.contains("%next0.many")
        };
        assert!(!fetches_next(1) && fetches_next(3));
    }
}
