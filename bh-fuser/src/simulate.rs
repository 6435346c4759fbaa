//! Tests only: runs partitions on symbolic values the way an engine may, point by point in any order, and the same batch
//! instruction by instruction. An illegal partition gives other values.

use bh_bytecode::batch::NO_BASE;
use bh_bytecode::random::Rng;
use bh_bytecode::{BatchRef, Block, Instr, Kind, Opcode};
use std::collections::HashMap;

type Memory = Vec<Vec<u64>>;

fn mix(a: u64, b: u64) -> u64 {
    let x = (a ^ b.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x ^ x >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ b
}

/// Symbolic contents before the batch.
pub fn initial(batch: &BatchRef<'_>) -> Memory {
    let value = |base: usize, offset: i64| mix(base as u64 + 1, offset as u64 + 1);
    let fill = |(base, record): (usize, &bh_bytecode::Base)| (0..record.len).map(|at| value(base, at)).collect();
    batch.bases.iter().enumerate().map(fill).collect()
}

fn offset(batch: &BatchRef<'_>, view: u32, point: &[i64]) -> i64 {
    batch.views[view as usize].start + batch.stride(view).iter().zip(point).map(|(s, i)| s * i).sum::<i64>()
}

fn points(shape: &[i64]) -> Vec<Vec<i64>> {
    shape.iter().fold(vec![vec![]], |points, &extent| {
        points.iter().flat_map(|p| (0..extent).map(move |i| [p.as_slice(), &[i]].concat())).collect()
    })
}

fn out_view(instr: &Instr) -> u32 {
    instr.operands[0].as_view().expect("outputs are views")
}

fn is_fold(instr: &Instr) -> bool {
    instr.opcode.kind() == Kind::Reduction && instr.param != 0
}

/// The value that a reduction folds at a point: the elements of its inputs, a mask among them.
fn term(instr: &Instr, point: &[i64], read: impl Fn(u32, &[i64]) -> u64) -> u64 {
    let inputs = instr.inputs().iter().map(|input| input.as_view().expect("folded inputs are views"));
    inputs.fold(u64::from(instr.opcode.0), |term, view| mix(term, read(view, point)))
}

fn kept_point(point: &[i64], mask: u16) -> Vec<i64> {
    point.iter().enumerate().filter(|(axis, _)| mask >> axis & 1 == 0).map(|(_, &i)| i).collect()
}

/// The value of an elementwise, generator or gather instruction at a point.
fn value(batch: &BatchRef<'_>, instr: &Instr, point: &[i64], mut read: impl FnMut(u32, &[i64]) -> u64) -> u64 {
    if instr.opcode == Opcode::Gather {
        let source = instr.operands[1].as_view().expect("sources are views");
        let index = instr.operands[2].as_view().map_or(7, |view| read(view, point));
        let count = batch.views[source as usize].len.max(1) as u64;
        let mut at = (index % count) as i64;
        let shape = batch.shape(source);
        let mut place = vec![0; shape.len()];
        for dim in (0..shape.len()).rev() {
            place[dim] = at % shape[dim].max(1);
            at /= shape[dim].max(1);
        }
        return if batch.views[source as usize].len == 0 { 0 } else { read(source, &place) };
    }
    if instr.opcode == Opcode::Copy && batch.dtype(instr.operands[0]) == batch.dtype(instr.operands[1]) {
        return instr.operands[1].as_view().map_or(5, |view| read(view, point));
    }
    let mut result = mix(instr.opcode.0 as u64, instr.param as u64);
    for operand in instr.inputs() {
        let input = match operand.as_view() {
            Some(view) if batch.views[view as usize].base == NO_BASE => offset(batch, view, point) as u64,
            Some(view) => read(view, point),
            None => operand.0 as u64,
        };
        result = mix(result, input);
    }
    result
}

/// Runs one instruction as a whole.
fn run_instr(batch: &BatchRef<'_>, instr: &Instr, memory: &mut Memory) {
    if instr.opcode.is_system() {
        if matches!(instr.opcode, Opcode::Free | Opcode::Discard) {
            let base = instr.operands[0].as_view().map_or(NO_BASE, |view| batch.views[view as usize].base);
            memory[base as usize].fill(0);
        }
        return;
    }
    let out = out_view(instr);
    let base = batch.views[out as usize].base as usize;
    let before = memory.clone();
    let read = |view: u32, point: &[i64]| {
        before[batch.views[view as usize].base as usize][offset(batch, view, point) as usize]
    };
    if is_fold(instr) {
        let input = instr.operands[1].as_view().expect("folded inputs are views");
        points(batch.shape(out)).iter().for_each(|p| memory[base][offset(batch, out, p) as usize] = 1);
        for point in points(batch.shape(input)) {
            let at = offset(batch, out, &kept_point(&point, instr.param)) as usize;
            memory[base][at] = memory[base][at].wrapping_add(term(instr, &point, read));
        }
    } else if matches!(instr.opcode.kind(), Kind::Accumulate | Kind::Extension)
        || (instr.opcode.kind() == Kind::Index && instr.opcode != Opcode::Gather)
    {
        // Everything may depend on everything.
        let mut all = instr.opcode.0 as u64;
        for view in instr.operands().iter().filter_map(|operand| operand.as_view()) {
            points(batch.shape(view)).iter().for_each(|p| all = mix(all, read(view, p)));
        }
        for (number, point) in points(batch.shape(out)).iter().enumerate() {
            memory[base][offset(batch, out, point) as usize] = mix(all, number as u64);
        }
    } else {
        for point in points(batch.shape(out)) {
            memory[base][offset(batch, out, &point) as usize] = value(batch, instr, &point, read);
        }
    }
}

/// Runs the batch instruction by instruction.
pub fn run_in_order(batch: &BatchRef<'_>, memory: &mut Memory) {
    batch.instrs.iter().for_each(|instr| run_instr(batch, instr, memory));
}

/// Runs the batch kernel by kernel.
pub fn run_blocks(batch: &BatchRef<'_>, memory: &mut Memory, rng: &mut Rng) {
    for block in batch.blocks {
        let work: Vec<&Instr> = batch.block_instrs(block).iter().map(|&instr| &batch.instrs[instr as usize]).collect();
        let (systems, work): (Vec<&Instr>, Vec<&Instr>) = work.into_iter().partition(|instr| instr.opcode.is_system());
        match work.as_slice() {
            [] => {}
            [instr] if instr.opcode.kind() != Kind::Elementwise => run_instr(batch, instr, memory),
            work => Kernel::new(batch, block, memory).run(work, rng),
        }
        systems.iter().for_each(|instr| run_instr(batch, instr, memory));
    }
}

struct Kernel<'a, 'b> {
    batch: &'a BatchRef<'b>,
    block: &'a Block,
    memory: &'a mut Memory,
    fresh: HashMap<u32, Vec<u64>>,
    silent: Vec<u32>,
    results: HashMap<(u32, Vec<i64>), u64>,
}

fn shuffle<T>(items: &mut [T], rng: &mut Rng) {
    for at in (1..items.len()).rev() {
        items.swap(at, rng.below(at + 1));
    }
}

impl<'a, 'b> Kernel<'a, 'b> {
    fn new(batch: &'a BatchRef<'b>, block: &'a Block, memory: &'a mut Memory) -> Kernel<'a, 'b> {
        // Elements of the fresh buffer that no instruction writes are garbage.
        let fresh = batch
            .renames(block)
            .iter()
            .map(|rename| (rename.base, vec![0xdead; batch.bases[rename.base as usize].len as usize]));
        let aliases = batch.renames(block).iter().map(|rename| rename.alias);
        let silent = batch.contracted(block).iter().copied().chain(aliases).collect();
        Kernel { batch, block, fresh: fresh.collect(), silent, memory, results: HashMap::new() }
    }

    fn store(&mut self, view: u32, point: &[i64], value: u64) {
        let base = self.batch.views[view as usize].base;
        if self.silent.contains(&base) {
            return;
        }
        let at = offset(self.batch, view, point) as usize;
        match self.fresh.get_mut(&base) {
            Some(buffer) => buffer[at] = value,
            None => self.memory[base as usize][at] = value,
        }
    }

    fn run(mut self, work: &[&Instr], rng: &mut Rng) {
        let fold = work.iter().find(|instr| is_fold(instr));
        let shape = match fold {
            Some(instr) => self.batch.shape(instr.operands[1].as_view().expect("folded inputs are views")),
            None => self.batch.shape(out_view(work[0])),
        };
        let (main, epilogue): (Vec<&Instr>, Vec<&Instr>) =
            work.iter().partition(|instr| is_fold(instr) || self.batch.shape(out_view(instr)) == shape);
        let mut order = points(shape);
        shuffle(&mut order, rng);
        for instr in main.iter().filter(|instr| is_fold(instr)) {
            for point in points(self.batch.shape(out_view(instr))) {
                self.results.insert((out_view(instr), point), 1);
            }
        }
        for point in order {
            self.run_point(&main, &point);
        }
        for ((view, point), value) in self.results.clone() {
            self.store(view, &point, value);
        }
        if let Some(instr) = fold {
            let mut order = points(self.batch.shape(out_view(instr)));
            shuffle(&mut order, rng);
            for point in order {
                self.run_point(&epilogue, &point);
            }
        }
        self.finish();
    }

    fn run_point(&mut self, work: &[&Instr], point: &[i64]) {
        let mut registers: HashMap<u32, u64> = HashMap::new();
        for instr in work {
            let batch = self.batch;
            let read = |view: u32, at: &[i64]| {
                if at == point
                    && let Some(&value) = registers.get(&view)
                {
                    return value;
                }
                if let Some(&value) = self.results.get(&(view, at.to_vec()))
                    && !work.iter().any(|instr| is_fold(instr))
                {
                    return value;
                }
                let base = batch.views[view as usize].base;
                if self.silent.contains(&base) {
                    0xbad
                } else {
                    self.memory[base as usize][offset(batch, view, at) as usize]
                }
            };
            if is_fold(instr) {
                let term = term(instr, point, read);
                let sum = self.results.get_mut(&(out_view(instr), kept_point(point, instr.param)));
                let sum = sum.expect("results are there");
                *sum = sum.wrapping_add(term);
            } else {
                let value = value(batch, instr, point, read);
                registers.insert(out_view(instr), value);
            }
        }
        for (view, value) in registers {
            self.store(view, point, value);
        }
    }

    fn finish(self) {
        for rename in self.batch.renames(self.block) {
            let base = rename.base as usize;
            let mut buffer = self.fresh[&rename.base].clone();
            for &view in self.batch.uncovered(rename) {
                for point in points(self.batch.shape(view)) {
                    let at = offset(self.batch, view, &point) as usize;
                    buffer[at] = self.memory[base][at];
                }
            }
            self.memory[base] = buffer;
            if rename.alias != NO_BASE {
                let view = rename.alias_view;
                let copy = points(self.batch.shape(view));
                self.memory[rename.alias as usize] =
                    copy.iter().map(|p| self.memory[base][offset(self.batch, view, p) as usize]).collect();
            }
        }
    }
}
