//! The component as the host sees it. Data calls use the bypass if it is open; all others lock the cluster.

use super::Cluster;
use super::bypass::{Bypass, Effect, bytes_of};
use bh_bytecode::{Base, BatchRef, Opcode, View};
use bh_core::abi::{
    Adoption, Capabilities, Evaluation, Export, ExportRequest, HostMemory, ImmediateOperation, Prediction, Residency,
    ScalarOperation, Served, adopt, kind, retire,
};
use bh_core::component::{Child, Component, Host, Registry, Report, SharedCalls, Ticket};
use bh_core::config::Row;
use bh_core::error::Result;
use bh_core::keys;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The cluster and its bypass.
#[derive(Clone)]
struct Routes {
    cluster: Arc<Mutex<Cluster>>,
    bypass: Arc<Bypass>,
}

impl Routes {
    fn cluster(&self) -> MutexGuard<'_, Cluster> {
        self.cluster.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Routes a data call through the bypass if it is open, otherwise to the cluster.
    fn route<T>(
        &self,
        base: &Base,
        by: Effect,
        bypassed: impl Fn(&mut Child, &Base) -> Result<T>,
        through: impl FnOnce(&mut Cluster) -> Result<T>,
    ) -> Result<T> {
        if self.bypass.is_concurrent()
            && let Some(outcome) = self.bypass.call_child(base, by, &bypassed)
        {
            return outcome;
        }
        let mut cluster = self.cluster();
        self.bypass.call_child(base, by, &bypassed).unwrap_or_else(|| through(&mut cluster))
    }
}

impl SharedCalls for Routes {
    fn map(&self, base: &Base, view: Option<&View>, access: u32) -> Result<*mut u8> {
        let by = Effect::Maps(bytes_of(base, view));
        self.route(base, by, |child, base| child.map(base, view, access), |cluster| cluster.map(base, view, access))
    }

    fn unmap(&self, base: &Base) -> Result<()> {
        self.route(base, Effect::Unmaps, |child, base| child.unmap(base), |cluster| cluster.unmap(base))
    }

    fn read(&self, base: &Base, view: &View, memory: &HostMemory) -> Result<()> {
        let by = Effect::Copies(bytes_of(base, Some(view)));
        self.route(base, by, |child, base| child.read(base, view, memory), |cluster| cluster.read(base, view, memory))
    }

    fn write(&self, base: &Base, view: &View, memory: &HostMemory) -> Result<()> {
        let by = Effect::Copies(bytes_of(base, Some(view)));
        self.route(base, by, |child, base| child.write(base, view, memory), |cluster| cluster.write(base, view, memory))
    }

    fn adopt(&self, base: &Base, adoption: &Adoption) -> Result<()> {
        let by = if adoption.mode() == adopt::SHARED { Effect::Fixes } else { Effect::Copies(0) };
        self.route(base, by, |child, base| child.adopt(base, adoption), |cluster| cluster.adopt(base, adoption))
    }

    fn export_data(&self, base: &Base, request: &ExportRequest) -> Result<Export> {
        let bypassed = |child: &mut Child, base: &Base| {
            let export = child.export_data(base, request)?;
            self.bypass.note_export(export.token, base);
            Ok(export)
        };
        self.route(base, Effect::Fixes, bypassed, |cluster| cluster.export_data(base, request))
    }

    fn end_export(&self, base: &Base, token: u64) -> Result<()> {
        self.bypass.end_export(base, token)
    }

    fn pin(&self, base: &Base, pinned: bool) -> Result<()> {
        self.route(base, Effect::Fixes, |child, base| child.pin(base, pinned), |cluster| cluster.pin(base, pinned))
    }

    fn prefetch(&self, base: &Base, view: Option<&View>, memory: u32) -> Result<()> {
        self.route(base, Effect::Queries, |child, base| child.prefetch(base, view, memory), |_| Ok(()))
    }

    fn detach(&self, base: &Base) -> Result<()> {
        self.route(base, Effect::Queries, |child, base| child.detach(base), |_| Ok(()))
    }

    fn residency(&self, base: &Base) -> Result<Residency> {
        self.route(base, Effect::Queries, |child, base| child.residency(base), |cluster| cluster.residency(base))
    }

    fn retire(&self, base: &Base, action: u32) -> Result<()> {
        let by = if action == retire::DISCARD { Effect::Drops } else { Effect::Queries };
        self.route(base, by, |child, base| child.retire(base, action), |cluster| cluster.retire(base, action))
    }

    fn evaluate(&self, operation: &ScalarOperation) -> Result<Evaluation> {
        self.bypass.compute(|child| child.evaluate(operation))
    }

    fn immediate(&self, operation: &ImmediateOperation) -> Result<bool> {
        self.bypass.compute(|child| child.immediate(operation))
    }
}

/// The cluster manager and its bypass.
pub struct Front(Routes);

// SAFETY: all state is in the cluster and its bypass, which the host uses only while this component lives; threads end
// with the calls that start them.
unsafe impl Component for Front {
    const NAME: &'static str = crate::NAME;
    const KIND: u32 = kind::DATA_MANAGER;
    const KEYS: &'static [Row] = keys::cluster::ALL;

    fn create(host: Host, children: Vec<Child>) -> Result<Front> {
        let (cluster, bypass) = Cluster::create(host, children)?;
        Ok(Front(Routes { cluster: Arc::new(Mutex::new(cluster)), bypass }))
    }

    /// None: this component answers every call itself.
    fn child(&mut self) -> Option<&mut Child> {
        None
    }

    fn shared(&self) -> Option<Arc<dyn SharedCalls>> {
        Some(Arc::new(self.0.clone()))
    }

    fn capabilities(&mut self) -> Capabilities {
        self.0.cluster().capabilities()
    }

    fn bind(&mut self, _registry: Registry) -> Result<()> {
        Ok(())
    }

    fn predict(&mut self, batch: &BatchRef<'_>, blocks: &[u32]) -> Result<Prediction> {
        self.0.cluster().predict(batch, blocks)
    }

    fn execute(&mut self, batch: &BatchRef<'_>, blocks: &[u32], report: &mut Report) -> Result<Ticket> {
        self.0.cluster().execute(batch, blocks, report)
    }

    fn wait(&mut self, ticket: Ticket) -> Result<()> {
        self.0.cluster().wait(ticket)
    }

    fn poll(&mut self, ticket: Ticket) -> Result<bool> {
        self.0.cluster().poll(ticket)
    }

    fn serve(&mut self, _number: u64) -> Result<Served> {
        let server = self.0.cluster().server.take();
        let Some(server) = server else { return Ok(Served::default()) };
        server.run();
        Ok(Served { ended: 1, ..Served::default() })
    }

    fn progress(&mut self) -> Result<()> {
        self.0.cluster().progress()
    }

    fn fork(&mut self, moment: u32) -> Result<()> {
        self.0.cluster().fork(moment)
    }

    fn extmethod(&mut self, name: &str, opcode: Opcode) -> Result<bool> {
        self.0.cluster().extmethod(name, opcode)
    }

    fn message(&mut self, text: &str) -> Result<String> {
        self.0.cluster().message(text)
    }
}
