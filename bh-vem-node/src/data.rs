//! Data calls from above, on any thread, also while batches run.

use crate::registry::ArrayRegistry;
use bh_bytecode::{Base, View};
use bh_core::abi::{Adoption, Export, ExportRequest, HOST_SPACE, HostMemory, Residency, memory, status};
use bh_core::component::{RegistryService, SharedCalls, SharedChild};
use bh_core::error::{Error, Result};

/// Marks tokens of exports that an engine created.
const OF_ENGINE: u64 = 1 << 63;

impl ArrayRegistry {
    /// The engine with this kind of memory.
    fn engine_of(&self, kind: u32, what: &str) -> Result<&SharedChild> {
        let none =
            || Error::new(status::UNSUPPORTED, format!("{what}: no engine of the stack takes memory of kind {kind}"));
        self.engine().ok_or_else(none)
    }
}

impl SharedCalls for ArrayRegistry {
    fn map(&self, base: &Base, _view: Option<&View>, access: u32) -> Result<*mut u8> {
        let loan = self.lend(base, HOST_SPACE, access)?;
        // The loan lasts until `unmap`.
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
        match adoption.memory() {
            memory::HOST => self.with(|arrays| arrays.adopt(base, adoption)),
            kind => self.engine_of(kind, "adopt")?.adopt(base, adoption),
        }
    }

    fn export_data(&self, base: &Base, request: &ExportRequest) -> Result<Export> {
        if request.memory == memory::HOST {
            return self.export(base, request);
        }
        let made = self.engine_of(request.memory, "export")?.export_data(base, request)?;
        Ok(Export { token: made.token | OF_ENGINE, ..made })
    }

    fn end_export(&self, base: &Base, token: u64) -> Result<()> {
        match (token & OF_ENGINE, self.engine()) {
            (0, _) | (_, None) => self.with(|arrays| arrays.end_export(base, token)),
            (_, Some(engine)) => engine.end_export(base, token & !OF_ENGINE),
        }
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
