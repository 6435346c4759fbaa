//! The structural signature of a batch: what caches of partitions, rewritten batches and plans are keyed on.
//!
//! Bases, views and constants are numbered in the order of their first use, so that batches which differ only in the
//! identity of their arrays have one signature. Values of constants and source locations are left out.
//! The key is self-delimiting: each instruction is followed by what it uses for the first time.

use crate::batch::{BatchRef, Constant, Instr, MAX_OPERANDS, NO_BASE, Operand};
use crate::complex::c128;
use crate::dtype::DType;
use crate::hash::hash_words;

/// What a key holds besides the structure; bits that may be combined.
pub mod parts {
    /// The structure alone.
    pub const STRUCTURE: u8 = 0;
    /// The flags of bases.
    pub const FLAGS: u8 = 1;
    /// The row hints of bases.
    pub const ROW_HINTS: u8 = 2;
    /// The [classes](super::ConstantClass) of constants.
    pub const CONSTANT_CLASSES: u8 = 4;
}

/// What rewriting rules test of a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConstantClass {
    /// A whole number of small magnitude; its zero is not negative.
    Integer(i8),
    /// Negative zero.
    NegativeZero,
    /// Anything else.
    Other,
}

impl ConstantClass {
    /// The largest magnitude of a small whole number.
    pub const LARGEST: i8 = 16;

    /// The class of a constant. A complex one is a whole number only if its imaginary part is positive zero.
    pub fn of(constant: &Constant) -> ConstantClass {
        let value = if constant.dtype().is_complex() {
            let value: c128 = constant.cast(DType::C128).value().unwrap_or_default();
            if value.im.to_bits() != 0 {
                return ConstantClass::Other;
            }
            value.re
        } else {
            constant.to::<f64>()
        };
        if value == 0.0 && value.is_sign_negative() {
            ConstantClass::NegativeZero
        } else if value.fract() == 0.0 && value.abs() <= Self::LARGEST as f64 {
            ConstantClass::Integer(value as i8)
        } else {
            ConstantClass::Other
        }
    }

    /// A number for keys.
    pub fn code(self) -> u64 {
        match self {
            ConstantClass::Integer(value) => value as u8 as u64,
            ConstantClass::NegativeZero => 0x100,
            ConstantClass::Other => 0x101,
        }
    }
}

/// The number of a table entry that no instruction has used yet.
const UNSEEN: u32 = u32::MAX;

/// Numbers table entries in the order of their first use.
#[derive(Default)]
struct Numbering {
    /// The number of each entry, or [`UNSEEN`].
    numbers: Vec<u32>,
    /// The entry with each number.
    order: Vec<u32>,
}

impl Numbering {
    fn reset(&mut self, entries: usize) {
        self.numbers.clear();
        self.numbers.resize(entries, UNSEEN);
        self.order.clear();
    }

    /// The number of an entry, and whether it is new.
    #[inline(always)]
    fn number(&mut self, entry: u32) -> (u32, bool) {
        let number = &mut self.numbers[entry as usize];
        if *number != UNSEEN {
            return (*number, false);
        }
        *number = self.order.len() as u32;
        self.order.push(entry);
        (*number, true)
    }
}

/// A key that grows inside memory which is there already, so that appending a word is one store.
#[derive(Default)]
struct Key {
    words: Vec<u64>,
    len: usize,
}

impl Key {
    /// Makes room for so many words more.
    fn reserve(&mut self, count: usize) {
        if self.words.len() < self.len + count {
            self.words.resize(self.len + count, 0);
        }
    }

    #[inline(always)]
    fn push(&mut self, word: u64) {
        self.words[self.len] = word;
        self.len += 1;
    }
}

/// Computes signatures, reusing its memory from batch to batch.
#[derive(Default)]
pub struct Signer {
    key: Key,
    bases: Numbering,
    views: Numbering,
    constants: Numbering,
}

impl Signer {
    /// A signer without memory yet.
    pub fn new() -> Signer {
        Signer::default()
    }

