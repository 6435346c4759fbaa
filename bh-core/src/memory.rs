//! Host memory of one stack: aligned buffers, a bounded cache of freed ones, and a limit on the total.
//!
//! Sizes are rounded up to classes (multiples of 64 bytes up to a page, then eight per doubling), so that programs
//! whose arrays shrink slowly still reuse freed buffers. Large buffers are mapped directly, on huge pages if requested.

mod mapped;

use std::alloc::{Layout, alloc, dealloc};
use std::collections::{BTreeMap, VecDeque};
use std::ptr;
use std::sync::{Mutex, MutexGuard};

const LINE: usize = 64;
const PAGE: usize = 4096;
/// Buffers of at least this size are mapped instead of taken from the C heap, which would map them too, all at the same
/// offset in a page.
const MAPPED: usize = 128 << 10;

/// Limits of a [`Memory`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemorySettings {
    /// The limit on the bytes in use and cached together; `usize::MAX` for no limit.
    pub limit: usize,
    /// Bytes of freed buffers that are kept for reuse.
    pub cache: usize,
    /// Whether to ask the system for huge pages.
    pub huge_pages: bool,
}

impl Default for MemorySettings {
    fn default() -> MemorySettings {
        MemorySettings { limit: usize::MAX, cache: 1 << 30, huge_pages: true }
    }
}

/// The memory in use, in bytes of whole classes, and the number of allocations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUsage {
    /// Bytes lent now.
    pub in_use: usize,
    /// The most bytes lent at any time.
    pub peak: usize,
    /// Bytes kept for reuse.
    pub cached: usize,
    /// Allocations.
    pub allocations: u64,
    /// Allocations served from the cache.
    pub cache_hits: u64,
    /// Allocations refused because of the limit or the system.
    pub refused: u64,
}

/// Allocator with a reuse cache. All methods may be called from any thread.
pub struct Memory {
    state: Mutex<State>,
}

/// The lent and the cached buffers.
pub(crate) struct State {
    settings: MemorySettings,
    usage: MemoryUsage,
    /// Free buffers of up to a page, by class.
    small: [Vec<Buffer>; PAGE / LINE + 1],
    /// Larger free buffers by class, oldest first, with the time they were freed.
    large: BTreeMap<usize, VecDeque<(u64, Buffer)>>,
    clock: u64,
}

/// A free buffer.
struct Buffer(*mut u8);

// SAFETY: a free buffer belongs exclusively to the owner of this pointer.
unsafe impl Send for Buffer {}

/// The class of a size; `None` if it exceeds the address space.
fn class_of(bytes: usize) -> Option<usize> {
    if bytes <= PAGE {
        return Some(bytes.max(1).next_multiple_of(LINE));
    }
    let step = (1usize << (usize::BITS - 4 - bytes.leading_zeros())).max(PAGE);
    bytes.checked_next_multiple_of(step).filter(|&class| isize::try_from(class).is_ok())
}

/// Bytes that an allocation of `bytes` counts as.
pub fn charged(bytes: usize) -> usize {
    class_of(bytes).unwrap_or(usize::MAX)
}

