//! Block entry points: one loop over vectors, instantiated per function and instruction-set level.

use super::{Binary, PrimFn, Unary};
use crate::simd::{Isa, MAX_LANES, Vector};
use std::marker::PhantomData;

/// Element types that blocks hold; all are computed in `f64` lanes.
pub(crate) trait Lane: Copy + 'static {
    /// May the functions use their short `f32` forms?
    const SINGLE: bool;
    /// Fills unused lanes; harmless for every function.
    const PADDING: Self;
    /// Reads one vector.
    ///
    /// # Safety
    /// `p` must be valid for reading `V::LANES` elements, and the level of `V` be enabled where this is inlined.
    unsafe fn load<V: Vector>(p: *const Self) -> V;
    /// Writes one vector.
    ///
    /// # Safety
    /// `p` must be valid for writing `V::LANES` elements, and the level of `V` be enabled where this is inlined.
    unsafe fn store<V: Vector>(v: V, p: *mut Self);
}

macro_rules! lanes {
    ($($type:ident: $single:literal, $load:ident, $store:ident;)*) => {$(
        impl Lane for $type {
            const SINGLE: bool = $single;
            const PADDING: $type = 0.75;
            #[inline(always)]
            unsafe fn load<V: Vector>(p: *const $type) -> V {
                // SAFETY: [`Lane::load`] asks for the same.
                unsafe { V::$load(p) }
            }
            #[inline(always)]
            unsafe fn store<V: Vector>(v: V, p: *mut $type) {
                // SAFETY: [`Lane::store`] asks for the same.
                unsafe { v.$store(p) }
            }
        }
    )*};
}
lanes! {
    f64: false, load, store;
    f32: true, load_f32, store_f32;
}

/// A primitive's work on its blocks, in vectors of any kind.
pub(super) trait Entry: 'static {
    /// # Safety
    /// See [`PrimFn`]; must be inlined where the level is enabled.
    unsafe fn run<V: Vector>(n: usize, dst: *mut u8, operands: [*const u8; 3]);
}

/// Applies `f` to `n` elements of each operand.
///
/// # Safety
/// See [`PrimFn`]; the level must be available.
#[inline(always)]
pub(super) unsafe fn block<V: Vector, T: Lane, const N: usize>(
    n: usize,
    dst: *mut T,
    operands: [*const T; N],
    f: impl Fn([V; N]) -> V,
) {
    let whole = n - n % V::LANES;
    let mut i = 0;
    let mut vectors = [V::splat(0.0); N];
    // SAFETY: `i + LANES <= n`; the tail goes through arrays of at least LANES elements.
    unsafe {
        while i < whole {
            for (vector, operand) in vectors.iter_mut().zip(operands) {
                *vector = T::load(operand.add(i));
            }
            T::store(f(vectors), dst.add(i));
            i += V::LANES;
        }
        if i < n {
            let mut padded = [T::PADDING; MAX_LANES];
            for (vector, operand) in vectors.iter_mut().zip(operands) {
                operand.add(i).copy_to_nonoverlapping(padded.as_mut_ptr(), n - i);
                *vector = T::load(padded.as_ptr());
            }
            T::store(f(vectors), padded.as_mut_ptr());
            dst.add(i).copy_from_nonoverlapping(padded.as_ptr(), n - i);
        }
    }
}

struct OfOne<K, T>(PhantomData<fn(K) -> T>);

impl<K: Unary, T: Lane> Entry for OfOne<K, T> {
    #[inline(always)]
    unsafe fn run<V: Vector>(n: usize, dst: *mut u8, [a, ..]: [*const u8; 3]) {
        // SAFETY: the blocks are as [`PrimFn`] says, and the level is available.
        unsafe {
            block::<V, T, 1>(
                n,
                dst.cast(),
                [a.cast()],
                #[inline(always)]
                |[x]| {
                    if T::SINGLE { K::eval::<V, true>(x) } else { K::eval::<V, false>(x) }
                },
            )
        }
    }
}

struct OfTwo<K, T>(PhantomData<fn(K) -> T>);

impl<K: Binary, T: Lane> Entry for OfTwo<K, T> {
    #[inline(always)]
    unsafe fn run<V: Vector>(n: usize, dst: *mut u8, [a, b, _]: [*const u8; 3]) {
        // SAFETY: the blocks are as [`PrimFn`] says, and the level is available.
        unsafe {
            block::<V, T, 2>(
                n,
                dst.cast(),
                [a.cast(), b.cast()],
                #[inline(always)]
                |[x, y]| {
                    if T::SINGLE { K::eval::<V, true>(x, y) } else { K::eval::<V, false>(x, y) }
                },
            )
        }
    }
}

/// The entry points of one level.
macro_rules! level {
    ($module:ident, $vector:ident $(, $feature:literal)?) => {
        mod $module {
            use super::Entry;

            $(#[target_feature(enable = $feature)])?
            pub(super) unsafe extern "C" fn entry<E: Entry>(
                n: usize, dst: *mut u8, a: *const u8, b: *const u8, c: *const u8,
            ) {
                // SAFETY: operands and level are as [`crate::math::PrimFn`] asks, and `run` is inlined here, where the
                // level is enabled.
                unsafe { E::run::<crate::simd::$vector>(n, dst, [a, b, c]) }
            }
        }
    };
}

level!(portable, Portable);
level!(fused, Fused);
#[cfg(target_arch = "x86_64")]
level!(sse2, Sse2);
#[cfg(target_arch = "x86_64")]
level!(avx2, Avx2, "avx2,fma");
#[cfg(target_arch = "x86_64")]
level!(avx512, Avx512, "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma");
#[cfg(target_arch = "aarch64")]
level!(neon, Neon, "neon");

/// The item of this name in the module of a level; levels foreign to this architecture get the portable one.
macro_rules! at_level {
    ($isa:expr, $($item:tt)+) => {
        match $isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Sse2 => sse2::$($item)+,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => avx2::$($item)+,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => avx512::$($item)+,
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => neon::$($item)+,
            Isa::Fused => fused::$($item)+,
            _ => portable::$($item)+,
        }
    };
}

/// The entry point at a level.
pub(super) fn at_level<E: Entry>(isa: Isa) -> PrimFn {
    at_level!(isa, entry::<E>)
}

/// The entry point of a unary function.
pub(super) fn unary<K: Unary, T: Lane>(isa: Isa) -> PrimFn {
    at_level::<OfOne<K, T>>(isa)
}

/// The entry point of a binary function.
pub(super) fn binary<K: Binary, T: Lane>(isa: Isa) -> PrimFn {
    at_level::<OfTwo<K, T>>(isa)
}
