//! The component: gives every batch a partition, passes it to the engines below, and owns their arrays.

use crate::arrays::Leak;
use crate::registry::ArrayRegistry;
use bh_bytecode::{BatchRef, Block};
use bh_core::abi::{Capabilities, Prediction, RegistryTable, capability, kind, log_level, status};
use bh_core::component::{Child, Component, Counter, Host, Registry, Report, SharedCalls, Ticket, registry_table};
use bh_core::config::Row;
use bh_core::error::{Error, Result};
use bh_core::keys;
use std::sync::Arc;

/// The registry and its table, at fixed addresses: engines hold pointers to them.
pub(crate) struct Service {
    pub(crate) registry: Arc<ArrayRegistry>,
    table: RegistryTable,
}

/// The manager of one address space.
pub struct Node {
    pub(crate) host: Host,
    pub(crate) children: Vec<Child>,
    /// Shared ownership instead of a box: moving a box would invalidate the address that engines hold.
    pub(crate) service: Arc<Service>,
    leak_report: bool,
    /// Unfinished work of the only child.
    pending: Vec<Ticket>,
    /// The partition of batches without one.
    blocks: Vec<Block>,
    block_instrs: Vec<u32>,
    /// Counts batches whose plan was replaced by one that needs less memory.
    pub(crate) replaced: Counter,
    /// Counts blocks that were refused because their arrays do not fit.
    pub(crate) refused: Counter,
}

// SAFETY: the table points to the registry beside it, which may be used from any thread.
unsafe impl Send for Service {}
// SAFETY: the table points to the registry beside it, which may be used from any thread.
unsafe impl Sync for Service {}

// SAFETY: all state is in this value and its registry, which the host and the components below use only while this
// value lives.
unsafe impl Component for Node {
    const NAME: &'static str = "vem-node";
    const KIND: u32 = kind::DATA_MANAGER;
    const KEYS: &'static [Row] = keys::node::ALL;

    fn create(host: Host, mut children: Vec<Child>) -> Result<Node> {
        if children.is_empty() {
            return Err(Error::new(status::INIT, "vem-node needs an engine below it in the stack"));
        }
        let leak_report = host.setting(&keys::node::LEAK_REPORT)?;
        let registry = Arc::new(ArrayRegistry::new(host));
        // SAFETY: `service` keeps the registry alive at its address.
        let table = unsafe { registry_table::<ArrayRegistry>(&*registry) };
        let service = Arc::new(Service { registry, table });
        for child in &mut children {
            // SAFETY: `service` lives as long as this component, and the components below end before it.
            child.bind(unsafe { Registry::new(&raw const service.table) })?;
            if let Some(calls) = child.shared() {
                service.registry.set_engine(calls);
            }
        }
        let (pending, blocks, block_instrs) = (Vec::new(), Vec::new(), Vec::new());
        let [replaced, refused] = ["node.plans_replaced", "node.blocks_refused"].map(|name| host.counter(name));
        Ok(Node { host, children, service, leak_report, pending, blocks, block_instrs, replaced, refused })
    }

    fn child(&mut self) -> Option<&mut Child> {
        self.children.first_mut()
    }

    /// The first engine's capabilities; data calls may be concurrent, because the registry has a lock.
    fn capabilities(&mut self) -> Capabilities {
        let below = self.children.first_mut().map_or_else(Capabilities::default, Child::capabilities);
        // With several engines, the prediction of one has no meaning.
        let unknown = if self.children.len() > 1 { capability::PREDICTS } else { 0 };
        Capabilities { flags: below.flags & !unknown | capability::CONCURRENT_DATA, ..below }
    }

    /// The engines below are bound to this manager's own registry.
    fn bind(&mut self, _registry: Registry) -> Result<()> {
        Ok(())
    }

    fn execute(&mut self, batch: &BatchRef<'_>, blocks: &[u32], report: &mut Report) -> Result<Ticket> {
        if !batch.blocks.is_empty() || batch.instrs.is_empty() {
            return self.run(batch, blocks, report);
        }
        self.in_blocks(batch, |node, batch, blocks| node.run(batch, blocks, report))
    }

    /// The peak of arrays follows from the registry calls that the engine would make; the engine predicts the rest.
    fn predict(&mut self, batch: &BatchRef<'_>, blocks: &[u32]) -> Result<Prediction> {
        if batch.blocks.is_empty() && !batch.instrs.is_empty() {
            return self.in_blocks(batch, |node, batch, blocks| node.predict(batch, blocks));
        }
        let exact = self.capabilities().flags & capability::PREDICTS != 0;
        let registry = &self.service.registry;
        let Some(child) = self.children.first_mut() else { return Ok(Prediction::default()) };
        let (below, tally) = registry.rehearse(u64::MAX, || child.predict(batch, blocks));
        let below = below?;
        Ok(Prediction { peak_bytes: if exact { tally.peak() } else { below.peak_bytes }, ..below })
    }

