//! Gathering elements by C-order index, with bounds checks. Indices that go up by one are found when they come, whatever they
//! are computed from, and what they choose is copied: whole rows of an array, mostly.

use crate::primitives::RunFn;
use bh_bytecode::c128;
use bh_core::Error;
use bh_core::abi::status;
use bh_kernel::GatherSource;
use std::ops::Range;

/// Fewer indices are not looked at as a whole.
const RUN: usize = 16;

/// An index that is out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadIndex {
    /// Its bits.
    pub(crate) bits: i64,
    /// Is it to be read as signed?
    pub(crate) signed: bool,
}

impl BadIndex {
    /// The error for this index, where there are `len` elements.
    pub(crate) fn error(self, len: i64) -> Error {
        let index = if self.signed { self.bits.to_string() } else { (self.bits as u64).to_string() };
        Error::new(status::BOUNDS, format!("index {index} is out of range for {len} elements"))
    }
}

/// The C-order number that an index stands for; negative signed indices count from the end.
#[inline(always)]
pub(crate) fn resolve(bits: i64, signed: bool, len: i64) -> Result<i64, BadIndex> {
    let index = if signed && bits < 0 { bits.wrapping_add(len) } else { bits };
    if (index as u64) < len as u64 { Ok(index) } else { Err(BadIndex { bits, signed }) }
}

/// The offset in elements of the element with this C-order number.
#[inline(always)]
pub(crate) fn offset(shape: &[i64], stride: &[i64], number: i64) -> i64 {
    match (shape, stride) {
        ([], []) => 0,
        ([_], [step]) => number * step,
        _ => {
            let (mut rest, mut offset) = (number, 0);
            for (&extent, &step) in shape.iter().zip(stride).rev() {
                offset += rest % extent * step;
                rest /= extent;
            }
            offset
        }
    }
}

/// The types of a gather's elements and indices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GatherForm {
    /// Bytes of an element.
    pub(crate) size: usize,
    /// Are indices signed?
    pub(crate) signed: bool,
    /// Do they go up by one?
    pub(crate) is_run: RunFn,
}

/// Gathers a number of elements, in rows of a length if that is shorter. Indices that are out of range give zeros, and the
/// first of them is returned.
///
/// # Safety
/// `data` must point to the source's first element, `index` to that many 64-bit integers and `dst` to room for as many elements;
/// they must be whole rows.
pub(crate) unsafe fn gather(
    source: &GatherSource,
    data: *const u8,
    form: GatherForm,
    (n, row): (usize, usize),
    index: *const u8,
    dst: *mut u8,
) -> Result<(), BadIndex> {
    let each = if source.stride == [1] && (RUN..n).contains(&row) { row } else { n };
    let mut result = Ok(());
    for from in (0..n).step_by(each.max(1)) {
        let (index, dst) = (index.wrapping_add(from * size_of::<i64>()), dst.wrapping_add(from * form.size));
        // SAFETY: rows are inside of `index` and `dst`; the last one is whole.
        let row = unsafe {
            match form.size {
                1 => run::<u8>(source, data, form, each, index, dst),
                2 => run::<u16>(source, data, form, each, index, dst),
                4 => run::<u32>(source, data, form, each, index, dst),
                8 => run::<u64>(source, data, form, each, index, dst),
                _ => run::<c128>(source, data, form, each, index, dst),
            }
        };
        result = result.and(row);
    }
    result
}

/// # Safety
/// As [`gather`].
unsafe fn run<T: Copy + Default>(
    source: &GatherSource,
    data: *const u8,
    form: GatherForm,
    n: usize,
    index: *const u8,
    dst: *mut u8,
) -> Result<(), BadIndex> {
    let (index, dst, signed) = (index.cast::<i64>(), dst.cast::<T>(), form.signed);
    // SAFETY: offsets are those of elements of the source, and both sides have `n` elements.
    unsafe {
        let element = |at: i64| data.cast::<T>().offset(at as isize).read_unaligned();
        match source.stride[..] {
            [1] if let Some(first) = run_of(n, index, form, source.len) => {
                let bytes = n * size_of::<T>();
                dst.cast::<u8>().copy_from_nonoverlapping(data.add(first as usize * size_of::<T>()), bytes);
                Ok(())
            }
            [step] => each(source.len, signed, n, index, dst, |number| element(number * step)),
            _ => {
                each(source.len, signed, n, index, dst, |number| element(offset(&source.shape, &source.stride, number)))
            }
        }
    }
}

/// The first of `n` numbers that indices stand for, if they go up by one and are in range.
///
/// # Safety
/// As [`gather`].
unsafe fn run_of(n: usize, index: *const i64, form: GatherForm, len: i64) -> Option<i64> {
    if n < RUN {
        return None;
    }
    // SAFETY: there are `n` indices.
    let [first, last] = [0, n - 1].map(|i| unsafe { index.add(i).read_unaligned() });
    let [number, end] = [first, last].map(|bits| resolve(bits, form.signed, len).ok());
    // Most are no run by these two; nor is it one from negative ones on, which count from the end, to others.
    (end?.checked_sub(number?)? == n as i64 - 1).then_some(())?;
    // SAFETY: there are `n` indices.
    unsafe { (form.is_run)(n, index.cast()) }.then_some(number?)
}

