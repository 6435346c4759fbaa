//! Block loops around scalar functions, compiled for every instruction-set level so that the compiler vectorises them.
//!
//! The loops do exact operations only (what rounds, rounds once as IEEE 754 says), so every level, block length and
//! alignment gives the same bits.

use super::PrimFn;
use crate::simd::Isa;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// What a primitive does at one index.
pub(super) trait Kernel: 'static {
    /// The type of results.
    type Out: Copy;
    /// How many bytes each operand moves per index: the size of its elements, 0 for constants and absent operands.
    const STEPS: [usize; 3];

    /// The result at index `i`.
    ///
    /// # Safety
    /// The operands that the kernel has must hold an aligned element at that index.
    unsafe fn at(i: usize, a: *const u8, b: *const u8, c: *const u8) -> Self::Out;
}

/// The value of a function item or of a closure that captures nothing.
#[inline(always)]
fn function<F: Copy>() -> F {
    const { assert!(size_of::<F>() == 0, "only functions without state") };
    // SAFETY: reading no bytes needs no memory, and a caller had the value in its hands to name the type.
    unsafe { std::ptr::NonNull::<F>::dangling().read() }
}

/// # Safety
/// As [`Kernel::at`].
#[inline(always)]
unsafe fn element<T: Copy>(block: *const u8, i: usize) -> T {
    // SAFETY: the caller vouches for the element.
    unsafe { *block.cast::<T>().add(i) }
}

