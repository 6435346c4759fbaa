//! Elements that a mask chooses: their positions, or they themselves, in C order. The chosen ones of each part of the mask
//! are counted first; then each part is written where those before it end.

use crate::scratch::Scratch;
use crate::{Call, Parallel, Strided};
use bh_bytecode::with_dtype;
use bh_core::abi::status;
use bh_core::{Error, Result};
use std::sync::atomic::{AtomicI64, Ordering};

/// Elements of the mask that a participant takes at a time.
const PART: i64 = 1 << 16;
/// Elements of a block: what is copied where views are not dense.
const BLOCK: usize = 256;
/// What an element of the mask costs, in the units of [`Parallel::participants`].
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
    let (mask, found) = (Shared(&call.inputs[0]), AtomicI64::new(0));
    let count = mask.get().len();
    let participants = threads.participants(count as u64 * COST);
    threads.run(participants, (count as u64).div_ceil(PART as u64) as usize, &|tasks| {
        let mut own = 0;
        for task in tasks {
            let first = task as i64 * PART;
            blocks(mask.get(), first..(first + PART).min(count), |_, bits| own += trues(bits));
        }
        found.fetch_add(own, Ordering::Relaxed);
    });
    // SAFETY: the output is one element of this type.
    unsafe { call.outputs[0].data.cast::<i64>().write_unaligned(found.into_inner()) };
    Ok(())
}

/// The positions of true elements.
pub(crate) fn flatnonzero(call: &Call<'_, '_>, threads: &mut dyn Parallel) -> Result<()> {
    call.check()?;
    let step = call.outputs[0].step();
    choose::<i64, _>(call, threads, step, |block, first, _| {
        for (to, number) in block.iter_mut().zip(first..) {
            *to = number;
        }
        block.as_ptr()
    })
}

/// The elements of an array where a mask is true.
pub(crate) fn compress(call: &Call<'_, '_>, threads: &mut dyn Parallel) -> Result<()> {
    call.check()?;
    let step = call.outputs[0].step();
    let source = Shared(&call.inputs[1]);
    with_dtype!(source.get().dtype, T => {
        let dense = source.get().step() == Some(size_of::<T>() as isize);
        choose::<T, _>(call, threads, step, |block, first, bits| {
            let source = source.get();
            if dense {
                return source.data.cast::<T>().wrapping_add(first as usize).cast_const();
            }
            let mut walk = Along::new(source, first);
            for (to, chosen) in block.iter_mut().zip(bits) {
                if *chosen != 0 {
                    // SAFETY: the address is that of an element of the view, whose type this is.
                    *to = unsafe { walk.at.cast::<T>().read_unaligned() };
                }
                walk.next();
            }
            block.as_ptr()
        })
    })
}

/// Writes to the output, where the mask is true, the values that `load` makes of blocks of the mask: given room for them,
/// the number of the first element and the truth values, it says where they are.
fn choose<T: Copy + Send + Sync, F>(
    call: &Call<'_, '_>,
    threads: &mut dyn Parallel,
    step: Option<isize>,
    load: F,
) -> Result<()>
where
    F: Fn(&mut [T], i64, &[u8]) -> *const T + Sync,
{
    let (mask, output) = (Shared(&call.inputs[0]), Shared(&call.outputs[0]));
    let (count, room) = (mask.get().len(), output.get().len());
    let parts = (count as u64).div_ceil(PART as u64) as usize;
    let participants = threads.participants(count as u64 * COST);
    // SAFETY: zeros are integers.
    let mut places = unsafe { Scratch::<i64>::zeros(call.memory, parts + 1)? };
    let shared = Places(places.as_mut_ptr());
    threads.run(participants, parts, &|tasks| {
        for task in tasks {
            let first = task as i64 * PART;
            let mut found = 0;
            blocks(mask.get(), first..(first + PART).min(count), |_, bits| found += trues(bits));
            // SAFETY: each task has a place of its own.
            unsafe { shared.place(task + 1).write(found) };
        }
    });
    for part in 1..=parts {
        places[part] += places[part - 1];
    }
    if places[parts] != room {
        let text = format!("{}: the mask chooses {} elements, but the output has {room}", call.name, places[parts]);
        return Err(Error::new(status::EXECUTION, text));
    }
    let dense = step == Some(size_of::<T>() as isize) && output.get().data.cast::<T>().is_aligned();
    let shared = Places(places.as_mut_ptr());
    threads.run(participants, parts, &|tasks| {
        let mut values = [const { std::mem::MaybeUninit::<T>::uninit() }; BLOCK];
        // SAFETY: elements of all types may have any bits; what is not loaded is not chosen.
        let values = unsafe {
            values.as_mut_ptr().write_bytes(0, BLOCK);
            &mut *values.as_mut_ptr().cast::<[T; BLOCK]>()
        };
        for task in tasks {
            let first = task as i64 * PART;
            // SAFETY: the places are read only by now.
            let (mut at, end) = unsafe { (shared.place(task).read(), shared.place(task + 1).read()) };
            blocks(mask.get(), first..(first + PART).min(count), |number, bits| {
                if at == end || bits.iter().fold(0, |any, bit| any | bit) == 0 {
                    return;
                }
                let values = load(&mut values[..bits.len()], number, bits);
                if dense {
                    let to = output.get().data.cast::<T>();
                    // SAFETY: the part's elements of the output are this participant's, and all values can be read.
                    at += unsafe { pack(values, bits, to.wrapping_add(at as usize), (end - at) as usize) };
                } else {
                    for (place, _) in bits.iter().enumerate().filter(|(_, chosen)| **chosen != 0) {
                        // SAFETY: as above.
                        unsafe { output.get().at(at).cast::<T>().write_unaligned(values.add(place).read_unaligned()) };
                        at += 1;
                    }
                }
            });
        }
    });
    Ok(())
}

