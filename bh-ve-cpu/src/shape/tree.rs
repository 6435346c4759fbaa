//! The ways in which folded elements are grouped and walked.

/// How the elements of a result are folded. Element `i` of a chunk goes to lane `i % 32`, and the lanes are folded by halving,
/// unless a variant says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReductionTree {
    /// Each result is the fold of one line, and these lines follow each other along the dimension around them, if there is
    /// one.
    LineResults,
    /// The only line is several chunks of `elements` elements.
    LineChunks { elements: i64 },
    /// Several reduced lines make a result, beside those of the next one. They go to `sets` sets of lanes in turn.
    BesideResults { sets: usize },
    /// Chunks are long rows, each of which goes to the next set of lanes. A line has `per_line` of them.
    LongRows { row: i64, per_line: i64 },
    /// Chunks are parts of lines, or lines.
    Runs,
    /// The steps of reduced lines are rows of columns, each of which goes to the next of 32 sets.
    ColumnRows,
    /// Kept lines are folded element by element.
    KeptLines,
    /// Kept lines of columns: each goes to the next of 32 sets.
    KeptColumns,
}

impl ReductionTree {
    /// Is each line or row folded into lanes?
    pub(crate) fn has_lanes(self) -> bool {
        !matches!(self, Self::ColumnRows | Self::KeptLines | Self::KeptColumns)
    }

    /// Do rows of columns go to as many sets as there are lanes?
    pub(crate) fn has_columns(self) -> bool {
        matches!(self, Self::ColumnRows | Self::KeptColumns)
    }

    /// Can compiled code join lanes to results, as it folds lines that make one each?
    pub(crate) fn joins_lanes(self) -> bool {
        matches!(self, Self::LineResults | Self::LineChunks { .. })
    }
}
