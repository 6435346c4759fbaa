//! Tokens of loans: the index of a slot, and a generation that distinguishes its uses.

/// The subject of a loan; numbers are indices of buffers or attachments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lent {
    /// A host buffer.
    Buffer(u32),
    /// A host buffer with guarded content; also for read-only exports.
    Guarded(u32),
    /// A buffer that an application writes to, and the id of its base.
    Shared(u32, u64),
    /// A copy in an engine's space.
    Attachment(u32),
    /// A buffer for the next version of a base.
    Fresh(u32),
}

/// All loans that have not ended.
#[derive(Clone, Default)]
pub struct Loans {
    entries: Vec<Entry>,
    free: Vec<u32>,
}

#[derive(Clone)]
struct Entry {
    generation: u32,
    lent: Option<Lent>,
}

impl Loans {
    /// The token of a new loan, never 0.
    #[inline]
    pub fn begin(&mut self, lent: Lent) -> u64 {
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                self.entries.push(Entry { generation: 0, lent: None });
                (self.entries.len() - 1) as u32
            }
        };
        let entry = &mut self.entries[index as usize];
        entry.generation = entry.generation.wrapping_add(1);
        entry.lent = Some(lent);
        u64::from(index + 1) << 32 | u64::from(entry.generation)
    }

    /// The subject of a token; `None` if its loan has ended.
    #[inline]
    pub fn get(&self, token: u64) -> Option<Lent> {
        let entry = self.entries.get(((token >> 32) as usize).checked_sub(1)?)?;
        if entry.generation == token as u32 { entry.lent } else { None }
    }

    /// Ends a loan. `None` if it has already ended, or never began.
    #[inline]
    pub fn end(&mut self, token: u64) -> Option<Lent> {
        let found = self.get(token)?;
        let index = ((token >> 32) - 1) as u32;
        self.entries[index as usize].lent = None;
        self.free.push(index);
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_once_and_are_not_given_twice() {
        let mut loans = Loans::default();
        let first = loans.begin(Lent::Buffer(3));
        assert_eq!(loans.get(first), Some(Lent::Buffer(3)));
        assert_eq!(loans.end(first), Some(Lent::Buffer(3)));
        let second = loans.begin(Lent::Fresh(4));
        assert_ne!(first, second);
        assert_eq!((loans.end(first), loans.get(first)), (None, None));
        assert_eq!(loans.end(second), Some(Lent::Fresh(4)));
        assert_eq!([0, 1, u64::MAX, 7 << 32].map(|token| loans.end(token)), [None; 4]);
    }
}
