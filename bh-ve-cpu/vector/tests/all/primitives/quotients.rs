//! Quotients and remainders of integers: every pair of bytes, and wider numbers near what decides about rounding.

use super::*;
use bh_bytecode::CastFrom;

/// Numbers next to powers of two, to their multiples by small and large factors, and others.
fn numbers() -> Vec<i64> {
    let mut numbers = vec![0, i64::MIN, i64::MAX];
    let mut state = 1u64;
    for bit in 0..64 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        for factor in [1, 3, 1_000_003, state >> 11 | 1] {
            let power = (1u64 << bit).wrapping_mul(factor) as i64;
            numbers.extend([-1, 0, 1].map(|by| power.wrapping_add(by)));
            numbers.push(power.wrapping_neg());
        }
        // Of any size.
        numbers.push((state as i64) >> bit);
    }
    numbers
}

/// Divides each of these by each, in blocks and by constants, as the scalar function does.
fn divides<T: Element + CastFrom<i64> + Eq>(dtype: DType, numbers: &[i64], functions: [fn(T, T) -> T; 4]) {
    let dividends: Vec<T> = numbers.iter().map(|&number| T::cast_from(number)).collect();
    let opcodes = [Opcode::Divide, Opcode::FloorDivide, Opcode::Fmod, Opcode::Remainder];
    for isa in Isa::available() {
        for (opcode, function) in opcodes.into_iter().zip(functions) {
            let run = lookup(isa, opcode, 0, dtype, dtype).expect("a division");
            let by_constant = lookup_const(isa, opcode, Side::Right, dtype);
            let n = dividends.len();
            let mut found = dividends.clone();
            for &divisor in &dividends {
                let block = vec![divisor; n];
                let wanted: Vec<T> = dividends.iter().map(|&dividend| function(dividend, divisor)).collect();
                let (dst, a, b) = (found.as_mut_ptr().cast(), dividends.as_ptr().cast(), block.as_ptr().cast());
                // SAFETY: blocks of n elements.
                unsafe { run(n, dst, a, b, std::ptr::null()) };
                let what = |at: usize| format!("{opcode} of {dtype} on {isa}: {:?} by {divisor:?}", dividends[at]);
                let wrong = (0..n).find(|&at| found[at] != wanted[at]);
                assert_eq!(wrong.map(what), None);
                if let Some(run) = by_constant {
                    found.fill(divisor);
                    // SAFETY: as above, and one constant.
                    unsafe { run(n, dst, a, b, std::ptr::null()) };
                    let wrong = (0..n).find(|&at| found[at] != wanted[at]);
                    assert_eq!(wrong.map(what), None, "by a constant");
                }
            }
        }
    }
}

macro_rules! divides {
    ($numbers:expr, $(($type:ty, $variant:ident)),*) => {
        $(divides::<$type>(
            DType::$variant,
            $numbers,
            [scalar::divide, scalar::floor_divide, scalar::fmod, scalar::remainder],
        );)*
    };
}

#[test]
fn all_bytes_by_all_bytes() {
    let bytes: Vec<i64> = (0..256).collect();
    divides!(&bytes, (i8, I8), (u8, U8));
}

#[test]
fn numbers_near_those_that_round() {
    let numbers = numbers();
    divides!(&numbers, (i16, I16), (u16, U16), (i32, I32), (u32, U32), (i64, I64), (u64, U64));
}

#[test]
fn blocks_of_numbers_that_floats_hold() {
    let mut numbers = numbers();
    numbers.retain(|&number| (-(1 << 50)..=1 << 50).contains(&number));
    divides!(&numbers, (i64, I64), (u64, U64));
}
