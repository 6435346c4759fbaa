//! The instructions of a batch whose groups are divided.

use super::axis::{Axis, Place, at_index};
use super::group::{Group, starts_neutral};
use crate::analysis::base_of;
use crate::passes::pieces::sources::copied;
use crate::passes::{Views, new_base};
use bh_bytecode::{Batch, Constant, Instr, Kind, Opcode, Operand, View};
use std::collections::{HashMap, HashSet};

/// A base that is divided: its axis, and the arrays of its slices.
type Divided = HashMap<u32, (Axis, Vec<u32>)>;

/// Divides the groups. Returns for each old instruction how many new ones there are up to its end.
pub fn run(batch: &mut Batch, groups: &[Group]) -> Vec<u32> {
    let mut views = Views::of(batch);
    let mut bases = Divided::new();
    for (&base, &(axis, ref shape)) in groups.iter().flat_map(|group| &group.bases) {
        let slices = (0..axis.count).map(|_| new_base(batch, base, shape)).collect();
        bases.insert(base, (axis, slices));
    }
    let dims: HashMap<u32, usize> =
        groups.iter().flat_map(|group| &group.instrs).map(|(&at, &dim)| (at, dim)).collect();
    let old = std::mem::take(&mut batch.instrs);
    let mut late = late(batch, &bases, &old);
    let mut writer = Writer { batch, views: &mut views, bases: &bases, instrs: Vec::with_capacity(2 * old.len()) };
    let mut ends = Vec::with_capacity(old.len());
    for (at, instr) in old.iter().enumerate() {
        match dims.get(&(at as u32)) {
            Some(&dim) if instr.opcode.kind() == Kind::Reduction => writer.chain(instr, dim),
            Some(&dim) => writer.each(instr, dim),
            None if instr.opcode == Opcode::Discard => discards(&mut writer, &mut late, instr),
            None => writer.kept(instr),
        }
        ends.push(writer.instrs.len() as u32);
    }
    // Bases whose slices are copied to each other wait for each other.
    let mut left: Vec<Instr> = late.waiting.into_values().flatten().collect();
    left.sort_by_key(|instr| instr.operands[0].as_view());
    left.iter().for_each(|instr| writer.discard(instr));
    if let Some(end) = ends.last_mut() {
        *end = writer.instrs.len() as u32;
    }
    batch.instrs = writer.instrs;
    ends
}

/// DISCARDs that wait: by the temporary that is copied to a slice, the base of the slice, until it is dropped itself.
#[derive(Default)]
struct Late {
    until: HashMap<u32, u32>,
    waiting: HashMap<u32, Vec<Instr>>,
}

/// Temporaries that are copied to slices are dropped after them, so that others can read them in the place of the slices.
fn late(batch: &Batch, bases: &Divided, instrs: &[Instr]) -> Late {
    let mut late = Late::default();
    let mut dropped = HashSet::new();
    for instr in instrs.iter().rev() {
        let Some(base) = base_of(batch, instr.operands[0]) else { continue };
        if instr.opcode == Opcode::Discard {
            dropped.insert(base);
        }
        let source = copied(batch, instr).and_then(|source| base_of(batch, source));
        let waits = |source: &u32| *source != base && bases.contains_key(&base) && dropped.contains(&base);
        if let Some(source) = source.filter(waits) {
            late.until.entry(source).or_insert(base);
        }
    }
    late
}

fn discards(writer: &mut Writer<'_>, late: &mut Late, instr: &Instr) {
    let Some(base) = base_of(writer.batch, instr.operands[0]) else { return writer.discard(instr) };
    match late.until.remove(&base) {
        Some(until) => late.waiting.entry(until).or_default().push(*instr),
        None => {
            writer.discard(instr);
            late.until.retain(|_, until| *until != base);
            // Their own copies may have been waited for.
            for waiting in late.waiting.remove(&base).unwrap_or_default() {
                discards(writer, late, &waiting);
            }
        }
    }
}

struct Writer<'a> {
    batch: &'a mut Batch,
    views: &'a mut Views,
    bases: &'a Divided,
    instrs: Vec<Instr>,
}

impl Writer<'_> {
    /// A view of a base, or of the array of its slice.
    fn operand(&mut self, base: u32, view: View) -> Operand {
        let view = view.canonical();
        let (base, view) = match self.bases.get(&base) {
            Some((axis, slices)) => match axis.place(&view) {
                Some(Place::Within(number)) => (slices[number as usize], axis.within(&view)),
                _ => unreachable!("bases are divided where all views are within slices"),
            },
            None => (base, view),
        };
        Operand::view(self.views.intern(self.batch, base, view))
    }

    fn seen(&self, operand: Operand) -> Option<(u32, View)> {
        let view = operand.as_view()?;
        Some((self.batch.views[view as usize].base, self.batch.as_ref().view(view)))
    }

    /// An instruction that reads and writes slices, if any, as parts of their arrays.
    fn kept(&mut self, instr: &Instr) {
        let mut instr = *instr;
        for operand in instr.operands_mut() {
            if let Some((base, view)) = self.seen(*operand)
                && self.bases.contains_key(&base)
            {
                *operand = self.operand(base, view);
            }
        }
        self.instrs.push(instr);
    }

    /// Drops a base, or the arrays of its slices.
    fn discard(&mut self, instr: &Instr) {
        let divided = self.seen(instr.operands[0]).and_then(|(base, _)| self.bases.get(&base));
        let Some((_, slices)) = divided else { return self.instrs.push(*instr) };
        for &slice in slices {
            let whole = View::contiguous(&[self.batch.bases[slice as usize].len]).expect("a base has a legal size");
            let view = self.views.intern(self.batch, slice, whole);
            self.instrs.push(Instr { origin: instr.origin, ..Instr::new(Opcode::Discard, &[Operand::view(view)]) });
        }
    }

    /// An elementwise operation, index by index of a dimension.
    fn each(&mut self, instr: &Instr, dim: usize) {
        let count = self.seen(instr.operands[0]).map_or(0, |(_, view)| view.shape()[dim]);
        for index in 0..count {
            let mut own = *instr;
            for operand in own.operands_mut() {
                if let Some((base, view)) = self.seen(*operand) {
                    *operand = self.operand(base, at_index(&view, dim, index));
                }
            }
            self.instrs.push(own);
        }
    }

    /// A fold along a dimension, as operations on pairs of slices.
    fn chain(&mut self, instr: &Instr, dim: usize) {
        let (Some(opcode), Some((base, view))) = (instr.opcode.combiner(), self.seen(instr.operands[1])) else {
            return;
        };
        let out = match self.seen(instr.operands[0]) {
            Some((base, view)) => self.operand(base, view),
            None => return,
        };
        let slice = |writer: &mut Self, index| writer.operand(base, at_index(&view, dim, index));
        let dtype = self.batch.bases[base as usize].dtype();
        let (mut left, first) = match starts_neutral(instr.opcode, dtype) {
            true => {
                let neutral = Constant::from_value(u8::from(instr.opcode == Opcode::MultiplyReduce)).cast(dtype);
                (Operand::constant(self.batch.push_constant(neutral)), 0)
            }
            false => (slice(self, 0), 1),
        };
        for index in first..view.shape()[dim] {
            let right = slice(self, index);
            self.instrs.push(Instr { origin: instr.origin, ..Instr::new(opcode, &[out, left, right]) });
            left = out;
        }
    }
}
