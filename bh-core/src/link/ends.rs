//! A link as the router sees it: an engine and the components below it.

use super::{Link, add};
use crate::abi::ReportRecord;
use crate::component::Registry;
use crate::error::{Error, Result};
use crate::foreign::Foreign;
use crate::route::{Ends, Target};
use bh_bytecode::BatchRef;

impl Ends for Link {
    fn engine(&self) -> Foreign<'_> {
        self.foreign()
    }

    fn label(&self) -> &str {
        Link::label(self)
    }

    fn has(&self, flag: u64) -> bool {
        Link::has(self, flag)
    }

    fn child_has(&self, flag: u64) -> bool {
        self.child().is_some_and(|child| child.has(flag))
    }

    fn run_below(&self, batch: &BatchRef<'_>, blocks: &[u32], report: *mut ReportRecord) -> Option<(Result<()>, u64)> {
        self.child().map(|child| child.execute(batch, blocks, report))
    }

    fn wait_for(&self, target: Target, ticket: u64) -> Result<()> {
        self.wait_target(target, ticket)
    }

    fn registry(&self) -> Option<Registry> {
        Link::registry(self)
    }

    fn named(&self, error: Error, batch: &BatchRef<'_>) -> Error {
        Link::named(self, error, batch)
    }

    fn count_refused(&self, blocks: u64) {
        add(&self.counters.refused, blocks);
    }

    fn count_failed(&self) {
        add(&self.counters.failed, 1);
    }

    fn log(&self, level: u32, text: &str) {
        self.host.services().log(level, self.label(), text);
    }
}