/// Writes the chosen values one after the other, and returns their number; `room` is how many may be written.
///
/// # Safety
/// `values` must be valid for reading one for each truth value, `to` for writing `room`, of which no more may be chosen.
unsafe fn pack<T: Copy>(values: *const T, bits: &[u8], to: *mut T, room: usize) -> i64 {
    let mut at = 0;
    let (groups, rest) = bits.as_chunks::<8>();
    for (group, first) in groups.iter().zip((0..).step_by(8)) {
        let word = ones(u64::from_le_bytes(*group));
        if word == 0 {
            continue;
        }
        // The product moves the truth values, one to each bit, to the highest byte.
        let byte = (word.wrapping_mul(0x0102_0408_1020_4080) >> 56) as usize;
        let count = byte.count_ones() as usize;
        // With room for eight, later ones overwrite what is too much.
        let written = if at + 8 <= room { 8 } else { count };
        for (next, &number) in NUMBERS[byte][..written].iter().enumerate() {
            // SAFETY: the number is below eight, and no more are chosen than there is room for.
            unsafe { to.add(at + next).write(values.add(first + usize::from(number)).read_unaligned()) };
        }
        at += count;
    }
    for (place, _) in rest.iter().enumerate().filter(|(_, chosen)| **chosen != 0) {
        // SAFETY: as above.
        unsafe { to.add(at).write(values.add(8 * groups.len() + place).read_unaligned()) };
        at += 1;
    }
    at as i64
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

/// Calls `f` with blocks of a mask's truth values, and the number of the first element of each.
fn blocks(mask: &Strided<'_>, elements: std::ops::Range<i64>, mut f: impl FnMut(i64, &[u8])) {
    let dense = mask.step() == Some(1);
    let mut copied = [0u8; BLOCK];
    let mut walk = Along::new(mask, elements.start);
    let mut first = elements.start;
    while first < elements.end {
        let count = (elements.end - first).min(BLOCK as i64) as usize;
        if dense {
            // SAFETY: the elements are inside the view and follow each other.
            f(first, unsafe { std::slice::from_raw_parts(mask.data.wrapping_add(first as usize), count) });
        } else {
            for to in &mut copied[..count] {
                // SAFETY: the address is that of an element of the view.
                *to = unsafe { walk.at.read() };
                walk.next();
            }
            f(first, &copied[..count]);
        }
        first += count as i64;
    }
}

/// A walk over the elements of a view in C order, from any of them on.
struct Along<'a> {
    shape: &'a [i64],
    stride: &'a [isize],
    index: [i64; bh_bytecode::MAX_RANK],
    at: *mut u8,
}

impl<'a> Along<'a> {
    fn new(view: &'a Strided<'_>, first: i64) -> Along<'a> {
        let mut index = [0; bh_bytecode::MAX_RANK];
        let mut rest = first;
        for (place, &extent) in index[..view.shape.len()].iter_mut().zip(view.shape).rev() {
            *place = rest % extent.max(1);
            rest /= extent.max(1);
        }
        Along {
            shape: view.shape,
            stride: &view.stride,
            index,
            at: if view.is_empty() { view.data } else { view.at(first) },
        }
    }

    #[inline(always)]
    fn next(&mut self) {
        for dim in (0..self.shape.len()).rev() {
            self.index[dim] += 1;
            if self.index[dim] < self.shape[dim] {
                self.at = self.at.wrapping_offset(self.stride[dim]);
                return;
            }
            self.at = self.at.wrapping_offset(self.stride[dim].wrapping_mul(1 - self.shape[dim] as isize));
            self.index[dim] = 0;
        }
    }
}

/// A view that participants share.
struct Shared<'a, 'b>(&'a Strided<'b>);

// SAFETY: inputs are read, and of the output participants write different elements.
unsafe impl Sync for Shared<'_, '_> {}

impl<'a, 'b> Shared<'a, 'b> {
    fn get(&self) -> &'a Strided<'b> {
        self.0
    }
}

/// Where each part's elements begin.
struct Places(*mut i64);

// SAFETY: each task writes a place of its own, or all only read.
unsafe impl Sync for Places {}

impl Places {
    fn place(&self, part: usize) -> *mut i64 {
        self.0.wrapping_add(part)
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
            // SAFETY: the room is inside the vector.
            let packed = unsafe { pack(values.as_ptr(), &bits, found.as_mut_ptr(), wanted.len()) };
            assert_eq!((packed as usize, &found[..wanted.len()]), (wanted.len(), &wanted[..]), "{seed}");
            assert!(found[wanted.len()..].iter().all(|&value| value == u32::MAX), "{seed} wrote too much");
        }
    }
}
