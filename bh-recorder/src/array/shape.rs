//! Extents by value.

use bh_bytecode::MAX_RANK;

/// The extents of a legal shape.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    rank: usize,
    extents: [i64; MAX_RANK],
}

impl Shape {
    /// A copy of at most [`MAX_RANK`] extents.
    pub(crate) fn of(extents: &[i64]) -> Shape {
        let mut all = [0; MAX_RANK];
        all[..extents.len()].copy_from_slice(extents);
        Shape { rank: extents.len(), extents: all }
    }

    pub(crate) fn push(&mut self, extent: i64) {
        self.extents[self.rank] = extent;
        self.rank += 1;
    }

    pub(crate) fn extents(&self) -> &[i64] {
        &self.extents[..self.rank]
    }

    /// Becomes the shape that this one and another broadcast to, innermost dimensions aligned; stays as it is if there is none.
    pub(crate) fn broadcast_with(&mut self, other: &[i64]) -> bool {
        let pairs = self.extents().iter().rev().zip(other.iter().rev());
        if !pairs.clone().all(|(&own, &extent)| own == extent || own == 1 || extent == 1) {
            return false;
        }
        let missing = other.len().saturating_sub(self.rank);
        self.extents.copy_within(..self.rank, missing);
        self.extents[..missing].fill(1);
        self.rank += missing;
        for (own, &extent) in self.extents[..self.rank].iter_mut().rev().zip(other.iter().rev()) {
            *own = if *own == 1 { extent } else { *own };
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_broadcast_as_in_numpy() {
        let mut shape = Shape::of(&[3, 1]);
        assert!(shape.broadcast_with(&[2, 1, 4]));
        assert_eq!(shape.extents(), [2, 3, 4]);
        assert!(!shape.broadcast_with(&[1, 5, 3, 1]));
        assert_eq!(shape.extents(), [2, 3, 4]);
        assert!(!Shape::of(&[3]).broadcast_with(&[4]));
        let mut empty = Shape::of(&[0]);
        assert!(empty.broadcast_with(&[1]));
        assert_eq!(empty.extents(), [0]);
        let mut scalar = Shape::of(&[]);
        assert!(scalar.broadcast_with(&[5, 0]) && scalar.broadcast_with(&[]));
        assert_eq!(scalar.extents(), [5, 0]);
    }
}
