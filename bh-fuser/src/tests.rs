//! Partitions of random programs: legal by the independent judge, equal to program order by simulation.

use crate::explain::{counted, explain};
use crate::notes::Notes;
use crate::options::{ALGORITHMS, Algorithm, Options};
use crate::simulate::{initial, run_blocks, run_in_order};
use crate::{Partitioner, cost, price};
use bh_bytecode::random::{self, Rng};
use bh_bytecode::validate::partition as verify;
use bh_bytecode::{Batch, BatchRef, base_flags};

mod caches;
mod optimality;
mod paper;
mod programs;

fn small_programs() -> random::Options {
    random::Options { max_elements: 40, max_rank: 4, max_instrs: 16, ..random::Options::default() }
}

/// Renames of small arrays copy much: allow it, so that there are many.
fn eager() -> Options {
    Options { rename_percent: 400, ..Options::default() }
}

fn simulate(batch: &BatchRef<'_>, partitioned: &BatchRef<'_>, rng: &mut Rng) -> Result<(), String> {
    let (mut expected, mut actual) = (initial(batch), initial(batch));
    run_in_order(batch, &mut expected);
    run_blocks(partitioned, &mut actual, rng);
    for (index, base) in batch.bases.iter().enumerate().filter(|(_, base)| !base.has(base_flags::DIES)) {
        if expected[index] != actual[index] {
            return Err(format!("base {index} ({base:?}) differs"));
        }
    }
    Ok(())
}

fn check(batch: &Batch, options: &Options, partitioner: &mut Partitioner, seed: u64, run: bool) -> (usize, usize, i64) {
    let batch = batch.as_ref();
    let partition = partitioner.partition(&batch, options);
    let partitioned = partition.apply(&batch);
    let mut outcome = verify(&partitioned);
    if run && outcome.is_ok() {
        outcome = simulate(&batch, &partitioned, &mut Rng::new(seed));
    }
    if let Err(text) = outcome {
        panic!("{:?}, seed {seed}: {text}\n{}", options.algorithm, bh_bytecode::text::print(&partitioned));
    }
    (partition.blocks.len(), partition.renames.len(), price(&partitioned, options).total())
}

/// Every partition of every algorithm is legal, and gives the right values when its kernels run point by point; greedy
/// never beats optimal.
fn check_programs(seeds: std::ops::Range<u64>) {
    let mut partitioner = Partitioner::default();
    let (mut fused, mut renames) = (0, 0);
    let programs = seeds.end - seeds.start;
    for seed in seeds {
        let program = random::program(seed, &small_programs());
        let mut costs = [0; 2];
        for (number, &(_, algorithm)) in ALGORITHMS.iter().enumerate() {
            let options = Options { algorithm, cost: &cost::UNIQUE_VIEWS, steps: 300, threads: 1, ..eager() };
            let run = seed % ALGORITHMS.len() as u64 == number as u64;
            let (blocks, renamed, cost) = check(&program.batch, &options, &mut partitioner, seed, run);
            match algorithm {
                Algorithm::Greedy => {
                    fused += program.batch.instrs.len() - blocks.min(program.batch.instrs.len());
                    renames += renamed;
                    costs[0] = cost;
                }
                Algorithm::Optimal => costs[1] = cost,
                _ => {}
            }
        }
        assert!(costs[0] >= costs[1], "seed {seed}: greedy {} is cheaper than optimal {}", costs[0], costs[1]);
        check(&program.batch, &eager(), &mut partitioner, seed, seed % 3 == 0);
    }
    assert!(fused > programs as usize, "only {fused} instructions were fused");
    assert!(renames > programs as usize / 50, "only {renames} renames");
}

#[test]
fn random_programs_are_partitioned_legally() {
    check_programs(0..25_000);
}

#[test]
fn explanations_name_what_keeps_kernels_apart() {
    let words = "bh batch 1
base b0 = f64[100] id 1 live_out
base b1 = f64[100] id 2 born live_out
base b2 = f64[100] id 3 born live_out
view v0 = b0 at 0 [98:1]
view v1 = b1 at 0 [98:1]
view v2 = b1 at 1 [98:1]
view v3 = b2 at 0 [98:1]
i0: v1 = add v0, v0
i1: v3 = add v2, v2
";
    let mut batch = bh_bytecode::text::parse(words).unwrap();
    for index in 0..2 {
        batch.push_block(&[index], &[]);
    }
    let text = explain(&batch.as_ref(), &Options::default(), &Notes::default());
    let reason = "not fused with kernel 1: one reads b1 through a view that overlaps what the other writes";
    assert!(text.contains(reason), "{text}");
    assert!(text.starts_with("2 kernels for 2 operations;"), "{text}");
}

#[test]
fn numbers_have_their_nouns() {
    assert_eq!(
        [counted(0, "kernel"), counted(1, "kernel"), counted(2, "kernel")],
        ["0 kernels", "1 kernel", "2 kernels"]
    );
}

#[test]
fn more_random_programs_are_partitioned_legally() {
    check_programs(25_000..50_000);
}
