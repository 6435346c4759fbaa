//! Elements that engines of one process pass to each other: one offers places of its arrays, another one takes them to places of its
//! own. Devices that reach each other copy directly, and their queues wait for each other. Others copy through pinned memory of the
//! offering device: a short offer begins to fill it at once, so that only the taking engine waits.

use crate::arrays::Arrays;
use crate::driver::{Driver, Event, Peers};
use crate::launch::Launcher;
use crate::memory::Memory;
use crate::moves;
use crate::staging::Pinned;
use bh_bytecode::{Base, DType, View};
use bh_core::abi::{access, status};
use bh_core::{Error, Result};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of a piece of pinned memory, and of the longest offer that fills one at once.
const PIECE: usize = 8 << 20;

/// Pieces that an engine's uploads may be reading when it takes the next offer.
const MOST_BUSY: usize = 4;

/// Elements of a base.
struct Place {
    base: Base,
    view: View,
}

impl Place {
    /// `ID TYPE LENGTH START RANK EXTENTS STEPS`: a base, and a view inside of it.
    fn of(text: &str) -> Option<Place> {
        let mut words = text.split(' ');
        let mut next = || words.next()?.parse::<i64>().ok();
        let (id, dtype, len, start, rank) = (next()?, next()?, next()?, next()?, next()?);
        let mut list = || (0..rank).map(|_| next()).collect::<Option<Vec<i64>>>();
        let view = View::new(start, &list()?, &list()?).ok()?;
        let base = Base::new(u64::try_from(id).ok()?, DType::from_code(u8::try_from(dtype).ok()?)?, len);
        (!view.is_empty() && view.fits(len)).then_some(Place { base, view })
    }

    /// Places between semicolons.
    fn list(text: &str) -> Result<Vec<Place>> {
        let all: Option<Vec<Place>> = text.split(';').map(Place::of).collect();
        all.ok_or_else(|| refused("a place is none, or leaves its array"))
    }

    fn bytes(&self) -> usize {
        self.view.len() as usize * self.base.dtype().size()
    }

    /// Where the elements begin, if they are next to each other.
    fn first(&self) -> Option<usize> {
        self.view.is_contiguous().then(|| self.view.start() as usize * self.base.dtype().size())
    }
}

/// Elements next to each other in memory of a device.
struct Run {
    memory: Arc<Memory>,
    first: usize,
    bytes: usize,
}

/// Runs of memory that an engine offers, until another one takes them.
struct Offer {
    runs: Vec<Run>,
    types: Vec<DType>,
    /// When the elements are there: in the runs, or in the piece.
    ready: Arc<dyn Event>,
    /// Pinned memory with all elements.
    filled: Option<Lease>,
    /// May devices copy the runs directly?
    direct: bool,
    pieces: Arc<Pieces>,
}

/// The offers of all engines of this library, by number.
static OFFERS: Mutex<(u64, BTreeMap<u64, Offer>)> = Mutex::new((0, BTreeMap::new()));

fn offers() -> MutexGuard<'static, (u64, BTreeMap<u64, Offer>)> {
    OFFERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Pinned memory of an engine that is not in use.
#[derive(Default)]
struct Pieces(Mutex<Vec<Pinned>>);

impl Pieces {
    fn lease(self: &Arc<Pieces>, driver: &dyn Driver) -> Result<Lease> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let memory = kept.or_else(|| Pinned::new(driver, PIECE)).ok_or_else(|| refused("no pinned memory is left"))?;
        Ok(Lease { memory: Some(memory), pieces: self.clone() })
    }
}

/// A piece of pinned memory, which goes back to its engine.
struct Lease {
    memory: Option<Pinned>,
    pieces: Arc<Pieces>,
}

impl Lease {
    /// The address of a byte.
    fn at(&self, offset: usize) -> *mut u8 {
        debug_assert!(offset <= PIECE);
        let begin = self.memory.as_ref().map_or(0, |memory| memory.address);
        std::ptr::with_exposed_provenance_mut(begin + offset)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.pieces.0.lock().unwrap_or_else(PoisonError::into_inner).extend(self.memory.take());
    }
}

/// An engine's side of the exchange.
#[derive(Default)]
pub(crate) struct Exchange {
    pieces: Arc<Pieces>,
    /// Uploads that still read pieces.
    busy: VecDeque<(Arc<dyn Event>, Lease)>,
}

