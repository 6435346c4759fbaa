//! Numbers of several systems side by side: packs of real numbers, pairs of packs as complex ones, and what algorithms ask of both.
//!
//! Packs are vectors of an instruction-set level, or arrays. Algorithms are loops over packs that are inlined into functions with the
//! features of the level; closures that work on packs would not be.

use bh_bytecode::Complex;

/// A real number of one system.
pub(super) trait Scalar: Copy + PartialOrd + Into<f64> + 'static {
    const ZERO: Self;
    const ONE: Self;
    /// The relative rounding error of an operation, twice.
    const EPSILON: Self;
    /// The smallest number whose reciprocal, and 2⁵³ times fewer, are normal numbers.
    const SMALLEST: Self;
    /// Its reciprocal.
    const LARGEST: Self;

    fn of(value: f64) -> Self;
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn over(self, other: Self) -> Self;
    fn root(self) -> Self;
    fn magnitude(self) -> Self;
    fn signed(self, sign: Self) -> Self;
    /// The power of two at or below a positive normal number.
    fn power_below(self) -> Self;
}

macro_rules! scalar {
    ($type:ident, $exponent:literal, $smallest:literal) => {
        impl Scalar for $type {
            const ZERO: $type = 0.0;
            const ONE: $type = 1.0;
            const EPSILON: $type = $type::EPSILON;
            const SMALLEST: $type = $smallest;
            const LARGEST: $type = 1.0 / $smallest;

            #[inline(always)]
            fn of(value: f64) -> $type {
                value as $type
            }

            #[inline(always)]
            fn plus(self, other: $type) -> $type {
                self + other
            }

            #[inline(always)]
            fn minus(self, other: $type) -> $type {
                self - other
            }

            #[inline(always)]
            fn times(self, other: $type) -> $type {
                self * other
            }

            #[inline(always)]
            fn over(self, other: $type) -> $type {
                self / other
            }

            #[inline(always)]
            fn root(self) -> $type {
                self.sqrt()
            }

            #[inline(always)]
            fn magnitude(self) -> $type {
                self.abs()
            }

            #[inline(always)]
            fn signed(self, sign: $type) -> $type {
                self.copysign(sign)
            }

            #[inline(always)]
            fn power_below(self) -> $type {
                $type::from_bits(self.to_bits() & $exponent)
            }
        }
    };
}
scalar!(f32, 0x7F80_0000, 1e-30);
scalar!(f64, 0x7FF0_0000_0000_0000, 1e-290);

/// One real number for each of `W` systems, on any processor.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Pack<R, const W: usize>([R; W]);

/// One complex number for each system.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Pair<P> {
    re: P,
    im: P,
}

/// One number, real or complex, for each of several systems.
pub(super) trait Number: Copy + 'static {
    /// Its parts, and magnitudes.
    type Real: Real;
    /// The number of one system.
    type Element: Copy + 'static;
    /// Systems side by side.
    const LANES: usize;
    const ZERO: Self;
    const ONE: Self;

    /// Writes the number of one system.
    ///
    /// # Safety
    /// `to` must lead to a pack that nobody else uses, and `lane` be below [`Number::LANES`].
    unsafe fn put(to: *mut Self, lane: usize, element: Self::Element);
    /// Reads the number of one system.
    ///
    /// # Safety
    /// `from` must lead to a pack, and `lane` be below [`Number::LANES`].
    unsafe fn get(from: *const Self, lane: usize) -> Self::Element;
    /// The number of one system in its parts.
    fn parts(element: Self::Element) -> (f64, f64);
    fn of(real: Self::Real) -> Self;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    /// `self + a · b`.
    fn plus_product(self, a: Self, b: Self) -> Self;
    /// `self - a · b`.
    fn minus_product(self, a: Self, b: Self) -> Self;
    fn scaled(self, factor: Self::Real) -> Self;
    fn conj(self) -> Self;
    fn real(self) -> Self::Real;
    /// The imaginary part.
    fn imaginary(self) -> Self::Real;
    /// The absolute value.
    fn magnitude(self) -> Self::Real;
    /// The number, but with an absolute value of 1; `magnitude` is what it has, and not 0.
    fn phase(self, magnitude: Self::Real) -> Self;
    /// |re|² + |im|².
    fn square(self) -> Self::Real;
    /// |re| + |im|, by which pivots are chosen as in LAPACK.
    fn size(self) -> Self::Real;
    fn reciprocal(self) -> Self;
    /// `self` where the mask is true, else `other`.
    fn or(self, mask: Mask<Self>, other: Self) -> Self;
}

