//! Vectors whose operations build instructions, so that the functions of `bh-vector` become code: both tiers have the same
//! operations in the same order, and the same bits.
//!
//! The functions ask whether any lane is special. Here the answer is always no, and the questions are collected: the
//! caller branches to the block primitive where one of them holds.

use crate::builder::{Builder, Element, Kind, Value};
use bh_bytecode::Opcode;
use bh_jit_abi::Level;
use bh_vector::math;
use bh_vector::simd::Vector;
use inkwell::FloatPredicate;
use std::cell::Cell;
use std::ops::{Add, Div, Mul, Neg, Sub};
use std::ptr::NonNull;

/// The builder of vectors.
struct Evaluation<'a, 'c> {
    b: &'a Builder<'c>,
    level: Level,
    kind: Kind,
    /// Is any lane special?
    special: Cell<Option<Value<'c>>>,
    /// Was something asked for that has no vector instructions?
    impossible: Cell<bool>,
}

thread_local! {
    /// The [`Evaluation`]: operators have no argument for it.
    static CURRENT: Cell<Option<NonNull<()>>> = const { Cell::new(None) };
}

/// Evaluates the function of an opcode on vectors of `f64`; `single`: the precision of `f32` is enough. Returns the result and
/// the mask of lanes that the result is wrong for, if there can be any. `None` if the opcode has no such function.
pub(crate) fn evaluate<'c>(
    b: &Builder<'c>,
    level: Level,
    (opcode, single): (Opcode, bool),
    (x, y): (Value<'c>, Value<'c>),
) -> Option<(Value<'c>, Option<Value<'c>>)> {
    evaluated(b, level, x.kind, |evaluation| {
        let result = math::evaluate(opcode, single, Lanes(x), Lanes(y))?.0;
        (!evaluation.impossible.get()).then(|| (result, evaluation.special.get()))
    })
}

/// The sum of the squares of complex numbers' parts, of `f64`, and the lanes where its root is not the modulus.
pub(crate) fn square_of_modulus<'c>(b: &Builder<'c>, level: Level, parts: [Value<'c>; 2]) -> [Value<'c>; 2] {
    evaluated(b, level, parts[0].kind, |_| {
        let [x, y] = parts.map(Lanes);
        let (square, common) = math::square_of_modulus(x, y);
        [square.0, Lanes::mask_not(common).0]
    })
}

/// The modulus of any complex numbers, from the sum of their squares.
pub(crate) fn modulus_of_all<'c>(b: &Builder<'c>, level: Level, parts: [Value<'c>; 2], square: Value<'c>) -> Value<'c> {
    evaluated(b, level, square.kind, |_| {
        let [x, y] = parts.map(Lanes);
        math::modulus_of_all(x, y, Lanes(square)).0
    })
}

/// Evaluates `body` on vectors.
fn evaluated<'c, R>(b: &Builder<'c>, level: Level, kind: Kind, body: impl FnOnce(&Evaluation<'_, 'c>) -> R) -> R {
    let evaluation = Evaluation { b, level, kind, special: Cell::new(None), impossible: Cell::new(false) };
    CURRENT.set(Some(NonNull::from(&evaluation).cast()));
    let result = body(&evaluation);
    CURRENT.set(None);
    result
}

/// Runs `body` with the builder.
fn with<'c, R>(body: impl FnOnce(&Evaluation<'_, 'c>) -> R) -> R {
    let current = CURRENT.get().expect("vectors exist while a function is evaluated");
    // SAFETY: it is there until `evaluated` ends, and the vectors that exist meanwhile have the lifetime of its values.
    body(unsafe { current.cast::<Evaluation<'_, 'c>>().as_ref() })
}

/// Lanes of `f64` in the code.
#[derive(Clone, Copy)]
struct Lanes<'c>(Value<'c>);

/// A truth value per lane in the code.
#[derive(Clone, Copy)]
struct Mask<'c>(Value<'c>);

/// An instruction of two operands.
type Binary<'c> = fn(&Builder<'c>, Value<'c>, Value<'c>) -> Value<'c>;

