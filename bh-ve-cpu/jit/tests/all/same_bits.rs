//! Compiled kernels give the bits of block operations, and those the oracle's results, on random programs.

use crate::pair;
use crate::support;

use bh_bytecode::interp::Memory;
use bh_bytecode::opcode::Signature;
use bh_bytecode::random::{self, Program, program};
use bh_bytecode::{Batch, DType, Opcode, text};
use bh_fuser::{Algorithm, Options, Partitioner};
use pair::{Keys, check_bits, compare, engine, levels};
use std::collections::HashSet;
use support::chains::{Dice, stencil_chain};
use support::columns::column_folds;
use support::{Driver, singletons};

fn check(drivers: &mut [Driver; 2], program: &Program, algorithm: Option<Algorithm>) -> Result<(), String> {
    let oracle = program.oracle().map_err(|error| error.to_string())?;
    let [blocks, compiled] = drivers.each_mut().map(|driver| match algorithm {
        None => driver.run_on(&singletons(&program.batch).as_ref(), &program.memory),
        Some(algorithm) => {
            let options = Options { algorithm, ..Options::default() };
            let batch = program.batch.as_ref();
            let partition = Partitioner::default().partition(&batch, &options);
            driver.run_on(&partition.apply(&batch), &program.memory)
        }
    });
    let blocks = blocks.map_err(|error| error.to_string())?;
    let compiled = compiled.map_err(|error| error.to_string())?;
    compare(&program.batch, &blocks, &compiled)?;
    oracle.check(&program.batch, &compiled)
}

/// Runs programs in blocks and compiled; `source` gives the one of a seed.
fn run_seeds_of(
    (isa, keys): (&str, &Keys),
    seeds: std::ops::Range<u64>,
    source: impl Fn(u64) -> Program,
    algorithm: Option<Algorithm>,
) -> [Driver; 2] {
    let mut drivers = [engine(isa, "off", keys), engine(isa, "on", keys)];
    for seed in support::sample(seeds) {
        let program = source(seed);
        if let Err(difference) = check(&mut drivers, &program, algorithm) {
            let small = random::shrink(&program, |candidate| check(&mut drivers, candidate, algorithm).is_err());
            let reason = check(&mut drivers, &small, algorithm).err().unwrap_or(difference);
            panic!("{isa}, {keys:?}, seed {seed}, {algorithm:?}: {reason}\n{}", text::print(&small.batch.as_ref()));
        }
    }
    let [blocks, compiled] = &drivers;
    assert_eq!(blocks.counter("kernels compiled"), 0);
    let (count, refused) = (compiled.counter("kernels compiled"), compiled.counter("kernels not compiled"));
    assert!(count > 0, "nothing was compiled: is the library where the engine looks for it?");
    assert!(refused * 20 < count, "{refused} kernels were refused, {count} compiled");
    drivers
}

fn run_seeds(
    engine: (&str, &Keys),
    seeds: std::ops::Range<u64>,
    options: &random::Options,
    algorithm: Option<Algorithm>,
) {
    run_seeds_of(engine, seeds, |seed| program(seed, options), algorithm);
}

#[test]
fn single_operations() {
    for isa in levels() {
        run_seeds((isa, &[]), 0..150, &random::Options::default(), None);
    }
}

#[test]
fn fused_programs() {
    for isa in levels() {
        run_seeds((isa, &[]), 1000..1200, &random::Options::default(), Some(Algorithm::Greedy));
        run_seeds((isa, &[("stream_bytes", "64")]), 1200..1300, &random::Options::default(), Some(Algorithm::Greedy));
    }
}

#[test]
fn larger_arrays() {
    let options = random::Options { max_elements: 20_000, max_instrs: 16, max_rank: 4, ..random::Options::default() };
    for isa in levels() {
        run_seeds(
            (isa, &[("window_bytes", "100"), ("stream_bytes", "1000")]),
            0..60,
            &options,
            Some(Algorithm::Greedy),
        );
    }
}

