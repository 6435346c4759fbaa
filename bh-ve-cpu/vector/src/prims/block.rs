//! Block loops around scalar functions, compiled for every instruction-set level so that the compiler vectorises them.
//!
//! The loops do exact operations only (what rounds, rounds once as IEEE 754 says), so every level, block length and
//! alignment gives the same bits.

use super::PrimFn;
use super::levels::{at_level, for_each_level};
use crate::simd::Isa;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::sync::atomic::{Ordering, compiler_fence};

/// A primitive's work at one index.
pub(super) trait Kernel: 'static {
    /// The type of results.
    type Out: Copy;
    /// The blocks and constants it reads.
    type Operands<'a>: Copy;
    /// How many bytes each operand moves per index: the size of its elements, 0 for constants and absent operands.
    const STEPS: [usize; 3];

    /// The operands of blocks of `n` elements.
    ///
    /// # Safety
    /// Each pointer that the kernel uses must be valid for `n` aligned elements, or for one if it is a constant.
    unsafe fn operands<'a>(n: usize, pointers: [*const u8; 3]) -> Self::Operands<'a>;

    /// The result at index `i`.
    ///
    /// # Safety
    /// The operands must have an element at this index. Loops with a check have an exit that vectors cannot take: the last
    /// elements would be done one by one.
    unsafe fn at(operands: Self::Operands<'_>, i: usize) -> Self::Out;
}

/// The value of a function item or of a closure that captures nothing.
#[inline(always)]
fn function<F: Copy>() -> F {
    const { assert!(size_of::<F>() == 0, "only functions without state") };
    // SAFETY: reading no bytes needs no memory, and a caller had the value in its hands to name the type.
    unsafe { std::ptr::NonNull::<F>::dangling().read() }
}

/// A block of elements.
///
/// # Safety
/// The pointer must be valid for reading `n` aligned elements, which nobody changes, through `'a`.
#[inline(always)]
unsafe fn elements<'a, T>(n: usize, pointer: *const u8) -> &'a [T] {
    // SAFETY: the pointer is valid for `n` aligned elements through `'a`, as `# Safety` asks.
    unsafe { std::slice::from_raw_parts(pointer.cast(), n) }
}

/// An operand that a kernel reads at an index.
pub(super) trait Operand: 'static {
    /// The type of what it reads.
    type Element: Copy;
    /// The reference or value that holds it.
    type Held<'a>: Copy;
    /// Bytes from one index to the next.
    const STEP: usize;

    /// The operand of a kernel of `n` results.
    ///
    /// # Safety
    /// The pointer must be valid for `n` aligned elements, or for one where there is no step.
    unsafe fn hold<'a>(n: usize, pointer: *const u8) -> Self::Held<'a>;

    /// The element at an index.
    ///
    /// # Safety
    /// The index must be below the `n` that it is held for.
    unsafe fn at(held: Self::Held<'_>, i: usize) -> Self::Element;
}

/// Each element of a block.
pub(super) struct Each<T>(PhantomData<fn() -> T>);

impl<T: Copy + 'static> Operand for Each<T> {
    type Element = T;
    type Held<'a> = &'a [T];
    const STEP: usize = size_of::<T>();

    #[inline(always)]
    unsafe fn hold<'a>(n: usize, pointer: *const u8) -> Self::Held<'a> {
        // SAFETY: the pointer is valid for `n` elements.
        unsafe { elements(n, pointer) }
    }

    #[inline(always)]
    unsafe fn at(held: &[T], i: usize) -> T {
        // SAFETY: the index is below the length.
        unsafe { *held.get_unchecked(i) }
    }
}

/// One element for all indices.
pub(super) struct Single<T>(PhantomData<fn() -> T>);

impl<T: Copy + 'static> Operand for Single<T> {
    type Element = T;
    type Held<'a> = T;
    const STEP: usize = 0;

    #[inline(always)]
    unsafe fn hold<'a>(_: usize, pointer: *const u8) -> Self::Held<'a> {
        // SAFETY: the pointer is valid for one element.
        unsafe { *pointer.cast::<T>() }
    }

    #[inline(always)]
    unsafe fn at(held: T, _: usize) -> T {
        held
    }
}

