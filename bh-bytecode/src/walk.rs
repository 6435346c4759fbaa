//! A walk through arrays of one shape, element by element or row by row, in C order.

use crate::MAX_RANK;

/// A loop: its iterations, and the bytes from one to the next in each array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loop<const N: usize> {
    /// Iterations.
    pub extent: i64,
    /// Bytes.
    pub steps: [isize; N],
}

/// Loops over `N` arrays, outermost first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk<const N: usize> {
    loops: [Loop<N>; MAX_RANK],
    count: usize,
}

impl<const N: usize> Default for Walk<N> {
    fn default() -> Walk<N> {
        Walk { loops: [Loop { extent: 1, steps: [0; N] }; MAX_RANK], count: 0 }
    }
}

impl<const N: usize> Walk<N> {
    /// A walk through axes, outermost first: those of one element are left out, and neighbours are one loop where all arrays go
    /// on from one to the next.
    pub fn merged(axes: impl IntoIterator<Item = Loop<N>>) -> Walk<N> {
        let mut walk = Walk::default();
        for axis in axes.into_iter().filter(|axis| axis.extent != 1) {
            let reach = axis.steps.map(|step| step.wrapping_mul(axis.extent as isize));
            match walk.loops[..walk.count].last_mut().filter(|outer| outer.steps == reach) {
                Some(outer) => *outer = Loop { extent: outer.extent * axis.extent, steps: axis.steps },
                None => walk.push(axis),
            }
        }
        walk
    }

    /// Adds an innermost loop.
    pub fn push(&mut self, inner: Loop<N>) {
        self.loops[self.count] = inner;
        self.count += 1;
    }

    /// Takes the innermost loop out, if there is one.
    pub fn pop(&mut self) -> Option<Loop<N>> {
        self.count = self.count.checked_sub(1)?;
        Some(std::mem::replace(&mut self.loops[self.count], Loop { extent: 1, steps: [0; N] }))
    }

    /// The loops, outermost first.
    pub fn loops(&self) -> &[Loop<N>] {
        &self.loops[..self.count]
    }

    /// Calls `f` with the addresses of all iterations, the first of which are `at`.
    #[inline]
    pub fn each(&self, at: [*mut u8; N], mut f: impl FnMut([*mut u8; N])) {
        self.all(at, |at| {
            f(at);
            true
        });
    }

    /// Calls `f` with the addresses of one iteration after the other until it says `false`. Has it not?
    #[inline]
    pub fn all(&self, at: [*mut u8; N], mut f: impl FnMut([*mut u8; N]) -> bool) -> bool {
        let Some((inner, outer)) = self.loops().split_last() else { return f(at) };
        if self.loops().iter().any(|each| each.extent == 0) {
            return true;
        }
        let (mut row, mut index) = (at, [0i64; MAX_RANK]);
        loop {
            let mut at = row;
            for _ in 0..inner.extent {
                if !f(at) {
                    return false;
                }
                go(&mut at, inner, 1);
            }
            let mut dim = outer.len();
            loop {
                let Some(next) = dim.checked_sub(1) else { return true };
                dim = next;
                index[dim] += 1;
                let back = index[dim] == outer[dim].extent;
                go(&mut row, &outer[dim], if back { 1 - outer[dim].extent as isize } else { 1 });
                if !back {
                    break;
                }
                index[dim] = 0;
            }
        }
    }
}

#[inline(always)]
fn go<const N: usize>(at: &mut [*mut u8; N], along: &Loop<N>, iterations: isize) {
    for (at, step) in at.iter_mut().zip(along.steps) {
        *at = at.wrapping_offset(step.wrapping_mul(iterations));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes<const N: usize>(shape: &[i64], steps: &[[isize; N]]) -> Vec<Loop<N>> {
        shape.iter().zip(steps).map(|(&extent, &steps)| Loop { extent, steps }).collect()
    }

    /// Offsets of all iterations.
    fn offsets<const N: usize>(walk: &Walk<N>) -> Vec<[isize; N]> {
        let mut found = Vec::new();
        walk.each([std::ptr::null_mut(); N], |at| found.push(at.map(|at| at.addr() as isize)));
        found
    }

    #[test]
    fn axes_are_one_loop_where_all_arrays_go_on() {
        let merged = |shape: &[i64], steps: &[[isize; 2]]| Walk::merged(axes(shape, steps)).loops().len();
        assert_eq!(merged(&[2, 3, 4], &[[12, 24], [4, 8], [1, 2]]), 1);
        assert_eq!(merged(&[2, 1, 4], &[[4, 8], [9, 7], [1, 2]]), 1);
        assert_eq!(merged(&[2, 3, 4], &[[12, 24], [4, 8], [1, 3]]), 2);
        assert_eq!(merged(&[1, 1], &[[5, 5], [5, 5]]), 0);
    }

    #[test]
    fn all_elements_come_in_c_order() {
        for shape in [&[][..], &[5], &[1], &[2, 3], &[3, 1, 2], &[2, 0, 3], &[2, 2, 2, 2]] {
            for steps in [[7, -3, 11, 2], [8, 4, 2, 1]] {
                let steps: Vec<[isize; 2]> = steps.map(|step| [step, -2 * step]).to_vec();
                let mut wanted = vec![[0, 0]];
                for (&extent, step) in shape.iter().zip(&steps) {
                    let next =
                        |at: [isize; 2]| (0..extent as isize).map(move |i| [at[0] + i * step[0], at[1] + i * step[1]]);
                    wanted = wanted.into_iter().flat_map(next).collect();
                }
                assert_eq!(offsets(&Walk::merged(axes(shape, &steps))), wanted, "{shape:?} {steps:?}");
            }
        }
    }

    #[test]
    fn a_walk_ends_where_it_is_told_and_without_its_inner_loop() {
        let mut walk = Walk::merged(axes(&[2, 3], &[[10], [1]]));
        let mut seen = 0;
        assert!(!walk.all([std::ptr::null_mut()], |at| {
            seen += 1;
            at[0].addr() < 11
        }));
        assert_eq!(seen, 5);
        assert_eq!(walk.pop(), Some(Loop { extent: 3, steps: [1] }));
        assert_eq!(offsets(&walk), [[0], [10]]);
        assert_eq!((walk.pop().map(|outer| outer.extent), walk.pop()), (Some(2), None));
        assert_eq!(offsets(&walk), [[0]]);
    }
}
