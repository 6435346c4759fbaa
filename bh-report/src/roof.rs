//! What the machine can do at most: bytes from memory and multiplications with additions, per second, on all cores.

use serde_json::{Value, json};
use std::hint::black_box;
use std::time::Instant;

/// Doubles of all arrays together: more than caches hold.
const DOUBLES: usize = 8 << 20;
const ROUNDS: usize = 4;
/// Chains of additions that wait for nothing of each other, and their length.
const CHAINS: usize = 64;
const STEPS: usize = 1 << 17;

/// Measures both. Other programs that run meanwhile lower them.
pub fn measure() -> Value {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let bytes = fastest(threads, |share| {
        let (from, mut to) = (vec![1.0f64; share], vec![0.0f64; share]);
        move || {
            to.iter_mut().zip(black_box(&from)).for_each(|(to, from)| *to = 3.0 * from);
            black_box(&mut to);
            // Each element is read, and its place in the other array is fetched and written.
            24 * share
        }
    });
    let operations = fastest(threads, |_| || 2 * CHAINS * STEPS * usize::from(black_box(chains()) != 0.5));
    json!({ "bytes": bytes, "operations": operations, "threads": threads })
}

/// The most per second that all threads do together in one of several rounds, each thread on its share.
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

/// Multiplications with additions by the widest instructions that there are.
#[cfg(target_arch = "x86_64")]
fn chains() -> f64 {
    if is_x86_feature_detected!("avx512f") {
        // SAFETY: the processor has them.
        unsafe { chains_512() }
    } else if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: as above.
        unsafe { chains_256() }
    } else {
        chains_of(|a, b, c| a * b + c)
    }
}

/// NEON, which every processor has.
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
