//! Dependencies between instructions: pairs of accesses to one base that must keep their order.

use crate::facts::{Facts, NONE, access};
use crate::relation::{Relation, RelationCache};
use bh_bytecode::BatchRef;

#[derive(Clone, Copy)]
struct Link {
    op: u32,
    view: u32,
    epoch: u32,
    previous: u32,
}

/// The dependencies of a batch, without those that follow from others on the same base.
#[derive(Default)]
pub struct Dependencies {
    /// (earlier, later), sorted by the later instruction.
    pub edges: Vec<(u32, u32)>,
    links: Vec<Link>,
    last_write: Vec<u32>,
    last_read: Vec<u32>,
    marked: Vec<u32>,
}

impl Dependencies {
    /// Finds the dependencies.
    pub fn gather(&mut self, batch: &BatchRef<'_>, facts: &Facts, relations: &mut RelationCache) {
        self.edges.clear();
        self.links.clear();
        for (table, len) in [
            (&mut self.last_write, facts.bases.len()),
            (&mut self.last_read, facts.bases.len()),
            (&mut self.marked, facts.ops.len()),
        ] {
            table.clear();
            table.resize(len, NONE);
        }
        for op in 0..facts.ops.len() as u32 {
            let accesses = facts.accesses_of(op);
            for access in accesses {
                let (writes, base) = (access.flags & access::WRITE != 0, access.base as usize);
                let mut after = None;
                let mut at = self.last_write[base];
                while at != NONE {
                    let link = self.links[at as usize];
                    at = link.previous;
                    if link.epoch != access.epoch {
                        self.depend(link.op, op);
                        continue;
                    }
                    let found = relations.get(batch, link.view, access.view);
                    if found.touches() {
                        self.depend(link.op, op);
                    }
                    if matches!(found, Relation::Identical | Relation::Contains) {
                        // Whatever came before this write and touches the access also touches the write.
                        after = Some(link.op);
                        break;
                    }
                }
                if !writes && access.epoch == 0 {
                    continue;
                }
                let mut at = self.last_read[base];
                while at != NONE {
                    let link = self.links[at as usize];
                    at = link.previous;
                    if after.is_some_and(|op| link.op <= op) {
                        break;
                    }
                    if link.epoch != access.epoch || (writes && relations.get(batch, link.view, access.view).touches())
                    {
                        self.depend(link.op, op);
                    }
                }
            }
            for access in accesses {
                for (bit, last) in [(access::WRITE, &mut self.last_write), (access::READ, &mut self.last_read)] {
                    if access.flags & bit != 0 {
                        let previous = std::mem::replace(&mut last[access.base as usize], self.links.len() as u32);
                        self.links.push(Link { op, view: access.view, epoch: access.epoch, previous });
                    }
                }
            }
        }
    }

    fn depend(&mut self, earlier: u32, later: u32) {
        if self.marked[earlier as usize] != later {
            self.marked[earlier as usize] = later;
            self.edges.push((earlier, later));
        }
    }
}
