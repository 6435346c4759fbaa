//! Elements that a mask chooses: their positions, or they themselves, in C order. The chosen ones of each part of the mask
//! are counted first; then each part is written where those before it end.

use crate::parallel::{all, share, share_between};
use crate::scratch::Scratch;
use crate::view::ViewRef;
use crate::{Call, Parallel};
use bh_bytecode::{Element, with_dtype};
use bh_core::abi::status;
use bh_core::{Error, Result};
use std::ops::Range;
use std::sync::atomic::{AtomicI64, Ordering};

/// Elements of the mask that a participant takes at a time.
const PART: i64 = 1 << 16;
/// Elements of a block: what is copied where views are not dense.
const BLOCK: usize = 256;
/// The cost of an element of the mask, in the units of [`Parallel::participants`].
const COST: u64 = 12;

/// For each byte of eight truth values, the numbers of those that are true, in order.
static NUMBERS: [[u8; 8]; 256] = {
    let mut numbers = [[0; 8]; 256];
    let mut bits = 0;
    while bits < 256 {
        let (mut bit, mut next) = (0, 0);
        while bit < 8 {
            if bits >> bit & 1 == 1 {
                numbers[bits][next] = bit as u8;
                next += 1;
            }
            bit += 1;
        }
        bits += 1;
    }
    numbers
};

/// The number of true elements.
pub(crate) fn count_nonzero(call: &Call<'_, '_>, threads: &mut dyn Parallel) -> Result<()> {
    call.check()?;
    let (mask, found) = (Mask::new(call), AtomicI64::new(0));
    let participants = threads.participants(mask.count as u64 * COST);
    share(threads, participants, (mask.count, PART), &|shares| {
        let mut own = 0;
        shares.for_each(|part| mask.blocks(part.numbers(), |_, bits| own += trues(bits)));
        found.fetch_add(own, Ordering::Relaxed);
    });
    call.outputs[0].output::<i64>().put(&mut all(threads), 0, found.into_inner());
    Ok(())
}

/// The positions of true elements.
pub(crate) fn flatnonzero(call: &Call<'_, '_>, threads: &mut dyn Parallel) -> Result<()> {
    call.check()?;
    choose::<i64>(call, threads, &|_, first, block| {
        block.iter_mut().zip(first..).for_each(|(to, at)| *to = at);
        None
    })
}

/// The elements of an array where a mask is true.
pub(crate) fn compress(call: &Call<'_, '_>, threads: &mut dyn Parallel) -> Result<()> {
    call.check()?;
    with_dtype!(call.inputs[1].dtype, T => {
        let source = call.inputs[1].elements::<T>();
        choose::<T>(call, threads, &|bits, first, block| {
            let values = source.slice(first..first + bits.len() as i64);
            if values.is_none() {
                block.iter_mut().zip(source.from(first)).for_each(|(to, value)| *to = value);
            }
            values
        })
    })
}

/// The values of a block of the mask, given its truth values, the number of the first one, and room: where they lie, or `None` if
/// they are in the room.
type Load<'a, T> = &'a (dyn Fn(&[u8], i64, &mut [T]) -> Option<&'a [T]> + Sync);

/// Writes to the output, where the mask is true, the values that `load` makes of blocks of the mask.
fn choose<T: Element>(call: &Call<'_, '_>, threads: &mut dyn Parallel, load: Load<'_, T>) -> Result<()> {
    let (mask, output, room) = (Mask::new(call), call.outputs[0].output::<T>(), call.outputs[0].len());
    let parts = (mask.count as u64).div_ceil(PART as u64) as usize;
    let participants = threads.participants(mask.count as u64 * COST);
    // How many each part chooses, and then where its elements begin.
    let found = Scratch::<AtomicI64>::zeros(call.memory, parts)?;
    share(threads, participants, (mask.count, PART), &|shares| {
        for part in shares {
            let mut own = 0;
            mask.blocks(part.numbers(), |_, bits| own += trues(bits));
            found[(part.numbers().start / PART) as usize].store(own, Ordering::Relaxed);
        }
    });
    let mut borders = Scratch::<i64>::zeros(call.memory, parts + 1)?;
    for part in 0..parts {
        borders[part + 1] = borders[part] + found[part].load(Ordering::Relaxed);
    }
    if borders[parts] != room {
        let text = format!("{}: the mask chooses {} elements, but the output has {room}", call.name, borders[parts]);
        return Err(Error::new(status::EXECUTION, text));
    }
    share_between(threads, participants, &borders, &|shares| {
        let mut values = [T::default(); BLOCK];
        for (part, mut own) in shares {
            let first = part as i64 * PART;
            let (mut at, end) = (0, (own.numbers().end - own.numbers().start) as usize);
            let from = own.numbers().start;
            let dense = output.slice_mut(&mut own).map(|_| ()).is_some();
            mask.blocks(first..(first + PART).min(mask.count), |number, bits| {
                if at == end || bits.iter().fold(0, |any, bit| any | bit) == 0 {
                    return;
                }
                let room = &mut values[..bits.len()];
                let found = load(bits, number, room);
                let values = found.unwrap_or(room);
                match output.slice_mut(&mut own).filter(|_| dense) {
                    Some(to) => at += pack(values, bits, &mut to[at..]),
                    None => {
                        for (value, _) in values.iter().zip(bits).filter(|(_, chosen)| **chosen != 0) {
                            output.put(&mut own, from + at as i64, *value);
                            at += 1;
                        }
                    }
                }
            });
        }
    });
    Ok(())
}

/// Writes the chosen values one after the other, and returns their number, for which there is room.
fn pack<T: Copy>(values: &[T], bits: &[u8], to: &mut [T]) -> usize {
    let mut at = 0;
    let (groups, rest) = bits.as_chunks::<8>();
    for (group, values) in groups.iter().zip(values.as_chunks::<8>().0) {
        let word = ones(u64::from_le_bytes(*group));
        if word == 0 {
            continue;
        }
        // The product moves the truth values, one to each bit, to the highest byte.
        let byte = (word.wrapping_mul(0x0102_0408_1020_4080) >> 56) as usize;
        if byte == 0xff {
            to[at..at + 8].copy_from_slice(values);
            at += 8;
            continue;
        }
        let (numbers, count) = (&NUMBERS[byte], byte.count_ones() as usize);
        // With room for eight, later ones overwrite what is too much.
        if let Some(to) = to.get_mut(at..at + 8) {
            to.iter_mut().zip(numbers).for_each(|(to, &number)| *to = values[usize::from(number & 7)]);
        } else {
            let to = &mut to[at..at + count];
            to.iter_mut().zip(numbers).for_each(|(to, &number)| *to = values[usize::from(number & 7)]);
        }
        at += count;
    }
    let values = &values[8 * groups.len()..];
    for (value, _) in values.iter().zip(rest).filter(|(_, chosen)| **chosen != 0) {
        to[at] = *value;
        at += 1;
    }
    at
}

/// Bytes that are not zero become one.
#[inline(always)]
fn ones(word: u64) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    ((((word & LOW) + LOW) | word) & !LOW) >> 7
}

