//! The records of a batch's tables as bytes, field by field in little-endian order.

use crate::batch::{
    Attribute, Base, BatchHeader, Block, Constant, Extension, Instr, MAX_OPERANDS, Operand, Origin, Rename, ViewRec,
};
use crate::opcode::Opcode;

/// Something with a fixed number of bytes.
pub(super) trait Record: Sized {
    /// The number of bytes.
    const SIZE: usize;
    /// Appends the bytes.
    fn put(&self, bytes: &mut Vec<u8>);
    /// Takes the record out of exactly [`Record::SIZE`] bytes.
    fn get(bytes: &[u8]) -> Self;
}

macro_rules! numbers {
    ($($type:ty),*) => {$(
        impl Record for $type {
            const SIZE: usize = size_of::<$type>();

            fn put(&self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }

            fn get(bytes: &[u8]) -> $type {
                let mut raw = [0; size_of::<$type>()];
                raw.copy_from_slice(bytes);
                <$type>::from_le_bytes(raw)
            }
        }
    )*};
}

numbers!(u8, u16, u32, u64, i64);

impl<R: Record + Copy + Default, const N: usize> Record for [R; N] {
    const SIZE: usize = N * R::SIZE;

    fn put(&self, bytes: &mut Vec<u8>) {
        self.iter().for_each(|record| record.put(bytes));
    }

    fn get(bytes: &[u8]) -> [R; N] {
        let mut records = [R::default(); N];
        for (record, bytes) in records.iter_mut().zip(bytes.chunks_exact(R::SIZE)) {
            *record = R::get(bytes);
        }
        records
    }
}

/// Records that wrap a number.
macro_rules! wrappers {
    ($($type:ident($number:ty)),*) => {$(
        impl Record for $type {
            const SIZE: usize = <$number>::SIZE;

            fn put(&self, bytes: &mut Vec<u8>) {
                self.0.put(bytes);
            }

            fn get(bytes: &[u8]) -> $type {
                $type(<$number>::get(bytes))
            }
        }
    )*};
}

wrappers!(Opcode(u16), Operand(u32));

/// Records with fields.
macro_rules! records {
    ($($type:ident { $($field:ident: $field_type:ty),* $(,)? })*) => {$(
        impl Record for $type {
            const SIZE: usize = 0 $(+ <$field_type>::SIZE)*;

            fn put(&self, bytes: &mut Vec<u8>) {
                let $type { $($field),* } = self;
                $($field.put(bytes);)*
            }

            fn get(bytes: &[u8]) -> $type {
                let mut rest = bytes;
                $(
                    let (field, after) = rest.split_at(<$field_type>::SIZE);
                    let $field = <$field_type>::get(field);
                    rest = after;
                )*
                debug_assert!(rest.is_empty());
                $type { $($field),* }
            }
        }
    )*};
}

records! {
    Base { id: u64, len: i64, row_hint: i64, dtype: u8, reserved: [u8; 3], flags: u32 }
    ViewRec { base: u32, rank: u32, start: i64, len: i64, dims: u32, reserved: u32 }
    Instr {
        opcode: Opcode,
        param: u16,
        count: u8,
        outputs: u8,
        order: u16,
        origin: u32,
        operands: [Operand; MAX_OPERANDS],
        attributes: u32,
    }
    Constant { bits: [u64; 2], dtype: u8, reserved: [u8; 7] }
    Origin { file: u32, file_len: u32, line: u32 }
    Extension { opcode: Opcode, reserved: u16, name: u32, name_len: u32 }
    Block {
        instrs: u32,
        instr_count: u32,
        contracted: u32,
        contracted_count: u32,
        renames: u32,
        rename_count: u32,
    }
    Attribute { value: i64, name: u32, name_len: u32 }
    BatchHeader { signature: [u64; 2], seen: u32, level: u32, slot_count: u32, reserved: u32 }
    Rename { base: u32, uncovered: u32, uncovered_count: u32, alias: u32, alias_view: u32 }
}
