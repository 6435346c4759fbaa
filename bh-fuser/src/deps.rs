//! Dependencies between instructions: pairs of accesses to one base that must keep their order, and which of them may not
//! share a kernel.
//!
//! Each access looks back through the accesses before it that may touch its view ([`Nodes`]) until it comes to a write that
//! covers it: earlier accesses touch that write, too. Accesses that a write covers leave the chains on the way. An access
//! that has examined very many in vain becomes a *barrier* for the rest: it depends on them, and later accesses depend on it,
//! which bounds the work for each access.

use crate::facts::{Facts, NONE, access};
use crate::places::Nodes;
use crate::relation::{Relation, RelationCache};
use bh_bytecode::{BatchRef, steps};

/// How many earlier accesses an access looks at before it becomes a barrier.
const LOOK_BACK: usize = 64;

#[derive(Clone, Copy)]
struct Link {
    op: u32,
    view: u32,
    epoch: u32,
}

/// A link in a chain, or a barrier that ends it.
#[derive(Clone, Copy)]
struct Cell {
    link: u32,
    previous: u32,
    barrier: bool,
}

/// Why two instructions that depend on each other cannot share a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// The later one reads through another view what the earlier one writes.
    ReadAfterWrite,
    /// They write through different views.
    WriteAfterWrite,
    /// The later one writes what the earlier one reads through another view; a rename may help.
    WriteAfterRead {
        /// The view that is read.
        read: u32,
        /// The view that is written.
        write: u32,
    },
    /// One of them is a barrier.
    Barrier,
}

/// A dependency of two instructions that is a conflict.
#[derive(Clone, Copy, Debug)]
pub struct Clash {
    /// The earlier instruction.
    pub earlier: u32,
    /// The later instruction.
    pub later: u32,
    /// The base.
    pub base: u32,
    /// The kind of conflict.
    pub conflict: Conflict,
}

/// The dependencies of a batch, without those that follow from others on the same base.
#[derive(Default)]
pub struct Dependencies {
    /// (earlier, later), sorted by the later instruction.
    pub edges: Vec<(u32, u32)>,
    /// Those which keep instructions apart, sorted by the later instruction.
    pub clashes: Vec<Clash>,
    nodes: Nodes,
    links: Vec<Link>,
    cells: Vec<Cell>,
    marked: Vec<u32>,
}

/// The accesses that a search examines: writes, or reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Writes,
    Reads,
}

impl Dependencies {
    /// Finds the dependencies.
    pub fn gather(&mut self, batch: &BatchRef<'_>, facts: &Facts, relations: &mut RelationCache) {
        self.edges.clear();
        self.clashes.clear();
        self.links.clear();
        self.cells.clear();
        self.marked.clear();
        self.marked.resize(facts.ops.len(), NONE);
        self.nodes.gather(batch, facts);
        for op in 0..facts.ops.len() as u32 {
            let accesses = facts.accesses_of(op);
            for access in accesses.iter().filter(|access| facts.bases[access.base as usize].is_ordered()) {
                let own = (op, access.view, access.epoch, access.base);
                let writes = access.flags & access::WRITE != 0;
                let after = self.look_back(batch, facts, relations, own, access.flags, Side::Writes, None);
                if writes || access.epoch != 0 {
                    self.look_back(batch, facts, relations, own, access.flags, Side::Reads, after);
                }
            }
            for access in accesses.iter().filter(|access| facts.bases[access.base as usize].is_ordered()) {
                let link = self.links.len() as u32;
                self.links.push(Link { op, view: access.view, epoch: access.epoch });
                for (bit, side) in [(access::WRITE, Side::Writes), (access::READ, Side::Reads)] {
                    if access.flags & bit != 0 {
                        self.add(access.view, link, side);
                    }
                }
            }
        }
    }

    /// Adds a link to the chains in which accesses look for it.
    fn add(&mut self, view: u32, link: u32, side: Side) {
        let own = self.nodes.of(view);
        let mut at = own;
        while at != NONE {
            let node = &mut self.nodes.all[at as usize];
            let has_below = !node.is_leaf;
            let (below, here) = node.chains(side == Side::Writes);
            if at == own && has_below {
                self.cells.push(Cell { link, previous: *here, barrier: false });
                *here = self.cells.len() as u32 - 1;
            }
            self.cells.push(Cell { link, previous: *below, barrier: false });
            *below = self.cells.len() as u32 - 1;
            at = node.parent;
        }
    }

