//! Every primitive against the scalar functions, at every level, length and alignment that matters.

use super::*;
use crate::simd::Isa;
use bh_bytecode::opcode::Signature;
use bh_bytecode::{CastFrom, DType, Element, Kind, Opcode, c64, c128, for_each_opcode, scalar, types_of};

/// The lengths tried: less than a vector, many vectors at a time, one at a time, and tails.
const LENGTHS: [usize; 5] = [1, 7, 64, 105, 131];

/// A block with room for misalignment by one element.
#[derive(Clone)]
struct Block {
    words: Vec<u128>,
    offset: usize,
}

impl Block {
    fn new(bytes: &[u8], size: usize) -> Block {
        let mut block = Block { words: vec![0; bytes.len() / 16 + 2], offset: size };
        // SAFETY: the words are longer than the bytes by more than the offset.
        unsafe { block.words.as_mut_ptr().cast::<u8>().add(size).copy_from(bytes.as_ptr(), bytes.len()) };
        block
    }

    fn pointer(&mut self) -> *mut u8 {
        self.words.as_mut_ptr().cast::<u8>().wrapping_add(self.offset)
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        // SAFETY: only called with counts the block was made for.
        unsafe { std::slice::from_raw_parts(self.pointer(), count).to_vec() }
    }
}

/// Interesting values of a type, in the order of a counter: limits, small numbers, halves, special values.
fn sample(dtype: DType, i: usize, salt: usize) -> [u8; 16] {
    let mut bytes = [0; 16];
    let mixed = (i * 7 + salt * 13 + i * i * salt) % 61;
    let whole = [0, 1, -1, 2, 3, -5, 7, 64, -128, 127, 255, 31, i64::MIN, i64::MAX, 1 << 40, -77][mixed % 16];
    let real = [
        0.0,
        -0.0,
        1.0,
        -1.5,
        2.5,
        0.1,
        -7.25,
        3e9,
        -3e9,
        1e20,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        1e-310,
        65535.9,
        -129.5,
        0.75,
    ];
    macro_rules! write {
        ($kind:ident, [$(($type:ty, $variant:ident)),*]) => {
            match dtype {
                $(DType::$variant => write!(@ $kind $type),)*
                #[allow(unreachable_patterns, reason = "the sets are matched one after the other")]
                _ => {}
            }
        };
        (@ whole $type:ty) => { <$type as CastFrom<i64>>::cast_from(whole).write(&mut bytes) };
        (@ real $type:ty) => { (real[mixed % 17] as $type).write(&mut bytes) };
        (@ complex $type:ty) => {{
            let mut value = <$type as CastFrom<f64>>::cast_from(real[mixed % 17]);
            value.im = real[(mixed * 5 + 2) % 17] as _;
            value.write(&mut bytes)
        }};
    }
    match dtype {
        DType::Bool => (mixed % 2 == 1).write(&mut bytes),
        DType::F32 | DType::F64 => types_of!(FLOAT, write, real),
        DType::C64 | DType::C128 => types_of!(COMPLEX, write, complex),
        _ => types_of!(INT, write, whole),
    }
    bytes
}

fn samples(dtype: DType, n: usize, salt: usize) -> Vec<u8> {
    (0..n).flat_map(|i| sample(dtype, i, salt)[..dtype.size()].to_vec()).collect()
}

/// Equal bits, any NaN being as good as another.
fn same(dtype: DType, a: &[u8], b: &[u8]) -> bool {
    match dtype {
        DType::F32 => a == b || (f32::read(a).is_nan() && f32::read(b).is_nan()),
        DType::F64 => a == b || (f64::read(a).is_nan() && f64::read(b).is_nan()),
        DType::C64 => same(DType::F32, &a[..4], &b[..4]) && same(DType::F32, &a[4..8], &b[4..8]),
        DType::C128 => same(DType::F64, &a[..8], &b[..8]) && same(DType::F64, &a[8..16], &b[8..16]),
        _ => a == b,
    }
}

/// The scalar function of an opcode on bytes.
type Scalar = Box<dyn Fn(&[u8], &[u8], &[u8]) -> Vec<u8>>;

fn to_bytes<T: Element>(value: T) -> Vec<u8> {
    let mut bytes = [0; 16];
    value.write(&mut bytes);
    bytes[..T::DTYPE.size()].to_vec()
}

