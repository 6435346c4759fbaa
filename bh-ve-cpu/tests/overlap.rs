//! Kernels that run at the same time, as many as may: results equal the oracle's, and bit by bit those of the plain order
//! on any number of threads; failures are those of the plain order.

mod support;

use bh_bytecode::batch::NO_BASE;
use bh_bytecode::interp::Memory;
use bh_bytecode::random::{self, Program, program, shrink};
use bh_bytecode::{Base, Batch, Constant, Operand, ViewRec, text};
use bh_core::Component;
use bh_core::abi::status;
use bh_fuser::{Algorithm, Options, Partitioner};
use support::{Driver, singletons};

fn driver(threads: &str, overlap: &str) -> Driver {
    let keys = [("threads", threads), ("overlap", overlap), ("sweeps", "off")];
    Driver::new(&keys).unwrap()
}

/// One in the plain order, and some with all kernels overlapped that may.
fn drivers() -> [Driver; 5] {
    [driver("1", "off"), driver("1", "on"), driver("2", "on"), driver("3", "on"), driver("16", "on")]
}

/// Several programs side by side, with an operation of each in turn.
fn beside(programs: &[Program]) -> Program {
    let mut all = Program { batch: Batch::default(), memory: Memory::new() };
    let mut offsets = Vec::new();
    for program in programs {
        let (batch, first_id) = (&program.batch, 1000 * offsets.len() as u64);
        offsets.push((all.batch.views.len() as u32, all.batch.constants.len() as u32));
        let (bases, dims) = (all.batch.bases.len() as u32, all.batch.dims.len() as u32);
        all.batch.bases.extend(batch.bases.iter().map(|&base| Base { id: first_id + base.id, ..base }));
        all.batch.views.extend(batch.views.iter().map(|&view| {
            let base = if view.base == NO_BASE { view.base } else { bases + view.base };
            ViewRec { base, dims: dims + view.dims, ..view }
        }));
        all.batch.dims.extend(&batch.dims);
        all.batch.constants.extend(&batch.constants);
        for id in program.memory.ids() {
            all.memory.insert(first_id + id, program.memory.get(id).unwrap().to_vec());
        }
    }
    let longest = programs.iter().map(|program| program.batch.instrs.len()).max().unwrap_or(0);
    for at in 0..longest {
        for (program, &(views, constants)) in programs.iter().zip(&offsets) {
            let Some(&(mut instr)) = program.batch.instrs.get(at) else { continue };
            instr.origin = 0;
            let count = instr.count as usize;
            for operand in &mut instr.operands[..count] {
                *operand = match (operand.as_view(), operand.as_constant()) {
                    (Some(view), _) => Operand::view(views + view),
                    (_, Some(constant)) => Operand::constant(constants + constant),
                    _ => *operand,
                };
            }
            all.batch.push_instr(instr);
        }
    }
    all
}

fn check(drivers: &mut [Driver], program: &Program, algorithm: Algorithm) -> Result<(), String> {
    let oracle = program.oracle().map_err(|error| error.to_string())?;
    let batch = program.batch.as_ref();
    let partition = Partitioner::default().partition(&batch, &Options { algorithm, ..Options::default() });
    let batch = partition.apply(&batch);
    let plain = drivers[0].run_on(&batch, &program.memory).map_err(|error| error.to_string())?;
    oracle.check(&program.batch, &plain).map_err(|text| format!("in the plain order: {text}"))?;
    for (index, driver) in drivers.iter_mut().enumerate().skip(1) {
        let found = driver.run_on(&batch, &program.memory).map_err(|error| error.to_string())?;
        for base in program.batch.bases.iter().filter(|base| oracle.memory.get(base.id).is_some()) {
            if found.get(base.id) != plain.get(base.id) {
                return Err(format!("driver {index}: identity {} differs from the plain order's", base.id));
            }
        }
    }
    Ok(())
}

fn compare(drivers: &mut [Driver], program: &Program, seed: u64, algorithm: Algorithm) {
    if let Err(difference) = check(drivers, program, algorithm) {
        let small = shrink(program, |candidate| check(drivers, candidate, algorithm).is_err());
        let reason = check(drivers, &small, algorithm).err().unwrap_or(difference);
        panic!("seed {seed}, {algorithm:?}: {reason}\n{}", text::print(&small.batch.as_ref()));
    }
}

#[test]
fn random_programs_side_by_side_equal_the_oracle() {
    let mut drivers = drivers();
    for seed in 0..400 {
        let options = random::Options { max_instrs: 12, max_rank: 4, ..random::Options::default() };
        let programs: Vec<Program> = (0..2 + seed % 4).map(|part| program(10 * seed + part, &options)).collect();
        let algorithm = [Algorithm::Singleton, Algorithm::Greedy][seed as usize % 2];
        compare(&mut drivers, &beside(&programs), seed, algorithm);
    }
    for (index, most) in [0, 0, 2000, 2000, 2000].into_iter().enumerate() {
        let count = drivers[index].counter("kernels overlapped");
        assert!(count >= most && (most > 0 || count == 0), "driver {index}: {count}");
    }
}

#[test]
fn larger_arrays_have_the_same_bits() {
    let mut drivers = drivers();
    let options = random::Options { max_elements: 60_000, max_instrs: 8, max_rank: 3, ..random::Options::default() };
    for seed in 0..30 {
        let programs: Vec<Program> = (0..4).map(|part| program(7000 + 10 * seed + part, &options)).collect();
        compare(&mut drivers, &beside(&programs), seed, [Algorithm::Singleton, Algorithm::Greedy][seed as usize % 2]);
    }
    assert!(drivers[4].counter("kernels overlapped") > 100);
}