#[test]
fn folds_have_the_bits_of_their_tree() {
    for isa in levels() {
        let mut driver = engine(isa, "on", &[]);
        support::tree::check_folds(std::slice::from_mut(&mut driver));
        assert!(driver.counter("kernels compiled") > 0);
    }
}

#[test]
fn folds_of_columns() {
    for isa in levels() {
        for algorithm in [None, Some(Algorithm::Greedy)] {
            run_seeds_of((isa, &[("stream_bytes", "4096")]), 0..150, column_folds, algorithm);
        }
    }
}

/// Kernels that read several rows of what others write, in planes and in strips of windows.
#[test]
fn stencil_chains() {
    let chain = |seed| {
        let mut dice = Dice(seed ^ 55);
        let rank = dice.pick(2, 3);
        let mut shape: Vec<i64> = (0..rank).map(|_| dice.pick(3, 12)).collect();
        shape[0] = dice.pick(20, 60);
        if dice.chance(50) {
            shape[rank as usize - 1] = dice.pick(50, 150);
        }
        stencil_chain(seed, &shape, dice.pick(2, 10) as usize)
    };
    // Planes that do not fit the cache are gone through in tiles.
    let planes = |seed| {
        let mut dice = Dice(seed ^ 77);
        let shape = [dice.pick(5, 9), dice.pick(40, 90), dice.pick(20, 60)];
        stencil_chain(seed, &shape, dice.pick(1, 3) as usize)
    };
    for isa in levels() {
        run_seeds_of((isa, &[("windows", "off"), ("stream_bytes", "64")]), 30..60, chain, Some(Algorithm::Greedy));
        let keys = [("windows", "off"), ("stream_bytes", "64")];
        run_seeds_of((isa, &keys), 60..75, planes, Some(Algorithm::Greedy));
        for bytes in ["3000", "20000"] {
            let keys = [("window_bytes", bytes), ("stream_bytes", "64")];
            let drivers = run_seeds_of((isa, &keys), 0..30, chain, Some(Algorithm::Greedy));
            let (programs, windows) = (support::sample(0..30).count() as u64, drivers[1].counter("windows"));
            assert!(windows * 5 > programs, "{windows} windows in {programs} programs");
        }
    }
}

/// Rows that begin anywhere in a line of the caches, changed in place: loops begin where vectors cross no line.
#[test]
fn rows_begin_anywhere_in_a_line() {
    for isa in levels() {
        let mut drivers = [engine(isa, "off", &[]), engine(isa, "on", &[])];
        for (dtype, size) in [("u8", 1), ("i16", 2), ("f32", 4), ("f64", 8), ("c128", 16)] {
            for (offset, count) in
                (0..64 / size).flat_map(|offset| [254, 255, 256, 257, 700].map(|count| (offset, count)))
            {
                let (pitch, source) = (count + 5, offset * 3 % 7);
                let text = format!(
                    "bh batch 1
base b0 = {dtype}[3000] id 1 live_out
base b1 = {dtype}[3000] id 2 live_out
base b2 = {dtype}[3000] id 3 live_out
view v0 = b0 at {source} [3:{pitch}, {count}:1]
view v1 = b1 at {offset} [3:{pitch}, {count}:1]
view v2 = b2 at {offset} [3:{pitch}, {count}:1]
i0: v2 = subtract v1, v0
i1: v1 = add v1, v0
"
                );
                let mut batch = text::parse(&text).unwrap();
                batch.push_block(&[0, 1], &[]);
                let mut memory = Memory::new();
                for id in 1..=3 {
                    let bytes = (0..3000 * size).map(|at| (at * 37 % 61 * id % 64) as u8);
                    memory.insert(id as u64, bytes.collect());
                }
                check_bits(
                    &mut drivers,
                    &batch,
                    &memory,
                    &format!("{isa}, {dtype}, {count} elements from {offset} on"),
                );
            }
        }
        assert!(drivers[1].counter("kernels compiled") >= 4);
    }
}