fn refused(why: &str) -> Error {
    Error::new(status::UNSUPPORTED, format!("elements are not passed to another device: {why}"))
}

impl Exchange {
    /// `direct PLACES` or `staged PLACES`: offers elements as they are after all work so far. The answer is the offer's name, and how it
    /// is taken: `direct`, by the devices; `filled`, from pinned memory; `held`, in pieces. The engine must not write the elements before an
    /// offer that is not filled is taken. Refused if an array is not on the device.
    pub(crate) fn offer(&mut self, name: &str, launcher: &mut Launcher, text: &str) -> Result<String> {
        let (way, places) = text.split_once(' ').unwrap_or((text, ""));
        let places = Place::list(places)?;
        let arrays = &mut launcher.arrays;
        let runs = sources(arrays, &places)?;
        let driver = &*arrays.pool.gpu.driver;
        let direct = way == "direct" && driver.peers().is_some() && runs.iter().all(|run| run.memory.is_own());
        let total: usize = runs.iter().map(|run| run.bytes).sum();
        let (mut ready, mut filled) = (None, None);
        if !direct && total <= PIECE {
            let lease = self.pieces.lease(driver)?;
            let begun = arrays.counters.begin();
            ready = move_all(&runs, &lease, false)?;
            arrays.counters.download(Ok(total), &begun)?;
            filled = Some(lease);
        }
        let ready = ready.map_or_else(|| driver.mark(), Ok)?;
        let state = if direct { "direct" } else { filled.as_ref().map_or("held", |_| "filled") };
        let types = places.iter().map(|place| place.base.dtype()).collect();
        let offer = Offer { runs, types, ready, filled, direct, pieces: self.pieces.clone() };
        let mut offers = offers();
        offers.0 += 1;
        let number = offers.0;
        offers.1.insert(number, offer);
        Ok(format!("{name}:{number} {state}"))
    }

    /// `OFFER PLACES`: copies the offered elements to these places, in the order of all work so far. Refused, and without effect, if an array
    /// is not on the device but for one that is written as a whole. The offer ends either way.
    pub(crate) fn take(&mut self, name: &str, launcher: &mut Launcher, text: &str) -> Result<String> {
        let (token, places) = text.split_once(' ').unwrap_or((text, ""));
        let offer = Offer::named(name, token)?;
        let places = Place::list(places)?;
        let fits = |((place, run), dtype): ((&Place, &Run), &DType)| {
            place.bytes() == run.bytes && place.base.dtype() == *dtype
        };
        if places.len() != offer.runs.len() || !places.iter().zip(&offer.runs).zip(&offer.types).all(fits) {
            return Err(refused("the offer has other elements"));
        }
        let arrays = &mut launcher.arrays;
        let gpu = arrays.pool.gpu.clone();
        let peers = gpu
            .driver
            .peers()
            .filter(|peers| offer.direct && offer.runs.iter().all(|run| peers.reaches(&*run.memory.pool.gpu.driver)));
        let (targets, packed) = targets(arrays, &places)?;
        let (begun, total) = (arrays.counters.begin(), targets.iter().map(|run| run.bytes).sum());
        if let Some(peers) = peers {
            // After an error, the source may be written to only when the copies that have begun are done.
            offer.copy_directly(&*gpu.driver, peers, &targets).inspect_err(|_| drop(gpu.finish()))?;
            arrays.counters.peer(total, &begun);
        } else {
            if offer.filled.is_some() {
                self.upload_filled(offer, &targets)?;
            } else {
                offer.copy_in_pieces(&targets)?;
            }
            arrays.counters.upload(total, &begun);
        }
        for Packed { place, from, to } in packed {
            moves::spread(&from, &to, place.base.dtype(), &place.view)?;
        }
        Ok("taken".into())
    }

    /// The elements of a filled offer, which ends, as hexadecimal digits: for a few numbers that the host computes with.
    pub(crate) fn tell(name: &str, token: &str) -> Result<String> {
        let offer = Offer::named(name, token)?;
        let lease = offer.filled.as_ref().ok_or_else(|| refused("the offer is too long to be told"))?;
        offer.ready.wait("copying from the device")?;
        let total: usize = offer.runs.iter().map(|run| run.bytes).sum();
        // SAFETY: the piece has these bytes, which nobody writes any more.
        let bytes = unsafe { std::slice::from_raw_parts(lease.at(0), total) };
        let mut text = String::with_capacity(2 * total);
        for byte in bytes {
            // Texts take everything.
            let _ = write!(text, "{byte:02x}");
        }
        Ok(text)
    }

