//! Loop nests: ordering dimensions by memory, turning backward walks forward, and merging dimensions.

use super::kernel::Dim;

/// Inner dimensions shorter than this change places with a longer neighbour of the other role: folds of a few elements
/// and rows of a few elements are both slow as an inner loop.
const SHORT: i64 = 32;

/// One access before merging: its offset and its strides along the axes of the box.
#[derive(Clone, Debug)]
pub(super) struct Access {
    pub(super) start: i64,
    pub(super) strides: Vec<i64>,
    /// Does it address memory, so that its strides matter for speed?
    pub(super) memory: bool,
}

/// A dimension of the nest: the axis it came from has these strides in each access.
struct Axis {
    extent: i64,
    role: Dim,
    source: usize,
}

/// Orders and merges the axes of a box. `reduced` is a bit mask of axes. Rewrites every access to strides along the
/// resulting dimensions and returns those, outermost first; there is always at least one.
pub(super) fn build(shape: &[i64], reduced: u16, accesses: &mut [Access]) -> (Vec<i64>, Vec<Dim>) {
    let role = |axis: usize| if reduced >> axis & 1 == 1 { Dim::Reduced } else { Dim::Kept };
    let mut axes: Vec<Axis> = (0..shape.len())
        .filter(|&axis| shape[axis] != 1)
        .map(|axis| Axis { extent: shape[axis], role: role(axis), source: axis })
        .collect();
    flip(&axes, accesses);
    order(&mut axes, accesses);
    let mut extents: Vec<i64> = Vec::with_capacity(axes.len().max(1));
    let mut roles: Vec<Dim> = Vec::with_capacity(axes.len().max(1));
    let mut merged: Vec<Vec<i64>> = vec![Vec::with_capacity(axes.len().max(1)); accesses.len()];
    for axis in &axes {
        let stride = |access: &Access| access.strides[axis.source];
        let mergeable = roles.last() == Some(&axis.role)
            && merged
                .iter()
                .zip(accesses.iter())
                .all(|(strides, access)| strides.last() == Some(&stride(access).wrapping_mul(axis.extent)));
        if mergeable {
            let last = extents.len() - 1;
            extents[last] *= axis.extent;
            for (strides, access) in merged.iter_mut().zip(accesses.iter()) {
                strides[last] = stride(access);
            }
        } else {
            extents.push(axis.extent);
            roles.push(axis.role);
            for (strides, access) in merged.iter_mut().zip(accesses.iter()) {
                strides.push(stride(access));
            }
        }
    }
    if extents.is_empty() {
        extents.push(1);
        // A fold of one element is still a fold.
        roles.push(if reduced != 0 { Dim::Reduced } else { Dim::Kept });
        for strides in &mut merged {
            strides.push(1);
        }
    }
    let rank = extents.len();
    if rank > 1
        && extents[rank - 1] < SHORT
        && roles[rank - 1] != roles[rank - 2]
        && extents[rank - 2] > extents[rank - 1]
    {
        extents.swap(rank - 1, rank - 2);
        roles.swap(rank - 1, rank - 2);
        merged.iter_mut().for_each(|strides| strides.swap(rank - 1, rank - 2));
    }
    for (access, strides) in accesses.iter_mut().zip(merged) {
        access.strides = strides;
    }
    (extents, roles)
}

/// Walks axes forward that every access walks backward.
fn flip(axes: &[Axis], accesses: &mut [Access]) {
    for axis in axes.iter().filter(|axis| axis.extent > 0) {
        let at = |access: &Access| access.strides[axis.source];
        let memory = || accesses.iter().filter(|access| access.memory);
        if memory().any(|access| at(access) < 0) && memory().all(|access| at(access) <= 0) {
            for access in accesses.iter_mut() {
                let stride = access.strides[axis.source];
                access.start = access.start.wrapping_add(stride.wrapping_mul(axis.extent - 1));
                access.strides[axis.source] = stride.wrapping_neg();
            }
        }
    }
}

/// Sorts axes so that the smallest strides come last, by majority of the accesses; ties keep C order.
fn order(axes: &mut [Axis], accesses: &[Access]) {
    // Should axis `a`, now outside of `b`, go inside?
    let inside = |a: &Axis, b: &Axis| {
        let mut votes = 0i32;
        for access in accesses.iter().filter(|access| access.memory) {
            let (a, b) = (access.strides[a.source].unsigned_abs(), access.strides[b.source].unsigned_abs());
            if a != 0 && b != 0 && a != b {
                votes += if a < b { 1 } else { -1 };
            }
        }
        votes > 0
    };
    // Insertion sort: the relation need not be transitive, and there are few axes.
    for end in 1..axes.len() {
        let mut at = end;
        while at > 0 && inside(&axes[at - 1], &axes[at]) {
            axes.swap(at - 1, at);
            at -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(start: i64, strides: &[i64]) -> Access {
        Access { start, strides: strides.to_vec(), memory: true }
    }

    #[test]
    fn contiguous_axes_merge() {
        let mut accesses = [access(0, &[20, 5, 1]), access(3, &[20, 5, 1])];
        assert_eq!(build(&[3, 4, 5], 0, &mut accesses), (vec![60], vec![Dim::Kept]));
        assert_eq!(accesses[1].strides, [1]);
    }

    #[test]
    fn transposed_accesses_are_walked_in_memory_order() {
        let mut accesses = [access(0, &[1, 4]), access(0, &[1, 4])];
        assert_eq!(build(&[4, 6], 0, &mut accesses).0, [24]);
    }

    #[test]
    fn backward_walks_turn_forward() {
        let mut accesses = [access(9, &[-1]), access(9, &[-1])];
        build(&[10], 0, &mut accesses);
        assert_eq!((accesses[0].start, accesses[0].strides[0]), (0, 1));
    }

    #[test]
    fn short_inner_folds_move_outside() {
        let mut accesses = [access(0, &[3, 1]), access(0, &[1, 0])];
        let (extents, roles) = build(&[100, 3], 0b10, &mut accesses);
        assert_eq!((extents, roles), (vec![3, 100], vec![Dim::Reduced, Dim::Kept]));
        assert_eq!(accesses[0].strides, [1, 3]);
    }

    #[test]
    fn one_element_has_one_dimension() {
        let mut accesses = [access(7, &[])];
        assert_eq!(build(&[], 0, &mut accesses), (vec![1], vec![Dim::Kept]));
        assert_eq!(accesses[0].strides, [1]);
    }
}
