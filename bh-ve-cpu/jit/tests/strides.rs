//! Views that leave out elements of memory give the same bits compiled as in blocks, to the last element of an array.

mod pair;
#[path = "../../tests/support/mod.rs"]
mod support;

use bh_bytecode::interp::Memory;
use bh_bytecode::text;
use pair::{check_bits, engine, levels};

/// Rows of `count` elements that are `step` apart, `between` of them from where the others begin, and end with the array.
fn batch((dtype, other): (&str, &str), step: usize, between: usize, count: usize, what: &str) -> String {
    let (last, outputs) = ((count - 1) * step + between, 3 * count);
    let (row, len) = (last + 3, 2 * (last + 3) + last + 1);
    let fold = if what.contains("reduce") { ("[3:1]", "[3:1]") } else { ("", "") };
    let out = format!("[3:{count}, {count}:1]");
    let out = if fold.0.is_empty() { out.as_str() } else { fold.0 };
    format!(
        "bh batch 1
base b0 = {dtype}[{len}] id 1
base b1 = {dtype}[{outputs}] id 2 live_out
base b2 = {other}[{outputs}] id 3 live_out
base b3 = {dtype}[{outputs}] id 4 born dies
view v0 = b0 at 0 [3:{row}, {count}:{step}]
view v1 = b0 at {between} [3:{row}, {count}:{step}]
view v2 = b1 at 0 {out}
view v3 = b2 at 0 [3:{count}, {count}:1]
view v4 = b3 at 0 [3:{count}, {count}:1]
i0: v4 = add v0, v1
i1: v2 = {what} v4{operand}
i2: v3 = identity v1
",
        operand = if fold.0.is_empty() { ", v0" } else { "" },
    )
}

#[test]
fn sparse_rows_have_the_same_bits() {
    for isa in levels() {
        for keys in [&[][..], &[("stream_bytes", "64")]] {
            let mut drivers = [engine(isa, "off", keys), engine(isa, "on", keys)];
            let types = [("f64", "f32", 8), ("f32", "f64", 4), ("i64", "f64", 8), ("i16", "i64", 2), ("u8", "u8", 1)];
            for (dtype, other, size) in types {
                for (step, between) in [(2, 0), (2, 1), (2, 3), (3, 1), (3, 2), (4, 1), (4, 3), (4, 4), (5, 1)] {
                    for count in [1, 2, 7, 8, 9, 31, 32, 33, 48, 64, 65, 97, 300] {
                        for what in ["subtract", "add_reduce axes(1)"] {
                            let source = batch((dtype, other), step, between, count, what);
                            let mut batch = text::parse(&source).unwrap();
                            batch.push_block(&[0, 1, 2], &[]);
                            let bytes = |base: usize| {
                                let all = batch.bases[base].len as usize
                                    * [size, size, batch.bases[2].dtype().size()][base];
                                (0..all).map(|at| (at * 37 % 61 % 64) as u8).collect::<Vec<u8>>()
                            };
                            let mut memory = Memory::new();
                            (0..3).for_each(|base| {
                                memory.insert(base as u64 + 1, bytes(base));
                            });
                            let name =
                                format!("{isa}, {keys:?}, {what} of {count} {dtype}, {step} apart, {between} between");
                            check_bits(&mut drivers, &batch, &memory, &name);
                        }
                    }
                }
            }
            let (count, refused) = (drivers[1].counter("kernels compiled"), drivers[1].counter("kernels not compiled"));
            assert!(count > 50 && refused == 0, "{count} kernels compiled, {refused} refused");
        }
    }
}
