//! A cache of buffers for long messages: iterations send the same sizes, and faulting in new memory takes as long as
//! copying the bytes.

use std::sync::{Mutex, PoisonError};

/// Buffers of shorter messages are not cached.
const LEAST_BYTES: usize = 64 << 10;

/// Limits of the cache.
const MOST_BYTES: usize = 256 << 20;
const MOST_BUFFERS: usize = 256;

/// The cached buffers.
struct Buffers {
    kept: Vec<Vec<u8>>,
    bytes: usize,
}

static BUFFERS: Mutex<Buffers> = Mutex::new(Buffers { kept: Vec::new(), bytes: 0 });

impl Buffers {
    /// A buffer of this many bytes with arbitrary contents, if one fits.
    fn take(&mut self, bytes: usize) -> Option<Vec<u8>> {
        let fits = |buffer: &&Vec<u8>| (bytes..=2 * bytes).contains(&buffer.len());
        let best = self.kept.iter().filter(fits).map(Vec::len).min()?;
        let place = self.kept.iter().position(|buffer| buffer.len() == best)?;
        let mut buffer = self.kept.swap_remove(place);
        self.bytes -= buffer.capacity();
        buffer.truncate(bytes);
        Some(buffer)
    }

    /// Caches a buffer, within the limits.
    fn give(&mut self, buffer: Vec<u8>) {
        let bytes = self.bytes + buffer.capacity();
        if buffer.len() >= LEAST_BYTES && bytes <= MOST_BYTES && self.kept.len() < MOST_BUFFERS {
            self.bytes = bytes;
            self.kept.push(buffer);
        }
    }
}

/// A buffer of this many bytes with arbitrary contents.
pub fn take(bytes: usize) -> Vec<u8> {
    let kept = match bytes >= LEAST_BYTES {
        true => BUFFERS.lock().unwrap_or_else(PoisonError::into_inner).take(bytes),
        false => None,
    };
    kept.unwrap_or_else(|| vec![0; bytes])
}

/// Returns the buffer of a message to the cache.
pub fn give(buffer: Vec<u8>) {
    if buffer.len() >= LEAST_BYTES {
        BUFFERS.lock().unwrap_or_else(PoisonError::into_inner).give(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_reused_where_they_fit() {
        let mut buffers = Buffers { kept: Vec::new(), bytes: 0 };
        let address = |buffer: &Vec<u8>| buffer.as_ptr().addr();
        let (large, small) = (vec![1; 3 * LEAST_BYTES], vec![2; LEAST_BYTES]);
        let addresses = [address(&large), address(&small)];
        buffers.give(large);
        buffers.give(small);
        buffers.give(vec![3; LEAST_BYTES - 1]);
        assert_eq!((buffers.kept.len(), buffers.bytes), (2, 4 * LEAST_BYTES));
        assert!(buffers.take(4 * LEAST_BYTES).is_none() && buffers.take(LEAST_BYTES + 1).is_none());
        let taken = buffers.take(2 * LEAST_BYTES).unwrap();
        assert_eq!((taken.len(), address(&taken)), (2 * LEAST_BYTES, addresses[0]));
        let taken = buffers.take(LEAST_BYTES).unwrap();
        assert_eq!((taken.len(), address(&taken)), (LEAST_BYTES, addresses[1]));
        assert_eq!((buffers.kept.len(), buffers.bytes), (0, 0));
        buffers.give(vec![0; MOST_BYTES + 1]);
        assert!(buffers.kept.is_empty());
    }
}
