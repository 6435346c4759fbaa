//! Compiled kernels with complex numbers give the bits of block operations: all operations on special and other values, rows
//! of all lengths, arrays that are read and written in all ways, and folds.

use crate::pair;

use bh_bytecode::interp::Memory;
use bh_bytecode::text;
use pair::{check_bits, engine, levels};

/// The names of the types, those of their parts, and the bytes of these.
const TYPES: [(&str, &str, usize); 2] = [("c64", "f32", 4), ("c128", "f64", 8)];

/// A number in the bytes of a part.
fn part(number: f64, size: usize) -> Vec<u8> {
    if size == 4 { (number as f32).to_le_bytes().to_vec() } else { number.to_le_bytes().to_vec() }
}

/// `count` numbers without a pattern, between -2 and 2.
fn numbers(count: usize, size: usize, seed: u64) -> Vec<u8> {
    let mut state = seed * 2 + 1;
    let mut next = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (state >> 11) as f64 / (1u64 << 51) as f64 - 2.0
    };
    (0..count).flat_map(|_| part(next(), size)).collect()
}

/// Runs batches of one block in blocks and compiled; at least `least` kernels must be compiled, and all that there are.
fn check_all(keys: &pair::Keys, batches: &[(String, Memory)], least: u64) {
    for isa in levels() {
        let mut drivers = [engine(isa, "off", keys), engine(isa, "on", keys)];
        for (source, memory) in batches {
            let mut batch = text::parse(source).unwrap_or_else(|error| panic!("{error}\n{source}"));
            let instructions: Vec<u32> = (0..batch.instrs.len() as u32).collect();
            batch.push_block(&instructions, &[]);
            check_bits(&mut drivers, &batch, memory, &format!("{isa}\n{source}"));
        }
        let compiled = drivers[1].counter("kernels compiled");
        assert!(compiled >= least, "{isa}: {compiled} kernels were compiled");
        let left = drivers[1].counter("kernels not compiled") + drivers[1].counter("kernels for blocks only");
        assert_eq!(left, 0, "{isa}: kernels were left to blocks");
    }
}

/// Every pair of numbers of which each part is one of these, and each with all results.
#[test]
fn operations_on_special_values() {
    let mut batches = Vec::new();
    for (dtype, real, size) in TYPES {
        let (huge, tiny) = if size == 4 { (3e38, 1e-40) } else { (1.2e308, 3e-310) };
        let some = [0.0, -0.0, 1.0, -2.5, 0.3, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, huge, -tiny];
        // Around the bounds of what is scaled.
        let more = [1e-145, 2e-150, 4e153, 1e155, -1e-320, 1e-30, 1e25];
        let mut pairs: Vec<(f64, f64)> = some.iter().flat_map(|&re| some.map(|im| (re, im))).collect();
        pairs.extend(more.iter().flat_map(|&re| more.map(|im| (re, im))));
        pairs.extend(more.iter().flat_map(|&re| [(re, 0.0), (f64::NAN, re), (re, f64::INFINITY)]));
        let count = pairs.len() * pairs.len();
        let bytes = |of: &dyn Fn(usize) -> (f64, f64)| -> Vec<u8> {
            (0..count).flat_map(|at| [part(of(at).0, size), part(of(at).1, size)].concat()).collect()
        };
        let (first, second) = (bytes(&|at| pairs[at / pairs.len()]), bytes(&|at| pairs[at % pairs.len()]));
        let other = if size == 4 { "c128" } else { "c64" };
        let operations = [
            ("add", dtype, 2),
            ("subtract", dtype, 2),
            ("multiply", dtype, 2),
            ("divide", dtype, 2),
            ("equal", "bool", 2),
            ("not_equal", "bool", 2),
            ("absolute", real, 1),
            ("conj", dtype, 1),
            ("real", real, 1),
            ("imag", real, 1),
            ("isnan", "bool", 1),
            ("isinf", "bool", 1),
            ("isfinite", "bool", 1),
            ("copy", dtype, 1),
            ("copy", other, 1),
            ("sign", dtype, 1),
            ("reciprocal", dtype, 1),
            ("powi exponent(2)", dtype, 1),
            ("powi exponent(3)", dtype, 1),
            ("powi exponent(4)", dtype, 1),
            ("powi exponent(5)", dtype, 1),
        ];
        for (operation, output, operands) in operations {
            let source = format!(
                "bh batch 1
base b0 = {dtype}[{count}] id 1
base b1 = {dtype}[{count}] id 2
base b2 = {output}[{count}] id 3 live_out
view v0 = b0 at 0 [{count}:1]
view v1 = b1 at 0 [{count}:1]
view v2 = b2 at 0 [{count}:1]
i0: v2 = {operation} {}
",
                if operands == 2 { "v0, v1" } else { "v0" }
            );
            let mut memory = Memory::new();
            memory.insert(1, first.clone());
            memory.insert(2, second.clone());
            let length = match output {
                "bool" => 1,
                "c64" | "f64" => 8,
                "c128" => 16,
                _ => 4,
            };
            memory.insert(3, vec![0; count * length]);
            batches.push((source, memory));
        }
    }
    check_all(&[], &batches, 40);
}