macro_rules! by_type {
    (unary, $dtype:expr, $scalar:ident, [$(($type:ty, $variant:ident)),*]) => {
        match $dtype {
            $(DType::$variant => Some(Box::new(|a: &[u8], _: &[u8], _: &[u8]| to_bytes(scalar::$scalar(<$type>::read(a)))) as Scalar),)*
            #[allow(unreachable_patterns, reason = "some sets hold every type")]
            _ => None,
        }
    };
    (binary, $dtype:expr, $scalar:ident, [$(($type:ty, $variant:ident)),*]) => {
        match $dtype {
            $(DType::$variant => Some(Box::new(|a: &[u8], b: &[u8], _: &[u8]| to_bytes(scalar::$scalar(<$type>::read(a), <$type>::read(b)))) as Scalar),)*
            #[allow(unreachable_patterns, reason = "some sets hold every type")]
            _ => None,
        }
    };
    (powi, $dtype:expr, $param:expr, [$(($type:ty, $variant:ident)),*]) => {
        match $dtype {
            $(DType::$variant => Some(Box::new(move |a: &[u8], _: &[u8], _: &[u8]| to_bytes(scalar::powi(<$type>::read(a), $param))) as Scalar),)*
            _ => None,
        }
    };
}

macro_rules! row {
    ($dtype:ident $param:ident, Elementwise 1 same $set:ident powi) => {
        types_of!($set, by_type, powi, $dtype, $param)
    };
    ($dtype:ident $param:ident, Elementwise 1 cast $set:ident $scalar:ident) => {
        None
    };
    ($dtype:ident $param:ident, Elementwise 1 $signature:ident $set:ident $scalar:ident) => {
        types_of!($set, by_type, unary, $dtype, $scalar)
    };
    ($dtype:ident $param:ident, Elementwise 2 $signature:ident $set:ident $scalar:ident) => {
        types_of!($set, by_type, binary, $dtype, $scalar)
    };
    ($($other:tt)*) => {
        None
    };
}

macro_rules! define_scalar {
    ($(($variant:ident, $name:tt, $code:tt, $kind:ident, $inputs:tt, $signature:ident $set:ident, $scalar:ident, $neutral:tt, $expression:tt, $doc:tt)),* $(,)?) => {
        /// The scalar function of an opcode; selections and casts are tested apart.
        #[allow(unused_variables, reason = "only POWI has an exponent")]
        fn scalar_of(opcode: Opcode, dtype: DType, param: u16) -> Option<Scalar> {
            match opcode {
                $(Opcode::$variant => row!(dtype param, $kind $inputs $signature $set $scalar),)*
                _ => None,
            }
        }
    };
}
for_each_opcode!(define_scalar);

/// The result type of an element-wise opcode on a type.
fn output_of(opcode: Opcode, dtype: DType) -> DType {
    match opcode.info().signature {
        Signature::Test => DType::Bool,
        Signature::Abs | Signature::Part => dtype.real_part(),
        _ => dtype,
    }
}

/// Runs a primitive on samples, apart and in place, and compares each element.
fn check(what: &str, run: PrimFn, inputs: &[DType], output: DType, wanted: &Scalar) {
    for (case, n) in LENGTHS.into_iter().enumerate() {
        let operands: Vec<Vec<u8>> = inputs.iter().enumerate().map(|(k, &dtype)| samples(dtype, n, k + case)).collect();
        let mut blocks: Vec<Block> =
            operands.iter().zip(inputs).map(|(bytes, dtype)| Block::new(bytes, dtype.size())).collect();
        let mut out = Block::new(&vec![0xa5; n * output.size()], output.size());
        let mut pointers = [std::ptr::null::<u8>(); 3];
        for (pointer, block) in pointers.iter_mut().zip(&mut blocks) {
            *pointer = block.pointer();
        }
        // SAFETY: all blocks hold n elements.
        unsafe { run(n, out.pointer(), pointers[0], pointers[1], pointers[2]) };
        let got = out.bytes(n * output.size());
        for i in 0..n {
            let operand = |k: usize| operands.get(k).map_or(&[][..], |bytes| &bytes[i * inputs[k].size()..]);
            let wanted = wanted(operand(0), operand(1), operand(2));
            let got = &got[i * output.size()..][..output.size()];
            assert!(same(output, got, &wanted), "{what}, element {i} of {n}: {got:?} for {wanted:?}");
        }
        for k in 0..inputs.len() {
            if inputs[k].size() != output.size() {
                continue;
            }
            let mut fresh = blocks.clone();
            let mut pointers = [std::ptr::null::<u8>(); 3];
            for (pointer, block) in pointers.iter_mut().zip(&mut fresh) {
                *pointer = block.pointer();
            }
            // SAFETY: as above; the result replaces one operand.
            unsafe { run(n, pointers[k].cast_mut(), pointers[0], pointers[1], pointers[2]) };
            let replaced = fresh[k].bytes(n * output.size());
            let equal = replaced.chunks(output.size()).zip(got.chunks(output.size())).all(|(a, b)| same(output, a, b));
            assert!(equal, "{what} in place of operand {k}, length {n}");
        }
    }
}