    fn wait(&mut self, ticket: Ticket) -> Result<()> {
        self.pending.retain(|&other| other != ticket);
        self.children.first_mut().map_or(Ok(()), |child| child.wait(ticket))
    }

    fn shared(&self) -> Option<Arc<dyn SharedCalls>> {
        Some(self.service.registry.clone())
    }

    fn message(&mut self, text: &str) -> Result<String> {
        match text {
            "leaks" => Ok(self.leak_text()),
            _ => self.children.first_mut().map_or(Ok(String::new()), |child| child.message(text)),
        }
    }
}

impl Node {
    /// Calls `work` with one block per instruction.
    pub(crate) fn in_blocks<T>(
        &mut self,
        batch: &BatchRef<'_>,
        work: impl FnOnce(&mut Node, &BatchRef<'_>, &[u32]) -> T,
    ) -> T {
        let (mut blocks, mut block_instrs) = (std::mem::take(&mut self.blocks), std::mem::take(&mut self.block_instrs));
        let count = batch.instrs.len() as u32;
        block_instrs.clear();
        block_instrs.extend(0..count);
        blocks.clear();
        blocks.extend((0..count).map(|index| Block { instrs: index, instr_count: 1, ..Block::default() }));
        let batch = BatchRef { blocks: &blocks, block_instrs: &block_instrs, ..*batch };
        // One block per instruction, so the instructions' numbers are also the blocks'.
        let result = work(self, &batch, batch.block_instrs);
        (self.blocks, self.block_instrs) = (blocks, block_instrs);
        result
    }

    /// Runs blocks of a partition, split if their arrays do not fit otherwise.
    fn run(&mut self, batch: &BatchRef<'_>, blocks: &[u32], report: &mut Report) -> Result<Ticket> {
        let progress = self.service.registry.progress();
        progress.begin(if blocks.is_empty() { batch.blocks.len() } else { blocks.len() });
        let result = match self.run_to_fit(batch, blocks, report) {
            Some(result) => result,
            None => dispatch(&mut self.children, &mut self.pending, batch, blocks, report),
        };
        progress.begin(0);
        result
    }

    /// One line per array with data, and a summary.
    fn leak_text(&self) -> String {
        let (leaks, bytes) = self.service.registry.with(|arrays| (arrays.leaks(), arrays.buffers.bytes()));
        let line = |leak: &Leak| format!("base {}: {}[{}]\n", leak.id, leak.dtype, leak.len);
        let lines: String = leaks.iter().map(line).collect();
        format!("{lines}{} arrays alive, {bytes} bytes of host memory", leaks.len())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        for ticket in std::mem::take(&mut self.pending) {
            if let Some(Err(error)) = self.children.first_mut().map(|child| child.wait(ticket)) {
                self.host.log(log_level::ERROR, &error.to_string());
            }
        }
        if self.leak_report {
            for line in self.leak_text().lines() {
                self.host.log(log_level::WARN, &format!("vem-node: {line}"));
            }
        }
        self.service.registry.with(|arrays| arrays.clear());
    }
}

/// Passes blocks to the engine. With several engines, each run of blocks goes to the first one that supports it.
fn dispatch(
    children: &mut [Child],
    pending: &mut Vec<Ticket>,
    batch: &BatchRef<'_>,
    blocks: &[u32],
    report: &mut Report,
) -> Result<Ticket> {
    if let [child] = children {
        let ticket = child.execute(batch, blocks, report)?;
        if ticket != Ticket::DONE {
            pending.push(ticket);
        }
        return Ok(ticket);
    }
    let all: Vec<u32>;
    let mut rest = blocks;
    if blocks.is_empty() {
        all = (0..batch.blocks.len() as u32).collect();
        rest = &all;
    }
    let mut first_error = Ok(());
    while let Some(&block) = rest.first() {
        // The last engine gets blocks that none supports, and reports the error.
        let takes = |children: &mut [Child], block: u32| {
            let taker = children.iter_mut().position(|child| child.supports(batch, block));
            taker.unwrap_or(children.len() - 1)
        };
        let taker = takes(children, block);
        let count = 1 + rest[1..].iter().take_while(|&&block| takes(children, block) == taker).count();
        let (run, tail) = rest.split_at(count);
        let child = &mut children[taker];
        let outcome = child.execute(batch, run, report).and_then(|ticket| child.wait(ticket));
        first_error = first_error.and(outcome);
        rest = tail;
    }
    first_error.map(|()| Ticket::DONE)
}
