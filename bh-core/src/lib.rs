//! The component ABI, loader, configuration, host memory and the lazy recorder.

pub mod abi;
pub mod component;
pub mod error;

pub use component::{Child, Component, Counter, Host, Registry, Ticket};
pub use error::{Error, Result};