impl Memory {
    /// An empty cache with these limits.
    pub fn new(settings: MemorySettings) -> Memory {
        Memory {
            state: Mutex::new(State {
                settings,
                usage: MemoryUsage::default(),
                small: [const { Vec::new() }; PAGE / LINE + 1],
                large: BTreeMap::new(),
                clock: 0,
            }),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// At least `bytes`, aligned to 64, with undefined contents or zeroed. `None` if it would exceed the limit, or if
    /// the system has no memory. Free it with [`Memory::free`].
    pub fn alloc(&self, bytes: usize, zeroed: bool) -> Option<*mut u8> {
        let Some(class) = class_of(bytes) else {
            self.lock().usage.refused += 1;
            return None;
        };
        let (cached, surplus, huge_pages) = {
            let mut state = self.lock();
            let cached = state.take(class);
            // Cached bytes count against the limit; a reused buffer counts only once.
            let surplus = match cached {
                Some(_) => Vec::new(),
                None => state.make_room(class),
            };
            if cached.is_none() && !state.fits(class) {
                state.usage.refused += 1;
                drop(state);
                give_back(surplus);
                return None;
            }
            let usage = &mut state.usage;
            usage.allocations += 1;
            usage.cache_hits += u64::from(cached.is_some());
            usage.in_use += class;
            usage.peak = usage.peak.max(usage.in_use);
            (cached, surplus, state.settings.huge_pages)
        };
        give_back(surplus);
        let (data, fresh) = match cached {
            Some(Buffer(data)) => (data, false),
            None => (self.system_alloc(class, huge_pages)?, true),
        };
        if zeroed && !(fresh && class >= MAPPED) {
            // SAFETY: the buffer has at least `bytes` bytes.
            unsafe { ptr::write_bytes(data, 0, bytes) };
        }
        Some(data)
    }

    /// A fresh buffer; if the system has no memory, empties the cache and tries again. Undoes the accounting on
    /// failure.
    fn system_alloc(&self, class: usize, huge_pages: bool) -> Option<*mut u8> {
        let data = system_alloc(class, huge_pages).or_else(|| {
            self.release_cache();
            system_alloc(class, huge_pages)
        });
        if data.is_none() {
            let mut state = self.lock();
            state.usage.in_use -= class;
            state.usage.refused += 1;
        }
        data
    }

    /// Takes a buffer back, into the cache if it fits.
    ///
    /// # Safety
    /// `data` must come from [`Memory::alloc`] of this value with the same `bytes`, and be unused.
    pub unsafe fn free(&self, data: *mut u8, bytes: usize) {
        let Some(class) = class_of(bytes) else { return };
        let surplus = {
            let mut state = self.lock();
            state.usage.in_use -= class;
            state.put(class, Buffer(data))
        };
        give_back(surplus);
    }

    /// Returns all cached buffers to the system; the result is their size in bytes.
    pub fn release_cache(&self) -> usize {
        let surplus = self.lock().evict(0);
        let bytes = surplus.iter().map(|(class, _)| class).sum();
        give_back(surplus);
        bytes
    }

    /// The current use.
    pub fn usage(&self) -> MemoryUsage {
        self.lock().usage
    }

    /// Bytes that can still be lent before the limit.
    pub fn left(&self) -> usize {
        let state = self.lock();
        state.settings.limit.saturating_sub(state.usage.in_use)
    }

    /// The limits.
    pub fn settings(&self) -> MemorySettings {
        self.lock().settings
    }

    /// Changes the limit on the total; buffers in use stay.
    pub fn set_limit(&self, limit: usize) {
        let surplus = {
            let mut state = self.lock();
            state.settings.limit = limit;
            state.make_room(0)
        };
        give_back(surplus);
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.release_cache();
    }
}

impl State {
    /// A cached buffer of this class, the one freed last.
    fn take(&mut self, class: usize) -> Option<Buffer> {
        let buffer = if class <= PAGE {
            self.small[class / LINE].pop()?
        } else {
            let list = self.large.get_mut(&class)?;
            let (_, buffer) = list.pop_back()?;
            buffer
        };
        self.usage.cached -= class;
        Some(buffer)
    }

    /// Caches a buffer; returns the buffers to release instead.
    fn put(&mut self, class: usize, buffer: Buffer) -> Vec<(usize, Buffer)> {
        if class > self.settings.cache {
            return vec![(class, buffer)];
        }
        let surplus = match self.usage.cached + class > self.settings.cache {
            true => self.evict(self.settings.cache - class),
            false => Vec::new(),
        };
        self.clock += 1;
        if class <= PAGE {
            self.small[class / LINE].push(buffer);
        } else {
            self.large.entry(class).or_default().push_back((self.clock, buffer));
        }
        self.usage.cached += class;
        surplus
    }

    fn fits(&self, class: usize) -> bool {
        self.usage.in_use.checked_add(class).is_some_and(|total| total <= self.settings.limit)
    }

    /// Shrinks the cache so that `class` more bytes stay under the limit, if possible.
    fn make_room(&mut self, class: usize) -> Vec<(usize, Buffer)> {
        if !self.fits(class) {
            return Vec::new();
        }
        let room = self.settings.limit - self.usage.in_use - class;
        if self.usage.cached <= room { Vec::new() } else { self.evict(room) }
    }

    /// Removes buffers from the cache until it has at most `bytes`: large ones first, the oldest first.
    fn evict(&mut self, bytes: usize) -> Vec<(usize, Buffer)> {
        let mut surplus = Vec::new();
        while self.usage.cached > bytes {
            let age = |list: &VecDeque<(u64, Buffer)>| list.front().map(|(time, _)| *time);
            let oldest = self.large.iter().filter_map(|(&class, list)| Some((age(list)?, class))).min();
            let Some((_, class)) = oldest else { break };
            let list = self.large.get_mut(&class).expect("the class was just found");
            surplus.extend(list.pop_front().map(|(_, buffer)| (class, buffer)));
            if list.is_empty() {
                self.large.remove(&class);
            }
            self.usage.cached -= class;
        }
        for (index, list) in self.small.iter_mut().enumerate().rev() {
            while self.usage.cached > bytes {
                let Some(buffer) = list.pop() else { break };
                surplus.push((index * LINE, buffer));
                self.usage.cached -= index * LINE;
            }
        }
        surplus
    }
}

fn give_back(surplus: Vec<(usize, Buffer)>) {
    for (class, Buffer(data)) in surplus {
        system_free(data, class);
    }
}

fn layout(class: usize) -> Layout {
    Layout::from_size_align(class, LINE).expect("classes fit isize")
}

fn system_alloc(class: usize, huge_pages: bool) -> Option<*mut u8> {
    if class >= MAPPED {
        return mapped::map(class, huge_pages);
    }
    // SAFETY: classes are never empty.
    let data = unsafe { alloc(layout(class)) };
    (!data.is_null()).then_some(data)
}

fn system_free(data: *mut u8, class: usize) {
    // SAFETY: the buffer came from `system_alloc` with this class.
    unsafe {
        if class >= MAPPED {
            mapped::unmap(data);
        } else {
            dealloc(data, layout(class));
        }
    }
}

#[cfg(test)]
mod tests;
