//! The parts of complex numbers, in order, some numbers at a time.

use crate::simd::MAX_LANES;
use bh_bytecode::{c64, c128};

/// Numbers that are taken at a time: their parts are put in order first.
const CHUNK: usize = 8 * MAX_LANES;

/// The element types.
pub(super) trait Number: Copy + 'static {
    /// Do `f32` parts allow the functions' short forms?
    const SINGLE: bool;
    fn parts(self) -> [f64; 2];
    fn of(parts: [f64; 2]) -> Self;
}

impl Number for c128 {
    const SINGLE: bool = false;
    #[inline(always)]
    fn parts(self) -> [f64; 2] {
        [self.re, self.im]
    }
    #[inline(always)]
    fn of([re, im]: [f64; 2]) -> c128 {
        c128::new(re, im)
    }
}

impl Number for c64 {
    const SINGLE: bool = true;
    #[inline(always)]
    fn parts(self) -> [f64; 2] {
        [f64::from(self.re), f64::from(self.im)]
    }
    #[inline(always)]
    fn of([re, im]: [f64; 2]) -> c64 {
        c64::new(re as f32, im as f32)
    }
}

/// Hands the parts of `n` numbers to `body`, some at a time: the place of the first one, their number, and the parts. The
/// padding after the last number is harmless for every function.
///
/// # Safety
/// `numbers` must be valid for `n` elements.
#[inline(always)]
pub(super) unsafe fn by_chunks<T: Number>(
    n: usize,
    numbers: *const T,
    mut body: impl FnMut(usize, usize, &mut [[f64; CHUNK]; 2]),
) {
    let mut parts = [[0.75; CHUNK]; 2];
    for first in (0..n).step_by(CHUNK) {
        let count = CHUNK.min(n - first);
        // SAFETY: the chunk ends at `n` or before.
        let numbers = unsafe { std::slice::from_raw_parts(numbers.add(first), count) };
        let [re, im] = &mut parts;
        for ((re, im), number) in re.iter_mut().zip(im).zip(numbers) {
            [*re, *im] = number.parts();
        }
        body(first, count, &mut parts);
    }
}