/// Sums of four arrays, which are changed then, with a gather in the middle whose index is out of range if it should fail.
fn chains(fails: bool) -> (Batch, Memory) {
    let (mut text, mut memory) = (String::from("bh batch 1\nconst c0 = f64 0.5\n"), Memory::new());
    for chain in 0..4 {
        text += &format!("base b{} = f64[70000] id {}\n", 2 * chain, 2 * chain + 1);
        text += &format!("base b{} = f64[1] id {}\n", 2 * chain + 1, 2 * chain + 2);
        let values = (0..70_000).flat_map(|at| (f64::from(at * (chain + 3)) * 0.37).sin().to_ne_bytes());
        memory.insert(2 * chain as u64 + 1, values.collect());
        memory.insert(2 * chain as u64 + 2, vec![0; 8]);
    }
    text += "base b8 = i64[1] id 9\nbase b9 = f64[1] id 10\n";
    memory.insert(9, (if fails { 1i64 } else { 0 }).to_ne_bytes().to_vec());
    memory.insert(10, 1f64.to_ne_bytes().to_vec());
    for chain in 0..4 {
        let (array, sum) = (2 * chain, 2 * chain + 1);
        text += &format!("view v{} = b{array} at 0 [70000:1]\nview v{} = b{sum} at 0 []\n", 3 * chain, 3 * chain + 1);
        text += &format!("view v{} = b{sum} at 0 [70000:0]\n", 3 * chain + 2);
    }
    text += "view v12 = b8 at 0 [1:1]\nview v13 = b9 at 0 [1:1]\nbase b10 = f64[1] id 11\nview v14 = b10 at 0 [1:1]\n";
    memory.insert(11, 3f64.to_ne_bytes().to_vec());
    for view in (0..4).map(|chain| 3 * chain) {
        text += &format!("v{} = add_reduce axes(0) v{view}\nv{view} = multiply v{view}, c0\n", view + 1);
        text += &format!("v{view} = subtract v{view}, v{}\n", view + 2);
    }
    text += "v14 = gather v13, v12\n";
    for chain in 0..4 {
        text += if chain == 2 { "block i12\n" } else { "" };
        text += &format!("block i{}\nblock i{} i{}\n", 3 * chain, 3 * chain + 1, 3 * chain + 2);
    }
    (text::parse(&text).unwrap(), memory)
}

#[test]
fn batches_that_come_again_are_overlapped_for_any_number_of_threads() {
    let (batch, memory) = chains(false);
    let plain = driver("1", "off").run_on(&batch.as_ref(), &memory).unwrap();
    for overlap in ["on", "auto"] {
        let mut driver = driver("2", overlap);
        for threads in [2, 3, 1, 16, 2] {
            driver.engine.message(&format!("threads {threads}")).unwrap();
            for _ in 0..3 {
                let found = driver.run_on(&batch.as_ref(), &memory).unwrap();
                assert!((1..9).all(|id| found.get(id) == plain.get(id)), "{overlap}, {threads} threads");
            }
        }
        if overlap == "on" {
            assert_eq!(driver.counter("kernels overlapped"), 8 * 4 * 3);
        }
        assert_eq!(driver.counter("kernels"), 9 * 5 * 3);
    }
}

#[test]
fn constants_and_bases_of_the_batch_at_hand_are_used() {
    let mut driver = driver("2", "on");
    let (mut batch, memory) = chains(false);
    for round in 0..3u64 {
        let mut other = Memory::new();
        for base in &mut batch.bases {
            let data = memory.get((base.id - 1) % 11 + 1).unwrap().to_vec();
            base.id = (base.id - 1) % 11 + 1 + 11 * round;
            other.insert(base.id, data);
        }
        batch.constants[0] = Constant::from_value(round as f64);
        let found = driver.run_on(&batch.as_ref(), &other).unwrap();
        let plain = self::driver("1", "off").run_on(&batch.as_ref(), &other).unwrap();
        assert!(batch.bases.iter().all(|base| found.get(base.id) == plain.get(base.id)), "round {round}");
    }
    assert_eq!((driver.counter("plan hits"), driver.counter("kernels overlapped")), (2, 24));
}

#[test]
fn failures_are_those_of_the_plain_order() {
    let (batch, memory) = chains(true);
    let mut found = Vec::new();
    for overlap in ["off", "on"] {
        let mut driver = driver("3", overlap);
        let error = driver.run_on(&batch.as_ref(), &memory).unwrap_err();
        assert_eq!((error.status, error.block, error.instr), (status::BOUNDS, Some(4), Some(12)), "{overlap}");
        assert_eq!(driver.counter("kernels overlapped"), if overlap == "on" { 4 } else { 0 });
        // What comes after the failing block has not begun.
        assert!((5..9).all(|id| driver.get(id).unwrap() == memory.get(id).unwrap()), "{overlap}");
        found.push((error.to_string(), (1..5).map(|id| driver.get(id).unwrap().to_vec()).collect::<Vec<_>>()));
    }
    assert!(found[0] == found[1]);
}

#[test]
fn singletons_run_whole_chains_on_one_participant() {
    let (batch, memory) = chains(false);
    let mut whole = batch.clone();
    whole.blocks.clear();
    whole.block_instrs.clear();
    let whole = singletons(&whole);
    let plain = driver("1", "off").run_on(&whole.as_ref(), &memory).unwrap();
    let mut driver = driver("4", "on");
    let found = driver.run_on(&whole.as_ref(), &memory).unwrap();
    assert!((1..9).all(|id| found.get(id) == plain.get(id)));
    assert_eq!(driver.counter("kernels overlapped"), 12);
}
