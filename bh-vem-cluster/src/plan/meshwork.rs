//! What an operation writes on a grid of ranks, and what ranks need for that.

use crate::plan::boxes::{IndexBox, Span};
use crate::plan::layout::{Cuts, Weights};
use crate::plan::mesh::{Axis, Mesh, part};
use bh_bytecode::{Base, View};

/// This many elements beside a rank's own may always come to it, and as many as it has.
const NARROW: i64 = 4;

/// What an operation writes on a grid of ranks.
pub(crate) struct Work {
    pub(crate) base: Base,
    pub(crate) view: View,
    pub(crate) mesh: Mesh,
    pub(crate) axes: Vec<Axis>,
    /// Dimensions of the operands that the output does not have.
    pub(crate) mask: u32,
    /// The array is to be made.
    pub(crate) fresh: bool,
}

impl Work {
    /// What a rank computes.
    pub(crate) fn part(&self, rank: usize) -> Option<IndexBox> {
        part(&self.axes, self.view.shape(), &self.mesh.own(rank)?)
    }

    /// What a rank needs of an operand.
    pub(crate) fn need(&self, rank: usize, source: &View) -> Option<IndexBox> {
        Some(self.part(rank)?.widen(self.mask, source.shape()))
    }

    /// The dimension of the output that one of an operand becomes.
    pub(crate) fn kept(&self, dim: usize) -> Option<usize> {
        (self.mask >> dim & 1 == 0).then(|| (0..dim).filter(|dim| self.mask >> dim & 1 == 0).count())
    }

    /// The elements beside their own that ranks need of an array on a grid: along each axis, and whether beyond several. `None` if
    /// that is much, or does not follow the grid.
    pub(crate) fn border(&self, mesh: &Mesh, axes: &[Axis]) -> Option<(Vec<[i64; 2]>, bool)> {
        let (here, there) = (self.mesh.cut(), mesh.cut());
        if self.mesh.grid() != mesh.grid() {
            return None;
        }
        let mut by = vec![[0, 0]; axes.len()];
        for (&to, &from) in here.iter().zip(&there) {
            let (target, source) = (&self.axes[to], &axes[from]);
            let along = source.dim.and_then(|dim| self.kept(dim));
            let other = |dim: usize| here.iter().any(|&axis| axis != to && self.axes[axis].dim == Some(dim));
            if along.is_some_and(other) {
                return None;
            }
            for line in 0..mesh.cuts[from].ranks() {
                let mine = target.inside(self.mesh.cuts[to].own(line));
                if mine.is_empty() {
                    continue;
                }
                let follows = along.is_some_and(|dim| target.dim == Some(dim));
                let need = source.reach(if follows { mine } else { Span::new(0, source.count) });
                let own = mesh.cuts[from].own(line);
                if own.is_empty() {
                    return None;
                }
                by[from] = [by[from][0].max(own.low - need.low), by[from][1].max(need.high - own.high)];
            }
            let most = NARROW.max(mesh.shape[from] / mesh.cuts[from].ranks() as i64);
            if by[from].iter().any(|&count| count > most) {
                return None;
            }
        }
        let corners = by.iter().filter(|by| **by != [0, 0]).count() > 1;
        Some((by, corners))
    }

    /// The array that is made, cut as this operand's elements lie.
    pub(crate) fn followed(&self, shape: &[i64], mesh: &Mesh, axes: &[Axis]) -> Option<Mesh> {
        let alone = Weights::even(1);
        let mut cuts: Vec<Cuts> = shape.iter().map(|&extent| Cuts::rows(extent, 1, &alone)).collect();
        let mut last = None;
        for from in mesh.cut() {
            let dim = self.kept(axes[from].dim?)?;
            let to = self
                .axes
                .iter()
                .position(|axis| axis.dim == Some(dim))
                .filter(|&to| last.is_none_or(|last| to > last))?;
            cuts[to] = mesh.cuts[from].part(axes[from].start, axes[from].step, axes[from].count);
            last = Some(to);
        }
        Some(Mesh::of(shape, cuts))
    }
}