/// How many bytes are not zero.
fn trues(bits: &[u8]) -> i64 {
    let (groups, rest) = bits.as_chunks::<8>();
    let mut found = 0i64;
    for groups in groups.chunks(31) {
        // Eight counters, none of which comes to 256.
        let counters = groups.iter().fold(0u64, |sum, group| sum + ones(u64::from_le_bytes(*group)));
        found += counters.to_le_bytes().iter().map(|&count| i64::from(count)).sum::<i64>();
    }
    found + rest.iter().filter(|&&bit| bit != 0).count() as i64
}

/// A mask.
struct Mask<'a> {
    /// Its truth values as bytes.
    bytes: ViewRef<'a, u8>,
    count: i64,
}

impl<'a> Mask<'a> {
    fn new(call: &'a Call<'_, '_>) -> Mask<'a> {
        Mask { bytes: call.inputs[0].bytes(), count: call.inputs[0].len() }
    }

    /// Calls `f` with blocks of truth values, and the number of the first one of each.
    fn blocks(&self, elements: Range<i64>, mut f: impl FnMut(i64, &[u8])) {
        if let Some(bits) = self.bytes.slice(elements.clone()) {
            return bits.chunks(BLOCK).zip((elements.start..).step_by(BLOCK)).for_each(|(bits, first)| f(first, bits));
        }
        let (mut copied, mut values) = ([0u8; BLOCK], self.bytes.from(elements.start));
        for first in elements.clone().step_by(BLOCK) {
            let count = (elements.end - first).min(BLOCK as i64) as usize;
            copied[..count].iter_mut().zip(&mut values).for_each(|(to, bit)| *to = bit);
            f(first, &copied[..count]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truth_values_are_counted_whatever_their_bytes() {
        for count in [0, 1, 7, 8, 9, 255, 256, 1000] {
            let bits: Vec<u8> = (0..count).map(|at| [0, 1, 0, 255, 2, 128][at % 6]).collect();
            let wanted = bits.iter().filter(|&&bit| bit != 0).count() as i64;
            assert_eq!(trues(&bits), wanted, "{count}");
        }
    }

    #[test]
    fn chosen_values_are_packed_within_their_room() {
        for seed in 0..200u64 {
            let random = |at: u64| (seed * 1000 + at).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            let count = (seed % 67) as usize;
            let bits: Vec<u8> = (0..count as u64).map(|at| u8::from(random(at) % 7 < seed % 8)).collect();
            let values: Vec<u32> = (0..count as u32).collect();
            let wanted: Vec<u32> = values.iter().copied().filter(|&value| bits[value as usize] != 0).collect();
            let mut found = vec![u32::MAX; wanted.len() + 9];
            let packed = pack(&values, &bits, &mut found[..wanted.len()]);
            assert_eq!((packed, &found[..wanted.len()]), (wanted.len(), &wanted[..]), "{seed}");
            assert!(found[wanted.len()..].iter().all(|&value| value == u32::MAX), "{seed} wrote too much");
        }
    }
}
