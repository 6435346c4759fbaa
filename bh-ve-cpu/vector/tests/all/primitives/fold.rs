//! Folds into lanes.

use super::support::*;
use super::*;
use bh_bytecode::opcode::Signature;

/// Checks a fold of samples, or of what `first` makes of two blocks of them.
fn check_fold(
    what: &str,
    run: LanesFn,
    first: Option<&Scalar>,
    combine: &Scalar,
    dtype: DType,
    mut after: impl FnMut(&str, &mut Block, Vec<Vec<u8>>),
) {
    let size = dtype.size();
    for n in [1, 31, 32, 100, 257] {
        let (start, elements, others) = (samples(dtype, LANES, 1), samples(dtype, n, 2), samples(dtype, n, 3));
        let mut wanted: Vec<Vec<u8>> = start.chunks(size).map(<[u8]>::to_vec).collect();
        for (i, (element, other)) in elements.chunks(size).zip(others.chunks(size)).enumerate() {
            let element = first.map_or_else(|| element.to_vec(), |first| first(element, other, &[]));
            wanted[i % LANES] = combine(&wanted[i % LANES], &element, &[]);
        }
        let mut lanes = Block::new(&start, size);
        let (mut block, mut other) = (Block::new(&elements, size), Block::new(&others, size));
        let other = if first.is_some() { other.pointer() } else { std::ptr::null_mut() };
        // SAFETY: 32 lanes and n elements.
        unsafe { run(n, lanes.pointer(), block.pointer(), other) };
        for (got, wanted) in lanes.bytes(LANES * size).chunks(size).zip(&wanted) {
            assert!(same(dtype, got, wanted), "{what} of {n}");
        }
        after(&format!("{what} of {n}"), &mut lanes, wanted);
    }
}

#[test]
fn folds_keep_their_lanes() {
    for isa in Isa::available() {
        for &opcode in Opcode::ALL.iter().filter(|opcode| opcode.info().signature == Signature::Reduce) {
            for dtype in opcode.info().types.iter() {
                let run = reduce_lanes(isa, opcode, dtype).expect("every reduction folds");
                let join = fold_lanes(isa, opcode, dtype).expect("every reduction joins");
                let combine = match opcode.info().scalar {
                    "add" => Opcode::Add,
                    "multiply" => Opcode::Multiply,
                    "minimum" => Opcode::Minimum,
                    "maximum" => Opcode::Maximum,
                    "bit_and" => Opcode::BitwiseAnd,
                    "bit_or" => Opcode::BitwiseOr,
                    _ => Opcode::BitwiseXor,
                };
                let combine = scalar_of(combine, dtype, 0).expect("a combining function");
                let what = format!("{} {dtype} {isa}", opcode.name());
                check_fold(&what, run, None, &combine, dtype, |what, lanes, mut wanted| {
                    let mut width = LANES / 2;
                    while width > 0 {
                        for lane in 0..width {
                            wanted[lane] = combine(&wanted[lane], &wanted[lane + width], &[]);
                        }
                        width /= 2;
                    }
                    // SAFETY: the result goes to the first lane.
                    unsafe { join(lanes.pointer(), lanes.pointer()) };
                    assert!(same(dtype, &lanes.bytes(dtype.size()), &wanted[0]), "{what}, joined");
                });
            }
        }
    }
}

#[test]
fn folds_of_two_blocks_round_twice() {
    for isa in Isa::available() {
        for dtype in [DType::F32, DType::F64] {
            for first in [Opcode::Add, Opcode::Subtract, Opcode::Multiply, Opcode::Divide] {
                for combiner in [Opcode::Add, Opcode::Minimum, Opcode::Maximum] {
                    let run = reduce_lanes_of(isa, first, combiner, dtype).expect("a super-instruction");
                    let one = scalar_of(first, dtype, 0).expect("arithmetic");
                    let combine = scalar_of(combiner, dtype, 0).expect("arithmetic");
                    let what = format!("{combiner:?} of {first:?} {dtype} {isa}");
                    check_fold(&what, run, Some(&one), &combine, dtype, |_, _, _| {});
                }
            }
        }
        assert!(reduce_lanes_of(isa, Opcode::Multiply, Opcode::Add, DType::C64).is_none());
    }
}
