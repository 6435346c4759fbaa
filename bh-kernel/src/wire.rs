//! The forms in bytes of types of `bh-bytecode` that kernels hold; serde derives all others.

use bh_bytecode::{DType, Opcode};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The form of [`Opcode`]: its number.
pub mod opcode {
    use super::*;

    /// Writes an opcode.
    pub fn serialize<S: Serializer>(opcode: &Opcode, serializer: S) -> Result<S::Ok, S::Error> {
        opcode.0.serialize(serializer)
    }

    /// Reads an opcode.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Opcode, D::Error> {
        u16::deserialize(deserializer).map(Opcode)
    }
}

/// The form of [`DType`]: its code.
pub mod dtype {
    use super::*;

    /// Writes a type.
    pub fn serialize<S: Serializer>(dtype: &DType, serializer: S) -> Result<S::Ok, S::Error> {
        (*dtype as u8).serialize(serializer)
    }

    /// Reads a type.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<DType, D::Error> {
        DType::from_code(u8::deserialize(deserializer)?).ok_or_else(|| D::Error::custom("no type"))
    }
}

/// The form of several types.
pub mod dtypes {
    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Item(#[serde(with = "dtype")] DType);

    /// Writes types.
    pub fn serialize<S: Serializer>(dtypes: &[DType], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(dtypes.iter().map(|&dtype| Item(dtype)))
    }

    /// Reads types.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<DType>, D::Error> {
        Ok(Vec::<Item>::deserialize(deserializer)?.into_iter().map(|item| item.0).collect())
    }
}