/// Kernels of one to three operands from functions of as many arguments.
macro_rules! maps {
    ($($map:ident($($operand:tt: $type:ident),*) $steps:expr;)*) => {$(
        /// A function of as many arguments as there are operands.
        pub(super) struct $map<F, O, $($type),*>(PhantomData<fn(F, $($type),*) -> O>);

        impl<F, O, $($type),*> Kernel for $map<F, O, $($type),*>
        where
            F: Fn($($type),*) -> O + Copy + 'static,
            O: Copy + 'static,
            $($type: Copy + 'static,)*
        {
            type Out = O;
            const STEPS: [usize; 3] = $steps;

            #[inline(always)]
            unsafe fn at(i: usize, a: *const u8, b: *const u8, c: *const u8) -> O {
                // SAFETY: the caller vouches for the elements.
                unsafe { function::<F>()($(element::<$type>((a, b, c).$operand, i)),*) }
            }
        }
    )*};
}
maps! {
    Map1(0: A) [size_of::<A>(), 0, 0];
    Map2(0: A, 1: B) [size_of::<A>(), size_of::<B>(), 0];
    Map3(0: A, 1: B, 2: C) [size_of::<A>(), size_of::<B>(), size_of::<C>()];
}

/// A function whose second argument is one constant for the block.
pub(super) struct ConstantRight<F, O, A, B>(PhantomData<fn(F, A, B) -> O>);

impl<F, O, A, B> Kernel for ConstantRight<F, O, A, B>
where
    F: Fn(A, B) -> O + Copy + 'static,
    O: Copy + 'static,
    A: Copy + 'static,
    B: Copy + 'static,
{
    type Out = O;
    const STEPS: [usize; 3] = [size_of::<A>(), 0, 0];

    #[inline(always)]
    unsafe fn at(i: usize, a: *const u8, b: *const u8, _: *const u8) -> O {
        // SAFETY: the caller vouches for the elements; the constant is one element.
        unsafe { function::<F>()(element(a, i), element(b, 0)) }
    }
}

/// A function whose first argument is one constant for the block.
pub(super) struct ConstantLeft<F, O, A, B>(PhantomData<fn(F, A, B) -> O>);

impl<F, O, A, B> Kernel for ConstantLeft<F, O, A, B>
where
    F: Fn(A, B) -> O + Copy + 'static,
    O: Copy + 'static,
    A: Copy + 'static,
    B: Copy + 'static,
{
    type Out = O;
    const STEPS: [usize; 3] = [0, size_of::<B>(), 0];

    #[inline(always)]
    unsafe fn at(i: usize, a: *const u8, b: *const u8, _: *const u8) -> O {
        // SAFETY: the caller vouches for the elements; the constant is one element.
        unsafe { function::<F>()(element(a, 0), element(b, i)) }
    }
}

/// Bytes of results that an in-place primitive computes beside its operands before it stores them.
const BOUNCE: usize = 2048;

/// The loop proper. `out` aliases none of the operands, which is what lets the compiler vectorise without asking.
///
/// # Safety
/// As [`Kernel::at`], for every index of `out`.
#[inline(always)]
unsafe fn fill_block<K: Kernel>(out: &mut [MaybeUninit<K::Out>], a: *const u8, b: *const u8, c: *const u8) {
    for (i, out) in out.iter_mut().enumerate() {
        // SAFETY: the caller vouches for every index.
        *out = MaybeUninit::new(unsafe { K::at(i, a, b, c) });
    }
}

/// Runs a primitive in place, by way of a small buffer.
///
/// # Safety
/// As [`PrimFn`]; `run` is the same primitive, with results of `size` bytes and operands that move by `steps`.
#[inline(never)]
unsafe fn in_place(run: PrimFn, size: usize, steps: [usize; 3], n: usize, dst: *mut u8, operands: [*const u8; 3]) {
    let mut bounce = [MaybeUninit::<u128>::uninit(); BOUNCE / 16];
    let mut done = 0;
    while done < n {
        let count = (BOUNCE / size).min(n - done);
        let at = |k: usize| operands[k].wrapping_add(done * steps[k]);
        // SAFETY: `run` writes `count` elements, which fit; the operands are read before `dst` overwrites them, at the
        // same indices only.
        unsafe {
            run(count, bounce.as_mut_ptr().cast(), at(0), at(1), at(2));
            dst.add(done * size).copy_from_nonoverlapping(bounce.as_ptr().cast(), count * size);
        }
        done += count;
    }
}

macro_rules! level {
    ($module:ident $(, $feature:literal)?) => {
        mod $module {
            use super::*;

            $(#[target_feature(enable = $feature)])?
            #[inline(never)]
            unsafe fn apart<K: Kernel>(out: &mut [MaybeUninit<K::Out>], a: *const u8, b: *const u8, c: *const u8) {
                // SAFETY: the caller vouches for every index.
                unsafe { fill_block::<K>(out, a, b, c) }
            }

            $(#[target_feature(enable = $feature)])?
            pub(super) unsafe extern "C" fn entry<K: Kernel>(
                n: usize, dst: *mut u8, a: *const u8, b: *const u8, c: *const u8,
            ) {
                let here = dst.cast_const();
                if here == a || here == b || here == c {
                    // SAFETY: the contract of PrimFn; the buffer is apart from the operands.
                    return unsafe { in_place(entry::<K>, size_of::<K::Out>(), K::STEPS, n, dst, [a, b, c]) };
                }
                // SAFETY: the contract of PrimFn; `dst` is apart from the operands, and any bytes are MaybeUninit.
                unsafe { apart::<K>(std::slice::from_raw_parts_mut(dst.cast(), n), a, b, c) }
            }
        }
    };
}

level!(baseline);
#[cfg(target_arch = "x86_64")]
level!(avx2, "avx2,fma");
#[cfg(target_arch = "x86_64")]
level!(avx512, "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma");

/// The primitive of a kernel at a level.
fn at_level<K: Kernel>(isa: Isa) -> PrimFn {
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => avx2::entry::<K>,
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => avx512::entry::<K>,
        _ => baseline::entry::<K>,
    }
}

/// A primitive of one operand.
pub(super) fn unary<A, O, F>(isa: Isa, _: F) -> Option<PrimFn>
where
    F: Fn(A) -> O + Copy + 'static,
    A: Copy + 'static,
    O: Copy + 'static,
{
    Some(at_level::<Map1<F, O, A>>(isa))
}

/// A primitive of two operands.
pub(super) fn binary<A, B, O, F>(isa: Isa, _: F) -> Option<PrimFn>
where
    F: Fn(A, B) -> O + Copy + 'static,
    A: Copy + 'static,
    B: Copy + 'static,
    O: Copy + 'static,
{
    Some(at_level::<Map2<F, O, A, B>>(isa))
}

/// A primitive of three operands.
pub(super) fn ternary<A, B, C, O, F>(isa: Isa, _: F) -> Option<PrimFn>
where
    F: Fn(A, B, C) -> O + Copy + 'static,
    A: Copy + 'static,
    B: Copy + 'static,
    C: Copy + 'static,
    O: Copy + 'static,
{
    Some(at_level::<Map3<F, O, A, B, C>>(isa))
}

/// A primitive of two operands of which one is a single element.
pub(super) fn with_constant<A, B, O, F>(isa: Isa, constant_left: bool, _: F) -> Option<PrimFn>
where
    F: Fn(A, B) -> O + Copy + 'static,
    A: Copy + 'static,
    B: Copy + 'static,
    O: Copy + 'static,
{
    Some(if constant_left {
        at_level::<ConstantLeft<F, O, A, B>>(isa)
    } else {
        at_level::<ConstantRight<F, O, A, B>>(isa)
    })
}

/// The same for functions that do not gain from wider vectors: one version for all levels.
pub(super) const SCALAR: Isa = Isa::Portable;
