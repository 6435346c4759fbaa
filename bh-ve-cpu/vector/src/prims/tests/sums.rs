//! Sums of many blocks and of products.

use super::support::*;
use super::*;
use crate::math::{Dividend, Norm, lookup_norm};

/// What a sum of blocks of `n` elements of this size makes in the place of one of them, as a kernel may that updates in place.
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
    fn check<T: Element + std::fmt::Debug>(dtype: DType, add: fn(T, T) -> T, multiply: fn(T, T) -> T) {
        for isa in Isa::available() {
            let run = lookup_sum(isa, dtype).unwrap();
            for (count, n) in [(1, 5), (4, 131), (9, 64), (81, 78)] {
                let mut blocks: Vec<Block> =
                    (0..count).map(|salt| Block::new(&samples(dtype, n, salt), dtype.size())).collect();
                let term = |block: usize, i: usize| T::read(&sample(dtype, i, block));
                for factor in [None, Some(sample(dtype, 3, 1))] {
                    // Into the first term, as a kernel may that updates in place.
                    let out = in_place(run, &mut blocks, 0, (n, dtype.size()), factor.as_ref());
                    for i in 0..n {
                        let mut wanted = (1..count).fold(term(0, i), |sum, block| add(sum, term(block, i)));
                        if let Some(bytes) = &factor {
                            wanted = multiply(wanted, T::read(bytes));
                        }
                        let found = &out[i * dtype.size()..][..dtype.size()];
                        assert!(same(dtype, found, &to_bytes(wanted)), "{isa} {dtype} {count} terms, element {i}");
                    }
                }
            }
        }
    }
    check::<f64>(DType::F64, scalar::add, scalar::multiply);
    check::<f32>(DType::F32, scalar::add, scalar::multiply);
    check::<i64>(DType::I64, scalar::add, scalar::multiply);
    check::<i32>(DType::I32, scalar::add, scalar::multiply);
    assert!(lookup_sum(Isa::detect(), DType::C64).is_none());
}

#[test]
fn sums_of_products_round_every_step() {
    fn check<T: Element + scalar::Numeric>(dtype: DType) {
        let kinds = [Factors::Blocks, Factors::Squares, Factors::Differences];
        let sums = kinds.into_iter().flat_map(|factors| {
            let sums = move |products| [false, true].map(|start| ProductSum { products, start, factors });
            (2..=MOST_PRODUCTS).flat_map(sums)
        });
        for (sum, isa) in sums.flat_map(|sum| Isa::available().map(move |isa| (sum, isa))) {
            let ProductSum { products, start, factors } = sum;
            let run = lookup_product_sum(isa, sum, dtype).unwrap();
            let of_one = if factors == Factors::Squares { 1 } else { 2 };
            let count = usize::from(start) + products * of_one;
            let n = [131, 78, 105, 5][(products + usize::from(start)) % 4];
            let mut blocks: Vec<Block> =
                (0..count).map(|salt| Block::new(&samples(dtype, n, salt), dtype.size())).collect();
            let term = |block: usize, i: usize| T::read(&sample(dtype, i, block));
            for single in [None, Some(sample(dtype, 3, 1))] {
                // Into the last block, as a kernel may that updates in place. The last term of differences is one element.
                let replaced = if factors == Factors::Differences { count - 2 } else { count - 1 };
                let out = in_place(run, &mut blocks, replaced, (n, dtype.size()), single.as_ref());
                for i in 0..n {
                    let product = |number: usize| {
                        let first = usize::from(start) + number * of_one;
                        let [a, b] = match factors {
                            Factors::Blocks => [term(first, i), term(first + 1, i)],
                            Factors::Squares => [term(first, i); 2],
                            Factors::Differences => [scalar::subtract(term(first, i), term(first + 1, 0)); 2],
                        };
                        scalar::multiply(a, b)
                    };
                    let first = if start { scalar::add(term(0, i), product(0)) } else { product(0) };
                    let mut wanted = (1..products).fold(first, |sum, number| scalar::add(sum, product(number)));
                    if let Some(bytes) = &single {
                        wanted = scalar::add(wanted, T::read(bytes));
                    }
                    let found = &out[i * dtype.size()..][..dtype.size()];
                    assert!(same(dtype, found, &to_bytes(wanted)), "{isa} {dtype} {sum:?}, element {i}");
                }
            }
        }
    }
    check::<f64>(DType::F64);
    check::<f32>(DType::F32);
    let integers = ProductSum { products: 2, start: false, factors: Factors::Blocks };
    assert!(lookup_product_sum(Isa::detect(), integers, DType::I64).is_none());
}

#[test]
fn norms_round_every_step() {
    let norms = [
        Norm::Root,
        Norm::OverRoot(Dividend::Block),
        Norm::OverRoot(Dividend::Single),
        Norm::OverCube(Dividend::Block),
        Norm::OverCube(Dividend::Single),
    ];
    let cases = norms.into_iter().flat_map(|norm| {
        [Factors::Squares, Factors::Differences].into_iter().flat_map(move |factors| {
            (2..=3).map(move |products| (norm, ProductSum { products, start: false, factors }))
        })
    });
    for (isa, (norm, sum)) in Isa::available().flat_map(|isa| cases.clone().map(move |case| (isa, case))) {
        let run = lookup_norm(isa, sum, norm).unwrap();
        let of_one = if sum.factors == Factors::Differences { 2 } else { 1 };
        let count = sum.products * of_one + usize::from(norm != Norm::Root);
        for n in LENGTHS {
            let mut blocks: Vec<Block> = (0..count).map(|salt| Block::new(&samples(DType::F64, n, salt), 8)).collect();
            let term = |block: usize, i: usize| f64::read(&sample(DType::F64, i, block));
            let singles = [None, Some(sample(DType::F64, 3, 1))];
            let is_block = matches!(norm, Norm::OverRoot(Dividend::Block) | Norm::OverCube(Dividend::Block));
            let places = [0, of_one, if is_block { count - 1 } else { 0 }];
            for (single, replaced) in singles.iter().flat_map(|single| places.map(|replaced| (single, replaced))) {
                let out = in_place(run, &mut blocks, replaced, (n, 8), single.as_ref());
                for i in 0..n {
                    let square = |number: usize| {
                        let x = term(number * of_one, i);
                        let x = if of_one == 2 { x - term(number * of_one + 1, 0) } else { x };
                        x * x
                    };
                    let mut inner = (1..sum.products).fold(square(0), |inner, number| inner + square(number));
                    if let Some(bytes) = single {
                        inner += f64::read(bytes);
                    }
                    let wanted = match norm {
                        Norm::Root => inner.sqrt(),
                        Norm::OverRoot(Dividend::Block) => term(count - 1, i) / inner.sqrt(),
                        Norm::OverRoot(Dividend::Single) => term(count - 1, 0) / inner.sqrt(),
                        Norm::OverCube(Dividend::Block) => term(count - 1, i) / (inner * inner.sqrt()),
                        Norm::OverCube(Dividend::Single) => term(count - 1, 0) / (inner * inner.sqrt()),
                    };
                    let found = &out[i * 8..][..8];
                    assert!(same(DType::F64, found, &to_bytes(wanted)), "{isa} {sum:?} {norm:?}, element {i} of {n}");
                }
            }
        }
    }
    let four = ProductSum { products: 4, start: false, factors: Factors::Squares };
    assert!(lookup_norm(Isa::detect(), four, Norm::Root).is_none());
}
