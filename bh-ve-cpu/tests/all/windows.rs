//! Random chains: several kernels that read at shifted places what others of the batch write, or what others fold of the
//! same rows, with and without windows and tiles, in small strips, on several thread counts. Results equal the oracle's, and
//! each other's bit by bit.

use crate::support;

use bh_bytecode::interp::Memory;
use bh_bytecode::random::{Program, shrink};
use bh_bytecode::{BatchRef, text};
use bh_core::Component;
use bh_fuser::{Algorithm, Options, Partition, Partitioner};
use bh_kernel::{Dim, SlotMode, Survey, TileSlot, WindowOptions};
use support::chains::{Dice, stencil_chain};
use support::columns::column_folds;
use support::rows::row_chain;
use support::{Driver, with_constants};

/// Runs a program under a partition and returns the memory after it.
fn run(driver: &mut Driver, program: &Program, partition: &Partition) -> Result<Memory, String> {
    let batch = program.batch.as_ref();
    driver.run_on(&partition.apply(&batch), &program.memory).map_err(|error| error.to_string())
}

fn partition(batch: &BatchRef<'_>, algorithm: Algorithm) -> Partition {
    Partitioner::default().partition(batch, &Options { algorithm, ..Options::default() })
}

/// Compares a program's results with the oracle's, if it rounds as that does, and its results on several drivers.
fn check(drivers: &mut [Driver], program: &Program, algorithm: Algorithm, rounds: bool) -> Result<(), String> {
    let oracle = program.oracle().map_err(|error| error.to_string())?;
    let partition = partition(&program.batch.as_ref(), algorithm);
    let plain = run(&mut drivers[0], program, &partition)?;
    if !rounds {
        oracle.check(&program.batch, &plain).map_err(|text| format!("without windows: {text}"))?;
    }
    for (index, driver) in drivers.iter_mut().enumerate().skip(1) {
        let windowed = run(driver, program, &partition)?;
        for base in program.batch.bases.iter().filter(|base| oracle.memory.get(base.id).is_some()) {
            if windowed.get(base.id) != plain.get(base.id) {
                return Err(format!("driver {index}: identity {} differs from the plain order's", base.id));
            }
        }
    }
    Ok(())
}

/// How many nests of a program run together with others as one.
fn joined(program: &Program, algorithm: Algorithm) -> usize {
    let batch = program.batch.as_ref();
    let partition = partition(&batch, algorithm);
    let windows = bh_kernel::windows(
        &Survey::new(&partition.apply(&batch)),
        &WindowOptions { bytes: 20_000, stand_ins: true },
        &[],
    );
    let turns = windows.found.iter().flat_map(|window| &window.turns);
    turns.filter(|turn| turn.joined.is_some()).map(|turn| turn.nests.len()).sum()
}

/// How many folds of rows take part in windows of a program, how many of their results exist as a few elements only, and how
/// many arrays use other ones' places.
fn row_folds(program: &Program, algorithm: Algorithm) -> (usize, usize, usize) {
    let batch = program.batch.as_ref();
    let partition = partition(&batch, algorithm);
    let applied = partition.apply(&batch);
    let windows = bh_kernel::windows(&Survey::new(&applied), &WindowOptions { bytes: 20_000, stand_ins: true }, &[]);
    let mut counts = (0, 0, 0);
    for window in &windows.found {
        counts.2 += window.transient.len() - window.rows.len();
        for nest in window.nests.iter().filter(|nest| nest.stage.kernel.dims[0] == Dim::Kept) {
            let slots = nest.stage.kernel.slots.iter().zip(&nest.slots);
            for (_, home) in slots.filter(|(slot, _)| slot.mode == SlotMode::Result) {
                counts.0 += 1;
                counts.1 += usize::from(matches!(home, TileSlot::Rows(_)));
            }
        }
    }
    counts
}

fn compare(drivers: &mut [Driver], (program, rounds): (Program, bool), seed: u64, algorithm: Algorithm) {
    if let Err(difference) = check(drivers, &program, algorithm, rounds) {
        let small = shrink(&program, |candidate| check(drivers, candidate, algorithm, rounds).is_err());
        let reason = check(drivers, &small, algorithm, rounds).err().unwrap_or(difference);
        panic!("seed {seed}, {algorithm:?}: {reason}\n{}", text::print(&small.batch.as_ref()));
    }
}

fn driver(threads: usize, bytes: &str) -> Driver {
    let mut driver = Driver::new(&[("threads", "1"), ("window_bytes", bytes)]).unwrap();
    driver.engine.message(&format!("threads {threads}")).unwrap();
    driver
}