macro_rules! operator {
    ($trait:ident, $method:ident) => {
        impl<'c> $trait for Lanes<'c> {
            type Output = Lanes<'c>;
            fn $method(self, other: Lanes<'c>) -> Lanes<'c> {
                Lanes(with(|evaluation| evaluation.b.$method(self.0, other.0)))
            }
        }
    };
}
operator!(Add, add);
operator!(Sub, sub);
operator!(Mul, mul);
operator!(Div, div);

impl<'c> Neg for Lanes<'c> {
    type Output = Lanes<'c>;
    fn neg(self) -> Lanes<'c> {
        Lanes(with(|evaluation| evaluation.b.neg(self.0)))
    }
}

impl<'c> Lanes<'c> {
    /// An operation on the bits of two vectors.
    fn bitwise(self, operation: Binary<'c>, other: Lanes<'c>) -> Lanes<'c> {
        Lanes(with(|&Evaluation { b, .. }| {
            let [x, y] = [self, other].map(|lanes| b.bitcast(lanes.0, self.0.kind.with(Element::I64)));
            b.bitcast(operation(b, x, y), self.0.kind)
        }))
    }

    /// A shift of the bits.
    fn shift(self, operation: Binary<'c>, count: i32) -> Lanes<'c> {
        Lanes(with(|&Evaluation { b, .. }| {
            let x = b.bitcast(self.0, self.0.kind.with(Element::I64));
            b.bitcast(operation(b, x, b.splat(x.kind, i64::from(count))), self.0.kind)
        }))
    }

    fn intrinsic(self, name: &str) -> Lanes<'c> {
        Lanes(with(|evaluation| evaluation.b.intrinsic(name, &[self.0])))
    }

    fn compare(self, predicate: FloatPredicate, other: Lanes<'c>) -> Mask<'c> {
        Mask(with(|evaluation| evaluation.b.compare(predicate, self.0, other.0)))
    }

    /// Something without vector instructions.
    fn impossible(self) -> Lanes<'c> {
        with(|evaluation| evaluation.impossible.set(true));
        self
    }
}

/// An instruction of AVX-512 for each eight lanes, which takes a vector for lanes that a mask leaves out, and that mask.
fn masked<'c, const N: usize>(
    b: &Builder<'c>,
    name: &str,
    operands: [Value<'c>; N],
    further: &[Value<'c>],
) -> Value<'c> {
    b.by_eights(operands, |operands| {
        let kind = operands[0].kind;
        let all = b.constant(Kind::scalar(Element::I8), -1);
        b.call(name, kind, &[&operands[..], &[b.zero(kind), all], further].concat())
    })
}

impl<'c> Vector for Lanes<'c> {
    // Only loops over memory ask for the number of lanes, and there are none here.
    const LANES: usize = 0;
    const FUSED: bool = true;
    type Mask = Mask<'c>;

