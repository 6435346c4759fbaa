//! Values of the code and their types: an element of some bits, alone or in each lane of a vector.

use bh_bytecode::DType;
use inkwell::AddressSpace;
use inkwell::context::Context;
use inkwell::types::{BasicType, BasicTypeEnum};
use inkwell::values::{BasicValueEnum, IntValue, PhiValue, PointerValue, VectorValue};

/// The elements of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    Bit,
    I8,
    I16,
    I32,
    I64,
    I128,
    F32,
    F64,
    Pointer,
}

impl Element {
    /// The form in registers of a type's elements, or of the parts of a complex one: truth values are bits.
    pub(crate) fn of(dtype: DType) -> Element {
        match dtype.real_part() {
            DType::Bool => Element::Bit,
            part => Element::in_memory(part),
        }
    }

    /// Their form in memory: truth values are bytes.
    pub(crate) fn in_memory(dtype: DType) -> Element {
        match dtype.real_part() {
            DType::I16 | DType::U16 => Element::I16,
            DType::I32 | DType::U32 => Element::I32,
            DType::I64 | DType::U64 => Element::I64,
            DType::F32 => Element::F32,
            DType::F64 => Element::F64,
            _ => Element::I8,
        }
    }

    /// The integer of `bits` bits.
    pub(crate) fn integer(bits: usize) -> Element {
        match bits {
            8 => Element::I8,
            16 => Element::I16,
            32 => Element::I32,
            _ => Element::I64,
        }
    }

    pub(crate) fn is_float(self) -> bool {
        matches!(self, Element::F32 | Element::F64)
    }

    pub(super) fn bits(self) -> u32 {
        match self {
            Element::Bit => 1,
            Element::I8 => 8,
            Element::I16 => 16,
            Element::I32 | Element::F32 => 32,
            Element::I64 | Element::F64 | Element::Pointer => 64,
            Element::I128 => 128,
        }
    }

    pub(super) fn llvm(self, context: &Context) -> BasicTypeEnum<'_> {
        match self {
            Element::Bit => context.bool_type().into(),
            Element::I8 => context.i8_type().into(),
            Element::I16 => context.i16_type().into(),
            Element::I32 => context.i32_type().into(),
            Element::I64 => context.i64_type().into(),
            Element::I128 => context.i128_type().into(),
            Element::F32 => context.f32_type().into(),
            Element::F64 => context.f64_type().into(),
            Element::Pointer => context.ptr_type(AddressSpace::default()).into(),
        }
    }
}

/// The numbers that an element is made of.
pub(crate) fn parts(dtype: DType) -> u16 {
    if dtype.is_complex() { 2 } else { 1 }
}

/// The type of a value: an element, and the lanes of its vector; 0 if it is in none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) element: Element,
    pub(crate) lanes: u16,
}

impl Kind {
    pub(crate) const BIT: Kind = Kind::scalar(Element::Bit);
    pub(crate) const I32: Kind = Kind::scalar(Element::I32);
    pub(crate) const I64: Kind = Kind::scalar(Element::I64);
    pub(crate) const POINTER: Kind = Kind::scalar(Element::Pointer);

    pub(crate) const fn scalar(element: Element) -> Kind {
        Kind { element, lanes: 0 }
    }

    pub(crate) const fn vector(element: Element, lanes: u16) -> Kind {
        Kind { element, lanes }
    }

    /// A vector of `width` elements of a type in registers.
    pub(crate) fn registers(dtype: DType, width: u16) -> Kind {
        Kind::vector(Element::of(dtype), width * parts(dtype))
    }

    /// Such a vector in memory.
    pub(crate) fn memory(dtype: DType, width: u16) -> Kind {
        Kind::vector(Element::in_memory(dtype), width * parts(dtype))
    }

    /// One element outside of vectors, as it is in memory; a complex one is a vector of its parts.
    pub(crate) fn single(dtype: DType) -> Kind {
        if dtype.is_complex() { Kind::memory(dtype, 1) } else { Kind::scalar(Element::in_memory(dtype)) }
    }

    /// As many lanes of another element.
    pub(crate) fn with(self, element: Element) -> Kind {
        Kind { element, ..self }
    }

    /// Its name in those of intrinsic functions.
    pub(super) fn suffix(self) -> String {
        let element = match self.element {
            Element::Pointer => "p0".to_owned(),
            Element::F32 | Element::F64 => format!("f{}", self.element.bits()),
            _ => format!("i{}", self.element.bits()),
        };
        if self.lanes == 0 { element } else { format!("v{}{element}", self.lanes) }
    }

    pub(super) fn llvm(self, context: &Context) -> BasicTypeEnum<'_> {
        let element = self.element.llvm(context);
        match (self.lanes, element) {
            (0, element) => element,
            (lanes, BasicTypeEnum::IntType(element)) => element.vec_type(lanes.into()).into(),
            (lanes, BasicTypeEnum::FloatType(element)) => element.vec_type(lanes.into()).into(),
            (lanes, BasicTypeEnum::PointerType(element)) => element.vec_type(lanes.into()).into(),
            (_, other) => other.as_basic_type_enum(),
        }
    }
}

/// A value of the code.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Value<'c> {
    pub(super) raw: BasicValueEnum<'c>,
    pub(crate) kind: Kind,
}

impl<'c> Value<'c> {
    /// The lanes of a vector.
    pub(crate) fn lanes(self) -> u16 {
        self.kind.lanes
    }

    pub(super) fn vector(self) -> VectorValue<'c> {
        self.raw.into_vector_value()
    }

    pub(super) fn integer(self) -> IntValue<'c> {
        self.raw.into_int_value()
    }

    pub(super) fn pointer(self) -> PointerValue<'c> {
        self.raw.into_pointer_value()
    }
}

/// A value that depends on the block from which control comes.
#[derive(Clone, Copy)]
pub(crate) struct Phi<'c> {
    pub(super) raw: PhiValue<'c>,
    pub(crate) value: Value<'c>,
}

/// A number in the code.
#[derive(Clone, Copy)]
pub(crate) enum Number {
    Integer(i64),
    Float(f64),
}

impl From<f64> for Number {
    fn from(number: f64) -> Number {
        Number::Float(number)
    }
}

impl From<i64> for Number {
    fn from(number: i64) -> Number {
        Number::Integer(number)
    }
}