/// Functions with an error bound instead of exact bits.
fn is_inexact(opcode: Opcode, dtype: DType) -> bool {
    use bh_bytecode::Opcode as O;
    let exact = [O::Sqrt, O::Ceil, O::Floor, O::Trunc, O::Rint, O::Mod, O::Remainder, O::FloorDivide];
    dtype.is_float()
        && (crate::math::UNARY.contains(&opcode) || crate::math::BINARY.contains(&opcode))
        && !exact.contains(&opcode)
}

#[test]
fn every_opcode_and_type_has_the_scalar_bits() {
    let mut count = 0;
    for isa in Isa::available() {
        for &opcode in Opcode::ALL.iter().filter(|opcode| opcode.kind() == Kind::Elementwise) {
            let info = opcode.info();
            if matches!(info.signature, Signature::Cast | Signature::Select) {
                continue;
            }
            for dtype in info.types.iter() {
                let output = output_of(opcode, dtype);
                for param in if opcode == Opcode::Powi { 2..=5 } else { 0..=0 } {
                    let what = format!("{} {dtype} {isa} {param}", info.name);
                    let run = lookup(isa, opcode, param, dtype, output).unwrap_or_else(|| panic!("{what} is missing"));
                    let scalar = scalar_of(opcode, dtype, param).expect("an opcode with a scalar function");
                    let inputs = vec![dtype; usize::from(info.inputs)];
                    if !is_inexact(opcode, dtype) {
                        check(&what, run, &inputs, output, &scalar);
                    }
                    count += 1;
                }
            }
        }
    }
    assert!(count > 400 * Isa::available().count());
}

#[test]
fn inexact_results_do_not_depend_on_the_block() {
    for isa in Isa::available() {
        for &opcode in crate::math::UNARY.iter().chain(crate::math::BINARY) {
            for dtype in [DType::F32, DType::F64] {
                let run = lookup(isa, opcode, 0, dtype, dtype).expect("a function of floats");
                let inputs = vec![dtype; usize::from(opcode.info().inputs)];
                // Each element alone, in a block of its own, is the reference.
                let single: Scalar = Box::new(move |a, b, _| {
                    let mut out = Block::new(&[0; 16], 16);
                    let (mut a, mut b) = (Block::new(a, 16), Block::new(if b.is_empty() { a } else { b }, 16));
                    // SAFETY: the blocks hold one element.
                    unsafe { run(1, out.pointer(), a.pointer(), b.pointer(), std::ptr::null()) };
                    out.bytes(dtype.size())
                });
                check(&format!("{} {dtype} {isa}", opcode.name()), run, &inputs, dtype, &single);
            }
        }
    }
}

macro_rules! cast_from {
    ($isa:expr, $output:ident, [$(($type:ty, $variant:ident)),*], $source:ty, $input:expr) => {
        match $output {
            $(DType::$variant => Some(Box::new(|a: &[u8], _: &[u8], _: &[u8]| to_bytes(scalar::cast::<$source, $type>(<$source>::read(a)))) as Scalar),)*
            #[allow(unreachable_patterns, reason = "real numbers convert to every type")]
            _ => None,
        }
    };
}

