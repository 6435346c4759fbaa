//! Random programs against the reference interpreter, with and without fusion, on several thread counts and instruction
//! sets.

use crate::support;

use bh_bytecode::batch::base_flags;
use bh_bytecode::random::{self, Program, program};
use bh_bytecode::text;
use bh_fuser::{Algorithm, Options, Partitioner};
use bh_ve_cpu::simd::Isa;
use support::points::distances;
use support::{Driver, sample, singletons, with_constants};

/// Runs a program in one partition and compares it with the oracle.
fn check(driver: &mut Driver, program: &Program, algorithm: Option<Algorithm>) -> Result<(), String> {
    let oracle = program.oracle().map_err(|error| error.to_string())?;
    let actual = match algorithm {
        None => driver.run_on(&singletons(&program.batch).as_ref(), &program.memory),
        Some(algorithm) => {
            let options = bh_fuser::Options { algorithm, ..bh_fuser::Options::default() };
            let batch = program.batch.as_ref();
            let partition = Partitioner::default().partition(&batch, &options);
            driver.run_on(&partition.apply(&batch), &program.memory)
        }
    };
    oracle.check(&program.batch, &actual.map_err(|error| error.to_string())?)
}

fn run_seeds(
    driver: &mut Driver,
    seeds: std::ops::Range<u64>,
    options: &random::Options,
    algorithm: Option<Algorithm>,
) {
    for seed in sample(seeds) {
        let program = program(seed, options);
        if let Err(difference) = check(driver, &program, algorithm) {
            let small = random::shrink(&program, |candidate| check(driver, candidate, algorithm).is_err());
            let reason = check(driver, &small, algorithm).err().unwrap_or(difference);
            panic!("seed {seed}, {algorithm:?}: {reason}\n{}", text::print(&small.batch.as_ref()));
        }
    }
}

#[test]
fn singletons_equal_the_oracle() {
    let mut driver = Driver::new(&[("threads", "2")]).unwrap();
    run_seeds(&mut driver, 0..1500, &random::Options::default(), None);
}

#[test]
fn fused_programs_equal_the_oracle() {
    let mut driver = Driver::new(&[("threads", "2")]).unwrap();
    run_seeds(&mut driver, 0..1500, &random::Options::default(), Some(Algorithm::Naive));
    run_seeds(&mut driver, 1500..3000, &random::Options::default(), Some(Algorithm::Greedy));
}

#[test]
fn windows_over_few_rows_equal_the_oracle() {
    let mut driver = Driver::new(&[("threads", "2"), ("window_bytes", "100")]).unwrap();
    let (single, fused) = (3000..4000, 4000..6000);
    run_seeds(&mut driver, single, &random::Options::default(), None);
    let programs = sample(fused.clone()).count() as u64;
    run_seeds(&mut driver, fused, &random::Options::default(), Some(Algorithm::Greedy));
    assert!(driver.counter("windows") > programs / 20, "{} windows", driver.counter("windows"));
}

#[test]
fn constants_that_were_equal_may_differ_later() {
    let mut driver = Driver::new(&[("threads", "2"), ("window_bytes", "100")]).unwrap();
    let seeds = sample(0..600);
    let least = seeds.end;
    for seed in seeds {
        let random = program(seed, &random::Options::default());
        for round in 0..4 {
            let program = with_constants(&random, round);
            if let Err(difference) = check(&mut driver, &program, Some(Algorithm::Greedy)) {
                panic!("seed {seed}, round {round}: {difference}\n{}", text::print(&program.batch.as_ref()));
            }
        }
    }
    assert!(driver.counter("plan hits") > least, "{} batches had plans", driver.counter("plan hits"));
}

#[test]
fn larger_arrays_equal_the_oracle() {
    let mut driver = Driver::new(&[("threads", "3")]).unwrap();
    let options = random::Options { max_elements: 20_000, max_instrs: 12, max_rank: 4, ..random::Options::default() };
    run_seeds(&mut driver, 0..60, &options, None);
    run_seeds(&mut driver, 60..200, &options, Some(Algorithm::Greedy));
}

#[test]
fn without_a_usable_kernel_compiler_kernels_run_in_blocks() {
    let file = std::env::temp_dir().join(format!("bh-no-library-{}.so", std::process::id()));
    std::fs::write(&file, "no library").unwrap();
    let program = program(7, &random::Options::default());
    let library = file.to_str().unwrap();
    let keys = [("threads", "2"), ("jit", "on"), ("jit_library", library), ("jit_cache_dir", "")];
    let mut driver = Driver::new(&keys).unwrap();
    check(&mut driver, &program, None).unwrap();
    let warnings = driver.warnings();
    if [Isa::Avx2, Isa::Neon].iter().any(|isa| isa.is_available()) {
        assert!(warnings.len() == 1 && warnings[0].contains(library), "{warnings:?}");
    }
    assert_eq!(driver.counter("kernels compiled"), 0);
    std::fs::remove_file(file).unwrap();
    for wrong in ["/nowhere/lib.so", "libm.so.6"] {
        let error = Driver::new(&[("jit", "on"), ("jit_library", wrong)]).map(|_| ()).unwrap_err();
        assert!(error.text.contains("'jit_library'") && error.text.contains(wrong), "{error}");
    }
}

#[test]
fn distances_have_the_bits_of_their_operations() {
    let config = |isa: Isa| [("threads", "2"), ("isa", isa.name()), ("jit", "off")];
    let mut plain = Driver::new(&config(Isa::Portable)).unwrap();
    let mut drivers: Vec<(Isa, Driver)> =
        Isa::available().map(|isa| (isa, Driver::new(&config(isa)).unwrap())).collect();
    for seed in sample(0..1500) {
        let program = distances(seed);
        let wanted = plain.run_on(&singletons(&program.batch).as_ref(), &program.memory).unwrap();
        let oracle = program.oracle().unwrap();
        oracle.check(&program.batch, &wanted).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let tables = program.batch.as_ref();
        let partition = Partitioner::default().partition(&tables, &Options::default());
        for (isa, driver) in &mut drivers {
            let found = driver.run_on(&partition.apply(&tables), &program.memory).unwrap();
            for base in program.batch.bases.iter().filter(|base| base.flags & base_flags::LIVE_OUT != 0) {
                assert!(found.get(base.id) == wanted.get(base.id), "{isa}, seed {seed}: identity {} differs", base.id);
            }
        }
    }
}
