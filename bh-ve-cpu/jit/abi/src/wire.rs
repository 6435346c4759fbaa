//! How requests and artifacts are written as bytes, which cross the boundary and are kept on disk: as serde derives it, in
//! postcard's format. Types of other crates have forms here that serde derives from.

use bh_bytecode::{DType, Opcode};
use bh_kernel::{Arg, SlotMode, Step, Stride};
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The bytes of a value; equal values have equal bytes.
pub(crate) fn encode(value: &impl Serialize) -> Vec<u8> {
    postcard::to_allocvec(value).expect("everything has a form in bytes")
}

/// The value that bytes are, if they are one.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let (value, rest) = postcard::take_from_bytes(bytes).ok()?;
    rest.is_empty().then_some(value)
}

/// The form of [`Opcode`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "Opcode")]
pub(crate) struct OpcodeForm(u16);

/// The form of [`DType`]: its code.
pub(crate) mod dtype {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(dtype: &DType, serializer: S) -> Result<S::Ok, S::Error> {
        (*dtype as u8).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<DType, D::Error> {
        DType::from_code(u8::deserialize(deserializer)?).ok_or_else(|| D::Error::custom("no type"))
    }
}

/// The form of [`SlotMode`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "SlotMode")]
pub(crate) enum ModeForm {
    Read,
    Write,
    Result,
    Index,
}

/// The form of [`Stride`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "Stride")]
pub(crate) enum StrideForm {
    Zero,
    Unit,
    Other,
    Two,
    Three,
    Four,
    Again,
    Cycle,
}

/// The form of [`Arg`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "Arg")]
enum ArgForm {
    Value(u16),
    Constant(u16),
}

/// The form of [`Step`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "Step")]
enum StepForm {
    Load {
        slot: u16,
    },
    Compute {
        #[serde(with = "OpcodeForm")]
        opcode: Opcode,
        param: u16,
        #[serde(with = "dtype")]
        input: DType,
        #[serde(with = "dtype")]
        output: DType,
        #[serde(with = "args")]
        args: [Arg; 3],
        count: u8,
    },
    Range {
        slot: u16,
        #[serde(with = "dtype")]
        output: DType,
    },
    Random {
        slot: u16,
        #[serde(with = "ArgForm")]
        key: Arg,
        #[serde(with = "dtype")]
        output: DType,
    },
    Gather {
        source: u16,
        #[serde(with = "ArgForm")]
        index: Arg,
        #[serde(with = "dtype")]
        input: DType,
        #[serde(with = "dtype")]
        output: DType,
    },
    Store {
        slot: u16,
        #[serde(with = "ArgForm")]
        arg: Arg,
    },
    Reduce {
        #[serde(with = "OpcodeForm")]
        opcode: Opcode,
        slot: u16,
        #[serde(with = "ArgForm")]
        arg: Arg,
    },
}

/// The form of a number of values that have one.
macro_rules! list {
    ($name:ident, $type:ty, $form:literal) => {
        pub(crate) mod $name {
            use super::*;

            #[derive(Serialize, Deserialize)]
            struct Item(#[serde(with = $form)] $type);

            pub(crate) fn serialize<S: Serializer>(items: &[$type], serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_seq(items.iter().map(|item| Item(*item)))
            }

            pub(crate) fn deserialize<'de, D: Deserializer<'de>, L: TryFrom<Vec<$type>>>(
                deserializer: D,
            ) -> Result<L, D::Error> {
                let items = Vec::<Item>::deserialize(deserializer)?.into_iter().map(|item| item.0);
                L::try_from(items.collect()).map_err(|_| D::Error::custom("too few or too many"))
            }
        }
    };
}
list!(dtypes, DType, "dtype");
list!(args, Arg, "ArgForm");
list!(steps, Step, "StepForm");