fn plain() -> Driver {
    Driver::new(&[("threads", "2"), ("windows", "off")]).unwrap()
}

const ALGORITHMS: [Algorithm; 3] = [Algorithm::Singleton, Algorithm::Naive, Algorithm::Greedy];

/// A driver that runs chains of at most `kernels` kernels tile by tile.
fn tiled(kernels: u32, threads: usize, bytes: &str) -> Driver {
    let keys = [("threads", "1"), ("window_bytes", bytes), ("time_tiles", &kernels.to_string())];
    let mut driver = Driver::new(&keys).unwrap();
    driver.engine.message(&format!("threads {threads}")).unwrap();
    driver
}

#[test]
fn chains_in_tiles_equal_the_oracle() {
    let mut drivers = [plain(), tiled(1, 2, "3000"), tiled(2, 1, "8000"), tiled(5, 2, "6000"), tiled(16, 3, "20000")];
    for seed in 0..3000 {
        let mut dice = Dice(seed ^ 66);
        let rank = dice.pick(1, 3);
        let mut shape: Vec<i64> = (0..rank).map(|_| dice.pick(3, 12)).collect();
        shape[0] = dice.pick(5, 60) * if rank == 1 { 12 } else { 1 };
        if rank == 2 && dice.chance(80) {
            shape[1] = dice.pick(2, 130);
        }
        let program = stencil_chain(seed, &shape, dice.pick(2, 24) as usize);
        compare(&mut drivers, (program, false), seed, ALGORITHMS[seed as usize % 3]);
    }
    for driver in &drivers[1..] {
        let (tilings, kernels) = (driver.counter("tilings"), driver.counter("kernels in tiles"));
        assert!(tilings > 1000 && kernels >= tilings, "{tilings} tilings of {kernels} kernels");
    }
    let deepest = &drivers[4];
    assert!(deepest.counter("kernels in tiles") > 3 * deepest.counter("tilings"));
    assert_eq!(drivers[0].counter("tilings"), 0);
}

#[test]
fn small_chains_equal_the_oracle() {
    let mut drivers = [plain(), driver(1, "3000"), driver(2, "20000")];
    let mut together = 0;
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
        if rank == 2 && dice.chance(60) {
            shape = vec![dice.pick(20, 40), dice.pick(20, 40)];
        }
        let program = stencil_chain(seed, &shape, dice.pick(2, 14) as usize);
        together += joined(&program, ALGORITHMS[seed as usize % 3]);
        compare(&mut drivers, (program, false), seed, ALGORITHMS[seed as usize % 3]);
    }
    assert!(together > 500, "{together} nests are parts of larger ones");
    for driver in &drivers[1..] {
        assert!(driver.counter("windows") > 500, "{} windows", driver.counter("windows"));
    }
    assert_eq!(drivers[0].counter("windows"), 0);
}

/// Batches of one structure, whose plans may be used again, with constants that are equal in some of them.
#[test]
fn constants_that_were_equal_may_differ_later() {
    let mut drivers = [plain(), driver(1, "3000"), driver(2, "20000")];
    for seed in 0..400 {
        let mut dice = Dice(seed ^ 33);
        let shape = [dice.pick(20, 40), dice.pick(20, 40)];
        let program = stencil_chain(seed, &shape, dice.pick(2, 14) as usize);
        for round in 0..4 {
            compare(&mut drivers, (with_constants(&program, round), false), seed, Algorithm::Greedy);
        }
    }
    for driver in &drivers {
        let (known, new) = (driver.counter("plan hits"), driver.counter("plan misses"));
        assert!(known > 400 && new < 1300, "{known} batches had plans, {new} had none");
    }
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
        compare(&mut drivers, (program, false), seed, ALGORITHMS[seed as usize % 3]);
    }
    for driver in &drivers[1..] {
        assert!(driver.counter("windows") > 4, "{} windows", driver.counter("windows"));
    }
}

#[test]
fn chains_of_row_folds_equal_the_oracle() {
    let mut drivers = [plain(), driver(1, "3000"), driver(2, "20000"), driver(3, "6000")];
    let (mut folded, mut spared, mut shared) = (0, 0, 0);
    for seed in 0..2000 {
        let mut dice = Dice(seed ^ 55);
        let rank = dice.pick(2, 3);
        let mut shape = vec![dice.pick(10, 60), if dice.chance(20) { dice.pick(2, 40) } else { dice.pick(48, 150) }];
        if rank == 3 {
            shape = vec![dice.pick(10, 20), dice.pick(2, 6), dice.pick(20, 100)];
        }
        let (program, rounds) = row_chain(seed, &shape, dice.pick(2, 12) as usize);
        let algorithm = ALGORITHMS[seed as usize % 3];
        let (folds, rolling, places) = row_folds(&program, algorithm);
        (folded, spared, shared) = (folded + folds, spared + rolling, shared + places);
        compare(&mut drivers, (program, rounds), seed, algorithm);
    }
    assert!(folded > 1000 && spared > 500, "{folded} folds of rows in windows, {spared} results of them in no memory");
    assert!(shared > 200, "{shared} arrays in the place of others");
    for driver in &drivers[1..] {
        assert!(driver.counter("windows") > 500, "{} windows", driver.counter("windows"));
    }
}

