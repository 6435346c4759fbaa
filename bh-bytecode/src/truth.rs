//! The elements of boolean arrays.

use crate::dtype::DType;
use crate::element::Element;
use crate::scalar::{Arithmetic, Bits, Classify, Ordered};
use std::cmp::Ordering;
use std::fmt;
use std::ops::{BitAnd, BitOr, BitXor, Not};

/// A truth value in memory: the byte 0 is false, and every other byte is true.
///
/// Memory that programs share with other libraries may hold any byte, and a Rust `bool` of another byte than 0 or 1 is
/// undefined behaviour. So the elements of boolean arrays have this type wherever they are read. Operations give the bytes
/// 0 and 1; copies may keep the byte.
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
pub struct Truth(u8);

impl Truth {
    /// False.
    pub const FALSE: Truth = Truth(0);
    /// True.
    pub const TRUE: Truth = Truth(1);

    /// Is it true?
    #[inline(always)]
    pub const fn get(self) -> bool {
        self.0 != 0
    }
}

impl From<bool> for Truth {
    #[inline(always)]
    fn from(value: bool) -> Truth {
        Truth(value as u8)
    }
}

impl From<Truth> for bool {
    #[inline(always)]
    fn from(value: Truth) -> bool {
        value.get()
    }
}

impl fmt::Debug for Truth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

impl PartialEq for Truth {
    #[inline(always)]
    fn eq(&self, other: &Truth) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Truth {}

impl PartialOrd for Truth {
    #[inline(always)]
    fn partial_cmp(&self, other: &Truth) -> Option<Ordering> {
        Some(self.cmp(other))
    }

    // The four comparisons by themselves become vector instructions, which the order of `cmp` does not.
    #[inline(always)]
    fn lt(&self, other: &Truth) -> bool {
        !self.get() & other.get()
    }

    #[inline(always)]
    fn le(&self, other: &Truth) -> bool {
        !self.get() | other.get()
    }

    #[inline(always)]
    fn gt(&self, other: &Truth) -> bool {
        self.get() & !other.get()
    }

    #[inline(always)]
    fn ge(&self, other: &Truth) -> bool {
        self.get() | !other.get()
    }
}

impl Ord for Truth {
    #[inline(always)]
    fn cmp(&self, other: &Truth) -> Ordering {
        self.get().cmp(&other.get())
    }
}

impl Not for Truth {
    type Output = Truth;

    #[inline(always)]
    fn not(self) -> Truth {
        Truth::from(!self.get())
    }
}

impl BitAnd for Truth {
    type Output = Truth;

    #[inline(always)]
    fn bitand(self, other: Truth) -> Truth {
        Truth::from(self.get() & other.get())
    }
}

impl BitOr for Truth {
    type Output = Truth;

    #[inline(always)]
    fn bitor(self, other: Truth) -> Truth {
        Truth::from(self.0 | other.0 != 0)
    }
}

impl BitXor for Truth {
    type Output = Truth;

    #[inline(always)]
    fn bitxor(self, other: Truth) -> Truth {
        Truth::from(self.get() != other.get())
    }
}

impl Element for Truth {
    const DTYPE: DType = DType::Bool;

    #[inline(always)]
    fn read(bytes: &[u8]) -> Truth {
        Truth(bytes[0])
    }

    #[inline(always)]
    fn write(self, bytes: &mut [u8]) {
        bytes[0] = u8::from(self.get());
    }
}

impl Arithmetic for Truth {
    const ZERO: Truth = Truth::FALSE;
    const ONE: Truth = Truth::TRUE;

    #[inline(always)]
    fn add(self, other: Truth) -> Truth {
        self | other
    }

    #[inline(always)]
    fn multiply(self, other: Truth) -> Truth {
        self & other
    }
}

impl Ordered for Truth {
    const HIGHEST: Truth = Truth::TRUE;
    const LOWEST: Truth = Truth::FALSE;

    #[inline(always)]
    fn maximum(self, other: Truth) -> Truth {
        self | other
    }

    #[inline(always)]
    fn minimum(self, other: Truth) -> Truth {
        self & other
    }
}

impl Bits for Truth {
    const ALL_ONES: Truth = Truth::TRUE;

    #[inline(always)]
    fn bit_and(self, other: Truth) -> Truth {
        self & other
    }

    #[inline(always)]
    fn bit_or(self, other: Truth) -> Truth {
        self | other
    }

    #[inline(always)]
    fn bit_xor(self, other: Truth) -> Truth {
        self ^ other
    }

    #[inline(always)]
    fn invert(self) -> Truth {
        !self
    }
}

impl Classify for Truth {
    #[inline(always)]
    fn isnan(self) -> bool {
        false
    }

    #[inline(always)]
    fn isinf(self) -> bool {
        false
    }

    #[inline(always)]
    fn isfinite(self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::CastFrom;

    #[test]
    fn every_byte_but_0_is_the_same_truth() {
        for (first, second) in (0..=255u8).flat_map(|a| (0..=255u8).map(move |b| (a, b))) {
            let (a, b) = (Truth::read(&[first]), Truth::read(&[second]));
            let (p, q) = (first != 0, second != 0);
            let byte = |value: Truth| value.0;
            assert_eq!([a < b, a <= b, a > b, a >= b, a == b], [!p & q, !p | q, p & !q, p | !q, p == q]);
            assert_eq!([a & b, a | b, a ^ b, !a].map(byte), [p & q, p | q, p ^ q, !p].map(u8::from));
            assert_eq!(
                [a.maximum(b), a.minimum(b), a.add(b), a.multiply(b)].map(byte),
                [p | q, p & q, p | q, p & q].map(u8::from)
            );
            assert_eq!((u8::cast_from(a), f64::cast_from(a), Truth::cast_from(a).0), (p.into(), p.into(), p.into()));
            let mut stored = [7];
            a.write(&mut stored);
            assert_eq!(stored, [u8::from(p)]);
        }
    }
}
