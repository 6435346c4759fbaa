//! Functions of complex numbers by those of their parts, for numbers of ordinary size; others, and special ones, are left
//! to the scalar functions. They are computed in `f64` lanes.

use super::PrimFn;
use super::dd::two_prod;
use super::entry::{Entry, at_level};
use super::modulus::square_of_modulus;
use super::parts::{Number, by_chunks};
use super::{exponential, inverse, logarithm, trigonometric};
use crate::simd::{Isa, MAX_LANES, Vector};
use bh_bytecode::{DType, Opcode, c64, c128, scalar};
use std::f64::consts::LOG10_E;
use std::marker::PhantomData;

/// Parts that exponentials are made of.
const LARGEST: f64 = 700.0;
/// The same for `f32`, where what is larger is infinite in the end.
const LARGEST_SINGLE: f64 = 200.0;

/// A function.
trait Function: 'static {
    /// The parts of the results, and the lanes where they are right.
    fn eval<V: Vector, const SINGLE: bool>(x: V, y: V) -> ([V; 2], V::Mask);
    /// The function of one number.
    fn scalar(z: c128) -> c128;
}

/// Lanes that are smaller than a limit.
#[inline(always)]
fn below<V: Vector>(x: V, limit: f64) -> V::Mask {
    x.abs().lt(V::splat(limit))
}

/// Lanes of which the one part can be an exponent and the other one an angle.
#[inline(always)]
fn common<V: Vector, const SINGLE: bool>(exponent: V, angle: V) -> V::Mask {
    let largest = if SINGLE { LARGEST_SINGLE } else { LARGEST };
    V::mask_and(below(exponent, largest), below(angle, f64::INFINITY))
}

#[inline(always)]
fn exp<V: Vector, const SINGLE: bool>(x: V, y: V) -> ([V; 2], V::Mask) {
    let scale = exponential::exp::<V, SINGLE>(x);
    let (sin, cos) = trigonometric::sin_cos::<V, SINGLE>(y);
    ([scale * cos, scale * sin], common::<V, SINGLE>(x, y))
}

/// sinh x · cos y and cosh x · sin y, and the other two products.
#[inline(always)]
fn hyperbolic<V: Vector, const SINGLE: bool>(x: V, y: V) -> ([V; 2], [V; 2], V::Mask) {
    let (sinh, cosh) = (exponential::sinh::<V, SINGLE>(x), exponential::cosh::<V, SINGLE>(x));
    let (sin, cos) = trigonometric::sin_cos::<V, SINGLE>(y);
    ([sinh * cos, cosh * sin], [cosh * cos, sinh * sin], common::<V, SINGLE>(x, y))
}

#[inline(always)]
fn sinh<V: Vector, const SINGLE: bool>(x: V, y: V) -> ([V; 2], V::Mask) {
    let (sinh, _, known) = hyperbolic::<V, SINGLE>(x, y);
    (sinh, known)
}

#[inline(always)]
fn cosh<V: Vector, const SINGLE: bool>(x: V, y: V) -> ([V; 2], V::Mask) {
    let (_, cosh, known) = hyperbolic::<V, SINGLE>(x, y);
    (cosh, known)
}

#[inline(always)]
fn sin<V: Vector, const SINGLE: bool>(x: V, y: V) -> ([V; 2], V::Mask) {
    let ([im, re], _, known) = hyperbolic::<V, SINGLE>(y, x);
    ([re, im], known)
}

#[inline(always)]
fn cos<V: Vector, const SINGLE: bool>(x: V, y: V) -> ([V; 2], V::Mask) {
    let (_, [re, im], known) = hyperbolic::<V, SINGLE>(y, x);
    ([re, -im], known)
}

/// The larger part of the root, which loses no digits, and the other one by division.
#[inline(always)]
fn sqrt<V: Vector, const SINGLE: bool>(x: V, y: V) -> ([V; 2], V::Mask) {
    let (square, known) = square_of_modulus(x, y);
    let half = V::splat(0.5);
    let root = ((x.abs() + square.sqrt()) * half).sqrt();
    // Half of the smallest number would be 0.
    let other = y.abs() / (root + root);
    let right = x.ge(V::splat(0.0));
    ([V::select(right, root, other), V::select(right, other, root).copysign(y)], known)
}

