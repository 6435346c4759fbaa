//! The result of a compilation.

use crate::request::Reader;
use bh_bytecode::{DType, Opcode};

/// A block primitive that compiled code calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Function {
    /// The operation.
    pub opcode: Opcode,
    /// The exponent of POWI, else 0.
    pub param: u16,
    /// Type of the last operand.
    pub input: DType,
    /// Type of the result.
    pub output: DType,
}

/// Machine code and what it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// The primitives that the code calls, as [`crate::Call::functions`] lists them; no opcode is the streaming copy.
    pub functions: Vec<Option<Function>>,
    /// An object file that defines `kernel`.
    pub object: Vec<u8>,
}

impl Artifact {
    /// The bytes that [`Artifact::decode`] reads.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.object.len() + 64);
        let mut word = |word: u32| bytes.extend(word.to_le_bytes());
        word(self.functions.len() as u32);
        for function in &self.functions {
            match function {
                None => (0..4).for_each(|_| word(u32::MAX)),
                Some(Function { opcode, param, input, output }) => {
                    for number in [u32::from(opcode.0), u32::from(*param), *input as u32, *output as u32] {
                        word(number);
                    }
                }
            }
        }
        bytes.extend(&self.object);
        bytes
    }

    /// Reads an artifact; `None` if the bytes are none.
    pub fn decode(bytes: &[u8]) -> Option<Artifact> {
        let mut reader = Reader(bytes);
        let count = reader.word()?;
        if count as usize > bytes.len() / 16 {
            return None;
        }
        let mut functions = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let words = [reader.word()?, reader.word()?, reader.word()?, reader.word()?];
            functions.push(if words == [u32::MAX; 4] {
                None
            } else {
                Some(Function {
                    opcode: Opcode(u16::try_from(words[0]).ok()?),
                    param: u16::try_from(words[1]).ok()?,
                    input: DType::from_code(u8::try_from(words[2]).ok()?)?,
                    output: DType::from_code(u8::try_from(words[3]).ok()?)?,
                })
            });
        }
        Some(Artifact { functions, object: reader.0.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn artifacts_survive_encoding_and_damage_is_noticed() {
        let function = Function { opcode: Opcode::Exp, param: 0, input: DType::F64, output: DType::F64 };
        let artifact = Artifact { functions: vec![Some(function), None], object: vec![1, 2, 3] };
        let bytes = artifact.encode();
        assert_eq!(Artifact::decode(&bytes), Some(artifact));
        assert_eq!(Artifact::decode(&bytes[..20]), None);
        assert_eq!(Artifact::decode(&[0xff; 40]), None);
    }
}