/// Several arrays written past the caches: their rows begin anywhere in a line, at the same place of it or not, in all
/// rows or in some, and are long or short.
#[test]
fn streams_lie_alike_or_apart() {
    for isa in levels() {
        let keys = [("stream_bytes", "64")];
        let mut drivers = [engine(isa, "off", &keys), engine(isa, "on", &keys)];
        for (dtype, size) in [("i32", 4), ("f64", 8)] {
            let long = 512 / size;
            for (offset, count) in (0..64 / size)
                .step_by(3)
                .flat_map(|offset| [long - 1, long, long + 1, 3 * long + 5].map(|count| (offset, count)))
            {
                for (apart, pitch) in [(0, 3), (64 / size, 3), (1, 3), (0, 4), (0, 3 + 64 / size)] {
                    let (second, row, other_row) = (4 * long * 4 + offset + apart, count + 3, count + pitch);
                    let text = format!(
                        "bh batch 1
base b0 = {dtype}[{len}] id 1
base b1 = {dtype}[{len}] id 2 live_out
view v0 = b0 at 1 [3:{row}, {count}:1]
view v1 = b1 at {offset} [3:{row}, {count}:1]
view v2 = b1 at {second} [3:{other_row}, {count}:1]
i0: v1 = add v0, v0
i1: v2 = multiply v0, v0
",
                        len = 8 * long * 4
                    );
                    let mut batch = text::parse(&text).unwrap();
                    batch.push_block(&[0, 1], &[]);
                    let mut memory = Memory::new();
                    for id in 1..=2 {
                        memory.insert(id, (0..8 * long * 4 * size).map(|at| (at * 37 % 61) as u8 % 64).collect());
                    }
                    let what = format!("{isa}, {dtype}, {count} elements at {offset} and {second}, rows {pitch} apart");
                    check_bits(&mut drivers, &batch, &memory, &what);
                }
            }
        }
        assert!(drivers[1].counter("kernels compiled") >= 2);
    }
}

/// Rows that all fold into the same elements, some side by side where all read the same: with a sum and a maximum, with
/// rows and elements left over, and with arrays of which each row is a part.
#[test]
fn rows_fold_into_the_same_elements() {
    for isa in levels() {
        let mut drivers = [engine(isa, "off", &[]), engine(isa, "on", &[])];
        for (rows, count, along) in [(1, 700, 0), (3, 600, 0), (50, 603, 0), (7, 9, 0), (41, 130, 1), (300, 8, 1)] {
            let text = format!(
                "bh batch 1
base b0 = f64[{len}] id 1
base b1 = f64[{rows}] id 2
base b2 = f64[{count}] id 3 live_out
base b3 = f64[{count}] id 4 live_out
base b4 = f64[{len}] id 5 born dies
view v0 = b0 at 0 [{rows}:{pitch}, {count}:1]
view v1 = b1 at 0 [{rows}:1, {count}:0]
view v2 = b2 at 0 [{count}:1]
view v3 = b3 at 0 [{count}:1]
view v4 = b4 at 0 [{rows}:{count}, {count}:1]
i0: v4 = divide v1, v0
i1: v2 = add_reduce axes(0) v4
i2: v3 = maximum_reduce axes(0) v4
",
                len = rows * count,
                pitch = count * along
            );
            let mut batch = text::parse(&text).unwrap();
            batch.push_block(&[0, 1, 2], &[]);
            let mut memory = Memory::new();
            let numbers = |count: usize, seed: usize| {
                (0..count).flat_map(|at| ((at * 37 + seed) as f64 % 61.0 + 0.1).to_le_bytes()).collect::<Vec<u8>>()
            };
            memory.insert(1, numbers(rows * count, 1));
            memory.insert(2, numbers(rows, 2));
            memory.insert(3, numbers(count, 3));
            memory.insert(4, numbers(count, 4));
            check_bits(&mut drivers, &batch, &memory, &format!("{isa}, {rows} rows of {count}"));
        }
        assert!(drivers[1].counter("kernels compiled") >= 2);
    }
}

