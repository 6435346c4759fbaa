//! Messages of the cluster manager through MPI. One library is built for each MPI, and loaded only if a cluster stack
//! needs it.
//!
//! One thread of the process initialises MPI, progresses pending messages, and finalises it ([`owner`]). Callers send
//! and receive on their own threads, one at a time ([`messages`]), because waking another thread takes longer than a
//! small message. [`table`] is the C interface.

mod call;
mod messages;
mod owner;
mod table;