    /// Depends on what it touches of the chains of one side, back to instruction `until`. Returns the write that covers it.
    #[allow(clippy::too_many_arguments)]
    fn look_back(
        &mut self,
        batch: &BatchRef<'_>,
        facts: &Facts,
        relations: &mut RelationCache,
        (op, view, epoch, base): (u32, u32, u32, u32),
        flags: u8,
        side: Side,
        until: Option<u32>,
    ) -> Option<u32> {
        let writes = flags & access::WRITE != 0;
        // Its own node with all below, and the nodes above.
        let mut heads = [NONE; MOST_CHAINS];
        // The cell from which each chain goes on.
        let mut newer = [NONE; MOST_CHAINS];
        let mut owners = [NONE; MOST_CHAINS];
        let mut at = self.nodes.of(view);
        for (number, (head, owner)) in heads.iter_mut().zip(&mut owners).enumerate() {
            if at == NONE {
                break;
            }
            let node = &mut self.nodes.all[at as usize];
            let (below, here) = node.chains(side == Side::Writes);
            (*head, *owner) = (if number == 0 { *below } else { *here }, at);
            at = node.parent;
        }
        let (mut looked, mut closely) = (0, 0);
        while let Some(chain) = (0..MOST_CHAINS)
            .filter(|&chain| heads[chain] != NONE)
            .max_by_key(|&chain| self.cells[heads[chain] as usize].link)
        {
            let cell = self.cells[heads[chain] as usize];
            let link = self.links[cell.link as usize];
            if until.is_some_and(|until| link.op <= until) {
                break;
            }
            let (here, before) = (heads[chain], newer[chain]);
            (heads[chain], newer[chain]) = (cell.previous, here);
            if cell.barrier {
                self.clash(link.op, op, base, Conflict::Barrier);
                continue;
            }
            looked += 1;
            if looked > LOOK_BACK {
                heads[chain] = self.become_barrier(heads[chain], cell, op, base);
                for chain in 0..MOST_CHAINS {
                    while heads[chain] != NONE {
                        let cell = self.cells[heads[chain] as usize];
                        heads[chain] = self.become_barrier(cell.previous, cell, op, base);
                    }
                    self.cut(owners[chain], chain, side, op, view, epoch);
                }
                break;
            }
            if link.epoch != epoch {
                self.depend(link.op, op);
                continue;
            }
            if side == Side::Reads && !writes {
                continue;
            }
            let (a, b) = (&facts.views[link.view as usize], &facts.views[view as usize]);
            if link.view != view && (a.high < b.low || b.high < a.low) {
                continue;
            }
            closely += 1;
            let found = relations.get(batch, link.view, view);
            if !found.touches() {
                continue;
            }
            if found == Relation::Identical {
                self.depend(link.op, op);
            } else {
                let conflict = match side {
                    Side::Reads => Conflict::WriteAfterRead { read: link.view, write: view },
                    Side::Writes if writes => Conflict::WriteAfterWrite,
                    Side::Writes => Conflict::ReadAfterWrite,
                };
                self.clash(link.op, op, base, conflict);
            }
            if writes && matches!(found, Relation::Identical | Relation::Inside) {
                // Later accesses that touch it touch this write too.
                match before {
                    NONE => *self.chain(owners[chain], chain, side) = cell.previous,
                    before => self.cells[before as usize].previous = cell.previous,
                }
                newer[chain] = before;
            }
            if side == Side::Writes && matches!(found, Relation::Identical | Relation::Contains) {
                // All accesses before this write that touch the access also touch the write.
                steps::add(closely + looked / 8);
                return Some(link.op);
            }
        }
        steps::add(closely + looked / 8);
        None
    }

    /// Depends on the instruction of a cell as its barrier. Returns the next cell.
    fn become_barrier(&mut self, previous: u32, cell: Cell, op: u32, base: u32) -> u32 {
        let earlier = self.links[cell.link as usize].op;
        self.clash(earlier, op, base, Conflict::Barrier);
        previous
    }

    /// Lets a chain begin with an instruction that is a barrier for all that it held.
    fn cut(&mut self, node: u32, number: usize, side: Side, op: u32, view: u32, epoch: u32) {
        if node == NONE {
            return;
        }
        let link = self.links.len() as u32;
        self.links.push(Link { op, view, epoch });
        self.cells.push(Cell { link, previous: NONE, barrier: true });
        let cell = self.cells.len() as u32 - 1;
        *self.chain(node, number, side) = cell;
    }

    /// Where a chain begins: that of a view's own node and all below, or that of a node above.
    fn chain(&mut self, node: u32, number: usize, side: Side) -> &mut u32 {
        let (below, here) = self.nodes.all[node as usize].chains(side == Side::Writes);
        if number == 0 { below } else { here }
    }

    fn clash(&mut self, earlier: u32, later: u32, base: u32, conflict: Conflict) {
        if earlier != later {
            self.depend(earlier, later);
            self.clashes.push(Clash { earlier, later, base, conflict });
        }
    }

    fn depend(&mut self, earlier: u32, later: u32) {
        if earlier != later && self.marked[earlier as usize] != later {
            self.marked[earlier as usize] = later;
            self.edges.push((earlier, later));
        }
    }
}

/// The chains that an access looks through: its node's, and those of the nodes above.
const MOST_CHAINS: usize = crate::places::DEPTH + 1;