/// Bytes of elements of a type: whole numbers of any size, zeros of both signs, and in some rows of floating-point numbers
/// infinities and NaN.
fn elements(dtype: DType, count: usize, row: usize) -> Vec<u8> {
    let mut dice = Dice(count as u64);
    let element = |at: usize| {
        let number = dice.pick(-4000, 4000) as f64 / 7.0;
        let number = match dice.pick(0, 15) {
            0 => -0.0,
            1 => 0.0,
            2 if at / row.max(1) % 4 == 1 => f64::INFINITY,
            3 if at / row.max(1) % 4 == 3 => f64::NAN,
            _ => number,
        };
        match dtype {
            DType::F64 => number.to_le_bytes().to_vec(),
            DType::F32 => (number as f32).to_le_bytes().to_vec(),
            DType::Bool => vec![u8::from(number > -400.0)],
            _ => dice.pick(i64::MIN / 4, i64::MAX / 4).to_le_bytes()[..dtype.size()].to_vec(),
        }
    };
    (0..count).flat_map(element).collect()
}

/// Short and long rows of which each makes a result, fewer and more than are joined side by side, with two folds of one array
/// and one of a product, for all types and folds; results lie apart from each other.
#[test]
fn rows_that_make_a_result_each() {
    let sizes =
        [(1, 64), (7, 33), (8, 32), (9, 40), (41, 100), (64, 63), (71, 35), (150, 129), (67, 700), (50, 8), (83, 17)];
    let folds = Opcode::ALL.iter().filter(|opcode| opcode.info().signature == Signature::Reduce);
    let typed = folds.flat_map(|&opcode| opcode.info().types.iter().map(move |dtype| (opcode, dtype)));
    let real: Vec<(Opcode, DType)> = typed.filter(|(_, dtype)| !dtype.is_complex()).collect();
    let all: Vec<_> = real.iter().flat_map(|&(opcode, dtype)| sizes.map(|size| (opcode, dtype, size))).collect();
    for isa in levels() {
        let mut drivers = [engine(isa, "off", &[]), engine(isa, "on", &[])];
        let mut compiled = HashSet::new();
        for (opcode, dtype, (rows, row)) in support::spread(&all) {
            compiled.insert((opcode, dtype));
            let (len, apart, fold) = (rows * row, rows * 2, opcode.name());
            let product = if dtype == DType::Bool { "logical_and" } else { "multiply" };
            let text = format!(
                "bh batch 1
base b0 = {dtype}[{len}] id 1
base b1 = {dtype}[{len}] id 2
base b2 = {dtype}[{apart}] id 3 live_out
base b3 = {dtype}[{apart}] id 4 live_out
base b4 = {dtype}[{rows}] id 5 live_out
base b5 = {dtype}[{len}] id 6 born dies
view v0 = b0 at 0 [{rows}:{row}, {row}:1]
view v1 = b1 at 0 [{rows}:{row}, {row}:1]
view v2 = b2 at 0 [{rows}:2]
view v3 = b3 at {last} [{rows}:-2]
view v4 = b4 at 0 [{rows}:1]
view v5 = b5 at 0 [{rows}:{row}, {row}:1]
i0: v5 = {product} v0, v1
i1: v2 = {fold} axes(1) v0
i2: v3 = {fold} axes(1) v1
i3: v4 = {fold} axes(1) v5
",
                last = apart - 1
            );
            let mut batch = text::parse(&text).unwrap();
            batch.push_block(&[0, 1, 2, 3], &[]);
            let mut memory = Memory::new();
            for (id, count) in [(1, len), (2, len), (3, apart), (4, apart), (5, rows)] {
                let bytes = elements(dtype, count + id as usize, row).split_off(id as usize * dtype.size());
                memory.insert(id, bytes);
            }
            check_bits(&mut drivers, &batch, &memory, &format!("{isa}, {fold} of {dtype}, {rows} rows of {row}"));
        }
        let (kernels, compiled) = (drivers[1].counter("kernels compiled"), compiled.len() as u64);
        assert!(kernels >= compiled, "{kernels} kernels of {compiled}");
    }
}