/// Indices that are read together.
const CHUNK: usize = 64;

/// Writes what `element` gives for each index. A chunk is read without branches, so that the processor has many reads under way;
/// one with an index that is out of range is read again.
///
/// # Safety
/// `index` must lead to `n` numbers, and `dst` have room for as many elements.
#[inline(always)]
unsafe fn each<T: Copy + Default>(
    len: i64,
    signed: bool,
    n: usize,
    index: *const i64,
    dst: *mut T,
    element: impl Fn(i64) -> T,
) -> Result<(), BadIndex> {
    let (mut result, wrap) = (Ok(()), if signed { len } else { 0 });
    for from in (0..n).step_by(CHUNK) {
        let chunk = from..(from + CHUNK).min(n);
        let mut outside = len == 0;
        for i in chunk.clone().take_while(|_| len > 0) {
            // SAFETY: `i` is below `n`, and so there is an index, and room for its element, as `# Safety` asks.
            unsafe {
                let bits = index.add(i).read_unaligned();
                let number = bits.wrapping_add((bits >> 63) & wrap);
                let is_inside = (number as u64) < len as u64;
                outside |= !is_inside;
                dst.add(i).write_unaligned(element(if is_inside { number } else { 0 }));
            }
        }
        if outside {
            // SAFETY: the chunk is one of the `n` indices, which are there, as is room for as many elements, as
            // `# Safety` asks.
            result = result.and(unsafe { one_by_one(len, signed, chunk, index, dst, &element) });
        }
    }
    result
}

/// Writes what `element` gives for each index of a range, or zero where it is out of range.
///
/// # Safety
/// `index` must lead to a number, and `dst` have room for an element, at each place of the range.
#[cold]
unsafe fn one_by_one<T: Copy + Default>(
    len: i64,
    signed: bool,
    range: Range<usize>,
    index: *const i64,
    dst: *mut T,
    element: impl Fn(i64) -> T,
) -> Result<(), BadIndex> {
    let mut result = Ok(());
    for i in range {
        // SAFETY: `i` is one of the range, and so there is an index, and room for its element, as `# Safety` asks.
        unsafe {
            let value = match resolve(index.add(i).read_unaligned(), signed, len) {
                Ok(number) => element(number),
                Err(bad) => {
                    result = result.and(Err(bad));
                    T::default()
                }
            };
            dst.add(i).write_unaligned(value);
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::Isa;
    use bh_kernel::BufferRef;

    const LEN: i64 = 300;

    /// The elements that `gather` gives for these indices in rows of `row`.
    fn gathered(
        index: &[i64],
        row: usize,
        signed: bool,
        shape: &[i64],
        stride: &[i64],
    ) -> (Vec<f64>, Option<BadIndex>) {
        let source =
            GatherSource { buffer: BufferRef::Base(0), start: 0, shape: shape.into(), stride: stride.into(), len: LEN };
        let data: Vec<f64> = (0..1000).map(f64::from).collect();
        let results = Isa::available().map(|isa| {
            let form = GatherForm { size: 8, signed, is_run: crate::prims::is_run(isa) };
            let mut out = vec![-1.0; index.len()];
            let (from, to) = (index.as_ptr().cast(), out.as_mut_ptr().cast());
            // SAFETY: the source is within `data`, and both sides have as many elements.
            let result = unsafe { gather(&source, data.as_ptr().cast(), form, (index.len(), row), from, to) };
            (out, result.err())
        });
        let results: Vec<(Vec<f64>, Option<BadIndex>)> = results.collect();
        assert!(results.iter().all(|result| *result == results[0]));
        results[0].clone()
    }

    #[test]
    fn runs_give_what_each_index_gives() {
        let run = |from: i64, n: i64| (from..from + n).collect::<Vec<i64>>();
        let mut broken = run(5, 40);
        broken[20] = 7;
        let rows = [run(250, 20), run(3, 20), run(-40, 20)].concat();
        let cases = [run(5, 40), run(260, 40), run(261, 40), run(-40, 40), run(-20, 40), run(-310, 40), broken, rows];
        for (index, row) in cases.iter().flat_map(|index| [(index, index.len()), (index, 20), (index, 1)]) {
            for (signed, shape, stride) in
                [(true, &[300][..], &[1][..]), (false, &[300], &[1]), (true, &[300], &[3]), (true, &[20, 15], &[30, 1])]
            {
                let element = |&bits: &i64| {
                    let number = if signed && bits < 0 { bits + LEN } else { bits };
                    let inside = (0..LEN).contains(&number);
                    (if inside { offset(shape, stride, number) as f64 } else { 0.0 }, inside)
                };
                let (wanted, inside): (Vec<f64>, Vec<bool>) = index.iter().map(element).unzip();
                let bad = inside.iter().position(|inside| !inside).map(|at| BadIndex { bits: index[at], signed });
                let got = gathered(index, row, signed, shape, stride);
                assert_eq!(got, (wanted, bad), "{index:?} in rows of {row}, {shape:?}, {stride:?}, signed: {signed}");
            }
        }
    }
}
