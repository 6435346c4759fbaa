//! The C bridge: `libbh_bridge_c`, whose functions `include/bh.h` declares.
//!
//! Every function returns a status, out-parameters come first, handles are opaque and never dereferenced: a handle that
//! is null, freed or of an ended context gives an error. No panic leaves a function.
//!
//! The header is generated from this crate by `bh-header`; documentation comments of exported items are written for C.

#![allow(non_camel_case_types, reason = "names as C has them")]

mod access;
mod compose;
mod constant;
mod context;
mod create;
mod error;
mod extension;
mod gradient;
mod handle;
mod lend;
mod npy;
mod opencl;
mod operation;
mod print;
mod query;
mod subscript;
mod text;
mod view;

pub use access::*;
pub use compose::*;
pub use constant::*;
pub use context::*;
pub use create::*;
pub use error::*;
pub use extension::*;
pub use gradient::*;
pub use handle::{bh_array, bh_context};
pub use lend::*;
pub use npy::*;
pub use opencl::*;
pub use operation::*;
pub use print::*;
pub use query::*;
pub use subscript::*;
pub use view::*;
