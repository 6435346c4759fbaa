//! Vector bytecode: opcodes, element types, views, batches, validation, text form and the reference interpreter.
//!
//! This is the bottom layer of bh; it depends on no other bh crate.

pub mod batch;
mod batch_ref;
pub mod c;
pub mod cache;
pub mod compare;
pub mod complex;
pub mod constant_class;
pub mod contraction;
pub mod docs;
pub mod dtype;
pub mod dump;
pub mod element;
pub mod hash;
mod injective;
pub mod interp;
pub mod memory_order;
pub mod methods;
pub mod neutral;
pub mod opcode;
mod opcodes;
pub mod order;
mod overlap;
pub mod packed;
pub mod philox;
pub mod planning;
pub mod random;
pub mod scalar;
pub mod steps;
pub mod structure;
pub mod subscript;
pub mod text;
mod truth;
pub mod validate;
pub mod view;
pub mod walk;

pub use batch::{
    Attribute, Base, Batch, BatchHeader, BatchRef, Block, Constant, Extension, Instr, Operand, Origin, Rename, ViewRec,
    base_flags,
};
pub use cache::{Cache, Key};
pub use complex::{Complex, c64, c128};
pub use dtype::{DType, TypeSet};
pub use element::{CastFrom, Element};
pub use opcode::{Kind, Opcode};
pub use order::AxisOrder;
pub use packed::Packed;
pub use structure::{Structure, StructureKey};
pub use truth::Truth;
pub use validate::{ValidateError, validate};
pub use view::{MAX_RANK, Overlap, View, ViewError};
