//! Panels of a matrix: a rank's rows, sent to other ranks one panel at a time.

use crate::plan::boxes::{IndexBox, inside, span_of};
use crate::plan::planner::Planner;
use crate::plan::stage::{Place, Transfer};
use bh_bytecode::View;
use bh_core::abi::status;
use bh_core::error::{Error, Result};

/// Rows of a matrix on one rank, or some columns of them.
#[derive(Clone, Copy)]
pub(crate) struct Panel {
    pub(crate) owner: usize,
    pub(crate) rows: IndexBox,
}

/// An operand: its array and view.
pub(crate) type Factor<'a> = (u64, &'a View);

impl Planner {
    /// The rows of a matrix by owner, if there are several owners and each has whole rows.
    pub(crate) fn panels(&self, (id, view): Factor<'_>) -> Option<Vec<Panel>> {
        let array = self.arrays.get(&id)?;
        if array.cuts.is_first() || array.small {
            return None;
        }
        let mut panels = Vec::new();
        for owner in array.cuts.owners(span_of(view)) {
            match inside(view, array.cuts.own(owner))?[..] {
                [] => {}
                [rows] if rows.extent()[1] == view.shape()[1] => panels.push(Panel { owner, rows }),
                _ => return None,
            }
        }
        (panels.len() > 1).then_some(panels)
    }

    /// A panel on a rank, and whether it was sent there for this stage instead of being in the rank's own shard.
    pub(crate) fn bring_panel(
        &mut self,
        (id, view): Factor<'_>,
        panel: Panel,
        rank: usize,
        stage: usize,
    ) -> Result<(Place, bool)> {
        let shard = self.shard(id, panel.owner);
        let source = Place { base: shard.base, view: panel.rows.of(view, shard.window.low)? };
        if panel.owner == rank {
            return Ok((source, false));
        }
        let dense = View::contiguous(panel.rows.extent()).map_err(|error| Error::new(status::BATCH, error.0))?;
        let target = Place { base: self.local_base(rank, &shard.base, dense.len(), dense.shape()[1]), view: dense };
        if self.stages.hosts(panel.owner) || self.stages.hosts(rank) {
            self.stages.transfer(stage, Transfer { from: panel.owner, to: rank, source, target });
        }
        Ok((target, true))
    }
}
