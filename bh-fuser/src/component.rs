//! The fuser as a component of the stack.

use crate::fuse::Partitioner;
use crate::options::Options;
use bh_bytecode::BatchRef;
use bh_core::abi::{kind, status};
use bh_core::{Child, Component, Counter, Error, Host, Result, Ticket};

/// The component.
pub struct Fuser {
    host: Host,
    child: Child,
    options: Options,
    adapted: bool,
    partitioner: Partitioner,
    batches: Counter,
    kernels: Counter,
}

impl Component for Fuser {
    const NAME: &'static str = "fuser";
    const KIND: u32 = kind::FUSER;
    const KEYS: &'static [&'static str] = Options::KEYS;

    fn create(host: Host, children: Vec<Child>) -> Result<Fuser> {
        let child = children
            .into_iter()
            .next()
            .ok_or_else(|| Error::new(status::CONFIG, "fuser needs a component below it"))?;
        Ok(Fuser {
            options: Options::read(&host)?,
            adapted: false,
            child,
            partitioner: Partitioner::default(),
            batches: host.counter("fuser.batches"),
            kernels: host.counter("fuser.kernels"),
            host,
        })
    }

    fn child(&mut self) -> Option<&mut Child> {
        Some(&mut self.child)
    }

    fn execute(&mut self, batch: &BatchRef<'_>, blocks: &[u32]) -> Result<Ticket> {
        // A batch that was cut into kernels above is left as it is.
        if !batch.blocks.is_empty() || batch.instrs.is_empty() {
            return self.child.execute(batch, blocks);
        }
        if !self.adapted {
            let capabilities = self.child.capabilities();
            self.options.adapt(&capabilities);
            self.adapted = true;
        }
        let begin = self.host.trace_clock();
        let partition = self.partitioner.partition(batch, &self.options);
        self.host.trace("fuse", begin, self.options.cost.name);
        self.batches.add(1);
        self.kernels.add(partition.blocks.len() as u64);
        self.child.execute(&partition.apply(batch), &partition.all).map_err(|mut error| {
            // Block numbers mean nothing above; the instruction still does.
            error.block = None;
            error
        })
    }
}
