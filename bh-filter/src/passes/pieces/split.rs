//! The instructions of a batch some of whose clusters run box by box.

use super::clusters::{Cluster, Member};
use super::sources::{Moved, Source, corners, ends};
use crate::analysis::base_of;
use crate::passes::{Views, new_base};
use bh_bytecode::{Batch, Instr, Kind, Opcode, Operand, View};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A box of a cluster.
struct Part {
    corner: Vec<i64>,
    end: Vec<i64>,
    /// The box's parts of the cluster's own bases.
    bases: BTreeMap<u32, u32>,
}

impl Part {
    fn shape(&self) -> Vec<i64> {
        self.end.iter().zip(&self.corner).map(|(end, begin)| end - begin).collect()
    }

    /// A view of all of a base that has the box's shape.
    fn whole(&self) -> View {
        View::contiguous(&self.shape()).expect("a box of a legal view is a legal view")
    }

    /// Gives the box a base of its own in the place of a cluster's.
    fn add_base(&mut self, batch: &mut Batch, of: u32) {
        let base = new_base(batch, of, self.whole().shape());
        self.bases.insert(of, base);
    }

    /// The box of a view with such a start and strides.
    fn of(&self, start: i64, stride: &[i64]) -> View {
        let offset = |start: i64, (&i, &stride): (&i64, &i64)| start.wrapping_add(i.wrapping_mul(stride));
        let start = self.corner.iter().zip(stride).fold(start, offset);
        View::new(start, &self.shape(), stride).expect("a box of a legal view is a legal view")
    }
}

/// A cluster that is cut.
pub struct Split {
    /// The cluster.
    pub cluster: Cluster,
    /// Where each dimension is cut.
    pub cuts: Vec<Vec<i64>>,
    /// The temporaries that only it uses, from index to equal index. Each box gets its own ones, so that what one kernel does
    /// with a box needs no memory for them.
    pub own: BTreeSet<u32>,
}

/// Cuts clusters. Returns how many instructions were cut. New bases have identities that no other base of the batch has.
pub fn run(batch: &mut Batch, splits: Vec<Split>) -> usize {
    let mut views = Views::of(batch);
    let old = std::mem::take(&mut batch.instrs);
    let mut instrs = Vec::with_capacity(2 * old.len());
    let mut held = vec![false; old.len()];
    // For each base, the last of the places where clusters that use it end, and the instructions of clusters by these places.
    let mut needed: HashMap<u32, u32> = HashMap::new();
    let mut ready: HashMap<u32, Vec<Instr>> = HashMap::new();
    let mut changed = 0;
    for split in splits {
        let own = boxwise(batch, &mut views, &old, &split);
        let Split { cluster, .. } = split;
        for base in own.iter().flat_map(|instr| instr.operands()).filter_map(|&operand| base_of(batch, operand)) {
            let last = needed.entry(base).or_default();
            *last = cluster.end.max(*last);
        }
        cluster.members.iter().for_each(|member| held[member.at as usize] = true);
        changed += cluster.members.len();
        ready.entry(cluster.end).or_default().extend(own);
    }
    // A DISCARD of a base that a later cluster reads follows that cluster.
    let mut dropped: HashMap<u32, Vec<Instr>> = HashMap::new();
    for at in 0..=old.len() as u32 {
        instrs.extend(ready.remove(&at).into_iter().flatten());
        instrs.extend(dropped.remove(&at).into_iter().flatten());
        let Some(&instr) = old.get(at as usize) else { break };
        let until = match instr.opcode {
            Opcode::Discard => base_of(batch, instr.operands[0]).and_then(|base| needed.get(&base)),
            _ => None,
        };
        match until {
            Some(&until) if until > at => dropped.entry(until).or_default().push(instr),
            _ if held[at as usize] => {}
            _ => instrs.push(instr),
        }
    }
    batch.instrs = instrs;
    changed
}

/// A cluster's instructions, box by box, the largest last.
fn boxwise(batch: &mut Batch, views: &mut Views, old: &[Instr], split: &Split) -> Vec<Instr> {
    let Split { cluster, cuts, own } = split;
    let first = old[cluster.members[0].at as usize].operands[0];
    let shape = first.as_view().map(|view| batch.as_ref().shape(view).to_vec()).unwrap_or_default();
    let mut parts: Vec<Part> = corners(cuts)
        .map(|corner| {
            let end = ends(cuts, &shape, &corner);
            Part { corner, end, bases: BTreeMap::new() }
        })
        .collect();
    parts.sort_by_key(|part| part.shape().iter().product::<i64>());
    let mut instrs = Vec::with_capacity(parts.len() * cluster.members.len());
    let has_own = parts.len() > 1;
    for part in &mut parts {
        for base in own.iter().filter(|_| has_own) {
            part.add_base(batch, *base);
        }
        for member in &cluster.members {
            operation(batch, views, &old[member.at as usize], member, part, &mut instrs);
        }
        let whole = part.whole();
        for &base in part.bases.values() {
            let view = views.intern(batch, base, whole);
            instrs.push(Instr::new(Opcode::Discard, &[Operand::view(view)]));
        }
    }
    instrs
}

/// A member's operation on one box.
fn operation(batch: &mut Batch, views: &mut Views, old: &Instr, member: &Member, part: &Part, into: &mut Vec<Instr>) {
    let mut instr = *old;
    for (place, operand) in instr.operands_mut().iter_mut().enumerate() {
        let source = member.cuts[place].as_ref().map(|cut| cut.source(part.corner.iter().copied()));
        let (base, view) = match (source, operand.as_view()) {
            (Some(Source::Constant(value)), _) => {
                *operand = *value;
                continue;
            }
            (Some(Source::Moved(Moved { base, start, stride, .. })), _) => (*base, part.of(*start, stride)),
            (_, Some(view)) => {
                let tables = batch.as_ref();
                let record = &tables.views[view as usize];
                match part.bases.get(&record.base) {
                    Some(&own) => (own, part.whole()),
                    None => (record.base, part.of(record.start, tables.stride(view))),
                }
            }
            _ => continue,
        };
        *operand = Operand::view(views.intern(batch, base, view));
    }
    let has_arrays = instr.inputs().iter().any(|operand| operand.as_view().is_some());
    if !has_arrays && instr.opcode != Opcode::Copy && instr.opcode.kind() == Kind::Elementwise {
        // Operations have an array among their inputs: here a result, filled with one of the constants.
        let dtype = batch.as_ref().dtype(instr.operands[0]);
        let place = (1..instr.count as usize).find(|&place| batch.as_ref().dtype(instr.operands[place]) == dtype);
        let place = place.expect("clusters are cut where one of the constants has the type of the result");
        into.push(Instr {
            origin: old.origin,
            ..Instr::new(Opcode::Copy, &[instr.operands[0], instr.operands[place]])
        });
        instr.operands[place] = instr.operands[0];
    }
    into.push(instr);
}
