//! Views that leave out elements of memory give the same bits compiled as in blocks, to the last element of an array.

use crate::pair;
use crate::support;

use bh_bytecode::interp::Memory;
use bh_bytecode::text;
use pair::{check_bits, engine, levels};
use support::Driver;

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
i2: v3 = copy v1
",
        operand = if fold.0.is_empty() { ", v0" } else { "" },
    )
}

/// Has cases checked on each instruction set, with outputs in the caches and past them; all kernels must be compiled.
fn on_all_engines<T: Clone>(cases: &[T], check: impl Fn(&mut [Driver; 2], &str, &T)) {
    let cases = support::spread(cases);
    for isa in levels() {
        for keys in [&[][..], &[("stream_bytes", "64")]] {
            let mut drivers = [engine(isa, "off", keys), engine(isa, "on", keys)];
            cases.iter().for_each(|case| check(&mut drivers, &format!("{isa}, {keys:?}"), case));
            let (count, refused) = (drivers[1].counter("kernels compiled"), drivers[1].counter("kernels not compiled"));
            let least = cases.len().min(100) as u64 / 2;
            assert!(count > least && refused == 0, "{count} kernels compiled, {refused} refused");
        }
    }
}

#[test]
fn sparse_rows_have_the_same_bits() {
    let types = [("f64", "f32", 8), ("f32", "f64", 4), ("i64", "f64", 8), ("i16", "i64", 2), ("u8", "u8", 1)];
    let places = [(2, 0), (2, 1), (2, 3), (3, 1), (3, 2), (4, 1), (4, 3), (4, 4), (5, 1)];
    let counts = [1, 2, 7, 8, 9, 31, 32, 33, 48, 64, 65, 97, 300];
    let placed = types.iter().flat_map(|&of| places.map(|place| (of, place)));
    let counted = placed.flat_map(|(of, place)| counts.map(|count| (of, place, count)));
    let cases: Vec<_> = counted.flat_map(|case| ["subtract", "add_reduce axes(1)"].map(|what| (case, what))).collect();
    on_all_engines(&cases, |drivers, engines, &(((dtype, other, size), (step, between), count), what)| {
        let source = batch((dtype, other), step, between, count, what);
        let mut batch = text::parse(&source).unwrap();
        batch.push_block(&[0, 1, 2], &[]);
        let bytes = |base: usize| {
            let all = batch.bases[base].len as usize * [size, size, batch.bases[2].dtype().size()][base];
            (0..all).map(|at| (at * 37 % 61) as u8).collect::<Vec<u8>>()
        };
        let mut memory = Memory::new();
        (0..3).for_each(|base| {
            memory.insert(base as u64 + 1, bytes(base));
        });
        let name = format!("{engines}, {what} of {count} {dtype}, {step} apart, {between} between");
        check_bits(drivers, &batch, &memory, &name);
    });
}

/// Three planes of `count` rows of `row` elements: some views have one element for each row, or the same row again and again.
fn short_rows(dtype: &str, (count, row): (usize, usize), function: &str) -> String {
    let (plane, gap) = (count * row, count + 3);
    format!(
        "bh batch 1
base b0 = {dtype}[{all}] id 1
base b1 = {dtype}[{all}] id 2 live_out
base b2 = {dtype}[{all}] id 3 live_out
base b3 = {dtype}[{all}] id 4 born dies
const c0 = {dtype} {three}
view v0 = b0 at 1 [3:{gap}, {count}:1, {row}:0]
view v1 = b0 at 2 [3:{row}, {count}:0, {row}:1]
view v2 = b0 at 3 [3:{plane}, {count}:{row}, {row}:1]
view v3 = b0 at 0 [3:1, {count}:0, {row}:0]
view v4 = b1 at 0 [3:{plane}, {count}:{row}, {row}:1]
view v5 = b2 at 5 [3:{plane}, {count}:{row}, {row}:1]
view v6 = b3 at 0 [3:{plane}, {count}:{row}, {row}:1]
i0: v4 = copy v0
i1: v6 = {function}
i2: v6 = subtract v6, v2
i3: v6 = add v6, v3
i4: v5 = multiply v6, c0
",
        all = 3 * plane + 20,
        three = if dtype == "c128" { "3 1" } else { "3" }
    )
}

#[test]
fn short_rows_that_repeat_elements_have_the_same_bits() {
    let types = [("f64", 8), ("f32", 4), ("i16", 2), ("u8", 1), ("c128", 16)];
    let counts = [2, 3, 7, 8, 9, 31, 33, 64, 100, 603];
    let sizes: Vec<(usize, usize)> =
        [2, 3, 4, 8, 16, 32].iter().flat_map(|&row| counts.map(|count| (count, row))).collect();
    let functions = ["add v0, v1", "multiply v0, v0", "power v1, v0", "exp v0"];
    let sized = types.iter().flat_map(|&of| sizes.iter().map(move |&size| (of, size)));
    let all = sized.flat_map(|(of, size)| functions.map(|function| (of, size, function)));
    let cases: Vec<_> = all.filter(|((_, size), _, function)| !function.starts_with("exp") || *size >= 4).collect();
    on_all_engines(&cases, |drivers, engines, &((dtype, size), (count, row), function)| {
        let mut batch = text::parse(&short_rows(dtype, (count, row), function)).unwrap();
        batch.push_block(&[0, 1, 2, 3, 4], &[]);
        let numbers = |id: usize| {
            (0..batch.bases[0].len as usize).flat_map(move |at| {
                let number = (at * 37 + id) % 61;
                match (dtype, size) {
                    ("f32", _) => (number as f32 * 0.25).to_le_bytes().to_vec(),
                    (_, 8) => (number as f64 * 0.25).to_le_bytes().to_vec(),
                    (_, 16) => [number as f64 * 0.25, 2.0].map(f64::to_le_bytes).concat(),
                    _ => [number as u8 % 5, 0][..size].to_vec(),
                }
            })
        };
        let mut memory = Memory::new();
        (1..4).for_each(|id| {
            memory.insert(id as u64, numbers(id).collect());
        });
        let name = format!("{engines}, {function}: {count} rows of {row} {dtype}");
        check_bits(drivers, &batch, &memory, &name);
    });
}
