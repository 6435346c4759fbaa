//! An engine that panics at a configured place, and otherwise forwards all calls to its child.

use bh_bytecode::{Base, BatchRef, View};
use bh_core::abi::kind;
use bh_core::component::{Child, Component, Host, Registry, Report, Ticket};
use bh_core::config::Row;
use bh_core::error::Result;

/// The engine; `panic_in` names the function.
pub struct Panicking {
    child: Option<Child>,
    panic_in: String,
}

impl Panicking {
    fn reach(&self, function: &str) {
        assert!(self.panic_in != function, "the {function} of a test");
    }
}

impl Drop for Panicking {
    fn drop(&mut self) {
        self.reach("destroy");
    }
}

bh_core::keys! {
    mod keys = "panicking" {
        PANIC_IN "panic_in": String = "\"\"", "The call that panics.";
    }
}

// SAFETY: all state is in this value, and ends with it.
unsafe impl Component for Panicking {
    const NAME: &'static str = "ve-panicking";
    const KIND: u32 = kind::ENGINE;
    const KEYS: &'static [Row] = keys::ALL;

    const SHARED: bool = true;

    fn create(host: Host, children: Vec<Child>) -> Result<Panicking> {
        let panicking = Panicking { child: children.into_iter().next(), panic_in: host.setting(&keys::PANIC_IN)? };
        panicking.reach("create");
        Ok(panicking)
    }

    fn child(&mut self) -> Option<&mut Child> {
        self.child.as_mut()
    }

    fn bind(&mut self, registry: Registry) -> Result<()> {
        self.reach("bind");
        self.child().map_or(Ok(()), |child| child.bind(registry))
    }

    fn supports(&mut self, _batch: &BatchRef<'_>, _block: u32) -> bool {
        self.reach("supports");
        self.panic_in == "execute"
    }

    fn execute(&mut self, _batch: &BatchRef<'_>, _blocks: &[u32], _report: &mut Report) -> Result<Ticket> {
        self.reach("execute");
        Ok(Ticket::DONE)
    }

    fn map(&mut self, base: &Base, view: Option<&View>, access: u32) -> Result<*mut u8> {
        self.reach("map");
        match self.child() {
            Some(child) => child.map(base, view, access),
            None => Ok(std::ptr::null_mut()),
        }
    }
}

bh_core::export_component!(Panicking);
