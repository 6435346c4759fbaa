//! Compiled divisions of integers give what the operations are defined as, also where rounding decides.

use crate::pair;
use crate::support;

use bh_bytecode::interp::{self, Memory};
use bh_bytecode::{DType, text};
use pair::{check_bits, compare, engine, levels};
use support::chains::Dice;

/// Numbers next to powers of two and to multiples of them, as bits.
fn numbers() -> Vec<i64> {
    let mut dice = Dice(7);
    let mut numbers = vec![0, i64::MIN, i64::MAX];
    for bit in 0..64 {
        for factor in [1, 3, dice.pick(1, 1 << 53) | 1] {
            let power = (1i64 << bit).wrapping_mul(factor);
            numbers.extend([power.wrapping_sub(1), power, power.wrapping_add(1), power.wrapping_neg()]);
        }
        numbers.push(dice.pick(0, (1 << 62) - 1) >> (bit / 2));
    }
    numbers
}

/// Each number by each: with what divides the same along rows, with what is divided, and by a constant.
#[test]
fn divisions_of_all_types() {
    let numbers = numbers();
    let n = numbers.len();
    let types = [
        (DType::I8, -7),
        (DType::I16, 10),
        (DType::I32, -1000),
        (DType::I64, 1_000_000_007),
        (DType::U8, 7),
        (DType::U16, 10),
        (DType::U32, 1000),
        (DType::U64, 10),
    ];
    for (dtype, constant) in types {
        let mut source = format!(
            "bh batch 1
base b0 = {dtype}[{n}] id 1
view v0 = b0 at 0 [{n}:0, {n}:1]
view v1 = b0 at 0 [{n}:1, {n}:0]
view v2 = b0 at 0 [{n}:1]
const c0 = {dtype} {constant}
"
        );
        let (mut instrs, mut count, mut memory) = (String::new(), 0, Memory::new());
        memory.insert(1, numbers.iter().flat_map(|number| number.to_le_bytes()[..dtype.size()].to_vec()).collect());
        for opcode in ["divide", "floor_divide", "fmod", "remainder"] {
            for (shape, elements, operands) in
                [("m", n * n, "v0, v1"), ("m", n * n, "v1, v0"), ("v", n, "v2, c0"), ("v", n, "c0, v2")]
            {
                let (base, view) = (count + 1, count + 3);
                source += &format!("base b{base} = {dtype}[{elements}] id {} live_out\n", base + 1);
                source += &match shape {
                    "m" => format!("view v{view} = b{base} at 0 [{n}:{n}, {n}:1]\n"),
                    _ => format!("view v{view} = b{base} at 0 [{n}:1]\n"),
                };
                instrs += &format!("i{count}: v{view} = {opcode} {operands}\n");
                memory.insert(base as u64 + 1, vec![0; elements * dtype.size()]);
                count += 1;
            }
        }
        let mut batch = text::parse(&(source + &instrs)).unwrap();
        for index in 0..count as u32 {
            batch.push_block(&[index], &[]);
        }
        let mut wanted = memory.clone();
        interp::execute(&batch.as_ref(), &mut wanted).unwrap();
        for isa in levels() {
            let mut drivers = ["off", "on"].map(|jit| engine(isa, jit, &[]));
            check_bits(&mut drivers, &batch, &memory, isa);
            let [_, compiled] = &mut drivers;
            let found = compiled.run_on(&batch.as_ref(), &memory).unwrap();
            compare(&batch, &wanted, &found).unwrap_or_else(|difference| panic!("{isa}: {difference}"));
            assert_eq!(compiled.counter("kernels not compiled"), 0);
            assert!(compiled.counter("kernels compiled") > 0);
        }
    }
}
