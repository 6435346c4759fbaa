//! Element-wise operations of every type, with constants and fused in pairs.

use super::support::*;
use super::*;
use bh_bytecode::opcode::Signature;
use bh_bytecode::{c64, c128};

/// Functions with an error bound instead of exact bits.
fn is_inexact(opcode: Opcode, dtype: DType) -> bool {
    use bh_bytecode::Opcode as O;
    let exact = [O::Sqrt, O::Ceil, O::Floor, O::Trunc, O::Rint, O::Fmod, O::Remainder, O::FloorDivide];
    if dtype.is_complex() {
        return opcode == O::Absolute || bh_vector::math::COMPLEX.contains(&opcode);
    }
    dtype.is_float()
        && (bh_vector::math::UNARY.contains(&opcode) || bh_vector::math::BINARY.contains(&opcode))
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
        let functions = |opcodes: &[&[Opcode]], dtypes: [DType; 2]| {
            opcodes.concat().into_iter().flat_map(move |opcode| dtypes.map(|dtype| (opcode, dtype))).collect::<Vec<_>>()
        };
        let real = functions(&[bh_vector::math::UNARY, bh_vector::math::BINARY], [DType::F32, DType::F64]);
        let complex = functions(&[bh_vector::math::COMPLEX, &[Opcode::Absolute]], [DType::C64, DType::C128]);
        for (opcode, dtype) in real.into_iter().chain(complex) {
            let output = output_of(opcode, dtype);
            let run = lookup(isa, opcode, 0, dtype, output).expect("a function of floats or complex numbers");
            let inputs = vec![dtype; usize::from(opcode.info().inputs)];
            // Each element alone, in a block of its own, is the reference.
            let single: Scalar = Box::new(move |a, b, _| {
                let mut out = Block::new(&[0; 16], 16);
                let (mut a, mut b) = (Block::new(a, 16), Block::new(if b.is_empty() { a } else { b }, 16));
                // SAFETY: the blocks hold one element.
                unsafe { run(1, out.pointer(), a.pointer(), b.pointer(), std::ptr::null()) };
                out.bytes(output.size())
            });
            check(&format!("{} {dtype} {isa}", opcode.name()), run, &inputs, output, &single);
        }
    }
}

/// Each part of these numbers with each: what functions treat apart from ordinary numbers, and their neighbours.
fn special_numbers(dtype: DType) -> Vec<u8> {
    let (huge, tiny, least) = if dtype == DType::C64 { (3e38, 2e-38, 1e-44) } else { (1.5e308, 3e-308, 5e-323) };
    let sizes = [0.0, 1.0, 0.5, 2.5, 100.0, 800.0, 1e-5, 1e-20, huge, tiny, least, f64::INFINITY];
    let parts: Vec<f64> = sizes.iter().flat_map(|&size| [size, -size]).chain([f64::NAN]).collect();
    let number = |re: f64, im: f64| match dtype {
        DType::C64 => to_bytes(c64::new(re as f32, im as f32)),
        _ => to_bytes(c128::new(re, im)),
    };
    parts.iter().flat_map(|&re| parts.iter().flat_map(move |&im| number(re, im))).collect()
}

#[test]
fn complex_functions_of_special_numbers_are_the_scalar_ones() {
    use bh_bytecode::compare::{compare, tolerance};
    for isa in Isa::available() {
        for dtype in [DType::C64, DType::C128] {
            let numbers = special_numbers(dtype);
            let count = numbers.len() / dtype.size();
            for &opcode in Opcode::ALL.iter().filter(|opcode| opcode.kind() == Kind::Elementwise) {
                let info = opcode.info();
                let ordinary = !matches!(info.signature, Signature::Cast | Signature::Select);
                if info.inputs != 1 || !info.types.contains(dtype) || !ordinary {
                    continue;
                }
                let output = output_of(opcode, dtype);
                for param in if opcode == Opcode::Powi { 2..=5 } else { 0..=0 } {
                    let run = lookup(isa, opcode, param, dtype, output).expect("a primitive");
                    let scalar = scalar_of(opcode, dtype, param).expect("an opcode with a scalar function");
                    let mut operand = Block::new(&numbers, dtype.size());
                    let mut out = Block::new(&vec![0; count * output.size()], output.size());
                    // SAFETY: both blocks hold `count` elements.
                    unsafe { run(count, out.pointer(), operand.pointer(), std::ptr::null(), std::ptr::null()) };
                    let expected: Vec<u8> =
                        numbers.chunks(dtype.size()).flat_map(|number| scalar(number, &[], &[])).collect();
                    compare(output, &expected, &out.bytes(count * output.size()), &tolerance(opcode, dtype))
                        .unwrap_or_else(|difference| panic!("{opcode} {param} {dtype} {isa}: {difference}"));
                }
            }
        }
    }
}

macro_rules! cast_from {
    ($source:ty, $output:ident, $rule:ident, [$(($type:ty, $variant:ident)),*]) => {
        match $output {
            $(DType::$variant => {
                let cast = [scalar::cast::<$source, $type>, scalar::wrap, scalar::narrow][$rule as usize];
                Some(Box::new(move |a: &[u8], _: &[u8], _: &[u8]| to_bytes(cast(<$source>::read(a)))) as Scalar)
            })*
            #[allow(unreachable_patterns, reason = "real numbers convert to every type")]
            _ => None,
        }
    };
}

macro_rules! cast_of {
    ($input:ident, $output:ident, $rule:ident, [$(($type:ty, $variant:ident)),*]) => {
        match $input {
            $(DType::$variant => types_of!(ALL, cast_from, $type, $output, $rule),)*
            DType::C64 => types_of!(COMPLEX, cast_from, c64, $output, $rule),
            DType::C128 => types_of!(COMPLEX, cast_from, c128, $output, $rule),
        }
    };
}

#[test]
fn casts() {
    for isa in Isa::available() {
        for (input, output) in
            DType::ALL.iter().flat_map(|&input| DType::ALL.iter().map(move |&output| (input, output)))
        {
            for rule in 0..if input.is_float() && output.is_int() { 3 } else { 1 } {
                let scalar = types_of!(ORDERED, cast_of, input, output, rule);
                let run = lookup(isa, Opcode::Copy, rule, input, output);
                assert_eq!(run.is_some(), !input.is_complex() || output.is_complex(), "{input} to {output}");
                if let (Some(run), Some(scalar)) = (run, scalar) {
                    check(&format!("cast {input} to {output} by rule {rule} {isa}"), run, &[input], output, &scalar);
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
                    let Some(run) = bh_vector::math::lookup_rooted(isa, first, second, swapped, false) else {
                        continue;
                    };
                    let one = scalar_of(first, DType::F64, 0).expect("arithmetic");
                    let two = scalar_of(second, DType::F64, 0).expect("arithmetic");
                    let scalar: Scalar = Box::new(move |a, b, c| {
                        let inner = one(&root(a), b, &[]);
                        if swapped { two(c, &inner, &[]) } else { two(&inner, c, &[]) }
                    });
                    check(&format!("{first:?} {second:?} {swapped} {isa}"), run, &[DType::F64; 3], DType::F64, &scalar);
                    count += 1;
                    // With a single element, as with as many of them.
                    let single = bh_vector::math::lookup_rooted(isa, first, second, swapped, true).expect("as above");
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
