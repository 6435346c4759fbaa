//! Messages of the cluster manager through MPI. One library is built for each MPI, and loaded only where a cluster stack
//! asks for it.
//!
//! One thread of the process initialises MPI, moves on what is under way, and finalises it ([`owner`]). Messages are sent and
//! received by whoever calls, one caller at a time ([`messages`]), as waking another thread takes longer than a small
//! message. [`table`] is the C side.

mod call;
mod messages;
mod owner;
mod table;
