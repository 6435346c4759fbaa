//! Groups of bases and instructions that are divided together, and whether that is worth it.

use super::axis::{Axis, Place};
use crate::analysis::base_of;
use crate::passes::Options;
use bh_bytecode::{AxisOrder, Batch, DType, Instr, Kind, Opcode, base_flags, steps};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// The most slices of a base.
const MOST_SLICES: i64 = 32;
/// The most operations that all instructions of a group become together, about what a kernel may have.
const MOST_OPERATIONS: usize = 512;
/// A slice must have this share of the elements that an array must have.
const SHARE: i64 = 8;

/// Bases and instructions that are divided together.
#[derive(Default)]
pub struct Group {
    /// The bases with their axes, and the shape of a slice.
    pub bases: BTreeMap<u32, (Axis, Vec<i64>)>,
    /// The instructions on all slices, each with its dimension.
    pub instrs: BTreeMap<u32, usize>,
    /// Bytes of arrays that need memory because the group is divided, and that are read or written with gaps.
    loss: i64,
    /// Bases that are not divided and that were looked at.
    seen: HashSet<u32>,
    /// Those of them of whose slices neighbours are not neighbours in memory.
    strided: HashSet<u32>,
    operations: usize,
}

/// A use of a base: the instruction, the number of the operand, and the view.
type Access = (u32, usize, u32);

struct Finder<'a> {
    batch: &'a Batch,
    options: &'a Options,
    accesses: Vec<Vec<Access>>,
}

/// Does a chain of operations on pairs start with the neutral element, as engines do? It makes zeros positive, and decides about infinities of
/// complex numbers.
pub fn starts_neutral(fold: Opcode, dtype: DType) -> bool {
    let rounds = dtype.is_float() || dtype.is_complex();
    rounds && matches!(fold, Opcode::AddReduce | Opcode::MultiplyReduce)
}

/// Finds all groups that are worth it. No two have an instruction or a base in common.
pub fn find(batch: &Batch, options: &Options) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut finder = None;
    for base in written_in_parts(batch, options.pieces_from) {
        if groups.iter().any(|group| group.bases.contains_key(&base)) {
            continue;
        }
        let finder = finder.get_or_insert_with(|| Finder::new(batch, options));
        let Some((axis, shape)) = finder.axis_of(base) else { continue };
        let Some(group) = finder.group(base, axis, shape) else { continue };
        let is_free = |group: &Group, other: &Group| {
            !group.instrs.keys().any(|at| other.instrs.contains_key(at))
                && !group.bases.keys().any(|base| other.bases.contains_key(base))
        };
        if finder.is_worth_it(&group) && groups.iter().all(|other| is_free(&group, other)) {
            groups.push(group);
        }
    }
    groups
}

/// The temporaries of some elements of which an instruction writes a part.
fn written_in_parts(batch: &Batch, least: i64) -> BTreeSet<u32> {
    let part = |instr: &Instr| {
        let (view, base) = instr.operands[0].as_view().zip(base_of(batch, instr.operands[0]))?;
        let len = batch.bases[base as usize].len;
        let is_part = instr.outputs == 1 && batch.views[view as usize].len < len;
        (is_part && len >= least && is_temporary(batch, base)).then_some(base)
    };
    batch.instrs.iter().filter_map(part).collect()
}

fn is_temporary(batch: &Batch, base: u32) -> bool {
    let flags = base_flags::BORN | base_flags::DIES;
    batch.bases[base as usize].flags & flags == flags
}