/// Kernels of one to three operands from functions of as many arguments.
macro_rules! maps {
    ($($map:ident($($operand:tt: $type:ident),*) $steps:expr;)*) => {$(
        /// A function of as many arguments as there are operands.
        pub(super) struct $map<F, O, $($type),*>(PhantomData<fn(F, $($type),*) -> O>);

        impl<F, O, $($type),*> Kernel for $map<F, O, $($type),*>
        where
            F: Fn($($type::Element),*) -> O + Copy + 'static,
            O: Copy + 'static,
            $($type: Operand,)*
        {
            type Out = O;
            type Operands<'a> = ($($type::Held<'a>,)*);
            const STEPS: [usize; 3] = $steps;

            #[inline(always)]
            unsafe fn operands<'a>(n: usize, pointers: [*const u8; 3]) -> Self::Operands<'a> {
                // SAFETY: each pointer is valid for what its operand reads.
                unsafe { ($($type::hold(n, pointers[$operand]),)*) }
            }

            #[inline(always)]
            unsafe fn at(operands: Self::Operands<'_>, i: usize) -> O {
                // SAFETY: all operands are held for this index.
                unsafe { function::<F>()($($type::at(operands.$operand, i)),*) }
            }
        }
    )*};
}
maps! {
    Map1(0: A) [A::STEP, 0, 0];
    Map2(0: A, 1: B) [A::STEP, B::STEP, 0];
    Map3(0: A, 1: B, 2: C) [A::STEP, B::STEP, C::STEP];
}

/// A kernel of two operands and a result of one type, which may replace either operand without a detour.
pub(super) trait InPlace: Kernel {
    /// The function.
    fn apply(a: Self::Out, b: Self::Out) -> Self::Out;
}

impl<F, T> InPlace for Map2<F, T, Each<T>, Each<T>>
where
    F: Fn(T, T) -> T + Copy + 'static,
    T: Copy + 'static,
{
    #[inline(always)]
    fn apply(a: T, b: T) -> T {
        function::<F>()(a, b)
    }
}

/// Bytes of results that an in-place primitive computes beside its operands before it stores them.
const BOUNCE: usize = 2048;

/// Bytes of the widest vectors.
const VECTOR: usize = 64;

/// The size of the largest element that a primitive reads or writes.
const fn widest(size: usize, [a, b, c]: [usize; 3]) -> usize {
    const fn larger(a: usize, b: usize) -> usize {
        if a > b { a } else { b }
    }
    larger(larger(size, a), larger(b, c))
}

