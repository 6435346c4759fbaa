//! The calls about data that come from above, from any thread, while batches run or not.

use crate::registry::ArrayRegistry;
use bh_bytecode::{Base, View};
use bh_core::abi::{Adoption, Export, ExportRequest, HOST_SPACE, HostMemory, Residency, memory, status};
use bh_core::component::{RegistryService, SharedCalls};
use bh_core::error::{Error, Result};

/// Refuses memory that is not the host's.
fn host_only(kind: u32, what: &str) -> Result<()> {
    if kind == memory::HOST {
        return Ok(());
    }
    Err(Error::new(status::UNSUPPORTED, format!("{what}: no engine of the stack takes memory of kind {kind}")))
}

impl SharedCalls for ArrayRegistry {
    fn map(&self, base: &Base, _view: Option<&View>, access: u32) -> Result<*mut u8> {
        let loan = self.lend(base, HOST_SPACE, access)?;
        // The loan lasts until unmap.
        self.with(|arrays| arrays.mapped(base.id, &loan));
        Ok(loan.data.cast())
    }

    fn unmap(&self, base: &Base) -> Result<()> {
        self.with(|arrays| arrays.unmap(base))
    }

    fn read(&self, base: &Base, view: &View, memory: &HostMemory) -> Result<()> {
        RegistryService::read(self, base, view, memory)
    }

    fn write(&self, base: &Base, view: &View, memory: &HostMemory) -> Result<()> {
        RegistryService::write(self, base, view, memory)
    }

    fn adopt(&self, base: &Base, adoption: &Adoption) -> Result<()> {
        host_only(adoption.memory(), "adopt")?;
        self.with(|arrays| arrays.adopt(base, adoption))
    }

    fn export_data(&self, base: &Base, request: &ExportRequest) -> Result<Export> {
        host_only(request.memory, "export")?;
        self.export(base, request)
    }

    fn end_export(&self, base: &Base, token: u64) -> Result<()> {
        self.with(|arrays| arrays.end_export(base, token))
    }

    fn pin(&self, base: &Base, pinned: bool) -> Result<()> {
        self.with(|arrays| arrays.pin(base, pinned))
    }

    fn prefetch(&self, base: &Base, view: Option<&View>, kind: u32) -> Result<()> {
        if kind == memory::HOST {
            self.begin_sync(base, view);
        }
        Ok(())
    }

    fn detach(&self, base: &Base) -> Result<()> {
        self.detach_everywhere(base)
    }

    fn residency(&self, base: &Base) -> Result<Residency> {
        Ok(RegistryService::residency(self, base))
    }

    fn retire(&self, base: &Base, action: u32) -> Result<()> {
        self.retire_base(base, action)
    }
}
