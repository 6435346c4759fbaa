//! The component ABI, loader, configuration and host memory.

pub mod abi;
pub mod component;
pub mod config;
pub mod environment;
pub mod error;
pub mod export;
pub mod foreign;
mod guard;
mod host;
mod installed;
pub mod kernel_store;
pub mod kernel_trace;
pub mod keys;
pub mod launcher;
mod link;
pub mod loader;
pub mod log;
pub mod machine;
pub mod memory;
pub mod private;
pub mod reserve;
mod route;
pub mod services;
pub mod stack;
pub mod stats;
pub mod strided;
pub mod threads;
pub mod trace;
mod unwinding;
mod watch;

pub use component::{Child, Component, Counter, Fresh, Host, Loan, Registry, Report, Ticket};
pub use config::Config;
pub use error::{Error, Result};
pub use stack::Stack;
