//! How requests and artifacts are written as bytes, which cross the boundary and are kept on disk: as serde derives it, in
//! postcard's format.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The bytes of a value; equal values have equal bytes.
pub(crate) fn encode(value: &impl Serialize) -> Vec<u8> {
    postcard::to_allocvec(value).expect("everything has a form in bytes")
}

/// The value that bytes are, if they are one.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let (value, rest) = postcard::take_from_bytes(bytes).ok()?;
    rest.is_empty().then_some(value)
}
