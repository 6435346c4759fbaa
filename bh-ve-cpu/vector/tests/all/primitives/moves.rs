//! Copies, fills and generated blocks.

use super::support::*;
use super::*;
use bh_bytecode::CastFrom;

#[test]
fn strided_copies_and_fills() {
    for (isa, size) in Isa::available().flat_map(|isa| [1, 2, 4, 8, 16].map(|size| (isa, size))) {
        let data: Vec<u8> = (0..8000usize).map(|i| (i * 31 + i / 7) as u8).collect();
        for stride in [-3isize, -1, 0, 1, 2, 3, 4, 5] {
            let n = 37;
            let mut source = Block::new(&data, 16);
            let mut dense = Block::new(&vec![0; n * size], 16);
            let middle = 4000 / size * size;
            let bytes = stride * size as isize;
            // SAFETY: 37 elements of at most 16 bytes and 5 apart stay within 4000 bytes of the middle.
            unsafe { gather_strided(isa, size)(n, dense.pointer(), source.pointer().add(middle), bytes) };
            let got = dense.bytes(n * size);
            for i in 0..n {
                let from = (middle as isize + i as isize * bytes) as usize;
                assert_eq!(got[i * size..][..size], data[from..][..size], "{isa}: gather {size} {stride} {i}");
            }
            if stride != 0 {
                let mut target = Block::new(&vec![0; data.len()], 16);
                // SAFETY: as above.
                unsafe {
                    scatter_strided(size)(n, target.pointer().add(middle), dense.pointer(), bytes);
                    let mut back = Block::new(&vec![0; n * size], 16);
                    gather_strided(isa, size)(n, back.pointer(), target.pointer().add(middle), bytes);
                    assert_eq!(back.bytes(n * size), got, "{isa}: scatter {size} {stride}");
                }
            }
        }
        let mut filled = Block::new(&vec![0; 51 * size], 16);
        // SAFETY: 50 elements.
        unsafe { fill(size)(50, filled.pointer(), data[3..].as_ptr()) };
        let bytes = filled.bytes(51 * size);
        assert!(bytes[..50 * size].chunks(size).all(|element| element == &data[3..][..size]));
        assert!(bytes[50 * size..].iter().all(|&byte| byte == 0));
    }
}

#[test]
fn streamed_copies_at_every_alignment() {
    let data: Vec<u8> = (0..1000usize).map(|i| (i * 7 + i / 250) as u8).collect();
    for offset in [0, 1, 8, 24] {
        for bytes in [0, 1, 63, 64, 200, 900] {
            let mut out = Block::new(&[0; 1000], offset);
            // SAFETY: both sides are long enough.
            unsafe { copy_streaming()(bytes, out.pointer(), data[offset..].as_ptr()) };
            fence();
            let got = out.bytes(1000);
            assert_eq!(got[..bytes], data[offset..][..bytes]);
            assert!(got[bytes..].iter().all(|&byte| byte == 0));
        }
    }
}

#[test]
fn generators() {
    use bh_bytecode::philox::Random;
    for isa in Isa::available() {
        for (start, stride) in [(0i64, 1i64), (-5, 3), (i64::MAX - 2, 7), (1 << 40, -1)] {
            let index = |i: usize| start.wrapping_add((i as i64).wrapping_mul(stride));
            macro_rules! check_iota {
                ([$(($type:ty, $variant:ident)),*]) => {$(
                    let mut out = [<$type>::default(); 100];
                    let run = iota(isa, DType::$variant).expect("RANGE of every real type");
                    // SAFETY: 100 elements.
                    unsafe { run(100, out.as_mut_ptr().cast(), start, stride) };
                    assert!((0..100).all(|i| out[i] == <$type as CastFrom<i64>>::cast_from(index(i))));
                )*};
            }
            types_of!(REAL, check_iota);
            macro_rules! check_philox {
                ([$(($type:ty, $variant:ident)),*]) => {$(
                    let mut out = [<$type>::default(); 100];
                    let run = philox(isa, DType::$variant).expect("RANDOM");
                    // SAFETY: 100 elements.
                    unsafe { run(100, out.as_mut_ptr().cast(), start, stride, 77) };
                    assert!((0..100).all(|i| out[i] == <$type>::random(index(i) as u64, 77)));
                )*};
            }
            types_of!(RANDOM, check_philox);
        }
    }
}

#[test]
fn runs_are_told_from_what_differs_at_one_place() {
    for isa in Isa::available() {
        for n in [0usize, 1, 2, 17, 255, 256, 257, 700] {
            for first in [0i64, -300, 1 << 50, i64::MAX - 5] {
                let mut index: Vec<i64> = (0..n as i64).map(|i| first.wrapping_add(i)).collect();
                // SAFETY: `n` numbers.
                let is_run = |index: &[i64]| unsafe { is_run(isa)(n, index.as_ptr().cast()) };
                assert!(is_run(&index), "{isa}: {n} from {first}");
                for at in 0..n {
                    index[at] ^= 4;
                    assert!(n == 1 || !is_run(&index), "{isa}: {n} from {first}, but for {at}");
                    index[at] ^= 4;
                }
            }
        }
    }
}