#[test]
fn casts() {
    macro_rules! all_real {
        ($isa:ident, $input:ident, $output:ident, $all:tt, [$(($type:ty, $variant:ident)),*]) => {
            match $input {
                $(DType::$variant => cast_from!($isa, $output, $all, $type, $input),)*
                DType::C64 => cast_from!($isa, $output, [(c64, C64), (c128, C128)], c64, $input),
                DType::C128 => cast_from!($isa, $output, [(c64, C64), (c128, C128)], c128, $input),
            }
        };
    }
    for isa in Isa::available() {
        for input in DType::ALL {
            for output in DType::ALL {
                let scalar = all_real!(
                    isa,
                    input,
                    output,
                    [
                        (bool, Bool),
                        (i8, I8),
                        (i16, I16),
                        (i32, I32),
                        (i64, I64),
                        (u8, U8),
                        (u16, U16),
                        (u32, U32),
                        (u64, U64),
                        (f32, F32),
                        (f64, F64),
                        (c64, C64),
                        (c128, C128)
                    ],
                    [
                        (bool, Bool),
                        (i8, I8),
                        (i16, I16),
                        (i32, I32),
                        (i64, I64),
                        (u8, U8),
                        (u16, U16),
                        (u32, U32),
                        (u64, U64),
                        (f32, F32),
                        (f64, F64)
                    ]
                );
                let run = lookup(isa, Opcode::Identity, 0, input, output);
                assert_eq!(run.is_some(), !input.is_complex() || output.is_complex(), "{input} to {output}");
                if let (Some(run), Some(scalar)) = (run, scalar) {
                    check(&format!("cast {input} to {output} {isa}"), run, &[input], output, &scalar);
                }
            }
        }
    }
}

#[test]
fn selections() {
    for isa in Isa::available() {
        for dtype in DType::ALL {
            let run = lookup(isa, Opcode::Where, 0, dtype, dtype).expect("every type can be selected");
            let size = dtype.size();
            let scalar: Scalar =
                Box::new(move |m, a, b| if m[0] != 0 { a[..size].to_vec() } else { b[..size].to_vec() });
            check(&format!("where {dtype} {isa}"), run, &[DType::Bool, dtype, dtype], dtype, &scalar);
        }
    }
}

#[test]
fn constants_on_either_side() {
    for isa in Isa::available() {
        for dtype in [DType::I32, DType::I64, DType::F32, DType::F64] {
            for &opcode in Opcode::ALL.iter().filter(|opcode| opcode.kind() == Kind::Elementwise) {
                for (side, salt) in [(Side::Left, 3), (Side::Right, 4)] {
                    let Some(run) = lookup_const(isa, opcode, side, dtype) else { continue };
                    let output = output_of(opcode, dtype);
                    let general = lookup(isa, opcode, 0, dtype, output).expect("the general primitive");
                    let n = 131;
                    let mut block = Block::new(&samples(dtype, n, salt), dtype.size());
                    for constant in 0..17 {
                        let value = samples(dtype, constant + 1, salt + 1)[constant * dtype.size()..].to_vec();
                        let (mut one, mut many) = (Block::new(&value, 8), Block::new(&value.repeat(n), 8));
                        let (mut got, mut wanted) = (block.clone(), block.clone());
                        let null = std::ptr::null();
                        // SAFETY: blocks of n elements and one constant.
                        unsafe {
                            if side == Side::Left {
                                run(n, got.pointer(), one.pointer(), block.pointer(), null);
                                general(n, wanted.pointer(), many.pointer(), block.pointer(), null);
                            } else {
                                run(n, got.pointer(), block.pointer(), one.pointer(), null);
                                general(n, wanted.pointer(), block.pointer(), many.pointer(), null);
                            }
                        }
                        let bytes = n * output.size();
                        let (got, wanted) = (got.bytes(bytes), wanted.bytes(bytes));
                        let equal = got
                            .chunks(output.size())
                            .zip(wanted.chunks(output.size()))
                            .all(|(a, b)| same(output, a, b));
                        assert!(equal, "{} {dtype} {side:?} {isa} with {value:?}", opcode.name());
                    }
                }
            }
        }
    }
}

