//! The result of a compilation.

use crate::wire;
use bh_bytecode::{DType, Opcode};
use bh_kernel::wire::{dtype, opcode};
use serde::{Deserialize, Serialize};

/// A block primitive that compiled code calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Function {
    /// The operation.
    #[serde(with = "opcode")]
    pub opcode: Opcode,
    /// The exponent of POWI, else 0.
    pub param: u16,
    /// Type of the last operand.
    #[serde(with = "dtype")]
    pub input: DType,
    /// Type of the result.
    #[serde(with = "dtype")]
    pub output: DType,
}

/// Machine code and what it needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// The primitives that the code calls, as [`crate::Call::functions`] lists them; no opcode is the streaming copy.
    pub functions: Vec<Option<Function>>,
    /// An object file that defines `kernel`.
    pub object: Vec<u8>,
}

impl Artifact {
    /// The bytes that [`Artifact::decode`] reads.
    pub fn encode(&self) -> Vec<u8> {
        wire::encode(self)
    }

    /// Reads an artifact; `None` if the bytes are none.
    pub fn decode(bytes: &[u8]) -> Option<Artifact> {
        wire::decode(bytes)
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
        for cut in 0..bytes.len() {
            assert_eq!(Artifact::decode(&bytes[..cut]), None, "cut to {cut} bytes");
        }
        assert_eq!(Artifact::decode(&[0xff; 40]), None);
    }
}