/// The loop proper. `out` aliases none of the operands, which is what lets the compiler vectorise without asking. It takes
/// several vectors at a time; what is left of a block goes through one at a time, and less than that element by element.
///
/// # Safety
/// As [`Kernel::operands`], for blocks as long as `out`.
#[inline(always)]
unsafe fn fill_block<K: Kernel>(out: &mut [MaybeUninit<K::Out>], pointers: [*const u8; 3]) {
    let n = out.len();
    let vector = const { VECTOR / widest(size_of::<K::Out>(), K::STEPS) };
    let (many, whole) = (n - n % (4 * vector), n - n % vector);
    // SAFETY: the pointers are valid for as many elements as `out` has, as `# Safety` asks, and all indices are below
    // that number.
    unsafe {
        let operands = K::operands(n, pointers);
        for i in 0..many {
            out.get_unchecked_mut(i).write(K::at(operands, i));
        }
        let mut first = many;
        while first < whole {
            for i in first..first + vector {
                out.get_unchecked_mut(i).write(K::at(operands, i));
            }
            first += vector;
            // These are few: vectors of the same lane of several vectors would be gathered.
            compiler_fence(Ordering::SeqCst);
        }
        for i in whole..n {
            out.get_unchecked_mut(i).write(K::at(operands, i));
        }
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
    ($module:ident, $bytes:literal $(, $feature:literal)?) => {
        mod $module {
            use super::*;

            $(#[target_feature(enable = $feature)])?
            /// # Safety
            /// As [`fill_block`].
            #[inline(never)]
            unsafe fn apart<K: Kernel>(out: &mut [MaybeUninit<K::Out>], pointers: [*const u8; 3]) {
                // SAFETY: `fill_block` asks for what `# Safety` asks.
                unsafe { fill_block::<K>(out, pointers) }
            }

            $(#[target_feature(enable = $feature)])?
            pub(super) unsafe extern "C" fn entry<K: Kernel>(
                n: usize, dst: *mut u8, a: *const u8, b: *const u8, c: *const u8,
            ) {
                let here = dst.cast_const();
                if here == a || here == b || here == c {
                    // SAFETY: operands are as [`PrimFn`] asks of both; the buffer is apart from them.
                    return unsafe { in_place(entry::<K>, size_of::<K::Out>(), K::STEPS, n, dst, [a, b, c]) };
                }
                // SAFETY: operands and `dst` have `n` elements, as [`PrimFn`] asks, and are apart, as `dst` is none of
                // them; any bytes are MaybeUninit.
                unsafe { apart::<K>(std::slice::from_raw_parts_mut(dst.cast(), n), [a, b, c]) }
            }

            $(#[target_feature(enable = $feature)])?
            #[inline(never)]
            fn over_left<K: InPlace>(left: &mut [K::Out], right: &[K::Out]) {
                left.iter_mut().zip(right).for_each(#[inline(always)] |(a, &b)| *a = K::apply(*a, b));
            }

            $(#[target_feature(enable = $feature)])?
            #[inline(never)]
            fn over_right<K: InPlace>(left: &[K::Out], right: &mut [K::Out]) {
                left.iter().zip(right).for_each(#[inline(always)] |(&a, b)| *b = K::apply(a, *b));
            }

            $(#[target_feature(enable = $feature)])?
            pub(super) unsafe extern "C" fn entry_in_place<K: InPlace>(
                n: usize, dst: *mut u8, a: *const u8, b: *const u8, c: *const u8,
            ) {
                let here = dst.cast_const();
                // SAFETY: operands and `dst` have `n` elements, as [`PrimFn`] asks, so that the operand that is not
                // replaced is apart from `dst`.
                unsafe {
                    if here == a && here != b {
                        over_left::<K>(std::slice::from_raw_parts_mut(dst.cast(), n), elements(n, b));
                    } else if here == b && here != a {
                        over_right::<K>(elements(n, a), std::slice::from_raw_parts_mut(dst.cast(), n));
                    } else {
                        entry::<K>(n, dst, a, b, c);
                    }
                }
            }
        }
    };
}

for_each_level!(level);

/// The primitive of a kernel at a level.
fn at_level<K: Kernel>(isa: Isa) -> PrimFn {
    at_level!(isa, entry::<K>)
}

/// A primitive of one operand.
pub(super) fn unary<A, O, F>(isa: Isa, _: F) -> Option<PrimFn>
where
    F: Fn(A) -> O + Copy + 'static,
    A: Copy + 'static,
    O: Copy + 'static,
{
    Some(at_level::<Map1<F, O, Each<A>>>(isa))
}

/// A primitive of two operands.
pub(super) fn binary<A, B, O, F>(isa: Isa, _: F) -> Option<PrimFn>
where
    F: Fn(A, B) -> O + Copy + 'static,
    A: Copy + 'static,
    B: Copy + 'static,
    O: Copy + 'static,
{
    Some(at_level::<Map2<F, O, Each<A>, Each<B>>>(isa))
}

/// A primitive of two operands that often replaces one of them.
pub(super) fn binary_in_place<T, F>(isa: Isa, _: F) -> Option<PrimFn>
where
    F: Fn(T, T) -> T + Copy + 'static,
    T: Copy + 'static,
{
    Some(at_level!(isa, entry_in_place::<Map2<F, T, Each<T>, Each<T>>>))
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
    Some(at_level::<Map3<F, O, Each<A>, Each<B>, Each<C>>>(isa))
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
        at_level::<Map2<F, O, Single<A>, Each<B>>>(isa)
    } else {
        at_level::<Map2<F, O, Each<A>, Single<B>>>(isa)
    })
}

/// A primitive of three operands of one type of which the third is a single element.
pub(super) fn with_constant_third<T, F>(isa: Isa, _: F) -> Option<PrimFn>
where
    F: Fn(T, T, T) -> T + Copy + 'static,
    T: Copy + 'static,
{
    Some(at_level::<Map3<F, T, Each<T>, Each<T>, Single<T>>>(isa))
}

/// The same for functions that do not gain from wider vectors: one version for all levels.
pub(super) const SCALAR: Isa = Isa::Portable;
