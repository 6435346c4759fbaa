//! The machine's limits: memory bandwidth, and fused multiply-adds per second on all cores.

use serde_json::{Value, json};
use std::hint::black_box;
use std::time::Instant;

/// Doubles of all arrays together: they exceed caches.
const DOUBLES: usize = 8 << 20;
const ROUNDS: usize = 4;
/// Independent chains of operations, and their length.
const CHAINS: usize = 64;
const STEPS: usize = 1 << 17;

/// Measures both. Other running programs lower the results.
pub fn measure() -> Value {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let bytes = fastest(threads, |share| {
        let (from, mut to) = (vec![1.0f64; share], vec![0.0f64; share]);
        move || {
            to.iter_mut().zip(black_box(&from)).for_each(|(to, from)| *to = 3.0 * from);
            black_box(&mut to);
            // Each element is read; its target is fetched into the cache and written.
            24 * share
        }
    });
    let operations = fastest(threads, |_| || 2 * CHAINS * STEPS * usize::from(black_box(chains()) != 0.5));
    json!({ "bytes": bytes, "operations": operations, "threads": threads })
}

/// The highest rate of all threads together over several rounds, each thread on its share.
fn fastest<W: FnMut() -> usize>(threads: usize, prepare: impl Fn(usize) -> W + Sync) -> f64 {
    let barrier = std::sync::Barrier::new(threads);
    let round = || -> (usize, f64) {
        let mut work = prepare(DOUBLES / threads);
        let mut best = (0, f64::INFINITY);
        for _ in 0..ROUNDS {
            barrier.wait();
            let begin = Instant::now();
            let done = work();
            barrier.wait();
            let seconds = begin.elapsed().as_secs_f64();
            best = if seconds < best.1 { (done, seconds) } else { best };
        }
        best
    };
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(round)).collect();
        all.into_iter().filter_map(|thread| thread.join().ok()).map(|(done, seconds)| done as f64 / seconds).sum()
    })
}

/// Fused multiply-adds with the widest available instructions.
#[cfg(target_arch = "x86_64")]
fn chains() -> f64 {
    if is_x86_feature_detected!("avx512f") {
        // SAFETY: `is_x86_feature_detected!` has found the instructions.
        unsafe { chains_512() }
    } else if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: `is_x86_feature_detected!` has found the instructions.
        unsafe { chains_256() }
    } else {
        chains_of(|a, b, c| a * b + c)
    }
}

/// NEON, which every AArch64 processor has.
#[cfg(target_arch = "aarch64")]
fn chains() -> f64 {
    chains_of(f64::mul_add)
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn chains() -> f64 {
    chains_of(|a, b, c| a * b + c)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn chains_512() -> f64 {
    chains_of(f64::mul_add)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn chains_256() -> f64 {
    chains_of(f64::mul_add)
}

#[inline(always)]
fn chains_of(step: impl Fn(f64, f64, f64) -> f64) -> f64 {
    let mut sums = black_box([1.0f64; CHAINS]);
    let factor = black_box(0.999);
    for _ in 0..STEPS {
        sums.iter_mut().for_each(|sum| *sum = step(*sum, factor, 0.001));
    }
    sums.iter().sum()
}
