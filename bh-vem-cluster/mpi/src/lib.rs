//! Messages of the cluster manager through MPI. One library is built for each MPI, and loaded only where a cluster stack
//! asks for it.
//!
//! One thread of the process initialises MPI, makes all calls and finalises it ([`worker`]); [`table`] is the C side.

mod call;
mod table;
mod worker;
