//! Times block primitives on blocks that stay in the first-level cache; prints nanoseconds per element.
//!
//! `cargo run --release -p bh-vector --example speed -- [--prims] [FUNCTION…]`: the functions of `math`, or with `--prims` every
//! element-wise opcode and type, the folds and the generators.

use bh_bytecode::opcode::Signature;
use bh_bytecode::{DType, Kind, Opcode};
use bh_vector::simd::Isa;
use bh_vector::{math, prims};
use std::time::Instant;

/// Elements per block, as the engine runs them.
const BLOCK: usize = 512;
const REPEATS: usize = 400;

/// The best of several runs, in nanoseconds per element.
fn time(mut run: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..7 {
        let start = Instant::now();
        for _ in 0..REPEATS {
            run();
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e9 / (REPEATS * BLOCK) as f64);
    }
    best
}

/// A block of numbers near 1 as bytes of a type, with zeros left out so that divisions are ordinary.
fn operand(dtype: DType, offset: f64, step: usize) -> Vec<u8> {
    let numbers = (0..BLOCK).map(|i| offset + ((i * step) % BLOCK) as f64 / BLOCK as f64 + 0.5 / BLOCK as f64);
    let mut bytes = Vec::new();
    for x in numbers {
        let whole = (x * 40.0) as u8 + 1;
        match dtype {
            DType::F64 => bytes.extend(x.to_ne_bytes()),
            DType::F32 => bytes.extend((x as f32).to_ne_bytes()),
            DType::C128 => bytes.extend([x, 1.5 - x].map(f64::to_ne_bytes).concat()),
            DType::C64 => bytes.extend([x as f32, 1.5 - x as f32].map(f32::to_ne_bytes).concat()),
            DType::Bool => bytes.push(whole & 1),
            _ => {
                bytes.push(whole);
                bytes.resize(bytes.len() + dtype.size() - 1, 0);
            }
        }
    }
    bytes
}

/// Prints one line: a time for each level.
fn line(name: &str, isas: &[Isa], mut measure: impl FnMut(Isa) -> Option<f64>) {
    print!("| {name} |");
    for &isa in isas {
        match measure(isa) {
            Some(time) => print!(" {time:.3} |"),
            None => print!(" |"),
        }
    }
    println!();
}

fn elementwise(isas: &[Isa], opcode: Opcode, input: DType, output: DType) {
    let offset = if opcode == Opcode::Arccosh { 1.0 } else { 0.0 };
    let mask = opcode.info().signature == Signature::Select;
    let a = operand(if mask { DType::Bool } else { input }, offset, 1);
    let (b, c) = (operand(input, 0.3, 7), operand(input, 0.6, 3));
    let mut out = vec![0u128; BLOCK];
    let param = if opcode == Opcode::Powi { 3 } else { 0 };
    let name = if input == output {
        format!("{} | {input}", opcode.name())
    } else {
        format!("{} | {input} to {output}", opcode.name())
    };
    line(&name, isas, |isa| {
        let run = prims::lookup(isa, opcode, param, input, output)?;
        // SAFETY: blocks of BLOCK elements; the level is available.
        Some(time(|| unsafe { run(BLOCK, out.as_mut_ptr().cast(), a.as_ptr(), b.as_ptr(), c.as_ptr()) }))
    });
}

fn all_primitives(isas: &[Isa], wanted: impl Fn(Opcode) -> bool) {
    let mut out = vec![0u128; BLOCK];
    for &opcode in Opcode::ALL.iter().filter(|&&opcode| wanted(opcode)) {
        let info = opcode.info();
        for dtype in info.types.iter() {
            match (info.kind, info.signature) {
                (Kind::Elementwise, Signature::Cast) => {
                    DType::ALL.into_iter().for_each(|to| elementwise(isas, opcode, dtype, to));
                }
                (Kind::Elementwise, Signature::Test) => elementwise(isas, opcode, dtype, DType::Bool),
                (Kind::Elementwise, Signature::Abs | Signature::Part) => {
                    elementwise(isas, opcode, dtype, dtype.real_part());
                }
                (Kind::Elementwise, _) => elementwise(isas, opcode, dtype, dtype),
                (Kind::Reduction, _) => {
                    let a = operand(dtype, 0.0, 1);
                    line(&format!("{} | {dtype}", info.name), isas, |isa| {
                        let run = prims::reduce_lanes(isa, opcode, dtype)?;
                        let null = std::ptr::null();
                        // SAFETY: lanes and a block; the level is available.
                        Some(time(|| unsafe { run(BLOCK, out.as_mut_ptr().cast(), a.as_ptr(), null) }))
                    });
                }
                (Kind::Generator, Signature::Index) => line(&format!("range | {dtype}"), isas, |isa| {
                    let run = prims::iota(isa, dtype)?;
                    // SAFETY: a block; the level is available.
                    Some(time(|| unsafe { run(BLOCK, out.as_mut_ptr().cast(), 3, 7) }))
                }),
                (Kind::Generator, _) => line(&format!("random | {dtype}"), isas, |isa| {
                    let run = prims::philox(isa, dtype)?;
                    // SAFETY: a block; the level is available.
                    Some(time(|| unsafe { run(BLOCK, out.as_mut_ptr().cast(), 3, 1, 7) }))
                }),
                _ => {}
            }
        }
    }
}

fn main() {
    let (options, wanted): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|word| word.starts_with("--"));
    let wanted = |opcode: Opcode| wanted.is_empty() || wanted.iter().any(|name| name == opcode.name());
    let isas: Vec<Isa> = Isa::available().collect();
    print!("| function | type |");
    isas.iter().for_each(|isa| print!(" {isa} |"));
    println!("\n|---|---|{}", "---|".repeat(isas.len()));
    if options.iter().any(|option| option == "--prims") {
        return all_primitives(&isas, wanted);
    }
    for &opcode in math::UNARY.iter().chain(math::BINARY).filter(|&&opcode| wanted(opcode)) {
        elementwise(&isas, opcode, DType::F64, DType::F64);
        elementwise(&isas, opcode, DType::F32, DType::F32);
    }
}
