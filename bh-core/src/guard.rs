//! Converts panics into errors at the component boundary.

use crate::abi::{ErrorRecord, Status, status};
use crate::error::{Error, Result};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    /// Nesting of guarded calls on this thread.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// The component's current block, for the error if it panics.
    pub(crate) static BLOCK: Cell<Option<u32>> = const { Cell::new(None) };
    /// File and line of the last panic inside a guarded call.
    static LOCATION: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Installs a hook that records the place of a panic in a guarded call instead of printing it; other panics go to the
/// previous hook.
#[inline]
fn install_hook() {
    static INSTALLED: Once = Once::new();
    if INSTALLED.is_completed() || std::thread::panicking() {
        return;
    }
    INSTALLED.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if DEPTH.get() == 0 {
                return previous(info);
            }
            let place = info.location().map(|place| format!("{}:{}", place.file(), place.line()));
            // Fails in a thread that is ending; the error then has no place.
            let _ = LOCATION.try_with(|location| location.replace(place));
        }));
    });
}

fn payload_text(payload: &(dyn Any + Send)) -> &str {
    if let Some(text) = payload.downcast_ref::<&str>() {
        text
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text
    } else {
        "panic without a message"
    }
}

/// Runs `call`; a panic becomes its message and place.
#[inline]
pub(crate) fn panic_text<T>(call: impl FnOnce() -> T) -> std::result::Result<T, String> {
    install_hook();
    DEPTH.set(DEPTH.get() + 1);
    let outcome = catch_unwind(AssertUnwindSafe(call));
    DEPTH.set(DEPTH.get() - 1);
    outcome.map_err(|payload| {
        let place =
            LOCATION.try_with(RefCell::take).ok().flatten().map_or(String::new(), |place| format!(" at {place}"));
        let text = format!("panicked{place}: {}", payload_text(&*payload));
        // The drop of a payload may panic too, and must not unwind further.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(payload)));
        text
    })
}

/// Runs `call` for a C caller: an error or a panic becomes a status and fills the record.
pub(crate) fn guard(record: Option<&mut ErrorRecord>, call: impl FnOnce() -> Result<()>) -> Status {
    let outcome = panic_text(call).unwrap_or_else(|text| {
        let mut error = Error::new(status::PANIC, text);
        error.block = BLOCK.get();
        Err(error)
    });
    match outcome {
        Ok(()) => status::OK,
        Err(error) => record.map_or(error.status, |record| error.write(record)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_status_with_message_and_place() {
        let mut record = ErrorRecord::empty();
        let code = guard(Some(&mut record), || panic!("number {}", 7));
        let error = Error::read(code, &record);
        assert_eq!(error.status, status::PANIC);
        assert!(error.text.starts_with("panicked at bh-core/src/guard.rs:"), "{}", error.text);
        assert!(error.text.ends_with(": number 7"), "{}", error.text);
    }

    #[test]
    fn errors_and_success_pass() {
        let mut record = ErrorRecord::empty();
        assert_eq!(guard(Some(&mut record), || Ok(())), status::OK);
        assert_eq!(guard(Some(&mut record), || Err(Error::new(status::TYPE, "no"))), status::TYPE);
        assert_eq!(guard(None, || Err(Error::new(status::TYPE, "no"))), status::TYPE);
        assert_eq!(Error::read(status::TYPE, &record).text, "no");
    }
}
