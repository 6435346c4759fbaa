//! Moves arrays from rows to a grid as soon as the grid would have saved as many bytes as the move costs. The total is
//! at most twice the optimum, whatever the program does next.

use crate::plan::choice::{Savings, choose};
use crate::plan::grid::layout::GridLayout;
use crate::plan::settings::Grids;
use crate::run::machine::Machine;
use bh_bytecode::BatchRef;

/// Shapes of batches and arrays that are remembered, at most.
const MOST: usize = 1024;

impl Machine {
    /// Adds what a batch of this shape would save, and moves its arrays if the sum is large enough.
    pub(crate) fn go_to_grids(&mut self, shape: u64, batch: &BatchRef<'_>, order: &[u32]) {
        if self.planner.settings.grid != Grids::Auto || self.planner.ranks() < 3 {
            return;
        }
        if self.savings.known.len() + self.savings.saved.len() > MOST {
            self.savings = Savings::default();
        }
        let (planner, left_grids) = (&self.planner, self.planner.left_grids);
        let look = || choose(&planner.arrays, &planner.settings, batch, order).regrid;
        let known = self.savings.known.entry(shape).or_insert_with(|| (left_grids, look()));
        if known.0 != left_grids {
            *known = (left_grids, look());
        }
        let Some(regrid) = &known.1 else { return };
        let base = |number: u32| batch.bases[number as usize];
        let in_rows = |number: u32| {
            let array = planner.arrays.get(&base(number).id);
            array.is_some_and(|array| array.layout.is_none() && !array.small && !array.fixed && array.lost.is_none())
        };
        if !regrid.arrays.iter().all(|(number, _)| in_rows(*number)) {
            return;
        }
        let saved = self.savings.saved.entry(base(regrid.arrays[0].0).id).or_default();
        *saved += regrid.saved;
        if *saved < regrid.moved {
            return;
        }
        *saved = 0.0;
        for (number, (shape, grid)) in regrid.arrays.clone() {
            let base = batch.bases[number as usize];
            let Some(layout) = GridLayout::even(&shape, &grid, &self.planner.settings.weights) else { continue };
            if let Err(error) = self.planner.rows_to_grid(base.id, layout).and_then(|()| self.run_planned()) {
                self.planner.lose(&base, &error.unplaced());
            }
        }
    }
}