#[test]
fn super_instructions_round_twice() {
    let operations = [Opcode::Add, Opcode::Subtract, Opcode::Multiply, Opcode::Divide];
    for isa in Isa::available() {
        for dtype in [DType::F32, DType::F64] {
            for first in operations {
                let run = lookup_fused(isa, first, Opcode::Absolute, false, dtype).expect("a super-instruction");
                let inner = scalar_of(first, dtype, 0).expect("arithmetic");
                let outer = scalar_of(Opcode::Absolute, dtype, 0).expect("arithmetic");
                let scalar: Scalar = Box::new(move |a, b, _| outer(&inner(a, b, &[]), &[], &[]));
                check(&format!("{first:?} absolute {dtype} {isa}"), run, &[dtype; 2], dtype, &scalar);
                for second in operations {
                    for swapped in [false, true] {
                        let run = lookup_fused(isa, first, second, swapped, dtype).expect("a super-instruction");
                        let one = scalar_of(first, dtype, 0).expect("arithmetic");
                        let two = scalar_of(second, dtype, 0).expect("arithmetic");
                        let scalar: Scalar = Box::new(move |a, b, c| {
                            let inner = one(a, b, &[]);
                            if swapped { two(c, &inner, &[]) } else { two(&inner, c, &[]) }
                        });
                        let what = format!("{first:?} {second:?} {swapped} {dtype} {isa}");
                        check(&what, run, &[dtype; 3], dtype, &scalar);
                    }
                }
            }
        }
    }
}

