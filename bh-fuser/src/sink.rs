//! A last touch on greedy's partition: an instruction whose result only one later kernel needs moves there if that is
//! cheaper, so that the result stays in registers.

use crate::deps::Dependencies;
use crate::emit::needs_rename;
use crate::entry::group_of;
use crate::facts::{Class, NONE, access};
use crate::legality::{Rules, Summary};

/// Instructions looked at, in all candidate kernels together, for each instruction of the batch.
const WORK_FACTOR: usize = 6;

/// Bases of which a kernel uses more views are not looked at.
const MOST_VIEWS: usize = 32;

/// Moves instructions between the blocks that the labels describe.
pub fn sink(rules: &mut Rules<'_>, dependencies: &Dependencies, labels: &mut [u32]) {
    let facts = rules.facts;
    let mut after: Vec<(u32, u32)> = dependencies.edges.clone();
    after.sort_unstable();
    let mut members: Vec<Vec<u32>> = Vec::new();
    let mut budget = WORK_FACTOR * labels.len();
    for op in (0..labels.len() as u32).rev() {
        if !matches!(facts.ops[op as usize].class, Class::Map | Class::Gather) {
            continue;
        }
        let from = labels[op as usize];
        let first = after.partition_point(|&(earlier, _)| earlier < op);
        let mut next = after[first..].iter().take_while(|&&(earlier, _)| earlier == op).map(|&(_, later)| later);
        let Some(to) = next.next().map(|later| labels[later as usize]) else { continue };
        if to == from || next.any(|later| labels[later as usize] != to) {
            continue;
        }
        let temporary = |access: &&crate::facts::Access| {
            access.flags & access::WRITE != 0 && facts.bases[access.base as usize].contractible
        };
        if facts.accesses_of(op).iter().find(temporary).is_none() {
            continue;
        }
        if members.is_empty() {
            members.resize(labels.len(), Vec::new());
            for (op, &label) in labels.iter().enumerate().filter(|(_, label)| **label != NONE) {
                members[label as usize].push(op as u32);
            }
        }
        let size = members[from as usize].len() + members[to as usize].len();
        if size > budget {
            return;
        }
        budget -= size;
        if is_cheaper(rules, op, &members[from as usize], &members[to as usize]) {
            labels[op as usize] = to;
            members[from as usize].retain(|&member| member != op);
            members[to as usize].push(op);
            members[to as usize].sort_unstable();
        }
    }
}

/// May `op` leave its block for the other one, and does that lower the cost?
fn is_cheaper(rules: &mut Rules<'_>, op: u32, from: &[u32], to: &[u32]) -> bool {
    let own = rules.entries_of(&[op]);
    let Some(target) = summary_of(rules, to) else { return false };
    let before = rules.entries_of(from);
    let others: Vec<u32> = from.iter().copied().filter(|&member| member != op).collect();
    let (rest, there) = (rules.entries_of(&others), rules.entries_of(to));
    let Ok(summary) = rules.combine(&target, &rules.summary(op)) else { return false };
    if rules.check_accesses(summary, &there, &own).is_err() {
        return false;
    }
    let joined = rules.entries_of(&[to, &[op]].concat());
    let mut saving = 0;
    for group in own.chunk_by(|a, b| a.base == b.base) {
        let base = group[0].base;
        for (entries, sign) in [(&before, 1), (&there, 1), (&rest, -1), (&joined, -1)] {
            let group = group_of(entries, base);
            if group.len() > MOST_VIEWS {
                return false;
            }
            if !group.is_empty() {
                let renamed = needs_rename(rules, group);
                saving += sign * rules.base_cost(base, group, renamed);
            }
        }
    }
    saving > 0
}

/// The summary of a block; its reductions decide what is box and what is epilogue.
fn summary_of(rules: &mut Rules<'_>, members: &[u32]) -> Option<Summary> {
    let summaries = || members.iter().map(|&op| rules.summary(op));
    let first = summaries().find(|summary| summary.kept != NONE).or_else(|| summaries().next())?;
    let joined = summaries().try_fold(Summary { ops: 0, ..first }, |joined, next| rules.combine(&joined, &next));
    joined.ok().map(|joined| Summary { renamed: true, ..joined })
}
