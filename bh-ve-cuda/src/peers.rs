//! Direct copies between devices: streams wait for each other's events, and copy from each other's memory.

use crate::api::{Access, Context};
use crate::driver::{Event, Queue, address};
use crate::library::Handle;
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_device::driver::{Buffer, Driver, Peers};
use std::any::Any;
use std::collections::HashSet;
use std::ffi::c_int;
use std::sync::{Mutex, PoisonError};

/// `CU_MEM_LOCATION_TYPE_DEVICE` and `CU_MEM_ACCESS_FLAGS_PROT_READWRITE`.
const ON_DEVICE: u32 = 1;
const READ_AND_WRITE: u32 = 3;

/// Devices that a device copies from and to, as far as the hardware allows it.
#[derive(Default)]
pub(crate) struct Opened(Mutex<HashSet<c_int>>);

impl Opened {
    fn has(&self, device: c_int) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&device)
    }

    fn add(&self, device: c_int) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(device);
    }
}

/// Held while two devices are opened for each other.
static OPENING: Mutex<()> = Mutex::new(());

/// Opens two devices for each other before the first copy from one to the other. Either of them may carry out a copy: as soon as one
/// context may reach the other, the driver lets the sender write, which faults if it has no access to the receiver's pool yet. Without
/// access at all, the driver copies through memory of its own, so no failure counts.
fn open(one: &Queue, other: &Queue) {
    let (here, there) = (&one.stream.context, &other.stream.context);
    if one.opened.has(there.device) {
        return;
    }
    let _alone = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
    if here.device != there.device && !one.opened.has(there.device) {
        let ways = [(here, there), (there, here)];
        if ways.iter().all(|(reader, owner)| can_reach(reader, owner)) {
            // No copy uses the contexts' access before the pools are open.
            if one.stream.pools && other.stream.pools {
                ways.iter().for_each(|(reader, owner)| open_pool(reader, owner));
            }
            for (reader, owner) in ways {
                // SAFETY: both contexts live. A context that is open already is an error without effect.
                let _ = reader.call("opening a device", |it| unsafe { (it.open_peer)(owner.handle, 0) });
            }
        }
        other.opened.add(here.device);
    }
    one.opened.add(there.device);
}

fn can_reach(reader: &Context, owner: &Context) -> bool {
    let mut reaches = 0;
    // SAFETY: `reaches` takes the answer.
    let asked =
        reader.call("asking for access", |it| unsafe { (it.reaches)(&mut reaches, reader.device, owner.device) });
    asked.is_ok() && reaches != 0
}

/// Gives a device access to the memory of another one's pool.
fn open_pool(reader: &Context, owner: &Context) {
    let access = Access { kind: ON_DEVICE, device: reader.device, rights: READ_AND_WRITE };
    let mut pool = Handle::NULL;
    let _ = owner.call("opening a pool of memory", |it| {
        // SAFETY: `pool` takes the device's pool, and `access` lives through the call.
        unsafe {
            match (it.pool)(&mut pool, owner.device) {
                0 => (it.open_pool)(pool, &access, 1),
                code => code,
            }
        }
    });
}

impl Peers for Queue {
    fn reaches(&self, other: &dyn Driver) -> bool {
        (other as &dyn Any).is::<Queue>()
    }

    fn wait_for(&self, event: &dyn bh_device::driver::Event) -> Result<()> {
        let event = (event as &dyn Any).downcast_ref::<Event>().ok_or_else(foreign)?;
        // SAFETY: the event lives, and was recorded when it was made; the stream keeps what it has to wait for.
        self.ask("waiting for another device", |it, stream| unsafe { (it.wait_in)(stream, event.end, 0) })
    }

    unsafe fn copy_from(
        &self,
        other: &dyn Driver,
        (from, from_at): (&dyn Buffer, usize),
        (to, to_at): (&dyn Buffer, usize),
        len: usize,
    ) -> Result<()> {
        let other = (other as &dyn Any).downcast_ref::<Queue>().ok_or_else(foreign)?;
        let (own, theirs) = (&self.stream.context, &other.stream.context);
        open(self, other);
        let (from, to) = (address(from) + from_at as u64, address(to) + to_at as u64);
        // SAFETY: both buffers have these bytes on these devices, as `# Safety` asks.
        self.ask("copying from another device", |it, stream| unsafe {
            (it.copy_peer)(to, own.handle, from, theirs.handle, len, stream)
        })
    }
}

fn foreign() -> Error {
    Error::new(status::UNSUPPORTED, "CUDA: the other device is none of CUDA")
}
