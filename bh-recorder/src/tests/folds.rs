//! The checks `overflow` and `cancellation` of sums and products over axes.

use super::*;
use bh_bytecode::Element;

fn checked(list: &str) -> Arc<Recorder> {
    context(Options { checks: Checks::parse(list).unwrap(), ..Options::default() }).0
}

/// An array of these numbers, in rows of this many.
fn rows<T: Element>(recorder: &Recorder, columns: usize, numbers: &[T]) -> Input {
    let shape = [(numbers.len() / columns) as i64, columns as i64];
    let array = recorder.empty(T::DTYPE, &shape).unwrap();
    // SAFETY: the array has as many elements.
    unsafe { recorder.write(array, numbers.as_ptr().cast(), None).unwrap() };
    Input::Array(array)
}

/// The next wait's report about a fold over some axes.
fn reported(recorder: &Recorder, opcode: Opcode, axes: u16, input: Input) -> Option<String> {
    let made = recorder.operate_new(opcode, axes, None, &[input], HERE).unwrap();
    let text = recorder.sync().err().map(|error| error.to_string());
    recorder.free(made).unwrap();
    text
}

#[test]
fn sums_along_axes_that_lose_their_bits_are_found() {
    let recorder = checked("cancellation");
    // The columns' sums are 0, 7 and 16; the rows' are large, or exactly zero.
    let a = rows(&recorder, 3, &[1.0, 5.0, 1e17, 2.0, -5.0, 3.0, -3.0, 7.0, 16.0 - 1e17]);
    assert_eq!(
        reported(&recorder, Opcode::AddReduce, 1, a).unwrap(),
        "program.c:7: add_reduce: element 2 of the result has lost 53 of its 53 bits by cancellation (numbers added: 3; \
         the largest: 100000000000000000); elements like that: 1"
    );
    assert_eq!(reported(&recorder, Opcode::AddReduce, 2, a), None);
    assert!(reported(&recorder, Opcode::AddReduce, 3, a).unwrap().contains("element () of the result has lost 5"));
    let narrow = rows(&recorder, 2, &[1e7f32, 1.0, -1e7, 1.0, 4.0, 1.0]);
    let text = reported(&recorder, Opcode::AddReduce, 1, narrow).unwrap();
    let lost =
        "element 0 of the result has lost 22 of its 24 bits by cancellation (numbers added: 3; the largest: 10000000)";
    assert!(text.contains(lost), "{text}");
}

#[test]
fn sums_and_products_of_integers_beyond_their_type_are_found() {
    let recorder = checked("overflow");
    // Partial sums beyond the type are none.
    let fine = rows(&recorder, 2, &[100i8, 1, 27, 2, 1, 3, -1, 4]);
    assert_eq!([1, 2].map(|axes| reported(&recorder, Opcode::AddReduce, axes, fine)), [None, None]);
    let beyond = rows(&recorder, 2, &[100i8, 1, 27, 2, 1, 3, 0, 4]);
    assert_eq!(
        reported(&recorder, Opcode::AddReduce, 1, beyond).unwrap(),
        "program.c:7: add_reduce: element 0 of the result is beyond its type (numbers added: 4); elements like that: 1"
    );
    let wide = rows(&recorder, 2, &[i64::MAX, i64::MIN, 1, i64::MIN]);
    let text = reported(&recorder, Opcode::AddReduce, 1, wide).unwrap();
    assert!(
        text.contains("element 0 of the result is beyond its type (numbers added: 2); elements like that: 2"),
        "{text}"
    );
    let factors = rows(&recorder, 3, &[1u64 << 40, 1 << 40, 0, 1 << 40, 1 << 20, 1, 1 << 63, 2, 1]);
    let text = reported(&recorder, Opcode::MultiplyReduce, 2, factors).unwrap();
    assert!(
        text.contains("multiply_reduce: element 2 of the result is beyond its type (numbers multiplied: 3)"),
        "{text}"
    );
}

/// Numbers that look random and are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

/// Whether each column of some rows is beyond a type's range, as `join` makes one number of it.
fn columns_beyond(numbers: &[i128], columns: usize, range: [i128; 2], join: fn(i128, i128) -> i128) -> bool {
    (0..columns).any(|column| {
        let all = numbers.iter().skip(column).step_by(columns);
        let joined = all.copied().reduce(join).unwrap_or(0);
        joined < range[0] || joined > range[1]
    })
}

#[test]
fn random_integers_are_reported_exactly_if_their_sum_or_product_is_beyond_the_type() {
    let recorder = checked("overflow");
    let mut random = Numbers(7);
    let mut counts = [0, 0];
    macro_rules! of_type {
        ($($type:ty),*) => {$(
            for round in 0..12 {
                let columns = 1 + round % 3;
                // Some numbers are about as large as the type allows that many of, others much smaller.
                let shift = random.bits() % (<$type>::BITS as u64 - 1);
                let numbers: Vec<$type> = (0..6 * columns).map(|_| (random.bits() as $type) >> shift).collect();
                let exact: Vec<i128> = numbers.iter().map(|&number| number as i128).collect();
                let range = [<$type>::MIN as i128, <$type>::MAX as i128];
                let input = rows(&recorder, columns, &numbers);
                for (opcode, join) in [
                    (Opcode::AddReduce, (|a, b| a + b) as fn(i128, i128) -> i128),
                    (Opcode::MultiplyReduce, |a, b| a.saturating_mul(b)),
                ] {
                    let beyond = columns_beyond(&exact, columns, range, join);
                    let text = reported(&recorder, opcode, 1, input);
                    assert_eq!(text.is_some(), beyond, "{opcode:?} {numbers:?}: {text:?}");
                    counts[usize::from(beyond)] += 1;
                }
            }
        )*};
    }
    of_type!(i8, u8, i16, u16, i32, u32, i64, u64);
    assert!(counts[0] > 40 && counts[1] > 40, "{counts:?}");
}

#[test]
fn random_sums_are_reported_exactly_if_they_lose_the_bits() {
    let recorder = checked("cancellation=30");
    let mut random = Numbers(9);
    let mut counts = [0, 0];
    for _ in 0..150 {
        // Whole numbers, whose sums are exact: some with their opposites, and a small rest.
        let pairs: Vec<f64> = (0..6).map(|_| (random.bits() >> 16) as f64).collect();
        let rest = (random.bits() >> (random.bits() % 36 + 28)) as f64;
        let mut terms: Vec<f64> = pairs.iter().flat_map(|&number| [number, -number]).chain([rest]).collect();
        let by = (random.bits() % 13) as usize;
        terms.rotate_left(by);
        let size: f64 = terms.iter().map(|term| term.abs()).sum();
        let lost = rest > 0.0 && size >= rest * 2f64.powi(30);
        let input = rows(&recorder, 13, &terms);
        let text = reported(&recorder, Opcode::AddReduce, 2, input);
        assert_eq!(text.is_some(), lost, "{terms:?}: {text:?}");
        counts[usize::from(lost)] += 1;
    }
    assert!(counts[0] > 15 && counts[1] > 15, "{counts:?}");
}
