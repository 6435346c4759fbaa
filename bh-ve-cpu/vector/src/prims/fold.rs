//! Reductions of blocks into virtual lanes. The lanes and the order in which they are joined are part of the result's
//! definition: neither the instruction set nor the thread count may change them.

use super::levels::{at_level, entry, for_each_level};
use crate::simd::Isa;
use bh_bytecode::{DType, Opcode, scalar, types_of};
use std::marker::PhantomData;
use std::sync::atomic::{Ordering, compiler_fence};

/// Lanes of a fold. Element `i` of a block goes to lane `i % LANES`.
pub const LANES: usize = 32;

/// `lanes[i % LANES] = op(lanes[i % LANES], a[i])` for each of the `n` elements at `a`, or the same of what an operation makes
/// of the elements at `a` and `b`. `b` may be null where it is not used.
///
/// # Safety
/// `lanes` must be valid for `LANES`, `a` and `b` for `n` elements; the level must be available.
pub type LanesFn = unsafe extern "C" fn(n: usize, lanes: *mut u8, a: *const u8, b: *const u8);

/// Joins `LANES` lanes into one element at `out`, which may be the first lane.
///
/// # Safety
/// `lanes` must be valid for `LANES` elements and `out` for one; the level must be available.
pub type JoinFn = unsafe extern "C" fn(lanes: *const u8, out: *mut u8);

/// A function of two elements.
trait Combine: 'static {
    type Element: Copy + 'static;
    fn combine(a: Self::Element, b: Self::Element) -> Self::Element;
}

/// The folded values.
trait Source<T>: 'static {
    /// Is it made of two blocks?
    const TWO: bool;
    fn element(a: T, b: T) -> T;
}

/// The elements of a block.
struct Plain;

impl<T> Source<T> for Plain {
    const TWO: bool = false;
    #[inline(always)]
    fn element(a: T, _: T) -> T {
        a
    }
}

/// # Safety
/// As [`LanesFn`].
#[inline(always)]
unsafe fn fold<C: Combine, S: Source<C::Element>>(n: usize, lanes: *mut u8, a: *const u8, b: *const u8) {
    let lanes = lanes.cast::<[C::Element; LANES]>();
    // SAFETY: the operands have `n` aligned elements, and there are `LANES` lanes, as [`LanesFn`] asks; the lanes are
    // copied, so that they can live in registers.
    unsafe {
        let elements =
            |block: *const u8| std::slice::from_raw_parts(block.cast::<C::Element>(), n).as_chunks::<LANES>();
        let (chunks, rest) = elements(a);
        let (second_chunks, second_rest) = elements(if S::TWO { b } else { a });
        let mut sums = lanes.read_unaligned();
        for (a, b) in chunks.iter().zip(second_chunks) {
            for lane in 0..LANES {
                sums[lane] = C::combine(sums[lane], S::element(a[lane], b[lane]));
            }
            // The compiler may change the order of integers' sums, and would gather the same lane of several chunks.
            compiler_fence(Ordering::SeqCst);
        }
        lanes.write_unaligned(sums);
        // In memory, as registers have no numbers.
        for (lane, (&a, &b)) in rest.iter().zip(second_rest).enumerate() {
            let lane = lanes.cast::<C::Element>().add(lane);
            lane.write_unaligned(C::combine(lane.read_unaligned(), S::element(a, b)));
        }
    }
}

/// Lane `i` takes lane `i + 16`, then `i + 8`, 4, 2 and 1.
///
/// # Safety
/// As [`JoinFn`].
#[inline(always)]
unsafe fn join<C: Combine>(lanes: *const u8, out: *mut u8) {
    // SAFETY: there are `LANES` lanes, and room for an element at `out`, as [`JoinFn`] asks.
    unsafe {
        let mut sums = lanes.cast::<[C::Element; LANES]>().read_unaligned();
        halve::<C, 16>(&mut sums);
        halve::<C, 8>(&mut sums);
        halve::<C, 4>(&mut sums);
        halve::<C, 2>(&mut sums);
        halve::<C, 1>(&mut sums);
        out.cast::<C::Element>().write_unaligned(sums[0]);
    }
}

/// The lanes up to `WIDTH` take as many others: a number that the compiler knows, so that they stay in registers.
#[inline(always)]
fn halve<C: Combine, const WIDTH: usize>(sums: &mut [C::Element; LANES]) {
    for lane in 0..WIDTH {
        sums[lane] = C::combine(sums[lane], sums[lane + WIDTH]);
    }
}

macro_rules! level {
    ($module:ident, $bytes:literal $(, $feature:literal)?) => {
        mod $module {
            use super::*;

            entry!([$($feature)?] folded [C: Combine, S: Source<C::Element>](
                n: usize, lanes: *mut u8, a: *const u8, b: *const u8,
            ) = fold::<C, S>);
            entry!([$($feature)?] joined [C: Combine](lanes: *const u8, out: *mut u8) = join::<C>);
        }
    };
}
for_each_level!(level);

