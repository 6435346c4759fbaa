//! Square roots of `f64` with the two operations after them, as in m / (√v + e), with the bits of the three in turn. While
//! the divider works on one vector, the root of the next is made by multiplications.

use super::PrimFn;
use super::root::sqrt;
use crate::simd::{Isa, MAX_LANES, Vector};
use bh_bytecode::Opcode;

/// The two operations.
trait Pair: 'static {
    fn apply<V: Vector>(root: V, b: V, c: V) -> V;
}

macro_rules! pairs {
    ($($name:ident = |$root:ident, $b:ident, $c:ident| $value:expr;)*) => {$(
        struct $name;
        impl Pair for $name {
            #[inline(always)]
            fn apply<V: Vector>($root: V, $b: V, $c: V) -> V {
                $value
            }
        }
    )*};
}
pairs! {
    SumTimes = |root, b, c| (root + b) * c;
    SumBy = |root, b, c| (root + b) / c;
    OverSum = |root, b, c| c / (root + b);
    ProductPlus = |root, b, c| root * b + c;
    ProductTimes = |root, b, c| root * b * c;
    ProductBy = |root, b, c| root * b / c;
    OverProduct = |root, b, c| c / (root * b);
}

/// # Safety
/// See [`PrimFn`]; the level must be available. If `SINGLE`, `c` is one element.
#[inline(always)]
unsafe fn block<V: Vector, P: Pair, const SINGLE: bool>(n: usize, dst: *mut f64, [a, b, c]: [*const f64; 3]) {
    let whole = n - n % V::LANES;
    let mut i = 0;
    // SAFETY: `i + LANES <= n`; the tail goes through arrays of at least LANES elements.
    unsafe {
        let one = if SINGLE && n > 0 { V::splat(*c) } else { V::splat(0.0) };
        while i < whole {
            let third = if SINGLE { one } else { V::load(c.add(i)) };
            P::apply(sqrt::<V, false>(V::load(a.add(i))), V::load(b.add(i)), third).store(dst.add(i));
            i += V::LANES;
        }
        if i < n {
            let mut padded = [[1.0; MAX_LANES]; 3];
            for (array, block) in padded.iter_mut().zip([a, b, c]).take(if SINGLE { 2 } else { 3 }) {
                block.add(i).copy_to_nonoverlapping(array.as_mut_ptr(), n - i);
            }
            let [a, b, c] = padded.each_ref().map(|array| V::load(array.as_ptr()));
            let third = if SINGLE { one } else { c };
            P::apply(sqrt::<V, false>(a), b, third).store(padded[0].as_mut_ptr());
            dst.add(i).copy_from_nonoverlapping(padded[0].as_ptr(), n - i);
        }
    }
}

/// The entry point of one level.
macro_rules! level {
    ($module:ident, $vector:ident $(, $feature:literal)?) => {
        mod $module {
            use super::*;
            use crate::simd::$vector;

            $(#[target_feature(enable = $feature)])?
            pub(super) unsafe extern "C" fn entry<P: Pair, const SINGLE: bool>(
                n: usize, dst: *mut u8, a: *const u8, b: *const u8, c: *const u8,
            ) {
                // SAFETY: the contract of PrimFn.
                unsafe { block::<$vector, P, SINGLE>(n, dst.cast(), [a, b, c].map(|block| block.cast())) }
            }
        }
    };
}

level!(portable, Portable);
#[cfg(target_arch = "x86_64")]
level!(sse2, Sse2);
#[cfg(target_arch = "x86_64")]
level!(avx2, Avx2, "avx2,fma");
#[cfg(target_arch = "x86_64")]
level!(avx512, Avx512, "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma");

fn at_level<P: Pair, const SINGLE: bool>(isa: Isa) -> PrimFn {
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Sse2 => sse2::entry::<P, SINGLE>,
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => avx2::entry::<P, SINGLE>,
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => avx512::entry::<P, SINGLE>,
        _ => portable::entry::<P, SINGLE>,
    }
}

/// The primitive `second(first(√a, b), c)`, or `second(c, first(√a, b))` if `swapped`, of `f64`, for the pairs that there are.
/// If `single`, `c` points to a single element.
pub fn lookup_rooted(isa: Isa, first: Opcode, second: Opcode, swapped: bool, single: bool) -> Option<PrimFn> {
    macro_rules! of {
        ($pair:ident) => {
            Some(if single { at_level::<$pair, true>(isa) } else { at_level::<$pair, false>(isa) })
        };
    }
    match (first, second, swapped) {
        (Opcode::Add, Opcode::Multiply, _) => of!(SumTimes),
        (Opcode::Add, Opcode::Divide, false) => of!(SumBy),
        (Opcode::Add, Opcode::Divide, true) => of!(OverSum),
        (Opcode::Multiply, Opcode::Add, _) => of!(ProductPlus),
        (Opcode::Multiply, Opcode::Multiply, _) => of!(ProductTimes),
        (Opcode::Multiply, Opcode::Divide, false) => of!(ProductBy),
        (Opcode::Multiply, Opcode::Divide, true) => of!(OverProduct),
        _ => None,
    }
}