impl<'a> Finder<'a> {
    fn new(batch: &'a Batch, options: &'a Options) -> Finder<'a> {
        let mut accesses = vec![Vec::new(); batch.bases.len()];
        for (at, instr) in batch.instrs.iter().enumerate() {
            for (place, &operand) in instr.operands().iter().enumerate() {
                if let (Some(view), Some(base)) = (operand.as_view(), base_of(batch, operand))
                    && instr.opcode != Opcode::Discard
                {
                    accesses[base as usize].push((at as u32, place, view));
                }
            }
        }
        Finder { batch, options, accesses }
    }

    fn instr(&self, at: u32) -> &Instr {
        &self.batch.instrs[at as usize]
    }

    /// The axis along which a base that is written in parts is written slice by slice and used as a whole, and the shape of a slice.
    fn axis_of(&self, base: u32) -> Option<(Axis, Vec<i64>)> {
        let len = self.batch.bases[base as usize].len;
        let tables = self.batch.as_ref();
        let accesses = &self.accesses[base as usize];
        let is_whole = |&&(at, _, view): &&Access| {
            let kind = self.instr(at).opcode.kind();
            matches!(kind, Kind::Elementwise | Kind::Reduction) && self.batch.views[view as usize].len == len
        };
        let &(_, _, whole) = accesses.iter().find(is_whole)?;
        let (shape, stride) = (tables.shape(whole), tables.stride(whole));
        (0..shape.len()).find_map(|dim| {
            let axis = Axis { step: stride[dim].abs(), count: shape[dim] };
            let fits = (2..=MOST_SLICES).contains(&axis.count) && axis.step > 0;
            (fits && self.can_be_divided(base, axis)).then(|| (axis, [&shape[..dim], &shape[dim + 1..]].concat()))
        })
    }

    /// Are the slices equal parts of a base, is each view within a slice or across all of them, in instructions that may be divided, and is
    /// each slice written before it is read?
    fn can_be_divided(&self, base: u32, axis: Axis) -> bool {
        let period = axis.step.checked_mul(axis.count);
        if period.is_none_or(|period| self.batch.bases[base as usize].len % period != 0) {
            return false;
        }
        let mut written = vec![false; axis.count as usize];
        // Operands that are written follow those of the same instruction that are read.
        let mut accesses = self.accesses[base as usize].clone();
        accesses.sort_by_key(|&(at, place, _)| (at, place < self.instr(at).outputs as usize));
        accesses.iter().all(|&(at, place, view)| {
            steps::add(1);
            let instr = self.instr(at);
            let writes = place < instr.outputs as usize;
            if self.batch.views[view as usize].len == 0 {
                return false;
            }
            let slices = match axis.place(&self.batch.as_ref().view(view)) {
                Some(Place::Within(number)) => {
                    let usual = matches!(instr.opcode.kind(), Kind::Elementwise | Kind::Generator | Kind::Reduction);
                    if !usual {
                        return false;
                    }
                    number as usize..number as usize + 1
                }
                Some(Place::Across(dim)) if self.may_be_divided(at, place, dim) => 0..written.len(),
                _ => return false,
            };
            let needs = !writes || instr.opcode.reads_output();
            let holds = !needs || written[slices.clone()].iter().all(|&is| is);
            written[slices].iter_mut().for_each(|is| *is |= writes);
            holds
        })
    }

    /// May an instruction that has slices along a dimension of this operand work slice by slice?
    fn may_be_divided(&self, at: u32, place: usize, dim: usize) -> bool {
        let instr = self.instr(at);
        match instr.opcode.kind() {
            Kind::Elementwise => true,
            Kind::Reduction => place == 1 && self.may_be_chained(instr, dim),
            _ => false,
        }
    }

    /// Does a fold along one dimension give the same bits as operations on pairs of slices, one after the other?
    fn may_be_chained(&self, instr: &Instr, dim: usize) -> bool {
        let (Some(view), Some(dtype)) = (instr.operands[1].as_view(), self.batch.as_ref().dtype(instr.operands[1]))
        else {
            return false;
        };
        if instr.inputs().len() != 1
            || instr.param != 1 << dim
            || instr.opcode.combiner().is_none()
            || base_of(self.batch, instr.operands[0]) == base_of(self.batch, instr.operands[1])
        {
            return false;
        }
        let shape = self.batch.as_ref().shape(view);
        let in_order = || {
            let order = AxisOrder::decode(instr.order, shape.len());
            order.is_some_and(|order| bh_kernel::folds_in_order(shape, dim, &order))
        };
        !starts_neutral(instr.opcode, dtype) || self.options.in_order && in_order()
    }

    /// All that has to be divided with a base; none if something cannot.
    fn group(&self, base: u32, axis: Axis, shape: Vec<i64>) -> Option<Group> {
        let mut group = Group::default();
        group.bases.insert(base, (axis, shape));
        let mut open = vec![base];
        while let Some(base) = open.pop() {
            let (axis, _) = group.bases[&base];
            for &(at, _, view) in &self.accesses[base as usize] {
                if let Some(Place::Across(dim)) = axis.place(&self.batch.as_ref().view(view)) {
                    self.add(&mut group, &mut open, at, dim)?;
                }
            }
        }
        self.is_consistent(&group).then_some(group)
    }

    /// Adds an instruction that works slice by slice along a dimension.
    fn add(&self, group: &mut Group, open: &mut Vec<u32>, at: u32, dim: usize) -> Option<()> {
        if let Some(&known) = group.instrs.get(&at) {
            return (known == dim).then_some(());
        }
        group.instrs.insert(at, dim);
        let instr = self.instr(at);
        let is_fold = instr.opcode.kind() == Kind::Reduction;
        group.operations += self.batch.as_ref().shape(instr.operands[usize::from(is_fold)].as_view()?)[dim] as usize;
        // Before the operands, which lead to further instructions.
        if group.operations > MOST_OPERATIONS {
            return None;
        }
        if is_fold {
            return Some(());
        }
        for &operand in instr.operands() {
            let (Some(view), Some(base)) = (operand.as_view(), base_of(self.batch, operand)) else { continue };
            let (shape, stride) = (self.batch.as_ref().shape(view), self.batch.as_ref().stride(view));
            if stride[dim] != 0 {
                let axis = Axis { step: stride[dim].abs(), count: shape[dim] };
                self.meet(group, open, base, axis, [&shape[..dim], &shape[dim + 1..]].concat())?;
                let is_dense = (0..shape.len()).any(|own| own != dim && stride[own].abs() == 1);
                if !is_dense && !group.bases.contains_key(&base) && group.strided.insert(base) {
                    group.loss += self.batch.bases[base as usize].bytes() as i64;
                }
            }
        }
        Some(())
    }

    /// Takes in a base that an instruction of the group uses slice by slice: divides temporaries, and takes in the operations that share a kernel
    /// with it for the sake of others.
    fn meet(&self, group: &mut Group, open: &mut Vec<u32>, base: u32, axis: Axis, shape: Vec<i64>) -> Option<()> {
        if let Some(&(known, _)) = group.bases.get(&base) {
            return (known == axis).then_some(());
        }
        if !group.seen.insert(base) {
            return Some(());
        }
        let bytes = self.batch.bases[base as usize].bytes() as i64;
        let accesses = &self.accesses[base as usize];
        let fits = shape.iter().product::<i64>() * axis.count == self.batch.bases[base as usize].len;
        if is_temporary(self.batch, base) && fits && self.can_be_divided(base, axis) {
            group.bases.insert(base, (axis, shape));
            open.push(base);
            return Some(());
        }
        let kind = |at: u32| self.instr(at).opcode.kind();
        if is_temporary(self.batch, base) {
            // Extension methods have kernels of their own.
            let is_stored = accesses.iter().any(|&(at, _, _)| kind(at) == Kind::Extension);
            group.loss += if is_stored { 0 } else { 2 * bytes };
            return Some(());
        }
        if accesses.iter().all(|&(at, place, _)| place >= self.instr(at).outputs as usize) {
            return Some(());
        }
        for &(at, _, view) in accesses {
            match axis.place(&self.batch.as_ref().view(view)) {
                Some(Place::Across(dim)) if kind(at) == Kind::Elementwise => self.add(group, open, at, dim)?,
                Some(Place::Within(_)) => {}
                _ => group.loss += bytes,
            }
        }
        Some(())
    }

    /// Do all operands of the group's instructions have one dimension for the slices?
    fn is_consistent(&self, group: &Group) -> bool {
        group.instrs.iter().all(|(&at, &dim)| {
            let instr = self.instr(at);
            instr.operands().iter().all(|&operand| {
                let (Some(view), Some(base)) = (operand.as_view(), base_of(self.batch, operand)) else { return true };
                let Some((axis, _)) = group.bases.get(&base) else { return true };
                match axis.place(&self.batch.as_ref().view(view)) {
                    Some(Place::Across(own)) => own == dim,
                    // The result of a fold has no such dimension.
                    Some(Place::Within(_)) => {
                        instr.opcode.kind() == Kind::Reduction || self.batch.as_ref().stride(view)[dim] == 0
                    }
                    None => false,
                }
            })
        })
    }

    /// Does dividing a group save enough memory traffic? A base that is written slice by slice and used across them needs no memory any more.
    fn is_worth_it(&self, group: &Group) -> bool {
        let Options { pieces_from: least, .. } = *self.options;
        if least <= 1 {
            return true;
        }
        let is_joined = |base: u32, axis: Axis| {
            let written = |&(at, place, view): &Access| {
                place < self.instr(at).outputs as usize
                    && matches!(axis.place(&self.batch.as_ref().view(view)), Some(Place::Within(_)))
            };
            self.accesses[base as usize].iter().any(written)
        };
        let (mut saved, mut elements) = (-group.loss, i64::MAX);
        for (&base, &(axis, _)) in &group.bases {
            let record = &self.batch.bases[base as usize];
            elements = elements.min(record.len / axis.count);
            saved += if is_joined(base, axis) { 2 * record.bytes() as i64 } else { 0 };
        }
        elements >= least / SHARE && saved >= (group.operations as i64).saturating_mul(least)
    }
}
