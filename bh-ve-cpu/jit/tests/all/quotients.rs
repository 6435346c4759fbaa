//! Quotients and roots that compiled kernels make by multiplications have the bits of the instructions.

use crate::pair;
use crate::support;

use bh_bytecode::interp::Memory;
use bh_bytecode::{DType, text};
use pair::{check_bits, engine, levels, same};
use support::chains::Dice;

/// Numbers that are hard to divide by, or to divide: specials, ends of ranges, and fractions of many ones or zeros.
fn hard_numbers() -> Vec<f64> {
    let mut numbers =
        vec![0.0, f64::INFINITY, f64::NAN, 5e-324, 1e-310, f64::MIN_POSITIVE, f64::MAX, 1e300, 1e-300, 3.0];
    for exponent in [-1022i64, -511, -401, -400, -399, -53, -1, 0, 1, 52, 399, 400, 401, 1023] {
        for fraction in [0, 1, 2, 3, (1 << 52) - 3, (1 << 52) - 2, (1 << 52) - 1, 1 << 51, 0x5_5555_5555_5555] {
            numbers.push(f64::from_bits(((exponent + 1023) as u64) << 52 | fraction));
        }
    }
    let negative: Vec<f64> = numbers.iter().map(|number| -number).collect();
    numbers.extend(negative);
    numbers
}

/// Divisors that are hard, or for which everything else of a test goes to its end: see `src/uniform.rs`.
fn hard_divisors(dtype: DType) -> Vec<f64> {
    let mut dice = Dice(6);
    let mut divisors = Vec::new();
    if dtype == DType::F64 {
        divisors.extend(hard_numbers());
        for exponent in [-901i64, -900, -899, 899, 900, 901] {
            divisors.push(f64::from_bits(((exponent + 1023) as u64) << 52 | 0x5_5555_5555_5555));
        }
        for _ in 0..500 {
            let exponent = dice.pick(1023 - 30, 1023 + 30) as u64;
            divisors.push(f64::from_bits(exponent << 52 | dice.pick(0, (1 << 52) - 1) as u64 | 1));
        }
    } else {
        let special = [0.0, f32::INFINITY, f32::NAN, 1e-45, 1e-40, f32::MIN_POSITIVE, f32::MAX];
        divisors.extend(special.map(f64::from));
        for exponent in [-126i64, -61, -60, -59, -1, 0, 1, 59, 60, 61, 127] {
            for fraction in [0, 1, 2, 3, (1 << 23) - 3, (1 << 23) - 2, (1 << 23) - 1, 1 << 22, 0x2a_aaab] {
                divisors.push(f32::from_bits(((exponent + 127) as u32) << 23 | fraction).into());
            }
        }
        for _ in 0..500 {
            let exponent = dice.pick(127 - 10, 127 + 10) as u32;
            divisors.push(f32::from_bits(exponent << 23 | dice.pick(0, (1 << 23) - 1) as u32 | 1).into());
        }
        let negative: Vec<f64> = divisors.iter().map(|divisor| -divisor).collect();
        divisors.extend(negative);
    }
    divisors
}

/// The dividends of which the quotient by this lies as near to the middle of two neighbours as any: integers A for which
/// 2^(p+1)·A is 1 more or less than a multiple of the divisor's integer of `p` bits.
fn nearest_to_middles(divisor: f64, p: u32) -> [f64; 2] {
    let significand = (divisor.to_bits() & ((1 << 52) - 1) | 1 << 52) >> (53 - p);
    if significand.is_multiple_of(2) {
        return [1.0, 3.0];
    }
    // 2^−(p+1) modulo an odd number, by halving.
    let first =
        (0..=p).fold(1, |power: u64, _| if power.is_multiple_of(2) { power / 2 } else { (power + significand) / 2 });
    [first as f64, (significand - first) as f64]
}

/// Numbers to divide by one: hard ones, those with quotients near middles in several sizes, and random ones. Then some zeros
/// alone, and more than a vector of quotients that need no other care.
fn dividends(dtype: DType, divisor: f64) -> Vec<f64> {
    let p = if dtype == DType::F64 { 53 } else { 24 };
    let mut dice = Dice(divisor.to_bits());
    let mut numbers = if dtype == DType::F64 { hard_numbers() } else { hard_divisors(dtype)[..100].to_vec() };
    let near = nearest_to_middles(divisor, p);
    for scale in [1.0, 2f64.powi(-1 - p as i32), 2f64.powi(40), 2f64.powi(-90)] {
        // None of the others in these vectors goes to the instruction.
        for number in near {
            numbers.extend([number * scale, -number * scale, number * scale, 1.0, 3.0, 0.0, -0.0, 5.0]);
            numbers.extend([1.5; 8]);
        }
    }
    // Exponents at which the parts of a quotient leave the range.
    for exponent in [-1022, -1000, -970, -969, -968, -967, -960, -126, -103, -102, -101, -75, 1022, 127] {
        numbers.extend([1.7 * 2f64.powi(exponent); 3]);
    }
    numbers.extend([0.0; 40]);
    numbers.extend([-0.0; 40]);
    numbers.extend((0..300).map(|_| dice.pick(1, 1 << 40) as f64 * 2f64.powi(dice.pick(-60, 20) as i32)));
    if dtype == DType::F32 {
        numbers.iter_mut().for_each(|number| *number = f64::from(*number as f32));
    }
    numbers
}