/// Numbers of all types become complex ones.
#[test]
fn conversions_from_real_numbers() {
    let mut batches = Vec::new();
    for dtype in ["bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64"] {
        for (output, ..) in TYPES {
            let source = format!(
                "bh batch 1
base b0 = {dtype}[203] id 1
base b1 = {output}[203] id 2 live_out
view v0 = b0 at 0 [203:1]
view v1 = b1 at 0 [203:1]
i0: v1 = copy v0
"
            );
            let mut memory = Memory::new();
            let bytes = match dtype {
                "f32" => numbers(203, 4, 5),
                "f64" => numbers(203, 8, 5),
                "bool" => (0..203).map(|at| at % 2).collect(),
                _ => numbers(203, 8, 5),
            };
            let size = match dtype {
                "bool" | "i8" | "u8" => 1,
                "i16" | "u16" => 2,
                "i32" | "u32" | "f32" => 4,
                _ => 8,
            };
            memory.insert(1, bytes[..203 * size].to_vec());
            memory.insert(2, vec![0; 203 * 16]);
            batches.push((source, memory));
        }
    }
    check_all(&[], &batches, 20);
}

/// Rows of all lengths, with complex and real numbers, constants, what stays the same along rows, and a choice; written
/// through the caches and past them. `other` is a function that is called on blocks.
fn mixed(dtype: &str, real: &str, size: usize, count: usize, other: Option<&str>) -> (String, Memory) {
    let rows = 5;
    let (pitch, length) = (count + 3, (count + 3) * rows);
    let last = other.map_or(String::new(), |other| format!("i8: v5 = {other} v5\ni9: v5 = add v5, v0\n"));
    let source = format!(
        "bh batch 1
base b0 = {dtype}[{length}] id 1
base b1 = {real}[{length}] id 2
base b2 = {dtype}[{rows}] id 3
base b3 = {dtype}[{length}] id 4 live_out
base b4 = {real}[{length}] id 5 live_out
base b5 = bool[{length}] id 6 born dies
base b6 = {dtype}[{length}] id 7 live_out
view v0 = b0 at 1 [{rows}:{pitch}, {count}:1]
view v1 = b1 at 2 [{rows}:{pitch}, {count}:1]
view v2 = b2 at 0 [{rows}:1, {count}:0]
view v3 = b3 at 0 [{rows}:{pitch}, {count}:1]
view v4 = b4 at 3 [{rows}:{pitch}, {count}:1]
view v5 = b6 at 1 [{rows}:{pitch}, {count}:1]
view v6 = b5 at 0 [{rows}:{count}, {count}:1]
const c0 = {dtype} 0.5 -1.25
const c1 = {real} 1.5
i0: v3 = multiply v0, v2
i1: v3 = add v3, c0
i2: v4 = absolute v3
i3: v6 = less v4, c1
i4: v4 = add v4, v1
i5: v5 = divide c0, v3
i6: v5 = where v6, v5, v0
i7: v5 = subtract v5, v2
{last}"
    );
    let mut memory = Memory::new();
    for (id, parts) in [(1, 2 * length), (2, length), (3, 2 * rows), (4, 2 * length), (5, length), (7, 2 * length)] {
        memory.insert(id, numbers(parts, size, id));
    }
    (source, memory)
}

