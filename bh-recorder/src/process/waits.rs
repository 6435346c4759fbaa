//! How threads of the program wait for others: their language may have a lock that they must not keep meanwhile.

use super::patience::Patience;
use bh_core::error::Result;
use std::sync::OnceLock;

/// A wait: it ends with what the patience ends in.
pub type Wait<'a> = dyn FnMut(&mut Patience<'_>) -> Result<()> + Send + 'a;

/// Makes a wait without the lock of the program's language, and asks meanwhile whether to go on. `None`, without having waited,
/// on threads that do not have that lock.
pub type ProgramWait = fn(wait: &mut Wait<'_>) -> Option<Result<()>>;

static WAIT: OnceLock<ProgramWait> = OnceLock::new();

/// Has calls that were made without a patience wait in this way, once they have to wait for another thread. The first call
/// counts.
pub fn set_program_wait(wait: ProgramWait) {
    let _ = WAIT.set(wait);
}

/// Waits in the way of the program's language; `None`, without having waited, if there is none on this thread.
pub(crate) fn program_wait(wait: &mut Wait<'_>) -> Option<Result<()>> {
    WAIT.get().and_then(|program| program(wait))
}
