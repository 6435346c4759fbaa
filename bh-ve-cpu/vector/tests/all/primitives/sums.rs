//! Sums of many blocks, and of their squares.

use super::support::*;
use super::*;

/// The result of a sum of blocks of `n` elements of this size, written over one of them, as by a kernel that updates
/// in place.
fn in_place(
    run: SumFn,
    blocks: &mut [Block],
    replaced: usize,
    (n, size): (usize, usize),
    single: Option<&[u8; 16]>,
) -> Vec<u8> {
    let mut terms: Vec<*const u8> = blocks.iter_mut().map(|block| block.pointer().cast_const()).collect();
    let mut out = blocks[replaced].clone();
    terms[replaced] = out.pointer();
    let single = single.map_or(std::ptr::null(), |bytes| bytes.as_ptr());
    // SAFETY: every block has `n` elements, and so has the clone of one of them.
    unsafe { run(n, out.pointer(), terms.as_ptr(), terms.len(), single) };
    out.bytes(n * size)
}

#[test]
fn sums_of_many_blocks_add_in_order() {
    fn check<T: Element + std::fmt::Debug>(dtype: DType, squares: bool, add: fn(T, T) -> T, multiply: fn(T, T) -> T) {
        for isa in Isa::available() {
            let run = lookup_sum(isa, dtype, squares).unwrap();
            let cases =
                if squares { [(2, 5), (3, 131), (4, 64), (2, 78)] } else { [(1, 5), (4, 131), (9, 64), (81, 78)] };
            for (count, n) in cases {
                let mut blocks: Vec<Block> =
                    (0..count).map(|salt| Block::new(&samples(dtype, n, salt), dtype.size())).collect();
                let term = |block: usize, i: usize| {
                    let of_block = || T::read(&sample(dtype, i, block));
                    if squares { multiply(of_block(), of_block()) } else { of_block() }
                };
                for single in [None, Some(sample(dtype, 3, 1))] {
                    // Into the first term, as a kernel may that updates in place.
                    let out = in_place(run, &mut blocks, 0, (n, dtype.size()), single.as_ref());
                    for i in 0..n {
                        let mut wanted = (1..count).fold(term(0, i), |sum, block| add(sum, term(block, i)));
                        if let Some(bytes) = &single {
                            wanted = if squares { add } else { multiply }(wanted, T::read(bytes));
                        }
                        let found = &out[i * dtype.size()..][..dtype.size()];
                        assert!(same(dtype, found, &to_bytes(wanted)), "{isa} {dtype} {count} terms, element {i}");
                    }
                }
            }
        }
    }
    for squares in [false, true] {
        check::<f64>(DType::F64, squares, scalar::add, scalar::multiply);
        check::<f32>(DType::F32, squares, scalar::add, scalar::multiply);
    }
    check::<i64>(DType::I64, false, scalar::add, scalar::multiply);
    check::<i32>(DType::I32, false, scalar::add, scalar::multiply);
    assert!(lookup_sum(Isa::detect(), DType::C64, false).is_none());
}
