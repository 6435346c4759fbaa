//! Constants, and the lanes of vectors.

use super::{Builder, Element, Kind, Number, Value, built};
use inkwell::types::{BasicTypeEnum, VectorType};
use inkwell::values::BasicValueEnum;
use std::ops::Range;

/// A lane of a shuffle that may be anything.
const ANYTHING: u16 = u16::MAX;

impl<'c> Builder<'c> {
    /// A 64-bit integer.
    pub(crate) fn index(&self, number: i64) -> Value<'c> {
        self.constant(Kind::I64, number)
    }

    /// A number, in all lanes.
    pub(crate) fn constant(&self, kind: Kind, number: impl Into<Number>) -> Value<'c> {
        let number = number.into();
        let raw: BasicValueEnum = match (kind.element.llvm(self.context), number) {
            (BasicTypeEnum::IntType(kind), Number::Integer(number)) => kind.const_int(number as u64, true).into(),
            (BasicTypeEnum::IntType(kind), Number::Float(number)) => kind.const_int(number as i64 as u64, true).into(),
            (BasicTypeEnum::FloatType(kind), Number::Float(number)) => kind.const_float(number).into(),
            (BasicTypeEnum::FloatType(kind), Number::Integer(number)) => kind.const_float(number as f64).into(),
            (other, _) => other.const_zero(),
        };
        let raw = match kind.lanes {
            0 => raw,
            lanes => VectorType::const_vector(&vec![raw; lanes.into()]).into(),
        };
        Value { raw, kind }
    }

    pub(crate) fn zero(&self, kind: Kind) -> Value<'c> {
        Value { raw: kind.llvm(self.context).const_zero(), kind }
    }

    /// A value that may be anything.
    pub(crate) fn poison(&self, kind: Kind) -> Value<'c> {
        let raw = match kind.llvm(self.context) {
            BasicTypeEnum::VectorType(kind) => kind.get_poison().into(),
            BasicTypeEnum::IntType(kind) => kind.get_poison().into(),
            BasicTypeEnum::FloatType(kind) => kind.get_poison().into(),
            other => other.const_zero(),
        };
        Value { raw, kind }
    }

    /// Integers, one in each lane.
    pub(crate) fn numbers(&self, element: Element, numbers: impl IntoIterator<Item = i64>) -> Value<'c> {
        let numbers: Vec<_> =
            numbers.into_iter().map(|number| self.constant(Kind::scalar(element), number).raw).collect();
        let kind = Kind::vector(element, numbers.len() as u16);
        Value { raw: VectorType::const_vector(&numbers).into(), kind }
    }

    /// A number in all lanes, as a value of its own.
    pub(crate) fn splat(&self, kind: Kind, number: impl Into<Number>) -> Value<'c> {
        self.freeze(self.constant(kind, number))
    }

    /// A scalar in all lanes.
    pub(crate) fn broadcast(&self, scalar: Value<'c>, lanes: u16) -> Value<'c> {
        let inserted = self.insert(self.poison(Kind::vector(scalar.kind.element, lanes)), scalar, self.index(0));
        self.shuffle(inserted, (0..lanes).map(|_| 0))
    }

    /// A vector with another value in the lane of a number.
    pub(crate) fn insert(&self, vector: Value<'c>, one: Value<'c>, lane: Value<'c>) -> Value<'c> {
        let raw = self.instructions.build_insert_element(vector.vector(), one.raw, lane.integer(), "");
        self.made(built(raw), vector.kind)
    }

    /// The lane of a number.
    pub(crate) fn extract(&self, vector: Value<'c>, lane: Value<'c>) -> Value<'c> {
        let raw = self.instructions.build_extract_element(vector.vector(), lane.integer(), "");
        self.made(built(raw), Kind::scalar(vector.kind.element))
    }

    /// These lanes of a vector.
    pub(crate) fn shuffle(&self, vector: Value<'c>, order: impl IntoIterator<Item = u16>) -> Value<'c> {
        self.shuffle_two(vector, self.poison(vector.kind), order.into_iter().map(Some))
    }

    /// These lanes of two vectors, one after the other; where there is none, it may be anything.
    pub(crate) fn shuffle_two(
        &self,
        a: Value<'c>,
        b: Value<'c>,
        order: impl IntoIterator<Item = Option<u16>>,
    ) -> Value<'c> {
        let integer = self.context.i32_type();
        let lane = |lane: Option<u16>| match lane.unwrap_or(ANYTHING) {
            ANYTHING => integer.get_poison(),
            lane => integer.const_int(lane.into(), false),
        };
        let order: Vec<_> = order.into_iter().map(lane).collect();
        let raw = self.instructions.build_shuffle_vector(a.vector(), b.vector(), VectorType::const_vector(&order), "");
        self.made(built(raw), Kind { lanes: order.len() as u16, ..a.kind })
    }

    /// Some neighbouring lanes of a vector.
    pub(crate) fn part(&self, vector: Value<'c>, of: Range<u16>) -> Value<'c> {
        self.shuffle(vector, of)
    }

    /// Two vectors, one after the other, as one.
    pub(crate) fn concatenate(&self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.shuffle_two(a, b, (0..2 * a.lanes()).map(Some))
    }

    /// Vectors one after the other in one.
    pub(crate) fn join(&self, parts: &[Value<'c>]) -> Value<'c> {
        let (mut joined, width) = (parts[0], parts[0].lanes());
        for (begin, part) in (width..).step_by(width.into()).zip(&parts[1..]) {
            // Both operands of a shuffle have one width: the new part is widened first.
            let wide = self.shuffle(*part, (0..begin).map(|lane| lane % width));
            joined = self.shuffle_two(joined, wide, (0..begin + width).map(Some));
        }
        joined
    }

    /// Applies a function of eight lanes to vectors: one part after the other, put together again.
    pub(crate) fn by_eights<const N: usize>(
        &self,
        operands: [Value<'c>; N],
        eight: impl Fn([Value<'c>; N]) -> Value<'c>,
    ) -> Value<'c> {
        let begins = (0..operands[0].lanes()).step_by(8);
        let part = |begin| eight(operands.map(|operand| self.part(operand, begin..begin + 8)));
        self.join(&begins.map(part).collect::<Vec<_>>())
    }
}