/// Truth values of the systems of a number.
pub(super) type Mask<N> = <<N as Number>::Real as Real>::Truths;
/// The real number of one system of a number.
pub(super) type Part<N> = <<N as Number>::Real as Number>::Element;

/// Real numbers of several systems.
pub(super) trait Real: Number<Real = Self, Element: Scalar> {
    /// One truth value for each system.
    type Truths: Copy;

    fn splat(value: Self::Element) -> Self;
    fn div(self, other: Self) -> Self;
    fn root(self) -> Self;
    fn signed(self, sign: Self) -> Self;
    fn power_below(self) -> Self;
    /// `self > other`, false for NaN.
    fn above(self, other: Self) -> Self::Truths;
    fn equals(self, other: Self) -> Self::Truths;
    fn larger(self, other: Self) -> Self;
    /// Is it so in any of the first `lanes` systems?
    fn any(truths: Self::Truths, lanes: usize) -> bool;
    fn is(truths: Self::Truths, lane: usize) -> bool;
    fn and(a: Self::Truths, b: Self::Truths) -> Self::Truths;
    fn not(truths: Self::Truths) -> Self::Truths;
}

impl<R: Scalar, const W: usize> Pack<R, W> {
    #[inline(always)]
    fn map(self, f: impl Fn(R) -> R) -> Self {
        Pack(std::array::from_fn(|lane| f(self.0[lane])))
    }

    #[inline(always)]
    fn with(self, other: Self, f: impl Fn(R, R) -> R) -> Self {
        Pack(std::array::from_fn(|lane| f(self.0[lane], other.0[lane])))
    }
}

impl<R: Scalar, const W: usize> Number for Pack<R, W> {
    type Real = Self;
    type Element = R;
    const LANES: usize = W;
    const ZERO: Self = Pack([R::ZERO; W]);
    const ONE: Self = Pack([R::ONE; W]);

    #[inline(always)]
    unsafe fn put(to: *mut Self, lane: usize, element: R) {
        // SAFETY: the pack has this lane, as the caller says.
        unsafe { to.cast::<R>().add(lane).write(element) };
    }

    #[inline(always)]
    unsafe fn get(from: *const Self, lane: usize) -> R {
        // SAFETY: as above.
        unsafe { from.cast::<R>().add(lane).read() }
    }

    fn parts(element: R) -> (f64, f64) {
        (element.into(), 0.0)
    }

    #[inline(always)]
    fn of(real: Self) -> Self {
        real
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.with(other, R::plus)
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self.with(other, R::minus)
    }

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self.with(other, R::times)
    }

    #[inline(always)]
    fn plus_product(self, a: Self, b: Self) -> Self {
        self.add(a.mul(b))
    }

    #[inline(always)]
    fn minus_product(self, a: Self, b: Self) -> Self {
        self.sub(a.mul(b))
    }

    #[inline(always)]
    fn scaled(self, factor: Self) -> Self {
        self.mul(factor)
    }

    #[inline(always)]
    fn conj(self) -> Self {
        self
    }

    #[inline(always)]
    fn real(self) -> Self {
        self
    }

    #[inline(always)]
    fn imaginary(self) -> Self {
        Self::ZERO
    }

    #[inline(always)]
    fn magnitude(self) -> Self {
        self.map(R::magnitude)
    }

    #[inline(always)]
    fn phase(self, _: Self) -> Self {
        Self::ONE.signed(self)
    }

    #[inline(always)]
    fn square(self) -> Self {
        self.mul(self)
    }

    #[inline(always)]
    fn size(self) -> Self {
        self.map(R::magnitude)
    }

    #[inline(always)]
    fn reciprocal(self) -> Self {
        self.map(|value| R::ONE.over(value))
    }

    #[inline(always)]
    fn or(self, mask: [bool; W], other: Self) -> Self {
        Pack(std::array::from_fn(|lane| if mask[lane] { self.0[lane] } else { other.0[lane] }))
    }
}

impl<R: Scalar, const W: usize> Real for Pack<R, W> {
    type Truths = [bool; W];

    #[inline(always)]
    fn splat(value: R) -> Self {
        Pack([value; W])
    }

    #[inline(always)]
    fn div(self, other: Self) -> Self {
        self.with(other, R::over)
    }

    #[inline(always)]
    fn root(self) -> Self {
        self.map(R::root)
    }

    #[inline(always)]
    fn signed(self, sign: Self) -> Self {
        self.with(sign, R::signed)
    }

    #[inline(always)]
    fn power_below(self) -> Self {
        self.map(R::power_below)
    }