fn element(dtype: DType, number: f64) -> Vec<u8> {
    match dtype {
        DType::F64 => number.to_le_bytes().to_vec(),
        _ => (number as f32).to_le_bytes().to_vec(),
    }
}

/// The bits of a quotient, by the instruction.
fn quotient(dtype: DType, a: f64, b: f64) -> Vec<u8> {
    match dtype {
        DType::F64 => (a / b).to_le_bytes().to_vec(),
        _ => (a as f32 / b as f32).to_le_bytes().to_vec(),
    }
}

/// Rows with a divisor each, and rows too short to make something of it.
#[test]
fn quotients_by_what_stays_the_same_along_rows() {
    for isa in levels() {
        for (dtype, divider) in [(DType::F64, "slow"), (DType::F64, "fast"), (DType::F32, "slow"), (DType::F32, "fast")]
        {
            let mut driver = engine(isa, "on", &[("divider", divider)]);
            let divisors = hard_divisors(dtype);
            let all: Vec<Vec<f64>> = divisors.iter().map(|divisor| dividends(dtype, *divisor)).collect();
            let (rows, longest) = (divisors.len(), all[0].len());
            for count in [longest, 300, 256, 255, 128, 127, 9] {
                let source = format!(
                    "bh batch 1
base b0 = {dtype}[{len}] id 1
base b1 = {dtype}[{rows}] id 2
base b2 = {dtype}[{len}] id 3 live_out
view v0 = b0 at 0 [{rows}:{longest}, {count}:1]
view v1 = b1 at 0 [{rows}:1, {count}:0]
view v2 = b2 at 0 [{rows}:{longest}, {count}:1]
i0: v2 = divide v0, v1
",
                    len = rows * longest
                );
                let mut batch = text::parse(&source).unwrap();
                batch.push_block(&[0], &[]);
                let mut memory = Memory::new();
                let bytes = |numbers: &[f64]| numbers.iter().flat_map(|number| element(dtype, *number)).collect();
                memory.insert(1, all.iter().flat_map(|row| bytes(row)).collect::<Vec<u8>>());
                memory.insert(2, bytes(&divisors));
                memory.insert(3, vec![0; rows * longest * dtype.size()]);
                let after = driver.run_on(&batch.as_ref(), &memory).unwrap();
                let found = after.get(3).unwrap();
                for (row, (divisor, numbers)) in divisors.iter().zip(&all).enumerate() {
                    let found = found[row * longest * dtype.size()..].chunks(dtype.size());
                    for (number, found) in numbers[..count].iter().zip(found) {
                        let wanted = quotient(dtype, *number, *divisor);
                        assert!(
                            same(dtype, found, &wanted),
                            "{isa}, {dtype}, {count} elements: {number:e} by {divisor:e} gives {found:x?}, not {wanted:x?}"
                        );
                    }
                }
            }
            assert!(driver.counter("kernels compiled") > 0);
        }
    }
}

/// Constants as divisors, alone and in vectors that wait for a function of several vectors.
#[test]
fn quotients_by_constants() {
    for isa in levels() {
        for dtype in [DType::F64, DType::F32] {
            let mut drivers = ["off", "on"].map(|jit| engine(isa, jit, &[("divider", "slow")]));
            for divisor in hard_divisors(dtype).into_iter().filter(|divisor| divisor.is_finite()) {
                let numbers = dividends(dtype, divisor);
                let count = numbers.len();
                // The bits of a constant, whatever its notation can say.
                let source = format!(
                    "bh batch 1
base b0 = {dtype}[{count}] id 1
base b1 = {dtype}[{count}] id 2 live_out
base b2 = {dtype}[{count}] id 3 live_out
view v0 = b0 at 0 [{count}:1]
view v1 = b1 at 0 [{count}:1]
view v2 = b2 at 0 [{count}:1]
const c0 = {dtype} {divisor:e}
i0: v1 = divide v0, c0
i1: v2 = exp2 v1
i2: v2 = divide v2, c0
"
                );
                let mut batch = text::parse(&source).unwrap();
                let mut memory = Memory::new();
                memory.insert(1, numbers.iter().flat_map(|number| element(dtype, *number)).collect::<Vec<u8>>());
                memory.insert(2, vec![0; count * dtype.size()]);
                memory.insert(3, vec![0; count * dtype.size()]);
                batch.push_block(&[0, 1, 2], &[]);
                let after = drivers[1].run_on(&batch.as_ref(), &memory).unwrap();
                for (number, found) in numbers.iter().zip(after.get(2).unwrap().chunks(dtype.size())) {
                    let wanted = quotient(dtype, *number, divisor);
                    assert!(
                        same(dtype, found, &wanted),
                        "{isa}, {dtype}: {number:e} by {divisor:e} gives {found:x?}, not {wanted:x?}"
                    );
                }
                check_bits(&mut drivers, &batch, &memory, &format!("{isa}, {dtype}, {divisor:e}"));
            }
            assert!(drivers[1].counter("kernels compiled") > 0);
        }
    }
}