/// Elements apart from each other and backward, read and written.
#[test]
fn strides_of_all_types() {
    for isa in levels() {
        let mut drivers = [engine(isa, "off", &[]), engine(isa, "on", &[])];
        for (dtype, size) in
            [("bool", 1), ("u8", 1), ("i16", 2), ("f32", 4), ("i64", 8), ("f64", 8), ("c64", 8), ("c128", 16)]
        {
            for (count, stride, to) in [(300, 2, 3), (257, 5, 1), (64, 1, 7), (100, 3, 2)] {
                let (operation, last) = (if dtype == "bool" { "logical_xor" } else { "add" }, (count - 1) * stride);
                let text = format!(
                    "bh batch 1
base b0 = {dtype}[2000] id 1 live_out
base b1 = {dtype}[2000] id 2 live_out
view v0 = b0 at 5 [{count}:{stride}]
view v1 = b0 at {last} [{count}:-{stride}]
view v2 = b1 at 9 [{count}:{to}]
i0: v2 = {operation} v0, v1
"
                );
                let mut batch = text::parse(&text).unwrap();
                batch.push_block(&[0], &[]);
                let mut memory = Memory::new();
                let most = if dtype == "bool" { 2 } else { 50 };
                for id in 1..=2 {
                    memory.insert(id as u64, (0..2000 * size).map(|at| (at * 37 % 61 * id % most) as u8).collect());
                }
                check_bits(
                    &mut drivers,
                    &batch,
                    &memory,
                    &format!("{isa}, {dtype}, {count} elements {stride} and {to} apart"),
                );
            }
        }
        assert!(drivers[1].counter("kernels compiled") >= 8);
    }
}

/// Outputs that bypass the caches: of several types in one kernel, in rows that are longer than a block, and from loops
/// over several vectors at once.
#[test]
fn outputs_past_the_caches() {
    let chain = "i0: v1 = exp v0\ni1: v1 = log v1\ni2: v1 = exp v1\ni3: v1 = log v1\n";
    let types = "i0: v1 = add v0, v0\ni1: v2 = less v0, v1\n";
    for isa in levels() {
        let keys = [("stream_bytes", "64")];
        let mut drivers = [engine(isa, "off", &keys), engine(isa, "on", &keys)];
        for (instructions, dtype, size) in [(chain, "f64", 8), (chain, "f32", 4), (types, "f64", 8), (types, "f32", 4)]
        {
            for (count, offset) in [(5000, 0), (5003, 3), (40_001, 5)] {
                let text = format!(
                    "bh batch 1
base b0 = {dtype}[50000] id 1
base b1 = {dtype}[50000] id 2 live_out
base b2 = bool[50000] id 3 live_out
view v0 = b0 at 0 [{count}:1]
view v1 = b1 at {offset} [{count}:1]
view v2 = b2 at {offset} [{count}:1]
{instructions}"
                );
                let mut batch = text::parse(&text).unwrap();
                let all: Vec<u32> = (0..batch.instrs.len() as u32).collect();
                batch.push_block(&all, &[]);
                let numbers = (0..50_000).map(|at| f64::from(at * 37 % 1009) / 500.0 - 1.0);
                let bytes = |number: f64| match size {
                    4 => (number as f32).to_le_bytes().to_vec(),
                    _ => number.to_le_bytes().to_vec(),
                };
                let mut memory = Memory::new();
                memory.insert(1, numbers.flat_map(bytes).collect());
                memory.insert(2, vec![0; 50_000 * size]);
                memory.insert(3, vec![0; 50_000]);
                check_bits(&mut drivers, &batch, &memory, &format!("{isa}, {count} from {offset} on\n{text}"));
            }
        }
        assert!(drivers[1].counter("kernels compiled") >= 4);
        assert_eq!(drivers[1].counter("kernels not compiled"), 0);
    }
}

/// Runs a program on a fresh engine with a directory for kernels; returns how many were compiled and loaded.
fn run_with_directory(directory: &str, program: &Program) -> (u64, u64) {
    let mut driver = Driver::new(&[("jit", "on"), ("jit_cache_dir", directory)]).unwrap();
    let oracle = program.oracle().unwrap();
    let memory = driver.run_on(&singletons(&program.batch).as_ref(), &program.memory).unwrap();
    oracle.check(&program.batch, &memory).unwrap();
    (driver.counter("kernels compiled"), driver.counter("kernels loaded"))
}

