//! Times the vector functions on blocks that stay in the first-level cache; prints nanoseconds per element.
//!
//! `cargo run --release -p bh-ve-cpu --example speed -- [FUNCTION…]`

use bh_bytecode::{DType, Opcode};
use bh_ve_cpu::math::{self, PrimFn};
use bh_ve_cpu::simd::Isa;
use std::time::Instant;

/// Elements per block, as the engine runs them.
const BLOCK: usize = 512;
const REPEATS: usize = 400;

/// The best of several runs, in nanoseconds per element.
fn time(function: PrimFn, out: &mut [u8], a: &[u8], b: &[u8]) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..7 {
        let start = Instant::now();
        for _ in 0..REPEATS {
            // SAFETY: the buffers hold BLOCK elements of the largest type; the level is available.
            unsafe { function(BLOCK, out.as_mut_ptr(), a.as_ptr(), b.as_ptr(), std::ptr::null()) };
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e9 / (REPEATS * BLOCK) as f64);
    }
    best
}

fn bytes<T: Copy>(values: &[T], to_bytes: impl Fn(T) -> Vec<u8>) -> Vec<u8> {
    values.iter().flat_map(|&value| to_bytes(value)).collect()
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let isas: Vec<Isa> = Isa::available().collect();
    print!("| function | type |");
    isas.iter().for_each(|isa| print!(" {isa} |"));
    println!("\n|---|---|{}", "---|".repeat(isas.len()));
    let all = math::UNARY.iter().chain(math::BINARY);
    for &opcode in all.filter(|opcode| wanted.is_empty() || wanted.iter().any(|name| name == opcode.name())) {
        let offset = if opcode == Opcode::Arccosh { 1.0 } else { 0.0 };
        let a: Vec<f64> = (0..BLOCK).map(|i| offset + (i as f64 + 0.5) / BLOCK as f64).collect();
        let b: Vec<f64> = (0..BLOCK).map(|i| 0.3 + (i * 7 % BLOCK) as f64 / BLOCK as f64 * 3.0).collect();
        for dtype in [DType::F64, DType::F32] {
            print!("| {} | {dtype} |", opcode.name());
            let store = |x: f64| match dtype {
                DType::F64 => x.to_ne_bytes().to_vec(),
                _ => (x as f32).to_ne_bytes().to_vec(),
            };
            let (a, b) = (bytes(&a, store), bytes(&b, store));
            let mut out = vec![0; BLOCK * 8];
            for &isa in &isas {
                match math::lookup(isa, opcode, dtype) {
                    Some(function) => print!(" {:.2} |", time(function, &mut out, &a, &b)),
                    None => print!(" |"),
                }
            }
            println!();
        }
    }
}
