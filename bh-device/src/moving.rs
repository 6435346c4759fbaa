//! Elements that move between arrays of the device and pinned memory while the device goes on: whoever shares out arrays over several
//! devices begins a move, lets the devices compute, and waits for it then. The queue's order says what is moved.

use crate::driver::Event;
use crate::launch::Launcher;
use crate::staging::Claim;
use bh_bytecode::{Base, DType};
use bh_core::abi::{access, status};
use bh_core::{Error, Result};
use std::collections::VecDeque;
use std::sync::Arc;

/// A move that was begun, and the memory that it uses.
struct Begun {
    number: u64,
    event: Arc<dyn Event>,
    _memory: Claim,
}

/// The moves of an engine.
#[derive(Default)]
pub(crate) struct Moving {
    begun: VecDeque<Begun>,
    last: u64,
}

/// A run of bytes of a base, and where it comes from or goes to.
struct Run {
    base: Base,
    offset: usize,
    bytes: usize,
    address: usize,
}

impl Run {
    /// `ID TYPE LENGTH OFFSET BYTES ADDRESS`: a base, and what moves.
    fn of(text: &str) -> Option<Run> {
        let mut words = text.split(' ');
        let mut next = || words.next()?.parse::<u64>().ok();
        let (id, dtype, len) = (next()?, next()?, next()?);
        let base = Base::new(id, DType::from_code(u8::try_from(dtype).ok()?)?, i64::try_from(len).ok()?);
        let (offset, bytes, address) = (next()? as usize, next()? as usize, next()? as usize);
        (offset.checked_add(bytes)? as u64 <= base.bytes()).then_some(Run { base, offset, bytes, address })
    }
}

fn refused(why: &str) -> Error {
    Error::new(status::UNSUPPORTED, format!("elements do not move by themselves: {why}"))
}

impl Moving {
    /// Begins to copy what a text names to pinned memory, or from there; the number of the move. Refused if the base is not on the
    /// device, which then costs less when it is waited for.
    pub(crate) fn begin(&mut self, launcher: &mut Launcher, text: &str, writes: bool) -> Result<String> {
        let run = Run::of(text).ok_or_else(|| refused("their place is none"))?;
        let memory = Claim::of(run.address, run.bytes, !writes)
            .ok_or_else(|| refused("the memory is not the engine's, or in use by another move"))?;
        let arrays = &mut launcher.arrays;
        if !arrays.is_known(&run.base) {
            return Err(refused("they are not on the device"));
        }
        let mode = if writes { access::READ | access::WRITE } else { access::READ };
        let lent = arrays.lend(&run.base, mode)?;
        if writes {
            arrays.claim(&run.base, &lent)?;
        }
        let begun = arrays.counters.begin();
        // SAFETY: the memory has these bytes, and no other move uses them in a way that meets this one, as long as the claim is
        // kept: until the event has come. Whoever knows the address uses the memory by `unsafe` of his own.
        let event = unsafe { lent.memory.begin_move(run.offset, (memory.data(), run.bytes), writes)? };
        match writes {
            true => arrays.counters.upload(run.bytes, &begun),
            false => arrays.counters.download(Ok(run.bytes), &begun)?,
        }
        self.last += 1;
        self.begun.push_back(Begun { number: self.last, event, _memory: memory });
        Ok(self.last.to_string())
    }

    /// Waits for the moves up to a number.
    pub(crate) fn finish(&mut self, up_to: u64) -> Result<()> {
        let mut outcome = Ok(());
        while let Some(Begun { event, .. }) = self.begun.pop_front_if(|begun| begun.number <= up_to) {
            outcome = outcome.and(event.wait("moving elements"));
        }
        outcome
    }
}

impl Drop for Moving {
    /// The memory may be another engine's.
    fn drop(&mut self) {
        let _ = self.finish(u64::MAX);
    }
}