/// The logarithm of the modulus and the angle. Near the unit circle, |z|² - 1 is summed with the squares' rounding errors.
#[inline(always)]
fn log<V: Vector, const SINGLE: bool>(x: V, y: V) -> ([V; 2], V::Mask) {
    let (square, known) = square_of_modulus(x, y);
    let modulus = square.sqrt();
    let near = V::mask_and(modulus.ge(V::splat(0.7)), modulus.lt(V::splat(1.45)));
    let mut logarithm = logarithm::log::<V, SINGLE>(modulus);
    if V::any(near) {
        let (x, y) = (x.abs(), y.abs());
        let upright = x.lt(y);
        let (large, small) = (V::select(upright, y, x), V::select(upright, x, y));
        let (a, b) = (two_prod(large, large), two_prod(small, small));
        let excess = ((a.hi - V::splat(1.0)) + b.hi) + (a.lo + b.lo);
        let there = logarithm::log1p::<V, false>(excess) * V::splat(0.5);
        logarithm = V::select(near, there, logarithm);
    }
    ([logarithm, inverse::atan2::<V, SINGLE>(y, x)], known)
}

#[inline(always)]
fn log10<V: Vector, const SINGLE: bool>(x: V, y: V) -> ([V; 2], V::Mask) {
    let (parts, known) = log::<V, SINGLE>(x, y);
    (parts.map(|part| part * V::splat(LOG10_E)), known)
}

/// The primitive of a function for a type.
struct Of<F, T>(PhantomData<fn(F) -> T>);

impl<F: Function, T: Number> Entry for Of<F, T> {
    #[inline(always)]
    unsafe fn run<V: Vector>(n: usize, dst: *mut u8, [a, ..]: [*const u8; 3]) {
        // SAFETY: the operand and `dst` have `n` elements each, as [`Entry::run`] asks; what is written replaces
        // numbers that have been read, and vectors end at the chunk's end at the latest, as its length is a multiple of
        // theirs.
        unsafe {
            by_chunks::<T>(
                n,
                a.cast(),
                #[inline(always)]
                |first, count, [re, im]| {
                    for i in (0..count).step_by(V::LANES) {
                        let (x, y) = (V::load(re.as_ptr().add(i)), V::load(im.as_ptr().add(i)));
                        let ([u, v], known) =
                            if T::SINGLE { F::eval::<V, true>(x, y) } else { F::eval::<V, false>(x, y) };
                        let others = V::mask_bits(V::mask_not(known));
                        let (mut us, mut vs) = ([0.0; MAX_LANES], [0.0; MAX_LANES]);
                        u.store(us.as_mut_ptr());
                        v.store(vs.as_mut_ptr());
                        for lane in (0..V::LANES).filter(|lane| others >> lane & 1 == 1) {
                            [us[lane], vs[lane]] = F::scalar(c128::new(re[i + lane], im[i + lane])).parts();
                        }
                        re[i..i + V::LANES].copy_from_slice(&us[..V::LANES]);
                        im[i..i + V::LANES].copy_from_slice(&vs[..V::LANES]);
                    }
                    for i in 0..count {
                        dst.cast::<T>().add(first + i).write(T::of([re[i], im[i]]));
                    }
                },
            );
        }
    }
}

macro_rules! functions {
    ($($name:ident = $function:ident),*) => {
        /// The functions as types.
        mod functions {
            use super::{Function, Vector, c128};
            $(
                pub(super) struct $name;
                impl Function for $name {
                    #[inline(always)]
                    fn eval<V: Vector, const SINGLE: bool>(x: V, y: V) -> ([V; 2], V::Mask) {
                        super::$function::<V, SINGLE>(x, y)
                    }
                    fn scalar(z: c128) -> c128 {
                        super::scalar::$function(z)
                    }
                }
            )*
        }

        /// The opcodes.
        pub const COMPLEX: &[Opcode] = &[$(Opcode::$name),*];

        /// The block primitive of an opcode for a type of complex numbers, if there is one here.
        pub(super) fn lookup(isa: Isa, opcode: Opcode, dtype: DType) -> Option<PrimFn> {
            match (opcode, dtype) {
                $((Opcode::$name, DType::C64) => Some(at_level::<Of<functions::$name, c64>>(isa)),
                (Opcode::$name, DType::C128) => Some(at_level::<Of<functions::$name, c128>>(isa)),)*
                _ => None,
            }
        }
    };
}

functions! {
    Exp = exp, Sinh = sinh, Cosh = cosh, Sin = sin, Cos = cos, Sqrt = sqrt, Log = log, Log10 = log10
}