/// Roots of these and of random numbers, divided so often that the divider would be the last to end.
#[test]
fn roots_beside_quotients() {
    let mut numbers = hard_numbers();
    let mut dice = Dice(5);
    numbers.extend(
        (0..200_000).map(|_| f64::from_bits((dice.pick(100, 2046) as u64) << 52 | dice.pick(0, (1 << 52) - 1) as u64)),
    );
    let count = numbers.len();
    let divisors = [0.5, 3.0, 7.0, 1.1, 0.3];
    let mut source = "bh batch 1\n".to_owned();
    for base in 0..divisors.len() + 2 {
        source += &format!("base b{base} = f64[{count}] id {}\nview v{base} = b{base} at 0 [{count}:1]\n", base + 1);
    }
    source += "i0: v1 = sqrt v0\n";
    for index in 0..divisors.len() {
        source += &format!("i{}: v1 = divide v1, v{}\n", index + 1, index + 2);
    }
    let mut batch = text::parse(&source).unwrap();
    batch.push_block(&[0, 1, 2, 3, 4, 5], &[]);
    let bytes = |numbers: &[f64]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
    let mut memory = Memory::new();
    memory.insert(1, bytes(&numbers));
    memory.insert(2, bytes(&vec![1.0; count]));
    for (id, divisor) in (3..).zip(divisors) {
        memory.insert(id, bytes(&vec![divisor; count]));
    }
    for isa in levels() {
        let mut driver = engine(isa, "on", &[("divider", "slow")]);
        let after = driver.run_on(&batch.as_ref(), &memory).unwrap();
        assert!(driver.counter("kernels compiled") > 0);
        for (number, found) in numbers.iter().zip(after.get(2).unwrap().chunks(8)) {
            let wanted = divisors.iter().fold(number.sqrt(), |quotient, divisor| quotient / divisor);
            assert!(
                same(DType::F64, found, &wanted.to_le_bytes()),
                "{isa}: {number:e} gives {found:?}, not {wanted:e}"
            );
        }
    }
}

/// Of one long line in chunks, and of short rows that make a result each.
#[test]
fn folds_of_quotients() {
    for isa in levels() {
        for divider in ["slow", "fast"] {
            let keys = [("divider", divider)];
            let mut drivers = [engine(isa, "off", &keys), engine(isa, "on", &keys)];
            for (rows, row) in [(1, 150_001), (70, 9), (33, 64)] {
                let count = rows * row;
                let text = format!(
                    "bh batch 1
base b0 = f64[{count}] id 1
base b1 = f64[{count}] id 2
base b2 = f64[{count}] id 3 born dies
base b3 = f64[{rows}] id 4 live_out
view v0 = b0 at 0 [{rows}:{row}, {row}:1]
view v1 = b1 at 0 [{rows}:{row}, {row}:1]
view v2 = b2 at 0 [{rows}:{row}, {row}:1]
view v3 = b3 at 0 [{rows}:1]
i0: v2 = divide v0, v1
i1: v3 = add_reduce axes(1) v2
"
                );
                let mut batch = text::parse(&text).unwrap();
                batch.push_block(&[0, 1], &[2]);
                let mut memory = Memory::new();
                for id in [1, 2] {
                    let numbers = (0..count).map(|at| f64::from(at * 37 % 1009 + id) / 500.0);
                    memory.insert(id as u64, numbers.flat_map(f64::to_le_bytes).collect());
                }
                memory.insert(4, vec![0; rows as usize * 8]);
                check_bits(&mut drivers, &batch, &memory, &format!("{isa}, {divider}, {rows} rows of {row}"));
            }
            let compiled = &drivers[1];
            assert_eq!(compiled.counter("kernels not compiled"), 0);
            assert!(compiled.counter("kernels compiled") > 0);
        }
    }
}