    /// The hash of a validated batch's key, which afterwards is in [`Signer::key`]; `with` combines bits of [`parts`].
    pub fn sign(&mut self, batch: &BatchRef, with: u8) -> u128 {
        self.key.len = 0;
        self.bases.reset(batch.bases.len());
        self.views.reset(batch.views.len());
        self.constants.reset(batch.constants.len());
        // Room for all but the names of extension methods.
        let definitions = 2 * batch.views.len() + 3 * batch.bases.len() + batch.constants.len();
        let dims: usize = batch.views.iter().map(|view| 2 * view.rank as usize).sum();
        self.key.reserve(1 + (1 + MAX_OPERANDS / 2) * batch.instrs.len() + definitions + dims);
        self.key.push(with as u64 | (batch.instrs.len() as u64) << 8);
        for instr in batch.instrs {
            self.add_instr(batch, instr, with);
        }
        hash_words(self.key())
    }

    /// The key of the batch signed last. Equal keys mean equal structure.
    pub fn key(&self) -> &[u64] {
        &self.key.words[..self.key.len]
    }

    /// The bases (indices) of the batch signed last in the order of first use.
    pub fn bases(&self) -> &[u32] {
        &self.bases.order
    }

    /// The views (indices) of the batch signed last in the order of first use.
    pub fn views(&self) -> &[u32] {
        &self.views.order
    }

    /// The constants (indices) of the batch signed last in the order of first use.
    pub fn constants(&self) -> &[u32] {
        &self.constants.order
    }

    #[inline(always)]
    fn add_instr(&mut self, batch: &BatchRef, instr: &Instr, with: u8) {
        let head = instr.opcode.0 as u64
            | (instr.param as u64) << 16
            | (instr.count as u64) << 32
            | (instr.outputs as u64) << 40
            | (instr.order as u64) << 48;
        self.key.push(head);
        // Two operands share a word; their place is before the definitions that the operands bring.
        let place = self.key.len;
        let words = (instr.count as usize).div_ceil(2);
        self.key.len += words;
        let mut numbers = [0u64; MAX_OPERANDS / 2];
        for (at, &operand) in instr.operands().iter().enumerate() {
            numbers[at / 2] |= (self.number(batch, operand, with) as u64) << (32 * (at & 1));
        }
        self.key.words[place..][..words].copy_from_slice(&numbers[..words]);
        if instr.opcode.is_extension() {
            self.add_name(batch.extension_name(instr.opcode).unwrap_or(""));
        }
    }

    /// The number of an operand, whose definition is appended if it is new.
    #[inline(always)]
    fn number(&mut self, batch: &BatchRef, operand: Operand, with: u8) -> u32 {
        if let Some(view) = operand.as_view() {
            let (number, new) = self.views.number(view);
            if new {
                self.add_view(batch, view, with);
            }
            number
        } else if let Some(constant) = operand.as_constant() {
            let (number, new) = self.constants.number(constant);
            if new {
                self.add_constant(&batch.constants[constant as usize], with);
            }
            Operand::constant(number).0
        } else {
            operand.0
        }
    }

    #[inline]
    fn add_view(&mut self, batch: &BatchRef, view: u32, with: u8) {
        let record = &batch.views[view as usize];
        let place = self.key.len;
        self.key.push(0);
        self.key.push(record.start as u64);
        for &dim in &batch.dims[record.dims as usize..][..2 * record.rank as usize] {
            self.key.push(dim as u64);
        }
        let number = if record.base == NO_BASE {
            NO_BASE
        } else {
            let (number, new) = self.bases.number(record.base);
            if new {
                let base = &batch.bases[record.base as usize];
                let flags = if with & parts::FLAGS != 0 { base.flags } else { 0 };
                self.key.push(base.dtype as u64 | (flags as u64) << 32);
                self.key.push(base.len as u64);
                if with & parts::ROW_HINTS != 0 {
                    self.key.push(base.row_hint as u64);
                }
            }
            number
        };
        self.key.words[place] = number as u64 | (record.rank as u64) << 32;
    }

    #[inline]
    fn add_constant(&mut self, constant: &Constant, with: u8) {
        let class = if with & parts::CONSTANT_CLASSES != 0 { ConstantClass::of(constant).code() } else { 0 };
        self.key.push(constant.dtype as u64 | class << 8);
    }

