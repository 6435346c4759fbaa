//! The algorithms that need no graph: `singleton` and `naive`.

use crate::facts::{Class, NONE};
use crate::legality::{Entry, Rules, Summary};

/// Each instruction's block is itself.
pub fn singleton(rules: &Rules<'_>, labels: &mut [u32]) {
    for (op, label) in labels.iter_mut().enumerate() {
        *label = if rules.facts.ops[op].class == Class::System { NONE } else { op as u32 };
    }
}

/// In program order, a new block whenever the next instruction does not fit into the current one.
pub fn naive(rules: &mut Rules<'_>, labels: &mut [u32]) {
    let mut current: Option<(u32, Summary)> = None;
    let (mut entries, mut own, mut joined) = (Vec::<Entry>::new(), Vec::new(), Vec::new());
    for op in 0..labels.len() as u32 {
        if rules.facts.ops[op as usize].class == Class::System {
            labels[op as usize] = NONE;
            continue;
        }
        let summary = rules.summary(op);
        own.clear();
        rules.entries(op, &mut own);
        let fits = current.as_ref().and_then(|(label, block)| {
            rules.check((block, &entries), (&summary, &own)).ok().map(|join| (*label, join.summary))
        });
        match fits {
            Some((label, summary)) => {
                joined.clear();
                rules.join(&entries, &own, &mut joined);
                std::mem::swap(&mut entries, &mut joined);
                current = Some((label, summary));
                labels[op as usize] = label;
            }
            None => {
                current = Some((op, summary));
                labels[op as usize] = op;
                std::mem::swap(&mut entries, &mut own);
            }
        }
    }
}
