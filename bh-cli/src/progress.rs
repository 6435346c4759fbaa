//! The progress of a long command, as one line of a terminal.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

/// Characters of the bar.
const WIDTH: usize = 24;

/// The line, removed with the value. Prints nothing without a terminal.
pub struct Progress {
    steps: u64,
    begin: Instant,
    watched: bool,
}

impl Progress {
    /// A command of `steps` steps.
    pub fn of(steps: u64) -> Progress {
        Progress { steps, begin: Instant::now(), watched: stderr().is_terminal() }
    }

    /// Shows that `done` steps are finished, and the name of the next.
    pub fn show(&self, done: u64, now: &str) {
        if self.watched {
            // An error does not matter here.
            let _ = write!(stderr(), "\r{}\x1b[K", bar(done, self.steps, self.begin.elapsed(), now));
        }
    }

    /// Clears the line for other text.
    pub fn clear(&self) {
        if self.watched {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

/// "[######..................]  10/40  1:05  now".
fn bar(done: u64, steps: u64, since: Duration, now: &str) -> String {
    let full = (done.min(steps) * WIDTH as u64).checked_div(steps).unwrap_or(0) as usize;
    let seconds = since.as_secs();
    let (minutes, seconds) = (seconds / 60, seconds % 60);
    format!("[{}{}] {done:>3}/{steps} {minutes:>2}:{seconds:02}  {now}", "#".repeat(full), ".".repeat(WIDTH - full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_how_far_and_how_long() {
        let shown = bar(10, 40, Duration::from_secs(65), "kernels");
        assert_eq!(shown, "[######..................]  10/40  1:05  kernels");
        assert_eq!(bar(9, 3, Duration::ZERO, ""), format!("[{}]   9/3  0:00  ", "#".repeat(WIDTH)));
        assert_eq!(bar(0, 0, Duration::ZERO, "x"), format!("[{}]   0/0  0:00  x", ".".repeat(WIDTH)));
    }
}
