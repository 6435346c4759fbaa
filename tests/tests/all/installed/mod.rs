//! Tests of an installed bh from outside: projects that build against it, the engine kit, the binary interface, the
//! Debian package, and the programs in the documentation. `BH_TEST_PREFIX` names the installation; `cargo xtask test`
//! sets it.

mod abi;
mod commands;
mod docs;
mod install;
mod kit;
mod package;
mod support;
