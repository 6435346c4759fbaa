//! An operation's output on a grid of ranks, and the operands' elements that ranks need for it.

use crate::plan::boxes::{IndexBox, Span};
use crate::plan::grid::layout::{Axis, GridLayout, part};
use crate::plan::layout::{Cuts, Weights};
use bh_bytecode::{Base, View};

/// A halo may always have this many elements, or as many as a rank's own.
const NARROW: i64 = 4;

/// An operation's output on a grid of ranks.
pub(crate) struct GridOutput {
    pub(crate) base: Base,
    pub(crate) view: View,
    pub(crate) layout: GridLayout,
    pub(crate) axes: Vec<Axis>,
    /// The operands' dimensions that the output lacks.
    pub(crate) mask: u32,
    /// The array is new.
    pub(crate) fresh: bool,
}

impl GridOutput {
    /// The box that a rank computes.
    pub(crate) fn part(&self, rank: usize) -> Option<IndexBox> {
        part(&self.axes, self.view.shape(), &self.layout.own(rank)?)
    }

    /// The box of an operand that a rank needs.
    pub(crate) fn need(&self, rank: usize, source: &View) -> Option<IndexBox> {
        Some(self.part(rank)?.widen(self.mask, source.shape()))
    }

    /// The output's dimension for a dimension of an operand.
    pub(crate) fn kept(&self, dim: usize) -> Option<usize> {
        (self.mask >> dim & 1 == 0).then(|| (0..dim).filter(|dim| self.mask >> dim & 1 == 0).count())
    }

    /// The halo that ranks need of an operand on a grid, along each axis, and whether they need its corners. `None` if
    /// the halo is too large, or the operand is on another grid.
    pub(crate) fn halo(&self, layout: &GridLayout, axes: &[Axis]) -> Option<(Vec<[i64; 2]>, bool)> {
        let (here, there) = (self.layout.cut(), layout.cut());
        if self.layout.grid() != layout.grid() {
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
            for line in 0..layout.cuts[from].ranks() {
                let mine = target.inside(self.layout.cuts[to].own(line));
                if mine.is_empty() {
                    continue;
                }
                let follows = along.is_some_and(|dim| target.dim == Some(dim));
                let need = source.reach(if follows { mine } else { Span::new(0, source.count) });
                let own = layout.cuts[from].own(line);
                if own.is_empty() {
                    return None;
                }
                by[from] = [by[from][0].max(own.low - need.low), by[from][1].max(need.high - own.high)];
            }
            let most = NARROW.max(layout.shape[from] / layout.cuts[from].ranks() as i64);
            if by[from].iter().any(|&count| count > most) {
                return None;
            }
        }
        let corners = by.iter().filter(|by| **by != [0, 0]).count() > 1;
        Some((by, corners))
    }

    /// A layout for the new array that places its elements on the ranks of this operand's.
    pub(crate) fn followed(&self, shape: &[i64], layout: &GridLayout, axes: &[Axis]) -> Option<GridLayout> {
        let alone = Weights::even(1);
        let mut cuts: Vec<Cuts> = shape.iter().map(|&extent| Cuts::rows(extent, 1, &alone)).collect();
        let mut last = None;
        for from in layout.cut() {
            let dim = self.kept(axes[from].dim?)?;
            let to = self
                .axes
                .iter()
                .position(|axis| axis.dim == Some(dim))
                .filter(|&to| last.is_none_or(|last| to > last))?;
            cuts[to] = layout.cuts[from].part(axes[from].start, axes[from].step, axes[from].count);
            last = Some(to);
        }
        Some(GridLayout::of(shape, cuts))
    }
}
