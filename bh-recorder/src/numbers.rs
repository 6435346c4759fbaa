//! Questions about a program's numbers: checks for bad ones, digits that are left, and lines in single precision.

use crate::{LineDigits, Recorder, asks_for_eager};
use bh_core::abi::status;
use bh_core::config::Checks;
use bh_core::{Error, Result};

impl Recorder {
    /// Changes the checks, once everything that was recorded has run. Fails while digits are counted.
    pub fn set_checks(&self, checks: Checks) -> Result<()> {
        self.sync()?;
        let executor = {
            let mut state = self.state();
            state.refuse_in_trace("changes the checks")?;
            let executor = state.executor()?;
            if let Some(running) = &mut state.running {
                if running.options.digits {
                    return Err(Error::new(
                        status::ARGUMENT,
                        "check: operations are not checked while digits are counted",
                    ));
                }
                running.options.checks = checks;
                running.options.eager = asks_for_eager() || checks.one_by_one();
            }
            state.set_gate();
            executor
        };
        executor.set_checks(checks)
    }

    /// Begins to count the decimal digits that the results of each line keep, with nothing counted yet, or ends it. It needs
    /// four times the memory of floats, and is for contexts without checks.
    pub fn set_digits(&self, on: bool) -> Result<()> {
        self.sync()?;
        let executor = {
            let mut state = self.state();
            state.refuse_in_trace("counts digits")?;
            let executor = state.executor()?;
            if let Some(running) = &mut state.running {
                if on && running.options.checks.any() {
                    return Err(Error::new(status::ARGUMENT, "digits: are not counted while operations are checked"));
                }
                running.options.digits = on;
            }
            state.set_gate();
            executor
        };
        executor.set_digits(on)
    }

    /// Rounds results of double precision to single precision where these lines of the program, by file and number, write them;
    /// an empty list ends it. It is for contexts without checks that count no digits.
    pub fn set_narrowed(&self, lines: Vec<(String, u32)>) -> Result<()> {
        self.sync()?;
        let executor = {
            let mut state = self.state();
            state.refuse_in_trace("changes the precision of lines")?;
            let executor = state.executor()?;
            if let Some(running) = &mut state.running {
                if !lines.is_empty() && (running.options.checks.any() || running.options.digits) {
                    let text = "lines are not narrowed while operations are checked or digits are counted";
                    return Err(Error::new(status::ARGUMENT, text));
                }
                running.options.narrowed = !lines.is_empty();
            }
            state.set_gate();
            executor
        };
        executor.set_narrowed(lines.into_iter().collect())
    }

    /// The digits of each line's results so far, in the order of first runs; nothing unless they are counted.
    pub fn digits(&self) -> Result<Vec<LineDigits>> {
        self.sync()?;
        let executor = self.state().executor()?;
        let mut lines = executor.digits()?;
        for line in &mut lines {
            let (file, number) = &line.place;
            if let Some(place) = self.looked_up(file, *number) {
                line.place = place;
            }
        }
        Ok(lines)
    }

    /// The checks that are made.
    pub fn checks(&self) -> Result<Checks> {
        Ok(self.state().running()?.options.checks)
    }
}
