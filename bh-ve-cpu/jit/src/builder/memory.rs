//! Addresses, loads and stores.

use super::{Builder, Element, Kind, Value, built};
use bh_bytecode::DType;
use inkwell::types::{BasicType, BasicTypeEnum};
use inkwell::values::{BasicValue, BasicValueEnum, InstructionOpcode, IntValue};

impl<'c> Builder<'c> {
    /// The type of an element in memory. Complex numbers are aligned as their parts are.
    fn in_memory(&self, dtype: DType) -> BasicTypeEnum<'c> {
        let part = Element::in_memory(dtype).llvm(self.context);
        if dtype.is_complex() { part.array_type(2).into() } else { part }
    }

    /// The address of an element, counted from an address.
    pub(crate) fn element(&self, pointer: Value<'c>, dtype: DType, index: Value<'c>) -> Value<'c> {
        self.address(self.in_memory(dtype), pointer, index)
    }

    /// The address of a byte.
    pub(crate) fn byte(&self, pointer: Value<'c>, distance: Value<'c>) -> Value<'c> {
        self.address(self.context.i8_type().into(), pointer, distance)
    }

    /// The address of a number, of numbers of a type.
    pub(crate) fn number(&self, pointer: Value<'c>, element: Element, index: Value<'c>) -> Value<'c> {
        self.address(element.llvm(self.context), pointer, index)
    }

    fn address(&self, of: BasicTypeEnum<'c>, pointer: Value<'c>, index: Value<'c>) -> Value<'c> {
        // SAFETY: the index is an integer, and the elements have a size.
        let raw = unsafe { self.instructions.build_gep(of, pointer.pointer(), &[index.integer()], "") };
        self.made(built(raw), Kind::POINTER)
    }

    /// The addresses of bytes in vectors of distances.
    pub(crate) fn bytes(&self, pointer: Value<'c>, distances: Value<'c>) -> Value<'c> {
        let of = self.context.i8_type();
        // SAFETY: LLVM takes any vector of integers for an index. It is asked with the wrapper for integers, as there is none
        // for vectors, and the result is seen as the vector that it is.
        let raw = unsafe {
            let index = IntValue::new(inkwell::values::AsValueRef::as_value_ref(&distances.raw));
            let addresses = built(self.instructions.build_gep(of, pointer.pointer(), &[index], ""));
            BasicValueEnum::new(inkwell::values::AsValueRef::as_value_ref(&addresses))
        };
        self.made(raw, distances.kind.with(Element::Pointer))
    }

    /// An address as a number.
    pub(crate) fn address_of(&self, pointer: Value<'c>) -> Value<'c> {
        let kind = self.context.i64_type();
        self.made(built(self.instructions.build_cast(InstructionOpcode::PtrToInt, pointer.raw, kind, "")), Kind::I64)
    }

    pub(crate) fn load(&self, kind: Kind, pointer: Value<'c>, align: usize) -> Value<'c> {
        let raw = built(self.instructions.build_load(kind.llvm(self.context), pointer.pointer(), ""));
        let load = raw.as_instruction_value().expect("a load is an instruction");
        load.set_alignment(align as u32).expect("it is a power of two");
        self.made(raw, kind)
    }

    pub(crate) fn store(&self, value: Value<'c>, pointer: Value<'c>, align: usize) {
        let store = built(self.instructions.build_store(pointer.pointer(), value.raw));
        store.set_alignment(align as u32).expect("it is a power of two");
    }

    /// A store that bypasses the caches.
    pub(crate) fn store_non_temporal(&self, value: Value<'c>, pointer: Value<'c>, align: usize) {
        let store = built(self.instructions.build_store(pointer.pointer(), value.raw));
        store.set_alignment(align as u32).expect("it is a power of two");
        let one = self.context.i32_type().const_int(1, false);
        self.annotate(store, "nontemporal", self.context.metadata_node(&[one.into()]));
    }

    /// Reads the lanes that a mask says; the others are zero.
    pub(crate) fn load_masked(&self, kind: Kind, pointer: Value<'c>, align: usize, mask: Value<'c>) -> Value<'c> {
        let (name, align) = (format!("llvm.masked.load.{}.p0", kind.suffix()), self.constant(Kind::I32, align as i64));
        self.call(&name, kind, &[pointer, align, mask, self.zero(kind)])
    }

    pub(crate) fn store_masked(&self, value: Value<'c>, pointer: Value<'c>, align: usize, mask: Value<'c>) {
        let name = format!("llvm.masked.store.{}.p0", value.kind.suffix());
        self.call_void(&name, &[value, pointer, self.constant(Kind::I32, align as i64), mask]);
    }

    /// Reads lanes that lie anywhere.
    pub(crate) fn gather(&self, kind: Kind, pointers: Value<'c>, align: usize, mask: Value<'c>) -> Value<'c> {
        let name = format!("llvm.masked.gather.{}.v{}p0", kind.suffix(), kind.lanes);
        self.call(&name, kind, &[pointers, self.constant(Kind::I32, align as i64), mask, self.zero(kind)])
    }

    pub(crate) fn scatter(&self, value: Value<'c>, pointers: Value<'c>, align: usize, mask: Value<'c>) {
        let name = format!("llvm.masked.scatter.{}.v{}p0", value.kind.suffix(), value.lanes());
        self.call_void(&name, &[value, pointers, self.constant(Kind::I32, align as i64), mask]);
    }
}
