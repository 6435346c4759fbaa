//! The locks of a stack's services, held during a fork of the process.

use super::Services;
use crate::memory;
use crate::trace::Events;
use std::collections::BTreeMap;
use std::io::StderrLock;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, MutexGuard};

/// While this value lives, no other thread allocates, counts, traces or logs.
pub struct FrozenServices {
    // Fields are dropped in this order: the guards before the values that they borrow.
    _memory: MutexGuard<'static, memory::State>,
    _counters: MutexGuard<'static, BTreeMap<String, Arc<AtomicU64>>>,
    _events: Option<MutexGuard<'static, Events>>,
    _log: StderrLock<'static>,
    _services: Arc<Services>,
}

impl FrozenServices {
    pub(super) fn of(services: Arc<Services>) -> FrozenServices {
        // SAFETY: the services live in the `Arc`, which moves into the same value and is dropped after the guards.
        let fixed: &'static Services = unsafe { &*Arc::as_ptr(&services) };
        // No thread takes one of these locks while it holds another.
        FrozenServices {
            _memory: fixed.memory.lock(),
            _counters: fixed.stats.lock(),
            _events: fixed.trace.as_ref().map(|trace| trace.lock()),
            _log: std::io::stderr().lock(),
            _services: services,
        }
    }
}
