//! The structure of a batch: its tables without the identity of arrays, the values of constants and source locations.
//! It is written down once, where the batch is recorded, and goes with the batch, so that caches below need not look at
//! the tables.
//!
//! Two batches of equal structure have the same views, dimensions, instructions and flags at the same places of their
//! tables: what was made of one, be it another batch or a partition, fits the other.

use crate::batch::{Batch, BatchRef, Instr};
use crate::hash::hash_words;

/// A structure, borrowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Structure<'a> {
    /// A hash of the words.
    pub hash: u128,
    /// The structure in words.
    pub words: &'a [u64],
}

/// A structure, owned, with memory that is used again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StructureKey {
    hash: u128,
    words: Vec<u64>,
}

impl StructureKey {
    /// Borrows it.
    #[inline]
    pub fn as_ref(&self) -> Structure<'_> {
        Structure { hash: self.hash, words: &self.words }
    }

    /// Takes over a structure that was written down before.
    pub fn copy_from(&mut self, structure: Structure<'_>) {
        self.hash = structure.hash;
        self.words.clear();
        self.words.extend_from_slice(structure.words);
    }

    /// Writes down the structure of a batch. Its partition is no part of it.
    pub fn write(&mut self, batch: &BatchRef<'_>) {
        let words = &mut self.words;
        words.clear();
        words.reserve(8 + 5 * batch.instrs.len() + 2 * batch.views.len() + batch.dims.len() + 3 * batch.bases.len());
        words.push(batch.instrs.len() as u64 | (batch.views.len() as u64) << 32);
        words.push(batch.bases.len() as u64 | (batch.constants.len() as u64) << 32);
        words.push(batch.extensions.len() as u64 | (batch.attributes.len() as u64) << 32);
        for instr in batch.instrs {
            words.push(head(instr));
            if instr.opcode.is_extension() {
                words.push(u64::from(instr.attributes));
            }
            for pair in instr.operands().chunks(2) {
                let second = pair.get(1).map_or(0, |operand| operand.0);
                words.push(u64::from(pair[0].0) | u64::from(second) << 32);
            }
        }
        for view in batch.views {
            words.push(u64::from(view.base) | u64::from(view.rank) << 32);
            words.push(view.start as u64);
            let dims = &batch.dims[view.dims as usize..][..2 * view.rank as usize];
            words.extend(dims.iter().map(|&dim| dim as u64));
        }
        for base in batch.bases {
            words.extend([u64::from(base.dtype) | u64::from(base.flags) << 32, base.len as u64, base.row_hint as u64]);
        }
        for constants in batch.constants.chunks(8) {
            let types = constants.iter().rev().fold(0, |word, constant| word << 8 | u64::from(constant.dtype));
            words.push(types);
        }
        for extension in batch.extensions {
            words.push(u64::from(extension.opcode.0) | u64::from(extension.name_len) << 32);
            let name = batch.extension_name(extension.opcode).unwrap_or_default();
            push_text(words, name);
        }
        for attribute in batch.attributes {
            words.extend([attribute.value as u64, u64::from(attribute.name_len)]);
            push_text(words, batch.attribute_name(attribute).unwrap_or_default());
        }
        self.hash = hash_words(words);
    }
}

/// All of an instruction but its operands and its place in the program.
#[inline(always)]
fn head(instr: &Instr) -> u64 {
    u64::from(instr.opcode.0)
        | u64::from(instr.param) << 16
        | u64::from(instr.count) << 32
        | u64::from(instr.outputs) << 40
        | u64::from(instr.order) << 48
}

/// Appends the bytes of a text, filled up to whole words.
fn push_text(words: &mut Vec<u64>, text: &str) {
    for chunk in text.as_bytes().chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        words.push(u64::from_le_bytes(word));
    }
}

impl Batch {
    /// Writes the structure down in the batch, see [`Batch::key`]. After a change of the tables, call this again, or
    /// [`Batch::forget_structure`].
    pub fn sign(&mut self) {
        let mut structure = StructureKey { hash: 0, words: std::mem::take(&mut self.key) };
        structure.write(&self.as_ref());
        self.header.signature = [structure.hash as u64, (structure.hash >> 64) as u64];
        self.key = structure.words;
    }
}

