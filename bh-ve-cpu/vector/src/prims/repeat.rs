//! Rows of one element each, several times.

/// Each of `rows` elements, which lie `stride` bytes apart, becomes `row` elements of a dense block.
///
/// # Safety
/// The block must be valid for all elements and the source at every multiple of the stride; they must not overlap.
pub type RepeatFn = unsafe fn(rows: usize, row: usize, dst: *mut u8, src: *const u8, stride: isize);

/// Repeats elements of a size in bytes.
pub fn repeat(size: usize) -> RepeatFn {
    match size {
        1 => elements::<u8>,
        2 => elements::<u16>,
        4 => elements::<u32>,
        8 => elements::<u64>,
        _ => elements::<[u64; 2]>,
    }
}

/// # Safety
/// As [`RepeatFn`].
unsafe fn elements<T: Copy>(rows: usize, row: usize, dst: *mut u8, src: *const u8, stride: isize) {
    // SAFETY: both sides have the elements that [`RepeatFn`] says.
    unsafe {
        match row {
            2 => fixed::<T, 2>(rows, dst, src, stride),
            3 => fixed::<T, 3>(rows, dst, src, stride),
            4 => fixed::<T, 4>(rows, dst, src, stride),
            0 | 1 => (0..rows * row).for_each(|number| {
                let value = src.offset(number as isize * stride).cast::<T>().read_unaligned();
                dst.cast::<T>().add(number).write_unaligned(value);
            }),
            _ => {
                let mut to = dst.cast::<T>();
                for number in 0..rows {
                    let four = [src.offset(number as isize * stride).cast::<T>().read_unaligned(); 4];
                    for at in (0..row - 4).step_by(4) {
                        to.add(at).cast::<[T; 4]>().write_unaligned(four);
                    }
                    // Some of the last four may be there already.
                    to.add(row - 4).cast::<[T; 4]>().write_unaligned(four);
                    to = to.add(row);
                }
            }
        }
    }
}

/// # Safety
/// As [`RepeatFn`].
unsafe fn fixed<T: Copy, const ROW: usize>(rows: usize, dst: *mut u8, src: *const u8, stride: isize) {
    for number in 0..rows {
        // SAFETY: both sides have the elements that [`RepeatFn`] says.
        unsafe {
            let value = src.offset(number as isize * stride).cast::<T>().read_unaligned();
            dst.cast::<[T; ROW]>().add(number).write_unaligned([value; ROW]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::repeat;

    #[test]
    fn elements_of_all_sizes_are_repeated() {
        let source: Vec<u8> = (0..200).collect();
        for size in [1, 2, 4, 8, 16] {
            for (row, rows) in (1..14).flat_map(|row| [(row, 0), (row, 1), (row, 5)]) {
                for stride in [size as isize, -(size as isize), 2 * size as isize] {
                    let mut out = vec![255; (rows * row + 1) * size];
                    let from = if stride < 0 { 100 } else { 0 };
                    // SAFETY: five elements of 16 bytes, two apart at most, on either side; and room for all.
                    unsafe { repeat(size)(rows, row, out.as_mut_ptr(), source.as_ptr().wrapping_add(from), stride) };
                    let mut wanted: Vec<u8> = Vec::new();
                    for at in 0..rows * row {
                        let begin = (from as isize + (at / row) as isize * stride) as usize;
                        wanted.extend(&source[begin..][..size]);
                    }
                    wanted.extend(vec![255; size]);
                    assert_eq!(out, wanted, "{rows} elements of {size} bytes, {row} times");
                }
            }
        }
    }
}
