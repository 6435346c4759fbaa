//! Partitions of random programs: legal by the independent judge, equal to program order by simulation.

use crate::options::{ALGORITHMS, Algorithm, Options};
use crate::simulate::{initial, run_blocks, run_in_order};
use crate::verify::verify;
use crate::{Partitioner, cost};
use bh_bytecode::random::{self, Rng};
use bh_bytecode::{Batch, BatchRef, base_flags};

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

fn check(batch: &Batch, options: &Options, partitioner: &mut Partitioner, seed: u64) -> (usize, usize) {
    let batch = batch.as_ref();
    let partition = partitioner.partition(&batch, options);
    let partitioned = partition.apply(&batch);
    let outcome = verify(&partitioned).and_then(|()| simulate(&batch, &partitioned, &mut Rng::new(seed)));
    if let Err(text) = outcome {
        panic!("{:?}, seed {seed}: {text}\n{}", options.algorithm, bh_bytecode::text::print(&partitioned));
    }
    (partition.blocks.len(), partition.renames.len())
}

#[test]
fn random_programs_are_partitioned_legally() {
    let mut partitioner = Partitioner::default();
    let (mut fused, mut renames) = (0, 0);
    let programs = 4000;
    for seed in 0..programs {
        let program = random::program(seed, &small_programs());
        for &(_, algorithm) in ALGORITHMS {
            let options = Options { algorithm, cost: &cost::UNIQUE_VIEWS, ..eager() };
            let (blocks, renamed) = check(&program.batch, &options, &mut partitioner, seed);
            if algorithm == Algorithm::Greedy {
                fused += program.batch.instrs.len() - blocks.min(program.batch.instrs.len());
                renames += renamed;
            }
        }
        check(&program.batch, &eager(), &mut partitioner, seed);
    }
    assert!(fused > programs as usize, "only {fused} instructions were fused");
    assert!(renames > programs as usize / 50, "only {renames} renames");
}
