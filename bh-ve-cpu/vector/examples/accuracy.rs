//! Long accuracy sweeps of the vector functions; prints a Markdown table of the largest errors.
//!
//! `cargo run --release -p bh-vector --example accuracy -- [--samples N] [--f32-step N] [--function NAME] [--isa NAME]`
//!
//! `--samples` is the number of `f64` arguments per function (10⁷ by default, 0 leaves `f64` out), `--f32-step` the
//! distance between the `f32` bit patterns tried (1 by default: all of them; 0 leaves `f32` out). The exit status is 1 if a
//! bound is exceeded.

#[path = "../tests/all/reference/accuracy.rs"]
#[allow(dead_code, reason = "shared with the tests")]
mod accuracy;
#[path = "../tests/all/reference/mpfr.rs"]
mod mpfr;

use accuracy::{SUBJECTS, Worst, hard_cases, measure_f32, measure_f64, run, samples};
use bh_bytecode::{DType, Opcode};
use bh_vector::math;
use bh_vector::simd::Isa;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Arguments per piece of work: few enough that a piece stays in the cache.
const PIECE: u64 = 1 << 12;

struct Options {
    samples: u64,
    step: u64,
    function: Option<String>,
    isas: Vec<Isa>,
}

fn options() -> Result<Options, String> {
    let mut options = Options { samples: 10_000_000, step: 1, function: None, isas: Isa::available().collect() };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or(format!("{name} needs a value"))?;
        let number = || value.parse::<u64>().map_err(|error| format!("{name} {value}: {error}"));
        match name.as_str() {
            "--samples" => options.samples = number()?,
            "--f32-step" => options.step = number()?,
            "--function" => options.function = Some(value),
            "--isa" => {
                let isa = Isa::from_name(&value).filter(|isa| isa.is_available());
                options.isas = vec![isa.ok_or(format!("no instruction set {value} here"))?];
            }
            _ => return Err(format!("unknown option {name}")),
        }
    }
    Ok(options)
}

/// Shares `pieces` numbered pieces of work among all cores and joins their worst cases.
fn sweep(
    pieces: u64,
    levels: usize,
    work: impl Fn(u64, &mut Option<mpfr::Mpfr>) -> Result<Vec<Worst>, String> + Sync,
) -> Result<Vec<Worst>, String> {
    let next = AtomicU64::new(0);
    let joined = Mutex::new(Ok(vec![Worst::default(); levels]));
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut reference = None;
                loop {
                    let piece = next.fetch_add(1, Ordering::Relaxed);
                    if piece >= pieces {
                        return;
                    }
                    let result = work(piece, &mut reference);
                    let mut joined = joined.lock().unwrap_or_else(|poison| poison.into_inner());
                    match (&mut *joined, result) {
                        (Ok(all), Ok(worst)) => {
                            for (all, worst) in all.iter_mut().zip(worst) {
                                if worst.ulp > all.ulp {
                                    *all = worst;
                                }
                            }
                        }
                        (Ok(_), Err(error)) => *joined = Err(error),
                        (Err(_), _) => return,
                    }
                }
            });
        }
    });
    joined.into_inner().unwrap_or_else(|poison| poison.into_inner())
}

fn print(opcode: Opcode, dtype: &str, options: &Options, worst: &[Worst], bound: f64) -> bool {
    for (isa, worst) in options.isas.iter().zip(worst) {
        let (x, y) = worst.at;
        let arguments = if math::BINARY.contains(&opcode) { format!("{x:e}, {y:e}") } else { format!("{x:e}") };
        let verdict = if worst.ulp <= bound { "" } else { " exceeded" };
        println!("| {} | {dtype} | {isa} | {:.3} | {bound}{verdict} | {arguments} |", opcode.name(), worst.ulp);
    }
    worst.iter().all(|worst| worst.ulp <= bound)
}

fn main() -> ExitCode {
    match sweep_all() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("accuracy: {error}");
            ExitCode::FAILURE
        }
    }
}

fn sweep_all() -> Result<bool, String> {
    let options = options()?;
    let wanted = |opcode: Opcode| options.function.as_deref().is_none_or(|name| name == opcode.name());
    println!("| function | type | instruction set | largest error, ULP | bound | at |\n|---|---|---|---|---|---|");
    let mut good = true;
    for subject in SUBJECTS.iter().filter(|subject| options.samples > 0 && wanted(subject.opcode)) {
        let worst = sweep(options.samples.div_ceil(PIECE), options.isas.len(), |piece, reference| {
            if reference.is_none() {
                *reference = Some(mpfr::Mpfr::load()?);
            }
            let reference = reference.as_mut().ok_or("no reference")?;
            let (mut xs, mut ys) = samples(subject, PIECE as usize, piece + 2);
            if piece == 0 {
                xs.extend(hard_cases());
                ys.resize(xs.len(), 3.0);
            }
            measure_f64(reference, subject, &options.isas, &xs, &ys)
        })?;
        good &= print(subject.opcode, "f64", &options, &worst, subject.bound);
    }
    if options.step == 0 {
        return Ok(good);
    }
    for &opcode in math::UNARY.iter().filter(|&&opcode| wanted(opcode)) {
        // The functions of `f64`, themselves measured above, are thousands of times finer than the results here.
        let reference = math::lookup(Isa::detect(), opcode, DType::F64).ok_or("no reference")?;
        let count = (1u64 << 32).div_ceil(options.step);
        let worst = sweep(count.div_ceil(PIECE), options.isas.len(), |piece, _| {
            let range = piece * PIECE..count.min((piece + 1) * PIECE);
            let xs: Vec<f32> = range.map(|i| f32::from_bits((i * options.step) as u32)).collect();
            let wide: Vec<f64> = xs.iter().map(|&x| f64::from(x)).collect();
            measure_f32(opcode, &run(reference, &wide, &wide), &options.isas, &xs, &xs)
        })?;
        good &= print(opcode, "f32", &options, &worst, 1.0);
    }
    Ok(good)
}
