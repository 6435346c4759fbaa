//! Copies of what renames leave unwritten: the results equal the oracle's, however lines are shared out.

use crate::support;

use bh_bytecode::random::Program;
use bh_bytecode::text;
use bh_core::Component;
use bh_fuser::{Algorithm, Options, Partitioner};
use support::Driver;
use support::chains::{Dice, stencil_chain};

/// Compares a program's results with the oracle's; returns how many views its renames copy.
fn check(driver: &mut Driver, program: &Program) -> Result<usize, String> {
    let oracle = program.oracle().map_err(|error| error.to_string())?;
    let options = Options { algorithm: Algorithm::Greedy, rename_percent: 400, ..Options::default() };
    let batch = program.batch.as_ref();
    let partition = Partitioner::default().partition(&batch, &options);
    let actual = driver.run_on(&partition.apply(&batch), &program.memory).map_err(|error| error.to_string())?;
    oracle.check(&program.batch, &actual)?;
    Ok(partition.renames.iter().map(|rename| rename.uncovered_count as usize).sum())
}

fn drivers() -> Vec<Driver> {
    let driver = |threads: usize, keys: &[(&str, &str)]| {
        let mut driver = Driver::new(&[&[("threads", "1"), ("windows", "off")], keys].concat()).unwrap();
        driver.engine.message(&format!("threads {threads}")).unwrap();
        driver
    };
    vec![driver(1, &[("jit", "off")]), driver(3, &[("jit", "off")]), driver(2, &[("jit", "on")])]
}

#[test]
fn random_steps_of_grids_equal_the_oracle() {
    let (mut drivers, mut copies) = (drivers(), 0);
    for seed in 0..1200 {
        let mut dice = Dice(seed ^ 991);
        let mut shape: Vec<i64> = (0..dice.pick(1, 3)).map(|_| dice.pick(3, 9)).collect();
        shape.push(dice.pick(50, 90));
        let program = stencil_chain(seed, &shape, dice.pick(2, 6) as usize);
        for (index, driver) in drivers.iter_mut().enumerate() {
            match check(driver, &program) {
                Ok(more) => copies += more,
                Err(difference) => {
                    let batch = text::print(&program.batch.as_ref());
                    panic!("seed {seed}, driver {index}: {difference}\n{batch}")
                }
            }
        }
    }
    assert!(copies > 300, "{copies} views were copied");
}