#[test]
fn roots_with_pairs_round_three_times() {
    let root = |bytes: &[u8]| to_bytes(f64::read(bytes).sqrt());
    let mut count = 0;
    for isa in Isa::available() {
        for first in [Opcode::Add, Opcode::Multiply] {
            for second in [Opcode::Add, Opcode::Multiply, Opcode::Divide] {
                for swapped in [false, true] {
                    let Some(run) = crate::math::lookup_rooted(isa, first, second, swapped, false) else { continue };
                    let one = scalar_of(first, DType::F64, 0).expect("arithmetic");
                    let two = scalar_of(second, DType::F64, 0).expect("arithmetic");
                    let scalar: Scalar = Box::new(move |a, b, c| {
                        let inner = one(&root(a), b, &[]);
                        if swapped { two(c, &inner, &[]) } else { two(&inner, c, &[]) }
                    });
                    check(&format!("{first:?} {second:?} {swapped} {isa}"), run, &[DType::F64; 3], DType::F64, &scalar);
                    count += 1;
                    // With a single element, as with as many of them.
                    let single = crate::math::lookup_rooted(isa, first, second, swapped, true).expect("as above");
                    let (a, b) = (samples(DType::F64, 105, 1), samples(DType::F64, 105, 2));
                    let (mut a, mut b) = (Block::new(&a, 8), Block::new(&b, 8));
                    let mut c = Block::new(&[2.5f64; 105].map(f64::to_ne_bytes).concat(), 8);
                    let (mut found, mut wanted) = (a.clone(), a.clone());
                    // SAFETY: blocks of 105 elements.
                    unsafe {
                        single(105, found.pointer(), a.pointer(), b.pointer(), c.pointer());
                        run(105, wanted.pointer(), a.pointer(), b.pointer(), c.pointer());
                    }
                    let (found, wanted) = (found.bytes(840), wanted.bytes(840));
                    assert!(found.chunks(8).zip(wanted.chunks(8)).all(|(a, b)| same(DType::F64, a, b)), "{isa}");
                }
            }
        }
    }
    assert_eq!(count, 10 * Isa::available().count());
}

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
        for &opcode in Opcode::ALL.iter().filter(|opcode| opcode.kind() == Kind::Reduction) {
            for dtype in opcode.info().types.iter() {
                let run = reduce_lanes(isa, opcode, dtype).expect("every reduction folds");
                let join = fold_lanes(opcode, dtype).expect("every reduction joins");
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

#[test]
fn strided_copies_and_fills() {
    for size in [1, 2, 4, 8, 16] {
        let data: Vec<u8> = (0..8000usize).map(|i| (i * 31 + i / 7) as u8).collect();
        for stride in [-3isize, -1, 0, 1, 2, 5] {
            let n = 37;
            let mut source = Block::new(&data, 16);
            let mut dense = Block::new(&vec![0; n * size], 16);
            let middle = 4000 / size * size;
            let bytes = stride * size as isize;
            // SAFETY: 37 elements of at most 16 bytes and 5 apart stay within 4000 bytes of the middle.
            unsafe { gather_strided(size)(n, dense.pointer(), source.pointer().add(middle), bytes) };
            let got = dense.bytes(n * size);
            for i in 0..n {
                let from = (middle as isize + i as isize * bytes) as usize;
                assert_eq!(got[i * size..][..size], data[from..][..size], "gather {size} {stride} {i}");
            }
            if stride != 0 {
                let mut target = Block::new(&vec![0; data.len()], 16);
                // SAFETY: as above.
                unsafe {
                    scatter_strided(size)(n, target.pointer().add(middle), dense.pointer(), bytes);
                    let mut back = Block::new(&vec![0; n * size], 16);
                    gather_strided(size)(n, back.pointer(), target.pointer().add(middle), bytes);
                    assert_eq!(back.bytes(n * size), got, "scatter {size} {stride}");
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
                    let terms: Vec<*const u8> = blocks.iter_mut().map(|block| block.pointer().cast_const()).collect();
                    let mut out = blocks[0].clone();
                    let mut with_out = terms.clone();
                    with_out[0] = out.pointer();
                    let factor_at = factor.as_ref().map_or(std::ptr::null(), |bytes| bytes.as_ptr());
                    // SAFETY: every block has `n` elements; the result is in the place of the first term.
                    unsafe { run(n, out.pointer(), with_out.as_ptr(), count, factor_at) };
                    for i in 0..n {
                        let mut wanted = (1..count).fold(term(0, i), |sum, block| add(sum, term(block, i)));
                        if let Some(bytes) = &factor {
                            wanted = multiply(wanted, T::read(bytes));
                        }
                        let found = &out.bytes(n * dtype.size())[i * dtype.size()..][..dtype.size()];
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
        for isa in Isa::available() {
            for products in 2..=MOST_PRODUCTS {
                for (start, squares, n) in [(false, false, 131), (true, false, 78), (false, true, 105), (true, true, 5)]
                {
                    let run = lookup_product_sum(isa, ProductSum { products, start, squares }, dtype).unwrap();
                    let factors = if squares { 1 } else { 2 };
                    let count = usize::from(start) + products * factors;
                    let mut blocks: Vec<Block> =
                        (0..count).map(|salt| Block::new(&samples(dtype, n, salt), dtype.size())).collect();
                    let term = |block: usize, i: usize| T::read(&sample(dtype, i, block));
                    for single in [None, Some(sample(dtype, 3, 1))] {
                        // Into the last term, as a kernel may that updates in place.
                        let mut terms: Vec<*const u8> =
                            blocks.iter_mut().map(|block| block.pointer().cast_const()).collect();
                        let mut out = blocks[count - 1].clone();
                        terms[count - 1] = out.pointer();
                        let single_at = single.as_ref().map_or(std::ptr::null(), |bytes| bytes.as_ptr());
                        // SAFETY: every block has `n` elements; the result is in the place of the last term.
                        unsafe { run(n, out.pointer(), terms.as_ptr(), count, single_at) };
                        for i in 0..n {
                            let product = |number: usize| {
                                let first = usize::from(start) + number * factors;
                                scalar::multiply(term(first, i), term(first + factors - 1, i))
                            };
                            let first = if start { scalar::add(term(0, i), product(0)) } else { product(0) };
                            let mut wanted = (1..products).fold(first, |sum, number| scalar::add(sum, product(number)));
                            if let Some(bytes) = &single {
                                wanted = scalar::add(wanted, T::read(bytes));
                            }
                            let found = &out.bytes(n * dtype.size())[i * dtype.size()..][..dtype.size()];
                            let what = format!("{isa} {dtype} {products} products {start} {squares}, element {i}");
                            assert!(same(dtype, found, &to_bytes(wanted)), "{what}");
                        }
                    }
                }
            }
        }
    }
    check::<f64>(DType::F64);
    check::<f32>(DType::F32);
    assert!(
        lookup_product_sum(Isa::detect(), ProductSum { products: 2, start: false, squares: false }, DType::I64)
            .is_none()
    );
}
