//! How long a thread waits: until the work is done, or until its owner wants it back.

use bh_core::error::Result;
use std::time::{Duration, Instant};

/// Time between two questions to the owner of a waiting thread.
const SLICE: Duration = Duration::from_millis(20);

/// A thread that wants to be asked runs batches that write no more bytes than this itself.
pub(crate) const LIGHT: u64 = 4 << 20;

/// The pause that follows one of this length. Pauses are a small part of the time that has passed, so that little is waited for
/// beyond the end of the work.
pub(crate) fn longer(pause: Duration) -> Duration {
    pause + pause / 8
}

/// How long a call waits for results.
///
/// A call that waits may run batches on its own thread. With a callback it leaves long ones to the executor thread, and
/// asks every few milliseconds, with no lock held, whether to go on. If not, the call ends with the callback's error;
/// what was recorded goes on and may be waited for again.
pub struct Patience<'a> {
    check: Option<&'a mut dyn FnMut() -> Result<()>>,
    asked: Option<Instant>,
    pause: Option<Duration>,
}

impl<'a> Patience<'a> {
    /// Until the work is done.
    pub fn endless() -> Patience<'a> {
        Patience { check: None, asked: None, pause: None }
    }

    /// Until the work is done or `check` fails.
    pub fn until(check: &'a mut dyn FnMut() -> Result<()>) -> Patience<'a> {
        Patience { check: Some(check), asked: None, pause: None }
    }

    pub(crate) fn is_limited(&self) -> bool {
        self.check.is_some()
    }

    /// May this thread run a batch that writes `work` bytes itself?
    pub(crate) fn may_run(&self, work: u64) -> bool {
        self.check.is_none() || work <= LIGHT
    }

    /// The longest that the thread may sleep now.
    pub(crate) fn slice(&mut self) -> Option<Duration> {
        self.check.as_ref()?;
        let asked = *self.asked.get_or_insert_with(Instant::now);
        Some(SLICE.saturating_sub(asked.elapsed()).max(Duration::from_micros(50)))
    }

    /// A pause that grows from the first of two to the second.
    pub(crate) fn next_pause(&mut self, (first, most): (Duration, Duration)) -> Duration {
        let pause = self.pause.map_or(first, |pause| longer(pause).min(most));
        self.pause = Some(pause);
        pause
    }

    /// Is it time to ask?
    pub(crate) fn is_due(&self) -> bool {
        self.check.is_some() && self.asked.is_some_and(|asked| asked.elapsed() >= SLICE)
    }

    /// Asks the owner.
    pub(crate) fn check(&mut self) -> Result<()> {
        self.asked = Some(Instant::now());
        self.check.as_mut().map_or(Ok(()), |check| check())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_a_small_part_of_what_has_passed_and_reach_the_longest() {
        let (first, most) = (Duration::from_micros(20), Duration::from_millis(1));
        let (mut patience, mut passed) = (Patience::endless(), Duration::ZERO);
        for _ in 0..100 {
            let pause = patience.next_pause((first, most));
            assert!(pause <= first + passed / 8, "{pause:?} after {passed:?}");
            passed += pause;
        }
        assert_eq!(patience.next_pause((first, most)), most);
    }
}