#[test]
fn long_rows_and_threads_do_not_change_bits() {
    let mut drivers = [plain(), driver(1, "700000"), driver(2, "500000"), driver(3, "3000000"), driver(16, "4000000")];
    for seed in 0..24 {
        let mut dice = Dice(seed ^ 44);
        let shape = match seed % 4 {
            0 => vec![dice.pick(100, 150), dice.pick(3000, 5000)],
            // Several chunks for each row.
            1 => vec![dice.pick(9, 14), dice.pick(33_000, 50_000)],
            2 => vec![dice.pick(20, 30), dice.pick(4, 6), dice.pick(2000, 4000)],
            _ => vec![dice.pick(20, 30), dice.pick(8192, 16_000)],
        };
        let (program, rounds) = row_chain(seed, &shape, dice.pick(3, 6) as usize);
        compare(&mut drivers, (program, rounds), seed, ALGORITHMS[seed as usize % 3]);
    }
    for driver in &drivers[1..] {
        assert!(driver.counter("windows") > 4, "{} windows", driver.counter("windows"));
    }
}

#[test]
fn columns_and_threads_do_not_change_bits() {
    let mut drivers = [plain(), driver(1, "400000"), driver(2, "500000"), driver(3, "3000000"), driver(16, "1000000")];
    for seed in 0..1200 {
        compare(&mut drivers, (column_folds(seed), false), seed, ALGORITHMS[seed as usize % 3]);
    }
    for seed in 0..30 {
        let mut dice = Dice(seed ^ 66);
        let shape = match seed % 3 {
            0 => vec![dice.pick(30_000, 90_000), dice.pick(2, 7)],
            1 => vec![dice.pick(5000, 20_000), dice.pick(8, 31)],
            _ => vec![dice.pick(10_000, 20_000), dice.pick(2, 4), dice.pick(2, 4)],
        };
        let (program, rounds) = row_chain(seed, &shape, dice.pick(3, 6) as usize);
        compare(&mut drivers, (program, rounds), seed, ALGORITHMS[seed as usize % 3]);
    }
    for driver in &drivers[1..] {
        assert!(driver.counter("windows") > 4, "{} windows", driver.counter("windows"));
    }
}

#[test]
fn rows_that_are_fewer_than_threads_leave_these_to_single_kernels() {
    // Rows are reduced by their maxima and divided by their sums.
    let text = "bh batch 1
base b0 = f64[200000] id 1 live_out
base b1 = f64[4] id 2 born dies
base b2 = f64[200000] id 3 born dies
base b3 = f64[4] id 4 born dies
base b4 = f64[200000] id 5 born live_out
view v0 = b0 at 0 [4:50000, 50000:1]
view v1 = b1 at 0 [4:1]
view v2 = b1 at 0 [4:1, 50000:0]
view v3 = b2 at 0 [4:50000, 50000:1]
view v4 = b3 at 0 [4:1]
view v5 = b3 at 0 [4:1, 50000:0]
view v6 = b4 at 0 [4:50000, 50000:1]
i0: v1 = maximum_reduce axes(1) v0
i1: v3 = subtract v0, v2
i2: v4 = add_reduce axes(1) v3
i3: v6 = divide v3, v5
";
    let mut batch = text::parse(text).unwrap();
    for block in [&[0][..], &[1, 2], &[3]] {
        batch.push_block(block, &[]);
    }
    let mut memory = Memory::new();
    memory.insert(1, (0..200_000).flat_map(|at| (f64::from(at % 997) * 0.37).to_ne_bytes()).collect());
    let mut results = Vec::new();
    for (threads, windows) in [(2, 1), (16, 0)] {
        let mut driver = driver(threads, "1000000");
        results.push(driver.run_on(&batch.as_ref(), &memory).unwrap().get(5).unwrap().to_vec());
        assert_eq!((driver.counter("windows"), driver.counter("windows refused")), (windows, 1 - windows));
    }
    assert_eq!(results[0], results[1]);
}
