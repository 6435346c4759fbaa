//! Random stencil chains: several kernels that read what others of the batch write at shifted places, with and without
//! sweeps, in small strips, on several thread counts. Results equal the oracle's, and each other's bit by bit.

mod support;

use bh_bytecode::batch::NO_BASE;
use bh_bytecode::interp::Memory;
use bh_bytecode::random::{Program, shrink};
use bh_bytecode::{BatchRef, text};
use bh_core::Component;
use bh_fuser::lower::{self, Home, SweepOptions};
use bh_fuser::{Algorithm, Options, Partition, Partitioner};
use support::Driver;
use support::chains::{Dice, stencil_chain};

/// Runs a program under a partition and returns the memory after it.
fn run(driver: &mut Driver, program: &Program, partition: &Partition) -> Result<Memory, String> {
    let batch = program.batch.as_ref();
    driver.run_on(&partition.apply(&batch), &program.memory).map_err(|error| error.to_string())
}

fn partition(batch: &BatchRef<'_>, algorithm: Algorithm) -> Partition {
    Partitioner::default().partition(batch, &Options { algorithm, ..Options::default() })
}

/// Compares a program's results with the oracle's, and its results on several drivers.
fn check(drivers: &mut [Driver], program: &Program, algorithm: Algorithm) -> Result<(), String> {
    let oracle = program.oracle().map_err(|error| error.to_string())?;
    let partition = partition(&program.batch.as_ref(), algorithm);
    let plain = run(&mut drivers[0], program, &partition)?;
    oracle.check(&program.batch, &plain).map_err(|text| format!("without sweeps: {text}"))?;
    for (index, driver) in drivers.iter_mut().enumerate().skip(1) {
        let swept = run(driver, program, &partition)?;
        for base in program.batch.bases.iter().filter(|base| oracle.memory.get(base.id).is_some()) {
            if swept.get(base.id) != plain.get(base.id) {
                return Err(format!("driver {index}: identity {} differs from the plain order's", base.id));
            }
        }
    }
    Ok(())
}

/// How many values of a program one nest of a sweep makes for others, and how many of them for several kernels.
fn reused(program: &Program, algorithm: Algorithm) -> (usize, usize) {
    let batch = program.batch.as_ref();
    let partition = partition(&batch, algorithm);
    let applied = partition.apply(&batch);
    let sweeps = lower::sweeps(&applied, &SweepOptions { bytes: 20_000, unit: &|_| Some(1) });
    let mut counts = (0, 0);
    for sweep in &sweeps.found {
        for (number, array) in (0..).zip(&sweep.arrays) {
            if array.base == NO_BASE && matches!(array.home, Home::Rolling { .. }) {
                counts.0 += 1;
                let users = sweep.nests.iter().filter(|nest| nest.arrays.contains(&number));
                counts.1 += usize::from(users.count() > 2);
            }
        }
    }
    counts
}

fn compare(drivers: &mut [Driver], program: Program, seed: u64, algorithm: Algorithm) {
    if let Err(difference) = check(drivers, &program, algorithm) {
        let small = shrink(&program, |candidate| check(drivers, candidate, algorithm).is_err());
        let reason = check(drivers, &small, algorithm).err().unwrap_or(difference);
        panic!("seed {seed}, {algorithm:?}: {reason}\n{}", text::print(&small.batch.as_ref()));
    }
}

fn driver(threads: usize, bytes: &str) -> Driver {
    let mut driver = Driver::new(&[("threads", "1"), ("sweep_bytes", bytes)]).unwrap();
    driver.engine.message(&format!("threads {threads}")).unwrap();
    driver
}

fn plain() -> Driver {
    Driver::new(&[("threads", "2"), ("sweeps", "off")]).unwrap()
}

const ALGORITHMS: [Algorithm; 3] = [Algorithm::Singleton, Algorithm::Naive, Algorithm::Greedy];

#[test]
fn small_chains_equal_the_oracle() {
    let mut drivers = [plain(), driver(1, "3000"), driver(2, "20000")];
    let (mut kept, mut shared) = (0, 0);
    for seed in 0..3000 {
        let mut dice = Dice(seed ^ 77);
        let rank = dice.pick(1, 3);
        let mut shape: Vec<i64> = (0..rank).map(|_| dice.pick(3, 12)).collect();
        // Borders of square grids are one kernel.
        let square = rank == 2 && dice.chance(50);
        shape[0] = dice.pick(20, 90) * if rank == 1 { 8 } else { 1 };
        if square {
            shape[1] = shape[0];
        }
        // Nests of several kernels are made one where they cover about the same.
        if rank == 2 && dice.chance(60) {
            shape = vec![dice.pick(20, 40), dice.pick(20, 40)];
        }
        let program = stencil_chain(seed, &shape, dice.pick(2, 14) as usize);
        let (values, of_several) = reused(&program, ALGORITHMS[seed as usize % 3]);
        (kept, shared) = (kept + values, shared + of_several);
        compare(&mut drivers, program, seed, ALGORITHMS[seed as usize % 3]);
    }
    assert!(kept > 100 && shared > 10, "{kept} values made once, {shared} of them for several kernels");
    for driver in &drivers[1..] {
        assert!(driver.counter("sweeps") > 500, "{} sweeps", driver.counter("sweeps"));
    }
    assert_eq!(drivers[0].counter("sweeps"), 0);
}

#[test]
fn folds_and_threads_do_not_change_bits() {
    let mut drivers = [plain(), driver(1, "400000"), driver(2, "500000"), driver(3, "600000"), driver(16, "700000")];
    for seed in 0..25 {
        let mut dice = Dice(seed ^ 99);
        let shape = match seed % 5 {
            0 => vec![dice.pick(400, 600), dice.pick(150, 300)],
            1 => vec![dice.pick(60, 90), dice.pick(30, 40), dice.pick(40, 50)],
            2 => vec![dice.pick(130_000, 200_000)],
            // Rows that are folded side by side.
            3 => vec![dice.pick(150, 250), dice.pick(520, 700)],
            _ => vec![dice.pick(40, 60), dice.pick(3, 5), dice.pick(520, 600)],
        };
        let program = stencil_chain(seed, &shape, dice.pick(3, 9) as usize);
        compare(&mut drivers, program, seed, ALGORITHMS[seed as usize % 3]);
    }
    for driver in &drivers[1..] {
        assert!(driver.counter("sweeps") > 4, "{} sweeps", driver.counter("sweeps"));
    }
}