    /// Extension methods by name, since their numbers differ from context to context.
    #[cold]
    fn add_name(&mut self, name: &str) {
        // The words of the instructions that follow must keep their room.
        let words = 1 + name.len().div_ceil(8);
        self.key.words.resize(self.key.words.len() + words, 0);
        self.key.push(name.len() as u64);
        for chunk in name.as_bytes().chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.key.push(u64::from_le_bytes(word));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{Base, Batch, base_flags};
    use crate::opcode::Opcode;
    use crate::view::View;

    /// out = a op b + c over three bases in the given table order.
    fn program(opcode: Opcode, order: [u32; 3], constant: f64) -> Batch {
        let mut batch = Batch::default();
        for id in 0..3 {
            batch.push_base(Base::new(100 + id, DType::F64, 10));
        }
        let view = View::contiguous(&[10]).unwrap();
        let [out, a, b] = order.map(|base| Operand::view(batch.push_view(base, &view)));
        let c = Operand::constant(batch.push_constant(Constant::from_value(constant)));
        batch.push_instr(Instr::new(opcode, &[out, a, b]));
        batch.push_instr(Instr::new(Opcode::Add, &[out, out, c]));
        batch
    }

    fn sign(batch: &Batch, with: u8) -> (u128, Vec<u64>) {
        let mut signer = Signer::new();
        let hash = signer.sign(&batch.as_ref(), with);
        (hash, signer.key().to_vec())
    }

    #[test]
    fn identity_and_values_do_not_matter_but_structure_does() {
        let first = program(Opcode::Multiply, [0, 1, 2], 1.5);
        let renamed = program(Opcode::Multiply, [2, 0, 1], 2.5);
        let aliased = program(Opcode::Multiply, [0, 1, 1], 1.5);
        let other = program(Opcode::Divide, [0, 1, 2], 1.5);
        assert_eq!(sign(&first, 0), sign(&renamed, 0));
        assert_ne!(sign(&first, 0), sign(&aliased, 0));
        assert_ne!(sign(&first, 0), sign(&other, 0));
        let mut signer = Signer::new();
        signer.sign(&renamed.as_ref(), 0);
        assert_eq!(signer.bases(), [2, 0, 1]);
        assert_eq!((signer.views(), signer.constants()), (&[0, 1, 2][..], &[0][..]));
    }

    #[test]
    fn optional_parts_matter_only_on_request() {
        let first = program(Opcode::Multiply, [0, 1, 2], 1.0);
        let mut second = program(Opcode::Multiply, [0, 1, 2], 0.3);
        second.bases[1].flags = base_flags::PINNED;
        second.bases[2].row_hint = 5;
        assert_eq!(sign(&first, parts::STRUCTURE), sign(&second, parts::STRUCTURE));
        for part in [parts::FLAGS, parts::ROW_HINTS, parts::CONSTANT_CLASSES] {
            assert_ne!(sign(&first, part).1, sign(&second, part).1);
        }
    }

    #[test]
    fn sizes_types_parameters_and_names_matter() {
        let first = program(Opcode::Multiply, [0, 1, 2], 1.0);
        let mut longer = first.clone();
        longer.bases[2].len = 11;
        let mut typed = first.clone();
        typed.constants[0].dtype = DType::F32 as u8;
        let mut parameter = first.clone();
        parameter.instrs[0].param = 2;
        let mut order = first.clone();
        order.instrs[0].order = 1;
        for changed in [longer, typed, parameter, order] {
            assert_ne!(sign(&first, 0), sign(&changed, 0));
        }
        let extension = |name: &str, number: u16| {
            let mut batch = program(Opcode(number), [0, 1, 2], 1.0);
            let (name, name_len) = batch.push_string(name);
            batch.extensions.push(crate::batch::Extension { opcode: Opcode(number), reserved: 0, name, name_len });
            batch
        };
        let number = Opcode::FIRST_EXTENSION;
        assert_ne!(sign(&extension("fft", number), 0), sign(&extension("gemm", number), 0));
    }

    #[test]
    fn classes_of_constants() {
        let class = ConstantClass::of;
        assert_eq!(class(&Constant::from_value(true)), ConstantClass::Integer(1));
        assert_eq!(class(&Constant::from_value(-1i64)), ConstantClass::Integer(-1));
        assert_eq!(class(&Constant::from_value(0.0f32)), ConstantClass::Integer(0));
        assert_eq!(class(&Constant::from_value(-0.0f32)), ConstantClass::NegativeZero);
        assert_eq!(class(&Constant::from_value(0.5)), ConstantClass::Other);
        assert_eq!(class(&Constant::from_value(f64::NAN)), ConstantClass::Other);
        assert_eq!(class(&Constant::from_value(u64::MAX)), ConstantClass::Other);
        assert_eq!(class(&Constant::from_value(c128::new(2.0, 0.0))), ConstantClass::Integer(2));
        assert_eq!(class(&Constant::from_value(c128::new(2.0, -0.0))), ConstantClass::Other);
    }
}