#[test]
fn kernels_on_disk_are_used_and_damaged_ones_compiled_anew() {
    if levels().is_empty() {
        return;
    }
    let directory = std::env::temp_dir().join(format!("bh-jit-{}", std::process::id()));
    let shown = directory.to_str().unwrap();
    let program = program(3, &random::Options::default());
    let (compiled, loaded) = run_with_directory(shown, &program);
    assert!(compiled > 0 && loaded == 0, "{compiled} compiled, {loaded} loaded");
    assert_eq!(run_with_directory(shown, &program), (0, compiled));
    for entry in std::fs::read_dir(&directory).unwrap() {
        let file = entry.unwrap().path();
        let mut bytes = std::fs::read(&file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x10;
        std::fs::write(&file, bytes).unwrap();
    }
    assert_eq!(run_with_directory(shown, &program), (compiled, 0));
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn hot_kernels_are_compiled_in_the_background() {
    let Some(isa) = levels().pop() else { return };
    let mut driver = Driver::new(&[("threads", "2"), ("isa", isa), ("jit", "auto"), ("jit_cache_dir", "")]).unwrap();
    let source = "bh batch 1\n\
        base b0 = f64[1000000] id 1\n\
        view v0 = b0 at 0 [1000000:1]\n\
        i0: v0 = sin v0\n\
        i1: v0 = multiply v0, v0\n";
    let batch = text::parse(source).unwrap();
    let mut memory = Memory::new();
    memory.insert(1, 0.5f64.to_le_bytes().repeat(1_000_000));
    let blocks = singletons(&batch);
    // A kernel that has run for milliseconds is compiled soon; how soon is the system's affair.
    let begin = std::time::Instant::now();
    while driver.counter("kernels compiled") == 0 {
        driver.run_on(&blocks.as_ref(), &memory).unwrap();
        assert!(begin.elapsed().as_secs() < 600, "nothing was compiled");
    }
}

#[test]
fn code_that_gets_ready_runs_the_rest_of_a_kernel() {
    let Some(isa) = levels().pop() else { return };
    let drivers = |jit| Driver::new(&[("threads", "2"), ("isa", isa), ("jit", jit), ("jit_cache_dir", "")]).unwrap();
    let sines = |array: &str, first: u32| -> String {
        (first..first + 24).map(|at| format!("i{at}: {array} = sin {array}\n")).collect()
    };
    // A map, and a fold along each axis of a temporary that gets no memory.
    let source = format!(
        "bh batch 1\n\
         base b0 = f32[1003000] id 1\n\
         base b1 = f32[1003000] id 2\n\
         base b2 = f32[1003] id 3\n\
         base b3 = f32[1000] id 4\n\
         view v0 = b0 at 0 [1000:1003, 1003:1]\n\
         view v1 = b1 at 0 [1000:1003, 1003:1]\n\
         view v2 = b2 at 0 [1003:1]\n\
         view v3 = b3 at 0 [1000:1]\n\
         {}i24: v1 = multiply v0, v0\n{}i49: v2 = add_reduce axes(0) v1\ni50: v3 = add_reduce axes(1) v1\n",
        sines("v0", 0),
        sines("v1", 25)
    );
    let mut batch = text::parse(&source).unwrap();
    let block = |batch: &mut Batch, range: std::ops::Range<u32>| batch.push_block(&range.collect::<Vec<_>>(), &[]);
    block(&mut batch, 0..25);
    block(&mut batch, 25..50);
    block(&mut batch, 50..51);
    let mut memory = Memory::new();
    memory.insert(1, (0..1_003_000).flat_map(|at| ((at * 37 % 1009) as f32 / 500.0 - 1.0).to_le_bytes()).collect());
    memory.insert(2, vec![0; 4 * 1_003_000]);
    memory.insert(3, vec![0; 4 * 1003]);
    memory.insert(4, vec![0; 4 * 1000]);
    let expected = drivers("off").run_on(&batch.as_ref(), &memory).unwrap();
    for round in 0..4 {
        let found = drivers("auto").run_on(&batch.as_ref(), &memory).unwrap();
        assert_eq!(found, expected, "round {round}");
    }
}