    #[inline(always)]
    fn above(self, other: Self) -> [bool; W] {
        std::array::from_fn(|lane| self.0[lane] > other.0[lane])
    }

    #[inline(always)]
    fn equals(self, other: Self) -> [bool; W] {
        std::array::from_fn(|lane| self.0[lane] == other.0[lane])
    }

    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        self.with(other, |a, b| if a > b { a } else { b })
    }

    #[inline(always)]
    fn any(truths: [bool; W], lanes: usize) -> bool {
        truths[..lanes].iter().fold(false, |any, &one| any | one)
    }

    #[inline(always)]
    fn is(truths: [bool; W], lane: usize) -> bool {
        truths[lane]
    }

    #[inline(always)]
    fn and(a: [bool; W], b: [bool; W]) -> [bool; W] {
        std::array::from_fn(|lane| a[lane] & b[lane])
    }

    #[inline(always)]
    fn not(truths: [bool; W]) -> [bool; W] {
        truths.map(|one| !one)
    }
}

impl<P: Real> Number for Pair<P> {
    type Real = P;
    type Element = Complex<P::Element>;
    const LANES: usize = P::LANES;
    const ZERO: Self = Pair { re: P::ZERO, im: P::ZERO };
    const ONE: Self = Pair { re: P::ONE, im: P::ZERO };

    #[inline(always)]
    unsafe fn put(to: *mut Self, lane: usize, element: Complex<P::Element>) {
        // SAFETY: both parts are packs with this lane, as the caller says.
        unsafe {
            P::put(&raw mut (*to).re, lane, element.re);
            P::put(&raw mut (*to).im, lane, element.im);
        }
    }

    #[inline(always)]
    unsafe fn get(from: *const Self, lane: usize) -> Complex<P::Element> {
        // SAFETY: as above.
        unsafe { Complex { re: P::get(&raw const (*from).re, lane), im: P::get(&raw const (*from).im, lane) } }
    }

    fn parts(element: Complex<P::Element>) -> (f64, f64) {
        (element.re.into(), element.im.into())
    }

    #[inline(always)]
    fn of(real: P) -> Self {
        Pair { re: real, im: P::ZERO }
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Pair { re: self.re.add(other.re), im: self.im.add(other.im) }
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Pair { re: self.re.sub(other.re), im: self.im.sub(other.im) }
    }

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Pair {
            re: self.re.mul(other.re).minus_product(self.im, other.im),
            im: self.re.mul(other.im).plus_product(self.im, other.re),
        }
    }

    #[inline(always)]
    fn plus_product(self, a: Self, b: Self) -> Self {
        Pair {
            re: self.re.plus_product(a.re, b.re).minus_product(a.im, b.im),
            im: self.im.plus_product(a.re, b.im).plus_product(a.im, b.re),
        }
    }

    #[inline(always)]
    fn minus_product(self, a: Self, b: Self) -> Self {
        Pair {
            re: self.re.minus_product(a.re, b.re).plus_product(a.im, b.im),
            im: self.im.minus_product(a.re, b.im).minus_product(a.im, b.re),
        }
    }

    #[inline(always)]
    fn scaled(self, factor: P) -> Self {
        Pair { re: self.re.mul(factor), im: self.im.mul(factor) }
    }

    #[inline(always)]
    fn conj(self) -> Self {
        Pair { re: self.re, im: P::ZERO.sub(self.im) }
    }

    #[inline(always)]
    fn real(self) -> P {
        self.re
    }

    #[inline(always)]
    fn imaginary(self) -> P {
        self.im
    }

    #[inline(always)]
    fn magnitude(self) -> P {
        self.square().root()
    }

    #[inline(always)]
    fn phase(self, magnitude: P) -> Self {
        self.scaled(magnitude.reciprocal())
    }

    #[inline(always)]
    fn square(self) -> P {
        self.re.mul(self.re).plus_product(self.im, self.im)
    }

    #[inline(always)]
    fn size(self) -> P {
        self.re.size().add(self.im.size())
    }

    #[inline(always)]
    fn reciprocal(self) -> Self {
        // Parts over the larger one, whose squares do not overflow.
        let scale = self.re.size().larger(self.im.size()).reciprocal();
        let unit = self.conj().scaled(scale);
        unit.scaled(scale.div(unit.square()))
    }

    #[inline(always)]
    fn or(self, mask: P::Truths, other: Self) -> Self {
        Pair { re: self.re.or(mask, other.re), im: self.im.or(mask, other.im) }
    }
}