    /// Ends an offer that nobody has taken.
    pub(crate) fn withdraw(name: &str, token: &str) -> Result<String> {
        Offer::named(name, token).map(|_| String::new())
    }

    /// Begins the uploads of a piece as soon as it is filled.
    fn upload_filled(&mut self, mut offer: Offer, targets: &[Run]) -> Result<()> {
        while self.busy.len() >= MOST_BUSY || self.busy.front().is_some_and(|(event, _)| event.is_done()) {
            let Some((event, _lease)) = self.busy.pop_front() else { break };
            event.wait("copying to the device")?;
        }
        offer.ready.wait("copying from the device")?;
        let Some(lease) = offer.filled.take() else { return Ok(()) };
        self.busy.extend(move_all(targets, &lease, true)?.map(|event| (event, lease)));
        Ok(())
    }
}

/// The elements that are offered, packed if they are not next to each other.
fn sources(arrays: &mut Arrays, places: &[Place]) -> Result<Vec<Run>> {
    if !places.iter().all(|place| arrays.is_known(&place.base)) {
        return Err(refused("they are not on the device"));
    }
    let run = |place: &Place| -> Result<Run> {
        let memory = arrays.lend(&place.base, access::READ)?.memory;
        memory.settle()?;
        Ok(match place.first() {
            Some(first) => Run { memory, first, bytes: place.bytes() },
            None => {
                let packed = moves::clone(&memory, place.base.dtype(), &place.view)?;
                Run { memory: Arc::new(packed), first: 0, bytes: place.bytes() }
            }
        })
    };
    places.iter().map(run).collect()
}

/// Elements that arrive one after the other, and have to be spread over a view of an array.
struct Packed<'a> {
    place: &'a Place,
    from: Arc<Memory>,
    to: Arc<Memory>,
}

/// Where elements arrive. The registry learns that their arrays change.
fn targets<'a>(arrays: &mut Arrays, places: &'a [Place]) -> Result<(Vec<Run>, Vec<Packed<'a>>)> {
    let is_whole = |place: &Place| place.first().is_some() && place.view.len() == place.base.len;
    if !places.iter().all(|place| is_whole(place) || arrays.is_known(&place.base)) {
        return Err(refused("they would not go to the device"));
    }
    let (mut targets, mut packed) = (Vec::new(), Vec::new());
    for place in places {
        let mode = if is_whole(place) { access::WRITE | access::DISCARD } else { access::READ | access::WRITE };
        // Copies of other devices that read other parts of the array do not matter.
        let lent = arrays.lend_unordered(&place.base, mode)?;
        let bytes = place.bytes();
        lent.memory.before_writing(place.first().map_or(0..usize::MAX, |first| first..first + bytes))?;
        arrays.claim(&place.base, &lent)?;
        targets.push(match place.first() {
            Some(first) => Run { memory: lent.memory, first, bytes },
            None => {
                let memory = Arc::new(arrays.take(bytes)?);
                packed.push(Packed { place, from: memory.clone(), to: lent.memory });
                Run { memory, first: 0, bytes }
            }
        });
    }
    Ok((targets, packed))
}

/// Begins to copy runs to a piece, one after the other, or from there; the event of the last one.
fn move_all(runs: &[Run], lease: &Lease, writes: bool) -> Result<Option<Arc<dyn Event>>> {
    let (mut at, mut last) = (0, None::<Arc<dyn Event>>);
    for run in runs {
        // SAFETY: the piece has these bytes, and the holder of the lease does not touch them before the event.
        match unsafe { run.memory.begin_move(run.first, (lease.at(at), run.bytes), writes) } {
            Ok(event) => last = Some(event),
            Err(error) => {
                let _ = last.map_or(Ok(()), |event| event.wait("moving elements"));
                return Err(error);
            }
        }
        at += run.bytes;
    }
    Ok(last)
}