fn lanes_at<C: Combine, S: Source<C::Element>>(isa: Isa) -> LanesFn {
    at_level!(isa, folded::<C, S>)
}

fn join_at<C: Combine>(isa: Isa) -> JoinFn {
    at_level!(isa, joined::<C>)
}

macro_rules! combiners {
    ($($name:ident = $scalar:ident: $trait:ident $set:ident, $($opcode:ident)|+;)*) => {
        $(
            struct $name<T>(PhantomData<fn() -> T>);
            impl<T: scalar::$trait> Combine for $name<T> {
                type Element = T;
                #[inline(always)]
                fn combine(a: T, b: T) -> T {
                    scalar::$scalar(a, b)
                }
            }
        )*

        /// The fold of a combining opcode (ADD, MULTIPLY, MINIMUM, MAXIMUM or one of the logical and bitwise three), or of
        /// the reduction or accumulate that uses it, on a type.
        pub fn reduce_lanes(isa: Isa, combiner: Opcode, dtype: DType) -> Option<LanesFn> {
            match combiner {
                $($(Opcode::$opcode)|+ => types_of!($set, pick_lanes, isa, $name, dtype),)*
                _ => None,
            }
        }

        /// The join that belongs to [`reduce_lanes`].
        pub fn fold_lanes(isa: Isa, combiner: Opcode, dtype: DType) -> Option<JoinFn> {
            match combiner {
                $($(Opcode::$opcode)|+ => types_of!($set, pick_join, isa, $name, dtype),)*
                _ => None,
            }
        }
    };
}

macro_rules! pick_lanes {
    ($isa:expr, $name:ident, $dtype:expr, [$(($type:ty, $variant:ident)),*]) => {{
        #[allow(unused_imports, reason = "only some sets hold complex types")]
        use bh_bytecode::{c64, c128};
        match $dtype {
            $(DType::$variant => Some(lanes_at::<$name<$type>, Plain>($isa)),)*
            #[allow(unreachable_patterns, reason = "some sets hold every type")]
            _ => None,
        }
    }};
}

macro_rules! pick_join {
    ($isa:expr, $name:ident, $dtype:expr, [$(($type:ty, $variant:ident)),*]) => {{
        #[allow(unused_imports, reason = "only some sets hold complex types")]
        use bh_bytecode::{c64, c128};
        match $dtype {
            $(DType::$variant => Some(join_at::<$name<$type>>($isa)),)*
            #[allow(unreachable_patterns, reason = "some sets hold every type")]
            _ => None,
        }
    }};
}

combiners! {
    Sum = add: Arithmetic ALL, Add | AddReduce | AddAccumulate;
    Product = multiply: Arithmetic ALL, Multiply | MultiplyReduce | MultiplyAccumulate;
    Smallest = minimum: Ordered ORDERED, Minimum | MinimumReduce;
    Largest = maximum: Ordered ORDERED, Maximum | MaximumReduce;
    And = bit_and: Bits BITS, BitwiseAnd | BitwiseAndReduce | LogicalAnd | LogicalAndReduce;
    Or = bit_or: Bits BITS, BitwiseOr | BitwiseOrReduce | LogicalOr | LogicalOrReduce;
    Xor = bit_xor: Bits BITS, BitwiseXor | BitwiseXorReduce | LogicalXor | LogicalXorReduce;
}

/// The fold of a source of `f32` or `f64` with a combiner: sums and limits.
macro_rules! pick_combiner {
    ($isa:expr, $combiner:expr, $source:ty, $type:ty) => {
        match $combiner {
            Opcode::Add => Some(lanes_at::<Sum<$type>, $source>($isa)),
            Opcode::Minimum => Some(lanes_at::<Smallest<$type>, $source>($isa)),
            Opcode::Maximum => Some(lanes_at::<Largest<$type>, $source>($isa)),
            _ => None,
        }
    };
}

macro_rules! sources {
    ($($name:ident = $scalar:ident),*) => {
        $(
            /// The operation's results for the elements of two blocks.
            struct $name;
            impl<T: scalar::Numeric> Source<T> for $name {
                const TWO: bool = true;
                #[inline(always)]
                fn element(a: T, b: T) -> T {
                    scalar::$scalar(a, b)
                }
            }
        )*

        /// The fold of what an arithmetic operation makes of two blocks, into lanes as those of [`reduce_lanes`]: for sums and
        /// limits of `f32` or `f64`.
        pub fn reduce_lanes_of(isa: Isa, first: Opcode, combiner: Opcode, dtype: DType) -> Option<LanesFn> {
            match (first, dtype) {
                $(
                    (Opcode::$name, DType::F64) => pick_combiner!(isa, combiner, $name, f64),
                    (Opcode::$name, DType::F32) => pick_combiner!(isa, combiner, $name, f32),
                )*
                _ => None,
            }
        }
    };
}

sources! { Add = add, Subtract = subtract, Multiply = multiply, Divide = divide }