    fn splat(x: f64) -> Lanes<'c> {
        Lanes(with(|evaluation| evaluation.b.splat(evaluation.kind, x)))
    }

    fn splat_bits(bits: u64) -> Lanes<'c> {
        Lanes::splat(f64::from_bits(bits))
    }

    unsafe fn load(_: *const f64) -> Lanes<'c> {
        Lanes::splat(0.0).impossible()
    }

    unsafe fn store(self, _: *mut f64) {
        self.impossible();
    }

    unsafe fn load_f32(_: *const f32) -> Lanes<'c> {
        Lanes::splat(0.0).impossible()
    }

    unsafe fn store_f32(self, _: *mut f32) {
        self.impossible();
    }

    fn mul_add(self, factor: Lanes<'c>, term: Lanes<'c>) -> Lanes<'c> {
        Lanes(with(|evaluation| evaluation.b.multiply_add(self.0, factor.0, term.0)))
    }

    fn neg_mul_add(self, factor: Lanes<'c>, term: Lanes<'c>) -> Lanes<'c> {
        (-self).mul_add(factor, term)
    }

    fn sqrt(self) -> Lanes<'c> {
        self.intrinsic("sqrt")
    }

    fn reciprocal_root_estimate(self) -> Option<Lanes<'c>> {
        with(|&Evaluation { b, level, kind, .. }| {
            let has_estimate = level == Level::Avx512 && kind.lanes.is_multiple_of(8);
            has_estimate.then(|| Lanes(masked(b, "llvm.x86.avx512.rsqrt14.pd.512", [self.0], &[])))
        })
    }

    fn rint(self) -> Lanes<'c> {
        self.intrinsic("roundeven")
    }

    fn floor(self) -> Lanes<'c> {
        self.intrinsic("floor")
    }

    fn ceil(self) -> Lanes<'c> {
        self.intrinsic("ceil")
    }

    fn trunc(self) -> Lanes<'c> {
        self.intrinsic("trunc")
    }

    fn round_f32(self) -> Lanes<'c> {
        Lanes(with(|&Evaluation { b, .. }| b.widen(b.narrow(self.0, Element::F32), Element::F64)))
    }

    fn at_most(self, limit: Lanes<'c>) -> Lanes<'c> {
        Lanes::select(limit.lt(self), limit, self)
    }

    fn at_least(self, limit: Lanes<'c>) -> Lanes<'c> {
        Lanes::select(limit.gt(self), limit, self)
    }

    fn bits_and(self, other: Lanes<'c>) -> Lanes<'c> {
        self.bitwise(Builder::and, other)
    }

    fn bits_or(self, other: Lanes<'c>) -> Lanes<'c> {
        self.bitwise(Builder::or, other)
    }

    fn bits_xor(self, other: Lanes<'c>) -> Lanes<'c> {
        self.bitwise(Builder::xor, other)
    }

    fn bits_add(self, other: Lanes<'c>) -> Lanes<'c> {
        self.bitwise(Builder::add, other)
    }

    fn bits_shl<const N: i32>(self) -> Lanes<'c> {
        self.shift(Builder::shl, N)
    }

    fn bits_shr<const N: i32>(self) -> Lanes<'c> {
        self.shift(Builder::lshr, N)
    }

    fn lt(self, other: Lanes<'c>) -> Mask<'c> {
        self.compare(FloatPredicate::OLT, other)
    }

    fn le(self, other: Lanes<'c>) -> Mask<'c> {
        self.compare(FloatPredicate::OLE, other)
    }

    fn eq(self, other: Lanes<'c>) -> Mask<'c> {
        self.compare(FloatPredicate::OEQ, other)
    }

    fn gt(self, other: Lanes<'c>) -> Mask<'c> {
        self.compare(FloatPredicate::OGT, other)
    }

    fn select(mask: Mask<'c>, x: Lanes<'c>, y: Lanes<'c>) -> Lanes<'c> {
        Lanes(with(|evaluation| evaluation.b.select(mask.0, x.0, y.0)))
    }

    fn mask_and(x: Mask<'c>, y: Mask<'c>) -> Mask<'c> {
        Mask(with(|evaluation| evaluation.b.and(x.0, y.0)))
    }

    fn mask_or(x: Mask<'c>, y: Mask<'c>) -> Mask<'c> {
        Mask(with(|evaluation| evaluation.b.or(x.0, y.0)))
    }

    fn mask_not(x: Mask<'c>) -> Mask<'c> {
        Mask(with(|evaluation| evaluation.b.not(x.0)))
    }

    fn mask_bits(x: Mask<'c>) -> u32 {
        with(|evaluation| {
            let special = evaluation.special.get().map_or(x.0, |before| evaluation.b.or(before, x.0));
            evaluation.special.set(Some(special));
        });
        0
    }

    fn scale(self, k: Lanes<'c>) -> Lanes<'c> {
        if with(|evaluation| evaluation.level == Level::Avx512) {
            return Lanes(with(|&Evaluation { b, .. }| {
                let rounding = b.constant(Kind::I32, 4);
                masked(b, "llvm.x86.avx512.mask.scalef.pd.512", [self.0, k.0], &[rounding])
            }));
        }
        // As the other levels do it.
        let first = (k * Lanes::splat(0.5)).rint_small();
        let second = k - first;
        self * first.pow2() * second.pow2()
    }
}