impl Offer {
    /// The offer that a text names, which ends.
    fn named(name: &str, token: &str) -> Result<Offer> {
        let number =
            token.split_once(':').filter(|(driver, _)| *driver == name).and_then(|(_, number)| number.parse().ok());
        let found = number.and_then(|number: u64| offers().1.remove(&number));
        found.ok_or_else(|| refused(&format!("there is no offer '{token}'")))
    }

    /// Puts the copies into the queue of the taking device, which waits until the elements are there. The offering device's next writes
    /// to them wait for the copies.
    fn copy_directly(&self, driver: &dyn Driver, peers: &dyn Peers, targets: &[Run]) -> Result<()> {
        peers.wait_for(&*self.ready)?;
        for (run, target) in self.runs.iter().zip(targets) {
            let (other, from) = (&*run.memory.pool.gpu.driver, (run.memory.buffer(), run.first));
            // SAFETY: the devices reach each other, both buffers have these bytes, and `read_until` keeps the first one as it is.
            unsafe { peers.copy_from(other, from, (target.memory.buffer(), target.first), run.bytes)? };
        }
        let done = driver.mark()?;
        for run in &self.runs {
            run.memory.read_until(run.first..run.first + run.bytes, done.clone());
        }
        Ok(())
    }

    /// Copies through two pieces of pinned memory in turn: one is filled while the other is read.
    fn copy_in_pieces(&self, targets: &[Run]) -> Result<()> {
        let mut parts = Vec::new();
        for (run, target) in self.runs.iter().zip(targets) {
            parts.extend((0..run.bytes).step_by(PIECE).map(|at| (run, target, at, PIECE.min(run.bytes - at))));
        }
        let Some((first, ..)) = parts.first() else { return Ok(()) };
        let driver = &*first.memory.pool.gpu.driver;
        let leases = [self.pieces.lease(driver)?, self.pieces.lease(driver)?];
        let mut turns = Turns { leases, filling: None, reading: [None, None] };
        let mut outcome = (0..=parts.len()).try_for_each(|turn| turns.turn(&parts, turn));
        // The pieces go back when nothing uses them.
        for event in turns.reading.into_iter().flatten().chain(turns.filling) {
            outcome = outcome.and(event.wait("moving elements"));
        }
        outcome
    }
}

/// Two pieces that are filled and read in turn.
struct Turns {
    leases: [Lease; 2],
    filling: Option<Arc<dyn Event>>,
    reading: [Option<Arc<dyn Event>>; 2],
}

impl Turns {
    /// Begins to fill a piece with a part, and to read the other one, which has the part before. A part is the place of its bytes in two
    /// runs, and how many they are.
    fn turn(&mut self, parts: &[(&Run, &Run, usize, usize)], turn: usize) -> Result<()> {
        if let Some(event) = self.reading[turn % 2].take() {
            event.wait("copying to the device")?;
        }
        let before = self.filling.take();
        if let Some(&(run, _, at, len)) = parts.get(turn) {
            let piece = (self.leases[turn % 2].at(0), len);
            // SAFETY: the piece has these bytes, and nobody uses them until the event has come.
            self.filling = Some(unsafe { run.memory.begin_move(run.first + at, piece, false)? });
        }
        let Some(before) = before else { return Ok(()) };
        before.wait("copying from the device")?;
        let (place, (_, target, at, len)) = ((turn - 1) % 2, parts[turn - 1]);
        // SAFETY: the piece has these bytes, and nobody writes them until the event has come.
        self.reading[place] =
            Some(unsafe { target.memory.begin_move(target.first + at, (self.leases[place].at(0), len), true)? });
        Ok(())
    }
}

impl Drop for Offer {
    /// A piece goes back when nothing fills it any more.
    fn drop(&mut self) {
        if self.filled.is_some() {
            let _ = self.ready.wait("copying from the device");
        }
    }
}

impl Drop for Exchange {
    /// The pieces may be another engine's; nobody takes what a closed engine has offered.
    fn drop(&mut self) {
        for (event, _lease) in self.busy.drain(..) {
            let _ = event.wait("copying to the device");
        }
        let mut all = offers();
        let own: Vec<u64> = all
            .1
            .iter()
            .filter(|(_, offer)| Arc::ptr_eq(&offer.pieces, &self.pieces))
            .map(|(number, _)| *number)
            .collect();
        let ended: Vec<Option<Offer>> = own.iter().map(|number| all.1.remove(number)).collect();
        drop(all);
        drop(ended);
    }
}
