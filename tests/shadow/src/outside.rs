//! Memory of the heap's kind that the application donates or requests, from any thread.

use crate::bytes::Bytes;
use crate::residency::HeapSpace;
use crate::slot::Slot;
use bh_bytecode::Base;
use bh_core::abi::{Adoption, Export, ExportRequest, adopt, export, memory, status};
use bh_core::component::SharedCalls;
use bh_core::error::{Error, Result};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The kind of the heap's memory; its handles are addresses.
pub const MEMORY: u32 = memory::FIRST_PRIVATE + 1;

/// Answers calls while the engine works.
#[derive(Default)]
pub struct Outside {
    place: OnceLock<Arc<HeapSpace>>,
    lent: Mutex<Lent>,
}

/// Memory that the application reads, by token.
#[derive(Default)]
struct Lent {
    last: u64,
    all: HashMap<u64, Arc<Bytes>>,
}

impl Outside {
    /// Sets the heap, once.
    pub fn bind(&self, place: Arc<HeapSpace>) {
        // There is only one heap.
        let _ = self.place.set(place);
    }

    fn place(&self, kind: u32) -> Result<&HeapSpace> {
        let none = || Error::new(status::UNSUPPORTED, format!("the shadow engine has no memory of kind {kind}"));
        self.place.get().filter(|_| kind == MEMORY).map(|place| &**place).ok_or_else(none)
    }

    fn lent(&self) -> MutexGuard<'_, Lent> {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SharedCalls for Outside {
    fn adopt(&self, base: &Base, adoption: &Adoption) -> Result<()> {
        let place = self.place(adoption.memory())?;
        match adoption.mode() {
            adopt::DONATED | adopt::IMMUTABLE => {}
            adopt::SHARED => {
                let text = "adopt: memory of the shadow engine is donated or immutable, not used by both sides at once";
                return Err(Error::new(status::UNSUPPORTED, text));
            }
            mode => return Err(Error::new(status::ARGUMENT, format!("adopt: there is no mode {mode}"))),
        }
        // SAFETY: `Adoption::new` requires memory with the base's bytes until `release`.
        let bytes = unsafe { Bytes::adopt(adoption, base.bytes() as usize) };
        let slot = Slot::holding(bytes);
        let outcome = place.attach(base, slot.clone(), true);
        match &outcome {
            Ok(()) => place.heap.counters.adoptions.add(1),
            Err(_) => Bytes::refuse(&mut slot.lock().bytes),
        }
        outcome
    }

    fn export_data(&self, base: &Base, request: &ExportRequest) -> Result<Export> {
        let place = self.place(request.memory)?;
        let bytes = match request.mode {
            export::READ_ONLY => place.find(base)?.hold()?,
            export::SNAPSHOT => Arc::new(Bytes::Own(place.find(base)?.hold()?.to_vec())),
            export::SHARED => {
                let text = "export: memory of the shadow engine is lent for reading or as a copy, not shared";
                return Err(Error::new(status::UNSUPPORTED, text));
            }
            mode => return Err(Error::new(status::ARGUMENT, format!("export: there is no mode {mode}"))),
        };
        place.heap.counters.lendings.add(1);
        let data = bytes.as_ptr().cast_mut().cast();
        let mut lent = self.lent();
        lent.last += 1;
        let token = lent.last;
        lent.all.insert(token, bytes);
        Ok(Export { data, bytes: base.bytes() as usize, token })
    }

    fn end_export(&self, _: &Base, token: u64) -> Result<()> {
        let ended = self.lent().all.remove(&token);
        let unknown = || Error::new(status::HANDLE, format!("the shadow engine lends nothing under number {token}"));
        // Dropped without a lock, because this may call the application.
        ended.map(drop).ok_or_else(unknown)
    }
}