impl<'a> BatchRef<'a> {
    /// The structure that the batch carries, if it carries one.
    #[inline]
    pub fn structure(&self) -> Option<Structure<'a>> {
        let [low, high] = self.header.signature;
        let hash = u128::from(high) << 64 | u128::from(low);
        (!self.key.is_empty()).then_some(Structure { hash, words: self.key })
    }

    /// The structure: as the batch brings it, else written into `memory`.
    #[inline]
    pub fn signed<'b>(&self, memory: &'b mut StructureKey) -> Structure<'b>
    where
        'a: 'b,
    {
        if let Some(structure) = self.structure() {
            return structure;
        }
        memory.write(self);
        memory.as_ref()
    }

    /// The batch without what was written down about it, for tables that may have been changed since.
    #[inline]
    pub fn unsigned(self) -> BatchRef<'a> {
        let mut batch = self;
        batch.key = &[];
        batch.header.signature = [0; 2];
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{Base, Batch, Constant, Extension, Operand, base_flags};
    use crate::{DType, Opcode, View};

    /// c = a op b + number, with a source line.
    fn program(opcode: Opcode, first_id: u64, number: f64) -> Batch {
        let mut batch = Batch::default();
        let view = View::contiguous(&[10]).unwrap();
        let [c, a, b] = [0, 1, 2].map(|at| {
            let base = batch.push_base(Base::new(first_id + at, DType::F64, 10));
            Operand::view(batch.push_view(base, &view))
        });
        let number = Operand::constant(batch.push_constant(Constant::from_value(number)));
        batch.push_instr(Instr::new(opcode, &[c, a, b]));
        batch.push_instr(Instr { origin: first_id as u32, ..Instr::new(Opcode::Add, &[c, c, number]) });
        batch
    }

    fn structure(batch: &Batch) -> StructureKey {
        let mut key = StructureKey::default();
        key.write(&batch.as_ref());
        key
    }

    #[test]
    fn identities_values_and_lines_are_left_out() {
        let first = program(Opcode::Multiply, 1, 1.5);
        let second = program(Opcode::Multiply, 7, 2.5);
        assert_eq!(structure(&first), structure(&second));
        assert_ne!(structure(&first), structure(&program(Opcode::Divide, 1, 1.5)));
    }

    #[test]
    fn everything_else_is_part_of_it() {
        let first = program(Opcode::Multiply, 1, 1.5);
        let mut seen = vec![structure(&first)];
        let mut check = |change: &dyn Fn(&mut Batch)| {
            let mut changed = first.clone();
            change(&mut changed);
            let structure = structure(&changed);
            assert!(!seen.contains(&structure), "{changed:?}");
            seen.push(structure);
        };
        check(&|batch| batch.bases[2].len = 11);
        check(&|batch| batch.bases[1].flags = base_flags::PINNED);
        check(&|batch| batch.bases[0].row_hint = 5);
        check(&|batch| batch.constants[0].dtype = DType::F32 as u8);
        check(&|batch| batch.instrs[0].param = 2);
        check(&|batch| batch.instrs[0].operands[2] = Operand::view(1));
        check(&|batch| batch.dims[0] = 9);
        check(&|batch| batch.views[2].start = 1);
        for name in ["fft", "gemm"] {
            check(&|batch| {
                let (name, name_len) = batch.push_string(name);
                let opcode = Opcode(Opcode::FIRST_EXTENSION);
                batch.extensions.push(Extension { opcode, reserved: 0, name, name_len });
            });
        }
    }

    #[test]
    fn attributes_are_part_of_it() {
        let call = |attributes: &[(&str, i64)]| {
            let mut batch = program(Opcode(Opcode::FIRST_EXTENSION), 1, 1.5);
            batch.instrs.truncate(1);
            attributes.iter().for_each(|&(name, value)| batch.push_attribute(name, value));
            structure(&batch)
        };
        let all =
            [call(&[]), call(&[("axis", 0)]), call(&[("axis", 1)]), call(&[("axes", 1)]), call(&[("a", 1), ("b", 1)])];
        for (at, one) in all.iter().enumerate() {
            assert!(!all[..at].contains(one), "{at}");
        }
    }

    #[test]
    fn a_batch_carries_it_until_it_is_cleared() {
        let mut batch = program(Opcode::Multiply, 1, 1.5);
        let mut memory = StructureKey::default();
        assert_eq!(batch.as_ref().structure(), None);
        let computed = batch.as_ref().signed(&mut memory).hash;
        batch.sign();
        assert_eq!(batch.as_ref().structure().unwrap().hash, computed);
        assert_eq!(batch.as_ref().to_owned().as_ref().structure(), batch.as_ref().structure());
        assert_eq!(batch.as_ref().unsigned().structure(), None);
        batch.forget_structure();
        assert_eq!(batch.as_ref().structure(), None);
    }
}