#[test]
fn rows_of_all_lengths() {
    let mut batches = Vec::new();
    for (dtype, real, size) in TYPES {
        for count in (1..70).chain([255, 1000]) {
            batches.push(mixed(dtype, real, size, count, None));
        }
    }
    check_all(&[], &batches, 2);
    check_all(&[("stream_bytes", "64")], &batches, 2);
}

#[test]
fn functions_are_called_on_blocks() {
    let mut batches = Vec::new();
    for (dtype, real, size) in TYPES {
        for function in ["exp", "sqrt", "sin", "log"] {
            for count in [1, 7, 64, 700] {
                batches.push(mixed(dtype, real, size, count, Some(function)));
            }
        }
        let (source, memory) = mixed(dtype, real, size, 700, None);
        batches.push((source + "i8: v5 = power v5, c0\n", memory));
    }
    check_all(&[], &batches, 10);
    check_all(&[("stream_bytes", "64")], &batches, 10);
}

/// Neighbours above and beside each element, for which several rows are computed side by side, and strided elements.
#[test]
fn neighbours_and_strides() {
    let mut batches = Vec::new();
    for (dtype, _, size) in TYPES {
        for (rows, count, stride) in [(9, 40, 1), (23, 133, 1), (6, 31, 2), (8, 20, 3)] {
            let (pitch, length) = ((count + 2) * stride, (count + 2) * stride * (rows + 2));
            let view = |row: usize, column: usize| {
                format!("at {} [{rows}:{pitch}, {count}:{stride}]", row * pitch + column * stride)
            };
            let source = format!(
                "bh batch 1
base b0 = {dtype}[{length}] id 1
base b1 = {dtype}[{length}] id 2 live_out
view v0 = b0 {}
view v1 = b0 {}
view v2 = b0 {}
view v3 = b0 {}
view v4 = b1 {}
const c0 = {dtype} 0 0.25
i0: v4 = add v0, v1
i1: v4 = add v4, v2
i2: v4 = add v4, v3
i3: v4 = multiply v4, c0
",
                view(0, 1),
                view(2, 1),
                view(1, 0),
                view(1, 2),
                view(1, 1)
            );
            let mut memory = Memory::new();
            memory.insert(1, numbers(2 * length, size, 7));
            memory.insert(2, numbers(2 * length, size, 8));
            batches.push((source, memory));
        }
    }
    check_all(&[], &batches, 4);
}

/// Sums and products of rows, of columns and of everything, with a real sum beside them.
#[test]
fn folds() {
    let mut batches = Vec::new();
    for (dtype, real, size) in TYPES {
        for (rows, count) in [(1, 700), (3, 33), (50, 131), (40, 8), (300, 3), (5, 20_000)] {
            for (axes, kept) in [("0", count), ("1", rows), ("0, 1", 1)] {
                let shape = if kept == 1 { "[]".to_owned() } else { format!("[{kept}:1]") };
                let length = rows * count;
                let source = format!(
                    "bh batch 1
base b0 = {dtype}[{length}] id 1
base b1 = {dtype}[{length}] id 2
base b2 = {dtype}[{kept}] id 3 live_out
base b3 = {dtype}[{kept}] id 4 live_out
base b4 = {real}[{kept}] id 5 live_out
base b5 = {dtype}[{length}] id 6 born dies
base b6 = {real}[{length}] id 7 born dies
view v0 = b0 at 0 [{rows}:{count}, {count}:1]
view v1 = b1 at 0 [{rows}:{count}, {count}:1]
view v2 = b2 at 0 {shape}
view v3 = b3 at 0 {shape}
view v4 = b4 at 0 {shape}
view v5 = b5 at 0 [{rows}:{count}, {count}:1]
view v6 = b6 at 0 [{rows}:{count}, {count}:1]
i0: v5 = multiply v0, v1
i1: v2 = add_reduce axes({axes}) v5
i2: v3 = multiply_reduce axes({axes}) v0
i3: v6 = absolute v5
i4: v4 = add_reduce axes({axes}) v6
"
                );
                let mut memory = Memory::new();
                memory.insert(1, numbers(2 * length, size, 1));
                memory.insert(2, numbers(2 * length, size, 2));
                for (id, parts) in [(3, 2 * kept), (4, 2 * kept), (5, kept)] {
                    memory.insert(id, numbers(parts, size, 3));
                }
                batches.push((source, memory));
            }
        }
    }
    check_all(&[], &batches, 6);
}
